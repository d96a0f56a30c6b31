/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <endian.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <lkg/file.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

void lkg_journal_field(struct lkg_buf *entry, const char *name, const char *value)
{
        uint64_t size = htole64(strlen(value));

        if (!strchr(value, '\n')) {
                lkg_buf_printf(entry, "%s=%s\n", name, value);
                return;
        }
        lkg_buf_printf(entry, "%s\n", name);
        lkg_buf_append(entry, (const char *)&size, sizeof(size));
        lkg_buf_printf(entry, "%s\n", value);
}

int lkg_journal_send(const struct lkg_buf *entry)
{
        const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET };
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        if (lkg_buf_failed(entry))
                return -ENOMEM;
        /* A new socket for each line: none to keep across fork(), and lines are rare. */
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || sendto(fd, entry->data, entry->size, MSG_NOSIGNAL | MSG_DONTWAIT,
                             (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        return 0;
}
