/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool `lkgfs`: one table of verbs, one file per verb.
 *
 * A verb gets its parsed command line and returns an exit status. It prints its product on standard output,
 * findings and messages on standard error; both go through output.c, so that colour and write errors are
 * handled once.
 *
 * Offline verbs link core/layers and read plain files. The others only read and write the files of a mounted
 * view (status/, history/, control/): there is no other protocol, so that a shell can do everything that the
 * tool does.
 *
 * One thread. Nothing here outlives main().
 */
#pragma once

#include <lkg/base.h>
#include <lkg/text.h>
#include <lkg/config.h>
#include <lkg/documents.h>
#include <lkg/facts.h>
#include <lkg/stack.h>

/* Exit statuses: lkgfs(1), EXIT STATUS. */
enum {
        LKG_TOOL_OK = 0,
        LKG_TOOL_DIFFERENT = 1, /* findings, a difference, "no" */
        LKG_TOOL_FAILED = 2,    /* unreadable input, no mount, no memory, a refused command */
        LKG_TOOL_USAGE = 64,
};

#define LKG_TOOL_HOST_THIS 3u /* the current machine */

enum lkg_tool_format {
        LKG_TOOL_NATIVE,
        LKG_TOOL_TEXT,
        LKG_TOOL_JSON,
        LKG_TOOL_YAML,
        LKG_TOOL_SARIF, /* check */
        LKG_TOOL_GITHUB,
        LKG_TOOL_HTML, /* report */
        LKG_TOOL_TAR,
};

enum lkg_tool_colour { LKG_COLOUR_AUTO, LKG_COLOUR_ALWAYS, LKG_COLOUR_NEVER };

/* The options that a verb accepts; one bit per group of options that belong together. */
enum lkg_tool_option_bits {
        LKG_OPT_FORMAT = 1 << 0,
        LKG_OPT_STACK = 1 << 1,  /* --config, --config-dir, --instance-config, --kind */
        LKG_OPT_VIEW = 1 << 2,   /* --component, --mountpoint, --virtual-dir */
        LKG_OPT_STRICT = 1 << 3, /* convert */
        LKG_OPT_PATCH = 1 << 4,  /* --type, --kind */
        LKG_OPT_BAKE = 1 << 5,   /* --output, --force */
        LKG_OPT_TIMEOUT = 1 << 6,
        LKG_OPT_MOUNT = 1 << 7,   /* mount: --config is our own configuration */
        LKG_OPT_JUDGE = 1 << 8,   /* --release, --host, --remote, --remote-key; component flags after `--` */
        LKG_OPT_EXPLAIN = 1 << 9, /* --kind, --release */
        LKG_OPT_CHECK = 1 << 10,  /* npd */
        LKG_OPT_ALL = 1 << 11,    /* status */
        LKG_OPT_DIFF = 1 << 13,   /* --pending, --running, --bad */
        LKG_OPT_EFFECTIVE = 1 << 14,
        LKG_OPT_ROOT = 1 << 15,     /* --dry-run, --root, --force */
        LKG_OPT_ADOPT = 1 << 16,    /* --over, --release */
        LKG_OPT_SCHEMA = 1 << 17,   /* --release */
        LKG_OPT_FINDINGS = 1 << 18, /* the formats and the exit status of check */
        LKG_OPT_REPORT = 1 << 19,   /* its formats, --file, --log */
        LKG_OPT_FLEET =
                1
                << 20, /* --kubeconfig, --context, --rollout-namespace, --halt, --resume, --forgive, --watch */
        LKG_OPT_CLUSTER = 1 << 21, /* --configmap, --kubeconfig, --context */
        LKG_OPT_NODE =
                1 << 12, /* --node-config, --component, --mountpoint: this node, if no documents are named */
};

