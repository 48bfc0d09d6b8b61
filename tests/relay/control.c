#include "tests/relay/control.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool relay_control_manner(struct relay_manners *m, const char *text)
{
	const struct {
		const char *name;
		bool *on;
		uint32_t *value; /* NULL: takes none */
	} manners[] = {
	    {"refuse", &m->refuse, NULL},
	    {"mute", &m->mute, NULL},
	    {"no-settings-ack", &m->no_settings_ack, NULL},
	    {"no-ping-ack", &m->no_ping_ack, NULL},
	    {"byte-frames", &m->byte_frames, NULL},
	    {"early-headers", &m->early_headers, NULL},
	    {"hold-window", &m->hold_window, NULL},
	    {"initial-window", &m->set_initial_window, &m->initial_window},
	    {"read-rate", NULL, &m->read_rate},
	};
	size_t size = strcspn(text, "=");

	for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) {
		if (strlen(manners[i].name) != size || memcmp(manners[i].name, text, size) != 0)
			continue;
		if ((text[size] == '=') != (manners[i].value != NULL))
			return false;
		if (manners[i].on)
			*manners[i].on = true;
		if (manners[i].value)
			*manners[i].value = (uint32_t)strtoul(text + size + 1, NULL, 10);
		return true;
	}
	return false;
}

/* The word after name, or NULL when line is another command. */
static const char *argument(const char *line, const char *name)
{
	size_t size = strlen(name);

	if (strncmp(line, name, size) != 0 || (line[size] != ' ' && line[size] != '\0'))
		return NULL;
	return line[size] == ' ' ? line + size + 1 : line + size;
}

bool relay_control_line(struct relay *relay, const char *line)
{
	struct relay_worker *worker = relay_attached(relay);
	const char *a;

	if ((a = argument(line, "manner")))
		return relay_control_manner(relay_manners(relay), a);
	if (!worker)
		return false;
	if (argument(line, "cut"))
		relay_cut(worker, RELAY_CUT_CLOSE);
	else if (argument(line, "reset"))
		relay_cut(worker, RELAY_CUT_RESET);
	else if (argument(line, "middle"))
		relay_cut(worker, RELAY_CUT_MIDDLE);
	else if ((a = argument(line, "stall")))
		relay_stall(worker, strcmp(a, "on") == 0);
	else if ((a = argument(line, "hold")))
		relay_hold_window(worker, strcmp(a, "on") == 0);
	else if ((a = argument(line, "bytes")))
		relay_byte_frames(worker, strcmp(a, "on") == 0);
	else if ((a = argument(line, "rate")))
		relay_read_rate(worker, (uint32_t)strtoul(a, NULL, 10));
	else if ((a = argument(line, "window")))
		relay_shrink_window(worker, (uint32_t)strtoul(a, NULL, 10));
	else if (argument(line, "goaway"))
		relay_goaway(worker);
	else if (argument(line, "calm"))
		relay_calm(worker);
	else if (argument(line, "end"))
		relay_end_stream(worker, 0, NULL);
	else
		return false;
	return true;
}
