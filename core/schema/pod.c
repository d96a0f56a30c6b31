/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a Pod as nodes, so that the decoder of configurations reads it; the walk over what it read, to the rules of each type;
 * what is ignored. The types of a release are built when they are first needed, and kept.
 */
#include "pod.h"

#include <stdlib.h>

#include <lkg/limits.h>
#include <lkg/text.h>
#include <lkg/tree.h>

/* ---- types ---- */

struct types {
        unsigned release;
        struct lkg_schema_node **nodes; /* by row of lkg_pod_types[] */
        char **texts;                   /* their fields, in pieces */
        struct types *next;
};

static struct types *all_types;

static struct lkg_schema_node *innermost(struct lkg_schema_node *node)
{
        while (node->item)
                node = node->item;
        return node;
}

/* One field, `name@134~135`. */
static void add_field(struct types *types, size_t row, const char *go, char *name)
{
        static const struct lkg_field plain = { "", "struct" },
                                      secret = { "", "struct", .flags = LKG_FIELD_SECRET };
        size_t size = strcspn(name, "@~");
        const char *since = strchr(name, '@'), *until = strchr(name, '~');
        bool gone = (since && strtoul(since + 1, NULL, 10) > types->release) ||
                    (until && strtoul(until + 1, NULL, 10) < types->release);
        const char *type = lkg_pod_types[row].name;
        bool is_value = size == strlen("value") && strncmp(name, "value", size) == 0 &&
                        (strcmp(type, "EnvVar") == 0 || strcmp(type, "HTTPHeader") == 0);

        name[size] = '\0';
        if (!gone)
                lkg_node_add(types->nodes[row], lkg_node_new(is_value ? &secret : &plain, name, go));
}

static void add_fields(struct types *types, size_t row)
{
        char *rest = types->texts[row] = lkg_copy(lkg_pod_types[row].fields), *names, *name;

        while ((names = strsep(&rest, ";"))) {
                const char *go = strsep(&names, ":");

                go += *go == ' ';
                names++;
                while ((name = strsep(&names, " ")))
                        add_field(types, row, go, name);
        }
}

/* Every field of a struct type shares the members of the type. */
static void share(struct types *types, bool shared)
{
        for (size_t i = 0; i < lkg_n_pod_types; i++) {
                for (size_t m = 0; m < types->nodes[i]->n_members; m++) {
                        struct lkg_schema_node *field = innermost(types->nodes[i]->members[m]);

                        for (size_t t = 0; field->class == LKG_CLASS_STRUCT && t < lkg_n_pod_types; t++) {
                                if (strcmp(field->go, lkg_pod_types[t].name) != 0)
                                        continue;
                                field->members = shared ? types->nodes[t]->members : NULL;
                                field->n_members = shared ? types->nodes[t]->n_members : 0;
                        }
                }
        }
}

static const struct types *types_of(unsigned release)
{
        static const struct lkg_field top = { "", "struct" };
        struct types *types = all_types;

        while (types && types->release != release)
                types = types->next;
        if (types)
                return types;
        types = lkg_must(calloc(1, sizeof(*types)));
        types->release = release;
        types->nodes = lkg_must(calloc(lkg_n_pod_types, sizeof(*types->nodes)));
        types->texts = lkg_must(calloc(lkg_n_pod_types, sizeof(*types->texts)));
        for (size_t i = 0; i < lkg_n_pod_types; i++) {
                types->nodes[i] = lkg_node_new(&top, "", lkg_pod_types[i].name);
                add_fields(types, i);
        }
        share(types, true);
        types->next = all_types;
        all_types = types;
        return types;
}

/* Frees permanent data at exit, so that a leak checker reports only leaks. */
__attribute__((destructor)) static void forget(void)
{
        while (all_types) {
                struct types *types = all_types;

                all_types = types->next;
                share(types, false);
                for (size_t i = 0; i < lkg_n_pod_types; i++) {
                        lkg_node_free(types->nodes[i]);
                        free(types->texts[i]);
                }
                free(types->nodes);
                free(types->texts);
                free(types);
        }
}

static const struct lkg_schema_node *pod_node(unsigned release)
{
        const struct types *types = types_of(release);
        size_t i = 0;

        while (strcmp(lkg_pod_types[i].name, "Pod") != 0)
                i++;
        return types->nodes[i];
}

/* ---- what is ignored ---- */

struct ignoring {
        unsigned release;
        struct lkg_report *report;
};

static bool is_header(const char *name)
{
        return strcmp(name, lkg_header_fields[0]) == 0 || strcmp(name, lkg_header_fields[1]) == 0;
}

