/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One layer file: opened without blocking and without leaving the trusted path, read completely, decoded,
 * and checked on its own. Checks that depend on other layers (same kind, same apiVersion) are in fold.c.
 */
#include <fcntl.h>

#include <lkg/base.h>
#include <lkg/publication.h>
#include <lkg/file.h>
#include <lkg/documents.h>

#include "layers.h"

#define RACY_NS    (50 * (int64_t)LKG_NSEC_PER_MSEC) /* more than a tick of any kernel's coarse clock */
#define PIECES_MAX 64                                /* documents in one kubeadm patch file */

struct lkg_layer *lkg_layer_ref(struct lkg_layer *layer)
{
        if (layer)
                layer->refs++;
        return layer;
}

struct lkg_layer *lkg_layer_unref(struct lkg_layer *layer)
{
        if (!layer || --layer->refs > 0)
                return NULL;
        free(layer->path);
        free(layer->name);
        free(layer->file);
        free(layer->beside);
        free(layer->resembles);
        free(layer->text);
        for (size_t i = 0; i < layer->n_docs; i++)
                lkg_value_unref(layer->docs[i]);
        free(layer->docs);
        lkg_report_deinit(&layer->report);
        free(layer);
        return NULL;
}

const char *lkg_layer_role_name(enum lkg_layer_role role)
{
        static const char *const names[_LKG_LAYER_ROLE_MAX] = {
                [LKG_LAYER_BASE] = "base",         [LKG_LAYER_REMOTE] = "remote",
                [LKG_LAYER_DROPIN] = "drop-in",    [LKG_LAYER_PATCH] = "patch",
                [LKG_LAYER_INSTANCE] = "instance", [LKG_LAYER_MANIFEST] = "manifest",
        };

        return (unsigned)role < _LKG_LAYER_ROLE_MAX ? names[role] : "?";
}

char *lkg_display(const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_shown(&buf, text, strlen(text));
        (void)lkg_buf_text(&buf);
        return lkg_buf_steal(&buf, NULL);
}

static char *shown_path(const struct lkg_place *place)
{
        return lkg_display(strncmp(place->path, "./", 2) == 0 ? place->path + 2 : place->path);
}

const char *lkg_layer_info_text(const struct lkg_layer_info *info, size_t *ret_size)
{
        *ret_size = info->layer->size;
        return info->layer->text;
}

const char *lkg_layer_info_sha256(const struct lkg_layer_info *info)
{
        return info->layer->sha256;
}

struct lkg_layer *lkg_layer_new(const struct lkg_place *place)
{
        struct lkg_layer *layer = lkg_must(calloc(1, sizeof(*layer)));

        layer->refs = 1;
        layer->report.n_elsewhere = LKG_FINDINGS_MAX - LKG_LAYER_FINDINGS_MAX;
        layer->role = place->role;
        layer->type = place->type;
        layer->path = lkg_copy(place->path);
        layer->name = lkg_display(place->name);
        layer->file = shown_path(place);
        return layer;
}

static struct lkg_where where_of(const struct lkg_layer *layer)
{
        return (struct lkg_where){ layer->file, 0, 0 };
}

/* ---- opening ---- */

/*
 * A file that exists but cannot be used. If the finding is the same as last time, so is the layer.
 */
static struct lkg_layer *unusable(const struct lkg_place *place, struct lkg_layer *cached, unsigned code,
                                  const char *text)
{
        LKG_CLEANUP(lkg_layer_unrefp) struct lkg_layer *layer = lkg_layer_new(place);
        const struct lkg_where where = where_of(layer);

        lkg_report_add(&layer->report, LKG_ERROR, code, &where, "%s", text);
        if (cached && !cached->has_identity && lkg_report_equal(&cached->report, &layer->report))
                return lkg_layer_ref(cached);
        return LKG_STEAL(layer);
}

