/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration document: every default, every field, drop-ins, ownership. Its mistakes are in rows/read.rows. */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/text.h>
#include <lkg/config.h>
#include <lkg/documents.h>
#include <lkg/messages.h>

#include "unit.h"
#include "tmpdir.h"

#define HEADER "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"

static int decode(const char *text, struct lkg_config **ret, char **ret_findings)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_source *source = lkg_source_new("configuration", "c.yaml");
        struct lkg_report report = LKG_REPORT_INIT;
        int r = lkg_decode_yaml(text, strlen(text), LKG_DECODE_STRICT, source, &report, &doc);

        if (r >= 0)
                r = lkg_config_decode(doc, "/etc/lkgfs", ret, &report);
        *ret_findings = lkg_report_format(&report, NULL);
        assert_non_null(*ret_findings);
        lkg_report_deinit(&report);
        lkg_source_unref(source);
        return r;
}

TEST(test_defaults)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_config *c = NULL;
        const struct lkg_config_component *k;

        assert_int_equal(lkg_config_decode(NULL, "/etc/lkgfs", &c, &report), 0);
        assert_int_equal(report.n_findings, 0);
        assert_string_equal(c->state_dir, "/var/lib/lkgfs");
        assert_string_equal(c->runtime_dir, "/run/lkgfs");
        assert_string_equal(c->source_dir, "");
        assert_string_equal(c->virtual_dir, "");
        assert_int_equal(c->foreign_writes, LKG_FOREIGN_DENY);
        assert_int_equal(c->status_mode, 0444);
        assert_int_equal(c->engine_timeout_ns, 2 * LKG_NSEC_PER_SEC);
        assert_int_equal(c->history_limit, 16);
        assert_false(c->remote.enabled);
        assert_int_equal(c->remote.references.n_items, 4);
        assert_string_equal(c->remote.allowed_sources.items[0], "kube-system/*");
        assert_int_equal(c->remote.max_bytes, 3u << 20);
        assert_int_equal(c->remote.poll_interval_ns, 60 * LKG_NSEC_PER_SEC);
        assert_true(c->remote.condition && c->remote.events && !c->remote.allow_exec &&
                    !c->remote.allow_insecure);
        assert_int_equal(c->trial.duration_ns, 600 * LKG_NSEC_PER_SEC);
        assert_int_equal(c->trial.crash_loop_threshold, 10);
        assert_int_equal(c->trial.scope, LKG_TRIAL_REMOTE);
        assert_int_equal(c->n_components, 1);
        k = &c->components[0];
        assert_string_equal(k->name, "kubelet");
        assert_string_equal(k->file, "kubelet.conf");
        assert_string_equal(k->base, "kubelet.conf");
        assert_string_equal(k->dropin_dir, "kubelet.conf.d");
        assert_string_equal(k->instance, "kubelet-instance.conf");
        assert_string_equal(k->patches_dir, "");
        assert_false(k->dropin_dir_set || k->instance_set);
        assert_int_equal(k->mode, 0600);
        assert_int_equal(k->uid, 0);
        assert_string_equal(k->match.unit, "kubelet.service");
        assert_string_equal(k->match.exe.items[0], "/usr/bin/kubelet");
        assert_int_equal(k->restart.policy, LKG_SETTINGS_RESTART_NEVER);
        assert_int_equal(k->restart.min_interval_ns, 60 * LKG_NSEC_PER_SEC);
        assert_int_equal(k->restart.max_per_hour, 6);
        assert_int_equal(k->local_policy, LKG_LOCAL_LKG);
        assert_int_equal(k->guard.profile, LKG_GUARD_NONE);
        assert_int_equal(k->base_writes, LKG_BASE_WRITES_DENY);
        lkg_config_free(c);
}

