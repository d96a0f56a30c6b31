/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of an exec plugin: an ExecCredential of the version that the kubeconfig names (client-go,
 * pkg/apis/ clientauthentication). It is renewed at 4/5 of its lifetime and at least 10 s before it ends,
 * and after a 401. A failing plugin is run again after 10 s, then after twice as long each time, 5 minutes
 * at most; its last output is used meanwhile.
 */
#include <lkg/documents.h>
#include <lkg/text.h>

#include "credential-internal.h"

#define PAUSE_FIRST_NS (10 * LKG_NSEC_PER_SEC)
#define PAUSE_MAX_NS   (300 * LKG_NSEC_PER_SEC)
#define AHEAD_NS       (10 * LKG_NSEC_PER_SEC)
#define LOST_NS        (45 * LKG_NSEC_PER_SEC) /* the supervisor's own limit is 30 s: nothing will come any more */

static void forget_credential(struct lkg_exec_state *state)
{
        lkg_wipe_free(LKG_STEAL(state->token));
        lkg_wipe_free(LKG_STEAL(state->certificate));
        lkg_wipe_free(LKG_STEAL(state->key));
        state->have = false;
}

void lkg_exec_state_deinit(struct lkg_exec_state *state)
{
        forget_credential(state);
        free(state->why);
        *state = (struct lkg_exec_state){ 0 };
}

static void set_why(struct lkg_exec_state *state, const char *why)
{
        free(state->why);
        state->why = lkg_copy(why);
}

/* ---- one answer ---- */

/* Return a member that is one line of text, as a token must be; NULL otherwise. */
static const char *line_in(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *value = lkg_map_get(map, name);
        const char *text;
        size_t size;

        if (!value || lkg_value_type(value) != LKG_STRING)
                return NULL;
        text = lkg_value_text(value, &size);
        for (size_t i = 0; i < size; i++)
                if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
                        return NULL;
        return size > 0 ? text : NULL;
}

static const char *text_in(const struct lkg_value *map, const char *name)
{
        const char *text = lkg_map_get_string(map, name);

        return text && *text ? text : NULL;
}

/* Return: why the answer cannot be used; NULL = it can, and *@ret has its content. */
static const char *judge(const struct lkg_value *doc, const char *api_version, struct lkg_exec_state *ret)
{
        const struct lkg_value *status;
        const char *token, *certificate, *key, *ends, *version, *kind;

        if (lkg_value_type(doc) != LKG_MAP)
                return "its output is not an ExecCredential";
        version = text_in(doc, "apiVersion");
        kind = text_in(doc, "kind");
        if (!kind || strcmp(kind, "ExecCredential") != 0)
                return "its output is not of kind ExecCredential";
        if (!version || strcmp(version, api_version) != 0)
                return "its output is of another apiVersion than the kubeconfig names";
        status = lkg_map_get_map(doc, "status");
        if (!status)
                return "its output has no status";
        token = line_in(status, "token");
        certificate = text_in(status, "clientCertificateData");
        key = text_in(status, "clientKeyData");
        ends = text_in(status, "expirationTimestamp");
        if (text_in(status, "token") && !token)
                return "the token in its output has white space or control characters";
        if (!certificate != !key)
                return "its output has only one of clientCertificateData and clientKeyData";
        if (!token && !certificate)
                return "its output has neither a token nor a certificate";
        if (certificate && lkg_certificate_key(certificate, key) != LKG_KEY_FITS)
                return "certificate and key in its output do not belong together, or are no PEM";
        if (ends && lkg_parse_rfc3339(ends, &ret->expires_ns) < 0)
                return "the expirationTimestamp in its output is not RFC 3339";
        ret->token = lkg_copy(token);
        ret->certificate = lkg_copy(certificate);
        ret->key = lkg_copy(key);
        return NULL;
}

