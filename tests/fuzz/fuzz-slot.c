/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a list of the slots of a rollout, as a hostile node may have written them: what is accepted reads back as the same
 * slot, and a node that sees such a list never goes on without a slot of its own that the rules allow. Each list is read as one of
 * ConfigMaps and as one of Leases.
 */

#include <lkg/documents.h>
#include <lkg/slots.h>

#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lkg_rollout_id wanted(void)
{
        struct lkg_rollout_id id = {
                .ns = "kube-system", .name = "config", .uid = "uid-1", .key = "kubelet", .sha256 = "aa"
        };

        lkg_rollout_id_seal(&id);
        return id;
}

static enum lkg_slot_outcome outcome(const char *sha256, char reason[static LKG_SLOT_REASON_MAX],
                                     void *userdata)
{
        (void)reason;
        (void)userdata;
        return strcmp(sha256, "aa") == 0 ? LKG_OUTCOME_WANTED : LKG_OUTCOME_OVER;
}

static void write_again(enum lkg_slot_kind kind, const struct lkg_rollout_slot *slot,
                        struct lkg_rollout_slot *ret)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        const struct lkg_rollout_id id = wanted();
        struct lkg_error err = { 0 };

        lkg_slot_write(kind, slot, &id, "lkgfs-rollout", &json);
        FUZZ_CHECK(lkg_json_write_line(&json, &buf) >= 0);
        FUZZ_CHECK(lkg_decode_json(buf.data, buf.size, LKG_DECODE_STRICT, NULL, &report, &value) == 0);
        FUZZ_CHECK(lkg_slot_read(kind, value, ret, &err) == 0);
}

static void check_slot(enum lkg_slot_kind kind, const struct lkg_rollout_slot *slot)
{
        struct lkg_rollout_slot again, once_more;

        FUZZ_CHECK(slot->index < LKG_SLOTS_MAX);
        FUZZ_CHECK(slot->patience_ns >= LKG_SLOT_PATIENCE_MORE &&
                   slot->patience_ns <= LKG_SLOT_PATIENCE_MAX);
        write_again(kind, slot, &again); /* without fractions of seconds and the time of the server */
        FUZZ_CHECK(again.state == slot->state && again.successes == slot->successes &&
                   again.index == slot->index);
        FUZZ_CHECK(strcmp(again.node, slot->node) == 0 && strcmp(again.reason, slot->reason) == 0);
        write_again(kind, &again, &once_more);
        FUZZ_CHECK(memcmp(&again, &once_more, sizeof(again)) == 0);
}

static void check_grant(struct lkg_seeker *seeker, uint64_t now_ns)
{
        struct lkg_slot_counts counts;
        int own = lkg_seeker_own(seeker);
        char words[256];

        lkg_ledger_count(&seeker->ledger, seeker->wish.id.hash, &counts);
        if (lkg_seeker_verdict(seeker, now_ns, words) != LKG_SLOT_GRANTED)
                return;
        FUZZ_CHECK(own >= 0 && (unsigned)own < seeker->wish.max_in_trial &&
                   (unsigned)own <= counts.n_done + counts.n_failed);
        FUZZ_CHECK(counts.n_failed < seeker->wish.max_failures);
}

static void see(enum lkg_slot_kind kind, const struct lkg_value *list)
{
        const struct lkg_seeker_ops ops = { .outcome = outcome };
        const struct lkg_slot_wish wish = {
                .any = true, .id = wanted(), .max_in_trial = 3, .max_failures = 2
        };
        struct lkg_seeker_moment at = { LKG_NSEC_PER_SEC, LKG_NSEC_PER_SEC, 7 };
        struct lkg_seeker seeker;
        uint64_t due;

        lkg_seeker_init(&seeker, "me", &ops);
        lkg_seeker_wish(&seeker, &wish);
        FUZZ_CHECK(lkg_seeker_next(&seeker, at, &due) == LKG_SLOT_LIST);
        lkg_seeker_list_begins(&seeker, "");
        for (size_t i = 0; i < lkg_value_size(list); i++) {
                const struct lkg_value *item = lkg_list_get(list, i);
                struct lkg_error err = { 0 };
                struct lkg_rollout_slot slot;

                if (lkg_value_type(item) != LKG_MAP)
                        continue;
                if (lkg_slot_read(kind, item, &slot, &err) < 0) {
                        FUZZ_CHECK(err.message[0]);
                        continue;
                }
                check_slot(kind, &slot);
                lkg_seeker_put_listed(&seeker, &slot, at.now_ns);
        }
        lkg_seeker_listed(&seeker, at);
        lkg_seeker_watch_open(&seeker);
        check_grant(&seeker, at.now_ns);
        for (unsigned i = 0; i < 20; i++) {
                at.now_ns += 400 * LKG_NSEC_PER_SEC;
                if (lkg_seeker_next(&seeker, at, &due) == LKG_SLOT_NOTHING)
                        continue;
                if (seeker.under_way == LKG_SLOT_LIST)
                        lkg_seeker_listed(&seeker, at);
                else
                        lkg_seeker_answered(&seeker, i % 2 ? LKG_SLOT_CONFLICT : LKG_SLOT_DONE,
                                            &seeker.writing, at);
        }
        lkg_seeker_deinit(&seeker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;

        if (lkg_decode_json((const char *)data, size, LKG_DECODE_STRICT, NULL, &report, &value) == 0 &&
            lkg_value_type(value) == LKG_LIST) {
                see(LKG_SLOT_CONFIGMAP, value);
                see(LKG_SLOT_LEASE, value);
        }
        return 0;
}
