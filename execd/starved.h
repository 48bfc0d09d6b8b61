/* Commands that wait though a place is free, because no slot can be had: process numbers or memory are used
 * up, perhaps by what earlier commands left behind. That is given up first, then they are answered. */
#ifndef EXECD_STARVED_H
#define EXECD_STARVED_H

#include "common/loop.h"

#include <stdbool.h>

/* To be called whenever that may have changed. From LIMIT_SLOT_SHORT_MS on the oldest minder goes each
 * second, at LIMIT_SLOT_WAIT_MS all that waits is answered by a start that failed. */
void starved_look(struct loop *loop, bool starved);

#endif
