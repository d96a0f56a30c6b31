/* SPDX-License-Identifier: Apache-2.0 */
/* Fields, defaults, rules, gates and flags of the kinds, by release of Kubernetes. */
#pragma once

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/stack.h>
#include <lkg/text.h>

/*
 * The meaning of a kind's fields: types, defaults, rules, feature gates, command-line flags, by release.
 *
 * The tables (core/schema/tables/) are rows of data, one file per kind and one for the gates; adding rows adds support for a
 * release. Everything else here applies them as the component's own start does (docs/specification.md 3.5):
 *
 *     base -> typed decode -> defaults -> paths -> eviction defaults -> [JSON -> drop-ins, instance -> typed
 *     decode -> defaults] -> flags -> gates -> rules
 *
 * A typed document is again a value tree, in a normal form: only known fields under their right names,
 * values in canonical form (`90s` is `1m30s`), absent = the zero value of its Go type (nil for pointers,
 * lists and maps). Values keep the origin of what they were decoded from.
 *
 * One thread, like the value tree.
 */

/* ---- tables ---- */

/* A release as 1.NN: 136 is 1.36. 0 = from the first / to the last one known. */
#define LKG_RELEASE_MIN 133
#define LKG_RELEASE_MAX 137

/** lkg_release_has_tables() - is it one of those that we know? */
static inline bool lkg_release_has_tables(unsigned release)
{
        return release >= LKG_RELEASE_MIN && release <= LKG_RELEASE_MAX;
}
/** lkg_release_judged() - the release whose tables count for @release: itself, or the nearest; 0 (unknown) = the newest. */
static inline unsigned lkg_release_judged(unsigned release)
{
        return release == 0 || release > LKG_RELEASE_MAX ? LKG_RELEASE_MAX
               : release < LKG_RELEASE_MIN               ? LKG_RELEASE_MIN
                                                         : release;
}

#define LKG_RELEASE_TEXT_MAX 16
/** lkg_release_text() - @release as text, "1.36". Return: @buf. */
const char *lkg_release_text(unsigned release, char buf[static LKG_RELEASE_TEXT_MAX]);
/* The same until the end of the block. */
#define LKG_RELEASE_TEXT(release) lkg_release_text(release, (char[LKG_RELEASE_TEXT_MAX]){ 0 })

enum lkg_field_flags {
        LKG_FIELD_PATH = 1 << 0,     /* names a file or directory of the node */
        LKG_FIELD_RESOLVED = 1 << 1, /* relative = to the base's directory (kubelet) */
        LKG_FIELD_SECRET = 1 << 2,   /* its values are never shown */
        LKG_FIELD_ALWAYS = 1 << 3,   /* no omitempty: printed even when it is the zero value */
        LKG_FIELD_PORT = 1 << 4,     /* a TCP port that the component listens on; 0 = not at all */
        LKG_FIELD_LISTEN = 1 << 5,   /* host:port that the component listens on */
};

#define LKG_GUARD_NOTHING "-"

/*
 * What a value of a field does at worst although it has passed validation: a path or an address that the node does not have, a
 * reservation that is larger than the node. It sorts the suspects of a failed trial.
 */
enum lkg_danger {
        LKG_DANGER_UNKNOWN, /* the kind does not have the field; in a table: not considered yet, and a test fails */
        LKG_DANGER_HARMLESS, /* neither of those below: less insight, other timing */
        LKG_DANGER_PODS, /* pods are evicted, restarted, not admitted, or lose what they need (network, names, volumes) */
        LKG_DANGER_STOPS, /* the component does not start, ends, or cannot work: no runtime, no API server */
};

/*
 * One row: a field of a kind in the releases [since, until]. Several rows with one path and disjoint
 * releases describe how a field changed.
 */
