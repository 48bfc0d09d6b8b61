#include "netd/records.h"

#include "common/log.h"

#include <errno.h>
#include <stdlib.h>

/* What the relay sent, on its way to execd. */

static void forget(struct records_pending *p)
{
	free(p->message);
	*p = (struct records_pending){.kind = FRAMES_NOTHING};
}

static int push_exec(struct records *r)
{
	struct records_pending *p = &r->pending;
	bool inlined = !p->exec.bad && p->exec.command_len <= CHANNEL_INLINE_MAX;
	uint8_t flags =
	    (uint8_t)((p->frame.streaming ? CHANNEL_STREAMING : 0) | (inlined ? CHANNEL_INLINE : 0));
	uint8_t block[CHANNEL_EXEC_BLOCK];
	struct work *w = works_ask(&r->works, p->frame.req_id, p->frame.streaming);
	int err;

	if (!w)
		return 0; /* until an answer comes: nothing else is read meanwhile */
	channel_encode_exec(block, &p->exec);
	err = records_send(r, CHANNEL_EXEC, flags, p->frame.req_id, block, sizeof block, p->frame.command,
			   inlined ? p->exec.command_len : 0);
	if (err < 0) {
		works_unask(&r->works, w);
		return err;
	}
	if (!p->exec.bad)
		input_hold(&w->input, p->message, p->size, &p->frame);
	else
		free(p->message);
	p->message = NULL;
	forget(p);
	return 0;
}

int records_push(struct records *r)
{
	struct records_pending *p = &r->pending;
	int err;

	if (p->kind == FRAMES_EXEC)
		return push_exec(r);
	err = records_send(r, CHANNEL_ABORT, 0, p->frame.req_id, NULL, 0, NULL, 0);
	if (err == 0)
		forget(p);
	return err;
}

/* What cannot be run is told apart here; whether it is in flight already, done or new is execd's to say. */
static int prepare_exec(struct records_pending *p, uint8_t bad)
{
	p->exec = (struct channel_exec){
	    .timeout_s = p->frame.timeout_s,
	    .command_len = (uint32_t)p->frame.command_len,
	    .stdin_len = (uint32_t)p->frame.input_len,
	    .bad = bad,
	};
	return input_fingerprint(&p->frame, p->exec.fingerprint);
}

/* The frame at hand is complete: its record goes now, or when there is room. */
static int submit(struct records *r)
{
	int err = records_push(r);

	if (err == -EAGAIN)
		r->readable = true; /* the next pass comes at once, and has the channel watched */
	else if (err < 0)
		records_fail(r, CHANNEL_CLOSE_INTERNAL, "execd is gone");
	return 0;
}

int records_message(struct records *r, uint8_t *message, size_t size)
{
	struct records_pending *p = &r->pending;
	bool broken = frames_decode(message, size, &p->frame) < 0;
	uint8_t bad;

	r->frames_in++;
	p->kind = p->frame.kind;
	p->message = message;
	p->size = size;
	if (broken && (p->kind != FRAMES_EXEC || !p->frame.has_req_id)) {
		forget(p);
		return -EBADMSG;
	}
	if (p->kind == FRAMES_NOTHING) {
		forget(p);
		return 0;
	}
	if (p->kind == FRAMES_EXEC) {
		bad = broken ? REFUSAL_MALFORMED : input_check(&p->frame);
		if (prepare_exec(p, bad) < 0)
			records_fail(r, CHANNEL_CLOSE_INTERNAL,
				     "a command has no fingerprint: out of memory");
	}
	return submit(r);
}

int records_skipped(struct records *r, const struct frames_skim *skim)
{
	struct records_pending *p = &r->pending;

	r->frames_in++;
	if (skim->kind != FRAMES_EXEC || !skim->has_req_id)
		return skim->broken ? -EBADMSG : 0;
	p->kind = FRAMES_EXEC;
	p->frame = (struct frames_server){.kind = FRAMES_EXEC, .has_req_id = true, .req_id = skim->req_id};
	/* Nothing of it was kept, so it has no fingerprint; zeros are nobody's. */
	p->exec = (struct channel_exec){.bad = REFUSAL_MESSAGE_LONG};
	return submit(r);
}
