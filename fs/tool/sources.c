/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input of the verbs on files: one document; a ConfigMap in place of the base; layers that options name. Paths are relative to the
 * working directory. Standard input becomes the file `-` of a private directory, so that a document from a pipe is handled like one on
 * disk and is still called `-` in findings.
 */
#include <ftw.h>

#include "tool.h"

#include <lkg/component.h>
#include <lkg/objects.h>
#include <lkg/tree.h>

/* ---- one document ---- */

bool lkg_tool_is_stdin(const char *path)
{
        return path && strcmp(path, "-") == 0;
}

/*
 * Reads all of @fd, up to one byte more than the limit of a document: the decoder then reports that it is
 * too big.
 */
static int read_stream(int fd, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char block[16384];

        while (buf.size <= LKG_DOC_BYTES_MAX) {
                ssize_t n = read(fd, block, sizeof(block));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                lkg_buf_append(&buf, block, (size_t)n);
        }
        (void)lkg_buf_text(&buf); /* no input is an empty document */
        *ret = lkg_tool_keep(lkg_buf_steal(&buf, ret_size));
        return 0;
}

int lkg_tool_read_input(const char *path, char **ret, size_t *ret_size, struct lkg_error *err)
{
        static char *input; /* it is there once, and may be asked for again */
        static size_t input_size;
        bool in = lkg_tool_is_stdin(path);
        LKG_CLEANUP(lkg_closep) int fd = in ? -EBADF : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        int r = in && input ? 0
                : in        ? read_stream(STDIN_FILENO, &input, &input_size)
                : fd < 0    ? -errno
                            : read_stream(fd, ret, ret_size);

        if (r == 0 && in) {
                *ret = input;
                *ret_size = input_size;
        }
        if (r == 0)
                return 0;
        return in ? lkg_error_set(err, r, NULL, "read standard input")
                  : lkg_error_set(err, r, NULL, "read '%s'", path);
}

/*
 * JSON is YAML, too, but a number beyond a float64 is a text in YAML, while upstream's JSON decoder refuses it.
 * @report gets only that; what else is wrong with it as JSON (it may be YAML in flow style) does not matter.
 */
static int refuse_huge(const char *data, size_t size, struct lkg_source *source, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report found = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        int r = lkg_decode(data, size, LKG_FORMAT_JSON, LKG_DECODE_UNTYPED, source, &found, &doc);

        if (r != -EBADMSG)
                return r;
        for (size_t i = 0; i < found.n_findings; i++) {
                if (found.findings[i].code != LKG_C_SCALAR)
                        continue;
                lkg_report_add_copy(report, &found.findings[i]);
                return -EBADMSG;
        }
        return 0;
}

int lkg_tool_read_doc(const struct lkg_tool *tool, const char *path, bool as_yaml, unsigned decode_flags,
                      struct lkg_report *report, enum lkg_format *ret_format, struct lkg_value **ret)
{
        char *data = NULL;
        struct lkg_error err = { 0 };
        struct lkg_source *source;
        enum lkg_format format;
        size_t size;
        int r;

        r = lkg_tool_read_input(path, &data, &size, &err);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
        source = lkg_must(lkg_source_new(path, path));
        if (as_yaml) {
                format = lkg_detect_format(data, size);
                r = lkg_decode_yaml(data, size, decode_flags, source, report, ret);
                if (r == 0 && format == LKG_FORMAT_JSON)
                        r = refuse_huge(data, size, source, report);
                if (r == -EBADMSG)
                        *ret = lkg_value_unref(*ret);
        } else {
                r = lkg_decode_patch(data, size, decode_flags, source, report, &format, ret);
        }
        lkg_source_unref(source);
        (void)lkg_tool_own(*ret);
        if (r == -EBADMSG)
                return LKG_TOOL_DIFFERENT;
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "'%s': %s", path, strerror(-r));
        if (ret_format)
                *ret_format = format;
        return LKG_TOOL_OK;
}

/* ---- --remote ---- */

#define KEY_NOTE "lkgfs.io/config-key"

/* Default settings: only the object's own trial settings are checked here. */
static const struct lkg_trial_settings trial_settings = {
        .duration_ns = 600 * LKG_NSEC_PER_SEC,
        .threshold = LKG_TRIAL_THRESHOLD_MAX,
};

