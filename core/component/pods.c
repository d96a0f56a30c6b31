/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static pods: the set of manifests that is to be served, and the pods of the one that is.
 *
 * The set is a function of the files, the bad marks, the last good set and what is served now. So a pod that is marked bad goes back by
 * itself: the mark is written, and the set is made again.
 */
#include <lkg/component.h>
#include <lkg/documents.h>
#include <lkg/pod.h>
#include <lkg/schema.h>
#include <lkg/tree.h>

#define FILE_NAME_MAX 200u /* with a digest it is the name of a mark */

/* ---- sets ---- */

const struct lkg_value *lkg_pods_text(const struct lkg_value *texts, const char *file)
{
        const struct lkg_value *text = texts ? lkg_map_get(texts, file) : NULL;

        return text && lkg_value_type(text) == LKG_STRING ? text : NULL;
}

static struct lkg_value *read_set(const char *data, size_t size)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *set = NULL;

        if (lkg_decode_own(data, size, 0, NULL, &set) < 0)
                return NULL;
        return lkg_value_ref(lkg_pods_texts(set));
}

struct lkg_value *lkg_pods_set_of(struct lkg_value *texts)
{
        struct lkg_value *set = lkg_value_new_map(NULL, 0, 0);

        (void)lkg_map_set(set, "kind", 4,
                          lkg_value_new_string(LKG_PODS_KIND, strlen(LKG_PODS_KIND), NULL, 0, 0));
        (void)lkg_map_set(set, "pods", 4, texts);
        return set;
}

struct lkg_config_source lkg_pods_source(const char *file, const char *sha256)
{
        struct lkg_config_source source = { .key = LKG_KEY_DEFAULT };

        (void)snprintf(source.uid, sizeof(source.uid), "%s", file);
        (void)snprintf(source.version, sizeof(source.version), "%.12s", sha256);
        (void)snprintf(source.sha256, sizeof(source.sha256), "%s", sha256);
        return source;
}

static const struct lkg_bad *mark_of(const struct lkg_bad_list *bad, const char *file, const char *sha256)
{
        const struct lkg_config_source source = lkg_pods_source(file, sha256);
        const struct lkg_bad *mark = bad ? lkg_bad_find(bad, &source) : NULL;

        /* the same text is no better under another name */
        for (size_t i = 0; bad && !mark && i < bad->n_items; i++)
                if (strcmp(bad->items[i].source.sha256, sha256) == 0)
                        mark = &bad->items[i];
        return mark;
}

const struct lkg_bad *lkg_pods_mark(const struct lkg_component *c, const char *file, const char *sha256)
{
        return c->dynamic ? mark_of(&c->dynamic->bad, file, sha256) : NULL;
}

/* The stored document, read again when it is another one. */
const struct lkg_value *lkg_pods_good(const struct lkg_component *c)
{
        struct lkg_pods *pods = c->pods;
        const char *sha256 = c->dynamic ? c->dynamic->pointers.good.sha256 : "";
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_error err = { 0 };
        size_t size;

        if (strcmp(pods->good_sha256, sha256) == 0)
                return pods->good;
        pods->good = lkg_value_unref(pods->good);
        (void)snprintf(pods->good_sha256, sizeof(pods->good_sha256), "%s", sha256);
        if (!*sha256)
                return NULL;
        if (lkg_store_load_document(&c->dynamic->store, sha256, &data, &size, &err) >= 0)
                pods->good = read_set(data, size);
        if (!pods->good)
                lkg_log(LOG_WARNING, &fields,
                        "the last good manifests are lost, so each that is served is on trial: %s",
                        *err.message ? err.message : "damaged");
        return pods->good;
}

/* ---- the set that is to be served ---- */

struct set_making {
        const struct lkg_pods_by *by;
        struct lkg_candidate *candidate;
        struct lkg_value *texts, *docs;
        struct lkg_value *pods; /* the documents by namespace and name */
};

static char *full_name(const struct lkg_value *doc)
{
        return lkg_format("%s/%s", lkg_pod_namespace(doc), lkg_pod_name(doc));
}

