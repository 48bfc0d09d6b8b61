/* A world of a test process's own: a network where every port is free, and other files in /etc. Needs root.
 */
#ifndef TESTS_LIB_WORLD_H
#define TESTS_LIB_WORLD_H

/* Skips the test where world_enter cannot do its work. */
void world_need(void);

/* New network (loopback up) and mount namespaces for the calling process; hosts and resolv_conf become its
 * /etc/hosts and /etc/resolv.conf. 0 or -errno. */
int world_enter(const char *hosts, const char *resolv_conf);

#endif
