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

static int parse_path(struct parser *p, char *text, const char **ret)
{
        if (lkg_unescape(text) < 0 || !path_ok(text))
                return bad(p, "not a relative path");
        *ret = text;
        return 0;
}

static int parse_component_index(struct parser *p, const char *text, unsigned *ret)
{
        uint64_t n;

        if (strcmp(text, "-") == 0) {
                *ret = UINT_MAX;
                return 0;
        }
        if (parse_u64(text, 10, LKG_COMPONENTS_MAX, &n) < 0 || n >= p->pub->n_components)
                return bad(p, "no such component");
        *ret = (unsigned)n;
        return 0;
}

static int parse_owner(struct parser *p, char **f, struct lkg_entry *e)
{
        uint64_t mode, uid, gid;

        if (parse_u64(f[0], 8, 07777, &mode) < 0 || parse_u64(f[1], 10, UINT32_MAX - 1, &uid) < 0 ||
            parse_u64(f[2], 10, UINT32_MAX - 1, &gid) < 0)
                return bad(p, "not a mode, uid and gid");
        e->mode = (uint32_t)mode;
        e->uid = (uint32_t)uid;
        e->gid = (uint32_t)gid;
        return 0;
}

static int parse_flags(struct parser *p, const char *text, unsigned *ret)
{
        static const struct {
                char letter;
                unsigned flag;
        } letters[] = {
                { 'v', LKG_ENTRY_VIEW }, { 'p', LKG_ENTRY_POLL }, { 'w', LKG_ENTRY_THROUGH }, { '-', 0 }
        };

        *ret = 0;
        for (; *text; text++) {
                size_t i = 0;

                while (i < LKG_ARRAY_SIZE(letters) && letters[i].letter != *text)
                        i++;
                if (i == LKG_ARRAY_SIZE(letters))
                        return bad(p, "unknown flag");
                *ret |= letters[i].flag;
        }
        return 0;
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

static int line_dir(struct parser *p, char **f)
{
        struct lkg_entry e = { .type = LKG_ENTRY_DIR, .component = UINT_MAX };
        int r = parse_path(p, f[1], &e.path);

        if (r >= 0)
                r = parse_owner(p, f + 2, &e);
        if (r < 0)
                return r;
        if (parse_i64(f[5], &e.mtime_ns) < 0)
                return bad(p, "not a time");
        return add_entry(p, &e);
}

/* A directory that belongs to a component. */
static int line_component_dir(struct parser *p, char **f)
{
        struct lkg_entry e = { .type = f[0][0] == 'b' ? LKG_ENTRY_BAD : LKG_ENTRY_ASKED };
        int r = parse_path(p, f[1], &e.path);

        if (r >= 0)
                r = parse_owner(p, f + 2, &e);
        if (r >= 0)
                r = parse_component_index(p, f[6], &e.component);
        if (r < 0)
                return r;
        if (parse_i64(f[5], &e.mtime_ns) < 0 || e.component == UINT_MAX)
                return bad(p, "not a time and a component");
        return add_entry(p, &e);
}

static int line_file(struct parser *p, char **f)
{
        struct lkg_entry e = { .type = LKG_ENTRY_FILE };
        int r = parse_path(p, f[1], &e.path);

        if (r >= 0)
                r = parse_owner(p, f + 2, &e);
        if (r >= 0)
                r = parse_flags(p, f[8], &e.flags);
        if (r >= 0)
                r = parse_component_index(p, f[9], &e.component);
        if (r < 0)
                return r;
        if (parse_i64(f[5], &e.mtime_ns) < 0 || parse_u64(f[6], 10, INT64_MAX, &e.size) < 0 ||
            parse_u64(f[10], 10, UINT64_MAX, &e.generation) < 0)
                return bad(p, "not a time, size and generation");
        if (!lkg_is_sha256(f[7]))
                return bad(p, "not a SHA-256");
        memcpy(e.sha256, f[7], LKG_SHA256_HEX);
        return add_entry(p, &e);
}

/* A line `part` is one of an earlier build, which served such files from a blob of many. */
static int line_rendered(struct parser *p, char **f)
{
        struct lkg_entry e = { .type = LKG_ENTRY_RENDERED };
        int r = parse_path(p, f[1], &e.path);

        if (r >= 0)
                r = parse_owner(p, f + 2, &e);
        if (r >= 0)
                r = parse_component_index(p, f[strcmp(f[0], "part") == 0 ? 9 : 5], &e.component);
        if (r >= 0 && e.component == UINT_MAX)
                r = bad(p, "not a component");
        return r < 0 ? r : add_entry(p, &e);
}

static int line_source(struct parser *p, char **f)
{
        struct lkg_publication_component *c;
        unsigned index;
        int r = parse_component_index(p, f[1], &index);

        if (r < 0)
                return r;
        if (index == UINT_MAX || lkg_unescape(f[2]) < 0 || lkg_unescape(f[3]) < 0)
                return bad(p, "not a source");
        c = &p->pub->components[index];
        c->source = f[2];
        c->object = f[3];
        return 0;
}

static int line_control(struct parser *p, char **f)
{
        struct lkg_entry e = { .type = LKG_ENTRY_CONTROL };
        int r = parse_path(p, f[1], &e.path);

        if (r >= 0)
                r = parse_owner(p, f + 2, &e);
        if (r >= 0)
                r = parse_component_index(p, f[5], &e.component);
        if (r < 0)
                return r;
        if (lkg_unescape(f[6]) < 0 || !*f[6] || strlen(f[6]) > 31)
                return bad(p, "not a command");
        e.command = f[6];
        return add_entry(p, &e);
}

static int line_number(struct parser *p, char **f)
{
        if (parse_u64(f[1], 10, UINT64_MAX, &p->pub->number) < 0 || p->pub->number == 0)
                return bad(p, "not a publication number");
        return 0;
}

static int line_timeout(struct parser *p, char **f)
{
        uint64_t n;

        if (parse_u64(f[1], 10, UINT32_MAX, &n) < 0)
                return bad(p, "not a time in milliseconds");
        p->pub->timeout_ms = (uint32_t)n;
        return 0;
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

static int add_rule(struct parser *p, struct lkg_rule rule)
{
        struct lkg_publication *pub = p->pub;

        if (pub->n_rules >= LKG_MANIFEST_ENTRIES_MAX)
                return lkg_error_set(p->err, -EFBIG, NULL, "manifest has too many rules.");
        if (LKG_RESERVE(pub->rules, pub->n_rules, p->n_rules_allocated) < 0)
                return no_memory(p);
        pub->rules[pub->n_rules++] = rule;
        return 0;
}

static int line_match(struct parser *p, char **f)
{
        struct lkg_rule rule = { .type = strcmp(f[2], "unit") == 0     ? LKG_RULE_UNIT
                                         : strcmp(f[2], "cgroup") == 0 ? LKG_RULE_CGROUP
                                                                       : LKG_RULE_EXE,
                                 .text = f[3] };
        int r = parse_component_index(p, f[1], &rule.component);

        if (r < 0)
                return r;
        if ((rule.type == LKG_RULE_EXE && strcmp(f[2], "exe") != 0) || lkg_unescape(f[3]) < 0 || !*f[3])
                return bad(p, "not a match rule");
        return add_rule(p, rule);
}

static int line_watch(struct parser *p, char **f)
{
        struct lkg_rule rule = { .type = strcmp(f[2], "tree") == 0 ? LKG_RULE_TREE : LKG_RULE_FILE };
        int r = parse_component_index(p, f[1], &rule.component);

        if (r >= 0 && rule.type == LKG_RULE_FILE && strcmp(f[2], "file") != 0)
                r = bad(p, "not a watch rule");
        if (r >= 0)
                r = parse_path(p, f[3], &rule.text);
        return r < 0 ? r : add_rule(p, rule);
}

static int line_path(struct parser *p, char **f)
{
        enum lkg_rule_type type = f[0][0] == 'h' ? LKG_RULE_HIDE : LKG_RULE_CLASH;
        struct lkg_rule rule = { .type = type, .component = UINT_MAX };
        int r = parse_path(p, f[1], &rule.text);

        return r < 0 ? r : add_rule(p, rule);
}

static int line_alias(struct parser *p, char **f)
{
        struct lkg_rule rule = { .type = LKG_RULE_ALIAS, .component = UINT_MAX };
        int r = parse_path(p, f[1], &rule.text);

        if (r >= 0)
                r = parse_path(p, f[2], &rule.target);
        return r < 0 ? r : add_rule(p, rule);
}

static int line_end(struct parser *p, char **f)
{
        (void)f;
        p->ended = true;
        return 0;
}

static const struct {
        const char *word;
        int n_fields;
        int (*parse)(struct parser *p, char **fields);
} line_types[] = {
        { "file", 11, line_file },
        { "rendered", 6, line_rendered },
        { "part", 13, line_rendered },
        { "asked", 7, line_component_dir },
        { "source", 4, line_source },
        { "dir", 6, line_dir },
        { "control", 7, line_control },
        { "number", 2, line_number },
        { "timeout-ms", 2, line_timeout },
        { "component", 4, line_component },
        { "match", 4, line_match },
        { "watch", 4, line_watch },
        { "hide", 2, line_path },
        { "clash", 2, line_path },
        { "alias", 3, line_alias },
        { "bad", 7, line_component_dir },
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
        char *fields[FIELDS_MAX + 1];
        int n = 0;

        if (p->ended)
                return bad(p, "text after the end");
        while (line && n <= FIELDS_MAX)
                fields[n++] = cut(&line, '\t');
        for (size_t i = 0; i < LKG_ARRAY_SIZE(line_types); i++) {
                if (strcmp(line_types[i].word, fields[0]) != 0)
                        continue;
                if (n != line_types[i].n_fields)
                        return bad(p, "wrong number of fields");
                return line_types[i].parse(p, fields);
        }
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
        static const struct {
                const char *word, *kind;
        } words[] = {
                [LKG_RULE_TREE] = { "watch", "tree" },     [LKG_RULE_FILE] = { "watch", "file" },
                [LKG_RULE_UNIT] = { "match", "unit" },     [LKG_RULE_EXE] = { "match", "exe" },
                [LKG_RULE_CGROUP] = { "match", "cgroup" }, [LKG_RULE_HIDE] = { "hide", NULL },
                [LKG_RULE_ALIAS] = { "alias", NULL },      [LKG_RULE_CLASH] = { "clash", NULL },
        };

        lkg_buf_puts(buf, words[rule->type].word);
        if (words[rule->type].kind) {
                put_index(buf, rule->component);
                lkg_buf_printf(buf, "\t%s", words[rule->type].kind);
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

/* Without printf, because this runs for every entry of every publication. */
static void put_owner(struct lkg_buf *buf, const struct lkg_entry *e)
{
        const char mode[] = { '\t', (char)('0' + (e->mode >> 9 & 7)), (char)('0' + (e->mode >> 6 & 7)),
                              (char)('0' + (e->mode >> 3 & 7)), (char)('0' + (e->mode & 7)) };

        lkg_buf_append(buf, mode, sizeof(mode));
        put_u64(buf, e->uid);
        put_u64(buf, e->gid);
}

static void put_flags(struct lkg_buf *buf, unsigned flags)
{
        lkg_buf_putc(buf, '\t');
        if (flags & LKG_ENTRY_VIEW)
                lkg_buf_putc(buf, 'v');
        if (flags & LKG_ENTRY_POLL)
                lkg_buf_putc(buf, 'p');
        if (flags & LKG_ENTRY_THROUGH)
                lkg_buf_putc(buf, 'w');
        if (!flags)
                lkg_buf_putc(buf, '-');
}

static void format_entry(const struct lkg_entry *e, struct lkg_buf *buf)
{
        static const char *const words[] = {
                [LKG_ENTRY_DIR] = "dir", [LKG_ENTRY_FILE] = "file",         [LKG_ENTRY_CONTROL] = "control",
                [LKG_ENTRY_BAD] = "bad", [LKG_ENTRY_RENDERED] = "rendered", [LKG_ENTRY_ASKED] = "asked"
        };

        lkg_buf_puts(buf, words[e->type]);
        put_field(buf, e->path);
        put_owner(buf, e);
        switch (e->type) {
        case LKG_ENTRY_DIR:
                put_i64(buf, e->mtime_ns);
                break;
        case LKG_ENTRY_BAD:
        case LKG_ENTRY_ASKED:
                put_i64(buf, e->mtime_ns);
                put_index(buf, e->component);
                break;
        case LKG_ENTRY_RENDERED:
                put_index(buf, e->component);
                break;
        case LKG_ENTRY_FILE:
                put_i64(buf, e->mtime_ns);
                put_u64(buf, e->size);
                lkg_buf_putc(buf, '\t');
                lkg_buf_puts(buf, e->sha256);
                put_flags(buf, e->flags);
                put_index(buf, e->component);
                put_u64(buf, e->generation);
                break;
        case LKG_ENTRY_CONTROL:
                put_index(buf, e->component);
                put_field(buf, e->command);
                break;
        }
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