/* Turns `FILE:LINE:COLUMN: text` of an error about @file into position and text of a finding. */
static void add_refusal(const char *file, const struct lkg_error *err, struct lkg_report *report)
{
        struct lkg_where where = { .file = file };
        const char *text = err->message;
        size_t n = strlen(file);

        if (strncmp(text, file, n) == 0 && text[n] == ':') {
                int used = 0;

                text += n;
                if (sscanf(text, ":%u:%u: %n", &where.line, &where.column, &used) == 2 && used)
                        text += used;
                else
                        text += 1 + (text[1] == ' ');
        }
        lkg_report_add(report, LKG_ERROR, 6006, &where, "%s", text);
}

/* --remote-key, else the object's own key, else the default. */
static int choose_source(const struct lkg_tool *tool, const struct lkg_configmap *configmap,
                         struct lkg_config_source *ret, struct lkg_error *err)
{
        const char *key = tool->options.remote_key;
        struct lkg_reference reference;
        int r;

        if (!key)
                key = lkg_configmap_annotation(configmap, KEY_NOTE);
        r = lkg_reference_from_parts(configmap->ns, configmap->name, key ? key : "", "", &reference, err);
        if (r < 0)
                return tool->options.remote_key ? r : lkg_error_wrap(err, r, "annotation " KEY_NOTE);
        return lkg_configmap_resolve(configmap, &reference, ret, err);
}

/* Takes over @configmap. */
static int make_base(const struct lkg_tool *tool, struct lkg_configmap *configmap,
                     struct lkg_remote_base **ret, struct lkg_report *report)
{
        const struct lkg_where where = { .file = tool->options.remote };
        struct lkg_config_source source;
        struct lkg_rollout rollout;
        struct lkg_error err = { 0 };
        int r = choose_source(tool, configmap, &source, &err);

        if (r < 0) {
                lkg_configmap_deinit(configmap);
                if (tool->options.remote_key)
                        return lkg_tool_fail(tool, LKG_TOOL_USAGE, "--remote-key: %s", err.message);
                add_refusal(tool->options.remote, &err, report);
                return LKG_TOOL_DIFFERENT;
        }
        lkg_rollout_decide(configmap, "", &rollout);
        if (rollout.state == LKG_ROLLOUT_UNCLEAR) /* as a node reports it, whatever the document is like */
                lkg_report_add(report, LKG_WARNING, 7007, &where, "%s; no node switches to it",
                               rollout.words);
        *ret = lkg_remote_base_new(configmap, &source, &trial_settings, report);
        return (*ret)->text ? LKG_TOOL_OK : LKG_TOOL_DIFFERENT;
}

int lkg_tool_remote_load(const struct lkg_tool *tool, struct lkg_remote_base **ret,
                         struct lkg_report *report)
{
        const char *path = tool->options.remote, *text = tool->remote_text;
        const struct lkg_configmap_options options = {
                .max_bytes = LKG_DOC_BYTES_MAX,
                .from_file = true,
                .file = path,
        };
        char *data = NULL;
        struct lkg_configmap configmap;
        struct lkg_error err = { 0 };
        size_t size = tool->remote_size;
        int r;

        if (!text) {
                r = lkg_tool_read_input(path, &data, &size, &err);
                if (r < 0)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
                text = data;
        }
        r = lkg_configmap_parse(text, size, &options, &configmap, &err);
        switch (r) {
        case 0:
                return make_base(tool, &configmap, ret, report);
        case -ENODATA:
                lkg_tool_note(tool, "%s", err.message);
                return LKG_TOOL_OK;
        case -EINVAL:
        case -EBADMSG:
        case -EFBIG:
                add_refusal(path, &err, report);
                return LKG_TOOL_DIFFERENT;
        }
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
}

/* ---- layers ---- */

bool lkg_tool_has_sources(const struct lkg_tool *tool)
{
        return tool->options.config || tool->options.config_dir || tool->options.instance_config ||
               tool->options.remote;
}

int lkg_tool_no_document(const struct lkg_tool *tool)
{
        const struct {
                const char *path, *where, *what;
        } places[] = {
                { tool->options.config, "", "base" },
                { tool->options.config_dir, "/*.conf", "drop-in" },
                { tool->options.instance_config, "", "instance" },
        };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(places); i++) {
                lkg_buf_printf(&text, "%sno %s", i ? ", " : "", places[i].what);
                if (places[i].path)
                        lkg_buf_printf(&text, " (%s%s)", places[i].path, places[i].where);
        }
        return lkg_tool_fail(tool, LKG_TOOL_DIFFERENT, "there is no document: %s", lkg_buf_text(&text));
}

