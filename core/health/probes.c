/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <lkg/http.h>
#include <lkg/limits.h>
#include <lkg/base.h>
#include <lkg/probes.h>

#define ANSWER_BYTES_MAX (64u << 10) /* more is no health endpoint; the status has come by then */
#define TCP              "tcp://"
#define GRPC             "grpc://"
#define GRPC_METHOD      "/grpc.health.v1.Health/Check"
#define GRPC_SERVICE     1 /* of HealthCheckRequest */
#define GRPC_STATUS      1 /* of HealthCheckResponse */
#define GRPC_SERVING     1

struct lkg_probe {
        struct lkg_probes *probes; /* borrowed, outlives it */
        char *url;                 /* as it was configured; NULL = not asked */
        struct lkg_strings headers;
        struct lkg_identity *identity; /* its server is the URL as far as the port */
        uint64_t interval_ns, timeout_ns;
        unsigned threshold, n_failures;
        enum lkg_health_state health;
        uint64_t good_ns;
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
};

/* ---- answers ---- */

/* @changed: something else has. The last thing to be done with @p, which may be freed by who is told. */
static void say_health(struct lkg_probe *p, enum lkg_health_state health, const char *words, bool changed)
{
        bool same = p->health == health && strcmp(p->words, words) == 0 && !changed;

        if (health != LKG_HEALTH_GOOD)
                p->good_ns = 0;
        else if (p->good_ns == 0)
                p->good_ns = lkg_boottime_ns();
        p->health = health;
        lkg_text_copy(p->words, sizeof(p->words), words);
        if (!same)
                p->probes->changed(p->probes->userdata);
}

/* We have cut it: it was too long, or memory is short here. */
static bool is_cut(int error)
{
        return error == -EFBIG || error == -ENOBUFS || error == -ENOMEM;
}

static bool is(const struct lkg_probe *p, const char *scheme)
{
        return strncmp(p->url, scheme, strlen(scheme)) == 0;
}

static int judge_grpc(const struct lkg_http_result *result, struct lkg_error *why)
{
        struct lkg_wire_field field;
        struct lkg_span message;
        uint64_t status = 0;
        int r = lkg_grpc_answer(result, &message, why);

        if (r < 0)
                return lkg_error_wrap(why, r, "the health endpoint");
        while ((r = lkg_wire_next(&message, &field)) > 0)
                if (field.number == GRPC_STATUS && !field.is_bytes)
                        status = field.value;
        return r == 0 && status == GRPC_SERVING
                       ? 0
                       : lkg_refuse_because(why, -EPROTO, NULL, "the health endpoint is not serving");
}

/*
 * A long answer is cut, and counts by its status. One that breaks off, or is not complete in time, is none, as for a kubelet
 * (pkg/probe/http: the body is read). Of tcp:// there is no status: the connection is all.
 */
static int judge(const struct lkg_probe *p, const struct lkg_http_result *result, struct lkg_error *why)
{
        bool right = result->status >= 200 && result->status < 400, grpc = is(p, GRPC);
        bool cut = right && !grpc && is_cut(result->error);

        if (result->status && !right)
                return lkg_refuse_because(why, -EPROTO, NULL, "the health endpoint answers with status %u",
                                          result->status);
        if ((result->error < 0 && !cut) || !(right || is(p, TCP)))
                return lkg_refuse_because(why, -EPROTO, NULL, "the health endpoint does not answer: %s",
                                          strerror(result->error < 0 ? -result->error : EIO));
        return grpc ? judge_grpc(result, why) : 0;
}

static void on_end(const struct lkg_http_result *result, void *userdata)
{
        struct lkg_probe *p = userdata;
        struct lkg_error why = { 0 };
        bool failed = p->n_failures > 0, bad;
        int r = judge(p, result, &why);

        p->transfer = NULL;
        lkg_remote_arm(p->timer, p->asked_ns + p->interval_ns);
        p->n_failures = r == 0 ? 0 : p->n_failures + (p->n_failures < p->threshold);
        bad = r < 0 && p->n_failures >= p->threshold;
        if (r == 0 || bad)
                say_health(p, bad ? LKG_HEALTH_BAD : LKG_HEALTH_GOOD, why.message, failed != (r < 0));
        else if (!failed)
                p->probes->changed(p->probes->userdata); /* as in say_health() */
}

/* ---- questions ---- */

