/* SPDX-License-Identifier: Apache-2.0 */
/* The tables compared with what the components report about themselves, and with each other. */
#include <ctype.h>
#include <strings.h>

#include <core/schema/findings-codes.h>
#include <lkg/schema.h>
#include <core/schema/tree.h>
#include <lkg/documents.h>

#include "unit.h"
#include "known-tables.h"

/* Go's type as the tables write it. */
static void table_type(const char *go, char ret[static 64])
{
        static const struct {
                const char *go, *type;
        } names[] = {
                { "v1.Duration", "duration" },
                { "v1.TimeOrMetaDuration", "flush" },
                { "v1.VerbosityLevel", "uint32" },
                { "v1.VModuleConfiguration", "[]struct" },
                { "resource.QuantityValue", "quantity" },
                { "v1.ResourceList", "map[string]quantity" },
                { "v1.Time", "time" },
                { "v1beta1.KubeletAuthorizationMode", "string" },
                { "v1beta1.ImagePullCredentialsVerificationPolicy", "string" },
                { "v1beta1.ResourceChangeDetectionStrategy", "string" },
                { "v1beta1.MemoryReservationPolicy", "string" },
                { "v1.TaintEffect", "string" },
                { "v1alpha1.ProxyMode", "string" },
                { "v1alpha1.LocalMode", "string" },
        };
        const char *prefix = "", *type = go;

        if (*type == '*') {
                prefix = "*";
                type++;
        } else if (strncmp(type, "[]", 2) == 0) {
                prefix = "[]";
                type += 2;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                if (strcmp(type, names[i].go) == 0) {
                        (void)snprintf(ret, 64, "%s%s", prefix, names[i].type);
                        return;
                }
        (void)snprintf(ret, 64, "%s%s", prefix, strncmp(type, "v1", 2) == 0 ? "struct" : type);
}

static void check_fields(const struct lkg_kind *kind, const struct known_field *known, size_t n_known)
{
        size_t n = 0;

        for (size_t i = 0; i < *kind->n_fields; i++) {
                const struct lkg_field *field = &kind->fields[i];
                char type[64];

                if (!lkg_field_in(field, LKG_RELEASE_MAX))
                        continue;
                assert_true(n < n_known);
                assert_string_equal(field->path, known[n].path);
                table_type(known[n].go, type);
                assert_string_equal(field->type, type);
                if (!(field->flags & LKG_FIELD_ALWAYS) != known[n].omitempty)
                        fail_msg("%s: omitempty", field->path);
                n++;
        }
        assert_int_equal(n, n_known);
}

TEST(test_fields_are_those_of_the_components)
{
        assert_int_equal(lkg_n_kinds, 2);
        check_fields(&lkg_kinds[0], known_kubelet_fields, LKG_ARRAY_SIZE(known_kubelet_fields));
        check_fields(&lkg_kinds[1], known_kubeproxy_fields, LKG_ARRAY_SIZE(known_kubeproxy_fields));
}

static const struct lkg_flag *find_flag(const struct lkg_kind *kind, const char *name)
{
        for (size_t i = 0; i < *kind->n_flags; i++)
                if (strcmp(kind->flags[i].name, name) == 0)
                        return &kind->flags[i];
        return NULL;
}

static bool gate_known(const char *name)
{
        for (size_t i = 0; i < lkg_n_gates; i++)
                if (strcmp(lkg_gates[i].name, name) == 0)
                        return true;
        return false;
}

static void check_default(const struct lkg_field *field)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        if (lkg_decode_json(field->def, strlen(field->def), LKG_DECODE_STRICT, NULL, &report, &value) < 0)
                fail_msg("%s: default %s is not JSON", field->path, field->def);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
}

TEST(test_every_row_is_whole)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];

                        assert_non_null(field->doc);
                        assert_in_range(strlen(field->doc), 5, 100);
                        assert_null(strchr(field->doc, '\n'));
                        if (field->gate && !gate_known(field->gate))
                                fail_msg("%s: no feature gate %s", field->path, field->gate);
                        if (field->flag && !find_flag(&lkg_kinds[k], field->flag))
                                fail_msg("%s: no flag --%s", field->path, field->flag);
                        if (field->def)
                                check_default(field);
                        assert_true(!field->until || field->since <= field->until);
                        if ((field->flags & LKG_FIELD_RESOLVED) && !(field->flags & LKG_FIELD_PATH))
                                fail_msg("%s: resolved, but no path", field->path);
                }
}

