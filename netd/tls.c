#include "netd/tls.h"

#include "common/channel.h"
#include "common/log.h"
#include "netd/tls_client.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	free(tls);
}

const char *tls_version(const struct tls *tls)
{
	return SSL_get_version(tls->ssl);
}

static void say_certificate(const struct tls *tls, struct buf_text *why)
{
	long result = SSL_get_verify_result(tls->ssl);

	switch (result) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		buf_text_addz(why, "the relay's certificate has expired");
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		buf_text_addf(why, "the relay's certificate is for another host, not for %s", tls->name);
		break;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		buf_text_addf(why, "the relay's certificate is from an unknown CA (%s)",
			      X509_verify_cert_error_string(result));
		break;
	default:
		buf_text_addf(why, "the relay's certificate is not accepted: %s",
			      X509_verify_cert_error_string(result));
		break;
	}
}

static bool is_alert(int reason)
{
	return reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
}

/* RFC 8446 6.2: bad_certificate to certificate_unknown, unknown_ca, access_denied. */
static bool is_certificate_alert(int reason)
{
	int alert = reason - SSL_AD_REASON_OFFSET;

	return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
	       alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_ACCESS_DENIED;
}

/* As a plaintext server does, to which our first record is nonsense. */
static void say_closed(const struct tls *tls, int saved_errno, struct buf_text *why)
{
	bool wordless = BIO_number_read(SSL_get_rbio(tls->ssl)) == 0;

	if (saved_errno != 0)
		buf_text_addz(why, log_errno(saved_errno));
	else
		buf_text_addz(why, "the peer closed the connection");
	if (wordless && (saved_errno == 0 || saved_errno == ECONNRESET || saved_errno == EPIPE))
		buf_text_addz(why, " without a word: RELAY_TLS=0?");
}

/* Why the last call failed, in words; from OpenSSL's queue, then from errno. */
static void say_why(const struct tls *tls, int saved_errno, struct buf_text *why)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);
	const char *text = e ? ERR_reason_error_string(e) : NULL;

	if (e == 0 || ERR_GET_LIB(e) == ERR_LIB_SYS) {
		say_closed(tls, saved_errno, why);
		return;
	}
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		say_certificate(tls, why);
	else if (is_alert(reason) && tls->certificate_wanted && !tls->has_certificate)
		buf_text_addf(why, "the relay wants a client certificate (RELAY_CERT_FILE): %s",
			      text ? text : "alert");
	else if (is_certificate_alert(reason) && tls->certificate_wanted)
		buf_text_addf(why, "the relay refused the client certificate (RELAY_CERT_FILE): %s",
			      text ? text : "alert");
	else if (is_alert(reason))
		buf_text_addf(why, "the relay refused: %s", text ? text : "alert");
	else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG)
		buf_text_addf(why, "the peer does not speak TLS (%s): RELAY_TLS=0?", text);
	else if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
		buf_text_addf(why, "the peer speaks no TLS 1.2 or newer (%s)", text);
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
	else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		say_closed(tls, 0, why);
#endif
	else
		buf_text_addz(why, text ? text : "unknown error");
}

/* Verified already, else the handshake would have failed; ALPN is not: a peer without it finishes the
 * handshake. */
static int finish_handshake(struct tls *tls, struct buf_text *why, uint8_t *ret_class)
{
	const unsigned char *protocol;
	unsigned size;

	SSL_get0_alpn_selected(tls->ssl, &protocol, &size);
	if (size != 2 || memcmp(protocol, "h2", 2) != 0) {
		buf_text_addz(why, "the peer does not speak HTTP/2 (ALPN)");
		*ret_class = CHANNEL_CLOSE_NOT_HTTP2;
		return -EPROTO;
	}
	SSL_certs_clear(tls->ssl);
	return 1;
}

/* A refusal of ALPN, or an answer to it that was not offered (newer OpenSSL finds that itself). */
static bool alpn_failed(void)
{
	const char *function = "";
	int reason = ERR_GET_REASON(ERR_peek_error_all(NULL, NULL, &function, NULL, NULL));

	return reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL ||
	       (reason == SSL_R_BAD_EXTENSION && function && strstr(function, "alpn"));
}

int tls_handshake(struct tls *tls, uint32_t *ret_events, struct buf_text *why, uint8_t *ret_class)
{
	int n, error;

	ERR_clear_error();
	errno = 0;
	n = SSL_do_handshake(tls->ssl);
	if (n == 1)
		return finish_handshake(tls, why, ret_class);
	error = SSL_get_error(tls->ssl, n);
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
		*ret_events = error == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
		return 0;
	}
	tls->broken = true;
	if (alpn_failed()) {
		buf_text_addz(why, "the peer does not speak HTTP/2 (ALPN)");
		*ret_class = CHANNEL_CLOSE_NOT_HTTP2;
		return -EPROTO;
	}
	buf_text_addz(why, "TLS handshake: ");
	say_why(tls, errno, why);
	*ret_class = CHANNEL_CLOSE_TLS;
	return -EPROTO;
}

