/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Immutable content, named by its identity: checkpoints (whole objects) and documents. Pointers are saved after their targets,
 * so all functions that save return only when the data and its directories are durable.
 */
#include <fcntl.h>

#include <lkg/file.h>
#include <lkg/documents.h>
#include <lkg/lifecycle.h>

#include "store-internal.h"

#define OBJECT_NAME  "configmap.json"
#define OBJECT_MAX   LKG_DOC_BYTES_MAX /* lkg_configmap_format() respects it */
#define DOCUMENT_MAX (64u << 20)       /* as for a history record */

/* A file with the right content may be of a process that was killed before the flush. */
static int flush_file(int parent, const char *name, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(parent, name);
        int r = fd < 0 ? fd : fsync(fd) < 0 ? -errno : lkg_sync_dir(parent);

        return r < 0 ? lkg_error_set(err, r, NULL, "fsync %s", name) : 0;
}

/* Writes @data as @name of @parent, durably. An identical file is kept, another one is put aside. */
static int write_once(int parent, const char *name, const void *data, size_t size, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t found = 0;
        int r = lkg_record_read_text(parent, name, size, &text, &found, NULL);

        if (r == 0 && found == size && memcmp(text, data, size) == 0)
                return flush_file(parent, name, err);
        if (r != -ENOENT)
                lkg_store_put_aside(parent, name);
        return lkg_write_file_atomic(parent, name, data, size, 0600, true, err);
}

/* ---- checkpoints ---- */

static int check_source(const struct lkg_config_source *source, struct lkg_error *err)
{
        if (lkg_config_source_is_local(source))
                return lkg_refuse_because(err, -EINVAL, NULL, "the local configuration has no checkpoint");
        return lkg_config_source_check(source, err);
}

int lkg_store_save_checkpoint(const struct lkg_store *store, const struct lkg_configmap *configmap,
                              struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_closep) int dir = -EBADF;
        char path[LKG_STORE_PATH];
        int r;

        if (!lkg_identifier_ok(configmap->uid) || !lkg_identifier_ok(configmap->version))
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          "save checkpoint: uid or resourceVersion cannot be a path");
        lkg_configmap_format(configmap, &text);
        (void)snprintf(path, sizeof(path), LKG_CHECKPOINTS "/%s/%s", configmap->uid, configmap->version);
        dir = lkg_store_make_path(store->fd, path, NULL, err);
        r = dir < 0 ? dir : write_once(dir, OBJECT_NAME, text.data, text.size, err);
        return r < 0 ? lkg_error_wrap(err, r, "save checkpoint %s@%s", configmap->uid, configmap->version)
                     : 0;
}

static int check_object(const struct lkg_configmap *configmap, const struct lkg_config_source *source,
                        struct lkg_error *err)
{
        const char *text;
        char sha256[LKG_SHA256_HEX] = "";
        size_t size;

        if (strcmp(configmap->uid, source->uid) != 0 || strcmp(configmap->version, source->version) != 0 ||
            (source->ns[0] && strcmp(configmap->ns, source->ns) != 0) ||
            (source->name[0] && strcmp(configmap->name, source->name) != 0))
                return lkg_refuse_because(err, -EBADMSG, NULL, "it is another object");
        if (!source->sha256[0])
                return 0;
        if (lkg_configmap_payload(configmap, source->key, &text, &size, NULL) == 0)
                (void)lkg_need(lkg_sha256_hex(text, size, sha256));
        return strcmp(sha256, source->sha256) == 0
                       ? 0
                       : lkg_refuse_because(err, -EBADMSG, NULL, "the content of key %s has changed",
                                            source->key);
}

static int load_checkpoint(const struct lkg_store *store, const struct lkg_config_source *source,
                           struct lkg_configmap *ret, struct lkg_error *err)
{
        const struct lkg_configmap_options options = { .max_bytes = OBJECT_MAX, .file = OBJECT_NAME };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        struct lkg_configmap configmap;
        char path[LKG_STORE_PATH];
        size_t size;
        int r = check_source(source, err);

        if (r < 0)
                return r;
        (void)snprintf(path, sizeof(path), LKG_CHECKPOINTS "/%s/%s/" OBJECT_NAME, source->uid,
                       source->version);
        r = lkg_record_read_text(store->fd, path, OBJECT_MAX, &text, &size, err);
        if (r == -EFBIG || r == -ENOTDIR)
                r = -EBADMSG;
        if (r < 0)
                return r;
        r = lkg_admit_text(store->admission, LKG_ADMIT_OBJECT, path, text, size, &why);
        if (r == -EKEYREJECTED)
                return lkg_refuse_because(err, r, NULL, "%s", why);
        if (r == 0)
                r = lkg_configmap_parse(text, size, &options, &configmap, err);
        if (r < 0)
                return -EBADMSG;
        r = check_object(&configmap, source, err);
        if (r < 0)
                lkg_configmap_deinit(&configmap);
        else
                *ret = configmap;
        return r;
}

int lkg_store_load_checkpoint(const struct lkg_store *store, const struct lkg_config_source *source,
                              struct lkg_configmap *ret, struct lkg_error *err)
{
        char id[LKG_SOURCE_ID_MAX + 1];
        int r = load_checkpoint(store, source, ret, err);

        if (r >= 0)
                return 0;
        lkg_config_source_id(source, id);
        return lkg_error_wrap(err, r, "load checkpoint %s", id);
}

