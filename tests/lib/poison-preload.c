/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD_PRELOAD for lkgfs-engine: simulates a defect that a future release of the engine may have. Content with
 * the line
 *
 *     #POISON HOW WHERE
 *
 * ends the engine. HOW: abort, segv, memory (no allocation succeeds any more), loop, sleep. WHERE: read
 * (when it is parsed), judge (when all layers are merged), object (when an API object, or a file with one,
 * that contains the line is parsed).
 *
 * The right moment is recognised by the digests that the engine computes: of the content, of its note about
 * the content, and of all layers together. The next allocation is made by the parser or the merge, unless
 * the engine formats a time first, as it does when it refuses the content. While the file that
 * LKGFS_POISON_OFF names exists, nothing happens.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MARK "#POISON "

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

enum where { READ, JUDGE };

static char how[16]; /* of the last content; "" = none */
static enum where where;
static char digest[65];   /* its SHA-256 */
static bool read_now;     /* the content was admitted, not refused */
static bool armed, empty; /* fail at the next allocation; out of memory from now on */

static bool is_engine(void)
{
        return strcmp(program_invocation_short_name, "lkgfs-engine") == 0;
}

static bool is_off(void)
{
        const char *off = getenv("LKGFS_POISON_OFF");

        return off &&
               faccessat(AT_FDCWD, off, F_OK, AT_EACCESS) == 0; /* access(2) asks without capabilities */
}

static void *end_it(void)
{
        armed = false;
        if (strcmp(how, "memory") == 0) {
                empty = true;
                errno = ENOMEM;
                return NULL;
        }
        if (strcmp(how, "abort") == 0)
                abort();
        if (strcmp(how, "segv") == 0)
                (void)raise(SIGSEGV);
        while (strcmp(how, "sleep") == 0)
                (void)usleep(100000);
        for (volatile bool forever = true; forever;)
                ;
        return NULL;
}

void *malloc(size_t size)
{
        return armed ? end_it() : empty ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
        return armed ? end_it() : empty ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
        return armed ? end_it() : empty ? NULL : __libc_realloc(p, size);
}

struct tm *gmtime_r(const time_t *t, struct tm *ret)
{
        static struct tm *(*real)(const time_t *, struct tm *);

        armed = false;
        read_now = false;
        if (!real)
                real = (struct tm * (*)(const time_t *, struct tm *)) dlsym(RTLD_NEXT, "gmtime_r");
        return real(t, ret);
}

/* A ConfigMap, or an event of a watch: its content is not read as a layer. */
static bool is_object(const char *text, size_t size)
{
        return memmem(text, size, "\"ConfigMap\"", 11) || memmem(text, size, "kind: ConfigMap", 15);
}

/* A note about a content, or ("") about all layers together: component, NUL, file, NUL, SHA-256. */
static bool is_note(const char *text, size_t size, bool together)
{
        const char *file = memchr(text, '\0', size), *end;

        if (!file++ || size < 66)
                return false;
        end = memchr(file, '\0', (size_t)(text + size - file));
        return end && end + 1 + 64 == text + size && (end == file) == together;
}

static void look_for_note(const char *text, size_t size)
{
        if (is_note(text, size, false) && memcmp(text + size - 64, digest, 64) == 0) {
                read_now = true;
                armed = where != JUDGE;
        } else if (read_now && where == JUDGE && is_note(text, size, true)) {
                armed = true;
        }
}

static void look(const char *text, size_t size, const unsigned char *md)
{
        const char *mark = memmem(text, size, MARK, strlen(MARK));
        char words[64] = "", place[16] = "";
        size_t n;

        if (!mark && *how)
                look_for_note(text, size);
        if (!mark)
                return;
        n = (size_t)(text + size - mark) < sizeof(words) - 1 ? (size_t)(text + size - mark)
                                                             : sizeof(words) - 1;
        memcpy(words, mark, n);
        if (sscanf(words, MARK "%15[a-z] %15[a-z]", how, place) != 2 ||
            (strcmp(place, "object") == 0) != is_object(text, size) || is_off()) {
                *how = '\0';
                return;
        }
        where = strcmp(place, "judge") == 0 ? JUDGE : READ;
        for (unsigned i = 0; i < 32; i++)
                (void)sprintf(digest + 2 * i, "%02x", md[i]);
}

int EVP_Digest(const void *data, size_t count, unsigned char *md, unsigned int *size, const EVP_MD *type,
               ENGINE *impl)
{
        static int (*real)(const void *, size_t, unsigned char *, unsigned int *, const EVP_MD *, ENGINE *);
        int r;

        if (!real)
                real = (int (*)(const void *, size_t, unsigned char *, unsigned int *, const EVP_MD *,
                                ENGINE *))dlsym(RTLD_NEXT, "EVP_Digest");
        r = real(data, count, md, size, type, impl);
        if (r && is_engine())
                look(data, count, md);
        return r;
}
