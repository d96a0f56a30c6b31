/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: see lkg/store.h for what is in it. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/documents.h>

#include <lkg/store.h>

#include "store-internal.h"

#define BLOCK     64u
#define AHEAD     16u /* reserve early if fewer are left, when no caller waits */
#define NEXT_NAME "generation-next"

/* ---- generation numbers ---- */

int lkg_state_open(int fd, struct lkg_state *ret, struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_where where = { .file = NEXT_NAME };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_error why = { 0 };
        size_t size;
        int r;

        *ret = (struct lkg_state){ .fd = fd, .next = 1, .reserved = 1 };
        r = lkg_mkdir_p(fd, "components", 0700, err);
        if (r >= 0)
                r = lkg_mkdir_p(fd, "history", 0700, err);
        if (r < 0)
                return r;
        /* Always: a process killed between mkdir and flush left a directory that is not durable. */
        r = lkg_sync_dir(fd);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "fsync the state directory");
        r = lkg_record_read_text(fd, NEXT_NAME, LKG_RECORD_BYTES_MAX, &text, &size, &why);
        if (r == -ENOENT)
                return 0;
        if (r < 0 || lkg_record_parse_u64(text, &ret->next) < 0 || ret->next == 0 ||
            ret->next > UINT64_MAX / 2) {
                ret->next = 1; /* the history, read next, still shows which numbers are used */
                lkg_report_add(report, LKG_WARNING, 4005, &where,
                               "cannot be read, going on behind the history");
        }
        ret->reserved = ret->next;
        return 0;
}

/* A directory in the place of the file has nothing of ours, and nothing could be published because of it. */
static int save(const struct lkg_state *state, const char *path, const void *data, size_t size, bool durable,
                struct lkg_error *err)
{
        int r = lkg_write_file_atomic(state->fd, path, data, size, 0600, durable, err);

        if (r != -EISDIR)
                return r;
        lkg_store_put_aside(state->fd, path);
        return lkg_write_file_atomic(state->fd, path, data, size, 0600, durable, err);
}

static int reserve(struct lkg_state *state, struct lkg_error *err)
{
        uint64_t until = state->next + BLOCK;
        char text[32];
        int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", until);
        int r = save(state, NEXT_NAME, text, (size_t)n, /* durable= */ true, err);

        if (r >= 0)
                state->reserved = until;
        return r;
}

int lkg_state_next_generation(struct lkg_state *state, uint64_t *ret, struct lkg_error *err)
{
        if (state->next >= state->reserved) {
                int r = reserve(state, err);

                if (r < 0)
                        return lkg_error_wrap(err, r, "reserve generation numbers");
        }
        *ret = state->next++;
        return 0;
}

int lkg_state_reserve_ahead(struct lkg_state *state, struct lkg_error *err)
{
        if (state->reserved - state->next >= AHEAD)
                return 0;
        return reserve(state, err);
}

void lkg_state_at_least(struct lkg_state *state, uint64_t used)
{
        if (used < state->next || used > UINT64_MAX / 2)
                return;
        state->next = used + 1;
        if (state->reserved < state->next)
                state->reserved = state->next;
}

/* ---- one component ---- */

/* A component's state as it is on disk: with the ids of the boots that a ticket and a deadline are of. */
struct stored {
        struct lkg_component_state state;
        char boot[LKG_BOOT_ID_MAX], try_boot[LKG_BOOT_ID_MAX];
        uint64_t deadline_wall_ns;
};

#define STATE(member) LKG_MEMBER(struct stored, state.member)
#define BY(member)    LKG_MEMBER(struct lkg_held_by, member)

static const char *const mode_words[_LKG_HOLD_MODE_MAX + 1] = {
        [LKG_HOLD_FREE] = "free",
        [LKG_HOLD_ON] = "hold",
        [LKG_HOLD_ROLLBACK] = "rollback",
        [LKG_HOLD_TRY_EXPIRED] = "tryExpired",
};
static const char *const unfinished_words[_LKG_UNFINISHED_MAX + 1] = {
        [LKG_UNFINISHED_NONE] = "none",
        [LKG_UNFINISHED_ABANDON] = "abandon",
        [LKG_UNFINISHED_GOOD] = "rollbackLkg",
};

