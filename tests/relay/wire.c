#include "tests/relay/wire.h"

#include "tests/relay/relay.h"

#include <errno.h>
#include <string.h>

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 10 && *at + i < end; i++) {
		uint8_t byte = (*at)[i];

		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		*at += i + 1;
		*ret_value = value;
		return true;
	}
	return false;
}

bool relay_wire_next(const uint8_t **at, const uint8_t *end, struct relay_field *field)
{
	const uint8_t *p = *at;
	uint64_t key, size;

	if (!take_varint(&p, end, &key))
		return false;
	*field = (struct relay_field){.number = (uint32_t)(key >> 3), .type = (uint32_t)(key & 7)};
	switch (field->type) {
	case 0:
		if (!take_varint(&p, end, &field->value))
			return false;
		break;
	case 1:
	case 5:
	case 2:
		size = field->type == 1 ? 8 : 4;
		if (field->type == 2 && !take_varint(&p, end, &size))
			return false;
		if (size > (size_t)(end - p))
			return false;
		field->at = p;
		field->size = (size_t)size;
		p += size;
		break;
	default:
		return false;
	}
	*at = p;
	return true;
}

static void add_varint(struct relay_bytes *b, uint64_t value)
{
	uint8_t raw[10];
	size_t n = 0;

	do {
		raw[n] = (uint8_t)(value & 0x7f);
		value >>= 7;
		if (value)
			raw[n] |= 0x80;
		n++;
	} while (value);
	relay_bytes_add(b, raw, n);
}

void relay_wire_number(struct relay_bytes *b, uint32_t number, uint64_t value)
{
	if (value == 0)
		return;
	add_varint(b, (uint64_t)number << 3);
	add_varint(b, value);
}

static void add_sized(struct relay_bytes *b, uint32_t number, const void *data, size_t size)
{
	add_varint(b, (uint64_t)number << 3 | 2);
	add_varint(b, size);
	relay_bytes_add(b, data, size);
}

void relay_wire_string(struct relay_bytes *b, uint32_t number, const void *data, size_t size)
{
	if (size > 0)
		add_sized(b, number, data, size);
}

void relay_wire_message(struct relay_bytes *b, uint32_t number, const struct relay_bytes *message)
{
	add_sized(b, number, message->at, message->size);
}

void relay_wire_exec(struct relay_bytes *b, const struct relay_request *r)
{
	size_t command_size = r->command_size || !r->command ? r->command_size : strlen(r->command);

	relay_wire_number(b, 1, r->req_id);
	relay_wire_string(b, 2, r->command, command_size);
	relay_wire_string(b, 3, r->input, r->input_size);
	relay_wire_number(b, 4, r->timeout_s);
	relay_wire_number(b, 5, r->streaming);
}

void relay_grpc_prefix(uint8_t prefix[RELAY_GRPC_PREFIX], size_t size)
{
	prefix[0] = 0;
	for (unsigned i = 0; i < 4; i++)
		prefix[1 + i] = (uint8_t)(size >> (24 - 8 * i));
}

int relay_grpc_peek(const struct relay_bytes *in, size_t limit, const uint8_t **ret_at, size_t *ret_size)
{
	const uint8_t *p = in->at;
	size_t size;

	if (in->size < RELAY_GRPC_PREFIX)
		return 0;
	size = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (p[0] != 0)
		return -EPROTO;
	if (size > limit)
		return -EMSGSIZE;
	if (in->size - RELAY_GRPC_PREFIX < size)
		return 0;
	*ret_at = p + RELAY_GRPC_PREFIX;
	*ret_size = size;
	return 1;
}
