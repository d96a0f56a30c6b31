/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>

#include "apiserver.h"

#define LOCAL_TEXT "local"
#define SEEN_NAME  "reference" /* runtime directory: path of the file that was understood */

void lkg_remote_file_deinit(struct lkg_remote_file *file)
{
        lkg_way_deinit(&file->way);
        *file = (struct lkg_remote_file){ 0 };
}

void lkg_remote_file_open(struct lkg_remote_file *file, const char *path, int runtime_fd, bool fresh)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *seen = NULL;
        size_t size;

        lkg_remote_file_deinit(file);
        file->path = path;
        file->runtime_fd = runtime_fd;
        if (fresh)
                (void)unlinkat(runtime_fd, SEEN_NAME, 0);
        if (!path)
                return;
        fd = lkg_open_plain(runtime_fd, SEEN_NAME);
        file->had_one = fd >= 0 && lkg_read_file(fd, PATH_MAX, &seen, &size, NULL) >= 0 &&
                        size == strlen(path) && memcmp(seen, path, size) == 0;
}

/* If the note cannot be written, a later engine only ignores that the file was removed. */
static void note_seen(struct lkg_remote_file *file)
{
        if (!file->had_one)
                (void)lkg_write_file_atomic(file->runtime_fd, SEEN_NAME, file->path, strlen(file->path),
                                            0600,
                                            /* durable= */ false, NULL);
        file->had_one = file->here = true;
}

static int check_allowed(const struct lkg_places *places, const struct lkg_configmap *configmap,
                         struct lkg_error *err)
{
        if (lkg_places_allow(places, configmap->ns, configmap->name))
                return 0;
        return lkg_error_set(err, -EINVAL, NULL, "ConfigMap %s/%s is not one of remote.allowedSources",
                             configmap->ns, configmap->name);
}

static int resolve(const struct lkg_configmap *configmap, struct lkg_config_source *ret,
                   struct lkg_error *err)
{
        const char *key = lkg_configmap_annotation(configmap, LKG_KEY_ANNOTATION);
        struct lkg_reference reference;
        int r = lkg_reference_from_parts(configmap->ns, configmap->name, key ? key : "", "", &reference,
                                         err);

        return r < 0 ? r : lkg_configmap_resolve(configmap, &reference, ret, err);
}

/* Missing or empty: the local configuration, if there was a reference before. */
static enum lkg_places_says blank(const struct lkg_remote_file *file, struct lkg_error *err)
{
        (void)snprintf(err->message, sizeof(err->message), "no reference yet");
        return file->had_one ? LKG_PLACES_LOCAL : LKG_PLACES_UNKNOWN;
}

/* @err: why it is UNKNOWN */
static enum lkg_places_says understand(struct lkg_places *places, const char *text, size_t size,
                                       struct lkg_places_answer *ret, struct lkg_error *err)
{
        const struct lkg_configmap_options how = { .max_bytes = places->config->remote.max_bytes,
                                                   .from_file = true };
        struct lkg_remote_file *file = &places->file;
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        const struct lkg_span word = lkg_span_trim(lkg_span(text, size));

        if (lkg_span_is(word, LOCAL_TEXT)) {
                note_seen(file);
                return LKG_PLACES_LOCAL;
        }
        if (word.size == 0)
                return blank(file, err);
        if (lkg_admit_text(places->options.admission, LKG_ADMIT_OBJECT, file->path, text, size, &why) < 0) {
                (void)snprintf(err->message, sizeof(err->message), "%s is not read: %s", file->path, why);
                file->known = false; /* it may be admitted later */
                return LKG_PLACES_UNKNOWN;
        }
        if (lkg_configmap_parse(text, size, &how, &ret->own, err) < 0)
                return LKG_PLACES_UNKNOWN;
        if (check_allowed(places, &ret->own, err) < 0 || resolve(&ret->own, &ret->source, err) < 0) {
                lkg_configmap_deinit(&ret->own);
                return LKG_PLACES_UNKNOWN;
        }
        note_seen(file);
        ret->configmap = &ret->own;
        return LKG_PLACES_CONFIGMAP;
}

/* Return: should what looks like a reset be ignored for now? */
static bool too_early(struct lkg_remote_file *file, bool careful, enum lkg_places_says says)
{
        uint64_t now = lkg_boottime_ns();

        if (says != LKG_PLACES_LOCAL || file->here || !careful) {
                file->blank_ns = 0;
                return false;
        }
        if (file->blank_ns == 0)
                file->blank_ns = now;
        if (now - file->blank_ns >= LKG_BLANK_NS)
                return false;
        file->known = false;
        return true;
}

static enum lkg_places_says look(struct lkg_places *places, struct lkg_places_answer *ret,
                                 struct lkg_error *err)
{
        const struct lkg_places_options *options = &places->options;
        const size_t max_bytes = places->config->remote.max_bytes;
        struct lkg_remote_file *file = &places->file;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_file_id id = { 0 };
        struct stat st;
        size_t size;
        int r;

        lkg_way_deinit(&file->way);
        lkg_way_find(file->path, &file->way);
        fd = lkg_open_trusted(AT_FDCWD, file->path, &st, err);
        if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
                return LKG_PLACES_UNCHANGED;
        if (fd >= 0)
                lkg_file_id_from_stat(&st, &id);
        if (file->known && lkg_file_id_equal(&id, &file->id))
                return LKG_PLACES_UNCHANGED;
        if (fd < 0) {
                file->known = true;
                file->id = id;
                return fd == -ENOENT ? blank(file, err) : LKG_PLACES_UNKNOWN;
        }
        r = lkg_read_file(fd, max_bytes, &text, &size, err);
        if (r == -ENOMEM) /* of the kernel */
                return LKG_PLACES_UNCHANGED;
        if (options->unsettled && options->unsettled(file->path, NULL, options->userdata))
                return LKG_PLACES_UNCHANGED; /* it will be checked again when it is complete */
        file->known = true;
        file->id = id;
        if (r == -EFBIG)
                (void)snprintf(err->message, sizeof(err->message),
                               "%s has more bytes than remote.maxBytes, which is %zu", file->path,
                               max_bytes);
        return r < 0 ? LKG_PLACES_UNKNOWN : understand(places, text, size, ret, err);
}

void lkg_remote_file_look(struct lkg_places *places, const struct lkg_places_known *known,
                          struct lkg_places_answer *ret)
{
        struct lkg_remote_file *file = &places->file;
        /* a reset would lose something: see LKG_BLANK_NS */
        bool careful = !lkg_config_source_is_local(known->assigned);
        struct lkg_error err = { 0 };
        enum lkg_places_says says = look(places, ret, &err);

        if (says == LKG_PLACES_UNCHANGED || too_early(file, careful, says)) {
                if (file->blank_ns)
                        ret->again_at_ns = file->blank_ns + LKG_BLANK_NS;
                return;
        }
        ret->says = says;
        if (says == LKG_PLACES_UNKNOWN)
                (void)snprintf(ret->words, sizeof(ret->words), "%.511s", err.message);
}
