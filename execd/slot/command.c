#include "execd/slot/command.h"

#include "common/buf.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int command_begin(struct command *command, uint32_t length)
{
	if (length > LIMIT_COMMAND)
		return -EINVAL;
	command->length = length;
	command->have = 0;
	return 0;
}

/* Where byte at of the command is in text: one byte further for each part that ends before it. */
static size_t place_of(uint32_t at)
{
	return at + at / COMMAND_ARGUMENT;
}

int command_add(struct command *command, const uint8_t *bytes, size_t size)
{
	if (size > command->length - command->have)
		return -EINVAL;
	while (size > 0) {
		size_t in_part = COMMAND_ARGUMENT - command->have % COMMAND_ARGUMENT;
		size_t n = size < in_part ? size : in_part;

		memcpy(command->text + place_of(command->have), bytes, n);
		command->have += (uint32_t)n;
		bytes += n;
		size -= n;
	}
	return 0;
}

char *const *command_arguments(struct command *command)
{
	static char bash[] = "bash", option[] = "-c";
	uint32_t parts = command->length / COMMAND_ARGUMENT + 1;
	struct buf_text script;
	size_t argc = 0;

	if (command->length > 0 && command->length % COMMAND_ARGUMENT == 0)
		parts--;
	command->argv[argc++] = bash;
	command->argv[argc++] = option;
	if (parts > 1) {
		buf_text_init(&script, command->script, sizeof command->script);
		buf_text_addz(&script, "eval \"set --;");
		for (uint32_t i = 1; i <= parts; i++)
			buf_text_addf(&script, "${%u}", i);
		buf_text_addz(&script, "\"");
		command->argv[argc++] = command->script;
		command->argv[argc++] = bash;
	}
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t end = i + 1 < parts ? (i + 1) * COMMAND_ARGUMENT : command->length;

		command->argv[argc++] = command->text + i * (COMMAND_ARGUMENT + 1u);
		command->text[i * (COMMAND_ARGUMENT + 1u) + (end - i * COMMAND_ARGUMENT)] = '\0';
	}
	command->argv[argc] = NULL;
	return command->argv;
}

void command_forget(struct command *command)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)command->text + page - 1) / page * page;
	uintptr_t to = ((uintptr_t)command->text + sizeof command->text) / page * page;

	if (command_is_split(command) && from < to)
		madvise((void *)from, to - from, MADV_DONTNEED);
	command->length = command->have = 0;
}
