/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/base.h>
#include <lkg/pod.h>
#include <lkg/schema.h>
#include <lkg/tree.h>

#include "judge.h"

#include <limits.h>

#include "command-line.h"
#include "findings-codes.h"

/* ---- creating and freeing ---- */

static void layer_deinit(struct lkg_judged_layer *layer)
{
        lkg_value_unref((struct lkg_value *)layer->doc);
        lkg_value_unref(layer->running);
        lkg_report_deinit(&layer->lint);
        lkg_report_deinit(&layer->report);
}

static void forget_layers(struct lkg_judge *judge)
{
        for (size_t i = 0; i < judge->n_layers; i++)
                layer_deinit(&judge->layers[i]);
        free(judge->layers);
        judge->layers = NULL;
        judge->n_layers = 0;
}

static void forget_base(struct lkg_judge *judge)
{
        lkg_value_unref((struct lkg_value *)judge->base.doc);
        free((char *)judge->base.file);
        judge->base = (struct lkg_judged_base){ 0 };
        judge->loaded = lkg_value_unref(judge->loaded);
        judge->unread = lkg_value_unref(judge->unread);
        judge->encoded = lkg_value_unref(judge->encoded);
        lkg_report_deinit(&judge->base_report);
        free(judge->base_dir);
        judge->base_dir = NULL;
        judge->base_known = false;
}

static void forget(struct lkg_judge *judge)
{
        forget_layers(judge);
        forget_base(judge);
        lkg_report_deinit(&judge->flag_report);
        judge->schema = NULL;
}

struct lkg_judge *lkg_judge_free(struct lkg_judge *judge)
{
        if (judge)
                forget(judge);
        free(judge);
        return NULL;
}

struct lkg_judge *lkg_judge_new(const struct lkg_judge_config *config)
{
        struct lkg_judge *judge = lkg_must(calloc(1, sizeof(*judge)));

        judge->config = *config;
        return judge;
}

void lkg_judge_configure(struct lkg_judge *judge, const struct lkg_judge_config *config)
{
        forget(judge);
        judge->config = *config;
}

/* ---- which kind ---- */

/* Kinds of the known API groups that are not the configuration of a component. */
static const char other_kinds[] = "CredentialProviderConfig, SerializedNodeConfigSource";

/* What @doc, which is not for this component, resembles is said as well. */
static void refuse_foreign(const struct lkg_value *doc, const struct lkg_kind *own, struct lkg_span kind,
                           struct lkg_span version, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_freep) char *words = lkg_resembles(NULL, 0, 0, doc);
        size_t n = report->n_findings;

        lkg_report_add(report, LKG_ERROR, LKG_F_NOT_ONE_OF, LKG_AT(lkg_map_get(doc, "kind")),
                       "kind: %s of %s is not read by %s; want %s of %s (if another program reads it, name "
                       "the component otherwise, or set its kind and apiVersion)",
                       LKG_QUOTE(kind), LKG_QUOTE(version), own->component, own->kind, own->api_version);
        lkg_report_add_words(report, n, words);
}

/* No component reads it, as far as we know: of something that is easily taken for a configuration, that is worth a line. */
static void note_foreign(const struct lkg_judge *judge, const struct lkg_value *doc, const char *version,
                         struct lkg_report *report)
{
        LKG_CLEANUP(lkg_freep) char *words = NULL;

        if (judge->config.lint && !strstr(version, ".config.k8s.io/"))
                words = lkg_resembles(NULL, 0, 0, doc);
        if (words)
                lkg_report_add(
                        report, LKG_NOTE, LKG_C_FOREIGN, LKG_AT(lkg_map_get(doc, "kind")),
                        "no component that lkgfs knows reads this, so only its syntax was looked at; %s",
                        words);
}

/*
 * The component cannot decode a kind with a table in an unknown version. With a misspelled kind in a known version it would
 * not start, and without a table nothing in the document would be checked. And a component with a table reads no other kind:
 * it would only say "no kind ... is registered for version ...".
 * Return: 0; -ENOENT: any other kind; -EBADMSG (@report).
 */
