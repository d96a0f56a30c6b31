/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the product makes of a component's layers: one stack and one judge per kind live as long as this
 * program, with advice on, and see every request as a sequence of changes (a file appears, changes,
 * disappears; another ConfigMap; another command line). After each change the answer is compared with that
 * of a new stack and judge; `stale` lists the differences. This proves that no judgement affects a later
 * one.
 *
 * The reply has the effective document (`out`) and the bytes that would be served (`served`); `@DIR@`
 * replaces the directory in requests and replies; in `served` with a slash in front, so that it remains an
 * absolute path for the next reader.
 */
#include "answer.h"

#include "tests/lib/layer-place.h"

#define MARK        "@DIR@"
#define BASE        "kubelet.yaml"
#define DROPINS     "kubelet.conf.d"
#define PATCHES     "patches"
#define INSTANCE    "instance.conf"
#define CHANGES_MAX 256

/* One component, and the texts that its judge borrows. */
struct component {
        const char *name, *kind; /* the oracle is a component's own code: it accepts no other kind */
        struct place place;
        bool open;
        char **words;
        size_t n_words;
        uint64_t dice;
        struct lkg_value *last; /* the last request; NULL = none yet */
};

static struct component components[] = { { .name = "kubelet", .kind = "KubeletConfiguration" },
                                         { .name = "kube-proxy", .kind = "KubeProxyConfiguration" },
                                         { .name = "other" } };

/* ---- words ---- */

/* Return @text with each @from replaced; heap. */
static char *replaced(const char *text, const char *from, const char *to)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        const char *hit;
        char *ret;

        for (; (hit = strstr(text, from)); text = hit + strlen(from)) {
                lkg_buf_append(&buf, text, (size_t)(hit - text));
                lkg_buf_puts(&buf, to);
        }
        lkg_buf_puts(&buf, text);
        lkg_buf_putc(&buf, '\0');
        if (lkg_buf_failed(&buf))
                answer_die("no memory");
        ret = lkg_buf_steal(&buf, NULL);
        return ret;
}

static void free_words(char **words, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(words[i]);
        free(words);
}

/* Heap; @ret_n words, each heap. */
static char **command_line(const struct lkg_value *request, const char *dir, size_t *ret_n)
{
        const struct lkg_value *args = lkg_map_get(request, "args");
        size_t n = args && lkg_value_type(args) == LKG_LIST ? lkg_value_size(args) : 0;
        char **words = calloc(n + 1, sizeof(*words));

        if (!words)
                answer_die("no memory");
        for (size_t i = 0; i < n; i++)
                words[i] = replaced(lkg_value_text(lkg_list_get(args, i), NULL), MARK, dir);
        *ret_n = n;
        return words;
}

static unsigned number_of(const struct lkg_value *request, const char *name, unsigned otherwise)
{
        const struct lkg_value *value = lkg_map_get(request, name);

        return value && lkg_value_type(value) == LKG_NUMBER
                       ? (unsigned)strtoul(lkg_value_text(value, NULL), NULL, 10)
                       : otherwise;
}

/* ---- what is to be changed ---- */

/* One change: of a layer, the command line or the ConfigMap. */
struct change {
        enum { CHANGE_PUT, CHANGE_REMOVE, CHANGE_MKDIR, CHANGE_RMDIR, CHANGE_REMOTE, CHANGE_JUDGE } what;
        char name[300];
        const struct lkg_value *text; /* borrowed from the request; NULL = none */
};

struct changes {
        struct change items[CHANGES_MAX];
        size_t n;
        bool failed;
};

static void add(struct changes *c, int what, const char *dir, const char *name, const struct lkg_value *text)
{
        if (c->n == CHANGES_MAX)
                answer_die("too many changes");
        c->items[c->n] = (struct change){ .what = what, .text = text };
        (void)snprintf(c->items[c->n].name, sizeof(c->items->name), "%s%s%s", dir, *dir ? "/" : "", name);
        c->n++;
}

static const struct lkg_value *text_under(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *text = lkg_map_get(map, name);

        return text && lkg_value_type(text) == LKG_STRING ? text : NULL;
}