/* Release ranges of one path neither overlap nor leave a gap, and its rows are adjacent. */
TEST(test_rows_of_one_field_share_the_releases)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (unsigned release = LKG_RELEASE_MIN; release <= LKG_RELEASE_MAX; release++)
                        for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                                const struct lkg_field *a = &lkg_kinds[k].fields[i];

                                for (size_t j = i + 1; j < *lkg_kinds[k].n_fields; j++) {
                                        const struct lkg_field *b = &lkg_kinds[k].fields[j];

                                        if (strcmp(a->path, b->path) != 0)
                                                continue;
                                        assert_int_equal(j, i + 1);
                                        assert_false(lkg_field_in(a, release) && lkg_field_in(b, release));
                                        assert_int_equal(a->until + 1, b->since);
                                }
                        }
}

TEST(test_what_changed_between_releases)
{
        const struct lkg_kind *kubelet = &lkg_kinds[0];
        bool old_default = false, new_default = false;

        for (size_t i = 0; i < *kubelet->n_fields; i++) {
                const struct lkg_field *field = &kubelet->fields[i];

                if (strcmp(field->path, "tlsCurvePreferences") == 0 ||
                    strcmp(field->path, "memoryReservationPolicy") == 0) {
                        assert_true(lkg_field_in(field, 136));
                        assert_false(lkg_field_in(field, 135));
                }
                if (strcmp(field->path, "failCgroupV1") != 0)
                        continue;
                old_default |= lkg_field_in(field, 134) && strcmp(field->def, "false") == 0;
                new_default |= lkg_field_in(field, 135) && strcmp(field->def, "true") == 0;
        }
        assert_true(old_default);
        assert_true(new_default);
}

/* The kubelet resolves these seven paths relative to the directory of its base, and no others. */
TEST(test_paths_that_follow_the_base)
{
        static const char *const paths[] = { "staticPodPath",
                                             "podLogsDir",
                                             "tlsCertFile",
                                             "tlsPrivateKeyFile",
                                             "authentication.x509.clientCAFile",
                                             "resolvConf",
                                             "volumePluginDir" };
        size_t n = 0;

        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];
                        bool listed = false;

                        if (!(field->flags & LKG_FIELD_RESOLVED))
                                continue;
                        for (size_t j = 0; j < LKG_ARRAY_SIZE(paths); j++)
                                listed |= strcmp(paths[j], field->path) == 0;
                        if (!listed || k != 0)
                                fail_msg("%s is not resolved", field->path);
                        n++;
                }
        assert_int_equal(n, LKG_ARRAY_SIZE(paths));
}

/* ---- flags ---- */

static const char *flag_type(const struct known_flag *flag)
{
        static const struct {
                const char *pflag, *type;
        } names[] = {
                { "Level", "uint32" },
                { "pattern=N,...", "vmodule" },
                { "colonSeparatedMultimapStringString", "colonMultimap" },
                { "[]v1.Taint", "taints" },
                { "reserved-memory", "reservedMemory" },
                { "version", "string" },
        };

        if (strcmp(flag->name, "eviction-hard") == 0 || strcmp(flag->name, "eviction-soft") == 0)
                return "langleMap";
        if (strcmp(flag->name, "cpu-manager-policy-options") == 0)
                return "mapStringStringNoSplit";
        if (strcmp(flag->name, "node-labels") == 0)
                return "nodeLabels";
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                if (strcmp(flag->type, names[i].pflag) == 0)
                        return names[i].type;
        return flag->type;
}

TEST(test_flags_are_those_of_the_kubelet)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(known_kubelet_flags); i++) {
                const struct known_flag *known = &known_kubelet_flags[i];
                const struct lkg_flag *flag = find_flag(&lkg_kinds[0], known->name);

                if (!flag)
                        fail_msg("--%s is missing", known->name);
                assert_string_equal(flag->type, flag_type(known));
                if ((flag->field != NULL) != known->config)
                        fail_msg("--%s: field", known->name);
                assert_int_equal(flag->no_value,
                                 strcmp(known->type, "bool") == 0 || strcmp(known->type, "version") == 0);
        }
}

