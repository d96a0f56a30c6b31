/* SPDX-License-Identifier: Apache-2.0 */
#include <regex.h>

#include "values.h"

#include <lkg/base.h>

#define NAME_MAX_SIZE 63

/* A compiled pattern is kept: it is as constant as its text. */
bool lkg_text_matches(const char *pattern, struct lkg_span text)
{
        static struct {
                const char *pattern;
                regex_t regex;
        } * known;
        static size_t n_known;
        regmatch_t whole = { 0, (regoff_t)text.size };
        size_t i = 0;

        while (i < n_known && known[i].pattern != pattern)
                i++;
        if (i == n_known) {
                lkg_need(LKG_GROW(known, n_known));
                known[n_known++].pattern = pattern;
                if (regcomp(&known[i].regex, pattern, REG_EXTENDED) != 0)
                        lkg_no_memory();
        }
        return regexec(&known[i].regex, text.data, 1, &whole, REG_STARTEND) == 0;
}

static int check_name(struct lkg_span name, const char *what, char *reason)
{
        if (name.size > NAME_MAX_SIZE)
                return lkg_refuse(reason, "%s is longer than %d bytes", what, NAME_MAX_SIZE);
        if (!lkg_text_matches("^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$", name))
                return lkg_refuse(reason,
                                  "%s must be letters, digits, -, _ and points, with a letter or digit "
                                  "at both ends",
                                  what);
        return 0;
}

int lkg_name_qualified(const char *text, size_t size, char *reason)
{
        struct lkg_span all = { text, size }, prefix, name;
        char why[LKG_REFUSAL_MAX];

        if (size == 0)
                return lkg_refuse(reason, "empty; want a name, such as my.name or example.com/my.name");
        if (!lkg_span_cut(all, '/', &prefix, &name))
                return check_name(all, "the name", reason);
        if (lkg_span_count(name, '/') > 0)
                return lkg_refuse(reason, "more than one /; want a name, such as example.com/my.name");
        if (lkg_name_dns_subdomain(prefix.data, prefix.size, why) < 0)
                return lkg_refuse(reason, "the part before / is %.120s", why);
        return check_name(name, "the part behind /", reason);
}

int lkg_name_label_value(const char *text, size_t size, char *reason)
{
        return size == 0 ? 0 : check_name(lkg_span(text, size), "the value", reason);
}

/* ---- labels of the node ---- */

/* @domain itself, or below it. */
static bool is_below(struct lkg_span name, const char *domain)
{
        size_t size = strlen(domain);

        if (name.size < size || memcmp(name.data + name.size - size, domain, size) != 0)
                return false;
        return name.size == size || name.data[name.size - size - 1] == '.';
}

static bool may_set(struct lkg_span key)
{
        static const char *const known[] = {
                "beta.kubernetes.io/arch",
                "beta.kubernetes.io/instance-type",
                "beta.kubernetes.io/os",
                "failure-domain.beta.kubernetes.io/region",
                "failure-domain.beta.kubernetes.io/zone",
                "kubernetes.io/arch",
                "kubernetes.io/hostname",
                "kubernetes.io/os",
                "node.kubernetes.io/instance-type",
                "topology.kubernetes.io/region",
                "topology.kubernetes.io/zone",
        };
        struct lkg_span prefix, name;

        if (!lkg_span_cut(key, '/', &prefix, &name) ||
            !(is_below(prefix, "kubernetes.io") || is_below(prefix, "k8s.io")))
                return true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(known); i++)
                if (lkg_span_is(key, known[i]))
                        return true;
        return is_below(prefix, "kubelet.kubernetes.io") || is_below(prefix, "node.kubernetes.io");
}

int lkg_node_label_check(struct lkg_span key, struct lkg_span value, char *reason)
{
        const char *quoted = LKG_QUOTE(key); /* the whole name: the finding cuts the list around it */
        char why[LKG_REFUSAL_MAX];

        if (!may_set(key))
                return lkg_refuse(
                        reason,
                        "%.70s is a label that a kubelet may not set; below kubernetes.io it may use "
                        "node.kubernetes.io/",
                        quoted);
        if (lkg_name_qualified(key.data, key.size, why) < 0 ||
            lkg_name_label_value(value.data, value.size, why) < 0)
                return lkg_refuse(reason, "label %.70s: %.80s", quoted, why);
        return 0;
}

int lkg_path_forward(const char *text, size_t size, char *reason)
{
        struct lkg_span rest = { text, size }, part;

        while (lkg_span_next(&rest, '/', &part))
                if (lkg_span_is(part, ".."))
                        return lkg_refuse(reason, "a path must not contain ..");
        return 0;
}

int lkg_path_descending(const char *text, size_t size, char *reason)
{
        return size > 0 && *text == '/' ? lkg_refuse(reason, "want a relative path")
                                        : lkg_path_forward(text, size, reason);
}

int lkg_path_local(const char *text, size_t size, char *reason)
{
        return size >= 2 && text[0] == '.' && text[1] == '.'
                       ? lkg_refuse(reason, "a path must not begin with ..")
                       : lkg_path_descending(text, size, reason);
}

bool lkg_name_is_memory(struct lkg_span type)
{
        return lkg_span_is(type, "memory") || (type.size >= 10 && memcmp(type.data, "hugepages-", 10) == 0);
}
