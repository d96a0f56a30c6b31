/* SPDX-License-Identifier: Apache-2.0 */
/* How the supervisor handles an exec plugin's answer, and when it may not be run. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <lkg/file.h>

#include "unit.h"
#include "fs/supervisor/supervisor.h"
#include "tmpdir.h"

struct place {
        char d[TMPDIR_MAX];
        int fd;
        struct lkg_helper helper;
        struct lkg_message message;
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        if (!p || tmpdir_make(p->d) < 0)
                return -1;
        p->fd = open(p->d, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *state = p;
        return p->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_close(p->fd);
        (void)tmpdir_remove(p->d);
        free(p);
        return 0;
}

static void answer(struct place *p, const char *output, int status)
{
        p->helper.answer_fd = memfd_create("answer", MFD_CLOEXEC);
        assert_int_equal(pwrite(p->helper.answer_fd, output, strlen(output), 0), strlen(output));
        lkg_errand_answer(LKG_ERRAND_CREDENTIAL, p->fd, &p->helper, status, &p->message);
        assert_int_equal(p->message.type, LKG_MSG_CREDENTIAL);
}

TEST_WITH(test_an_answer_becomes_a_private_file, setup, teardown)
{
        struct place *p = *state;
        struct stat st;
        char *text;
        size_t size;
        int fd;

        answer(p, "{\"kind\":\"ExecCredential\"}\n", 0);
        assert_int_equal(p->message.result, 0);
        assert_int_equal(p->message.text_size, 0);
        fd = openat(p->fd, "credential", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(lkg_read_file(fd, 1000, &text, &size, NULL), 0);
        assert_string_equal(text, "{\"kind\":\"ExecCredential\"}\n");
        free(text);
        lkg_close(fd);
}

TEST_WITH(test_a_failure_is_told_in_one_line, setup, teardown)
{
        static const struct {
                const char *output;
                int status, result;
                const char *text;
        } rows[] = {
                { "it printed nothing.\nmore\n", 74, -EIO, "it printed nothing." },
                { "a\033[2Jb\n", 78, -EIO, "a?[2Jb" },
                { "", 69, -EIO, "it could not be run" },
                { "{}", -1, -ETIMEDOUT, "it did not end in time and was killed" },
        };
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                answer(p, rows[i].output, rows[i].status);
                assert_int_equal(p->message.result, rows[i].result);
                assert_string_equal(p->message.text, rows[i].text);
                assert_int_equal(p->message.text_size, strlen(rows[i].text));
                assert_int_equal(faccessat(p->fd, "credential", F_OK, 0), -1);
        }
}

TEST_WITH(test_too_much_is_no_answer, setup, teardown)
{
        struct place *p = *state;

        p->helper.answer_fd = memfd_create("answer", MFD_CLOEXEC);
        assert_int_equal(ftruncate(p->helper.answer_fd, 100000), 0);
        lkg_errand_answer(LKG_ERRAND_CREDENTIAL, p->fd, &p->helper, 0, &p->message);
        assert_int_equal(p->message.result, -EFBIG);
        assert_string_equal(p->message.text, "its output cannot be read");
}

TEST_WITH(test_asked_too_soon, setup, teardown)
{
        struct lkg_supervisor *s = calloc(1, sizeof(*s));
        struct place *p = *state;
        int pair[2];

        assert_non_null(s);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        s->phase = LKG_PHASE_RUNNING;
        s->dirs.runtime = p->fd;
        s->jobs.errands[LKG_ERRAND_CREDENTIAL].started_ns = lkg_boottime_ns();
        s->children[LKG_CHILD_ENGINE].channel = pair[0];
        lkg_errand_request(s, LKG_ERRAND_CREDENTIAL, NULL);
        assert_int_equal(lkg_message_recv(pair[1], &p->message), 1);
        assert_int_equal(p->message.type, LKG_MSG_CREDENTIAL);
        assert_int_equal(p->message.result, -EAGAIN);
        assert_string_equal(p->message.text, "it ran only a few seconds ago");
        s->phase = LKG_PHASE_UNMOUNT; /* no requests are answered any more */
        lkg_errand_request(s, LKG_ERRAND_CREDENTIAL, NULL);
        assert_int_equal(lkg_message_recv(pair[1], &p->message), -EAGAIN);
        lkg_close(pair[0]);
        lkg_close(pair[1]);
        free(s);
}

TEST_WITH(test_what_nobody_fetched_goes, setup, teardown)
{
        struct lkg_supervisor *s = calloc(1, sizeof(*s));
        struct place *p = *state;

        assert_non_null(s);
        answer(p, "{}", 0);
        s->dirs.runtime = p->fd;
        s->jobs.errands[LKG_ERRAND_CREDENTIAL].started_ns = 1;
        lkg_errands_cancel(s);
        assert_int_equal(faccessat(p->fd, "credential", F_OK, 0), -1);
        free(s);
}
