#include "execd/slot/command.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct command command;
static uint8_t text[LIMIT_COMMAND];

static void fill(void)
{
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)('a' + i % 23);
}

TestSuite(slot_command, .init = fill, .timeout = 20);

/* Gives length bytes in pieces, and checks that bash would put the same together again. */
static size_t joined(uint32_t length, size_t piece, char *const **ret_argv)
{
	static char together[LIMIT_COMMAND + 1];
	size_t at = 0, first;
	char *const *argv;

	cr_assert_eq(command_begin(&command, length), 0);
	while (at < length) {
		size_t n = length - at < piece ? length - at : piece;

		cr_assert(!command_is_whole(&command));
		cr_assert_eq(command_add(&command, text + at, n), 0);
		at += n;
	}
	cr_assert(command_is_whole(&command));
	*ret_argv = argv = command_arguments(&command);
	first = command_is_split(&command) ? 4 : 2;
	together[0] = '\0';
	at = 0;
	size_t i = first;
	for (; argv[i]; i++) {
		cr_assert_leq(strlen(argv[i]), COMMAND_ARGUMENT);
		at += strlen(strcpy(together + at, argv[i]));
	}
	cr_assert_eq(at, length);
	cr_assert_arr_eq(together, text, length);
	return i - first;
}

Test(slot_command, one_argument_holds_up_to_the_kernels_limit)
{
	char *const *argv;

	cr_assert_eq(joined(0, 1, &argv), 1);
	cr_assert_eq(joined(1, 1, &argv), 1);
	cr_assert_eq(joined(COMMAND_ARGUMENT - 1, 60000, &argv), 1);
	cr_assert_eq(joined(COMMAND_ARGUMENT, 60000, &argv), 1);
	cr_assert_str_eq(argv[0], "bash");
	cr_assert_str_eq(argv[1], "-c");
}

Test(slot_command, a_longer_one_is_put_together_by_bash)
{
	char *const *argv;

	cr_assert_eq(joined(COMMAND_ARGUMENT + 1, 60000, &argv), 2);
	cr_assert_str_eq(argv[2], "eval \"set --;${1}${2}\"");
	cr_assert_str_eq(argv[3], "bash");
	cr_assert_eq(joined(2 * COMMAND_ARGUMENT, 60000, &argv), 2);
	cr_assert_eq(joined(2 * COMMAND_ARGUMENT + 1, 60000, &argv), 3);
	cr_assert_eq(joined(LIMIT_COMMAND, 65536, &argv), COMMAND_PARTS_MAX);
	cr_assert_eq(joined(LIMIT_COMMAND - 1, 7, &argv), COMMAND_PARTS_MAX);
}

Test(slot_command, nothing_above_the_limit_or_the_announced_length)
{
	cr_assert_eq(command_begin(&command, LIMIT_COMMAND), 0);
	cr_assert_eq(command_begin(&command, LIMIT_COMMAND + 1), -EINVAL);
	cr_assert_eq(command_begin(&command, 3), 0);
	cr_assert_eq(command_add(&command, text, 4), -EINVAL);
	cr_assert_eq(command_add(&command, text, 3), 0);
	cr_assert_eq(command_add(&command, text, 1), -EINVAL);
}

Test(slot_command, a_forgotten_command_leaves_nothing_of_a_long_one)
{
	char *const *argv;

	joined(LIMIT_COMMAND, 65536, &argv);
	command_forget(&command);
	cr_assert_eq(command.text[LIMIT_COMMAND / 2], '\0');
	cr_assert_eq(joined(5, 5, &argv), 1);
}