static int schema_of(const struct lkg_judge *judge, const struct lkg_value *doc, const char *kind,
                     const char *version, struct lkg_report *report, const struct lkg_schema **ret)
{
        const struct lkg_kind *own = NULL, *of_kind = NULL, *of_version = NULL;
        struct lkg_span given = { kind, strlen(kind) }, in = { version, strlen(version) };

        for (size_t i = 0; i < lkg_n_kinds; i++) {
                const struct lkg_kind *row = &lkg_kinds[i];

                if (judge->config.component && strcmp(row->component, judge->config.component) == 0)
                        own = row;
                if (strcmp(row->kind, kind) == 0)
                        of_kind = row;
                if (strcmp(row->api_version, version) == 0 && !lkg_rule_word(other_kinds, given))
                        of_version = row;
        }
        if (of_kind && of_kind != of_version) {
                lkg_report_add(report, LKG_ERROR, LKG_F_NOT_ONE_OF, LKG_AT(lkg_map_get(doc, "apiVersion")),
                               "apiVersion: %s is unknown for kind %s; want %s", LKG_QUOTE(in), kind,
                               of_kind->api_version);
                return -EBADMSG;
        }
        if (!of_kind && of_version) {
                lkg_report_add(report, LKG_ERROR, LKG_F_NOT_ONE_OF, LKG_AT(lkg_map_get(doc, "kind")),
                               "kind: %s is unknown in %s; want %s", LKG_QUOTE(given), version,
                               of_version->kind);
                return -EBADMSG;
        }
        if (own && own != of_kind) {
                refuse_foreign(doc, own, given, in, report);
                return -EBADMSG;
        }
        if (!own && strcmp(kind, "Pod") == 0 && strcmp(version, "v1") == 0)
                lkg_pod_judge(doc, judge->config.release, report);
        else if (!of_kind)
                note_foreign(judge, doc, version, report);
        return lkg_schema_get(kind, version, judge->config.release, ret);
}

/*
 * The first layer that has both sets kind and version for all of them.
 * Return: 0; -ENOENT: a kind without a table; -EBADMSG (@report).
 */
static int find_schema(const struct lkg_judge *judge, const struct lkg_candidate *candidate,
                       struct lkg_report *report, const struct lkg_schema **ret)
{
        for (size_t i = 0; i < candidate->n_layers; i++) {
                const struct lkg_value *doc = candidate->layers[i].doc;
                const char *kind = doc ? lkg_map_get_string(doc, "kind") : NULL;
                const char *version = doc ? lkg_map_get_string(doc, "apiVersion") : NULL;

                if (kind && version)
                        return schema_of(judge, doc, kind, version, report, ret);
        }
        return -ENOENT;
}

/* Gates of the command line are set before any file is read. */
static void learn_flag_gates(struct lkg_judge *judge)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *flags = lkg_value_new_map(NULL, 0, 0);

        judge->flag_gates = (struct lkg_gates){ .release = lkg_schema_release(judge->schema),
                                                .lenient = judge->config.release &&
                                                           !lkg_release_has_tables(judge->config.release) };
        if (lkg_flags_apply(judge->schema, &judge->config, flags, NULL, &judge->flag_report) == 0)
                (void)lkg_gates_apply(&judge->flag_gates, flags, NULL, &judge->flag_report);
}

/* Another kind or version: all results for the last one are invalid. */
static void set_schema(struct lkg_judge *judge, const struct lkg_schema *schema)
{
        if (schema == judge->schema)
                return;
        forget(judge);
        judge->schema = schema;
        learn_flag_gates(judge);
}

/* ---- the base ---- */

/* filepath.Dir(filepath.Abs(file)). Return: heap. */
static char *directory_of(const char *file)
{
        char cwd[PATH_MAX] = "/", *path, *slash;

        if (*file != '/' && !getcwd(cwd, sizeof(cwd)))
                strcpy(cwd, "/"); /* the working directory has been removed */
        path = lkg_path_resolve(cwd, lkg_span(file, strlen(file)), NULL);
        slash = strrchr(path, '/');
        slash[slash == path ? 1 : 0] = '\0';
        return path;
}