struct lkg_tool_options {
        const char *component, *mountpoint, *virtual_dir;
        const char *config, *config_dir, *instance_config, *kind;
        const char *type;        /* patch: "merge", "strategic" */
        const char *directory;   /* bake */
        const char *check;       /* npd: "condition", "served", "bad", "processes"; NULL = the first */
        const char *remote;      /* a file with a ConfigMap; NULL = none */
        const char *configmap;   /* check: NAMESPACE/NAME[/KEY] in a cluster; NULL = none */
        const char *file, *log;  /* report */
        const char *node_config; /* our own configuration; NULL = the default */
        const char *remote_key;  /* key of its data; NULL = the one that the object names, else `kubelet` */
        const char *root;        /* adopt, abandon: NULL = this node */
        unsigned release;        /* 136 is 1.36; 0 = the latest known */
        unsigned runs;           /* check --release 1.36..1.37: the first; 0 = not given */
        unsigned host; /* version of the cgroup hierarchy, 1 or 2; LKG_TOOL_HOST_THIS; 0 = not given */
        enum lkg_tool_format format;
        enum lkg_tool_colour colour;
        bool strict, force, effective, help, version;
        bool all;              /* status: notes, too; check: each of them */
        bool pending, running; /* diff */
        const char *bad;       /* diff: the id of a mark */
        bool watch;            /* status, rollout */
        bool dry_run, over;    /* adopt, abandon */
        bool errors_only;      /* check */
        const char *against;   /* check: the document before; NULL = none */
        const char *kubeconfig, *context, *rollout_namespace, *forgive; /* rollout; NULL = not given */
        bool halt, resume;                                              /* rollout */
        bool has_timeout;
        uint64_t timeout_ns;
};

struct lkg_tool_verb;

/* One command line. Strings are borrowed from argv and the environment. */
struct lkg_tool {
        const struct lkg_tool_verb *verb;
        struct lkg_tool_options options;
        char **words; /* words that are neither the verb nor an option */
        size_t n_words;
        char **flags; /* LKG_OPT_JUDGE: the words after `--`, the component's own command line */
        size_t n_flags;
        /* What options.remote holds, which is its name only then: it was read already. NULL = not yet */
        const char *remote_text;
        size_t remote_size;
        /* messages are written here instead of to standard error; NULL = standard error */
        char (*said)[512];
};

struct lkg_tool_verb {
        const char *name, *words; /* "hold", "on|off" */
        const char *help;         /* one line, at most 60 columns */
        const char *example;      /* one valid command */
        unsigned options;         /* enum lkg_tool_option_bits */
        unsigned min_words, max_words;
        unsigned limit_s; /* seconds until "does not answer"; 0 = offline, or waits by design */
        int (*run)(const struct lkg_tool *tool);
        bool only_named; /* typed rarely, or by units and monitors: the overview only names it */
        /*
         * Called in the parent after the message, if the mount does not answer within limit_s; NULL =
         * LKG_TOOL_FAILED.
         */
        int (*silent)(const struct lkg_tool *tool);
        bool refuses_start; /* reports as an error what would keep the component from starting */
        bool on_one_line;   /* the overview has one line for this verb and the next one */
};

/* verbs.c */
extern const struct lkg_tool_verb lkg_tool_verbs[];
extern const size_t lkg_n_tool_verbs;
const struct lkg_tool_verb *lkg_tool_find_verb(const char *name);
/** lkg_tool_nearest() - the verb that was probably meant (edit distance at most 2, or a prefix), or NULL. */
const char *lkg_tool_nearest(const char *name);

/* arguments.c */
/**
 * lkg_tool_parse() - read a command line.
 * @tool:  filled in; @tool->words points into @argv, which is reordered
 * @message: the reason for a failure, one sentence without a final newline
 *
 * Return: 0; -EINVAL with @message set.
 */
int lkg_tool_parse(struct lkg_tool *tool, int argc, char **argv, char message[static 512]);
/** lkg_tool_release() - "1.36", "v1.36.3": 136 is 1.36. Return: 0 or -EINVAL. */
int lkg_tool_release(const char *text, unsigned *ret);
/** lkg_tool_check_release() - are there tables for what --release names? Return: LKG_TOOL_OK; LKG_TOOL_USAGE after a message. */
int lkg_tool_check_release(const struct lkg_tool *tool);
/** lkg_tool_format_options() - the options in @bits, one per line, for `VERB --help`. */
void lkg_tool_format_options(unsigned bits, struct lkg_buf *buf);

