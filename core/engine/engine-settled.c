/* SPDX-License-Identifier: Apache-2.0 */
/* Does a changed file count yet, or is somebody in the middle of writing it? docs/specification.md 2.5 has the table. */
#include <limits.h>
#include <sys/stat.h>

#include "engine-internal.h"

static bool is_vouched(const struct lkg_engine *e, const char *path)
{
        size_t top = strlen(e->source_path);

        for (size_t i = 0; i < e->n_vouched; i++) {
                const char *said = e->vouched[i], *there = path;
                size_t n = strlen(said);

                if (*said != '/') {
                        if (strncmp(path, e->source_path, top) != 0 || path[top] != '/')
                                continue;
                        there = path + top + 1;
                }
                if (strncmp(there, said, n) == 0 && (there[n] == '\0' || there[n] == '/'))
                        return true;
        }
        return e->vouched_all;
}

static void forget_sample(struct lkg_engine *e, size_t i)
{
        free(e->stability_samples[i].path);
        e->stability_samples[i] = e->stability_samples[--e->n_stability_samples];
}

/* How long @path is known to have had @st; 0 = seen for the first time. */
static uint64_t stable_for(struct lkg_engine *e, const char *path, const struct stat *st, uint64_t now_ns)
{
        struct lkg_stability_sample *s = e->stability_samples;
        struct lkg_file_id id;
        size_t i = 0;

        lkg_file_id_from_stat(st, &id);
        while (i < e->n_stability_samples && strcmp(s[i].path, path) != 0)
                i++;
        if (i < e->n_stability_samples && lkg_file_id_equal(&s[i].id, &id))
                return now_ns - s[i].since_ns;
        if (i == LKG_ARRAY_SIZE(e->stability_samples))
                return UINT64_MAX; /* this many at once are not an editor's: take them as they are */
        if (i == e->n_stability_samples) {
                s[i].path = strdup(path);
                if (!s[i].path)
                        return UINT64_MAX;
                e->n_stability_samples++;
        }
        s[i].id = id;
        s[i].since_ns = now_ns;
        return 0;
}

/* ansible, rsync and others write `.name.XXXX` first, close it, some write it again, and rename it in the end. */
static bool is_hidden(const char *path)
{
        const char *slash = strrchr(path, '/');

        return (slash ? slash[1] : *path) == '.';
}

/*
 * Does a changed file count yet? docs/specification.md 2.5 has the table.
 *
 * A truncation is visible before inotify reports it, and even before the time stamps show it. So inotify alone does not make a
 * changed file count: it must look the same LKG_RECENT_NS later. On a busy machine that report may come much later, so
 * an empty file counts after two seconds (LKG_UNSETTLED_NS), even if its writer has closed it: no layer is empty, a truncated
 * one is. So does a hidden file, whose name is probably a temporary one. When a file server has just died, all its files were
 * closed, even those that are half written: then the word of its successor, or the same time without a change, is needed. At
 * the start there is no earlier look, only the time stamp.
 */
static bool just_written(struct lkg_engine *e, const char *path)
{
        uint64_t now = lkg_boottime_ns(), age;
        bool lost = e->lost_ns != 0 && now - e->lost_ns < LKG_UNSETTLED_NS;
        bool slow, closed = is_vouched(e, path);
        struct stat st;

        if (e->vouched_all || stat(path, &st) < 0)
                return false;
        slow = st.st_size == 0 || is_hidden(path);
        if (closed && !slow)
                return false;
        if (!e->started) {
                age = (uint64_t)st.st_ctim.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
                return age <= lkg_realtime_ns() && lkg_realtime_ns() - age < LKG_RECENT_NS;
        }
        return stable_for(e, path, &st, now) < (lost || slow ? LKG_UNSETTLED_NS : LKG_RECENT_NS);
}

void lkg_engine_forget_samples(struct lkg_engine *e)
{
        uint64_t now = lkg_boottime_ns();

        for (size_t i = 0; i < e->n_stability_samples;)
                if (now - e->stability_samples[i].since_ns > 2 * LKG_UNSETTLED_NS)
                        forget_sample(e, i);
                else
                        i++;
}

/* Events until now count: the writer may have begun while the file was being read. */
static bool unsettled(const char *path, void *userdata)
{
        struct lkg_engine *e = userdata;

        if (lkg_watch_drain(&e->watch, lkg_boottime_ns()))
                e->look_again = true;
        if (e->new_stacks)
                return false;
        if (lkg_watch_unsettled(path, &e->watch))
                return true;
        if (!just_written(e, path))
                return false;
        e->recent = true;
        return true;
}

struct lkg_component_env lkg_engine_env(struct lkg_engine *e)
{
        return (struct lkg_component_env){
                .config = e->config,
                .state = &e->state,
                .poison = &e->poison,
                .source_fd = e->options.source_fd,
                .source_path = e->source_path,
                .unsettled = unsettled,
                .userdata = e,
        };
}
