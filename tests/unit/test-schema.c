/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a component reads of its documents and its command line, and what is said about both: rows/schema.rows, and in rows/rules.rows
 * each rule beyond its boundary and at it. No disk: candidates are made in memory. Rule: docs/specification.md 3.5, 3.6.
 */
#include "config-helpers.h"
#include "rows.h"

#include "core/schema/command-line.h"
#include "core/schema/gates.h"
#include "core/schema/judge.h"
#include "core/schema/typed.h"
#include "tests/lib/candidate.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define PROXY  "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

#define GI     (1024.0 * 1024 * 1024)

static void put_findings(const struct lkg_report *report, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_report_format(report, NULL);

        assert_non_null(text);
        lkg_buf_puts(ret, text);
}

static const char *kind_of(const struct question *q)
{
        return rows_has(q, "kube-proxy") ? "KubeProxyConfiguration" : "KubeletConfiguration";
}

/* YAML in flow form, which starts like JSON: `{a: 1}`. JSON if its first key is in double quotes. */
static struct lkg_value *flow(const char *text, unsigned flags)
{
        struct lkg_source *source = lkg_source_new("layer", "file");
        enum lkg_format format = strncmp(text, "{\"", 2) == 0 ? LKG_FORMAT_JSON : LKG_FORMAT_YAML;
        struct lkg_value *value = NULL;

        if (lkg_decode(text, strlen(text), format, flags, source, NULL, &value) < 0)
                fail_msg("%s", text);
        lkg_source_unref(source);
        return value;
}

/* ---- a judged candidate ---- */

static bool is_there(const char *path, void *userdata)
{
        (void)userdata;
        return strcmp(path, "/there") == 0;
}

static struct lkg_host host_of(const struct question *q)
{
        const char *name = rows_arg(q, "host", "");
        struct lkg_host host = { .cgroup = 2 };

        if (strcmp(name, "small") == 0)
                host = (struct lkg_host){ .cgroup = 2,
                                          .cpus = "0-1,3",
                                          .numa_nodes = "0",
                                          .memory = 24 * GI,
                                          .storage = 100 * GI,
                                          .pids = 1000 };
        else if (strcmp(name, "swapping") == 0)
                host = (struct lkg_host){ .cgroup = 2, .swap = true, .kernel = "kernel/panic is 0, not 10" };
        else if (strcmp(name, "nine-nodes") == 0)
                host = (struct lkg_host){ .cgroup = 2, .numa_nodes = "0-8" };
        host.stated = !rows_has(q, "guessed");
        host.exists = is_there;
        if (rows_has(q, "cgroup=1"))
                host.cgroup = 1;
        return host;
}

/* What is asked about one field: `? maxPods`. */
static void put_field(const struct lkg_candidate *candidate, const char *path, struct lkg_buf *ret)
{
        const struct lkg_value *effective = NULL, *served = lkg_value_get_pointer(candidate->doc, path);
        const struct lkg_source *source;

        if (candidate->effective)
                effective = lkg_value_get_pointer(candidate->effective, path);
        source = effective ? lkg_value_source(effective) : NULL;
        lkg_buf_printf(ret, "%s: %s of %s, served %s; ", path, effective ? json(effective) : "nothing",
                       source ? source->layer : "default", served ? json(served) : "nothing");
}

/*
 * Layers, each after the header of its kind unless the row is `raw`: a base (`-` is none), drop-ins 1.conf, 2.conf; with `instance`
 * the last one is the instance file. Parts that begin with `--` are the command line, those with `? ` ask about a field.
 */
