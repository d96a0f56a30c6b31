/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge as a stack calls it: what is kept from one candidate to the next, what broken layers hide, and that nothing follows from
 * what could not be read. What is said of one candidate is in rows/schema.rows. No disk: candidates are made in memory.
 * Rule: docs/specification.md 3.5.
 */
#include "config-helpers.h"

#include <lkg/limits.h>

#include "core/schema/judge.h"
#include "tests/lib/candidate.h"

#define HEADER     "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define PROXY      "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

#define LAYERS_MAX 4

struct stack {
        struct made_layer layers[LAYERS_MAX];
        size_t n;
        struct lkg_judge *judge;
        struct lkg_candidate candidate;
        char *said;
};

static struct lkg_judge_config plain = { .host = { .cgroup = 2, .stated = true } };

static void put_layer(struct stack *s, size_t i, enum lkg_layer_role role, const char *name,
                      const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;

        layer_free(&s->layers[i]);
        assert_int_equal(layer_decode(role, name, text, strlen(text), &report, &s->layers[i]), 0);
        lkg_report_deinit(&report);
        if (i >= s->n)
                s->n = i + 1;
}

/* Base (NULL = none) and drop-ins 1.conf, 2.conf ... */
static void set_up(struct stack *s, const struct lkg_judge_config *config, const char *base,
                   const char *dropin)
{
        *s = (struct stack){ 0 };
        s->judge = lkg_judge_new(config);
        if (base)
                put_layer(s, 0, LKG_LAYER_BASE, "base.yaml", base);
        if (dropin)
                put_layer(s, s->n, LKG_LAYER_DROPIN, "1.conf", dropin);
}

static const char *judge(struct stack *s)
{
        candidate_free(&s->candidate);
        assert_int_equal(candidate_build(s->layers, s->n, &s->candidate), 0);
        lkg_judge_candidate(&s->candidate, s->judge);
        free(s->said);
        s->said = lkg_report_format(&s->candidate.report, NULL);
        assert_non_null(s->said);
        return s->said;
}

static void tear_down(struct stack *s)
{
        candidate_free(&s->candidate);
        lkg_judge_free(s->judge);
        for (size_t i = 0; i < s->n; i++)
                layer_free(&s->layers[i]);
        free(s->said);
}

/* One field of the effective document, as JSON. */
static const char *effective(const struct stack *s, const char *path)
{
        const struct lkg_value *value;

        assert_non_null(s->candidate.effective);
        value = lkg_value_get_pointer(s->candidate.effective, path);
        return value ? json(value) : "nothing";
}

/* Findings that do not fit into the list are counted, and the count is reported. */
TEST(test_more_errors_than_are_listed_are_counted)
{
        struct lkg_buf text = LKG_BUF_INIT;
        struct stack s;

        lkg_buf_puts(&text, HEADER "evictionHard:\n");
        for (unsigned i = 0; i < LKG_FINDINGS_MAX + 7; i++)
                lkg_buf_printf(&text, "  r%u: [x]\n", i);
        assert_false(lkg_buf_failed(&text));
        set_up(&s, &plain, text.data, NULL);
        assert_non_null(
                strstr(judge(&s), "more findings are not listed, a list has at most 1000 [LKG4000]\n"));
        assert_int_equal(s.candidate.report.n_findings, LKG_FINDINGS_MAX);
        assert_true(s.candidate.report.n_severity[LKG_ERROR] >= LKG_FINDINGS_MAX + 7);
        tear_down(&s);
        lkg_buf_deinit(&text);
}

