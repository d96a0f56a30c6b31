/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/text.h>

#include "startup.h"
#include "number.h"
#include "quantity.h"

static bool is_one_of(struct lkg_span text, const char *const *words)
{
        for (; *words; words++) {
                if (lkg_span_is(text, *words))
                        return true;
        }
        return false;
}

static bool ends_in_percent(struct lkg_span text)
{
        return text.size > 0 && text.data[text.size - 1] == '%';
}

/* Cut all percent signs at the end of the number. */
static struct lkg_span without_percent(struct lkg_span text)
{
        while (ends_in_percent(text))
                text.size--;
        return text;
}

/* ---- eviction ---- */

static int check_signal(struct lkg_span signal, char *reason)
{
        static const char *const signals[] = {
                "memory.available",       "nodefs.available",
                "nodefs.inodesFree",      "imagefs.available",
                "imagefs.inodesFree",     "containerfs.available",
                "containerfs.inodesFree", "allocatableMemory.available",
                "pid.available",          NULL,
        };

        if (is_one_of(signal, signals))
                return 0;
        return lkg_refuse(reason,
                          "unknown eviction signal; want memory.available, pid.available, or available or "
                          "inodesFree of nodefs, imagefs, containerfs");
}

/* The component computes with float, not double. */
static int percentage(struct lkg_span value, float *ret, char *reason)
{
        struct lkg_span number = without_percent(value);
        double n;
        int r = lkg_float_parse(number.data, number.size, 32, &n, NULL);

        if (r == -EINVAL)
                return lkg_refuse(reason, "not a percentage; want one such as 10%%");
        if (r == 0)
                *ret = (float)n / 100;
        return r;
}

/* Check for a quantity whose sign is at least @min_sign: -1, 0 or 1. */
static int check_quantity(struct lkg_span value, int min_sign, char *reason)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        int r = lkg_quantity_parse(value.data, value.size, &quantity, reason);

        if (r < 0 || lkg_quantity_sign(&quantity) >= min_sign)
                return r;
        return lkg_refuse(reason, min_sign > 0 ? "must be greater than zero" : "must not be negative");
}

bool lkg_startup_threshold_off(struct lkg_span value)
{
        return lkg_span_is(value, "0%") || lkg_span_is(value, "100%");
}

int lkg_startup_amount(struct lkg_span value, double capacity, double *ret)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        float part = 0;
        int r;

        *ret = 0;
        if (lkg_startup_threshold_off(value))
                return 0;
        if (ends_in_percent(value)) {
                r = capacity > 0 ? percentage(value, &part, NULL) : -EINVAL;
                *ret = (double)(int64_t)(capacity * (double)part);
                return r;
        }
        r = lkg_quantity_parse(value.data, value.size, &quantity, NULL);
        if (r == 0)
                *ret = lkg_quantity_double(&quantity);
        return r;
}

static int check_threshold(struct lkg_span signal, struct lkg_span value, char *reason)
{
        float part = 0;
        int r = check_signal(signal, reason);

        if (r < 0 || lkg_startup_threshold_off(value))
                return r;
        if (!ends_in_percent(value))
                return check_quantity(value, 1, reason);
        r = percentage(value, &part, reason);
        if (r == 0 && (part < 0 || part > 1))
                r = lkg_refuse(reason, "not between 0%% and 100%%");
        return r;
}

static int check_reclaim(struct lkg_span signal, struct lkg_span value, char *reason)
{
        float part = 0;
        int r = check_signal(signal, reason);

        if (r < 0)
                return r;
        if (!ends_in_percent(value))
                return check_quantity(value, 0, reason);
        r = percentage(value, &part, reason);
        if (r == 0 && part <= 0)
                r = lkg_refuse(reason, "must be greater than 0%%");
        return r;
}

static int check_grace_period(struct lkg_span signal, struct lkg_span value, char *reason)
{
        int64_t ns = 0;
        int r = check_signal(signal, reason);

        if (r == 0)
                r = lkg_duration_parse(value.data, value.size, &ns, reason);
        if (r == 0 && ns < 0)
                r = lkg_refuse(reason, "must not be negative");
        return r;
}

/* ---- resources ---- */

static int check_reserved(struct lkg_span resource, struct lkg_span value, char *reason)
{
        static const char *const resources[] = { "cpu", "memory", "ephemeral-storage", "pid", NULL };

        if (!is_one_of(resource, resources))
                return lkg_refuse(reason, "cannot be reserved; want cpu, memory, ephemeral-storage or pid");
        return check_quantity(value, 0, reason);
}

