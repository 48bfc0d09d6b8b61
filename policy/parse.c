#include "policy/parse.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 512

/* One line, taken word by word. */
struct line {
	const char *file;
	unsigned number;
	char text[LINE];
	char *rest;
	bool has_reason;
	struct policy_error *error;
};

int policy_fail(struct policy_error *error, const char *file, unsigned line, const char *format, ...)
{
	va_list ap;
	int n = line > 0 ? snprintf(error->text, sizeof error->text, "%s:%u: ", file, line)
			 : snprintf(error->text, sizeof error->text, "%s: ", file);

	if (n < 0 || (size_t)n >= sizeof error->text)
		return -EINVAL;
	va_start(ap, format);
	vsnprintf(error->text + n, sizeof error->text - (size_t)n, format, ap);
	va_end(ap);
	return -EINVAL;
}

#define fail(l, ...) policy_fail((l)->error, (l)->file, (l)->number, __VA_ARGS__)

bool policy_same_conditions(const struct policy_rule *a, const struct policy_rule *b)
{
	if (a->condition_count != b->condition_count)
		return false;
	for (unsigned i = 0; i < a->condition_count; i++) {
		const struct policy_condition *x = &a->conditions[i], *y = &b->conditions[i];

		if (x->arg != y->arg || x->test != y->test || x->mask != y->mask || x->value != y->value)
			return false;
	}
	return true;
}

/* The next word, or NULL at the end. */
static char *next(struct line *l)
{
	char *word;

	do
		word = strsep(&l->rest, " \t");
	while (word && *word == '\0');
	return word;
}

/* Takes the next word if it is this one. */
static bool next_is(struct line *l, const char *wanted)
{
	size_t length = strlen(wanted);
	const char *word = l->rest;

	if (!word)
		return false;
	word += strspn(word, " \t");
	if (strncmp(word, wanted, length) != 0 || !strchr(" \t", word[length]))
		return false;
	next(l);
	return true;
}

static int parse_end(struct line *l)
{
	char *word = next(l);

	return word ? fail(l, "unexpected '%s'", word) : 0;
}

/* allow, trap, kill, deny ERRNO */
static int parse_action(struct line *l, const char *word, uint32_t *ret_action)
{
	uint32_t value;

	if (strcmp(word, "allow") == 0) {
		*ret_action = SECCOMP_RET_ALLOW;
	} else if (strcmp(word, "trap") == 0) {
		*ret_action = SECCOMP_RET_TRAP;
	} else if (strcmp(word, "kill") == 0) {
		*ret_action = SECCOMP_RET_KILL_PROCESS;
	} else if (strcmp(word, "deny") == 0) {
		word = next(l);
		if (!word)
			return fail(l, "deny needs an errno");
		if (policy_errno(word, &value) < 0)
			return fail(l, "unknown errno '%s'", word);
		*ret_action = SECCOMP_RET_ERRNO | value;
	} else {
		return fail(l, "unknown word '%s'", word);
	}
	return 0;
}

/* Constants joined by '|'. */
static int parse_value(struct line *l, uint32_t *ret_value)
{
	char *words = next(l);
	char *word;
	uint32_t sum = 0;

	if (!words)
		return fail(l, "a value is missing");
	while ((word = strsep(&words, "|"))) {
		char *end;
		unsigned long number = strtoul(word, &end, 0);
		uint32_t value;

		if (*word >= '0' && *word <= '9' && *end == '\0' && number <= UINT32_MAX)
			value = (uint32_t)number;
		else if (policy_constant(word, &value) < 0)
			return fail(l, "unknown constant '%s'", word);
		sum |= value;
	}
	*ret_value = sum;
	return 0;
}