/* Advice about many layers: only as much as can be listed is kept, and errors are listed first. */
TEST(test_advice_is_counted_where_it_is_not_kept)
{
        struct lkg_judge_config config = plain;
        struct lkg_buf text = LKG_BUF_INIT;
        size_t n_kept = 0;
        struct stack s;

        config.lint = true;
        lkg_buf_puts(&text, HEADER);
        for (unsigned i = 0; i < 600; i++)
                lkg_buf_printf(&text, "unknown%u: 1\n", i);
        assert_false(lkg_buf_failed(&text));
        set_up(&s, &config, HEADER, text.data);
        put_layer(&s, 2, LKG_LAYER_DROPIN, "2.conf", text.data);
        put_layer(&s, 3, LKG_LAYER_INSTANCE, "instance", HEADER "maxPods: -5\n");
        (void)judge(&s);
        for (size_t i = 0; i < s.judge->n_layers; i++)
                n_kept += s.judge->layers[i].lint.n_findings;
        assert_int_equal(n_kept, LKG_FINDINGS_MAX);
        assert_int_equal(s.judge->layers[1].lint.n_findings, 600);
        assert_int_equal(s.candidate.report.n_severity[LKG_WARNING], 1200);
        assert_int_equal(s.candidate.report.n_findings, LKG_FINDINGS_MAX);
        assert_true(s.candidate.report.n_severity[LKG_ERROR] > 0);
        assert_non_null(strstr(s.said, "error: "));
        assert_non_null(strstr(s.said, "more findings are not listed, a list has at most 1000 [LKG4000]\n"));
        put_layer(&s, 1, LKG_LAYER_DROPIN, "1.conf",
                  HEADER "unknown: 1\n"); /* what was only counted before is listed now */
        (void)judge(&s);
        assert_int_equal(s.judge->layers[2].lint.n_findings, 600);
        tear_down(&s);
        lkg_buf_deinit(&text);
}

/* The same document judged twice: nothing from the first time is left in it. */
TEST(test_judging_does_not_change_the_layers)
{
        struct lkg_judge_config config = plain;
        struct stack s;
        char *first;

        config.lint = true;
        set_up(&s, &config,
               HEADER "featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: "
                      "true}}}\n",
               NULL);
        first = strdup(judge(&s));
        assert_non_null(strstr(first, "[LKG5025]"));
        lkg_judge_configure(s.judge, &config);
        assert_string_equal(judge(&s), first);
        free(first);
        tear_down(&s);
}

/* ---- caching ---- */

TEST(test_unchanged_layers_are_not_linted_again)
{
        struct lkg_judge_config config = plain;
        const struct lkg_finding *kept;
        struct stack s;

        config.lint = true;
        set_up(&s, &config, HEADER, HEADER "maxPodz: 5\n");
        put_layer(&s, 2, LKG_LAYER_DROPIN, "2.conf", HEADER "portt: 5\n");
        assert_non_null(strstr(judge(&s), "maxPodz"));
        kept = s.judge->layers[1].lint.findings;
        put_layer(&s, 2, LKG_LAYER_DROPIN, "2.conf", HEADER "portx: 5\n");
        assert_non_null(strstr(judge(&s), "portx"));
        assert_null(strstr(s.said, "portt"));
        assert_non_null(strstr(s.said, "maxPodz"));
        assert_ptr_equal(s.judge->layers[1].lint.findings, kept);
        tear_down(&s);
}

TEST(test_layer_that_goes_takes_its_findings_along)
{
        struct lkg_judge_config config = plain;
        struct stack s;

        config.lint = true;
        set_up(&s, &config, HEADER, HEADER "maxPodz: 5\n");
        assert_non_null(strstr(judge(&s), "maxPodz"));
        layer_free(&s.layers[1]);
        s.n = 1;
        assert_null(strstr(judge(&s), "maxPodz"));
        assert_int_equal(s.judge->n_layers, 1);
        tear_down(&s);
}

TEST(test_another_base_is_loaded)
{
        struct stack s;

        set_up(&s, &plain, HEADER "maxPods: 5\n", HEADER "port: 1\n");
        (void)judge(&s);
        assert_string_equal(effective(&s, "maxPods"), "5");
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", HEADER "maxPods: 6\n");
        (void)judge(&s);
        assert_string_equal(effective(&s, "maxPods"), "6");
        assert_string_equal(effective(&s, "port"), "1");
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", HEADER "maxPods: x\n");
        assert_non_null(strstr(judge(&s), "maxPods: \"x\""));
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", HEADER "maxPods: 8\n");
        assert_string_equal(judge(&s), "");
        assert_string_equal(effective(&s, "maxPods"), "8");
        tear_down(&s);
}

/* A layer that exists but could not be read. */
static void break_layer(struct stack *s, size_t i)
{
        s->layers[i].doc = lkg_value_unref(s->layers[i].doc);
}

