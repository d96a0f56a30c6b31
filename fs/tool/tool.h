/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool `lkgfs`: one table of verbs.
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

/* What most verbs need. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <lkg/base.h>
#include <lkg/text.h>
#include <lkg/config.h>
#include <lkg/documents.h>
#include <lkg/facts.h>
#include <lkg/file.h>
#include <lkg/limits.h>
#include <lkg/schema.h>
#include <lkg/stack.h>

/* Exit statuses: lkgfs(1), EXIT STATUS. */
enum {
        LKG_TOOL_OK = 0,
        LKG_TOOL_DIFFERENT = 1, /* findings, a difference, "no" */
        LKG_TOOL_FAILED = 2,    /* unreadable input, no mount, no memory, a refused command */
        LKG_TOOL_USAGE = 64,
};

#define LKG_TOOL_HOST_THIS 3u /* the current machine */

/* While it exists, `lkgfs gate` lets components start without lkgfs. */
#define LKG_TOOL_DISABLED "/etc/lkgfs/disabled"

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

/* The options that a verb accepts; one bit per group of options that belong together: the rows of arguments.c. */
enum lkg_tool_option_bits {
        LKG_OPT_FORMAT = 1 << 0,
        LKG_OPT_STACK = 1 << 1, /* documents */
        LKG_OPT_VIEW = 1 << 2,
        LKG_OPT_STRICT = 1 << 3,
        LKG_OPT_PATCH = 1 << 4,
        LKG_OPT_BAKE = 1 << 5,
        LKG_OPT_TIMEOUT = 1 << 6,
        LKG_OPT_MOUNT = 1 << 7, /* --config is our own configuration */
        LKG_OPT_JUDGE = 1 << 8, /* by what documents are judged; component flags after `--` */
        LKG_OPT_EXPLAIN = 1 << 9,
        LKG_OPT_CHECK = 1 << 10, /* of npd */
        LKG_OPT_ALL = 1 << 11,   /* of status */
        LKG_OPT_NODE = 1 << 12,  /* this node, if no documents are named */
        LKG_OPT_DIFF = 1 << 13,
        LKG_OPT_EFFECTIVE = 1 << 14,
        LKG_OPT_ROOT = 1 << 15, /* of adopt and abandon */
        LKG_OPT_ADOPT = 1 << 16,
        LKG_OPT_SCHEMA = 1 << 17,
        LKG_OPT_FINDINGS = 1 << 18, /* the formats and the exit status of check */
        LKG_OPT_REPORT = 1 << 19,
        LKG_OPT_FLEET = 1 << 20,
        LKG_OPT_CLUSTER = 1 << 21, /* of check: a ConfigMap in a cluster */
        LKG_OPT_EDIT = 1 << 22,
};

/* What one verb, or one kind of verb, is told besides. NULL = not given. */
struct lkg_tool_options_of_fleet { /* rollout */
        const char *kubeconfig, *context, *slots_namespace, *forgive;
        bool halt, resume;
};
struct lkg_tool_options_of_adopt {
        const char *root; /* NULL = this node */
        bool dry_run, over, static_pods;
};
struct lkg_tool_options_of_check {
        const char *against;   /* the document before */
        const char *configmap; /* NAMESPACE/NAME[/KEY] in a cluster */
        bool errors_only;
};
struct lkg_tool_options_of_diff {
        const char *bad; /* the id of a mark */
        bool pending, running;
};
struct lkg_tool_options_of_document { /* convert, patch */
        const char *type;             /* "merge", "strategic" */
        bool strict;
};
struct lkg_tool_options_of_report {
        const char *file, *log;
};
struct lkg_tool_options_of_wait {
        bool limited, never;
        uint64_t timeout_ns;
};

