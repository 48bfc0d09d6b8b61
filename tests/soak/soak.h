/* The soak: a worker's life is rounds of random steps, each round's end a rest in which everything is settled
 * and counted. What a step does depends on the seed and its number only; what comes of it is checked frame by
 * frame against a model of each exec.
 *
 * Parts: dice (choices), kinds (commands and what they must answer), model (what was sent, what came),
 * faults, census (processes, memory, the status file), life (rounds, and the end). */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include "tests/lib/stage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOAK_EXECS    160u /* a round, more than may run and wait */
#define SOAK_COMMAND  640u
#define SOAK_PROOF_MS 20000u /* a kill may take its 10 s, on a slow machine */

/* --- dice --- */

/* All choices of a step come from the seed and the step's number, so that one step's choices do not hang on
 * how many an earlier one took. */
void dice_begin(uint64_t seed, uint64_t step);
uint32_t dice(uint32_t below);
bool dice_chance(uint32_t in_hundred);
/* A choice about one thing, outside of the step's row. */
uint32_t dice_about(uint64_t thing, uint32_t below);
uint64_t dice_mix(uint64_t value);

/* --- kinds --- */

/* A stream's bytes: text over and over, size in all. */
struct soak_output {
	const uint8_t *text;
	size_t text_size;
	uint64_t size;
	char own[96]; /* where text is the exec's own */
};

enum soak_natural {
	SOAK_EXITS,     /* code, with the whole output */
	SOAK_TIMES_OUT, /* timeout_s */
	SOAK_DIES,      /* End{-1}, of a signal */
	SOAK_MAY_DIE,   /* of its slot, which it attacks; else it exits */
	SOAK_REFUSED,   /* ExecError, and nothing runs */
};

struct soak_exec {
	struct relay_exec *record;
	struct relay_request request;
	char command[SOAK_COMMAND];
	char *long_command;      /* instead of it, ours to free */
	char mark[64];           /* on the command line of what it starts */
	unsigned variant;        /* 1: other work under an id that was used before */
	struct soak_exec *older; /* of the same id */

	/* What is right. */
	enum soak_natural natural;
	int32_t code;
	const char *refusal;
	struct soak_output out, err;
	bool open_ended; /* any prefix of its output will do */
	bool keeps;      /* leaves something in the background */
	bool lasts;      /* which does not end by itself */

	/* What happened to it. */
	bool aborted;
	bool hit; /* a slot was attacked while it was open, or just before */
	bool redelivered;
	unsigned lost; /* streams, with it open on them */
	unsigned runs;

	/* On the connection that it was sent on last. */
	unsigned attach;
	unsigned pending; /* answers that may come */
	unsigned owed;    /* answers that must */
	uint64_t out_at;
	uint64_t err_at;
	bool before_goaway; /* sent before the relay said it */

	/* The answer that was decided, once it was seen. */
	bool decided;
	bool answered_here; /* on this connection */
	int32_t decided_code;
	char decided_message[64]; /* of an ExecError; empty: an End */
};

/* Makes exec the command of one kind, by the dice. Its id, mark and command are set. */
void kinds_fill(struct soak_exec *exec, uint64_t id, unsigned variant);
/* Bytes from and on of a stream are these. */
bool kinds_match(const struct soak_output *output, uint64_t from, const uint8_t *data, size_t size);
void kinds_free(struct soak_exec *exec);
/* One of a crowd: servers left behind, big inputs, short ones, floods. */
#define SOAK_CROWDS 4u
void kinds_crowd(struct soak_exec *exec, uint64_t id, uint32_t crowd);
/* A command of the soak's own, that exits with 0 and prints nothing. */
void kinds_command(struct soak_exec *exec, uint64_t id, const char *command);
/* One that is refused at once. */
void kinds_refused(struct soak_exec *exec, uint64_t id);

/* --- the life that is lived --- */

struct soak_totals {
	uint64_t steps, rounds, lives, sent, redelivered, reused, aborts, replays, refusals, timeouts, killed,
	    exits, losses, collisions, bytes, netd_kills, cuts, goaways, stalls, slot_kills, warden_kills,
	    minders_evicted;
};