/* argN [& MASK] [== VALUE | != VALUE] */
static int parse_condition(struct line *l, struct policy_condition *c)
{
	char *word = next(l);
	int r;

	if (!word || strncmp(word, "arg", 3) != 0 || word[3] < '0' || word[3] > '5' || word[4] != '\0')
		return fail(l, "a condition starts with arg0 to arg5, not '%s'", word ? word : "");
	*c = (struct policy_condition){
	    .arg = (unsigned)(word[3] - '0'), .test = POLICY_ANY, .mask = UINT32_MAX};
	if (next_is(l, "&")) {
		r = parse_value(l, &c->mask);
		if (r < 0)
			return r;
		if (c->mask == 0)
			return fail(l, "a mask of 0 never matches");
	}
	if (next_is(l, "=="))
		c->test = POLICY_EQUAL;
	else if (next_is(l, "!="))
		c->test = POLICY_DIFFERS;
	if (c->test == POLICY_ANY)
		return c->mask != UINT32_MAX ? 0 : fail(l, "arg%u is compared with nothing", c->arg);
	if (c->test == POLICY_EQUAL && c->mask == UINT32_MAX && next_is(l, "NULL")) {
		c->test = POLICY_NULL;
		return 0;
	}
	r = parse_value(l, &c->value);
	if (r == 0 && (c->value & ~c->mask) != 0)
		return fail(l, "the value has bits outside the mask");
	return r;
}

