/* The commands: short forms of what the field runs, each with the bytes and the end that are right. */
#include "tests/soak/soak.h"

#include "common/limits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (17u * LIMIT_MIB)
#define NO_END    UINT64_MAX

static uint8_t input[INPUT_MAX]; /* every byte, in an order of its own */

static void fill_input(void)
{
	uint64_t state = 1;

	if (input[0] != 0)
		return;
	for (size_t i = 0; i < sizeof input; i += 8) {
		state = dice_mix(state);
		memcpy(&input[i], &state, 8);
	}
	input[0] = 1;
}

bool kinds_match(const struct soak_output *output, uint64_t from, const uint8_t *data, size_t size)
{
	if (output->size < size || from > output->size - size)
		return false;
	while (size > 0) {
		size_t at = (size_t)(from % output->text_size), n = output->text_size - at;

		if (n > size)
			n = size;
		if (memcmp(output->text + at, data, n) != 0)
			return false;
		data += n;
		from += n;
		size -= n;
	}
	return true;
}

/* What the kind does, after what all do: a line of its run. */
static void does(struct soak_exec *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void does(struct soak_exec *e, const char *format, ...)
{
	size_t used = strlen(e->command);
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(e->command + used, SOAK_COMMAND - used, format, ap);
	va_end(ap);
	cr_assert(n >= 0 && (size_t)n < SOAK_COMMAND - used, "a command too long for its room");
}

static void prints(struct soak_output *o, uint64_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* size 0: once. */
static void prints(struct soak_output *o, uint64_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	o->text_size = (size_t)vsnprintf(o->own, sizeof o->own, format, ap);
	va_end(ap);
	o->text = (const uint8_t *)o->own;
	o->size = size > 0 ? size : o->text_size;
}

static void takes(struct soak_exec *e, size_t size)
{
	fill_input();
	e->request.input = input;
	e->request.input_size = size;
}

/* --- kinds --- */

static void quick(struct soak_exec *e)
{
	does(e, "exit %d", e->code);
}

static void says(struct soak_exec *e)
{
	prints(&e->out, 0, "said %s", e->mark);
	does(e, "printf '%%s' '%s'; exit %d", e->out.own, e->code);
}

/* The last line has no newline; both streams. */
static void both(struct soak_exec *e)
{
	prints(&e->err, 0, "bad %s", e->mark);
	prints(&e->out, 1 + dice(300000), "out %s\n", e->mark);
	does(e, "printf '%%s' '%s' >&2; yes 'out %s' | head -c %" PRIu64 "; exit %d", e->err.own, e->mark,
	     e->out.size, e->code);
}

static void err_first(struct soak_exec *e)
{
	prints(&e->err, 300000, "err %s\n", e->mark);
	prints(&e->out, 300000, "out %s\n", e->mark);
	does(e, "yes 'err %s' | head -c 300000 >&2; yes 'out %s' | head -c 300000; exit %d", e->mark, e->mark,
	     e->code);
}

static void zeros(struct soak_exec *e)
{
	static const uint8_t none[1] = {0};

	e->out.text = none;
	e->out.text_size = 1;
	e->out.size = 1000 + dice(2000000);
	does(e, "head -c %" PRIu64 " /dev/zero; exit %d", e->out.size, e->code);
}

static void echoes(struct soak_exec *e)
{
	takes(e, 1 + dice(dice_chance(15) ? 4 * LIMIT_MIB : 200000));
	e->out.text = input;
	e->out.text_size = e->out.size = e->request.input_size;
	does(e, "cat; exit %d", e->code);
	/* Beyond this, what is not streaming is cut. */
	if (e->out.size > LIMIT_BUFFERED)
		e->request.streaming = true;
}

static void ignores_input(struct soak_exec *e)
{
	takes(e, 1 + dice(1000000));
	does(e, "exit %d", e->code);
}

static void without_input(struct soak_exec *e)
{
	prints(&e->out, 0, "1");
	does(e, "cat; read x; printf $?; exit %d", e->code);
}

static void slow(struct soak_exec *e)
{
	prints(&e->out, 0, "slow %s\n", e->mark);
	does(e, "sleep 0.%u; echo 'slow %s'; exit %d", dice(6), e->mark, e->code);
}

static void ticks(struct soak_exec *e)
{
	prints(&e->out, 50, "tick\n");
	does(e, "for i in 0 1 2 3 4 5 6 7 8 9; do echo tick; sleep 0.02; done; exit %d", e->code);
}

static void dies(struct soak_exec *e)
{
	e->natural = SOAK_DIES;
	does(e, "%s", dice_chance(50) ? "kill -KILL $$" : "kill -SEGV $$");
}

static void hangs(struct soak_exec *e)
{
	e->natural = SOAK_TIMES_OUT;
	e->request.timeout_s = 1;
	prints(&e->out, 0, "up\n");
	does(e, "echo up; %s", dice_chance(50) ? "exec sleep $m" : "sleep $m");
	e->open_ended = true;
}

static void hangs_hard(struct soak_exec *e)
{
	e->natural = SOAK_TIMES_OUT;
	e->request.timeout_s = 1;
	does(e, "trap '' TERM INT HUP; (setsid sleep $m & setsid sleep $m &) >/dev/null 2>&1; "
		"sleep $m & kill -STOP $!; sleep $m");
}

static void floods(struct soak_exec *e)
{
	e->natural = SOAK_TIMES_OUT;
	e->request.timeout_s = 1;
	e->open_ended = true;
	prints(&e->out, NO_END, "flood %s\n", e->mark);
	does(e, "yes 'flood %s'", e->mark);
}

static void storms(struct soak_exec *e)
{
	e->natural = SOAK_TIMES_OUT;
	e->request.timeout_s = 1;
	does(e,
	     "b() { [ $1 -gt 0 ] || exec sleep $m; b $(($1 - 1)) & b $(($1 - 1)) & wait; }; b 5; sleep $m");
}

/* Each starts the next and ends: nothing holds still while it is killed. */
static void chains(struct soak_exec *e)
{
	e->natural = SOAK_TIMES_OUT;
	e->request.timeout_s = 1;
	does(e, "export c=': '$m'; sleep 0.02; setsid bash -c \"$c\" & exit'; (bash -c \"$c\" &) >/dev/null "
		"2>&1; "
		"sleep $m");
}

static void leaves_server(struct soak_exec *e)
{
	e->keeps = e->lasts = true;
	prints(&e->out, 0, "started\n");
	does(e, "sleep $m %s& echo $! >>'%s'; echo started; exit %d",
	     dice_chance(60) ? ">/dev/null 2>&1 " : "", soak.kept, e->code);
}

/* It goes on printing; it ends by itself. */
static void leaves_printer(struct soak_exec *e)
{
	e->keeps = true;
	e->open_ended = true;
	prints(&e->out, NO_END, "tick\n");
	does(e, ": $m; for i in {1..20}; do echo tick; sleep 0.05; done & echo $! >>'%s'; exit %d", soak.kept,
	     e->code);
}

static void leaves_stopped(struct soak_exec *e)
{
	e->keeps = e->lasts = true;
	does(e, "sleep $m & echo $! >>'%s'; kill -STOP $!; exit %d", soak.kept, e->code);
}

static void closes_output(struct soak_exec *e)
{
	prints(&e->out, 0, "last");
	does(e, "printf last; exec >&- 2>&-; sleep 0.1; exit %d", e->code);
}

/* The slot is its parent. With Landlock and kill it is out of reach. */
static void kills_slot(struct soak_exec *e)
{
	e->natural = SOAK_MAY_DIE;
	soak.slots_hit = true;
	does(e, "kill -%s $PPID 2>/dev/null; sleep 0.2; exit %d", dice_chance(50) ? "KILL" : "STOP", e->code);
}

static void has_nul(struct soak_exec *e)
{
	e->natural = SOAK_REFUSED;
	e->refusal = "command refused: it holds a NUL byte";
	e->request.command_size = strlen(e->command) + 2;
}

static void has_too_much_input(struct soak_exec *e)
{
	e->natural = SOAK_REFUSED;
	takes(e, LIMIT_STDIN + 1);
	e->refusal = "command refused: its stdin is longer than 16 MiB";
	does(e, "exit %d", e->code);
}

static void has_big_input(struct soak_exec *e)
{
	takes(e, 11 * LIMIT_MIB);
	prints(&e->out, 0, "11534336\n");
	does(e, "wc -c; exit %d", e->code);
}

static void is_cut(struct soak_exec *e)
{
	e->request.streaming = false;
	prints(&e->out, LIMIT_BUFFERED + 1, "x");
	does(e, "head -c 8388609 /dev/zero | tr '\\0' x; exit %d", e->code);
}

static void is_long(struct soak_exec *e)
{
	size_t used = strlen(e->command), size = 100000 + dice(200000);

	prints(&e->out, 0, "long");
	e->long_command = malloc(size + 64);
	cr_assert(e->long_command);
	memcpy(e->long_command, e->command, used);
	memset(e->long_command + used, ' ', size - used);
	snprintf(e->long_command + size, 64, "; printf long; exit %d", e->code);
	e->long_command[used] = ':';
	e->request.command = e->long_command;
}

static void is_not_utf8(struct soak_exec *e)
{
	prints(&e->out, 0, "\xe2\x89\xff\x80");
	does(e, "printf '%%s' '\xe2\x89\xff\x80'; exit %d", e->code);
}

static const struct {
	void (*fill)(struct soak_exec *exec);
	uint32_t weight;
} kinds[] = {
    {quick, 20},
    {says, 20},
    {both, 8},
    {err_first, 4},
    {zeros, 6},
    {echoes, 8},
    {ignores_input, 4},
    {without_input, 4},
    {slow, 14},
    {ticks, 6},
    {dies, 5},
    {hangs, 6},
    {hangs_hard, 5},
    {floods, 2},
    {storms, 2},
    {chains, 2},
    {leaves_server, 4},
    {leaves_printer, 2},
    {leaves_stopped, 2},
    {closes_output, 4},
    {kills_slot, 2},
    {has_nul, 2},
    {has_too_much_input, 1},
    {has_big_input, 1},
    {is_cut, 1},
    {is_long, 3},
    {is_not_utf8, 3},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static void prepare(struct soak_exec *e, uint64_t id, unsigned variant)
{
	*e = (struct soak_exec){.variant = variant, .natural = SOAK_EXITS};
	e->request = (struct relay_request){.req_id = id, .command = e->command, .streaming = true};
	/* Seconds, that nothing else on the machine sleeps. */
	snprintf(e->mark, sizeof e->mark, "%s%06u%u", soak.stage->mark, (unsigned)(id % 1000000u), variant);
	does(e, "m=%s; echo %" PRIu64 " %u >>'%s'; ", e->mark, id, variant, soak.ran);
}

void kinds_command(struct soak_exec *e, uint64_t id, const char *command)
{
	prepare(e, id, 0);
	does(e, "%s", command);
}

void kinds_refused(struct soak_exec *e, uint64_t id)
{
	prepare(e, id, 0);
	has_nul(e);
}

/* What there may be too much of. */
static void (*const crowds[SOAK_CROWDS])(struct soak_exec *exec) = {leaves_server, has_big_input, quick,
								    floods};

void kinds_crowd(struct soak_exec *e, uint64_t id, uint32_t crowd)
{
	prepare(e, id, 0);
	e->code = (int32_t)dice(200);
	crowds[crowd](e);
}

void kinds_fill(struct soak_exec *e, uint64_t id, unsigned variant)
{
	uint32_t sum = 0, at;
	size_t kind = 0;

	prepare(e, id, variant);
	for (size_t i = 0; i < KINDS; i++)
		sum += kinds[i].weight;
	for (at = dice(sum); at >= kinds[kind].weight; kind++)
		at -= kinds[kind].weight;
	e->code = (int32_t)dice(200);
	e->request.timeout_s = dice_chance(50) ? 60 : 0;
	e->request.streaming = dice_chance(65);
	kinds[kind].fill(e);
}

void kinds_free(struct soak_exec *e)
{
	free(e->long_command);
	e->long_command = NULL;
}
