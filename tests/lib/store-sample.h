/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small state of dynamic configuration, and a dump of all of it through the public interface of the store:
 * two states are equal if their dumps are.
 */
#pragma once

#include <inttypes.h>

#include <lkg/store.h>

#define SAMPLE_COMPONENT "kubelet"
#define SAMPLE_RELEASE   "v1.36.3"
#define SAMPLE_BOOT      "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define SAMPLE_TIME      (UINT64_C(1767323045) * LKG_NSEC_PER_SEC + 123456789)
#define SAMPLE_OBJECTS   4u

/* Two versions of one object, then two other objects. */
static inline const char *sample_uid(unsigned i)
{
        return i < 2   ? "11111111-aaaa-4bbb-8ccc-000000000001"
               : i < 3 ? "22222222-aaaa-4bbb-8ccc-000000000002"
                       : "33333333-aaaa-4bbb-8ccc-000000000003";
}

static inline int sample_configmap(unsigned i, struct lkg_configmap *ret)
{
        const struct lkg_configmap_options options = { .max_bytes = LKG_DOC_BYTES_MAX };
        char text[1024];
        int n = snprintf(
                text, sizeof(text),
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"kube-system\","
                "\"name\":\"kubelet-config-%u\",\"uid\":\"%s\",\"resourceVersion\":\"10%u\"},"
                "\"data\":{\"kubelet\":\"kind: KubeletConfiguration\\nmaxPods: %u\\n\"}}",
                i < 2 ? 0 : i, sample_uid(i), i, 100 + i);

        return lkg_configmap_parse(text, (size_t)n, &options, ret, NULL);
}

static inline int sample_source(unsigned i, struct lkg_config_source *ret)
{
        struct lkg_reference reference = { .type = LKG_REFERENCE_CONFIGMAP, .key = LKG_KEY_DEFAULT };
        struct lkg_configmap configmap;
        int r = sample_configmap(i, &configmap);

        if (r < 0)
                return r;
        (void)snprintf(reference.ns, sizeof(reference.ns), "%s", configmap.ns);
        (void)snprintf(reference.name, sizeof(reference.name), "%s", configmap.name);
        r = lkg_configmap_resolve(&configmap, &reference, ret, NULL);
        lkg_configmap_deinit(&configmap);
        return r;
}

static inline struct lkg_bad sample_bad(unsigned i)
{
        struct lkg_bad bad = { .time_ns = SAMPLE_TIME + i };

        (void)sample_source(i, &bad.source);
        lkg_config_source_id(&bad.source, bad.id);
        (void)snprintf(bad.reason, sizeof(bad.reason), "failed to validate current (UID: \"%s\")",
                       bad.source.uid);
        return bad;
}

static inline struct lkg_pointers sample_pointers(unsigned active, const char *document)
{
        struct lkg_pointers p = { .assigned_ns = SAMPLE_TIME };

        (void)snprintf(p.node_uid, sizeof(p.node_uid), "99999999-aaaa-4bbb-8ccc-000000000000");
        (void)sample_source(active, &p.assigned);
        (void)sample_source(0, &p.active);
        (void)sample_source(0, &p.good.source);
        p.good.generation = 17;
        p.good.time_ns = SAMPLE_TIME - 5;
        (void)snprintf(p.good.sha256, sizeof(p.good.sha256), "%s", document);
        p.rollback.from = p.assigned;
        (void)snprintf(p.rollback.reason, sizeof(p.rollback.reason), "current failed trial period");
        p.rollback.time_ns = SAMPLE_TIME + 9;
        p.rollback.starts_since = 3;
        p.rollback.abandoned_generation = 18;
        return p;
}

static inline struct lkg_trial sample_trial(void)
{
        return (struct lkg_trial){
                .state = LKG_TRIAL_RUNNING,
                .rules = { .duration_ns = 600 * LKG_NSEC_PER_SEC,
                           .threshold = 10,
                           .stable_for_ns = 60 * LKG_NSEC_PER_SEC },
                .judged = { true, true },
                .bad = { false, true },
                .extended = true,
                .stable_ns = 5 * LKG_NSEC_PER_SEC + 3,
                .calm_ns = 5 * LKG_NSEC_PER_SEC + 5,
                .away_ns = 6 * LKG_NSEC_PER_SEC + 4,
                .prior = 2,
                .last_pid = 4711,
                .last_start_time = 123456,
                .started_wall_ns = SAMPLE_TIME,
                .good_ns = 42 * LKG_NSEC_PER_SEC + 7,
        };
}

