/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of a publication: parsing with every count and field checked (the file server must not trust even the
 * engine, which reads untrusted documents), and formatting. Grammar: include/lkg/publication.h.
 */
#include <inttypes.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/publication.h>

#define FIELDS_MAX 13

struct parser {
        struct lkg_publication *pub;
        size_t n_lines; /* a limit for the entries, so that their array is allocated once */
        size_t n_entries_allocated, n_rules_allocated;
        unsigned line;
        bool ended;
        struct lkg_error *err;
};

static int bad(struct parser *p, const char *what)
{
        return lkg_error_set(p->err, -EBADMSG, NULL, "manifest, line %u: %s.", p->line, what);
}

static int no_memory(struct parser *p)
{
        return lkg_error_set(p->err, -ENOMEM, NULL, "manifest, line %u", p->line);
}

static int parse_u64(const char *text, unsigned base, uint64_t max, uint64_t *ret)
{
        uint64_t n = 0;

        if (!*text)
                return -EBADMSG;
        for (; *text; text++) { /* done by hand: a manifest of a thousand layers has ten thousand numbers */
                unsigned digit = (unsigned)(*text - '0');

                if (*text < '0' || digit >= base || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
                    __builtin_add_overflow(n, (uint64_t)digit, &n))
                        return -EBADMSG;
        }
        if (n > max)
                return -EBADMSG;
        *ret = n;
        return 0;
}

static int parse_i64(const char *text, int64_t *ret)
{
        bool negative = *text == '-';
        uint64_t n;

        if (parse_u64(text + negative, 10, INT64_MAX, &n) < 0)
                return -EBADMSG;
        *ret = negative ? -(int64_t)n : (int64_t)n;
        return 0;
}

/* A path is relative, normalised and stays inside: no empty, "." or ".." components. */
static bool path_ok(const char *path)
{
        const char *part = path, *p = path;

        for (;; p++) {
                size_t n = (size_t)(p - part);

                if (*p && *p != '/')
                        continue;
                if (n == 0 || n > NAME_MAX || (n == 1 && part[0] == '.') ||
                    (n == 2 && part[0] == '.' && part[1] == '.'))
                        return false;
                if (!*p)
                        return (size_t)(p - path) < PATH_MAX;
                part = p + 1;
        }
}

static bool is_path(char *text)
{
        return lkg_unescape(text) >= 0 && path_ok(text);
}

/* @text may be `-`, for none, if @ret_none allows it. */
static bool is_component(const struct parser *p, const char *text, bool or_none, unsigned *ret)
{
        uint64_t n = UINT_MAX;

        if ((!or_none || strcmp(text, "-") != 0) &&
            (parse_u64(text, 10, LKG_COMPONENTS_MAX, &n) < 0 || n >= p->pub->n_components))
                return false;
        *ret = (unsigned)n;
        return true;
}

/* ---- entries ---- */

/* What stands in a line about an entry, after its word. */
enum field {
        END,
        PATH,
        MODE,
        UID,
        GID,
        MTIME,
        SIZE,
        SHA256,
        FLAGS,
        INDEX,
        INDEX_OR_NONE,
        GENERATION,
        COMMAND,
        UNUSED
};

static const char *const field_names[] = {
        [PATH] = "not a relative path",
        [MODE] = "not a mode",
        [UID] = "not a uid",
        [GID] = "not a gid",
        [MTIME] = "not a time",
        [SIZE] = "not a size",
        [SHA256] = "not a SHA-256",
        [FLAGS] = "not flags",
        [INDEX] = "not a component",
        [INDEX_OR_NONE] = "not a component or -",
        [GENERATION] = "not a generation",
        [COMMAND] = "not a command",
};

