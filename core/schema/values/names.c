/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <lkg/base.h>

#define NAME_MAX_SIZE 63

static bool is_alphanumeric(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
}

/* Letters, digits, '-', '_', '.', letters or digits at both ends. */
static bool name_shape(struct lkg_span s)
{
        if (s.size == 0 || !is_alphanumeric(s.data[0]) || !is_alphanumeric(s.data[s.size - 1]))
                return false;
        for (size_t i = 0; i < s.size; i++) {
                char c = s.data[i];

                if (!is_alphanumeric(c) && c != '-' && c != '_' && c != '.')
                        return false;
        }
        return true;
}

static int check_name(struct lkg_span name, const char *what, char *reason)
{
        if (name.size > NAME_MAX_SIZE)
                return lkg_refuse(reason, "%s is longer than %d bytes", what, NAME_MAX_SIZE);
        if (!name_shape(name))
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
        char quoted[5 * 64 + 8], why[LKG_REFUSAL_MAX];

        (void)lkg_quote(key.data, key.size,
                        quoted); /* the whole name: the finding cuts the list around it */
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

/* ---- taints ---- */

static int check_effect(struct lkg_span effect, char *reason)
{
        char piece[LKG_PIECE_MAX];

        if (lkg_span_is(effect, "NoSchedule") || lkg_span_is(effect, "PreferNoSchedule") ||
            lkg_span_is(effect, "NoExecute"))
                return 0;
        return lkg_refuse(reason, "unknown effect %s; want NoSchedule, PreferNoSchedule or NoExecute",
                          lkg_piece(effect, piece));
}

int lkg_taint_check(const struct lkg_taint *taint, char *reason)
{
        char why[LKG_REFUSAL_MAX];

        if (lkg_name_qualified(taint->key.data, taint->key.size, why) < 0)
                return lkg_refuse(reason, "wrong key: %.140s", why);
        if (lkg_name_label_value(taint->value.data, taint->value.size, why) < 0)
                return lkg_refuse(reason, "wrong value: %.140s", why);
        return taint->effect.size == 0 ? 0 : check_effect(taint->effect, reason);
}

/* `key=value:Effect`, `key:Effect` or `key`. */
static int parse_taint(struct lkg_span text, struct lkg_taint *ret, char *reason)
{
        struct lkg_span rest, left, empty = { "", 0 };
        struct lkg_taint taint = { text, empty, empty };
        char piece[LKG_PIECE_MAX];
        int r;

        if (lkg_span_cut(text, ':', &left, &taint.effect)) {
                if (lkg_span_count(taint.effect, ':') > 0 || lkg_span_count(left, '=') > 1)
                        return lkg_refuse(reason, "%s is not a taint; want key=value:NoSchedule",
                                          lkg_piece(text, piece));
                r = check_effect(taint.effect, reason);
                if (r < 0)
                        return r;
                (void)lkg_span_cut(left, '=', &taint.key, &rest);
                taint.value = rest;
        }
        r = lkg_taint_check(&taint, reason);
        if (r == 0)
                *ret = taint;
        return r;
}

/* Does one of the taints in @before, all of them valid, have this key and effect? */
static bool taken(struct lkg_span before, const struct lkg_taint *taint)
{
        size_t n_key = taint->key.size, n_effect = taint->effect.size;
        struct lkg_span item;

        while (lkg_span_next(&before, ',', &item)) {
                if (item.size < n_key + 1 + n_effect || memcmp(item.data, taint->key.data, n_key) != 0 ||
                    (item.data[n_key] != '=' && item.data[n_key] != ':'))
                        continue;
                if (lkg_span_equal(lkg_span(item.data + item.size - n_effect, n_effect), taint->effect) &&
                    item.data[item.size - n_effect - 1] == ':')
                        return true;
        }
        return false;
}

int lkg_taints_parse(const char *text, size_t size,
                     int (*each)(void *userdata, const struct lkg_taint *taint), void *userdata,
                     char *reason)
{
        struct lkg_span rest = { text, size }, item;
        char piece[LKG_PIECE_MAX];

        if (size == 0)
                return 0;
        while (lkg_span_next(&rest, ',', &item)) {
                bool removal = item.size > 0 && item.data[item.size - 1] == '-';
                size_t before = (size_t)(item.data - text);
                struct lkg_taint taint;
                int r = parse_taint(lkg_span(item.data, item.size - removal), &taint, reason);

                if (r == 0 && !removal && taint.effect.size == 0)
                        r = lkg_refuse(reason, "%s has no effect; want key=value:NoSchedule",
                                       lkg_piece(item, piece));
                if (r == 0 && !removal && before > 0 && taken(lkg_span(text, before - 1), &taint))
                        r = lkg_refuse(reason, "%s repeats a key and effect", lkg_piece(item, piece));
                if (r == 0 && !removal)
                        r = each(userdata, &taint);
                if (r < 0)
                        return r;
        }
        return 0;
}
