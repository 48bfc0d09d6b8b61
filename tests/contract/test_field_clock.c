/* row 30: the wall clock jumps an hour back and forward all the time (wall_clock.c), and nothing moves. */
#include "tests/lib/certs.h"
#include "tests/lib/stage.h"

#include "common/clock.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* valgrind: not run: copies of the programs of its own */

TestSuite(field_clock, .timeout = 60, .fini = stage_fini);

static void start(struct stage *s, const char *const *settings)
{
	worker_start_program(&s->worker, s->relay, "tests/clock/execd", settings);
	stage_reattach(s);
}

static bool has_beaten(const void *arg)
{
	return ((const struct relay_worker *)arg)->heartbeats >= 3;
}

/* A deadline that an hour forward had reached would have come at once, one that an hour back put off never.
 */
Test(field_clock, row_30_jumps_move_no_timeout_and_no_heartbeat)
{
	struct relay_exec *before, *limited;
	uint64_t from = clock_now_ms(), ms;
	struct stage *s;

	s = stage_prepare();
	start(s, WORKER_SETTINGS("HEARTBEAT_S=1"));
	limited = stage_send(s, &(struct relay_request){
				    .command = "echo up; exec sleep 100", .timeout_s = 3, .streaming = true});
	before = stage_exec(s, "sleep 1.5; echo ok");
	stage_expect_end(before, 0);
	stage_expect_out(before, "ok\n");
	cr_assert_eq(limited->terminal_count, 0, "the timeout came before its time");
	stage_expect_error(limited, "timeout:3");
	cr_assert(relay_wait(s->relay, has_beaten, s->attached, STAGE_WAIT_MS));
	ms = clock_now_ms() - from;
	cr_assert_leq(s->attached->heartbeats, ms / 1000 + 1);
	cr_assert_eq(s->attached->pings, 0, "a keepalive before its time");
	cr_assert_eq(relay_connections(s->relay), 1);
	cr_assert_not(worker_said(&s->worker, "wall clock"), "somebody asked for it");
	stage_close(s);
}

/* 500 ms doubling, and the wait up to twice that: the third is within 4 s, and without waits there would be
 * hundreds of attempts. */
Test(field_clock, row_30_jumps_move_no_backoff)
{
	struct stage *s;

	s = stage_prepare();
	relay_manners(s->relay)->refuse = true;
	worker_start_program(&s->worker, s->relay, "tests/clock/execd", WORKER_SETTINGS());
	cr_assert(relay_wait_refusals(s->relay, 2, STAGE_WAIT_MS));
	relay_manners(s->relay)->refuse = false;
	stage_reattach(s);
	cr_assert_leq(relay_connections(s->relay), 8);
	cr_assert_not(worker_said(&s->worker, "wall clock"), "somebody asked for it");
	stage_close(s);
}

/* TLS compares a certificate's dates with the wall clock, and nothing else does: this one is good for more
 * than the jumps. It also shows that calls are seen. */
Test(field_clock, row_30_the_wall_clock_is_asked_for_certificates_only)
{
	struct certs_identity root = certs_root("root"),
			      own = certs_issue(&root, "IP:127.0.0.1", -86400, 86400);
	char cert[64], key[64], ca[FOLDER_PATH_MAX], setting[FOLDER_PATH_MAX + 32], pem[8192];
	int ca_fd = certs_cert_fd(&root);
	ssize_t n = read(ca_fd, pem, sizeof pem);
	struct relay_exec *limited;
	unsigned asked;
	struct stage *s;

	cr_assert_gt(n, 0);
	snprintf(cert, sizeof cert, "/proc/self/fd/%d", certs_cert_fd(&own));
	snprintf(key, sizeof key, "/proc/self/fd/%d", certs_key_fd(&own, NULL));
	s = stage_prepare();
	folder_join(ca, s->folder, "ca");
	folder_write(ca, pem, (size_t)n);
	snprintf(setting, sizeof setting, "RELAY_CA_FILE=%s", ca);
	stage_relay(s, &(struct relay_options){.token = "token", .cert_file = cert, .key_file = key});
	start(s, WORKER_SETTINGS("RELAY_TLS=1", setting));
	asked = worker_said_times(&s->worker, "wall clock");
	cr_assert_gt(asked, 0, "the jumping clock is not in place");
	limited =
	    stage_send(s, &(struct relay_request){.command = "sleep 100", .timeout_s = 2, .streaming = true});
	stage_expect_end(stage_exec(s, "sleep 1"), 0);
	stage_expect_error(limited, "timeout:2");
	cr_assert_eq(worker_said_times(&s->worker, "wall clock"), asked, "asked for after the handshake");
	stage_close(s);
}
