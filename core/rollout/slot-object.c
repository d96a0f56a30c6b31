/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot as an object of the API server, and back. What is read was written by another node, so everything is checked.
 *
 * A ConfigMap has it all as texts in data. A Lease has fields of its own for the holder, its times and its patience, which other
 * tools show and know; the rest are annotations with the same names and a prefix.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/slots.h>

#define FORMAT          "1"
#define SUCCESSES_MAX   1000000u
#define LABEL_COLLECTED "lkgfs.io/collected"
#define PREFIX          "lkgfs.io/" /* of the annotations of a Lease */
#define NAME_MAX_SIZE   64u         /* of a text, with its prefix */

static const struct lkg_slot_format formats[] = {
        [LKG_SLOT_CONFIGMAP] = { "v1", "configmaps", "ConfigMap", "ConfigMapList" },
        [LKG_SLOT_LEASE] = { "coordination.k8s.io/v1", "leases", "Lease", "LeaseList" },
};

const struct lkg_slot_format *lkg_slot_format(enum lkg_slot_kind kind)
{
        return &formats[kind];
}

static const char *const state_names[] = {
        [LKG_SLOT_FREE] = "free",
        [LKG_SLOT_HELD] = "held",
        [LKG_SLOT_FAILED] = "failed",
};

const char *lkg_slot_state_name(enum lkg_rollout_slot_state state)
{
        return state_names[state];
}

void lkg_rollout_id_seal(struct lkg_rollout_id *id)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_format("%s/%s/%s", id->uid, id->sha256, id->key);
        char digest[LKG_SHA256_HEX];

        (void)lkg_need(lkg_sha256_hex(text, strlen(text), digest));
        (void)snprintf(id->hash, sizeof(id->hash), "%.16s", digest);
}

void lkg_slot_name(const struct lkg_rollout_slot *slot, char ret[static LKG_SLOT_HASH + 8])
{
        (void)snprintf(ret, LKG_SLOT_HASH + 8, "%s-%u", slot->hash, slot->index);
}

void lkg_slot_give_back(struct lkg_rollout_slot *slot)
{
        slot->state = LKG_SLOT_FREE;
        *slot->node = *slot->node_uid = *slot->reason = '\0';
        slot->since_ns = slot->renewed_ns = 0;
        slot->asked = false;
}

/* ---- reading ---- */

/* The texts of an object. */
struct texts {
        const struct lkg_value *map;  /* data, or annotations */
        const char *prefix;           /* of their names */
        const struct lkg_value *spec; /* of a Lease, or NULL */
};

static int find_texts(const struct lkg_value *object, enum lkg_slot_kind kind, struct texts *ret,
                      struct lkg_error *err)
{
        const struct lkg_value *metadata = lkg_map_get_map(object, "metadata");

        *ret = kind == LKG_SLOT_LEASE ? (struct texts){ lkg_map_get_map(metadata, "annotations"), PREFIX,
                                                        lkg_map_get_map(object, "spec") }
                                      : (struct texts){ lkg_map_get_map(object, "data"), "", NULL };
        if (!metadata || !ret->map)
                return lkg_refuse_because(err, -EINVAL, NULL, "it has no metadata or no %s",
                                          kind == LKG_SLOT_LEASE ? "annotations" : "data");
        return kind == LKG_SLOT_LEASE && !ret->spec
                       ? lkg_refuse_because(err, -EINVAL, NULL, "it has no spec")
                       : 0;
}

/* A member of the spec counts, whatever an annotation of that name says. */
static const char *get_text(const struct texts *in, const char *field)
{
        static const struct {
                const char *field, *spec;
        } own[] = { { "node", "holderIdentity" }, { "since", "acquireTime" }, { "renewed", "renewTime" } };
        char name[NAME_MAX_SIZE];

        for (size_t i = 0; in->spec && i < LKG_ARRAY_SIZE(own); i++)
                if (strcmp(field, own[i].field) == 0)
                        return lkg_map_get_string(in->spec, own[i].spec);
        (void)snprintf(name, sizeof(name), "%s%s", in->prefix, field);
        return lkg_map_get_string(in->map, name);
}

static int check_identifier(const char *text, const char *field, char *ret, size_t size, bool required,
                            struct lkg_error *err)
{
        size_t n = text ? strlen(text) : 0;