struct lkg_field {
        const char *path; /* dotted; `[]` = each item of a list, `{}` = each value of a map */
        /*
         * Go type: bool, string, int32, int64, uint32, float32, float64, duration, flush (a duration, or an
         * integer of nanoseconds), quantity, time, struct; `*` before it = a pointer: the zero value differs
         * from unset; `[]` = a list of, `map[string]` = a map of
         */
        const char *type;
        const char *doc; /* one line: its purpose */
        /* Members of maps and lists without a row have that of the deepest row above them. A struct has the worst of its fields. */
        enum lkg_danger danger;
        /*
         * Why a remote configuration must not set it (guard.profile: hardened), as `word: reason`:
         * runs-code, files (reads or writes files of the node), authentication, port, isolation (of pods, of
         * processes from each other), discloses. LKG_GUARD_NOTHING = no reason; NULL = not considered yet,
         * and a test fails. A field that only makes a node slow, wrong or isolated is allowed: a rollback
         * repairs that (docs/decisions/024-hardened.md).
         */
        const char *guard;
        const char *def;        /* default as JSON text; NULL = none, or a special rule (defaults-*.c) */
        const char *rule;       /* allowed values, for people; NULL = anything of the type */
        const char *unit;       /* "percent", "bytes", "seconds" ...; NULL = none */
        const char *flag;       /* command-line flag without dashes, NULL = none */
        const char *gate;       /* feature gate that the field needs or depends on */
        const char *deprecated; /* what to use instead; NULL = not deprecated */
        /*
         * What else has to be done after a change, as `class: words`: drain, or recreate (of what exists); NULL = restart, the
         * component reads its configuration only when it starts. No field of these kinds takes effect live. A struct has the
         * most expensive class of its fields.
         */
        const char *change;
        /* JSON text of the one value that means something else since @since; NULL = none does */
        const char *news;
        unsigned flags;        /* enum lkg_field_flags */
        unsigned since, until; /* releases; 0 = before the first / no end */
};

enum lkg_change_class {
        LKG_CHANGE_RESTART,
        LKG_CHANGE_RECREATE,
        LKG_CHANGE_DRAIN, /* the most expensive one last */
};
/** lkg_change_class_of() - the class of the column `change`. */
enum lkg_change_class lkg_change_class_of(const struct lkg_field *field);
/** lkg_change_class_name() - restart, recreate, drain. */
const char *lkg_change_class_name(enum lkg_change_class change_class);

/** lkg_danger_name() - stops, pods, harmless; NULL: not known. */
const char *lkg_danger_name(enum lkg_danger danger);

/* A command-line flag of a component. */
struct lkg_flag {
        const char *name; /* without dashes */
        /*
         * bool, string, int, int32, int64, uint32, float32, float64, duration, ip, stringSlice, mapStringBool,
         * mapStringString, langleMap (k<v), colonMultimap (k:v), nodeLabels, taints, reservedMemory, vmodule, quantity
         */
        const char *type;
        const char *field;     /* dotted path of the field it sets; NULL = none */
        unsigned since, until; /* releases */
        bool no_value;         /* bool flags: may be given without =value */
        bool secret;           /* its value may contain a credential: never shown */
        bool deprecated; /* will be removed, and has no field to move to; one with an end was so before */
        char shorthand;  /* -v; 0 = none */
};

enum lkg_gate_stage { LKG_GATE_ALPHA, LKG_GATE_BETA, LKG_GATE_GA, LKG_GATE_DEPRECATED, LKG_GATE_REMOVED };

/* A feature gate from a release on, until its next state. */
struct lkg_gate_state {
        /* release; LKG_RELEASE_MIN = that one or earlier. May be older for removed gates; 0 = no state */
        unsigned since;
        enum lkg_gate_stage stage; /* REMOVED: setting it is an error from then on */
        bool def;
        bool locked; /* only the default may be set */
        bool before; /* REMOVED: in @since or an earlier release; the exact one is unknown */
};

#define LKG_GATE_STATES_MAX 5
struct lkg_gate {
        const char *name;
        struct lkg_gate_state states[LKG_GATE_STATES_MAX]; /* by release; the others are zero */
};

/* A gate that is on needs the others on (component-base/featuregate, dependencies). */
struct lkg_gate_needs {
        const char *name, *needs; /* one pair per row */
        unsigned since;
};

/* A key of a map field that the profile hardened denies, although the map itself is allowed. */
struct lkg_guarded_key {
        const char *path;  /* dotted, with the key */
        const char *guard; /* as in struct lkg_field */
};

extern const struct lkg_guarded_key lkg_guarded_keys[];
extern const size_t lkg_n_guarded_keys;
/* Every gate up to this release has been considered for the profile hardened. */
extern const unsigned lkg_gates_judged;

extern const struct lkg_field lkg_kubelet_fields[], lkg_kubeproxy_fields[];
extern const size_t lkg_n_kubelet_fields, lkg_n_kubeproxy_fields;
extern const struct lkg_flag lkg_kubelet_flags[], lkg_kubeproxy_flags[];
extern const size_t lkg_n_kubelet_flags, lkg_n_kubeproxy_flags;
extern const struct lkg_gate lkg_gates[]; /* sorted by name */
extern const size_t lkg_n_gates;
extern const struct lkg_gate_needs lkg_gate_needs[];
extern const size_t lkg_n_gate_needs;