static const struct lkg_record_row hold_rows[] = {
        { "mode", LKG_RECORD_WORD, STATE(hold.mode), .words = mode_words },
        { "generation", LKG_RECORD_NUMBER, STATE(hold.generation) },
        { NULL },
};
static const struct lkg_record_row try_rows[] = {
        { "phase", LKG_RECORD_WORD, STATE(hold.try_phase), .words = lkg_try_phase_names },
        { "durationNs", LKG_RECORD_NUMBER, STATE(hold.try_duration_ns) },
        { "previous", LKG_RECORD_NUMBER, STATE(hold.try_previous) },
        { "deadlineBootNs", LKG_RECORD_NUMBER, STATE(hold.try_deadline_ns) },
        { "deadlineWallNs", LKG_RECORD_NUMBER, LKG_MEMBER(struct stored, deadline_wall_ns) },
        { "boot", LKG_RECORD_FOREIGN, LKG_MEMBER(struct stored, try_boot) },
        { NULL },
};
static const struct lkg_record_row condition_rows[] = {
        { "status", LKG_RECORD_NUMBER, STATE(status), .max = LKG_CONDITION_TRUE },
        { "transitionNs", LKG_RECORD_NUMBER, STATE(transition_ns) },
        { NULL },
};
static const struct lkg_record_row by_rows[] = {
        { "timeNs", LKG_RECORD_NUMBER, BY(time_ns) },
        { "uid", LKG_RECORD_NUMBER, BY(uid), .max = UINT32_MAX },
        { "pid", LKG_RECORD_NUMBER, BY(pid), .max = INT32_MAX },
        { "program", LKG_RECORD_FOREIGN, BY(program) },
        { NULL },
};
static const struct lkg_record_row unfinished_rows[] = {
        { "step", LKG_RECORD_WORD, STATE(unfinished.kind), .words = unfinished_words },
        { "held", LKG_RECORD_NUMBER, STATE(unfinished.held) },
        { "by", LKG_RECORD_MAP, STATE(unfinished.by), .rows = by_rows },
        { "source", LKG_RECORD_FOREIGN, STATE(unfinished.source) },
        { "sourceSha256", LKG_RECORD_FOREIGN, STATE(unfinished.source_sha256) },
        { NULL },
};
static const struct lkg_record_row component_rows[] = {
        { "boot", LKG_RECORD_FOREIGN, LKG_MEMBER(struct stored, boot) },
        { "ticket", LKG_RECORD_NUMBER, STATE(ticket) },
        { "lastGood", LKG_RECORD_NUMBER, STATE(last_good) },
        { "hold", LKG_RECORD_MAP, .rows = hold_rows, .layout = LKG_JSON_ROW },
        { "try", LKG_RECORD_MAP, .rows = try_rows, .layout = LKG_JSON_ROW },
        { "condition", LKG_RECORD_MAP, .rows = condition_rows, .layout = LKG_JSON_ROW },
        { "base", LKG_RECORD_FOREIGN, STATE(base) },
        { "pinnedFor", LKG_RECORD_FOREIGN, STATE(pinned_for) },
        { "lost", LKG_RECORD_FOREIGN, STATE(lost) },
        { "heldBy", LKG_RECORD_MAP, STATE(held_by), .rows = by_rows, .layout = LKG_JSON_ROW },
        { "triedBy", LKG_RECORD_MAP, STATE(tried_by), .rows = by_rows, .layout = LKG_JSON_ROW },
        { "unfinished", LKG_RECORD_MAP, .rows = unfinished_rows, .layout = LKG_JSON_ROW },
        { NULL },
};

/*
 * Tickets and the clock of a deadline restart at every boot. Within one the deadline is exact, otherwise the wall clock decides;
 * one that was set back must not extend the try.
 */