static int start(struct lkg_probe *p, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf message = LKG_BUF_INIT, frame = LKG_BUF_INIT;
        const char *path = p->url + strlen(p->identity->server), *service = path + (*path == '/');
        struct lkg_http_request request = {
                .method = "GET",
                .path = path,
                .headers = &p->headers,
                .max_bytes = ANSWER_BYTES_MAX,
                .deadline_ns = p->timeout_ns,
                .on_end = on_end,
                .userdata = p,
        };

        if (is(p, GRPC)) {
                lkg_wire_put(&message, GRPC_SERVICE, service, strlen(service));
                lkg_grpc_request(GRPC_METHOD, &message, &frame, &request);
        }
        return lkg_http_start(p->probes->http, p->identity, &request, &p->transfer, err);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_probe *p = userdata;
        struct lkg_error err = { 0 };

        (void)source;
        (void)usec;
        if (p->transfer || !p->url)
                return 0;
        p->asked_ns = lkg_boottime_ns();
        if (start(p, &err) < 0) {
                lkg_log_warning("cannot ask a health endpoint: %s", err.message);
                lkg_remote_arm(p->timer, p->asked_ns + p->interval_ns);
        }
        return 0;
}

/* ---- what is asked ---- */

static void stop(struct lkg_probe *p)
{
        p->transfer = lkg_http_cancel(p->transfer);
        p->timer = sd_event_source_disable_unref(p->timer);
        p->identity = lkg_identity_unref(p->identity);
        lkg_strings_deinit(&p->headers);
        free(LKG_STEAL(p->url));
}

static void begin(struct lkg_probe *p, const struct lkg_probe_config *config)
{
        const char *scheme_end = strstr(config->url, "://");
        const char *host = scheme_end ? scheme_end + 3 : config->url;

        p->url = lkg_copy(config->url);
        if (config->headers)
                (void)lkg_need(lkg_strings_copy(config->headers, &p->headers));
        p->identity = lkg_identity_new();
        p->identity->serial = ++p->probes->serial;
        p->identity->insecure = true; /* as a kubelet does */
        p->identity->server =
                lkg_format("%.*s", (int)(host - config->url) + (int)strcspn(host, "/?"), config->url);
        p->timer = lkg_remote_timer(p->probes->event, LKG_NSEC_PER_MSEC, on_timer, p);
        lkg_remote_arm(p->timer, 0);
}

static bool asks(const struct lkg_probe *p, const struct lkg_probe_config *config)
{
        static const struct lkg_strings none = { 0 };

        return p->url && strcmp(p->url, config->url) == 0 &&
               lkg_strings_equal(&p->headers, config->headers ? config->headers : &none);
}

void lkg_probe_ask(struct lkg_probe *p, const struct lkg_probe_config *config)
{
        bool sooner = config->interval_ns < p->interval_ns;

        p->interval_ns = config->interval_ns;
        p->timeout_ns = config->timeout_ns;
        p->threshold = config->failure_threshold;
        if (asks(p, config)) {
                if (sooner && !p->transfer)
                        lkg_remote_arm(p->timer, lkg_boottime_ns());
                return;
        }
        stop(p);
        p->n_failures = 0;
        p->good_ns = 0;
        if (!*config->url) {
                p->health = LKG_HEALTH_OFF;
                *p->words = '\0';
                return;
        }
        if (p->health == LKG_HEALTH_OFF) {
                p->health = LKG_HEALTH_UNKNOWN;
                (void)strcpy(p->words, "the health endpoint has not answered yet");
        }
        begin(p, config);
}

enum lkg_health_state lkg_probe_health(const struct lkg_probe *p,
                                       char ret_words[static LKG_HEALTH_WORDS_MAX])
{
        (void)strcpy(ret_words, p->words);
        return p->health;
}

uint64_t lkg_probe_good_ns(const struct lkg_probe *p)
{
        return p->n_failures ? 0 : p->good_ns;
}

/* ---- lifetime ---- */

struct lkg_probe *lkg_probe_new(struct lkg_probes *probes)
{
        struct lkg_probe *p = lkg_must(calloc(1, sizeof(*p)));

        p->probes = probes;
        return p;
}

struct lkg_probe *lkg_probe_free(struct lkg_probe *p)
{
        if (p)
                stop(p);
        free(p);
        return NULL;
}

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
        lkg_http_free(probes->http);
        sd_event_unref(probes->event);
        free(probes);
        return NULL;
}
