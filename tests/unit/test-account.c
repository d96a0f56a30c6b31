/* SPDX-License-Identifier: Apache-2.0 */
/* Users by name and number, read from a file on this machine and from nowhere else. */
#include <fcntl.h>

#include <lkg/process.h>
#include <lkg/file.h>

#include "unit.h"
#include "tmpdir.h"

static const char database[] = "root:x:0:0:root:/root:/bin/bash\n"
                               "toor:x:0:7::/:\n"
                               "\n"
                               "# lkgfs:x:1:1:\n"
                               "lkgfs2:x:998:998::/:\n"
                               "half:x:5\n"
                               "words:x:many:5::/:\n"
                               "minus:x:-1:5::/:\n"
                               "nobody-at-all:x:4294967295:5::/:\n"
                               "sixteen:x:65535:5::/:\n"
                               "short:x:7:8\n"
                               "lkgfs:!:997:996:lkgfs engine:/nonexistent:/usr/sbin/nologin";

static const struct {
        const char *name;
        int r;
        uid_t uid;
        gid_t gid;
} cases[] = {
        { "", 0, 0, 0 },
        { "root", 0, 0, 0 },
        { "toor", 0, 0, 7 },
        { "lkgfs", 0, 997, 996 },
        { "short", 0, 7, 8 },
        { "lkgfs2", 0, 998, 998 },
        { "0", 0, 0, 0 },
        { "61234", 0, 61234, 61234 }, /* no entry needed */
        { "4294967294", 0, 4294967294, 4294967294 },
        { "998", 0, 998, 998 },
        { "# lkgfs", -ENOENT, 0, 0 },
        { "lkg", -ENOENT, 0, 0 },
        { "lkgfs:", -ENOENT, 0, 0 },
        { "lkgfs:!", -ENOENT, 0, 0 },
        { "half", -ENOENT, 0, 0 },
        { "words", -ENOENT, 0, 0 },
        { "minus", -ENOENT, 0, 0 },
        { "nobody-at-all", -ENOENT, 0, 0 },
        { "sixteen", -ENOENT, 0, 0 },
        { "65535", -ENOENT, 0, 0 },
        { "4294967295", -ENOENT, 0, 0 },
        { "4294967296", -ENOENT, 0, 0 },
        { "99999999999999999999999", -ENOENT, 0, 0 },
        { "-1", -ENOENT, 0, 0 },
        { "+5", -ENOENT, 0, 0 },
        { " 5", -ENOENT, 0, 0 },
        { "5 ", -ENOENT, 0, 0 },
        { "\n", -ENOENT, 0, 0 },
};

TEST(test_names_and_numbers)
{
        char directory[TMPDIR_MAX], path[TMPDIR_MAX + 16];
        int fd;

        assert_int_equal(tmpdir_make(directory), 0);
        (void)snprintf(path, sizeof(path), "%s/passwd", directory);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(lkg_write_all(fd, database, strlen(database)), 0);
        (void)close(fd);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_account account = { .uid = 5, .gid = 5 };

                print_message("%s\n", cases[i].name);
                assert_int_equal(lkg_account_find(path, cases[i].name, &account), cases[i].r);
                assert_int_equal(account.uid, cases[i].uid);
                assert_int_equal(account.gid, cases[i].gid);
        }
        assert_int_equal(tmpdir_remove(directory), 0);
}

TEST(test_no_database)
{
        struct lkg_account account;

        assert_int_equal(lkg_account_find("/nonexistent/passwd", "lkgfs", &account), -ENOENT);
        assert_int_equal(lkg_account_find("/nonexistent/passwd", "997", &account), 0);
        assert_int_equal(account.uid, 997);
        assert_int_equal(lkg_account_find("/", "lkgfs", &account), -ENOENT);
}
