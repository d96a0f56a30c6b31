/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about probable mistakes that the component does not report. Never an error. */
#include "judge.h"

#include <lkg/text.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

#include "pipeline.h"
#include "rules.h"
#include "values/values.h"

struct lint {
        const struct lkg_schema *schema;
        const struct lkg_value *flag_base; /* defaults that differ without a base; NULL = there is a base */
        enum lkg_layer_role role;
        bool all;                       /* also what could be left out */
        const struct lkg_value *unread; /* of the whole; NULL = nothing */
        struct lkg_report *report;
};

static bool over_base(enum lkg_layer_role role)
{
        return role == LKG_LAYER_DROPIN || role == LKG_LAYER_INSTANCE;
}

/* ---- names ---- */

static void report_case(const struct lint *lint, const struct lkg_schema_node *right, struct lkg_span name,
                        const struct lkg_value *value)
{
        const char *quoted = LKG_QUOTE(name);

        if (over_base(lint->role))
                lkg_report_add(lint->report, LKG_WARNING, LKG_F_WRONG_CASE, LKG_AT(value),
                               "%s is taken for %s here, but not in a base, and which of two spellings wins "
                               "depends "
                               "on the alphabet; write %s",
                               quoted, right->field->path, right->name);
        else
                lkg_report_add(lint->report, LKG_WARNING, LKG_F_WRONG_CASE, LKG_AT(value),
                               "%s is ignored by the component; write %s", quoted, right->name);
}

static void report_unknown(const struct lint *lint, const struct lkg_schema_node *node,
                           const struct lkg_schema_node *other, const struct lkg_member *m)
{
        unsigned release = lkg_schema_release(lint->schema);
        const struct lkg_schema_node *later =
                other ? lkg_node_member(other, m->key.data, m->key.size) : NULL;
        const char *quoted = LKG_QUOTE(m->key), *now = LKG_RELEASE_TEXT(release), *best;

        if (lkg_report_is_full(lint->report)) {
                lkg_report_add(lint->report, LKG_WARNING, LKG_F_UNKNOWN_FIELD, NULL, "%s", ""); /* counted */
                return;
        }
        if (later && later->field->since > release) {
                lkg_report_add(lint->report, LKG_WARNING, LKG_F_NOT_IN_RELEASE, LKG_AT(m->value),
                               "%s comes with %s and is ignored by %s", later->field->path,
                               LKG_RELEASE_TEXT(later->field->since), now);
                return;
        }
        best = lkg_node_nearest(node, m->key.data);
        lkg_report_add(lint->report, LKG_WARNING, LKG_F_UNKNOWN_FIELD, LKG_AT(m->value),
                       "%s%s%s is not a field of %s in %s and is ignored by the component%s%s%s",
                       node->field->path, *node->field->path ? ": " : "", quoted,
                       lkg_schema_kind(lint->schema), now, best ? "; did you mean " : "", best ? best : "",
                       best ? "?" : "");
}

/* ---- values of one layer ---- */

static void check_path(const struct lint *lint, const struct lkg_schema_node *node,
                       const struct lkg_value *value)
{
        const char *text;
        size_t size;

        if (!over_base(lint->role) || !(node->field->flags & LKG_FIELD_RESOLVED) ||
            lkg_value_type(value) != LKG_STRING)
                return;
        text = lkg_value_text(value, &size);
        if (size == 0 || *text == '/')
                return;
        lkg_report_add(
                lint->report, LKG_WARNING, LKG_F_RELATIVE_PATH_DROPIN, LKG_AT(value),
                "%s: %s is relative to the working directory of the component here (only the base's paths "
                "are relative to its file); write the absolute path",
                node->field->path, LKG_QUOTE(lkg_span(text, size)));
}