/* verbs.c */
void lkg_tool_help(struct lkg_buf *buf);
void lkg_tool_verb_help(const struct lkg_tool_verb *verb, struct lkg_buf *buf);

/* output.c */
/** lkg_tool_colour_for() - may escape sequences go to @fd (--color, NO_COLOR, TERM, a terminal)? */
bool lkg_tool_colour_for(const struct lkg_tool *tool, int fd);
/* start of a colour, "" without colour */
const char *lkg_tool_paint(bool colour, enum lkg_severity severity);
const char *lkg_tool_paint_end(bool colour);
/**
 * lkg_tool_render() - render @doc for standard output. JSON keeps a number that does not fit into a float64,
 * but YAML readers would read it as a string: then only a message is printed.
 * Return: LKG_TOOL_OK or LKG_TOOL_FAILED.
 */
int lkg_tool_render(const struct lkg_tool *tool, const struct lkg_value *doc, enum lkg_format format,
                    struct lkg_buf *buf);
/** lkg_tool_render_masked() - render @doc with secret values as "<masked>". Return: 0, -ENOMEM. */
int lkg_tool_render_masked(const struct lkg_value *doc, enum lkg_format format, struct lkg_buf *buf);
/** lkg_tool_print() - print @buf on standard output. Return: @status, or LKG_TOOL_FAILED with a message. */
int lkg_tool_print(const struct lkg_buf *buf, int status);
/** lkg_tool_print_value() - print @value as YAML or JSON; the text format means YAML. */
int lkg_tool_print_value(const struct lkg_value *value, enum lkg_tool_format format, int status);
/** lkg_tool_fail() - print `lkgfs VERB: message` on standard error. Return: @status. */
int lkg_tool_fail(const struct lkg_tool *tool, int status, const char *fmt, ...) LKG_PRINTF(3, 4);
/** lkg_tool_note() - the same for messages that are not failures. */
void lkg_tool_note(const struct lkg_tool *tool, const char *fmt, ...) LKG_PRINTF(2, 3);
/**
 * lkg_tool_put_clean() - @text with `?` for each control character, so that it remains one line and cannot
 * control a terminal.
 */
void lkg_tool_put_clean(struct lkg_buf *buf, const char *text);
/** lkg_tool_paint_diff() - a unified diff with colours. */
void lkg_tool_paint_diff(const char *text, size_t size, struct lkg_buf *buf);
/** lkg_tool_arrange() - a copy of @report as it is shown: lkg_report_arrange(), --all. */
void lkg_tool_arrange(const struct lkg_tool *tool, const struct lkg_report *report, struct lkg_report *ret);
/** lkg_tool_print_findings() - print the findings on @fd, arranged, coloured on a terminal. */
void lkg_tool_print_findings(const struct lkg_tool *tool, int fd, const struct lkg_report *report);
/** lkg_tool_paint_findings() - add finding lines of a report or of status/<component>/findings to @buf. */
void lkg_tool_paint_findings(bool colour, const char *text, const char *indent, struct lkg_buf *buf);

/*
 * value.c: builders that never return an incomplete tree; out of memory, the map stays as it was and *failed
 * becomes true.
 */
struct lkg_tool_map {
        struct lkg_value *value;
        bool failed;
};
void lkg_tool_map_init(struct lkg_tool_map *map, bool schema_version);
void lkg_tool_map_deinit(struct lkg_tool_map *map);
void lkg_tool_map_string(struct lkg_tool_map *map, const char *key, const char *text); /* NULL: omitted */
void lkg_tool_map_number(struct lkg_tool_map *map, const char *key, uint64_t number);
void lkg_tool_map_bool(struct lkg_tool_map *map, const char *key, bool b);
/* takes it over */
void lkg_tool_map_value(struct lkg_tool_map *map, const char *key, struct lkg_value *value);
/* takes it over */
void lkg_tool_list_take(struct lkg_value *list, struct lkg_tool_map *item, bool *failed);
/** lkg_tool_print_map() - print and release @map. */
int lkg_tool_print_map(const struct lkg_tool *tool, struct lkg_tool_map *map, int status);
/** @class_of: NULL, or gives each finding its member `class` */
struct lkg_value *lkg_tool_findings_value(const struct lkg_report *report,
                                          const char *(*class_of)(const struct lkg_finding *finding));
