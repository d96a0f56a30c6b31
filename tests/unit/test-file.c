/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files of other users safely, replacing our own atomically. Rule: docs/specification.md 3.1. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <lkg/file.h>

#include "unit.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];
static int dir = -EBADF;

static int make_dir(void **state)
{
        (void)state;
        if (tmpdir_make(top) < 0)
                return -1;
        dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return dir < 0 ? -1 : 0;
}

static int remove_dir(void **state)
{
        (void)state;
        dir = lkg_close(dir);
        return tmpdir_remove(top);
}

static void put(const char *name, const char *text)
{
        struct lkg_error err = { 0 };

        if (lkg_write_file_atomic(dir, name, text, strlen(text), 0640, false, &err) < 0)
                fail_msg("%s", err.message);
}

static void expect_content(const char *name, const char *want)
{
        struct lkg_error err = { 0 };
        struct stat st;
        size_t size;
        char *text;
        int fd = lkg_open_trusted(dir, name, &st, &err);

        if (fd < 0)
                fail_msg("%s", err.message);
        assert_int_equal(lkg_read_file(fd, 100, &text, &size, &err), 0);
        assert_string_equal(text, want);
        assert_int_equal(size, strlen(want));
        free(text);
        lkg_close(fd);
}

static void expect_refused(const char *name, int code, const char *word)
{
        struct lkg_error err = { 0 };
        struct stat st;
        int fd = lkg_open_trusted(dir, name, &st, &err);

        if (fd != code || (word && !strstr(err.message, word)))
                fail_msg("%s: %d '%s'", name, fd, err.message);
}

TEST_WITH(test_write_and_read, make_dir, remove_dir)
{
        struct stat st;

        put("a", "one");
        expect_content("a", "one");
        put("a", "two");
        expect_content("a", "two");
        put("empty", "");
        expect_content("empty", "");
        assert_int_equal(fstatat(dir, "a", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
}

TEST_WITH(test_too_big, make_dir, remove_dir)
{
        struct lkg_error err = { 0 };
        struct stat st;
        char *text = NULL;
        size_t size;
        int fd;

        put("a", "12345");
        fd = lkg_open_trusted(dir, "a", &st, &err);
        assert_int_equal(lkg_read_file(fd, 4, &text, &size, &err), -EFBIG);
        assert_null(text);
        lkg_close(fd);
}

TEST_WITH(test_not_regular, make_dir, remove_dir)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", top);
        assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof(address)), 0);
        lkg_close(s);
        assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
        assert_int_equal(mkdirat(dir, "directory", 0700), 0);
        expect_refused("missing", -ENOENT, "missing");
        expect_refused("fifo", -EINVAL, "FIFO"); /* and does not wait for a writer */
        expect_refused("directory", -EINVAL, "directory");
        expect_refused("socket", -EINVAL, "socket");
}

TEST_WITH(test_links, make_dir, remove_dir)
{
        put("real", "text");
        assert_int_equal(symlinkat("real", dir, "good"), 0);
        assert_int_equal(symlinkat("good", dir, "twice"), 0);
        assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
        assert_int_equal(symlinkat("loop", dir, "loop"), 0);
        expect_content("good", "text");
        expect_content("twice", "text");
        expect_refused("dangling", -ENOENT, NULL);
        expect_refused("loop", -ELOOP, NULL);
}

/* A writer of the directory chose the target of the link: such a link is not followed. */
TEST_WITH(test_hostile_link, make_dir, remove_dir)
{
        assert_int_equal(mkdirat(dir, "open", 0777), 0);
        assert_int_equal(fchmodat(dir, "open", 0777, 0), 0);
        put("real", "text");
        assert_int_equal(symlinkat("../real", dir, "open/link"), 0);
        expect_refused("open/link", -ELOOP, "symlink");
        assert_int_equal(fchmodat(dir, "open", 0755, 0), 0);
        expect_content("open/link", "text");
        assert_int_equal(fchmodat(dir, "real", 0666, 0), 0);
        expect_refused("open/link", -ELOOP, NULL);
        expect_content("real", "text"); /* without a link its mode is up to its owner */
}

/* The content of @name if it is within bounds, or the error. */
static void expect_beneath(const char *name, int code)
{
        const struct lkg_bounds bounds = { dir, top };
        struct lkg_error err = { 0 };
        char text[16] = "";
        int fd = lkg_open_beneath(&bounds, dir, name, name, NULL, &err);

        if ((fd < 0 ? fd : 0) != code)
                fail_msg("%s: %d '%s'", name, fd, err.message);
        if (fd < 0 && code == -EXDEV)
                assert_non_null(strstr(err.message, "leads out of"));
        if (fd >= 0)
                assert_true(read(fd, text, sizeof(text) - 1) == 6 && strcmp(text, "inside") == 0);
        lkg_close(fd);
}

