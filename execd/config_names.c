#include "execd/config_names.h"

#include "common/log.h"
#include "execd/config.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define COMPARED 48u /* of a name; no setting is as long */
#define LONG     12u /* a name as long as this may be two slips away, a shorter one only one */

static const char *const prefixes[] = {"SANDBOX_", "RELAY_", "WORKER_", "NETD_", NULL};

static bool has_prefix(const char *name, size_t length)
{
	for (size_t i = 0; prefixes[i]; i++) {
		size_t n = strlen(prefixes[i]);

		if (length >= n && strncasecmp(name, prefixes[i], n) == 0)
			return true;
	}
	return false;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return toupper((unsigned char)a) == toupper((unsigned char)b);
}

/* How many slips make a into b: a letter too many, too few, a wrong one, or two that changed places. */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned rows[3][COMPARED + 1];

	for (unsigned k = 0; k <= b_length; k++)
		rows[0][k] = k;
	for (size_t i = 1; i <= a_length; i++) {
		const unsigned *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
		unsigned *row = rows[i % 3];

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= b_length; k++) {
			row[k] =
			    least(least(above[k], row[k - 1]) + 1, above[k - 1] + !same(a[i - 1], b[k - 1]));
			if (i > 1 && k > 1 && same(a[i - 1], b[k - 2]) && same(a[i - 2], b[k - 1]))
				row[k] = least(row[k], before[k - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

static const char *nearest(const char *name, size_t length, bool ours_only, unsigned *ret_distance)
{
	const char *best = NULL, *setting;

	if (length > COMPARED)
		length = COMPARED;
	for (size_t i = 0; (setting = config_setting_name(i)); i++) {
		size_t n = strlen(setting);
		unsigned d;

		if (ours_only && !has_prefix(setting, n))
			continue;
		/* The rest of a name is soonest forgotten. */
		d = !ours_only && strncasecmp(name, setting, length) == 0
			? 1
			: distance(name, length, setting, n);
		if (!best || d < *ret_distance) {
			best = setting;
			*ret_distance = d;
		}
	}
	return best;
}

bool config_names_is_ours(const char *name, size_t length)
{
	unsigned d = 0;
	const char *setting;

	if (has_prefix(name, length))
		return true;
	setting = nearest(name, length, true, &d);
	return setting && length <= COMPARED && d <= (strlen(setting) >= LONG ? 2u : 1u);
}

const char *config_names_nearest(const char *name, size_t length)
{
	unsigned d = 0;

	return nearest(name, length, false, &d);
}

static bool is_setting(const char *name, size_t length)
{
	const char *setting;

	for (size_t i = 0; (setting = config_setting_name(i)); i++) {
		if (strlen(setting) == length && memcmp(setting, name, length) == 0)
			return true;
	}
	return false;
}

static bool contains(const char *name, size_t length, const char *part)
{
	return memmem(name, length, part, strlen(part)) != NULL;
}

/* In a pod a Service called relay makes RELAY_SERVICE_HOST, RELAY_PORT=tcp://…, RELAY_PORT_8443_TCP and more.
 */
static bool is_service_link(const char *name, size_t length)
{
	static const char port[] = "_PORT";

	if (contains(name, length, "_SERVICE_HOST") || contains(name, length, "_SERVICE_PORT"))
		return true;
	if (contains(name, length, "_PORT_"))
		return contains(name, length, "_TCP") || contains(name, length, "_UDP") ||
		       contains(name, length, "_SCTP");
	return length > sizeof port - 1 &&
	       memcmp(name + length - (sizeof port - 1), port, sizeof port - 1) == 0 &&
	       strstr(name + length, "://") != NULL;
}

static bool came_before(char *const vars[], size_t at, size_t length)
{
	for (size_t i = 0; i < at; i++) {
		if (strncmp(vars[i], vars[at], length + 1) == 0)
			return true;
	}
	return false;
}

void config_names_warn(char *const vars[])
{
	for (size_t i = 0; vars[i]; i++) {
		const char *name = vars[i];
		size_t length = strcspn(name, "=");

		if (name[length] == '=' && config_names_is_ours(name, length) && !is_setting(name, length) &&
		    !is_service_link(name, length) && !came_before(vars, i, length))
			log_warn("unknown setting", LOG_MEM("name", name, length > 64 ? 64 : length),
				 LOG_STR("nearest", config_names_nearest(name, length)));
	}
}