TEST(test_everything_can_be_set)
{
        static const char text[] = HEADER
                "stateDir: /s\nruntimeDir: run\nsourceDir: /src\nvirtualDir: .lkgfs\nforeignWrites: "
                "passthrough\n"
                "statusMode: '0440'\nengineTimeout: 500ms\nhistoryLimit: 4\n"
                "remote:\n  enabled: true\n  kubeconfig: kc\n  nodeName: n1\n  references: [file, static]\n"
                "  static: {namespace: a, name: b, key: c, uid: d}\n  file: /cm.yaml\n"
                "  allowedSources: ['a/*', b/c]\n  allowExec: true\n  pollInterval: 1m30s\n  maxBytes: "
                "1048576\n"
                "  restartJitter: 0s\n  condition: false\n  events: false\n"
                "trial: {scope: all, duration: 1h, crashLoopThreshold: 0, minDuration: 1m, maxDuration: "
                "2h}\n"
                "components:\n"
                "- name: kubelet\n  file: kc.yaml\n  aliases: [a.yaml, b.yaml]\n  kind: K\n  apiVersion: "
                "v1\n"
                "  base: /usr/lib/base.yaml\n  dropInDir: ''\n  instance: i.conf\n  patchesDir: p/q\n"
                "  mode: '0640'\n  owner: 7\n  group: '8'\n"
                "  match: {unit: '', exe: []}\n"
                "  restart: {policy: hook, hook: [/bin/x, z], minInterval: 1s, maxPerHour: 1}\n"
                "  localPolicy: strict\n  guard: {profile: hardened, deny: ['staticPod*'], pinned: [a.b]}\n"
                "  baseWrites: through\n"
                "- name: kube-proxy\n";
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        const struct lkg_config_component *k;
        struct lkg_config *c = NULL;
        int r = decode(text, &c, &findings);

        assert_string_equal(findings, "");
        assert_int_equal(r, 0);
        assert_string_equal(c->runtime_dir, "/etc/lkgfs/run");
        assert_int_equal(c->foreign_writes, LKG_FOREIGN_PASSTHROUGH);
        assert_int_equal(c->status_mode, 0440);
        assert_int_equal(c->engine_timeout_ns, 500 * LKG_NSEC_PER_MSEC);
        assert_string_equal(c->remote.kubeconfig, "/etc/lkgfs/kc");
        assert_string_equal(c->remote.file, "/cm.yaml");
        assert_string_equal(c->remote.fixed.key, "c");
        assert_int_equal(c->remote.references.n_items, 2);
        assert_int_equal(c->remote.poll_interval_ns, 90 * LKG_NSEC_PER_SEC);
        assert_int_equal(c->trial.scope, LKG_TRIAL_ALL);
        k = &c->components[0];
        assert_string_equal(k->aliases.items[1], "b.yaml");
        assert_string_equal(k->base, "/usr/lib/base.yaml");
        assert_string_equal(k->dropin_dir, "");
        assert_true(k->dropin_dir_set && k->instance_set);
        assert_int_equal(k->mode, 0640);
        assert_int_equal(k->uid, 7);
        assert_int_equal(k->gid, 8);
        assert_string_equal(k->match.unit, "");
        assert_int_equal(k->match.exe.n_items, 0);
        assert_int_equal(k->restart.policy, LKG_SETTINGS_RESTART_HOOK);
        assert_string_equal(k->restart.hook.items[1], "z");
        assert_int_equal(k->guard.profile, LKG_GUARD_HARDENED);
        assert_int_equal(k->base_writes, LKG_BASE_WRITES_THROUGH);
        k = &c->components[1];
        assert_string_equal(k->file, "kube-proxy.conf");
        assert_string_equal(k->dropin_dir, "kube-proxy.conf.d");
        assert_string_equal(k->match.exe.items[0], "/usr/bin/kube-proxy");
        lkg_config_free(c);
}

TEST(test_base_follows_file)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        assert_int_equal(
                decode(HEADER "components: [{name: kubelet, file: kubelet-config.yaml}]\n", &c, &findings),
                0);
        assert_string_equal(c->components[0].base, "kubelet-config.yaml");
        assert_string_equal(c->components[0].dropin_dir, "kubelet.conf.d");
        lkg_config_free(c);
}

static struct lkg_value *value_of(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_yaml(text, strlen(text), 0, NULL, &report, &value), 0);
        lkg_report_deinit(&report);
        return value;
}