static struct lkg_judged_base base_of(const struct lkg_candidate *candidate)
{
        struct lkg_judged_base base = { .doc = candidate->base };

        for (size_t i = 0; i < candidate->n_layers; i++) {
                const struct lkg_layer_info *layer = &candidate->layers[i];

                if (!lkg_layer_is_base(layer->role))
                        break;
                if (layer->role != LKG_LAYER_PATCH)
                        base.file = layer->beside;
                if (!layer->idle)
                        base.as_read = layer->role != LKG_LAYER_PATCH;
                base.broken |= layer->left_out;
        }
        return base;
}

/* The results of the last judgement are used again only if all inputs are the same. */
static bool is_known_base(const struct lkg_judge *judge, const struct lkg_judged_base *base)
{
        const struct lkg_judged_base *was = &judge->base;

        return judge->base_known && base->doc == was->doc && base->broken == was->broken &&
               base->as_read == was->as_read && !base->file == !was->file &&
               (!base->file || strcmp(base->file, was->file) == 0);
}

static void load_base(struct lkg_judge *judge, const struct lkg_judged_base *b)
{
        const struct lkg_value *base = b->doc;

        if (base && b->file)
                judge->base_dir = directory_of(b->file);
        judge->unread = lkg_value_new_map(NULL, 0, 0);
        judge->loaded =
                lkg_kubelet_load(judge->schema, base, judge->base_dir, b->as_read ? LKG_TYPED_TWICE : 0,
                                 &judge->flag_gates, &judge->base_report, judge->unread);
        /* Without a base the flags are parsed into the defaults, before the drop-ins. */
        if (!base)
                (void)lkg_flags_apply(judge->schema, &judge->config, judge->loaded, NULL,
                                      &judge->base_report);
        judge->encoded = lkg_typed_encode(lkg_schema_root(judge->schema), judge->loaded, NULL, NULL);
}

/* Load the base again if it differs from the last one. */
static void update_base(struct lkg_judge *judge, const struct lkg_candidate *candidate)
{
        struct lkg_judged_base base = base_of(candidate);

        if (is_known_base(judge, &base))
                return;
        forget_base(judge);
        forget_layers(judge);
        load_base(judge, &base);
        judge->base = base;
        judge->base.file = lkg_copy(base.file);
        (void)lkg_value_ref((struct lkg_value *)base.doc);
        judge->base_known = true;
}

/* ---- the layers above the base ---- */

/*
 * A drop-in without kind and apiVersion, and without names that are certainly not a field: the component ignores
 * them, and a thousand drop-ins full of them would be merged a second time for nothing.
 */
static struct lkg_value *known_member(const struct lkg_value *doc, const struct lkg_member *m,
                                      void *userdata)
{
        const struct lkg_judge *judge = userdata;

        (void)doc;
        return lkg_span_is(m->key, "apiVersion") || lkg_span_is(m->key, "kind") ||
                               !lkg_node_member_folded(lkg_schema_root(judge->schema), m->key.data,
                                                       m->key.size)
                       ? NULL
                       : lkg_value_ref(m->value);
}

static void merge_layer(struct lkg_judge *judge, struct lkg_judged_layer *layer,
                        const struct lkg_value *running)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = NULL;
        struct lkg_merge_type type = lkg_schema_merge_type(judge->schema);

        if (!running || lkg_value_type(layer->doc) != LKG_MAP)
                return;
        if (layer->role == LKG_LAYER_INSTANCE) {
                patch = lkg_without_header(layer->doc, NULL);
                (void)lkg_merge_strategic_typed(running, patch, &type, &layer->report, &layer->running);
        } else {
                patch = lkg_value_rewrite(layer->doc, known_member, judge);
                layer->running = lkg_merge_json(running, patch);
        }
}

/*
 * The number of findings about the lower layers. Layers above count as well, but keep fewer findings
 * (LKG_FINDINGS_MAX).
 */
static size_t n_advice(const struct lkg_judge *judge)
{
        size_t n = 0;

        for (size_t i = 0; i < judge->n_layers; i++)
                n += judge->layers[i].lint.n_findings;
        return n;
}

