/* A file for the operator, in a folder where commands may be able to write. */
#include "execd/own_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/own-file-XXXXXX";
static char path[64], other[64], moved[64];
static struct own_file file = OWN_FILE_INIT;

static void setup(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/file", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	snprintf(moved, sizeof moved, "%s.moved", folder);
}

static void teardown(void)
{
	own_file_close(&file);
	if (access(moved, F_OK) == 0) {
		cr_assert(rmdir(folder) == 0 || errno == ENOENT);
		cr_assert_eq(rename(moved, folder), 0);
	}
	unlink(path);
	unlink(other);
	rmdir(folder);
}

TestSuite(own_file, .init = setup, .fini = teardown);

static off_t size_of(const char *at)
{
	struct stat st;

	return stat(at, &st) == 0 ? st.st_size : -1;
}

static void put(char byte)
{
	cr_assert_eq(write(file.fd, &byte, 1), 1);
}

/* Both ways of asking say the same. */
static void expect_refused(const char *at, int err)
{
	cr_assert_eq(own_file_open(&file, at, O_APPEND, 0600), err);
	cr_assert_eq(own_file_check(at), err);
}

Test(own_file, is_made_with_its_mode)
{
	struct stat st;

	umask(0);
	cr_assert_eq(own_file_open(&file, path, O_APPEND, 0640), 0);
	cr_assert(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640);
}

Test(own_file, is_never_another_file)
{
	close(open(other, O_WRONLY | O_CREAT, 0600));
	cr_assert_eq(symlink(other, path), 0);
	expect_refused(path, -ELOOP);
	unlink(path);
	cr_assert_eq(link(other, path), 0);
	expect_refused(path, -EMLINK);
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	expect_refused(path, -ENXIO);
	unlink(path);
	cr_assert_eq(mkdir(path, 0700), 0);
	expect_refused(path, -EISDIR);
	rmdir(path);
}

Test(own_file, needs_its_folder)
{
	char none[80];

	snprintf(none, sizeof none, "%s/none/file", folder);
	expect_refused(none, -ENOENT);
	expect_refused("/dev/null/file", -ENOTDIR);
	expect_refused("/dev/null", -EINVAL);
}

Test(own_file, is_not_made_by_a_check)
{
	cr_assert_eq(own_file_check(path), 0);
	cr_assert_eq(access(path, F_OK), -1);
}

Test(own_file, is_opened_again_by_name)
{
	cr_assert_eq(own_file_open(&file, path, O_APPEND, 0600), 0);
	put('a');
	cr_assert_eq(rename(path, other), 0);
	put('b');
	cr_assert_eq(own_file_open_again(&file), 0);
	put('c');
	cr_assert_eq(size_of(other), 2);
	cr_assert_eq(size_of(path), 1);
}

Test(own_file, stays_open_where_it_cannot_be_opened_again)
{
	cr_assert_eq(own_file_open(&file, path, O_APPEND, 0600), 0);
	cr_assert_eq(rename(path, other), 0);
	cr_assert_eq(symlink(other, path), 0);
	cr_assert_eq(own_file_open_again(&file), -ELOOP);
	put('a');
	cr_assert_eq(size_of(other), 1);
}

/* A folder that was put in the place of its own is nothing to it. */
Test(own_file, keeps_to_its_folder)
{
	cr_assert_eq(own_file_open(&file, path, O_APPEND, 0600), 0);
	cr_assert_eq(rename(folder, moved), 0);
	cr_assert_eq(mkdir(folder, 0700), 0);
	cr_assert_eq(own_file_open_again(&file), 0);
	cr_assert_eq(access(path, F_OK), -1);
}

Test(own_file, may_be_in_the_working_folder)
{
	cr_assert_eq(chdir(folder), 0);
	cr_assert_eq(own_file_open(&file, "file", O_APPEND, 0600), 0);
	cr_assert_eq(size_of(path), 0);
}
