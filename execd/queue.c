#include "execd/queue.h"

#include <stddef.h>
#include <string.h>

static struct exec *waiting[QUEUE_MAX];
static uint32_t count;

bool queue_push(struct exec *exec)
{
	if (count == QUEUE_MAX)
		return false;
	waiting[count++] = exec;
	return true;
}

bool queue_push_first(struct exec *exec)
{
	if (count == QUEUE_MAX)
		return false;
	memmove(&waiting[1], &waiting[0], count++ * sizeof *waiting);
	waiting[0] = exec;
	return true;
}

void queue_remove(const struct exec *exec)
{
	for (uint32_t i = 0; i < count; i++) {
		if (waiting[i] != exec)
			continue;
		count--;
		memmove(&waiting[i], &waiting[i + 1], (count - i) * sizeof *waiting);
		return;
	}
}

struct exec *queue_at(uint32_t place)
{
	return place < count ? waiting[place] : NULL;
}

uint32_t queue_count(void)
{
	return count;
}