static const char *private_directory;
static pid_t its_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        (void)remove(path);
        return 0;
}

static void remove_private(void)
{
        if (getpid() == its_owner)
                (void)nftw(private_directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *lkg_tool_directory(void)
{
        const char *tmp = getenv("TMPDIR");
        char *path = lkg_tool_format("%s/lkgfs-XXXXXX", tmp && *tmp ? tmp : "/tmp");

        if (private_directory)
                return private_directory;
        if (!mkdtemp(path))
                return NULL;
        private_directory = path;
        its_owner = getpid();
        (void)atexit(remove_private);
        return path;
}

static int store_stdin(struct lkg_tool_sources *sources, struct lkg_error *err)
{
        const char *directory = lkg_tool_directory();
        char *data = NULL;
        size_t size;
        int r = directory ? lkg_tool_read_input("-", &data, &size, err)
                          : lkg_error_set(err, -errno, NULL, "temporary directory");

        if (r < 0)
                return r;
        sources->dirfd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (sources->dirfd < 0)
                return lkg_error_set(err, -errno, NULL, "open '%s'", directory);
        return lkg_write_file_atomic(sources->dirfd, "-", data, size, 0600, false, err);
}

/* The other sources are in the working directory, not next to the copy of standard input. */
static int make_absolute(const char **path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *cwd = NULL;

        if (!**path || **path == '/' || lkg_tool_is_stdin(*path))
                return 0;
        cwd = getcwd(NULL, 0);
        if (!cwd)
                return lkg_error_set(err, -errno, NULL, "working directory");
        *path = lkg_tool_format("%s/%s", cwd, *path);
        return 0;
}

/*
 * A named file that is missing or unreadable is the caller's mistake and not the document's: exit status 2.
 */
static int check_readable(const struct lkg_tool *tool, const char *path)
{
        if (!path || lkg_tool_is_stdin(path) || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
                return LKG_TOOL_OK;
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "read '%s': %s", path, strerror(errno));
}

static int prepare(const struct lkg_tool *tool, struct lkg_stack_config *config,
                   struct lkg_tool_sources *sources, struct lkg_error *err)
{
        const char *base = tool->options.config;
        int r;

        /* With a remote the base only says where relative paths start. Standard input has no place. */
        if (!base || (sources->remote && lkg_tool_is_stdin(base)))
                base = "";
        *config = (struct lkg_stack_config){
                .component = tool->options.component ? tool->options.component : "component",
                .source_path = "",
                .base = base,
                .dropin_dir = tool->options.config_dir ? tool->options.config_dir : "",
                .dropin_dir_required = true,
                .instance = tool->options.instance_config ? tool->options.instance_config : "",
                .instance_required = true,
                .patches_dir = "",
                .patches_target = "",
                .kind = tool->options.kind ? tool->options.kind : "",
                .api_version = "",
        };
        if (lkg_tool_is_stdin(config->base) || lkg_tool_is_stdin(config->instance)) {
                r = store_stdin(sources, err);
                if (r < 0)
                        return r;
                /* At most one of the two is `-`: make the other one and the directory absolute. */
                r = make_absolute(lkg_tool_is_stdin(config->base) ? &config->instance : &config->base, err);
                if (r == 0)
                        r = make_absolute(&config->dropin_dir, err);
                if (r < 0)
                        return r;
        }
        config->source_fd = sources->dirfd;
        return 0;
}

/*
 * Images are built and changes are reviewed on machines other than the node: facts of a host are used only
 * if it is named.
 */
static struct lkg_host host_of(const struct lkg_tool *tool)
{
        struct lkg_host host = { .cgroup = 0 };

        if (tool->options.host == LKG_TOOL_HOST_THIS)
                lkg_host_detect(&host);
        else
                host.cgroup = tool->options.host; /* the files of the other machine are not here */
        host.stated = tool->options.host != 0;
        return host;
}

/* The documents are judged as the named release of the component, with the named flags, would judge them. */
static void set_judge(const struct lkg_tool *tool, struct lkg_tool_sources *sources)
{
        struct lkg_judge_config config = {
                .release = tool->options.release,
                .runs = tool->options.runs,
                .flags = (const char *const *)tool->flags,
                .n_flags = tool->n_flags,
                .lint = true,
                .lint_all = tool->options.all,
                .startup_refuses = tool->verb->refuses_start,
                .host = host_of(tool),
        };

        sources->judge = lkg_judge_new(&config);
        lkg_stack_set_judge(sources->stack, lkg_judge_candidate, sources->judge);
}

static int check_usage(const struct lkg_tool *tool)
{
        const struct lkg_tool_options *options = &tool->options;

        if (options->remote_key && !options->remote)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "--remote-key needs --remote FILE");
        if (!lkg_tool_has_sources(tool))
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "which documents? Name them: --config BASE or --remote CONFIGMAP-FILE, "
                                     "--config-dir DIR, --instance-config FILE; without them this node is "
                                     "judged, and it has no %s",
                                     lkg_tool_node_path(tool));
        if (lkg_tool_is_stdin(options->config) + lkg_tool_is_stdin(options->instance_config) +
                    lkg_tool_is_stdin(options->remote) >
            1)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "only one of the documents can be standard input");
        return LKG_TOOL_OK;
}

