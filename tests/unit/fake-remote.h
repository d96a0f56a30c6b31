/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces core/remote at link time: a credential, a client, informers and a reporter that a test controls.
 * Include it in one source file of a program; the library's own objects are then not linked.
 */
#pragma once

#include <lkg/documents.h>
#include <lkg/client.h>

#define FAKE_OBJECTS 4
#define FAKE_EVENTS  32

struct lkg_credential {
        struct lkg_credential_options options;
};
struct lkg_client {
        struct lkg_client_options options;
};
struct lkg_informer {
        struct lkg_informer_options options;
        char ns[64], name[64];
        enum lkg_informer_mode mode;
        enum lkg_api_status status;
        char words[256];
        uint64_t success_ns, failing_ns;
        unsigned n_fetched, n_anew, serial;
};
struct lkg_reporter {
        struct lkg_reporter_options options;
};

static struct fake_remote {
        enum lkg_credential_kind kind;
        struct lkg_identity identity;
        bool has_identity, is_node;
        bool refreshed; /* result of the next refresh */
        unsigned n_rejected, n_exec_done;
        char exec_text[256], exec_why[256];
        struct lkg_informer *informers[FAKE_OBJECTS];
        unsigned n_informers; /* ever */
        struct lkg_client *client;
        struct lkg_client_counters counters;
        unsigned n_conditions, n_kicked;
        char condition[1024]; /* status reason: message */
        char node_uid[256];
        char events[FAKE_EVENTS][512]; /* type reason message */
        size_t n_events;
        const char *reporter_words;
} fake = { .reporter_words = "" };

static inline void fake_reset(void)
{
        memset(&fake, 0, sizeof(fake));
        fake.reporter_words = "";
        fake.identity.server = (char *)"https://api.example:6443";
        fake.identity.user = (char *)"system:node:n1";
        fake.is_node = true;
}

static inline void fake_credential(enum lkg_credential_kind kind)
{
        fake.kind = kind;
        fake.has_identity = kind != LKG_CREDENTIAL_NONE;
        fake.identity.serial++;
        fake.refreshed = true;
}

/* ---- credential ---- */

const char *lkg_credential_kind_name(enum lkg_credential_kind kind)
{
        static const char *const names[] = { "none", "kubeconfig", "node", "in-cluster" };

        return names[kind];
}

struct lkg_credential *lkg_credential_new(const struct lkg_credential_options *options)
{
        struct lkg_credential *credential = lkg_must(calloc(1, sizeof(*credential)));

        credential->options = *options;
        return credential;
}

struct lkg_credential *lkg_credential_free(struct lkg_credential *credential)
{
        free(credential);
        return NULL;
}

bool lkg_credential_refresh(struct lkg_credential *credential, uint64_t now_ns)
{
        bool r = fake.refreshed;

        (void)credential;
        (void)now_ns;
        fake.refreshed = false;
        return r;
}

uint64_t lkg_credential_due_ns(const struct lkg_credential *credential)
{
        (void)credential;
        return UINT64_MAX;
}

void lkg_credential_rejected(struct lkg_credential *credential)
{
        (void)credential;
        fake.n_rejected++;
}

void lkg_credential_exec_done(struct lkg_credential *credential, const char *text, size_t size,
                              const char *why, uint64_t now_ns)
{
        (void)credential;
        (void)now_ns;
        fake.n_exec_done++;
        (void)snprintf(fake.exec_text, sizeof(fake.exec_text), "%.*s", text ? (int)size : 0,
                       text ? text : "");
        (void)snprintf(fake.exec_why, sizeof(fake.exec_why), "%s", why ? why : "");
}

struct lkg_identity *lkg_credential_identity(const struct lkg_credential *credential)
{
        (void)credential;
        return fake.has_identity ? &fake.identity : NULL;
}

enum lkg_credential_kind lkg_credential_kind(const struct lkg_credential *credential)
{
        (void)credential;
        return fake.kind;
}

const char *lkg_credential_file(const struct lkg_credential *credential)
{
        (void)credential;
        return fake.kind == LKG_CREDENTIAL_NONE ? "" : "/etc/kubernetes/kubelet.conf";
}

const struct lkg_report *lkg_credential_findings(const struct lkg_credential *credential)
{
        static const struct lkg_report none = LKG_REPORT_INIT;

        (void)credential;
        return &none;
}

bool lkg_credential_is_node(const struct lkg_credential *credential, const char *name)
{
        (void)credential;
        (void)name;
        return fake.is_node;
}

/* ---- client ---- */

const char *lkg_api_status_name(enum lkg_api_status status)
{
        static const char *const names[] = { "ok",        "unreachable", "unauthorized", "forbidden",
                                             "not_found", "conflict",    "gone",         "too_large",
                                             "busy",      "invalid" };

        return names[status];
}

struct lkg_client *lkg_client_new(const struct lkg_client_options *options)
{
        fake.client = lkg_must(calloc(1, sizeof(*fake.client)));
        fake.client->options = *options;
        return fake.client;
}

struct lkg_client *lkg_client_free(struct lkg_client *client)
{
        if (client)
                fake.client = NULL;
        free(client);
        return NULL;
}

void lkg_client_counters(const struct lkg_client *client, struct lkg_client_counters *ret)
{
        (void)client;
        *ret = fake.counters;
}

/* No rollout has slots here: nothing of this is called. */
struct lkg_call *lkg_client_send(struct lkg_client *client, const struct lkg_request *request)
{
        (void)client, (void)request;
        fail_msg("a request");
        return NULL;
}

