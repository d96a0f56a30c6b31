/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the API server, and what is read from them. */
#pragma once

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/lifecycle.h>
#include <lkg/stack.h>
#include <lkg/text.h>
#include <lkg/trial.h>

/*
 * A reference, set by an administrator or for a fleet: a ConfigMap by namespace and name, or the local
 * configuration. Pure: text or value in, reference or reason out. Rules: docs/specification.md 4.2, from the
 * proposal that docs/dynamic-configuration.md names, and from NodeConfigSource of Kubernetes 1.8 to 1.10
 * (`configMapRef`: an ObjectReference) and 1.11 to 1.25 (`configMap`).
 */

enum lkg_reference_type { LKG_REFERENCE_LOCAL, LKG_REFERENCE_CONFIGMAP };

/* Each array is zero after its text, so memcmp() compares two references. */
struct lkg_reference {
        enum lkg_reference_type type;
        char ns[LKG_IDENTIFIER_MAX + 1], name[LKG_IDENTIFIER_MAX + 1];
        char key[LKG_IDENTIFIER_MAX + 1]; /* never empty: LKG_KEY_DEFAULT unless given */
        char uid[LKG_IDENTIFIER_MAX + 1]; /* required uid of the object; "" = any */
};

/**
 * lkg_reference_from_node_source() - parse a NodeConfigSource in either form.
 * @source: a map; NULL or null = the local configuration
 *
 * `configMap`: namespace and name, optionally kubeletConfigKey (absent = `kubelet`) and uid; a
 * resourceVersion is ignored, because a reference floats (it may have been copied from status.config).
 * `configMapRef`: namespace, name and uid, all of them; kind and apiVersion are ConfigMap and v1 or absent.
 * An unknown field is refused: its author meant a key or an object, and it would be ignored. A null or an
 * empty text counts as an absent field.
 *
 * Return: 0; -EINVAL: @err->message is the proposal's reason ("invalid NodeConfigSource, exactly one
 * subfield must be non-nil, but all were nil"), followed by details that the proposal does not have.
 */
int lkg_reference_from_node_source(const struct lkg_value *source, struct lkg_reference *ret,
                                   struct lkg_error *err);

/**
 * lkg_reference_from_text() - parse the value of the annotation lkgfs.io/config-source: a NodeConfigSource
 * as JSON, `namespace/name[/key]`, or `local`; surrounding white space is ignored. Empty text is -EINVAL
 * (the caller handles an absent annotation), and so is the text `null`: only the word `local` resets.
 *
 * Return: 0; -EINVAL as above, quoting at most LKG_QUOTE_MAX bytes.
 */
int lkg_reference_from_text(const char *text, size_t size, struct lkg_reference *ret, struct lkg_error *err);

/** lkg_reference_from_parts() - from our own configuration (`remote.static`); key and uid may be "". */
int lkg_reference_from_parts(const char *ns, const char *name, const char *key, const char *uid,
                             struct lkg_reference *ret, struct lkg_error *err);

/**
 * lkg_reference_allowed() - does a pattern of remote.allowedSources (`namespace/name`; either may be `*`, or
 * end with one) allow @ns/@name?
 */
bool lkg_reference_allowed(const char *const *patterns, size_t n_patterns, const char *ns, const char *name);

/* ---- configmap ---- */

/*
 * A ConfigMap object: from bytes to a checked identity, the payload, and the text of a checkpoint. Pure;
 * never quotes a value of `data`.
 *
 * An object is refused as a whole, before any part of it is used in a path, if the API server would not have
 * accepted it either (another kind, names and keys that no ConfigMap can have, `data` that is not text).
 * That is an invalid reference and never a bad mark; a missing, empty or wrong payload is a bad mark
 * (docs/specification.md 4.2, 4.5).
 */

#define LKG_CONFIGMAP_DEPTH_MAX 64u /* nested collections; real ones have 10, in managedFields */

/* Immutable; may be moved. */
struct lkg_configmap {
        /* the whole object, one reference; with uid and version, even generated ones */
        struct lkg_value *object;
        const char *ns, *name, *uid, *version; /* inside the object */
};

