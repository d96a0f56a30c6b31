/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no status file, layer listing, history entry or log may show (spec section 2, decisions S8): the
 * values below a field that holds a credential, wherever it stands, private keys, and userinfo
 * (`user:password@`) in any URL in any string or key.
 *
 * The field's name is compared without case, because a component's final decoder does so too.
 */
#include <strings.h>

#include "internal.h"

#include <lkg/render.h>

#define MASK "<masked>"

static bool has_private_key(const char *text, size_t size)
{
        return size >= strlen("PRIVATE KEY-----") &&
               memmem(text, size, "PRIVATE KEY-----", strlen("PRIVATE KEY-----")) != NULL;
}

static bool has_url(const char *text, size_t size)
{
        return memchr(text, '@', size) && memmem(text, size, "://", 3);
}

/* ---- trees ---- */

/* A collection whose members are being masked. */
struct job {
        const struct lkg_value *from;
        struct lkg_value *to; /* owned; NULL while nothing had to be masked */
        size_t i;
        bool secret; /* below the secret field */
};

struct jobs {
        struct job *items;
        size_t n, allocated;
};

static int jobs_push(struct jobs *jobs, const struct lkg_value *from, bool secret)
{
        if (jobs->n == jobs->allocated) {
                size_t n = jobs->allocated ? 2 * jobs->allocated : 16;
                struct job *items = reallocarray(jobs->items, n, sizeof(*items));

                if (!items)
                        return -ENOMEM;
                jobs->items = items;
                jobs->allocated = n;
        }
        jobs->items[jobs->n++] = (struct job){ .from = from, .secret = secret };
        return 0;
}

/* A scalar, masked: the value itself (one more reference) when there is nothing to hide. */
static struct lkg_value *mask_scalar(const struct lkg_value *value, bool secret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        enum lkg_type type = lkg_value_type(value);
        bool collection = type == LKG_LIST || type == LKG_MAP;
        const char *text = NULL;
        size_t size = 0;

        if (secret && type != LKG_NULL && !collection)
                return lkg_value_new_string(MASK, strlen(MASK), lkg_value_source_mut(value),
                                            lkg_value_line(value), lkg_value_column(value));
        if (type == LKG_STRING)
                text = lkg_value_text(value, &size);
        if (text && has_private_key(text, size))
                return lkg_value_new_string(MASK, strlen(MASK), lkg_value_source_mut(value),
                                            lkg_value_line(value), lkg_value_column(value));
        if (!text || !has_url(text, size) || !lkg_mask_text(text, size, &buf))
                return lkg_value_ref((struct lkg_value *)value);
        if (lkg_buf_failed(&buf))
                return NULL;
        return lkg_value_new_string(buf.data, buf.size, lkg_value_source_mut(value), lkg_value_line(value),
                                    lkg_value_column(value));
}

/*
 * The job's own copy, made when the first member differs; without the shadow, which may hold what is
 * masked.
 */
static int job_own(struct job *job)
{
        if (!job->to)
                job->to = lkg_value_over(job->from, NULL);
        return job->to ? 0 : -ENOMEM;
}

/* Puts the masked form of member @i (taken over) into the job's copy. */
static int job_put(struct job *job, struct lkg_value *masked)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf key_buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = masked;
        const struct lkg_value *old;
        const char *key = NULL;
        size_t size = 0;
        bool rename;
        int r;

        if (!value)
                return -ENOMEM;
        if (lkg_value_type(job->from) == LKG_LIST) {
                if (value == lkg_list_get(job->from, job->i))
                        return 0;
                r = job_own(job);
                if (r == 0)
                        lkg_list_set(job->to, job->i, LKG_STEAL(value));
                return r;
        }
        old = lkg_map_at(job->from, job->i, &key, &size);
        rename = has_url(key, size) && lkg_mask_text(key, size, &key_buf);
        if (value == old && !rename)
                return 0;
        r = job_own(job);
        if (r == 0 && rename)
                r = lkg_map_remove(job->to, key, size);
        if (r < 0 || lkg_buf_failed(&key_buf))
                return -ENOMEM;
        r = lkg_map_set(job->to, rename ? key_buf.data : key, rename ? key_buf.size : size,
                        LKG_STEAL(value));
        return r < 0 ? r : 0;
}

/*
 * Kubelet's own field of that kind, and what other documents call a credential. Not a name that ends in "file": that
 * is where it stands.
 */
static bool is_secret_field(const char *key, size_t size)
{
#define NAME(text)                     \
        {                              \
                text, sizeof(text) - 1 \
        }
        static const struct {
                const char *text;
                size_t size;
        } names[] = {
                NAME("staticPodURLHeader"), NAME("password"), NAME("passwd"),       NAME("token"),
                NAME("bearerToken"),        NAME("secret"),   NAME("clientSecret"), NAME("privateKey"),
                NAME("client-key-data"),
        };
#undef NAME

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++)
                if (size == names[i].size && strncasecmp(key, names[i].text, size) == 0)
                        return true;
        return false;
}

static int step(struct jobs *jobs, struct lkg_value **ret)
{
        struct job *job = &jobs->items[jobs->n - 1];
        bool secret = job->secret;
        const struct lkg_value *member;
        const char *key;
        size_t size;
        int r;

        if (job->i == lkg_value_size(job->from)) {
                struct lkg_value *done = job->to ? job->to : lkg_value_ref((struct lkg_value *)job->from);

                jobs->n--;
                if (jobs->n == 0) {
                        *ret = done;
                        return 0;
                }
                job = &jobs->items[jobs->n - 1];
                r = job_put(job, done);
                job->i++;
                return r;
        }
        if (lkg_value_type(job->from) == LKG_LIST) {
                member = lkg_list_get(job->from, job->i);
        } else {
                member = lkg_map_at(job->from, job->i, &key, &size);
                secret = secret || is_secret_field(key, size);
        }
        if (lkg_value_size(member) > 0)
                return jobs_push(jobs, member, secret);
        r = job_put(job, mask_scalar(member, secret));
        job->i++;
        return r;
}

bool lkg_pointer_is_secret(const char *pointer)
{
        while (*pointer == '/') {
                size_t n = strcspn(++pointer, "/");

                if (is_secret_field(pointer, n))
                        return true;
                pointer += n;
        }
        return false;
}

struct lkg_value *lkg_mask_value(const struct lkg_value *value, bool secret)
{
        struct lkg_value *ret = NULL;
        struct jobs jobs = { 0 };
        int r;

        if (lkg_value_size(value) == 0)
                return mask_scalar(value, secret);
        r = jobs_push(&jobs, value, secret);
        while (r == 0 && jobs.n > 0)
                r = step(&jobs, &ret);
        while (jobs.n > 0)
                lkg_value_unref(jobs.items[--jobs.n].to);
        free(jobs.items);
        return ret;
}

struct lkg_value *lkg_mask_secrets(const struct lkg_value *root)
{
        return lkg_mask_value(root, false);
}
