/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the engine carries out the control files: hold, rollback, try, commit; who may use them; nothing is
 * done twice. Rule: docs/specification.md 2.11.
 */
#include "engine-node.h"

TEST_WITH(test_hold_collects_changes, setup, teardown)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "hold", "on\n"), 0);
        assert_has(n, "status/kubelet/condition",
                   "True held at generation 1 (hold): using current (init); held since ");
        put_dropin(n, "10-a.conf", "maxPods: 1\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        put_dropin(n, "20-b.conf", "registryBurst: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/condition", "a newer one waits for hold off");
        put_dropin(n, "30-c.conf", "maxPods: [\n");
        assert_int_equal(changed(n, "kubelet.conf.d/30-c.conf"), 0);
        assert_has(n, "status/kubelet/condition", "False failed to validate");
        assert_int_equal(unlink(at(n, "source/kubelet.conf.d/30-c.conf")), 0);
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_int_equal(generation(n), 2);
        assert_has(n, "kubelet.conf", "maxPods: 1\nregistryBurst: 2\n");
}

TEST_WITH(test_rollback_pins_until_hold_off, setup, teardown)
{
        struct node *n = *state;
        LKG_CLEANUP(lkg_freep) char *first = NULL;
        LKG_CLEANUP(lkg_freep) char *rolled_back = NULL;

        start(n);
        first = view(n, "kubelet.conf");
        put_dropin(n, "10-a.conf", "maxPods: 1\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(command(n, "rollback", "7\n"), -EINVAL);
        assert_has(n, "status/kubelet/last-error", "rollback: no such generation in history\n");
        assert_int_equal(command(n, "rollback", "lkg\n"), 0); /* local configuration counts as good */
        assert_int_equal(generation(n), 2);
        assert_has(n, "status/kubelet/condition", "True held at generation 2 (rollback)");
        assert_int_equal(command(n, "rollback", "1\n2\n"), -EINVAL);
        assert_int_equal(command(n, "rollback", ""), 0);
        assert_int_equal(generation(n), 2);
        assert_int_equal(command(n, "rollback", "1"), 0);
        rolled_back = view(n, "kubelet.conf");
        assert_string_equal(first, rolled_back);
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/condition", "True held at generation 1 (rollback)");
        put_dropin(n, "10-a.conf", "maxPods: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        stop(n, false); /* a pin also survives a crash */
        start(n);
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/condition", "held at generation 1 (rollback)");
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 2\n");
        assert_true(generation(n) > 2);
        assert_has(n, "status/kubelet/last-error", "");
}

/* Reported in facts and findings, whatever the condition is, until the hold ends. */
TEST_WITH(test_a_hold_is_told, setup, teardown)
{
        struct node *n = *state;

        start(n);
        assert_has(n, "status/kubelet/hold",
                   "mode=free\ngeneration=\nsince=\nuid=\npid=\nprogram=\n"
                   "newer=none\ntry=none\nuntil=\nrollout=\n");
        assert_false(has(n, "status/kubelet/findings", "LKG40"));
        assert_int_equal(command(n, "hold", "on\n"), 0);
        assert_has(n, "status/kubelet/hold", "mode=hold\ngeneration=1\nsince=20");
        assert_has(n, "status/kubelet/hold", "Z\nuid=0\npid=");
        assert_has(n, "status/kubelet/hold", "\nnewer=none\n");
        assert_has(n, "status/kubelet/findings", "note: held since 20");
        assert_has(n, "status/kubelet/findings",
                   "at generation 1 (hold); nothing newer is served before off is written to "
                   "control/kubelet/hold [LKG4019]\n");
        put_dropin(n, "10-a.conf", "maxPods: [\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "status/kubelet/condition", "False failed to validate");
        assert_has(n, "status/kubelet/findings", "[LKG4019]\n");
        put_dropin(n, "10-a.conf", "maxPods: 1\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "status/kubelet/hold", "\nnewer=waits\n");
        assert_has(n, "status/kubelet/findings", "warning: held since 20");
        assert_has(n, "status/kubelet/findings", "(hold), and a newer one waits; nothing newer is served");
        assert_false(has(n, "status/kubelet/findings", "LKG4019"));
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_false(has(n, "status/kubelet/findings", "LKG40"));
        assert_has(n, "status/kubelet/hold", "mode=free\ngeneration=\nsince=\n");
        assert_int_equal(command(n, "try", "1h"), 0);
        assert_has(n, "status/kubelet/hold", "\ntry=armed\nuntil=\n");
        assert_has(n, "status/kubelet/findings", "[LKG4015]\n");
        put_dropin(n, "10-a.conf", "maxPods: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "status/kubelet/hold", "\ntry=running\nuntil=20");
        assert_has(n, "status/kubelet/findings",
                   "unless now is written to control/kubelet/commit [LKG4020]\n");
        assert_false(has(n, "status/kubelet/findings", "LKG4015"));
        assert_int_equal(command(n, "commit", "now"), 0);
        assert_false(has(n, "status/kubelet/findings", "LKG40"));
}

TEST_WITH(test_try_that_is_not_committed, setup, teardown)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "commit", "now"), -EINVAL);
        assert_int_equal(command(n, "try", "0s"), -EINVAL);
        assert_int_equal(command(n, "try", "soon"), -EINVAL);
        assert_int_equal(command(n, "try", "300ms"), 0);
        assert_int_equal(command(n, "try", "300ms"), -EBUSY);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 5\n");
        assert_has(n, "status/kubelet/condition", "True on try until ");
        turn_until(n, "status/kubelet/condition", "False try expired, held at generation 1");
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_int_equal(generation(n), 1);
        assert_has(n, "status/kubelet/findings", "/maxPods");
        assert_has(n, "status/kubelet/findings", ", after a try by uid 0 (pid 1, unknown program), in");
        assert_has(n, "status/kubelet/condition",
                   ", after a try by uid 0 (pid 1, unknown program): `echo off");
        assert_has(n, "status/kubelet/hold", "\nuid=0\npid=1\nprogram=\n");
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 5\n");
        assert_false(has(n, "status/kubelet/findings", "try"));
}

TEST_WITH(test_try_that_is_committed, setup, teardown)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "try", "1h"), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        stop(n, false);
        start(n);
        assert_has(n, "status/kubelet/condition", "on try until ");
        assert_int_equal(command(n, "commit", "now\n"), 0);
        assert_has(n, "status/kubelet/condition", "True current is set");
        assert_int_equal(command(n, "commit", "now\n"), -EINVAL);
}

