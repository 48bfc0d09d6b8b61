#include "netd/h2.h"

/* A bucket of H2_IDLE_FRAMES frames. It fills by one each 10 ms, and by what h2_flood_earn brings, so that
 * neither a quiet year with a PING a second nor a peer that probes the bandwidth with one PING a DATA frame
 * is cut. */
#define REFILL_MS 10u

void h2_flood_earn(struct h2 *h, uint32_t n)
{
	h->credit = H2_IDLE_FRAMES - h->credit > n ? h->credit + n : H2_IDLE_FRAMES;
}

bool h2_flood_spend(struct h2 *h)
{
	uint64_t earned = (h->now_ms - h->credit_ms) / REFILL_MS;

	if (earned > 0) {
		h2_flood_earn(h, earned > H2_IDLE_FRAMES ? H2_IDLE_FRAMES : (uint32_t)earned);
		h->credit_ms += earned * REFILL_MS;
	}
	if (h->credit == 0)
		return false;
	h->credit--;
	return true;
}