/* A stack with some broken layers merges only the others; the result is not served. */
static const char *judge_broken(struct stack *s)
{
        struct lkg_value *running = NULL;
        bool broken = false;

        candidate_free(&s->candidate);
        s->candidate = (struct lkg_candidate){ .refs = 1, .state = LKG_CANDIDATE_INVALID };
        s->candidate.layers = calloc(s->n + 1, sizeof(*s->candidate.layers));
        assert_non_null(s->candidate.layers);
        for (size_t i = 0; i < s->n; i++) {
                broken = broken || !s->layers[i].doc;
                running = s->layers[i].doc ? s->layers[i].doc : running;
                s->candidate.layers[s->candidate.n_layers++] = (struct lkg_layer_info){
                        .role = s->layers[i].role,
                        .name = s->layers[i].name,
                        .file = s->layers[i].file,
                        .beside = s->layers[i].file,
                        .doc = lkg_value_ref(s->layers[i].doc),
                        .whole = !broken,
                        .type = running == s->layers[i].doc ? LKG_PATCH_BASE : LKG_PATCH_MERGE,
                        .left_out = !s->layers[i].doc,
                        .cookie = (unsigned)i + 1,
                };
                if (s->layers[i].role == LKG_LAYER_BASE)
                        s->candidate.base = lkg_value_ref(running);
        }
        s->candidate.merged = lkg_value_ref(running);
        lkg_judge_candidate(&s->candidate, s->judge);
        free(s->said);
        s->said = lkg_report_format(&s->candidate.report, NULL);
        assert_non_null(s->said);
        return s->said;
}

/*
 * A broken base, no base at all, a drop-in alone: the second is judged although the first had no base
 * either.
 */
TEST(test_broken_base_is_not_an_absent_one)
{
        static const char *const wrong[][2] = { { "maxPods: -5\n", "maxPods: -5 is out of range" },
                                                { "featureGates: {Nope: true}\n",
                                                  "no feature gate \"Nope\"" } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(wrong); i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                struct stack s;

                assert_true(asprintf(&text, HEADER "%s", wrong[i][0]) > 0);
                set_up(&s, &plain, HEADER, text);
                break_layer(&s, 0);
                (void)judge_broken(&s);
                assert_null(s.candidate.effective);
                layer_free(&s.layers[0]);
                s.layers[0] = s.layers[1];
                s.layers[1] = (struct made_layer){ 0 };
                s.n = 1;
                assert_non_null(strstr(judge(&s), wrong[i][1]));
                tear_down(&s);
        }
}

/* An empty patch file is no broken base: layers above it are judged. */
TEST(test_patch_that_holds_nothing_hides_no_mistake)
{
        struct lkg_layer_info idle = {
                .role = LKG_LAYER_PATCH, .name = "p", .file = "p", .beside = "p", .idle = true
        };
        struct stack s;

        set_up(&s, &plain, NULL, HEADER "maxPods: -5\n");
        assert_int_equal(candidate_build(s.layers, s.n, &s.candidate), 0);
        s.candidate.layers[1] = s.candidate.layers[0]; /* there is room for one more */
        s.candidate.layers[0] = idle;
        s.candidate.n_layers = 2;
        lkg_judge_candidate(&s.candidate, s.judge);
        assert_int_equal(s.candidate.report.n_severity[LKG_ERROR], 1);
        assert_non_null(s.candidate.effective);
        tear_down(&s);
}

TEST(test_mistake_of_the_command_line_stays_said)
{
        static const char *const words[] = { "--feature-gates=Nope=true" };
        struct lkg_judge_config config = plain;
        struct stack s;

        config.flags = words;
        config.n_flags = 1;
        set_up(&s, &config, HEADER, NULL);
        assert_non_null(strstr(judge(&s), "Nope"));
        break_layer(&s, 0);
        s.n = 2;
        put_layer(&s, 1, LKG_LAYER_DROPIN, "1.conf", HEADER);
        assert_non_null(strstr(judge_broken(&s), "Nope")); /* the flags are as wrong as before */
        tear_down(&s);
}

TEST(test_another_kind_is_learned)
{
        struct stack s;

        set_up(&s, &plain, HEADER, NULL);
        (void)judge(&s);
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", PROXY);
        assert_string_equal(judge(&s), "");
        assert_string_equal(effective(&s, "configSyncPeriod"), "\"15m0s\"");
        tear_down(&s);
}

