/* SPDX-License-Identifier: Apache-2.0 */
/* The note of the content that an engine is judging: see lkg/admission.h. */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/admission.h>
#include <lkg/file.h>
#include <lkg/text.h>

/* ---- the file ---- */

/* Return: 1: the file is ours and has our layout; 0; -errno. */
static int open_old(int runtime_fd, struct lkg_judging **ret)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(runtime_fd, LKG_JUDGING_NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct lkg_judging *judging;
        struct stat st;
        void *p;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
            (size_t)st.st_size != sizeof(struct lkg_judging))
                return 0;
        r = lkg_map_file(fd, sizeof(*judging), &p);
        if (r < 0)
                return r;
        judging = p;
        if (judging->magic != LKG_JUDGING_MAGIC) {
                lkg_judging_close(judging);
                return 0;
        }
        *ret = judging;
        return 1;
}

static int make_new(int runtime_fd, struct lkg_judging **ret)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        void *p;
        int r;

        if (unlinkat(runtime_fd, LKG_JUDGING_NAME, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(runtime_fd, LKG_JUDGING_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = lkg_map_file(fd, sizeof(**ret), &p);
        if (r < 0) {
                (void)unlinkat(runtime_fd, LKG_JUDGING_NAME, 0);
                return r;
        }
        *ret = p;
        (*ret)->magic = LKG_JUDGING_MAGIC;
        return 0;
}

int lkg_judging_open(int runtime_fd, struct lkg_judging **ret, struct lkg_error *err)
{
        int r = open_old(runtime_fd, ret);

        if (r == 0)
                r = make_new(runtime_fd, ret);
        return r < 0 ? lkg_error_set(err, r, NULL, "the note of what is judged (%s)", LKG_JUDGING_NAME) : 0;
}

struct lkg_judging *lkg_judging_close(struct lkg_judging *judging)
{
        lkg_unmap_file(judging);
        return NULL;
}

/* ---- keys ---- */

void lkg_judging_key(const char *component, const char *file, const char *sha256,
                     struct lkg_judging_key *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        unsigned char digest[LKG_SHA256_BYTES];

        lkg_buf_append(&buf, component, strlen(component) + 1); /* the NULs separate the three parts */
        lkg_buf_append(&buf, file, strlen(file) + 1);
        lkg_buf_puts(&buf, sha256);
        (void)lkg_need(lkg_sha256(lkg_buf_text(&buf), buf.size, digest));
        memcpy(ret->bytes, digest, sizeof(ret->bytes));
}

bool lkg_judging_key_equal(const struct lkg_judging_key *a, const struct lkg_judging_key *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* ---- the note ---- */

/* A compromised process may have mapped it, too: no number in it is trusted as an index. */
uint32_t lkg_judging_count(const struct lkg_judging *judging)
{
        uint32_t n = atomic_load_explicit(&judging->n_items, memory_order_relaxed);

        return n < LKG_JUDGING_ITEMS ? n : LKG_JUDGING_ITEMS;
}

static struct lkg_judging_item *find_item(struct lkg_judging *judging, const struct lkg_judging_key *key)
{
        for (uint32_t i = lkg_judging_count(judging); i-- > 0;)
                if (judging->items[i].what == LKG_ADMIT_LAYER &&
                    lkg_judging_key_equal(&judging->items[i].key, key))
                        return &judging->items[i];
        return NULL;
}

/* Return: the item; NULL: no room, so it counts as one of the others. */
static struct lkg_judging_item *note(struct lkg_judging *judging, const struct lkg_judging_key *key,
                                     enum lkg_admit_what what, const char *component, const char *file,
                                     const char *sha256)
{
        struct lkg_judging_item *item = what == LKG_ADMIT_LAYER ? find_item(judging, key) : NULL;
        uint32_t n = lkg_judging_count(judging);

        if (atomic_load_explicit(&judging->since_ns, memory_order_relaxed) == 0)
                atomic_store(&judging->since_ns, lkg_boottime_ns());
        if (item)
                return item;
        if (n == LKG_JUDGING_ITEMS) {
                atomic_store(&judging->others, 1);
                return NULL;
        }
        item = &judging->items[n];
        item->key = *key;
        item->what = what;
        item->judged = 0;
        (void)snprintf(item->component, sizeof(item->component), "%s", component);
        (void)snprintf(item->file, sizeof(item->file), "%s", file);
        (void)snprintf(item->sha256, sizeof(item->sha256), "%s", sha256);
        atomic_store(&judging->n_items, n + 1);
        return item;
}

void lkg_judging_add(struct lkg_judging *judging, const struct lkg_judging_key *key, const char *component,
                     const struct lkg_content *content)
{
        (void)note(judging, key, content->what, component, content->file, content->sha256);
        atomic_store(&judging->between, 0);
        atomic_fetch_add(&judging->bytes, content->size);
}

void lkg_judging_finished(struct lkg_judging *judging)
{
        uint32_t n = lkg_judging_count(judging);

        atomic_store(&judging->between, 1);
        if (n > 0 && judging->items[n - 1].what == LKG_ADMIT_READ)
                atomic_store(&judging->n_items, n - 1);
}

void lkg_judging_learn(struct lkg_judging *judging, const struct lkg_judging_key *key)
{
        uint64_t n = atomic_load_explicit(&judging->n_known, memory_order_relaxed);

        judging->known[n % LKG_JUDGING_KNOWN] = *key;
        atomic_store(&judging->n_known, n + 1);
}

bool lkg_judging_knows(const struct lkg_judging *judging, const struct lkg_judging_key *key)
{
        uint64_t n = atomic_load_explicit(&judging->n_known, memory_order_relaxed);

        for (uint64_t i = 0; i < n && i < LKG_JUDGING_KNOWN; i++)
                if (lkg_judging_key_equal(&judging->known[i], key))
                        return true;
        return false;
}

void lkg_judging_judged(struct lkg_judging *judging, const struct lkg_judging_key *key,
                        const char *component, const char *file, const char *sha256)
{
        struct lkg_judging_item *item = note(judging, key, LKG_ADMIT_LAYER, component, file, sha256);

        if (item)
                item->judged = 1;
        else if (!lkg_judging_knows(judging, key)) /* there was no room for it */
                lkg_judging_learn(judging, key);
}

static void learn_judged(struct lkg_judging *judging)
{
        for (uint32_t i = 0, n = lkg_judging_count(judging); i < n; i++) {
                const struct lkg_judging_item *item = &judging->items[i];

                if (item->what == LKG_ADMIT_LAYER && item->judged && !lkg_judging_knows(judging, &item->key))
                        lkg_judging_learn(judging, &item->key);
        }
}

void lkg_judging_done(struct lkg_judging *judging)
{
        if (atomic_load_explicit(&judging->since_ns, memory_order_relaxed) == 0)
                return;
        learn_judged(judging);
        atomic_store(&judging->n_killed, 0);
        lkg_judging_forget(judging);
}

void lkg_judging_forget(struct lkg_judging *judging)
{
        atomic_store(&judging->n_items, 0);
        atomic_store(&judging->others, 0);
        atomic_store(&judging->between, 0);
        atomic_store(&judging->end, LKG_END_UNKNOWN);
        atomic_store(&judging->end_status, 0);
        atomic_store(&judging->bytes, 0);
        atomic_store(&judging->since_ns, 0);
}

/* ---- admission ---- */

int lkg_admit(const struct lkg_admission *admission, const struct lkg_content *content, char **ret_why)
{
        *ret_why = NULL;
        if (!admission || !admission->admit)
                return 0;
        return lkg_need(admission->admit(content, ret_why, admission->userdata));
}

void lkg_admit_finished(const struct lkg_admission *admission)
{
        if (admission && admission->finished)
                admission->finished(admission->userdata);
}

int lkg_admit_text(const struct lkg_admission *admission, enum lkg_admit_what what, const char *file,
                   const void *text, size_t size, char **ret_why)
{
        char sha256[LKG_SHA256_HEX];

        *ret_why = NULL;
        if (!admission || !admission->admit)
                return 0;
        (void)lkg_need(lkg_sha256_hex(text, size, sha256));
        return lkg_admit(admission, &(struct lkg_content){ what, file, sha256, size }, ret_why);
}
