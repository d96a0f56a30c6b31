/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of mountinfo, what is mounted below a directory, and our own mount table. */

#include <sys/mount.h>

#include "unit.h"
#include "fs/supervisor/mounts.h"

TEST(test_line)
{
        struct lkg_mount m;

        assert_int_equal(
                lkg_mounts_parse_line("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root "
                                      "rw,errors=continue",
                                      &m),
                0);
        assert_int_equal(m.id, 36);
        assert_int_equal(m.major, 98);
        assert_int_equal(m.minor, 0);
        assert_string_equal(m.point, "/mnt2");
        assert_string_equal(m.type, "ext3");
        assert_string_equal(m.source, "/dev/root");
        assert_false(lkg_mount_is_fuse(&m));
}

TEST(test_line_with_escapes_and_no_optional_fields)
{
        struct lkg_mount m;

        assert_int_equal(
                lkg_mounts_parse_line("5 4 0:33 / /a\\040b\\134c\\012d rw - fuse.lkgfs a\\040b rw", &m), 0);
        assert_string_equal(m.point, "/a b\\c\nd");
        assert_string_equal(m.source, "a b");
        assert_true(lkg_mount_is_lkgfs(&m));
        assert_true(lkg_mount_is_fuse(&m));
}

TEST(test_bad_lines)
{
        static const char *const lines[] = {
                "",
                "x",
                "1 2 3:4",
                "1 2 3:4 / ",
                "1 2 3:4 / relative rw - ext4 x rw",
                "1 2 3:4 / /mnt rw shared:1 ext4 x rw",
                "1 2 3:4 / /mnt rw -",
                "1 2 3-4 / /mnt rw - ext4 x rw",
        };
        struct lkg_mount m;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(lines); i++)
                assert_int_equal(lkg_mounts_parse_line(lines[i], &m), -EBADMSG);
}

TEST(test_path_too_long_is_no_overflow)
{
        struct lkg_mount m;
        char *line = malloc(3 * PATH_MAX);
        int n;

        assert_non_null(line);
        n = sprintf(line, "1 2 3:4 / /");
        memset(line + n, 'a', 2 * PATH_MAX);
        strcpy(line + n + 2 * PATH_MAX, " rw - ext4 x rw");
        assert_int_equal(lkg_mounts_parse_line(line, &m), -EBADMSG);
        free(line);
}

TEST(test_types)
{
        static const struct {
                const char *type;
                bool fuse, lkgfs;
        } rows[] = {
                { "fuse.lkgfs", true, true },  { "fuse", true, false },     { "fuseblk", true, false },
                { "fuse.sshfs", true, false }, { "fusectl", false, false }, { "ext4", false, false },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_mount m = { 0 };

                (void)snprintf(m.type, sizeof(m.type), "%s", rows[i].type);
                assert_int_equal(lkg_mount_is_fuse(&m), rows[i].fuse);
                assert_int_equal(lkg_mount_is_lkgfs(&m), rows[i].lkgfs);
        }
}

TEST(test_what_a_mount_forbids)
{
        static const struct {
                const char *line;
                uint64_t forbids;
        } rows[] = {
                { "1 2 3:4 / /m rw,relatime - tmpfs t rw", 0 },
                { "1 2 3:4 / /m rw,nosuid,noexec,relatime shared:7 - tmpfs t rw", MOUNT_ATTR_NOEXEC },
                { "1 2 3:4 / /m ro,nosymfollow - tmpfs t rw", MOUNT_ATTR_NOSYMFOLLOW },
                { "1 2 3:4 / /m noexec,nosymfollow - tmpfs t rw",
                  MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW },
                { "1 2 3:4 / /m rw,noexecs - tmpfs noexec rw,noexec", 0 },
                { "1 2 3:4 /noexec /noexec rw - tmpfs t nosymfollow", 0 },
        };
        struct lkg_mount m;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                assert_int_equal(lkg_mounts_parse_line(rows[i].line, &m), 0);
                assert_int_equal(lkg_mount_restrictions(&m), rows[i].forbids);
        }
}

