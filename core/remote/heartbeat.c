/* SPDX-License-Identifier: Apache-2.0 */
#include "heartbeat.h"
#include "credential-internal.h"
#include "wipe.h"

/* Wait a moment after the last write, because changes come in bursts. */
static uint64_t soon(const struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        uint64_t after = heartbeat->begun_ns ? heartbeat->begun_ns + LKG_HEARTBEAT_PAUSE_NS : 0;

        return after > now_ns ? after : now_ns;
}

void lkg_heartbeat_changed(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        uint64_t when = soon(heartbeat, now_ns);

        heartbeat->changed = true;
        if (!heartbeat->any || (!heartbeat->failed && when < heartbeat->due_ns))
                heartbeat->due_ns = when;
        heartbeat->any = true;
}

bool lkg_heartbeat_begin(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        if (lkg_heartbeat_due(heartbeat) > now_ns)
                return false;
        heartbeat->sending = true;
        heartbeat->changed = false;
        heartbeat->begun_ns = now_ns;
        return true;
}

void lkg_heartbeat_end(struct lkg_heartbeat *heartbeat, bool success, uint64_t retry_after_ns,
                       uint32_t random, uint64_t now_ns)
{
        heartbeat->sending = false;
        heartbeat->failed = !success;
        if (!success) {
                heartbeat->due_ns =
                        now_ns + lkg_backoff_failed(&heartbeat->backoff, retry_after_ns, random, now_ns);
                return;
        }
        lkg_backoff_succeeded(&heartbeat->backoff, now_ns);
        heartbeat->due_ns = heartbeat->changed
                                    ? soon(heartbeat, now_ns)
                                    : now_ns + lkg_jitter(LKG_HEARTBEAT_NS, LKG_HEARTBEAT_PERCENT, random);
}

void lkg_heartbeat_kick(struct lkg_heartbeat *heartbeat, uint64_t now_ns)
{
        heartbeat->failed = false;
        heartbeat->backoff = (struct lkg_backoff){ 0 };
        if (heartbeat->any)
                lkg_heartbeat_changed(heartbeat, now_ns);
}

uint64_t lkg_heartbeat_due(const struct lkg_heartbeat *heartbeat)
{
        return heartbeat->any && !heartbeat->sending ? heartbeat->due_ns : UINT64_MAX;
}

/* ---- identity ---- */

struct lkg_identity *lkg_identity_new(void)
{
        struct lkg_identity *identity = calloc(1, sizeof(*identity));

        if (identity)
                identity->refs = 1;
        return identity;
}

struct lkg_identity *lkg_identity_ref(struct lkg_identity *identity)
{
        if (identity)
                identity->refs++;
        return identity;
}

struct lkg_identity *lkg_identity_unref(struct lkg_identity *identity)
{
        if (!identity || --identity->refs > 0)
                return NULL;
        free(identity->server);
        free(identity->tls_server_name);
        lkg_wipe_free(identity->proxy_url);
        free(identity->ca);
        lkg_wipe_free(identity->certificate); /* the file may hold the key as well */
        lkg_wipe_free(identity->key);
        lkg_wipe_free(identity->token);
        lkg_wipe_free(identity->username);
        lkg_wipe_free(identity->password);
        free(identity->impersonate);
        free(identity->user);
        free(identity);
        return NULL;
}

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : !a && !b;
}

bool lkg_identity_same(const struct lkg_identity *a, const struct lkg_identity *b)
{
        if (!a || !b)
                return a == b;
        return same_text(a->server, b->server) && same_text(a->tls_server_name, b->tls_server_name) &&
               same_text(a->proxy_url, b->proxy_url) && a->insecure == b->insecure &&
               a->disable_compression == b->disable_compression && same_text(a->ca, b->ca) &&
               same_text(a->certificate, b->certificate) && same_text(a->key, b->key) &&
               same_text(a->token, b->token) && same_text(a->username, b->username) &&
               same_text(a->password, b->password) && same_text(a->impersonate, b->impersonate);
}
