/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks secrets that must not appear in a status file, layer listing, history entry or log: the values below
 * a field that contains a credential, wherever it is, private keys, and userinfo (`user:password@`) and
 * query (`?token=...`) of any URL in any string or key.
 *
 * Field names are compared without case, as in the component's final decoder.
 */
#include <strings.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

#define MASK "<masked>"

static bool has_url(const char *text, size_t size)
{
        return text && size > 0 && (memchr(text, '@', size) || memchr(text, '?', size)) &&
               lkg_find_scheme(text, size);
}

/* ---- trees ---- */

/* A collection whose members are being masked. */
struct mask_job {
        const struct lkg_value *from;
        struct lkg_value *to; /* owned; NULL while nothing had to be masked */
        size_t i;
        enum lkg_secrecy secrecy; /* of the most secret field above it */
};

struct jobs {
        struct mask_job *items;
        size_t n, allocated;
};

static int jobs_push(struct jobs *jobs, const struct lkg_value *from, enum lkg_secrecy secrecy)
{
        if (LKG_RESERVE(jobs->items, jobs->n, jobs->allocated) < 0)
                return -ENOMEM;
        jobs->items[jobs->n++] = (struct mask_job){ .from = from, .secrecy = secrecy };
        return 0;
}

static struct lkg_value *new_text(const struct lkg_value *like, const char *text, size_t size)
{
        return lkg_value_new_string(text, size, lkg_value_source_mut(like), lkg_value_line(like),
                                    lkg_value_column(like));
}

/* A scalar, masked: the value itself (one more reference) when there is nothing to hide. */
static struct lkg_value *mask_scalar(const struct lkg_value *value, enum lkg_secrecy secrecy)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        enum lkg_type type = lkg_value_type(value);
        bool collection = type == LKG_LIST || type == LKG_MAP, masked = false;
        const char *text = NULL;
        size_t size = 0;

        if (secrecy == LKG_SECRET && type != LKG_NULL && !collection)
                return new_text(value, MASK, strlen(MASK));
        if (type == LKG_STRING)
                text = lkg_value_text(value, &size);
        if (text && lkg_has_private_key(text, size))
                return new_text(value, MASK, strlen(MASK));
        if (text && secrecy == LKG_SECRET_URL)
                masked = lkg_mask_url(text, size, &buf);
        else if (text && has_url(text, size))
                masked = lkg_mask_text(text, size, &buf);
        if (lkg_buf_failed(&buf))
                return NULL;
        return masked ? new_text(value, buf.data, buf.size) : lkg_value_ref((struct lkg_value *)value);
}

/*
 * Make the job's own copy when the first member differs, without the shadow, which may contain values to
 * mask.
 */
static int job_own(struct mask_job *job)
{
        if (!job->to)
                job->to = lkg_value_over(job->from, NULL);
        return job->to ? 0 : -ENOMEM;
}

/* Put the masked form of member @i (taken over) into the job's copy. */
static int job_put(struct mask_job *job, struct lkg_value *masked)
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
        rename = lkg_mask_name(key, size, job->secrecy == LKG_SECRET, &key_buf);
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
 * Secret fields of the kubelet, and names of credentials in other documents. Not a name that ends in "file":
 * its value is a path.
 */
enum lkg_secrecy lkg_name_secrecy(const char *name, size_t size)
{
        static const char url[] = "staticPodURL";

        if (lkg_holds_secret_name(name, size))
                return LKG_SECRET;
        if (size == strlen(url) && strncasecmp(name, url, size) == 0)
                return LKG_SECRET_URL;
        return LKG_PUBLIC;
}

enum lkg_secrecy lkg_pointer_secrecy(const char *pointer)
{
        enum lkg_secrecy most = LKG_PUBLIC;

        while (*pointer == '/') {
                size_t n = strcspn(++pointer, "/");
                enum lkg_secrecy secrecy = lkg_name_secrecy(pointer, n);

                if (secrecy > most)
                        most = secrecy;
                pointer += n;
        }
        return most;
}

/* For a member of a map: by its name, and in an operation of a JSON patch by the last name of the path. */
static enum lkg_secrecy member_secrecy(const struct lkg_value *map, const char *key, size_t size)
{
        enum lkg_secrecy secrecy = lkg_name_secrecy(key, size);
        const char *path = NULL;

        if (secrecy == LKG_PUBLIC && size == strlen("value") && memcmp(key, "value", size) == 0)
                path = lkg_map_get_string(map, "path");
        return path ? lkg_pointer_secrecy(path) : secrecy;
}

static int step(struct jobs *jobs, struct lkg_value **ret)
{
        struct mask_job *job = &jobs->items[jobs->n - 1];
        enum lkg_secrecy secrecy = job->secrecy, own;
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
                own = member_secrecy(job->from, key, size);
                secrecy = own > secrecy ? own : secrecy;
        }
        if (lkg_value_size(member) > 0)
                return jobs_push(jobs, member, secrecy);
        r = job_put(job, mask_scalar(member, secrecy));
        job->i++;
        return r;
}

struct lkg_value *lkg_mask_value(const struct lkg_value *value, enum lkg_secrecy secrecy)
{
        struct lkg_value *ret = NULL;
        struct jobs jobs = { 0 };
        int r;

        if (lkg_value_size(value) == 0)
                return mask_scalar(value, secrecy);
        r = jobs_push(&jobs, value, secrecy);
        while (r == 0 && jobs.n > 0)
                r = step(&jobs, &ret);
        while (jobs.n > 0)
                lkg_value_unref(jobs.items[--jobs.n].to);
        free(jobs.items);
        return ret;
}

struct lkg_value *lkg_mask_secrets(const struct lkg_value *root)
{
        return lkg_mask_value(root, LKG_PUBLIC);
}
