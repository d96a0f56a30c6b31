/* SPDX-License-Identifier: Apache-2.0 */
/*
 * null, {}, [], "", a number, a list and a map at every path of every layer of every kind, alone and in all
 * pairs of layers: no content of a document ends the program. Layers are handled as in the engine
 * (layer-place.h): one stack and one judge for all cases of a kind, everything rendered that the engine
 * renders.
 *
 *     everywhere [--share N] [--seed N] [--compare N]
 *
 * Runs all cases of one layer, and of those of two layers one in --share N (--seed selects which): CI runs a
 * share, `--share 1` runs all of them. After one look in --compare N the answer is compared with that of a
 * new stack and judge.
 *
 * The cases run in a child process. If it dies, by a signal or a sanitizer, the case is reported with its
 * layers, and the next child continues after it. Prints a TAP line for each group of cases and their number.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <lkg/objects.h>
#include <lkg/schema.h>
#include <lkg/documents.h>

#include "tests/lib/layer-place.h"

#define PATHS_MAX  2048
#define DEATHS_MAX 20
#define LAYERS_OF  2
#define TEXT_MAX   4096

#define BASE       "base.yaml"
#define INSTANCE   "instance.conf"

static const char *const values[] = { "null", "{}", "[]", "\"\"", "5", "[1]", "{\"x\": 1}" };
#define N_VALUES LKG_ARRAY_SIZE(values)

/* ---- kinds ---- */

struct kind {
        const char *component, *header;
        char *paths[PATHS_MAX];
        size_t n_paths;
};

/* The key in place of `{}`: a known one, so that more code looks at it. */
static const char *key_of(const char *path)
{
        static const char *const keys[][2] = { { "featureGates", "NodeSwap" },
                                               { "eviction", "memory.available" },
                                               { "Reserved", "memory" },
                                               { "staticPodURLHeader", "Authorization" } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(keys); i++)
                if (strstr(path, keys[i][0]))
                        return keys[i][1];
        return "k";
}

static void add_path(struct kind *kind, const char *path, size_t size)
{
        for (size_t i = 0; i < kind->n_paths; i++)
                if (strlen(kind->paths[i]) == size && memcmp(kind->paths[i], path, size) == 0)
                        return;
        if (kind->n_paths == PATHS_MAX || !(kind->paths[kind->n_paths++] = strndup(path, size)))
                abort();
}

/* Add @path and its prefixes: `a`, `a.b`, `a.b[]`, `a.b[].c`. */
static void add_with_parents(struct kind *kind, const char *path)
{
        for (size_t i = 1; *path && path[i]; i++)
                if (path[i] == '.' || path[i] == '[' || path[i] == '{')
                        add_path(kind, path, i);
        add_path(kind, path, strlen(path));
}

static void add_table(struct kind *kind, const char *name)
{
        for (size_t k = 0; k < lkg_n_kinds; k++) {
                if (strcmp(lkg_kinds[k].kind, name) != 0)
                        continue;
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];
                        char below[256];

                        add_with_parents(kind, field->path);
                        if (strncmp(field->type, "map[", 4) == 0 || strncmp(field->type, "[]", 2) == 0) {
                                (void)snprintf(below, sizeof(below), "%s%s", field->path,
                                               field->type[0] == '[' ? "[]" : "{}");
                                add_path(kind, below, strlen(below));
                        }
                }
        }
}

/* Common to all kinds: the document itself, its header, directives, unknown names. */
static void add_common(struct kind *kind)
{
        static const char *const paths[] = { "",
                                             "kind",
                                             "apiVersion",
                                             "metadata.name",
                                             "unknown",
                                             "unknown.a[].b",
                                             "unknown{}",
                                             "$patch",
                                             "$retainKeys",
                                             "$retainKeys[]",
                                             "clusters[]",
                                             "users[].user.token",
                                             "configTrialDuration",
                                             "crashLoopThreshold" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(paths); i++)
                add_with_parents(kind, paths[i]);
}

/* Directives of a strategic merge patch beside and below the first fields that are maps and lists. */
static void add_directives(struct kind *kind)
{
        static const char *const paths[] = {
                "authentication.$patch",
                "authentication.$retainKeys",
                "featureGates.$patch",
                "$setElementOrder/clusterDNS",
                "$setElementOrder/registerWithTaints[]",
                "$deleteFromPrimitiveList/clusterDNS",
                "$deleteFromPrimitiveList/registerWithTaints[]",
                "registerWithTaints[].$patch",
                "ipvs.$patch",
                "$deleteFromPrimitiveList/nodePortAddresses",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(paths); i++)
                add_with_parents(kind, paths[i]);
}