static void check_field(const struct lint *lint, const struct lkg_schema_node *node,
                        const struct lkg_value *value, const struct lkg_value *below)
{
        struct lkg_where before = lkg_where_of(below);
        bool is_null = lkg_value_type(value) == LKG_NULL;
        char place[LKG_ASIDE_MAX];

        if (node->field->deprecated)
                lkg_report_add(lint->report, LKG_WARNING, LKG_F_DEPRECATED_FIELD, LKG_AT(value),
                               "%s is deprecated: %s", node->field->path, node->field->deprecated);
        if (over_base(lint->role) && lkg_value_type(value) == LKG_BOOL && lkg_value_bool(value) &&
            strcmp(node->field->path, "mergeDefaultEvictionSettings") == 0)
                lkg_report_add(
                        lint->report, LKG_WARNING, LKG_F_EVICTION_MERGE_DROPIN, LKG_AT(value),
                        "mergeDefaultEvictionSettings has no effect over the base, which the component "
                        "completes before it merges drop-ins; write it into the base");
        if (over_base(lint->role) && lkg_value_type(value) == LKG_MAP && lkg_value_size(value) == 0 &&
            (node->class == LKG_CLASS_MAP || node->class == LKG_CLASS_STRUCT))
                lkg_report_add(
                        lint->report, LKG_WARNING, LKG_F_EMPTY_MAP, LKG_AT(value),
                        "%s: {} changes nothing: a map is merged key by key; remove the line, or name "
                        "what to change%s",
                        node->field->path,
                        strcmp(node->field->path, "evictionHard") == 0 ? " (a threshold of \"0%\" is off)"
                                                                       : "");
        if (is_null && over_base(lint->role) && strcmp(node->field->path, "evictionHard") == 0)
                lkg_report_add(lint->report, LKG_WARNING, LKG_F_RESETS_EARLIER, LKG_AT(value),
                               "evictionHard: null over the base leaves no threshold at all, not the "
                               "defaults, which the component adds to the base alone%s%s; name what to keep",
                               before.file ? "; an earlier layer set some" : "",
                               lkg_where_aside(&before, place));
        else if (is_null && below && lkg_value_type(below) != LKG_NULL)
                lkg_report_add(lint->report, LKG_NOTE, LKG_F_RESETS_EARLIER, LKG_AT(value),
                               "%s: null takes away what an earlier layer set%s; the default counts",
                               node->field->path, lkg_where_aside(&before, place));
        check_path(lint, node, value);
}

static void lint_map(const struct lint *lint, const struct lkg_schema_node *node,
                     const struct lkg_schema_node *latest, const struct lkg_value *map,
                     const struct lkg_value *below);

static void lint_items(const struct lint *lint, const struct lkg_schema_node *node,
                       const struct lkg_schema_node *latest, const struct lkg_value *list)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);)
                if (lkg_value_type(m.value) == LKG_MAP)
                        lint_map(lint, node, latest, m.value, NULL);
}

/* @holder: the struct around @member in the latest release; NULL = it does not exist there */
static void lint_member(const struct lint *lint, const struct lkg_schema_node *member,
                        const struct lkg_schema_node *holder, const struct lkg_value *value,
                        const struct lkg_value *below)
{
        enum lkg_type type = lkg_value_type(value);
        const struct lkg_schema_node *latest = NULL;
        bool is_struct = member->class == LKG_CLASS_STRUCT && type == LKG_MAP;
        bool has_structs = member->class == LKG_CLASS_LIST && member->item->class == LKG_CLASS_STRUCT &&
                           type == LKG_LIST;

        check_field(lint, member, value, below);
        if (holder && (is_struct || has_structs))
                latest = lkg_node_member(holder, member->name, member->name_size);
        if (is_struct)
                lint_map(lint, member, latest, value, below);
        else if (has_structs)
                lint_items(lint, member->item, latest ? latest->item : NULL, value);
}

static void lint_map(const struct lint *lint, const struct lkg_schema_node *node,
                     const struct lkg_schema_node *latest, const struct lkg_value *map,
                     const struct lkg_value *below)
{
        bool has_below = below && lkg_value_type(below) == LKG_MAP;

        for (struct lkg_member m = { 0 }; lkg_value_next(map, &m);) {
                const struct lkg_schema_node *member = lkg_node_member_folded(node, m.key.data, m.key.size);
                bool exact = member && lkg_node_is(member, m.key);

                if (*m.key.data == '$') /* a directive; the merge judges it */
                        continue;
                if (!member)
                        report_unknown(lint, node, latest, &m);
                else if (!exact)
                        report_case(lint, member, m.key, m.value);
                /* in the wrong case a value counts in a layer above the base, and so do its mistakes */
                if (exact || (member && over_base(lint->role)))
                        lint_member(lint, member, latest, m.value,
                                    exact && has_below ? lkg_map_find(below, m.key) : NULL);
        }
}