/* The pod of another file in the set that is the same; NULL = none. */
static const struct lkg_value *same_pod(const struct set_making *m, const struct lkg_value *doc)
{
        LKG_CLEANUP(lkg_freep) char *name = full_name(doc);

        return lkg_map_get(m->pods, name);
}

/* Takes over @doc. */
static void put(struct set_making *m, const char *file, const struct lkg_value *text, struct lkg_value *doc)
{
        const struct lkg_value *other = doc ? same_pod(m, doc) : NULL;
        struct lkg_where where = doc ? lkg_where_of(doc) : (struct lkg_where){ 0 };
        char place[PATH_MAX];

        if (other) {
                const struct lkg_where first = lkg_where_of(other);

                (void)lkg_where_text(&first, place, sizeof(place));
                lkg_report_add(
                        &m->candidate->report, LKG_WARNING, LKG_C_SAME_POD, &where,
                        "%spod %s of namespace %s is served from there, this file is not; keep one of them",
                        place, lkg_pod_name(doc), lkg_pod_namespace(doc));
        } else if (doc) {
                LKG_CLEANUP(lkg_freep) char *name = full_name(doc);

                (void)lkg_map_set(m->pods, name, strlen(name), lkg_value_ref(doc));
                (void)lkg_map_set(m->texts, file, strlen(file), lkg_value_ref((struct lkg_value *)text));
                (void)lkg_map_set(m->docs, file, strlen(file), lkg_value_ref(doc));
        }
        lkg_value_unref(doc);
}

static void digest(const struct lkg_value *text, char ret[static LKG_SHA256_HEX])
{
        size_t size;
        const char *data = lkg_value_text(text, &size);

        (void)lkg_need(lkg_sha256_hex(data, size, ret));
}

static const struct lkg_bad *mark_of_text(const struct set_making *m, const char *file,
                                          const struct lkg_value *text)
{
        char sha256[LKG_SHA256_HEX];

        digest(text, sha256);
        return mark_of(m->by->bad, file, sha256);
}

/* What is served of a file whose present text is not: an earlier text. */
static void put_earlier(struct set_making *m, const char *file, const struct lkg_value *text,
                        const char *layer)
{
        if (text)
                put(m, file, text, lkg_pods_document(layer, file, text));
}

/* Not of a second file of the same pod, which is left out for that reason. */
static void ask_host(const struct set_making *m, const struct lkg_layer_info *info)
{
        struct lkg_report *report = &m->candidate->report;

        if (same_pod(m, info->doc))
                return;
        lkg_pod_check_host(info->doc, &m->by->host, report);
        for (struct lkg_member other = { 0 }; lkg_value_next(m->docs, &other);)
                lkg_pod_check_ports(info->doc, other.key.data, other.value, m->by->host.severity, report);
}

static bool is_fit(const struct set_making *m, const struct lkg_layer_info *info)
{
        struct lkg_report *report = &m->candidate->report;
        const struct lkg_where where = { info->file, 0, 0 };
        size_t n = report->n_severity[LKG_ERROR], size;
        const char *data = lkg_layer_info_text(info, &size);

        if (!lkg_identifier_ok(info->name) || strlen(info->name) > FILE_NAME_MAX)
                lkg_report_add(report, LKG_ERROR, LKG_C_MANIFEST_NAME, &where,
                               "the file name cannot be used; want 1 to %u of the characters A-Z, a-z, 0-9, "
                               "., _ and -",
                               FILE_NAME_MAX);
        else if (info->doc && !lkg_utf8_ok(data, size))
                lkg_report_add(report, LKG_ERROR, LKG_C_BYTES, &where,
                               "is not UTF-8, as a text that is served byte for byte must be; convert it");
        else if (info->doc && !info->left_out)
                lkg_pod_judge(info->doc, m->by->release, report);
        if (info->doc && !info->left_out && report->n_severity[LKG_ERROR] == n)
                ask_host(m, info);
        return info->doc && !info->left_out && report->n_severity[LKG_ERROR] == n;
}

static void say_bad(const struct set_making *m, const struct lkg_layer_info *info,
                    const struct lkg_bad *mark, bool has_good)
{
        const struct lkg_where where = { info->file, 0, 0 };

        lkg_report_add(&m->candidate->report, LKG_ERROR, LKG_C_POD_BAD, &where, "bad: %.300s; %s",
                       mark->reason,
                       has_good ? "the last good manifest of this file counts instead"
                                : "there is no good manifest of this file to go back to");
}