static void make_kinds(struct kind kinds[static 3])
{
        kinds[0] =
                (struct kind){ "kubelet",
                               "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" };
        kinds[1] = (struct kind){
                "kube-proxy", "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
        };
        kinds[2] = (struct kind){ "other", "apiVersion: example.org/v1\nkind: Other\n" };
        add_table(&kinds[0], "KubeletConfiguration");
        add_table(&kinds[1], "KubeProxyConfiguration");
        add_with_parents(&kinds[2], "a.b.c[].d{}.e");
        add_with_parents(&kinds[2], "featureGates{}");
        for (size_t i = 0; i < 3; i++) {
                add_common(&kinds[i]);
                add_directives(&kinds[i]);
        }
}

/* ---- texts ---- */

static void put_value(struct lkg_buf *buf, const char *path, const char *rest, const char *value)
{
        size_t n = strcspn(rest, ".[{");

        if (!*rest) {
                lkg_buf_puts(buf, value);
        } else if (*rest == '[' || *rest == '{') {
                lkg_buf_printf(buf, *rest == '[' ? "[" : "{\"%s\": ", key_of(path));
                put_value(buf, path, rest + 2, value);
                lkg_buf_putc(buf, *rest == '[' ? ']' : '}');
        } else if (*rest == '.') {
                put_value(buf, path, rest + 1, value);
        } else {
                lkg_buf_printf(buf, "{\"%.*s\": ", (int)n, rest);
                put_value(buf, path, rest + n, value);
                lkg_buf_putc(buf, '}');
        }
}

/* A YAML document: the header, and one field per line. A path "" is the document itself. */
static void put_document(struct lkg_buf *buf, const struct kind *kind, bool header, const char *path,
                         const char *value)
{
        size_t n = strcspn(path, ".[{");

        lkg_buf_reset(buf);
        if (*path && header && strcmp(path, "kind") != 0 && strcmp(path, "apiVersion") != 0)
                lkg_buf_puts(buf, kind->header);
        else if (*path && header) /* the rest of the header */
                lkg_buf_printf(buf, "%s", strcmp(path, "kind") == 0 ? "apiVersion: v1\n" : "kind: Other\n");
        if (*path)
                lkg_buf_printf(buf, "\"%.*s\": ", (int)n, path);
        put_value(buf, path, path + n, value);
        lkg_buf_puts(buf, "\n");
}

/* Operations of a JSON patch: one on the field, one without it, and the value as an operation. */
static void put_operations(struct lkg_buf *buf, const char *path, const char *value)
{
        static const char *const ops[] = { "add", "replace", "remove", "test", "copy", "move" };
        struct lkg_buf pointer = LKG_BUF_INIT;

        for (const char *p = path; *p;) {
                size_t n = strcspn(p, ".[{");

                lkg_buf_printf(&pointer, "/%.*s", (int)n, n ? p : "0");
                p += n;
                if (*p == '.')
                        p++;
                else if (*p) {
                        lkg_buf_puts(&pointer, *p == '[' ? "/0" : "/k");
                        p += 2 + (p[2] == '.');
                }
        }
        lkg_buf_putc(&pointer, '\0');
        lkg_buf_reset(buf);
        lkg_buf_printf(buf, "[{\"op\": \"add\", \"path\": \"%s\", \"value\": %s}", pointer.data, value);
        lkg_buf_printf(buf, ", {\"op\": \"%s\", \"path\": \"%s\", \"from\": \"/kind\", \"value\": %s}",
                       ops[strlen(path) % LKG_ARRAY_SIZE(ops)], pointer.data, value);
        if (strcmp(value, "null") != 0 && !*path)
                lkg_buf_printf(buf, ", %s, {\"op\": %s, \"path\": %s}", value, value, value);
        lkg_buf_puts(buf, "]\n");
        lkg_buf_deinit(&pointer);
}

/* ---- layers ---- */

enum layer { L_BASE, L_REMOTE, L_STRATEGIC, L_MERGE, L_JSON, L_DROPIN, L_SECOND, L_INSTANCE, _L_MAX };

