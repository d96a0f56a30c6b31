/* SPDX-License-Identifier: Apache-2.0 */
/* Structured output is a value tree, too: one renderer makes both its JSON and its YAML. */
#include "tool.h"

#define SCHEMA_VERSION 1

/* ---- memory ---- */

static struct {
        void **items;
        size_t n, n_allocated;
} kept;

/* Those that are in no other one yet, which are few. */
static struct {
        struct lkg_value **items;
        size_t n, n_allocated;
} owned;

void *lkg_tool_keep(void *p)
{
        (void)lkg_must(p);
        (void)lkg_need(LKG_RESERVE(kept.items, kept.n, kept.n_allocated));
        return kept.items[kept.n++] = p;
}

struct lkg_value *lkg_tool_own(struct lkg_value *value)
{
        if (!value)
                return NULL;
        (void)lkg_need(LKG_RESERVE(owned.items, owned.n, owned.n_allocated));
        return owned.items[owned.n++] = value;
}

/* For the place that @value is put into: the first one gets what was owned here, any other one a reference of its own. */
static struct lkg_value *give(struct lkg_value *value)
{
        for (size_t i = owned.n; i > 0; i--)
                if (owned.items[i - 1] == value) {
                        owned.items[i - 1] = owned.items[--owned.n];
                        return value;
                }
        return lkg_value_ref(value);
}

size_t lkg_tool_kept(void)
{
        return kept.n;
}

void lkg_tool_let_go(size_t n)
{
        while (kept.n > n)
                free(kept.items[--kept.n]);
        while (owned.n > 0)
                lkg_value_unref(owned.items[--owned.n]);
}

void *lkg_tool_grow(void *items, size_t n, size_t size)
{
        void *ret = items;

        if ((n & (n - 1)) == 0) { /* it is full */
                ret = lkg_tool_keep(calloc(n ? 2 * n : 1, size));
                if (n)
                        memcpy(ret, items, n * size);
        }
        return ret;
}

char *lkg_tool_vformat(const char *fmt, va_list ap)
{
        return lkg_tool_keep(lkg_vformat(fmt, ap));
}

char *lkg_tool_take(struct lkg_buf *buf)
{
        (void)lkg_buf_text(buf);
        return lkg_tool_keep(lkg_buf_steal(buf, NULL));
}

char *lkg_tool_cut(const char *text, size_t size)
{
        return lkg_tool_keep(strndup(text, size));
}

int lkg_tool_read(int fd, size_t max, char **ret, size_t *ret_size)
{
        int r = lkg_need(lkg_read_file(fd, max, ret, ret_size, NULL));

        if (r == 0)
                (void)lkg_tool_keep(*ret);
        return r;
}

char *lkg_tool_format(const char *fmt, ...)
{
        char *text;
        va_list ap;

        va_start(ap, fmt);
        text = lkg_tool_vformat(fmt, ap);
        va_end(ap);
        return text;
}

/* ---- words ---- */

void lkg_tool_add_word(struct lkg_strings *words, const char *word)
{
        words->items = lkg_tool_grow(words->items, words->n_items, sizeof(*words->items));
        words->items[words->n_items++] = lkg_tool_cut(word, strlen(word));
}

bool lkg_tool_has_word(const struct lkg_strings *words, const char *word)
{
        for (size_t i = 0; i < words->n_items; i++)
                if (strcmp(words->items[i], word) == 0)
                        return true;
        return false;
}

char *lkg_tool_join(const struct lkg_strings *words)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        for (size_t i = 0; i < words->n_items; i++)
                lkg_buf_printf(&buf, "%s%s", i ? ", " : "", words->items[i]);
        return lkg_tool_take(&buf);
}

/* Generations, the newest first; other names as they sort. */
static int by_number_then_name(const void *a, const void *b)
{
        const char *x = *(char *const *)a, *y = *(char *const *)b;
        char *x_end, *y_end;
        unsigned long long m = strtoull(x, &x_end, 10), n = strtoull(y, &y_end, 10);

        return *x_end || *y_end || m == n ? strcmp(x, y) : m > n ? -1 : 1;
}

void lkg_tool_sort(struct lkg_strings *names)
{
        if (names->n_items > 1)
                qsort(names->items, names->n_items, sizeof(*names->items), by_number_then_name);
}

int lkg_tool_names(int dirfd, const char *path, unsigned char type, struct lkg_strings *ret)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(dirfd, path);
        const struct dirent *e;

        if (!dir)
                return lkg_need(-errno);
        while ((e = lkg_dir_next(dir, NULL)))
                if (type == DT_UNKNOWN || e->d_type == type || e->d_type == DT_UNKNOWN)
                        lkg_tool_add_word(ret, e->d_name);
        lkg_tool_sort(ret);
        return 0;
}

