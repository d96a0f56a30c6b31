/* SPDX-License-Identifier: Apache-2.0 */
/* A slot as a ConfigMap of the API server, and back. What is read was written by another node, so everything is checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lkg/duration.h>
#include <lkg/file.h>
#include <lkg/slots.h>
#include <lkg/utf8.h>

#define FORMAT          "1"
#define SUCCESSES_MAX   1000000u
#define LABEL_COLLECTED "lkgfs.io/collected"

static const char *const state_names[] = {
        [LKG_SLOT_FREE] = "free",
        [LKG_SLOT_HELD] = "held",
        [LKG_SLOT_FAILED] = "failed",
};

const char *lkg_slot_state_name(enum lkg_rollout_slot_state state)
{
        return state_names[state];
}

int lkg_rollout_id_seal(struct lkg_rollout_id *id)
{
        char digest[LKG_SHA256_HEX];
        char *text;
        int n = asprintf(&text, "%s/%s/%s", id->uid, id->sha256, id->key), r;

        if (n < 0)
                return -ENOMEM;
        r = lkg_sha256_hex(text, (size_t)n, digest);
        free(text);
        if (r < 0)
                return r;
        (void)snprintf(id->hash, sizeof(id->hash), "%.16s", digest);
        return 0;
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

static int LKG_PRINTF(2, 3) refuse(struct lkg_error *err, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void)lkg_error_setv(err, -EINVAL, NULL, fmt, ap);
        va_end(ap);
        return -EINVAL;
}

static const struct lkg_value *map_member(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *value = map ? lkg_map_get(map, name) : NULL;

        return value && lkg_value_type(value) == LKG_MAP ? value : NULL;
}

/* Names, uids, keys and versions: what Kubernetes lets them be. */
static int take_identifier(const struct lkg_value *map, const char *field, char *ret, size_t size,
                           bool required, struct lkg_error *err)
{
        const char *text = lkg_map_get_string(map, field);
        size_t n = text ? strlen(text) : 0;

        if (!text && !required)
                return 0;
        if (!text || (required && n == 0) || n >= size ||
            strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != n)
                return refuse(err, "%s is no identifier", field);
        memcpy(ret, text, n + 1);
        return 0;
}

static int take_number(const struct lkg_value *map, const char *field, unsigned max, unsigned *ret,
                       struct lkg_error *err)
{
        const char *text = lkg_map_get_string(map, field);
        unsigned long value;

        if (!text || !*text || strlen(text) > 7 || strspn(text, "0123456789") != strlen(text))
                return refuse(err, "%s is no number", field);
        value = strtoul(text, NULL, 10);
        if (value > max)
                return refuse(err, "%s is larger than %u", field, max);
        *ret = (unsigned)value;
        return 0;
}

static int take_state(const struct lkg_value *data, enum lkg_rollout_slot_state *ret, struct lkg_error *err)
{
        const char *text = lkg_map_get_string(data, "state");

        for (unsigned i = 0; text && i < LKG_ARRAY_SIZE(state_names); i++)
                if (strcmp(text, state_names[i]) == 0) {
                        *ret = (enum lkg_rollout_slot_state)i;
                        return 0;
                }
        return refuse(err, "state is not free, held or failed");
}

