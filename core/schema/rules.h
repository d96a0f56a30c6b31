/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules as rows, and the messages of violations. Rules about one field are rows of a table; rules between
 * fields are functions; both report in the same form:
 *
 *     maxPods (--max-pods): -5 is out of range; it must not be negative
 *
 * The flag is named only if the value came from the command line.
 */
#pragma once

#include "findings-codes.h"
#include "gates.h"
#include "typed.h"

#define LKG_RULE_PATH_MAX 512 /* bytes of a path with list indexes and quoted keys, with its final NUL */

/* ---- judging ---- */

/*
 * The component's own validation: every rule is checked and every violation is reported, not only the first.
 *
 * The document is typed (lkg/schema.h), complete with defaults and flags. A finding has the position of the
 * value that violates the rule; if the rule is between two fields, it names both positions. A default has no
 * position, so the finding names the value that can be changed.
 */
struct lkg_rules {
        const struct lkg_schema_node *node; /* the type of @object */
        const struct lkg_value *object;
        /* where @object is in its document, with a point at the end: `spec.containers[0].`; NULL = it is the document */
        const char *at;
        unsigned release;
        bool kubelet;                  /* of the two components with tables */
        const struct lkg_gates *gates; /* as they are when the component validates: flags and document */
        const struct lkg_host *host;
        struct lkg_report *report;
        bool no_eviction;     /* --experimental-allocatable-ignore-eviction: thresholds reserve nothing */
        bool other_root;      /* --root-dir: its file system is not the one that is asked about */
        bool startup_refuses; /* see struct lkg_judge_config */
        const struct lkg_value *unread; /* see lkg_object_unread(); NULL = nothing */
        bool *doubt; /* the current rule has used some of it, see lkg_rule_begin(); needed with @unread */
        /* of a struct in a document that is walked, struct by struct (pod.c) */
        const struct lkg_rules *up;      /* what it is in; NULL = it is the document */
        const char *name;                /* of the field that it is, or is an item of */
        struct lkg_value *seen;          /* see lkg_rule_once() */
        const struct lkg_value *volumes; /* of its PodSpec: by name, the first of each */
};

/* Each adds errors and warnings to rules->report. */
void lkg_rules_kubelet(const struct lkg_rules *rules);
void lkg_rules_kubeproxy(const struct lkg_rules *rules);
/** lkg_rules_logging() - component-base/logs/api/v1 Validate; both kinds have the same `logging`. */
void lkg_rules_logging(const struct lkg_rules *rules);
/**
 * lkg_rules_later() - report values that pass validation and stop the component at its start: warnings, or
 * errors.
 */
void lkg_rules_later(const struct lkg_rules *rules);
/**
 * lkg_startup_amount() - what a reservation or an eviction threshold comes to.
 * @capacity: of which a percentage is taken; 0 = unknown
 * Return: 0; -EINVAL: no quantity, or a percentage of what is unknown.
 */
int lkg_startup_amount(struct lkg_span value, double capacity, double *ret);
/** lkg_rules_host() - report values that this host cannot bear; nothing for facts that are unknown. */
void lkg_rules_host(const struct lkg_rules *rules);

/* ---- rows ---- */

enum lkg_rule_kind {
        LKG_RULE_NUMBER,   /* an integer from min to max, or a text (IntOrString); of a list, each item */
        LKG_RULE_DURATION, /* nanoseconds from min to max */
        LKG_RULE_COUNT,    /* items, members or bytes from min to max */
        LKG_RULE_WORD,     /* one of words */
        LKG_RULE_MATCH,    /* a text that the regular expression in words finds; of a list, each item */
        LKG_RULE_NOT,      /* none of words; of a list, no item */
        LKG_RULE_SET,      /* not empty */
        LKG_RULE_UNSET, /* zero, false or empty; no duration. With @when, @want is what it cannot go with */
        LKG_RULE_PARSE, /* what parse accepts, or a number (IntOrString); of a list, each item */
        /* one of words, or what entry accepts; of a list, each item, of a map, each member: for the component's start */
        LKG_RULE_ENTRY,
        LKG_RULE_ONE_OF, /* one of the fields in words is there, and with LKG_RULE_EMPTY_OK at most; no path */
        LKG_RULE_ONCE, /* another text, with that of the field in words, than others of its type in @around */
        LKG_RULE_CHECK, /* what check says */
};

