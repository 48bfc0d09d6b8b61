/* Somebody else's filter around the worker: a container runtime's, or one that makes an older kernel. */
#ifndef TESTS_LIB_OUTER_H
#define TESTS_LIB_OUTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

/* Each enters a filter for the calling process and all that it starts, for good.
 *
 * outer_container: as the container runtimes' default: clone3 is ENOSYS, namespaces, mounts, bpf, keyrings,
 * io_uring and such EPERM. outer_no_landlock: a kernel without it. outer_no_memfd: one that makes none.
 * outer_no_passrights: one before 6.16, where SO_PASSRIGHTS of sockets is unknown. outer_no_prctl: what is no
 * kernel of Linux's, where that one is EINVAL. */
void outer_container(void);
void outer_no_landlock(void);
void outer_no_memfd(void);
void outer_no_passrights(void);
void outer_no_prctl(unsigned option);

#endif