const char *lkg_list_token(const struct lkg_value *list)
{
        (void)list;
        return NULL;
}

struct lkg_call *lkg_call_cancel(struct lkg_call *call)
{
        return call;
}

struct lkg_call *lkg_call_abandon(struct lkg_call *call)
{
        return call;
}

/* ---- informer ---- */

const char *lkg_informer_mode_name(enum lkg_informer_mode mode)
{
        static const char *const names[] = { "starting", "watch", "poll", "down" };

        return names[mode];
}

struct lkg_informer *lkg_informer_new(const struct lkg_informer_options *options)
{
        struct lkg_informer *informer = lkg_must(calloc(1, sizeof(*informer)));
        size_t i = 0;

        informer->options = *options;
        informer->serial = ++fake.n_informers;
        (void)snprintf(informer->ns, sizeof(informer->ns), "%s",
                       options->resource.ns ? options->resource.ns : "");
        (void)snprintf(informer->name, sizeof(informer->name), "%s", options->resource.name);
        while (fake.informers[i])
                assert_true(++i < FAKE_OBJECTS);
        fake.informers[i] = informer;
        return informer;
}

struct lkg_informer *lkg_informer_free(struct lkg_informer *informer)
{
        for (size_t i = 0; i < FAKE_OBJECTS; i++)
                if (fake.informers[i] == informer)
                        fake.informers[i] = NULL;
        free(informer);
        return NULL;
}

void lkg_informer_fetch(struct lkg_informer *informer, bool anew)
{
        informer->n_fetched++;
        informer->n_anew += anew;
}

struct lkg_informer_look lkg_informer_look(const struct lkg_informer *i)
{
        return (struct lkg_informer_look){
                .mode = i->mode,
                .status = i->status,
                .words = i->words,
                .refusal =
                        i->mode == LKG_INFORMER_POLL ? "watch configmaps kube-system/cfg is forbidden" : "",
                .success_ns = i->success_ns,
                .failing_since_ns = i->failing_ns,
        };
}

/* ---- reporter ---- */

struct lkg_reporter *lkg_reporter_new(const struct lkg_reporter_options *options)
{
        struct lkg_reporter *reporter = lkg_must(calloc(1, sizeof(*reporter)));

        reporter->options = *options;
        return reporter;
}

struct lkg_reporter *lkg_reporter_free(struct lkg_reporter *reporter)
{
        free(reporter);
        return NULL;
}

void lkg_reporter_set_node(struct lkg_reporter *reporter, const char *uid)
{
        (void)reporter;
        (void)snprintf(fake.node_uid, sizeof(fake.node_uid), "%s", uid);
}

void lkg_reporter_set_condition(struct lkg_reporter *reporter, const struct lkg_node_condition *condition)
{
        char text[1024];

        (void)reporter;
        (void)snprintf(text, sizeof(text), "%s %s: %s", condition->status, condition->reason,
                       condition->message);
        fake.n_conditions += strcmp(text, fake.condition) != 0;
        memcpy(fake.condition, text, sizeof(text));
}

void lkg_reporter_event(struct lkg_reporter *reporter, bool warning, const char *reason, const char *message)
{
        (void)reporter;
        if (fake.n_events < FAKE_EVENTS)
                (void)snprintf(fake.events[fake.n_events++], sizeof(fake.events[0]), "%s %s %s",
                               warning ? "Warning" : "Normal", reason, message);
}

void lkg_reporter_kick(struct lkg_reporter *reporter)
{
        (void)reporter;
        fake.n_kicked++;
}

const char *lkg_reporter_words(const struct lkg_reporter *reporter)
{
        (void)reporter;
        return fake.reporter_words;
}

/* ---- control by a test ---- */

static inline struct lkg_informer *fake_find(const char *plural)
{
        for (size_t i = 0; i < FAKE_OBJECTS; i++)
                if (fake.informers[i] && strcmp(fake.informers[i]->options.resource.plural, plural) == 0)
                        return fake.informers[i];
        return NULL;
}

/* The server reports a state. @json: NULL = the object does not exist. */
static inline void fake_tell(const char *plural, const char *json)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *object = NULL;
        struct lkg_informer *i = fake_find(plural);
        bool failed;

        assert_non_null(i);
        failed = i->failing_ns != 0 || i->mode != LKG_INFORMER_WATCH;
        i->mode = LKG_INFORMER_WATCH;
        i->status = json ? LKG_API_OK : LKG_API_NOT_FOUND;
        i->failing_ns = 0;
        i->success_ns = lkg_realtime_ns();
        *i->words = '\0';
        if (json && lkg_decode_json(json, strlen(json), 0, NULL, &report, &object) < 0)
                fail_msg("no JSON: %s", json);
        i->options.ops->state(object, i->options.userdata);
        if (failed)
                i->options.ops->changed(i->options.userdata);
}

/* The informer fails, and has failed for @seconds. */
static inline void fake_fail(const char *plural, enum lkg_api_status status, const char *words,
                             unsigned seconds)
{
        struct lkg_informer *i = fake_find(plural);

        assert_non_null(i);
        i->mode = LKG_INFORMER_DOWN;
        i->status = status;
        i->failing_ns = lkg_boottime_ns() - seconds * LKG_NSEC_PER_SEC;
        (void)snprintf(i->words, sizeof(i->words), "%s", words);
        i->options.ops->changed(i->options.userdata);
}

static inline bool fake_has_event(const char *text)
{
        for (size_t i = 0; i < fake.n_events; i++)
                if (strstr(fake.events[i], text))
                        return true;
        return false;
}
