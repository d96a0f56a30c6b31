/* SPDX-License-Identifier: Apache-2.0 */
/* The tables compared with what the components report about themselves, and with each other; columns: rows/tables.rows. */
#define UNIT_OWN_MAIN

#include <ctype.h>
#include <strings.h>

#include <core/schema/findings-codes.h>
#include <lkg/schema.h>
#include <core/schema/tree.h>
#include <lkg/documents.h>

#include "rows.h"

/* known-tables.txt: what was recorded of the components. */
struct known_field {
        char path[96], go[64], omitempty[16];
};

struct known_flag {
        char name[64], type[48], config[16];
};

struct known_gate {
        char name[80], releases[LKG_RELEASE_MAX - LKG_RELEASE_MIN + 1][8];
};

static struct {
        struct known_field kubelet[256], kubeproxy[128];
        struct known_flag flags[256];
        struct known_gate gates[512];
        size_t n_kubelet, n_kubeproxy, n_flags, n_gates;
} known;

static void read_gate(const char *line)
{
        struct known_gate *gate = &known.gates[known.n_gates++];
        int used = 0, more;

        assert_true(known.n_gates < LKG_ARRAY_SIZE(known.gates));
        assert_int_equal(sscanf(line, "gate %79s%n", gate->name, &used), 1);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(gate->releases); i++, used += more)
                assert_int_equal(sscanf(line + used, "%7s%n", gate->releases[i], &more), 1);
}

static int read_known(void **state)
{
        FILE *file = fopen(TEST_DIR "/known-tables.txt", "re");
        char line[256];

        (void)state;
        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
                struct known_field *field = strncmp(line, "field kubelet ", 14) == 0
                                                    ? &known.kubelet[known.n_kubelet]
                                                    : &known.kubeproxy[known.n_kubeproxy];
                struct known_flag *flag = &known.flags[known.n_flags];

                assert_true(known.n_kubelet < 255 && known.n_kubeproxy < 127 && known.n_flags < 255);
                if (sscanf(line, "field %*s %95s %63s %15s", field->path, field->go, field->omitempty) >= 2)
                        *(field == &known.kubelet[known.n_kubelet] ? &known.n_kubelet
                                                                   : &known.n_kubeproxy) += 1;
                else if (sscanf(line, "flag %63s %47s %15s", flag->name, flag->type, flag->config) >= 2)
                        known.n_flags++;
                else if (strncmp(line, "gate ", 5) == 0)
                        read_gate(line);
        }
        (void)fclose(file);
        assert_true(known.n_kubelet > 100 && known.n_kubeproxy > 50 && known.n_flags > 100 &&
                    known.n_gates > 200);
        return 0;
}

/* Go's type as the tables write it. */
static void table_type(const char *go, char ret[static 96])
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
                        (void)snprintf(ret, 96, "%s%s", prefix, names[i].type);
                        return;
                }
        (void)snprintf(ret, 96, "%s%s", prefix, strncmp(type, "v1", 2) == 0 ? "struct" : type);
}

static void check_fields(const struct lkg_kind *kind, const struct known_field *fields, size_t n_known)
{
        size_t n = 0;

        for (size_t i = 0; i < *kind->n_fields; i++) {
                const struct lkg_field *field = &kind->fields[i];
                char type[96];

                if (!lkg_field_in(field, LKG_RELEASE_MAX))
                        continue;
                assert_true(n < n_known);
                assert_string_equal(field->path, fields[n].path);
                table_type(fields[n].go, type);
                assert_string_equal(field->type, type);
                if (!(field->flags & LKG_FIELD_ALWAYS) != (*fields[n].omitempty != '\0'))
                        fail_msg("%s: omitempty", field->path);
                n++;
        }
        assert_int_equal(n, n_known);
}

TEST(test_fields_are_those_of_the_components)
{
        assert_int_equal(lkg_n_kinds, 2);
        check_fields(&lkg_kinds[0], known.kubelet, known.n_kubelet);
        check_fields(&lkg_kinds[1], known.kubeproxy, known.n_kubeproxy);
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
        for (size_t i = 0; i < known.n_flags; i++) {
                const struct known_flag *row = &known.flags[i];
                const struct lkg_flag *flag = find_flag(&lkg_kinds[0], row->name);

                if (!flag)
                        fail_msg("--%s is missing", row->name);
                assert_string_equal(flag->type, flag_type(row));
                if ((flag->field != NULL) != (*row->config != '\0'))
                        fail_msg("--%s: field", row->name);
                assert_int_equal(flag->no_value,
                                 strcmp(row->type, "bool") == 0 || strcmp(row->type, "version") == 0);
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
        for (size_t i = 0; i < known.n_gates; i++)
                for (unsigned r = 0; r < LKG_ARRAY_SIZE(known.gates[i].releases); r++) {
                        char text[8];

                        describe_gate(known.gates[i].name, LKG_RELEASE_MIN + r, text);
                        if (strcmp(text, known.gates[i].releases[r]) != 0)
                                fail_msg("%s in 1.%u: %s, want %s", known.gates[i].name, 33 + r, text,
                                         known.gates[i].releases[r]);
                }
}

/* A gate that no recorded release knows was dropped earlier, and the table says so. */
TEST(test_other_gates_were_dropped_before)
{
        for (size_t i = 0; i < lkg_n_gates; i++) {
                bool found = false;

                for (size_t j = 0; !found && j < known.n_gates; j++)
                        found = strcmp(known.gates[j].name, lkg_gates[i].name) == 0;
                if (found)
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

/* ---- rows ---- */

static const struct lkg_field *asked_field(const struct question *q)
{
        const struct lkg_schema *schema = NULL;

        assert_int_equal(lkg_schema_get(strcmp(q->args[1], "kubelet") == 0 ? "KubeletConfiguration"
                                                                           : "KubeProxyConfiguration",
                                        NULL, 0, &schema),
                         0);
        return lkg_schema_field(schema, q->text);
}

static void say_danger(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_field *field = asked_field(q);

        lkg_buf_puts(ret, field ? lkg_danger_name(field->danger) : "no field");
}

static void say_change(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_field *field = asked_field(q);

        lkg_buf_puts(ret, field ? lkg_change_class_name(lkg_change_class_of(field)) : "no field");
}

static void say_resolved(const struct question *q, struct lkg_buf *ret)
{
        (void)q;
        for (size_t k = 0; k < lkg_n_kinds; k++)
                for (size_t i = 0; i < *lkg_kinds[k].n_fields; i++)
                        if (lkg_kinds[k].fields[i].flags & LKG_FIELD_RESOLVED)
                                lkg_buf_printf(ret, "%s %s, ", lkg_kinds[k].component,
                                               lkg_kinds[k].fields[i].path);
}

static const struct operation operations[] = {
        { "danger", say_danger }, { "change", say_change }, { "resolved", say_resolved }, { 0 }
};

ROWS(tables, operations)

int main(void)
{
        return run_all(read_known, NULL);
}
