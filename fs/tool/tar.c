/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a POSIX tar archive: ustar headers, and a pax header for a name that does not fit. Regular files only, mode 0600, owner
 * root. Writing needs no library for so little, and every node would have to install it.
 */
#include "report-parts.h"

#define BLOCK      512
#define NAME_MAX_U 100 /* of a ustar header, without its prefix */

struct tar_header {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
        char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "the format has 512 bytes");

static void pad(struct lkg_buf *buf, size_t size)
{
        static const char zeros[BLOCK];

        if (size % BLOCK)
                lkg_buf_append(buf, zeros, BLOCK - size % BLOCK);
}

static void put_header(struct lkg_buf *buf, const char *name, char type, size_t size, uint64_t modified_s)
{
        struct tar_header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
        const unsigned char *bytes = (const unsigned char *)&h;
        unsigned sum = 0;

        (void)snprintf(h.name, sizeof(h.name), "%s", name);
        (void)snprintf(h.mode, sizeof(h.mode), "%07o", 0600u);
        (void)snprintf(h.uid, sizeof(h.uid), "%07o", 0u);
        (void)snprintf(h.gid, sizeof(h.gid), "%07o", 0u);
        (void)snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)size & 077777777777ull);
        (void)snprintf(h.mtime, sizeof(h.mtime), "%011llo",
                       (unsigned long long)modified_s & 077777777777ull);
        memset(h.checksum, ' ', sizeof(h.checksum));
        for (size_t i = 0; i < sizeof(h); i++)
                sum += bytes[i];
        (void)snprintf(h.checksum, sizeof(h.checksum) - 1, "%06o", sum);
        lkg_buf_append(buf, &h, sizeof(h));
}

/* `LENGTH path=NAME\n`, where LENGTH counts its own digits as well. */
static void put_long_name(struct lkg_buf *buf, const char *name)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf record = LKG_BUF_INIT;
        size_t rest = strlen(name) + strlen(" path=\n"), size = rest + 1;
        char digits[24];

        while (rest + (size_t)snprintf(digits, sizeof(digits), "%zu", size) != size)
                size++;
        lkg_buf_printf(&record, "%s path=%s\n", digits, name);
        put_header(buf, "pax", 'x', record.size, 0);
        if (record.size)
                lkg_buf_append(buf, record.data, record.size);
        pad(buf, record.size);
}

void lkg_tar_add(struct lkg_buf *buf, const char *name, const char *data, size_t size, uint64_t modified_s)
{
        if (strlen(name) >= NAME_MAX_U)
                put_long_name(buf, name);
        put_header(buf, name, '0', size, modified_s);
        if (size)
                lkg_buf_append(buf, data, size);
        pad(buf, size);
}

void lkg_tar_end(struct lkg_buf *buf)
{
        static const char zeros[2 * BLOCK];

        lkg_buf_append(buf, zeros, sizeof(zeros));
}
