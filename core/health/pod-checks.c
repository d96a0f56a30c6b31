/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a static pod answer? Asks the probes that its manifest names, as the kubelet does, of pods that are on trial; and takes from what
 * the container runtime says their addresses and restarts.
 *
 * Source of the defaults: pkg/apis/core/v1/defaults.go (SetDefaults_Probe), pkg/kubelet/prober/prober.go.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <lkg/probes.h>
#include <lkg/tree.h>

#define PROBES_MAX   64u /* of a pod */
#define FAILURES_MAX 3u  /* of a startup probe, which may have many more before the pod is there */
#define LOOPBACK     "127.0.0.1"
#define KUBELET_NS   (10 * LKG_NSEC_PER_SEC) /* between two questions to the kubelet during a trial */

/* One question of a manifest; what several probes ask is asked once. */
struct question {
        char *url, *what; /* "kube-apiserver: readinessProbe" */
        struct lkg_strings headers;
        struct lkg_probe *probe;
        bool either; /* it is well if this is, or the one before or after it */
        uint64_t interval_ns, timeout_ns;
        unsigned threshold;
};

struct asked {
        char *file;
        char sha256[LKG_SHA256_HEX];
        char ip[46];
        struct question *items;
        size_t n;
        bool has_others; /* it names probes of an address that is not known */
        bool wanted;
};

struct lkg_pod_checks {
        struct lkg_probes *probes; /* borrowed */
        struct lkg_probe *kubelet;
        uint64_t kubelet_url; /* digest */
        bool kubelet_was_good;
        struct asked *pods;
        size_t n;
};

/* ---- what a manifest asks for ---- */

/* A text, or a number as it is written; @otherwise if there is none. */
static const char *text_in(const struct lkg_value *object, const char *path, const char *otherwise)
{
        const struct lkg_value *value = lkg_object_get(object, path);
        bool is_text = value && (lkg_value_type(value) == LKG_STRING || lkg_value_type(value) == LKG_NUMBER);
        const char *text = is_text ? lkg_value_text(value, NULL) : "";

        return *text ? text : otherwise;
}

static unsigned number_in(const struct lkg_value *object, const char *path, unsigned otherwise)
{
        int64_t n = lkg_object_int(object, path);

        return n > 0 && n <= 86400 ? (unsigned)n : otherwise;
}

/* A name stands for a port of the container. */
static const char *port_of(const struct lkg_value *container, const struct lkg_value *handler)
{
        const char *port = text_in(handler, "port", "");

        if (strspn(port, "0123456789") == strlen(port))
                return port;
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_object_get(container, "ports"), &m);)
                if (lkg_span_is(lkg_object_text(m.value, "name"), port))
                        return text_in(m.value, "containerPort", "");
        return "";
}

static void add_headers(struct question *q, const struct lkg_value *probe)
{
        const struct lkg_value *headers = lkg_object_get(probe, "httpGet.httpHeaders");

        for (struct lkg_member m = { 0 }; lkg_value_next(headers, &m);) {
                LKG_CLEANUP(lkg_freep)
                char *text =
                        lkg_format("%s: %s", text_in(m.value, "name", ""), text_in(m.value, "value", ""));

                lkg_need(lkg_strings_add(&q->headers, text, strlen(text)));
        }
}

/* Go's URL escapes in a path what may not be in one, and so does a kubelet. */
static char *escaped(const char *path)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        for (; *path; path++)
                if (*path <= ' ' || *path >= 0x7f || strchr("\"<>\\^`{|}", *path))
                        lkg_buf_printf(&buf, "%%%02X", (unsigned char)*path);
                else
                        lkg_buf_append(&buf, path, 1);
        return lkg_buf_steal(&buf, NULL);
}

/* Return: the URL of what @probe asks; NULL: it executes a program, or it cannot be asked. */
static char *url_of(const struct lkg_value *container, const struct lkg_value *probe, const char *ip)
{
        static const char *const kinds[][2] = { { "httpGet", "http" },
                                                { "tcpSocket", "tcp" },
                                                { "grpc", "grpc" } };
        const struct lkg_value *handler = NULL;
        const char *scheme = "", *host, *port;
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        bool six;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds) && !handler; i++) {
                handler = lkg_object_get(probe, kinds[i][0]);
                scheme = kinds[i][1];
        }
        host = text_in(handler, "host", ip); /* grpc has none */
        port = handler ? port_of(container, handler) : "";
        if (!*host || !*port)
                return NULL;
        if (strcmp(scheme, "http") == 0 && strcasecmp(text_in(handler, "scheme", ""), "HTTPS") == 0)
                scheme = "https";
        path = escaped(text_in(handler, strcmp(scheme, "grpc") == 0 ? "service" : "path", ""));
        six = strchr(host, ':') != NULL;
        return lkg_format("%s://%s%s%s:%s%s%s", scheme, six ? "[" : "", host, six ? "]" : "", port,
                          strcmp(scheme, "tcp") == 0 || *path == '/' ? "" : "/", path);
}

