/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a Pod as nodes, so that the decoder of configurations reads it; the walk over what it read, to the rules of each type;
 * what is ignored. The types of a release are built when they are first needed, and kept.
 */
#include "pod.h"

#include <lkg/limits.h>
#include <lkg/text.h>
#include <lkg/tree.h>

/* ---- types ---- */

/* What is made of the tables is kept: it is as constant as they are. */
static char *keep(const char *text)
{
        static char **kept;
        static size_t n_kept;
        char *copy = lkg_copy(text);

        (void)lkg_need(lkg_strings_take(&kept, &n_kept, copy));
        return copy;
}

static size_t row_of(const char *type)
{
        size_t i = 0;

        while (i < lkg_n_pod_types && strcmp(lkg_pod_types[i].name, type) != 0)
                i++;
        return i;
}

static void add_fields(struct lkg_schema_node *type, char *rest, unsigned release)
{
        static const struct lkg_field plain = { "", "struct" },
                                      secret = { "", "struct", .flags = LKG_FIELD_SECRET };
        bool holds_secret = strcmp(type->go, "EnvVar") == 0 || strcmp(type->go, "HTTPHeader") == 0;
        char *names, *name;

        while ((names = strsep(&rest, ";"))) {
                const char *go = strsep(&names, ":");

                go += *go == ' ';
                names++;
                while ((name = strsep(&names, " "))) {
                        const char *since = strchr(name, '@'), *until = strchr(name, '~');
                        bool gone = (since && strtoul(since + 1, NULL, 10) > release) ||
                                    (until && strtoul(until + 1, NULL, 10) < release);

                        name[strcspn(name, "@~")] = '\0';
                        if (!gone)
                                lkg_node_add(type, lkg_node_new(holds_secret && strcmp(name, "value") == 0
                                                                        ? &secret
                                                                        : &plain,
                                                                name, go));
                }
        }
}

/* A field that is a struct, or a list of structs, has the members of the type. */
static void share_members(struct lkg_schema_node *field, struct lkg_schema_node *const *types)
{
        while (field->item)
                field = field->item;
        if (field->class == LKG_CLASS_STRUCT) {
                field->members = types[row_of(field->go)]->members;
                field->n_members = types[row_of(field->go)]->n_members;
        }
}

static const struct lkg_schema_node *pod_node(unsigned release)
{
        static const struct lkg_field top = { "", "struct" };
        static struct lkg_schema_node **of_release[LKG_RELEASE_MAX - LKG_RELEASE_MIN + 1];
        struct lkg_schema_node **types = of_release[release - LKG_RELEASE_MIN];

        if (types)
                return types[row_of("Pod")];
        of_release[release - LKG_RELEASE_MIN] = types = lkg_must(calloc(lkg_n_pod_types, sizeof(*types)));
        for (size_t i = 0; i < lkg_n_pod_types; i++) {
                types[i] = lkg_node_new(&top, "", lkg_pod_types[i].name);
                add_fields(types[i], keep(lkg_pod_types[i].fields), release);
        }
        for (size_t i = 0; i < lkg_n_pod_types; i++)
                for (size_t m = 0; m < types[i]->n_members; m++)
                        share_members(types[i]->members[m], types);
        return types[row_of("Pod")];
}

/* ---- rules ---- */

static struct rule_of {
        const char *type; /* or name of a field */
        size_t i;         /* in the order of the tables */
        struct lkg_value_rule rule;
} * all_rules; /* by type, then by order: each struct asks for those of its own */
static size_t n_rules;

static int compare_rules(const void *a, const void *b)
{
        const struct rule_of *x = a, *y = b;
        int r = strcmp(x->type, y->type);

        return r ? r : (x->i > y->i) - (x->i < y->i);
}

static void add_rules(const struct lkg_value_rule *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char *rest = keep(rows[i].path), *path;

                while ((path = strsep(&rest, " "))) {
                        lkg_need(LKG_GROW(all_rules, n_rules));
                        all_rules[n_rules] = (struct rule_of){ strsep(&path, "."), n_rules, rows[i] };
                        all_rules[n_rules++].rule.path = path ? path : "";
                }
        }
}

static void apply_rules_of(const struct lkg_rules *part, const char *type)
{
        size_t low = 0, high = n_rules;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(all_rules[middle].type, type) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low < n_rules && strcmp(all_rules[low].type, type) == 0; low++)
                lkg_rules_apply(part, &all_rules[low].rule, 1);
}

static void apply_rules(const struct lkg_rules *part)
{
        if (!all_rules) {
                add_rules(lkg_pod_rules, lkg_n_pod_rules);
                add_rules(lkg_pod_container_rules, lkg_n_pod_container_rules);
                add_rules(lkg_pod_placing_rules, lkg_n_pod_placing_rules);
                qsort(all_rules, n_rules, sizeof(*all_rules), compare_rules);
        }
        apply_rules_of(part, part->node->go);
        apply_rules_of(part, part->name);
}

/* Most values have nothing in them that could be ignored or has rules, so no path is made for them. */
static bool has_parts(const struct lkg_schema_node *node)
{
        return node->class == LKG_CLASS_STRUCT || node->class == LKG_CLASS_LIST;
}

/* ---- what is ignored ---- */

static bool is_header(const char *name)
{
        return strcmp(name, lkg_header_fields[0]) == 0 || strcmp(name, lkg_header_fields[1]) == 0;
}

