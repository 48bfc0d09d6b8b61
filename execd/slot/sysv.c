#include "execd/slot/sysv.h"

#include "common/fd.h"
#include "execd/slot/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif
#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif
#ifndef SEM_STAT_ANY
#define SEM_STAT_ANY 20
#endif

#define ANCESTORS 32u

/* semctl(2): the caller defines it. */
union semun {
	int val;
	struct semid_ds *buf;
	struct seminfo *info;
};

struct search {
	uid_t uid;
	time_t since;
	bool remove;
	uint32_t found;
};

static bool is_ours(const struct search *s, const struct ipc_perm *perm, time_t changed)
{
	return perm->cuid == s->uid && changed >= s->since;
}

/* Whatever its mode says: the owner of a segment may have none to read it, and may remove it all the same. A
 * creator that this PID namespace does not know has the number 0. */
static void each_segment(struct search *s)
{
	struct shm_info info;
	struct shmid_ds d = {0};
	int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);

	for (int i = 0; i <= last; i++) {
		int id = shmctl(i, SHM_STAT_ANY, &d);

		if (id >= 0 && is_ours(s, &d.shm_perm, d.shm_ctime) && d.shm_cpid != 0)
			s->found += !s->remove || shmctl(id, IPC_RMID, NULL) == 0;
	}
}

static void each_queue(struct search *s)
{
	struct msginfo info;
	struct msqid_ds d = {0};
	int last = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&info);

	for (int i = 0; i <= last; i++) {
		int id = msgctl(i, MSG_STAT_ANY, &d);

		if (id >= 0 && is_ours(s, &d.msg_perm, d.msg_ctime))
			s->found += !s->remove || msgctl(id, IPC_RMID, NULL) == 0;
	}
}

static void each_array(struct search *s)
{
	struct seminfo info;
	struct semid_ds d = {0};
	int last = semctl(0, 0, SEM_INFO, (union semun){.info = &info});

	for (int i = 0; i <= last; i++) {
		int id = semctl(i, 0, SEM_STAT_ANY, (union semun){.buf = &d});

		if (id >= 0 && is_ours(s, &d.sem_perm, d.sem_ctime))
			s->found += !s->remove || semctl(id, 0, IPC_RMID) == 0;
	}
}

static uint32_t look(struct search *s)
{
	s->found = 0;
	each_segment(s);
	each_queue(s);
	each_array(s);
	return s->found;
}

struct status {
	pid_t parent;
	bool dead;
	unsigned long uids[4];
};

static bool read_status(pid_t pid, struct status *ret)
{
	char path[32], text[1024];
	const char *state, *parent, *uid;
	ssize_t n;
	FD_CLOSE int fd = -1;

	snprintf(path, sizeof path, "%d/status", pid);
	fd = openat(proc_fd(), path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	state = strstr(text, "\nState:\t");
	parent = strstr(text, "\nPPid:\t");
	uid = strstr(text, "\nUid:\t");
	if (!state || !parent || !uid)
		return false;
	*ret = (struct status){.parent = atoi(parent + 7), .dead = state[8] == 'Z' || state[8] == 'X'};
	return sscanf(uid + 6, "%lu %lu %lu %lu", &ret->uids[0], &ret->uids[1], &ret->uids[2],
		      &ret->uids[3]) == 4;
}

static bool has_uid(const struct status *s, uid_t uid)
{
	for (int i = 0; i < 4; i++) {
		if (s->uids[i] == uid)
			return true;
	}
	return false;
}

static bool is_ancestor(pid_t pid, pid_t worker)
{
	struct status s;

	for (unsigned i = 0; i < ANCESTORS && worker > 0 && read_status(worker, &s); i++) {
		if (pid == s.parent)
			return true;
		worker = s.parent;
	}
	return false;
}

static bool is_foreign(pid_t pid, uid_t uid, pid_t worker)
{
	struct status s;

	if (pid == worker || !read_status(pid, &s) || s.dead || !has_uid(&s, uid))
		return false;
	return s.parent != worker && !is_ancestor(pid, worker);
}

static bool is_alone(uid_t uid, pid_t worker)
{
	int fd = openat(proc_fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool alone = dir != NULL;

	while (alone && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			alone = !is_foreign((pid_t)atoi(entry->d_name), uid, worker);
	}
	if (dir)
		closedir(dir);
	else
		fd_close(&fd);
	return alone;
}

uint32_t sysv_clear(time_t since, pid_t worker)
{
	struct search s = {.uid = geteuid(), .since = since};

	if (look(&s) == 0 || !is_alone(s.uid, worker))
		return 0;
	s.remove = true;
	return look(&s);
}