/* The address from which this node reaches others, which a kubelet gives to pods of the host's network; loopback if there is none. */
static void node_address(char ret[static 46])
{
        const struct sockaddr_in to = { .sin_family = AF_INET,
                                        .sin_port = htons(9),
                                        .sin_addr = { htonl(0xc0000201) } /* 192.0.2.1: nothing is sent */ };
        const struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
                                          .sin6_port = htons(9),
                                          .sin6_addr = { { { 0x20, 0x01, 0x0d, 0xb8 } } } };
        const struct sockaddr *targets[] = { (const void *)&to, (const void *)&to6 };

        (void)strcpy(ret, LOOPBACK);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(targets); i++) {
                int family = targets[i]->sa_family;
                LKG_CLEANUP(lkg_closep) int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                struct sockaddr_in6 own;
                socklen_t size = sizeof(own);

                if (fd < 0 || connect(fd, targets[i], i ? sizeof(to6) : sizeof(to)) < 0 ||
                    getsockname(fd, (void *)&own, &size) < 0)
                        continue;
                (void)inet_ntop(family,
                                i ? (void *)&own.sin6_addr : &((struct sockaddr_in *)(void *)&own)->sin_addr,
                                ret, 46);
                return;
        }
}

/* Does the probe say whom to ask? */
static bool names_host(const struct lkg_value *probe)
{
        return *text_in(probe, "httpGet.host", "") || *text_in(probe, "tcpSocket.host", "");
}

static bool is_asked(const struct asked *pod, const struct question *q)
{
        for (size_t i = 0; i < pod->n; i++)
                if (strcmp(pod->items[i].url, q->url) == 0 && pod->items[i].either == q->either &&
                    lkg_strings_equal(&pod->items[i].headers, &q->headers))
                        return true;
        return false;
}

static void question_deinit(struct question *q)
{
        lkg_probe_free(q->probe);
        free(q->url);
        free(q->what);
        lkg_strings_deinit(&q->headers);
}

static void add_probe(struct asked *pod, const struct lkg_value *container, const char *name, const char *ip)
{
        const struct lkg_value *probe = lkg_object_get(container, name);
        struct question q = { .either = strcmp(pod->ip, LOOPBACK) == 0 && !names_host(probe) };

        q.url = probe && pod->n < PROBES_MAX ? url_of(container, probe, ip) : NULL;
        if (!q.url) {
                pod->has_others = pod->has_others || (probe && !*ip && !lkg_object_has(probe, "exec"));
                return;
        }
        add_headers(&q, probe);
        q.what = lkg_format("%s: %s", text_in(container, "name", ""), name);
        q.interval_ns = number_in(probe, "periodSeconds", 10) * LKG_NSEC_PER_SEC;
        q.timeout_ns = number_in(probe, "timeoutSeconds", 1) * LKG_NSEC_PER_SEC;
        q.threshold = number_in(probe, "failureThreshold", FAILURES_MAX);
        q.threshold = q.threshold < FAILURES_MAX ? q.threshold : FAILURES_MAX;
        if (is_asked(pod, &q)) {
                question_deinit(&q);
                return;
        }
        lkg_need(LKG_GROW(pod->items, pod->n));
        pod->items[pod->n++] = q;
}

/*
 * Of init containers only those that stay have probes. In the host's network a server may listen on the node's address, or on loopback:
 * one that answers on either is not to blame.
 */
static void add_probes(struct asked *pod, const struct lkg_value *doc)
{
        bool on_host = strcmp(pod->ip, LOOPBACK) == 0;
        char node[46];

        static const char *const lists[] = { "spec.containers", "spec.initContainers" };
        static const char *const names[] = { "startupProbe", "readinessProbe", "livenessProbe" };

        node_address(node);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(lists); i++)
                for (struct lkg_member m = { 0 }; lkg_value_next(lkg_object_get(doc, lists[i]), &m);)
                        for (size_t k = 0; k < LKG_ARRAY_SIZE(names); k++) {
                                if (on_host)
                                        add_probe(pod, m.value, names[k], node);
                                add_probe(pod, m.value, names[k], pod->ip);
                        }
}