#define OWNED PATH, MODE, UID, GID
static const struct entry_row {
        const char *word;
        enum lkg_entry_type type;
        enum field fields[FIELDS_MAX];
} entry_rows[] = {
        { "file", LKG_ENTRY_FILE, { OWNED, MTIME, SIZE, SHA256, FLAGS, INDEX_OR_NONE, GENERATION } },
        { "rendered", LKG_ENTRY_RENDERED, { OWNED, INDEX } },
        { "dir", LKG_ENTRY_DIR, { OWNED, MTIME } },
        { "control", LKG_ENTRY_CONTROL, { OWNED, INDEX_OR_NONE, COMMAND } },
        { "bad", LKG_ENTRY_BAD, { OWNED, MTIME, INDEX } },
        { "asked", LKG_ENTRY_ASKED, { OWNED, MTIME, INDEX } },
        /* of an earlier build, which served such files from a blob of many; never written */
        { "part",
          LKG_ENTRY_RENDERED,
          { OWNED, UNUSED, UNUSED, UNUSED, UNUSED, INDEX, UNUSED, UNUSED, UNUSED } },
};

static const struct {
        char letter;
        unsigned flag;
} flag_letters[] = {
        { 'v', LKG_ENTRY_VIEW }, { 'p', LKG_ENTRY_POLL }, { 'w', LKG_ENTRY_THROUGH }, { '-', 0 }
};

static bool parse_flags(const char *text, unsigned *ret)
{
        for (*ret = 0; *text; text++) {
                size_t i = 0;

                while (i < LKG_ARRAY_SIZE(flag_letters) && flag_letters[i].letter != *text)
                        i++;
                if (i == LKG_ARRAY_SIZE(flag_letters))
                        return false;
                *ret |= flag_letters[i].flag;
        }
        return true;
}

static bool parse_u32(const char *text, unsigned base, uint32_t max, uint32_t *ret)
{
        uint64_t n;

        if (parse_u64(text, base, max, &n) < 0)
                return false;
        *ret = (uint32_t)n;
        return true;
}

static bool parse_field(const struct parser *p, enum field field, char *text, struct lkg_entry *e)
{
        switch (field) {
        case PATH:
                e->path = text;
                return is_path(text);
        case MODE:
                return parse_u32(text, 8, 07777, &e->mode);
        case UID:
                return parse_u32(text, 10, UINT32_MAX - 1, &e->uid);
        case GID:
                return parse_u32(text, 10, UINT32_MAX - 1, &e->gid);
        case MTIME:
                return parse_i64(text, &e->mtime_ns) == 0;
        case SIZE:
                return parse_u64(text, 10, INT64_MAX, &e->size) == 0;
        case SHA256:
                if (lkg_is_sha256(text))
                        memcpy(e->sha256, text, LKG_SHA256_HEX);
                return *e->sha256;
        case FLAGS:
                return parse_flags(text, &e->flags);
        case INDEX:
        case INDEX_OR_NONE:
                return is_component(p, text, field == INDEX_OR_NONE, &e->component);
        case GENERATION:
                return parse_u64(text, 10, UINT64_MAX, &e->generation) == 0;
        case COMMAND:
                e->command = text;
                return lkg_unescape(text) >= 0 && *text && strlen(text) <= 31;
        case UNUSED:
        case END:
                break;
        }
        return true;
}

static int add_entry(struct parser *p, const struct lkg_entry *entry)
{
        struct lkg_publication *pub = p->pub;

        if (pub->n_entries >= LKG_MANIFEST_ENTRIES_MAX)
                return lkg_error_set(p->err, -EFBIG, NULL, "manifest has more than %u entries.",
                                     LKG_MANIFEST_ENTRIES_MAX);
        if (pub->n_entries > 0 && strcmp(pub->entries[pub->n_entries - 1].path, entry->path) >= 0)
                return bad(p, "paths are not in ascending order");
        if (pub->n_entries == p->n_entries_allocated) {
                size_t n = p->n_entries_allocated ? 2 * p->n_entries_allocated : p->n_lines + 1;

                if (LKG_RESIZE(pub->entries, n) < 0)
                        return no_memory(p);
                p->n_entries_allocated = n;
        }
        pub->entries[pub->n_entries++] = *entry;
        return 0;
}

