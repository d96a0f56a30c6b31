/* SPDX-License-Identifier: Apache-2.0 */
/* `refused` and `judged` in the state directory: see lkg/store.h. */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg-config.h>
#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/base.h>
#include <lkg/documents.h>

#include "poison-internal.h"
#include "store-internal.h"

#define SCHEMA    1u
#define KEY_CHARS (2 * LKG_JUDGING_KEY)
#define LINE      (KEY_CHARS + 1) /* of `judged` */
#define LINES_MAX (2u * LKG_JUDGING_KNOWN)

/* An item of `refused`, as it is on disk. */
struct stored {
        struct lkg_refused refused;
        char key[LINE];
};

#define REFUSED(member) LKG_MEMBER(struct stored, refused.member)

static const char *const end_names[] = {
        [LKG_END_UNKNOWN] = "unknown", [LKG_END_SIGNAL] = "signal", [LKG_END_EXIT] = "exit",
        [LKG_END_TIME] = "time",       [LKG_END_MEMORY] = "memory", NULL,
};
static const struct lkg_record_row refused_rows[] = {
        { "key", LKG_RECORD_FOREIGN, LKG_MEMBER(struct stored, key) },
        { "component", LKG_RECORD_FOREIGN, REFUSED(component) },
        { "file", LKG_RECORD_FOREIGN, REFUSED(file) },
        { "sha256", LKG_RECORD_FOREIGN, REFUSED(sha256) },
        { "what", LKG_RECORD_NUMBER, REFUSED(what), .optional = true, .max = _LKG_ADMIT_MAX - 1 },
        { "end", LKG_RECORD_WORD, REFUSED(end), .optional = true, .words = end_names },
        { "status", LKG_RECORD_NUMBER, REFUSED(status), .optional = true, .max = UINT16_MAX },
        { "timeNs", LKG_RECORD_NUMBER, REFUSED(time_ns), .optional = true },
        { "new", LKG_RECORD_NUMBER, REFUSED(n_new), .optional = true, .max = UINT16_MAX },
        { "layers", LKG_RECORD_FOREIGN, REFUSED(layers), .optional = true }, /* of a later 0.1.0 */
        { "source", LKG_RECORD_FOREIGN, REFUSED(source) },
        { NULL },
};

/* ---- keys as text ---- */

static void format_key(const struct lkg_judging_key *key, char ret[static LINE])
{
        for (size_t i = 0; i < LKG_JUDGING_KEY; i++)
                (void)snprintf(ret + 2 * i, 3, "%02x", key->bytes[i]);
}

static bool parse_key(const char *text, struct lkg_judging_key *ret)
{
        if (strspn(text, "0123456789abcdef") < KEY_CHARS)
                return false;
        for (size_t i = 0; i < LKG_JUDGING_KEY; i++)
                ret->bytes[i] =
                        (unsigned char)(lkg_hex_digit(text[2 * i]) << 4 | lkg_hex_digit(text[2 * i + 1]));
        return true;
}

/* ---- refused ---- */

static bool read_item(const struct lkg_value *map, struct lkg_refused *ret)
{
        struct stored stored = { .refused = { .n_new = 1 } };

        if (lkg_value_type(map) != LKG_MAP ||
            !lkg_record_get(&(struct lkg_fields){ .map = map }, refused_rows, &stored) ||
            strlen(stored.key) != KEY_CHARS || !parse_key(stored.key, &stored.refused.key))
                return false;
        *ret = stored.refused;
        return true;
}

int lkg_poison_load(struct lkg_poison *poison, struct lkg_report *report)
{
        const struct lkg_where where = { .file = LKG_REFUSED_NAME };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        const struct lkg_value *list;
        struct lkg_error err = { 0 };
        const char *version;
        int r = lkg_record_read(poison->state_fd, LKG_REFUSED_NAME, &doc, &err);

        if (r == -ENOENT || r == -ENOMEM)
                return r == -ENOENT ? 0 : r;
        list = r < 0 ? NULL : lkg_map_get(doc, "refused");
        if (!list || lkg_value_type(list) != LKG_LIST) {
                lkg_report_add(report, LKG_WARNING, 4005, &where, "cannot be read, going on without it: %s",
                               r < 0 ? err.message : "there is no list in it");
                return 0;
        }
        version = lkg_map_get_string(doc, "lkgfs");
        for (size_t i = 0; i < lkg_value_size(list); i++) {
                struct lkg_refused refused;

                if (!read_item(lkg_list_get(list, i), &refused))
                        continue;
                refused.lifted = !version || strcmp(version, LKG_VERSION) != 0;
                if (refused.lifted && !*refused.source)
                        continue;
                lkg_poison_add(poison, &refused);
        }
        poison->unsaved = false;
        return 0;
}

