/* What another process's memory holds. Needs root, where that process is not dumpable. */
#ifndef TESTS_LIB_MEMORY_H
#define TESTS_LIB_MEMORY_H

#include <sys/types.h>

/* How many times text is found in its readable memory (mappings over 64 MiB, a sanitizer's, are left out).
 * -1: it may not be looked at. */
int memory_count(pid_t pid, const char *text);

#endif
