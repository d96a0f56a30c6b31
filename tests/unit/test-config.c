/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration document: every default, every mistake with its finding and place, drop-ins, ownership. */
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
        assert_int_equal(k->restart.policy, LKG_RESTART_NEVER);
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
        assert_int_equal(k->restart.policy, LKG_RESTART_HOOK);
        assert_string_equal(k->restart.hook.items[1], "z");
        assert_int_equal(k->guard.profile, LKG_GUARD_HARDENED);
        assert_int_equal(k->base_writes, LKG_BASE_WRITES_THROUGH);
        k = &c->components[1];
        assert_string_equal(k->file, "kube-proxy.conf");
        assert_string_equal(k->dropin_dir, "kube-proxy.conf.d");
        assert_string_equal(k->match.exe.items[0], "/usr/bin/kube-proxy");
        lkg_config_free(c);
}

/* Each mistake alone, and the exact message. */
/* What a file written for an earlier build may say without asking for anything. */
TEST(test_an_empty_field_that_is_gone)
{
        static const char *const texts[] = { HEADER "nativeDirs: []\n", HEADER "nativeDirs: null\n" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                LKG_CLEANUP(lkg_freep) char *findings = NULL;
                struct lkg_config *c = NULL;

                assert_int_equal(decode(texts[i], &c, &findings), 0);
                assert_string_equal(findings, "");
                lkg_config_free(c);
        }
}

