/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.h"

#include <lkg/base.h>

#include "number.h"

static int no_pair(struct lkg_span item, char separator, char *reason)
{
        char piece[LKG_PIECE_MAX];

        return lkg_refuse(reason, "%s is no pair; want name%cvalue", lkg_piece(item, piece), separator);
}

static int one_pair(struct lkg_span item, char separator,
                    int (*each)(void *userdata, struct lkg_span key, struct lkg_span value), void *userdata,
                    char *reason)
{
        struct lkg_span key, value;

        if (!lkg_span_cut(item, separator, &key, &value))
                return no_pair(item, separator, reason);
        return each(userdata, lkg_span_trim(key), lkg_span_trim(value));
}

int lkg_flag_pairs(const char *text, size_t size, char separator,
                   int (*each)(void *userdata, struct lkg_span key, struct lkg_span value), void *userdata,
                   char *reason)
{
        struct lkg_span rest = { text, size }, item;

        while (lkg_span_next(&rest, ',', &item)) {
                int r = item.size > 0 ? one_pair(item, separator, each, userdata, reason) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

int lkg_flag_pair(const char *text, size_t size,
                  int (*each)(void *userdata, struct lkg_span key, struct lkg_span value), void *userdata,
                  char *reason)
{
        return one_pair(lkg_span(text, size), '=', each, userdata, reason);
}

/* The state between lkg_flag_bools() and its caller for each pair. */
struct bools {
        int (*each)(void *userdata, struct lkg_span key, bool value);
        void *userdata;
        char *reason;
};

static int each_bool(void *userdata, struct lkg_span key, struct lkg_span value)
{
        const struct bools *bools = userdata;
        char quoted[5 * 64 + 8]; /* the whole name: the finding cuts the list that it stands in */
        bool b;

        if (lkg_bool_parse(value.data, value.size, &b, NULL) < 0)
                return lkg_refuse(bools->reason, "the value of %s is not a boolean; want true or false",
                                  lkg_quote(key.data, key.size, quoted));
        return bools->each(bools->userdata, key, b);
}

int lkg_flag_bools(const char *text, size_t size,
                   int (*each)(void *userdata, struct lkg_span key, bool value), void *userdata,
                   char *reason)
{
        struct bools bools = { each, userdata, reason };

        return lkg_flag_pairs(text, size, '=', each_bool, &bools, reason);
}

int lkg_flag_vmodule(const char *text, size_t size,
                     int (*each)(void *userdata, struct lkg_span pattern, uint32_t verbosity),
                     void *userdata, char *reason)
{
        struct lkg_span rest = { text, size }, item, pattern, level;
        char piece[LKG_PIECE_MAX];

        while (lkg_span_next(&rest, ',', &item)) {
                uint64_t n;
                int r;

                if (item.size == 0)
                        continue;
                (void)lkg_span_cut(item, '=', &pattern, &level);
                if (pattern.size == 0 || level.size == 0 || lkg_span_count(level, '=') > 0)
                        return lkg_refuse(reason, "%s is not pattern=N", lkg_piece(item, piece));
                if (lkg_uint_parse(level.data, level.size, 10, 31, &n, NULL) < 0)
                        return lkg_refuse(reason, "%s is no verbosity; want a number up to 2147483647",
                                          lkg_piece(level, piece));
                r = each(userdata, pattern, (uint32_t)n);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- reserved memory ---- */

bool lkg_flag_memory_type(struct lkg_span type)
{
        return lkg_span_is(type, "memory") || (type.size >= 10 && memcmp(type.data, "hugepages-", 10) == 0);
}

static int no_reservation(struct lkg_span text, char *reason)
{
        char piece[LKG_PIECE_MAX];

        return lkg_refuse(reason, "%s is no reservation; want node:type=quantity, such as 0:memory=1Gi",
                          lkg_piece(text, piece));
}

/* `type=quantity` */
static int parse_limit(struct lkg_span item, struct lkg_span *ret_type, struct lkg_span *ret_source,
                       struct lkg_quantity *ret, char *reason)
{
        char piece[LKG_PIECE_MAX];

        if (!lkg_span_cut(item, '=', ret_type, ret_source) || lkg_span_count(*ret_source, '=') > 0)
                return no_reservation(item, reason);
        if (!lkg_flag_memory_type(*ret_type))
                return lkg_refuse(reason, "unknown type of memory %s; want memory or hugepages-SIZE",
                                  lkg_piece(*ret_type, piece));
        return lkg_quantity_parse(ret_source->data, ret_source->size, ret, reason);
}

int lkg_flag_reserved_memory(const char *text, size_t size,
                             int (*each)(void *userdata, int32_t node, bool first, struct lkg_span type,
                                         struct lkg_span source, const struct lkg_quantity *quantity),
                             void *userdata, char *reason)
{
        struct lkg_span rest = { text, size }, part, number, limits, item, type, source;

        if (size == 0)
                return 0;
        while (lkg_span_next(&rest, ';', &part)) {
                bool first = true;
                int64_t node;

                if (!lkg_span_cut(part, ':', &number, &limits) || lkg_span_count(limits, ':') > 0 ||
                    lkg_int_parse(number.data, number.size, 10, 64, &node, NULL) < 0)
                        return no_reservation(part, reason);
                while (lkg_span_next(&limits, ',', &item)) {
                        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
                        int r = parse_limit(item, &type, &source, &quantity, reason);

                        if (r == 0)
                                r = each(userdata, (int32_t)(uint32_t)node, first, type, source, &quantity);
                        if (r < 0)
                                return r;
                        first = false;
                }
        }
        return 0;
}
