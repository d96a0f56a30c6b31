/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between our processes: one SOCK_SEQPACKET datagram each, host byte order. Both ends are of the same build; the
 * version in the header is checked, and lkgfsd restarts an end of another build. Rules: docs/specification.md 6.2.
 *
 * file server -> engine over the engine socket (the supervisor holds the listening descriptor, so a connection made during an
 * engine restart waits in the backlog):
 *
 *     CHANGED  a layer source changed through the mount; `text` is the source path      -> DONE
 *     COMMAND  one write to a control file: uid, pid, path and text                     -> DONE
 *              in bad/<component>: `bad` = a write to a name, text = name, NUL, what was written;
 *              `forgive` = unlink of a name, text = name
 *     STARTED  a process of the component (index) opened its file: pid, start time, executable;
 *              `number` = generation that it opened                                     -> DONE
 *     LOADED   publication `number` is being served (no answer)
 *     ALIVE    are you there?                                                          -> ALIVE, same ticket
 *
 * engine -> file server:
 *
 *     DONE       ticket, result 0 or -errno; everything that the request caused is contained in publication `number`.
 *                For STARTED: -ESTALE = the opener must look the name up again; anything else = let it
 *                continue
 *     PUBLISHED  publication `number` is current (sent for every publication; DONE for it comes after)
 *
 * engine -> supervisor over the supervisor socket:
 *
 *     PUBLISHED as above; the first one means "ready" FATAL result is a sysexits code, text is the reason:
 *     do not restart me STARTED a process of the component (index) began or ended: its executable and its
 *     unit may have changed CREDENTIAL run the exec plugin of the kubeconfig that our configuration names;
 *     the engine may not execute programs RESTART restart the component (index): the meaning of its
 *     configuration has changed. `number` = generation that
 *                it is to read, 0 = a planned restart is no longer needed; result 1 = because of a remote change (with
 *                jitter, so that a fleet does not restart at once), 0 = because of a local change or an operator
 *
 *     FALLBACK   the fallback copies of a component are due: text = its name, a space, SHA-256 of the document (a blob of the
 *                current publication); no digest: remove the copy under the view's name  -> FALLBACK, text = name, result
 *
 *     LOG        a line for the journal, which the engine cannot reach: result = priority, number = generation, command =
 *                component, exe = layer
 *
 * STARTED is sent once for a process whose open waits for the answer, and again, without waiting, for every newer
 * generation that this process opens later.
 *
 *     ALIVE      the answer to a question of the same ticket
 *
 * supervisor -> engine: ALIVE (are you there?), RELOAD (SIGHUP), STOP (write the durable state, exit 0),
 * CREDENTIAL (the plugin's answer is the file `credential` of the runtime directory, result 0; or result
 * -errno and the reason as text). supervisor -> file server: STOP. The sender of a request chooses its
 * ticket, unique per boot. A repeated ticket (the file server was killed and its successor asks again) gets
 * the first result and is not carried out twice.
 */
#pragma once

#include <lkg/log.h>
#include <lkg/base.h>
#include <lkg/limits.h>

#define LKG_MESSAGE_VERSION 3

enum lkg_message_type {
        LKG_MSG_CHANGED = 1,
        LKG_MSG_COMMAND,
        LKG_MSG_STARTED,
        LKG_MSG_LOADED,
        LKG_MSG_DONE,
        LKG_MSG_PUBLISHED,
        LKG_MSG_FATAL,
        LKG_MSG_RELOAD,
        LKG_MSG_STOP,
        LKG_MSG_RESTART,
        LKG_MSG_CREDENTIAL,
        LKG_MSG_ALIVE,
        LKG_MSG_FALLBACK,
        LKG_MSG_LOG,
        _LKG_MSG_MAX
};

struct lkg_message {
        uint32_t version; /* LKG_MESSAGE_VERSION */
        uint32_t type;
        uint64_t ticket;
        uint64_t number;    /* publication; STARTED, RESTART: generation */
        int32_t result;     /* 0 or -errno; FATAL: sysexits; RESTART: 1 = remote */
        uint32_t component; /* index in the manifest */
        uint32_t uid, gid;
        int32_t pid;         /* thread group id of the caller; 0 = unknown (another pid namespace) */
        uint32_t login_uid;  /* /proc/<pid>/loginuid, UINT32_MAX = unset */
        uint64_t start_time; /* field 22 of /proc/<pid>/stat, for STARTED */
        uint32_t text_size;  /* bytes used in text */
        char command[32];    /* COMMAND: name of the control file */
        char exe[256];       /* COMMAND, STARTED: executable of the caller, truncated */
        char text[LKG_MESSAGE_TEXT_MAX +
                  3]; /* COMMAND: the written text; CHANGED: source path; NUL-terminated */
};

/** lkg_message_init() - zero it and set version and type. */
void lkg_message_init(struct lkg_message *message, enum lkg_message_type type);
/**
 * lkg_message_is_sound() - does it have this version and a known type, and is each text in it terminated?
 */
bool lkg_message_is_sound(const struct lkg_message *message);
/**
 * lkg_message_send() - never blocks. The unused end of the text is not sent.
 * Return: 0; -EAGAIN: the peer's queue is full; another -errno.
 */
int lkg_message_send(int fd, const struct lkg_message *message);
/**
 * lkg_message_send_log() - send a line of the log to lkgfsd, which writes it to the journal with these fields.
 * Return: 0; -EMSGSIZE; as lkg_message_send(): the caller writes it elsewhere.
 */
int lkg_message_send_log(int fd, int priority, const struct lkg_log_fields *fields, const char *text);
/**
 * lkg_message_recv() - receive one message, never blocks.
 * Return: 1; 0 at end of file; -EAGAIN; -EBADMSG: not one of our messages; another -errno.
 */
int lkg_message_recv(int fd, struct lkg_message *ret);