/*
 * Advice needs the lower layers only for a null, a map or feature gates: most fields of many layers need
 * none.
 */
static bool wants_below(const struct lkg_value *doc)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(doc, &m);)
                if (lkg_value_type(m.value) == LKG_NULL || lkg_value_type(m.value) == LKG_MAP)
                        return true;
        return false;
}

/* Advice about layer @i alone, and in relation to the layers below it. */
static void lint_layer(const struct lkg_judge *judge, const struct lkg_candidate *candidate, size_t i,
                       struct lkg_report *report)
{
        const struct lkg_layer_info *info = &candidate->layers[i];
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *below = NULL;

        if (!judge->config.lint || !info->doc || info->left_out || lkg_value_type(info->doc) != LKG_MAP)
                return;
        if (i > 0 && wants_below(info->doc))
                below = lkg_candidate_partial(candidate, i - 1);
        lkg_lint_layer(judge->schema, info->doc, below, info->role, judge->config.lint_all, report);
}

static struct lkg_judged_layer judge_layer(struct lkg_judge *judge, const struct lkg_candidate *candidate,
                                           size_t i, const struct lkg_value *running, size_t n_before)
{
        const struct lkg_layer_info *info = &candidate->layers[i];
        struct lkg_judged_layer layer = { .doc = lkg_value_ref((struct lkg_value *)info->doc),
                                          .role = info->role,
                                          .left_out = info->left_out,
                                          .lint = { .n_elsewhere = n_before } };

        lint_layer(judge, candidate, i, &layer.lint);
        if (lkg_layer_is_base(layer.role))
                layer.running = lkg_value_ref(judge->encoded);
        else if (layer.left_out || !layer.doc)
                layer.running = lkg_value_ref((struct lkg_value *)running);
        else
                merge_layer(judge, &layer, running);
        return layer;
}

/* Layers up to the first one that differs are kept. */
static void update_layers(struct lkg_judge *judge, const struct lkg_candidate *candidate)
{
        struct lkg_judged_layer *layers;
        const struct lkg_value *running = judge->encoded;
        size_t n = 0, n_before;

        while (n < judge->n_layers && n < candidate->n_layers && candidate->layers[n].doc &&
               judge->layers[n].doc == candidate->layers[n].doc &&
               judge->layers[n].left_out == candidate->layers[n].left_out &&
               judge->layers[n].role == candidate->layers[n].role)
                n++;
        for (size_t i = n; i < judge->n_layers; i++)
                layer_deinit(&judge->layers[i]);
        judge->n_layers = n;
        lkg_need(LKG_RESIZE(judge->layers, candidate->n_layers + 1));
        layers = judge->layers;
        if (n > 0)
                running = layers[n - 1].running;
        n_before = n_advice(judge);
        for (; n < candidate->n_layers; n++) {
                layers[n] = judge_layer(judge, candidate, n, running, n_before);
                judge->n_layers++;
                running = layers[n].running;
                n_before += layers[n].lint.n_findings;
        }
}

/* ---- the whole ---- */

/* The typed document before flags: the result of the component's files. NULL = none. */
static struct lkg_value *resolve_kubelet(const struct lkg_judge *judge,
                                         const struct lkg_candidate *candidate, struct lkg_report *report,
                                         struct lkg_value *unread)
{
        const struct lkg_judged_layer *last = judge->n_layers ? &judge->layers[judge->n_layers - 1] : NULL;

        if (!last || !last->running)
                return NULL;
        if (!candidate->has_dropin_dir && lkg_layer_is_base(last->role))
                return lkg_value_ref(judge->loaded);
        return lkg_kubelet_reload(judge->schema, last->running, &judge->flag_gates, report, unread);
}

/* Copy kind and apiVersion from the first layer that has them. */
static void set_header(const struct lkg_candidate *candidate, struct lkg_value *object)
{
        for (size_t i = 0; i < LKG_HEADER_FIELDS; i++) {
                const char *field = lkg_header_fields[i];
                struct lkg_value *value = lkg_map_get(candidate->doc, field);

                if (value)
                        (void)lkg_map_set(object, field, strlen(field), lkg_value_ref(value));
        }
}

