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

static const struct {
        enum lkg_hold_mode mode;
        const char *word;
} mode_words[] = {
        { LKG_HOLD_FREE, "free" },
        { LKG_HOLD_ON, "hold" },
        { LKG_HOLD_ROLLBACK, "rollback" },
        { LKG_HOLD_TRY_EXPIRED, "tryExpired" },
};

static const char *mode_word(enum lkg_hold_mode mode)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(mode_words); i++)
                if (mode_words[i].mode == mode)
                        return mode_words[i].word;
        return "free";
}

static void decode_hold(const struct lkg_value *map, struct lkg_hold *ret)
{
        const char *word = lkg_map_get_string(map, "mode");

        ret->generation = lkg_record_number(map, "generation", 0);
        for (size_t i = 0; word && i < LKG_ARRAY_SIZE(mode_words); i++)
                if (strcmp(mode_words[i].word, word) == 0)
                        ret->mode = mode_words[i].mode;
}

/* Within a boot, the CLOCK_BOOTTIME deadline is exact. That clock restarts at every boot, so then the wall clock decides. */
static void decode_try(const struct lkg_value *map, struct lkg_hold *ret)
{
        uint64_t now = lkg_boottime_ns(), wall = lkg_realtime_ns(), due;
        const char *boot = lkg_map_get_string(map, "boot"), *phase = lkg_map_get_string(map, "phase");
        char this_boot[LKG_BOOT_ID_MAX];

        ret->try_duration_ns = lkg_record_number(map, "durationNs", 0);
        ret->try_previous = lkg_record_number(map, "previous", 0);
        if (!phase || ret->try_duration_ns == 0)
                return;
        if (strcmp(phase, "armed") == 0)
                ret->try_phase = LKG_TRY_ARMED;
        if (strcmp(phase, "running") != 0)
                return;
        lkg_boot_id(this_boot);
        due = lkg_record_number(map, "deadlineWallNs", 0);
        ret->try_phase = LKG_TRY_RUNNING;
        if (boot && *this_boot && strcmp(boot, this_boot) == 0)
                ret->try_deadline_ns = lkg_record_number(map, "deadlineBootNs", 0);
        else
                ret->try_deadline_ns = due > wall ? now + (due - wall) : now;
        /* A wall clock that was set back must not extend the try. */
        if (ret->try_deadline_ns > now + ret->try_duration_ns)
                ret->try_deadline_ns = now + ret->try_duration_ns;
}

static void decode_held_by(const struct lkg_value *map, struct lkg_held_by *ret)
{
        const char *program = lkg_map_get_string(map, "program");

        ret->time_ns = lkg_record_number(map, "timeNs", 0);
        ret->uid = (uint32_t)lkg_record_number(map, "uid", 0);
        ret->pid = (int32_t)lkg_record_number(map, "pid", 0);
        (void)snprintf(ret->program, sizeof(ret->program), "%s", program ? program : "");
}

static void copy_text(const struct lkg_value *map, const char *key, char *ret, size_t size)
{
        const char *text = lkg_map_get_string(map, key);

        (void)snprintf(ret, size, "%s", text ? text : "");
}

static const char *const unfinished_words[_LKG_UNFINISHED_MAX] = {
        [LKG_UNFINISHED_NONE] = "none",
        [LKG_UNFINISHED_ABANDON] = "abandon",
        [LKG_UNFINISHED_GOOD] = "rollbackLkg",
};

static void decode_unfinished(const struct lkg_value *map, struct lkg_unfinished *ret)
{
        const char *word = lkg_map_get_string(map, "step");
        const struct lkg_value *by = lkg_map_get(map, "by");

        for (size_t i = 0; word && i < LKG_ARRAY_SIZE(unfinished_words); i++)
                if (strcmp(word, unfinished_words[i]) == 0)
                        ret->kind = (enum lkg_unfinished_kind)i;
        copy_text(map, "source", ret->source, sizeof(ret->source));
        copy_text(map, "sourceSha256", ret->source_sha256, sizeof(ret->source_sha256));
        ret->held = lkg_record_number(map, "held", 0);
        if (by && lkg_value_type(by) == LKG_MAP)
                decode_held_by(by, &ret->by);
}