TEST_WITH(test_try_that_expires_while_down, setup, teardown)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command(n, "try", "1ms"), 0);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        stop(n, true);
        start(n);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_has(n, "status/kubelet/condition", "try expired, held at generation 1");
        assert_has(n, "status/kubelet/condition",
                   ", after a try by uid 0 (pid 1, unknown program): `echo off");
}

TEST_WITH(test_commands_need_root, setup, teardown)
{
        struct node *n = *state;
        struct lkg_message m;

        start(n);
        lkg_message_init(&m, LKG_MSG_COMMAND);
        m.uid = 1000;
        m.pid = 1;
        m.component = 0;
        (void)strcpy(m.command, "hold");
        (void)strcpy(m.text, "on");
        m.text_size = 2;
        assert_int_equal(ask(n, &m, ++n->ticket), -EACCES);
        m.uid = 0;
        m.pid = 0;
        assert_int_equal(ask(n, &m, ++n->ticket), -EACCES);
        m.pid = 1;
        m.component = 9;
        assert_int_equal(ask(n, &m, ++n->ticket), -EINVAL);
        assert_has(n, "status/kubelet/condition", "True current is set");
}

/* The caller was told that it failed: neither this engine nor the next carries it out later. */
TEST_WITH(test_withdrawn_command_is_not_carried_out, setup, teardown)
{
        static const char *const commands[][2] = { { "hold", "on" },
                                                   { "rollback", "1" },
                                                   { "try", "1h" },
                                                   { "promote", "now" },
                                                   { "bad", "3f9a\0why" } };
        struct node *n = *state;
        struct lkg_message m;

        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        for (int engine = 0; engine < 2; engine++) {
                for (size_t i = 0; i < LKG_ARRAY_SIZE(commands); i++) {
                        lkg_message_init(&m, LKG_MSG_COMMAND);
                        m.pid = 1;
                        m.component = 0;
                        (void)snprintf(m.command, sizeof(m.command), "%s", commands[i][0]);
                        m.text_size = i == 4 ? 8 : (uint32_t)strlen(commands[i][1]);
                        memcpy(m.text, commands[i][1], m.text_size);
                        assert_int_equal(ask_plain(n, &m, ++n->ticket), -ETIMEDOUT);
                }
                assert_has(n, "status/kubelet/condition", "True current is set");
                assert_has(n, "kubelet.conf", "maxPods: 5\n");
                if (engine == 0) {
                        stop(n, true);
                        start(n);
                }
        }
        assert_int_equal(command(n, "hold", "on"), 0); /* the next one is */
        assert_has(n, "status/kubelet/condition", "held at");
}

/* Rule: docs/specification.md 6.2. */
TEST_WITH(test_repeated_ticket_is_not_carried_out_twice, setup, teardown)
{
        struct node *n = *state;

        start(n);
        assert_int_equal(command_with(n, "try", "1h", 77), 0);
        assert_int_equal(command_with(n, "try", "1h", 77), 0);
        assert_int_equal(command_with(n, "try", "1h", 78), -EBUSY);
        assert_int_equal(command_with(n, "try", "1h", 78), -EBUSY);
        stop(n, false); /* the answer was lost with the engine */
        start(n);
        assert_int_equal(command_with(n, "try", "1h", 77), 0);
}