static const struct {
        const char *name, *file; /* NULL = the ConfigMap */
        bool header;
} layers[_L_MAX] = {
        [L_BASE] = { "base", BASE, true },
        [L_REMOTE] = { "ConfigMap", NULL, true },
        [L_STRATEGIC] = { "patch", "patches/kubeletconfiguration0.yaml", false },
        [L_MERGE] = { "merge patch", "patches/kubeletconfiguration1+merge.yaml", false },
        [L_JSON] = { "JSON patch", "patches/kubeletconfiguration2+json.json", false },
        [L_DROPIN] = { "drop-in", "conf.d/10-a.conf", true },
        [L_SECOND] = { "second drop-in", "conf.d/20-b.conf", true },
        [L_INSTANCE] = { "instance", INSTANCE, true },
};

/* What a case writes: at most two layers, over a valid base unless one of them is the base. */
struct piece {
        enum layer layer;
        size_t path, value;
};

static void write_layer(struct place *place, const struct kind *kind, const struct piece *piece)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        const char *path = kind->paths[piece->path], *value = values[piece->value];

        if (piece->layer == L_JSON)
                put_operations(&text, path, value);
        else
                put_document(&text, kind, layers[piece->layer].header, path, value);
        if (lkg_buf_failed(&text))
                abort();
        if (layers[piece->layer].file)
                place_put(place, layers[piece->layer].file, text.data, text.size);
        else
                (void)place_set_remote(place, text.data, text.size);
}

static void clear_layer(struct place *place, const struct kind *kind, enum layer layer)
{
        if (layer == L_BASE)
                place_put(place, BASE, kind->header, strlen(kind->header));
        else if (layer == L_REMOTE)
                (void)place_set_remote(place, NULL, 0);
        else
                place_remove(place, layers[layer].file);
}

/* ---- the ConfigMap around a document ---- */

static const char *const object_paths[] = {
        "",
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.annotations",
        "metadata.annotations{}",
        "metadata.labels",
        "metadata.managedFields[]",
        "metadata.deletionTimestamp",
        "data",
        "data.kubelet",
        "data{}",
        "binaryData",
        "binaryData.kubelet",
        "immutable",
        "items[]",
};

/* An object that is valid except for the value at @path: a name that occurs twice is merged. */
static void put_object(struct lkg_buf *buf, const char *path, const char *value)
{
        static const char *const members[][2] = {
                { "apiVersion", "\"v1\"" },        { "kind", "\"ConfigMap\"" },
                { "metadata.namespace", "\"n\"" }, { "metadata.name", "\"c\"" },
                { "metadata.uid", "\"u\"" },       { "metadata.resourceVersion", "\"1\"" },
                { "data.kubelet", "\"kind: x\"" }
        };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = lkg_value_new_map(NULL, 0, 0);

        for (size_t i = 0; object && i <= LKG_ARRAY_SIZE(members); i++) {
                bool last = i == LKG_ARRAY_SIZE(members);
                LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *patch = NULL;
                struct lkg_value *merged;

                put_value(&text, last ? path : members[i][0], last ? path : members[i][0],
                          last ? value : members[i][1]);
                if (lkg_decode(text.data, text.size, LKG_FORMAT_JSON, 0, NULL, &report, &patch) < 0)
                        abort();
                merged = lkg_merge_json(object, patch);
                lkg_value_unref(object);
                object = merged;
        }
        lkg_render(object, LKG_FORMAT_JSON, buf);
}

/* All of them: they are cheap. */
static void read_objects(void)
{
        for (size_t p = 0; p < LKG_ARRAY_SIZE(object_paths); p++) {
                for (size_t v = 0; v < N_VALUES * 2; v++) {
                        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
                        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
                        const struct lkg_configmap_options options = { .max_bytes = LKG_DOC_BYTES_MAX,
                                                                       .from_file = v % 2 == 0 };
                        struct lkg_reference reference = {
                                .type = LKG_REFERENCE_CONFIGMAP, .ns = "n", .name = "c", .key = "kubelet"
                        };
                        const struct lkg_trial_settings settings = { 0 };
                        struct lkg_remote_base *base = NULL;
                        struct lkg_configmap configmap;
                        struct lkg_config_source source;

                        put_object(&text, object_paths[p], values[v / 2]);
                        if (lkg_configmap_parse(text.data, text.size, &options, &configmap, NULL) < 0)
                                continue;
                        if (lkg_configmap_resolve(&configmap, &reference, &source, NULL) < 0) {
                                lkg_configmap_deinit(&configmap);
                                continue;
                        }
                        base = lkg_remote_base_new(&configmap, &source, &settings, &report);
                        lkg_remote_base_free(base);
                }
        }
}