/*
 * The message of lkg_open_trusted(), without the name, which the finding already has, and without a final
 * full stop.
 */
static void cause_text(const struct lkg_error *err, const char *entry, char *text, size_t size)
{
        size_t n = strlen(entry), length;
        const char *message = err->message, *lead = "cannot be read: ";

        if (strncmp(message, entry, n) == 0 && strncmp(message + n, ": ", 2) == 0) {
                message += n + 2;
        } else if (strncmp(message, entry, n) == 0 && message[n] == ' ') {
                message += n + 1;
                lead = "";
        }
        (void)snprintf(text, size, "%s%s", lead, message);
        length = strlen(text);
        if (length > 0 && text[length - 1] == '.')
                text[--length] = '\0';
        if (err->code == -EACCES)
                (void)snprintf(text + length, size - length,
                               "; layers are read as root but without root's privileges, so the file must "
                               "be root's and readable by its owner, or readable by all");
}

/* Return: is there (still) an entry? */
static bool cannot_open(const struct lkg_place *place, struct lkg_layer *cached, int code,
                        const struct lkg_error *err, struct lkg_layer **ret)
{
        bool link = place->st && S_ISLNK(place->st->st_mode);
        char text[sizeof(err->message) + 200];
        struct stat st;

        /* A dangling link is an entry that stays; anything else has just been removed. */
        if (code == -ENOENT && !link &&
            (fstatat(place->dirfd, place->entry, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISLNK(st.st_mode)))
                return false;
        if (code == -ENOENT)
                (void)snprintf(text, sizeof(text), "the symlink leads nowhere; repair it or remove it");
        else
                cause_text(err, place->entry, text, sizeof(text));
        *ret = unusable(place, cached, LKG_C_UNREADABLE, text);
        return true;
}

static bool is_racy(const struct lkg_file_id *identity, int64_t now_ns)
{
        return identity->ctime_ns > now_ns - RACY_NS; /* also if the clock was set back: in the future */
}

/* ---- decoding ---- */

static void add_doc(struct lkg_layer *layer, struct lkg_value *doc)
{
        (void)lkg_need(LKG_GROW(layer->docs, layer->n_docs));
        layer->docs[layer->n_docs++] = doc;
}

static void say_of_layer(struct lkg_layer *layer, unsigned code, const char *text)
{
        struct lkg_where where = where_of(layer);

        lkg_report_add(&layer->report, LKG_ERROR, code, &where, "%s", text);
}

static void drop_docs(struct lkg_layer *layer)
{
        while (layer->n_docs > 0)
                lkg_value_unref(layer->docs[--layer->n_docs]);
}

static bool is_directive_pointer(const char *pointer)
{
        for (const char *p = strstr(pointer, "/$"); p; p = strstr(p + 1, "/$"))
                if (strncmp(p + 1, LKG_DIRECTIVE_PATCH, strlen(LKG_DIRECTIVE_PATCH)) == 0 ||
                    strncmp(p + 1, LKG_DIRECTIVE_RETAIN, strlen(LKG_DIRECTIVE_RETAIN)) == 0 ||
                    strncmp(p + 1, LKG_DIRECTIVE_DELETE, strlen(LKG_DIRECTIVE_DELETE)) == 0 ||
                    strncmp(p + 1, LKG_DIRECTIVE_ORDER, strlen(LKG_DIRECTIVE_ORDER)) == 0)
                        return true;
        return false;
}

static int warn_of_directive(const struct lkg_leaf *leaf, void *userdata)
{
        struct lkg_layer *layer = userdata;
        struct lkg_where where = { layer->file, lkg_value_line(leaf->value), lkg_value_column(leaf->value) };

        if (is_directive_pointer(leaf->pointer))
                lkg_report_add(&layer->report, LKG_WARNING, LKG_C_DIRECTIVE_IN_DROPIN, &where,
                               "a drop-in is a JSON merge patch: $patch and its kin are plain keys here; "
                               "use null to remove a field, or the instance file for directives");
        return 0;
}

/* `{{ ... }}`, `<% ... %>`, `${NAME}`: no field of a component has such a value, and in quotes it is good YAML. */
static bool is_placeholder(const char *text)
{
        const char *open = strstr(text, "{{"), *tag = strstr(text, "<%");
        size_t name =
                strncmp(text, "${", 2) == 0
                        ? strspn(text + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
                        : 0;

        return (open && strstr(open, "}}")) || (tag && strstr(tag, "%>")) ||
               (name > 0 && strcmp(text + 2 + name, "}") == 0);
}

static int warn_of_placeholder(const struct lkg_leaf *leaf, void *userdata)
{
        struct lkg_layer *layer = userdata;
        struct lkg_where where = { layer->file, lkg_value_line(leaf->value), lkg_value_column(leaf->value) };
        size_t size;

        if (lkg_value_type(leaf->value) == LKG_STRING && is_placeholder(lkg_value_text(leaf->value, &size)))
                lkg_report_add(&layer->report, LKG_WARNING, LKG_C_PLACEHOLDER, &where,
                               "the value of %.200s looks like a place in a template (Go, Helm, Jinja, "
                               "envsubst) that nobody filled in",
                               leaf->pointer);
        return 0;
}

/* A base is neither written anew nor removed: the component needs what stood in it. */
static void say_empty(struct lkg_layer *layer)
{
        bool base = layer->role == LKG_LAYER_BASE || layer->role == LKG_LAYER_REMOTE;

        say_of_layer(
                layer, LKG_C_EMPTY,
                base ? "the file is empty, or has only comments; put its content back (a backup, `lkgfs "
                       "history`)"
                     : "the file is empty, or has only comments; write at least apiVersion and kind, or "
                       "remove it");
}

/* Findings about a decoded document on its own. */
static void judge_doc(struct lkg_layer *layer, struct lkg_value *doc)
{
        struct lkg_where where = { layer->file, lkg_value_line(doc), lkg_value_column(doc) };
        enum lkg_type type = lkg_value_type(doc), want = layer->type == LKG_PATCH_JSON ? LKG_LIST : LKG_MAP;

        if (type == LKG_NULL) {
                say_empty(layer);
                drop_docs(layer);
                return;
        }
        if (lkg_is_kubeconfig(doc)) {
                /* Nothing of it may be shown, not even a duplicate key. */
                layer->kubeconfig = true;
                lkg_report_deinit(&layer->report);
                drop_docs(layer);
                return;
        }
        if (type != want) {
                lkg_report_add(&layer->report, LKG_ERROR, LKG_C_NOT_A_MAP, &where,
                               "the document is a %s; %s", lkg_type_name(type),
                               want == LKG_MAP ? "a map of fields (key: value) is wanted"
                                               : "a list of JSON patch operations is wanted");
                drop_docs(layer);
                return;
        }
        if (layer->role == LKG_LAYER_DROPIN)
                (void)lkg_value_walk(doc, warn_of_directive, layer);
        (void)lkg_value_walk(doc, warn_of_placeholder, layer);
}

static unsigned role_flags(enum lkg_layer_role role)
{
        switch (role) {
        case LKG_LAYER_DROPIN:
                return LKG_DECODE_STRICT | LKG_DECODE_UNTYPED; /* a duplicate key is fatal upstream */
        case LKG_LAYER_PATCH:
        case LKG_LAYER_INSTANCE:
                return LKG_DECODE_UNTYPED;
        case LKG_LAYER_BASE:
        case LKG_LAYER_REMOTE:
        case LKG_LAYER_MANIFEST:
                return LKG_DECODE_TWICE;
        case _LKG_LAYER_ROLE_MAX:
                break;
        }
        return 0;
}

static unsigned decode_flags(const struct lkg_layer *layer)
{
        return role_flags(layer->role) | LKG_DECODE_ADVISE;
}

/*
 * Does the component read @a after @b? A JSON base is read in its own order; one in YAML is converted to
 * JSON first, which sorts it like our maps.
 */
static bool is_read_later(const struct lkg_layer *layer, const struct lkg_value *a,
                          const struct lkg_value *b)
{
        if (layer->format != LKG_FORMAT_JSON)
                return true;
        if (lkg_value_line(a) != lkg_value_line(b))
                return lkg_value_line(a) > lkg_value_line(b);
        return lkg_value_column(a) > lkg_value_column(b);
}

/* The effective value of @name in any case: the last one that is not null, or one that is not a string. */
static struct lkg_value *header_that_counts(const struct lkg_layer *layer, const struct lkg_value *doc,
                                            const char *name)
{
        struct lkg_value *counts = NULL;

        for (size_t i = 0; i < lkg_value_size(doc); i++) {
                const char *key;
                size_t size;
                struct lkg_value *value = lkg_map_at(doc, i, &key, &size);

                if (!lkg_merge_key_folds(name, key, size) || lkg_value_type(value) == LKG_NULL)
                        continue;
                if (lkg_value_type(value) != LKG_STRING)
                        return value; /* refused, whatever follows */
                if (!counts || is_read_later(layer, value, counts))
                        counts = value;
        }
        return counts;
}

/* Sets the text of a spelling to @text; it keeps its position, for findings about it. */
static void set_spelling(struct lkg_value *doc, const char *key, size_t key_size, struct lkg_value *spelling,
                         const struct lkg_value *text)
{
        size_t size;
        const char *data = lkg_value_text(text, &size);

        (void)lkg_map_set(doc, key, key_size,
                          lkg_value_new_string(data, size, lkg_value_source_mut(spelling),
                                               lkg_value_line(spelling), lkg_value_column(spelling)));
}

/*
 * A component that reads the kind of a base accepts the names in any case, and the last one counts
 * (apimachinery, SimpleMetaFactory, with encoding/json); drop-ins are read differently. Every spelling gets
 * the effective text, because another one could be last in the order of the served document.
 */
static void fold_header(const struct lkg_layer *layer, struct lkg_value *doc, const char *name)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *kept = NULL;
        struct lkg_value *counts = header_that_counts(layer, doc, name);

        if (!counts)
                return;
        kept = lkg_value_ref(counts);
        if (lkg_map_get(doc, name) != kept)
                (void)lkg_map_set(doc, name, strlen(name), lkg_value_ref(kept));
        if (lkg_value_type(kept) != LKG_STRING)
                return;
        for (size_t i = 0; i < lkg_value_size(doc); i++) {
                const char *key;
                size_t size;
                struct lkg_value *value = lkg_map_at(doc, i, &key, &size);

                if (lkg_value_type(value) != LKG_NULL && lkg_merge_key_folds(name, key, size) &&
                    !lkg_value_equal(value, kept))
                        set_spelling(doc, key, size, value, kept);
        }
}

static void fold_headers(const struct lkg_layer *layer, struct lkg_value *doc)
{
        if ((layer->role != LKG_LAYER_BASE && layer->role != LKG_LAYER_REMOTE) ||
            lkg_value_type(doc) != LKG_MAP)
                return;
        fold_header(layer, doc, "kind");
        fold_header(layer, doc, "apiVersion");
}

static bool has_known_header(const struct lkg_value *doc)
{
        const char *kind = lkg_value_type(doc) == LKG_MAP ? lkg_map_get_string(doc, "kind") : NULL;

        return kind && lkg_map_get_string(doc, "apiVersion") &&
               (strcmp(kind, "KubeletConfiguration") == 0 || strcmp(kind, "KubeProxyConfiguration") == 0);
}

static void decode_one(struct lkg_layer *layer, const char *data, size_t size, struct lkg_source *source)
{
        struct lkg_value *doc = NULL;
        int r;

        if (layer->role == LKG_LAYER_INSTANCE) {
                r = lkg_decode_patch(data, size, decode_flags(layer), source, &layer->report, &layer->format,
                                     &doc);
        } else {
                layer->format = lkg_detect_format(data, size);
                r = lkg_decode(data, size, layer->format, decode_flags(layer), source, &layer->report, &doc);
        }
        if (r < 0)
                return; /* see the report */
        fold_headers(layer, doc);
        add_doc(layer, doc);
        if (layer->role != LKG_LAYER_MANIFEST && !has_known_header(doc))
                layer->resembles = lkg_resembles(data, size, 0, doc);
        judge_doc(layer, doc);
        if (layer->n_docs == 0 && layer->report.n_findings > 0)
                lkg_report_add_words(&layer->report, layer->report.n_findings - 1, layer->resembles);
}

/* kubeadm reports that it ignored an empty file, but does not report one with only comments. */
static void report_idle(struct lkg_layer *layer)
{
        struct lkg_where where = where_of(layer);

        lkg_report_add(&layer->report, LKG_NOTE, LKG_C_IDLE_PATCH, &where,
                       "the file holds no patch and changes nothing; write one, or remove the file");
}

/* kubeadm splits its patch files at lines that start with `---` and skips empty pieces. */
static void decode_pieces(struct lkg_layer *layer, const char *data, size_t size, struct lkg_source *source)
{
        LKG_CLEANUP(lkg_freep) char *piece = lkg_must(malloc(size + 1));
        size_t start = 0, n_pieces = 0;

        while (start < size) {
                const char *cut = memmem(data + start, size - start, "\n---", 4);
                size_t end = cut ? (size_t)(cut - data) + 1 : size;
                struct lkg_value *doc = NULL;
                enum lkg_format format;

                if (++n_pieces > PIECES_MAX) {
                        say_of_layer(layer, LKG_C_LIMIT,
                                     "more than 64 documents in one patch file; use several files");
                        drop_docs(layer);
                        return;
                }
                /*
                 * The text before the piece is blanked, so that its line numbers are those of the file.
                 */
                for (size_t i = 0; i < start; i++)
                        piece[i] = data[i] == '\n' ? '\n' : ' ';
                memcpy(piece + start, data + start, end - start);
                if (lkg_decode_patch(piece, end, decode_flags(layer), source, &layer->report, &format,
                                     &doc) < 0) {
                        drop_docs(layer);
                        return;
                }
                if (lkg_value_type(doc) == LKG_NULL) {
                        lkg_value_unref(doc);
                } else {
                        add_doc(layer, doc);
                        judge_doc(layer, doc);
                        if (layer->n_docs == 0)
                                return;
                }
                start = end;
        }
        if (layer->n_docs == 0)
                report_idle(layer);
}

static void decode(struct lkg_layer *layer, const char *data, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *shown = NULL;
        struct lkg_source *source;

        if (size == 0 && layer->role != LKG_LAYER_PATCH) {
                say_empty(layer);
                return;
        }
        shown = lkg_format("%s %s", lkg_layer_role_name(layer->role), layer->name);
        source = lkg_source_new(shown, layer->file);
        if (layer->role == LKG_LAYER_PATCH)
                decode_pieces(layer, data, size, source);
        else
                decode_one(layer, data, size, source);
        lkg_source_unref(source);
}

/* ---- paths ---- */

char *lkg_stack_form(const struct lkg_stack *stack, const char *path)
{
        const char *source = stack->config.source_path;
        size_t n = strlen(source);

        while (n > 1 && source[n - 1] == '/')
                n--;
        if (*path == '/')
                return lkg_copy(path);
        return lkg_format("%.*s%s%s", (int)(n ? n : 1), n ? source : ".",
                          n && source[n - 1] == '/' ? "" : "/", path);
}

/* Outside the source directory only the administrator controls what is read. */
const struct lkg_bounds *lkg_stack_bounds(const struct lkg_stack *stack, const char *full)
{
        return stack->config.links_beneath && lkg_path_below(full, stack->config.source_path)
                       ? &stack->bounds
                       : NULL;
}

char *lkg_stack_tree_form(const struct lkg_stack *stack, const char *path)
{
        char *full = lkg_stack_form(stack, path);

        for (size_t n = strlen(full); n > 1 && full[n - 1] == '/'; n--)
                full[n - 1] = '\0';
        return full;
}

/* ---- loading ---- */

int lkg_layer_admit(const struct lkg_stack *stack, const struct lkg_layer *layer, char **ret_why)
{
        const struct lkg_content content = { LKG_ADMIT_LAYER, layer->file, layer->sha256, layer->size };

        return lkg_admit(&stack->admission, &content, ret_why);
}

/*
 * May @layer be decoded? If not, with a finding. A refused layer may be admitted later (a command, an upgrade) without a change
 * of the file, so it is always read again.
 */
static bool ask(const struct lkg_stack *stack, struct lkg_layer *layer)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;

        layer->refused = lkg_layer_admit(stack, layer, &why) < 0;
        if (layer->refused) {
                layer->racy = true;
                say_of_layer(layer, LKG_C_POISON, why ? why : "not admitted");
        }
        return !layer->refused;
}

