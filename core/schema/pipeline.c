/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/tree.h>

#include "pipeline.h"

/* ---- paths ---- */

/*
 * Go's filepath.Clean of an absolute path, in place; a NUL byte is an ordinary byte.
 * Return: the new size.
 */
static size_t clean(char *path, size_t size)
{
        char *to = path;
        const char *from = path, *end = path + size;

        while (from < end) {
                const char *slash;
                size_t n;

                if (*from == '/') {
                        from++;
                        continue;
                }
                slash = memchr(from, '/', (size_t)(end - from));
                n = (size_t)((slash ? slash : end) - from);
                if (n == 2 && from[0] == '.' && from[1] == '.') {
                        while (to > path && *--to != '/')
                                ;
                } else if (n != 1 || *from != '.') {
                        *to++ = '/';
                        memmove(to, from, n);
                        to += n;
                }
                from += n;
        }
        if (to == path)
                *to++ = '/';
        *to = '\0';
        return (size_t)(to - path);
}

char *lkg_path_resolve(const char *dir, struct lkg_span path, size_t *ret_size)
{
        size_t n = strlen(dir), size = n + 1 + path.size;
        char *joined = malloc(size + 1);

        if (!joined)
                return NULL;
        memcpy(joined, dir, n);
        joined[n] = '/';
        memcpy(joined + n + 1, path.data, path.size);
        size = clean(joined, size);
        if (ret_size)
                *ret_size = size;
        return joined;
}

/* Resolve one path field. An absolute path stays as written; it is not even cleaned. */
static int resolve_one(struct lkg_value *object, const char *path, const char *dir)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        LKG_CLEANUP(lkg_freep) char *resolved = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *made = NULL;
        struct lkg_span text = lkg_text_of(value);
        size_t size;

        if (text.size == 0 || *text.data == '/')
                return 0;
        resolved = lkg_path_resolve(dir, text, &size);
        if (!resolved)
                return -ENOMEM;
        made = lkg_value_new_string(resolved, size, lkg_value_source_mut(value), lkg_value_line(value),
                                    lkg_value_column(value));
        return made ? lkg_object_set(object, path, LKG_STEAL(made)) : -ENOMEM;
}

static int resolve_members(const struct lkg_schema_node *node, struct lkg_value *object, const char *dir)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];

                if (member->class == LKG_CLASS_STRUCT)
                        r = resolve_members(member, object, dir);
                else if (member->field->flags & LKG_FIELD_RESOLVED)
                        r = resolve_one(object, member->field->path, dir);
        }
        return r;
}

/* ---- kubelet ---- */

int lkg_kubelet_load(const struct lkg_schema *schema, const struct lkg_value *base, const char *dir,
                     unsigned flags, const struct lkg_gates *gates, struct lkg_report *report,
                     struct lkg_value *unread, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        const struct lkg_schema_node *root = lkg_schema_root(schema);
        int r = 0;

        if (base)
                r = lkg_typed_decode(root, base, LKG_TYPED_ROUND | flags, report, unread, &object);
        else
                object = lkg_value_new_map(NULL, 0, 0);
        if (!object)
                return r < 0 ? r : -ENOMEM;
        r = lkg_defaults_kubelet(schema, &object, gates, unread, report);
        if (r == 0 && base && dir)
                r = resolve_members(root, object, dir);
        if (r == 0)
                r = base ? lkg_defaults_eviction(object) : lkg_defaults_flag_base(object);
        if (r == 0)
                *ret = LKG_STEAL(object);
        return r;
}

int lkg_kubelet_reload(const struct lkg_schema *schema, const struct lkg_value *merged,
                       const struct lkg_gates *gates, struct lkg_report *report, struct lkg_value *unread,
                       struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        int r = lkg_typed_decode(lkg_schema_root(schema), merged, LKG_TYPED_FOLD, report, unread, &object);

        if (object)
                r = lkg_defaults_kubelet(schema, &object, gates, unread, report);
        if (r == 0)
                *ret = LKG_STEAL(object);
        return r;
}

/* ---- kube-proxy ---- */

int lkg_kubeproxy_load(const struct lkg_schema *schema, const struct lkg_value *doc, unsigned flags,
                       struct lkg_report *report, struct lkg_value *unread, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        int r = lkg_typed_decode(lkg_schema_root(schema), doc, flags, report, unread, &object);

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
        struct lkg_span mode = lkg_object_text(object, "mode");
        bool nftables = lkg_span_is(mode, "nftables"), ipvs = lkg_span_is(mode, "ipvs");
        const char *active = nftables ? "nftables" : ipvs ? "ipvs" : "iptables";
        int r = lkg_object_set(object, "portRange", NULL); /* no longer used */

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