/* The candidate is not shared yet, so it may still be changed. */
void lkg_tool_add_findings(struct lkg_candidate *candidate, struct lkg_report *report)
{
        const struct lkg_report merged = candidate->report;

        lkg_report_append(report, &merged); /* lowest layer first */
        candidate->report = *report;
        *report = merged;
        if (!candidate->report.n_severity[LKG_ERROR])
                return;
        candidate->state = LKG_CANDIDATE_INVALID;
        candidate->doc = lkg_value_unref(candidate->doc);
        candidate->effective = lkg_value_unref(candidate->effective);
}

/* @refused: nothing is merged with a ConfigMap that is refused as a whole */
static int build(const struct lkg_tool *tool, bool refused, struct lkg_tool_sources *sources,
                 struct lkg_error *err)
{
        struct lkg_stack_remote remote = { 0 };
        struct lkg_stack_config config;
        int r;

        r = prepare(tool, &config, sources, err);
        if (refused)
                config.base = config.dropin_dir = config.instance = "";
        if (r == 0) {
                sources->stack = lkg_stack_new(&config);
                set_judge(tool, sources);
                r = lkg_stack_look(sources->stack, NULL, 0, err);
        }
        if (sources->remote)
                remote = lkg_remote_base_stack(sources->remote);
        return r < 0 ? r : lkg_stack_over(sources->stack, &remote, &sources->candidate, err);
}

static int load(const struct lkg_tool *tool, struct lkg_tool_sources *sources)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        int status = LKG_TOOL_OK;
        struct lkg_error err = { 0 };
        bool refused;

        if (tool->options.remote)
                status = lkg_tool_remote_load(tool, &sources->remote, &report);
        refused = status == LKG_TOOL_DIFFERENT;
        if (status == LKG_TOOL_OK && !sources->remote)
                status = check_readable(tool, tool->options.config);
        if (status == LKG_TOOL_OK)
                status = check_readable(tool, tool->options.instance_config);
        if (status != LKG_TOOL_OK && !refused)
                return status;
        if (build(tool, refused, sources, &err) < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
        lkg_tool_add_findings(sources->candidate, &report);
        return LKG_TOOL_OK;
}

/* Of this node, with findings about its configuration on standard error. */
static int load_node(const struct lkg_tool *tool, struct lkg_tool_sources **ret)
{
        struct lkg_tool_node *node;
        int status = lkg_tool_node_open(tool, &node);

        if (status != LKG_TOOL_FAILED)
                lkg_tool_print_findings(tool, STDERR_FILENO, &node->report);
        return status == LKG_TOOL_OK
                       ? lkg_tool_node_judge(tool, node, lkg_tool_node_component(tool, node), ret)
                       : status;
}

int lkg_tool_sources_load(const struct lkg_tool *tool, struct lkg_tool_sources **ret)
{
        int status;

        if (!lkg_tool_has_sources(tool) && lkg_tool_has_node(tool))
                return load_node(tool, ret);
        *ret = lkg_tool_keep(calloc(1, sizeof(**ret)));
        (*ret)->dirfd = AT_FDCWD;
        status = check_usage(tool);
        return status == LKG_TOOL_OK ? load(tool, *ret) : status;
}
