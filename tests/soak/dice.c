#include "tests/soak/soak.h"

static struct {
	uint64_t state;
	uint64_t seed;
} row;

/* splitmix64 */
uint64_t dice_mix(uint64_t value)
{
	value += 0x9e3779b97f4a7c15u;
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
	return value ^ (value >> 31);
}

void dice_begin(uint64_t seed, uint64_t step)
{
	row.seed = seed;
	row.state = dice_mix(seed ^ dice_mix(step));
}

uint32_t dice(uint32_t below)
{
	row.state = dice_mix(row.state);
	return (uint32_t)(row.state >> 32) % below;
}

bool dice_chance(uint32_t in_hundred)
{
	return dice(100) < in_hundred;
}

uint32_t dice_about(uint64_t thing, uint32_t below)
{
	return (uint32_t)(dice_mix(row.seed ^ dice_mix(~thing)) >> 32) % below;
}