static inline struct lkg_startups sample_startups(unsigned n)
{
        struct lkg_startups s = { .n_items = 0 };

        for (unsigned i = 0; i < n; i++) {
                const struct lkg_startup one = {
                        .time_ns = SAMPLE_TIME + i * LKG_NSEC_PER_SEC,
                        .pid = 100 + (int)i,
                        .start_time = 5000 + i,
                        .counted = i % 2 == 0,
                        .local = i == 1,
                };

                lkg_startups_add(&s, SAMPLE_BOOT, &one);
        }
        return s;
}

/* ---- the dump ---- */

static inline void dump_source(struct lkg_buf *buf, const char *name, const struct lkg_config_source *s)
{
        lkg_buf_printf(buf, "%s: %s/%s %s@%s:%s %s\n", name, s->ns, s->name, s->uid, s->version, s->key,
                       s->sha256);
}

static inline void dump_pointers(struct lkg_buf *buf, const struct lkg_pointers *p)
{
        dump_source(buf, "assigned", &p->assigned);
        lkg_buf_printf(buf, "assigned %" PRIu64 " by '%s'\n", p->assigned_ns, p->node_uid);
        dump_source(buf, "active", &p->active);
        dump_source(buf, "good", &p->good.source);
        lkg_buf_printf(buf, "good %" PRIu64 " %" PRIu64 " %s\n", p->good.generation, p->good.time_ns,
                       p->good.sha256);
        dump_source(buf, "rollback", &p->rollback.from);
        lkg_buf_printf(buf, "rollback '%s' %" PRIu64 " %u %" PRIu64 "\n", p->rollback.reason,
                       p->rollback.time_ns, p->rollback.starts_since, p->rollback.abandoned_generation);
}

static inline void dump_trial(struct lkg_buf *buf, const struct lkg_trial *t)
{
        lkg_buf_printf(buf, "trial health %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %d %d %d\n",
                       t->rules.stable_for_ns, t->stable_ns, t->calm_ns, t->away_ns,
                       t->judged[LKG_CHECK_NODE], t->judged[LKG_CHECK_HTTP], t->bad[LKG_CHECK_NODE],
                       t->bad[LKG_CHECK_HTTP], t->extended);
        lkg_buf_printf(buf, "trial %d %" PRIu64 " %u %u %d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                       (int)t->state, t->rules.duration_ns, t->rules.threshold, t->prior, t->last_pid,
                       t->last_start_time, t->started_wall_ns, t->good_ns);
}

static inline void dump_startups(struct lkg_buf *buf, const struct lkg_startups *s)
{
        lkg_buf_printf(buf, "startups %s\n", s->boot);
        for (size_t i = 0; i < s->n_items; i++)
                lkg_buf_printf(buf, "  %" PRIu64 " %d %" PRIu64 " %d %d\n", s->items[i].time_ns,
                               s->items[i].pid, s->items[i].start_time, s->items[i].counted,
                               s->items[i].local);
}

static inline void dump_bad(struct lkg_buf *buf, const struct lkg_bad_list *list)
{
        for (size_t i = 0; i < list->n_items; i++) {
                lkg_buf_printf(buf, "bad %s ", list->items[i].id);
                lkg_bad_format(&list->items[i], buf);
        }
}

/* The checkpoints of the sample and their content. */
static inline void dump_checkpoints(struct lkg_buf *buf, const struct lkg_store *store)
{
        for (unsigned i = 0; i < SAMPLE_OBJECTS; i++) {
                struct lkg_config_source source;
                struct lkg_configmap configmap;
                size_t start = buf->size;
                int r = sample_source(i, &source);

                if (r == 0)
                        r = lkg_store_load_checkpoint(store, &source, &configmap, NULL);
                lkg_buf_printf(buf, "checkpoint %u: %s %d ", i,
                               r == 0         ? "whole"
                               : r == -ENOENT ? "none"
                                              : "damaged",
                               lkg_store_has_checkpoint(store, &source));
                if (r == 0) {
                        lkg_configmap_format(&configmap, buf);
                        lkg_configmap_deinit(&configmap);
                }
                /* One line for each, whatever it contains: dumps are compared line by line. */
                for (size_t k = start; k < buf->size; k++)
                        if (buf->data[k] == '\n')
                                buf->data[k] = ' ';
                lkg_buf_putc(buf, '\n');
        }
}