static int check_qos(struct lkg_span resource, struct lkg_span value, char *reason)
{
        struct lkg_span number = without_percent(value);
        int64_t n;

        if (!lkg_span_is(resource, "memory"))
                return lkg_refuse(reason, "cannot be reserved; want memory");
        if (ends_in_percent(value) && lkg_int_parse(number.data, number.size, 10, 64, &n, NULL) == 0 &&
            n >= 0 && n <= 100)
                return 0;
        return lkg_refuse(reason, "not a whole percentage between 0%% and 100%%");
}

static int check_log_size(struct lkg_span key, struct lkg_span value, char *reason)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        int r = lkg_quantity_parse(value.data, value.size, &quantity, reason);
        int64_t bytes;

        (void)key;
        if (r < 0 || lkg_quantity_int64(&quantity, &bytes))
                return r;
        return lkg_refuse(reason, "not a whole number of bytes; want one such as 10Mi");
}

/* ---- names ---- */

/* Go 1.26, crypto/tls, secure and insecure ones; two more names are kept by component-base. */
static int check_cipher(struct lkg_span key, struct lkg_span value, char *reason)
{
        static const char *const suites[] = {
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
                "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
                "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
                "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
                "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                "TLS_RSA_WITH_RC4_128_SHA",
                "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
                "TLS_RSA_WITH_AES_128_CBC_SHA",
                "TLS_RSA_WITH_AES_256_CBC_SHA",
                "TLS_RSA_WITH_AES_128_CBC_SHA256",
                "TLS_RSA_WITH_AES_128_GCM_SHA256",
                "TLS_RSA_WITH_AES_256_GCM_SHA384",
                "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
                "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
                "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
                "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
                "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
                NULL,
        };

        (void)key;
        if (is_one_of(value, suites))
                return 0;
        return lkg_refuse(reason,
                          "unknown cipher suite; want one such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
}

static int check_tls_version(struct lkg_span key, struct lkg_span value, char *reason)
{
        static const char *const versions[] = {
                "", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13", NULL
        };

        (void)key;
        if (is_one_of(value, versions))
                return 0;
        return lkg_refuse(reason, "unknown version; want VersionTLS12 or VersionTLS13 (or 10, 11)");
}

bool lkg_startup_tls_curve(int64_t id)
{
        /* P-256, P-384, P-521, X25519; with ML-KEM: P-256, X25519, P-384. Go 1.26 */
        static const int64_t ids[] = { 23, 24, 25, 29, 4587, 4588, 4589 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(ids); i++) {
                if (ids[i] == id)
                        return true;
        }
        return false;
}

static int check_authorization(struct lkg_span key, struct lkg_span value, char *reason)
{
        static const char *const modes[] = { "AlwaysAllow", "Webhook", NULL };

        (void)key;
        return is_one_of(value, modes) ? 0 : lkg_refuse(reason, "unknown mode; want Webhook or AlwaysAllow");
}

static int check_cpu_policy(struct lkg_span key, struct lkg_span value, char *reason)
{
        static const char *const policies[] = { "none", "static", NULL };

        (void)key;
        return is_one_of(value, policies) ? 0 : lkg_refuse(reason, "unknown policy; want none or static");
}

static int check_memory_policy(struct lkg_span key, struct lkg_span value, char *reason)
{
        static const char *const policies[] = { "None", "Static", NULL };

        (void)key;
        return is_one_of(value, policies) ? 0 : lkg_refuse(reason, "unknown policy; want None or Static");
}

/* ---- fields ---- */

int lkg_startup_check(const char *field, struct lkg_span key, struct lkg_span value, char *reason)
{
        static const struct {
                const char *field;
                int (*check)(struct lkg_span key, struct lkg_span value, char *reason);
        } fields[] = {
                { "evictionHard", check_threshold },
                { "evictionSoft", check_threshold },
                { "evictionSoftGracePeriod", check_grace_period },
                { "evictionMinimumReclaim", check_reclaim },
                { "systemReserved", check_reserved },
                { "kubeReserved", check_reserved },
                { "qosReserved", check_qos },
                { "containerLogMaxSize", check_log_size },
                { "tlsCipherSuites", check_cipher },
                { "tlsMinVersion", check_tls_version },
                { "authorization.mode", check_authorization },
                { "cpuManagerPolicy", check_cpu_policy },
                { "memoryManagerPolicy", check_memory_policy },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(fields); i++) {
                if (strcmp(fields[i].field, field) == 0)
                        return fields[i].check(key, value, reason);
        }
        return 0;
}
