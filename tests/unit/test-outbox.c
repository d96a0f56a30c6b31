/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to an event: a new object, a higher count, or nothing: rows/outbox.rows. */
#include <inttypes.h>

#include "rows.h"
#include "core/remote/outbox.h"

#define S   LKG_NSEC_PER_SEC
#define NOW (1000 * S)
#define W   (7000000 * S)

static struct lkg_outbox box;
static char node[LKG_EVENT_NAME_MAX + 1];

STEP(steps, 0)
{
        memset(&box, 0, sizeof(box));
        (void)strcpy(node, "n1");
}

STEP(node, 1)
{
        (void)snprintf(node, sizeof(node), "%s", q->parts[0]);
}

static void add(const char *message, uint64_t after_s)
{
        lkg_outbox_add(&box, false, "ConfigPromoted", message, NOW + after_s * S, W + after_s * S);
}

STEP(add, 2)
{
        add(q->parts[1], strtoull(q->parts[0], NULL, 10));
}

/* REASON MESSAGE */
STEP(note, 2)
{
        lkg_outbox_add(&box, false, q->parts[0], q->parts[1], NOW, W);
}

STEP(warn, 2)
{
        lkg_outbox_add(&box, true, q->parts[0], q->parts[1], NOW, W);
}

static void say_text(struct lkg_buf *ret, const char *text, size_t is_long)
{
        if (strlen(text) >= is_long)
                lkg_buf_printf(ret, "%zu bytes %s", strlen(text), text + strlen(text) - 20);
        else
                lkg_buf_puts(ret, text);
}

static void say_event(struct lkg_buf *ret, const struct lkg_node_event *event)
{
        lkg_buf_puts(ret, event->told ? "PATCH " : "POST ");
        say_text(ret, event->name, 100);
        lkg_buf_printf(ret, " %" PRIu64 " (%" PRIu64 " to %" PRIu64 " s) ", event->count,
                       (event->first_wall_ns - W) / S, (event->last_wall_ns - W) / S);
        say_text(ret, event->reason, 100);
        lkg_buf_puts(ret, ": ");
        say_text(ret, event->message, 100);
}

/* The next event is in flight; its random number. */
STEP(take, 1)
{
        const struct lkg_node_event *event = lkg_outbox_next(&box, node, strtoull(q->parts[0], NULL, 16));

        if (event)
                say_event(ret, event);
        else
                lkg_buf_puts(ret, "nothing");
}

STEP(in_flight, 0)
{
        say_event(ret, box.sending);
}

static void end(const char *word)
{
        static const char *const results[] = { [LKG_OUTBOX_SENT] = "sent",
                                               [LKG_OUTBOX_FORGOTTEN] = "forgotten",
                                               [LKG_OUTBOX_REFUSED] = "refused",
                                               [LKG_OUTBOX_FAILED] = "failed" };

#define result_name(i) results[i]
        lkg_outbox_end(&box, rows_named(result_name, LKG_ARRAY_SIZE(results), word));
}

STEP(end, 1)
{
        end(q->parts[0]);
}

/* It is in flight, and that ends so. */
STEP(next, 2)
{
        step_take(q, ret);
        if (box.sending)
                end(q->parts[1]);
}

static bool sends(uint64_t random)
{
        if (!lkg_outbox_next(&box, node, random))
                return false;
        lkg_outbox_end(&box, LKG_OUTBOX_SENT);
        return true;
}

/* How often, when, what (`m`: every time something else); how many are sent. */
STEP(storm, 3)
{
        unsigned long n = strtoul(q->parts[0], NULL, 10), n_sent = 0;
        char text[16];

        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(text, sizeof(text), "m%u", i);
                add(strcmp(q->parts[2], "m") == 0 ? text : q->parts[2], strtoull(q->parts[1], NULL, 10));
                n_sent += sends(i + 1);
        }
        lkg_buf_printf(ret, "%lu sent", n_sent);
}

/* Every five minutes another one, from and to. */
STEP(series, 2)
{
        char text[16];

        for (unsigned long i = strtoul(q->parts[0], NULL, 10); i <= strtoul(q->parts[1], NULL, 10); i++) {
                (void)snprintf(text, sizeof(text), "m%lu", i);
                add(text, i * 300);
                assert_true(sends(i));
        }
}

STEP(waiting, 0)
{
        lkg_buf_printf(ret, "%zu", lkg_outbox_waiting(&box));
}

STEP(renew, 0)
{
        lkg_outbox_renew(&box);
}

ROWS(outbox, rows_steps)
