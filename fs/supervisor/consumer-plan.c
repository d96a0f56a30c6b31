/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "consumer-plan.h"

/* Is what is planned only the repetition of the running one? */
static bool only_repeats(const struct lkg_plan *plan)
{
        return plan->running_generation != 0 && plan->n_retries > 0;
}

void lkg_plan_request(struct lkg_plan *plan, uint64_t generation, uint64_t delay_ns, uint64_t now_ns)
{
        uint64_t not_before_ns = now_ns + delay_ns;

        if (plan->generation == 0 || only_repeats(plan) || not_before_ns < plan->not_before_ns)
                plan->not_before_ns = not_before_ns;
        plan->generation = generation;
        plan->n_retries = 0;
}

void lkg_plan_withdraw(struct lkg_plan *plan)
{
        plan->generation = 0;
}

/* The restart limits: minInterval after the last one, and at most maxPerHour in any hour. */
uint64_t lkg_plan_due(const struct lkg_plan *plan, const struct lkg_plan_limits *limits)
{
        size_t max = limits->max_per_hour ? limits->max_per_hour : 1;
        uint64_t due_ns = plan->not_before_ns;

        if (plan->generation == 0 || plan->running_generation != 0)
                return LKG_PLAN_NEVER;
        if (max > LKG_PLAN_ASKED_MAX)
                max = LKG_PLAN_ASKED_MAX;
        if (plan->n_asked > 0 && due_ns < plan->asked_ns[plan->n_asked - 1] + limits->min_interval_ns)
                due_ns = plan->asked_ns[plan->n_asked - 1] + limits->min_interval_ns;
        if (plan->n_asked >= max && due_ns < plan->asked_ns[plan->n_asked - max] + LKG_PLAN_HOUR_NS)
                due_ns = plan->asked_ns[plan->n_asked - max] + LKG_PLAN_HOUR_NS;
        return due_ns;
}

/*
 * Restarts more than an hour ago no longer count; this one is now the last, so the minimum interval starts
 * with it.
 */
static void note_asked(struct lkg_plan *plan, uint64_t now_ns)
{
        size_t old = 0;

        while (old < plan->n_asked && (plan->n_asked - old >= LKG_PLAN_ASKED_MAX ||
                                       plan->asked_ns[old] + LKG_PLAN_HOUR_NS <= now_ns))
                old++;
        memmove(plan->asked_ns, plan->asked_ns + old, (plan->n_asked - old) * sizeof(*plan->asked_ns));
        plan->n_asked -= old;
        plan->asked_ns[plan->n_asked++] = now_ns;
}

uint64_t lkg_plan_begin(struct lkg_plan *plan, uint64_t now_ns)
{
        note_asked(plan, now_ns);
        plan->running_generation = plan->generation;
        plan->n_retries++;
        plan->not_before_ns = 0; /* the minimum interval is the pause */
        return plan->running_generation;
}

bool lkg_plan_end(struct lkg_plan *plan, bool done)
{
        if (only_repeats(plan) && (done || plan->n_retries > LKG_PLAN_RETRIES_MAX))
                plan->generation = 0;
        plan->running_generation = 0;
        return plan->generation != 0;
}

uint64_t lkg_plan_jitter_ns(const char *node, const char *component, uint32_t jitter_ms)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf name = LKG_BUF_INIT;
        char hex[LKG_SHA256_HEX];

        lkg_buf_append(&name, node, strlen(node) + 1);
        lkg_buf_puts(&name, component);
        if (lkg_buf_failed(&name) || lkg_sha256_hex(name.data, name.size, hex) < 0)
                return 0; /* no memory for the name: better too early than never */
        hex[8] = '\0';    /* 32 bits are enough */
        return (strtoull(hex, NULL, 16) * jitter_ms >> 32) * LKG_NSEC_PER_MSEC;
}

/* ---- on disk ---- */

/* 0 is not written. */
static const struct {
        const char *key;
        size_t offset;
} numbers[] = {
        { "planned_generation", offsetof(struct lkg_plan, generation) },
        { "not_before_ns", offsetof(struct lkg_plan, not_before_ns) },
        { "retries", offsetof(struct lkg_plan, n_retries) },
        { "running_generation", offsetof(struct lkg_plan, running_generation) },
};

void lkg_plan_format(const struct lkg_plan *plan, const char *boot_id, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "boot_id=%s\n", boot_id);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(numbers); i++) {
                uint64_t n = *(const uint64_t *)(const void *)((const char *)plan + numbers[i].offset);

                if (n != 0)
                        lkg_buf_printf(buf, "%s=%" PRIu64 "\n", numbers[i].key, n);
        }
        for (size_t i = 0; i < plan->n_asked; i++)
                lkg_buf_printf(buf, "asked_ns=%" PRIu64 "\n", plan->asked_ns[i]);
}

static bool parse_number(const char *text, uint64_t *ret)
{
        const char *rest = lkg_digits(text, ret);

        return rest && !*rest;
}

static void parse_line(const char *key, uint64_t n, uint64_t now_ns, struct lkg_plan *plan)
{
        uint64_t last_ns = plan->n_asked ? plan->asked_ns[plan->n_asked - 1] : 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(numbers); i++)
                if (strcmp(key, numbers[i].key) == 0)
                        *(uint64_t *)(void *)((char *)plan + numbers[i].offset) = n;
        if (strcmp(key, "asked_ns") == 0 && plan->n_asked < LKG_PLAN_ASKED_MAX && n <= now_ns &&
            n >= last_ns)
                plan->asked_ns[plan->n_asked++] = n;
}

void lkg_plan_parse(const char *text, const char *boot_id, uint64_t now_ns, uint64_t jitter_ns,
                    struct lkg_plan *ret)
{
        bool this_boot = false;

        memset(ret, 0, sizeof(*ret));
        while (*text) {
                char key[32], value[64];
                uint64_t number;

                if (sscanf(text, "%31[^=\n]=%63[^\n]", key, value) == 2) {
                        if (strcmp(key, "boot_id") == 0)
                                this_boot = *boot_id && strcmp(value, boot_id) == 0;
                        else if (this_boot && parse_number(value, &number))
                                parse_line(key, number, now_ns, ret);
                }
                text += strcspn(text, "\n");
                text += *text == '\n';
        }
        if (ret->not_before_ns > now_ns + jitter_ns)
                ret->not_before_ns = now_ns + jitter_ns;
}

void lkg_restarts_append(const char *old, const char *line, struct lkg_buf *buf)
{
        const char *from = old ? old : "";
        size_t n_lines = 0;

        for (const char *p = from; *p; p++)
                n_lines += *p == '\n';
        for (; n_lines >= LKG_RESTARTS_LINES_MAX; n_lines--)
                from = strchr(from, '\n') + 1;
        lkg_buf_puts(buf, from);
        if (buf->size > 0 && buf->data[buf->size - 1] != '\n')
                lkg_buf_putc(buf, '\n');
        lkg_buf_puts(buf, line);
        lkg_buf_putc(buf, '\n');
}
