/* SPDX-License-Identifier: Apache-2.0 */
/* Small JSON records of lkgfs: see lkg/documents.h. */
#include <fcntl.h>

#include <lkg/documents.h>
#include <lkg/file.h>

int lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                         struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0 && (errno == ELOOP || errno == ENXIO)) /* ENXIO: a socket */
                return lkg_error_set(err, -EBADMSG, NULL, "%s is not a regular file.", path);
        if (fd < 0 || fstat(fd, &st) < 0)
                return lkg_error_set(err, -errno, NULL, "%s", path);
        if (!S_ISREG(st.st_mode))
                return lkg_error_set(err, -EBADMSG, NULL, "%s is not a regular file.", path);
        return lkg_read_file(fd, max, ret, ret_size, err);
}

int lkg_record_read(int dirfd, const char *path, struct lkg_value **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct lkg_report report = LKG_REPORT_INIT;
        size_t size;
        int r = lkg_record_read_text(dirfd, path, LKG_RECORD_BYTES_MAX, &text, &size, err);

        if (r < 0)
                return r;
        r = lkg_decode_json(text, size, 0, NULL, &report, &value);
        lkg_report_deinit(&report);
        if (r < 0 || lkg_value_type(value) != LKG_MAP)
                return lkg_error_set(err, -EBADMSG, NULL, "%s is not a JSON object.", path);
        *ret = LKG_STEAL(value);
        return 0;
}

int lkg_record_parse_u64(const char *text, uint64_t *ret)
{
        uint64_t n;
        const char *rest = lkg_digits(text, &n);

        if (!rest || (*rest && strcmp(rest, "\n") != 0))
                return -EBADMSG;
        *ret = n;
        return 0;
}

uint64_t lkg_record_number(const struct lkg_value *map, const char *name, uint64_t fallback)
{
        const struct lkg_value *value = lkg_map_get(map, name);
        uint64_t n;

        if (!value || lkg_value_type(value) != LKG_NUMBER ||
            lkg_record_parse_u64(lkg_value_text(value, NULL), &n) < 0)
                return fallback;
        return n;
}