/* ---- a kind at a release ---- */

struct lkg_schema;

/**
 * lkg_schema_get() - the fields of @kind in @release.
 * @api_version: NULL = any
 * @release:     any: lkg_release_judged()
 * @ret:         never freed
 *
 * Return: 0; -ENOENT: a kind without a table.
 */
int lkg_schema_get(const char *kind, const char *api_version, unsigned release,
                   const struct lkg_schema **ret);
const char *lkg_schema_kind(const struct lkg_schema *schema);
const char *lkg_schema_api_version(const struct lkg_schema *schema);
unsigned lkg_schema_release(const struct lkg_schema *schema);
/** lkg_schema_is_kubelet() - is it the component with its own drop-ins, of the two with tables? */
bool lkg_schema_is_kubelet(const struct lkg_schema *schema);
/** lkg_schema_merge_type() - what a strategic merge needs to know about the kind. */
struct lkg_merge_type lkg_schema_merge_type(const struct lkg_schema *schema);

/* Facts about the machine that rules use; tests and `--host` set it. */
enum lkg_host_fact {
        LKG_HOST_CPUS,
        LKG_HOST_NUMA_NODES,
        LKG_HOST_MEMORY,
        LKG_HOST_STORAGE,
        LKG_HOST_PIDS,
        LKG_HOST_SWAP,
        LKG_HOST_KERNEL,
};

struct lkg_host {
        unsigned cgroup; /* 1 or 2; 0 = unknown, no rule uses it */
        /*
         * It was named (`--host`): a document that does not fit is an error. Facts of the machine that we
         * happen to run on only cause warnings, because the document may be meant for another machine.
         */
        bool stated;
        /* What the kubelet finds when it starts; 0 or empty = unknown, no rule uses it. */
        char cpus[512], numa_nodes[128]; /* online, as the kernel writes lists */
        double memory, storage, pids;    /* bytes; bytes of the file system of /var/lib/kubelet; processes */
        bool swap;                       /* some is on */
        char kernel[96];                 /* a setting that protectKernelDefaults refuses, in words */
        /* Reads one of these facts; NULL = they are as they were given. Called when a document depends on it. */
        void (*look)(struct lkg_host *host, enum lkg_host_fact fact);
        /* Does a file exist? NULL = do not check. */
        bool (*exists)(const char *path, void *userdata);
        void *userdata;
};

/** lkg_host_detect() - the current machine. */
void lkg_host_detect(struct lkg_host *ret);
/** lkg_host_look() - one of its facts, read below @root ("" = this machine). */
void lkg_host_look(struct lkg_host *host, enum lkg_host_fact fact, const char *root);

/* ---- what a change needs ---- */

/* One field in which two documents differ. */
struct lkg_field_change {
        char *pointer;                          /* JSON pointer of the first value that differs */
        const struct lkg_value *before, *after; /* borrowed from the documents; NULL = it does not have it */
        const struct lkg_field *field;          /* NULL: the kind does not have it */
        enum lkg_danger danger;
        enum lkg_change_class change_class;
};
struct lkg_field_changes {
        struct lkg_field_change *items; /* the most expensive class first, then by pointer */
        size_t n_items, allocated;
};

/**
 * lkg_schema_changes() - the fields in which two documents differ, each once. What one of them leaves out and the other sets to
 * the default, or writes in another way, is no difference.
 * @before, @after: documents of the kind, not masked
 * @has_base: both have a base; otherwise, or if it is not known, fields whose default depends on it differ when one is left out
 */
void lkg_schema_changes(const struct lkg_schema *schema, const struct lkg_value *before,
                        const struct lkg_value *after, bool has_base, struct lkg_field_changes *ret);
void lkg_field_changes_deinit(struct lkg_field_changes *changes);

/**
 * lkg_schema_field() - the deepest row at or above a JSON pointer.
 * @schema: NULL = a kind without a table
 * Return: NULL: the kind does not have it.
 */
const struct lkg_field *lkg_schema_field(const struct lkg_schema *schema, const char *pointer);

/* ---- the judge: lkg_judge_fn of a stack ---- */

/**
 * lkg_schema_reader() - the component with this name that has a table: "kubelet"; NULL = it may read
 * anything.
 */
const char *lkg_schema_reader(const char *name);

