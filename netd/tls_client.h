/* What tls.c and tls_setup.c share. */
#ifndef NETD_TLS_CLIENT_H
#define NETD_TLS_CLIENT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#define TLS_RECORD 16384u /* RFC 8446 5.1: most that one record holds */

struct tls {
	SSL *ssl;
	char name[256];          /* that the certificate must be for */
	bool has_certificate;    /* we have one to show */
	bool certificate_wanted; /* the peer asked for one */
	bool heard;              /* a byte has come since the handshake */
	bool broken;             /* nothing may be sent any more, not even close_notify */
	bool deaf;               /* nothing can be read any more either: a write that fails leaves that */
	bool ended;              /* the peer's side is over, with close_notify or without */
	bool read_wants_write;
	bool write_wants_read;
	bool may_hold_more; /* the last read gave bytes, so there may be more inside */
	size_t unfinished;  /* size of a record that the socket did not take whole */
	char why[512];      /* tls_why */
	char record[TLS_RECORD];
};

#endif