TEST(test_who_says_what_may_be_read)
{
        static const struct {
                const char *type, *options;
                bool elsewhere;
        } rows[] = {
                { "ext4", "rw", false },
                { "tmpfs", "rw,size=1m", false },
                { "overlay", "rw,lowerdir=/a", false },
                { "virtiofs", "rw", false },
                { "nfs", "rw,vers=3", true },
                { "nfs4", "rw", true },
                { "nfsd", "rw", false },
                { "cifs", "rw", true },
                { "9p", "rw", true },
                { "ceph", "rw", true },
                { "fuse", "rw,user_id=0,group_id=0", true },
                { "fuse.sshfs", "rw,user_id=0,group_id=0,allow_other", true },
                { "fuse.sshfs", "rw,default_permissions,user_id=0", true },
                { "fuse.sshfs", "rw,not_default_permissions,allow_others,allow_other", true },
                { "fuse.lkgfs", "rw,user_id=0,group_id=0,default_permissions,allow_other", false },
                { "fuseblk", "allow_other,rw,default_permissions", false },
                { "fuse", "", true },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char text[256];
                struct lkg_mount m;

                (void)snprintf(
                        text, sizeof(text),
                        "20 1 8:1 / / rw - ext4 /dev/sda rw\n"
                        "21 20 0:5 / /x rw,relatime shared:1 - %s what %s\n22 20 0:6 / /y rw - nfs z rw\n",
                        rows[i].type, rows[i].options);
                assert_int_equal(lkg_mounts_find_in(text, 21, &m), 1);
                assert_string_equal(m.options, rows[i].options);
                assert_int_equal(lkg_mount_asks_elsewhere(&m), rows[i].elsewhere);
        }
        assert_int_equal(lkg_mounts_find_in((char[]){ "20 1 8:1 / / rw - ext4 /dev/sda rw\n" }, 21,
                                            &(struct lkg_mount){ 0 }),
                         0);
}

static uint64_t below(const char *text, const char *dir)
{
        char *copy = strdup(text);
        uint64_t sum;

        assert_non_null(copy);
        sum = lkg_mounts_below_in(copy, dir);
        free(copy);
        return sum;
}

TEST(test_what_is_mounted_below)
{
        static const char volume[] = "50 20 8:2 / /srv/k/kubelet.conf.d rw - ext4 /dev/sdb rw\n";
        static const char again[] = "51 20 8:2 / /srv/k/kubelet.conf.d rw - ext4 /dev/sdb rw\n";
        static const char elsewhere[] = "52 20 8:2 / /srv/kx rw - ext4 /dev/sdb rw\n"
                                        "53 20 8:2 / /srv/k rw - ext4 /dev/sdb rw\n"
                                        "54 20 0:60 / /srv/k/view rw - fuse.lkgfs x rw\n";
        char both[512];

        assert_int_equal(below("", "/srv/k"), 0);
        assert_int_equal(below(elsewhere, "/srv/k"), 0);
        assert_int_not_equal(below(volume, "/srv/k"), 0);
        assert_int_not_equal(below(volume, "/srv/k"), below(again, "/srv/k"));
        (void)snprintf(both, sizeof(both), "%s%s", elsewhere, volume);
        assert_int_equal(below(both, "/srv/k"), below(volume, "/srv/k"));
}

TEST(test_own_mounts_can_be_asked_for)
{
        struct lkg_mount m;
        uint64_t id = 0;

        assert_int_equal(lkg_mounts_top("/proc", &m), 1);
        assert_string_equal(m.type, "proc");
        assert_int_equal(lkg_mounts_id_of(-100 /* AT_FDCWD */, "/proc", &id), 0);
        assert_int_equal(id, m.id);
        assert_int_equal(lkg_mounts_has(id), 0); /* it exists, but is not ours */
        assert_int_equal(lkg_mounts_id_of(-100, "/proc/no-such-file", &id), -ENOENT);
}