static void make_link(const char *target, const char *name)
{
        assert_int_equal(symlinkat(target, dir, name), 0);
}

/*
 * Relative, absolute, through directories, back and forth: a link may lead anywhere beneath the root and
 * nowhere else.
 */
TEST_WITH(test_links_beneath, make_dir, remove_dir)
{
        char absolute[TMPDIR_MAX + 64];

        assert_int_equal(mkdirat(dir, "d", 0755), 0);
        assert_int_equal(mkdirat(dir, "d/..2024", 0755), 0);
        put("file", "inside");
        put("d/..2024/file", "inside");
        make_link("..2024", "d/..data"); /* a ConfigMap volume */
        make_link("..data/file", "d/file");
        make_link("../file", "d/up");
        make_link("d/../d/./..data//file", "there-and-back");
        (void)snprintf(absolute, sizeof(absolute), "%s/d/file", top);
        make_link(absolute, "absolute");
        make_link("d", "directory");
        for (const char *const *name =
                     (const char *const[]){ "file", "d/file", "d/..data/file", "d/up", "there-and-back",
                                            "absolute", "directory/file", "directory/../file", NULL };
             *name; name++)
                expect_beneath(*name, 0);

        make_link("/etc/passwd", "passwd");
        make_link("../../../../../../../../etc/passwd", "d/passwd");
        make_link("..", "parent");
        (void)snprintf(absolute, sizeof(absolute), "%s/../passwd", top);
        make_link(absolute, "absolute-out");
        (void)snprintf(absolute, sizeof(absolute), "%s-other/file", top);
        make_link(absolute, "same-beginning");
        make_link("passwd", "to-a-link");
        make_link("/proc/self/root/etc/passwd", "magic");
        for (const char *const *name = (const char *const[]){ "passwd", "d/passwd", "directory/passwd",
                                                              "absolute-out", "same-beginning", "to-a-link",
                                                              "parent/etc/passwd", "magic", NULL };
             *name; name++)
                expect_beneath(*name, -EXDEV);
        make_link("circle", "circle");
        expect_beneath("circle", -ELOOP);
        make_link("nothing", "dangling");
        expect_beneath("dangling", -ENOENT);
        expect_beneath("directory", -EINVAL);
}

TEST_WITH(test_directories_beneath, make_dir, remove_dir)
{
        const struct lkg_bounds bounds = { dir, top };
        int fd;

        assert_int_equal(mkdirat(dir, "d", 0755), 0);
        make_link("d", "link");
        make_link("/etc", "out");
        make_link("../..", "up");
        fd = lkg_open_directory(&bounds, "d", false);
        assert_true(fd >= 0);
        lkg_close(fd);
        fd = lkg_open_directory(&bounds, "link/", true);
        assert_true(fd >= 0);
        lkg_close(fd);
        assert_int_equal(lkg_open_directory(&bounds, "out/", true), -EXDEV);
        assert_int_equal(lkg_open_directory(&bounds, "out/systemd", false), -EXDEV);
        assert_int_equal(lkg_open_directory(&bounds, "up/", true), -EXDEV);
}

static void expect_owned(const char *name, int code)
{
        struct lkg_error err = { 0 };
        char path[TMPDIR_MAX + 32];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        fd = lkg_open_owned(path, NULL, &err);
        if ((fd < 0 ? fd : 0) != code)
                fail_msg("%s: %d '%s'", name, fd, err.message);
        lkg_close(fd);
}

TEST_WITH(test_a_plain_path_is_judged_when_it_decides_what_root_does, make_dir, remove_dir)
{
        struct lkg_error err = { 0 };

        put("plain", "x");
        expect_owned("plain", 0);
        assert_int_equal(fchmodat(dir, "plain", 0660, 0), 0);
        expect_content("plain", "x");
        expect_owned("plain", -EPERM);
        assert_int_equal(fchmodat(dir, "plain", 0600, 0), 0);
        assert_int_equal(mkdirat(dir, "d", 0700), 0);
        put("d/plain", "x");
        assert_int_equal(symlinkat("d/plain", dir, "link"), 0);
        expect_owned("link", 0);
        expect_owned("d/../d//./plain", 0);
        assert_int_equal(fchmodat(dir, "d", 0707, 0), 0);
        expect_content("d/plain", "x");
        expect_owned("d/plain", -EPERM);
        expect_owned("link", -EPERM);
        expect_owned("d/../plain", -EPERM); /* through it and back: it could be a link */
        assert_int_equal(fchmodat(dir, "d", 0700, 0), 0);
        expect_owned("d", -EINVAL);
        expect_owned("none", -ENOENT);
        assert_int_equal(lkg_open_owned("plain", NULL, &err), -EINVAL);
}

