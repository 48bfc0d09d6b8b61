/* Memory of OpenSSL that is wiped when it is given back: its own clean-up leaves parts of a private key that
 * its decoders had copied. */
#ifndef NETD_WIPE_H
#define NETD_WIPE_H

/* Before anything of OpenSSL's is called. 0, or -EBUSY: it has memory already. */
int wipe_openssl(void);

#endif
