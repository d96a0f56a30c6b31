/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge as a stack calls it: what is kept from one candidate to the next, what broken layers hide, and that nothing follows from
 * what could not be read: rows/judge.rows. What is said of one candidate is in rows/schema.rows. No disk: candidates are made in memory.
 * Rule: docs/specification.md 3.5.
 */
#include "config-helpers.h"
#include "rows.h"

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

static const struct lkg_judge_config plain = { .host = { .cgroup = 2, .stated = true } };
static struct lkg_judge_config config;
static struct stack s;

static void put_layer(size_t i, enum lkg_layer_role role, const char *name, const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;

        layer_free(&s.layers[i]);
        assert_int_equal(layer_decode(role, name, text, strlen(text), &report, &s.layers[i]), 0);
        lkg_report_deinit(&report);
        if (i >= s.n)
                s.n = i + 1;
}

static const char *judge(void)
{
        candidate_free(&s.candidate);
        assert_int_equal(candidate_build(s.layers, s.n, &s.candidate), 0);
        lkg_judge_candidate(&s.candidate, s.judge);
        free(s.said);
        s.said = lkg_report_format(&s.candidate.report, NULL);
        assert_non_null(s.said);
        return s.said;
}

/* One field of the effective document, as JSON. */
static const char *effective(const char *path)
{
        const struct lkg_value *value;

        assert_non_null(s.candidate.effective);
        value = lkg_value_get_pointer(s.candidate.effective, path);
        return value ? json(value) : "nothing";
}

/* A layer that exists but could not be read. */
static void break_layer(size_t i)
{
        s.layers[i].doc = lkg_value_unref(s.layers[i].doc);
}

/* A stack with some broken layers merges only the others; the result is not served. */
static const char *judge_broken(void)
{
        struct lkg_value *running = NULL;
        bool broken = false;

        candidate_free(&s.candidate);
        s.candidate = (struct lkg_candidate){ .refs = 1, .state = LKG_CANDIDATE_INVALID };
        s.candidate.layers = calloc(s.n + 1, sizeof(*s.candidate.layers));
        assert_non_null(s.candidate.layers);
        for (size_t i = 0; i < s.n; i++) {
                broken = broken || !s.layers[i].doc;
                running = s.layers[i].doc ? s.layers[i].doc : running;
                s.candidate.layers[s.candidate.n_layers++] = (struct lkg_layer_info){
                        .role = s.layers[i].role,
                        .name = s.layers[i].name,
                        .file = s.layers[i].file,
                        .beside = s.layers[i].file,
                        .doc = lkg_value_ref(s.layers[i].doc),
                        .whole = !broken,
                        .type = running == s.layers[i].doc ? LKG_PATCH_BASE : LKG_PATCH_MERGE,
                        .left_out = !s.layers[i].doc,
                        .cookie = (unsigned)i + 1,
                };
                if (s.layers[i].role == LKG_LAYER_BASE)
                        s.candidate.base = lkg_value_ref(running);
        }
        s.candidate.merged = lkg_value_ref(running);
        lkg_judge_candidate(&s.candidate, s.judge);
        free(s.said);
        s.said = lkg_report_format(&s.candidate.report, NULL);
        assert_non_null(s.said);
        return s.said;
}

/* ---- steps ---- */

static const char *flag[1];

static int end(void **state)
{
        (void)state;
        candidate_free(&s.candidate);
        lkg_judge_free(s.judge);
        for (size_t i = 0; i < s.n; i++)
                layer_free(&s.layers[i]);
        free(s.said);
        s = (struct stack){ 0 };
        free((char *)flag[0]);
        flag[0] = NULL;
        return 0;
}

static void begin(void)
{
        (void)end(NULL);
        config = plain;
        s.judge = lkg_judge_new(&config);
}

STEP(steps, 0)
{
        begin();
}

/* `lint`, a release, or a word of the command line. */
STEP(config, 1)
{
        const char *word = q->parts[0];

        if (strcmp(word, "lint") == 0)
                config.lint = true;
        else if (*word == '-') {
                flag[0] = strdup(word);
                config.flags = flag;
                config.n_flags = 1;
        } else
                config.release = (unsigned)strtoul(word, NULL, 10);
        lkg_judge_configure(s.judge, &config);
}