/* @code: 0 or the error; @said: part of its message */
static void expect_way(const char *name, int code, const char *said)
{
        struct lkg_error err = { 0 };
        char path[TMPDIR_MAX + 64];
        struct stat by_path, st;
        int fd;

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        fd = lkg_make_owned_way(path, 0700, &err);
        if ((fd < 0 ? fd : 0) != code || (said && !strstr(err.message, said)))
                fail_msg("%s: %d '%s'", name, fd, err.message);
        if (fd < 0)
                return;
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(fstatat(dir, name, &by_path, 0), 0);
        assert_true(st.st_ino == by_path.st_ino && S_ISDIR(st.st_mode));
        lkg_close(fd);
}

TEST_WITH(test_the_way_to_a_directory_is_roots, make_dir, remove_dir)
{
        struct lkg_error err = { 0 };
        struct stat st;

        expect_way("a/b//c/", 0, NULL);
        expect_way("a/b/c", 0, NULL);
        expect_way("a/../d", 0, NULL);
        assert_int_equal(fchmodat(dir, "a/b/c", 0777, 0), 0);
        expect_way("a/b/c", 0, NULL); /* the directory itself is up to the caller */
        expect_way("a/b/c/d", -EPERM, "a/b/c (user ");
        assert_int_equal(fchmodat(dir, "a", 0777, 0), 0);
        expect_way("a/b/c", -EPERM, "mode 0777)");
        expect_way("a/new/x", -EPERM, "/a (user ");
        assert_int_equal(fstatat(dir, "a/new", &st, 0), -1); /* nothing was created there */
        assert_int_equal(symlinkat("a/b", dir, "link"), 0);
        expect_way("link", -EPERM, "/a (user ");
        assert_int_equal(fchmodat(dir, "a", 01777, 0), 0); /* sticky, like /tmp */
        expect_way("a/b", 0, NULL);
        expect_way("link", 0, NULL);
        expect_way("link/x", 0, NULL);
        assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
        expect_way("dangling/x", -ENOENT, NULL);
        put("file", "");
        expect_way("file", -ENOTDIR, NULL);
        expect_way("file/x", -ENOTDIR, NULL);
        assert_int_equal(lkg_make_owned_way("a", 0700, &err), -EINVAL);
}

TEST_WITH(test_a_link_of_another_user_leads_to_no_directory, make_dir, remove_dir)
{
        if (geteuid() != 0)
                skip();
        assert_int_equal(mkdirat(dir, "target", 0700), 0);
        assert_int_equal(symlinkat("target", dir, "link"), 0);
        expect_way("link", 0, NULL);
        assert_int_equal(fchownat(dir, "link", 65534, 65534, AT_SYMLINK_NOFOLLOW), 0);
        expect_way("link", -EPERM, "a link");
        assert_int_equal(mkdirat(dir, "theirs", 0700), 0);
        assert_int_equal(fchownat(dir, "theirs", 65534, 65534, 0), 0);
        expect_way("theirs/x", -EPERM, "theirs (user 65534, mode 0700)");
}

TEST_WITH(test_mkdir, make_dir, remove_dir)
{
        struct lkg_error err = { 0 };
        struct stat st;

        assert_int_equal(lkg_mkdir_p(dir, "a/b/c", 0700, &err), 0);
        assert_int_equal(lkg_mkdir_p(dir, "a/b/c", 0700, &err), 0);
        assert_int_equal(fstatat(dir, "a/b/c", &st, 0), 0);
        assert_true(S_ISDIR(st.st_mode));
        put("a/file", "");
        assert_true(lkg_mkdir_p(dir, "a/file/x", 0700, &err) < 0);
        assert_true(err.message[0] != '\0');
}

TEST_WITH(test_identity, make_dir, remove_dir)
{
        struct lkg_file_id before, after;
        struct stat st;

        put("a", "one");
        assert_int_equal(fstatat(dir, "a", &st, 0), 0);
        lkg_file_id_from_stat(&st, &before);
        assert_int_equal(fstatat(dir, "a", &st, 0), 0);
        lkg_file_id_from_stat(&st, &after);
        assert_true(lkg_file_id_equal(&before, &after));
        put("a", "two"); /* same size, another inode */
        assert_int_equal(fstatat(dir, "a", &st, 0), 0);
        lkg_file_id_from_stat(&st, &after);
        assert_false(lkg_file_id_equal(&before, &after));
}