struct lkg_configmap_options {
        size_t max_bytes; /* remote.maxBytes; LKG_DOC_BYTES_MAX for checkpoints */
        /*
         * A file, not an API server's reply: YAML is allowed; uid and resourceVersion are generated if
         * missing: the first 12 hex digits of SHA-256 of `namespace/name`, and of the bytes of the file
         * (`sha256sum FILE`); and a file that is empty or contains the word `local` means the local
         * configuration.
         */
        bool from_file;
        const char *file; /* for messages: path of the file or of the API; NULL = "ConfigMap" */
};

/**
 * lkg_configmap_parse() - decode and check.
 * @ret: lkg_configmap_deinit(); written only on success
 *
 * Return: 0; -ENODATA: a file that means the local configuration; -EFBIG: over max_bytes, or too big when
 * written as a checkpoint; -EINVAL (another kind, no namespace or name, an identifier that must not become a
 * path); -EBADMSG (cannot be decoded: line and column in @err).
 */
int lkg_configmap_parse(const char *text, size_t size, const struct lkg_configmap_options *options,
                        struct lkg_configmap *ret, struct lkg_error *err);
/**
 * lkg_configmap_from_value() - the same checks for an object that has been decoded: a reply of the API
 * server.
 * @object: shared, never changed
 *
 * The receiver of the bytes has limited their number.
 * Return: 0; -EFBIG and -EINVAL as above.
 */
int lkg_configmap_from_value(const struct lkg_value *object, struct lkg_configmap *ret,
                             struct lkg_error *err);
void lkg_configmap_deinit(struct lkg_configmap *configmap);

/**
 * lkg_configmap_resolve() - the source that @reference refers to in this object.
 *
 * A key that is missing, empty or only in binaryData is *not* an error here: sha256 is "" then and
 * lkg_configmap_payload() has the reason, because such an object is assigned and bad, not an invalid
 * reference.
 *
 * Return: 0; -EINVAL: the object is not the one that @reference names (namespace, name, uid: "invalid
 * ObjectReference, UID ... does not match UID of downloaded ConfigMap ...") or the id is too long.
 */
int lkg_configmap_resolve(const struct lkg_configmap *configmap, const struct lkg_reference *reference,
                          struct lkg_config_source *ret, struct lkg_error *err);

/**
 * lkg_configmap_payload() - the bytes under @key of `data`; valid as long as the object.
 * Return: 0; -ENOENT: no such key (@err lists at most 8 existing keys); -ENODATA: it is empty; -EINVAL: it
 * is in binaryData.
 */
int lkg_configmap_payload(const struct lkg_configmap *configmap, const char *key, const char **ret_text,
                          size_t *ret_size, struct lkg_error *err);

/** lkg_configmap_annotation() - an annotation of the object, NULL = none. */
const char *lkg_configmap_annotation(const struct lkg_configmap *configmap, const char *name);

/**
 * lkg_configmap_format() - the whole object as JSON, as stored in a checkpoint: at most LKG_DOC_BYTES_MAX,
 * and lkg_configmap_parse() reads the same object from it.
 */
void lkg_configmap_format(const struct lkg_configmap *configmap, struct lkg_buf *buf);

/* ---- rollout ---- */

/*
 * May this node switch to new content of a ConfigMap yet? Annotations of the ConfigMap decide:
 *
 *     lkgfs.io/halt: "true"             nodes that have not switched yet wait
 *     lkgfs.io/rollout-percent: "10"    only nodes whose bucket is below; 0 to 100, up to three decimals
 *     lkgfs.io/rollout-salt: "2"        selects other nodes as the first ones (optional)
 *     lkgfs.io/rollout-max-in-trial: "5"  so many nodes have it on trial at a time; see <lkg/slots.h>
 *     lkgfs.io/rollout-max-failures: "1"  after so many failures nobody else switches (default 1)
 *     lkgfs.io/rollout-fleet: "1000"      number of nodes, a hint: whose turn is near, how long to wait for a free slot
 *
 * A node's bucket is a number from 0.000 to 99.999 that only depends on its UID (and the salt): the first 8 bytes of
 * SHA-256("<salt>/<uid>"), most significant first, modulo 100000, in thousandths. Pure. Rules: docs/specification.md 4.14; the
 * idea is kubernetes/kubernetes#20200.
 *
 * A node keeps what it already follows, whatever the annotations say later; reset and rollback are never
 * held back.
 */