TEST(test_flags_and_fields_agree)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_flags; i++) {
                        const struct lkg_flag *flag = &lkg_kinds[k].flags[i];
                        bool found = !flag->field;

                        if (i > 0)
                                assert_true(strcmp(lkg_kinds[k].flags[i - 1].name, flag->name) < 0);
                        for (size_t j = 0; !found && j < *lkg_kinds[k].n_fields; j++) {
                                const struct lkg_field *field = &lkg_kinds[k].fields[j];

                                found = strcmp(field->path, flag->field) == 0 && field->flag &&
                                        strcmp(field->flag, flag->name) == 0;
                        }
                        if (!found)
                                fail_msg("--%s sets %s, which does not know it", flag->name, flag->field);
                }
}

/* ---- gates ---- */

TEST(test_gates_are_sorted)
{
        for (size_t i = 0; i < lkg_n_gates; i++) {
                const struct lkg_gate_state *states = lkg_gates[i].states;

                if (i > 0 && strcmp(lkg_gates[i - 1].name, lkg_gates[i].name) >= 0)
                        fail_msg("%s is out of order", lkg_gates[i].name);
                assert_true(states[0].since);
                for (size_t k = 0; k < LKG_GATE_STATES_MAX; k++) {
                        if (k > 0 && states[k].since && states[k - 1].since >= states[k].since)
                                fail_msg("the states of %s are out of order", lkg_gates[i].name);
                        assert_false(states[k].before && states[k].stage != LKG_GATE_REMOVED);
                }
        }
        for (size_t i = 0; i < lkg_n_gate_needs; i++) {
                assert_true(gate_known(lkg_gate_needs[i].name));
                assert_true(gate_known(lkg_gate_needs[i].needs));
                assert_true(i == 0 || strcmp(lkg_gate_needs[i - 1].name, lkg_gate_needs[i].name) <= 0);
        }
}

static void describe_gate(const char *name, unsigned release, char ret[static 8])
{
        static const char letters[] = { [LKG_GATE_ALPHA] = 'A',
                                        [LKG_GATE_BETA] = 'B',
                                        [LKG_GATE_GA] = 'G',
                                        [LKG_GATE_DEPRECATED] = 'D' };
        const struct lkg_gate_state *row = NULL;

        for (size_t i = 0; i < lkg_n_gates; i++)
                if (strcmp(lkg_gates[i].name, name) == 0)
                        row = lkg_gate_in(&lkg_gates[i], release);
        if (!row || row->stage == LKG_GATE_REMOVED)
                (void)snprintf(ret, 8, "-");
        else
                (void)snprintf(ret, 8, "%c%d%s", letters[row->stage], row->def, row->locked ? "L" : "");
}

TEST(test_gates_are_those_of_each_release)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(known_gates); i++)
                for (unsigned r = 0; r < LKG_ARRAY_SIZE(known_gates[i].releases); r++) {
                        char text[8];

                        describe_gate(known_gates[i].name, LKG_RELEASE_MIN + r, text);
                        if (strcmp(text, known_gates[i].releases[r]) != 0)
                                fail_msg("%s in 1.%u: %s, want %s", known_gates[i].name, 33 + r, text,
                                         known_gates[i].releases[r]);
                }
}

/* A gate that no recorded release knows was dropped earlier, and the table says so. */
TEST(test_other_gates_were_dropped_before)
{
        for (size_t i = 0; i < lkg_n_gates; i++) {
                bool known = false;

                for (size_t j = 0; !known && j < LKG_ARRAY_SIZE(known_gates); j++)
                        known = strcmp(known_gates[j].name, lkg_gates[i].name) == 0;
                if (known)
                        continue;
                assert_int_equal(lkg_gates[i].states[0].stage, LKG_GATE_REMOVED);
                assert_in_range(lkg_gates[i].states[0].since, 101, LKG_RELEASE_MIN);
                assert_int_equal(lkg_gates[i].states[1].since, 0);
        }
}

