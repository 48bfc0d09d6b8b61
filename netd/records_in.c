#include "netd/records.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <unistd.h>

/* What execd says about execs. execd is trusted, but a record that does not fit is a fault that must not be
 * built upon. */

static void terminal(struct records *r, uint64_t req_id, const struct outcome *outcome, bool truncated)
{
	uint8_t frame[FRAMES_TERMINAL_MAX];
	size_t n = frames_terminal(frame, sizeof frame, req_id, outcome, truncated);

	if (n > 0 && sched_control(r->sched, frame, n) < 0)
		records_fail(r, CHANNEL_CLOSE_FLOOD, "more answers wait than the limit allows");
}

static int send_drained(struct records *r, struct work *w)
{
	uint8_t block[CHANNEL_DRAINED_BLOCK];
	int err;

	channel_encode_drained(block, &w->drained);
	err = records_send(r, CHANNEL_DRAINED, w->truncated ? CHANNEL_TRUNCATED : 0, w->req_id, block,
			   sizeof block, NULL, 0);
	if (err < 0)
		return err;
	r->owed--;
	works_free(&r->works, w);
	return 0;
}

static int send_command(struct records *r, struct work *w)
{
	uint8_t block[CHANNEL_COMMAND_BLOCK];
	size_t left = w->fetch_at < w->input.command_len ? w->input.command_len - w->fetch_at : 0;
	size_t size = left < CHANNEL_PIECE_MAX ? left : CHANNEL_PIECE_MAX;
	int err;

	buf_put_u32(block, w->fetch_at);
	err = records_send(r, CHANNEL_COMMAND, 0, w->req_id, block, sizeof block,
			   size > 0 ? w->input.command + w->fetch_at : NULL, size);
	if (err < 0)
		return err;
	r->owed--;
	w->fetch_owed = false;
	return 0;
}

static int send_quiet(struct records *r, struct work *w)
{
	int err = records_send(r, CHANNEL_QUIET, 0, w->req_id, NULL, 0, NULL, 0);

	if (err < 0)
		return err;
	r->owed--;
	w->quiet_owed = false;
	return 0;
}

int records_settle(struct records *r, struct work *w)
{
	if (w->state == WORK_OVER)
		return send_drained(r, w);
	return w->quiet_owed ? send_quiet(r, w) : send_command(r, w);
}

/* The terminal frame is queued before DRAINED is owed, and no server frame is read while it is: an id that
 * comes again is dropped by execd until then and replayed by it from then on, never both. */
static void finish(struct records *r, struct work *w, const struct outcome *outcome, bool truncated)
{
	input_drop(&w->input);
	terminal(r, w->req_id, outcome, truncated);
	w->truncated = truncated;
	w->state = WORK_OVER;
	if (!w->fetch_owed)
		r->owed++;
	w->fetch_owed = false;
	if (send_drained(r, w) < 0)
		r->sched->more = true; /* records_pass pays it, or finds that execd is gone */
}

void records_output_done(void *owner, struct output *o)
{
	struct records *r = owner;
	struct work *w = works_find(&r->works, o->req_id);
	struct outcome outcome = o->how.outcome;
	bool truncated = output_truncated(o);
	uint64_t now_ms = clock_now_ms();

	w->drained = (struct channel_drained){
	    .bytes_out = o->sent,
	    .bytes_dropped = output_dropped(o),
	    .ms = (uint32_t)(now_ms - o->ended_ms),
	};
	if (w->drained.bytes_dropped > 0)
		log_warn("output was cut", LOG_U64("req_id", o->req_id),
			 LOG_U64("stdout_dropped", o->pipe[OUTPUT_STDOUT].dropped),
			 LOG_U64("stderr_dropped", o->pipe[OUTPUT_STDERR].dropped));
	sched_forget(r->sched, o);
	finish(r, w, &outcome, truncated);
}

void records_output_quiet(void *owner, struct output *o)
{
	struct records *r = owner;
	struct work *w = works_find(&r->works, o->req_id);

	w->quiet_owed = true;
	r->owed++;
	if (send_quiet(r, w) < 0)
		r->sched->more = true; /* as above */
}

