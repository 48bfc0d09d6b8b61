/* proc(5), where a sweep finds processes by number. A number means something else in another PID namespace,
 * so it is looked at once whether it is ours, and what was looked at is held: nothing that is mounted over it
 * later is used. */
#ifndef EXECD_SLOT_PROC_H
#define EXECD_SLOT_PROC_H

/* Opens it, once for the process and all that it forks. 0, or -errno with *ret_why set (static): there is
 * none, it is of another PID namespace, or the kernel lists no children in it (CONFIG_PROC_CHILDREN). */
int proc_open(const char **ret_why);

/* Its descriptor, for openat(2); opened now where it was not. -errno as above. */
int proc_fd(void);

#endif