/* ---- building ---- */

struct lkg_value *lkg_tool_map(void)
{
        return lkg_tool_own(lkg_must(lkg_value_new_map(NULL, 0, 0)));
}

struct lkg_value *lkg_tool_list(void)
{
        return lkg_tool_own(lkg_must(lkg_value_new_list(NULL, 0, 0)));
}

void lkg_tool_map_value(struct lkg_value *map, const char *key, struct lkg_value *value)
{
        (void)lkg_map_set(map, key, strlen(key), give(value));
}

void lkg_tool_append(struct lkg_value *list, struct lkg_value *item)
{
        lkg_list_append(list, give(item));
}

struct lkg_value *lkg_tool_document(void)
{
        struct lkg_value *map = lkg_tool_map();

        lkg_tool_map_number(map, "schemaVersion", SCHEMA_VERSION);
        return map;
}

struct lkg_value *lkg_tool_string(const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_utf8(&buf, text, strlen(text)); /* a file may have any name */
        (void)lkg_buf_text(&buf);
        return lkg_tool_own(lkg_must(lkg_value_new_string(buf.data, buf.size, NULL, 0, 0)));
}

struct lkg_value *lkg_tool_number(uint64_t number)
{
        char text[24];

        (void)snprintf(text, sizeof(text), "%" PRIu64, number);
        return lkg_tool_own(lkg_must(lkg_value_new_number(text, NULL, 0, 0)));
}

struct lkg_value *lkg_tool_bool(bool b)
{
        return lkg_tool_own(lkg_must(lkg_value_new_bool(b, NULL, 0, 0)));
}

struct lkg_value *lkg_tool_map_of(const char *key, ...)
{
        struct lkg_value *map = lkg_tool_map(), *value;
        va_list ap;

        va_start(ap, key);
        for (; key; key = va_arg(ap, const char *)) {
                value = va_arg(ap, struct lkg_value *);
                if (value)
                        lkg_tool_map_value(map, key, value);
        }
        va_end(ap);
        return map;
}

void lkg_tool_map_string(struct lkg_value *map, const char *key, const char *text)
{
        if (text)
                lkg_tool_map_value(map, key, lkg_tool_string(text));
}

struct lkg_value *lkg_tool_texts(struct lkg_value *map, const char *key, ...)
{
        va_list ap;

        va_start(ap, key);
        for (; key; key = va_arg(ap, const char *))
                lkg_tool_map_string(map, key, va_arg(ap, const char *));
        va_end(ap);
        return map;
}

struct lkg_value *lkg_tool_bools(struct lkg_value *map, const char *key, ...)
{
        va_list ap;

        va_start(ap, key);
        for (; key; key = va_arg(ap, const char *))
                lkg_tool_map_bool(map, key, va_arg(ap, int));
        va_end(ap);
        return map;
}

struct lkg_value *lkg_tool_map_list(struct lkg_value *map, const char *key)
{
        struct lkg_value *list = lkg_tool_list();

        lkg_tool_map_value(map, key, list);
        return list;
}

void lkg_tool_map_number(struct lkg_value *map, const char *key, uint64_t number)
{
        lkg_tool_map_value(map, key, lkg_tool_number(number));
}

void lkg_tool_map_bool(struct lkg_value *map, const char *key, bool b)
{
        lkg_tool_map_value(map, key, lkg_tool_bool(b));
}

void lkg_tool_map_members(struct lkg_value *map, const struct lkg_value *from,
                          const struct lkg_tool_member *members, size_t n)
{
        uint64_t number;

        for (size_t i = 0; i < n; i++)
                if (!members[i].number)
                        lkg_tool_map_string(map, members[i].name, lkg_map_get_string(from, members[i].key));
                else if (lkg_record_parse_u64(lkg_tool_word(from, members[i].key), &number) == 0)
                        lkg_tool_map_number(map, members[i].name, number);
}

bool lkg_tool_structured(const struct lkg_tool *tool)
{
        return tool->options.format == LKG_TOOL_JSON || tool->options.format == LKG_TOOL_YAML;
}

int lkg_tool_print_listed(const struct lkg_tool *tool, const struct lkg_view *view, const char *key,
                          struct lkg_value *list, int status)
{
        struct lkg_value *map = lkg_tool_document();

        if (view)
                lkg_tool_map_string(map, "component", view->component);
        lkg_tool_map_value(map, key, list);
        return lkg_tool_print_map(tool, map, status);
}