static int parse_entry(struct parser *p, const struct entry_row *row, char **f, size_t n)
{
        struct lkg_entry e = { .type = row->type, .component = UINT_MAX };
        size_t i = 0;

        for (; row->fields[i] != END && i + 1 < n; i++)
                if (!parse_field(p, row->fields[i], f[i + 1], &e))
                        return bad(p, field_names[row->fields[i]]);
        return row->fields[i] == END && i + 1 == n ? add_entry(p, &e) : bad(p, "wrong number of fields");
}

/* ---- rules ---- */

/* With a kind: a line WORD INDEX KIND TEXT; else WORD PATH, of an alias with a second path. */
static const struct rule_row {
        const char *word, *kind;
        bool is_path;
} rule_rows[] = {
        [LKG_RULE_TREE] = { "watch", "tree", true },      [LKG_RULE_FILE] = { "watch", "file", true },
        [LKG_RULE_UNIT] = { "match", "unit", false },     [LKG_RULE_EXE] = { "match", "exe", false },
        [LKG_RULE_CGROUP] = { "match", "cgroup", false }, [LKG_RULE_HIDE] = { "hide", NULL, true },
        [LKG_RULE_ALIAS] = { "alias", NULL, true },       [LKG_RULE_CLASH] = { "clash", NULL, true },
};

static int parse_rule(struct parser *p, enum lkg_rule_type type, char **f, size_t n)
{
        const struct rule_row *row = &rule_rows[type];
        struct lkg_publication *pub = p->pub;
        struct lkg_rule rule = { .type = type, .component = UINT_MAX };
        char *text = n < 2 ? NULL : row->kind ? f[3] : f[1], *target = type == LKG_RULE_ALIAS ? f[2] : NULL;

        if (n != (row->kind ? 4u : target ? 3u : 2u))
                return bad(p, "wrong number of fields");
        if ((row->kind && !is_component(p, f[1], true, &rule.component)) || (target && !is_path(target)) ||
            (row->is_path ? !is_path(text) : lkg_unescape(text) < 0 || !*text))
                return bad(p, "not a rule");
        rule.text = text;
        rule.target = target;
        if (pub->n_rules >= LKG_MANIFEST_ENTRIES_MAX)
                return lkg_error_set(p->err, -EFBIG, NULL, "manifest has too many rules.");
        if (LKG_RESERVE(pub->rules, pub->n_rules, p->n_rules_allocated) < 0)
                return no_memory(p);
        pub->rules[pub->n_rules++] = rule;
        return 0;
}

/* ---- the other lines ---- */

static int line_source(struct parser *p, char **f)
{
        unsigned index;

        if (!is_component(p, f[1], false, &index) || lkg_unescape(f[2]) < 0 || lkg_unescape(f[3]) < 0)
                return bad(p, "not a source");
        p->pub->components[index].source = f[2];
        p->pub->components[index].object = f[3];
        return 0;
}

static int line_number(struct parser *p, char **f)
{
        if (parse_u64(f[1], 10, UINT64_MAX, &p->pub->number) < 0 || p->pub->number == 0)
                return bad(p, "not a publication number");
        return 0;
}

static int line_timeout(struct parser *p, char **f)
{
        return parse_u32(f[1], 10, UINT32_MAX, &p->pub->timeout_ms) ? 0
                                                                    : bad(p, "not a time in milliseconds");
}

static int line_component(struct parser *p, char **f)
{
        struct lkg_publication *pub = p->pub;
        uint64_t index, generation;

        if (parse_u64(f[1], 10, LKG_COMPONENTS_MAX - 1, &index) < 0 || index != pub->n_components ||
            parse_u64(f[3], 10, UINT64_MAX, &generation) < 0 || lkg_unescape(f[2]) < 0 || !*f[2])
                return bad(p, "not the next component");
        if (LKG_GROW(pub->components, pub->n_components) < 0)
                return no_memory(p);
        pub->components[pub->n_components++] =
                (struct lkg_publication_component){ .name = f[2], .generation = generation };
        return 0;
}

static int line_end(struct parser *p, char **f)
{
        p->ended = true;
        return 0;
}

static const struct {
        const char *word;
        size_t n_fields;
        int (*parse)(struct parser *p, char **fields);
} line_rows[] = {
        { "number", 2, line_number },
        { "timeout-ms", 2, line_timeout },
        { "component", 4, line_component },
        { "source", 4, line_source },
        { "end", 1, line_end },
};

