/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs check: prints every finding, on standard output because findings are its product. Errors and warnings give exit status
 * 1; notes alone do not stop a pipeline.
 *
 * It judges the layers that options name; or each FILE alone, by its kind; or, without either, this node: our own configuration
 * and the layers of each component.
 */
#include "annotations.h"

#include <dirent.h>
#include <sys/stat.h>

/* What several judged things have in common. */
struct checking {
        const struct lkg_tool *tool; /* with annotations a copy of ours, whose messages go into @said */
        struct lkg_value *list;      /* -o json: one item for each; NULL = text */
        struct lkg_annotations *annotations;
        char said[512];
        bool failed; /* no memory */
        int status;  /* of the worst */
        size_t n[_LKG_SEVERITY_MAX];
};

static const char *state_name(const struct lkg_candidate *candidate)
{
        switch (candidate->state) {
        case LKG_CANDIDATE_NONE:
                return "none";
        case LKG_CANDIDATE_VALID:
                return "valid";
        case LKG_CANDIDATE_INVALID:
                return "invalid";
        case LKG_CANDIDATE_NAME_TAKEN:
                return "name taken";
        }
        return "invalid";
}

static bool is_structured(const struct lkg_tool *tool)
{
        return tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
}

static int status_of(const struct lkg_tool *tool, const struct lkg_report *report)
{
        bool warned = report->n_severity[LKG_WARNING] && !tool->options.errors_only;

        return report->n_severity[LKG_ERROR] || warned ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
}

static void put_counts(const struct lkg_tool *tool, struct lkg_tool_map *map,
                       const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;

        lkg_tool_arrange(tool, report, &arranged);
        lkg_tool_map_number(map, "errors", report->n_severity[LKG_ERROR]);
        lkg_tool_map_number(map, "warnings", report->n_severity[LKG_WARNING]);
        lkg_tool_map_number(map, "notes", report->n_severity[LKG_NOTE]);
        lkg_tool_map_number(map, "notListed", arranged.n_dropped + arranged.n_folded);
        lkg_tool_map_value(map, "findings", lkg_tool_findings_value(&arranged));
}

static void put_candidate(const struct lkg_tool *tool, struct lkg_tool_map *map,
                          const struct lkg_candidate *candidate)
{
        lkg_tool_map_string(map, "state", state_name(candidate));
        lkg_tool_map_number(map, "layers", candidate->n_layers);
        put_counts(tool, map, &candidate->report);
}

static int load(const struct lkg_tool *tool, struct lkg_tool_sources *ret)
{
        int status = lkg_tool_sources_load(tool, ret);

        return status == LKG_TOOL_OK ? lkg_tool_judge_against(tool, ret->candidate) : status;
}

/* ---- layers that options name ---- */

static int check_layers(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        const struct lkg_candidate *candidate;
        struct lkg_tool_map map;
        int r, status;

        r = load(tool, &sources);
        if (r != LKG_TOOL_OK)
                return r;
        candidate = sources.candidate;
        status = candidate->state == LKG_CANDIDATE_VALID ? status_of(tool, &candidate->report)
                                                         : LKG_TOOL_DIFFERENT;
        if (is_structured(tool)) {
                lkg_tool_map_init(&map, true);
                put_candidate(tool, &map, candidate);
                return lkg_tool_print_map(tool, &map, status);
        }
        lkg_tool_print_findings(tool, STDOUT_FILENO, &candidate->report);
        return candidate->state == LKG_CANDIDATE_NONE ? lkg_tool_no_document(tool) : status;
}

/* ---- several ---- */

static void check_init(struct checking *check, const struct lkg_tool *tool)
{
        *check = (struct checking){ .tool = tool };
        if (!is_structured(tool))
                return;
        check->list = lkg_value_new_list(NULL, 0, 0);
        check->failed = !check->list;
}

/* -o sarif, -o github: the same, with @saying and @annotations, which outlive it. */
static void check_annotate(struct checking *check, struct lkg_tool *saying,
                           struct lkg_annotations *annotations)
{
        if (!lkg_annotations_wanted(check->tool))
                return;
        lkg_annotations_init(annotations, check->tool);
        check->annotations = annotations;
        *saying = *check->tool;
        saying->said = &check->said;
        check->tool = saying;
}

static void worsen(struct checking *check, int status)
{
        if (status > check->status)
                check->status = status;
}

/* @name could not be judged, and a message has been said. */
static void fail(struct checking *check, const char *name, int status)
{
        worsen(check, status);
        if (!check->annotations)
                return;
        (void)lkg_tool_fail(check->annotations->tool, status, "%s", check->said);
        lkg_annotations_fail(check->annotations, name, check->said);
}

/*
 * One of them. @candidate: NULL: it is not made of layers. A failure is said on standard error and has no findings; the others
 * are still judged.
 */