TEST(test_another_release_is_judged_by)
{
        struct lkg_judge_config config = plain;
        struct stack s;

        set_up(&s, &config, HEADER "featureGates: {AllowServiceLBStatusOnNonLB: false}\n", NULL);
        assert_non_null(strstr(judge(&s), "[LKG5014]"));
        config.release = 134;
        lkg_judge_configure(s.judge, &config);
        assert_string_equal(judge(&s), "");
        tear_down(&s);
}

/* The effective document of a generation that was served before, without its layers. */
TEST(test_effective_document_of_a_served_one)
{
        struct lkg_value *value = NULL, *broken;
        struct stack s;

        set_up(&s, &plain, HEADER "maxPods: 5\n", NULL);
        (void)judge(&s);
        value = lkg_judge_document(s.judge, s.candidate.doc);
        assert_string_equal(json(value), json(s.candidate.effective));
        lkg_value_unref(value);
        broken = doc("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: x\n");
        value = NULL;
        value = lkg_judge_document(s.judge, broken);
        assert_null(value);
        lkg_value_unref(broken);
        tear_down(&s);
}

/* The text of a right value for @node, by its default or its class. */
static const char *right_value(const struct lkg_schema_node *node)
{
        static const char *const texts[] = { [LKG_CLASS_BOOL] = "true",       [LKG_CLASS_STRING] = "\"x\"",
                                             [LKG_CLASS_INT] = "1",           [LKG_CLASS_FLOAT] = "1",
                                             [LKG_CLASS_DURATION] = "\"1m\"", [LKG_CLASS_FLUSH] = "\"5s\"",
                                             [LKG_CLASS_QUANTITY] = "\"1\"",  [LKG_CLASS_LIST] = "[]",
                                             [LKG_CLASS_MAP] = "{}",          [LKG_CLASS_STRUCT] = "{}" };

        return node->def ? json(node->def) : texts[node->class];
}

/* `base` with the field in it, whatever stands around. */
static void write_with(const char *base, const char *path, const char *value, struct lkg_buf *buf)
{
        size_t depth = 0;

        lkg_buf_reset(buf);
        lkg_buf_puts(buf, base);
        for (const char *dot; (dot = strchr(path, '.')); path = dot + 1, depth++)
                lkg_buf_printf(buf, "%*s%.*s:\n", (int)depth, "", (int)(dot - path), path);
        lkg_buf_printf(buf, "%*s%s: %s\n", (int)depth, "", path, value);
}

/* Lines of @said that are not about @path itself and that @without does not have. */
static void no_more_than(const char *said, const char *without, const char *right, const char *path)
{
        path += strspn(path, " ");
        for (const char *line = said; *line; line += strcspn(line, "\n") + 1) {
                LKG_CLEANUP(lkg_freep) char *one = strndup(line, strcspn(line, "\n"));
                const char *text = strstr(one, ": error: ");

                text = text ? text : strstr(one, ": warning: ");
                if (!text || strstr(text, path) || (strstr(without, text) && strstr(right, text)))
                        continue;
                fail_msg("%s could not be read, and then: %s", path, one);
        }
}

static void spoil(struct lkg_judge_config *config, const char *base, const char *path, const char *bad,
                  const char *good)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *without = NULL, *right = NULL;
        struct stack s;

        set_up(&s, config, base, NULL);
        without = strdup(judge(&s));
        write_with(base, path, good, &text);
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", text.data);
        right = strdup(judge(&s));
        write_with(base, path, bad, &text);
        put_layer(&s, 0, LKG_LAYER_BASE, "base.yaml", text.data);
        no_more_than(judge(&s), without, right, path);
        tear_down(&s);
}

static void spoil_all(struct lkg_judge_config *config, const char *base, const struct lkg_schema_node *node)
{
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                bool text = member->class != LKG_CLASS_LIST && member->class != LKG_CLASS_MAP;

                if (strcmp(member->name, "kind") == 0 || strcmp(member->name, "apiVersion") == 0)
                        continue;
                if (!strstr(base, member->name))
                        spoil(config, base, member->field->path, text ? "[5]" : "5", right_value(member));
                if (member->class == LKG_CLASS_STRUCT)
                        spoil_all(config, base, member);
        }
}

