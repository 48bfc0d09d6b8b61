/* Starts one netd process. */
#ifndef EXECD_NETD_SPAWN_H
#define EXECD_NETD_SPAWN_H

#include "execd/config.h"
#include "execd/netd_image.h"

#include <sys/types.h>

/* Forks; the child becomes NETD_USER where one is set, without any capability, before it executes the image:
 * done the other way round a program that only root may read starts dumpable. It gets channel_fd on
 * CHANNEL_FD, null_fd on 0 and 1, our stderr, no environment, a session of its own (a terminal's signals are
 * for execd alone) and dies with us. What fails there is logged there and ends it with exit code 127.
 * channel_fd and null_fd stay the caller's. The pid or -errno. */
pid_t netd_spawn(const struct netd_image *image, const struct config *config, int channel_fd, int null_fd);

#endif