/*
 * The kubelet registers its flags once more over the loaded configuration, and registering
 * --log-text-split-stream sets the field to that flag's default (component-base/logs/api/v1, addFlags).
 */
static void lose_split_stream(const struct lkg_judge *judge, struct lkg_value *object,
                              struct lkg_report *report)
{
        static const char path[] = "logging.options.text.splitStream";

        if (!lkg_object_bool(object, path))
                return;
        if (judge->config.lint)
                lkg_report_add(
                        report, LKG_WARNING, LKG_F_LOST, LKG_AT(lkg_object_get(object, path)),
                        "%s: the kubelet forgets it when it parses its flags; use --log-text-split-stream",
                        path);
        lkg_object_set(object, path, NULL);
}

static bool is_misfit(const struct lkg_finding *finding)
{
        return finding->code == LKG_F_WRONG_TYPE || finding->code == LKG_F_NOT_FITTING;
}

bool lkg_has_misfit(const struct lkg_report *report)
{
        for (size_t i = 0; i < report->n_findings; i++)
                if (is_misfit(&report->findings[i]))
                        return true;
        return false;
}

/* Is a value missing in the result because it did not decode? A sum without it would be wrong. */
static bool any_misfit(const struct lkg_judge *judge, const struct lkg_report *report)
{
        bool found = lkg_has_misfit(report) || lkg_has_misfit(&judge->base_report) ||
                     lkg_has_misfit(&judge->flag_report);

        for (size_t i = 0; !found && i < judge->n_layers; i++)
                found = lkg_has_misfit(&judge->layers[i].report);
        return found;
}

/* Is a flag named, in whatever form the program passes it on to the kubelet? */
static bool names_flag(const struct lkg_judge *judge, const char *flag)
{
        for (size_t i = 0; i < judge->config.n_flags; i++)
                if (strstr(judge->config.flags[i], flag))
                        return true;
        return false;
}

/* The host is looked at now: memory and CPUs come and go, swap is switched on. */
static void check_host(const struct lkg_judge *judge, const struct lkg_rules *as,
                       const struct lkg_report *report)
{
        struct lkg_rules rules = *as;

        if (any_misfit(judge, report))
                return;
        rules.other_root = names_flag(judge, "root-dir");
        rules.no_eviction = names_flag(judge, "experimental-allocatable-ignore-eviction");
        lkg_rules_host(&rules);
}

/* Apply flags, gates and rules to the result of the files. */
static void judge_whole(const struct lkg_judge *judge, struct lkg_candidate *candidate,
                        const struct lkg_value *files, const struct lkg_value *unread,
                        struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = lkg_value_clone_shallow(files);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *zeros = lkg_value_new_map(NULL, 0, 0);
        struct lkg_gates gates = judge->flag_gates;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report again = LKG_REPORT_INIT;
        bool kubelet = lkg_schema_is_kubelet(judge->schema), lint = judge->config.lint;
        bool doubt = false;
        struct lkg_rules rules = { .node = lkg_schema_root(judge->schema),
                                   .object = object,
                                   .release = lkg_schema_release(judge->schema),
                                   .kubelet = kubelet,
                                   .gates = &gates,
                                   .host = &judge->config.host,
                                   .report = report,
                                   .startup_refuses = judge->config.startup_refuses,
                                   .unread = unread,
                                   .doubt = &doubt };

        if (kubelet)
                lose_split_stream(judge, object, report);
        (void)lkg_flags_apply(judge->schema, &judge->config, object, zeros, report);
        /*
         * The kubelet's gates were checked when the files were loaded, and the gates of its flags before
         * that.
         */
        (void)lkg_gates_apply(&gates, object, unread, kubelet ? &again : report);
        if (kubelet)
                lkg_rules_kubelet(&rules);
        else
                lkg_rules_kubeproxy(&rules);
        if (lint) {
                lkg_rules_later(&rules);
                check_host(judge, &rules, report);
        }
        if (!candidate->doc) /* only to find mistakes */
                return;
        if (lint)
                lkg_lint_whole(judge, candidate, object, unread, report);
        if (!kubelet)
                lkg_kubeproxy_normalise(object);
        set_header(candidate, object);
        candidate->effective =
                lkg_typed_encode(lkg_schema_root(judge->schema), object, zeros, candidate->doc);
}