enum lkg_rule_flags {
        LKG_RULE_ZERO_OK = 1 << 0,  /* 0 passes although it is below min */
        LKG_RULE_EMPTY_OK = 1 << 1, /* the empty text passes */
        LKG_RULE_GATE_OFF = 1 << 2, /* judged while the gate is off; else while it is on */
        LKG_RULE_NIL = 1 << 3,      /* unset means not there at all: the component tells it from zero */
        LKG_RULE_LATER = 1 << 4,    /* the component's start, not its validation: a warning */
        LKG_RULE_STATIC = 1 << 5,   /* UNSET: a static pod cannot have it */
};

struct lkg_value_rule {
        const char *path; /* dotted, without list indexes */
        enum lkg_rule_kind kind;
        const char *want; /* a clause: what would be right */
        int64_t min, max;
        const char *words; /* separated by ", ", for messages */
        /* lkg/schema values: 0; -EINVAL and a reason (LKG_REFUSAL_MAX bytes) */
        int (*parse)(const char *text, size_t size, char *reason);
        /* the same; @key: of a map */
        int (*entry)(struct lkg_span key, struct lkg_span value, char *reason);
        void (*check)(const struct lkg_rules *rules, const char *path);
        const char *gate;
        /*
         * Judged only while the field @when has one of the words @is, or `true`, `false`; after a `!`: none of them. Without
         * words: while it is not zero, false or empty, or is a map.
         */
        const char *when, *is;
        const char *around;    /* judged only in this, where @when is looked for; see lkg_rule_around() */
        unsigned flags;        /* enum lkg_rule_flags */
        unsigned since, until; /* releases; 0 = from the first / to the last */
};

/* The rows of each kind, and those of `logging` in both. */
extern const struct lkg_value_rule lkg_kubelet_rules[], lkg_kubeproxy_rules[], lkg_logging_rules[];
extern const size_t lkg_n_kubelet_rules, lkg_n_kubeproxy_rules, lkg_n_logging_rules;

/*
 * No rule uses a field or a gate that could not be read: nothing follows from it. So rules read both with these
 * functions alone. Once a rule has read such a one, lkg_breach*() report nothing until the next rule begins.
 */
void lkg_rule_begin(const struct lkg_rules *rules);
const struct lkg_value *lkg_rule_get(const struct lkg_rules *rules, const char *path);
/** lkg_rule_about() - begin a rule about this field. */
const struct lkg_value *lkg_rule_about(const struct lkg_rules *rules, const char *path);
/** lkg_rule_each() - begin a rule about each item of a list or map: those that could be read count. */
const struct lkg_value *lkg_rule_each(const struct lkg_rules *rules, const char *path);
bool lkg_rule_bool(const struct lkg_rules *rules, const char *path);
int64_t lkg_rule_int(const struct lkg_rules *rules, const char *path);
int64_t lkg_rule_duration(const struct lkg_rules *rules, const char *path);
struct lkg_span lkg_rule_text(const struct lkg_rules *rules, const char *path); /* borrowed */
/** lkg_rule_is() - has the field one of these words, between ", "? */
bool lkg_rule_is(const struct lkg_rules *rules, const char *path, const char *words);
/** lkg_rule_size() - items, members or bytes; 0: it is not there. */
size_t lkg_rule_size(const struct lkg_rules *rules, const char *path);
/** lkg_rule_around() - the innermost struct around @rules of this type, or under this name; NULL = there is none. */
const struct lkg_rules *lkg_rule_around(const struct lkg_rules *rules, const char *what);
/** lkg_rule_gate() - is the feature gate on? */
bool lkg_rule_gate(const struct lkg_rules *rules, const char *name);

/** lkg_rules_apply() - check all rows. */
void lkg_rules_apply(const struct lkg_rules *rules, const struct lkg_value_rule *rows, size_t n_rows);

/** lkg_breach_missing() - report a missing or empty text. @at: its parent, or the empty text. */
void lkg_breach_missing(const struct lkg_rules *rules, const char *path, const struct lkg_value *at,
                        const char *want);
