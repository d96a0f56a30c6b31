/* SPDX-License-Identifier: Apache-2.0 */
/* Content that is refused because it ended an engine: see lkg/store.h. */
#include <signal.h>

#include <lkg/base.h>

#include "poison-internal.h"

/* ---- the list ---- */

static struct lkg_refused *find_refused(const struct lkg_poison *poison, const struct lkg_judging_key *key)
{
        for (size_t i = 0; i < poison->n_items; i++)
                if (!poison->items[i].lifted && lkg_judging_key_equal(&poison->items[i].key, key))
                        return &poison->items[i];
        return NULL;
}

void lkg_poison_remove(struct lkg_poison *poison, size_t at)
{
        memmove(poison->items + at, poison->items + at + 1,
                (--poison->n_items - at) * sizeof(*poison->items));
        poison->unsaved = true;
}

void lkg_poison_add(struct lkg_poison *poison, const struct lkg_refused *refused)
{
        if (find_refused(poison, &refused->key))
                return;
        if (poison->n_items == LKG_REFUSED_MAX)
                lkg_poison_remove(poison, 0);
        (void)lkg_need(LKG_GROW(poison->items, poison->n_items));
        poison->items[poison->n_items++] = *refused;
        poison->unsaved = true;
}

struct lkg_refused *lkg_poison_last(const struct lkg_poison *poison)
{
        return poison->last < poison->n_items ? &poison->items[poison->last] : NULL;
}

void lkg_poison_set_source(struct lkg_poison *poison, struct lkg_refused *refused, const char *source)
{
        if (strcmp(refused->source, source) == 0)
                return;
        (void)snprintf(refused->source, sizeof(refused->source), "%s", source);
        poison->unsaved = true;
}

/* A uid also means all versions of its object. */
static bool is_of_source(const struct lkg_refused *refused, const char *source)
{
        size_t n = strlen(source);

        return *refused->source && strncmp(refused->source, source, n) == 0 &&
               (refused->source[n] == '\0' || refused->source[n] == '@' || n == 0);
}

void lkg_poison_lift(struct lkg_poison *poison, const char *component, const char *source)
{
        for (size_t i = poison->n_items; i-- > 0;)
                if (strcmp(poison->items[i].component, component) == 0 &&
                    (!source || is_of_source(&poison->items[i], source)))
                        lkg_poison_remove(poison, i);
}

int lkg_poison_persist(struct lkg_poison *poison, struct lkg_error *err)
{
        int r = lkg_poison_save(poison, err);

        return r < 0 ? r : lkg_poison_save_judged(poison, err);
}

/* ---- words ---- */

void lkg_poison_how(const struct lkg_refused *refused, char *ret, size_t size)
{
        const char *name = refused->end == LKG_END_SIGNAL ? sigabbrev_np(refused->status) : NULL;

        switch (refused->end) {
        case LKG_END_SIGNAL:
                if (refused->status == SIGKILL)
                        (void)snprintf(ret, size, "%u engines in a row were killed", LKG_KILLS_PROOF);
                else
                        (void)snprintf(ret, size, "the engine was ended by signal %d%s%s%s", refused->status,
                                       name ? " (SIG" : "", name ? name : "", name ? ")" : "");
                break;
        case LKG_END_EXIT:
                (void)snprintf(ret, size, "the engine ended with code %d", refused->status);
                break;
        case LKG_END_TIME:
                (void)snprintf(ret, size, "the engine used too much processor time and was ended");
                break;
        case LKG_END_MEMORY:
                (void)snprintf(ret, size, "the engine reached its memory limit and ended itself");
                break;
        case LKG_END_UNKNOWN:
                (void)snprintf(ret, size, "%u engines in a row ended", LKG_KILLS_PROOF);
                break;
        }
}

/* Killed from outside: that may have had any reason. */
static bool is_doubtful(const struct lkg_refused *refused)
{
        return refused->end == LKG_END_UNKNOWN ||
               (refused->end == LKG_END_SIGNAL && refused->status == SIGKILL);
}

/* What the engine was doing. @text: for a number */
static const char *work_text(const struct lkg_refused *refused, char *text, size_t size)
{
        if (refused->what == LKG_ADMIT_TOGETHER)
                return "these layers together, none of them new, were merged or judged";
        if (refused->what == LKG_ADMIT_READ)
                return "this file was opened and read";
        if (refused->n_new <= 1)
                return "this was read, merged or judged";
        (void)snprintf(
                text, size,
                "this and %u other new contents were read, merged or judged (one of them is the cause)",
                refused->n_new - 1);
        return text;
}

