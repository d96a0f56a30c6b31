/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>

#include <lkg/places.h>

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

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Strips white space at both ends. */
static const char *trim(const char *text, size_t *size)
{
        while (*size > 0 && is_blank(text[*size - 1]))
                --*size;
        while (*size > 0 && is_blank(*text)) {
                text++;
                --*size;
        }
        return text;
}

static int check_allowed(const struct lkg_remote_file_options *options,
                         const struct lkg_configmap *configmap, struct lkg_error *err)
{
        if (lkg_reference_allowed(options->allowed, options->n_allowed, configmap->ns, configmap->name))
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

static int understand(struct lkg_remote_file *file, const struct lkg_remote_file_options *options,
                      const char *text, size_t size, enum lkg_remote_file_says *ret_says,
                      struct lkg_configmap *ret, struct lkg_config_source *ret_source, struct lkg_error *err)
{
        const struct lkg_configmap_options how = { .max_bytes = options->max_bytes, .from_file = true };
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        size_t left = size;
        const char *word = trim(text, &left);
        int r;

        if (left == strlen(LOCAL_TEXT) && memcmp(word, LOCAL_TEXT, left) == 0) {
                *ret_says = LKG_FILE_SAYS_LOCAL;
                note_seen(file);
                return 0;
        }
        if (left == 0) {
                *ret_says = file->had_one ? LKG_FILE_SAYS_LOCAL : LKG_FILE_SAYS_NOTHING;
                return lkg_error_set(err, 0, NULL, "%s is empty", file->path);
        }
        *ret_says = LKG_FILE_SAYS_UNCLEAR;
        r = lkg_admit_text(options->admission, LKG_ADMIT_OBJECT, file->path, text, size, &why);
        if (r == -EKEYREJECTED) {
                (void)snprintf(err->message, sizeof(err->message), "%s is not read: %s", file->path, why);
                file->known = false; /* it may be admitted later */
                return 0;
        }
        if (r == 0)
                r = lkg_configmap_parse(text, size, &how, ret, err);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = check_allowed(options, ret, err);
        if (r == 0)
                r = resolve(ret, ret_source, err);
        if (r < 0) {
                lkg_configmap_deinit(ret);
                return r == -ENOMEM ? r : 0;
        }
        *ret_says = LKG_FILE_SAYS_CONFIGMAP;
        note_seen(file);
        return 0;
}

/* The file is missing or cannot be read. */
static int missing(struct lkg_remote_file *file, int code, enum lkg_remote_file_says *ret_says)
{
        if (code == -ENOMEM || code == -EMFILE || code == -ENFILE)
                return code;
        if (code == -ENOENT && file->had_one)
                *ret_says = LKG_FILE_SAYS_LOCAL;
        else
                *ret_says = code == -ENOENT ? LKG_FILE_SAYS_NOTHING : LKG_FILE_SAYS_UNCLEAR;
        file->known = true;
        file->id = (struct lkg_file_id){ 0 };
        return 1;
}

/* Return: should what looks like a reset be ignored for now? */
static bool too_early(struct lkg_remote_file *file, bool careful, enum lkg_remote_file_says says)
{
        uint64_t now = lkg_boottime_ns();

        if (says != LKG_FILE_SAYS_LOCAL || file->here || !careful) {
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

static void name_limit(const struct lkg_remote_file *file, const struct lkg_remote_file_options *options,
                       struct lkg_error *err)
{
        (void)snprintf(err->message, sizeof(err->message),
                       "%s has more bytes than remote.maxBytes, which is %zu", file->path,
                       options->max_bytes);
}

static int look(struct lkg_remote_file *file, const struct lkg_remote_file_options *options,
                enum lkg_remote_file_says *ret_says, struct lkg_configmap *ret,
                struct lkg_config_source *ret_source, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_file_id id = { 0 };
        struct stat st;
        size_t size;
        int r;

        lkg_way_deinit(&file->way);
        lkg_way_find(file->path, &file->way);
        fd = lkg_open_trusted(AT_FDCWD, file->path, &st, err);
        if (fd >= 0)
                lkg_file_id_from_stat(&st, &id);
        if (file->known && lkg_file_id_equal(&id, &file->id))
                return 0;
        if (fd < 0)
                return missing(file, fd, ret_says);
        r = lkg_read_file(fd, options->max_bytes, &text, &size, err);
        if (r == -ENOMEM)
                return r;
        if (options->unsettled && options->unsettled(file->path, options->userdata))
                return 0; /* it will be checked again when it is complete */
        file->known = true;
        file->id = id;
        if (r < 0) {
                if (r == -EFBIG)
                        name_limit(file, options, err);
                *ret_says = LKG_FILE_SAYS_UNCLEAR;
                return 1;
        }
        r = understand(file, options, text, size, ret_says, ret, ret_source, err);
        return r < 0 ? r : 1;
}

int lkg_remote_file_look(struct lkg_remote_file *file, const struct lkg_remote_file_options *options,
                         enum lkg_remote_file_says *ret_says, struct lkg_configmap *ret,
                         struct lkg_config_source *ret_source, struct lkg_error *err)
{
        int r = look(file, options, ret_says, ret, ret_source, err);

        return r > 0 && too_early(file, options->careful, *ret_says) ? 0 : r;
}