/* ---- findings ---- */

TEST(test_every_finding_is_explained)
{
        for (size_t i = 0; i < lkg_n_finding_kinds; i++) {
                const struct lkg_finding_kind *kind = &lkg_finding_kinds[i];

                assert_true(i == 0 || lkg_finding_kinds[i - 1].code < kind->code);
                if (!kind->title || !kind->advice || !kind->paragraph)
                        fail_msg("LKG%04u is not explained", kind->code);
                assert_in_range(strlen(kind->title), 5, 50);
                assert_in_range(strlen(kind->advice), 10, 200);
                assert_in_range(strlen(kind->paragraph), 40, 600);
        }
}

TEST(test_codes_of_the_schema_have_a_row)
{
        static const enum lkg_schema_code last[] = { LKG_F_ROUNDED, LKG_F_HOST };
        static const enum lkg_schema_code first[] = { LKG_F_WRONG_TYPE, LKG_F_OUT_OF_RANGE };

        for (size_t range = 0; range < LKG_ARRAY_SIZE(first); range++)
                for (unsigned code = first[range]; code <= last[range]; code++) {
                        bool found = false;

                        for (size_t i = 0; i < lkg_n_finding_kinds; i++)
                                found |= lkg_finding_kinds[i].code == code;
                        if (!found)
                                fail_msg("LKG%04u has no row", code);
                }
}

/* ---- the column change ---- */

TEST(test_change_is_a_class_and_words)
{
        size_t n = 0;

        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];
                        const char *name = lkg_change_class_name(lkg_change_class_of(field));

                        if (!field->change)
                                continue;
                        n++;
                        assert_int_not_equal(lkg_change_class_of(field), LKG_CHANGE_RESTART);
                        assert_int_equal(strncmp(field->change, name, strlen(name)), 0);
                        assert_int_equal(strncmp(field->change + strlen(name), ": ", 2), 0);
                        assert_true(strlen(field->change) > strlen(name) + 20 &&
                                    strlen(field->change) < 130);
                }
        assert_true(n > 20);
}

static bool is_below(const char *path, const char *of)
{
        size_t n = strlen(of);

        return strncmp(path, of, n) == 0 && (path[n] == '.' || strncmp(path + n, "[].", 3) == 0);
}

/* A difference may be a whole struct: it needs what the most expensive of its fields needs. */
TEST(test_a_struct_needs_what_its_fields_need)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];
                        enum lkg_change_class worst = LKG_CHANGE_RESTART;
                        bool found = false;

                        for (size_t j = 0; j < *lkg_kinds[k].n_fields; j++)
                                if (is_below(lkg_kinds[k].fields[j].path, field->path)) {
                                        enum lkg_change_class below =
                                                lkg_change_class_of(&lkg_kinds[k].fields[j]);

                                        worst = below > worst ? below : worst;
                                        found = true;
                                }
                        if (found && worst != lkg_change_class_of(field))
                                fail_msg("%s needs %s, and its most expensive field %s", field->path,
                                         lkg_change_class_name(lkg_change_class_of(field)),
                                         lkg_change_class_name(worst));
                }
}

/* ---- rows that the sources of the components decide ---- */

static const struct lkg_field *row_of(const char *kind, const char *path)
{
        const struct lkg_kind *found = NULL;

        for (size_t k = 0; k < lkg_n_kinds; k++)
                if (strcmp(lkg_kinds[k].kind, kind) == 0)
                        found = &lkg_kinds[k];
        assert_non_null(found);
        for (size_t i = 0; i < *found->n_fields; i++)
                if (strcmp(found->fields[i].path, path) == 0)
                        return &found->fields[i];
        fail_msg("no row %s", path);
        return NULL;
}

/*
 * Values that pass validation and with which release 1.36 ends, with the function that returns the error, panics or exits.
 * A field that is added here has an error path there; one that loses it upstream may become less dangerous.
 */
