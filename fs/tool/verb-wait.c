/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs wait: uses poll(2) on status/<component>/generation. A file of the view shows one publication from
 * open to close, and poll reports POLLPRI as soon as other content has replaced it: so no change between the
 * read and the poll is lost, and the file is reopened to read the new number.
 */
#include "tool.h"

#include <fcntl.h>
#include <poll.h>

#include <lkg/file.h>

#define NUMBER_BYTES_MAX 64

struct wait {
        const struct lkg_tool *tool;
        const struct lkg_view *view;
        char *path;           /* status/<component>/generation */
        uint64_t deadline_ns; /* UINT64_MAX = none */
};

/* Return: the descriptor; -errno. */
static int open_generation(const struct wait *wait, uint64_t *ret)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(wait->view->fd, wait->path, O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        int r;

        if (fd < 0)
                return -errno;
        r = lkg_read_file(fd, NUMBER_BYTES_MAX, &text, NULL, NULL);
        if (r < 0)
                return r;
        *ret = strtoull(text, NULL, 10);
        return LKG_STEAL_FD(fd);
}

/* Return: 1 changed; 0 timeout; -errno. */
static int poll_change(const struct wait *wait, int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLPRI };

        for (;;) {
                uint64_t now_ns = lkg_boottime_ns(), left_ms;
                int timeout_ms = -1, r;

                if (wait->deadline_ns != UINT64_MAX) {
                        if (now_ns >= wait->deadline_ns)
                                return 0;
                        left_ms = (wait->deadline_ns - now_ns) / LKG_NSEC_PER_MSEC + 1;
                        timeout_ms = left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
                }
                r = poll(&poll_fd, 1, timeout_ms);
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r > 0)
                        return poll_fd.revents & (POLLNVAL | POLLERR) && !(poll_fd.revents & POLLPRI) ? -EIO
                                                                                                      : 1;
        }
}

/* @wanted 0: any generation other than the first one seen. */
static int wait_for(const struct wait *wait, uint64_t wanted)
{
        uint64_t first = 0;

        for (bool began = false;; began = true) {
                LKG_CLEANUP(lkg_closep) int fd = -EBADF;
                uint64_t now = 0;
                int r;

                fd = open_generation(wait, &now);
                if (fd < 0)
                        return lkg_tool_fail(wait->tool, LKG_TOOL_FAILED, "%s/%s: %s", wait->view->root,
                                             wait->path, strerror(-fd));
                if (!began)
                        first = now;
                if (wanted ? now >= wanted : now != first) {
                        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

                        lkg_buf_printf(&buf, "%llu\n", (unsigned long long)now);
                        return lkg_tool_print(&buf, LKG_TOOL_OK);
                }
                r = poll_change(wait, fd);
                if (r == 0)
                        return lkg_tool_fail(wait->tool, LKG_TOOL_DIFFERENT,
                                             "timeout: generation %llu is served", (unsigned long long)now);
                if (r < 0)
                        return lkg_tool_fail(wait->tool, LKG_TOOL_FAILED, "poll %s/%s: %s", wait->view->root,
                                             wait->path, strerror(-r));
        }
}

static int parse_words(const struct lkg_tool *tool, uint64_t *ret)
{
        char *end = NULL;

        *ret = 0;
        if (tool->n_words == 0)
                return 0;
        if (tool->n_words != 2 || strcmp(tool->words[0], "generation") != 0)
                return -EINVAL;
        errno = 0;
        if (tool->words[1][0] < '0' || tool->words[1][0] > '9')
                return -EINVAL;
        *ret = strtoull(tool->words[1], &end, 10);
        return errno || *end || *ret == 0 ? -EINVAL : 0;
}

int lkg_verb_wait(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_view_close) struct lkg_view view = { .fd = -EBADF };
        LKG_CLEANUP(lkg_freep) char *component = NULL;
        struct wait wait = { .tool = tool, .view = &view, .deadline_ns = UINT64_MAX };
        uint64_t wanted, now_ns = lkg_boottime_ns();
        int r;

        if (parse_words(tool, &wanted) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "want nothing, or `generation N` with N from 1");
        if (tool->options.has_timeout && tool->options.timeout_ns < UINT64_MAX - now_ns)
                wait.deadline_ns = now_ns + tool->options.timeout_ns;
        r = lkg_view_open(tool, &view);
        if (r == LKG_TOOL_OK)
                r = lkg_view_component(tool, &view, &component);
        if (r != LKG_TOOL_OK)
                return r;
        if (asprintf(&wait.path, "status/%s/generation", component) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        r = wait_for(&wait, wanted);
        free(wait.path);
        return r;
}
