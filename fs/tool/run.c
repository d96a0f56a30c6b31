/* SPDX-License-Identifier: Apache-2.0 */
/* How a verb runs: in a child that is abandoned if the mount does not answer, or again and again for --watch. */
#include <time.h>

#include "tool.h"

#include <lkg/process.h>

#define OUTPUT_MAX (32u << 20)

/* ---- guarded ---- */

/*
 * On a broken node a call into the mount may wait forever: the kernel holds the caller until there is an
 * answer. SIGKILL ends that, but not if a server that hangs has already read the request (fs/fuse/dev.c,
 * request_wait_answer: then the kernel waits for the answer). So a verb that touches the mount runs in a
 * child; the parent waits for a limited time and passes on the child's output. The child holds no pipe of
 * the caller: `x=$(lkgfs status)` ends when the parent does, even if the child cannot.
 */
struct guarded {
        struct lkg_tool tool;
        int cwd; /* a job begins in the root directory */
};

static int run_verb(void *userdata)
{
        const struct guarded *guarded = userdata;

        return fchdir(guarded->cwd) < 0 ? LKG_TOOL_FAILED : guarded->tool.verb->run(&guarded->tool);
}

static int pass_on(const struct lkg_tool *tool, int fd, const struct lkg_job_output *output, int status)
{
        int r = lkg_write_all(fd, output->data, output->size);

        return r < 0 ? lkg_tool_fail(tool, LKG_TOOL_FAILED, "write the output: %s", strerror(-r)) : status;
}

/* Messages are passed on; the product is left to the caller. Return: exit status. */
static int run_guarded(const struct lkg_tool *tool, struct lkg_job_output *out)
{
        struct guarded guarded = { *tool, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) };
        const struct lkg_job_spec spec = { .run = run_verb,
                                           .userdata = &guarded,
                                           .flags = LKG_JOB_KEEPS_FDS | LKG_JOB_IN_GROUP };
        LKG_CLEANUP(lkg_freep) char *said = lkg_must(malloc(OUTPUT_MAX));
        struct lkg_job_output err = { .data = said, .max = OUTPUT_MAX };
        int ended = 0, r, status;

        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                guarded.tool.coloured[fd] = lkg_tool_colour_for(tool, fd);
        guarded.tool.captured = true;
        r = lkg_job_run(&spec, tool->verb->limit_s * LKG_NSEC_PER_SEC, out, &err, &ended);
        (void)lkg_close(guarded.cwd);
        status = pass_on(tool, STDERR_FILENO, &err, WEXITSTATUS(ended));
        if (r == 0 && !WIFEXITED(ended))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "ended by a signal");
        if (r == 0)
                return status;
        if (r != -ETIMEDOUT)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "run in a process of its own: %s", strerror(-r));
        (void)lkg_tool_fail(tool, LKG_TOOL_FAILED,
                            "the mount has not answered for %u s: is lkgfsd running? "
                            "(journalctl -u lkgfs; lkgfsd adopts the mount when it is started again)",
                            tool->verb->limit_s);
        return tool->verb->silent ? tool->verb->silent(tool) : LKG_TOOL_FAILED;
}

int lkg_tool_guard(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_freep) char *data = lkg_must(malloc(OUTPUT_MAX));
        struct lkg_job_output out = { .data = data, .max = OUTPUT_MAX, .bounded = true };
        int status = run_guarded(tool, &out);

        return pass_on(tool, STDOUT_FILENO, &out, status);
}

/* ---- again and again ---- */

/*
 * status --watch: prints the screen again whenever it has changed. It looks once a second, in a process of its own each time, so
 * that a mount that hangs for a while does not end it. A terminal is cleared before each screen; anything else gets one screen
 * after the other, and no new one only because a time like "3 s ago" has grown.
 */
#define PAUSE_NS     LKG_NSEC_PER_SEC
#define CLEAR_SCREEN "\033[H\033[2J"

/* Skips " (3 min ago)". */
static const char *skip_age(const char *text)
{
        size_t n = 0;

        if (text[0] != ' ' || text[1] != '(' || text[2] < '0' || text[2] > '9')
                return text;
        n = 2 + strspn(text + 2, "0123456789 abcdefghijklmnopqrstuvwxyz");
        return text[n] == ')' && n > 6 && strncmp(text + n - 4, " ago", 4) == 0 ? text + n + 1 : text;
}

/* Are the two equal, apart from ages ("(3 s ago)")? */
static bool same_screen(const char *a, const char *b)
{
        for (;;) {
                a = skip_age(a);
                b = skip_age(b);
                if (*a != *b)
                        return false;
                if (!*a)
                        return true;
                a++;
                b++;
        }
}

int lkg_screen_show(const struct lkg_tool *tool, char **shown, const char *text, const char *compared)
{
        bool terminal = isatty(STDOUT_FILENO) == 1;
        const char *before = terminal ? CLEAR_SCREEN : *shown ? "\n" : "";
        int r;

        if (!terminal && *shown && same_screen(compared, *shown))
                return LKG_TOOL_OK;
        r = lkg_write_all(STDOUT_FILENO, before, strlen(before));
        if (r >= 0)
                r = lkg_write_all(STDOUT_FILENO, text, strlen(text));
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "standard output: %s", strerror(-r));
        free(*shown);
        *shown = lkg_must(strdup(compared));
        return LKG_TOOL_OK;
}

int lkg_tool_watch(const struct lkg_tool *tool)
{
        static const struct timespec pause = { .tv_sec = (time_t)(PAUSE_NS / LKG_NSEC_PER_SEC) };
        LKG_CLEANUP(lkg_freep) char *shown = NULL;
        LKG_CLEANUP(lkg_freep) char *data = lkg_must(malloc(OUTPUT_MAX));

        for (;;) {
                struct lkg_job_output out = { .data = data, .max = OUTPUT_MAX - 1, .bounded = true };
                int status = run_guarded(tool, &out);

                if (status == LKG_TOOL_USAGE)
                        return status; /* it has said why */
                data[out.size] = '\0';
                status = lkg_screen_show(tool, &shown, data, data);
                if (status != LKG_TOOL_OK)
                        return status;
                (void)nanosleep(&pause, NULL);
        }
}
