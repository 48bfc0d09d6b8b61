#include "netd/race.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void add(struct race_order *o, const char *text)
{
	struct address a;

	cr_assert_eq(address_parse(text, &a), 0);
	race_order_add(o, &a);
}

static const char *order_of(struct race_order *o)
{
	static char text[2048];
	char one[ADDRESS_TEXT];
	struct address a;

	text[0] = '\0';
	while (race_order_take(o, &a)) {
		strcat(text, address_format(&a, one));
		strcat(text, " ");
	}
	return text;
}

Test(race, v6_comes_first_and_the_families_take_turns)
{
	struct race_order o = {0};

	add(&o, "192.0.2.1");
	add(&o, "192.0.2.2");
	add(&o, "192.0.2.3");
	add(&o, "2001:db8::1");
	add(&o, "2001:db8::2");
	cr_assert_str_eq(order_of(&o),
			 "[2001:db8::1]:0 192.0.2.1:0 [2001:db8::2]:0 192.0.2.2:0 192.0.2.3:0 ");
}

Test(race, one_family_alone_keeps_its_order)
{
	struct race_order o = {0};

	add(&o, "192.0.2.2");
	add(&o, "192.0.2.1");
	cr_assert_str_eq(order_of(&o), "192.0.2.2:0 192.0.2.1:0 ");
}

Test(race, late_addresses_join_at_their_familys_turn)
{
	struct race_order o = {0};
	struct address a;

	add(&o, "192.0.2.1");
	add(&o, "192.0.2.2");
	cr_assert(race_order_take(&o, &a));
	add(&o, "2001:db8::1");
	add(&o, "2001:db8::2");
	cr_assert_str_eq(order_of(&o), "[2001:db8::1]:0 192.0.2.2:0 [2001:db8::2]:0 ");
	cr_assert_not(race_order_take(&o, &a));
	add(&o, "192.0.2.9");
	cr_assert(race_order_take(&o, &a));
}

Test(race, the_same_address_counts_once_and_too_many_are_left_out)
{
	struct race_order o = {0};
	char text[32];

	add(&o, "192.0.2.1");
	add(&o, "192.0.2.1");
	cr_assert_eq(o.v4.count, 1);
	for (unsigned i = 2; i < RACE_PER_FAMILY; i++) {
		snprintf(text, sizeof text, "192.0.2.%u", i);
		add(&o, text);
	}
	cr_assert_eq(o.v4.count, RACE_PER_FAMILY - 1);
	add(&o, "198.51.100.1");
	cr_assert_eq(o.v4.count, RACE_PER_FAMILY);
	add(&o, "198.51.100.2");
	cr_assert_eq(o.v4.count, RACE_PER_FAMILY);
}

static struct address literal(const char *text)
{
	struct address a;

	cr_assert_eq(address_parse(text, &a), 0);
	return a;
}

static struct race_order three_and_one(void)
{
	struct race_order o = {0};

	add(&o, "2001:db8::1");
	add(&o, "192.0.2.1");
	add(&o, "192.0.2.2");
	add(&o, "192.0.2.3");
	return o;
}

Test(race, one_that_was_good_comes_first)
{
	struct address_history h = {.has_good = true, .good = literal("192.0.2.2")};
	struct race_order o = three_and_one();

	race_order_begin(&o, &h);
	cr_assert_str_eq(order_of(&o), "192.0.2.2:0 [2001:db8::1]:0 192.0.2.1:0 192.0.2.3:0 ");
	h.good = literal("192.0.2.9");
	o = three_and_one();
	race_order_begin(&o, &h);
	cr_assert_str_eq(order_of(&o), "[2001:db8::1]:0 192.0.2.1:0 192.0.2.2:0 192.0.2.3:0 ");
}

/* From one attempt to the next each gets its turn, however many are bad. */
Test(race, the_order_begins_after_one_that_was_bad)
{
	static const char *const turns[] = {
	    "192.0.2.1:0 192.0.2.2:0 192.0.2.3:0 [2001:db8::1]:0 ",
	    "192.0.2.2:0 192.0.2.3:0 [2001:db8::1]:0 192.0.2.1:0 ",
	    "192.0.2.3:0 [2001:db8::1]:0 192.0.2.1:0 192.0.2.2:0 ",
	    "[2001:db8::1]:0 192.0.2.1:0 192.0.2.2:0 192.0.2.3:0 ",
	};
	struct address_history h = {.has_bad = true, .bad = literal("2001:db8::1")};

	for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
		struct race_order o = three_and_one();
		char text[ADDRESS_TEXT];

		race_order_begin(&o, &h);
		add(&o, "192.0.2.4");
		cr_assert(race_order_take(&o, &h.bad));
		address_format(&h.bad, text);
		cr_assert_eq(strncmp(turns[i], text, strlen(text)), 0);
		o = three_and_one();
		race_order_begin(&o, &(struct address_history){.has_bad = true, .bad = h.bad});
		cr_assert_str_eq(order_of(&o), turns[(i + 1) % 4]);
	}
}

Test(race, one_that_was_good_comes_first_and_then_those_after_the_bad_one)
{
	struct address_history h = {true, true, literal("192.0.2.3"), literal("192.0.2.1")};
	struct race_order o = three_and_one();

	race_order_begin(&o, &h);
	add(&o, "2001:db8::2");
	cr_assert_str_eq(order_of(&o),
			 "192.0.2.3:0 192.0.2.2:0 [2001:db8::1]:0 192.0.2.1:0 [2001:db8::2]:0 ");
}
