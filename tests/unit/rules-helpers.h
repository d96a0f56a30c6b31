/* SPDX-License-Identifier: Apache-2.0 */
/* Documents judged by the rules of a kind, on one line. Include it once per test program. */
#pragma once

#include <lkg/documents.h>

#include "unit.h"
#include "core/schema/pipeline.h"

#define KUBELET "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define PROXY   "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

/* What is judged, and for which component; zero members mean the newest release, cgroup 2, validation. */
struct trial {
        const char *base, *dropin; /* YAML with or without header lines; the second may be NULL */
        const char *flag, *flag_path;
        int64_t flag_value;
        unsigned release, cgroup;
        bool later; /* lkg_rules_later() instead */
        bool guessed_host;
        const struct lkg_host *on; /* lkg_rules_host() on this host instead */
};

static inline struct lkg_value *layer(const char *name, const char *file, const char *text)
{
        struct lkg_source *source = lkg_source_new(name, file);
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_non_null(source);
        assert_int_equal(lkg_decode_yaml(text, strlen(text), 0, source, &report, &value), 0);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
        return value;
}

static inline struct lkg_value *layers(const struct trial *t)
{
        struct lkg_value *base = layer("base base.yaml", "base.yaml", t->base), *dropin, *merged = NULL;

        if (!t->dropin)
                return base;
        dropin = layer("drop-in 10-x.conf", "d/10-x.conf", t->dropin);
        merged = lkg_merge_json(base, dropin);
        lkg_value_unref(base);
        lkg_value_unref(dropin);
        return merged;
}

static inline void set_flag(struct lkg_value *object, const struct trial *t)
{
        struct lkg_source *source = lkg_source_new(t->flag, "");
        char text[32];

        (void)snprintf(text, sizeof(text), "%lld", (long long)t->flag_value);
        lkg_object_set(object, t->flag_path, lkg_value_new_number(text, source, 0, 0));
        lkg_source_unref(source);
}

/* Judges; the findings stay valid until the next call. */
static inline const struct lkg_report *judged(const struct trial *t)
{
        static struct lkg_report report;
        struct lkg_report loading = LKG_REPORT_INIT;
        struct lkg_value *doc = layers(t), *object = NULL;
        struct lkg_host host = { .cgroup = t->cgroup ? t->cgroup : 2, .stated = !t->guessed_host };
        struct lkg_gates gates = { 0 };
        const struct lkg_schema *schema = NULL;
        struct lkg_rules rules;
        bool kubelet = strcmp(lkg_map_get_string(doc, "kind"), "KubeletConfiguration") == 0;

        lkg_report_deinit(&report);
        report = (struct lkg_report)LKG_REPORT_INIT;
        assert_int_equal(lkg_schema_get(lkg_map_get_string(doc, "kind"), NULL, t->release, &schema), 0);
        lkg_gates_init(&gates, lkg_schema_release(schema));
        object = kubelet ? lkg_kubelet_load(schema, doc, NULL, 0, &gates, &loading, NULL)
                         : lkg_kubeproxy_load(schema, doc, 0, &loading, NULL);
        if (t->flag)
                set_flag(object, t);
        (void)lkg_gates_apply(&gates, object, NULL, &loading);
        if (loading.n_severity[LKG_ERROR] > 0) {
                char *text = lkg_report_format(&loading, NULL);

                fail_msg("%s\n%s", t->base, text ? text : "");
        }
        rules = (struct lkg_rules){ schema, object, &gates, &host, &report };
        if (t->on)
                rules.host = t->on;
        rules.startup_refuses = t->on != NULL;
        if (t->on)
                lkg_rules_host(&rules);
        else if (t->later)
                lkg_rules_later(&rules);
        else if (kubelet)
                lkg_rules_kubelet(&rules);
        else
                lkg_rules_kubeproxy(&rules);
        lkg_gates_deinit(&gates);
        lkg_report_deinit(&loading);
        lkg_value_unref(object);
        lkg_value_unref(doc);
        return &report;
}

/* All findings as printed. */
static inline const char *said(const struct trial *t)
{
        static char *text;

        free(text);
        text = lkg_report_format(judged(t), NULL);
        assert_non_null(text);
        return text;
}

/* A row: text that is added to the header, and the one expected finding. */
struct expectation {
        const char *yaml;
        const char *field; /* how the finding starts; NULL = no finding */
        unsigned code;
        unsigned release, cgroup; /* 0 = as in struct trial */
};

static inline void check_row(const struct expectation *row, const char *header, bool later)
{
        char text[1024];
        struct trial t = { .base = text, .release = row->release, .cgroup = row->cgroup, .later = later };
        const struct lkg_report *report;

        (void)snprintf(text, sizeof(text), "%s%s\n", header, row->yaml);
        report = judged(&t);
        if (report->n_findings != (row->field ? 1 : 0)) {
                print_error("%s\n%s", row->yaml, said(&t));
                report = judged(&t);
        }
        assert_int_equal(report->n_findings, row->field ? 1 : 0);
        if (!row->field)
                return;
        if (strncmp(report->findings[0].text, row->field, strlen(row->field)) != 0 ||
            report->findings[0].text[strlen(row->field)] != ':')
                fail_msg("%s: %s", row->yaml, report->findings[0].text);
        assert_int_equal(report->findings[0].code, row->code);
        assert_int_equal(report->findings[0].severity, later ? LKG_WARNING : LKG_ERROR);
}