static void add(struct checking *check, const char *key, const char *name,
                const struct lkg_candidate *candidate, const struct lkg_report *report)
{
        struct lkg_tool_map item;

        worsen(check, candidate && candidate->state != LKG_CANDIDATE_VALID ? LKG_TOOL_DIFFERENT
                                                                           : status_of(check->tool, report));
        for (size_t i = 0; i < _LKG_SEVERITY_MAX; i++)
                check->n[i] += report->n_severity[i];
        if (check->annotations) {
                lkg_annotations_add(check->annotations, name, report);
                return;
        }
        if (!check->list) {
                lkg_tool_print_findings(check->tool, STDOUT_FILENO, report);
                return;
        }
        lkg_tool_map_init(&item, false);
        lkg_tool_map_string(&item, key, name);
        if (candidate)
                put_candidate(check->tool, &item, candidate);
        else
                put_counts(check->tool, &item, report);
        lkg_tool_list_take(check->list, &item, &check->failed);
}

static int print_several(struct checking *check, const char *key)
{
        struct lkg_tool_map map;

        if (check->annotations && !check->failed)
                return lkg_annotations_print(check->annotations, check->status);
        if (!check->list)
                return check->failed ? lkg_tool_fail(check->tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM))
                                     : check->status;
        lkg_tool_map_init(&map, true);
        map.failed |= check->failed;
        lkg_tool_map_number(&map, "errors", check->n[LKG_ERROR]);
        lkg_tool_map_number(&map, "warnings", check->n[LKG_WARNING]);
        lkg_tool_map_number(&map, "notes", check->n[LKG_NOTE]);
        lkg_tool_map_value(&map, key, check->list);
        return lkg_tool_print_map(check->tool, &map, check->status);
}

/* The only one could not be judged: of the formats, only annotations can say so. */
static int print_failed(struct checking *check)
{
        lkg_value_unref(check->list);
        return check->annotations ? lkg_annotations_print(check->annotations, check->status) : check->status;
}

/* ---- files ---- */

/* `kubeletconfiguration0+merge.yaml`: a kubeadm patch has the kind of what it is applied to. */
static bool is_patch(const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        return strncmp(name, "kubeletconfiguration", strlen("kubeletconfiguration")) == 0;
}

static void check_configuration(struct checking *check, const char *path)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *absolute = realpath(path, NULL);
        const struct lkg_config_options options = { .path = absolute, .trust_any_owner = true };
        struct lkg_config *config = NULL;
        int r = absolute ? lkg_config_load(&options, &config, &report) : -errno;

        if (r < 0 && r != -EBADMSG && r != -EPERM)
                fail(check, path,
                     lkg_tool_fail(check->tool, LKG_TOOL_FAILED, "'%s': %s", path, strerror(-r)));
        else
                add(check, "file", path, NULL, &report);
        lkg_config_free(config);
}

static void check_document(struct checking *check, const char *path, const struct lkg_tool *named)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        int status = load(named, &sources);

        if (status != LKG_TOOL_OK)
                fail(check, path, status);
        else
                add(check, "file", path, sources.candidate, &sources.candidate->report);
}

/* What cannot be decoded is judged as a document of the component, which says why. */
static void check_by_kind(struct checking *check, const char *path)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_tool named = *check->tool;
        const char *kind = NULL;
        int status = lkg_tool_read_doc(check->tool, path, !is_patch(path), 0, &report, NULL, &doc);

        if (status == LKG_TOOL_FAILED) {
                fail(check, path, status);
                return;
        }
        if (is_patch(path)) {
                add(check, "file", path, NULL, &report);
                return;
        }
        if (doc && lkg_value_type(doc) == LKG_MAP)
                kind = lkg_map_get_string(doc, "kind");
        if (kind && strcmp(kind, LKG_CONFIG_KIND) == 0) {
                check_configuration(check, path);
                return;
        }
        if (kind && strcmp(kind, "ConfigMap") == 0)
                named.options.remote = path;
        else
                named.options.config = path;
        check_document(check, path, &named);
}

/* The layers that options name. A finding without a file belongs to the first of them. */
static int annotate_layers(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_annotations_deinit) struct lkg_annotations annotations = { 0 };
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        const char *const paths[] = { tool->options.remote, tool->options.config, tool->options.config_dir,
                                      tool->options.instance_config };
        const char *first = NULL;
        struct checking check;
        struct lkg_tool saying;
        int status;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(paths) && !first; i++)
                first = paths[i];
        check_init(&check, tool);
        check_annotate(&check, &saying, &annotations);
        status = load(check.tool, &sources);
        if (status != LKG_TOOL_OK) {
                fail(&check, first, status);
                return print_failed(&check);
        }
        add(&check, "", first, sources.candidate, &sources.candidate->report);
        if (sources.candidate->state == LKG_CANDIDATE_NONE)
                fail(&check, first, lkg_tool_no_document(check.tool));
        return print_several(&check, "");
}