/*
 * Is the content the same as that of @cached? A layer that was not admitted must be checked again: the
 * result must be the same, too.
 */
static bool still_the_same(const struct lkg_layer *cached, const struct lkg_layer *layer)
{
        return cached && cached->refused && strcmp(cached->sha256, layer->sha256) == 0 &&
               lkg_report_equal(&cached->report, &layer->report);
}

/*
 * A copy of a document that lkgfs served, without the mark of fallback copies: it is already merged. A
 * program that processed it may have added empty lines, a document marker or comments before its first line.
 */
static bool is_generated(const char *data, size_t size)
{
        static const char line[] = "# " LKG_GENERATED_BY;
        const char *p = data, *end = data + size;

        if (size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
                p += 3;
        while (p < end) {
                if (memchr(" \t\r\n-", *p, 5)) {
                        p++;
                        continue;
                }
                if (*p != '#')
                        return false;
                if ((size_t)(end - p) >= sizeof(line) - 1 && memcmp(p, line, sizeof(line) - 1) == 0)
                        return true;
                p = memchr(p, '\n', (size_t)(end - p));
                if (!p)
                        return false;
        }
        return false;
}

static void refuse_generated(struct lkg_layer *layer)
{
        say_of_layer(
                layer, LKG_C_GENERATED,
                "this is what lkgfs generated (a backup restored without extended attributes, a copy of the "
                "view?) and no base: put the base back; or, if it is to be the base, remove its line "
                "'# " LKG_GENERATED_BY "...' and the drop-ins that it already has in it");
}

/* Can the file have changed without a change of the identity that was recorded before it was read? */
static bool proves_nothing(const struct lkg_stack *stack, int fd, const struct lkg_file_id *identity)
{
        struct lkg_file_id after;
        struct stat again;

        if (fstat(fd, &again) < 0)
                return true;
        lkg_file_id_from_stat(&again, &after);
        return is_racy(identity, (int64_t)stack->config.realtime_ns()) ||
               !lkg_file_id_equal(identity, &after);
}

/*
 * inotify reports a change in place to the directory of the name that the writer used: not to ours if that is another hard link,
 * or a file that is mounted over ours. (Sources: inotify(7), "Limitations and caveats"; statx(2), STATX_ATTR_MOUNT_ROOT.)
 */
static bool has_other_names(int fd, const struct stat *st)
{
        struct statx x;

        return st->st_nlink > 1 || (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &x) == 0 &&
                                    x.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* A change between the read and the query would be missed. Return: as cannot_open(). */
static bool read_layer(struct lkg_stack *stack, const struct lkg_place *place, int fd, const struct stat *st,
                       struct lkg_layer *cached, struct lkg_layer **ret)
{
        LKG_CLEANUP(lkg_layer_unrefp) struct lkg_layer *layer = NULL;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_file_id identity;
        struct lkg_error err = { 0 };
        char sha256[LKG_SHA256_HEX];
        size_t size = 0;
        int r;

        lkg_file_id_from_stat(st, &identity);
        stack->stats.n_reads++;
        r = lkg_read_file(fd, LKG_DOC_BYTES_MAX, &data, &size, &err);
        if (r == -EFBIG) {
                *ret = unusable(place, cached, LKG_C_TOO_BIG,
                                "the file has more than 4194304 bytes; a layer is a small text file");
                return true;
        }
        if (r < 0)
                return cannot_open(place, cached, r == -ENOENT ? -EIO : r, &err, ret);
        lkg_admit_finished(&stack->admission);
        (void)lkg_need(lkg_sha256_hex(data, size, sha256));
        if (cached && cached->has_identity && !cached->refused && strcmp(cached->sha256, sha256) == 0) {
                cached->identity = identity;
                cached->other_names = has_other_names(fd, st);
                cached->racy = proves_nothing(stack, fd, &identity);
                *ret = lkg_layer_ref(cached);
                return true;
        }
        layer = lkg_layer_new(place);
        layer->has_identity = true;
        layer->identity = identity;
        layer->other_names = has_other_names(fd, st);
        layer->size = size;
        memcpy(layer->sha256, sha256, sizeof(sha256));
        if (ask(stack, layer)) {
                layer->racy = proves_nothing(stack, fd, &identity);
                stack->stats.n_parses++;
                if (place->role == LKG_LAYER_BASE && stack->config.refuse_generated &&
                    is_generated(data, size))
                        refuse_generated(layer);
                else
                        decode(layer, data, size);
                if (place->role == LKG_LAYER_MANIFEST)
                        layer->text = LKG_STEAL(data);
        }
        *ret = still_the_same(cached, layer) ? lkg_layer_ref(cached) : LKG_STEAL(layer);
        return true;
}

static bool is_unchanged(const struct lkg_layer *cached, const struct stat *st)
{
        struct lkg_file_id identity;

        if (!cached || !cached->has_identity || cached->racy)
                return false;
        lkg_file_id_from_stat(st, &identity);
        return lkg_file_id_equal(&cached->identity, &identity);
}

/* May the file be opened? Whoever looks at opens (fanotify(7)) can end an engine there, before anything is known of the content. */
static bool ask_to_read(const struct lkg_stack *stack, const struct lkg_place *place, char **ret_why)
{
        LKG_CLEANUP(lkg_freep) char *file = NULL;
        char sha256[LKG_SHA256_HEX];
        struct lkg_content content = { LKG_ADMIT_READ, NULL, sha256, 0 };
        struct lkg_file_id identity = { 0 };
        struct stat st;

        *ret_why = NULL;
        if (!stack->admission.admit)
                return true;
        if (place->st || fstatat(place->dirfd, place->entry, &st, AT_SYMLINK_NOFOLLOW) == 0)
                lkg_file_id_from_stat(place->st ? place->st : &st, &identity);
        content.file = file = shown_path(place);
        (void)lkg_need(lkg_sha256_hex(&identity, sizeof(identity), sha256));
        return lkg_admit(&stack->admission, &content, ret_why) == 0;
}

static bool open_and_read(struct lkg_stack *stack, const struct lkg_place *place, struct lkg_layer *cached,
                          struct lkg_layer **ret)
{
        const struct lkg_bounds *bounds = lkg_stack_bounds(stack, place->path);
        struct lkg_error err = { 0 };
        struct stat st;
        int fd = lkg_open_beneath(bounds, place->dirfd, place->entry,
                                  bounds ? lkg_path_below(place->path, bounds->path) : place->entry, &st,
                                  &err);

        if (fd < 0)
                return cannot_open(place, cached, fd, &err, ret);
        lkg_close(stack->last_fd);
        stack->last_fd = fd;
        if (place->role == LKG_LAYER_BASE && lkg_fallback_is_copy(fd)) {
                *ret = NULL; /* our own fallback copy: never a source */
                return true;
        }
        if (is_unchanged(cached, &st)) {
                *ret = lkg_layer_ref(cached);
                return true;
        }
        return read_layer(stack, place, fd, &st, cached, ret);
}

bool lkg_layer_load(struct lkg_stack *stack, const struct lkg_place *place, struct lkg_layer *cached,
                    struct lkg_layer **ret)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        bool there;

        if (cached && cached->type != place->type)
                cached = NULL;
        *ret = NULL;
        if (place->st && S_ISREG(place->st->st_mode) && is_unchanged(cached, place->st)) {
                *ret = lkg_layer_ref(cached);
                return true;
        }
        if (!ask_to_read(stack, place, &why)) {
                *ret = unusable(place, cached, LKG_C_POISON, why ? why : "not admitted");
                return true;
        }
        there = open_and_read(stack, place, cached, ret);
        lkg_admit_finished(&stack->admission);
        return there;
}

/* ---- documents in memory ---- */

static void take_out(struct lkg_value *doc, const char *const *names)
{
        for (size_t i = 0; names && names[i] && lkg_value_type(doc) == LKG_MAP; i++)
                if (lkg_map_get(doc, names[i]))
                        (void)lkg_map_remove(doc, names[i], strlen(names[i]));
}

struct lkg_layer *lkg_layer_from_memory(struct lkg_stack *stack, const struct lkg_stack_remote *remote,
                                        struct lkg_layer *cached)
{
        const struct lkg_place place = {
                .role = LKG_LAYER_REMOTE, .type = LKG_PATCH_BASE, .path = "", .name = remote->name
        };
        const char *base = stack->config.base;
        const char *text = remote->fault ? remote->fault : remote->text;
        size_t size = remote->fault ? strlen(text) : remote->size;
        LKG_CLEANUP(lkg_layer_unrefp) struct lkg_layer *layer = NULL;
        char sha256[LKG_SHA256_HEX];

        (void)lkg_need(lkg_sha256_hex(text, size, sha256));
        if (cached && !cached->refused && strcmp(cached->sha256, sha256) == 0 &&
            strcmp(cached->file, remote->file) == 0)
                return lkg_layer_ref(cached);
        layer = lkg_layer_new(&place);
        layer->size = size;
        memcpy(layer->sha256, sha256, sizeof(sha256));
        free(layer->file);
        layer->file = lkg_display(remote->file);
        layer->beside = *base ? lkg_stack_form(stack, base) : NULL;
        if (remote->fault) {
                say_of_layer(layer, LKG_C_UNREADABLE, remote->fault);
        } else if (ask(stack, layer)) {
                stack->stats.n_parses++;
                decode(layer, text, size);
        }
        if (layer->n_docs > 0)
                take_out(layer->docs[0], remote->hidden);
        return !remote->fault && still_the_same(cached, layer) ? lkg_layer_ref(cached) : LKG_STEAL(layer);
}

bool lkg_is_kubeconfig(const struct lkg_value *doc)
{
        static const char *const members[] = { "clusters", "users", "contexts" };
        const char *kind;

        if (!doc || lkg_value_type(doc) != LKG_MAP)
                return false;
        kind = lkg_map_get_string(doc, "kind");
        if (kind && strcmp(kind, "Config") == 0)
                return true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(members); i++)
                if (lkg_map_get(doc, members[i]))
                        return true;
        return false;
}