static void put_item(struct lkg_json *json, const struct lkg_refused *refused)
{
        struct stored stored = { .refused = *refused };

        format_key(&refused->key, stored.key);
        lkg_json_map(json, NULL, LKG_JSON_ROW);
        lkg_record_put(json, refused_rows, &stored);
        lkg_json_end(json);
}

static int render_refused(const struct lkg_poison *poison, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_PRETTY);
        lkg_json_u64(&json, "schemaVersion", SCHEMA);
        lkg_json_text(&json, "lkgfs", LKG_VERSION);
        lkg_json_list(&json, "refused", LKG_JSON_AROUND);
        for (size_t i = 0; i < poison->n_items; i++)
                put_item(&json, &poison->items[i]);
        lkg_json_end(&json);
        lkg_json_end(&json);
        return lkg_json_write_line(&json, buf);
}

int lkg_poison_save(struct lkg_poison *poison, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r;

        if (!poison->unsaved)
                return 0;
        r = render_refused(poison, &buf);
        r = r < 0 ? lkg_error_set(err, r, NULL, "what is refused")
                  : lkg_write_file_atomic(poison->state_fd, LKG_REFUSED_NAME, buf.data, buf.size, 0600,
                                          /* durable= */ true, err);
        if (r >= 0)
                poison->unsaved = false;
        return r;
}

/* ---- judged ---- */

/*
 * Lines are only appended, without a flush: after a power cut, the messages of the next crash are only less exact. A torn line,
 * or any other text, is not a key.
 */
void lkg_poison_load_judged(struct lkg_poison *poison)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_judging_key key;
        struct lkg_error err = { 0 };
        size_t size;

        if (lkg_record_read_text(poison->state_fd, LKG_JUDGED_NAME, (size_t)(LINES_MAX + 1) * LINE, &text,
                                 &size, &err) < 0)
                return;
        for (const char *line = text; line + LINE <= text + size;) {
                const char *end = memchr(line, '\n', (size_t)(text + size - line));

                if (!end)
                        break;
                if (end - line == KEY_CHARS && parse_key(line, &key))
                        lkg_judging_learn(poison->note, &key);
                line = end + 1;
        }
        poison->note->n_saved = atomic_load(&poison->note->n_known);
}

static void append_keys(const struct lkg_judging *note, uint64_t from, uint64_t to, struct lkg_buf *buf)
{
        char line[LINE + 1];

        for (uint64_t i = from; i < to; i++) {
                format_key(&note->known[i % LKG_JUDGING_KNOWN], line);
                lkg_buf_puts(buf, line);
                lkg_buf_putc(buf, '\n');
        }
}

/* Replaces a file that has grown too long by what is known now. */
static int rewrite(const struct lkg_poison *poison, uint64_t from, uint64_t to, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        append_keys(poison->note, from, to, &buf);
        return lkg_write_file_atomic(poison->state_fd, LKG_JUDGED_NAME, buf.data, buf.size, 0600,
                                     /* durable= */ false, err);
}

static int append(const struct lkg_poison *poison, uint64_t from, uint64_t to, bool *ret_full,
                  struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(poison->state_fd, LKG_JUDGED_NAME,
                        O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return lkg_error_set(err, -errno, NULL, LKG_JUDGED_NAME);
        *ret_full = !S_ISREG(st.st_mode) || (uint64_t)st.st_size / LINE + (to - from) > LINES_MAX;
        if (*ret_full)
                return 0;
        if (st.st_size % LINE) /* the last line is torn */
                lkg_buf_putc(&buf, '\n');
        append_keys(poison->note, from, to, &buf);
        r = lkg_write_all(fd, buf.data, buf.size);
        return r < 0 ? lkg_error_set(err, r, NULL, LKG_JUDGED_NAME) : 0;
}

int lkg_poison_save_judged(struct lkg_poison *poison, struct lkg_error *err)
{
        uint64_t to, oldest, from;
        bool full = false;
        int r;

        if (!poison->note)
                return 0;
        to = atomic_load(&poison->note->n_known);
        if (poison->note->n_saved == to)
                return 0;
        oldest = to > LKG_JUDGING_KNOWN ? to - LKG_JUDGING_KNOWN : 0;
        from = poison->note->n_saved > oldest && poison->note->n_saved < to ? poison->note->n_saved : oldest;
        r = append(poison, from, to, &full, err);
        if (r >= 0 && full)
                r = rewrite(poison, oldest, to, err);
        if (r >= 0)
                poison->note->n_saved = to;
        return r;
}