static const struct {
        const char *text, *want;
} mistakes[] = {
        { "kind: LkgfsConfiguration\n",
          "c.yaml:1:1: error: apiVersion is missing (want config.lkgfs.io/v1alpha1) [LKG3002]\n" },
        { "apiVersion: config.lkgfs.io/v1alpha1\nkind: Lkgfs\n",
          "c.yaml:2:7: error: kind is \"Lkgfs\" (want LkgfsConfiguration) [LKG3002]\n" },
        { "[a]\n", "c.yaml:1:1: error: the document is a list, want a map [LKG3004]\n" },
        { HEADER "historylimit: 4\n",
          "c.yaml:3:15: error: unknown field \"historylimit\", did you mean historyLimit? [LKG3003]\n" },
        { HEADER "trial: {x: 1}\n", "c.yaml:3:12: error: trial: unknown field \"x\" (known: scope, "
                                    "duration, crashLoopThreshold, minDuration, "
                                    "maxDuration) [LKG3003]\n" },
        { HEADER "historyLimit: ten\n",
          "c.yaml:3:15: error: historyLimit: is a string, want a number [LKG3004]\n" },
        { HEADER "historyLimit: 0\n",
          "c.yaml:3:15: error: historyLimit: \"0\" is not a whole number from 1 to 256 [LKG3010]\n" },
        { HEADER "historyLimit: 1.5\n",
          "c.yaml:3:15: error: historyLimit: \"1.5\" is not a whole number from 1 to 256 [LKG3010]\n" },
        { HEADER "engineTimeout: 2\n", "c.yaml:3:16: error: engineTimeout: is a number, want a string: a "
                                       "duration like 30s or 5m [LKG3004]\n" },
        { HEADER "engineTimeout: 2 s\n", "c.yaml:3:16: error: engineTimeout: \"2 s\" is not a duration "
                                         "(want 500ms, 30s, 5m, 1h30m) [LKG3005]\n" },
        { HEADER "engineTimeout: 5m\n", "c.yaml:3:16: error: engineTimeout: want 10ms to 1m [LKG3010]\n" },
        { HEADER "statusMode: 0444\n", "c.yaml:3:13: error: statusMode: is a number, want a string: an "
                                       "octal mode in quotes, like \"0600\" "
                                       "[LKG3004]\n" },
        { HEADER "statusMode: '0999'\n", "c.yaml:3:13: error: statusMode: \"0999\" is not an octal file "
                                         "mode (want \"0600\", \"0640\", at most "
                                         "\"0777\") [LKG3006]\n" },
        { HEADER "statusMode: '4755'\n", "c.yaml:3:13: error: statusMode: \"4755\" is not an octal file "
                                         "mode (want \"0600\", \"0640\", at most "
                                         "\"0777\") [LKG3006]\n" },
        { HEADER "virtualDir: a/b\n", "c.yaml:3:13: error: virtualDir: \"a/b\" is not a bare file name (no "
                                      "slash, not . or ..) [LKG3008]\n" },
        { HEADER "virtualDir: .lkgfs-fallback\n",
          "c.yaml:3:13: error: virtualDir: .lkgfs-fallback is reserved (want .lkgfs) [LKG3014]\n" },
        { HEADER "nativeDirs: [pki]\n",
          "c.yaml:3:13: error: nativeDirs is not a field any more: all directories are passed through the "
          "view; remove it [LKG3003]\n" },
        { HEADER "remote: {enabled: yes please}\n",
          "c.yaml:3:19: error: remote.enabled: is a string, want true or false [LKG3004]\n" },
        { HEADER "remote: {maxBytes: 3MB}\n", "c.yaml:3:20: error: remote.maxBytes: \"3MB\" is not a size "
                                              "(want 1048576, 512Ki, 3Mi) [LKG3011]\n" },
        { HEADER "remote: {maxBytes: 64Mi}\n", "c.yaml:3:20: error: remote.maxBytes: \"64Mi\" is not a size "
                                               "from 1 to 4194304 bytes [LKG3010]\n" },
        { HEADER "remote: {references: [node]}\n", "c.yaml:3:23: error: remote.references: \"node\" is not "
                                                   "one of nodeAnnotation, nodeSpec, static, file "
                                                   "[LKG3009]\n" },
        { HEADER "remote: {allowedSources: [kube-system]}\n",
          "c.yaml:3:26: error: remote.allowedSources: \"kube-system\" is not namespace/name (want "
          "kube-system/*) "
          "[LKG3021]\n" },
        { HEADER "remote: {static: x}\n",
          "c.yaml:3:18: error: remote.static: is a string, want a map [LKG3004]\n" },
        { HEADER "trial: {crashLoopThreshold: 11}\n", "c.yaml:3:29: error: trial.crashLoopThreshold: \"11\" "
                                                      "is not a whole number from 0 to 10 [LKG3010]\n" },
        { HEADER "trial: {minDuration: 2m, maxDuration: 1m}\n",
          "c.yaml:3:22: error: trial.minDuration: is longer than trial.maxDuration [LKG3020]\n" },
        { HEADER "components: {}\n",
          "c.yaml:3:13: error: components: is a map, want a list of components [LKG3004]\n" },
        { HEADER "components: [x]\n",
          "c.yaml:3:14: error: components: is a string, want a map [LKG3004]\n" },
        { HEADER "components: [{file: a}]\n",
          "c.yaml:3:14: error: components: a component has no name (want name: kubelet) [LKG3015]\n" },
        { HEADER "components: [{name: a}, {name: a, file: b}]\n",
          "c.yaml:3:32: error: components: two components are named a [LKG3013]\n" },
        { HEADER "components: [{name: a, file: x}, {name: b, file: x}]\n",
          "c.yaml:3:50: error: components[b].file: \"x\" is already a file of component a, choose another "
          "name "
          "[LKG3013]\n" },
        { HEADER "components: [{name: a, aliases: [a.conf]}]\n",
          "c.yaml:3:33: error: components[a].aliases: \"a.conf\" is already a file of component a, choose "
          "another name "
          "[LKG3013]\n" },
        { HEADER "components: [{name: a, file: status}]\n",
          "c.yaml:3:30: error: components[a].file: \"status\" is reserved for the view itself, choose "
          "another name "
          "[LKG3014]\n" },
        { HEADER "components: [{name: a, file: ''}]\n",
          "c.yaml:3:30: error: components[a].file: is empty, want a bare file name like kubelet.conf "
          "[LKG3008]\n" },
        { HEADER "components: [{name: a, file: ../x}]\n",
          "c.yaml:3:30: error: components[a].file: \"../x\" is not a bare file name (no slash, not . or ..) "
          "[LKG3008]\n" },
        { HEADER "components: [{name: a, base: ../x}]\n",
          "c.yaml:3:30: error: components[a].base: \"../x\" is not a path inside the source directory or an "
          "absolute "
          "one (no empty, . or .. parts) [LKG3017]\n" },
        { HEADER "components: [{name: a, base: lkg/x}]\n",
          "c.yaml:3:30: error: components[a].base: \"lkg/x\" lies below a name that the view keeps for "
          "itself "
          "[LKG3014]\n" },
        { HEADER "components: [{name: a, dropInDir: a.conf}]\n",
          "c.yaml:3:35: error: components[a].dropInDir: is the same name as the file or the base "
          "[LKG3020]\n" },
        { HEADER "components: [{name: a, owner: nobody-of-this-name}]\n",
          "c.yaml:3:31: error: components[a].owner: \"nobody-of-this-name\" is not a user of this system or "
          "a number "
          "[LKG3007]\n" },
        { HEADER "components: [{name: a, group: '-1'}]\n",
          "c.yaml:3:31: error: components[a].group: \"-1\" is not a group of this system or a number "
          "[LKG3007]\n" },
        { HEADER "components: [{name: a, match: {exe: [kubelet]}}]\n",
          "c.yaml:3:38: error: components[a].match.exe: \"kubelet\" is not an absolute path [LKG3012]\n" },
        { HEADER "components: [{name: a, restart: {policy: often}}]\n",
          "c.yaml:3:42: error: components[a].restart.policy: \"often\" is not one of never, unit, hook "
          "[LKG3009]\n" },
        { HEADER "components: [{name: a, match: {unit: ''}, restart: {policy: unit}}]\n",
          "c.yaml:3:52: error: components[a].restart: policy unit needs a unit (want unit: kubelet.service) "
          "[LKG3020]\n" },
        { HEADER "components: [{name: a, restart: {policy: hook, hook: [x]}}]\n",
          "c.yaml:3:33: error: components[a].restart.hook: policy hook needs an argument list that begins "
          "with an "
          "absolute path (want hook: [/usr/local/sbin/restart-kubelet]) [LKG3012]\n" },
        { HEADER "components: [{name: a, guard: {deny: [a..b]}}]\n",
          "c.yaml:3:31: error: components[a].guard: \"a..b\" is not a field (want "
          "authentication.anonymous.enabled or "
          "staticPod*) [LKG3021]\n" },
        { HEADER "components: [{name: a, baseWrites: allow}]\n",
          "c.yaml:3:36: error: components[a].baseWrites: \"allow\" is not one of deny, through "
          "[LKG3009]\n" },
        { HEADER "components: [{name: a, schemaRelease: 1.40}]\n",
          "c.yaml:3:39: error: components[a].schemaRelease: \"1.4\" is not auto or a release with tables, "
          "1.33 "
          "to 1.37 [LKG3009]\n" },
        { HEADER "components: [{name: a, schemaRelease: 'v1.36'}]\n",
          "c.yaml:3:39: error: components[a].schemaRelease: \"v1.36\" is not auto or a release with tables, "
          "1.33 "
          "to 1.37 [LKG3009]\n" },
        { HEADER "components: [{name: a, colour: red}]\n",
          "c.yaml:3:32: error: components[a]: unknown field \"colour\" (known: name, file, aliases, kind, "
          "apiVersion, "
          "base, dropInDir, instance, patchesDir, maxDropIns, maxLayerBytes, mode, owner, group, match, "
          "restart, localPolicy, "
          "startupRules, guard, trial, "
          "baseWrites, schemaRelease) "
          "[LKG3003]\n" },
};

