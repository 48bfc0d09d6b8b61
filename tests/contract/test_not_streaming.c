/* contract.md 6: streaming = false. valgrind: pipes are open at the end */
#include "tests/lib/stage.h"

#include "common/limits.h"

#include <criterion/criterion.h>

TestSuite(not_streaming, .timeout = 60, .fini = stage_fini);

Test(not_streaming, sends_nothing_before_the_exit_then_one_chunk_a_stream)
{
	struct relay_exec *exec, *other;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec_whole(
	    s, "echo one; echo two >&2; while [ ! -e '%s/go' ]; do sleep 0.02; done; echo three", s->folder);
	other = stage_exec(s, "sleep 0.3; echo x");
	stage_expect_end(other, 0);
	cr_assert_eq(exec->chunk_count, 0);
	stage_expect_end(stage_exec(s, "> '%s/go'", s->folder), 0);
	stage_expect_end(exec, 0);
	stage_expect_out(exec, "one\nthree\n");
	stage_expect_err(exec, "two\n");
	cr_assert_eq(exec->chunk_count, 2);
	cr_assert(!exec->terminal[0].truncated);
	stage_close(s);
}

/* stream 1 or 2, size bytes: all come, none twice, in Chunks of at most 32 KiB, and only above the cap it is
 * cut. */
static void expect_size(struct stage *s, int stream, size_t size)
{
	struct relay_exec *exec = stage_exec_whole(s, "head -c %zu /dev/zero >&%d; exit 3", size, stream);
	size_t kept = size < LIMIT_BUFFERED ? size : LIMIT_BUFFERED;

	stage_expect_end(exec, 3);
	cr_assert_eq(stream == 1 ? exec->out_bytes : exec->err_bytes, kept, "%zu of stream %d", size, stream);
	cr_assert_eq(stream == 1 ? exec->err_bytes : exec->out_bytes, 0);
	/* A cut stderr is only logged. */
	cr_assert_eq(exec->terminal[0].truncated, stream == 1 && size > LIMIT_BUFFERED, "%zu", size);
	relay_forget(exec);
}

Test(not_streaming, is_cut_at_eight_mib)
{
	static const size_t sizes[] = {1,
				       32767,
				       32768,
				       32769,
				       65536,
				       1u << 20,
				       LIMIT_BUFFERED - 1,
				       LIMIT_BUFFERED,
				       LIMIT_BUFFERED + 1,
				       LIMIT_BUFFERED + (1u << 20)};
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		expect_size(s, 1, sizes[i]);
	expect_size(s, 2, LIMIT_BUFFERED);
	expect_size(s, 2, LIMIT_BUFFERED + 1);
	stage_close(s);
}

/* What is over the cap is read and dropped, so that the command ends by itself. */
Test(not_streaming, drains_what_it_drops)
{
	struct relay_exec *exec;
	struct stage *s;

	s = stage_open(WORKER_SETTINGS());
	exec = stage_exec_whole(s, "head -c 40000000 /dev/zero; echo done >&2; exit 5");
	stage_expect_end(exec, 5);
	stage_expect_err(exec, "done\n");
	cr_assert(exec->terminal[0].truncated);
	cr_assert_eq(exec->out_bytes, LIMIT_BUFFERED);
	stage_close(s);
}