static int is_document(const struct dirent *entry)
{
        static const char *const ends[] = { ".conf", ".yaml", ".yml", ".json" };
        const char *end = strrchr(entry->d_name, '.');

        for (size_t i = 0; end && end != entry->d_name && i < LKG_ARRAY_SIZE(ends); i++)
                if (strcmp(end, ends[i]) == 0)
                        return 1;
        return 0;
}

static void check_directory(struct checking *check, const char *path)
{
        struct dirent **entries;
        int n = scandir(path, &entries, is_document, alphasort);

        if (n < 0) {
                fail(check, path,
                     lkg_tool_fail(check->tool, LKG_TOOL_FAILED, "read '%s': %s", path, strerror(errno)));
                return;
        }
        for (int i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_freep) char *file = NULL;

                if (asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0) {
                        file = NULL;
                        check->failed = true;
                } else {
                        check_by_kind(check, file);
                }
                free(entries[i]);
        }
        free(entries);
}

static void check_file(struct checking *check, const char *path)
{
        struct lkg_tool named = *check->tool;
        struct stat st;

        if (lkg_tool_is_stdin(path)) { /* it can be read once */
                named.options.config = path;
                check_document(check, path, &named);
        } else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
                check_directory(check, path);
        } else {
                check_by_kind(check, path);
        }
}

static int check_files(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_annotations_deinit) struct lkg_annotations annotations = { 0 };
        struct checking check;
        struct lkg_tool saying;

        if (lkg_tool_has_sources(tool) || tool->options.node_config)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "FILE is judged alone, by its kind; to judge layers together name "
                                     "all of them with options: --config, --config-dir, ...");
        check_init(&check, tool);
        check_annotate(&check, &saying, &annotations);
        for (size_t i = 0; i < tool->n_words; i++)
                check_file(&check, tool->words[i]);
        return print_several(&check, "files");
}

/* ---- this node ---- */

static void say_state(const char *component, const struct lkg_candidate *candidate)
{
        const size_t *n = candidate->report.n_severity;

        (void)dprintf(STDOUT_FILENO, "%s: %s, %zu layer%s, %zu error%s, %zu warning%s, %zu note%s\n",
                      component,
                      candidate->state == LKG_CANDIDATE_NONE ? "no document" : state_name(candidate),
                      candidate->n_layers, candidate->n_layers == 1 ? "" : "s", n[LKG_ERROR],
                      n[LKG_ERROR] == 1 ? "" : "s", n[LKG_WARNING], n[LKG_WARNING] == 1 ? "" : "s",
                      n[LKG_NOTE], n[LKG_NOTE] == 1 ? "" : "s");
}

static void check_component(struct checking *check, const struct lkg_tool_node *node,
                            const struct lkg_config_component *component)
{
        LKG_CLEANUP(lkg_tool_sources_deinit) struct lkg_tool_sources sources = { .dirfd = -EBADF };
        int status = lkg_tool_node_judge(check->tool, node, component, &sources);

        if (status == LKG_TOOL_OK)
                status = lkg_tool_judge_against(check->tool, sources.candidate);
        if (status != LKG_TOOL_OK) {
                fail(check, lkg_tool_node_path(check->tool), status);
                return;
        }
        if (check->annotations) /* a finding without a file belongs to the configuration that names the layers */
                add(check, "", lkg_tool_node_path(check->tool), sources.candidate,
                    &sources.candidate->report);
        else
                add(check, "component", component->name, sources.candidate, &sources.candidate->report);
        if (!check->list && !check->annotations)
                say_state(component->name, sources.candidate);
}

static int check_node(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_tool_node_close) struct lkg_tool_node node = LKG_TOOL_NODE_INIT;
        const struct lkg_config_component *one;
        const char *wanted = tool->options.component; /* NULL = all */
        LKG_CLEANUP(lkg_annotations_deinit) struct lkg_annotations annotations = { 0 };
        struct checking check;
        struct lkg_tool saying;
        int status;

        check_init(&check, tool);
        check_annotate(&check, &saying, &annotations);
        status = lkg_tool_node_open(check.tool, &node);
        if (status > LKG_TOOL_DIFFERENT) {
                fail(&check, lkg_tool_node_path(tool), status);
                return print_failed(&check);
        }
        if (status == LKG_TOOL_OK && wanted) {
                status = lkg_tool_node_component(tool, &node, &one);
                if (status != LKG_TOOL_OK)
                        return status;
        }
        add(&check, "configuration", lkg_tool_node_path(tool), NULL, &node.report);
        for (size_t i = 0; status == LKG_TOOL_OK && i < node.config->n_components; i++)
                if (!wanted || strcmp(wanted, node.config->components[i].name) == 0)
                        check_component(&check, &node, &node.config->components[i]);
        return print_several(&check, "judged");
}

int lkg_verb_check(const struct lkg_tool *tool)
{
        if (tool->n_words > 0)
                return check_files(tool);
        if (!lkg_tool_has_sources(tool) && lkg_tool_has_node(tool))
                return check_node(tool);
        return lkg_annotations_wanted(tool) ? annotate_layers(tool) : check_layers(tool);
}