bool lkg_store_has_checkpoint(const struct lkg_store *store, const struct lkg_config_source *source)
{
        struct lkg_configmap configmap;

        if (load_checkpoint(store, source, &configmap, NULL) < 0)
                return false;
        lkg_configmap_deinit(&configmap);
        return true;
}

/* ---- collection ---- */

struct keep {
        const struct lkg_config_source *sources;
        size_t n;
};

static bool wanted(const struct keep *keep, const char *uid, const char *version)
{
        for (size_t i = 0; i < keep->n; i++)
                if (strcmp(keep->sources[i].uid, uid) == 0 && strcmp(keep->sources[i].version, version) == 0)
                        return true;
        return false;
}

/* Removes only files of lkgfs; a directory with anything else in it stays. Return: 1: removed; 0; -errno. */
static int remove_version(int of_uid, const char *version)
{
        static const char *const files[] = { OBJECT_NAME, OBJECT_NAME LKG_STORE_ASIDE };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                char path[LKG_STORE_PATH];

                (void)snprintf(path, sizeof(path), "%s/%s", version, files[i]);
                if (unlinkat(of_uid, path, 0) < 0 && errno != ENOENT && errno != ENOTDIR && errno != EISDIR)
                        return -errno;
        }
        if (unlinkat(of_uid, version, AT_REMOVEDIR) == 0)
                return 1;
        return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR || errno == ENOENT ? 0 : -errno;
}

static int collect_uid(int top, const char *uid, const struct keep *keep)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(top, uid);
        const struct dirent *entry;
        int n = 0, r = 0;

        if (!dir)
                return errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
        while ((entry = lkg_dir_next(dir, &r))) {
                if (!lkg_identifier_ok(entry->d_name) || wanted(keep, uid, entry->d_name))
                        continue;
                r = remove_version(dirfd(dir), entry->d_name);
                if (r < 0)
                        return r;
                n += r;
        }
        if (r < 0)
                return r;
        (void)unlinkat(top, uid, AT_REMOVEDIR); /* if it is empty */
        return n;
}

int lkg_store_collect(const struct lkg_store *store, const struct lkg_config_source *keep, size_t n_keep,
                      struct lkg_error *err)
{
        const struct keep wish = { keep, n_keep };
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(store->fd, LKG_CHECKPOINTS);
        const struct dirent *entry;
        int n = 0, r = 0;

        if (!dir)
                return errno == ENOENT ? 0 : lkg_error_set(err, -errno, NULL, "open " LKG_CHECKPOINTS);
        while ((entry = lkg_dir_next(dir, &r))) {
                if (!lkg_identifier_ok(entry->d_name))
                        continue;
                r = collect_uid(dirfd(dir), entry->d_name, &wish);
                if (r < 0)
                        return lkg_error_set(err, r, NULL, "remove old " LKG_CHECKPOINTS);
                n += r;
        }
        return r < 0 ? lkg_error_set(err, r, NULL, "list " LKG_CHECKPOINTS) : n;
}

/* ---- documents ---- */

/* Errors are ignored: the next document tries again. */
static void drop_documents(int of_documents, const char *keep, const char *also_keep)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(of_documents, ".");
        const struct dirent *entry;

        while (dir && (entry = lkg_dir_next(dir, NULL)))
                if (lkg_is_sha256(entry->d_name) && strcmp(entry->d_name, keep) != 0 &&
                    (!also_keep || strcmp(entry->d_name, also_keep) != 0))
                        (void)unlinkat(of_documents, entry->d_name, 0);
}

int lkg_store_save_document(const struct lkg_store_component *c, const void *data, size_t size,
                            const char *keep, char ret_sha256[static LKG_SHA256_HEX], struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int dir = -EBADF;
        char sha256[LKG_SHA256_HEX];
        int r = lkg_sha256_hex(data, size, sha256);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "digest");
        dir = lkg_store_make_path(c->fd, LKG_DOCUMENTS, NULL, err);
        r = dir < 0 ? dir : write_once(dir, sha256, data, size, err);
        if (r < 0)
                return lkg_error_wrap(err, r, "save the last known good document of %s", c->path);
        drop_documents(dir, sha256, keep);
        memcpy(ret_sha256, sha256, LKG_SHA256_HEX);
        return 0;
}

int lkg_store_load_document(const struct lkg_store_component *c, const char *sha256, char **ret,
                            size_t *ret_size, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        char path[sizeof(LKG_DOCUMENTS) + LKG_SHA256_HEX], found[LKG_SHA256_HEX];
        size_t size;
        int r;

        if (!lkg_is_sha256(sha256))
                return lkg_refuse_because(err, -ENOENT, NULL, "there is no stored document");
        (void)snprintf(path, sizeof(path), LKG_DOCUMENTS "/%s", sha256);
        r = lkg_record_read_text(c->fd, path, DOCUMENT_MAX, &text, &size, err);
        if (r == -EFBIG)
                r = -EBADMSG;
        if (r == 0)
                (void)lkg_need(lkg_sha256_hex(text, size, found));
        if (r == 0 && strcmp(found, sha256) != 0)
                r = lkg_refuse_because(err, -EBADMSG, NULL, "the content is not that of its name");
        if (r < 0)
                return lkg_error_wrap(err, r, "load the last known good document of %s", c->path);
        *ret = LKG_STEAL(text);
        *ret_size = size;
        return 0;
}
