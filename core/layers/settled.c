/* SPDX-License-Identifier: Apache-2.0 */
/* Does a changed file count yet (is this file complete?), or is it still being written? docs/specification.md 2.5 has the table. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <lkg/stack.h>
#include <lkg/text.h>

/* Is @said the same as @path, or above it? It may be relative to the source directory. */
static bool covers(const struct lkg_settled *s, const char *said, const char *path)
{
        size_t n = strlen(said);

        if (*said != '/')
                path = lkg_path_below(path, s->source_path);
        return path && strncmp(path, said, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool says(const struct lkg_settled *s, const char *path)
{
        for (size_t i = 0; i < s->n_vouched; i++)
                if (covers(s, s->vouched[i], path))
                        return true;
        return false;
}

/* A writer vouches for a layer under its own name, or under that of a link on the way to it, or where the link leads. */
static bool is_vouched(const struct lkg_settled *s, const char *path)
{
        struct lkg_way way = { 0 };
        bool yes = s->vouched_all || says(s, path);

        if (yes || s->n_vouched == 0)
                return yes;
        lkg_way_find(path, &way);
        for (size_t i = 0; i < way.n && !yes; i++)
                for (size_t k = 0; k < way.items[i].n_names && !yes; k++) {
                        LKG_CLEANUP(lkg_freep)
                        char *name = lkg_format("%s/%s", way.items[i].path, way.items[i].names[k]);

                        yes = says(s, name);
                }
        lkg_way_deinit(&way);
        return yes;
}

/* Itself, not a directory above it: another one may come to its name. */
static bool is_said_to_be_gone(const struct lkg_settled *s, const char *path)
{
        const char *below = lkg_path_below(path, s->source_path);

        for (size_t i = 0; i < s->n_vouched; i++)
                if (strcmp(s->vouched[i], *s->vouched[i] == '/' || !below ? path : below) == 0)
                        return true;
        return false;
}

static void forget_sample(struct lkg_settled *s, size_t i)
{
        free(s->samples[i].path);
        s->samples[i] = s->samples[--s->n_samples];
}

/* How long @path has had @st; 0 = seen for the first time. */
static uint64_t stable_for(struct lkg_settled *s, const char *path, const struct stat *st, uint64_t now_ns)
{
        struct lkg_stability_sample *samples = s->samples;
        struct lkg_file_id id = { 0 };
        size_t i = 0;

        if (st->st_nlink > 0)
                lkg_file_id_from_stat(st, &id);
        while (i < s->n_samples && strcmp(samples[i].path, path) != 0)
                i++;
        if (i < s->n_samples && lkg_file_id_equal(&samples[i].id, &id))
                return now_ns - samples[i].since_ns;
        if (i == LKG_ARRAY_SIZE(s->samples))
                return UINT64_MAX; /* an editor does not write this many at once: take them as they are */
        if (i == s->n_samples) {
                samples[i].path = lkg_copy(path);
                s->n_samples++;
        }
        samples[i].id = id;
        samples[i].since_ns = now_ns;
        return 0;
}

/*
 * ansible, rsync and others first write `.name.XXXX`, close it, sometimes write it again, and finally rename
 * it.
 */
static bool is_hidden(const char *path)
{
        const char *slash = strrchr(path, '/');

        return (slash ? slash[1] : *path) == '.';
}

/* Did a file server die a moment ago? */
static bool is_lost(const struct lkg_settled *s, uint64_t now_ns)
{
        return s->lost_ns != 0 && now_ns - s->lost_ns < LKG_UNSETTLED_NS;
}

/*
 * A truncation is visible before inotify reports it, and even before the timestamps show it. So inotify
 * alone does not make a changed file count: the file must stay the same for LKG_RECENT_NS. On a busy machine
 * the inotify event may come much later, so an empty file counts after two seconds (LKG_UNSETTLED_NS), even
 * if its writer has closed it: a layer is never empty, but a truncated file is. The same delay applies to a
 * hidden file, whose name is probably a temporary one, and to a file that is gone, unless somebody says that they removed it.
 *
 * When a file server dies, all its files are closed, even half-written ones. Then a file counts only if the
 * next file server reports it as complete, or if it stays the same for LKG_UNSETTLED_NS. At the start there
 * is no earlier look to compare with, only the timestamp.
 */
static bool just_written(struct lkg_settled *s, const char *path)
{
        uint64_t now = lkg_boottime_ns(), age;
        bool lost = is_lost(s, now);
        bool slow, gone, closed = is_vouched(s, path);
        struct stat st = { 0 };

        if (s->vouched_all)
                return false;
        gone = stat(path, &st) < 0;
        slow = st.st_size == 0 || is_hidden(path);
        if (gone ? is_said_to_be_gone(s, path) : closed && !slow)
                return false;
        if (!s->started) {
                age = (uint64_t)lkg_timespec_ns(&st.st_ctim);
                return age <= lkg_realtime_ns() && lkg_realtime_ns() - age < LKG_RECENT_NS;
        }
        return stable_for(s, path, &st, now) < (lost || slow ? LKG_UNSETTLED_NS : LKG_RECENT_NS);
}

void lkg_settled_forget_old(struct lkg_settled *s)
{
        uint64_t now = lkg_boottime_ns();

        for (size_t i = 0; i < s->n_samples;)
                if (now - s->samples[i].since_ns > 2 * LKG_UNSETTLED_NS ||
                    (!s->samples[i].id.ino && lkg_path_exists(AT_FDCWD, s->samples[i].path)))
                        forget_sample(s, i);
                else
                        i++;
}

/* Reads all queued events first: the writer may have started while the file was being read. */
bool lkg_is_unsettled(const char *path, const char *sha256, void *userdata)
{
        struct lkg_settled *s = userdata;

        (void)sha256;
        if (lkg_watch_drain(s->watch, lkg_boottime_ns()))
                s->look_again = true;
        if (s->new_stacks)
                return false;
        if (lkg_watch_unsettled(s->watch, path))
                return true;
        if (!just_written(s, path))
                return false;
        s->recent = true;
        return true;
}

/*
 * Whether a writer has the file open cannot be asked, so it gets the time that it would have had. A file server that dies closes what it had
 * open, and its successor does not know what was whole.
 */
void lkg_settled_doubt(struct lkg_settled *s, const char *path)
{
        uint64_t written, real = lkg_realtime_ns(), now = lkg_boottime_ns();
        struct stat st;

        if (s->started ? !is_lost(s, now) : !s->replaces)
                return;
        if (is_vouched(s, path) || lkg_watch_unsettled(s->watch, path) || stat(path, &st) < 0)
                return;
        written = (uint64_t)lkg_timespec_ns(&st.st_ctim);
        if (s->started && written + (now - s->lost_ns) > real)
                return; /* changed since: its writer has been seen */
        if (written <= real && real - written < LKG_UNCLOSED_NS && real - written < now)
                (void)lkg_watch_unsettle(s->watch, path, now - (real - written));
}

/* When the list is full, inotify and a short delay must do. */
void lkg_settled_vouch(struct lkg_settled *s, const char *path)
{
        if (s->n_vouched < LKG_ARRAY_SIZE(s->vouched))
                s->vouched[s->n_vouched++] = lkg_copy(path);
}

void lkg_settled_forget_vouched(struct lkg_settled *s)
{
        while (s->n_vouched > 0)
                free(s->vouched[--s->n_vouched]);
}

void lkg_settled_deinit(struct lkg_settled *s)
{
        lkg_settled_forget_vouched(s);
        while (s->n_samples > 0)
                forget_sample(s, s->n_samples - 1);
}
