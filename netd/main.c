/* netd: everything that faces the network. execd starts it with the channel on descriptor 3, for one
 * connection. */
#include "netd/attach.h"
#include "netd/jail.h"
#include "netd/records.h"
#include "netd/wipe.h"

#include "common/dispositions.h"
#include "common/log.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: netd [--help | --version]\n"
    "The network side of sandbox-worker. It is started by execd, which passes it a channel\n"
    "on descriptor 3; there is nothing to run by hand. See netd(8).\n";

static void answer_options(int argc, char **argv)
{
	if (argc < 2)
		return;
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		exit(0);
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("netd " WORKER_VERSION);
		exit(0);
	}
	fputs(usage, stderr);
	exit(2);
}

static void check_channel(void)
{
	int type = 0;
	socklen_t size = sizeof type;

	if (getsockopt(CHANNEL_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
		log_fatal(2, "started by hand: descriptor 3 is not execd's channel", LOG_FIELDS());
}

/* execd starts a copy that nobody may read, which the kernel makes non-dumpable from its first instruction
 * on. Any other start leaves a moment in which a process of the same user can open our memory, and read there
 * what comes later. 2 (fs.suid_dumpable) is for root only. */
static bool is_open_to_its_user(void)
{
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}

/* Whatever its parent was: a name, no core and no tracer, no other descriptors, no signal but SIGKILL and
 * faults. The life of this process hangs on its channel alone: a SIGINT or SIGTERM for the whole group is
 * execd's to answer, which then says DRAIN. */
static void own_process(void)
{
	prctl(PR_SET_NAME, "netd");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		fatalx("cannot become non-dumpable");
	close_range(CHANNEL_FD + 1, ~0u, 0);
	dispositions_ignore_all_but(DISPOSITIONS_FAULTS);
	(void)log_own_stderr(); /* where execd could not make it its own, we cannot either: a timer */
}

/* From the settings to the verdict. The order is the point: files are read, then the jail shuts, then the
 * secrets come. */
static int serve(struct records *records, struct settings *settings, struct attach *attach, bool was_open)
{
	struct loop loop;
	int err = records_await(records, CHANNEL_JAIL);

	/* Not before: how to log is a setting. */
	if (err == 0 && was_open)
		log_warn("started dumpable: a process of the same user may have opened this one's memory");
	if (err == 0)
		err = transport_prepare(settings);
	if (err == 0)
		err = loop_init(&loop);
	if (err == 0)
		err = jail_enter(settings);
	if (err == 0)
		err = records_say(records, CHANNEL_JAILED);
	if (err == 0)
		err = records_await(records, CHANNEL_DIAL);
	if (err == 0)
		err = attach_run(attach, &loop, settings, records);
	settings_wipe(settings, true);
	return err;
}

static struct channel_closed closed_as(uint8_t close_class)
{
	return (struct channel_closed){.close_class = close_class, .grpc_status = CHANNEL_NO_STATUS};
}

int main(int argc, char **argv)
{
	static struct settings settings;
	static struct records records;
	static struct attach attach;
	bool was_open = is_open_to_its_user();
	int err;

	log_init("netd", LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	answer_options(argc, argv);
	check_channel();
	own_process();
	if (wipe_openssl() < 0)
		fatalx("OpenSSL does not take our allocator");
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL); /* no file of the image's has a say */
	tzset(); /* gmtime, which checks a certificate's dates, reads /etc/localtime once, and the jail opens
		    none */
	settings_init(&settings);
	records_init(&records, CHANNEL_FD, &settings);
	err = serve(&records, &settings, &attach, was_open);
	if (err == -ECANCELED)
		attach.closed = closed_as(CHANNEL_CLOSE_DRAINED);
	else if (err < 0 && err != -EPIPE)
		log_error("netd gives up", LOG_ERR(err));
	if (err < 0 && err != -ECANCELED)
		attach.closed = closed_as(CHANNEL_CLOSE_INTERNAL);
	if (records.channel.phase >= CHANNEL_PHASE_CREDENTIALS)
		records_closed(&records, &attach.closed);
	return err < 0 && err != -ECANCELED ? 1 : 0;
}
