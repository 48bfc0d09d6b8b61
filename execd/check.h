/* `execd --check`: what is in force, in plain lines on stdout. */
#ifndef EXECD_CHECK_H
#define EXECD_CHECK_H

#include "execd/config.h"

struct slots_plan;

/* When all has been prepared as for a start. */
void check_report(const struct config *config, const struct slots_plan *plan);

#endif