/* With TLS 1.3 we are done before the relay looks at our certificate, and its alert may not reach us: gRPC's
 * C core sends none, and a reset overtakes it. saved_errno: 0 for an end of the stream. */
static void suspect_certificate(struct tls *tls, int saved_errno)
{
	struct buf_text why;

	if (tls->heard || !tls->certificate_wanted)
		return;
	buf_text_init(&why, tls->why, sizeof tls->why);
	buf_text_addz(&why, saved_errno != 0 ? log_errno(saved_errno) : "the peer closed the connection");
	buf_text_addz(&why, tls->has_certificate
				? "; it may have refused the client certificate (RELAY_CERT_FILE)"
				: "; it asks for a client certificate (RELAY_CERT_FILE)");
}

/* A read or write that gave nothing. */
static ssize_t failed(struct tls *tls, int n, bool *ret_other_direction, int other_direction)
{
	int saved = errno, error = SSL_get_error(tls->ssl, n);
	struct buf_text why;

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
		*ret_other_direction = error == other_direction;
		return -EAGAIN;
	}
	tls->ended = error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && saved == 0);
	tls->broken = error != SSL_ERROR_ZERO_RETURN;
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		tls->ended = true;
#endif
	if (tls->ended || error == SSL_ERROR_SYSCALL) {
		suspect_certificate(tls, tls->ended ? 0 : saved);
		return tls->ended ? 0 : -saved;
	}
	tls->deaf = true;
	buf_text_init(&why, tls->why, sizeof tls->why);
	say_why(tls, saved, &why);
	return -EPROTO;
}

ssize_t tls_read(struct tls *tls, void *buf, size_t size)
{
	int n;

	if (tls->ended)
		return 0;
	if (tls->deaf)
		return -EPIPE;
	ERR_clear_error();
	errno = 0;
	tls->read_wants_write = false;
	n = SSL_read(tls->ssl, buf, size > INT32_MAX ? INT32_MAX : (int)size);
	tls->may_hold_more = n > 0;
	if (n > 0) {
		tls->heard = true;
		tls->why[0] = '\0'; /* of a write that failed before */
	}
	return n > 0 ? n : failed(tls, n, &tls->read_wants_write, SSL_ERROR_WANT_WRITE);
}

/* Copies up to one record together; a first piece that fills one alone is taken where it is. */
static const void *join(struct tls *tls, const struct iovec *iov, int count, size_t *ret_size)
{
	size_t used = 0;

	if (count > 0 && iov[0].iov_len >= TLS_RECORD) {
		*ret_size = TLS_RECORD;
		return iov[0].iov_base;
	}
	for (int i = 0; i < count && used < TLS_RECORD; i++) {
		size_t n = iov[i].iov_len < TLS_RECORD - used ? iov[i].iov_len : TLS_RECORD - used;

		memcpy(tls->record + used, iov[i].iov_base, n);
		used += n;
	}
	*ret_size = used;
	return tls->record;
}

ssize_t tls_writev(struct tls *tls, const struct iovec *iov, int count)
{
	size_t size;
	const void *bytes;
	ssize_t result;
	int n;

	if (tls->broken)
		return -EPIPE;
	bytes = join(tls, iov, count, &size);
	if (size == 0)
		return 0;
	/* Encrypted already: OpenSSL only pushes the rest out, and wants to hear the same size. */
	if (tls->unfinished > 0)
		size = tls->unfinished;
	ERR_clear_error();
	errno = 0;
	tls->write_wants_read = false;
	n = SSL_write(tls->ssl, bytes, (int)size);
	if (n > 0) {
		tls->unfinished = 0;
		return n;
	}
	result = failed(tls, n, &tls->write_wants_read, SSL_ERROR_WANT_READ);
	if (result == -EAGAIN)
		tls->unfinished = size;
	return result == 0 ? -EPIPE : result;
}

bool tls_read_wants_write(const struct tls *tls)
{
	return tls->read_wants_write;
}

bool tls_write_wants_read(const struct tls *tls)
{
	return tls->write_wants_read;
}

bool tls_pending(const struct tls *tls)
{
	return tls->may_hold_more && SSL_has_pending(tls->ssl);
}

const char *tls_why(const struct tls *tls)
{
	return tls->why[0] != '\0' ? tls->why : NULL;
}

void tls_forget(struct tls *tls)
{
	if (tls->unfinished == 0)
		explicit_bzero(tls->record, sizeof tls->record);
}

void tls_close_notify(struct tls *tls)
{
	if (tls->broken || tls->unfinished > 0)
		return;
	ERR_clear_error();
	SSL_shutdown(tls->ssl);
}