/* The answer to the EXEC that was asked first. */
static int take_answer(struct records *r, const struct channel_record *record, const char **ret_why)
{
	struct work *w = works_answered(&r->works, record->h.req_id);
	struct outcome outcome;

	*ret_why = "an answer to what was not asked";
	if (!w)
		return -EPROTO;
	if (record->h.type == CHANNEL_ADMITTED) {
		w->state = WORK_HELD;
		return 0;
	}
	input_drop(&w->input);
	works_free(&r->works, w);
	if (record->h.type == CHANNEL_DUPLICATE)
		return 0;
	*ret_why = "an outcome that does not exist";
	if (channel_decode_outcome(record->body, &outcome) < 0)
		return -EPROTO;
	terminal(r, record->h.req_id, &outcome, record->h.flags & CHANNEL_TRUNCATED);
	return 0;
}

static int take_fetch(struct records *r, const struct channel_record *record, const char **ret_why)
{
	struct work *w = works_find(&r->works, record->h.req_id);

	*ret_why = "fetch of what is not held";
	if (!w || w->state != WORK_HELD)
		return -EPROTO;
	if (!w->fetch_owed)
		r->owed++;
	w->fetch_owed = true;
	w->fetch_at = buf_get_u32(record->body);
	return 0;
}

static int take_started(struct records *r, const struct channel_record *record, const char **ret_why)
{
	struct work *w = works_find(&r->works, record->h.req_id);
	int err;

	*ret_why = "start of what is not held";
	if (!w || w->state != WORK_HELD) {
		for (int i = 0; i < 3; i++)
			close(record->fds[i]);
		return -EPROTO;
	}
	w->state = WORK_RUNNING;
	err = sched_begin(r->sched, &w->output, w->req_id, w->streaming, record->fds + 1);
	if (input_begin(&w->input, r->loop, record->fds[0]) < 0 || err < 0) {
		log_error("cannot watch a command's pipes", LOG_U64("req_id", w->req_id));
		records_fail(r, CHANNEL_CLOSE_INTERNAL, "a command's pipes cannot be watched");
	}
	return 0;
}

static int take_left(struct records *r, const struct channel_record *record, uint64_t now_ms,
		     const char **ret_why)
{
	struct work *w = works_find(&r->works, record->h.req_id);

	*ret_why = "left behind by what does not run";
	if (!w || w->state != WORK_RUNNING || w->output.left || w->output.ended)
		return -EPROTO;
	sched_left(r->sched, &w->output, now_ms);
	return 0;
}

static int take_ended(struct records *r, const struct channel_record *record, uint64_t now_ms,
		      const char **ret_why)
{
	struct work *w = works_find(&r->works, record->h.req_id);
	struct channel_ended ended;

	*ret_why = "end of what is not in flight";
	if (!w || w->state == WORK_OVER || (w->state == WORK_RUNNING && w->output.ended))
		return -EPROTO;
	*ret_why = "an outcome or reading that does not exist";
	if (channel_decode_ended(record->body, &ended) < 0)
		return -EPROTO;
	if (w->quiet_owed)
		r->owed--;
	w->quiet_owed = false;
	if (w->state == WORK_RUNNING)
		sched_end(r->sched, &w->output, &ended, now_ms);
	else
		finish(r, w, &ended.outcome, record->h.flags & CHANNEL_TRUNCATED);
	return 0;
}

int records_take(struct records *r, const struct channel_record *record, uint64_t now_ms,
		 const char **ret_why)
{
	switch (record->h.type) {
	case CHANNEL_ADMITTED:
	case CHANNEL_DUPLICATE:
	case CHANNEL_REPLAY:
	case CHANNEL_REFUSED:
		return take_answer(r, record, ret_why);
	case CHANNEL_FETCH:
		return take_fetch(r, record, ret_why);
	case CHANNEL_STARTED:
		return take_started(r, record, ret_why);
	case CHANNEL_LEFT:
		return take_left(r, record, now_ms, ret_why);
	case CHANNEL_ENDED:
		return take_ended(r, record, now_ms, ret_why);
	case CHANNEL_DRAIN:
		r->drain = true;
		return 0;
	default:
		*ret_why = "a record that the phase should have refused";
		return -EPROTO;
	}
}
