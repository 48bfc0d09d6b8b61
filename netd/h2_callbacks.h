/* nghttp2's callbacks: they only record into struct h2 (user_data). Calling send or receive inside one is
 * forbidden by nghttp2. */
#ifndef NETD_H2_CALLBACKS_H
#define NETD_H2_CALLBACKS_H

#include <nghttp2/nghttp2.h>

#define H2_WIPE_FRAME 0xf0u /* type of a frame that never leaves: see h2_forget_request */

/* 0 or -ENOMEM; the caller deletes *ret. */
int h2_callbacks_new(nghttp2_session_callbacks **ret);

#endif
