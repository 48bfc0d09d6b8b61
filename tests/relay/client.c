#include "tests/relay/client.h"

#include "common/fd.h"
#include "tests/relay/wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGE_MAX (96u * 1024 * 1024)

static struct relay_call *call_of(nghttp2_session *session, int32_t id)
{
	return id > 0 ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *user)
{
	struct relay_call *call = call_of(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!call)
		return 0;
	if (name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
		call->grpc_status = atoi((const char *)value);
	if (name_size == 12 && memcmp(name, "grpc-message", 12) == 0)
		snprintf(call->grpc_message, sizeof call->grpc_message, "%.*s", (int)value_size,
			 (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t size,
		   void *user)
{
	struct relay_call *call = call_of(session, id);
	const uint8_t *at;
	size_t message_size;

	(void)flags;
	(void)user;
	if (!call)
		return 0;
	relay_bytes_add(&call->in, data, size);
	while (relay_grpc_peek(&call->in, MESSAGE_MAX, &at, &message_size) > 0) {
		if (call->message)
			call->message(call, at, message_size);
		relay_bytes_drop(&call->in, RELAY_GRPC_PREFIX + message_size);
	}
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct relay_call *call = call_of(session, id);

	(void)code;
	(void)user;
	if (call)
		call->done = true;
	return 0;
}

static ssize_t provide(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
		       nghttp2_data_source *source, void *user)
{
	struct relay_call *call = source->ptr;
	size_t n = call->out.size < room ? call->out.size : room;

	(void)session;
	(void)id;
	(void)user;
	if (n > 0)
		memcpy(buf, call->out.at, n);
	relay_bytes_drop(&call->out, n);
	if (call->out.size == 0)
		*flags = NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct relay_client *client = source->owner;

	if (((events & ~(uint32_t)EPOLLOUT) && relay_io_read(&client->io, NULL) < 0) ||
	    relay_io_flush(&client->io) < 0) {
		client->over = true;
		client->io.paused = true;
		relay_io_watch(&client->io);
	}
}

static int dial(const char *address)
{
	char host[256];
	const char *colon = strrchr(address, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
	FD_CLOSE int fd = -1;
	size_t size;
	int r;

	if (!colon || (size_t)(colon - address) >= sizeof host)
		return -EINVAL;
	size = (size_t)(colon - address);
	if (size >= 2 && address[0] == '[' && address[size - 1] == ']')
		address++, size -= 2;
	snprintf(host, sizeof host, "%.*s", (int)size, address);
	if (getaddrinfo(host, colon + 1, &hints, &all) != 0)
		return -ENOENT;
	r = -ECONNREFUSED;
	for (const struct addrinfo *a = all; a && r < 0; a = a->ai_next) {
		fd_close(&fd);
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : -errno;
	}
	freeaddrinfo(all);
	return r < 0 ? r : fd_steal(&fd);
}

static int make_session(struct relay_client *client)
{
	nghttp2_session_callbacks *cb = NULL;
	int r;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	r = nghttp2_session_client_new(&client->io.session, cb, client) == 0 ? 0 : -ENOMEM;
	nghttp2_session_callbacks_del(cb);
	return r;
}

int relay_client_open(struct relay_client *client, struct loop *loop, const char *address)
{
	nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1024 * 1024};
	int fd = dial(address);

	if (fd < 0) {
		fprintf(stderr, "cannot connect to %s: %s\n", address, strerror(-fd));
		return fd;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	fd_set_nonblock(fd, true);
	*client = (struct relay_client){.authority = address, .io = {.loop = loop}};
	client->io.source = (struct loop_source){.fd = fd, .ready = on_ready, .owner = client};
	if (make_session(client) < 0 || loop_add(loop, &client->io.source, EPOLLIN) < 0)
		abort();
	nghttp2_submit_settings(client->io.session, NGHTTP2_FLAG_NONE, &window, 1);
	nghttp2_session_set_local_window_size(client->io.session, NGHTTP2_FLAG_NONE, 0, 1024 * 1024);
	client->over = relay_io_flush(&client->io) < 0;
	return 0;
}

void relay_client_close(struct relay_client *client)
{
	nghttp2_session_terminate_session(client->io.session, NGHTTP2_NO_ERROR);
	relay_io_flush(&client->io);
	relay_io_close(&client->io, false);
}

void relay_client_call(struct relay_client *client, struct relay_call *call, const char *path,
		       const struct relay_bytes *message)
{
	const struct {
		const char *name;
		const char *value;
	} headers[] = {
	    {":method", "POST"},
	    {":scheme", "http"},
	    {":path", path},
	    {":authority", client->authority},
	    {"te", "trailers"},
	    {"content-type", "application/grpc"},
	    {"user-agent", "test-relay/" WORKER_VERSION},
	};
	nghttp2_nv nv[sizeof headers / sizeof *headers];
	nghttp2_data_provider provider = {.source.ptr = call, .read_callback = provide};
	uint8_t prefix[RELAY_GRPC_PREFIX];

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		nv[i] =
		    (nghttp2_nv){.namelen = strlen(headers[i].name), .valuelen = strlen(headers[i].value)};
		memcpy(&nv[i].name, &headers[i].name, sizeof nv[i].name);
		memcpy(&nv[i].value, &headers[i].value, sizeof nv[i].value);
	}
	call->grpc_status = -1;
	relay_grpc_prefix(prefix, message->size);
	relay_bytes_add(&call->out, prefix, sizeof prefix);
	relay_bytes_add(&call->out, message->at, message->size);
	if (nghttp2_submit_request(client->io.session, NULL, nv, sizeof nv / sizeof *nv, &provider, call) <
		0 ||
	    relay_io_flush(&client->io) < 0)
		client->over = true;
}

void relay_client_finish(struct relay_call *call)
{
	relay_bytes_free(&call->out);
	relay_bytes_free(&call->in);
}
