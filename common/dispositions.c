#include "common/dispositions.h"

#include <sys/syscall.h>
#include <unistd.h>

#define SIGNALS 64

static void set_mask(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

/* The kernel's struct sigaction, which begins with the handler; the rest is zero. */
static void set_all(uint64_t ignored)
{
	static const unsigned long by_default[4] = {(unsigned long)SIG_DFL};
	static const unsigned long ignore[4] = {(unsigned long)SIG_IGN};

	for (int s = 1; s <= SIGNALS; s++)
		syscall(SYS_rt_sigaction, s, ignored & DISPOSITIONS_BIT(s) ? ignore : by_default, NULL,
			sizeof(uint64_t));
}

void dispositions_reset(void)
{
	set_all(0);
	set_mask(0);
}

void dispositions_ignore_all_but(uint64_t kept)
{
	set_all(~(kept | DISPOSITIONS_BIT(SIGCHLD)));
	set_mask(0);
}

void dispositions_block(void)
{
	set_mask(~UINT64_C(0));
	set_all(0);
}