static void decode_component(const struct lkg_value *doc, struct lkg_component_state *ret)
{
        const struct lkg_value *hold = lkg_map_get(doc, "hold"), *trial = lkg_map_get(doc, "try"),
                               *condition = lkg_map_get(doc, "condition"),
                               *held_by = lkg_map_get(doc, "heldBy"),
                               *tried_by = lkg_map_get(doc, "triedBy"),
                               *unfinished = lkg_map_get(doc, "unfinished");

        const char *boot = lkg_map_get_string(doc, "boot"), *base;
        char this_boot[LKG_BOOT_ID_MAX];

        lkg_boot_id(this_boot);
        if (boot && strcmp(boot, this_boot) == 0) /* tickets restart at every boot */
                ret->ticket = lkg_record_number(doc, "ticket", 0);
        ret->last_good = lkg_record_number(doc, "lastGood", 0);
        base = lkg_map_get_string(doc, "base");
        if (base && strlen(base) < sizeof(ret->base))
                (void)strcpy(ret->base, base);
        if (hold && lkg_value_type(hold) == LKG_MAP)
                decode_hold(hold, &ret->hold);
        copy_text(doc, "pinnedFor", ret->pinned_for, sizeof(ret->pinned_for));
        copy_text(doc, "lost", ret->lost, sizeof(ret->lost));
        if (unfinished && lkg_value_type(unfinished) == LKG_MAP)
                decode_unfinished(unfinished, &ret->unfinished);
        if (held_by && lkg_value_type(held_by) == LKG_MAP)
                decode_held_by(held_by, &ret->held_by);
        if (tried_by && lkg_value_type(tried_by) == LKG_MAP)
                decode_held_by(tried_by, &ret->tried_by);
        if (trial && lkg_value_type(trial) == LKG_MAP)
                decode_try(trial, &ret->hold);
        if (condition && lkg_value_type(condition) == LKG_MAP) {
                uint64_t status = lkg_record_number(condition, "status", LKG_CONDITION_UNKNOWN);

                ret->status = status <= LKG_CONDITION_TRUE ? (enum lkg_condition_status)status
                                                           : LKG_CONDITION_UNKNOWN;
                ret->transition_ns = lkg_record_number(condition, "transitionNs", 0);
        }
}