static bool is_wanted(const struct lkg_value *list, const char *name)
{
        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const char *path = lkg_map_get_string(lkg_list_get(list, i), "path");

                if (path && strcmp(path, name) == 0)
                        return true;
        }
        return false;
}

/* Change the files of @dir: remove those that are not in @list, write the others. */
static void add_tree(struct changes *c, const char *dir, const struct lkg_value *old,
                     const struct lkg_value *list)
{
        for (size_t i = 0; old && i < lkg_value_size(old); i++) {
                const char *path = lkg_map_get_string(lkg_list_get(old, i), "path");

                if (path && !is_wanted(list, path))
                        add(c, CHANGE_REMOVE, dir, path, NULL);
        }
        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                const char *path = lkg_map_get_string(item, "path");

                if (!path || !text_under(item, "text"))
                        answer_die("a file without path and text");
                add(c, CHANGE_PUT, dir, path, text_under(item, "text"));
        }
}

static void add_file(struct changes *c, const struct lkg_value *request, const char *key, const char *name)
{
        const struct lkg_value *text = text_under(request, key);

        add(c, text ? CHANGE_PUT : CHANGE_REMOVE, "", name, text);
}

static void plan(const struct component *component, const struct lkg_value *request, struct changes *c)
{
        const struct lkg_value *dropins = lkg_map_get(request, "dropins"), *last = component->last;

        c->n = 0;
        add(c, CHANGE_JUDGE, "", "", NULL);
        add_file(c, request, "base", BASE);
        add_file(c, request, "instance", INSTANCE);
        add_tree(c, PATCHES, last ? lkg_map_get(last, "patches") : NULL, lkg_map_get(request, "patches"));
        add(c, CHANGE_REMOTE, "", "", text_under(request, "remote"));
        add(c, dropins ? CHANGE_MKDIR : CHANGE_RMDIR, "", DROPINS, NULL);
        if (dropins)
                add_tree(c, DROPINS, last ? lkg_map_get(last, "dropins") : NULL, dropins);
}

/* Shuffle the changes of one request; the order is the same each time the same requests are asked. */
static void shuffle(struct component *component, struct changes *c)
{
        for (size_t i = c->n; i > 1; i--) {
                struct change last = c->items[i - 1];
                size_t k;

                component->dice =
                        component->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                k = (size_t)(component->dice >> 33) % i;
                c->items[i - 1] = c->items[k];
                c->items[k] = last;
        }
}

/* ---- changing ---- */

static void judge_by(struct component *component, const struct lkg_value *request)
{
        struct lkg_judge_config config = component->place.options.judge;
        char **words, **old = component->words;
        size_t n_words, n_old = component->n_words;
        bool same;

        words = command_line(request, component->place.dir, &n_words);
        config.host.cgroup = number_of(request, "cgroup", 2);
        config.release = number_of(request, "release", 0);
        same = n_words == n_old && config.host.cgroup == component->place.options.judge.host.cgroup &&
               config.release == component->place.options.judge.release;
        for (size_t i = 0; same && i < n_words; i++)
                same = strcmp(words[i], old[i]) == 0;
        if (same) {
                free_words(words, n_words);
                return;
        }
        config.flags = (const char *const *)words;
        config.n_flags = n_words;
        component->words = words;
        component->n_words = n_words;
        place_judge_by(&component->place, &config);
        free_words(old, n_old);
}

static void carry_out(struct component *component, const struct lkg_value *request, struct change *change,
                      struct changes *all)
{
        struct place *place = &component->place;
        size_t size = 0;
        const char *text = change->text ? lkg_value_text(change->text, &size) : NULL;

        switch (change->what) {
        case CHANGE_PUT:
                place_put(place, change->name, text, size);
                break;
        case CHANGE_REMOVE:
                place_remove(place, change->name);
                break;
        case CHANGE_MKDIR:
                place_mkdir(place, change->name);
                break;
        case CHANGE_RMDIR:
                place_rmdir(place, change->name);
                break;
        case CHANGE_REMOTE:
                if (text || place->remote)
                        all->failed |= !place_set_remote(place, text, size);
                break;
        case CHANGE_JUDGE:
                judge_by(component, request);
                break;
        }
}

