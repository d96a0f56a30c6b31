/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any datagrams, with descriptors of every kind, as what lkgfsd receives from an adopted file server; and
 * any bytes as the shared memory that a dead one left. Only descriptors that were announced are kept, no
 * descriptor leaks, and a memory is either accepted or refused. Rule: docs/specification.md 6.7.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <lkg/file.h>
#include <lkg/messages.h>
#include <lkg/base.h>
#include <lkg/shared.h>

#include "fs/supervisor/supervisor.h"
#include "fuzz-check.h"
#include "tests/unit/tmpdir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FDS_MAX 8u /* more than one of our messages has */

static struct lkg_supervisor supervisor;

static int descriptor(unsigned kind)
{
        int pair[2] = { -EBADF, -EBADF };

        switch (kind % 5u) {
        case 0:
                return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        case 1:
                return memfd_create("fuzz", MFD_CLOEXEC);
        case 2:
                return eventfd(0, EFD_CLOEXEC);
        case 3: /* the other end is closed */
                FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
                lkg_close(pair[1]);
                return pair[0];
        default:
                return open("/dev/null", O_WRONLY | O_CLOEXEC);
        }
}

/* Send one datagram: @n_fds descriptors, whose kinds are in the first bytes. */
static void send_one(int to, const uint8_t *data, size_t size, unsigned n_fds)
{
        union {
                char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
                struct cmsghdr align;
        } rights = { 0 };
        struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
        int fds[FDS_MAX];

        for (unsigned i = 0; i < n_fds; i++)
                fds[i] = descriptor(i < size ? data[size - 1 - i] : i);
        if (n_fds > 0) {
                struct cmsghdr *c;

                message.msg_control = &rights;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                c = CMSG_FIRSTHDR(&message);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
        }
        (void)sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        for (unsigned i = 0; i < n_fds; i++)
                lkg_close(fds[i]);
}

static int lowest_free(void)
{
        int fd = dup(0);

        return lkg_close(fd), fd;
}

/* A step: how many descriptors, how many bytes, the bytes. */
static void send_steps(int to, const uint8_t *data, size_t size)
{
        while (size >= 2) {
                size_t n = data[1] < size - 2 ? data[1] : size - 2;

                send_one(to, data + 2, n, data[0] % (FDS_MAX + 1));
                data += 2 + n;
                size -= 2 + n;
        }
        lkg_close(to);
}

/* Receive from a server that we started, or from one that we found (@found). */
static void hear(const uint8_t *data, size_t size, bool found)
{
        int fds[LKG_HANDOVER_FDS_MAX] = { -EBADF, -EBADF, -EBADF, -EBADF };
        struct lkg_child *child = &supervisor.children[LKG_CHILD_SERVER];
        int pair[2], before = lowest_free(), lifted = fcntl(0, F_DUPFD_CLOEXEC, LKG_FD_BASE);
        size_t n_kept = 0;

        FUZZ_CHECK(lifted >= 0 && close(lifted) == 0);
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        supervisor.phase = LKG_PHASE_END;
        *child = (struct lkg_child){ .supervisor = &supervisor,
                                     .row = &lkg_server_row,
                                     .kind = LKG_CHILD_SERVER,
                                     .pidfd = -EBADF,
                                     .ready = true,
                                     .channel = pair[1] };
        send_steps(pair[0], data, size);
        if (found && lkg_adopt_receive(&supervisor, pair[1], fds) == 0)
                for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                        FUZZ_CHECK(fcntl(fds[i], F_GETFD) == FD_CLOEXEC);
        else if (!found)
                lkg_child_hear_out(child);
        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                lkg_close(fds[i]);
        lkg_close(pair[1]);
        for (size_t i = 0; i < LKG_KEPT; i++) {
                n_kept += supervisor.connection.kept[i].node != 0;
                FUZZ_CHECK(supervisor.connection.kept[i].node == 0 ||
                           fcntl(supervisor.connection.kept[i].fd, F_GETFD) == FD_CLOEXEC);
                for (size_t k = 0; k < i; k++)
                        FUZZ_CHECK(supervisor.connection.kept[i].node == 0 ||
                                   supervisor.connection.kept[i].node != supervisor.connection.kept[k].node);
        }
        lkg_kept_drop(&supervisor.connection, 0);
        /* Everything is closed again: the lowest numbers are free on both sides of the base. */
        FUZZ_CHECK(lowest_free() == before && child->pid == 0 && n_kept <= LKG_KEPT);
        FUZZ_CHECK(fcntl(0, F_DUPFD_CLOEXEC, LKG_FD_BASE) == lifted && close(lifted) == 0);
}

/* Size of the memory, in units of half of ours plus some bytes, then its first bytes. */
static void adopt(const uint8_t *data, size_t size)
{
        int fd = memfd_create("fuzz", MFD_CLOEXEC);
        struct lkg_shared *shared;
        struct stat st;
        off_t length;

        if (size < 2 || fd < 0) {
                lkg_close(fd);
                return;
        }
        length = (off_t)(data[0] % 4u * (sizeof(*shared) / 2) + data[1] % 3u) - 1;
        FUZZ_CHECK(ftruncate(fd, length < 0 ? 0 : length) == 0);
        FUZZ_CHECK(pwrite(fd, data + 2, size - 2, 0) == (ssize_t)(size - 2));
        shared = lkg_shared_map(fd);
        FUZZ_CHECK(fstat(fd, &st) == 0);
        if (shared) {
                size_t n = lkg_shared_slots(shared);

                FUZZ_CHECK((size_t)st.st_size == sizeof(*shared) && shared->magic == LKG_SHARED_MAGIC);
                FUZZ_CHECK(n <= LKG_SLOTS);
                FUZZ_CHECK(n == 0 || atomic_load(&shared->slots[n - 1].state) == LKG_SLOT_FREE);
                (void)munmap(shared, sizeof(*shared));
        }
        lkg_close(fd);
}

static char directory[TMPDIR_MAX];

static void remove_directory(void)
{
        (void)tmpdir_remove(directory);
}

/*
 * A file server asks for the engine's socket. Nothing accepts there, so the number of connections is
 * limited.
 */
static void begin(void)
{
        struct lkg_error err = { 0 };

        lkg_log_init("fuzz", LOG_EMERG);
        FUZZ_CHECK(tmpdir_make(directory) == 0);
        (void)atexit(remove_directory);
        supervisor.life = &lkg_life;
        supervisor.dirs.private_path = directory;
        supervisor.dirs.runtime = lkg_lift_fd(open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        FUZZ_CHECK(supervisor.dirs.runtime >= 0 && lkg_listen_open(&supervisor, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!supervisor.life)
                begin();
        if (size > 0 && data[0] == 'm')
                adopt(data + 1, size - 1);
        else if (size > 0)
                hear(data + 1, size - 1, data[0] == 'a');
        return 0;
}
