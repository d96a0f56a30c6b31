/* SPDX-License-Identifier: Apache-2.0 */
/* Manifest rules: see lkg/publish.h. */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/base.h>
#include <lkg/publication.h>
#include <lkg/file.h>
#include <lkg/text.h>

#include <lkg/publish.h>

/* @target: NULL = none */
static void add(struct lkg_manifest_rules *rules, enum lkg_rule_type type, unsigned component,
                const char *text, const char *target)
{
        (void)lkg_need(LKG_GROW(rules->items, rules->n_items));
        rules->items[rules->n_items++] =
                (struct lkg_rule){ type, component, lkg_copy(text), lkg_copy(target) };
}

static void drop_last(struct lkg_manifest_rules *rules)
{
        const struct lkg_rule *last = &rules->items[--rules->n_items];

        free((char *)last->text);
        free((char *)last->target);
}

static void add_watches(struct lkg_manifest_rules *rules, const struct lkg_config_component *c,
                        unsigned index, const char *source_path)
{
        const struct {
                enum lkg_rule_type type;
                const char *path;
        } watches[] = {
                { LKG_RULE_FILE, c->base },
                { LKG_RULE_TREE, c->dropin_dir },
                { LKG_RULE_TREE, c->patches_dir },
                { LKG_RULE_FILE, c->instance },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(watches); i++) {
                const char *below = lkg_path_below(watches[i].path, source_path);

                if (below && *below)
                        add(rules, watches[i].type, index, below, NULL);
        }
}

static void add_match(struct lkg_manifest_rules *rules, const struct lkg_config_match *match, unsigned index)
{
        if (*match->unit)
                add(rules, LKG_RULE_UNIT, index, match->unit, NULL);
        for (size_t i = 0; i < match->exe.n_items; i++)
                add(rules, LKG_RULE_EXE, index, match->exe.items[i], NULL);
        for (size_t i = 0; i < match->cgroup.n_items; i++)
                add(rules, LKG_RULE_CGROUP, index, match->cgroup.items[i], NULL);
}

static void add_component(struct lkg_manifest_rules *rules, const struct lkg_config_component *c,
                          unsigned index, const char *source_path)
{
        add_watches(rules, c, index, source_path);
        add_match(rules, &c->match, index);
        if (strcmp(c->base, c->file) == 0) {
                char alias[PATH_MAX];

                (void)snprintf(alias, sizeof(alias), "%s.base", c->file);
                add(rules, LKG_RULE_ALIAS, UINT_MAX, alias, c->base);
        }
}

static bool exists(int source_fd, const char *name)
{
        struct stat st;

        return fstatat(source_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void add_clash(struct lkg_manifest_rules *rules, int source_fd, const char *source_path,
                      const char *name, struct lkg_report *report)
{
        const struct lkg_where where = { .file = source_path };

        assert(name);
        if (!exists(source_fd, name))
                return;
        lkg_report_add(report, LKG_WARNING, 4004, &where,
                       "%s of the source directory is covered by the virtual directory of that name; set "
                       "virtualDir to "
                       "move all of them below one name",
                       name);
        add(rules, LKG_RULE_CLASH, UINT_MAX, name, NULL);
}

/*
 * A view name or alias that covers a real file which is not merged: its content cannot be reached through
 * the view.
 */
static void note_covered(const struct lkg_config_component *c, const char *name, int source_fd,
                         const char *source_path, struct lkg_report *report)
{
        const struct lkg_where where = { .file = source_path };

        if (strcmp(name, c->base) == 0 || !exists(source_fd, name) ||
            lkg_fallback_is_ours(source_fd, name) ||
            (c->is_pods && lkg_fallback_is_ours_dir(source_fd, name)))
                return;
        lkg_report_add(report, LKG_WARNING, 4003, &where,
                       "%s of the source directory is covered by the file of "
                       "component %s and is not a layer",
                       name, c->name);
}

struct lkg_manifest_rules lkg_rules_build(const struct lkg_config *config, int source_fd,
                                          const char *source_path, struct lkg_report *report)
{
        struct lkg_manifest_rules rules = { 0 };

        add(&rules, LKG_RULE_HIDE, UINT_MAX, LKG_FALLBACK_DIR, NULL);
        add(&rules, LKG_RULE_HIDE, UINT_MAX, LKG_WAKE_NAME, NULL);
        for (unsigned i = 0; i < config->n_components; i++) {
                const struct lkg_config_component *c = &config->components[i];

                add_component(&rules, c, i, source_path);
                note_covered(c, c->file, source_fd, source_path, report);
                for (size_t k = 0; k < c->aliases.n_items; k++)
                        note_covered(c, c->aliases.items[k], source_fd, source_path, report);
        }
        if (*config->virtual_dir)
                add_clash(&rules, source_fd, source_path, config->virtual_dir, report);
        for (size_t i = 0; !*config->virtual_dir && lkg_config_virtual_dirs[i]; i++)
                add_clash(&rules, source_fd, source_path, lkg_config_virtual_dirs[i], report);
        rules.n_fixed = rules.n_items;
        return rules;
}

void lkg_rules_set_tree(struct lkg_manifest_rules *rules, unsigned component, const char *path)
{
        for (size_t i = 0; i < rules->n_fixed; i++) {
                struct lkg_rule *rule = &rules->items[i];

                if (rule->type != LKG_RULE_TREE || rule->component != component)
                        continue;
                free((char *)rule->text);
                rule->text = lkg_copy(path);
        }
}

static bool same_ways(const struct lkg_manifest_rules *rules, char *const *paths, size_t n_paths)
{
        if (rules->n_items - rules->n_fixed != n_paths)
                return false;
        for (size_t i = 0; i < n_paths; i++)
                if (strcmp(rules->items[rules->n_fixed + i].text, paths[i]) != 0)
                        return false;
        return true;
}

bool lkg_rules_set_ways(struct lkg_manifest_rules *rules, char **paths, size_t n_paths)
{
        bool same = same_ways(rules, paths, n_paths);

        while (!same && rules->n_items > rules->n_fixed)
                drop_last(rules);
        for (size_t i = 0; i < n_paths; i++) {
                if (!same)
                        add(rules, LKG_RULE_TREE, UINT_MAX, paths[i], NULL);
                free(paths[i]);
        }
        free(paths);
        return !same;
}

void lkg_rules_deinit(struct lkg_manifest_rules *rules)
{
        while (rules->n_items > 0)
                drop_last(rules);
        free(rules->items);
        *rules = (struct lkg_manifest_rules){ 0 };
}