#define LKG_ANNOTATION_HALT    "lkgfs.io/halt"
#define LKG_ANNOTATION_PERCENT "lkgfs.io/rollout-percent"
#define LKG_ANNOTATION_SALT    "lkgfs.io/rollout-salt"
/* Slots: <lkg/slots.h> */
#define LKG_ANNOTATION_IN_TRIAL "lkgfs.io/rollout-max-in-trial"
#define LKG_ANNOTATION_FAILURES "lkgfs.io/rollout-max-failures"
#define LKG_ANNOTATION_FLEET    "lkgfs.io/rollout-fleet"

/* How many nodes may have it on trial. */
struct lkg_rollout_limits {
        unsigned max_in_trial; /* 0 = no limit, so no slots */
        unsigned max_failures;
        unsigned fleet; /* number of nodes, a hint; 0 = unknown */
};

enum lkg_rollout_state {
        LKG_ROLLOUT_GO,      /* no annotation prevents it */
        LKG_ROLLOUT_WAITING, /* the bucket is not below the percentage */
        LKG_ROLLOUT_HALTED,
        LKG_ROLLOUT_UNCLEAR, /* an annotation has an invalid value: no node switches */
};
const char *lkg_rollout_state_name(enum lkg_rollout_state state); /* "go", "waiting", "halted", "unclear" */

struct lkg_rollout {
        enum lkg_rollout_state state;
        bool halt, has_percent;
        unsigned percent_milli; /* 0 to 100000; 100000 without annotation */
        unsigned bucket_milli;  /* 0 to 99999 */
        struct lkg_rollout_limits limits;
        char words[256]; /* if not GO: "waiting for the rollout: bucket 43.210, rollout-percent 10" */
};

/** lkg_rollout_bucket() - of the node with this @uid. Return: 0 to 99999. */
unsigned lkg_rollout_bucket(const char *salt, const char *uid);

/**
 * lkg_rollout_decide() - the effect of the annotations of @configmap on this node.
 * @uid: of the Node object; its name if the Node cannot be read
 */
void lkg_rollout_decide(const struct lkg_configmap *configmap, const char *uid, struct lkg_rollout *ret);
/** lkg_rollout_limits_of() - only its limits; whether a node's turn has come is another question. */
struct lkg_rollout_limits lkg_rollout_limits_of(const struct lkg_configmap *configmap);

/* ---- guard ---- */

/*
 * Restrictions of a remote configuration on this node (docs/specification.md 4.13): fields it may not set
 * at all, and fields it may set to the base's value only. The profile hardened is a column of the field
 * tables (lkg/schema.h); pure.
 *
 * A field counts as set if it is present, whatever its value: a rule about presence can be checked by eye.
 * Names match in any case, as the component's decoder matches them, so a remote configuration cannot evade a
 * rule by writing STATICPODPATH.
 */

#define LKG_GUARD_DEPTH_MAX 64u /* nested collections of a guarded remote; no field of a kind is below 8 */

struct lkg_guard {
        bool hardened; /* also deny fields that the tables have a reason against */
        const char *const *deny,
                *const *pinned; /* dotted paths; a prefix covers what is below it; `staticPod*` */
        size_t n_deny, n_pinned;
};

/**
 * lkg_guard_check() - report every field of @remote that a rule forbids, with one error finding each
 * (LKG6002 denied, LKG6003 pinned) that names field, rule and position, but never a value.
 * @base:       the local base, NULL = none (a pinned field may not be set then)
 *
 * A denied field is reported once, and fields below it are not checked. Below a pinned one every leaf must
 * be in @base with an equal value (numbers by value, lists as a whole, so pin a list and not its members);
 * absent leaves are allowed. A document deeper than LKG_GUARD_DEPTH_MAX is refused. With the profile, a
 * field that is in no table is denied, too, unless the kind has no tables.
 *
 * Return: number of findings.
 */