/* Text of a finding: how and when the engine ended, with which content, and what to do. */
static char *explain(const struct lkg_poison *poison, const struct lkg_refused *refused)
{
        bool together = refused->what == LKG_ADMIT_TOGETHER, read = refused->what == LKG_ADMIT_READ;
        char how[128], work[128], time[21];

        lkg_poison_how(refused, how, sizeof(how));
        lkg_format_rfc3339(refused->time_ns, time);
        return lkg_format("%s at %s while %s; refused until %s: correct or remove %s, or write now to "
                          "%scontrol/%s/sync to try "
                          "again%s%.12s%s",
                          how, time, work_text(refused, work, sizeof(work)),
                          together               ? "one of them, or the component's command line, changes"
                          : is_doubtful(refused) ? "it, or any other layer, changes"
                                                 : "it changes",
                          together ? "one" : "it", poison->top, refused->component, read ? "" : " (content ",
                          read ? "" : refused->sha256, read ? "" : ")");
}

/* ---- the note of the previous engine ---- */

/* A kill from outside proves nothing about a document, unless it hits the same work every time. */
static bool is_proof(struct lkg_judging *note, const struct lkg_judging_key *last)
{
        uint32_t end = atomic_load(&note->end);
        uint32_t n = atomic_load(&note->n_killed);

        if (end != LKG_END_UNKNOWN && !(end == LKG_END_SIGNAL && atomic_load(&note->end_status) == SIGKILL))
                return true;
        n = n > 0 && lkg_judging_key_equal(&note->killed_with, last) ? n + 1 : 1;
        note->killed_with = *last;
        atomic_store(&note->n_killed, n);
        return n >= LKG_KILLS_PROOF;
}

static bool is_new(const struct lkg_judging *note, const struct lkg_judging_item *item)
{
        return item->what == LKG_ADMIT_LAYER && !lkg_judging_knows(note, &item->key);
}

/* Texts of a note may lack their NUL if the engine that wrote them was corrupted. */
static void copy_text(char *to, const char *from, size_t size)
{
        size_t n = strnlen(from, size - 1);

        memcpy(to, from, n);
        to[n] = '\0';
}

static void refuse_content(struct lkg_poison *poison, struct lkg_refused how,
                           const struct lkg_judging_key *key, const char *component, const char *file,
                           const char *sha256)
{
        how.key = *key;
        copy_text(how.component, component, sizeof(how.component));
        copy_text(how.file, file, sizeof(how.file));
        copy_text(how.sha256, sha256, sizeof(how.sha256));
        lkg_poison_add(poison, &how);
}

/*
 * Is item @i to blame? The last item noted was in work, and nothing else was. If that is all layers together, the new ones
 * are to blame or, if none is new, the combination. In between, what is new may have left damage behind; what was harmless before has
 * not.
 */
static bool is_to_blame(const struct lkg_judging *note, uint32_t i, uint32_t n, uint32_t n_new)
{
        const struct lkg_judging_item *item = &note->items[i];
        bool between = atomic_load(&note->between) != 0;

        if (!between && note->items[n - 1].what != LKG_ADMIT_TOGETHER)
                return i == n - 1;
        return n_new > 0 ? is_new(note, item) : !between && item->what == LKG_ADMIT_TOGETHER;
}

static void refuse_noted(struct lkg_poison *poison, struct lkg_refused *how)
{
        const struct lkg_judging *note = poison->note;
        uint32_t n = lkg_judging_count(note), n_new = 0;

        if (atomic_load(&note->between) && is_doubtful(how))
                return; /* nothing was in work, and who kills leaves no damage behind */
        for (uint32_t i = 0; i < n; i++)
                n_new += is_new(note, &note->items[i]);
        for (uint32_t i = 0; i < n; i++)
                how->n_new += is_to_blame(note, i, n, n_new);
        for (uint32_t i = 0; i < n; i++) {
                const struct lkg_judging_item *item = &note->items[i];

                how->what = item->what;
                if (is_to_blame(note, i, n, n_new))
                        refuse_content(poison, *how, &item->key, item->component, item->file, item->sha256);
        }
}

static void log_death(const struct lkg_poison *poison, size_t n_before)
{
        char *why;

        for (size_t i = n_before; i < poison->n_items; i++) {
                const struct lkg_refused *refused = &poison->items[i];
                const struct lkg_log_fields fields = { .component = refused->component };

                why = explain(poison, refused);
                lkg_log(LOG_ERR, &fields, "%s: %s [LKG2030]", *refused->file ? refused->file : "all layers",
                        why);
                free(why);
        }
}

static void read_note(struct lkg_poison *poison)
{
        struct lkg_judging *note = poison->note;
        struct lkg_refused how = { .end = atomic_load(&note->end),
                                   .status = atomic_load(&note->end_status),
                                   .time_ns = lkg_realtime_ns() };
        uint32_t n = lkg_judging_count(note);
        size_t n_before = poison->n_items;

        if (atomic_load(&note->since_ns) == 0 || n == 0)
                return;
        if (how.end > LKG_END_MEMORY)
                how.end = LKG_END_UNKNOWN;
        if (is_proof(note, &note->items[n - 1].key)) {
                refuse_noted(poison, &how);
                poison->refuse_unknown = atomic_load(&note->others) != 0;
                poison->how = how;
                log_death(poison, n_before);
        }
}

