/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and digests: the two things every folder needs and nobody should write twice. */
#include <pthread.h>
#include <time.h>

#include <openssl/evp.h>

#include <lkg/base.h>

static uint64_t clock_ns(clockid_t id)
{
        struct timespec ts;

        if (clock_gettime(id, &ts) < 0)
                return 0; /* cannot happen for these two clocks */
        return (uint64_t)ts.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t lkg_boottime_ns(void)
{
        return clock_ns(CLOCK_BOOTTIME);
}

uint64_t lkg_realtime_ns(void)
{
        return clock_ns(CLOCK_REALTIME);
}

void lkg_format_rfc3339(uint64_t ns, char buf[static 21])
{
        time_t seconds = (time_t)(ns / LKG_NSEC_PER_SEC);
        struct tm tm = { 0 };

        if (!gmtime_r(&seconds, &tm) || tm.tm_year > 8099 ||
            strftime(buf, 21, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                memcpy(buf, "9999-12-31T23:59:59Z", 21);
}

/* Looked up once: a lookup costs more than the digest of a short text. Lives as long as the process. */
static EVP_MD *sha256;

static void fetch_sha256(void)
{
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

int lkg_sha256_hex(const void *data, size_t size, char ret[static LKG_SHA256_HEX])
{
        static const char digits[] = "0123456789abcdef";
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        unsigned char md[EVP_MAX_MD_SIZE];
        unsigned int n = 0;

        (void)pthread_once(&once, fetch_sha256);
        if (!EVP_Digest(data, size, md, &n, sha256 ? sha256 : EVP_sha256(), NULL) || n != 32)
                return -ENOMEM;
        for (unsigned i = 0; i < n; i++) {
                ret[2 * i] = digits[md[i] >> 4];
                ret[2 * i + 1] = digits[md[i] & 15];
        }
        ret[64] = '\0';
        return 0;
}
