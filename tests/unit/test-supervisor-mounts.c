/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of mountinfo (rows/mounts.rows), what is mounted below a directory, and our own mount table. */

#include <sys/mount.h>

#include "rows.h"
#include "fs/supervisor/mounts.h"

static void say_line(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_mount m;
        int r = lkg_mounts_parse_line(q->text, &m);
        uint64_t forbids;

        if (r < 0) {
                assert_int_equal(r, -EBADMSG);
                lkg_buf_puts(ret, "refused");
                return;
        }
        forbids = lkg_mount_restrictions(&m);
        lkg_buf_printf(ret, "%d %u:%u '%s' %s '%s'%s%s%s%s", (int)m.id, m.major, m.minor, m.point, m.type,
                       m.source, lkg_mount_is_fuse(&m) ? ", FUSE" : "",
                       lkg_mount_is_lkgfs(&m) ? ", ours" : "", forbids & MOUNT_ATTR_NOEXEC ? ", noexec" : "",
                       forbids & MOUNT_ATTR_NOSYMFOLLOW ? ", nosymfollow" : "");
        assert_int_equal(forbids & ~(uint64_t)(MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW), 0);
}

static void say_reads(const struct question *q, struct lkg_buf *ret)
{
        char text[256];
        struct lkg_mount m;

        (void)snprintf(text, sizeof(text),
                       "20 1 8:1 / / rw - ext4 /dev/sda rw\n"
                       "21 20 0:5 / /x rw,relatime shared:1 - %s what %s\n22 20 0:6 / /y rw - nfs z rw\n",
                       q->parts[0], q->parts[1]);
        assert_int_equal(lkg_mounts_find_in(text, 21, &m), 1);
        assert_string_equal(m.options, q->parts[1]);
        lkg_buf_puts(ret, lkg_mount_asks_elsewhere(&m) ? "elsewhere" : "here");
}

static const struct operation operations[] = {
        { "line", say_line, 0 },
        { "reads", say_reads, 0 },
        { 0 },
};

ROWS(mounts, operations)

TEST(test_a_mount_that_is_not_there)
{
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