static void say_judged(const struct question *q, struct lkg_buf *ret)
{
        const char *header = rows_has(q, "raw") ? "" : rows_has(q, "kube-proxy") ? PROXY : HEADER;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        const char *flags[ROWS_PARTS_MAX], *asked[ROWS_PARTS_MAX];
        struct lkg_judge_config config = { .release = rows_number(q, "release"),
                                           .host = host_of(q),
                                           .flags = flags,
                                           .lint = rows_has(q, "lint"),
                                           .lint_all = rows_has(q, "lint"),
                                           .startup_refuses = rows_has(q, "refuses") };
        struct made_layer layers[ROWS_PARTS_MAX] = { 0 };
        size_t n = 0, n_asked = 0, last = 0;
        struct lkg_candidate candidate;
        struct lkg_judge *judge = NULL;

        if (rows_arg(q, "component", NULL))
                config.component = lkg_schema_reader(rows_arg(q, "component", NULL));
        for (size_t i = 0; i < q->n_parts; i++)
                if (strncmp(q->parts[i], "--", 2) == 0 && q->parts[i][2] != '-' && q->parts[i][2] != '\n')
                        flags[config.n_flags++] = q->parts[i];
                else if (strncmp(q->parts[i], "? ", 2) == 0)
                        asked[n_asked++] = q->parts[i] + 2;
                else
                        last = i;
        for (size_t i = 0; i <= last; i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                enum lkg_layer_role role = i == 0 ? LKG_LAYER_BASE : LKG_LAYER_DROPIN;
                char name[16] = "base.yaml";

                if (strcmp(q->parts[i], "-") == 0)
                        continue;
                if (i > 0)
                        (void)snprintf(name, sizeof(name), "%zu.conf", i);
                if (i > 0 && i == last && rows_has(q, "instance"))
                        role = LKG_LAYER_INSTANCE;
                assert_true(asprintf(&text, "%s%s%s", header, q->parts[i], *q->parts[i] ? "\n" : "") >= 0);
                if (layer_decode(role, name, text, strlen(text), &report, &layers[n++]) < 0)
                        fail_msg("%s", text);
        }
        judge = lkg_judge_new(&config);
        assert_int_equal(candidate_build(layers, n, &candidate), 0);
        lkg_judge_candidate(&candidate, judge);
        for (size_t i = 0; i < n_asked; i++)
                put_field(&candidate, asked[i], ret);
        put_findings(&candidate.report, ret);
        candidate_free(&candidate);
        lkg_judge_free(judge);
        for (size_t i = 0; i < n; i++)
                layer_free(&layers[i]);
}

/* ---- parts of it ---- */

/* Maps of gates that are set one after the other. */
static void say_gates(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_gates gates = { .release = rows_number(q, "release") };
        const char *gate = rows_arg(q, "gate", NULL);

        for (size_t i = 0; i < q->n_parts; i++) {
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = lkg_value_new_map(NULL, 0, 0);
                unsigned before = report.n_severity[LKG_ERROR];
                int r;

                lkg_object_set(object, "featureGates", flow(q->parts[i], 0));
                r = lkg_gates_apply(&gates, object, NULL, &report);
                assert_int_equal(r, report.n_severity[LKG_ERROR] > before ? -EBADMSG : 0);
        }
        if (gate)
                lkg_buf_puts(ret, lkg_gates_enabled(&gates, gate) ? "on " : "off ");
        put_findings(&report, ret);
}

/* A document, and the words of a command line over it. */
static void say_flags(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = flow(q->parts[0], 0);
        const struct lkg_judge_config config = { .flags = q->parts + 1,
                                                 .n_flags = q->n_parts - 1,
                                                 .flags_observed = rows_has(q, "observed"),
                                                 .runs = rows_number(q, "runs") };
        const struct lkg_schema *schema = NULL;
        int r;

        assert_int_equal(lkg_schema_get(kind_of(q), NULL, rows_number(q, "release"), &schema), 0);
        r = lkg_flags_apply(schema, &config, object, NULL, &report);
        assert_int_equal(r, report.n_severity[LKG_ERROR] > 0 ? -EBADMSG : 0);
        if (r == 0)
                lkg_render_json_compact(object, ret);
        if (r == 0 && report.n_findings > 0)
                lkg_buf_puts(ret, "; ");
        put_findings(&report, ret);
        assert_null(strstr(ret->data, "hunter2"));
}

/* A document in the types of its kind, twice, as a list remembers what it was decoded to. */
static void say_typed(const struct question *q, struct lkg_buf *ret)
{
        unsigned flags =
                (rows_has(q, "fold") ? LKG_TYPED_FOLD : 0) | (rows_has(q, "round") ? LKG_TYPED_ROUND : 0);
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *value = flow(q->text, flags & LKG_TYPED_FOLD ? LKG_DECODE_UNTYPED : 0);
        const struct lkg_schema *schema = NULL;

        assert_int_equal(lkg_schema_get(kind_of(q), NULL, 0, &schema), 0);
        for (int i = 0; i < 2; i++) {
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *object =
                        lkg_typed_decode(lkg_schema_root(schema), value, flags, &report, NULL);

                lkg_buf_reset(ret);
                lkg_render_json_compact(object, ret);
                if (report.n_findings > 0)
                        lkg_buf_puts(ret, "; ");
                put_findings(&report, ret);
        }
        assert_null(strstr(ret->data, "s3cret"));
}

/* ---- suspects ---- */

struct side {
        struct lkg_value *doc;
        struct lkg_buf origin;
};

static struct side side_of(const char *text, const char *layer, const char *file)
{
        struct lkg_source *source = lkg_source_new(layer, file);
        struct side side = { .origin = LKG_BUF_INIT };

