/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest: what is written is read back, and anything else is refused.
 * Rule: docs/specification.md 6.1.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/publication.h>

#include "unit.h"
#include "tmpdir.h"

#define SHA  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD LKG_PUBLICATION_MAGIC "\nnumber\t7\n"

static struct lkg_publication *parse(const char *text)
{
        struct lkg_publication *publication = NULL;
        struct lkg_error err = { 0 };

        if (lkg_publication_parse(text, strlen(text), &publication, &err) < 0)
                fail_msg("%s", err.message);
        return publication;
}

TEST(test_every_line)
{
        static const char text[] = LKG_PUBLICATION_MAGIC
                "\nnumber\t7\ntimeout-ms\t2000\ncomponent\t0\tkubelet\t3\nsource\t0\tu@1\tkube-system/"
                "c\nmatch\t0\tunit\tkubelet.service\n"
                "match\t0\texe\t/usr/bin/"
                "kubelet\nwatch\t0\ttree\tkubelet.conf.d\nwatch\t0\tfile\tkubelet.conf\n"
                "hide\thidden\nalias\tkubelet.conf.base\tkubelet.conf\nclash\tstatus\n"
                "dir\tbad\t0755\t0\t0\t5\nbad\tbad/kubelet\t0755\t0\t0\t-5\t0\n"
                "file\tbad/kubelet/3f9a@12\t0644\t0\t0\t5\t4\t" SHA "\t-\t0\t0\n"
                "dir\tcontrol\t0700\t0\t0\t5\ncontrol\tcontrol/hold\t0200\t0\t0\t0\thold\n"
                "control\tcontrol/x\t0200\t0\t0\t0\tx%20y%25\n"
                "file\tkubelet.conf\t0600\t0\t12\t-9\t4\t" SHA "\tvw\t0\t3\n"
                "dir\tstatus\t0755\t0\t0\t5\nfile\tstatus/a%20b\t0444\t0\t0\t5\t0\t" SHA "\tp\t-\t0\n"
                "asked\tstatus/b\t0600\t0\t12\t5\t0\nrendered\tstatus/c\t0444\t0\t0\t0\nend\n";
        struct lkg_publication *publication = parse(text);
        struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_entry *entry;

        assert_int_equal(publication->number, 7);
        assert_int_equal(publication->timeout_ms, 2000);
        assert_int_equal(publication->n_components, 1);
        assert_int_equal(publication->components[0].generation, 3);
        assert_int_equal(publication->n_rules, 7);
        entry = lkg_publication_find(publication, "kubelet.conf");
        assert_non_null(entry);
        assert_int_equal(entry->flags, LKG_ENTRY_VIEW | LKG_ENTRY_THROUGH);
        assert_int_equal(entry->gid, 12);
        assert_true(entry->mtime_ns == -9);
        entry = lkg_publication_find(publication, "bad/kubelet");
        assert_int_equal(entry->type, LKG_ENTRY_BAD);
        assert_true(lkg_entry_is_dir(entry));
        assert_int_equal(entry->component, 0);
        assert_true(entry->mtime_ns == -5);
        assert_false(lkg_entry_is_dir(lkg_publication_find(publication, "bad/kubelet/3f9a@12")));
        assert_string_equal(lkg_publication_find(publication, "control/x")->command, "x y%");
        assert_non_null(lkg_publication_find(publication, "status/a b"));
        entry = lkg_publication_find(publication, "status/b");
        assert_int_equal(entry->type, LKG_ENTRY_ASKED);
        assert_true(lkg_entry_is_dir(entry));
        assert_int_equal(entry->gid, 12);
        entry = lkg_publication_find(publication, "status/c");
        assert_int_equal(entry->type, LKG_ENTRY_RENDERED);
        assert_int_equal(entry->component, 0);
        assert_string_equal(publication->components[0].source, "u@1");
        assert_string_equal(publication->components[0].object, "kube-system/c");
        assert_null(lkg_publication_find(publication, "status/a"));
        assert_null(lkg_publication_find(publication, ""));
        lkg_publication_format(publication, &buf);
        assert_false(lkg_buf_failed(&buf));
        assert_string_equal(buf.data, text);
        lkg_buf_deinit(&buf);
        lkg_publication_free(publication);
}

