/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between our processes: datagrams, descriptors, settings (rows/settings.rows). */
#include <fcntl.h>
#include <sys/socket.h>

#include <lkg/text.h>
#include <lkg/messages.h>

#include "rows.h"

static int pair[2];

static int make_pair(void **state)
{
        (void)state;
        return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
        (void)state;
        pair[0] = lkg_close(pair[0]);
        pair[1] = lkg_close(pair[1]);
        return 0;
}

/* Rule: docs/specification.md 6.2. */
TEST_WITH(test_message, make_pair, close_pair)
{
        struct lkg_message out, in;

        lkg_message_init(&out, LKG_MSG_COMMAND);
        out.ticket = 99;
        out.uid = 4;
        (void)snprintf(out.command, sizeof(out.command), "hold");
        memset(out.text, 'x',
               LKG_CONTROL_TEXT_MAX + 1); /* one too many: the engine refuses it with a message */
        out.text_size = LKG_CONTROL_TEXT_MAX + 1;
        assert_int_equal(lkg_message_send(pair[0], &out), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), 1);
        assert_int_equal(in.ticket, 99);
        assert_string_equal(in.command, "hold");
        assert_int_equal(strlen(in.text), LKG_CONTROL_TEXT_MAX + 1);
        assert_int_equal(lkg_message_recv(pair[1], &in), -EAGAIN);
        pair[0] = lkg_close(pair[0]);
        assert_int_equal(lkg_message_recv(pair[1], &in), 0);
}

/* In bad/, a text is a name, NUL and the written text: nothing may be cut at the NUL. */
TEST_WITH(test_text_with_nul, make_pair, close_pair)
{
        static const char text[] = "3f9a\0because";
        struct lkg_message out, in;

        lkg_message_init(&out, LKG_MSG_COMMAND);
        memcpy(out.text, text, sizeof(text) - 1);
        out.text_size = sizeof(text) - 1;
        assert_int_equal(lkg_message_send(pair[0], &out), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), 1);
        assert_int_equal(in.text_size, sizeof(text) - 1);
        assert_memory_equal(in.text, text, sizeof(text));
        memset(out.text, 'x', LKG_MESSAGE_TEXT_MAX);
        out.text_size = LKG_MESSAGE_TEXT_MAX;
        assert_int_equal(lkg_message_send(pair[0], &out), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), 1);
        assert_int_equal(strlen(in.text), LKG_MESSAGE_TEXT_MAX);
        out.text_size++;
        assert_int_equal(lkg_message_send(pair[0], &out), -EMSGSIZE);
}

/* Rule: docs/specification.md 6.2. */
TEST_WITH(test_strange_messages, make_pair, close_pair)
{
        struct lkg_message message, in;

        lkg_message_init(&message, LKG_MSG_DONE);
        assert_int_equal(send(pair[0], "hello", 5, 0), 5);
        assert_int_equal(lkg_message_recv(pair[1], &in), -EBADMSG);
        message.version++;
        (void)send(pair[0], &message, offsetof(struct lkg_message, text), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), -EBADMSG);
        message.version--;
        message.type = _LKG_MSG_MAX;
        (void)send(pair[0], &message, offsetof(struct lkg_message, text), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), -EBADMSG);
        message.type = LKG_MSG_DONE;
        message.text_size = 5; /* and nothing after the header */
        (void)send(pair[0], &message, offsetof(struct lkg_message, text), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), -EBADMSG);
        message.text_size = 0;
        memset(message.command, 'c', sizeof(message.command)); /* no NUL */
        (void)send(pair[0], &message, offsetof(struct lkg_message, text), 0);
        assert_int_equal(lkg_message_recv(pair[1], &in), -EBADMSG);
}

/* Rule: docs/specification.md 6.7. */
TEST_WITH(test_handover, make_pair, close_pair)
{
        struct lkg_handover in;
        int fds[LKG_HANDOVER_FDS_MAX], out[2] = { pair[0], pair[1] };

        assert_int_equal(lkg_handover_send(pair[0], LKG_HANDOVER_KEEP, 77, out, 2), 0);
        assert_int_equal(lkg_handover_send(pair[0], LKG_HANDOVER_END, 0, NULL, 0), 0);
        assert_int_equal(lkg_handover_recv(pair[1], MSG_DONTWAIT, &in, fds), 1);
        assert_int_equal(in.type, LKG_HANDOVER_KEEP);
        assert_int_equal(in.node, 77);
        assert_true(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -EBADF);
        assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
        lkg_close(fds[0]);
        lkg_close(fds[1]);
        assert_int_equal(lkg_handover_recv(pair[1], MSG_DONTWAIT, &in, fds), 1);
        assert_int_equal(in.type, LKG_HANDOVER_END);
        assert_int_equal(lkg_handover_recv(pair[1], MSG_DONTWAIT, &in, fds), -EAGAIN);
        (void)send(pair[0], "x", 1, 0);
        assert_int_equal(lkg_handover_recv(pair[1], MSG_DONTWAIT, &in, fds), -EBADMSG);
        pair[0] = lkg_close(pair[0]);
        assert_int_equal(lkg_handover_recv(pair[1], MSG_DONTWAIT, &in, fds), 0);
}

/* Otherwise a sender could use up all descriptors of lkgfsd. */
TEST_WITH(test_handover_of_nothing_but_descriptors, make_pair, close_pair)
{
        int fds[LKG_HANDOVER_FDS_MAX], before, after;
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } rights = { 0 };
        struct iovec iov = { 0 };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        struct lkg_handover in;

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pair[0], sizeof(int));
        assert_int_equal(sendmsg(pair[0], &message, 0), 0);
        before = dup(pair[0]); /* the lowest free number */
        lkg_close(before);
        assert_int_equal(lkg_handover_recv(pair[1], MSG_DONTWAIT, &in, fds), -EBADMSG);
        after = dup(pair[0]);
        assert_int_equal(after, before);
        lkg_close(after);
}

/* Rule: docs/specification.md 6.5. */
static void say_settings(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_settings *settings = NULL;
        struct lkg_error err = { 0 };
        int r = lkg_settings_parse(q->text, q->size, &settings, &err);

        if (r < 0) {
                assert_null(settings);
                lkg_buf_printf(ret, "%s: %s", strerrorname_np(-r), err.message);
                return;
        }
        lkg_buf_printf(ret,
                       "state '%s', timeout %u ms, node '%s', jitter %u ms, engine '%s' %u:%u missing %u",
                       settings->state_dir, settings->engine_timeout_ms, settings->node_name,
                       settings->restart_jitter_ms, settings->engine_user, settings->engine_uid,
                       settings->engine_gid, settings->engine_user_missing);
        for (size_t i = 0; i < settings->n_components; i++) {
                const struct lkg_settings_component *c = &settings->components[i];

                lkg_buf_printf(ret, "; %s of '%s', restart %s '%s' after %u ms, %u per hour", c->name,
                               c->unit, lkg_settings_restart_word(c->restart), c->restart_unit,
                               c->restart_min_interval_ms, c->restart_max_per_hour);
                for (size_t k = 0; k < c->n_restart_argv; k++)
                        lkg_buf_printf(ret, " '%s'", c->restart_argv[k]);
                if (*c->runtime_endpoint)
                        lkg_buf_printf(ret, ", runtime '%s'", c->runtime_endpoint);
        }
        lkg_settings_free(settings);
}

static const struct operation operations[] = { { "settings", say_settings, 0 }, { 0 } };

ROWS(settings, operations)
