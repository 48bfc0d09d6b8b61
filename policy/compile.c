/* policy-compile: seccomp policies from text to C. Runs at build time, on the build machine, and needs
 * nothing of the target: each program is emitted for both architectures, the target's compiler picks one.
 *
 * usage: policy-compile [-o file.c] name=file.policy …	without -o the policies are only checked */
#include "policy/emit.h"
#include "policy/lint.h"
#include "policy/parse.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
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
	const char *macro;
	uint32_t libseccomp;
} arches[POLICY_ARCHES] = {
    [POLICY_X86_64] = {"__x86_64__", SCMP_ARCH_X86_64},
    [POLICY_AARCH64] = {"__aarch64__", SCMP_ARCH_AARCH64},
};

static int compile(int i, char *argument, struct policy_error *error)
{
	char *equals = strchr(argument, '=');
	int r;

	if (!equals)
		return policy_fail(error, argument, 0, "expected name=file");
	*equals = '\0';
	all[i].name = argument;
	all[i].file = equals + 1;
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

int main(int argc, char **argv)
{
	struct policy_error error;
	const char *file = NULL;
	FILE *out;
	int option;

	while ((option = getopt(argc, argv, "o:")) != -1) {
		if (option != 'o')
			return 2;
		file = optarg;
	}
	if (optind == argc || argc - optind > POLICIES) {
		fprintf(stderr, "usage: policy-compile [-o file.c] name=file.policy ...\n");
		return 2;
	}
	for (int i = optind; i < argc; i++, all_count++) {
		if (compile(all_count, argv[i], &error) < 0) {
			fprintf(stderr, "%s\n", error.text);
			return 1;
		}
	}
	if (check_inherited(&error) < 0) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	if (!file)
		return 0;
	out = fopen(file, "we");
	if (!out) {
		perror(file);
		return 1;
	}
	write_all(out);
	if (ferror(out) | fclose(out)) {
		fprintf(stderr, "%s: cannot be written\n", file);
		return 1;
	}
	return 0;
}