TEST(test_refused)
{
        static const struct {
                const char *what, *text;
        } cases[] = {
                { "empty", "" },
                { "another magic", "lkgfs-publication 2\nnumber\t7\nend\n" },
                { "no number", LKG_PUBLICATION_MAGIC "\nend\n" },
                { "number 0", LKG_PUBLICATION_MAGIC "\nnumber\t0\nend\n" },
                { "cut short", HEAD },
                { "text after the end", HEAD "end\nnumber\t8\n" },
                { "unknown line", HEAD "gift\tx\nend\n" },
                { "too few fields", HEAD "dir\tstatus\t0755\nend\n" },
                { "too many fields", HEAD "number\t7\t8\nend\n" },
                { "not octal", HEAD "dir\tstatus\t0799\t0\t0\t5\nend\n" },
                { "negative number", HEAD "dir\tstatus\t0755\t-1\t0\t5\nend\n" },
                { "absolute path", HEAD "dir\t/status\t0755\t0\t0\t5\nend\n" },
                { "path that climbs", HEAD "dir\ta\t0755\t0\t0\t5\ndir\ta/..\t0755\t0\t0\t5\nend\n" },
                { "empty part", HEAD "dir\ta\t0755\t0\t0\t5\ndir\ta//b\t0755\t0\t0\t5\nend\n" },
                { "out of order", HEAD "dir\tb\t0755\t0\t0\t5\ndir\ta\t0755\t0\t0\t5\nend\n" },
                { "twice", HEAD "dir\ta\t0755\t0\t0\t5\ndir\ta\t0755\t0\t0\t5\nend\n" },
                { "no parent", HEAD "dir\ta/b\t0755\t0\t0\t5\nend\n" },
                { "parent is a file",
                  HEAD "file\ta\t0444\t0\t0\t5\t0\t" SHA "\t-\t-\t0\nfile\ta/b\t0444\t0\t0\t5\t0\t" SHA
                       "\t-\t-\t0\nend\n" },
                { "short hash", HEAD "file\ta\t0444\t0\t0\t5\t0\tabc\t-\t-\t0\nend\n" },
                { "hash that is a path",
                  HEAD "file\ta\t0444\t0\t0\t5\t0\t../../../../../../../../../../../../../../../etc/"
                       "shadow00000000\t-\t-\t0\nend\n" },
                { "names of no component", HEAD "bad\tbad\t0755\t0\t0\t5\t-\nend\n" },
                { "names without a time", HEAD "component\t0\tk\t1\nbad\tbad\t0755\t0\t0\tx\t0\nend\n" },
                { "entry below a file",
                  HEAD "control\ta\t0200\t0\t0\t-\thold\ndir\ta/b\t0755\t0\t0\t5\nend\n" },
                { "rendered for nobody", HEAD "rendered\ta\t0444\t0\t0\t-\nend\n" },
                { "source of no component", HEAD "source\t0\tinit\t\nend\n" },
                { "unknown flag", HEAD "file\ta\t0444\t0\t0\t5\t0\t" SHA "\tq\t-\t0\nend\n" },
                { "broken escape", HEAD "dir\ta%2\t0755\t0\t0\t5\nend\n" },
                { "escaped NUL", HEAD "dir\ta%00\t0755\t0\t0\t5\nend\n" },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_publication *publication = NULL;
                struct lkg_error err = { 0 };
                int r = lkg_publication_parse(cases[i].text, strlen(cases[i].text), &publication, &err);

                if (r != -EBADMSG || publication || !err.message[0])
                        fail_msg("%s: %d '%s'", cases[i].what, r, err.message);
        }
}

static int truncateat(int dirfd, const char *name, off_t size)
{
        int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : ftruncate(fd, size);

        lkg_close(fd);
        return r;
}

/* Another process wrote the blobs: a missing, shortened or different one is an error, never other bytes. */
TEST(test_read)
{
        struct lkg_entry entry = { .path = "a", .type = LKG_ENTRY_FILE, .size = 3 };
        char top[TMPDIR_MAX];
        char *text = NULL;
        size_t size;
        int fd;

        assert_int_equal(tmpdir_make(top), 0);
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(lkg_sha256_hex("abc", 3, entry.sha256), 0);
        assert_int_equal(lkg_publication_read(fd, &entry, 100, &text, &size), -ENOENT);
        assert_int_equal(lkg_write_file_atomic(fd, entry.sha256, "abc", 3, 0600, false, NULL), 0);
        assert_int_equal(lkg_publication_read(fd, &entry, 100, &text, &size), 0);
        assert_string_equal(text, "abc");
        free(text);
        assert_int_equal(lkg_publication_read(fd, &entry, 2, &text, &size), -EFBIG);
        assert_int_equal(truncateat(fd, entry.sha256, (off_t)1 << 40),
                         0); /* more than an engine may keep in memory */
        assert_int_equal(lkg_publication_read(fd, &entry, SIZE_MAX, &text, &size), -EBADMSG);
        assert_int_equal(unlinkat(fd, entry.sha256, 0), 0);
        assert_int_equal(mkfifoat(fd, entry.sha256, 0600), 0);
        assert_int_equal(lkg_publication_read(fd, &entry, 100, &text, &size),
                         -EBADMSG); /* and no reader waits */
        lkg_close(fd);
        assert_int_equal(tmpdir_remove(top), 0);
}

/* The manifest of a build that had many files in one blob, which an upgrade finds. */
TEST(test_part_of_an_earlier_build)
{
        struct lkg_publication *publication =
                parse(HEAD "component\t0\tkubelet\t3\npart\ta\t0444\t0\t0\t5\t12\t" SHA "\t-\t0\t0\t" SHA
                           "\t700\nend\n");

        assert_int_equal(lkg_publication_find(publication, "a")->type, LKG_ENTRY_RENDERED);
        lkg_publication_free(publication);
}

TEST(test_rendered)
{
        static const char *const refused[] = {
                "",           "f",          "f 1",         "f 1 2",          "f 1 2 abc",
                "x 1 2 " SHA, "f x 2 " SHA, "f 1 -2 " SHA, "f 1 2 " SHA " ", "f 1 99999999999 " SHA
        };
        struct lkg_rendered one = { .mtime_ns = -7, .size = 12, .sha256 = SHA }, dir = { .is_dir = true },
                            got;
        char text[128];

        lkg_rendered_format(&one, text, sizeof(text));
        assert_string_equal(text, "f -7 12 " SHA);
        assert_int_equal(lkg_rendered_parse(text, &got), 0);
        assert_true(!got.is_dir && got.mtime_ns == -7 && got.size == 12);
        assert_string_equal(got.sha256, SHA);
        lkg_rendered_format(&dir, text, sizeof(text));
        assert_int_equal(lkg_rendered_parse(text, &got), 0);
        assert_true(got.is_dir && !*got.sha256);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(refused); i++) {
                (void)snprintf(text, sizeof(text), "%s", refused[i]);
                assert_int_equal(lkg_rendered_parse(text, &got), -EBADMSG);
        }
}

TEST(test_nul_byte)
{
        static const char text[] = HEAD "end\n\0";
        struct lkg_publication *publication = NULL;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_publication_parse(text, sizeof(text), &publication, &err), -EBADMSG);
}