struct lkg_judge_config {
        /*
         * Of the component, 0 = unknown. Without tables for it, a gate that the nearest release does not know or does not let
         * be set is a warning only.
         */
        unsigned release;
        struct lkg_host host;
        /* The component's command line without argv[0]; NULL = unknown. Borrowed. */
        const char *const *flags;
        size_t n_flags;
        /*
         * The command line was found on the node. Invalid parts of it are ignored with a warning: the
         * component runs with it, or it belongs to a program that contains the component (k3s), and no
         * document is to blame.
         */
        bool flags_observed;
        /*
         * The release that runs with that command line today, if @release may be another one that is planned; 0 = none is. What it
         * takes and @release does not is an error: the component will not come back. What is deprecated is said, too.
         */
        unsigned runs;
        /*
         * The component that reads the documents: lkg_schema_reader(). It only reads the kind of its table.
         * NULL = every kind is accepted.
         */
        const char *component;
        /*
         * Of a kubelet whose static pods lkgfs serves: where it is to read them instead of what the layers name; NULL = nowhere else.
         * Borrowed, as is the directory that they must name.
         */
        const char *pods_dir, *pods_source;
        bool lint;     /* also report what upstream does not report */
        bool lint_all; /* and what could be left out, because it is the default */
        /* values that pass validation and stop the component at its start are errors */
        bool startup_refuses;
};

struct lkg_judge;

/** lkg_judge_new() - @config is copied. */
struct lkg_judge *lkg_judge_new(const struct lkg_judge_config *config);
struct lkg_judge *lkg_judge_free(struct lkg_judge *judge);
static inline void lkg_judge_freep(struct lkg_judge **judge)
{
        *judge = lkg_judge_free(*judge);
}
/**
 * lkg_judge_configure() - set another release, host or command line; the stack must be asked to judge again.
 */
void lkg_judge_configure(struct lkg_judge *judge, const struct lkg_judge_config *config);

/**
 * lkg_judge_candidate() - decode, default and validate a merged candidate as its component would.
 *
 * A document of a kind without a table is not changed. Results for unchanged layers are cached, so the cost
 * is that of the change and of one document.
 */
void lkg_judge_candidate(struct lkg_candidate *candidate, void *judge);

/* ---- the effective document ---- */

/**
 * lkg_judge_document() - the effective document of a served one, without its layers.
 * @doc: as decoded from the bytes served; every value keeps its source
 *
 * What @judge has cached about the layers of its candidate is kept.
 * Return: defaults, @doc, flags; one reference. NULL: a kind without a table, or the component would not load @doc
 */
struct lkg_value *lkg_judge_document(const struct lkg_judge *judge, struct lkg_value *doc);

/**
 * lkg_judge_upgrade() - what the release of @judge makes of the same document without a word: LKG5070 to LKG5072, all notes.
 * @now:     a valid candidate of the release that runs; of any other nothing is said
 * @changes: a list: gets {"field" or "gate", "now", "then"} for each; a value that there is none of is null
 */
void lkg_judge_upgrade(const struct lkg_judge *judge, const struct lkg_candidate *now,
                       struct lkg_report *report, struct lkg_value *changes);

/**
 * lkg_effective_render() - append @effective like lkg_render() in YAML, with the layer of every leaf in a
 * comment after it: `maxPods: 50 # drop-in 10-x.conf`, `port: 10250 # default`.
 *
 * A list or an empty map is one leaf; its comment is on the line of its key. The text reads back as the same
 * document. The caller must mask secrets (lkg_mask_secrets()). Failure is sticky in @buf.
 */
void lkg_effective_render(const struct lkg_value *effective, struct lkg_buf *buf);

/* ---- kinds ---- */

/*
 * The kinds with tables, each with all of its rows: for code that walks the tables themselves
 * (`lkgfs explain`, the generated documentation, tests). Code that handles a document uses lkg_schema_get().
 */

struct lkg_kind {
        const char *kind, *api_version;
        const char *component; /* "kubelet": the program that reads it */
        const struct lkg_field *fields;
        const size_t *n_fields;
        const struct lkg_flag *flags;
        const size_t *n_flags;
};

extern const struct lkg_kind lkg_kinds[];
extern const size_t lkg_n_kinds;

/* A known key of a map field. */
struct lkg_map_key {
        const char *const *fields; /* paths of the maps that have it, NULL at the end */
        const char *key;
        const char *doc; /* one line */
};

extern const struct lkg_map_key lkg_map_keys[];
extern const size_t lkg_n_map_keys;

/** lkg_map_key_find() - the row of @key in the map @field; NULL = unknown. */
const struct lkg_map_key *lkg_map_key_find(const char *field, const char *key);

