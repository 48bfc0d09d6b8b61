/* Which of the relay's addresses the next netd tries first: one netd lives for one attempt, so what it has
 * learnt of them is kept here. */
#ifndef EXECD_ADDRESSES_H
#define EXECD_ADDRESSES_H

#include "common/address.h"

#include <stdbool.h>
#include <stdint.h>

/* An attempt has ended at this address (all zero: at none). of_use: a stream stood there, and it was worth
 * something. A good one that fails is no longer good: another may be where the relay is now. */
void addresses_note(struct address_history *h, const uint8_t tried[ADDRESS_BYTES], bool of_use);

#endif