/* ---- cases ---- */

/* Shared with the child: the current case, in words and as a number. */
struct progress {
        uint64_t at, n_run, n_compared;
        char text[2 * TEXT_MAX];
        char stale[TEXT_MAX];
};

struct run {
        struct progress *progress;
        struct place *place;
        const struct kind *kind;
        uint64_t share, seed, compare, from, index;
};

static uint64_t hash(uint64_t x)
{
        x ^= x >> 33;
        x *= UINT64_C(0xff51afd7ed558ccd);
        x ^= x >> 33;
        x *= UINT64_C(0xc4ceb9fe1a85ec53);
        return x ^ x >> 33;
}

static void name_case(const struct run *run, const struct piece *pieces, size_t n)
{
        int at = snprintf(run->progress->text, TEXT_MAX, "%s:", run->kind->component);

        for (size_t i = 0; i < n && at < TEXT_MAX; i++)
                at += snprintf(run->progress->text + at, (size_t)(TEXT_MAX - at), " %s has %s at '%s';",
                               layers[pieces[i].layer].name, values[pieces[i].value],
                               run->kind->paths[pieces[i].path]);
}

static void compare(struct run *run)
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *fresh = place_fresh(run->place);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf why = LKG_BUF_INIT;

        run->progress->n_compared++;
        place_compare(run->place->candidate, fresh, &why);
        if (why.size > 0 && !run->progress->stale[0])
                (void)snprintf(run->progress->stale, TEXT_MAX, "%.2000s\n%.*s", run->progress->text,
                               (int)(why.size < 1500 ? why.size : 1500), why.data);
}

static void run_case(struct run *run, const struct piece *pieces, size_t n, bool chosen)
{
        uint64_t index = run->index++;

        if (!chosen || index < run->from)
                return;
        run->progress->at = index;
        run->progress->n_run++;
        name_case(run, pieces, n);
        for (size_t i = 0; i < n; i++)
                write_layer(run->place, run->kind, &pieces[i]);
        place_publish(run->place, place_look(run->place));
        if (run->progress->n_run % run->compare == 0)
                compare(run);
}

/* One layer: every value at every path. */
static void run_alone(struct run *run, enum layer layer)
{
        for (size_t p = 0; p < run->kind->n_paths; p++) {
                for (size_t v = 0; v < N_VALUES; v++) {
                        const struct piece piece = { layer, p, v };

                        run_case(run, &piece, 1, true);
                }
        }
        clear_layer(run->place, run->kind, layer);
}

/* Return the parent of @path; itself for the document. */
static size_t parent_of(const struct kind *kind, size_t path)
{
        const char *text = kind->paths[path];
        size_t n = strlen(text);

        while (n > 0 && text[n - 1] != '.' && text[n - 1] != '[' && text[n - 1] != '{')
                n--;
        n = n > 0 ? n - 1 : 0;
        for (size_t i = 0; i < kind->n_paths; i++)
                if (strlen(kind->paths[i]) == n && memcmp(kind->paths[i], text, n) == 0)
                        return i;
        return path;
}

/* Two layers: every pair of values at the same path, and at a path and its parent. */
static void run_pair(struct run *run, enum layer lower, enum layer upper)
{
        for (size_t p = 0; p < run->kind->n_paths; p++) {
                size_t places[3][2] = { { p, p },
                                        { parent_of(run->kind, p), p },
                                        { p, parent_of(run->kind, p) } };

                for (size_t k = 0; k < 3 * N_VALUES * N_VALUES; k++) {
                        size_t *at = places[k / (N_VALUES * N_VALUES)];
                        const struct piece pieces[LAYERS_OF] = {
                                { lower, at[0], k % N_VALUES },
                                { upper, at[1], k / N_VALUES % N_VALUES },
                        };

                        run_case(run, pieces, LAYERS_OF,
                                 hash(run->index ^ run->seed << 40) % run->share == 0);
                }
        }
        clear_layer(run->place, run->kind, lower);
        clear_layer(run->place, run->kind, upper);
}