        if (!text && !required)
                return 0;
        if (!text || (required && n == 0) || n >= size ||
            strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
                return lkg_refuse_because(err, -EINVAL, NULL, "%s is not an identifier", field);
        memcpy(ret, text, n + 1);
        return 0;
}

/* Names, uids, keys and versions: what Kubernetes lets them be. */
static int take_identifier(const struct texts *in, const char *field, char *ret, size_t size, bool required,
                           struct lkg_error *err)
{
        return check_identifier(get_text(in, field), field, ret, size, required, err);
}

static int take_number(const struct texts *in, const char *field, unsigned max, unsigned *ret,
                       struct lkg_error *err)
{
        uint64_t value = 0;
        const char *text = get_text(in, field), *rest = text ? lkg_digits(text, &value) : NULL;

        if (!rest || *rest || strlen(text) > 7)
                return lkg_refuse_because(err, -EINVAL, NULL, "%s is not a number", field);
        if (value > max)
                return lkg_refuse_because(err, -EINVAL, NULL, "%s is larger than %u", field, max);
        *ret = (unsigned)value;
        return 0;
}

static int take_state(const struct texts *in, enum lkg_rollout_slot_state *ret, struct lkg_error *err)
{
        const char *text = get_text(in, "state");

        for (unsigned i = 0; text && i < LKG_ARRAY_SIZE(state_names); i++)
                if (strcmp(text, state_names[i]) == 0) {
                        *ret = (enum lkg_rollout_slot_state)i;
                        return 0;
                }
        return lkg_refuse_because(err, -EINVAL, NULL, "state is not free, held or failed");
}

/* For people, and cut: what another node has written must not be the reason why a failure does not count. */
static void take_reason(const struct texts *in, char ret[static LKG_SLOT_REASON_MAX])
{
        const char *text = get_text(in, "reason");

        (void)snprintf(ret, LKG_SLOT_REASON_MAX, "%s", text ? text : "");
        for (char *p = ret; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        lkg_utf8_mend(ret);
}

static void take_time(const char *text, uint64_t *ret)
{
        if (!text || lkg_parse_rfc3339(text, ret) < 0)
                *ret = 0;
}

/* A Lease has whole seconds, as a number. */
static uint64_t spec_seconds(const struct lkg_value *spec)
{
        const struct lkg_value *value = lkg_map_get(spec, "leaseDurationSeconds");
        const char *text = value && lkg_value_type(value) == LKG_NUMBER ? lkg_value_text(value, NULL) : "";

        return strlen(text) > 7 || strspn(text, "0123456789") != strlen(text)
                       ? 0
                       : strtoul(text, NULL, 10) * LKG_NSEC_PER_SEC;
}

/* For people; a slot without it counts all the same. */
static void take_version(const struct texts *in, char ret[static LKG_SLOT_TEXT_MAX])
{
        struct lkg_error ignored = { 0 };

        if (take_identifier(in, "resourceVersion", ret, LKG_SLOT_TEXT_MAX, false, &ignored) < 0)
                *ret = '\0';
}

static void take_patience(const struct texts *in, uint64_t *ret)
{
        const char *text = get_text(in, "patience");

        if (in->spec)
                *ret = spec_seconds(in->spec);
        else if (!text || lkg_duration_parse_plain(text, ret) < 0)
                *ret = 0;
        if (*ret < LKG_SLOT_PATIENCE_MORE)
                *ret = LKG_SLOT_PATIENCE_MORE;
        if (*ret > LKG_SLOT_PATIENCE_MAX)
                *ret = LKG_SLOT_PATIENCE_MAX;
}

/* The name says which slot it is, so what is in it must say the same. */
static int check_name(const struct lkg_value *metadata, const struct texts *in,
                      struct lkg_rollout_slot *slot, struct lkg_error *err)
{
        const char *name = lkg_map_get_string(metadata, "name"), *format = get_text(in, "version");
        struct lkg_rollout_id id = { .ns = "" };
        char want[LKG_SLOT_HASH + 8];
        int r;

        if (!format || strcmp(format, FORMAT) != 0)
                return lkg_refuse_because(err, -EINVAL, NULL, "version is not " FORMAT);
        r = take_identifier(in, "uid", id.uid, sizeof(id.uid), true, err);
        if (r == 0)
                r = take_identifier(in, "key", id.key, sizeof(id.key), true, err);
        if (r == 0)
                r = take_identifier(in, "sha256", id.sha256, sizeof(id.sha256), true, err);
        if (r == 0)
                r = take_number(in, "slot", LKG_SLOTS_MAX - 1, &slot->index, err);
        if (r < 0)
                return r;
        lkg_rollout_id_seal(&id);
        memcpy(slot->uid, id.uid, sizeof(slot->uid));
        memcpy(slot->key, id.key, sizeof(slot->key));
        memcpy(slot->hash, id.hash, sizeof(slot->hash));
        memcpy(slot->sha256, id.sha256, sizeof(slot->sha256));
        lkg_slot_name(slot, want);
        return name && strcmp(name, want) == 0
                       ? 0
                       : lkg_refuse_because(err, -EINVAL, NULL, "its name is not %s", want);
}

int lkg_slot_read(enum lkg_slot_kind kind, const struct lkg_value *object, struct lkg_rollout_slot *ret,
                  struct lkg_error *err)
{
        const struct lkg_value *metadata = lkg_map_get_map(object, "metadata"),
                               *labels = lkg_map_get_map(metadata, "labels");
        struct lkg_rollout_slot slot = { .index = 0 };
        struct texts in;
        int r = find_texts(object, kind, &in, err);

        if (r == 0)
                r = check_name(metadata, &in, &slot, err);
        if (r == 0)
                r = check_identifier(lkg_map_get_string(metadata, "resourceVersion"), "resourceVersion",
                                     slot.version, sizeof(slot.version), true, err);
        if (r == 0)
                r = take_state(&in, &slot.state, err);
        if (r == 0)
                r = take_number(&in, "successes", SUCCESSES_MAX, &slot.successes, err);
        if (r == 0)
                r = take_identifier(&in, "node", slot.node, sizeof(slot.node), slot.state != LKG_SLOT_FREE,
                                    err);
        if (r == 0)
                r = take_identifier(&in, "nodeUid", slot.node_uid, sizeof(slot.node_uid), false, err);
        if (r < 0)
                return r;
        take_reason(&in, slot.reason);
        take_version(&in, slot.of_version);
        take_time(get_text(&in, "since"), &slot.since_ns);
        take_time(get_text(&in, "renewed"), &slot.renewed_ns);
        take_time(lkg_map_get_string(metadata, "creationTimestamp"), &slot.created_ns);
        take_patience(&in, &slot.patience_ns);
        slot.asked = slot.state == LKG_SLOT_HELD && get_text(&in, "asked");
        slot.collected = labels && lkg_map_get(labels, LABEL_COLLECTED);
        *ret = slot;
        return 0;
}

/* ---- writing ---- */

static void put_text(struct lkg_json *json, const char *prefix, const char *field, const char *text)
{
        char name[NAME_MAX_SIZE];

        (void)snprintf(name, sizeof(name), "%s%s", prefix, field);
        lkg_json_foreign(json, name, text); /* the reason of a failure may be cut inside a character */
}

static void put_number(struct lkg_json *json, const char *prefix, const char *field, unsigned value)
{
        char text[16];

        (void)snprintf(text, sizeof(text), "%u", value);
        put_text(json, prefix, field, text);
}

static void put_time(struct lkg_json *json, const char *field, uint64_t wall_ns)
{
        char text[21];

        if (!wall_ns)
                return;
        lkg_format_rfc3339(wall_ns, text);
        lkg_json_text(json, field, text);
}

/* MicroTime of Kubernetes: exactly six digits of the fraction. */
static void put_micro_time(struct lkg_json *json, const char *field, uint64_t wall_ns)
{
        char text[21 + 7];

        if (!wall_ns)
                return;
        lkg_format_rfc3339(wall_ns, text);
        (void)snprintf(text + strlen(text) - 1, 9, ".%06uZ", (unsigned)(wall_ns / 1000 % 1000000));
        lkg_json_text(json, field, text);
}

/* What both kinds have as texts. */
static void put_texts(struct lkg_json *json, const char *prefix, const struct lkg_rollout_slot *slot,
                      const struct lkg_rollout_id *id)
{
        put_text(json, prefix, "version", FORMAT);
        put_text(json, prefix, "configMap", id->name);
        put_text(json, prefix, "configMapNamespace", id->ns);
        put_text(json, prefix, "uid", slot->uid);
        put_text(json, prefix, "key", slot->key);
        put_text(json, prefix, "sha256", slot->sha256);
        put_text(json, prefix, "resourceVersion", slot->of_version);
        put_number(json, prefix, "slot", slot->index);
        put_text(json, prefix, "state", lkg_slot_state_name(slot->state));
        put_text(json, prefix, "nodeUid", slot->node_uid);
        if (slot->asked)
                put_text(json, prefix, "asked", "true");
        put_number(json, prefix, "successes", slot->successes);
        if (*slot->reason)
                put_text(json, prefix, "reason", slot->reason);
}

static void put_data(struct lkg_json *json, const struct lkg_rollout_slot *slot,
                     const struct lkg_rollout_id *id)
{
        char patience[LKG_DURATION_MAX];

        (void)lkg_duration_format((int64_t)slot->patience_ns, patience);
        lkg_json_map(json, "data", LKG_JSON_TIGHT);
        put_texts(json, "", slot, id);
        lkg_json_text(json, "node", slot->node);
        put_time(json, "since", slot->since_ns);
        put_time(json, "renewed", slot->renewed_ns);
        lkg_json_text(json, "patience", patience);
        lkg_json_end(json);
}

/* A Lease without a holder is free, for others as well. The API server refuses a duration of 0. */
static void put_spec(struct lkg_json *json, const struct lkg_rollout_slot *slot)
{
        uint64_t patience_s = (slot->patience_ns + LKG_NSEC_PER_SEC - 1) / LKG_NSEC_PER_SEC;

        lkg_json_map(json, "spec", LKG_JSON_TIGHT);
        if (*slot->node)
                lkg_json_text(json, "holderIdentity", slot->node);
        if (patience_s)
                lkg_json_u64(json, "leaseDurationSeconds", patience_s);
        put_micro_time(json, "acquireTime", slot->since_ns);
        put_micro_time(json, "renewTime", slot->renewed_ns);
        lkg_json_u64(json, "leaseTransitions", slot->successes); /* for people; the annotation counts */
        lkg_json_end(json);
}

/*
 * Nodes may not delete anything (contrib/rbac). An object whose owners do not exist is deleted by the cluster's garbage collector
 * (Kubernetes documentation, "Garbage Collection": orphaned objects), so a collected slot gets an owner that never existed: a ConfigMap,
 * for a Lease as well, as the kind of an owner may be any.
 */
static void put_no_owner(struct lkg_json *json, const struct lkg_rollout_slot *slot,
                         const struct lkg_rollout_id *id)
{
        char uid[40];

        (void)snprintf(uid, sizeof(uid), "00000000-0000-4000-8000-%.12s", slot->hash);
        lkg_json_list(json, "ownerReferences", LKG_JSON_TIGHT);
        lkg_json_map(json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(json, "apiVersion", "v1");
        lkg_json_text(json, "kind", "ConfigMap");
        lkg_json_text(json, "name", id->name);
        lkg_json_text(json, "uid", uid);
        lkg_json_end(json);
        lkg_json_end(json);
}

static void put_metadata(struct lkg_json *json, enum lkg_slot_kind kind, const struct lkg_rollout_slot *slot,
                         const struct lkg_rollout_id *id, const char *ns)
{
        char name[LKG_SLOT_HASH + 8];

        lkg_slot_name(slot, name);
        lkg_json_map(json, "metadata", LKG_JSON_TIGHT);
        lkg_json_text(json, "namespace", ns);
        lkg_json_text(json, "name", name);
        if (*slot->version)
                lkg_json_text(json, "resourceVersion", slot->version);
        lkg_json_map(json, "labels", LKG_JSON_TIGHT);
        lkg_json_text(json, LKG_SLOT_LABEL_ROLLOUT, slot->hash);
        lkg_json_text(json, LKG_SLOT_LABEL_OBJECT, slot->uid);
        if (slot->collected)
                lkg_json_text(json, LABEL_COLLECTED, "true");
        lkg_json_end(json);
        if (kind == LKG_SLOT_LEASE) {
                lkg_json_map(json, "annotations", LKG_JSON_TIGHT);
                put_texts(json, PREFIX, slot, id);
                lkg_json_end(json);
        }
        if (slot->collected)
                put_no_owner(json, slot, id);
        lkg_json_end(json);
}

void lkg_slot_write(enum lkg_slot_kind kind, const struct lkg_rollout_slot *slot,
                    const struct lkg_rollout_id *id, const char *ns, struct lkg_json *json)
{
        lkg_json_map(json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(json, "apiVersion", formats[kind].group_version);
        lkg_json_text(json, "kind", formats[kind].kind);
        put_metadata(json, kind, slot, id, ns);
        if (kind == LKG_SLOT_LEASE)
                put_spec(json, slot);
        else
                put_data(json, slot, id);
        lkg_json_end(json);
}
