#include "netd/work.h"

void works_init(struct works *ws)
{
	*ws = (struct works){0};
	for (unsigned i = WORK_MAX; i > 0; i--) {
		ws->table[i - 1].next = ws->free;
		ws->free = &ws->table[i - 1];
	}
}

struct work *works_ask(struct works *ws, uint64_t req_id, bool streaming)
{
	struct work *w = ws->free;

	if (!w || ws->asked == WORK_ASKED_MAX)
		return NULL;
	ws->free = w->next;
	*w = (struct work){
	    .state = WORK_ASKED,
	    .req_id = req_id,
	    .streaming = streaming,
	    .input = {.source = {.fd = -1}},
	    .output = {.pipe = {{.fd = -1}, {.fd = -1}}},
	};
	if (ws->asked_last)
		ws->asked_last->next = w;
	else
		ws->asked_first = w;
	ws->asked_last = w;
	ws->asked++;
	return w;
}

void works_unask(struct works *ws, struct work *w)
{
	struct work **at = &ws->asked_first;

	ws->asked_last = NULL;
	while (*at != w) {
		ws->asked_last = *at;
		at = &(*at)->next;
	}
	*at = NULL;
	ws->asked--;
	works_free(ws, w);
}

struct work *works_answered(struct works *ws, uint64_t req_id)
{
	struct work *w = ws->asked_first;

	if (!w || w->req_id != req_id)
		return NULL;
	ws->asked_first = w->next;
	if (!ws->asked_first)
		ws->asked_last = NULL;
	ws->asked--;
	w->next = NULL;
	return w;
}

struct work *works_find(struct works *ws, uint64_t req_id)
{
	for (unsigned i = 0; i < WORK_MAX; i++) {
		struct work *w = &ws->table[i];

		if (w->req_id == req_id && w->state >= WORK_HELD)
			return w;
	}
	return NULL;
}

void works_free(struct works *ws, struct work *w)
{
	w->state = WORK_FREE;
	w->next = ws->free;
	ws->free = w;
}
