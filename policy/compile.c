/* policy-compile: seccomp policies from text to BPF. Runs at build time, on the build machine, and needs
 * nothing of the target: each program is emitted for both architectures, the target's compiler picks one.
 * With -o it writes the C of the build, with -b one filter for SANDBOX_SECCOMP_BPF, else it only checks. */
#include "policy/emit.h"
#include "policy/lint.h"
#include "policy/parse.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLICIES 8
#define CALLS    512

static struct {
	const char *name;
	const char *file;
	struct policy policy;
	struct sock_filter insns[POLICY_ARCHES][BPF_MAXINSNS];
	int counts[POLICY_ARCHES];
} all[POLICIES];
static int all_count;

static const struct {
	const char *name;
	const char *macro;
	uint32_t libseccomp;
} arches[POLICY_ARCHES] = {
    [POLICY_X86_64] = {"x86_64", "__x86_64__", SCMP_ARCH_X86_64},
    [POLICY_AARCH64] = {"aarch64", "__aarch64__", SCMP_ARCH_AARCH64},
};

#if defined(__aarch64__)
#define NATIVE POLICY_AARCH64
#else
#define NATIVE POLICY_X86_64
#endif

static int compile(int i, char *name, const char *file, struct policy_error *error)
{
	int r;

	all[i].name = name;
	all[i].file = file;
	r = policy_parse(all[i].file, &all[i].policy, error);
	if (r == 0 && all[i].policy.count == 0)
		r = policy_fail(error, all[i].file, 0, "no rule");
	if (r == 0)
		r = policy_lint(&all[i].policy, error);
	for (enum policy_arch arch = 0; r == 0 && arch < POLICY_ARCHES; arch++) {
		r = policy_emit(&all[i].policy, arch, all[i].insns[arch], BPF_MAXINSNS, error);
		all[i].counts[arch] = r;
		r = r < 0 ? r : 0;
	}
	return r;
}

/* execd's filter is inherited by netd and by every command. */
static int check_inherited(struct policy_error *error)
{
	int r = 0;

	for (int outer = 0; outer < all_count; outer++) {
		if (strcmp(all[outer].name, "execd") != 0)
			continue;
		for (int inner = 0; r == 0 && inner < all_count; inner++) {
			if (inner != outer)
				r = policy_lint_subset(&all[outer].policy, &all[inner].policy, error);
		}
	}
	return r;
}

static void write_program(FILE *out, int i, enum policy_arch arch)
{
	fprintf(out, "static const struct sock_filter %s_insns[] = {\n", all[i].name);
	for (int n = 0; n < all[i].counts[arch]; n++) {
		const struct sock_filter *f = &all[i].insns[arch][n];

		fprintf(out, "\t{0x%02x, %u, %u, 0x%08x},\n", f->code, f->jt, f->jf, f->k);
	}
	fprintf(out, "};\nconst struct seccomp_program policy_%s = {%s_insns, %d};\n\n", all[i].name,
		all[i].name, all[i].counts[arch]);
}

/* What libseccomp names, and the newer calls that a policy names itself. */
static void write_names(FILE *out, enum policy_arch arch)
{
	fprintf(out, "static const char *const names[] = {\n");
	for (int nr = 0; nr < CALLS; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(arches[arch].libseccomp, nr);
		const char *found = name;

		for (int i = 0; !found && i < all_count; i++) {
			for (unsigned n = 0; !found && n < all[i].policy.count; n++) {
				if (policy_number(&all[i].policy.rules[n], arch, NULL) == nr)
					found = all[i].policy.rules[n].call;
			}
		}
		if (found)
			fprintf(out, "\t[%d] = \"%s\",\n", nr, found);
		free(name);
	}
	fprintf(out, "};\n");
}

static void write_all(FILE *out)
{
	fprintf(out, "/* Made by policy-compile from:");
	for (int i = 0; i < all_count; i++)
		fprintf(out, " %s", all[i].file);
	fprintf(out, " */\n#include \"policy/policy.h\"\n\n#include <stddef.h>\n\n");
	for (enum policy_arch arch = 0; arch < POLICY_ARCHES; arch++) {
		fprintf(out, "#%s defined(%s)\n\n", arch == 0 ? "if" : "elif", arches[arch].macro);
		for (int i = 0; i < all_count; i++)
			write_program(out, i, arch);
		write_names(out, arch);
	}
	fprintf(out,
		"\n#else\n#error \"no seccomp policy for this architecture\"\n#endif\n\n"
		"const char *policy_call_name(int nr)\n{\n"
		"\treturn nr >= 0 && (size_t)nr < sizeof names / sizeof *names ? names[nr] : NULL;\n}\n");
}

static int fail(const struct policy_error *error)
{
	fprintf(stderr, "%s\n", error->text);
	return 1;
}

/* Closes out. */
static int finish(FILE *out, const char *file)
{
	bool failed = ferror(out) != 0;

	if (fclose(out) == 0 && !failed)
		return 0;
	fprintf(stderr, "%s: cannot be written\n", file);
	return 1;
}

static FILE *create(const char *file)
{
	FILE *out = fopen(file, "we");

	if (!out)
		perror(file);
	return out;
}

/* -b */
static int compile_binary(const char *to, enum policy_arch arch, char **files)
{
	struct policy_error error;
	FILE *out;

	if (compile(0, NULL, files[0], &error) < 0)
		return fail(&error);
	out = create(to);
	if (!out)
		return 1;
	fwrite(all[0].insns[arch], sizeof(struct sock_filter), (size_t)all[0].counts[arch], out);
	return finish(out, to);
}

/* -o, or nothing */
static int compile_c(const char *to, char **arguments, int count)
{
	struct policy_error error;
	FILE *out;

	for (; all_count < count; all_count++) {
		char *name = arguments[all_count];
		char *equals = strchr(name, '=');

		if (!equals) {
			fprintf(stderr, "%s: expected name=file\n", name);
			return 2;
		}
		*equals = '\0';
		if (compile(all_count, name, equals + 1, &error) < 0)
			return fail(&error);
	}
	if (check_inherited(&error) < 0)
		return fail(&error);
	if (!to)
		return 0;
	out = create(to);
	if (!out)
		return 1;
	write_all(out);
	return finish(out, to);
}

/* POLICY_ARCHES: none of that name. */
static enum policy_arch find_arch(const char *name)
{
	enum policy_arch arch = 0;

	while (arch < POLICY_ARCHES && strcmp(name, arches[arch].name) != 0)
		arch++;
	return arch;
}

static int usage(void)
{
	fprintf(stderr, "usage: policy-compile [-o file.c] name=file.policy ...\n"
			"       policy-compile -b file.bpf [-a x86_64|aarch64] file.policy\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *c_file = NULL, *binary = NULL;
	enum policy_arch arch = NATIVE;
	int option;

	while ((option = getopt(argc, argv, "a:b:o:")) != -1) {
		if (option == 'o')
			c_file = optarg;
		else if (option == 'b')
			binary = optarg;
		else if (option == 'a')
			arch = find_arch(optarg);
		else
			return usage();
	}
	argc -= optind;
	argv += optind;
	if (argc < 1 || argc > POLICIES || (binary && (c_file || argc != 1)) || arch == POLICY_ARCHES)
		return usage();
	return binary ? compile_binary(binary, arch, argv) : compile_c(c_file, argv, argc);
}