/**
 * lkg_breach() - report a rule that one value violates.
 * @code:  enum lkg_schema_code; LKG_F_REFUSED_LATER is a warning, and so is LKG_F_HOST while the host's facts are not
 *         given; all others are errors
 * @path:  as shown, with list indexes
 * @value: the value at fault; NULL = unset
 * @fmt:   text after the value
 */
void lkg_breach(const struct lkg_rules *rules, unsigned code, const char *path,
                const struct lkg_value *value, const char *fmt, ...) LKG_PRINTF(5, 6);

/* lkg_breach() about the value at @path. */
#define lkg_breach_at(rules, code, path, ...) \
        lkg_breach(rules, code, path, lkg_rule_get(rules, path), __VA_ARGS__)

/** lkg_rule_once() - report @value at @path if @around has seen this key, not an empty one, before. */
void lkg_rule_once(const struct lkg_rules *rules, const struct lkg_rules *around, struct lkg_span key,
                   const char *path, const struct lkg_value *value);

/* One of two fields that conflict; @says is the text between its value and the other field. */
struct lkg_operand {
        const char *path;
        const struct lkg_value *value; /* NULL = unset */
        const char *says;
};

#define LKG_FLAG_NOTE_MAX 96
/** lkg_flag_note() - ` (--flag)` if the command line set it, else nothing. Return: @buf. */
const char *lkg_flag_note(const struct lkg_value *value, char buf[static LKG_FLAG_NOTE_MAX]);
#define LKG_FLAG_NOTE(value) \
        lkg_flag_note(value, (char[LKG_FLAG_NOTE_MAX]){ 0 }) /* until the end of the block */

/**
 * lkg_breach_gate() - report a value that needs a feature gate, and where a layer has turned the gate off.
 * @want: what would be right
 */
void lkg_breach_gate(const struct lkg_rules *rules, unsigned code, const char *path,
                     const struct lkg_value *value, const char *gate, const char *want);

/**
 * lkg_breach_between() - report a violated rule between two fields: at the field that the later layer set,
 * naming the other field, its value and its position.
 * @want: what would be right, or NULL when @says says it
 */
void lkg_breach_between(const struct lkg_rules *rules, unsigned code, const struct lkg_operand *a,
                        const struct lkg_operand *b, const char *want);
/** lkg_breach_pair() - the same with the values of two fields. */
void lkg_breach_pair(const struct lkg_rules *rules, unsigned code, const char *a, const char *a_says,
                     const char *b, const char *b_says, const char *want);

/**
 * lkg_rule_parse_item() - check an item of a list, or a member of one, with a parser.
 * @member: NULL = the item itself
 *
 * Most values are valid: the path `list[i].member` is built only for invalid ones.
 */
void lkg_rule_parse_item(const struct lkg_rules *rules, unsigned code, const char *list, size_t i,
                         const char *member, const struct lkg_value *value,
                         int (*parse)(const char *text, size_t size, char *reason));

/** lkg_rule_item_path() - `list[i]` or `list[i].member` for messages. Return: @buf. */
const char *lkg_rule_item_path(const char *list, size_t i, const char *member,
                               char buf[static LKG_RULE_PATH_MAX]);
#define LKG_ITEM_PATH(list, i, member) \
        lkg_rule_item_path(list, i, member, (char[LKG_RULE_PATH_MAX]){ 0 }) /* until the end of the block */

/** lkg_rule_word() - is @text one of @words, which are separated by ", "? */
bool lkg_rule_word(const char *words, struct lkg_span text);

/** lkg_rule_key_path() - `map.key` for messages, the key quoted if it has unusual bytes. Return: @buf. */
const char *lkg_rule_key_path(const char *path, struct lkg_span key, char buf[static LKG_RULE_PATH_MAX]);
#define LKG_KEY_PATH(path, key) \
        lkg_rule_key_path(path, key, (char[LKG_RULE_PATH_MAX]){ 0 }) /* until the end of the block */

/** lkg_rule_hidden_metrics() - showHiddenMetricsForVersion of both kinds. */
void lkg_rule_hidden_metrics(const struct lkg_rules *rules);
