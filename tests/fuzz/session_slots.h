/* Slots without processes: they keep execd to the rules of execd/slots.h and end the program when one is
 * broken. */
#ifndef FUZZ_SESSION_SLOTS_H
#define FUZZ_SESSION_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#define SESSION_SLOTS 4u

#define MUST(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);              \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

/* All idle. */
void session_slots_reset(void);

/* What this slot may say next; choice picks one of what is possible. False: it has nothing to say. */
bool session_slots_speak(unsigned slot, uint8_t choice);

/* Each slot that is not idle dies down, as after a kill. */
void session_slots_finish(void);

#endif