static void put_of(const char *index, const char *role, const char *text)
{
        size_t i = strtoul(index, NULL, 10);
        LKG_CLEANUP(lkg_freep) char *whole = NULL;
        char name[16];

        (void)snprintf(name, sizeof(name), "%s.conf", index);
        assert_true(asprintf(&whole, "%s%s", strcmp(role, "proxy") == 0 ? PROXY : HEADER, text) > 0);
        if (strcmp(role, "dropin") == 0)
                put_layer(i, LKG_LAYER_DROPIN, name, whole);
        else if (strcmp(role, "instance") == 0)
                put_layer(i, LKG_LAYER_INSTANCE, "instance", whole);
        else
                put_layer(i, LKG_LAYER_BASE, "base.yaml", whole);
}

/* INDEX, ROLE (`proxy`: the base of kube-proxy), what follows its header */
STEP(layer, 3)
{
        put_of(q->parts[0], q->parts[1], q->parts[2]);
}

/* INDEX, ROLE, how many, of what: fields that nobody knows, or wrong members of a map. */
STEP(many, 4)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        bool unknown = strcmp(q->parts[3], "unknown") == 0;

        lkg_buf_puts(&text, unknown ? "" : "evictionHard:\n");
        for (unsigned long i = 0; i < strtoul(q->parts[2], NULL, 10); i++)
                lkg_buf_printf(&text, unknown ? "unknown%lu: 1\n" : "  r%lu: [x]\n", i);
        put_of(q->parts[0], q->parts[1], text.data);
}

/* The last layer goes. */
STEP(remove, 0)
{
        layer_free(&s.layers[--s.n]);
}

/* The first layer goes, and the others take its place. */
STEP(remove_base, 0)
{
        layer_free(&s.layers[0]);
        memmove(s.layers, s.layers + 1, --s.n * sizeof(*s.layers));
        s.layers[s.n] = (struct made_layer){ 0 };
}

STEP(break, 1)
{
        break_layer(strtoul(q->parts[0], NULL, 10));
}

static void say(const char *said, struct lkg_buf *ret)
{
        lkg_buf_puts(ret, said);
        lkg_buf_puts(ret, s.candidate.effective ? "" : "no effective document");
}

STEP(judge, 0)
{
        say(judge(), ret);
}

/* Some layers are broken. */
STEP(judge_rest, 0)
{
        say(judge_broken(), ret);
}

/* With an empty patch file below the layers. */
STEP(judge_over_idle, 0)
{
        struct lkg_layer_info idle = {
                .role = LKG_LAYER_PATCH, .name = "p", .file = "p", .beside = "p", .idle = true
        };

        assert_int_equal(s.n, 1);
        assert_int_equal(candidate_build(s.layers, s.n, &s.candidate), 0);
        s.candidate.layers[1] = s.candidate.layers[0]; /* there is room for one more */
        s.candidate.layers[0] = idle;
        s.candidate.n_layers = 2;
        lkg_judge_candidate(&s.candidate, s.judge);
        s.said = lkg_report_format(&s.candidate.report, NULL);
        say(s.said, ret);
}

/* Of many findings: how many are listed, and there were; how many of each layer are kept; the first and the last line. */
STEP(judge_many, 0)
{
        const char *last;

        (void)judge();
        lkg_buf_printf(ret, "%zu listed of %zu errors and %zu warnings, kept", s.candidate.report.n_findings,
                       (size_t)s.candidate.report.n_severity[LKG_ERROR],
                       (size_t)s.candidate.report.n_severity[LKG_WARNING]);
        for (size_t i = 0; i < s.judge->n_layers; i++)
                lkg_buf_printf(ret, " %zu", s.judge->layers[i].lint.n_findings);
        s.said[strlen(s.said) - 1] = '\0';
        last = strrchr(s.said, '\n');
        lkg_buf_printf(ret, "\n%.*s%s", (int)strcspn(s.said, "\n"), s.said, last);
}