static void compare(struct place *place, const char *after, struct lkg_buf *stale)
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *fresh = place_fresh(place);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf why = LKG_BUF_INIT;

        place_compare(place->candidate, fresh, &why);
        if (why.size > 0 && stale->size == 0) {
                lkg_buf_printf(stale, "after %s: ", after);
                lkg_buf_append(stale, why.data, why.size);
        }
}

/* Apply everything that the request wants, one change after the other. */
static bool apply(struct component *component, const struct lkg_value *request, struct lkg_buf *stale)
{
        static const char *const words[] = { "writing", "removing",          "mkdir",
                                             "rmdir",   "another ConfigMap", "another command line" };
        static struct changes changes;

        changes.failed = false;
        plan(component, request, &changes);
        shuffle(component, &changes);
        for (size_t i = 0; i < changes.n; i++) {
                struct change *change = &changes.items[i];
                char after[400];

                carry_out(component, request, change, &changes);
                if (component->place.n_touched == 0 && !component->place.everything && i + 1 < changes.n &&
                    change->what != CHANGE_JUDGE)
                        continue;
                (void)place_look(&component->place);
                (void)snprintf(after, sizeof(after), "%s %s", words[change->what], change->name);
                compare(&component->place, after, stale);
        }
        lkg_value_unref(component->last);
        component->last = lkg_value_ref((struct lkg_value *)request);
        return !changes.failed;
}

/* ---- the reply ---- */

static void put_text(const struct answer *a, const char *key, const struct lkg_buf *text, const char *dir,
                     const char *mark, bool quoted)
{
        LKG_CLEANUP(lkg_freep) char *shown = NULL;

        lkg_buf_printf(a->out, ",\"%s\":", key);
        shown = replaced(text->data, dir, mark);
        if (quoted)
                lkg_buf_json_string(a->out, shown, strlen(shown));
        else
                lkg_buf_puts(a->out, shown);
}

static void put_valid(const struct answer *a, const struct place *place)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf out = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf served = LKG_BUF_INIT;

        if (place->candidate->effective) {
                lkg_render_json_compact(place->candidate->effective, &out);
                lkg_buf_putc(&out, '\0');
                put_text(a, "out", &out, place->dir, MARK, false);
        }
        place_render(place->candidate, &served);
        lkg_buf_putc(&served, '\0');
        put_text(a, "served", &served, place->dir, "/" MARK, true);
}

static struct component *component_of(size_t i)
{
        struct component *component = &components[i];
        const struct place_options options = {
                .component = component->name,
                .kind = component->kind,
                .base = BASE,
                .dropins = DROPINS,
                .instance = INSTANCE,
                .patches = PATCHES,
                .judge = { .host = { .cgroup = 2, .stated = true }, .lint = true },
        };

        if (!component->open)
                place_open(&component->place, &options);
        component->open = true;
        return component;
}

static void answer_component(const struct answer *a, size_t i)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf stale = LKG_BUF_INIT;
        struct component *component = component_of(i);
        struct lkg_candidate *candidate;
        bool valid = apply(component, a->request, &stale);

        candidate = component->place.candidate;
        valid = valid && candidate->state == LKG_CANDIDATE_VALID;
        lkg_buf_printf(a->out, "\"ok\":%s,\"none\":%s", valid ? "true" : "false",
                       candidate->state == LKG_CANDIDATE_NONE ? "true" : "false");
        answer_error(a->out, "error", &candidate->report);
        place_publish(&component->place, candidate);
        if (valid)
                put_valid(a, &component->place);
        if (stale.size > 0) {
                lkg_buf_puts(a->out, ",\"stale\":");
                lkg_buf_json_string(a->out, stale.data, stale.size);
        }
}

void answer_kubelet(const struct answer *a)
{
        answer_component(a, 0);
}

void answer_kubeproxy(const struct answer *a)
{
        answer_component(a, 1);
}

void answer_other(const struct answer *a)
{
        answer_component(a, 2);
}

void answer_close(void)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(components); i++) {
                if (components[i].open)
                        place_close(&components[i].place);
                free_words(components[i].words, components[i].n_words);
                lkg_value_unref(components[i].last);
        }
}
