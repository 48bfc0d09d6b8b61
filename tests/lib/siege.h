/* A real execd with a hostile netd in its place (tests/runner/hostile_netd.c), told one attack after the
 * other. After each the same must hold as before it. */
#ifndef TESTS_LIB_SIEGE_H
#define TESTS_LIB_SIEGE_H

#include <stdbool.h>
#include <stddef.h>

struct siege_row {
	const char *name;
	const char *early;     /* NULL, or the phase ("jailing", "dialling") in which it is done */
	const char *order;     /* of hostile_netd.c */
	const char *violation; /* what execd must call it, once, and kill that netd for; NULL: no violation */
	const char *said[3];   /* what else must have been logged; NULL: no more */
	bool root_only;
};

/* Runs all rows, spread over a few workers side by side. Each worker, after each row: it is the same process,
 * has as many descriptors and as much memory as after its first request, has started another netd, which was
 * answered from the cache; the row's violation was logged once, that netd was killed, its commands are gone,
 * and nothing ran that was not asked for. row_ms: the longest that a row may take. Failures name the row. */
void siege(const struct siege_row *rows, size_t count, unsigned row_ms);

/* One worker whose netd has done the order; the siege is over when it has ended in good time by SIGTERM. */
void siege_leave_in(const char *order, const char *said);

/* Kills what is left after a failure. Fit for a suite's .fini. */
void siege_fini(void);

#endif