void lkg_lint_layer(const struct lkg_schema *schema, const struct lkg_value *doc,
                    const struct lkg_value *below, enum lkg_layer_role role, bool all,
                    struct lkg_report *report)
{
        const struct lkg_schema *latest;
        struct lint lint = { .schema = schema, .role = role, .report = report };
        const struct lkg_value *gates = NULL;

        (void)lkg_schema_get(lkg_schema_kind(schema), NULL, LKG_RELEASE_MAX, &latest);
        lint_map(&lint, lkg_schema_root(schema), lkg_schema_root(latest), doc, below);
        if (below && lkg_value_type(below) == LKG_MAP)
                gates = lkg_map_get(below, "featureGates");
        lkg_gate_advise(lkg_map_get(doc, "featureGates"), gates, lkg_schema_release(schema), all, report);
}

/* ---- the merged document ---- */

/* Can the component not distinguish the value from an unset one: 0, "", false, an empty list? */
static bool is_nothing(const struct lkg_schema_node *node, const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report scratch = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *canonical = NULL;
        bool collection = node->class == LKG_CLASS_LIST || node->class == LKG_CLASS_MAP;

        return lkg_typed_scalar(node, value, node->field->path, &scratch, &canonical) == 0 &&
               (!canonical || (collection && lkg_value_size(canonical) == 0));
}

/* A null or empty value that removes the value of an earlier layer. */
static void check_reset(const struct lint *lint, const struct lkg_schema_node *node,
                        const struct lkg_value *value, const struct lkg_value *earlier)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

        if (!is_nothing(node, value) || is_nothing(node, earlier))
                return;
        lkg_render_json_compact(value, &text);
        lkg_report_add(lint->report, LKG_NOTE, LKG_F_RESETS_EARLIER, LKG_AT(value),
                       "%s: %s is as good as none and takes away what an earlier layer set%s%s",
                       node->field->path, lkg_buf_text(&text), LKG_ASIDE(earlier),
                       node->def ? "; the default counts" : "");
}

/* Return the value of an earlier layer; a duplicate in one document has its own finding. */
static const struct lkg_value *earlier_layer(const struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_value_shadowed(value);

        while (earlier && lkg_value_source(earlier) == lkg_value_source(value))
                earlier = lkg_value_shadowed(earlier);
        return earlier;
}

/*
 * Fields that guides for hardening (the CIS benchmark, the DISA STIG) want to see written down: that a file says them, whatever the
 * default is, is the point.
 */
static const char should_be_said[] =
        "address, authentication.anonymous.enabled, authentication.webhook.enabled, "
        "authentication.x509.clientCAFile, authorization.mode, bindAddress, enableDebuggingHandlers, "
        "enableProfiling, enableProfilingHandler, eventRecordQPS, healthzBindAddress, "
        "makeIPTablesUtilChains, metricsBindAddress, podPidsLimit, protectKernelDefaults, readOnlyPort, "
        "rotateCertificates, seccompDefault, serverTLSBootstrap, streamingConnectionIdleTimeout, "
        "tlsCertFile, tlsCipherSuites, tlsMinVersion, tlsPrivateKeyFile";

/* A value that equals the default: redundant, or it undoes an earlier layer. */
static void check_default(const struct lint *lint, const struct lkg_schema_node *node,
                          const struct lkg_value *value)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report scratch = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *canonical = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        const struct lkg_value *earlier = earlier_layer(value);
        const struct lkg_value *def =
                lint->flag_base ? lkg_object_get(lint->flag_base, node->field->path) : NULL;
        struct lkg_where where = lkg_where_of(value);

        if (!def)
                def = node->def;
        if (!where.file)
                return;
        if (earlier)
                check_reset(lint, node, value, earlier);
        if (!def || lkg_typed_scalar(node, value, node->field->path, &scratch, &canonical) < 0 ||
            !lkg_value_equal(canonical, def))
                return;
        lkg_render_json_compact(def, &text);
        (void)lkg_buf_text(&text);
        if (!earlier || lkg_value_equal(earlier, value)) {
                if (lint->all &&
                    !lkg_rule_word(should_be_said, lkg_span(node->field->path, strlen(node->field->path))))
                        lkg_report_add(lint->report, LKG_NOTE, LKG_F_EQUALS_DEFAULT, &where,
                                       "%s: %s is the default; the line could be left out",
                                       node->field->path, text.data);
        } else {
                lkg_report_add(lint->report, LKG_NOTE, LKG_F_RESETS_EARLIER, &where,
                               "%s: %s, the default, takes back what an earlier layer set%s",
                               node->field->path, text.data, LKG_ASIDE(earlier));
        }
}

