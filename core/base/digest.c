/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, which names content, and the hash for our tables. */
#include <pthread.h>

#include <openssl/evp.h>

#include <lkg/base.h>

/*
 * Looked up once, because a lookup costs more than the digest of a short text. Lives as long as the process.
 */
static EVP_MD *sha256;

static void fetch_sha256(void)
{
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

int lkg_sha256(const void *data, size_t size, unsigned char ret[static LKG_SHA256_BYTES])
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        unsigned char md[EVP_MAX_MD_SIZE];
        unsigned int n = 0;

        (void)pthread_once(&once, fetch_sha256);
        if (!EVP_Digest(data, size, md, &n, sha256 ? sha256 : EVP_sha256(), NULL) || n != LKG_SHA256_BYTES)
                return lkg_lack();
        memcpy(ret, md, LKG_SHA256_BYTES);
        return 0;
}

int lkg_sha256_hex(const void *data, size_t size, char ret[static LKG_SHA256_HEX])
{
        static const char digits[] = "0123456789abcdef";
        unsigned char md[LKG_SHA256_BYTES];
        int r = lkg_sha256(data, size, md);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < sizeof(md); i++) {
                ret[2 * i] = digits[md[i] >> 4];
                ret[2 * i + 1] = digits[md[i] & 15];
        }
        ret[2 * sizeof(md)] = '\0';
        return 0;
}

bool lkg_is_sha256(const char *text)
{
        return strlen(text) == LKG_SHA256_HEX - 1 && strspn(text, "0123456789abcdef") == LKG_SHA256_HEX - 1;
}

uint64_t lkg_hash(uint64_t seed, const void *data, size_t size)
{
        const unsigned char *p = data;
        uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
        return hash;
}