static void report_ignored(const struct lkg_rules *to, const struct lkg_schema_node *node,
                           const struct lkg_schema_node *folded, const char *at, const struct lkg_member *m)
{
        const char *quoted = LKG_QUOTE(m->key), *best = lkg_node_nearest(node, m->key.data);

        if (folded) {
                lkg_report_add(to->report, LKG_WARNING, LKG_F_WRONG_CASE, LKG_AT(m->value),
                               "%s%s is ignored by the kubelet; write %s", at, quoted, folded->name);
                return;
        }
        lkg_report_add(to->report, LKG_WARNING, LKG_F_UNKNOWN_FIELD, LKG_AT(m->value),
                       "%s%s is not a field of a Pod in %s and is ignored by the kubelet%s%s%s", at, quoted,
                       LKG_RELEASE_TEXT(to->release), best ? "; did you mean " : "", best ? best : "",
                       best ? "?" : "");
}

/* @at: the path of @value, with a point at the end if it is a struct in something */
static void find_ignored(const struct lkg_rules *to, const struct lkg_schema_node *node, const char *at,
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
                if (!has_parts(member))
                        continue;
                path = is_list ? lkg_format("%.*s[%zu].", (int)strlen(at) - 1, at, m.i)
                               : lkg_format("%s%s.", at, member->name);
                find_ignored(to, member, path, m.value);
        }
}

/* ---- the walk ---- */

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

/* @path: of @value, a struct or a list; @name: see struct lkg_rules */
static void walk(const struct lkg_rules *up, const struct lkg_schema_node *node, const char *path,
                 const char *name, const struct lkg_value *value)
{
        struct lkg_rules part = *up;
        bool is_list = node->class == LKG_CLASS_LIST;
        LKG_CLEANUP(lkg_freep) char *at = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *volumes = NULL, *seen = NULL;

        for (struct lkg_member m = { 0 }; is_list && has_parts(node->item) && lkg_value_next(value, &m);) {
                LKG_CLEANUP(lkg_freep) char *item = lkg_format("%s[%zu]", path, m.i);

                walk(up, node->item, item, name, m.value);
        }
        if (is_list)
                return;
        part.up = up->name ? up : NULL;
        part.name = name;
        part.node = node;
        part.object = value;
        part.at = at = lkg_format("%s%s", path, *path ? "." : "");
        part.seen = seen = lkg_value_new_map(NULL, 0, 0);
        if ((volumes = volumes_by_name(node, value)))
                part.volumes = volumes;
        apply_rules(&part);
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *zero = NULL;
                LKG_CLEANUP(lkg_freep) char *below = NULL;
                const struct lkg_value *there = has_parts(member) ? lkg_map_get(value, member->name) : NULL;

                if (!there && member->class == LKG_CLASS_STRUCT && !member->pointer)
                        there = zero = lkg_typed_zero(member, value);
                if (!there)
                        continue;
                below = lkg_format("%s%s", at, member->name);
                walk(&part, member, below, member->name, there);
        }
}

/* ---- judging ---- */

/*
 * Names in any case, as apimachinery's SimpleMetaFactory reads them. Of several spellings the last one counts, in an order that we do
 * not know any more, so the right one does; what is no text is refused.
 */
static void check_header(const struct lkg_value *doc, const char *name, const char *words,
                         struct lkg_report *report)
{
        const struct lkg_value *value = NULL;

        for (struct lkg_member m = { 0 }; lkg_value_next(doc, &m);) {
                bool decided = value && (lkg_value_type(value) != LKG_STRING ||
                                         (lkg_rule_word(words, lkg_text_of(value)) &&
                                          lkg_value_type(m.value) == LKG_STRING));

                if (!decided && lkg_merge_key_folds(name, m.key.data, m.key.size) &&
                    lkg_value_type(m.value) != LKG_NULL)
                        value = m.value;
        }
        if (lkg_rule_word(words, lkg_text_of(value)))
                return;
        lkg_report_add(report, LKG_ERROR, value ? LKG_F_NOT_ONE_OF : LKG_F_REQUIRED,
                       LKG_AT(value ? value : doc),
                       "%s: %s is not what a kubelet takes as a static pod; want %.*s", name,
                       value ? LKG_QUOTE(lkg_text_of(value)) : "(unset)", (int)strcspn(words, ","), words);
}

void lkg_pod_judge(const struct lkg_value *doc, unsigned release, struct lkg_report *report)
{
        const struct lkg_schema_node *node = pod_node(release = lkg_release_judged(release));
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *pod = NULL;
        const struct lkg_gates gates = { .release = release };
        const struct lkg_rules top = { .release = release, .gates = &gates, .report = report };
        size_t n_errors = report->n_severity[LKG_ERROR];

        if (lkg_value_type(doc) != LKG_MAP) {
                lkg_report_add(report, LKG_ERROR, LKG_F_WRONG_TYPE, LKG_AT(doc),
                               "%s is not the manifest of a pod; want a map with apiVersion, kind, metadata "
                               "and spec",
                               lkg_value_type(doc) == LKG_NULL ? "nothing" : "this");
                return;
        }
        check_header(doc, "kind", "Pod", report);
        check_header(doc, "apiVersion", "v1, /v1", report);
        if (report->n_severity[LKG_ERROR] > n_errors)
                return;
        find_ignored(&top, node, "", doc);
        pod = lkg_typed_decode(node, doc, LKG_TYPED_ROUND | LKG_TYPED_TWICE, report, NULL);
        if (report->n_severity[LKG_ERROR] > n_errors)
                return;
        (void)lkg_map_remove(pod, "status", strlen("status")); /* which is not validated */
        walk(&top, node, "", "", pod);
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