/* Like strsep(3), with one separator. */
static char *cut(char **rest, char separator)
{
        char *text = *rest, *end = text ? strchr(text, separator) : NULL;

        *rest = end ? end + 1 : NULL;
        if (end)
                *end = '\0';
        return text;
}

static int parse_line(struct parser *p, char *line)
{
        char *f[FIELDS_MAX + 1] = { NULL };
        size_t n = 0;

        if (p->ended)
                return bad(p, "text after the end");
        while (line && n <= FIELDS_MAX)
                f[n++] = cut(&line, '\t');
        for (size_t i = 0; i < LKG_ARRAY_SIZE(entry_rows); i++)
                if (strcmp(entry_rows[i].word, f[0]) == 0)
                        return parse_entry(p, &entry_rows[i], f, n);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rule_rows); i++)
                if (strcmp(rule_rows[i].word, f[0]) == 0 &&
                    (!rule_rows[i].kind || (n > 2 && strcmp(rule_rows[i].kind, f[2]) == 0)))
                        return parse_rule(p, (enum lkg_rule_type)i, f, n);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(line_rows); i++)
                if (strcmp(line_rows[i].word, f[0]) == 0)
                        return n == line_rows[i].n_fields ? line_rows[i].parse(p, f)
                                                          : bad(p, "wrong number of fields");
        return bad(p, "unknown line");
}

/* The parent of every entry is a directory that was listed before it, or the root. */
static int check_parents(struct parser *p)
{
        const char *last = ""; /* the previous entry: a neighbour has the same parent */
        size_t n_last = 0;

        for (size_t i = 0; i < p->pub->n_entries; i++) {
                const char *path = p->pub->entries[i].path;
                const char *slash = strrchr(path, '/');
                size_t n = slash ? (size_t)(slash - path) : 0;
                LKG_CLEANUP(lkg_freep) char *parent = NULL;
                const struct lkg_entry *e;

                if (!slash || (n == n_last && memcmp(path, last, n) == 0))
                        continue;
                parent = strndup(path, n);
                if (!parent)
                        return no_memory(p);
                e = lkg_publication_find(p->pub, parent);
                if (!e || !lkg_entry_is_dir(e))
                        return lkg_error_set(p->err, -EBADMSG, NULL, "manifest: an entry has no directory.");
                last = path;
                n_last = n;
        }
        return 0;
}

static int parse_lines(struct parser *p)
{
        char *rest = p->pub->text, *line;

        while ((line = cut(&rest, '\n'))) {
                int r;

                p->line++;
                if (p->line == 1) {
                        if (strcmp(line, LKG_PUBLICATION_MAGIC) != 0)
                                return bad(p, "not a manifest of this version");
                        continue;
                }
                if (!*line && !rest)
                        break; /* after the last line break */
                r = parse_line(p, line);
                if (r < 0)
                        return r;
        }
        if (!p->ended || p->pub->number == 0)
                return bad(p, "the manifest is cut short");
        return check_parents(p);
}

static size_t count_lines(const char *text)
{
        size_t n = 0;

        for (const char *p = strchr(text, '\n'); p && n < LKG_MANIFEST_ENTRIES_MAX; p = strchr(p + 1, '\n'))
                n++;
        return n;
}

int lkg_publication_parse(const char *data, size_t size, struct lkg_publication **ret, struct lkg_error *err)
{
        struct parser p = { .err = err };
        int r;

        if (size > LKG_MANIFEST_BYTES_MAX)
                return lkg_error_set(err, -EFBIG, NULL, "manifest has more than %u bytes.",
                                     LKG_MANIFEST_BYTES_MAX);
        if (memchr(data, '\0', size))
                return lkg_error_set(err, -EBADMSG, NULL, "manifest holds a NUL byte.");
        p.pub = calloc(1, sizeof(*p.pub));
        if (!p.pub || !(p.pub->text = strndup(data, size))) {
                lkg_publication_free(p.pub);
                return lkg_error_set(err, -ENOMEM, NULL, "manifest");
        }
        p.n_lines = count_lines(p.pub->text);
        r = parse_lines(&p);
        if (r < 0) {
                lkg_publication_free(p.pub);
                return r;
        }
        *ret = p.pub;
        return 0;
}