static void lint_merged(const struct lint *lint, const struct lkg_schema_node *node,
                        const struct lkg_value *map)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(map, &m);) {
                const struct lkg_schema_node *member = lkg_node_member(node, m.key.data, m.key.size);

                if (member && member->class == LKG_CLASS_STRUCT && lkg_value_type(m.value) == LKG_MAP)
                        lint_merged(lint, member, m.value);
                else if (member)
                        check_default(lint, member, m.value);
        }
}

/* ---- ports and files ---- */

struct port {
        const struct lkg_schema_node *node;
        const struct lkg_value *value;
        struct lkg_span address; /* it is opened on */
        long number;
};

/* Return the kubelet's field with the address of a port. Without an address the port is not opened. */
static const char *address_field(const struct lkg_value *object, const char *port)
{
        if (strcmp(port, "healthzPort") == 0)
                return "healthzBindAddress";
        if (strcmp(port, "port") == 0 && !lkg_object_bool(object, "enableServer"))
                return NULL;
        return "address";
}

/*
 * Return the port that a port field or a host:port field opens.
 * Return: whether it opens one.
 */
static bool port_of(const struct lkg_schema_node *node, const struct lkg_value *object,
                    const struct lkg_value *value, struct port *ret)
{
        struct lkg_span text = lkg_text_of(value), number;
        const char *field;

        *ret = (struct port){ .node = node, .value = value, .number = (long)lkg_value_int(value) };
        if (node->field->flags & LKG_FIELD_PORT) {
                field = address_field(object, node->name);
                ret->address = lkg_object_text(object, field ? field : "");
                return field && ret->number > 0;
        }
        if (lkg_host_port_split(text.data, text.size, &ret->address, &number, NULL) < 0)
                return false;
        ret->number = strtol(number.data, NULL, 10);
        return ret->number > 0;
}

/* An IPv6 wildcard covers both families. */
static bool is_any(const struct lkg_ip *ip)
{
        static const struct lkg_ip none;
        size_t skip = lkg_ip_is_v4(ip) ? 12 : 0;

        return memcmp(ip->bytes + skip, none.bytes, sizeof(ip->bytes) - skip) == 0;
}

/* Would one of two sockets fail to open? Invalid addresses are reported elsewhere. */
static bool overlap(const struct port *a, const struct port *b)
{
        struct lkg_ip x, y;

        if (a->number != b->number)
                return false;
        if (lkg_ip_parse(a->address.data, a->address.size, &x, NULL) < 0 ||
            lkg_ip_parse(b->address.data, b->address.size, &y, NULL) < 0)
                return true;
        if (lkg_ip_is_v4(&x) == lkg_ip_is_v4(&y))
                return is_any(&x) || is_any(&y) || memcmp(&x, &y, sizeof(x)) == 0;
        return is_any(lkg_ip_is_v4(&x) ? &y : &x);
}

#define PORTS_MAX 16

static bool is_unread(const struct lint *lint, const struct lkg_value *object, const char *path)
{
        return lkg_object_unread(object, lint->unread, path, LKG_UNREAD_PARTS);
}

static void collect_ports(const struct lint *lint, const struct lkg_schema_node *node,
                          const struct lkg_value *object, struct port ports[static PORTS_MAX], size_t *n)
{
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                const struct lkg_value *value = lkg_map_get(object, member->name);

                if (!value || !(member->field->flags & (LKG_FIELD_PORT | LKG_FIELD_LISTEN)) ||
                    *n == PORTS_MAX || is_unread(lint, object, member->name) ||
                    is_unread(lint, object, "enableServer") || is_unread(lint, object, "address") ||
                    is_unread(lint, object, "healthzBindAddress"))
                        continue;
                if (port_of(member, object, value, &ports[*n]))
                        ++*n;
        }
}