TEST(test_each_mistake_is_named)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(mistakes); i++) {
                LKG_CLEANUP(lkg_freep) char *findings = NULL;
                struct lkg_config *c = NULL;
                int r = decode(mistakes[i].text, &c, &findings);

                if (strcmp(findings, mistakes[i].want) != 0)
                        fail_msg("%s\ngives: %swant:  %s", mistakes[i].text, findings, mistakes[i].want);
                assert_int_equal(r, -EBADMSG);
                assert_null(c);
        }
}

TEST(test_all_mistakes_of_one_file_are_named)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        assert_int_equal(
                decode(HEADER "a: 1\nhistoryLimit: x\nremote: {b: 1, maxBytes: []}\n", &c, &findings),
                -EBADMSG);
        assert_non_null(strstr(findings, "c.yaml:3:4: "));
        assert_non_null(strstr(findings, "c.yaml:4:15: "));
        assert_non_null(strstr(findings, "c.yaml:5:13: "));
        assert_non_null(strstr(findings, "c.yaml:5:26: "));
}

TEST(test_names_that_move_away_with_virtual_dir_are_free)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_config *c = NULL;

        assert_int_equal(
                decode(HEADER "virtualDir: .x\ncomponents: [{name: a, file: status}]\n", &c, &findings), 0);
        assert_string_equal(findings, "");
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