struct lkg_publication *lkg_publication_free(struct lkg_publication *pub)
{
        if (!pub)
                return NULL;
        free(pub->components);
        free(pub->rules);
        free(pub->entries);
        free(pub->text);
        free(pub);
        return NULL;
}

static int compare_path(const void *key, const void *entry)
{
        return strcmp(key, ((const struct lkg_entry *)entry)->path);
}

const struct lkg_entry *lkg_publication_find(const struct lkg_publication *pub, const char *path)
{
        if (!pub->n_entries)
                return NULL;
        return bsearch(path, pub->entries, pub->n_entries, sizeof(*pub->entries), compare_path);
}

const char *lkg_entry_name_in(const struct lkg_entry *entry, const char *dir)
{
        size_t n = strlen(dir);
        bool is_file = entry->type == LKG_ENTRY_FILE && entry->flags & LKG_ENTRY_VIEW;
        const char *name;

        if (!is_file || strncmp(entry->path, dir, n) != 0 || entry->path[n] != '/')
                return NULL;
        name = entry->path + n + 1;
        return *name != '.' && lkg_bare_name_ok(name) ? name : NULL;
}

static void put_field(struct lkg_buf *buf, const char *text)
{
        lkg_buf_putc(buf, '\t');
        lkg_escape(buf, text, 0x20);
}

static void put_u64(struct lkg_buf *buf, uint64_t n)
{
        lkg_buf_putc(buf, '\t');
        lkg_buf_u64(buf, n);
}

static void put_index(struct lkg_buf *buf, unsigned component)
{
        if (component == UINT_MAX)
                lkg_buf_puts(buf, "\t-");
        else
                put_u64(buf, component);
}

static void format_rule(const struct lkg_rule *rule, struct lkg_buf *buf)
{
        const struct rule_row *row = &rule_rows[rule->type];

        lkg_buf_puts(buf, row->word);
        if (row->kind) {
                put_index(buf, rule->component);
                lkg_buf_printf(buf, "\t%s", row->kind);
        }
        put_field(buf, rule->text);
        if (rule->type == LKG_RULE_ALIAS)
                put_field(buf, rule->target);
        lkg_buf_putc(buf, '\n');
}