static int component_path(const char *component, char path[static PATH_MAX])
{
        int n = snprintf(path, PATH_MAX, "components/%s.json", component);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int lkg_state_load_component(const struct lkg_state *state, const char *component,
                             struct lkg_component_state *ret, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_error err = { 0 };
        char path[PATH_MAX];
        int r = component_path(component, path);

        *ret = (struct lkg_component_state){ 0 };
        if (r >= 0)
                r = lkg_record_read(state->fd, path, &doc, &err);
        if (r == -ENOMEM || r == -ENOENT)
                return r == -ENOENT ? 0 : r;
        if (r < 0) {
                lkg_report_add(report, LKG_WARNING, 4005, NULL, "state of %s is lost (hold, try): %s",
                               component, err.message);
                (void)snprintf(ret->lost, sizeof(ret->lost), "hold and try, their record is damaged");
                return 0;
        }
        decode_component(doc, ret);
        return 0;
}

static void put_by(struct lkg_json *json, const char *name, const struct lkg_held_by *by)
{
        lkg_json_map(json, name, LKG_JSON_ROW);
        lkg_json_u64(json, "timeNs", by->time_ns);
        lkg_json_u64(json, "uid", by->uid);
        lkg_json_i64(json, "pid", by->pid);
        lkg_json_foreign(json, "program", by->program);
        lkg_json_end(json);
}

static void put_hold(struct lkg_json *json, const struct lkg_hold *h)
{
        lkg_json_map(json, "hold", LKG_JSON_ROW);
        lkg_json_text(json, "mode", mode_word(h->mode));
        lkg_json_u64(json, "generation", h->generation);
        lkg_json_end(json);
}

static void put_try(struct lkg_json *json, const struct lkg_hold *h, const char *boot)
{
        static const char *const phases[] = { "none", "armed", "running" };
        uint64_t now = lkg_boottime_ns(), wall = lkg_realtime_ns();

        lkg_json_map(json, "try", LKG_JSON_ROW);
        lkg_json_text(json, "phase", phases[h->try_phase]);
        lkg_json_u64(json, "durationNs", h->try_duration_ns);
        lkg_json_u64(json, "previous", h->try_previous);
        lkg_json_u64(json, "deadlineBootNs", h->try_deadline_ns);
        lkg_json_u64(json, "deadlineWallNs",
                     h->try_deadline_ns > now ? wall + (h->try_deadline_ns - now) : wall);
        lkg_json_text(json, "boot", boot);
        lkg_json_end(json);
}

static void put_unfinished(struct lkg_json *json, const struct lkg_unfinished *unfinished)
{
        lkg_json_map(json, "unfinished", LKG_JSON_ROW);
        lkg_json_text(json, "step", unfinished_words[unfinished->kind]);
        lkg_json_u64(json, "held", unfinished->held);
        put_by(json, "by", &unfinished->by);
        lkg_json_foreign(json, "source", unfinished->source);
        lkg_json_foreign(json, "sourceSha256", unfinished->source_sha256);
        lkg_json_end(json);
}

static void put_component(struct lkg_json *json, const struct lkg_component_state *value)
{
        char boot[LKG_BOOT_ID_MAX];

        lkg_boot_id(boot);
        lkg_json_map(json, NULL, LKG_JSON_PRETTY);
        lkg_json_u64(json, "schemaVersion", 1);
        lkg_json_text(json, "boot", boot);
        lkg_json_u64(json, "ticket", value->ticket);
        lkg_json_u64(json, "lastGood", value->last_good);
        put_hold(json, &value->hold);
        put_try(json, &value->hold, boot);
        lkg_json_map(json, "condition", LKG_JSON_ROW);
        lkg_json_u64(json, "status", value->status);
        lkg_json_u64(json, "transitionNs", value->transition_ns);
        lkg_json_end(json);
        lkg_json_foreign(json, "base", value->base);
        lkg_json_foreign(json, "pinnedFor", value->pinned_for);
        lkg_json_foreign(json, "lost", value->lost);
        put_by(json, "heldBy", &value->held_by);
        put_by(json, "triedBy", &value->tried_by);
        put_unfinished(json, &value->unfinished);
        lkg_json_end(json);
}

int lkg_state_save_component(const struct lkg_state *state, const char *component,
                             const struct lkg_component_state *value, bool durable, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char path[PATH_MAX];
        int r = component_path(component, path);

        if (r >= 0) {
                put_component(&json, value);
                r = lkg_json_write_line(&json, &buf);
        }
        return r < 0 ? lkg_error_set(err, r, NULL, "state of %s", component)
                     : save(state, path, buf.data, buf.size, durable, err);
}

/* ---- a copy of a record, for undo ---- */

static int kept_path(const char *component, char path[static PATH_MAX])
{
        int n = snprintf(path, PATH_MAX, "components/.%s.kept" LKG_TMP_SUFFIX, component);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int lkg_state_keep_component(const struct lkg_state *state, const char *component)
{
        char path[PATH_MAX], kept[PATH_MAX];
        int r = component_path(component, path);

        if (r >= 0)
                r = kept_path(component, kept);
        if (r < 0)
                return r;
        (void)unlinkat(state->fd, kept, 0);
        return linkat(state->fd, path, state->fd, kept, 0) < 0 ? -errno : 0;
}

int lkg_state_restore_component(const struct lkg_state *state, const char *component)
{
        LKG_CLEANUP(lkg_closep) int dir = -EBADF;
        char path[PATH_MAX], kept[PATH_MAX];
        int r = component_path(component, path);

        if (r >= 0)
                r = kept_path(component, kept);
        if (r >= 0 && renameat(state->fd, kept, state->fd, path) < 0)
                r = -errno;
        if (r < 0)
                return r;
        dir = openat(state->fd, "components", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return dir < 0 ? -errno : lkg_sync_dir(dir);
}

void lkg_state_forget_kept(const struct lkg_state *state, const char *component)
{
        char kept[PATH_MAX];

        if (kept_path(component, kept) >= 0)
                (void)unlinkat(state->fd, kept, 0);
}
