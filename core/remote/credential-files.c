/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a credential: opened with trust only in root, remembered by identity. */

#include <openssl/crypto.h>

#include <lkg/text.h>

#include "credential-internal.h"
#include "wipe.h"

#define FILE_BYTES_MAX (1u << 20)
#define TICK_NS        (20 * LKG_NSEC_PER_MSEC)

/* ---- findings ---- */

const char *lkg_credential_file(const struct lkg_credential *c)
{
        if (c->place == LKG_FOUND_CONFIGURED)
                return c->kubeconfig;
        if (c->place == LKG_FOUND_POD)
                return c->pod_dir;
        return c->looked && c->kind == LKG_CREDENTIAL_NONE ? "" : c->source_file;
}

void lkg_look_say(struct lkg_look *l, enum lkg_severity severity, unsigned code,
                  const struct lkg_file_or_data *x, const char *fmt, ...)
{
        struct lkg_where where = { .file = lkg_credential_file(l->c) };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        va_list ap;

        if (x && x->field)
                where = (struct lkg_where){ l->k->file, x->line, x->column };
        else if (x && x->path)
                where.file = x->path;
        va_start(ap, fmt);
        if (vasprintf(&text, fmt, ap) < 0)
                text = NULL;
        va_end(ap);
        if (text)
                lkg_report_add(&l->report, severity, code, *where.file ? &where : NULL, "%s%s%s",
                               x && x->field ? x->field : "", x && x->field ? ": " : "", text);
        else
                l->no_memory = true;
        if (severity == LKG_ERROR && code != LKG_K_ENDS)
                l->incomplete = true;
}

/* ---- files ---- */

char *lkg_look_path(const struct lkg_credential *c, const char *path)
{
        size_t n = strlen(c->mount_point);
        char *mapped;

        if (n == 0 || strcmp(c->mount_point, c->source_path) == 0 || strncmp(path, c->mount_point, n) != 0 ||
            path[n] != '/')
                return strdup(path);
        return asprintf(&mapped, "%s%s", c->source_path, path + n) < 0 ? NULL : mapped;
}

static int stat_seen(const struct lkg_credential *c, const struct lkg_seen *seen, struct stat *ret)
{
        return seen->in_source ? fstatat(c->source_fd, LKG_CREDENTIAL_NODE_FILE, ret, 0)
                               : stat(seen->path, ret);
}

static bool is_young(const struct lkg_file_id *id)
{
        int64_t now_ns = (int64_t)lkg_realtime_ns();

        return id->mtime_ns > now_ns - (int64_t)TICK_NS || id->ctime_ns > now_ns - (int64_t)TICK_NS;
}

struct lkg_seen *lkg_look_note(struct lkg_look *l, char *path, bool in_source)
{
        struct lkg_seen *seen;

        if (!path || l->n_seen == LKG_CREDENTIAL_FILES_MAX) {
                l->no_memory = true;
                free(path);
                return NULL;
        }
        seen = &l->seen[l->n_seen++];
        *seen = (struct lkg_seen){ .path = path, .in_source = in_source };
        return seen;
}

static int open_seen(const struct lkg_look *l, const struct lkg_seen *seen, struct stat *ret,
                     struct lkg_error *err)
{
        int fd;

        if (!seen->in_source)
                return lkg_open_owned(seen->path, ret, err);
        fd = lkg_open_trusted(l->c->source_fd, LKG_CREDENTIAL_NODE_FILE, ret, err);
        if (fd < 0 || (lkg_is_trusted_user(ret->st_uid) && !(ret->st_mode & (S_IWGRP | S_IWOTH))))
                return fd;
        lkg_close(fd);
        return lkg_error_set(err, -EPERM, NULL, "%s is not owned by root or is writable by others.",
                             seen->path);
}

int lkg_look_read(struct lkg_look *l, struct lkg_seen *seen, char **ret, size_t *ret_size,
                  struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct stat st;
        int r;

        fd = open_seen(l, seen, &st, err);
        if (fd < 0) {
                seen->exists = fd != -ENOENT && stat_seen(l->c, seen, &st) == 0;
                if (seen->exists)
                        lkg_file_id_from_stat(&st, &seen->id);
                return fd;
        }
        seen->exists = true;
        lkg_file_id_from_stat(&st, &seen->id);
        seen->young = is_young(&seen->id);
        r = lkg_read_file(fd, FILE_BYTES_MAX, ret, ret_size, err);
        return r < 0 ? lkg_error_wrap(err, r, "%s", seen->path) : 0;
}

bool lkg_seen_changed(const struct lkg_credential *c, const struct lkg_seen *seen)
{
        struct lkg_file_id id;
        struct stat st;

        if (stat_seen(c, seen, &st) < 0)
                return seen->exists;
        lkg_file_id_from_stat(&st, &id);
        return !seen->exists || seen->young || !lkg_file_id_equal(&id, &seen->id);
}

void lkg_seen_forget(struct lkg_seen *seen, size_t *n)
{
        for (size_t i = 0; i < *n; i++)
                free(seen[i].path);
        *n = 0;
}

char *lkg_look_part(struct lkg_look *l, const struct lkg_file_or_data *x, enum lkg_severity severity)
{
        LKG_CLEANUP(lkg_wipe_freep) char *text = NULL;
        struct lkg_error err = { 0 };
        struct lkg_seen *seen;
        size_t size = 0;
        int r;

        if (x->data) {
                text = lkg_span_dup(lkg_span(x->data, x->size));
                size = x->size;
                l->no_memory |= !text;
        } else if (x->path) {
                seen = lkg_look_note(l, lkg_look_path(l->c, x->path), false);
                r = seen ? lkg_look_read(l, seen, &text, &size, &err) : 0;
                l->no_memory |= r == -ENOMEM;
                if (r < 0)
                        lkg_look_say(l, severity, LKG_K_FILE, x, "%s", err.message);
        }
        if (!text)
                return NULL;
        if (strlen(text) == size)
                return LKG_STEAL(text);
        OPENSSL_cleanse(text, size);
        lkg_look_say(l, severity, LKG_K_FILE, x,
                     "it has a NUL byte; want a PEM file or a token, plain text");
        return NULL;
}