/* Return the merge of all layers; if some are broken, of the others. NULL = none. */
static const struct lkg_value *merge_of(const struct lkg_candidate *candidate)
{
        if (candidate->doc || candidate->n_layers == 0 || candidate->state != LKG_CANDIDATE_INVALID)
                return candidate->doc;
        return candidate->merged;
}

/* The next name of a path, as the kernel reads it. */
static bool next_name(struct lkg_span *rest, struct lkg_span *ret)
{
        while (lkg_span_next(rest, '/', ret))
                if (ret->size > 0 && !lkg_span_is(*ret, "."))
                        return true;
        return false;
}

static bool is_pods_source(const struct lkg_judge *judge, const char *path)
{
        struct lkg_span a = lkg_span(path, strlen(path)), b, x, y;
        bool more, other;

        b = lkg_span(judge->config.pods_source, strlen(judge->config.pods_source));
        do {
                more = next_name(&a, &x);
                other = next_name(&b, &y);
        } while (more && other && lkg_span_equal(x, y));
        return *path == '/' && !more && !other;
}

/* The kubelet is to read its static pods where lkgfs serves those that the layers name. */
static void move_pods(const struct lkg_judge *judge, struct lkg_candidate *candidate,
                      struct lkg_value **files)
{
        static const char field[] = "staticPodPath";
        const struct lkg_value *path = lkg_object_get(*files, field);
        struct lkg_value *moved, *doc;
        struct lkg_source *source;

        if (!judge->config.pods_dir || !path || lkg_value_type(path) != LKG_STRING ||
            !is_pods_source(judge, lkg_value_text(path, NULL)))
                return;
        source = lkg_source_new("lkgfs static-pods", "");
        moved = lkg_value_new_string(judge->config.pods_dir, strlen(judge->config.pods_dir), source, 0, 0);
        lkg_source_unref(source);
        doc = lkg_value_clone_shallow(*files);
        lkg_object_set(doc, field, lkg_value_ref(moved));
        lkg_value_unref(*files);
        *files = doc;
        if (candidate->doc) {
                doc = lkg_value_clone_shallow(candidate->doc);
                (void)lkg_map_set(doc, field, strlen(field), lkg_value_ref(moved));
                lkg_value_unref(candidate->doc);
                candidate->doc = doc;
        }
        lkg_value_unref(moved);
}

static void judge_kubelet(struct lkg_judge *judge, struct lkg_candidate *candidate,
                          struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *files = NULL, *unread = NULL;
        struct lkg_value *served;

        update_base(judge, candidate);
        update_layers(judge, candidate);
        unread = lkg_value_clone_shallow(judge->unread);
        if (merge_of(candidate))
                files = resolve_kubelet(judge, candidate, report, unread);
        if (!files)
                return;
        move_pods(judge, candidate, &files);
        judge_whole(judge, candidate, files, unread, report);
        if (!candidate->doc || report->n_severity[LKG_ERROR] > 0 ||
            /* none of it will be served */
            judge->flag_report.n_severity[LKG_ERROR] > 0 || judge->base_report.n_severity[LKG_ERROR] > 0)
                return;
        if (lkg_serve(judge, candidate->doc, files, report, &served) < 0)
                return;
        lkg_value_unref(candidate->doc);
        candidate->doc = served;
}

static void judge_kubeproxy(struct lkg_judge *judge, struct lkg_candidate *candidate,
                            struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *files = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *unread = lkg_value_new_map(NULL, 0, 0);
        const struct lkg_value *merged = merge_of(candidate);
        bool as_read = candidate->n_layers > 0 && merged == candidate->layers[0].doc;

        update_layers(judge, candidate);
        if (!merged)
                return;
        files = lkg_kubeproxy_load(judge->schema, merged, as_read ? LKG_TYPED_TWICE : 0, report, unread);
        judge_whole(judge, candidate, files, unread, report);
}