struct lkg_tool_options {
        const char *component, *mountpoint, *virtual_dir;
        const char *config, *config_dir, *instance_config, *kind;
        const char *directory;   /* bake */
        const char *check;       /* npd: "condition", "served", "bad", "processes"; NULL = the first */
        const char *remote;      /* a file with a ConfigMap; NULL = none */
        const char *remote_key;  /* key of its data; NULL = the one that the object names, else `kubelet` */
        const char *node_config; /* our own configuration; NULL = the default */
        unsigned release;        /* 136 is 1.36; 0 = the latest known */
        unsigned runs;           /* check --release 1.36..1.37: the first; 0 = not given */
        unsigned host; /* version of the cgroup hierarchy, 1 or 2; LKG_TOOL_HOST_THIS; 0 = not given */
        enum lkg_tool_format format;
        enum lkg_tool_colour colour;
        bool force, effective, help, version;
        bool all;   /* status: notes, too; check: each of them */
        bool watch; /* status, rollout */
        struct lkg_tool_options_of_fleet fleet;
        struct lkg_tool_options_of_adopt adopt;
        struct lkg_tool_options_of_check checking;
        struct lkg_tool_options_of_diff diff;
        struct lkg_tool_options_of_document document;
        struct lkg_tool_options_of_report report;
        struct lkg_tool_options_of_wait wait;
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
        bool captured;    /* run.c: its output goes into a pipe first; */
        bool coloured[3]; /* what lkg_tool_colour_for() says of our descriptors */
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

/* ---- verbs.c ---- */

extern const struct lkg_tool_verb lkg_tool_verbs[];
extern const size_t lkg_n_tool_verbs;
const struct lkg_tool_verb *lkg_tool_find_verb(const char *name);
void lkg_tool_help(struct lkg_buf *buf);
void lkg_tool_verb_help(const struct lkg_tool_verb *verb, struct lkg_buf *buf);

/* ---- arguments.c ---- */

struct lkg_tool_option {
        const char *name;
        char letter;       /* 0 = none */
        const char *value; /* NULL = has no value */
        unsigned bits;     /* verbs that accept it; 0 = all */
        int kind;          /* private to arguments.c */
        size_t offset;     /* in struct lkg_tool_options */
        const char *help;  /* NULL: an earlier name, which works and is not shown */
};
/* A name may have several rows for different verbs: the row whose bits include the verb applies. */
extern const struct lkg_tool_option lkg_tool_option_rows[];
extern const size_t lkg_n_tool_option_rows;
/** lkg_tool_option_shown() - in the help of a verb with these @bits? */
bool lkg_tool_option_shown(const struct lkg_tool_option *option, unsigned bits);
/** lkg_tool_option_named() - the option of @arg ("--output=json", "-o"); @bits 0 = of any verb; NULL = there is none. */
const struct lkg_tool_option *lkg_tool_option_named(unsigned bits, const char *arg);
/** lkg_tool_option_word() - the @i-th of the words that are its only values; NULL = no more. */
const char *lkg_tool_option_word(const struct lkg_tool_option *option, size_t i);
/** lkg_tool_format_options() - the options in @bits, one per line, for `VERB --help`. */
void lkg_tool_format_options(unsigned bits, struct lkg_buf *buf);

/**
 * lkg_tool_parse() - read a command line.
 * @tool:  filled in; @tool->words points into @argv, which is reordered
 * @message: the reason for a failure, one sentence without a final newline
 *
 * Return: 0; -EINVAL with @message set.
 */
int lkg_tool_parse(struct lkg_tool *tool, int argc, char **argv, char message[static 512]);

/* ---- how a verb runs: run.c ---- */

/** lkg_tool_guard() - run the verb in a child process; if the mount does not answer, print a message and kill it. */
int lkg_tool_guard(const struct lkg_tool *tool);
/** lkg_tool_watch() - run the verb once a second, print its output whenever it changes. Ends by a signal, or after a usage error. */
int lkg_tool_watch(const struct lkg_tool *tool);
/**
 * lkg_screen_show() - print @text: on a terminal in the place of what was shown before, elsewhere only if it differs.
 * @shown: what was shown last, NULL = nothing; the caller frees
 * @compared: @text without what changes all the time
 * Return: LKG_TOOL_OK; LKG_TOOL_FAILED after a message.
 */
int lkg_screen_show(const struct lkg_tool *tool, char **shown, const char *text, const char *compared);

/* ---- what is said and printed: output.c ---- */

/** lkg_tool_colour_for() - may escape sequences go to @fd (--color, NO_COLOR, TERM, a terminal)? */
bool lkg_tool_colour_for(const struct lkg_tool *tool, int fd);
/* start and end of a colour, "" without colour */
const char *lkg_tool_paint(bool colour, enum lkg_severity severity);
const char *lkg_tool_paint_end(bool colour);
/** lkg_tool_print() - print @buf on standard output. Return: @status, or LKG_TOOL_FAILED with a message. */
int lkg_tool_print(struct lkg_buf *buf, int status);
/** lkg_tool_fail() - print `lkgfs VERB: message` on standard error. Return: @status. */
int lkg_tool_fail(const struct lkg_tool *tool, int status, const char *fmt, ...) LKG_PRINTF(3, 4);
/** lkg_tool_end() - the same, and the process ends: of a verb that has nothing to undo. */
_Noreturn void lkg_tool_end(const struct lkg_tool *tool, int status, const char *fmt, ...) LKG_PRINTF(3, 4);
/** lkg_tool_note() - the same, for messages that are not failures. */
void lkg_tool_note(const struct lkg_tool *tool, const char *fmt, ...) LKG_PRINTF(2, 3);
/** lkg_tool_put_clean() - @text with `?` for each control character, so that it remains one line and cannot control a terminal. */
void lkg_tool_put_clean(struct lkg_buf *buf, const char *text);
const char *lkg_tool_clean(const char *text);
int lkg_tool_print_text(const char *text, int status);
/** lkg_tool_masked() - @doc with secret values as "<masked>"; "" = there is none. */
const char *lkg_tool_masked(const struct lkg_value *doc, enum lkg_format format);
/** lkg_tool_diff() - a unified diff; "" = they are equal. */
const char *lkg_tool_diff(const char *a_name, const char *a, const char *b_name, const char *b);
/** lkg_tool_put_diff() - a unified diff for standard output, with colours if it may have them. */
void lkg_tool_put_diff(const struct lkg_tool *tool, const char *text, struct lkg_buf *buf);
/* Of a table: where its texts are in the rows, and how wide it is, beyond what the texts need. */
struct lkg_column {
        const char *title, *key;
        size_t min, max; /* max 0 = as they need */
};
#define LKG_COLUMNS_MAX 8
/** lkg_tool_put_table() - a list of maps as a table; "-" where a row has no text. */
void lkg_tool_put_table(const struct lkg_value *rows, const struct lkg_column *columns, size_t n,
                        struct lkg_buf *buf);
#define LKG_AGE_MAX 32
/** lkg_tool_age() - "3 min". Return: @ret. */
const char *lkg_tool_age(uint64_t age_s, char ret[static LKG_AGE_MAX]);
/** lkg_tool_arrange() - a copy of @report as it is shown: lkg_report_arrange(), --all. */
void lkg_tool_arrange(const struct lkg_tool *tool, const struct lkg_report *report, struct lkg_report *ret);
/** lkg_tool_print_findings() - print the findings on @fd, arranged, coloured on a terminal. */
void lkg_tool_print_findings(const struct lkg_tool *tool, int fd, const struct lkg_report *report);
/** lkg_tool_put_finding() - a finding in one line. */
void lkg_tool_put_finding(bool colour, const struct lkg_finding *finding, struct lkg_buf *buf);

/* ---- texts: value.c ---- */

/*
 * What the tool makes lives as long as the process, and nobody frees it: texts, lists of words, values. What goes round and round lets
 * go of its own.
 */
/** lkg_tool_keep() - @p, which was allocated just now and is not freed elsewhere. */
void *lkg_tool_keep(void *p);
/** lkg_tool_own() - the same for one reference to a value; NULL is NULL. */
struct lkg_value *lkg_tool_own(struct lkg_value *value);
/** lkg_tool_kept(), _let_go() - how many texts there are; those after the first @n are freed, and all values. */
size_t lkg_tool_kept(void);
void lkg_tool_let_go(size_t n);
/** lkg_tool_grow() - an array of @n items, which this has made (NULL: none), with room for one more. */
void *lkg_tool_grow(void *items, size_t n, size_t size);
char *lkg_tool_format(const char *fmt, ...) LKG_PRINTF(1, 2);
char *lkg_tool_vformat(const char *fmt, va_list ap) LKG_PRINTF(1, 0);
char *lkg_tool_cut(const char *text, size_t size); /* a copy of a part */
char *lkg_tool_take(struct lkg_buf *buf);          /* what it has; it is empty then */
/** lkg_tool_read() - as lkg_read_file(). */
int lkg_tool_read(int fd, size_t max, char **ret, size_t *ret_size);
/** lkg_tool_next_line() - the line at *@text, which moves behind it. Return: false: there is none. */
bool lkg_tool_next_line(const char **text, const char **ret, size_t *ret_size);

void lkg_tool_add_word(struct lkg_strings *words, const char *word);
bool lkg_tool_has_word(const struct lkg_strings *words, const char *word);
/** lkg_tool_join() - "a, b, c"; "" = there is none. */
char *lkg_tool_join(const struct lkg_strings *words);
/** lkg_tool_sort() - numbers descending, then names. */
void lkg_tool_sort(struct lkg_strings *names);
/** lkg_tool_names() - what is in directory @path, sorted; @type: DT_REG, DT_DIR; DT_UNKNOWN = any. Return: 0 or -errno. */
int lkg_tool_names(int dirfd, const char *path, unsigned char type, struct lkg_strings *ret);

/* ---- structured output is a tree of values: value.c ---- */

struct lkg_value *lkg_tool_map(void);
struct lkg_value *lkg_tool_document(void); /* with its schemaVersion */
struct lkg_value *lkg_tool_list(void);
struct lkg_value *lkg_tool_string(const char *text);
struct lkg_value *lkg_tool_number(uint64_t number);
struct lkg_value *lkg_tool_bool(bool b);
/** lkg_tool_map_of() - a map of pairs: key, value, ..., NULL. A value that is NULL is omitted. */
struct lkg_value *lkg_tool_map_of(const char *key, ...) __attribute__((sentinel));
/** lkg_tool_texts(), _bools() - add pairs: key, text, ..., NULL. A text that is NULL is omitted. Return: @map. */
struct lkg_value *lkg_tool_texts(struct lkg_value *map, const char *key, ...) __attribute__((sentinel));
struct lkg_value *lkg_tool_bools(struct lkg_value *map, const char *key, ...) __attribute__((sentinel));
void lkg_tool_append(struct lkg_value *list, struct lkg_value *item);
void lkg_tool_map_string(struct lkg_value *map, const char *key, const char *text); /* NULL: omitted */
void lkg_tool_map_number(struct lkg_value *map, const char *key, uint64_t number);
void lkg_tool_map_bool(struct lkg_value *map, const char *key, bool b);
void lkg_tool_map_value(struct lkg_value *map, const char *key, struct lkg_value *value);
struct lkg_value *lkg_tool_map_list(struct lkg_value *map, const char *key); /* a new list */
/* A text of another map, and its name here. */
struct lkg_tool_member {
        const char *key, *name;
        bool number; /* it becomes one */
};
/** lkg_tool_map_members() - those that @from has. */
void lkg_tool_map_members(struct lkg_value *map, const struct lkg_value *from,
                          const struct lkg_tool_member *members, size_t n);

/** lkg_tool_structured() - is the product a document (-o json, -o yaml) and no text? */
bool lkg_tool_structured(const struct lkg_tool *tool);
/** lkg_tool_print_value() - print @value as YAML or JSON; the text format means YAML. */
int lkg_tool_print_value(const struct lkg_value *value, enum lkg_tool_format format, int status);
/** lkg_tool_print_map() - the same, in the format that is asked for. */
int lkg_tool_print_map(const struct lkg_tool *tool, const struct lkg_value *map, int status);
struct lkg_view;
/** lkg_tool_print_listed() - print a document that is a list under @key. @view: whose component it names; NULL = none */
int lkg_tool_print_listed(const struct lkg_tool *tool, const struct lkg_view *view, const char *key,
                          struct lkg_value *list, int status);
/** lkg_tool_fill() - fill in a template: template.c. @html: it is a page. */
void lkg_tool_fill(const char *template, const struct lkg_value *value, bool html, struct lkg_buf *buf);

/* ---- trees of values that others may have written; @map may be NULL, or no map at all: value.c ---- */

/** lkg_tool_word() - the text of member @key; "" = it has none. */
const char *lkg_tool_word(const struct lkg_value *map, const char *key);
/** lkg_tool_items() - how many items has the list @key? @ret: the list. */
size_t lkg_tool_items(const struct lkg_value *map, const char *key, const struct lkg_value **ret);
/** lkg_tool_item() - its item @i; NULL = it has no more. */
struct lkg_value *lkg_tool_item(const struct lkg_value *map, const char *key, size_t i);
/** lkg_tool_pairs() - lines `key=value` as a map of strings; of a key the first line counts, one without a value is missing. */
struct lkg_value *lkg_tool_pairs(const char *text);
/** lkg_tool_rows() - lines with tabs between their columns as a list of maps, without those that have fewer than @n_min; the last column has the rest of the line. */
struct lkg_value *lkg_tool_rows(const char *text, const char *const *keys, size_t n, size_t n_min);
/** lkg_tool_origins() - the lines of status/<component>/origin, or of lkg_render_origin(), as `lkgfs blame -o json` lists them. */
struct lkg_value *lkg_tool_origins(const char *text);
/** lkg_tool_decode() - @text as JSON; NULL = it is none. */
struct lkg_value *lkg_tool_decode(const char *text);
/** @class_of: NULL, or gives each finding its member `class` */
struct lkg_value *lkg_tool_findings_value(const struct lkg_report *report,
                                          const char *(*class_of)(const struct lkg_finding *finding));
/** lkg_finding_kind() - the row of a code; NULL = there is none. */
const struct lkg_finding_kind *lkg_finding_kind(unsigned code);
/** lkg_tool_severity() - that of a name; of any other word a note. */
enum lkg_severity lkg_tool_severity(const char *name);

/* ---- this node, as its lkgfs configuration describes it: this-node.c ---- */

struct lkg_tool_node {
        struct lkg_config *config; /* NULL: it has errors, see report */
        struct lkg_report report;  /* about it */
        const char *source_path;
        int source_fd;            /* below the view */
        int runtime_fd, state_fd; /* through read-only mounts; negative: nothing is known */
};
struct lkg_tool_sources;
const char *lkg_tool_node_path(const struct lkg_tool *tool);
/** lkg_tool_has_node() - was a configuration named, or is there one at the default place? */
bool lkg_tool_has_node(const struct lkg_tool *tool);
/** lkg_tool_node_read() - read the configuration, choose the source directory, and open nothing. */
int lkg_tool_node_read(const struct lkg_tool *tool, struct lkg_tool_node **ret);
/**
 * lkg_tool_node_open() - the same; then find its directories below the view, in a mount namespace of our own.
 * Return: LKG_TOOL_OK; LKG_TOOL_DIFFERENT: the report has errors; LKG_TOOL_FAILED after a message.
 */
int lkg_tool_node_open(const struct lkg_tool *tool, struct lkg_tool_node **ret);
/** lkg_tool_node_component() - --component, else the only one; without it the verb ends. */
const struct lkg_config_component *lkg_tool_node_component(const struct lkg_tool *tool,
                                                           const struct lkg_tool_node *node);
/** lkg_tool_node_judge() - judge the layers of @component. */
int lkg_tool_node_judge(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                        const struct lkg_config_component *component, struct lkg_tool_sources **ret);

/* ---- input of the offline verbs: sources.c ---- */

struct lkg_tool_sources {
        struct lkg_stack *stack;
        struct lkg_judge *judge;
        struct lkg_remote_base *remote; /* NULL = the base is a file, or missing */
        struct lkg_candidate *candidate;
        int dirfd;                 /* contains standard input as the file "-", or is AT_FDCWD */
        struct lkg_facts *facts;   /* of a node: the component that runs; NULL = unknown */
        unsigned upgraded_from;    /* lkg_tool_add_upgrade(): the release before, 0 = no upgrade */
        struct lkg_value *changes; /* likewise: lkg_judge_upgrade() */
};
/**
 * lkg_tool_sources_load() - build the candidate of --config or --remote, --config-dir and --instance-config; if none of them is
 * given, that of this node.
 * Return: LKG_TOOL_OK, even for an invalid candidate; another exit status after a message.
 */
int lkg_tool_sources_load(const struct lkg_tool *tool, struct lkg_tool_sources **ret);
/** lkg_tool_directory() - a private directory: it goes when this process ends, and not with a child. NULL: errno. */
const char *lkg_tool_directory(void);
/** lkg_tool_add_findings() - findings that belong before those of @candidate, which nobody else uses yet; an error refuses it. */
void lkg_tool_add_findings(struct lkg_candidate *candidate, struct lkg_report *report);
/** lkg_tool_has_sources() - was any of the four options given? */
bool lkg_tool_has_sources(const struct lkg_tool *tool);
/** lkg_tool_no_document() - report that nothing was found, and where it was searched for. Return: LKG_TOOL_DIFFERENT. */
int lkg_tool_no_document(const struct lkg_tool *tool);

bool lkg_tool_is_stdin(const char *path);
/** lkg_tool_read_input() - one file ("-": standard input), up to one byte more than the limit of a document. 0 or -errno. */
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
/**
 * lkg_tool_remote_load() - load the ConfigMap of --remote.
 * @ret: caller frees; not changed if the file selects the local configuration
 * @report: why it is refused (LKG6004 to LKG6006)
 * Return: LKG_TOOL_OK, also with LKG6005 in @report; LKG_TOOL_DIFFERENT if it is refused as a whole; another
 * exit status after a message.
 */
int lkg_tool_remote_load(const struct lkg_tool *tool, struct lkg_remote_base **ret,
                         struct lkg_report *report);

/* ---- about a change: check-change.c ---- */

/** lkg_tool_judge_against() - --against: add what a change from that document needs. Return: LKG_TOOL_OK; LKG_TOOL_FAILED after a message. */
int lkg_tool_judge_against(const struct lkg_tool *tool, struct lkg_candidate *candidate);
/** lkg_tool_upgrade_from() - the release that is to be left for that of --release; 0 = none, or unknown. */
unsigned lkg_tool_upgrade_from(const struct lkg_tool *tool, const struct lkg_tool_sources *then);
/**
 * lkg_tool_add_upgrade() - add what changes from @now, the same documents in the release that is left; with a range of releases
 * only that stays in the report of @then.
 */
void lkg_tool_add_upgrade(const struct lkg_tool *tool, const struct lkg_tool_sources *now,
                          struct lkg_tool_sources *then);
/** lkg_tool_upgrade_class() - stops, changes, deprecated, other. */
const char *lkg_tool_upgrade_class(const struct lkg_finding *finding);
/** lkg_tool_print_upgrade() - the findings under a heading for each class. */
void lkg_tool_print_upgrade(const struct lkg_tool *tool, const struct lkg_report *report);

/* ---- findings beside the lines of a file: annotations.c ---- */

/*
 * SARIF 2.1.0 (code scanning, editors) and workflow commands of GitHub Actions. verb-check.c adds what it has judged, and what it could
 * not read; both end up in the product, so that a failed run is never mistaken for one without findings.
 */
struct lkg_annotations {
        const struct lkg_tool *tool;
        const char *directory;   /* the working directory, with a slash at its end; NULL = unknown */
        struct lkg_value *rules; /* SARIF: of the findings so far */
        struct lkg_value *results, *failures;
        size_t *rule_of;      /* of each row in lkg_finding_kinds: its place in @rules, from 1 */
        struct lkg_buf lines; /* GitHub */
};
/** lkg_annotations_wanted() - is one of the two formats asked for? */
bool lkg_annotations_wanted(const struct lkg_tool *tool);
void lkg_annotations_init(struct lkg_annotations *a, const struct lkg_tool *tool);
/** lkg_annotations_add() - the findings of @report. @place: the file that one without a file belongs to; NULL = none. */
void lkg_annotations_add(struct lkg_annotations *a, const char *place, const struct lkg_report *report);
/** lkg_annotations_fail() - something could not be judged. */
void lkg_annotations_fail(struct lkg_annotations *a, const char *place, const char *message);
int lkg_annotations_print(struct lkg_annotations *a, int status);

/* ---- what `lkgfs explain` finds under a word: verb-explain.c, explain-show.c ---- */

enum lkg_explained_what { LKG_EXPLAINED_FIELD, LKG_EXPLAINED_FLAG, LKG_EXPLAINED_GATE };

struct lkg_explained {
        enum lkg_explained_what what;
        const struct lkg_kind *kind;   /* NULL for a gate */
        const struct lkg_field *field; /* the first row of its path */
        const char *key; /* of the map that the field is, as requested; NULL = none. Borrowed */
        const struct lkg_flag *flag;
        const struct lkg_gate *gate;
};
/** lkg_explain_show() - one item: several lines for people, and the same facts as a map. @release: 136 is 1.36 */
struct lkg_value *lkg_explain_show(const struct lkg_explained *item, unsigned release, struct lkg_buf *buf);

/* ---- the mounted view: view.c ---- */

struct lkg_view {
        const char *mountpoint;
        const char *root;      /* mount point, or the virtual directory below it */
        const char *component; /* the one that the verb is about; NULL = all */
        int fd;                /* O_PATH of root; it stays open */
};
/** lkg_view_find_mounts() - add the mount points of type fuse.lkgfs in @table, as of /proc/self/mounts. */
void lkg_view_find_mounts(FILE *table, struct lkg_strings *ret);
/** lkg_view_mounts() - those of this mount namespace. Return: 0 or -errno. */
int lkg_view_mounts(struct lkg_strings *ret);
/** lkg_view_named() - --mountpoint, or what the environment says; NULL = nothing. */
const char *lkg_view_named(const struct lkg_tool *tool);
/** lkg_view_is_there() - was a mount point named, or is there one? */
bool lkg_view_is_there(const struct lkg_tool *tool);
/** lkg_view_find() - find the mount. Return: 0; -errno, and @err says why. */
int lkg_view_find(const struct lkg_tool *tool, struct lkg_view *ret, struct lkg_error *err);
/** lkg_view_find_component() - --component, else the only one. Return: 0; -errno, and @err says why; -EINVAL: it must be said which. */
int lkg_view_find_component(const struct lkg_tool *tool, struct lkg_view *view, struct lkg_error *err);
/** lkg_view_open() - the first, and the second if the verb is about @one component. A verb that gets none of it ends. */
struct lkg_view lkg_view_open(const struct lkg_tool *tool, bool one);

int lkg_view_components(const struct lkg_view *view, struct lkg_strings *ret);
/** lkg_view_bad_names() - the marks of the component; none if their directory is missing. */
int lkg_view_bad_names(const struct lkg_view *view, struct lkg_strings *ret);

/** lkg_view_is_no_answer() - is it what the file server says in place of a text that a silent engine did not write? */
bool lkg_view_is_no_answer(const char *text);
/** lkg_view_read() - one file below the root, without its final newline. Return: 0; -ETIMEDOUT: the engine does not answer; another -errno. */
int lkg_view_read(const struct lkg_view *view, char **ret, struct stat *ret_st, const char *fmt, ...)
        LKG_PRINTF(4, 5);
/** lkg_view_status(), _text() - a file in status/ of the component; NULL, or "" = it cannot be read. */
char *lkg_view_status(const struct lkg_view *view, const char *file);
const char *lkg_view_text(const struct lkg_view *view, const char *file);
/** lkg_view_generation() - what is served; 0 = nothing, or it cannot be read. */
uint64_t lkg_view_generation(const struct lkg_view *view);
/** lkg_view_read_json() - read one file as a map; NULL if it is missing. */
struct lkg_value *lkg_view_read_json(const struct lkg_view *view, const char *fmt, ...) LKG_PRINTF(2, 3);
/**
 * lkg_view_write() - write @text to @path below the root, with one write(2); if refused, print last-error.
 * @flags: for open(2), in addition to O_WRONLY
 * Return: exit status.
 */
int lkg_view_write(const struct lkg_tool *tool, const struct lkg_view *view, const char *path, int flags,
                   const char *text);
/** lkg_view_command() - the same of a control file. */
int lkg_view_command(const struct lkg_tool *tool, const struct lkg_view *view, const char *command,
                     const char *text);

/* ---- the verbs: verb-*.c ---- */

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

/** lkg_rollout_is_of_fleet() - `rollout` about a ConfigMap and not about this node: no view is needed. */
bool lkg_rollout_is_of_fleet(const struct lkg_tool *tool);
/** lkg_tool_complete() - print what could stand in the place of the last of @words. Return: exit status. */
int lkg_tool_complete(int n, char **words);
struct lkg_field_change;
/** lkg_tool_changed() - the name of the field. */
const char *lkg_tool_changed(const struct lkg_field_change *change);
/** lkg_tool_put_suspects() - append a line for each suspect, if they are known. */
void lkg_tool_put_suspects(const struct lkg_value *suspects, struct lkg_buf *buf);
/** lkg_tool_suspects_missing() - why the record @mark has none; NULL = it has. */
const char *lkg_tool_suspects_missing(const struct lkg_value *mark);
