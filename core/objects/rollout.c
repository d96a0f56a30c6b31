/* SPDX-License-Identifier: Apache-2.0 */
/* Staged rollout: see lkg/objects.h. If anything is unclear, hold back: continuing later is easy, going back is not. */

#include <stddef.h>

#include <lkg/limits.h>
#include <lkg/objects.h>

#define BUCKETS      100000u /* thousandths of a percent */
#define DECIMALS_MAX 3u

const char *lkg_rollout_state_name(enum lkg_rollout_state state)
{
        static const char *const names[] = {
                [LKG_ROLLOUT_GO] = "go",
                [LKG_ROLLOUT_WAITING] = "waiting",
                [LKG_ROLLOUT_HALTED] = "halted",
                [LKG_ROLLOUT_UNCLEAR] = "unclear",
        };

        return names[state];
}

unsigned lkg_rollout_bucket(const char *salt, const char *uid)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_format("%s/%s", salt, uid);
        char digest[LKG_SHA256_HEX];

        (void)lkg_need(lkg_sha256_hex(text, strlen(text), digest));
        digest[16] = '\0'; /* the first 8 bytes */
        return (unsigned)(strtoull(digest, NULL, 16) % BUCKETS);
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* `0` to `100`, up to three decimals. Return: 0 or -EINVAL. */
static int parse_percent(const char *text, unsigned *ret_milli)
{
        unsigned whole = 0, fraction = 0, n = 0;

        for (; is_digit(*text) && n < 3; text++, n++)
                whole = 10 * whole + (unsigned)(*text - '0');
        if (n == 0 || (*text != '\0' && *text != '.'))
                return -EINVAL;
        if (*text == '.') {
                for (n = 0, text++; is_digit(*text) && n < DECIMALS_MAX; text++, n++)
                        fraction = 10 * fraction + (unsigned)(*text - '0');
                if (n == 0 || *text != '\0')
                        return -EINVAL;
                for (; n < DECIMALS_MAX; n++)
                        fraction *= 10;
        }
        if (1000 * whole + fraction > BUCKETS)
                return -EINVAL;
        *ret_milli = 1000 * whole + fraction;
        return 0;
}

/* In the shortest form: `10`, `0.5`. */
static void format_percent(unsigned milli, char ret[static 12])
{
        size_t n = (size_t)snprintf(ret, 12, "%u.%03u", milli / 1000 % 1000, milli % 1000);

        while (n > 0 && ret[n - 1] == '0')
                ret[--n] = '\0';
        if (n > 0 && ret[n - 1] == '.')
                ret[n - 1] = '\0';
}

static void unclear(struct lkg_rollout *ret, const char *annotation, const char *value, const char *want)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];

        ret->state = LKG_ROLLOUT_UNCLEAR;
        (void)snprintf(ret->words, sizeof(ret->words), "rollout unclear: annotation %s is %.100s; want %s",
                       annotation, lkg_quote(value, strlen(value), quoted), want);
}

/* Return: is @value valid? */
static bool read_halt(const char *value, struct lkg_rollout *ret)
{
        if (!value || strcmp(value, "false") == 0)
                return true;
        if (strcmp(value, "true") == 0) {
                ret->halt = true;
                ret->state = LKG_ROLLOUT_HALTED;
                (void)snprintf(ret->words, sizeof(ret->words), "rollout halted");
                return true;
        }
        unclear(ret, LKG_ANNOTATION_HALT, value, "\"true\" or \"false\"");
        return false;
}

/* A whole number from 1 to @max, without zeros in front. Return: 0; -EINVAL; the number stays without an annotation. */
static int read_limit(const struct lkg_configmap *configmap, const char *annotation, unsigned max,
                      unsigned *ret_number, const char **ret_wrong)
{
        const char *value = lkg_configmap_annotation(configmap, annotation);
        unsigned number = 0;

        if (!value)
                return 0;
        for (const char *p = value; *p && is_digit(*p) && number <= max; p++)
                number = 10 * number + (unsigned)(*p - '0');
        if (!*value || *value == '0' || value[strspn(value, "0123456789")] || number > max) {
                *ret_wrong = value;
                return -EINVAL;
        }
        *ret_number = number;
        return 0;
}

static void read_limits(const struct lkg_configmap *configmap, struct lkg_rollout *ret)
{
        static const struct {
                const char *annotation, *want;
                size_t offset;
                unsigned max;
        } rows[] = {
                { LKG_ANNOTATION_IN_TRIAL, "a whole number from 1 to 1000",
                  offsetof(struct lkg_rollout_limits, max_in_trial), 1000 },
                { LKG_ANNOTATION_FAILURES, "a whole number from 1 to 1000",
                  offsetof(struct lkg_rollout_limits, max_failures), 1000 },
                { LKG_ANNOTATION_FLEET, "a whole number from 1 to 1000000",
                  offsetof(struct lkg_rollout_limits, fleet), 1000000 },
        };
        const char *wrong = NULL;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (read_limit(configmap, rows[i].annotation, rows[i].max,
                               (unsigned *)((char *)&ret->limits + rows[i].offset), &wrong) < 0)
                        unclear(ret, rows[i].annotation, wrong, rows[i].want);
        if (ret->state != LKG_ROLLOUT_UNCLEAR && ret->limits.max_failures && !ret->limits.max_in_trial)
                unclear(ret, LKG_ANNOTATION_IN_TRIAL, "",
                        "a whole number from 1 to 1000, because there is " LKG_ANNOTATION_FAILURES);
        if (!ret->limits.max_failures)
                ret->limits.max_failures = 1;
}

static void compare(struct lkg_rollout *ret)
{
        char percent[12];

        if (ret->bucket_milli < ret->percent_milli)
                return;
        format_percent(ret->percent_milli, percent);
        ret->state = LKG_ROLLOUT_WAITING;
        (void)snprintf(ret->words, sizeof(ret->words),
                       "waiting for the rollout: bucket %u.%03u is not below rollout-percent %s",
                       ret->bucket_milli / 1000, ret->bucket_milli % 1000, percent);
}

void lkg_rollout_decide(const struct lkg_configmap *configmap, const char *uid, struct lkg_rollout *ret)
{
        const char *halt = lkg_configmap_annotation(configmap, LKG_ANNOTATION_HALT);
        const char *percent = lkg_configmap_annotation(configmap, LKG_ANNOTATION_PERCENT);
        const char *salt = lkg_configmap_annotation(configmap, LKG_ANNOTATION_SALT);
        bool clear;

        *ret = (struct lkg_rollout){
                .state = LKG_ROLLOUT_GO,
                .has_percent = percent != NULL,
                .percent_milli = BUCKETS,
                .bucket_milli = lkg_rollout_bucket(salt ? salt : "", uid),
        };
        read_limits(configmap, ret);
        clear = ret->state != LKG_ROLLOUT_UNCLEAR && read_halt(halt, ret);
        if (percent && parse_percent(percent, &ret->percent_milli) < 0) {
                ret->percent_milli = 0;
                if (clear && !ret->halt)
                        unclear(ret, LKG_ANNOTATION_PERCENT, percent,
                                "0 to 100, with at most three decimals");
                return;
        }
        if (clear && !ret->halt)
                compare(ret);
}

struct lkg_rollout_limits lkg_rollout_limits_of(const struct lkg_configmap *configmap)
{
        struct lkg_rollout rollout;

        lkg_rollout_decide(configmap, "", &rollout);
        return rollout.limits;
}
