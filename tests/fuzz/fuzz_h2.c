/* A relay's bytes from its SETTINGS on, against the real session. The first byte chooses how much is read at
 * a time. What leaves is thrown away. Memory stays in its budget, and nothing is recorded that cannot be. */
#include "common/clock.h"
#include "netd/grpc.h"
#include "netd/h2.h"
#include "netd/sched.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

ssize_t transport_writev(struct transport *t, const struct iovec *iov, int count)
{
	size_t total = 0;

	(void)t;
	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	return (ssize_t)total;
}

static struct h2 h;
static struct sched sched;

static void nothing_runs(void *owner, struct output *o)
{
	(void)owner, (void)o;
	abort();
}

static void begin(struct loop *loop)
{
	static const uint8_t server_settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
	static struct settings settings;

	settings_init(&settings);
	strcpy(settings.token, "token");
	sched_init(&sched, loop, &h, nothing_runs, nothing_runs, NULL, 1000);
	MUST(h2_open(&h, &sched.batch, 1000) == 0);
	sched_connect(&sched, (struct transport *)&sched);
	h2_receive(&h, server_settings, sizeof server_settings, 1000);
	MUST(h.settled && h2_request(&h, &settings) == 0);
	MUST(sched_control(&sched, frames_heartbeat, sizeof frames_heartbeat) == 0);
	MUST(sched_send(&sched, 1000) == 0);
}

/* As attach.c does it, without execd. False: the connection is over. */
static bool feed(const uint8_t *at, size_t size, struct grpc_reader *reader)
{
	const uint8_t *data;
	size_t n, used, length;

	h2_receive(&h, at, size, 1001);
	MUST(h.memory <= H2_MEMORY + 65536);
	MUST(strnlen(h.message, sizeof h.message) < sizeof h.message);
	MUST(!h.has_status || (h.ended && h.status <= GRPC_LAST));
	while ((n = h2_data(&h, &data)) > 0) {
		int step = grpc_reader_feed(reader, data, n, &used);

		if (step < 0)
			return false;
		h2_take(&h, used);
		if (step == GRPC_STEP_MESSAGE)
			free(grpc_reader_take(reader, &length));
	}
	return h.fault == H2_FINE && sched_send(&sched, 1001) == 0 && !h2_is_dead(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grpc_reader reader = {0};
	struct loop loop = {.epfd = -1};
	size_t step;

	if (size < 1)
		return 0;
	step = data[0] == 0 ? H2_READ : data[0];
	begin(&loop);
	for (size_t at = 1; at < size; at += step) {
		if (!feed(data + at, size - at < step ? size - at : step, &reader))
			break;
	}
	h2_leave(&h, h.ended ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
	sched_send(&sched, 1002);
	h2_close(&h);
	MUST(h.memory == 0);
	grpc_reader_free(&reader);
	return 0;
}
