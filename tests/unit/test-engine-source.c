/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine follows when its checkpoint is lost or cannot be read, when only the resourceVersion changes, and when there is
 * nothing to roll back to. The disk fails at link time: an error of reading a checkpoint, and no space for the pointers.
 */
#include <lkg/store.h>
#include <lkg/documents.h>

#include "engine-node.h"

static bool unreadable, full;

int __real_lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                                struct lkg_error *err);
int __wrap_lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                                struct lkg_error *err);
int __real_lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                                   struct lkg_error *err);
int __wrap_lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                                   struct lkg_error *err);

int __wrap_lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                                struct lkg_error *err)
{
        if (unreadable && strncmp(path, "checkpoints/", 12) == 0)
                return lkg_error_set(err, -EIO, NULL, "%s", path);
        return __real_lkg_record_read_text(dirfd, path, max, ret, ret_size, err);
}

int __wrap_lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                                   struct lkg_error *err)
{
        return full ? lkg_error_set(err, -ENOSPC, NULL, "pointers")
                    : __real_lkg_store_save_pointers(c, pointers, err);
}

/* ---- a node that follows a file ---- */

static void configure(struct node *n)
{
        char text[512];

        unreadable = full = false;
        (void)snprintf(text, sizeof(text),
                       "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
                       "remote: {enabled: true, references: [file], file: %s/etc/remote.yaml}\n",
                       n->top);
        put(n, "etc/config.yaml", text);
}

static void put_configmap(struct node *n, const char *version, const char *note, const char *body)
{
        char text[1024];

        (void)snprintf(
                text, sizeof(text),
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: kube-system\n  name: cfg\n"
                "  uid: u\n  resourceVersion: \"%s\"\n  annotations: {note: \"%s\"}\ndata:\n  kubelet: |\n"
                "    apiVersion: kubelet.config.k8s.io/v1beta1\n    kind: KubeletConfiguration\n    %s\n",
                version, note, body);
        put(n, "etc/remote.yaml", text);
}

static void assign(struct node *n, const char *version, const char *note, const char *body)
{
        char id[64];

        put_configmap(n, version, note, body);
        (void)snprintf(id, sizeof(id), "u@%s ", version);
        assert_int_equal(command(n, "sync", "now"), 0);
        turn_until(n, "status/kubelet/assigned", id);
}

/* The engine dies; its successor has no reference until the file is there again. */
static void die(struct node *n)
{
        assert_int_equal(unlink(at(n, "etc/remote.yaml")), 0);
        stop(n, false);
}

static void lose_checkpoint(struct node *n)
{
        assert_int_equal(unlink(at(n, "state/checkpoints/u/1/configmap.json")), 0);
}

static const struct lkg_dynamic *dynamic(const struct node *n)
{
        return n->engine->components[0].dynamic;
}

/* ---- the same content under another version ---- */

