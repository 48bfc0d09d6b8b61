#include "netd/frames.h"

/* The walk of frames.c as a state machine that may stop after any byte. */
enum { AT_TAG, AT_VARINT, AT_LENGTH, AT_SKIP };

void frames_skim_init(struct frames_skim *s)
{
	*s = (struct frames_skim){.kind = FRAMES_NOTHING};
}

static void take_tag(struct frames_skim *s)
{
	unsigned wire = (unsigned)(s->varint & 7);

	s->field = (unsigned)(s->varint >> 3);
	s->broken = s->varint > UINT32_MAX || s->field == 0;
	if (wire == 0) {
		s->state = AT_VARINT;
	} else if (wire == 2) {
		s->state = AT_LENGTH;
	} else if (wire == 1 || wire == 5) {
		s->skip = wire == 1 ? 8 : 4;
		s->state = AT_SKIP;
	} else {
		s->broken = true;
	}
}

static void take_length(struct frames_skim *s)
{
	bool member = s->inside == 0 && (s->field == 1 || s->field == 2);
	enum frames_kind kind = s->field == 1 ? FRAMES_EXEC : FRAMES_ABORT;

	if (!member) {
		s->skip = s->varint;
		s->state = s->skip > 0 ? AT_SKIP : AT_TAG;
		return;
	}
	if (s->kind != kind)
		s->has_req_id = false;
	s->kind = kind;
	s->inside = s->varint;
	s->state = AT_TAG;
}

static void take_varint(struct frames_skim *s)
{
	if (s->state == AT_TAG) {
		take_tag(s);
		return;
	}
	if (s->state == AT_LENGTH) {
		take_length(s);
		return;
	}
	if (s->inside > 0 && s->field == 1) {
		s->req_id = s->varint;
		s->has_req_id = true;
	}
	s->state = AT_TAG;
}

/* Bytes of a member count down; a field that reaches over its end is broken. */
static bool count_down(struct frames_skim *s, uint64_t n)
{
	if (s->inside == 0)
		return true;
	if (n > s->inside)
		return false;
	s->inside -= n;
	return true;
}

static size_t pass_over(struct frames_skim *s, size_t size)
{
	size_t n = s->skip < size ? (size_t)s->skip : size;
	bool was_inside = s->inside > 0;

	if (was_inside && !count_down(s, n)) {
		s->broken = true;
		return n;
	}
	s->skip -= n;
	if (s->skip > 0 && was_inside && s->inside == 0)
		s->broken = true;
	if (s->skip == 0)
		s->state = AT_TAG;
	return n;
}

static void take_byte(struct frames_skim *s, uint8_t byte)
{
	bool last_inside = s->inside == 1;
	uint64_t inside = s->inside;

	if (s->bits < 64)
		s->varint |= (uint64_t)(byte & 0x7f) << s->bits;
	s->bits += 7;
	if (byte >= 0x80) {
		s->broken = s->bits >= 70 || last_inside;
		count_down(s, 1);
		return;
	}
	take_varint(s);
	/* take_length may just have gone inside; else this byte was one of the member's. */
	if (inside > 0 && s->inside == inside)
		count_down(s, 1);
	if (last_inside && s->state != AT_TAG)
		s->broken = true;
	s->varint = 0;
	s->bits = 0;
}

void frames_skim_feed(struct frames_skim *s, const uint8_t *at, size_t size)
{
	while (size > 0 && !s->broken) {
		size_t n = 1;

		if (s->state == AT_SKIP)
			n = pass_over(s, size);
		else
			take_byte(s, *at);
		at += n;
		size -= n;
	}
}