static uint64_t refresh_at(uint64_t now_ns, uint64_t expires_ns)
{
        uint64_t life_ns = expires_ns > now_ns ? expires_ns - now_ns : 0, at;

        if (expires_ns == 0)
                return UINT64_MAX;
        at = now_ns + life_ns / 5 * 4;
        if (life_ns > AHEAD_NS && at > expires_ns - AHEAD_NS)
                at = expires_ns - AHEAD_NS;
        return at;
}

static void failed(struct lkg_exec_state *state, const char *why, uint64_t now_ns)
{
        set_why(state, why);
        state->pause_ns = state->pause_ns ? 2 * state->pause_ns : PAUSE_FIRST_NS;
        if (state->pause_ns > PAUSE_MAX_NS)
                state->pause_ns = PAUSE_MAX_NS;
        state->next_ns = now_ns + state->pause_ns;
}

static void take_answer(struct lkg_exec_state *state, const char *text, size_t size, uint64_t now_ns)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        LKG_CLEANUP(lkg_exec_state_deinit) struct lkg_exec_state got = { 0 };
        const char *why = "its output is not JSON";

        if (lkg_decode_json(text, size, 0, NULL, &report, &doc) == 0) {
                why = judge(doc, state->api_version, &got);
                lkg_value_wipe(doc);
        }
        if (why) {
                failed(state, why, now_ns);
                return;
        }
        forget_credential(state);
        state->token = LKG_STEAL(got.token);
        state->certificate = LKG_STEAL(got.certificate);
        state->key = LKG_STEAL(got.key);
        state->expires_ns = got.expires_ns;
        state->have = true;
        state->stale = false;
        state->pause_ns = 0;
        state->refresh_ns = refresh_at(now_ns, got.expires_ns);
        set_why(state, NULL);
}

void lkg_exec_state_done(struct lkg_exec_state *state, const char *text, size_t size, const char *why,
                         uint64_t now_ns)
{
        if (!state->api_version)
                return; /* nobody wants it any more */
        state->asked = false;
        if (text)
                take_answer(state, text, size, now_ns);
        else
                failed(state, why && *why ? why : "it did not answer", now_ns);
}

/* ---- when ---- */

/* If the clock is set back, we must not wait until it shows the old time again. */
static void heed_clock(struct lkg_exec_state *state, uint64_t now_ns)
{
        if (state->next_ns > now_ns + PAUSE_MAX_NS)
                state->next_ns = now_ns + PAUSE_MAX_NS;
        if (state->asked_ns > now_ns)
                state->asked_ns = now_ns;
}

static void ask(struct lkg_exec_state *state, uint64_t now_ns, int (*run)(void *userdata), void *userdata)
{
        int r = run ? run(userdata) : -EOPNOTSUPP;

        if (r == -EAGAIN) {
                state->next_ns = now_ns + 1;
                return;
        }
        if (r < 0) {
                failed(state, "it cannot be asked for now", now_ns);
                return;
        }
        state->asked = true;
        state->asked_ns = now_ns;
        state->next_ns = now_ns + PAUSE_FIRST_NS;
}

uint64_t lkg_exec_state_step(struct lkg_exec_state *state, const char *api_version, uint64_t now_ns,
                             int (*run)(void *userdata), void *userdata)
{
        bool want;

        state->api_version = strcmp(api_version, LKG_EXEC_V1) == 0 ? LKG_EXEC_V1 : LKG_EXEC_V1BETA1;
        heed_clock(state, now_ns);
        if (state->asked && now_ns - state->asked_ns >= LOST_NS) {
                state->asked = false;
                failed(state, "nothing came back from it", now_ns);
        }
        want = !state->have || state->stale || now_ns >= state->refresh_ns;
        if (want && !state->asked && now_ns >= state->next_ns)
                ask(state, now_ns, run, userdata);
        return state->asked ? state->asked_ns + LOST_NS : want ? state->next_ns : state->refresh_ns;
}