static void choose(struct set_making *m, const struct lkg_layer_info *info)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *text = NULL;
        const struct lkg_value *good = lkg_pods_text(m->by->good, info->name),
                               *served = lkg_pods_text(m->by->served, info->name);
        const struct lkg_bad *mark;
        const char *data;
        char sha256[LKG_SHA256_HEX];
        size_t size;

        if (!is_fit(m, info)) {
                if (!served || (good && mark_of_text(m, info->name, served)))
                        served = good;
                put_earlier(m, info->name, served, "served before");
                return;
        }
        mark = mark_of(m->by->bad, info->name, lkg_layer_info_sha256(info));
        if (mark && good) {
                digest(good, sha256);
                if (strcmp(sha256, lkg_layer_info_sha256(info)) == 0)
                        good = NULL; /* it is the one that is marked */
        }
        if (mark)
                say_bad(m, info, mark, good != NULL);
        if (mark && good) {
                put_earlier(m, info->name, good, "last known good");
                return;
        }
        data = lkg_layer_info_text(info, &size);
        text = lkg_value_new_string(data, size, NULL, 0, 0);
        put(m, info->name, text, lkg_value_ref((struct lkg_value *)info->doc));
}

/* Marked, and nothing to go back to: any other file of its pod is better. */
static bool is_hopeless(const struct set_making *m, const struct lkg_layer_info *info)
{
        return !lkg_pods_text(m->by->good, info->name) &&
               mark_of(m->by->bad, info->name, lkg_layer_info_sha256(info));
}

const struct lkg_layer_info *lkg_pods_layer(const struct lkg_candidate *candidate, const char *file)
{
        for (size_t i = 0; candidate && i < candidate->n_layers; i++)
                if (strcmp(candidate->layers[i].name, file) == 0)
                        return &candidate->layers[i];
        return NULL;
}

void lkg_pods_make(struct lkg_candidate *candidate, const struct lkg_pods_by *by)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *pods = lkg_value_new_map(NULL, 0, 0);
        struct set_making m = { by, candidate, lkg_value_new_map(NULL, 0, 0), lkg_value_new_map(NULL, 0, 0),
                                pods };

        for (int last = false; last <= true; last++)
                for (size_t i = 0; i < candidate->n_layers; i++)
                        if (is_hopeless(&m, &candidate->layers[i]) == last)
                                choose(&m, &candidate->layers[i]);
        for (struct lkg_member kept = { 0 };
             candidate->unread && by->served && lkg_value_next(by->served, &kept);)
                if (!lkg_pods_layer(candidate, kept.key.data))
                        put_earlier(&m, kept.key.data, kept.value, "served before");
        candidate->doc = m.docs;
        candidate->texts = lkg_pods_set_of(m.texts);
        lkg_candidate_finish(candidate, by->hint);
}

enum lkg_severity lkg_pods_severity(const struct lkg_config_component *k)
{
        return k->startup_rules == LKG_STARTUP_REFUSE ? LKG_ERROR : LKG_WARNING;
}

void lkg_pods_judge(struct lkg_candidate *candidate, void *userdata)
{
        struct lkg_component *c = userdata;

        lkg_pods_make(candidate, &(struct lkg_pods_by){ .served = lkg_pods_served(c),
                                                        .good = lkg_pods_good(c),
                                                        .bad = c->dynamic ? &c->dynamic->bad : NULL,
                                                        .release = lkg_release_judged(c->line.release),
                                                        .host = { lkg_pods_severity(c->config),
                                                                  c->env->mount_point, c->env->source_fd },
                                                        .hint = c->names.hint });
}

void lkg_pods_refresh(struct lkg_component *c)
{
        const struct lkg_dynamic *d = c->dynamic;
        bool marked = d && d->bad.n_items > 0; /* else what was good is not asked for */
        uint64_t h = marked ? lkg_hash(0, d->pointers.good.sha256, LKG_SHA256_HEX) : 0;

        for (size_t i = 0; marked && i < d->bad.n_items; i++)
                h = lkg_hash(h, d->bad.items[i].id, strlen(d->bad.items[i].id) + 1);
        if (h != c->pods->judged_by)
                lkg_stack_rejudge(c->stack);
        c->pods->judged_by = h;
}