struct soak {
	struct stage *stage;
	uint64_t seed; /* of this life */
	uint64_t step;
	unsigned slots; /* WORKER_MAX_CONCURRENT */
	bool keep;
	bool tls;
	unsigned drain_s;             /* WORKER_DRAIN_S */
	char ran[FOLDER_PATH_MAX];    /* a line "id variant" for each run */
	char kept[FOLDER_PATH_MAX];   /* pids of what was left behind */
	char status[FOLDER_PATH_MAX]; /* STATUS_FILE */
	off_t ran_read;
	struct soak_exec execs[SOAK_EXECS + 2]; /* and those of the rest */
	unsigned count;
	uint64_t first_id; /* of this round */

	bool cut;      /* the connection was or will be lost, by us */
	bool goaway;   /* said on this connection */
	bool stopping; /* SIGTERM was sent */
	bool stalled;
	bool warden_killed; /* in this life */
	bool slots_hit;     /* in this life */
	bool round_hit;     /* in this round */
	unsigned deaths;    /* of slots and wardens, that execd will have told of when it knows of all */
	unsigned busy_max;  /* most that were open at once since the last rest */
	size_t held_max;    /* bytes of theirs */
	char blame[512];    /* the first thing that was wrong */
	struct soak_totals *totals;
};

extern struct soak soak;

/* Notes the first thing that is wrong; the next soak_run ends the test with it. */
void soak_blame(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What the relay complains of when a connection was killed. */
void soak_forgive(void);
/* Ends the test if something is wrong. */
void soak_check(void);
/* A line of the history that a failure shows. */
void soak_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The relay runs so long, and what came is judged. */
void soak_run(uint64_t ms);
/* Until done says so; at the end of the time the test fails, naming what. */
void soak_wait(bool (*done)(const void *arg), const void *arg, uint64_t timeout_ms, const char *what);

/* --- model --- */

const struct relay_observer *model_observer(void);
void model_send(void); /* a new exec */
void model_send_crowd(uint32_t crowd, uint32_t count);
void model_send_command(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct soak_exec *model_send_refused(void);
void model_send_again(struct soak_exec *exec); /* a redelivery */
void model_reuse(struct soak_exec *older);     /* its id for other work */
void model_abort(struct soak_exec *exec);
/* The last of an id, of this round. NULL: there is none. */
struct soak_exec *model_newest(uint64_t id);
/* It was sent last on the connection that is there now. */
bool model_is_here(const struct soak_exec *exec);
/* No other work came under its id since. */
bool model_is_last(const struct soak_exec *exec);
/* A GOAWAY goes out before what waits in the relay. */
void model_overtaken(void);
/* The connection is gone: what was open on it is lost. */
void model_lost(void);
/* Execs whose answers are owed. */
unsigned model_owed(void);
unsigned model_open(void);
/* All that is open may end by the fault that comes now, and so may what is sent before execd has seen it. */
void model_hit(void);
/* What finished commands left behind with keep lives. */
void model_judge_kept(void);
/* Reads which commands have run, and judges the round. Nothing is open. */
void model_judge(void);
void model_forget(void);

/* --- faults --- */

/* One fault, by the dice. */
void faults_step(void);
/* Takes back what lasts. */
void faults_calm(void);
/* Where the connection is gone: waits for the next one and sends some of what was lost again, by the dice. */
void faults_recover(void);

/* --- census --- */

/* Before the first round. */
void census_begin(void);
/* netd's memory, now. */
void census_glance(void);
/* In the rest at a round's end: processes, descriptors, memory, the status file. */
void census_rest(void);
/* Kills what was left behind, where commands cannot: those of another warden's Landlock domain. */
void census_end_kept(void);
/* Nobody with mark on its command line lives. */
bool census_none(const char *mark);
/* A number of the status file; it is written once a second. */
uint64_t census_status(const char *key);

/* --- life --- */

/* Relay, worker and model, by the dice; and the end, with work under way. */
void life_begin(uint64_t seed, struct soak_totals *totals);
void life_end(void);
/* The dice for the next step, on a connection that is there. */
void life_next_step(void);
/* One life by its seed; ends early, after a round, when the time is over. */
void life_run(uint64_t seed, uint64_t until_ms, struct soak_totals *totals);
/* Lives from a seed on until the time is over; at least one. */
void life_many(uint64_t seed, uint64_t for_ms);
/* For .fini: the seed, the history, the worker's log after a failure. */
void life_fini(void);
/* SOAK_SEED, else a new one; SOAK_S, else otherwise. */
uint64_t life_seed(void);
uint64_t life_time_ms(uint64_t otherwise_s);

#endif
