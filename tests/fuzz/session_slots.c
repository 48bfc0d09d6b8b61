#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/session_slots.h"

#include "execd/execs.h"
#include "execd/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum phase { IDLE, TAKEN, LOADING, RUNNING, EXITED, MINDING, FAILED, DIED, EMPTY };

static struct slot {
	enum phase phase;
	uint32_t given;
	uint32_t command_len;
	bool took; /* the last piece: the next is wanted */
	bool killed;
	bool abandoned;
} pool[SESSION_SLOTS];

void session_slots_reset(void)
{
	for (unsigned i = 0; i < SESSION_SLOTS; i++)
		pool[i] = (struct slot){.phase = IDLE};
}

static bool has_exec(const struct slot *s)
{
	return s->phase == LOADING || s->phase == RUNNING || s->phase == EXITED || s->phase == MINDING;
}

static void say(unsigned number, struct slot_event event, enum phase next)
{
	event.slot = number;
	pool[number].phase = next;
	execs_on_slot(NULL, &event);
}

static bool speak_loading(unsigned number, uint8_t choice)
{
	struct slot *s = &pool[number];

	if (s->killed && choice & 1)
		say(number, (struct slot_event){.kind = SLOT_EMPTY}, EMPTY);
	else if (s->given < s->command_len && s->took)
		return false;
	else if (s->given < s->command_len) {
		s->took = true;
		say(number, (struct slot_event){.kind = SLOT_TOOK}, LOADING);
	} else if (choice & 2)
		say(number,
		    (struct slot_event){.kind = SLOT_START_FAILED,
					.value = OUTCOME_START_VALUE(START_EXEC, E2BIG)},
		    FAILED);
	else
		say(number, (struct slot_event){.kind = SLOT_STARTED}, RUNNING);
	return true;
}

static bool speak_running(unsigned number, uint8_t choice)
{
	struct slot *s = &pool[number];
	struct slot_event event = {
	    .kind = SLOT_LEADER_EXITED,
	    .by_kill = s->killed && choice & 1,
	    .wait_status = choice & 2 ? 9 : (choice & 0x3c) << 8,
	};

	say(number, event, EXITED);
	return true;
}

bool session_slots_speak(unsigned number, uint8_t choice)
{
	struct slot *s = &pool[number % SESSION_SLOTS];

	number %= SESSION_SLOTS;
	if (s->phase == LOADING && choice == 254) {
		say(number, (struct slot_event){.kind = SLOT_UNREAD}, FAILED);
		return true;
	}
	if (has_exec(s) && choice == 255) {
		say(number, (struct slot_event){.kind = SLOT_DIED}, DIED);
		return true;
	}
	if ((s->killed || s->phase == DIED) && choice >= 250 && s->phase != IDLE && s->phase != EMPTY) {
		say(number, (struct slot_event){.kind = SLOT_STILL_ALIVE, .count = choice}, s->phase);
		return true;
	}
	switch (s->phase) {
	case LOADING:
		return speak_loading(number, choice);
	case RUNNING:
		return speak_running(number, choice);
	case EXITED:
		if (!s->killed && choice & 1)
			say(number, (struct slot_event){.kind = SLOT_MINDING, .count = 1}, MINDING);
		else
			say(number, (struct slot_event){.kind = SLOT_EMPTY}, EMPTY);
		return true;
	case MINDING:
	case DIED:
		say(number, (struct slot_event){.kind = SLOT_EMPTY}, EMPTY);
		return true;
	default:
		return false;
	}
}

void session_slots_finish(void)
{
	for (unsigned i = 0; i < SESSION_SLOTS; i++) {
		for (int steps = 0; steps < 100 && session_slots_speak(i, 1); steps++)
			;
	}
}

unsigned slots_capacity(void)
{
	return SESSION_SLOTS;
}

unsigned slots_idle(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SESSION_SLOTS; i++)
		n += pool[i].phase == IDLE;
	return n;
}

unsigned slots_minders(void)
{
	return 0;
}

bool slots_give_up_minder(void)
{
	return false;
}

int slots_take(void)
{
	for (unsigned i = 0; i < SESSION_SLOTS; i++) {
		if (pool[i].phase == IDLE) {
			pool[i] = (struct slot){.phase = TAKEN};
			return (int)i;
		}
	}
	return -EAGAIN;
}

int slots_pipes(int ours[3], int theirs[3])
{
	for (int i = 0; i < 3; i++) {
		ours[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		theirs[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		MUST(ours[i] >= 0 && theirs[i] >= 0);
	}
	return 0;
}

int slots_run(unsigned slot, const struct slot_run *run, const int ours[3], const int theirs[3])
{
	MUST(slot < SESSION_SLOTS && pool[slot].phase == TAKEN);
	MUST(ours[0] >= 0 && theirs[0] >= 0 && run->given_len <= run->command_len);
	MUST(run->given_len == 0 || run->given);
	pool[slot].phase = LOADING;
	pool[slot].given = run->given_len;
	pool[slot].command_len = run->command_len;
	return 0;
}

int slots_command(unsigned slot, const uint8_t *piece, size_t size)
{
	struct slot *s = &pool[slot];

	MUST(slot < SESSION_SLOTS && s->phase == LOADING && s->took && piece && size > 0);
	MUST(size <= s->command_len - s->given);
	s->given += (uint32_t)size;
	s->took = false;
	return 0;
}

void slots_kill(unsigned slot)
{
	MUST(slot < SESSION_SLOTS && pool[slot].phase != IDLE && pool[slot].phase != TAKEN);
	pool[slot].killed = true;
}

void slots_release(unsigned slot)
{
	MUST(slot < SESSION_SLOTS);
	MUST(pool[slot].phase == TAKEN || pool[slot].phase == EMPTY || pool[slot].phase == FAILED);
	pool[slot] = (struct slot){.phase = IDLE};
}

void slots_mind(unsigned slot)
{
	MUST(slot < SESSION_SLOTS && pool[slot].phase == MINDING);
	pool[slot] = (struct slot){.phase = IDLE};
}

void slots_abandon(unsigned slot)
{
	MUST(slot < SESSION_SLOTS && pool[slot].phase != IDLE && !pool[slot].abandoned);
	pool[slot].abandoned = true;
}

bool slots_replaced(unsigned slot)
{
	return slot < SESSION_SLOTS && pool[slot].abandoned && slot % 2 == 0;
}