int lkg_guard_check(const struct lkg_guard *guard, const struct lkg_value *remote,
                    const struct lkg_value *base, struct lkg_report *report);

/* ---- node ---- */

/*
 * A Node object: the reference to a configuration that it carries. Pure.
 */

#define LKG_ANNOTATION_CONFIG_SOURCE "lkgfs.io/config-source"

/* The reference in one place. */
enum lkg_says {
        LKG_SAYS_UNKNOWN, /* it could not be read yet */
        LKG_SAYS_NOTHING, /* it is not set */
        LKG_SAYS_LOCAL,   /* explicitly the local configuration */
        LKG_SAYS_REFERENCE,
        LKG_SAYS_INVALID, /* set, but invalid */
};

struct lkg_saying {
        enum lkg_says says;
        struct lkg_reference reference; /* REFERENCE */
        char fault[LKG_REASON_MAX];     /* UNKNOWN, INVALID: the reason */
};

enum lkg_node_ready {
        LKG_NODE_READY_UNKNOWN, /* it has no such condition */
        LKG_NODE_READY,
        LKG_NODE_NOT_READY, /* False, or Unknown: the kubelet has stopped to report */
};

struct lkg_node_object {
        char uid[LKG_IDENTIFIER_MAX + 1], version[LKG_IDENTIFIER_MAX + 1];
        struct lkg_saying annotation; /* metadata.annotations["lkgfs.io/config-source"] */
        struct lkg_saying spec;       /* spec.configSource, in both forms */
        enum lkg_node_ready ready;    /* status of the condition Ready */
        char ready_reason[64];        /* its reason, a word like KubeletNotReady; "" = none, or not a word */
};

/**
 * lkg_node_read() - read @object, a Node of the API server.
 * Return: 0; -EINVAL: uid or name is missing or unsafe, or it is not the node @name.
 */
int lkg_node_read(const struct lkg_value *object, const char *name, struct lkg_node_object *ret,
                  struct lkg_error *err);

/* ---- remote-base ---- */

/*
 * A remote configuration ready to replace the base in a stack: its payload, its display name, and the rules
 * of its trial, which it may define itself (`configTrialDuration`, `crashLoopThreshold`; else the
 * annotations lkgfs.io/trial-duration and lkgfs.io/crash-loop-threshold). The two fields are removed from
 * the document, because a component that does not know them would refuse it.
 */

struct lkg_remote_base {
        struct lkg_configmap configmap;
        struct lkg_config_source source;
        char *name, *file; /* "kubelet-config", "kube-system/kubelet-config:kubelet" */
        const char *text;  /* the payload; NULL: none, see the finding */
        size_t size;
        struct lkg_trial_rules rules;
        struct lkg_rollout_limits limits; /* of its annotations */
        char *fault; /* why it cannot be loaded: a merge over it is an invalid candidate; NULL = it can */
};

/**
 * lkg_remote_base_new() - get the payload of @source from @configmap.
 * @configmap: taken over
 * @report:    why it cannot be used, errors LKG6004 (no payload) and LKG6005 (trial fields); it is bad then
 *
 * Return: never NULL; it cannot be used if its text is NULL, or @report has an error.
 */
struct lkg_remote_base *lkg_remote_base_new(struct lkg_configmap *configmap,
                                            const struct lkg_config_source *source,
                                            const struct lkg_trial_settings *settings,
                                            struct lkg_report *report);
/** lkg_remote_base_missing() - a base that should be followed but cannot be loaded, because of @fault. */
struct lkg_remote_base *lkg_remote_base_missing(const struct lkg_config_source *source, const char *fault);
struct lkg_remote_base *lkg_remote_base_free(struct lkg_remote_base *base);

/** lkg_remote_base_file() - `namespace/name:key`, as in findings. Heap. */
char *lkg_remote_base_file(const struct lkg_config_source *source);

/** lkg_remote_base_stack() - for lkg_stack_over(); borrows from @base. */
struct lkg_stack_remote lkg_remote_base_stack(const struct lkg_remote_base *base);
