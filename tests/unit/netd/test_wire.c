/* The numbers and types of sandbox.v1, which every relay knows: a table written apart from the .proto. */
#include "proto/sandbox/v1/sandbox.pb-c.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char *type_of(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_UINT64:
		return "uint64";
	case PROTOBUF_C_TYPE_UINT32:
		return "uint32";
	case PROTOBUF_C_TYPE_SINT32:
		return "sint32";
	case PROTOBUF_C_TYPE_BOOL:
		return "bool";
	case PROTOBUF_C_TYPE_STRING:
		return "string";
	case PROTOBUF_C_TYPE_BYTES:
		return "bytes";
	case PROTOBUF_C_TYPE_ENUM:
		return ((const ProtobufCEnumDescriptor *)f->descriptor)->name;
	case PROTOBUF_C_TYPE_MESSAGE:
		return ((const ProtobufCMessageDescriptor *)f->descriptor)->name;
	default:
		return "another type";
	}
}

static const char *label_of(const ProtobufCFieldDescriptor *f)
{
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return "repeated ";
	return f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF ? "oneof " : "";
}

/* "name: label type field = number; ..." in the order of the numbers. */
static void describe(const ProtobufCMessageDescriptor *m, char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size, "%s:", m->name);

	for (unsigned i = 0; i < m->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->fields[i];

		used += (size_t)snprintf(text + used, size - used, " %s%s %s = %u;", label_of(f), type_of(f),
					 f->name, f->id);
		cr_assert_lt(used, size);
	}
}

Test(wire, messages_have_these_fields)
{
#define M(name) &sandbox__v1__##name##__descriptor
	static const struct {
		const ProtobufCMessageDescriptor *message;
		const char *expected;
	} rows[] = {
	    {M(worker_frame),
	     "sandbox.v1.WorkerFrame: oneof sandbox.v1.Hello hello = 1; oneof sandbox.v1.Heartbeat heartbeat "
	     "= 2; oneof sandbox.v1.Chunk chunk = 3; oneof sandbox.v1.End end = 4; oneof "
	     "sandbox.v1.ExecError error = 5;"},
	    {M(server_frame), "sandbox.v1.ServerFrame: oneof sandbox.v1.Exec exec = 1; oneof "
			      "sandbox.v1.Abort abort = 2;"},
	    {M(hello), "sandbox.v1.Hello: string sandbox_id = 1; repeated sandbox.v1.Hello.LabelsEntry "
		       "labels = 2; repeated string capabilities = 3; string image = 4; string arch = 5; "
		       "uint32 capacity_max = 6; string trust = 7;"},
	    {M(hello__labels_entry), "sandbox.v1.Hello.LabelsEntry: string key = 1; string value = 2;"},
	    {M(heartbeat), "sandbox.v1.Heartbeat:"},
	    {M(exec), "sandbox.v1.Exec: uint64 req_id = 1; string command = 2; bytes stdin = 3; uint32 "
		      "timeout_s = 4; bool streaming = 5;"},
	    {M(abort), "sandbox.v1.Abort: uint64 req_id = 1;"},
	    {M(chunk), "sandbox.v1.Chunk: uint64 req_id = 1; bytes data = 2; sandbox.v1.Stream stream = 3;"},
	    {M(end), "sandbox.v1.End: uint64 req_id = 1; sint32 exit_code = 2; bool truncated = 3;"},
	    {M(exec_error), "sandbox.v1.ExecError: uint64 req_id = 1; string message = 2;"},
	    {M(exec_request), "sandbox.v1.ExecRequest: string sandbox_id = 1; sandbox.v1.Exec exec = 2;"},
	    {M(exec_event), "sandbox.v1.ExecEvent: oneof sandbox.v1.Chunk chunk = 1; oneof sandbox.v1.End "
			    "end = 2; oneof sandbox.v1.ExecError error = 3;"},
	    {M(abort_request), "sandbox.v1.AbortRequest: string sandbox_id = 1; uint64 req_id = 2;"},
	    {M(abort_response), "sandbox.v1.AbortResponse:"},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		describe(rows[i].message, text, sizeof text);
		cr_assert_str_eq(text, rows[i].expected);
	}
}

Test(wire, streams_have_these_values)
{
	static const char *const names[] = {"STREAM_UNSPECIFIED", "STREAM_STDOUT", "STREAM_STDERR"};
	const ProtobufCEnumDescriptor *e = &sandbox__v1__stream__descriptor;

	cr_assert_eq(e->n_values, 3);
	for (int i = 0; i < 3; i++) {
		const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(e, i);

		cr_assert_not_null(v);
		cr_assert_str_eq(v->name, names[i]);
	}
}

static void has_method(const ProtobufCServiceDescriptor *s, const char *name, const char *in, const char *out)
{
	const ProtobufCMethodDescriptor *m = protobuf_c_service_descriptor_get_method_by_name(s, name);

	cr_assert_not_null(m);
	cr_assert_str_eq(m->input->name, in);
	cr_assert_str_eq(m->output->name, out);
}

Test(wire, services_have_these_methods)
{
	const ProtobufCServiceDescriptor *worker = &sandbox__v1__sandbox_worker__descriptor;
	const ProtobufCServiceDescriptor *exec = &sandbox__v1__sandbox_exec__descriptor;

	cr_assert_str_eq(worker->name, "sandbox.v1.SandboxWorker");
	cr_assert_eq(worker->n_methods, 1);
	has_method(worker, "Attach", "sandbox.v1.WorkerFrame", "sandbox.v1.ServerFrame");
	cr_assert_str_eq(exec->name, "sandbox.v1.SandboxExec");
	cr_assert_eq(exec->n_methods, 2);
	has_method(exec, "Exec", "sandbox.v1.ExecRequest", "sandbox.v1.ExecEvent");
	has_method(exec, "Abort", "sandbox.v1.AbortRequest", "sandbox.v1.AbortResponse");
}
