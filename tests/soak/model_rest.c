/* What the model says at the end of a round: who has run how often, and what was kept. */
#include "tests/soak/soak.h"

#include "common/limits.h"

#include <inttypes.h>
#include <stdio.h>

static void count_run(uint64_t id, unsigned variant)
{
	struct soak_exec *e = model_newest(id);

	while (e && e->variant != variant)
		e = e->older;
	if (!e)
		soak_blame("%" PRIu64 ".%u ran in another round than it was sent", id, variant);
	else
		e->runs++;
}

static void read_runs(void)
{
	FILE *f = fopen(soak.ran, "re");
	unsigned variant;
	uint64_t id;

	if (!f)
		return;
	fseeko(f, soak.ran_read, SEEK_SET);
	while (fscanf(f, "%" SCNu64 " %u\n", &id, &variant) == 2)
		count_run(id, variant);
	soak.ran_read = ftello(f);
	fclose(f);
}

void model_judge_kept(void)
{
	unsigned kept = 0;

	if (!soak.keep || soak.round_hit)
		return;
	for (unsigned i = 0; i < soak.count; i++)
		kept += soak.execs[i].keeps;
	/* Beyond this the oldest are killed. What was cut off with its answer under way is killed, too. */
	for (unsigned i = 0; kept <= LIMIT_MINDERS && i < soak.count; i++) {
		const struct soak_exec *e = &soak.execs[i];

		if (e->lasts && e->answered_here && model_is_here(e) && e->lost == 0 &&
		    e->decided_code >= 0 && !e->aborted && census_none(e->mark))
			soak_blame("%" PRIu64 ".%u: what it left behind is gone", e->request.req_id,
				   e->variant);
	}
}

static void judge_runs(const struct soak_exec *e)
{
	/* An End{-1} may have come before it started, and a timeout before bash has come to its first line.
	 */
	bool must = e->decided && e->decided_code >= 0 && !e->decided_message[0];

	if (e->runs > 1 + e->lost || (must && e->runs == 0) || (e->natural == SOAK_REFUSED && e->runs > 0))
		soak_blame("%" PRIu64 ".%u ran %u times; lost %u times, %s", e->request.req_id, e->variant,
			   e->runs, e->lost, e->decided ? "decided" : "not decided");
}

void model_judge(void)
{
	read_runs();
	for (unsigned i = 0; i < soak.count; i++) {
		judge_runs(&soak.execs[i]);
		if (!soak.execs[i].decided && model_is_here(&soak.execs[i]) && soak.execs[i].owed > 0)
			soak_blame("%" PRIu64 " is not answered", soak.execs[i].request.req_id);
	}
}

void model_forget(void)
{
	for (unsigned i = 0; i < soak.count; i++) {
		if (!soak.execs[i].older)
			relay_forget(soak.execs[i].record);
		kinds_free(&soak.execs[i]);
	}
	soak.count = 0;
	soak.first_id = soak.stage->last_id + 1;
	soak.busy_max = 0;
	soak.deaths = 0;
	soak.held_max = 0;
}