/* ---- what could not be saved ---- */

/* The runtime directory is a tmpfs. */
static void cut_power(struct node *n)
{
        stop(n, false);
        (void)lkg_close(n->runtime_fd);
        assert_int_equal(tmpdir_remove(at(n, "runtime")), 0);
        assert_int_equal(mkdir(at(n, "runtime"), 0700), 0);
        n->runtime_fd = open_dir(n, "runtime", O_RDONLY);
}

static void pin_first_of_three(struct node *n)
{
        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 1\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        put_dropin(n, "10-a.conf", "maxPods: 2\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(command(n, "rollback", "1"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
}

#define LOST_PIN "failed to keep the hold at generation 1 (rollback), its document is lost"

static void lose_pin(struct node *n)
{
        pin_first_of_three(n);
        cut_power(n);
        put(n, "state/history/kubelet/1/document", "");
        start(n);
        assert_has(n, "status/kubelet/condition", "False " LOST_PIN ": using current (init)\n");
        assert_has(n, "status/kubelet/findings", "[LKG4022]");
        assert_has(n, "kubelet.conf", "maxPods: 2\n");
}

TEST_WITH(test_lost_pin_is_told_until_a_command, setup, teardown)
{
        struct node *n = *state;

        lose_pin(n);
        stop(n, true); /* the next engine knows it, too */
        start(n);
        assert_has(n, "status/kubelet/condition", "False " LOST_PIN);
        put_dropin(n, "30-b.conf", "maxPods: many\n"); /* worse, but partly valid */
        assert_int_equal(changed(n, "kubelet.conf.d/30-b.conf"), 0);
        assert_has(n, "status/kubelet/condition", "False failed to validate current (init), 1 error");
        assert_has(n, "status/kubelet/condition", "; " LOST_PIN);
        assert_int_equal(command(n, "rollback", "77"), -EINVAL); /* it changes nothing */
        assert_has(n, "status/kubelet/condition", "; " LOST_PIN);
        assert_int_equal(command(n, "hold", "off"), 0);
        assert_false(has(n, "status/kubelet/condition", "failed to keep"));
        assert_false(has(n, "status/kubelet/findings", "LKG4022"));
}

TEST_WITH(test_lost_pin_is_told_until_a_change, setup, teardown)
{
        struct node *n = *state;

        lose_pin(n);
        put_dropin(n, "30-b.conf", "registryBurst: 3\n");
        assert_int_equal(changed(n, "kubelet.conf.d/30-b.conf"), 0);
        assert_has(n, "status/kubelet/condition", "True current is set");
        lkg_engine_persist(n->engine);
        cut_power(n);
        start(n);
        assert_has(n, "status/kubelet/condition", "True current is set");
}

TEST_WITH(test_damaged_state_is_told, setup, teardown)
{
        struct node *n = *state;

        pin_first_of_three(n);
        cut_power(n);
        put(n, "state/components/kubelet.json", "{\"hold\": ");
        for (int i = 0; i < 2; i++) {
                start(n);
                assert_has(n, "status/kubelet/condition",
                           "False failed to keep hold and try, their record is damaged: using current "
                           "(init)\n");
                assert_has(n, "status/kubelet/findings", "[LKG4022]");
                stop(n, true);
        }
        start(n);
        assert_int_equal(command(n, "rollback", "1"), 0);
        assert_has(n, "status/kubelet/condition", "True held at generation 1 (rollback)");
}

TEST_WITH(test_damaged_pointers_are_told, setup, teardown)
{
        struct node *n = *state;

        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
            "remote: {enabled: true, references: [file], file: /nonexistent/lkgfs/remote}\n");
        start(n);
        stop(n, true);
        put(n, "state/dynamic/kubelet/pointers.json", "{\"assigned\": ");
        start(n);
        assert_has(
                n, "status/kubelet/condition",
                "False failed to keep what was remembered of remote configuration, its record is damaged: ");
        assert_has(n, "status/kubelet/findings", "dynamic/kubelet/pointers.json");
        assert_int_equal(command(n, "sync", "now"), 0);
        assert_false(has(n, "status/kubelet/condition", "failed to keep"));
}

/* A torn history record that was not promised is dropped without a finding, even if there are many boots. */
TEST_WITH(test_torn_history_goes_quietly, setup, teardown)
{
        struct node *n = *state;

        pin_first_of_three(n);
        cut_power(n);
        put(n, "state/history/kubelet/3/document", "");
        put(n, "state/history/kubelet/2/meta.json", "");
        for (int i = 0; i < 2; i++) {
                start(n);
                assert_has(n, "status/kubelet/condition", "True held at generation 1 (rollback)");
                assert_false(has(n, "status/kubelet/findings", "LKG4005"));
                assert_int_equal(access(at(n, "state/history/kubelet/2"), F_OK), -1);
                cut_power(n);
        }
}
