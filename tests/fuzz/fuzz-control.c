/* SPDX-License-Identifier: Apache-2.0 */
/* Any datagram on our sockets: it is one of our messages, within its bounds, or it is refused. */
#include <sys/socket.h>

#include <lkg/messages.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(int fd)
{
        struct lkg_message message;

        if (lkg_message_recv(fd, &message) != 1)
                return;
        if (message.text_size >= sizeof(message.text) || message.text[message.text_size] != '\0' ||
            !memchr(message.command, '\0', sizeof(message.command)) ||
            !memchr(message.exe, '\0', sizeof(message.exe)) || message.type == 0 ||
            message.type >= _LKG_MSG_MAX)
                abort();
}

static void check_handover(int fd)
{
        struct lkg_handover handover;
        int fds[LKG_HANDOVER_FDS_MAX];

        if (lkg_handover_recv(fd, MSG_DONTWAIT, &handover, fds) == 1 &&
            (handover.type == 0 || handover.type >= _LKG_HANDOVER_MAX || handover.n_fds != 0))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int pair[2];

        if (size > LKG_MESSAGE_BYTES_MAX || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return 0;
        (void)send(pair[0], data, size, MSG_DONTWAIT);
        (void)send(pair[0], data, size, MSG_DONTWAIT);
        check_message(pair[1]);
        check_handover(pair[1]);
        lkg_close(pair[0]);
        lkg_close(pair[1]);
        return 0;
}
