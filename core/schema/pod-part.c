/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of Pods share: asking a part about itself and about what is around it, and common findings. */
#include "pod.h"

#include <lkg/tree.h>

const struct lkg_pod_part *lkg_pod_around(const struct lkg_pod_part *part, const char *type)
{
        for (part = part->up; part && strcmp(part->rules.node->go, type) != 0;)
                part = part->up;
        return part;
}

void lkg_pod_one_of(const struct lkg_pod_part *part, const char *fields, bool needed)
{
        LKG_CLEANUP(lkg_freep) char *names = lkg_copy(fields);
        char *rest = names, *name;
        size_t n = 0;

        while ((name = strsep(&rest, " ")))
                if (lkg_pod_get(part, name) && n++ > 0)
                        lkg_pod_breach(part, LKG_F_CONTRADICTION, name, "is one too many; keep one of %s",
                                       fields);
        if (n == 0 && needed)
                lkg_pod_breach(part, LKG_F_REQUIRED, names, "is missing, and so are others; want one of %s",
                               fields);
}

void lkg_pod_exclude(const struct lkg_pod_part *part, const char *path, const char *what)
{
        const struct lkg_value *value = lkg_pod_get(part, path);

        if (value && (lkg_value_type(value) != LKG_BOOL || lkg_value_bool(value)))
                lkg_pod_breach(part, LKG_F_CONTRADICTION, path, "cannot go with %s; remove one of them",
                               what);
}

const struct lkg_value *lkg_pod_volume(const struct lkg_pod_part *part, struct lkg_span name)
{
        return name.size > 0 ? lkg_map_find(lkg_pod_around(part, "PodSpec")->volumes, name) : NULL;
}

char *lkg_pod_lower(struct lkg_span text)
{
        char *lower = lkg_must(lkg_span_dup(text));

        for (size_t i = 0; i < text.size; i++)
                lower[i] = (char)(lower[i] >= 'A' && lower[i] <= 'Z' ? lower[i] + 'a' - 'A' : lower[i]);
        return lower;
}

void lkg_pod_once(const struct lkg_pod_part *part, struct lkg_value *seen, struct lkg_span key,
                  const char *path, const struct lkg_value *value)
{
        const struct lkg_value *earlier = lkg_map_find(seen, key);

        if (key.size == 0 || !value)
                return;
        if (earlier)
                lkg_breach(&part->rules, LKG_F_DUPLICATE, path, value,
                           "stands there twice%s; change or remove one", LKG_ASIDE(earlier));
        else
                (void)lkg_map_set(seen, key.data, key.size, lkg_value_ref((struct lkg_value *)value));
}

void lkg_pod_twice(const struct lkg_pod_part *part, const char *list, const char *member)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *seen = lkg_value_new_map(NULL, 0, 0);

        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_pod_get(part, list), &m);) {
                const struct lkg_value *value = lkg_object_get(m.value, member);

                lkg_pod_once(part, seen, lkg_text_of(value), LKG_ITEM_PATH(list, m.i, member), value);
        }
}