const char *lkg_pods_directory(const struct lkg_candidate *kubelet, const char *mount_point,
                               const char *source, int source_fd)
{
        const char *path = kubelet->state == LKG_CANDIDATE_VALID && kubelet->merged
                                   ? lkg_map_get_string(kubelet->merged, "staticPodPath")
                                   : NULL,
                   *below;

        if (!path)
                return NULL;
        below = mount_point ? lkg_path_below(path, mount_point) : NULL;
        below = below ? below : lkg_path_below(path, source);
        path = below ? below : path;
        /* it becomes a rule of the file server, which compares names; and nobody has moved to what is not there */
        return *path && lkg_path_is_clean(lkg_span(path, strlen(path))) && lkg_path_exists(source_fd, path)
                       ? path
                       : NULL;
}

/* Does the kubelet's document that is served, perhaps by the engine before, name another directory than the view's? */
static bool reads_itself(const struct lkg_component *kubelet)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        const char *path;

        if (!kubelet->active || lkg_decode_own(kubelet->active->document.data,
                                               kubelet->active->document.size, 0, NULL, &doc) < 0)
                return false;
        path = lkg_map_get_string(doc, "staticPodPath");
        return path && !(kubelet->names.pods_dir && strcmp(path, kubelet->names.pods_dir) == 0);
}

/* A kubelet that runs reads the view's directory, and would end the pods at once that the other one does not have. */
bool lkg_pods_stay(struct lkg_component *c, const struct lkg_component *kubelet, const char *dir)
{
        LKG_CLEANUP(lkg_freep) char *elsewhere = LKG_STEAL(c->pods->elsewhere);
        const struct lkg_value *texts = lkg_pods_served(c);
        bool moves = (c->pods->is_placed || reads_itself(kubelet)) && dir &&
                     strcmp(dir, c->config->dropin_dir) != 0;

        c->pods->is_placed = true;
        for (struct lkg_member m = { 0 }; moves && texts && lkg_value_next(texts, &m);) {
                LKG_CLEANUP(lkg_freep) char *path = lkg_format("%s/%s", dir, m.key.data);

                if (!c->pods->elsewhere && !lkg_path_exists(c->env->source_fd, path))
                        c->pods->elsewhere = lkg_copy(path);
        }
        c->due.facts |= !elsewhere != !c->pods->elsewhere;
        return c->pods->elsewhere;
}

/* ---- the pods that are served ---- */

static void pod_deinit(struct lkg_pod *pod)
{
        free(pod->file);
        lkg_value_unref(pod->text);
        lkg_value_unref(pod->doc);
}

static void free_items(struct lkg_pod *items, size_t n)
{
        for (size_t i = 0; i < n; i++)
                pod_deinit(&items[i]);
        free(items);
}

struct lkg_pods *lkg_pods_free(struct lkg_pods *pods)
{
        if (!pods)
                return NULL;
        free_items(pods->items, pods->n_items);
        lkg_value_unref(pods->texts);
        lkg_value_unref(pods->good);
        free(pods->elsewhere);
        free(pods);
        return NULL;
}

/* The document of @file in the candidate, if that is what is served. One reference, or NULL. */
static struct lkg_value *known_document(const struct lkg_component *c, const char *file)
{
        struct lkg_value *doc = lkg_component_serves_candidate(c) && c->candidate->doc
                                        ? lkg_map_get(c->candidate->doc, file)
                                        : NULL;

        return doc ? lkg_value_ref(doc) : NULL;
}

static void take_pod(const struct lkg_component *c, const struct lkg_member *m, struct lkg_pod *ret)
{
        *ret = (struct lkg_pod){ .file = lkg_copy(m->key.data), .text = lkg_value_ref(m->value) };
        digest(m->value, ret->sha256);
        ret->doc = known_document(c, m->key.data);
        if (!ret->doc)
                ret->doc = lkg_pods_document("served", m->key.data, m->value);
}