static bool same_place(const struct lkg_finding *a, const struct lkg_finding *b)
{
        return a->line == b->line && a->column == b->column &&
               strcmp(a->file ? a->file : "", b->file ? b->file : "") == 0;
}

/* A finding of several stages is reported once. @listed may have an aside. */
static bool is_same(const struct lkg_finding *listed, const struct lkg_finding *finding)
{
        size_t size = strlen(finding->text);

        return listed->code == finding->code && same_place(listed, finding) &&
               strncmp(listed->text, finding->text, size) == 0 &&
               (listed->incomplete || strlen(listed->text) == size);
}

/* Skip mistakes of a zero value that replaces one of a wrong type: it is in no document. */
static bool is_follow_up(const struct lkg_finding *listed, const struct lkg_finding *finding)
{
        return finding->file && finding->line > 0 && !is_misfit(finding) && is_misfit(listed) &&
               same_place(listed, finding);
}

/*
 * @incomplete: findings about a merge without some broken layers, which have their own findings. The missing layers may
 * be the cause: only errors count, and each names the missing layers. Advice would be about a document that
 * does not exist.
 */
static void append(struct lkg_candidate *candidate, const struct lkg_report *from, bool incomplete)
{
        struct lkg_report *to = &candidate->report;

        for (size_t i = 0; i < from->n_findings; i++) {
                const struct lkg_finding *f = &from->findings[i];
                bool skip = incomplete && f->severity != LKG_ERROR;

                for (size_t k = 0; !skip && k < to->n_findings; k++)
                        skip = is_same(&to->findings[k], f) || is_follow_up(&to->findings[k], f);
                if (!skip && incomplete)
                        lkg_report_add_incomplete(to, f, candidate->without);
                else if (!skip)
                        lkg_report_add_copy(to, f);
        }
}

/* Findings that are only counted cannot be compared with those of another stage: the merge finds mistakes of the base again. */
static void count_unlisted(const struct lkg_judge *judge, struct lkg_candidate *candidate, bool whole,
                           const struct lkg_report *report)
{
        bool kubelet = lkg_schema_is_kubelet(judge->schema);
        bool base =
                kubelet && (whole ? judge->base_report.n_dropped > report->n_dropped : !judge->base.broken);

        lkg_report_count_unlisted(&candidate->report, &judge->flag_report);
        if (base)
                lkg_report_count_unlisted(&candidate->report, &judge->base_report);
        if (!whole) /* of a merge without some layers, only listed findings say so */
                return;
        if (!base)
                lkg_report_count_unlisted(&candidate->report, report);
        for (size_t i = 0; i < judge->n_layers; i++)
                lkg_report_count_unlisted(&candidate->report, &judge->layers[i].report);
}

static void fill_report(const struct lkg_judge *judge, struct lkg_candidate *candidate, bool whole,
                        const struct lkg_report *report)
{
        append(candidate, &judge->flag_report, false);
        if (lkg_schema_is_kubelet(judge->schema))
                append(candidate, &judge->base_report, judge->base.broken && !whole);
        append(candidate, report, !whole);
        for (size_t i = 0; i < judge->n_layers; i++)
                append(candidate, &judge->layers[i].report, !whole);
        count_unlisted(judge, candidate, whole, report);
        /* advice last: it must not leave an error without room */
        for (size_t i = 0; i < judge->n_layers; i++)
                lkg_report_append(&candidate->report, &judge->layers[i].lint);
}

void lkg_judge_candidate(struct lkg_candidate *candidate, void *userdata)
{
        struct lkg_judge *judge = userdata;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        const struct lkg_schema *schema = NULL;
        bool whole;

        if (find_schema(judge, candidate, &candidate->report, &schema) < 0)
                return; /* it was reported, or nothing is known of the kind */
        set_schema(judge, schema);
        whole = candidate->doc != NULL;
        candidate->schema = schema;
        if (lkg_schema_is_kubelet(schema))
                judge_kubelet(judge, candidate, &report);
        else
                judge_kubeproxy(judge, candidate, &report);
        fill_report(judge, candidate, whole, &report);
}