static void report_ignored(const struct ignoring *to, const struct lkg_schema_node *node,
                           const struct lkg_schema_node *folded, const char *at, const struct lkg_member *m)
{
        const char *quoted = LKG_QUOTE(m->key), *best;
        struct lkg_nearest nearest;

        if (folded) {
                lkg_report_add(to->report, LKG_WARNING, LKG_F_WRONG_CASE, LKG_AT(m->value),
                               "%s%s is ignored by the kubelet; write %s", at, quoted, folded->name);
                return;
        }
        lkg_nearest_init(&nearest, m->key.data);
        for (size_t i = 0; i < node->n_members; i++)
                lkg_nearest_offer(&nearest, node->members[i]->name);
        best = lkg_nearest_best(&nearest);
        lkg_report_add(to->report, LKG_WARNING, LKG_F_UNKNOWN_FIELD, LKG_AT(m->value),
                       "%s%s is not a field of a Pod in %s and is ignored by the kubelet%s%s%s", at, quoted,
                       LKG_RELEASE_TEXT(to->release), best ? "; did you mean " : "", best ? best : "",
                       best ? "?" : "");
}

/* @at: the path of @value, with a point at the end if it is a struct in something */
static void find_ignored(const struct ignoring *to, const struct lkg_schema_node *node, const char *at,
                         const struct lkg_value *value)
{
        bool is_struct = node->class == LKG_CLASS_STRUCT && lkg_value_type(value) == LKG_MAP,
             is_list = node->class == LKG_CLASS_LIST && lkg_value_type(value) == LKG_LIST;

        for (struct lkg_member m = { 0 }; (is_struct || is_list) && lkg_value_next(value, &m);) {
                const struct lkg_schema_node *member =
                        is_list ? node->item : lkg_node_member_folded(node, m.key.data, m.key.size);
                LKG_CLEANUP(lkg_freep) char *path = NULL;

                /* the names of the header count in any case, and only those */
                if (is_struct &&
                    (!member || !(lkg_node_is(member, m.key) || (!*at && is_header(member->name))))) {
                        report_ignored(to, node, member, at, &m);
                        continue;
                }
                path = is_list ? lkg_format("%.*s[%zu].", (int)strlen(at) - 1, at, m.i)
                               : lkg_format("%s%s.", at, member->name);
                find_ignored(to, member, path, m.value);
        }
}

/* ---- the walk ---- */

/* The rows of @part's type, each for one of the fields that it names. */
static void apply_rules(const struct lkg_pod_part *part)
{
        const char *type = part->rules.node->go;
        size_t size = strlen(type);

        for (size_t i = 0; i < lkg_n_pod_rules; i++) {
                struct lkg_value_rule rule = lkg_pod_rules[i].rule;
                char path[64];

                rule.path = path;
                for (const char *at = lkg_pod_rules[i].fields; *at;
                     at += strcspn(at, " "), at += *at == ' ') {
                        if (strncmp(at, type, size) != 0 || at[size] != '.')
                                continue;
                        lkg_text_copy(path, sizeof(path), at + size + 1);
                        path[strcspn(path, " ")] = '\0';
                        lkg_rules_apply(&part->rules, &rule, 1);
                }
        }
}

static void apply_checks(const struct lkg_pod_part *part, const struct lkg_pod_check *checks, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(checks[i].type, part->rules.node->go) == 0)
                        checks[i].check(part);
}

/* Many mounts look for one of many volumes. NULL: @value is no PodSpec. */
static struct lkg_value *volumes_by_name(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        struct lkg_value *ret = strcmp(node->go, "PodSpec") == 0 ? lkg_value_new_map(NULL, 0, 0) : NULL;

        for (struct lkg_member m = { 0 }; ret && lkg_value_next(lkg_object_get(value, "volumes"), &m);) {
                struct lkg_span name = lkg_object_text(m.value, "name");

                if (!lkg_map_find(ret, name))
                        lkg_need(lkg_map_set(ret, name.data, name.size, lkg_value_ref(m.value)));
        }
        return ret;
}