        assert_int_equal(lkg_decode_yaml(text, strlen(text), LKG_DECODE_UNTYPED, source, NULL, &side.doc),
                         0);
        lkg_source_unref(source);
        lkg_render_origin(side.doc, &side.origin);
        lkg_buf_putc(&side.origin, '\0');
        return side;
}

/* The fields in which a condemned document differs from the last known good, and the words of an Event. Rule: specification.md 2.12. */
static void say_suspects(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *suspects = NULL;
        const char *header = rows_has(q, "raw") ? "" : HEADER;
        LKG_CLEANUP(lkg_freep) char *before = NULL;
        LKG_CLEANUP(lkg_freep) char *after = NULL;
        const struct lkg_schema *schema = NULL;
        struct side good, condemned;

        assert_true(asprintf(&before, "%s%s", header, q->parts[0]) >= 0);
        assert_true(asprintf(&after, "%s%s", header, q->parts[1]) >= 0);
        good = side_of(before, "drop-in 10-old.conf", "/etc/d/10-old.conf");
        condemned = side_of(after, "drop-in 20-new.conf", "/etc/d/20-new.conf");
        if (!rows_has(q, "raw") && !rows_has(q, "unknown"))
                assert_int_equal(lkg_schema_get(kind_of(q), NULL, 0, &schema), 0);
        suspects = lkg_suspects_find(schema, &(struct lkg_suspects_side){ good.doc, good.origin.data, 41 },
                                     &(struct lkg_suspects_side){ condemned.doc, condemned.origin.data, 43 },
                                     rows_has(q, "whole"));
        lkg_suspects_say(suspects, 300, ret);
        assert_true(lkg_suspects_known(suspects));
        lkg_buf_puts(ret, "; ");
        lkg_render_json_compact(suspects, ret);
        lkg_value_unref(good.doc);
        lkg_value_unref(condemned.doc);
        lkg_buf_deinit(&good.origin);
        lkg_buf_deinit(&condemned.origin);
}

static void put_many(size_t n, const char *value, struct lkg_buf *ret)
{
        lkg_buf_puts(ret, HEADER "featureGates:\n");
        for (size_t i = 0; i < n; i++)
                lkg_buf_printf(ret, "  Gate%03zu: %s\n", i, value);
        lkg_buf_putc(ret, '\0');
}

/* As many gates as the row says: how many are listed, and what an Event says. */
static void say_many_suspects(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *suspects = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf before = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf after = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        const struct lkg_schema *schema = NULL;
        struct side good, condemned;

        put_many(strtoul(q->text, NULL, 10), "true", &before);
        put_many(strtoul(q->text, NULL, 10), "false", &after);
        good = side_of(before.data, "base", "b");
        condemned = side_of(after.data, "drop-in 20-new.conf", "/etc/d/20-new.conf");
        assert_int_equal(lkg_schema_get(kind_of(q), NULL, 0, &schema), 0);
        suspects = lkg_suspects_find(schema, &(struct lkg_suspects_side){ good.doc, good.origin.data, 41 },
                                     &(struct lkg_suspects_side){ condemned.doc, condemned.origin.data, 43 },
                                     rows_has(q, "whole"));
        lkg_suspects_say(suspects, 300, ret);
        lkg_render_json_compact(suspects, &text);
        lkg_buf_printf(ret, "; %zu listed, %llu not%s", lkg_value_size(lkg_map_get(suspects, "fields")),
                       (unsigned long long)lkg_suspects_number(suspects, "notListed"),
                       text.size < 2 * LKG_SUSPECTS_BYTES_MAX ? "" : ", and long");
        lkg_value_unref(good.doc);
        lkg_value_unref(condemned.doc);
        lkg_buf_deinit(&good.origin);
        lkg_buf_deinit(&condemned.origin);
}

/* Maps from a disk: nothing of a wrong form is believed. */
static void say_suspects_of(const struct question *q, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = flow(q->text, 0);

        lkg_buf_puts(ret, lkg_suspects_known(value) ? "known; " : "not known; ");
        lkg_suspects_say(value, 300, ret);
        lkg_buf_printf(ret, "; generation %llu",
                       (unsigned long long)lkg_suspects_number(value, "generation"));
}

static const struct operation operations[] = {
        { "judged", say_judged },
        { "gates", say_gates },
        { "flags", say_flags },
        { "typed", say_typed },
        { "suspects", say_suspects },
        { "suspects-many", say_many_suspects },
        { "suspects-of", say_suspects_of },
        { 0 },
};

ROWS(schema, operations)
ROWS(rules, operations)
