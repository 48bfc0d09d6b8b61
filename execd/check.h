/* `execd --check`: what is in force, in plain lines on stdout. */
#ifndef EXECD_CHECK_H
#define EXECD_CHECK_H

#include "execd/config.h"

/* After config_read and config_settle. The program's exit code: 0, or 1 when netd is missing. */
int check_report(const struct config *config);

#endif