/* @path: of @value; @name: see struct lkg_pod_part */
static void walk(const struct lkg_pod_part *up, const struct lkg_schema_node *node, const char *path,
                 const char *name, const struct lkg_value *value)
{
        struct lkg_pod_part part = { .rules = up->rules, .up = up->name ? up : NULL, .name = name };
        LKG_CLEANUP(lkg_freep) char *at = lkg_format("%s%s", path, *path ? "." : "");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *volumes = NULL;

        for (struct lkg_member m = { 0 }; node->class == LKG_CLASS_LIST && lkg_value_next(value, &m);) {
                LKG_CLEANUP(lkg_freep) char *item = lkg_format("%s[%zu]", path, m.i);

                walk(up, node->item, item, name, m.value);
        }
        if (node->class != LKG_CLASS_STRUCT)
                return;
        part.rules.node = node;
        part.rules.object = value;
        part.rules.at = at;
        part.volumes = volumes = volumes_by_name(node, value);
        apply_rules(&part);
        apply_checks(&part, lkg_pod_spec_checks, lkg_n_pod_spec_checks);
        apply_checks(&part, lkg_pod_container_checks, lkg_n_pod_container_checks);
        apply_checks(&part, lkg_pod_placing_checks, lkg_n_pod_placing_checks);
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *zero = NULL;
                LKG_CLEANUP(lkg_freep) char *below = lkg_format("%s%s", at, member->name);
                const struct lkg_value *there = lkg_map_get(value, member->name);

                if (!there && member->class == LKG_CLASS_STRUCT && !member->pointer)
                        there = zero = lkg_typed_zero(member, value);
                if (there)
                        walk(&part, member, below, member->name, there);
        }
}

/* ---- judging ---- */

static bool is_wanted(const struct lkg_value *value, const char *want)
{
        struct lkg_span text = lkg_text_of(value);

        return lkg_span_is(text, want) || (strcmp(want, "v1") == 0 && lkg_span_is(text, "/v1"));
}

/*
 * Names in any case, as apimachinery's SimpleMetaFactory reads them. Of several spellings the last one counts, in an order that we do
 * not know any more, so the right one does; what is no text is refused.
 */
static bool check_header(const struct lkg_value *doc, const char *name, const char *want,
                         struct lkg_report *report)
{
        const struct lkg_value *value = NULL;

        for (struct lkg_member m = { 0 }; lkg_value_next(doc, &m);) {
                bool decided = value && (lkg_value_type(value) != LKG_STRING ||
                                         (is_wanted(value, want) && lkg_value_type(m.value) == LKG_STRING));

                if (!decided && lkg_merge_key_folds(name, m.key.data, m.key.size) &&
                    lkg_value_type(m.value) != LKG_NULL)
                        value = m.value;
        }
        if (is_wanted(value, want))
                return true;
        lkg_report_add(report, LKG_ERROR, value ? LKG_F_NOT_ONE_OF : LKG_F_REQUIRED,
                       LKG_AT(value ? value : doc),
                       "%s: %s is not what a kubelet takes as a static pod; want %s", name,
                       value ? LKG_QUOTE(lkg_text_of(value)) : "(unset)", want);
        return false;
}

void lkg_pod_judge(const struct lkg_value *doc, unsigned release, struct lkg_report *report)
{
        const struct lkg_schema_node *node = pod_node(release = lkg_release_judged(release));
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report misfits = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *pod = NULL;
        const struct lkg_gates gates = { .release = release };
        const struct lkg_pod_part top = {
                .rules = { .release = release, .gates = &gates, .report = &misfits }
        };
        bool is_pod;

        if (lkg_value_type(doc) != LKG_MAP) {
                lkg_report_add(report, LKG_ERROR, LKG_F_WRONG_TYPE, LKG_AT(doc),
                               "%s is not the manifest of a pod; want a map with apiVersion, kind, metadata "
                               "and spec",
                               lkg_value_type(doc) == LKG_NULL ? "nothing" : "this");
                return;
        }
        is_pod = check_header(doc, "kind", "Pod", report);
        if (!check_header(doc, "apiVersion", "v1", report) || !is_pod)
                return;
        find_ignored(&(struct ignoring){ release, report }, node, "", doc);
        pod = lkg_typed_decode(node, doc, LKG_TYPED_ROUND | LKG_TYPED_TWICE, &misfits, NULL);
        if (!lkg_report_first_error(&misfits)) {
                (void)lkg_map_remove(pod, "status", strlen("status")); /* which is not validated */
                walk(&top, node, "", "", pod);
        }
        lkg_report_append(report, &misfits);
}

/* ---- of a manifest that need not be right ---- */

const char *lkg_pod_name(const struct lkg_value *doc)
{
        return lkg_object_text(doc, "metadata.name").data;
}

const char *lkg_pod_namespace(const struct lkg_value *doc)
{
        const char *text = lkg_object_text(doc, "metadata.namespace").data;

        return *text ? text : "default";
}
