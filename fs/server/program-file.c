/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file has the path of a `match exe` rule? The path may be on a file system that does not answer, or
 * lead into the view itself, so workers never look it up: a thread does, at most one per path and only on
 * demand. The caller waits briefly; after that the last result is used, initially none.
 */
#include <sys/prctl.h>

#include "held-requests.h"

#define PROGRAMS 64u /* paths of all rules; further ones match no process */
#define LOOK_NS  (50 * LKG_NSEC_PER_MSEC)

static struct program {
        char *path; /* never freed: a thread may be using it */
        struct lkg_program_file file;
        uint64_t asked, answered; /* looks */
        uint64_t busy_ns;         /* CLOCK_MONOTONIC: start of the current look; 0 = no thread */
} programs[PROGRAMS];
static size_t n_programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects: all of them. A leaf. */
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;

static uint64_t monotonic_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Runs as long as there is a question that is newer than the start of the last look. */
static void *look(void *userdata)
{
        struct program *p = userdata;
        struct stat st;

        (void)prctl(PR_SET_NAME, "program");

        (void)pthread_mutex_lock(&lock);
        while (p->answered < p->asked) {
                uint64_t question = p->asked;
                bool found;

                p->busy_ns = monotonic_ns();
                (void)pthread_mutex_unlock(&lock);
                found = stat(p->path, &st) == 0;
                (void)pthread_mutex_lock(&lock);
                p->file = found ? (struct lkg_program_file){ st.st_dev, st.st_ino }
                                : (struct lkg_program_file){ 0, 0 };
                p->answered = question;
                (void)pthread_cond_broadcast(&answered);
        }
        p->busy_ns = 0;
        (void)pthread_mutex_unlock(&lock);
        return NULL;
}

/* Lock held. Return: NULL: out of memory, or too many. */
static struct program *find(const char *path)
{
        for (size_t i = 0; i < n_programs; i++)
                if (strcmp(programs[i].path, path) == 0)
                        return &programs[i];
        if (n_programs == PROGRAMS || !(programs[n_programs].path = strdup(path)))
                return NULL;
        return &programs[n_programs++];
}

/* Lock held. Return: false: no thread looks. */
static bool somebody_looks(struct program *p, uint64_t now_ns)
{
        if (p->busy_ns != 0)
                return true;
        if (thread_start(look, p) < 0)
                return false;
        p->busy_ns = now_ns;
        return true;
}

struct lkg_program_file program_file(const char *path)
{
        struct lkg_program_file file = { 0, 0 };
        uint64_t now = monotonic_ns(), question;
        struct timespec until;
        struct program *p;

        (void)pthread_mutex_lock(&lock);
        p = find(path);
        if (p) {
                question = ++p->asked;
                if (somebody_looks(p, now)) {
                        uint64_t end = p->busy_ns + LOOK_NS; /* wait only once for a look that hangs */

                        until.tv_sec = (time_t)(end / LKG_NSEC_PER_SEC);
                        until.tv_nsec = (long)(end % LKG_NSEC_PER_SEC);
                        while (p->answered < question &&
                               pthread_cond_clockwait(&answered, &lock, CLOCK_MONOTONIC, &until) == 0)
                                ;
                }
                file = p->file;
        }
        (void)pthread_mutex_unlock(&lock);
        return file;
}
