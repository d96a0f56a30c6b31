/* SPDX-License-Identifier: Apache-2.0 */
/* A slot of a rollout as an object of the API server, a ConfigMap or a Lease, and back. */

#include <lkg/documents.h>

#include "unit.h"
#include "slot-samples.h"

static struct lkg_value *decode(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_json(text, strlen(text), 0, NULL, &report, &value), 0);
        lkg_report_deinit(&report);
        return value;
}

static const enum lkg_slot_kind kinds[] = { LKG_SLOT_CONFIGMAP, LKG_SLOT_LEASE };

static char *write_object(enum lkg_slot_kind kind, const struct lkg_rollout_slot *slot)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_rollout_id id = make_id("aa");

        lkg_slot_write(kind, slot, &id, "lkgfs-rollout", &json);
        assert_true(lkg_json_write_line(&json, &buf) >= 0);
        return lkg_buf_steal(&buf, NULL);
}

static int read_text(enum lkg_slot_kind kind, const char *text, struct lkg_rollout_slot *ret,
                     struct lkg_error *err)
{
        struct lkg_value *object = decode(text);
        int r = lkg_slot_read(kind, object, ret, err);

        lkg_value_unref(object);
        return r;
}

static void check_round_trip(const struct lkg_rollout_slot *slot)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                char *text = write_object(kinds[i], slot);
                struct lkg_rollout_slot back;
                struct lkg_error err;

                assert_int_equal(read_text(kinds[i], text, &back, &err), 0);
                assert_memory_equal(&back, slot, sizeof(back));
                free(text);
        }
}

TEST(test_what_is_written_is_read)
{
        struct lkg_rollout_slot slot = make_slot(3, LKG_SLOT_FAILED, "node-1", "42");

        slot.successes = 12;
        slot.since_ns = slot.renewed_ns = 1767322445 * S;
        (void)strcpy(slot.node_uid, "uid-n");
        (void)strcpy(slot.of_version, "7");
        (void)strcpy(slot.reason, "current failed trial period due to crash loop");
        check_round_trip(&slot);
        slot = make_slot(0, LKG_SLOT_FREE, "", "43");
        check_round_trip(&slot);
        slot = make_slot(0, LKG_SLOT_HELD, "node-1", "44");
        slot.asked = true;
        check_round_trip(&slot);
        slot.collected = true;
        check_round_trip(&slot);
}

/* What kubectl and other tools know of a Lease, in the formats that the API server wants. */
TEST(test_a_lease_has_a_holder_and_times)
{
        struct lkg_rollout_slot slot = make_slot(3, LKG_SLOT_HELD, "node-1", "42");
        char *text;

        slot.successes = 12;
        slot.since_ns = 1767322445 * S;
        slot.renewed_ns = (1767322445 * S) + 70001999;
        slot.patience_ns++; /* whole seconds, rounded up */
        text = write_object(LKG_SLOT_LEASE, &slot);
        assert_non_null(strstr(text, "\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\""));
        assert_non_null(strstr(text, "\"lkgfs.io/uid\":\"uid-1\""));
        assert_non_null(strstr(text,
                               "\"spec\":{\"holderIdentity\":\"node-1\",\"leaseDurationSeconds\":901,"
                               "\"acquireTime\":\"2026-01-02T02:54:05.000000Z\","
                               "\"renewTime\":\"2026-01-02T02:54:05.070001Z\",\"leaseTransitions\":12}"));
        free(text);
}

/* Others take an empty holder for one, and the API server refuses an empty time. */
TEST(test_a_free_lease_has_no_holder)
{
        const struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_FREE, "", "");
        char *text = write_object(LKG_SLOT_LEASE, &slot);

        assert_non_null(strstr(text, "\"spec\":{\"leaseDurationSeconds\":900,\"leaseTransitions\":0}"));
        free(text);
}

static void check_refused(enum lkg_slot_kind kind, const char *text, const char *words)
{
        struct lkg_rollout_slot back;
        struct lkg_error err = { 0 };

        assert_int_equal(read_text(kind, text, &back, &err), -EINVAL);
        assert_string_equal(err.message, words);
}

/* Leases of others: a leader election, one without anything, the other kind. */
TEST(test_other_objects_are_no_slots)
{
        const struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "node-1", "42");
        char *lease = write_object(LKG_SLOT_LEASE, &slot),
             *configmap = write_object(LKG_SLOT_CONFIGMAP, &slot);

        check_refused(LKG_SLOT_LEASE, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"holderIdentity\":\"a\"}}",
                      "it has no metadata or no annotations");
        check_refused(LKG_SLOT_LEASE, "{\"metadata\":{\"annotations\":{}}}", "it has no spec");
        check_refused(LKG_SLOT_LEASE, "{\"metadata\":{\"annotations\":{}},\"spec\":{}}", "version is not 1");
        check_refused(LKG_SLOT_LEASE, "{\"metadata\":[],\"spec\":{}}",
                      "it has no metadata or no annotations");
        check_refused(LKG_SLOT_LEASE, configmap, "it has no metadata or no annotations");
        check_refused(LKG_SLOT_CONFIGMAP, lease, "it has no metadata or no data");
        free(lease);
        free(configmap);
}

