/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one document for a verb: from a file, or from standard input (`-`). */
#include "tool.h"

#include <fcntl.h>

#include <lkg/file.h>
#include <lkg/limits.h>
#include <lkg/tree.h>

bool lkg_tool_is_stdin(const char *path)
{
        return path && strcmp(path, "-") == 0;
}

/*
 * Reads all of @fd, up to one byte more than the limit of a document: the decoder then reports that it is
 * too big.
 */
static int read_stream(int fd, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char block[16384];

        lkg_buf_append(&buf, "", 0); /* no input is an empty document */
        while (buf.size <= LKG_DOC_BYTES_MAX) {
                ssize_t n = read(fd, block, sizeof(block));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                lkg_buf_append(&buf, block, (size_t)n);
                if (lkg_buf_failed(&buf))
                        return -ENOMEM;
        }
        *ret = lkg_buf_steal(&buf, ret_size);
        return *ret ? 0 : -ENOMEM;
}

int lkg_tool_read_input(const char *path, char **ret, size_t *ret_size, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        int r;

        if (lkg_tool_is_stdin(path)) {
                r = read_stream(STDIN_FILENO, ret, ret_size);
                return r < 0 ? lkg_error_set(err, r, NULL, "read standard input") : 0;
        }
        fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "read '%s'", path);
        r = read_stream(fd, ret, ret_size);
        return r < 0 ? lkg_error_set(err, r, NULL, "read '%s'", path) : 0;
}

/*
 * JSON is YAML, too, but a number beyond a float64 is a text in YAML, while upstream's JSON decoder refuses it.
 * @report gets only that; what else is wrong with it as JSON (it may be YAML in flow style) does not matter.
 */
static int refuse_huge(const char *data, size_t size, struct lkg_source *source, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report found = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        int r = lkg_decode(data, size, LKG_FORMAT_JSON, LKG_DECODE_UNTYPED, source, &found, &doc);

        if (r != -EBADMSG)
                return r;
        for (size_t i = 0; i < found.n_findings; i++) {
                if (found.findings[i].code != LKG_C_SCALAR)
                        continue;
                lkg_report_add_copy(report, &found.findings[i]);
                return -EBADMSG;
        }
        return 0;
}

int lkg_tool_read_doc(const struct lkg_tool *tool, const char *path, bool as_yaml, unsigned decode_flags,
                      struct lkg_report *report, enum lkg_format *ret_format, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_error err = { 0 };
        struct lkg_source *source;
        enum lkg_format format;
        size_t size;
        int r;

        r = lkg_tool_read_input(path, &data, &size, &err);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
        source = lkg_source_new(path, path);
        if (!source)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        if (as_yaml) {
                format = lkg_detect_format(data, size);
                r = lkg_decode_yaml(data, size, decode_flags, source, report, ret);
                if (r == 0 && format == LKG_FORMAT_JSON)
                        r = refuse_huge(data, size, source, report);
                if (r == -EBADMSG)
                        *ret = lkg_value_unref(*ret);
        } else {
                r = lkg_decode_patch(data, size, decode_flags, source, report, &format, ret);
        }
        lkg_source_unref(source);
        if (r == -EBADMSG)
                return LKG_TOOL_DIFFERENT;
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s': %s", path, strerror(-r));
        if (ret_format)
                *ret_format = format;
        return LKG_TOOL_OK;
}