static void settle(struct stored *stored)
{
        uint64_t now = lkg_boottime_ns(), wall = lkg_realtime_ns(), due = stored->deadline_wall_ns;
        struct lkg_hold *hold = &stored->state.hold;
        char boot[LKG_BOOT_ID_MAX];

        lkg_boot_id(boot);
        if (strcmp(stored->boot, boot) != 0)
                stored->state.ticket = 0;
        if (hold->try_duration_ns == 0)
                hold->try_phase = LKG_TRY_NONE;
        if (hold->try_phase != LKG_TRY_RUNNING)
                hold->try_deadline_ns = 0;
        else if (!*boot || strcmp(stored->try_boot, boot) != 0)
                hold->try_deadline_ns = due > wall ? now + (due - wall) : now;
        if (hold->try_deadline_ns > now + hold->try_duration_ns)
                hold->try_deadline_ns = now + hold->try_duration_ns;
}

/* The configuration limits names of components. */
struct record_path {
        char text[LKG_STORE_PATH];
};

static struct record_path component_path(const char *component)
{
        struct record_path path;

        (void)snprintf(path.text, sizeof(path.text), "components/%s.json", component);
        return path;
}

int lkg_state_load_component(const struct lkg_state *state, const char *component,
                             struct lkg_component_state *ret, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_error err = { 0 };
        struct stored stored = { .boot = "" };
        int r = lkg_record_read(state->fd, component_path(component).text, &doc, &err);

        *ret = (struct lkg_component_state){ 0 };
        if (r == -ENOMEM || r == -ENOENT)
                return r == -ENOENT ? 0 : r;
        if (r < 0) {
                lkg_report_add(report, LKG_WARNING, 4005, NULL, "state of %s is lost (hold, try): %s",
                               component, err.message);
                (void)snprintf(ret->lost, sizeof(ret->lost), "hold and try, their record is damaged");
                return 0;
        }
        (void)lkg_record_get(&(struct lkg_fields){ .map = doc }, component_rows, &stored);
        settle(&stored);
        *ret = stored.state;
        return 0;
}

int lkg_state_save_component(const struct lkg_state *state, const char *component,
                             const struct lkg_component_state *value, bool durable, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        uint64_t now = lkg_boottime_ns(), wall = lkg_realtime_ns(), due = value->hold.try_deadline_ns;
        struct stored stored = { .state = *value,
                                 .deadline_wall_ns = due > now ? wall + (due - now) : wall };
        int r;

        lkg_boot_id(stored.boot);
        memcpy(stored.try_boot, stored.boot, sizeof(stored.try_boot));
        lkg_record_begin(&json, LKG_JSON_PRETTY, component_rows, &stored);
        lkg_json_end(&json);
        r = lkg_json_write_line(&json, &buf);
        return r < 0 ? lkg_error_set(err, r, NULL, "state of %s", component)
                     : save(state, component_path(component).text, buf.data, buf.size, durable, err);
}

/* ---- a copy of a record, for undo ---- */

static struct record_path kept_path(const char *component)
{
        struct record_path path;

        (void)snprintf(path.text, sizeof(path.text), "components/.%s.kept" LKG_TMP_SUFFIX, component);
        return path;
}

int lkg_state_keep_component(const struct lkg_state *state, const char *component)
{
        const struct record_path path = component_path(component), kept = kept_path(component);

        (void)unlinkat(state->fd, kept.text, 0);
        return linkat(state->fd, path.text, state->fd, kept.text, 0) < 0 ? -errno : 0;
}

int lkg_state_restore_component(const struct lkg_state *state, const char *component)
{
        LKG_CLEANUP(lkg_closep) int dir = -EBADF;
        const struct record_path path = component_path(component), kept = kept_path(component);

        if (renameat(state->fd, kept.text, state->fd, path.text) < 0)
                return -errno;
        dir = openat(state->fd, "components", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return dir < 0 ? -errno : lkg_sync_dir(dir);
}

void lkg_state_forget_kept(const struct lkg_state *state, const char *component)
{
        (void)unlinkat(state->fd, kept_path(component).text, 0);
}
