/* A small name server on loopback, over UDP and TCP. */
#ifndef TESTS_LIB_DNS_H
#define TESTS_LIB_DNS_H

#include <stdbool.h>
#include <stdint.h>

enum { DNS_A = 1, DNS_AAAA = 28 };
enum { DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3 };

/* What the server knows; of everything else it says NXDOMAIN. */
struct dns_entry {
	const char *name; /* NULL ends the list */
	int type;
	const char *addresses[12]; /* none: the name exists, without such a record */
	int rcode;
	bool silent;
	bool only_tcp; /* over UDP the answer says "truncated" */
};

/* Runs it on 127.0.0.1 in a child, which dies with the test. port 0: any. Returns its port. */
uint16_t dns_start(const struct dns_entry *entries, uint16_t port);

/* Ends the one that was started last. */
void dns_stop(void);

/* A copy of entries (with the NULL at the end) in memory that the child shares: what the test changes in it
 * later is what the server knows then. Names and addresses must be literals. */
struct dns_entry *dns_share(const struct dns_entry *entries);

#endif
