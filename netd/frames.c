#include "netd/frames.h"

#include <errno.h>
#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct walk {
	const uint8_t *at;
	const uint8_t *end;
};

struct field {
	unsigned number;
	enum wire wire;
	uint64_t varint;
	struct walk bytes;
};

static bool get_varint(struct walk *w, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned bits = 0; bits < 70 && w->at < w->end; bits += 7) {
		uint8_t byte = *w->at++;

		v |= bits < 64 ? (uint64_t)(byte & 0x7f) << bits : 0;
		if (byte < 0x80) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool skip(struct walk *w, uint64_t n)
{
	if (n > (uint64_t)(w->end - w->at))
		return false;
	w->at += n;
	return true;
}

/* The next field, whatever it is. False: the rest cannot be decoded (groups, which proto3 never had,
 * included). */
static bool get_field(struct walk *w, struct field *ret)
{
	uint64_t tag, n;

	if (!get_varint(w, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
		return false;
	*ret = (struct field){.number = (unsigned)(tag >> 3), .wire = (enum wire)(tag & 7)};
	switch (ret->wire) {
	case WIRE_VARINT:
		return get_varint(w, &ret->varint);
	case WIRE_64:
		return skip(w, 8);
	case WIRE_32:
		return skip(w, 4);
	case WIRE_BYTES:
		if (!get_varint(w, &n))
			return false;
		ret->bytes.at = w->at;
		if (!skip(w, n))
			return false;
		ret->bytes.end = w->at;
		return true;
	}
	return false;
}

static void take_exec_field(struct frames_server *f, const struct field *field)
{
	size_t n = field->wire == WIRE_BYTES ? (size_t)(field->bytes.end - field->bytes.at) : 0;

	if (field->number == 2 && field->wire == WIRE_BYTES) {
		f->command = n > 0 ? field->bytes.at : NULL;
		f->command_len = n;
	} else if (field->number == 3 && field->wire == WIRE_BYTES) {
		f->input = n > 0 ? field->bytes.at : NULL;
		f->input_len = n;
	} else if (field->number == 4 && field->wire == WIRE_VARINT) {
		f->timeout_s = (uint32_t)field->varint;
	} else if (field->number == 5 && field->wire == WIRE_VARINT) {
		f->streaming = field->varint != 0;
	}
}

/* An Exec or an Abort: req_id is field 1 of both. */
static int walk_member(struct walk w, struct frames_server *f)
{
	struct field field;

	while (w.at < w.end) {
		if (!get_field(&w, &field))
			return -EBADMSG;
		if (field.number == 1 && field.wire == WIRE_VARINT) {
			f->req_id = field.varint;
			f->has_req_id = true;
		} else if (f->kind == FRAMES_EXEC) {
			take_exec_field(f, &field);
		}
	}
	return 0;
}

int frames_decode(const uint8_t *at, size_t size, struct frames_server *ret)
{
	struct walk w = {at, size > 0 ? at + size : at};
	struct field field;

	*ret = (struct frames_server){.kind = FRAMES_NOTHING};
	while (w.at < w.end) {
		enum frames_kind kind;

		if (!get_field(&w, &field))
			return -EBADMSG;
		if (field.wire != WIRE_BYTES || field.number < 1 || field.number > 2)
			continue;
		kind = field.number == 1 ? FRAMES_EXEC : FRAMES_ABORT;
		if (ret->kind != kind)
			*ret = (struct frames_server){.kind = kind};
		if (walk_member(field.bytes, ret) < 0)
			return -EBADMSG;
	}
	return 0;
}