/* What is known of a pod of the same text, or of one that goes back to its last good one. */
static void take_over(const struct lkg_component *c, struct lkg_pod *pod, const struct lkg_pod *before)
{
        const struct lkg_value *good = lkg_pods_text(lkg_pods_good(c), pod->file);

        if (strcmp(before->sha256, pod->sha256) == 0 || (good && lkg_value_equal(good, pod->text)) ||
            (before->doc && pod->doc && lkg_value_equal(before->doc, pod->doc))) /* but for a comment */
                pod->trial = before->trial;
}

/* A stored set has the last good text of a file that another one hides, too; the pod is served once. */
static bool is_first(struct lkg_value *names, const struct lkg_pod *pod)
{
        LKG_CLEANUP(lkg_freep) char *name = pod->doc ? full_name(pod->doc) : NULL;

        return !name || lkg_map_set(names, name, strlen(name), lkg_value_ref(pod->doc)) == 0;
}

/* Of a new engine, a pod may have gone back, or not: that is seen when the marks are looked at. */
void lkg_pods_follow(struct lkg_component *c)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *set = NULL, *names = lkg_value_new_map(NULL, 0, 0);
        struct lkg_pods *pods = c->pods;
        struct lkg_pod *before = pods->items;
        size_t n_before = pods->n_items, k = 0;

        if (pods->of == (c->active ? c->active->number : 0))
                return;
        pods->of = c->active ? c->active->number : 0;
        pods->since_ns = lkg_boottime_ns();
        pods->texts = lkg_value_unref(pods->texts);
        if (lkg_component_serves_candidate(c) && c->candidate->texts)
                set = lkg_value_ref(lkg_pods_texts(c->candidate->texts));
        else if (c->active)
                set = read_set(c->active->document.data, c->active->document.size);
        pods->texts = set ? lkg_value_new_map(NULL, 0, 0) : NULL;
        pods->items = lkg_must(calloc(set ? lkg_value_size(set) + 1 : 1, sizeof(*pods->items)));
        pods->n_items = 0;
        for (struct lkg_member m = { 0 }; set && lkg_value_next(set, &m);) {
                struct lkg_pod *pod = &pods->items[pods->n_items];

                take_pod(c, &m, pod);
                if (!is_first(names, pod)) {
                        pod_deinit(pod);
                        continue;
                }
                pods->n_items++;
                (void)lkg_map_set(pods->texts, m.key.data, m.key.size, lkg_value_ref(m.value));
                while (k < n_before && strcmp(before[k].file, pod->file) < 0)
                        k++;
                if (k < n_before && strcmp(before[k].file, pod->file) == 0)
                        take_over(c, pod, &before[k]);
                else if (!before)
                        pod->trial.state = LKG_POD_BACK;
        }
        if (!pods->texts)
                pods->of = 0; /* it cannot be read: once more when the files are known */
        free_items(before, n_before);
}

const struct lkg_value *lkg_pods_served(struct lkg_component *c)
{
        lkg_pods_follow(c);
        return c->pods->texts;
}

/*
 * Of a text that was served or judged, the engine before has seen the end. A file that is new to a running engine may be older than its look.
 */
bool lkg_pods_is_unsettled(const char *path, const char *sha256, void *userdata)
{
        struct lkg_component *c = userdata;
        struct lkg_settled *settled = c->env->settled;
        const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
        const struct lkg_value *served = lkg_pods_served(c);
        bool known = !sha256 || settled->new_stacks || lkg_pods_mark(c, file, sha256) || !served ||
                     (settled->started && !lkg_pods_text(served, file)),
             unsettled;

        for (size_t i = 0; i < c->pods->n_items && !known; i++)
                known = strcmp(c->pods->items[i].file, file) == 0 &&
                        strcmp(c->pods->items[i].sha256, sha256) == 0;
        if (!known)
                lkg_settled_doubt(settled, path);
        unsettled = lkg_is_unsettled(path, sha256, settled);
        if (!settled->new_stacks)
                return unsettled;
        settled->recent |= !sha256; /* of the settings before, the layers are known */
        return !sha256 || lkg_watch_unsettled(settled->watch, path);
}