static inline int dump_component(struct lkg_buf *buf, const struct lkg_store_component *c,
                                 struct lkg_report *report)
{
        struct lkg_bad_list bad = { .items = NULL };
        struct lkg_config_source source;
        struct lkg_startups startups;
        struct lkg_pointers pointers;
        struct lkg_trial trial;
        char *text = NULL;
        size_t size = 0;
        int r = lkg_store_load_pointers(c, &pointers, report);

        if (r == 0)
                r = sample_source(0, &source);
        if (r == 0)
                r = lkg_store_load_trial(c, &source, &trial, report);
        if (r == 0)
                r = lkg_store_load_startups(c, &startups, report);
        if (r == 0)
                r = lkg_store_load_bad(c, &bad, report);
        if (r < 0)
                return r;
        dump_pointers(buf, &pointers);
        dump_trial(buf, &trial);
        dump_startups(buf, &startups);
        dump_bad(buf, &bad);
        lkg_bad_list_deinit(&bad);
        r = lkg_store_load_document(c, pointers.good.sha256, &text, &size, NULL);
        lkg_buf_printf(buf, "document %d ", r);
        lkg_buf_json_string(buf, r == 0 ? text : "", r == 0 ? size : 0);
        lkg_buf_putc(buf, '\n');
        free(text);
        return 0;
}

/** dump_state() - dump everything below @fd, opened anew. Return: 0, or the error of opening. */
static inline int dump_state(int fd, struct lkg_buf *buf, struct lkg_report *report)
{
        struct lkg_store_component c;
        struct lkg_store store;
        int r = lkg_store_open(fd, &store, report, NULL);

        if (r < 0)
                return r;
        dump_checkpoints(buf, &store);
        r = lkg_store_component_open(&store, SAMPLE_COMPONENT, &c, report, NULL);
        if (r == 0) {
                lkg_buf_printf(buf, "release '%s'\n", c.release);
                r = dump_component(buf, &c, report);
                lkg_store_component_close(&c);
        }
        lkg_store_close(&store);
        return lkg_buf_failed(buf) ? -ENOMEM : r;
}

/** sample_fill() - objects 0 and 1 checkpointed, 0 good and active, 1 assigned and bad, a trial, starts. */
static inline int sample_fill(int fd)
{
        static const char document[] = "kind: KubeletConfiguration\nmaxPods: 100\n";
        const struct lkg_startups startups = sample_startups(3);
        const struct lkg_trial trial = sample_trial();
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_config_source source;
        struct lkg_store_component c;
        char sha256[LKG_SHA256_HEX];
        struct lkg_store store;
        int r = lkg_store_open(fd, &store, &report, NULL);

        if (r < 0)
                return r;
        r = lkg_store_component_open(&store, SAMPLE_COMPONENT, &c, &report, NULL);
        if (r < 0)
                return r;
        if (lkg_store_set_release(&c, SAMPLE_RELEASE, NULL) < 0)
                r = -EIO;
        for (unsigned i = 0; r == 0 && i < 2; i++) {
                struct lkg_configmap configmap;

                r = sample_configmap(i, &configmap);
                if (r < 0)
                        break;
                r = lkg_store_save_checkpoint(&store, &configmap, NULL);
                lkg_configmap_deinit(&configmap);
        }
        if (r == 0)
                r = lkg_store_save_document(&c, document, strlen(document), NULL, sha256, NULL);
        if (r == 0) {
                const struct lkg_pointers pointers = sample_pointers(1, sha256);

                r = lkg_store_save_pointers(&c, &pointers, NULL);
        }
        if (r == 0)
                r = sample_source(0, &source);
        if (r == 0)
                r = lkg_store_save_trial(&c, &source, &trial, 0, NULL);
        if (r == 0)
                r = lkg_store_save_startups(&c, &startups, NULL);
        for (unsigned i = 1; r == 0 && i < SAMPLE_OBJECTS; i++) {
                const struct lkg_bad bad = sample_bad(i);

                r = lkg_store_mark_bad(&c, &list, &bad, NULL);
        }
        lkg_bad_list_deinit(&list);
        lkg_store_component_close(&c);
        lkg_store_close(&store);
        if (r == 0 && report.n_findings > 0)
                r = -EUCLEAN;
        lkg_report_deinit(&report);
        return r;
}
