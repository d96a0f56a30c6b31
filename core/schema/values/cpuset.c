/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

static int cpu(struct lkg_span text, int64_t *ret, char *reason)
{
        if (lkg_int_parse(text.data, text.size, 10, 64, ret, NULL) == 0)
                return 0;
        if (text.size == 0)
                return lkg_refuse(reason,
                                  "a number is missing beside a comma or hyphen; want a list such as 0-3,8");
        return lkg_refuse(reason, "%s is not a CPU number; want a list such as 0-3,8", LKG_PIECE(text));
}

/*
 * Parse one number or one range. The first hyphen separates, so a number cannot begin with one, but the end
 * of a range can.
 */
static int range(struct lkg_span text, int64_t *ret_low, int64_t *ret_high, char *reason)
{
        struct lkg_span low, high;
        int r;

        if (!lkg_span_cut(text, '-', &low, &high))
                high = low;
        r = cpu(low, ret_low, reason);
        if (r == 0)
                r = cpu(high, ret_high, reason);
        if (r < 0)
                return r;
        if (*ret_low > *ret_high)
                return lkg_refuse(reason, "range %s ends before it begins", LKG_PIECE(text));
        return 0;
}

int lkg_cpuset_parse(const char *text, size_t size, int64_t *ret_highest, char *reason)
{
        struct lkg_span rest = { text, size }, item;
        int64_t highest = -1, left = LKG_CPUSET_MAX;

        if (size == 0)
                rest.data = NULL;
        while (lkg_span_next(&rest, ',', &item)) {
                int64_t low = 0, high = 0;
                int r = range(item, &low, &high, reason);

                if (r < 0)
                        return r;
                if (high - low >= left)
                        return lkg_refuse(reason, "more CPUs than the component can hold in memory");
                left -= high - low + 1;
                highest = high > highest ? high : highest;
        }
        *ret_highest = highest;
        return 0;
}