/**
 * lkg_tool_findings_take() - read those of status/<c>/findings.json.
 * Return: false: it is not a list of findings.
 */
bool lkg_tool_findings_take(const struct lkg_value *map, struct lkg_report *ret);
/**
 * lkg_tool_findings_parse() - parse the lines of status/<c>/findings into a report. Other lines are ignored.
 */
void lkg_tool_findings_parse(const char *text, struct lkg_report *ret);

/* this-node.c: this node, as its lkgfs configuration describes it */
struct lkg_tool_node {
        struct lkg_config *config; /* NULL: it has errors, see report */
        struct lkg_report report;  /* about it */
        char *source_path;
        int source_fd;            /* below the view */
        int runtime_fd, state_fd; /* through read-only mounts; negative: nothing is known */
};
#define LKG_TOOL_NODE_INIT                                                    \
        {                                                                     \
                .source_fd = -EBADF, .runtime_fd = -EBADF, .state_fd = -EBADF \
        }
struct lkg_tool_sources;
const char *lkg_tool_node_path(const struct lkg_tool *tool);
/** lkg_tool_has_node() - was a configuration named, or is there one at the default place? */
bool lkg_tool_has_node(const struct lkg_tool *tool);
/** lkg_tool_node_read() - read the configuration, choose the source directory, and open nothing. */
int lkg_tool_node_read(const struct lkg_tool *tool, struct lkg_tool_node *ret);
/**
 * lkg_tool_node_open() - the same; then find its directories below the view, in a mount namespace of our own.
 * Return: LKG_TOOL_OK; LKG_TOOL_DIFFERENT: the report has errors; LKG_TOOL_FAILED after a message.
 */
int lkg_tool_node_open(const struct lkg_tool *tool, struct lkg_tool_node *ret);
void lkg_tool_node_close(struct lkg_tool_node *node);
/** lkg_tool_node_component() - --component, else the only one. Return: LKG_TOOL_OK, or a status after a message. */
int lkg_tool_node_component(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                            const struct lkg_config_component **ret);
/** lkg_tool_node_judge() - judge the layers of @component. @ret borrows from @node. */
int lkg_tool_node_judge(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                        const struct lkg_config_component *component, struct lkg_tool_sources *ret);
/** lkg_tool_node_load() - the three above, with findings about the configuration on standard error. */
int lkg_tool_node_load(const struct lkg_tool *tool, struct lkg_tool_sources *ret);

/* sources.c: input of the offline verbs */
struct lkg_tool_sources {
        /* of lkg_tool_node_load(): the rest borrows from it; NULL = documents were named */
        struct lkg_tool_node *node;
        struct lkg_stack *stack;
        struct lkg_judge *judge;
        struct lkg_remote_base *remote; /* NULL = the base is a file, or missing */
        struct lkg_candidate *candidate;
        int dirfd;                   /* contains standard input as the file "-", or is AT_FDCWD */
        char *directory;             /* its path; removed at the end */
        char *config_dir, *instance; /* absolute if dirfd is not the working directory */
        struct lkg_facts *facts;     /* of a node: the component that runs; NULL = unknown */
        unsigned upgraded_from;      /* lkg_tool_add_upgrade(): the release before, 0 = no upgrade */
        struct lkg_value *changes;   /* likewise: lkg_judge_upgrade() */
};
/* ---- an upgrade: upgrade.c ---- */

/** lkg_tool_upgrade_from() - the release that is to be left for that of --release; 0 = none, or unknown. */
unsigned lkg_tool_upgrade_from(const struct lkg_tool *tool, const struct lkg_tool_sources *then);
/**
 * lkg_tool_add_upgrade() - add what changes from @now, the same documents in the release that is left; with a range of releases
 * only that stays in the report of @then.
 * Return: LKG_TOOL_OK; another exit status after a message.
 */
