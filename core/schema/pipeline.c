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
        char *joined = lkg_must(malloc(size + 1));

        memcpy(joined, dir, n);
        joined[n] = '/';
        memcpy(joined + n + 1, path.data, path.size);
        size = clean(joined, size);
        if (ret_size)
                *ret_size = size;
        return joined;
}

/* Resolve one path field. An absolute path stays as written; it is not even cleaned. */
static void resolve_one(struct lkg_value *object, const char *path, const char *dir)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        LKG_CLEANUP(lkg_freep) char *resolved = NULL;
        struct lkg_span text = lkg_text_of(value);
        size_t size;

        if (text.size == 0 || *text.data == '/')
                return;
        resolved = lkg_path_resolve(dir, text, &size);
        lkg_object_set(object, path,
                       lkg_value_new_string(resolved, size, lkg_value_source_mut(value),
                                            lkg_value_line(value), lkg_value_column(value)));
}

static void resolve_members(const struct lkg_schema_node *node, struct lkg_value *object, const char *dir)
{
        for (size_t i = 0; i < node->n_members; i++) {
                const struct lkg_schema_node *member = node->members[i];

                if (member->class == LKG_CLASS_STRUCT)
                        resolve_members(member, object, dir);
                else if (member->field->flags & LKG_FIELD_RESOLVED)
                        resolve_one(object, member->field->path, dir);
        }
}

/* ---- kubelet ---- */

struct lkg_value *lkg_kubelet_load(const struct lkg_schema *schema, const struct lkg_value *base,
                                   const char *dir, unsigned flags, const struct lkg_gates *gates,
                                   struct lkg_report *report, struct lkg_value *unread)
{
        const struct lkg_schema_node *root = lkg_schema_root(schema);
        struct lkg_value *object =
                base ? lkg_typed_decode(root, base, LKG_TYPED_ROUND | flags, report, unread)
                     : lkg_value_new_map(NULL, 0, 0);

        lkg_defaults_kubelet(schema, &object, gates, unread, report);
        if (base && dir)
                resolve_members(root, object, dir);
        if (base)
                lkg_defaults_eviction(object);
        else
                lkg_defaults_flag_base(object);
        return object;
}

struct lkg_value *lkg_kubelet_reload(const struct lkg_schema *schema, const struct lkg_value *merged,
                                     const struct lkg_gates *gates, struct lkg_report *report,
                                     struct lkg_value *unread)
{
        struct lkg_value *object =
                lkg_typed_decode(lkg_schema_root(schema), merged, LKG_TYPED_FOLD, report, unread);

        lkg_defaults_kubelet(schema, &object, gates, unread, report);
        return object;
}

/* ---- kube-proxy ---- */

struct lkg_value *lkg_kubeproxy_load(const struct lkg_schema *schema, const struct lkg_value *doc,
                                     unsigned flags, struct lkg_report *report, struct lkg_value *unread)
{
        struct lkg_value *object = lkg_typed_decode(lkg_schema_root(schema), doc, flags, report, unread);

        lkg_defaults_kubeproxy(schema, &object);
        return object;
}

void lkg_kubeproxy_normalise(struct lkg_value *object)
{
        static const char *const modes[] = { "iptables", "ipvs", "nftables" }, *const names[] = {
                "syncPeriod", "minSyncPeriod"
        };
        struct lkg_span mode = lkg_object_text(object, "mode");
        bool nftables = lkg_span_is(mode, "nftables"), ipvs = lkg_span_is(mode, "ipvs");
        size_t active = nftables ? 2 : ipvs ? 1 : 0;
        char path[64];

        lkg_object_set(object, "portRange", NULL); /* no longer used */
        lkg_object_set(object, nftables ? "iptables.masqueradeAll" : "nftables.masqueradeAll", NULL);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(modes); i++)
                for (size_t k = 0; i != active && k < LKG_ARRAY_SIZE(names); k++) {
                        (void)snprintf(path, sizeof(path), "%s.%s", modes[i], names[k]);
                        lkg_object_set(object, path, NULL);
                }
}