/* A missing user does not keep a node from starting. */
TEST(test_whom_the_engine_runs_as)
{
        static const struct {
                const char *text;
                uid_t uid;
                bool missing, told;
        } cases[] = {
                { "engineUser: root\n", 0, false, false },
                { "engineUser: ''\n", 0, false, false },
                { "engineUser: 0\n", 0, false, false },
                { "engineUser: 61234\n", 61234, false, false },
                { "engineUser: '61234'\n", 61234, false, false },
                { "engineUser: no-such-user-of-lkgfs\n", 0, true, true },
                { "engineUser: -1\n", 0, true, true },
                { "engineUser: 4294967295\n", 0, true, true },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                LKG_CLEANUP(lkg_freep) char *findings = NULL;
                struct lkg_config *c = NULL;
                char text[256];

                (void)snprintf(text, sizeof(text), HEADER "%s", cases[i].text);
                print_message("%s", cases[i].text);
                assert_int_equal(decode(text, &c, &findings), 0);
                assert_int_equal(c->engine_account.uid, cases[i].uid);
                assert_int_equal(c->engine_account.gid, cases[i].uid);
                assert_int_equal(c->engine_user_missing, cases[i].missing);
                assert_int_equal(strstr(findings, "c.yaml:3:13: warning: engineUser: there is no user ") &&
                                         strstr(findings, "[LKG3022]"),
                                 cases[i].told);
                assert_int_equal(*findings != '\0', cases[i].told);
                lkg_config_free(c);
        }
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

TEST(test_settings_for_the_supervisor)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_settings *s = NULL;
        struct lkg_config *c = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        assert_int_equal(decode(HEADER
                                "engineUser: 61234\ncomponents: [{name: kubelet, aliases: [k.yaml]}]\n",
                                &c, &findings),
                         0);
        s = lkg_config_to_settings(c);
        lkg_settings_format(s, &buf);
        assert_string_equal(
                buf.data, "state_dir=/var/lib/lkgfs\nruntime_dir=/run/lkgfs\nsource_dir=\nvirtual_dir=\n"
                          "engine_timeout_ms=2000\nforeign_writes=0\nrestart_jitter_ms=300000\nnode_name=\n"
                          "engine_user=61234\nengine_uid=61234\nengine_gid=61234\nengine_user_missing=0\n"
                          "component=kubelet\ncomponent_unit=kubelet.service\ncomponent_file=kubelet.conf\n"
                          "component_uid=0\ncomponent_gid=0\ncomponent_mode=384\n"
                          "component_exe=/usr/bin/kubelet\ncomponent_restart=never\n"
                          "component_restart_unit=kubelet.service\n"
                          "component_restart_min_interval_ms=60000\ncomponent_restart_max_per_hour=6\n");
        lkg_buf_deinit(&buf);
        lkg_settings_free(s);
        lkg_config_free(c);
}

/* The supervisor reads what the engine prints, including foreign writes. */
TEST(test_settings_there_and_back)
{
        static const char text[] = HEADER "foreignWrites: all\n";
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_settings *s = NULL, *back = NULL;
        struct lkg_error err = { 0 };
        struct lkg_config *c = NULL;

        assert_int_equal(decode(text, &c, &findings), 0);
        s = lkg_config_to_settings(c);
        lkg_settings_format(s, &buf);
        assert_int_equal(lkg_settings_parse(buf.data, buf.size, &back, &err), 0);
        assert_int_equal(back->foreign_writes, LKG_FOREIGN_ALL);
        lkg_buf_deinit(&buf);
        lkg_settings_free(s);
        lkg_settings_free(back);
        lkg_config_free(c);
}

TEST(test_restarts_for_the_supervisor)
{
        LKG_CLEANUP(lkg_freep) char *findings = NULL;
        const struct lkg_settings_component *k;
        struct lkg_settings *s = NULL;
        struct lkg_config *c = NULL;

        assert_int_equal(
                decode(HEADER "remote: {nodeName: n 1, restartJitter: 90s}\n"
                              "components:\n"
                              "- {name: a, restart: {policy: unit, unit: b.service, minInterval: 1500ms}}\n"
                              "- {name: b, restart: {policy: hook, hook: [/bin/x, -v], maxPerHour: 9}}\n",
                       &c, &findings),
                0);
        s = lkg_config_to_settings(c);
        assert_string_equal(s->node_name, "n 1");
        assert_int_equal(s->restart_jitter_ms, 90000);
        k = &s->components[0];
        assert_int_equal(k->restart, LKG_SETTINGS_RESTART_UNIT);
        assert_string_equal(k->restart_unit, "b.service");
        assert_string_equal(k->unit, "a.service");
        assert_int_equal(k->restart_min_interval_ms, 1500);
        k = &s->components[1];
        assert_int_equal(k->restart, LKG_SETTINGS_RESTART_HOOK);
        assert_string_equal(k->restart_unit, "b.service"); /* that of the match */
        assert_int_equal(k->n_restart_argv, 2);
        assert_string_equal(k->restart_argv[1], "-v");
        assert_int_equal(k->restart_max_per_hour, 9);
        lkg_settings_free(s);
        lkg_config_free(c);
}