/** lkg_field_in() - does @field exist in @release? */
bool lkg_field_in(const struct lkg_field *field, unsigned release);
/** lkg_gate_in() - the state of @gate in @release (it may be REMOVED), or NULL. */
const struct lkg_gate_state *lkg_gate_in(const struct lkg_gate *gate, unsigned release);
/** lkg_gate_stage_name() - "alpha", "beta", "GA", "deprecated", "dropped". */
const char *lkg_gate_stage_name(enum lkg_gate_stage stage);
#define LKG_GATE_DROPPED_MAX (LKG_RELEASE_TEXT_MAX + 8)
/** lkg_gate_dropped() - when a REMOVED gate was dropped, as text: "in 1.35", "before 1.24". Return: @buf. */
const char *lkg_gate_dropped(const struct lkg_gate_state *state, char buf[static LKG_GATE_DROPPED_MAX]);

/* ---- suspects ---- */

/*
 * Who is to blame for a configuration that is marked bad: the fields in which it differs from the last known good, the most
 * dangerous first (column `danger` of the tables).
 *
 * A pure value: a map as it is stored in the record of the mark and shown in bad/ (docs/specification.md 2.12). Its values are
 * masked like those of status/<c>/origin, and it is limited in number and size.
 */

#define LKG_SUSPECTS_MAX       32u   /* fields that are listed; the others are counted */
#define LKG_SUSPECTS_BYTES_MAX 8192u /* of their texts, about */
#define LKG_SUSPECT_VALUE_MAX  120u  /* bytes of a value; then it is cut */
#define LKG_SUSPECT_TEXT_MAX   256u  /* bytes of a pointer, a layer, a file; then it is cut */

/* One of the two documents. */
struct lkg_suspects_side {
        const struct lkg_value *doc; /* not masked */
        const char *origin;          /* the text of `origin` for it, NUL-terminated */
        uint64_t generation;         /* 0 = it has no number */
};

/**
 * lkg_suspects_find() - the fields in which @condemned differs from @good.
 * @schema: NULL = a kind without a table: the order is that of the documents
 * @whole:  all of them; otherwise within the limits above
 * Return: one reference.
 */
struct lkg_value *lkg_suspects_find(const struct lkg_schema *schema, const struct lkg_suspects_side *good,
                                    const struct lkg_suspects_side *condemned, bool whole);
/** lkg_suspects_unknown() - the map for a mark whose documents cannot be compared: @why. Return: one reference. */
struct lkg_value *lkg_suspects_unknown(const char *why);
/** lkg_suspects_known() - are there fields, or is it known that there are none? @suspects: may be NULL, or anything from a disk */
bool lkg_suspects_known(const struct lkg_value *suspects);
/** lkg_suspects_number() - a number of the map: generation, lastKnownGood, notListed; 0 = none. */
uint64_t lkg_suspects_number(const struct lkg_value *suspects, const char *name);
/**
 * lkg_suspects_say() - append `suspects: cgroupDriver (drop-in 10-x.conf:3), maxPods (...) and 2 more`: names of fields and places,
 * never a value nor the key of a map. Appends nothing if they are not known.
 * @room: bytes that it may have
 */
void lkg_suspects_say(const struct lkg_value *suspects, size_t room, struct lkg_buf *buf);

/* ---- json-schema ---- */

/*
 * Kinds as JSON Schema, for editors and CI: `lkgfs schema`. Draft-07, because it is the latest draft that yaml-language-server,
 * editors and Debian's validators all know; `deprecated`, which came later, is only an annotation, and others ignore it.
 *
 * A schema accepts every document that the component accepts, and so allows what is legal although it looks odd: null (in a
 * patch it removes a field), zero for "the default", unknown fields. It says nothing about rules between fields.
 *
 * Failures are recorded in the struct lkg_json.
 */

/** lkg_schema_json() - the fields of @schema. A whole document. */
void lkg_schema_json(const struct lkg_schema *schema, struct lkg_json *json);

/* ---- parts, for other kinds; each adds members to the map that was begun last ---- */

/** lkg_json_schema_head() - begin the document of @kind: `$schema`, title, description, type. */
void lkg_json_schema_head(struct lkg_json *json, const char *kind, const char *api_version,
                          const char *release);
/** lkg_json_schema_const() - a member @name that has only the value @text. */
void lkg_json_schema_const(struct lkg_json *json, const char *name, const char *text, const char *doc);
/** lkg_json_schema_type() - `"type": [@type, @or, "null"]`; @or may be NULL. */
void lkg_json_schema_type(struct lkg_json *json, const char *type, const char * or);
/** lkg_json_schema_duration() - a string that Go's time.ParseDuration() may take. @sign: also a negative one. */
void lkg_json_schema_duration(struct lkg_json *json, bool sign);