/* Report at the field that a layer set, naming where the other one or the flag was set. */
static void report_ports(const struct lint *lint, const struct port *a, const struct port *b)
{
        struct lkg_where at_b = lkg_where_of(b->value);
        bool first = !at_b.file;

        lkg_report_add(lint->report, LKG_WARNING, LKG_F_PORT_TWICE, first ? LKG_AT(a->value) : &at_b,
                       "%s%s%s and %s%s both want port %ld; give them different ones", a->node->field->path,
                       LKG_FLAG_NOTE(a->value), first ? "" : LKG_ASIDE(a->value), b->node->field->path,
                       LKG_FLAG_NOTE(b->value), a->number);
}

static void check_ports(const struct lint *lint, const struct lkg_value *object)
{
        struct port ports[PORTS_MAX];
        size_t n = 0;

        collect_ports(lint, lkg_schema_root(lint->schema), object, ports, &n);
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < i; k++)
                        if (overlap(&ports[k], &ports[i]))
                                report_ports(lint, &ports[k], &ports[i]);
}

static void check_files(const struct lint *lint, const struct lkg_host *host,
                        const struct lkg_schema_node *node, const struct lkg_value *object)
{
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                const struct lkg_value *value = lkg_map_get(object, member->name);
                struct lkg_where where;
                const char *text;
                size_t size;

                if (value && member->class == LKG_CLASS_STRUCT && lkg_value_type(value) == LKG_MAP)
                        check_files(lint, host, member, value);
                if (!value || !(member->field->flags & LKG_FIELD_PATH) ||
                    lkg_value_type(value) != LKG_STRING)
                        continue;
                where = lkg_where_of(value);
                text = lkg_value_text(value, &size);
                if (!where.file || *text != '/' || host->exists(text, host->userdata))
                        continue;
                lkg_report_add(lint->report, LKG_NOTE, LKG_F_NO_SUCH_FILE, &where,
                               "%s: %s does not exist on this node (yet?)", member->field->path,
                               LKG_QUOTE(lkg_span(text, size)));
        }
}

/* A mode whose gate will be dropped, with the mode. */
static void check_ipvs(const struct lint *lint, const struct lkg_value *object)
{
        unsigned release = lkg_schema_release(lint->schema);
        static const char name[] = "KubeProxyIPVS";
        const struct lkg_gate_state *gate = lkg_gate_at(name, release);

        if (!lkg_schema_is_kubelet(lint->schema) && gate && gate->stage == LKG_GATE_DEPRECATED &&
            lkg_span_is(lkg_object_text(object, "mode"), "ipvs"))
                lkg_report_add(
                        lint->report, LKG_WARNING, LKG_F_DEPRECATED_FIELD,
                        LKG_AT(lkg_object_get(object, "mode")),
                        "mode: ipvs is deprecated in %s and ends with the feature gate %s; move to nftables",
                        LKG_RELEASE_TEXT(release), name);
}

void lkg_lint_whole(const struct lkg_judge *judge, const struct lkg_candidate *candidate,
                    const struct lkg_value *object, const struct lkg_value *unread,
                    struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *flag_base = NULL;
        struct lint lint = {
                .schema = judge->schema, .all = judge->config.lint_all, .unread = unread, .report = report
        };

        if (!candidate->has_base && lkg_schema_is_kubelet(judge->schema)) {
                flag_base = lkg_value_new_map(NULL, 0, 0);
                lkg_defaults_flag_base(flag_base);
                lint.flag_base = flag_base;
        }
        if (candidate->doc)
                lint_merged(&lint, lkg_schema_root(judge->schema), candidate->doc);
        check_ports(&lint, object);
        check_ipvs(&lint, object);
        if (judge->config.host.exists)
                check_files(&lint, &judge->config.host, lkg_schema_root(judge->schema), object);
        if (flag_base)
                lkg_report_add(
                        report, LKG_WARNING, LKG_F_NO_BASE_DEFAULTS, NULL,
                        "without a base the kubelet starts from the defaults of its flags: anonymous "
                        "requests "
                        "allowed, authorization AlwaysAllow, read-only port 10255; add a base, if only with "
                        "apiVersion and kind");
}