static void put_i64(struct lkg_buf *buf, int64_t n)
{
        lkg_buf_putc(buf, '\t');
        if (n < 0)
                lkg_buf_putc(buf, '-');
        lkg_buf_u64(buf, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

static void put_mode(struct lkg_buf *buf, uint32_t mode)
{
        const char text[] = { '\t', (char)('0' + (mode >> 9 & 7)), (char)('0' + (mode >> 6 & 7)),
                              (char)('0' + (mode >> 3 & 7)), (char)('0' + (mode & 7)) };

        lkg_buf_append(buf, text, sizeof(text));
}

static void put_flags(struct lkg_buf *buf, unsigned flags)
{
        lkg_buf_putc(buf, '\t');
        for (size_t i = 0; i < LKG_ARRAY_SIZE(flag_letters); i++)
                if (flags ? flags & flag_letters[i].flag : flag_letters[i].flag == 0)
                        lkg_buf_putc(buf, flag_letters[i].letter);
}

/* Without printf, because this runs for every entry of every publication. */
static void put_entry_field(enum field field, const struct lkg_entry *e, struct lkg_buf *buf)
{
        switch (field) {
        case PATH:
                put_field(buf, e->path);
                break;
        case MODE:
                put_mode(buf, e->mode);
                break;
        case UID:
                put_u64(buf, e->uid);
                break;
        case GID:
                put_u64(buf, e->gid);
                break;
        case MTIME:
                put_i64(buf, e->mtime_ns);
                break;
        case SIZE:
                put_u64(buf, e->size);
                break;
        case SHA256:
                put_field(buf, e->sha256);
                break;
        case FLAGS:
                put_flags(buf, e->flags);
                break;
        case INDEX:
        case INDEX_OR_NONE:
                put_index(buf, e->component);
                break;
        case GENERATION:
                put_u64(buf, e->generation);
                break;
        case COMMAND:
                put_field(buf, e->command);
                break;
        case UNUSED:
        case END:
                break;
        }
}

static void format_entry(const struct lkg_entry *e, struct lkg_buf *buf)
{
        const struct entry_row *row = entry_rows;

        while (row->type != e->type)
                row++;
        lkg_buf_puts(buf, row->word);
        for (const enum field *field = row->fields; *field != END; field++)
                put_entry_field(*field, e, buf);
        lkg_buf_putc(buf, '\n');
}

void lkg_publication_format(const struct lkg_publication *pub, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%s\nnumber\t%" PRIu64 "\ntimeout-ms\t%" PRIu32 "\n", LKG_PUBLICATION_MAGIC,
                       pub->number, pub->timeout_ms);
        for (size_t i = 0; i < pub->n_components; i++) {
                lkg_buf_printf(buf, "component\t%zu", i);
                put_field(buf, pub->components[i].name);
                lkg_buf_printf(buf, "\t%" PRIu64 "\n", pub->components[i].generation);
        }
        for (size_t i = 0; i < pub->n_components; i++) {
                if (!pub->components[i].source)
                        continue;
                lkg_buf_printf(buf, "source\t%zu", i);
                put_field(buf, pub->components[i].source);
                put_field(buf, pub->components[i].object);
                lkg_buf_putc(buf, '\n');
        }
        for (size_t i = 0; i < pub->n_rules; i++)
                format_rule(&pub->rules[i], buf);
        for (size_t i = 0; i < pub->n_entries; i++)
                format_entry(&pub->entries[i], buf);
        lkg_buf_puts(buf, "end\n");
}

int lkg_publication_read_blob(int blobs, const char *sha256, size_t max, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_is_sha256(sha256) ? lkg_open_plain(blobs, sha256) : -EBADMSG;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        char actual[LKG_SHA256_HEX];
        size_t size;
        int r;

        if (fd < 0)
                return fd == -EINVAL ? -EBADMSG : fd;
        r = lkg_read_file(fd, max, &data, &size, NULL);
        if (r >= 0)
                r = lkg_sha256_hex(data, size, actual);
        if (r < 0)
                return r;
        if (strcmp(actual, sha256) != 0)
                return -EBADMSG;
        *ret = LKG_STEAL(data);
        if (ret_size)
                *ret_size = size;
        return 0;
}

int lkg_publication_read(int blobs, const struct lkg_entry *entry, size_t max, char **ret, size_t *ret_size)
{
        int r;

        if (entry->size > max)
                return -EFBIG;
        r = lkg_publication_read_blob(blobs, entry->sha256, entry->size, ret, ret_size);
        return r == -EFBIG ? -EBADMSG : r;
}

void lkg_rendered_format(const struct lkg_rendered *rendered, char *buf, size_t size)
{
        (void)snprintf(buf, size, "%c %" PRIi64 " %" PRIu64 " %s", rendered->is_dir ? 'd' : 'f',
                       rendered->mtime_ns, rendered->size, rendered->is_dir ? "-" : rendered->sha256);
}

int lkg_rendered_parse(char *text, struct lkg_rendered *ret)
{
        const char *type = cut(&text, ' '), *mtime = cut(&text, ' '), *size = cut(&text, ' ');
        struct lkg_rendered rendered = { 0 };

        if (!text || (strcmp(type, "d") != 0 && strcmp(type, "f") != 0) ||
            parse_i64(mtime, &rendered.mtime_ns) < 0 ||
            parse_u64(size, 10, LKG_FALLBACK_BYTES_MAX, &rendered.size) < 0)
                return -EBADMSG;
        rendered.is_dir = *type == 'd';
        if (!rendered.is_dir && !lkg_is_sha256(text))
                return -EBADMSG;
        if (!rendered.is_dir)
                memcpy(rendered.sha256, text, LKG_SHA256_HEX);
        *ret = rendered;
        return 0;
}