/* ---- what the container runtime says ---- */

static bool is_of_pod(const struct lkg_container *container, const struct lkg_value *doc, const char *node)
{
        char name[600];

        (void)snprintf(name, sizeof(name), "%s-%s", lkg_pod_name(doc), node);
        return strcmp(container->ns, lkg_pod_namespace(doc)) == 0 && strcmp(container->pod, name) == 0;
}

/* @since_ns: wall time of the change: a pod from before it says nothing about it. */
static void look_up(const struct lkg_containers *containers, const struct lkg_value *doc, const char *node,
                    uint64_t since_ns, char ret_ip[static 46], unsigned *ret_restarts)
{
        *ret_ip = '\0';
        *ret_restarts = 0;
        for (size_t i = 0; i < containers->n; i++) {
                const struct lkg_container *container = &containers->items[i];

                if (!is_of_pod(container, doc, node))
                        continue;
                (void)snprintf(ret_ip, 46, "%s", container->ip);
                if (container->sandbox_ns >= since_ns && container->restarts > *ret_restarts)
                        *ret_restarts = (unsigned)lkg_earlier(container->restarts, UINT_MAX);
        }
}

/* ---- asking ---- */

static void forget(struct asked *pod)
{
        for (size_t i = 0; i < pod->n; i++)
                question_deinit(&pod->items[i]);
        free(pod->items);
        free(pod->file);
}

static struct asked *find(struct lkg_pod_checks *checks, const struct lkg_pod *pod, const char *ip)
{
        struct asked *asked;

        for (size_t i = 0; i < checks->n; i++)
                if (strcmp(checks->pods[i].file, pod->file) == 0 &&
                    strcmp(checks->pods[i].sha256, pod->sha256) == 0 && strcmp(checks->pods[i].ip, ip) == 0)
                        return &checks->pods[i];
        lkg_need(LKG_GROW(checks->pods, checks->n));
        asked = &checks->pods[checks->n++];
        *asked = (struct asked){ .file = lkg_copy(pod->file) };
        memcpy(asked->sha256, pod->sha256, sizeof(asked->sha256));
        (void)snprintf(asked->ip, sizeof(asked->ip), "%s", ip);
        add_probes(asked, pod->doc);
        return asked;
}

/* Often enough for what is to be decided, and not more often than the manifest says. */
static void ask(struct lkg_pod_checks *checks, struct asked *pod, uint64_t stable_ns)
{
        for (size_t i = 0; i < pod->n; i++) {
                struct question *q = &pod->items[i];
                const struct lkg_probe_config config = {
                        .url = q->url,
                        .headers = &q->headers,
                        .interval_ns =
                                lkg_later(LKG_NSEC_PER_SEC, lkg_earlier(q->interval_ns, stable_ns / 4)),
                        .timeout_ns = q->timeout_ns,
                        .failure_threshold = q->threshold,
                };

                if (!q->probe)
                        q->probe = lkg_probe_new(checks->probes);
                lkg_probe_ask(q->probe, &config);
        }
        pod->wanted = true;
}

/* The latest of the times since when each probe has been good, at one of its addresses; what is wrong with the first that is not. */
static void hear(const struct asked *asked, struct lkg_pod *pod)
{
        char words[LKG_HEALTH_WORDS_MAX];

        pod->facts.answers_ns = 0;
        *pod->words = '\0';
        for (size_t i = 0, next; i < asked->n; i = next) {
                const struct question *first = &asked->items[i];
                uint64_t good_ns = 0;

                for (next = i; next < asked->n && strcmp(asked->items[next].what, first->what) == 0; next++)
                        if (!good_ns)
                                good_ns = lkg_probe_good_ns(asked->items[next].probe);
                if (!good_ns) {
                        (void)lkg_probe_health(first->probe, words);
                        (void)snprintf(pod->words, sizeof(pod->words), "%.60s: %.60s", first->what, words);
                        pod->facts.answers_ns = 0;
                        return;
                }
                pod->facts.answers_ns = lkg_later(pod->facts.answers_ns, good_ns);
        }
}

