#include "execd/queue.h"

#include "execd/inflight.h"

#include <criterion/criterion.h>

static struct exec execs[QUEUE_MAX + 1];

static void fill(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cr_assert(queue_push(&execs[i]));
}

Test(queue, takes_so_many_and_no_more)
{
	fill(QUEUE_MAX - 1);
	cr_assert(queue_push(&execs[QUEUE_MAX - 1]));
	cr_assert_not(queue_push(&execs[QUEUE_MAX]));
	cr_assert_eq(queue_count(), QUEUE_MAX);
	queue_remove(&execs[30]);
	cr_assert(queue_push(&execs[QUEUE_MAX]));
	cr_assert_not(queue_push(&execs[30]));
}

Test(queue, keeps_the_order_whoever_leaves)
{
	fill(5);
	queue_remove(&execs[2]);
	queue_remove(&execs[4]);
	queue_remove(&execs[0]);
	queue_remove(&execs[0]);
	cr_assert_eq(queue_count(), 2);
	cr_assert_eq(queue_at(0), &execs[1]);
	cr_assert_eq(queue_at(1), &execs[3]);
	cr_assert(!queue_at(2));
}