TEST(test_what_has_an_error_path_stops)
{
        static const struct {
                const char *kind, *where, *fields[16]; /* NULL after the last one */
        } sources[] = {
                { "KubeletConfiguration",
                  "cmd/kubelet/app/server.go InitializeTLS, pkg/kubelet/kubelet.go NewMainKubelet",
                  { "tlsCertFile", "tlsPrivateKeyFile", "serverTLSBootstrap",
                    "authentication.x509.clientCAFile" } },
                { "KubeletConfiguration",
                  "net/http http2ConfigureServer: a cipher of HTTP/2 is missing below TLS 1.3",
                  { "tlsCipherSuites", "tlsMinVersion" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/server/server.go ListenAndServe*: os.Exit",
                  { "address", "port", "readOnlyPort" } },
                { "KubeletConfiguration",
                  "cmd/kubelet/app/auth.go BuildAuthn, BuildAuthz: a kubelet without a client",
                  { "authentication.webhook.enabled", "authorization.mode" } },
                { "KubeletConfiguration",
                  "cmd/kubelet/app/server.go run",
                  { "featureGates", "rotateCertificates", "containerRuntimeEndpoint", "imageServiceEndpoint",
                    "runtimeRequestTimeout", "localStorageCapacityIsolation", "reservedSystemCPUs",
                    "memorySwap.swapBehavior" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/cm/container_manager_linux.go NewContainerManager",
                  { "failSwapOn", "cgroupRoot", "cgroupsPerQOS", "cgroupDriver", "cpuManagerPolicy",
                    "cpuManagerPolicyOptions", "memoryManagerPolicy", "reservedMemory",
                    "topologyManagerPolicy", "topologyManagerPolicyOptions", "systemReserved",
                    "kubeReserved", "evictionHard", "mergeDefaultEvictionSettings" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/cm/container_manager_linux.go Start, setupNode",
                  { "protectKernelDefaults", "enforceNodeAllocatable", "systemReservedCgroup",
                    "kubeReservedCgroup", "systemCgroups", "kubeletCgroups" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/kubelet.go NewMainKubelet: more than 0",
                  { "syncFrequency" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/config/file.go run: time.NewTicker panics unless more than 0",
                  { "fileCheckFrequency" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/userns/userns_manager.go MakeUserNsManager: ids for all pods",
                  { "maxPods", "userNamespaces.idsPerPod" } },
                { "KubeletConfiguration", "pkg/kubelet/kubelet.go setupDataDirs", { "podLogsDir" } },
                { "KubeletConfiguration",
                  "pkg/kubelet/logs/container_log_manager.go Start: as many goroutines",
                  { "containerLogMaxWorkers" } },
                { "KubeProxyConfiguration",
                  "cmd/kube-proxy/app/server.go newProxyServer, createClient",
                  { "featureGates", "clientConnection.kubeconfig", "detectLocalMode", "hostnameOverride" } },
                { "KubeProxyConfiguration",
                  "cmd/kube-proxy/app/server.go newProxyServer, checkBadIPConfig: IP families",
                  { "bindAddress", "clusterCIDR" } },
                { "KubeProxyConfiguration",
                  "cmd/kube-proxy/app/server.go Run, with bindAddressHardFail",
                  { "bindAddressHardFail", "healthzBindAddress", "metricsBindAddress" } },
                { "KubeProxyConfiguration",
                  "pkg/proxy/conntrack/sysctls.go setSysctls",
                  { "conntrack.maxPerCore", "conntrack.min", "conntrack.tcpEstablishedTimeout",
                    "conntrack.tcpCloseWaitTimeout", "conntrack.tcpBeLiberal", "conntrack.udpTimeout",
                    "conntrack.udpStreamTimeout" } },
                { "KubeProxyConfiguration",
                  "pkg/proxy/runner NewBoundedFrequencyRunner: a panic above FullSyncPeriod",
                  { "iptables.minSyncPeriod", "nftables.minSyncPeriod" } },
                { "KubeProxyConfiguration",
                  "pkg/proxy/iptables/proxier.go NewProxier: route_localnet",
                  { "iptables.localhostNodePorts", "nodePortAddresses" } },
                { "KubeProxyConfiguration",
                  "pkg/proxy/ipvs CanUseIPVSProxier, NewProxier; nftables NewProxier",
                  { "mode", "ipvs.scheduler", "ipvs.strictARP" } },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(sources); i++)
                for (const char *const *path = sources[i].fields; *path; path++)
                        if (row_of(sources[i].kind, *path)->danger != LKG_DANGER_STOPS)
                                fail_msg("%s does not stop, but see %s", *path, sources[i].where);
}

/* Nothing but decoding, defaults and validation reads them in any release on Linux. */
TEST(test_what_nothing_reads_is_harmless)
{
        static const char *const kubelet[] = { "hairpinMode", "iptablesMasqueradeBit", "iptablesDropBit",
                                               "streamingConnectionIdleTimeout" };
        static const char *const kubeproxy[] = { "portRange", "winkernel", "windowsRunAsService" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(kubelet); i++)
                assert_int_equal(row_of("KubeletConfiguration", kubelet[i])->danger, LKG_DANGER_HARMLESS);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kubeproxy); i++)
                assert_int_equal(row_of("KubeProxyConfiguration", kubeproxy[i])->danger,
                                 LKG_DANGER_HARMLESS);
}

/* What outlives a restart of release 1.36, with the function that keeps it or reads it again. */
TEST(test_what_outlives_a_restart)
{
        static const struct {
                enum lkg_change_class change_class;
                const char *where, *fields[16]; /* NULL after the last one */
        } sources[] = {
                { LKG_CHANGE_DRAIN,
                  "pkg/kubelet/cm/cpumanager: restoreState, validateState (cpu_manager_state)",
                  { "cpuManagerPolicy", "cpuManagerPolicyOptions", "reservedSystemCPUs", "systemReserved",
                    "kubeReserved" } },
                { LKG_CHANGE_DRAIN,
                  "pkg/kubelet/cm/memorymanager: restoreState, validateState (memory_manager_state)",
                  { "memoryManagerPolicy", "reservedMemory" } },
                { LKG_CHANGE_DRAIN,
                  "pkg/kubelet/kubelet.go HandlePodAdditions: running pods are admitted again",
                  { "topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions" } },
                { LKG_CHANGE_DRAIN,
                  "pkg/kubelet/kubelet.go SyncPod: a pod without its control group is killed",
                  { "cgroupDriver", "cgroupRoot", "cgroupsPerQOS" } },
                { LKG_CHANGE_DRAIN,
                  "pkg/kubelet/userns/userns_manager.go record: wrong user namespace length",
                  { "userNamespaces.idsPerPod" } },
                { LKG_CHANGE_RECREATE,
                  "pkg/kubelet/cm/pod_container_manager_linux.go EnsureExists: once per pod",
                  { "podPidsLimit", "cpuCFSQuota", "cpuCFSQuotaPeriod", "memoryReservationPolicy" } },
                { LKG_CHANGE_RECREATE,
                  "pkg/kubelet/kuberuntime: when a container or sandbox is created",
                  { "memoryThrottlingFactor", "memorySwap.swapBehavior", "seccompDefault",
                    "singleProcessOOMKill", "clusterDNS", "clusterDomain", "resolvConf" } },
                { LKG_CHANGE_RECREATE,
                  "pkg/kubelet/kubelet_node_status.go initialNode: not for a Node that exists",
                  { "registerWithTaints", "providerID" } },
                { LKG_CHANGE_RECREATE,
                  "pkg/kubelet/cm: nothing takes a limit or a process back",
                  { "enforceNodeAllocatable", "systemReservedCgroup", "kubeReservedCgroup", "qosReserved",
                    "systemCgroups" } },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(sources); i++)
                for (const char *const *path = sources[i].fields; *path; path++)
                        if (lkg_change_class_of(row_of("KubeletConfiguration", *path)) !=
                            sources[i].change_class)
                                fail_msg("%s is not %s, but see %s", *path,
                                         lkg_change_class_name(sources[i].change_class), sources[i].where);
}

/* ---- the column danger ---- */

/* No field is left out, and a struct is as dangerous as the worst of its fields. */
TEST(test_every_field_has_a_danger)
{
        size_t n[LKG_DANGER_STOPS + 1] = { 0 };

        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];
                        enum lkg_danger worst = LKG_DANGER_UNKNOWN;

                        if (field->danger == LKG_DANGER_UNKNOWN || field->danger > LKG_DANGER_STOPS)
                                fail_msg("%s has no danger", field->path);
                        n[field->danger]++;
                        for (size_t j = 0; j < *lkg_kinds[k].n_fields; j++)
                                if (is_below(lkg_kinds[k].fields[j].path, field->path) &&
                                    lkg_kinds[k].fields[j].danger > worst)
                                        worst = lkg_kinds[k].fields[j].danger;
                        if (worst != LKG_DANGER_UNKNOWN && worst != field->danger)
                                fail_msg("%s is %s, and its worst field is %s", field->path,
                                         lkg_danger_name(field->danger), lkg_danger_name(worst));
                }
        assert_null(lkg_danger_name(LKG_DANGER_UNKNOWN));
        for (size_t i = LKG_DANGER_HARMLESS; i < LKG_ARRAY_SIZE(n); i++)
                assert_true(n[i] > 20);
}

/* Rows that a slip in the tables would move. */
TEST(test_what_stops_a_component)
{
        static const struct {
                const char *kind, *pointer;
                enum lkg_danger danger;
        } rows[] = {
                { "KubeletConfiguration", "/cgroupDriver", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/cpuManagerPolicy", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/containerRuntimeEndpoint", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/authentication/x509/clientCAFile", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/featureGates/AnyGate", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/evictionHard/memory.available", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/evictionSoft/memory.available", LKG_DANGER_PODS },
                { "KubeletConfiguration", "/maxPods", LKG_DANGER_STOPS },
                { "KubeletConfiguration", "/podsPerCore", LKG_DANGER_PODS },
                { "KubeletConfiguration", "/clusterDNS", LKG_DANGER_PODS },
                { "KubeletConfiguration", "/logging/verbosity", LKG_DANGER_HARMLESS },
                { "KubeletConfiguration", "/eventBurst", LKG_DANGER_HARMLESS },
                { "KubeProxyConfiguration", "/mode", LKG_DANGER_STOPS },
                { "KubeProxyConfiguration", "/clusterCIDR", LKG_DANGER_STOPS },
                { "KubeProxyConfiguration", "/iptables/masqueradeAll", LKG_DANGER_PODS },
                { "KubeProxyConfiguration", "/enableProfiling", LKG_DANGER_HARMLESS },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_schema *schema;
                const struct lkg_field *field;

                assert_int_equal(lkg_schema_get(rows[i].kind, NULL, 0, &schema), 0);
                field = lkg_schema_field(schema, rows[i].pointer);
                assert_non_null(field);
                if (field->danger != rows[i].danger)
                        fail_msg("%s is %s", rows[i].pointer, lkg_danger_name(field->danger));
                assert_null(lkg_schema_field(schema, "/noSuchField"));
        }
        assert_null(lkg_schema_field(NULL, "/maxPods"));
}

/* ---- the column guard ---- */

/* Is it `word: reason` with a word that the manual explains? */
static bool guard_is_whole(const char *guard)
{
        static const char *const words[] = { "runs-code", "files",     "authentication",
                                             "port",      "isolation", "discloses" };
        size_t size = strcspn(guard, ":");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(words); i++)
                if (strlen(words[i]) == size && strncmp(words[i], guard, size) == 0)
                        return strncmp(guard + size, ": ", 2) == 0 && strlen(guard) < 130 &&
                               !strchr("\n|", guard[size + 2]) && strlen(guard) > size + 10;
        return false;
}

TEST(test_every_field_was_judged_for_hardened_nodes)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++) {
                        const struct lkg_field *field = &lkg_kinds[k].fields[i];
                        const unsigned reach = LKG_FIELD_PATH | LKG_FIELD_PORT | LKG_FIELD_LISTEN;
                        bool nothing;

                        if (!field->guard)
                                fail_msg("%s: nobody has judged it for guard.profile hardened", field->path);
                        nothing = strcmp(field->guard, LKG_GUARD_NOTHING) == 0;
                        if (!nothing && !guard_is_whole(field->guard))
                                fail_msg("%s: guard is '%s'", field->path, field->guard);
                        if (nothing && field->flags & reach)
                                fail_msg("%s: a path or a port", field->path);
                }
}