int lkg_poison_open(int runtime_fd, int state_fd, const char *virtual_dir, struct lkg_poison *ret,
                    struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_error cause = { 0 };
        int r;

        *ret = (struct lkg_poison){ .state_fd = state_fd };
        (void)snprintf(ret->top, sizeof(ret->top), "%.*s%s", NAME_MAX, virtual_dir, *virtual_dir ? "/" : "");
        r = lkg_poison_load(ret, report);
        if (r >= 0 && lkg_judging_open(runtime_fd, &ret->note, &cause) < 0) {
                ret->note = NULL;
                lkg_log_warning("%s; content that ends an engine will not be known", cause.message);
        }
        if (r >= 0 && ret->note) {
                if (atomic_load(&ret->note->n_known) == 0)
                        lkg_poison_load_judged(ret);
                read_note(ret);
        }
        if (r < 0) {
                lkg_poison_close(ret);
                return lkg_error_set(err, r, NULL, "what is refused");
        }
        /* Clear the note only after saving: if this engine dies in between, the next one decides the same. */
        if (lkg_poison_save(ret, &cause) < 0) {
                lkg_report_add(report, LKG_WARNING, 4005, NULL,
                               "what is refused because an engine died of it is forgotten at the next "
                               "boot: %s",
                               cause.message);
                lkg_log_warning("%s", cause.message);
        }
        if (ret->note)
                lkg_judging_forget(ret->note);
        return 0;
}

void lkg_poison_close(struct lkg_poison *poison)
{
        lkg_poison_done(poison);
        poison->note = lkg_judging_close(poison->note);
        free(poison->items);
        *poison = (struct lkg_poison){ 0 };
}

/* ---- admission ---- */

/* A mark that only kills from outside have made ends when any layer of the component changes: @layers is their digest. */
static void lift_doubtful(struct lkg_poison *poison, const char *component, const char *layers)
{
        for (size_t i = poison->n_items; i-- > 0;) {
                struct lkg_refused *refused = &poison->items[i];

                if (!is_doubtful(refused) || *refused->source ||
                    strcmp(refused->component, component) != 0 || strcmp(refused->layers, layers) == 0)
                        continue;
                if (*refused->layers) {
                        lkg_poison_remove(poison, i);
                        poison->look_again = true;
                } else {
                        copy_text(refused->layers, layers, sizeof(refused->layers));
                        poison->unsaved = true;
                }
        }
}

static struct lkg_judging_key key_of(const char *component, const char *file, const char *sha256,
                                     const char *by)
{
        char both[2 * LKG_SHA256_HEX], digest[LKG_SHA256_HEX];
        struct lkg_judging_key key;

        (void)snprintf(both, sizeof(both), "%s%s", sha256, by);
        if (*by)
                (void)lkg_need(lkg_sha256_hex(both, strlen(both), digest));
        lkg_judging_key(component, file, *by ? digest : sha256, &key);
        return key;
}

int lkg_poison_admit(struct lkg_poison *poison, const char *component, const struct lkg_content *content,
                     const char *by, char **ret_why)
{
        const struct lkg_judging_key key = key_of(component, content->file, content->sha256, by);
        const struct lkg_refused *refused;

        if (poison->refuse_unknown && content->what == LKG_ADMIT_LAYER &&
            !lkg_judging_knows(poison->note, &key)) {
                struct lkg_refused how = poison->how;

                how.what = LKG_ADMIT_LAYER;
                how.n_new = LKG_JUDGING_ITEMS;
                refuse_content(poison, how, &key, component, content->file, content->sha256);
        }
        if (content->what == LKG_ADMIT_TOGETHER)
                lift_doubtful(poison, component, content->sha256);
        refused = find_refused(poison, &key);
        if (refused) {
                poison->last = (size_t)(refused - poison->items);
                *ret_why = explain(poison, refused);
                return -EKEYREJECTED;
        }
        if (poison->note)
                lkg_judging_add(poison->note, &key, component, content);
        return 0;
}

void lkg_poison_finished(struct lkg_poison *poison)
{
        if (poison->note)
                lkg_judging_finished(poison->note);
}

void lkg_poison_judged(struct lkg_poison *poison, const char *component, const char *file,
                       const char *sha256)
{
        struct lkg_judging_key key;

        if (!poison->note)
                return;
        lkg_judging_key(component, file, sha256, &key);
        lkg_judging_judged(poison->note, &key, component, file, sha256);
}

void lkg_poison_done(struct lkg_poison *poison)
{
        struct lkg_error err = { 0 };

        poison->refuse_unknown = false;
        if (poison->note)
                lkg_judging_done(poison->note);
        if (poison->unsaved && lkg_poison_save(poison, &err) < 0) {
                poison->unsaved = false; /* logged once; the next change tries again */
                lkg_log_warning("%s", err.message);
        }
}

bool lkg_poison_give_up(struct lkg_poison *poison)
{
        if (!poison->note || atomic_load(&poison->note->since_ns) == 0)
                return false;
        atomic_store(&poison->note->end, LKG_END_MEMORY);
        return true;
}