/* No rule uses a field that could not be read, whatever else the document says. */
TEST(test_nothing_follows_from_what_could_not_be_read)
{
        static const char *const bases[] = {
                HEADER,
                PROXY,
                HEADER "shutdownGracePeriodCriticalPods: 10s\nimageGCHighThresholdPercent: 75\n"
                       "enforceNodeAllocatable: [pods, system-reserved, kube-reserved]\n"
                       "cpuManagerPolicy: static\nmemoryManagerPolicy: Static\nsystemCgroups: /s\n"
                       "evictionSoft: {memory.available: 5%}\nimageMaximumGCAge: 1m\nport: 10248\n"
                       "enableSystemLogQuery: true\nreservedSystemCPUs: 0-1\nmaxParallelImagePulls: 5\n",
                HEADER "imageGCLowThresholdPercent: 90\nsystemReservedCgroup: /x\n"
                       "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]\n"
                       "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\nserializeImagePulls: true\n",
                PROXY "mode: ipvs\nclusterCIDR: 1\ndetectLocalMode: BridgeInterface\n",
        };
        struct lkg_judge_config config = plain;

        config.lint = true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(bases); i++) {
                const struct lkg_schema *schema = NULL;

                assert_int_equal(lkg_schema_get(strncmp(bases[i], PROXY, strlen(PROXY)) == 0
                                                        ? "KubeProxyConfiguration"
                                                        : "KubeletConfiguration",
                                                NULL, 0, &schema),
                                 0);
                spoil_all(&config, bases[i], lkg_schema_root(schema));
        }
}

/* The same for gates: every one that another needs, and every one that a field needs. */
TEST(test_nothing_follows_from_a_gate_that_could_not_be_read)
{
        struct lkg_judge_config config = plain;

        for (size_t i = 0; i < lkg_n_gate_needs; i++) {
                LKG_CLEANUP(lkg_freep) char *base = NULL, *path = NULL;

                if (!lkg_gate_settable(lkg_gate_needs[i].name, true, LKG_RELEASE_MAX) ||
                    !lkg_gate_settable(lkg_gate_needs[i].needs, true, LKG_RELEASE_MAX))
                        continue;
                assert_true(
                        asprintf(&base,
                                 HEADER
                                 "memoryReservationPolicy: TieredReservation\nfeatureGates:\n %s: true\n",
                                 lkg_gate_needs[i].name) > 0);
                assert_true(asprintf(&path, " %s", lkg_gate_needs[i].needs) > 0);
                spoil(&config, base, path, "\"true\"", "true");
        }
        spoil(&config, HEADER "memoryReservationPolicy: TieredReservation\n", "featureGates.MemoryQoS",
              "[1]", "true");
}

TEST(test_host_is_read)
{
        struct lkg_host host = { 0 };

        for (enum lkg_host_fact fact = 0; fact <= LKG_HOST_KERNEL; fact++)
                lkg_host_look(&host, fact, "/nowhere");
        assert_true(host.memory == 0 && host.storage == 0 && host.pids == 0 && !host.swap);
        assert_true(!*host.cpus && !*host.numa_nodes && !*host.kernel);
        lkg_host_look(&host, LKG_HOST_MEMORY, "");
        lkg_host_look(&host, LKG_HOST_CPUS, "");
        assert_true(host.memory > 0 && host.memory < 1e18);
        assert_true(*host.cpus && !strchr(host.cpus, '\n'));
}

TEST(test_deprecated_fields)
{
        struct lkg_judge_config config = plain;
        size_t n = 0;

        config.lint = true;
        for (size_t i = 0; i < lkg_n_kubelet_fields; i++) {
                const struct lkg_field *field = &lkg_kubelet_fields[i];
                char text[256];
                struct stack s;

                if (!field->deprecated || strchr(field->path, '.') || field->until)
                        continue;
                (void)snprintf(text, sizeof(text), HEADER "%s: null\n", field->path);
                set_up(&s, &config, text, NULL);
                assert_non_null(strstr(judge(&s), "[LKG5006]"));
                tear_down(&s);
                n++;
        }
        assert_true(n > 0);
}