/* The guard covers all kinds, and everything below a field. */
TEST(test_judgements_agree)
{
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++)
                        for (size_t l = 0; l < lkg_n_kinds; l++)
                                for (size_t j = 0; j < *lkg_kinds[l].n_fields; j++) {
                                        const struct lkg_field *a = &lkg_kinds[k].fields[i];
                                        const struct lkg_field *b = &lkg_kinds[l].fields[j];
                                        size_t size = strlen(a->path);

                                        if (strcmp(a->path, b->path) == 0)
                                                assert_string_equal(a->guard, b->guard);
                                        else if (strcmp(a->guard, LKG_GUARD_NOTHING) != 0 &&
                                                 strncmp(a->path, b->path, size) == 0 &&
                                                 strchr(".[", b->path[size]))
                                                assert_string_not_equal(b->guard, LKG_GUARD_NOTHING);
                                }
}

TEST(test_gates_of_the_newest_release_were_judged)
{
        static const char gates[] = "featureGates.";

        assert_int_equal(lkg_gates_judged, LKG_RELEASE_MAX);
        for (size_t i = 0; i < lkg_n_guarded_keys; i++) {
                const char *path = lkg_guarded_keys[i].path;

                assert_int_equal(strncmp(path, gates, strlen(gates)), 0);
                if (!gate_known(path + strlen(gates)) &&
                    !lkg_map_key_find("featureGates", path + strlen(gates)))
                        fail_msg("%s: no such gate", path);
                if (!guard_is_whole(lkg_guarded_keys[i].guard))
                        fail_msg("%s: guard is '%s'", path, lkg_guarded_keys[i].guard);
                if (i > 0)
                        assert_true(strcmp(lkg_guarded_keys[i - 1].path, path) < 0);
        }
}

