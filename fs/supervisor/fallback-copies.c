/* SPDX-License-Identifier: Apache-2.0 */
#include "fallback-copies.h"

#include <lkg/publication.h>
#include <lkg/base.h>
#include <lkg/text.h>

#include "supervisor.h"

#define LIMIT_NS   (10 * LKG_NSEC_PER_SEC)
#define SOURCE_FD  LKG_HELPER_FIRST_FD
#define RUNTIME_FD (LKG_HELPER_FIRST_FD + 1)

/* In the forked process. Its exit status is an errno value. */
static int run(void *userdata)
{
        const struct lkg_supervisor *s = userdata;
        const struct lkg_settings_component *c = &s->settings->components[s->copies.current];
        const struct lkg_fallback_file file = { c->file, c->uid, c->gid, c->mode };
        const char *sha256 = s->copies.wanted[s->copies.current].sha256;
        int r = *sha256 ? lkg_fallback_write(SOURCE_FD, RUNTIME_FD, &file, sha256)
                        : lkg_fallback_withdraw(SOURCE_FD, c->file);

        return r < 0 ? -r : 0;
}

static void next(struct lkg_supervisor *s);

static void answer(struct lkg_supervisor *s, uint32_t component, int result)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_FALLBACK);
        m.text_size =
                (uint32_t)snprintf(m.text, sizeof(m.text), "%s", s->settings->components[component].name);
        m.result = result;
        (void)lkg_engine_tell(s, &m); /* the next engine will ask again */
}

static void done(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;
        uint32_t component = s->copies.current;

        /* Requested again meanwhile: this result is outdated, for example the document may be gone. */
        if (!s->copies.wanted[component].due)
                answer(s, component, status < 0 ? -ETIMEDOUT : -status);
        next(s);
}

static bool choose(struct lkg_supervisor *s)
{
        for (uint32_t i = 0; i < s->settings->n_components && i < LKG_COMPONENTS_MAX; i++)
                if (s->copies.wanted[i].due) {
                        s->copies.wanted[i].due = false;
                        s->copies.current = i;
                        return true;
                }
        return false;
}

/* The helper has a copy of our memory from its start: later requests need another helper. */
static void next(struct lkg_supervisor *s)
{
        struct lkg_helper_work work = {
                .run = run, .done = done, .userdata = s, .n_fds = 2, .limit_ns = LIMIT_NS
        };
        int r = 0;

        work.fds[0] = s->source_fd;
        work.fds[1] = s->runtime_fd;
        while (choose(s)) {
                r = lkg_helper_start(&s->copies.helper, s->event, &work);
                if (r >= 0)
                        return;
                answer(s, s->copies.current, r);
        }
        s->life->copies_done(s);
}

void lkg_fallback_request(struct lkg_supervisor *s, const struct lkg_message *message)
{
        size_t length = strcspn(message->text, " ");
        struct lkg_wanted_copy *wanted = NULL;

        for (size_t i = 0; i < s->settings->n_components && i < LKG_COMPONENTS_MAX; i++)
                if (lkg_span_is(lkg_span(message->text, length), s->settings->components[i].name))
                        wanted = &s->copies.wanted[i];
        if (!wanted)
                return; /* for a configuration that is not ours yet; it asks again after the reload */
        wanted->due = true;
        (void)snprintf(wanted->sha256, sizeof(wanted->sha256), "%s",
                       message->text + length + (message->text[length] == ' '));
        if (!lkg_helper_running(&s->copies.helper))
                next(s);
}

bool lkg_fallback_busy(const struct lkg_supervisor *s)
{
        return lkg_helper_running(&s->copies.helper);
}

void lkg_fallback_cancel(struct lkg_supervisor *s)
{
        lkg_helper_cancel(&s->copies.helper);
}
