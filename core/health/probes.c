/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <lkg/http.h>
#include <lkg/limits.h>
#include <lkg/base.h>
#include <lkg/probes.h>

#define ANSWER_BYTES_MAX (64u << 10) /* more is no health endpoint; the status has come by then */

struct probe {
        struct lkg_probes *probes;
        struct lkg_identity *identity; /* its server is the URL; NULL = not asked */
        uint64_t interval_ns, timeout_ns, period_ns;
        unsigned threshold, n_failures;
        enum lkg_health_state health;
        char words[LKG_HEALTH_WORDS_MAX];
        sd_event_source *timer;
        struct lkg_http_transfer *transfer;
        uint64_t asked_ns; /* CLOCK_BOOTTIME of the last request */
};

struct lkg_probes {
        sd_event *event;
        struct lkg_http *http;
        uint64_t serial; /* of the last identity */
        void (*changed)(void *userdata);
        void *userdata;
        struct probe items[LKG_COMPONENTS_MAX];
};

/* ---- answers ---- */

static void say_health(struct probe *p, enum lkg_health_state health, const char *words)
{
        bool same = p->health == health && strcmp(p->words, words) == 0;

        p->health = health;
        (void)snprintf(p->words, sizeof(p->words), "%s", words);
        if (!same)
                p->probes->changed(p->probes->userdata);
}

static void failed(struct probe *p, const char *words)
{
        if (p->n_failures < p->threshold)
                p->n_failures++;
        if (p->n_failures >= p->threshold)
                say_health(p, LKG_HEALTH_BAD, words);
}

/* We have cut it: it was too long, or memory is short here. */
static bool is_cut(int error)
{
        return error == -EFBIG || error == -ENOBUFS || error == -ENOMEM;
}

/*
 * A long answer is cut, and counts by its status. One that breaks off, or is not complete in time, is none, as for a kubelet
 * (pkg/probe/http: the body is read).
 */
static void on_end(const struct lkg_http_result *result, void *userdata)
{
        bool good = result->status >= 200 && result->status < 400;
        struct probe *p = userdata;
        char words[LKG_HEALTH_WORDS_MAX];

        p->transfer = NULL;
        lkg_remote_arm(p->timer, p->asked_ns + p->period_ns);
        if (good && (result->error == 0 || is_cut(result->error))) {
                p->n_failures = 0;
                say_health(p, LKG_HEALTH_GOOD, "");
                return;
        }
        if (result->status && !good)
                (void)snprintf(words, sizeof(words), "the health endpoint answers with status %u",
                               result->status);
        else
                (void)snprintf(words, sizeof(words), "the health endpoint does not answer: %s",
                               strerror(result->error < 0 ? -result->error : EIO));
        failed(p, words);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct probe *p = userdata;
        const struct lkg_http_request request = {
                .method = "GET",
                .path = "",
                .max_bytes = ANSWER_BYTES_MAX,
                .deadline_ns = p->timeout_ns,
                .on_end = on_end,
                .userdata = p,
        };
        struct lkg_error err = { 0 };

        (void)source;
        (void)usec;
        if (p->transfer || !p->identity)
                return 0;
        p->asked_ns = lkg_boottime_ns();
        if (lkg_http_start(p->probes->http, p->identity, &request, &p->transfer, &err) < 0) {
                lkg_log_warning("cannot ask a health endpoint: %s", err.message);
                p->transfer = NULL;
                lkg_remote_arm(p->timer, p->asked_ns + p->period_ns);
        }
        return 0;
}

/* ---- what is asked ---- */

static void stop(struct probe *p)
{
        p->transfer = lkg_http_cancel(p->transfer);
        p->timer = sd_event_source_disable_unref(p->timer);
        p->identity = lkg_identity_unref(p->identity);
}

static void begin(struct probe *p, const char *url)
{
        p->identity = lkg_identity_new();
        p->identity->serial = ++p->probes->serial;
        p->identity->insecure = true; /* as a kubelet does */
        p->identity->server = lkg_copy(url);
        p->timer = lkg_remote_timer(p->probes->event, LKG_NSEC_PER_MSEC, on_timer, p);
        lkg_remote_arm(p->timer, 0);
}

void lkg_probes_ask(struct lkg_probes *probes, unsigned index, const struct lkg_probe_config *config,
                    bool often)
{
        struct probe *p = &probes->items[index];
        uint64_t before_ns = p->period_ns;

        p->probes = probes;
        p->interval_ns = config->interval_ns;
        p->timeout_ns = config->timeout_ns;
        p->threshold = config->failure_threshold;
        p->period_ns = often || p->interval_ns > LKG_PROBES_IDLE_NS ? p->interval_ns : LKG_PROBES_IDLE_NS;
        if (p->identity && strcmp(p->identity->server, config->url) == 0) {
                if (p->period_ns < before_ns && !p->transfer)
                        lkg_remote_arm(p->timer, lkg_boottime_ns());
                return;
        }
        stop(p);
        p->n_failures = 0;
        if (!*config->url) {
                p->health = LKG_HEALTH_OFF;
                *p->words = '\0';
                return;
        }
        if (p->health == LKG_HEALTH_OFF) {
                p->health = LKG_HEALTH_UNKNOWN;
                (void)strcpy(p->words, "the health endpoint has not answered yet");
        }
        begin(p, config->url);
}

enum lkg_health_state lkg_probes_health(const struct lkg_probes *probes, unsigned index,
                                        char ret_words[static LKG_HEALTH_WORDS_MAX])
{
        const struct probe *p = &probes->items[index];

        (void)snprintf(ret_words, LKG_HEALTH_WORDS_MAX, "%s", p->words);
        return p->health;
}

/* ---- lifetime ---- */

struct lkg_probes *lkg_probes_new(sd_event *event, void (*changed)(void *userdata), void *userdata)
{
        const struct lkg_http_options options = {
                .event = event,
                .user_agent = "lkgfs-health",
                .max_bytes = LKG_COMPONENTS_MAX * ANSWER_BYTES_MAX,
                .plain = true,
        };
        struct lkg_probes *probes = lkg_must(calloc(1, sizeof(*probes)));

        probes->http = lkg_http_new(&options);
        probes->event = sd_event_ref(event);
        probes->changed = changed;
        probes->userdata = userdata;
        return probes;
}

struct lkg_probes *lkg_probes_free(struct lkg_probes *probes)
{
        if (!probes)
                return NULL;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(probes->items); i++)
                stop(&probes->items[i]);
        lkg_http_free(probes->http);
        sd_event_unref(probes->event);
        free(probes);
        return NULL;
}