/* Return: how many names were looked up. */
static size_t check_folding(const struct lkg_schema_node *node)
{
        size_t n = 0;

        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];
                char other[256];
                size_t size = member->name_size;

                assert_true(size > 0 && size < sizeof(other) - 1);
                for (size_t k = 0; k <= size; k++) /* swap the case of each letter */
                        other[k] = isalpha((unsigned char)member->name[k]) ? (char)(member->name[k] ^ 0x20)
                                                                           : member->name[k];
                assert_ptr_equal(lkg_node_member_folded(node, member->name, size), member);
                assert_non_null(lkg_node_member_folded(node, other, size));
                other[size] = 'x';
                for (size_t k = 0; k < node->n_members; k++)
                        if (node->members[k]->name_size == size + 1 &&
                            strncasecmp(node->members[k]->name, other, size + 1) == 0)
                                other[size] = '_';
                assert_null(lkg_node_member_folded(node, other, size + 1));
                n += 1 + check_folding(member);
        }
        assert_true(node->class != LKG_CLASS_STRUCT || !lkg_node_member_folded(node, "", 0));
        return node->item ? n + check_folding(node->item) : n;
}

/* Like encoding/json: a field is found in any case, and by no other name. */
TEST(test_every_field_is_found_in_any_case)
{
        static const char *const kinds[] = { "KubeletConfiguration", "KubeProxyConfiguration" };
        const struct lkg_schema *schema = NULL;
        const struct lkg_schema_node *root;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                assert_int_equal(lkg_schema_get(kinds[i], NULL, 0, &schema), 0);
                assert_true(check_folding(lkg_schema_root(schema)) > 40);
        }
        /* Letters of other scripts that fold to ASCII ones: U+017F, and the Kelvin sign. */
        assert_int_equal(lkg_schema_get(kinds[0], NULL, 0, &schema), 0);
        root = lkg_schema_root(schema);
        assert_non_null(lkg_node_member_folded(root, "maxPod\xc5\xbf", strlen("maxPod\xc5\xbf")));
        assert_non_null(lkg_node_member_folded(root,
                                               "\xe2\x84\xaa"
                                               "ubeReserved",
                                               3 + strlen("ubeReserved")));
}
