#include "netd/input.h"

#include "common/buf.h"
#include "common/fd.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t held_by_all;

size_t input_held(void)
{
	return held_by_all;
}

uint8_t input_check(const struct frames_server *exec)
{
	if (exec->command_len > LIMIT_COMMAND)
		return REFUSAL_COMMAND_LONG;
	if (exec->input_len > LIMIT_STDIN)
		return REFUSAL_STDIN_LONG;
	if (exec->command_len > 0 && memchr(exec->command, 0, exec->command_len))
		return REFUSAL_COMMAND_NUL;
	if (exec->command_len + exec->input_len > LIMIT_HELD - held_by_all)
		return REFUSAL_MEMORY;
	return 0;
}

static void free_digest(EVP_MD_CTX **c)
{
	EVP_MD_CTX_free(*c);
}

static bool add_bytes(EVP_MD_CTX *c, const uint8_t *at, size_t size)
{
	uint8_t length[8];

	buf_put_u64(length, size);
	if (EVP_DigestUpdate(c, length, sizeof length) != 1)
		return false;
	return size == 0 || EVP_DigestUpdate(c, at, size) == 1;
}

int input_fingerprint(const struct frames_server *exec, uint8_t ret[CHANNEL_FINGERPRINT])
{
	__attribute__((cleanup(free_digest))) EVP_MD_CTX *c = EVP_MD_CTX_new();
	uint8_t tail[5];

	if (!c)
		return -ENOMEM;
	buf_put_u32(tail, exec->timeout_s);
	tail[4] = exec->streaming;
	if (EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1 ||
	    !add_bytes(c, exec->command, exec->command_len) || !add_bytes(c, exec->input, exec->input_len) ||
	    EVP_DigestUpdate(c, tail, sizeof tail) != 1 || EVP_DigestFinal_ex(c, ret, NULL) != 1)
		return -EIO;
	return 0;
}

/* Unknown fields may be most of a message: command and stdin move to its front, and the rest is given back.
 * The lower of the two moves first; they never overlap. */
static uint8_t *pack(uint8_t *message, struct frames_server *exec)
{
	bool command_first = !exec->input || (exec->command && exec->command < exec->input);
	const uint8_t **piece[2] = {&exec->command, &exec->input};
	size_t length[2] = {exec->command_len, exec->input_len};
	size_t used = 0;
	uint8_t *smaller;

	for (int i = 0; i < 2; i++) {
		int which = command_first ? i : 1 - i;

		if (length[which] == 0)
			continue;
		memmove(message + used, *piece[which], length[which]);
		used += length[which];
	}
	smaller = realloc(message, used > 0 ? used : 1);
	if (smaller)
		message = smaller;
	exec->command = command_first ? message : message + exec->input_len;
	exec->input = command_first ? message + exec->command_len : message;
	return message;
}

void input_hold(struct input *in, uint8_t *message, size_t size, const struct frames_server *exec)
{
	struct frames_server where = *exec;

	*in = (struct input){.source = {.fd = -1}};
	if (size > exec->command_len + exec->input_len + INPUT_SLACK)
		message = pack(message, &where);
	in->message = message;
	in->command = where.command;
	in->command_len = where.command_len;
	in->bytes = where.input;
	in->left = where.input_len;
	in->held = in->command_len + in->left;
	held_by_all += in->held;
}

static void forget_message(struct input *in)
{
	free(in->message);
	held_by_all -= in->held;
	in->message = NULL;
	in->command = in->bytes = NULL;
	in->command_len = in->left = in->held = 0;
}

static void close_end(struct input *in)
{
	if (in->source.fd < 0)
		return;
	loop_del(in->loop, &in->source);
	fd_close(&in->source.fd);
}

/* Level-triggered: a turn writes once and leaves the rest to the next pass. */
static void writable(struct loop_source *source, uint32_t events)
{
	struct input *in = source->owner;
	size_t size = in->left < INPUT_WRITE ? in->left : INPUT_WRITE;
	ssize_t n = write(source->fd, in->bytes, size);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		in->bytes += n;
		in->left -= (size_t)n;
	}
	if (n > 0 && in->left > 0)
		return;
	/* All is written, or nobody reads (EPIPE). */
	close_end(in);
	forget_message(in);
}

int input_begin(struct input *in, struct loop *loop, int fd)
{
	FD_CLOSE int end = fd;
	int err;

	if (in->left == 0) {
		forget_message(in);
		return 0;
	}
	in->loop = loop;
	in->source = (struct loop_source){.fd = end, .ready = writable, .owner = in};
	err = loop_add(loop, &in->source, EPOLLOUT);
	if (err < 0) {
		in->source.fd = -1;
		return err;
	}
	fd_steal(&end);
	writable(&in->source, EPOLLOUT);
	return 0;
}

void input_drop(struct input *in)
{
	close_end(in);
	forget_message(in);
}
