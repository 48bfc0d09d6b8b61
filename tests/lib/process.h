/* What lives. A zombie does not. What only /proc can tell skips the test where it does not show the process.
 */
#ifndef TESTS_LIB_PROCESS_H
#define TESTS_LIB_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct relay;

/* Processes whose command line holds text. */
unsigned process_count(const char *text);

/* Waits until process_count(text) is count, while relay (may be NULL) runs. */
bool process_wait_count(struct relay *relay, const char *text, unsigned count, uint64_t timeout_ms);

/* Skips the test where /proc shows nothing of a process that lives (proc(5), hidepid: what is not dumpable).
 */
void process_need_shown(pid_t pid);

bool process_lives(pid_t pid);
bool process_wait_dead(struct relay *relay, pid_t pid, uint64_t timeout_ms);

/* kill(2) of one process of ours. A pid of 0 or below would be a signal to a group or to everything, and ends
 * the test. */
void process_kill(pid_t pid, int signal_number);

/* The first living child of parent whose name (comm) is name; 0: none. */
pid_t process_child(pid_t parent, const char *name);

/* All of them. The count, at most room. */
size_t process_children(pid_t parent, const char *name, pid_t *pids, size_t room);

/* Living descendants of root, root not among them. The count, at most room. */
size_t process_descendants(pid_t root, pid_t *pids, size_t room);

/* Resident set, bytes; 0: no such process. */
size_t process_resident(pid_t pid);

/* The most that it ever was; 0: no such process. */
size_t process_peak(pid_t pid);

/* Its open descriptors whose link reads so (NULL: all); 0 where we may not look. */
size_t process_descriptors(pid_t pid, const char *link);

/* Makes the caller the reaper of what its children leave behind. */
void process_adopt_orphans(void);

/* After process_adopt_orphans: reaps until no child is left. False: some still live at the end of the time;
 * they are named on stderr and killed. */
bool process_wait_no_children(struct relay *relay, uint64_t timeout_ms);

/* Runs a program to its end with the given environment ("NAME=VALUE", NULL-ended), stderr into log. Its wait
 * status, or -1 where it did not end in time (then it is killed). */
int process_run(const char *const *argv, const char *const *environment, char *log, size_t log_size,
		uint64_t timeout_ms);

#endif