TEST(test_components_merge_by_name)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *base = value_of("x: 1\ncomponents: [{name: a, file: f, mode: m}, {name: b}]\n");
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *patch = value_of("components: [{name: c}, {name: a, file: g, mode: null}]\n");
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *want = value_of("x: 1\ncomponents: [{name: a, file: g}, {name: b}, {name: c}]\n");
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;

        merged = lkg_config_merge(base, patch);
        assert_true(lkg_value_equal(merged, want));
}

/* ---- files ---- */

struct place {
        char top[TMPDIR_MAX], path[PATH_MAX];
};

static const char *at(struct place *p, const char *name)
{
        (void)snprintf(p->path, sizeof(p->path), "%s/%s", p->top, name);
        return p->path;
}

static void put(struct place *p, const char *name, const char *text)
{
        FILE *f = fopen(at(p, name), "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(p->path, 0644), 0);
}

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        assert_int_equal(mkdir(at(p, "config.d"), 0755), 0);
        assert_int_equal(mkdir(at(p, "vendor"), 0755), 0);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        assert_int_equal(tmpdir_remove(p->top), 0);
        free(p);
        return 0;
}

static int load(struct place *p, bool any_owner, struct lkg_config **ret, char **ret_findings)
{
        char config[128], vendor[128];
        const struct lkg_config_options options = { config, vendor, any_owner };
        struct lkg_report report = LKG_REPORT_INIT;
        int r;

        (void)snprintf(config, sizeof(config), "%s/config.yaml", p->top);
        (void)snprintf(vendor, sizeof(vendor), "%s/vendor", p->top);
        r = lkg_config_load(&options, ret, &report);
        *ret_findings = lkg_report_format(&report, NULL);
        lkg_report_deinit(&report);
        return r;
}

TEST_WITH(test_nothing_there_is_all_defaults, setup, teardown)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        assert_int_equal(load(*state, true, &c, &findings), 0);
        assert_string_equal(findings, "");
        assert_int_equal(c->n_components, 1);
        lkg_config_free(c);
}

TEST_WITH(test_drop_ins_in_order, setup, teardown)
{
        struct place *p = *state;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        put(p, "config.yaml", HEADER "historyLimit: 1\nstatusMode: '0400'\nstateDir: st\n");
        put(p, "vendor/10.conf", "historyLimit: 2\nvirtualDir: .a\n");
        put(p, "vendor/20.conf", "historyLimit: 3\nvirtualDir: .b\n"); /* the file below has the same name */
        put(p, "config.d/20.conf", "statusMode: '0404'\n");
        put(p, "vendor/30.conf", "engineTimeout: 1s\n");
        put(p, "config.d/25.conf", "engineTimeout: 3s\ncomponents: [{name: kubelet, mode: '0640'}]\n");
        put(p, "config.d/README", "not read");
        assert_int_equal(load(p, true, &c, &findings), 0);
        assert_non_null(strstr(findings, "note: README is not read"));
        assert_int_equal(c->history_limit, 2);
        assert_string_equal(c->virtual_dir, ".a");
        assert_int_equal(c->status_mode, 0404);
        assert_int_equal(c->engine_timeout_ns, LKG_NSEC_PER_SEC);
        assert_int_equal(c->components[0].mode, 0640);
        assert_string_equal(strrchr(c->state_dir, '/'), "/st");
        lkg_config_free(c);
}

/* A file that hides one below /usr is one drop-in with it. */
TEST_WITH(test_how_many_drop_ins_are_read, setup, teardown)
{
        struct place *p = *state;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        LKG_CLEANUP(lkg_freep) char *again = NULL;
        struct lkg_config *c = NULL;
        char name[32];

        for (unsigned i = 0; i < 1024; i++) {
                (void)snprintf(name, sizeof(name), "vendor/%04u.conf", i);
                put(p, name, "historyLimit: 9\n");
                (void)snprintf(name, sizeof(name), "config.d/%04u.conf", i);
                put(p, name, "");
        }
        assert_int_equal(load(p, true, &c, &findings), 0);
        assert_string_equal(findings, "");
        assert_int_not_equal(c->history_limit, 9);
        lkg_config_free(c);
        c = NULL;
        put(p, "config.d/more.conf", "");
        assert_int_equal(load(p, true, &c, &again), -EBADMSG);
        assert_non_null(strstr(again, "error: more than 1024 drop-ins"));
}

