/* Linked into copies of the static programs with --wrap: what a static program must not call, since glibc
 * would look for shared objects at run time. libcrypto and c-ares refer to some of them; a call ends the
 * program. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEVER(name)                                                                                          \
	_Noreturn void __wrap_##name(void);                                                                  \
	_Noreturn void __wrap_##name(void)                                                                   \
	{                                                                                                    \
		static const char text[] = "never: " #name " was called\n";                                  \
		ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);                                     \
                                                                                                             \
		(void)n;                                                                                     \
		abort();                                                                                     \
	}

NEVER(dlopen)
NEVER(getaddrinfo)
NEVER(getnameinfo)
NEVER(gethostbyname)
NEVER(gethostbyaddr)
NEVER(getservbyname)
NEVER(getservbyname_r)
NEVER(getservbyport)
NEVER(getservbyport_r)
NEVER(getpwnam)
NEVER(getpwnam_r)
NEVER(getpwuid)
NEVER(getpwuid_r)
NEVER(getgrnam)
NEVER(getgrgid)
NEVER(getgrouplist)
NEVER(initgroups)
NEVER(iconv_open)