/* For people, and cut: what another node has written must not be the reason why a failure does not count. */
static void take_reason(const struct lkg_value *data, char ret[static LKG_SLOT_REASON_MAX])
{
        const char *text = lkg_map_get_string(data, "reason");

        (void)snprintf(ret, LKG_SLOT_REASON_MAX, "%s", text ? text : "");
        for (char *p = ret; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        lkg_utf8_mend(ret);
}

static void take_time(const struct lkg_value *map, const char *field, uint64_t *ret)
{
        const char *text = lkg_map_get_string(map, field);

        if (!text || lkg_parse_rfc3339(text, ret) < 0)
                *ret = 0;
}

static void take_patience(const struct lkg_value *data, uint64_t *ret)
{
        const char *text = lkg_map_get_string(data, "patience");

        if (!text || lkg_duration_parse_plain(text, ret) < 0)
                *ret = 0;
        if (*ret < LKG_SLOT_PATIENCE_MORE)
                *ret = LKG_SLOT_PATIENCE_MORE;
        if (*ret > LKG_SLOT_PATIENCE_MAX)
                *ret = LKG_SLOT_PATIENCE_MAX;
}

/* The name says which slot it is, so what is in it must say the same. */
static int check_name(const struct lkg_value *metadata, const struct lkg_value *data,
                      struct lkg_rollout_slot *slot, struct lkg_error *err)
{
        const char *name = lkg_map_get_string(metadata, "name"),
                   *format = lkg_map_get_string(data, "version");
        struct lkg_rollout_id id = { .ns = "" };
        char want[LKG_SLOT_HASH + 8];
        int r;

        if (!format || strcmp(format, FORMAT) != 0)
                return refuse(err, "version is not " FORMAT);
        r = take_identifier(data, "uid", id.uid, sizeof(id.uid), true, err);
        if (r == 0)
                r = take_identifier(data, "key", id.key, sizeof(id.key), true, err);
        if (r == 0)
                r = take_identifier(data, "sha256", id.sha256, sizeof(id.sha256), true, err);
        if (r == 0)
                r = take_number(data, "slot", LKG_SLOTS_MAX - 1, &slot->index, err);
        if (r == 0)
                r = lkg_rollout_id_seal(&id);
        if (r < 0)
                return r;
        memcpy(slot->uid, id.uid, sizeof(slot->uid));
        memcpy(slot->key, id.key, sizeof(slot->key));
        memcpy(slot->hash, id.hash, sizeof(slot->hash));
        memcpy(slot->sha256, id.sha256, sizeof(slot->sha256));
        lkg_slot_name(slot, want);
        return name && strcmp(name, want) == 0 ? 0 : refuse(err, "its name is not %s", want);
}

int lkg_slot_read(const struct lkg_value *object, struct lkg_rollout_slot *ret, struct lkg_error *err)
{
        const struct lkg_value *metadata = map_member(object, "metadata"),
                               *data = map_member(object, "data");
        const struct lkg_value *labels = map_member(metadata, "labels");
        struct lkg_rollout_slot slot = { .index = 0 };
        int r;

        if (!metadata || !data)
                return refuse(err, "it has no metadata or no data");
        r = check_name(metadata, data, &slot, err);
        if (r == 0)
                r = take_identifier(metadata, "resourceVersion", slot.version, sizeof(slot.version), true,
                                    err);
        if (r == 0)
                r = take_state(data, &slot.state, err);
        if (r == 0)
                r = take_number(data, "successes", SUCCESSES_MAX, &slot.successes, err);
        if (r == 0)
                r = take_identifier(data, "node", slot.node, sizeof(slot.node), slot.state != LKG_SLOT_FREE,
                                    err);
        if (r == 0)
                r = take_identifier(data, "nodeUid", slot.node_uid, sizeof(slot.node_uid), false, err);
        if (r < 0)
                return r;
        take_reason(data, slot.reason);
        take_time(data, "since", &slot.since_ns);
        take_time(data, "renewed", &slot.renewed_ns);
        take_time(metadata, "creationTimestamp", &slot.created_ns);
        take_patience(data, &slot.patience_ns);
        slot.asked = slot.state == LKG_SLOT_HELD && lkg_map_get(data, "asked");
        slot.collected = labels && lkg_map_get(labels, LABEL_COLLECTED);
        *ret = slot;
        return 0;
}

/* ---- writing ---- */

static void put_time(struct lkg_json *json, const char *name, uint64_t wall_ns)
{
        char text[21];

        if (!wall_ns)
                return;
        lkg_format_rfc3339(wall_ns, text);
        lkg_json_text(json, name, text);
}

static void put_number(struct lkg_json *json, const char *name, unsigned value)
{
        char text[16];

        (void)snprintf(text, sizeof(text), "%u", value);
        lkg_json_text(json, name, text);
}

/*
 * Nodes may not delete anything (contrib/rbac). An object whose owners do not exist is deleted by the cluster's garbage collector
 * (Kubernetes documentation, "Garbage Collection": orphaned objects), so a collected slot gets an owner that never existed.
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

static void put_metadata(struct lkg_json *json, const struct lkg_rollout_slot *slot,
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
        if (slot->collected)
                put_no_owner(json, slot, id);
        lkg_json_end(json);
}

void lkg_slot_write(const struct lkg_rollout_slot *slot, const struct lkg_rollout_id *id, const char *ns,
                    struct lkg_json *json)
{
        char patience[LKG_DURATION_MAX];

        (void)lkg_duration_format((int64_t)slot->patience_ns, patience);
        lkg_json_map(json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(json, "apiVersion", "v1");
        lkg_json_text(json, "kind", "ConfigMap");
        put_metadata(json, slot, id, ns);
        lkg_json_map(json, "data", LKG_JSON_TIGHT);
        lkg_json_text(json, "version", FORMAT);
        lkg_json_text(json, "configMap", id->name);
        lkg_json_text(json, "configMapNamespace", id->ns);
        lkg_json_text(json, "uid", slot->uid);
        lkg_json_text(json, "key", slot->key);
        lkg_json_text(json, "sha256", slot->sha256);
        lkg_json_text(json, "resourceVersion", id->version);
        put_number(json, "slot", slot->index);
        lkg_json_text(json, "state", lkg_slot_state_name(slot->state));
        lkg_json_text(json, "node", slot->node);
        lkg_json_text(json, "nodeUid", slot->node_uid);
        put_time(json, "since", slot->since_ns);
        put_time(json, "renewed", slot->renewed_ns);
        lkg_json_text(json, "patience", patience);
        if (slot->asked)
                lkg_json_text(json, "asked", "true");
        put_number(json, "successes", slot->successes);
        if (*slot->reason)
                lkg_json_text(json, "reason", slot->reason);
        lkg_json_end(json);
        lkg_json_end(json);
}
