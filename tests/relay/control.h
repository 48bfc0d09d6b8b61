/* Misbehaviour by name: for test-relay's --manner flags and the commands that `serve --control` reads. */
#ifndef TESTS_RELAY_CONTROL_H
#define TESTS_RELAY_CONTROL_H

#include "tests/relay/relay.h"

/* "refuse", "mute", "read-rate=65536", ... False: no such manner. */
bool relay_control_manner(struct relay_manners *manners, const char *text);

/* One command line for the worker that is attached: "cut", "reset", "middle", "stall on", "hold off", "rate
 * 65536", "window 0", "goaway", "calm", "end", "bytes on", and "manner NAME" for connections to come. False:
 * not understood, or nobody is attached. */
bool relay_control_line(struct relay *relay, const char *line);

#endif
