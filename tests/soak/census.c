/* Who lives, what it holds, and what the status file says. */
#include "tests/soak/soak.h"

#include "common/clock.h"
#include "common/limits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REST_MS     15000u
#define LOOKS_MIN   100u
#define FAMILY_MAX  4096u
#define GROWTH      (512u * 1024u) /* of a process that allocates nothing */
#define NETD_BASE   (32u * LIMIT_MIB)
#define SLOT_GROWTH (1024u * 1024u) /* of one that has killed more than those did before */

struct held {
	size_t memory;
	size_t descriptors;
};

static struct {
	struct held execd, warden, slot, netd; /* after the first round; the most of all slots */
	bool known;
	size_t netd_most;
	size_t netd_limit;
} census;

bool census_none(const char *mark)
{
	return process_count(mark) == 0;
}

static struct held held_by(pid_t pid)
{
	return (struct held){process_resident(pid), process_descriptors(pid, NULL)};
}

static pid_t execd(void)
{
	return soak.stage->worker.pid;
}

static bool only_ours(void)
{
	pid_t pids[FAMILY_MAX], slots[FAMILY_MAX];
	size_t all = process_descendants(execd(), pids, FAMILY_MAX);

	return all == soak.slots + 2 && process_children(execd(), "slot", slots, FAMILY_MAX) == soak.slots &&
	       process_child(execd(), "warden") > 0 && process_child(execd(), "netd") > 0;
}

static void name_family(void)
{
	pid_t pids[FAMILY_MAX];
	size_t n = process_descendants(execd(), pids, FAMILY_MAX);

	for (size_t i = 0; i < n; i++) {
		char path[64], line[256] = "";
		FILE *f;

		snprintf(path, sizeof path, "/proc/%d/stat", (int)pids[i]);
		f = fopen(path, "re");
		if (f && fgets(line, 40, f))
			fprintf(stderr, "--- %s\n", line);
		if (f)
			fclose(f);
	}
}

static struct held most_of_slots(void)
{
	struct held most = {0}, one;
	pid_t pids[FAMILY_MAX];
	size_t n = process_children(execd(), "slot", pids, FAMILY_MAX);

	for (size_t i = 0; i < n; i++) {
		one = held_by(pids[i]);
		if (one.memory > most.memory)
			most.memory = one.memory;
		if (one.descriptors > most.descriptors)
			most.descriptors = one.descriptors;
	}
	return most;
}

void census_begin(void)
{
	census.known = false;
	census.netd_most = 0;
	census.netd_limit = LIMIT_HELD + LIMIT_MESSAGE + 2 * soak.slots * LIMIT_BUFFERED + NETD_BASE;
}

void census_glance(void)
{
	pid_t netd = worker_netd(&soak.stage->worker);
	size_t now = netd > 0 ? process_resident(netd) : 0;

	if (now > census.netd_most)
		census.netd_most = now;
	if (now > census.netd_limit)
		soak_blame("netd holds %zu bytes", now);
}

/* False: it has grown; blame says so. */
static bool compare(const char *name, const struct held *now, const struct held *base, size_t growth,
		    bool blame)
{
	bool same = now->descriptors <= base->descriptors;

	if (blame && now->memory > base->memory + growth)
		soak_blame("%s holds %zu bytes, %zu at first", name, now->memory, base->memory);
	if (blame && !same)
		soak_blame("%s holds %zu descriptors, %zu at first", name, now->descriptors,
			   base->descriptors);
	return same && now->memory <= base->memory + growth;
}

static bool is_flat(bool blame)
{
	struct held now[4];
	bool flat;

	now[0] = held_by(execd());
	now[1] = held_by(process_child(execd(), "warden"));
	now[2] = most_of_slots();
	now[3] = held_by(worker_netd(&soak.stage->worker));
	if (!census.known) {
		/* What has just died is let go of. */
		soak_run(200);
		census.known = true;
		now[0] = held_by(execd());
		census.execd = now[0];
		census.warden = now[1];
		census.slot = now[2];
		census.netd = now[3];
	}
	flat = compare("execd", &now[0], &census.execd, GROWTH, blame);
	flat = compare("the warden", &now[1], &census.warden, GROWTH, blame) && flat;
	flat = compare("a slot", &now[2], &census.slot, SLOT_GROWTH, blame) && flat;
	return compare("netd", &now[3], &census.netd, census.netd_limit, blame) && flat;
}

/* /proc says nothing when something ends there: it is asked now and then, and often enough on a slow machine.
 * What has died may still be held for a moment. */
void census_rest(void)
{
	uint64_t start = clock_now_ms();

	for (unsigned looks = 0; !only_ours() || !is_flat(false); looks++) {
		if (clock_now_ms() - start > REST_MS && looks > LOOKS_MIN) {
			if (!only_ours()) {
				name_family();
				soak_blame("other processes than netd, the warden and %u slots", soak.slots);
			}
			is_flat(true);
		}
		soak_run(20);
	}
	soak_note("rested after %" PRIu64 " ms", clock_now_ms() - start);
}

uint64_t census_status(const char *key)
{
	char text[4096], wanted[64];
	const char *at;

	snprintf(wanted, sizeof wanted, "\n%s=", key);
	if (folder_read(soak.status, text, sizeof text) < 0 || !(at = strstr(text, wanted)))
		return UINT64_MAX;
	return strtoull(at + strlen(wanted), NULL, 10);
}

void census_end_kept(void)
{
	char text[65536];
	char *at = text;
	int pid, used;

	if (folder_read(soak.kept, text, sizeof text) <= 0)
		return;
	for (; sscanf(at, "%d %n", &pid, &used) == 1; at += used)
		process_kill((pid_t)pid, SIGKILL);
	folder_write(soak.kept, "", 0);
}