TEST_WITH(test_drop_in_alone_needs_no_header, setup, teardown)
{
        struct place *p = *state;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        put(p, "config.d/20.conf", "historyLimit: 9\n");
        assert_int_equal(load(p, true, &c, &findings), 0);
        assert_int_equal(c->history_limit, 9);
        lkg_config_free(c);
}

TEST_WITH(test_mistake_in_a_drop_in_names_the_drop_in, setup, teardown)
{
        struct place *p = *state;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        LKG_CLEANUP(lkg_freep) char *again = NULL;
        struct lkg_config *c = NULL;

        put(p, "config.yaml", HEADER);
        put(p, "config.d/20.conf", "historyLimit: 9\nx: y\n");
        assert_int_equal(load(p, true, &c, &findings), -EBADMSG);
        assert_non_null(strstr(findings, "config.d/20.conf:2:4: error: unknown field \"x\""));
        put(p, "config.d/20.conf", "historyLimit: [\n");
        assert_int_equal(load(p, true, &c, &again), -EBADMSG);
        assert_non_null(strstr(again, "config.d/20.conf:"));
        assert_null(c);
}

TEST_WITH(test_writable_by_others_is_refused, setup, teardown)
{
        struct place *p = *state;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        LKG_CLEANUP(lkg_freep) char *again = NULL;
        LKG_CLEANUP(lkg_freep) char *third = NULL;
        struct lkg_config *c = NULL;

        put(p, "config.yaml", HEADER "historyLimit: 1\n");
        if (geteuid() != 0) { /* our own file is not owned by root */
                assert_int_equal(load(p, false, &c, &findings), -EPERM);
                return;
        }
        assert_int_equal(load(p, false, &c, &findings), 0);
        c = lkg_config_free(c);
        assert_int_equal(chmod(at(p, "config.yaml"), 0664), 0);
        assert_int_equal(load(p, false, &c, &again), -EPERM);
        assert_non_null(strstr(again, "owned by root and not writable by others [LKG3018]"));
        assert_int_equal(chmod(at(p, "config.yaml"), 0644), 0);
        put(p, "config.d/1.conf", "historyLimit: 2\n");
        assert_int_equal(chmod(at(p, "config.d"), 0777), 0);
        assert_int_equal(load(p, false, &c, &third), -EPERM);
        assert_non_null(strstr(third, "config.d/1.conf: error: a directory on its way is not trusted"));
        assert_null(c);
}

TEST_WITH(test_huge_file_is_refused, setup, teardown)
{
        struct place *p = *state;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        put(p, "config.yaml", HEADER);
        assert_int_equal(truncate(at(p, "config.yaml"), LKG_CONFIG_BYTES_MAX + 1), 0);
        assert_int_equal(load(p, true, &c, &findings), -EBADMSG);
        assert_non_null(strstr(findings, "the limit is 1048576"));
        assert_null(c);
}

/* No message if the default user is missing: most builds from source do not have one. */
TEST(test_the_default_user)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;
        struct lkg_account account;

        assert_int_equal(decode(HEADER "engineUser: null\n", &c, &findings), 0);
        assert_string_equal(c->engine_user, "lkgfs");
        assert_string_equal(findings, "");
        assert_int_equal(c->engine_user_missing, lkg_account_find(LKG_PASSWD_FILE, "lkgfs", &account) < 0);
        assert_int_equal(c->engine_account.uid, account.uid);
        lkg_config_free(c);
}

/* The supervisor reads what the engine prints, including foreign writes. */
TEST(test_settings_there_and_back)
{
        static const char text[] = HEADER "foreignWrites: all\n";
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_settings *settings = NULL;
        struct lkg_config *c = NULL;

        assert_int_equal(decode(text, &c, &findings), 0);
        lkg_config_to_settings(c, &buf);
        assert_int_equal(lkg_settings_parse(buf.data, buf.size, &settings, NULL), 0);
        assert_int_equal(settings->foreign_writes, LKG_FOREIGN_ALL);
        lkg_settings_free(settings);
        lkg_config_free(c);
}
