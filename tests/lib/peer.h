/* A scripted peer on loopback, in a child of its own. */
#ifndef TESTS_LIB_PEER_H
#define TESTS_LIB_PEER_H

#include <stdint.h>

/* Listens on 127.0.0.1, forks, and runs the script in the child, which dies with the test. Returns the port.
 */
uint16_t peer_start(void (*script)(int listener, void *arg), void *arg);

/* A port at which nobody listens or connects on any IPv4 address of this host, and none that the kernel gives
 * away (ip_local_port_range): a test that needs one port at several addresses has it free at each. */
uint16_t peer_port(void);

/* A listening socket on 127.0.0.1, at *port, or at any where that is 0; *port is its port. */
int peer_listen(uint16_t *port);

/* Listens at an address of loopback and *port (0: any, *port is its port) and answers no SYN, as behind a
 * firewall that drops them: its queue is full. Until the caller ends. */
void peer_deaf(const char *address, uint16_t *port);

/* Waits up to 10 s for POLL* events on a descriptor, else aborts the test. */
void peer_wait(int fd, short events);

#endif