static int parse_call(struct line *l, struct policy_rule *rule)
{
	char *word = next(l);
	char *number = word ? strchr(word, '=') : NULL;
	char *end;

	rule->number = -1;
	if (number) {
		*number++ = '\0';
		rule->number = (int)strtol(number, &end, 10);
		if (*number < '0' || *number > '9' || *end != '\0' || rule->number > 4095)
			return fail(l, "'%s' is no system call's number", number);
	}
	if (!word || *word == '\0' || strlen(word) >= sizeof rule->call)
		return fail(l, "a system call's name is missing or too long");
	if (word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
		return fail(l, "'%s' is no system call's name", word);
	strcpy(rule->call, word);
	return 0;
}

static int parse_rule(struct line *l, const char *word, struct policy_rule *rule)
{
	int r;

	*rule = (struct policy_rule){.has_reason = l->has_reason, .file = l->file, .line = l->number};
	r = parse_action(l, word, &rule->action);
	if (r == 0)
		r = parse_call(l, rule);
	if (r < 0)
		return r;
	if (!next_is(l, "if"))
		return parse_end(l);
	do {
		if (rule->condition_count == POLICY_CONDITIONS)
			return fail(l, "more than %d conditions", POLICY_CONDITIONS);
		r = parse_condition(l, &rule->conditions[rule->condition_count++]);
	} while (r == 0 && next_is(l, "and"));
	return r < 0 ? r : parse_end(l);
}

/* Sorted, and each rule can be reached: what follows an unconditional rule, or repeats one, never decides. */
static int check_order(struct line *l, const struct policy *p, const struct policy_rule *rule)
{
	const struct policy_rule *last = p->count > 0 ? &p->rules[p->count - 1] : NULL;
	int order = last ? strcmp(last->call, rule->call) : -1;

	if (order > 0)
		return fail(l, "%s is not in its place: rules are sorted, and it comes before %s", rule->call,
			    last->call);
	if (order < 0)
		return 0;
	if (last->condition_count == 0)
		return fail(l, "never reached: line %u decides %s in any case", last->line, rule->call);
	if (last->number != rule->number)
		return fail(l, "%s has another number in line %u", rule->call, last->line);
	for (unsigned i = p->count; i > 0 && strcmp(p->rules[i - 1].call, rule->call) == 0; i--) {
		if (policy_same_conditions(&p->rules[i - 1], rule))
			return fail(l, "never reached: the same condition as line %u", p->rules[i - 1].line);
	}
	return 0;
}

static int parse_header(struct line *l, uint32_t *ret_action, bool *has)
{
	char *word = next(l);
	int r;

	if (*has)
		return fail(l, "given twice");
	*has = true;
	r = word ? parse_action(l, word, ret_action) : fail(l, "an action is missing");
	return r < 0 ? r : parse_end(l);
}

static int parse_include(struct line *l, struct policy *p)
{
	char *name = next(l);
	const char *slash = strrchr(l->file, '/');
	int folder = slash ? (int)(slash - l->file + 1) : 0;

	if (!name)
		return fail(l, "include needs a file");
	if (p->included[0] != '\0')
		return fail(l, "only one include");
	if (snprintf(p->included, sizeof p->included, "%.*s%s", folder, l->file, name) >=
	    (int)sizeof p->included)
		return fail(l, "the file's name is too long");
	return parse_end(l);
}

static int parse_line(struct line *l, struct policy *p)
{
	char *comment = strchr(l->text, '#');
	char *word;
	int r;

	l->has_reason = comment && comment[1 + strspn(comment + 1, " \t")] != '\0';
	if (comment)
		*comment = '\0';
	l->rest = l->text;
	word = next(l);
	if (!word)
		return 0;
	if (strcmp(word, "include") == 0)
		return p->count == 0 ? parse_include(l, p) : fail(l, "include comes before the rules");
	if (strcmp(word, "default") == 0)
		return parse_header(l, &p->default_action, &p->has_default);
	if (strcmp(word, "badarch") == 0)
		return parse_header(l, &p->badarch_action, &p->has_badarch);
	if (p->count == POLICY_RULES)
		return fail(l, "more than %d rules", POLICY_RULES);
	r = parse_rule(l, word, &p->rules[p->count]);
	if (r == 0)
		r = check_order(l, p, &p->rules[p->count]);
	if (r == 0)
		p->count++;
	return r;
}

static int parse_file(const char *file, struct policy *p, struct policy_error *error)
{
	struct line l = {.file = file, .error = error};
	FILE *in = fopen(file, "re");
	int r = 0;

	*p = (struct policy){.count = 0};
	if (!in)
		return policy_fail(error, file, 0, "%s", strerror(errno));
	while (r == 0 && fgets(l.text, sizeof l.text, in)) {
		size_t length = strlen(l.text);

		l.number++;
		if (length > 0 && l.text[length - 1] == '\n')
			l.text[length - 1] = '\0';
		else if (!feof(in))
			r = fail(&l, "longer than %d bytes", LINE - 2);
		if (r == 0)
			r = parse_line(&l, p);
	}
	fclose(in);
	return r;
}

static int compare_calls(const void *a, const void *b)
{
	const struct policy_rule *x = a, *y = b;
	int order = strcmp(x->call, y->call);

	return order != 0 ? order : x->line < y->line ? -1 : 1;
}

/* An overlay's rules for a call stand in place of those of the included file. */
static int merge(struct policy *p, const struct policy *base, struct policy_error *error)
{
	unsigned own = p->count;

	for (unsigned i = 0; i < base->count; i++) {
		bool ruled = false;

		for (unsigned j = 0; j < own && !ruled; j++)
			ruled = strcmp(p->rules[j].call, base->rules[i].call) == 0;
		if (ruled)
			continue;
		if (p->count == POLICY_RULES)
			return policy_fail(error, p->included, base->rules[i].line, "more than %d rules",
					   POLICY_RULES);
		p->rules[p->count++] = base->rules[i];
	}
	qsort(p->rules, p->count, sizeof *p->rules, compare_calls);
	if (!p->has_default)
		p->default_action = base->default_action;
	if (!p->has_badarch)
		p->badarch_action = base->badarch_action;
	p->has_default = p->has_badarch = true;
	return 0;
}

int policy_parse(const char *file, struct policy *ret, struct policy_error *error)
{
	static struct policy base;
	int r = parse_file(file, ret, error);

	if (r < 0)
		return r;
	if (ret->included[0] != '\0') {
		r = parse_file(ret->included, &base, error);
		if (r == 0 && base.included[0] != '\0')
			r = policy_fail(error, ret->included, 0, "an included file includes another");
		if (r == 0)
			r = merge(ret, &base, error);
	}
	if (r == 0 && (!ret->has_default || !ret->has_badarch))
		r = policy_fail(error, file, 0, "no %s", ret->has_default ? "badarch" : "default");
	return r;
}
