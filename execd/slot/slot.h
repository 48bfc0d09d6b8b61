/* The process that runs one exec at a time, kills all of it, and proves that. */
#ifndef EXECD_SLOT_SLOT_H
#define EXECD_SLOT_SLOT_H

struct slot_world;

/* The life of a slot; fd is its end of slot_pair(). Ends when execd's end is closed and nothing is left
 * below, or as a minder when nothing is left to mind. */
_Noreturn void slot_main(int fd, const struct slot_world *world);

#endif
