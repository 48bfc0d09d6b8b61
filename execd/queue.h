/* Who waits, in order of arrival: LIMIT_WAITING for a place (contract.md 7), and for a slot as many as have a
 * place. Holds pointers, owns nothing. */
#ifndef EXECD_QUEUE_H
#define EXECD_QUEUE_H

#include "common/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define QUEUE_MAX (LIMIT_WAITING + LIMIT_CONCURRENT)

struct exec;

/* Appends. False when it is full. */
bool queue_push(struct exec *exec);

/* The same before all others. */
bool queue_push_first(struct exec *exec);

/* Takes out, wherever it stands; the others keep their order. Nothing when it is not there. */
void queue_remove(const struct exec *exec);

/* The one at this place, 0 the first; NULL beyond the last. */
struct exec *queue_at(uint32_t place);

uint32_t queue_count(void);

#endif