TEST_WITH(test_a_new_version_is_the_same_source, setup, teardown)
{
        struct node *n = *state;
        const struct lkg_component *c;
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;
        uint64_t older;

        configure(n);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        older = generation(n);
        put_dropin(n, "10-a.conf", "registryBurst: 7\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_true(generation(n) > older);
        put_dropin(n, "20-b.conf", "maxPods: -3\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        assign(n, "2", "b", "maxPods: 42");
        c = &n->engine->components[0];
        assert_string_equal(c->active->source, "u@1");
        lkg_component_take_lifecycle(c, n->engine->config, &l, &facts);
        assert_true(facts.serves_active); /* so a start counts, although a drop-in is invalid */
        assert_true(lkg_lifecycle_on_trial(&l, &facts));
        assert_has(n, "status/kubelet/active", "u@2 ");
        /* A process on the older generation runs with what is on trial. */
        assert_true(lkg_component_runs_tried(c, n->engine->config,
                                             &(struct lkg_tracked){ .generation = older, .pidfd = 0 }));
        {
                char text[24];

                (void)snprintf(text, sizeof(text), "%" PRIu64, older);
                assert_int_equal(command(n, "rollback", text), 0);
        }
        assert_int_equal(generation(n), older);
        assert_int_equal(dynamic(n)->bad.n_items, 0); /* nothing is abandoned */
}

/* What a generation was made of is known after a restart, too. */
TEST_WITH(test_a_new_version_is_the_same_source_for_the_next_engine, setup, teardown)
{
        struct node *n = *state;
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;

        configure(n);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        assign(n, "2", "b", "maxPods: 42");
        put_dropin(n, "20-b.conf", "maxPods: -3\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        stop(n, true);
        start(n);
        lkg_component_take_lifecycle(&n->engine->components[0], n->engine->config, &l, &facts);
        assert_true(lkg_lifecycle_on_trial(&l, &facts));
        assert_has(n, "status/kubelet/active", "u@2 ");
}

/* ---- the checkpoint of what is followed ---- */

TEST_WITH(test_an_error_of_the_disk_is_no_loss, setup, teardown)
{
        struct node *n = *state;
        uint64_t before;

        configure(n);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        before = generation(n);
        die(n);
        unreadable = true;
        start(n);
        assert_int_equal(generation(n), before);
        assert_has(n, "status/kubelet/condition", "checkpoint of current (UID: u) cannot be read");
        assert_string_equal(dynamic(n)->pointers.active.uid, "u");
        put_dropin(n, "10-a.conf", "registryBurst: 7\n"); /* the local layers alone are not served */
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(generation(n), before);
        unreadable = false;
        turn_until(n, "kubelet.conf", "registryBurst: 7\n");
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
        assert_false(has(n, "status/kubelet/condition", "cannot be read"));
}

TEST_WITH(test_a_loss_is_carried_out_when_there_is_space, setup, teardown)
{
        struct node *n = *state;
        uint64_t before;

        configure(n);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        before = generation(n);
        die(n);
        lose_checkpoint(n);
        full = true;
        start(n);
        assert_int_equal(generation(n), before); /* not the local configuration, as nothing says so */
        put_dropin(n, "10-a.conf", "registryBurst: 7\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        assert_int_equal(generation(n), before);
        assert_string_equal(dynamic(n)->pointers.active.uid, "u");
        full = false;
        turn_until(n, "kubelet.conf", "maxPods: 100\n"); /* without anybody's doing */
        assert_has(n, "kubelet.conf", "registryBurst: 7\n");
        assert_string_equal(dynamic(n)->pointers.active.uid, "");
        assert_string_equal(dynamic(n)->pointers.rollback.from.uid, "u");
}

/* The local layers are invalid, so the rollback serves a stored document, and not what an engine before served. */
TEST_WITH(test_what_was_served_before_does_not_undo_a_rollback, setup, teardown)
{
        struct node *n = *state;

        configure(n);
        start(n);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
        put_dropin(n, "20-b.conf", "maxPods: -3\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        lkg_engine_persist(n->engine);
        die(n);
        lose_checkpoint(n);
        start(n);
        assert_string_equal(dynamic(n)->pointers.active.uid, "");
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
}

/* ---- nothing to roll back to ---- */

TEST_WITH(test_rollback_lkg_without_local_layers_marks_nothing, setup, teardown)
{
        struct node *n = *state;

        configure(n);
        assert_int_equal(unlink(at(n, "source/kubelet.conf")), 0);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        assert_int_equal(command(n, "rollback", "lkg"), -EBUSY);
        assert_int_equal(dynamic(n)->bad.n_items, 0);
        assert_string_equal(dynamic(n)->pointers.active.uid, "u");
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
        put(n, "source/kubelet.conf", HEADER "maxPods: 100\n"); /* now there is something */
        assert_int_equal(changed(n, "kubelet.conf"), 0);
        assert_int_equal(command(n, "rollback", "lkg"), 0);
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_int_equal(dynamic(n)->bad.n_items, 1);
}

/* The base must exist because it was served once, and the document of that time is gone. */
TEST_WITH(test_rollback_lkg_without_a_usable_document_marks_nothing, setup, teardown)
{
        struct node *n = *state;
        uint64_t before;

        configure(n);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/active", "u@1 ");
        before = generation(n);
        stop(n, true);
        assert_int_equal(unlink(at(n, "source/kubelet.conf")), 0);
        start(n);
        turn_until(n, "status/kubelet/condition", "using current (UID: u)");
        lkg_history_deinit(&n->engine->components[0].history);
        assert_int_equal(command(n, "rollback", "lkg"), -EBUSY);
        assert_int_equal(dynamic(n)->bad.n_items, 0);
        assert_string_equal(dynamic(n)->pointers.active.uid, "u");
        assert_int_equal(generation(n), before);
        assert_has(n, "kubelet.conf", "maxPods: 42\n");
}

/* ---- another version of the component ---- */

TEST_WITH(test_starts_of_another_version_are_forgotten_for_good, setup, teardown)
{
        struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };
        struct node *n = *state;
        struct lkg_dynamic *d;
        char guess[LKG_RELEASE_NAME];

        configure(n);
        start(n);
        assign(n, "1", "a", "maxPods: 42");
        turn_until(n, "status/kubelet/trial", "state=running");
        assert_int_equal(command(n, "startup", "now"), 0);
        assert_int_equal(command(n, "startup", "now"), 0);
        d = n->engine->components[0].dynamic;
        assert_int_equal(d->trial.prior, 2);
        memcpy(guess, d->store.release, sizeof(guess));
        assert_int_equal(lkg_dynamic_set_release(d, "v1.34.1", guess, &ignored, &err), 1);
        assert_int_equal(d->trial.prior, 2); /* now its name is known, but it is no other one */
        assert_int_equal(lkg_dynamic_set_release(d, "v1.35.0", guess, &ignored, &err), 1);
        assert_int_equal(d->trial.prior, 0);
        stop(n, false);
        start(n);
        assert_int_equal(dynamic(n)->trial.state, LKG_TRIAL_RUNNING);
        assert_int_equal(dynamic(n)->trial.prior, 0);
        lkg_report_deinit(&ignored);
}

/* ---- a reload ---- */

TEST_WITH(test_a_reload_is_no_new_refusal, setup, teardown)
{
        struct node *n = *state;
        struct lkg_component *c;

        configure(n);
        start(n);
        put_dropin(n, "20-b.conf", "maxPods: -3\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        c = &n->engine->components[0];
        assert_int_equal(c->counts.refused, 1);
        lkg_engine_reload(n->engine);
        c = &n->engine->components[0];
        assert_int_equal(c->candidate->state, LKG_CANDIDATE_INVALID);
        assert_int_equal(c->counts.refused, 1);
        put_dropin(n, "20-b.conf", "maxPods: -4\n");
        assert_int_equal(changed(n, "kubelet.conf.d/20-b.conf"), 0);
        assert_int_equal(c->counts.refused, 2);
        put_dropin(n, "20-b.conf", "maxPods: -5\n"); /* changed while the settings are read */
        lkg_engine_reload(n->engine);
        assert_int_equal(n->engine->components[0].counts.refused, 3);
}