int lkg_tool_add_upgrade(const struct lkg_tool *tool, const struct lkg_tool_sources *now,
                         struct lkg_tool_sources *then);
/** lkg_tool_upgrade_class() - stops, changes, deprecated, other. */
const char *lkg_tool_upgrade_class(const struct lkg_finding *finding);
/** lkg_tool_print_upgrade() - the findings under a heading for each class. */
void lkg_tool_print_upgrade(const struct lkg_tool *tool, const struct lkg_report *report);

/**
 * lkg_tool_sources_load() - build the candidate of --config or --remote, --config-dir and --instance-config; if none of them is
 * given, that of this node.
 * Return: LKG_TOOL_OK, even for an invalid candidate; another exit status after a message.
 */
int lkg_tool_sources_load(const struct lkg_tool *tool, struct lkg_tool_sources *ret);
void lkg_tool_sources_deinit(struct lkg_tool_sources *sources);
/** lkg_tool_add_findings() - findings that belong before those of @candidate, which nobody else uses yet; an error refuses it. */
void lkg_tool_add_findings(struct lkg_candidate *candidate, struct lkg_report *report);
/** lkg_tool_has_sources() - was any of the four options given? */
bool lkg_tool_has_sources(const struct lkg_tool *tool);
/**
 * lkg_tool_no_document() - report that nothing was found, and where it was searched for.
 * Return: LKG_TOOL_DIFFERENT.
 */
int lkg_tool_no_document(const struct lkg_tool *tool);
/* arguments.c, for the completion */
struct lkg_tool_option {
        const char *name, *value, *help; /* value NULL = has none */
        int kind;                        /* private to arguments.c */
};
/** lkg_tool_option_at() - the @i-th option of a verb with these @bits. Return: is there one? */
bool lkg_tool_option_at(unsigned bits, size_t i, struct lkg_tool_option *ret);
/** lkg_tool_option_named() - the option of @arg ("--output=json", "-o"); @bits 0 = of any verb. Return: is there one? */
bool lkg_tool_option_named(unsigned bits, const char *arg, struct lkg_tool_option *ret);
/** lkg_tool_option_word() - the @i-th of the words that are its only values; NULL = no more. */
const char *lkg_tool_option_word(const struct lkg_tool_option *option, size_t i);

/* against.c */
/**
 * lkg_tool_judge_against() - --against: add to the report of @candidate what a change from that document needs, LKG5060 and
 * LKG5061.
 * Return: LKG_TOOL_OK; LKG_TOOL_FAILED after a message.
 */
int lkg_tool_judge_against(const struct lkg_tool *tool, struct lkg_candidate *candidate);

/* input.c */
bool lkg_tool_is_stdin(const char *path);
/**
 * lkg_tool_read_input() - read one file ("-": standard input), up to one byte more than the limit of a
 * document. 0 or -errno.
 */
int lkg_tool_read_input(const char *path, char **ret, size_t *ret_size, struct lkg_error *err);
/**
 * lkg_tool_read_doc() - read one file ("-": standard input) as a value tree.
 * @as_yaml: read JSON as YAML, too, like sigs.k8s.io/yaml; else like lkg_decode_patch()
 * @ret_format: its format, for the output; may be NULL
 * Return: LKG_TOOL_OK; LKG_TOOL_DIFFERENT: @report has the reason why it is refused; LKG_TOOL_FAILED after a
 * message.
 */
int lkg_tool_read_doc(const struct lkg_tool *tool, const char *path, bool as_yaml, unsigned decode_flags,
                      struct lkg_report *report, enum lkg_format *ret_format, struct lkg_value **ret);
/** lkg_tool_render_format() - the output format of a document: -o, else that of the input. */
enum lkg_format lkg_tool_render_format(const struct lkg_tool *tool, enum lkg_format input);

/* remote.c */
struct lkg_remote_base;
/**
 * lkg_tool_remote_load() - load the ConfigMap of --remote.
 * @ret: caller frees; not changed if the file selects the local configuration
 * @report: why it is refused (LKG6004 to LKG6006)
 * Return: LKG_TOOL_OK, also with LKG6005 in @report; LKG_TOOL_DIFFERENT if it is refused as a whole; another
 * exit status after a message.
 */
