/* Runs a fuzz harness over files and folders of files, once each: what CI does with the corpora, without
 * libFuzzer. The name of the file at hand goes to stderr first, so that a crash says which it was. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned count;

static int run_file(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "re");
	uint8_t *data;
	size_t n;

	if (!f || fstat(fileno(f), &st) < 0) {
		perror(path);
		return -1;
	}
	/* Of exact size, so that ASan and valgrind see a read beyond its end. */
	data = malloc((size_t)st.st_size + !st.st_size);
	n = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	count++;
	return 0;
}

static int run_path(const char *path)
{
	struct dirent *entry;
	char file[4096];
	DIR *dir = opendir(path);
	int err = 0;

	if (!dir)
		return errno == ENOTDIR ? run_file(path) : -1;
	while (err == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
		err = run_file(file);
	}
	closedir(dir);
	return err;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (run_path(argv[i]) < 0)
			return 1;
	printf("%u inputs\n", count);
	return count == 0;
}
