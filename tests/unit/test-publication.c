/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest: what is written is read back, and anything else is refused (rows/publication.rows).
 * Rule: docs/specification.md 6.1.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/publication.h>

#include "rows.h"
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

/* What a manifest says, written again; or why it is refused. */
static void say_manifest(const struct question *q, struct lkg_buf *ret)
{
        const char *head = rows_has(q, "whole") ? "" : HEAD, *text = strstr(q->text, " ++ ") + 4;
        struct lkg_publication *publication = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        int r;

        lkg_buf_puts(&buf, head);
        lkg_buf_append(&buf, text, q->size - (size_t)(text - q->text));
        r = lkg_publication_parse(buf.data, buf.size, &publication, &err);
        if (r == 0) {
                lkg_publication_format(publication, ret);
                lkg_publication_free(publication);
        } else {
                lkg_buf_puts(ret, err.message);
                assert_int_equal(r, -EBADMSG);
                assert_null(publication);
        }
}

static void say_rendered(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_rendered rendered;
        char text[128];
        int r;

        (void)snprintf(text, sizeof(text), "%s", q->text);
        r = lkg_rendered_parse(text, &rendered);

        if (r == 0)
                lkg_rendered_format(&rendered, text, sizeof(text));
        else
                assert_int_equal(r, -EBADMSG);
        lkg_buf_puts(ret, r == 0 ? text : "refused");
}

static const struct operation operations[] = {
        { "manifest", say_manifest, 0 },
        { "rendered", say_rendered, 0 },
        { 0 },
};

ROWS(publication, operations)

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
