/* A scripted peer on loopback, in a child of its own. */
#ifndef TESTS_LIB_PEER_H
#define TESTS_LIB_PEER_H

#include <stdint.h>

/* Listens on 127.0.0.1, forks, and runs the script in the child, which dies with the test. Returns the port.
 */
uint16_t peer_start(void (*script)(int listener, void *arg), void *arg);

/* A listening socket on 127.0.0.1, at *port, or at any where that is 0; *port is its port. */
int peer_listen(uint16_t *port);

/* Waits up to 10 s for POLL* events on a descriptor, else aborts the test. */
void peer_wait(int fd, short events);

#endif