/* How many findings of how many layers are kept; are those of layer 1 still the same ones? */
STEP(kept, 0)
{
        static const struct lkg_finding *before;
        const struct lkg_finding *now = s.judge->n_layers > 1 ? s.judge->layers[1].lint.findings : NULL;

        lkg_buf_printf(ret, "of %zu layers, %s", s.judge->n_layers, now == before ? "the same" : "others");
        before = now;
}

STEP(effective, 1)
{
        lkg_buf_puts(ret, effective(q->parts[0]));
}

/* The effective document of a generation that was served before, without its layers: is it that of the candidate? */
STEP(document, 1)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_value *served = NULL, *value;

        assert_true(asprintf(&text, HEADER "%s", q->parts[0]) > 0);
        served = doc(text);
        value = lkg_judge_document(s.judge, served);
        lkg_buf_puts(ret, !value                                                  ? "none"
                          : strcmp(json(value), json(s.candidate.effective)) == 0 ? "the same"
                                                                                  : "another");
        lkg_value_unref(value);
        lkg_value_unref(served);
}

ROWS_WITH(judge, rows_steps, NULL, end)

/* ---- what no row can say ---- */

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

static void spoil(const char *base, const char *path, const char *bad, const char *good)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *without = NULL, *right = NULL;

        begin();
        config.lint = true;
        lkg_judge_configure(s.judge, &config);
        put_layer(0, LKG_LAYER_BASE, "base.yaml", base);
        without = strdup(judge());
        write_with(base, path, good, &text);
        put_layer(0, LKG_LAYER_BASE, "base.yaml", text.data);
        right = strdup(judge());
        write_with(base, path, bad, &text);
        put_layer(0, LKG_LAYER_BASE, "base.yaml", text.data);
        no_more_than(judge(), without, right, path);
}

static void spoil_all(const char *base, const struct lkg_schema_node *node)
{
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                bool text = member->class != LKG_CLASS_LIST && member->class != LKG_CLASS_MAP;

                if (strcmp(member->name, "kind") == 0 || strcmp(member->name, "apiVersion") == 0)
                        continue;
                if (!strstr(base, member->name))
                        spoil(base, member->field->path, text ? "[5]" : "5", right_value(member));
                if (member->class == LKG_CLASS_STRUCT)
                        spoil_all(base, member);
        }
}

/* No rule uses a field that could not be read, whatever else the document says. */
TEST_WITH(test_nothing_follows_from_what_could_not_be_read, NULL, end)
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

        for (size_t i = 0; i < LKG_ARRAY_SIZE(bases); i++) {
                const struct lkg_schema *schema = NULL;

                assert_int_equal(lkg_schema_get(strncmp(bases[i], PROXY, strlen(PROXY)) == 0
                                                        ? "KubeProxyConfiguration"
                                                        : "KubeletConfiguration",
                                                NULL, 0, &schema),
                                 0);
                spoil_all(bases[i], lkg_schema_root(schema));
        }
}

/* The same for gates: every one that another needs, and every one that a field needs. */
TEST_WITH(test_nothing_follows_from_a_gate_that_could_not_be_read, NULL, end)
{
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
                spoil(base, path, "\"true\"", "true");
        }
        spoil(HEADER "memoryReservationPolicy: TieredReservation\n", "featureGates.MemoryQoS", "[1]",
              "true");
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

TEST_WITH(test_deprecated_fields, NULL, end)
{
        size_t n = 0;

        for (size_t i = 0; i < lkg_n_kubelet_fields; i++) {
                const struct lkg_field *field = &lkg_kubelet_fields[i];
                char text[256];

                if (!field->deprecated || strchr(field->path, '.') || field->until)
                        continue;
                (void)snprintf(text, sizeof(text), HEADER "%s: null\n", field->path);
                begin();
                config.lint = true;
                lkg_judge_configure(s.judge, &config);
                put_layer(0, LKG_LAYER_BASE, "base.yaml", text);
                assert_non_null(strstr(judge(), "[LKG5006]"));
                n++;
        }
        assert_true(n > 0);
}