/* ---- reading ---- */

const char *lkg_tool_word(const struct lkg_value *map, const char *key)
{
        const char *text = map ? lkg_map_get_string(map, key) : NULL;

        return text ? text : "";
}

size_t lkg_tool_items(const struct lkg_value *map, const char *key, const struct lkg_value **ret)
{
        *ret = map ? lkg_map_get(map, key) : NULL;
        return *ret && lkg_value_type(*ret) == LKG_LIST ? lkg_value_size(*ret) : 0;
}

struct lkg_value *lkg_tool_item(const struct lkg_value *map, const char *key, size_t i)
{
        const struct lkg_value *list;

        return i < lkg_tool_items(map, key, &list) ? lkg_list_get(list, i) : NULL;
}

bool lkg_tool_next_line(const char **text, const char **ret, size_t *ret_size)
{
        if (!**text)
                return false;
        *ret = *text;
        *ret_size = strcspn(*text, "\n");
        *text += *ret_size + ((*text)[*ret_size] != '\0');
        return true;
}

struct lkg_value *lkg_tool_pairs(const char *text)
{
        struct lkg_value *map = lkg_tool_map();
        const char *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                char *key = lkg_tool_cut(line, size);
                char *value = strchr(key, '=');

                if (!value || !value[1])
                        continue;
                *value++ = '\0';
                if (!lkg_map_get(map, key))
                        lkg_tool_map_string(map, key, value);
        }
        return map;
}

struct lkg_value *lkg_tool_rows(const char *text, const char *const *keys, size_t n, size_t n_min)
{
        struct lkg_value *list = lkg_tool_list();
        const char *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                char *copy = lkg_tool_cut(line, size);
                struct lkg_value *item;
                char *rest = copy;

                if (lkg_span_count(lkg_span(line, size), '\t') + 1 < n_min)
                        continue;
                item = lkg_tool_map();
                for (size_t i = 0; i < n && rest; i++)
                        lkg_tool_map_string(item, keys[i], i + 1 < n ? strsep(&rest, "\t") : rest);
                lkg_tool_append(list, item);
        }
        return list;
}

struct lkg_value *lkg_tool_decode(const char *text)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        (void)lkg_need(lkg_decode_json(text, strlen(text), 0, NULL, &ignored, &value));
        return lkg_tool_own(value);
}

/* The last line of the file may be a comment that counts those left out: it has no columns. */
struct lkg_value *lkg_tool_origins(const char *text)
{
        static const char *const keys[] = { "field", "value", "layer", "where", "shadows" };
        struct lkg_value *rows = lkg_tool_rows(text, keys, LKG_ARRAY_SIZE(keys), 3);

        for (size_t i = 0; i < lkg_value_size(rows); i++) {
                struct lkg_value *row = lkg_list_get(rows, i),
                                 *value = lkg_tool_decode(lkg_tool_word(row, "value"));

                if (value)
                        lkg_tool_map_value(row, "value", value);
                if (!*lkg_tool_word(row, "shadows"))
                        (void)lkg_map_remove(row, "shadows", strlen("shadows"));
        }
        return rows;
}

/* ---- findings ---- */

const struct lkg_finding_kind *lkg_finding_kind(unsigned code)
{
        for (size_t i = 0; i < lkg_n_finding_kinds; i++)
                if (lkg_finding_kinds[i].code == code)
                        return &lkg_finding_kinds[i];
        return NULL;
}

struct lkg_value *lkg_tool_findings_value(const struct lkg_report *report,
                                          const char *(*class_of)(const struct lkg_finding *finding))
{
        struct lkg_value *list = lkg_tool_list();

        for (size_t i = 0; i < report->n_findings; i++) {
                const struct lkg_finding *f = &report->findings[i];
                struct lkg_value *item = lkg_tool_texts(
                        lkg_tool_map(), "severity", lkg_severity_name(f->severity), "class",
                        class_of ? class_of(f) : NULL, "text", f->text, "file", f->file, NULL);

                lkg_tool_map_string(item, "code", lkg_tool_format("LKG%04u", f->code));
                if (f->file && f->line) {
                        lkg_tool_map_number(item, "line", f->line);
                        lkg_tool_map_number(item, "column", f->column ? f->column : 1);
                }
                lkg_tool_append(list, item);
        }
        return list;
}

enum lkg_severity lkg_tool_severity(const char *name)
{
        unsigned s = LKG_ERROR;

        while (s < LKG_NOTE && strcmp(name, lkg_severity_name((enum lkg_severity)s)) != 0)
                s++;
        return (enum lkg_severity)s;
}