/* ---- groups ---- */

struct group {
        size_t kind;
        enum layer lower, upper; /* equal: one layer alone */
};

static void run_group(const struct group *group, const struct kind *kinds, struct run *run)
{
        const struct kind *kind = &kinds[group->kind];
        static struct place place; /* only one at a time */
        const struct place_options options = {
                .component = kind->component,
                .base = BASE,
                .dropins = "conf.d",
                .instance = INSTANCE,
                .patches = "patches",
                .judge = { .host = { .cgroup = 2, .stated = true }, .lint = true },
        };

        place_open(&place, &options);
        place_put(&place, BASE, kind->header, strlen(kind->header));
        run->place = &place;
        run->kind = kind;
        run->index = 0;
        if (group->lower == group->upper)
                run_alone(run, group->lower);
        else
                run_pair(run, group->lower, group->upper);
        place_close(&place);
}

/* Return: wait status of a child that ran the group from case @run->from on. */
static int run_child(const struct group *group, const struct kind *kinds, struct run *run)
{
        int status = 0;
        pid_t pid;

        (void)fflush(stdout);
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0) {
                run_group(group, kinds, run);
                exit(0); /* so that a leak checker runs */
        }
        if (waitpid(pid, &status, 0) != pid)
                abort();
        return status;
}

static bool check_group(const struct group *group, const struct kind *kinds, struct run *run)
{
        struct progress *progress = run->progress;
        unsigned n_deaths = 0;
        int status;

        *progress = (struct progress){ 0 };
        run->from = 0;
        while ((status = run_child(group, kinds, run)) != 0 && n_deaths < DEATHS_MAX) {
                n_deaths++;
                (void)printf("# died (%s %d): %s\n", WIFSIGNALED(status) ? "signal" : "exit",
                             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), progress->text);
                run->from = progress->at + 1;
        }
        if (progress->stale[0])
                (void)printf("# not what somebody says who begins now: %s\n", progress->stale);
        (void)printf("%s %s: %s%s%s, %llu cases, %llu compared\n",
                     n_deaths || progress->stale[0] ? "not ok" : "ok", kinds[group->kind].component,
                     layers[group->lower].name, group->lower == group->upper ? "" : " under ",
                     group->lower == group->upper ? "" : layers[group->upper].name,
                     (unsigned long long)progress->n_run, (unsigned long long)progress->n_compared);
        return !n_deaths && !progress->stale[0];
}

/* A base and a ConfigMap are no pair: one replaces the other. */
static size_t make_groups(struct group *groups)
{
        size_t n = 0;

        for (size_t kind = 0; kind < 3; kind++) {
                for (enum layer lower = 0; lower < _L_MAX; lower++) {
                        for (enum layer upper = lower; upper < _L_MAX; upper++) {
                                if (kind > 0 && (lower == L_JSON || upper == L_JSON) && lower != upper)
                                        continue; /* the patches are the same for all kinds */
                                if (lower == L_BASE && upper == L_REMOTE)
                                        continue;
                                groups[n++] = (struct group){ kind, lower, upper };
                        }
                }
        }
        return n;
}

static uint64_t number(const char *text)
{
        uint64_t n = strtoull(text, NULL, 10);

        return n ? n : 1;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                { "share", required_argument, NULL, 's' },
                { "seed", required_argument, NULL, 'r' },
                { "compare", required_argument, NULL, 'c' },
                { NULL },
        };
        static struct kind kinds[3];
        struct group groups[3 * _L_MAX * _L_MAX];
        struct run run = { .share = 1, .seed = 1, .compare = 16 };
        size_t n = make_groups(groups), n_bad = 0;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c == 's')
                        run.share = number(optarg);
                else if (c == 'r')
                        run.seed = number(optarg);
                else if (c == 'c')
                        run.compare = number(optarg);
                else
                        return 64;
        }
        run.progress =
                mmap(NULL, sizeof(*run.progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (run.progress == MAP_FAILED)
                abort();
        make_kinds(kinds);
        read_objects();
        for (size_t i = 0; i < n; i++)
                n_bad += !check_group(&groups[i], kinds, &run);
        for (size_t k = 0; k < 3; k++)
                while (kinds[k].n_paths > 0)
                        free(kinds[k].paths[--kinds[k].n_paths]);
        (void)munmap(run.progress, sizeof(*run.progress));
        return n_bad > 0;
}
