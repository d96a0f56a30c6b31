/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include "../config/internal.h"

/* ---- paths ---- */

void lkg_path_clean(char *path)
{
        char *to = path, *from = path;

        while (*from) {
                size_t size;

                while (*from == '/')
                        from++;
                size = strcspn(from, "/");
                if (size == 2 && from[0] == '.' && from[1] == '.') {
                        while (to > path && *--to != '/')
                                ;
                } else if (size > 0 && !(size == 1 && from[0] == '.')) {
                        *to++ = '/';
                        memmove(to, from, size);
                        to += size;
                }
                from += size;
        }
        if (to == path)
                *to++ = '/';
        *to = '\0';
}

char *lkg_path_resolve(const char *dir, const char *path)
{
        char *joined;

        if (asprintf(&joined, "%s/%s", dir, path) < 0)
                return NULL;
        lkg_path_clean(joined);
        return joined;
}

/* One path field. What is absolute already stays as it is written, not even cleaned. */
static int resolve_one(struct lkg_value *object, const char *path, const char *dir)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        LKG_CLEANUP(lkg_freep) char *resolved = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *made = NULL;
        const char *text;
        size_t size;

        if (!value || lkg_value_type(value) != LKG_STRING)
                return 0;
        text = lkg_value_text(value, &size);
        if (size == 0 || *text == '/' || strlen(text) != size)
                return 0;
        resolved = lkg_path_resolve(dir, text);
        if (!resolved)
                return -ENOMEM;
        made = lkg_value_new_string(resolved, strlen(resolved), lkg_value_source_mut(value),
                                    lkg_value_line(value), lkg_value_column(value));
        return made ? lkg_object_set(object, path, LKG_STEAL(made)) : -ENOMEM;
}

static int resolve_members(const struct lkg_node *node, struct lkg_value *object, const char *dir)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < node->n_members; i++) {
                const struct lkg_node *member = node->members[i];

                if (member->class == LKG_CLASS_STRUCT)
                        r = resolve_members(member, object, dir);
                else if (member->field->flags & LKG_FIELD_RESOLVED)
                        r = resolve_one(object, member->field->path, dir);
        }
        return r;
}

/* ---- kubelet ---- */

int lkg_kubelet_load(const struct lkg_schema *schema, const struct lkg_value *base, const char *dir,
                     const struct lkg_gates *gates, struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        const struct lkg_node *root = lkg_schema_root(schema);
        int r = 0;

        if (base)
                r = lkg_typed_decode(root, base, LKG_TYPED_ROUND, report, &object);
        else
                object = lkg_value_new_map(NULL, 0, 0);
        if (!object)
                return r < 0 ? r : -ENOMEM;
        r = lkg_defaults_kubelet(schema, &object, gates, report);
        if (r == 0 && base && dir)
                r = resolve_members(root, object, dir);
        if (r == 0)
                r = base ? lkg_defaults_eviction(object) : lkg_defaults_flag_base(object);
        if (r == 0)
                *ret = LKG_STEAL(object);
        return r;
}

int lkg_kubelet_reload(const struct lkg_schema *schema, const struct lkg_value *merged,
                       const struct lkg_gates *gates, struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        int r = lkg_typed_decode(lkg_schema_root(schema), merged, LKG_TYPED_FOLD, report, &object);

        if (object)
                r = lkg_defaults_kubelet(schema, &object, gates, report);
        if (r == 0)
                *ret = LKG_STEAL(object);
        return r;
}

/* ---- kube-proxy ---- */

int lkg_kubeproxy_load(const struct lkg_schema *schema, const struct lkg_value *doc,
                       struct lkg_report *report, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        int r = lkg_typed_decode(lkg_schema_root(schema), doc, 0, report, &object);

        if (object)
                r = lkg_defaults_kubeproxy(schema, &object);
        if (r == 0)
                *ret = LKG_STEAL(object);
        return r;
}

int lkg_kubeproxy_normalise(struct lkg_value *object)
{
        static const struct {
                const char *mode;
                const char *paths[3];
        } sections[] = {
                { "iptables", { "iptables.syncPeriod", "iptables.minSyncPeriod", NULL } },
                { "ipvs", { "ipvs.syncPeriod", "ipvs.minSyncPeriod", NULL } },
                { "nftables",
                  { "nftables.syncPeriod", "nftables.minSyncPeriod", "nftables.masqueradeAll" } },
        };
        const char *mode = lkg_object_string(object, "mode");
        bool nftables = strcmp(mode, "nftables") == 0, ipvs = strcmp(mode, "ipvs") == 0;
        const char *active = nftables ? "nftables" : ipvs ? "ipvs" : "iptables";
        int r = lkg_object_set(object, "portRange", NULL); /* nobody reads it any more */

        if (r == 0 && nftables)
                r = lkg_object_set(object, "iptables.masqueradeAll", NULL);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(sections); i++) {
                if (strcmp(sections[i].mode, active) == 0)
                        continue;
                for (size_t k = 0; r == 0 && k < LKG_ARRAY_SIZE(sections[i].paths); k++)
                        if (sections[i].paths[k])
                                r = lkg_object_set(object, sections[i].paths[k], NULL);
        }
        return r;
}
