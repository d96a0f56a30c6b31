/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors between the supervisor and the file server: SOCK_SEQPACKET datagrams with SCM_RIGHTS.
 *
 * A file server gets one end of a socket pair from the supervisor that started it (`--supervisor-fd`). It
 * also listens on `fs.sock` in the private runtime directory (0600, peers are verified by
 * lkg_peer_of_host()): a supervisor that finds a running file server there connects, gets everything that
 * the dead one held, and that connection is the supervisor channel from then on.
 *
 *     supervisor -> file server, when it starts one:  KEEP* LINK? END    (descriptors of unlinked, still open files)
 *     file server -> supervisor that connected:       FDS KEEP* END
 *     file server -> supervisor:                      READY (serving), KEEP{node, fd}, DROP{node}, FORGET (names that nobody uses),
 *                                                     LINK (it has no connection to the engine)
 *     supervisor -> file server:                      LINK{fd}, STOP
 *
 * FDS carries, in this order: device, shared memory, source directory, listening socket of the engine. LINK
 * carries a socket that is connected to that one: the file server cannot create sockets itself, so that it
 * cannot connect to any other process.
 */
#pragma once

#include <lkg/base.h>

#define LKG_HANDOVER_SOCKET  "fs.sock"
#define LKG_ENGINE_SOCKET    "engine.sock"
#define LKG_HANDOVER_FDS_MAX 4

enum lkg_handover_type {
        LKG_HANDOVER_FDS = 1,
        LKG_HANDOVER_KEEP,
        LKG_HANDOVER_DROP,
        LKG_HANDOVER_END,
        LKG_HANDOVER_READY,
        LKG_HANDOVER_STOP,
        LKG_HANDOVER_FORGET,
        LKG_HANDOVER_LINK,
        _LKG_HANDOVER_MAX
};

struct lkg_handover {
        uint32_t version; /* LKG_MESSAGE_VERSION of control.h */
        uint32_t type;
        uint64_t node; /* KEEP, DROP */
        uint32_t n_fds;
        uint32_t reserved;
};

/**
 * lkg_handover_send() - send one message with @n_fds descriptors; waits until the peer has room.
 * Return: 0 or -errno.
 */
int lkg_handover_send(int fd, enum lkg_handover_type type, uint64_t node, const int *fds, size_t n_fds);
/**
 * lkg_handover_recv() - receive one message; the descriptors in @fds (close-on-exec, -EBADF for none) belong
 * to the caller. @flags: see recvmsg(2); MSG_DONTWAIT does not block.
 * Return: 1; 0 at end of file; -EAGAIN; -EBADMSG: not our message; another -errno.
 */
int lkg_handover_recv(int fd, int flags, struct lkg_handover *ret, int fds[static LKG_HANDOVER_FDS_MAX]);
