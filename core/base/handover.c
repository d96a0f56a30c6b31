/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams that carry descriptors; the protocol is in lkg/messages.h. */
#include <sys/socket.h>

#include <lkg/messages.h>

union rights {
        char bytes[CMSG_SPACE(sizeof(int) * LKG_HANDOVER_FDS_MAX)];
        struct cmsghdr align;
};

int lkg_handover_send(int fd, enum lkg_handover_type type, uint64_t node, const int *fds, size_t n_fds)
{
        struct lkg_handover handover = {
                .version = LKG_MESSAGE_VERSION, .type = type, .node = node, .n_fds = (uint32_t)n_fds
        };
        struct iovec iov = { .iov_base = &handover, .iov_len = sizeof(handover) };
        union rights rights = { 0 };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > LKG_HANDOVER_FDS_MAX)
                return -E2BIG;
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
        for (;;) {
                if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0)
                        return 0;
                if (errno != EINTR)
                        return -errno;
        }
}

static void take_fds(struct msghdr *message, int fds[static LKG_HANDOVER_FDS_MAX], size_t *ret_n)
{
        size_t n = 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                size_t n_here;
                const int *list = (const int *)(const void *)CMSG_DATA(c);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                n_here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n_here; i++) {
                        if (n < LKG_HANDOVER_FDS_MAX)
                                fds[n++] = list[i];
                        else
                                (void)close(list[i]);
                }
        }
        *ret_n = n;
}

int lkg_handover_recv(int fd, int flags, struct lkg_handover *ret, int fds[static LKG_HANDOVER_FDS_MAX])
{
        struct lkg_handover handover = { 0 };
        struct iovec iov = { .iov_base = &handover, .iov_len = sizeof(handover) };
        union rights rights;
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)
        };
        size_t n_fds = 0;
        ssize_t n;

        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                fds[i] = -EBADF;
        do
                n = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        take_fds(&message, fds, &n_fds);
        if (n == 0 && n_fds == 0) /* with descriptors it is not the end, and we must close them */
                return 0;
        if (n != sizeof(handover) || handover.version != LKG_MESSAGE_VERSION || handover.type < 1 ||
            handover.type >= _LKG_HANDOVER_MAX || handover.n_fds != n_fds) {
                for (size_t i = 0; i < n_fds; i++)
                        fds[i] = lkg_close(fds[i]);
                return -EBADMSG;
        }
        *ret = handover;
        return 1;
}