int lkg_tool_remote_load(const struct lkg_tool *tool, struct lkg_remote_base **ret,
                         struct lkg_report *report);

/* view.c: files that the other verbs read and write */
struct lkg_view {
        char *mountpoint;
        char *root; /* mount point, or the virtual directory below it */
        int fd;     /* O_PATH of root */
};
/** lkg_view_find_mount() - mount points of type fuse.lkgfs in @mountinfo (its text), one string each. */
int lkg_view_find_mounts(const char *mountinfo, char ***ret, size_t *ret_n);
void lkg_view_free_mounts(char **mounts, size_t n);
int lkg_view_read_mountinfo(char **ret);
/** lkg_view_is_there() - was a mount point named, or is there one? */
bool lkg_view_is_there(const struct lkg_tool *tool);
/** lkg_view_open() - find the mount. Return: LKG_TOOL_OK; LKG_TOOL_FAILED after a message. */
int lkg_view_open(const struct lkg_tool *tool, struct lkg_view *ret);
void lkg_view_close(struct lkg_view *view);
/**
 * lkg_view_components() - the names below status/, sorted. Caller frees with lkg_view_free_mounts(). 0 or
 * -errno.
 */
int lkg_view_components(const struct lkg_view *view, char ***ret, size_t *ret_n);
/**
 * lkg_view_bad_names() - the names in bad/<component>/, sorted; none if the directory is missing. Caller
 * frees with lkg_view_free_mounts(). 0 or -errno.
 */
int lkg_view_bad_names(const struct lkg_view *view, const char *component, char ***ret, size_t *ret_n);
/**
 * lkg_view_component() - --component, else the only one.
 * Return: LKG_TOOL_OK, caller frees *ret; else an exit status.
 */
int lkg_view_component(const struct lkg_tool *tool, const struct lkg_view *view, char **ret);
/**
 * lkg_view_read() - read one file below the root, without its final newline.
 * Return: 0 or -errno. Caller frees.
 */
int lkg_view_read(const struct lkg_view *view, char **ret, struct stat *ret_st, const char *fmt, ...)
        LKG_PRINTF(4, 5);
/**
 * lkg_view_write() - write @text to @path below the root, with one write(2); if refused, print last-error.
 * @flags: for open(2), in addition to O_WRONLY
 * Return: exit status.
 */
int lkg_view_write(const struct lkg_tool *tool, const struct lkg_view *view, const char *component,
                   const char *path, int flags, const char *text);
/** lkg_view_command() - one write to a control file; if refused, print last-error. Return: exit status. */
int lkg_view_command(const struct lkg_tool *tool, const char *command, const char *text);
/** lkg_view_read_json() - read one file as a map; NULL if it is missing. Caller owns one reference. */
struct lkg_value *lkg_view_read_json(const struct lkg_view *view, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_view_findings() - add those of @component to @ret. Return: 0; -errno, -EACCES for who is not root. */
int lkg_view_findings(const struct lkg_view *view, const char *component, struct lkg_report *ret);
/**
 * lkg_view_list_numbers() - the numbers that name the entries of @path, descending.
 * Return: 0 or -errno; caller frees.
 */
int lkg_view_list_numbers(const struct lkg_view *view, const char *path, uint64_t **ret, size_t *ret_n);

/* complete.c */
/** lkg_tool_complete() - print what could stand in the place of the last of @words. Return: exit status. */
int lkg_tool_complete(int n, char **words);

/* watch.c */
/** lkg_tool_watch() - run the verb once a second, print its output whenever it changes. Ends by a signal, or after a usage error. */
int lkg_tool_watch(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool));
/* What was shown last. All zero = nothing. */
struct lkg_screen {
        char *shown;
};
/**
 * lkg_screen_show() - print @text: on a terminal in the place of what was shown before, elsewhere only if it differs.
 * @compared: @text without what changes all the time
 * Return: LKG_TOOL_OK; LKG_TOOL_FAILED after a message.
 */
