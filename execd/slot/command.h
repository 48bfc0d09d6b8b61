/* The command as a slot holds it: it comes in pieces and becomes bash's arguments in place. */
#ifndef EXECD_SLOT_COMMAND_H
#define EXECD_SLOT_COMMAND_H

#include "common/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMMAND_ARGUMENT  131071u /* the longest argument of execve, without its NUL: MAX_ARG_STRLEN - 1 */
#define COMMAND_PARTS_MAX ((LIMIT_COMMAND + COMMAND_ARGUMENT - 1) / COMMAND_ARGUMENT)

/* Longer than one argument, it is cut into parts that bash puts together again:
 *	bash -c 'eval "set --;${1}${2}…"' bash part1 part2 …
 * where $0, $#, $@ and line numbers are as in bash -c command. */
struct command {
	uint32_t length;
	uint32_t have;
	char *argv[COMMAND_PARTS_MAX + 5];
	char script[16 + 5 * COMMAND_PARTS_MAX + 2];
	char text[LIMIT_COMMAND + COMMAND_PARTS_MAX]; /* each part with its NUL */
};

/* 0, or -EINVAL for a length above LIMIT_COMMAND. */
int command_begin(struct command *command, uint32_t length);

/* 0, or -EINVAL when more comes than was announced. */
int command_add(struct command *command, const uint8_t *bytes, size_t size);

static inline bool command_is_whole(const struct command *command)
{
	return command->have == command->length;
}

static inline bool command_is_split(const struct command *command)
{
	return command->length > COMMAND_ARGUMENT;
}

/* The arguments for bash, NULL-ended, into command. Only when it is whole. */
char *const *command_arguments(struct command *command);

/* Gives the memory of a long command back to the system. */
void command_forget(struct command *command);

#endif
