/* The process that holds the commands' world: it takes their uid, drops every privilege, enters their
 * Landlock domain, and from then on only clones slots into it, which become execd's children. */
#ifndef EXECD_SLOT_WARDEN_H
#define EXECD_SLOT_WARDEN_H

struct slot_world;

/* The life of the warden, in a fork of execd; fd is its end of slot_pair(). world is filled in up to plan.
 * Reports SLOT_REPORT_WARDEN, then answers each SLOT_ORDER_CLONE. Ends when execd's end is closed. */
_Noreturn void warden_main(int fd, struct slot_world *world);

#endif