int lkg_screen_show(const struct lkg_tool *tool, struct lkg_screen *screen, const char *text,
                    const char *compared);
void lkg_screen_deinit(struct lkg_screen *screen);
/** lkg_tool_same_screen() - are the two equal, apart from ages ("(3 s ago)")? */
bool lkg_tool_same_screen(const char *a, const char *b);

/* after-change.c */
/** lkg_tool_put_changes() - append `=> FIELD: class: words` for each field that differs, the most expensive first. Return: 0 or -ENOMEM. */
int lkg_tool_put_changes(const struct lkg_value *before, const struct lkg_value *after, struct lkg_buf *buf);
/** lkg_tool_map_changes() - the same as the list `changes`. */
void lkg_tool_map_changes(struct lkg_tool_map *map, const struct lkg_value *before,
                          const struct lkg_value *after);

/** lkg_tool_put_changed() - append the name of the field. Return: 0 or -ENOMEM. */
struct lkg_field_change;
int lkg_tool_put_changed(const struct lkg_field_change *change, struct lkg_buf *buf);

/* suspects-show.c */
/** lkg_tool_put_suspects() - append a line for each suspect, if they are known. */
void lkg_tool_put_suspects(const struct lkg_value *suspects, struct lkg_buf *buf);
/** lkg_tool_suspects_missing() - why the record @mark has none; NULL = it has. */
const char *lkg_tool_suspects_missing(const struct lkg_value *mark);

/* view-diff.c */
/** lkg_tool_diff_is_of_view() - N, --pending, --running or --bad: it compares documents of the mounted view. */
bool lkg_tool_diff_is_of_view(const struct lkg_tool *tool);
int lkg_tool_diff_view(const struct lkg_tool *tool);

/* hang.c */
/**
 * lkg_tool_guard() - run the verb in a child process; if the mount does not answer, print a message and kill
 * it.
 */
int lkg_tool_guard(const struct lkg_tool *tool);

/* one file per verb */
int lkg_verb_render(const struct lkg_tool *tool);
int lkg_verb_check(const struct lkg_tool *tool);
int lkg_verb_blame(const struct lkg_tool *tool);
int lkg_verb_diff(const struct lkg_tool *tool);
int lkg_verb_edit(const struct lkg_tool *tool);
int lkg_verb_convert(const struct lkg_tool *tool);
int lkg_verb_patch(const struct lkg_tool *tool);
int lkg_verb_bake(const struct lkg_tool *tool);
int lkg_verb_explain(const struct lkg_tool *tool);
int lkg_verb_schema(const struct lkg_tool *tool);
int lkg_verb_status(const struct lkg_tool *tool);
int lkg_verb_history(const struct lkg_tool *tool);
int lkg_verb_doctor(const struct lkg_tool *tool);
int lkg_verb_drift(const struct lkg_tool *tool);
int lkg_verb_rollout(const struct lkg_tool *tool);
/** lkg_rollout_is_of_fleet() - `rollout` about a ConfigMap and not about this node: no view is needed. */
bool lkg_rollout_is_of_fleet(const struct lkg_tool *tool);
int lkg_verb_bad(const struct lkg_tool *tool);
int lkg_verb_command(const struct lkg_tool *tool); /* one write to the control file with the same name */
int lkg_verb_wait(const struct lkg_tool *tool);
int lkg_verb_gate(const struct lkg_tool *tool);
int lkg_verb_mount(const struct lkg_tool *tool);
int lkg_verb_adopt(const struct lkg_tool *tool);
int lkg_verb_abandon(const struct lkg_tool *tool);
int lkg_verb_npd(const struct lkg_tool *tool);
int lkg_verb_report(const struct lkg_tool *tool);
int lkg_npd_silent(const struct lkg_tool *tool); /* struct lkg_tool_verb.silent */

/* verb-blame.c, shared with its tests */
/** lkg_blame_matches() - is @pointer (JSON pointer) at or below @field (dotted or JSON pointer)? */
bool lkg_blame_matches(const char *pointer, const char *field);