/* At most seven digits, whatever they come to. */
TEST(test_what_a_number_is)
{
        static const char *const texts[] = { "00000001", "18446744073709551617", "+1", " 1", "1 ", "" };
        const struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "node-1", "42");
        char *text = write_object(LKG_SLOT_CONFIGMAP, &slot), *changed;
        const char *number = strstr(text, "\"successes\":\"0\"");

        assert_non_null(number);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                assert_true(asprintf(&changed, "%.*s\"successes\":\"%s\"%s", (int)(number - text), text,
                                     texts[i], number + strlen("\"successes\":\"0\"")) > 0);
                check_refused(LKG_SLOT_CONFIGMAP, changed, "successes is not a number");
                free(changed);
        }
        free(text);
}

/* The holder of a Lease is in its spec: an annotation cannot say another one. */
TEST(test_the_spec_of_a_lease_counts)
{
        const struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_HELD, "node-1", "42");
        char *text = write_object(LKG_SLOT_LEASE, &slot), *changed;
        const char *spec = strstr(text, "\"holderIdentity\":\"node-1\",");

        assert_true(asprintf(&changed, "%.*s%s", (int)(spec - text), text,
                             spec + strlen("\"holderIdentity\":\"node-1\",")) > 0);
        free(text);
        text = changed;
        assert_true(asprintf(&changed, "%.*s\"lkgfs.io/node\":\"node-1\",%s",
                             (int)(strstr(text, "\"lkgfs.io/version\"") - text), text,
                             strstr(text, "\"lkgfs.io/version\"")) > 0);
        check_refused(LKG_SLOT_LEASE, changed, "node is not an identifier");
        free(text);
        free(changed);
}

TEST(test_a_collected_one_has_an_owner_that_does_not_exist)
{
        struct lkg_rollout_slot slot = make_slot(0, LKG_SLOT_FREE, "", "42");

        slot.collected = true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                char *text = write_object(kinds[i], &slot);

                assert_non_null(strstr(text, "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                                             "\"ConfigMap\",\"name\":\"config\",\"uid\":"
                                             "\"00000000-0000-4000-8000-"));
                free(text);
        }
}

/* Return: was it refused? */
static bool check_changed(enum lkg_slot_kind kind, const char *text)
{
        struct lkg_rollout_slot back;
        struct lkg_error err = { 0 };

        if (read_text(kind, text, &back, &err) < 0) {
                assert_true(*err.message != '\0');
                return true;
        }
        assert_true(back.index < LKG_SLOTS_MAX && back.patience_ns >= 300 * S &&
                    back.patience_ns <= LKG_SLOT_PATIENCE_MAX && back.successes <= 1000000);
        assert_null(strpbrk(back.reason, "\n\t"));
        return false;
}

/* Each value of a good object replaced by each of these: read as something sane, or refused with a reason. Nothing crashes. */
static unsigned change_field(enum lkg_slot_kind kind, const char *text, const char *field)
{
        static const char *const evil[] = {
                "\"\"",    "\"../x\"",  "\"-1\"",      "\"99999999999999999999\"",
                "\"1e3\"", "null",      "[]",          "{}",
                "7",       "\"a\\nb\"", "\"\\u0000\"", "\"held\"",
                "-1",      "1e9",       "0.5",         "99999999999999999999"
        };
        unsigned n_refused = 0;

        for (size_t k = 0; k < LKG_ARRAY_SIZE(evil); k++) {
                char want[40], *changed;
                const char *at;

                (void)snprintf(want, sizeof(want), "\"%s\":", field);
                at = strstr(text, want);
                assert_non_null(at);
                at += strlen(want);
                assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, evil[k],
                                     at + strcspn(at, ",}")) > 0);
                n_refused += check_changed(kind, changed);
                free(changed);
        }
        return n_refused;
}

TEST(test_foreign_objects)
{
        static const char *const fields[2][15] = {
                { "name", "resourceVersion", "version", "uid", "key", "sha256", "slot", "state", "node",
                  "nodeUid", "since", "renewed", "patience", "successes", "reason" },
                { "name", "resourceVersion", "lkgfs.io/version", "lkgfs.io/uid", "lkgfs.io/key",
                  "lkgfs.io/sha256", "lkgfs.io/slot", "lkgfs.io/state", "holderIdentity", "lkgfs.io/nodeUid",
                  "acquireTime", "renewTime", "leaseDurationSeconds", "lkgfs.io/successes",
                  "lkgfs.io/reason" },
        };
        struct lkg_rollout_slot slot = make_slot(3, LKG_SLOT_FAILED, "node-1", "42");

        (void)strcpy(slot.reason, "why");
        slot.since_ns = slot.renewed_ns = 1767322445 * S;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                char *text = write_object(kinds[i], &slot);
                unsigned n_refused = 0;

                for (size_t k = 0; k < LKG_ARRAY_SIZE(fields[i]); k++)
                        n_refused += change_field(kinds[i], text, fields[i][k]);
                assert_true(n_refused > 90);
                free(text);
        }
}

/* A slot of another key of the ConfigMap is given back as what it is. */
TEST(test_a_slot_stays_what_it_is)
{
        struct lkg_rollout_slot slot = make_slot(3, LKG_SLOT_HELD, "node-1", "42"), back;
        struct lkg_rollout_id other = make_id("bb");
        struct lkg_error err;

        (void)strcpy(other.key, "special");
        (void)strcpy(other.uid, "uid-2");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

                lkg_slot_write(kinds[i], &slot, &other, "lkgfs-rollout", &json);
                assert_true(lkg_json_write_line(&json, &buf) >= 0);
                assert_int_equal(read_text(kinds[i], buf.data, &back, &err), 0);
                assert_memory_equal(&back, &slot, sizeof(slot));
        }
}