/* Nothing is asked: not yet, or never. */
static void give_up(struct asked *asked, struct lkg_pod *pod, bool silent)
{
        asked->wanted = pod->facts.can_ask = asked->has_others;
        pod->facts.answers_ns = 0;
        (void)snprintf(pod->words, sizeof(pod->words), "%s",
                       !asked->has_others ? "it names no probe that can be asked"
                       : silent           ? "its address is not known, the container runtime does not answer"
                                          : "its address is not known yet");
}

static void check(struct lkg_pod_checks *checks, struct lkg_pod *pod, const struct lkg_pod_runtime *runtime,
                  const char *node, uint64_t stable_ns)
{
        uint64_t since = pod->trial.changed_ns ? lkg_realtime_of(pod->trial.changed_ns) : UINT64_MAX;
        bool on_host = lkg_object_bool(pod->doc, "spec.hostNetwork");
        struct asked *asked;
        char ip[46];

        look_up(&runtime->containers, pod->doc, node, since, ip, &pod->facts.restarts);
        if (on_host)
                (void)strcpy(ip, LOOPBACK);
        asked = find(checks, pod, ip);
        pod->facts.unknown = asked->n == 0 && runtime->silent && !runtime->answered;
        pod->facts.suspended |= !on_host && runtime->silent && runtime->answered;
        if (asked->n == 0) {
                give_up(asked, pod, runtime->silent);
                return;
        }
        pod->facts.can_ask = true;
        ask(checks, asked, stable_ns);
        hear(asked, pod);
}

/* Asked also while nothing is on trial: one that never answered says nothing. Return: is it down? */
static bool ask_kubelet(struct lkg_pod_checks *checks, const char *url)
{
        const struct lkg_probe_config config = {
                .url = url,
                .interval_ns = checks->n > 0 ? KUBELET_NS : LKG_HEALTH_IDLE_NS,
                .timeout_ns = LKG_NSEC_PER_SEC,
                .failure_threshold = FAILURES_MAX,
        };
        char words[LKG_HEALTH_WORDS_MAX];
        enum lkg_health_state health;
        uint64_t digest = lkg_hash(0, url, strlen(url));

        if (!checks->kubelet || digest != checks->kubelet_url) { /* at the other one nobody may listen yet */
                lkg_probe_free(checks->kubelet);
                checks->kubelet = lkg_probe_new(checks->probes);
                checks->kubelet_was_good = false;
        }
        checks->kubelet_url = digest;
        lkg_probe_ask(checks->kubelet, &config);
        health = lkg_probe_health(checks->kubelet, words);
        checks->kubelet_was_good = *url && (checks->kubelet_was_good || health == LKG_HEALTH_GOOD);
        return checks->kubelet_was_good && health == LKG_HEALTH_BAD;
}

void lkg_pod_checks_update(struct lkg_pod_checks *checks, struct lkg_component *c,
                           const struct lkg_pod_runtime *runtime, const char *kubelet_url, const char *node)
{
        const struct lkg_pod_rules rules = lkg_pods_rules(c);
        bool down = ask_kubelet(checks, kubelet_url);
        size_t n = 0;

        for (size_t i = 0; i < checks->n; i++)
                checks->pods[i].wanted = false;
        for (size_t i = 0; rules.duration_ns && i < c->pods->n_items; i++)
                if (lkg_pod_is_asked(&c->pods->items[i])) {
                        c->pods->items[i].facts.suspended = down;
                        check(checks, &c->pods->items[i], runtime, node, rules.stable_for_ns);
                }
        for (size_t i = 0; i < checks->n; i++) {
                if (checks->pods[i].wanted)
                        checks->pods[n++] = checks->pods[i];
                else
                        forget(&checks->pods[i]);
        }
        checks->n = n;
}

bool lkg_pod_checks_active(const struct lkg_pod_checks *checks)
{
        return checks->n > 0;
}

struct lkg_pod_checks *lkg_pod_checks_new(struct lkg_probes *probes)
{
        struct lkg_pod_checks *checks = lkg_must(calloc(1, sizeof(*checks)));

        checks->probes = probes;
        return checks;
}

struct lkg_pod_checks *lkg_pod_checks_free(struct lkg_pod_checks *checks)
{
        if (!checks)
                return NULL;
        for (size_t i = 0; i < checks->n; i++)
                forget(&checks->pods[i]);
        lkg_probe_free(checks->kubelet);
        free(checks->pods);
        free(checks);
        return NULL;
}
