/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the LkgfsConfiguration document, as tables: one row per field with its type, default and place in
 * struct lkg_config. The decoder walks a table along a map: unknown members, wrong types and bad values each become a
 * finding at their line and column, and decoding goes on, so that one run names every mistake.
 *
 * Defaults are text and go through the same conversion as the user's values: a default that would be refused cannot
 * exist. In a default of a component, `%` stands for the component's name.
 */
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>

#include <lkg/buf.h>

#include "config.h"

enum field_type {
        F_TEXT,     /* char * */
        F_NAME,     /* char *, a bare file name or "" */
        F_LAYER,    /* char *, relative inside the source directory or absolute, "" = not used */
        F_PATH,     /* char *, made absolute with the configuration's own directory */
        F_BOOL,     /* bool */
        F_DURATION, /* uint64_t ns */
        F_MODE,     /* uint32_t from an octal string */
        F_NUMBER,   /* uint64_t within min..max */
        F_BYTES,    /* uint64_t from a number or a quantity: 3Mi */
        F_WORD,     /* int: index into words */
        F_USER,     /* uint32_t */
        F_GROUP,    /* uint32_t */
        F_TEXTS,    /* struct lkg_strings */
        F_NAMES,    /* struct lkg_strings of bare names */
        F_PATHS,    /* struct lkg_strings of absolute paths */
        F_WORDS,    /* struct lkg_strings, each one of words */
        F_OBJECT,   /* a nested table */
        F_SKIP,     /* decoded elsewhere */
};

struct field {
        const char *name;
        enum field_type type;
        size_t offset;
        const char *fallback;     /* lists: items separated by commas; NULL = empty */
        const char *const *words; /* F_WORD, F_WORDS: NULL at the end */
        const struct field *sub;  /* F_OBJECT: table ended by a NULL name */
        uint64_t min, max;        /* F_NUMBER */
        size_t set_offset;        /* bool that says "named by the user"; 0 = not wanted */
};

struct decoder {
        void *target;
        const char *directory, *component;
        struct lkg_report *report;
        char prefix[256]; /* "components[kubelet].match." */
        bool no_memory;
};

#define CONFIG(m)    offsetof(struct lkg_config, m)
#define COMPONENT(m) offsetof(struct lkg_config_component, m)

static const char *const policy_words[] = { "never", "unit", "hook", NULL };
static const char *const local_words[] = { "lkg", "strict", NULL };
static const char *const writes_words[] = { "deny", "through", NULL };
static const char *const profile_words[] = { "none", "hardened", NULL };
static const char *const scope_words[] = { "remote", "all", NULL };
static const char *const reference_words[] = { "nodeAnnotation", "nodeSpec", "static", "file", NULL };

static const struct field static_fields[] = {
        { "namespace", F_TEXT, CONFIG(remote.fixed.ns), "" },
        { "name", F_TEXT, CONFIG(remote.fixed.name), "" },
        { "key", F_TEXT, CONFIG(remote.fixed.key), "" },
        { "uid", F_TEXT, CONFIG(remote.fixed.uid), "" },
        { NULL },
};

static const struct field remote_fields[] = {
        { "enabled", F_BOOL, CONFIG(remote.enabled), "false" },
        { "kubeconfig", F_PATH, CONFIG(remote.kubeconfig), "" },
        { "nodeName", F_TEXT, CONFIG(remote.node_name), "" },
        { "references", F_WORDS, CONFIG(remote.references), "nodeAnnotation,nodeSpec,static,file",
          reference_words },
        { "static", F_OBJECT, .sub = static_fields },
        { "file", F_PATH, CONFIG(remote.file), "" },
        { "allowedSources", F_TEXTS, CONFIG(remote.allowed_sources), "kube-system/*" },
        { "allowExec", F_BOOL, CONFIG(remote.allow_exec), "false" },
        { "pollInterval", F_DURATION, CONFIG(remote.poll_interval_ns), "60s" },
        { "maxBytes", F_BYTES, CONFIG(remote.max_bytes), "3Mi" },
        { "restartJitter", F_DURATION, CONFIG(remote.restart_jitter_ns), "5m" },
        { "condition", F_BOOL, CONFIG(remote.condition), "true" },
        { "events", F_BOOL, CONFIG(remote.events), "true" },
        { NULL },
};

static const struct field trial_fields[] = {
        { "scope", F_WORD, CONFIG(trial.scope), "remote", scope_words },
        { "duration", F_DURATION, CONFIG(trial.duration_ns), "10m" },
        { "crashLoopThreshold", F_NUMBER, CONFIG(trial.crash_loop_threshold), "10", .min = 0, .max = 10 },
        { "minDuration", F_DURATION, CONFIG(trial.min_duration_ns), "0s" },
        { "maxDuration", F_DURATION, CONFIG(trial.max_duration_ns), "0s" },
        { NULL },
};

static const struct field config_fields[] = {
        { "apiVersion", F_SKIP },
        { "kind", F_SKIP },
        { "stateDir", F_PATH, CONFIG(state_dir), "/var/lib/lkgfs" },
        { "runtimeDir", F_PATH, CONFIG(runtime_dir), "/run/lkgfs" },
        { "sourceDir", F_PATH, CONFIG(source_dir), "" },
        { "virtualDir", F_NAME, CONFIG(virtual_dir), "" },
        { "nativeDirs", F_NAMES, CONFIG(native_dirs), "pki" },
        { "statusMode", F_MODE, CONFIG(status_mode), "0444" },
        { "engineTimeout", F_DURATION, CONFIG(engine_timeout_ns), "2s" },
        { "historyLimit", F_NUMBER, CONFIG(history_limit), "16", .min = 1, .max = LKG_HISTORY_MAX },
        { "remote", F_OBJECT, .sub = remote_fields },
        { "trial", F_OBJECT, .sub = trial_fields },
        { "components", F_SKIP },
        { NULL },
};

static const struct field match_fields[] = {
        { "unit", F_TEXT, COMPONENT(match.unit), "%.service" },
        { "exe", F_PATHS, COMPONENT(match.exe), "/usr/bin/%" },
        { NULL },
};

static const struct field restart_fields[] = {
        { "policy", F_WORD, COMPONENT(restart.policy), "never", policy_words },
        { "unit", F_TEXT, COMPONENT(restart.unit), "" },
        { "hook", F_TEXTS, COMPONENT(restart.hook), NULL },
        { "minInterval", F_DURATION, COMPONENT(restart.min_interval_ns), "60s" },
        { "maxPerHour", F_NUMBER, COMPONENT(restart.max_per_hour), "6", .min = 1, .max = 3600 },
        { NULL },
};

static const struct field guard_fields[] = {
        { "profile", F_WORD, COMPONENT(guard.profile), "none", profile_words },
        { "deny", F_TEXTS, COMPONENT(guard.deny), NULL },
        { "pinned", F_TEXTS, COMPONENT(guard.pinned), NULL },
        { NULL },
};

static const struct field component_fields[] = {
        { "name", F_NAME, COMPONENT(name), "kubelet" },
        { "file", F_NAME, COMPONENT(file), "%.conf" },
        { "aliases", F_NAMES, COMPONENT(aliases), NULL },
        { "kind", F_TEXT, COMPONENT(kind), "" },
        { "apiVersion", F_TEXT, COMPONENT(api_version), "" },
        { "base", F_LAYER, COMPONENT(base), NULL }, /* default: the name in `file` */
        { "dropInDir", F_LAYER, COMPONENT(dropin_dir), "%.conf.d", .set_offset = COMPONENT(dropin_dir_set) },
        { "instance", F_LAYER, COMPONENT(instance), "%-instance.conf", .set_offset = COMPONENT(instance_set) },
        { "patchesDir", F_LAYER, COMPONENT(patches_dir), "" },
        { "mode", F_MODE, COMPONENT(mode), "0600" },
        { "owner", F_USER, COMPONENT(uid), "root" },
        { "group", F_GROUP, COMPONENT(gid), "root" },
        { "match", F_OBJECT, .sub = match_fields },
        { "restart", F_OBJECT, .sub = restart_fields },
        { "localPolicy", F_WORD, COMPONENT(local_policy), "lkg", local_words },
        { "guard", F_OBJECT, .sub = guard_fields },
        { "baseWrites", F_WORD, COMPONENT(base_writes), "deny", writes_words },
        { NULL },
};

struct lkg_where lkg_where_of(const struct lkg_value *value)
{
        const struct lkg_source *source = value ? lkg_value_source(value) : NULL;

        return (struct lkg_where){
                .file = source ? source->file : NULL,
                .line = value ? lkg_value_line(value) : 0,
                .column = value ? lkg_value_column(value) : 0,
        };
}

bool lkg_bare_name_ok(const char *name)
{
        return *name && strlen(name) <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
               strcmp(name, "..") != 0;
}

/* ---- text -> number ---- */

static int parse_duration_unit(const char **p, uint64_t *ret)
{
        static const struct {
                const char *name;
                uint64_t ns;
        } units[] = {
                { "ns", 1 },
                { "us", 1000 },
                { "\xc2\xb5s", 1000 },
                { "\xce\xbcs", 1000 },
                { "ms", LKG_NSEC_PER_MSEC },
                { "s", LKG_NSEC_PER_SEC },
                { "m", 60 * LKG_NSEC_PER_SEC },
                { "h", 3600 * LKG_NSEC_PER_SEC },
        };
        size_t n = strcspn(*p, ".0123456789");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(units); i++) {
                if (n != strlen(units[i].name) || strncmp(*p, units[i].name, n) != 0)
                        continue;
                *ret = units[i].ns;
                *p += n;
                return 0;
        }
        return -EINVAL;
}

/* One `12.5h`: whole part, fraction, unit. */
static int parse_duration_part(const char **p, uint64_t *ret)
{
        uint64_t whole = 0, fraction = 0, scale = 1, unit;
        bool digits = false;

        for (; **p >= '0' && **p <= '9'; (*p)++, digits = true)
                if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(**p - '0'), &whole))
                        return -EINVAL;
        if (**p == '.')
                for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, digits = true)
                        if (scale < UINT64_C(1000000)) { /* finer than any unit could show */
                                fraction = 10 * fraction + (uint64_t)(**p - '0');
                                scale *= 10;
                        }
        if (!digits || parse_duration_unit(p, &unit) < 0 || __builtin_mul_overflow(whole, unit, &whole) ||
            __builtin_add_overflow(whole, fraction * (unit / scale) + fraction * (unit % scale) / scale, ret))
                return -EINVAL;
        return 0;
}

int lkg_parse_duration(const char *text, uint64_t *ret_ns)
{
        uint64_t total = 0;

        if (strcmp(text, "0") == 0) {
                *ret_ns = 0;
                return 0;
        }
        if (!*text)
                return -EINVAL;
        while (*text) {
                uint64_t part;

                if (parse_duration_part(&text, &part) < 0 || __builtin_add_overflow(total, part, &total) ||
                    total > INT64_MAX)
                        return -EINVAL;
        }
        *ret_ns = total;
        return 0;
}

static int parse_number(const char *text, uint64_t *ret)
{
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return errno || *end ? -EINVAL : 0;
}

static int parse_bytes(const char *text, uint64_t *ret)
{
        static const struct {
                const char *suffix;
                uint64_t factor;
        } suffixes[] = {
                { "", 1 },         { "k", 1000 },      { "M", 1000000 },   { "G", 1000000000 },
                { "Ki", 1u << 10 }, { "Mi", 1u << 20 }, { "Gi", 1u << 30 },
        };
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        for (size_t i = 0; !errno && i < LKG_ARRAY_SIZE(suffixes); i++)
                if (strcmp(end, suffixes[i].suffix) == 0)
                        return __builtin_mul_overflow(*ret, suffixes[i].factor, ret) ? -EINVAL : 0;
        return -EINVAL;
}

static int parse_mode(const char *text, uint32_t *ret)
{
        if (!*text || strlen(text) > 5 || strspn(text, "01234567") != strlen(text))
                return -EINVAL;
        *ret = (uint32_t)strtoul(text, NULL, 8);
        return *ret > 0777 ? -EINVAL : 0;
}

static int parse_owner(const char *text, bool group, uint32_t *ret)
{
        uint64_t id;

        if (parse_number(text, &id) == 0) {
                *ret = (uint32_t)id;
                return id < UINT32_MAX ? 0 : -EINVAL;
        }
        if (strcmp(text, "root") == 0) { /* needs no database */
                *ret = 0;
                return 0;
        }
        if (group) {
                const struct group *gr = getgrnam(text);

                *ret = gr ? gr->gr_gid : 0;
                return gr ? 0 : -ENOENT;
        }
        const struct passwd *pw = getpwnam(text);

        *ret = pw ? pw->pw_uid : 0;
        return pw ? 0 : -ENOENT;
}

/* ---- one value -> one member ---- */

static void *member(const struct decoder *d, const struct field *f)
{
        return (char *)d->target + f->offset;
}

static void set_text(struct decoder *d, char **to, const char *text)
{
        char *copy = strdup(text);

        if (!copy)
                d->no_memory = true;
        free(*to);
        *to = copy;
}

static void add_text(struct decoder *d, struct lkg_strings *to, const char *text, size_t size)
{
        char **items = reallocarray(to->items, to->n_items + 1, sizeof(*items));
        char *copy = strndup(text, size);

        if (items)
                to->items = items;
        if (!items || !copy) {
                free(copy);
                d->no_memory = true;
                return;
        }
        to->items[to->n_items++] = copy;
}

static void free_strings(struct lkg_strings *strings)
{
        for (size_t i = 0; i < strings->n_items; i++)
                free(strings->items[i]);
        free(strings->items);
        *strings = (struct lkg_strings){ 0 };
}

struct complaint {
        unsigned code;
        const char *want;
};

static void complain(struct decoder *d, const struct field *f, const struct lkg_value *value, const char *text,
                     struct complaint complaint)
{
        const struct lkg_where where = lkg_where_of(value);
        char quoted[5 * 64 + 8];

        lkg_report_add(d->report, LKG_ERROR, complaint.code, &where, "%s%s: %s is not %s", d->prefix, f->name,
                       lkg_quote(text, strlen(text), quoted), complaint.want);
}

static bool layer_path_ok(const char *path)
{
        const char *p = path[0] == '/' ? path + 1 : path;

        if (!*path)
                return true;
        if (strlen(path) >= PATH_MAX)
                return false;
        while (true) {
                size_t n = strcspn(p, "/");

                if (n == 0 || n > NAME_MAX || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return false;
                if (!p[n])
                        return true;
                p += n + 1;
        }
}

static void set_path(struct decoder *d, char **to, const char *text)
{
        char path[PATH_MAX];

        if (!*text || *text == '/' || !d->directory) {
                set_text(d, to, text);
                return;
        }
        if (snprintf(path, sizeof(path), "%s/%s", d->directory, text) < (int)sizeof(path))
                set_text(d, to, path);
}

static const char *word_list(const struct field *f, char *buf, size_t size)
{
        size_t n = (size_t)snprintf(buf, size, "one of");

        for (size_t i = 0; f->words[i] && n < size; i++)
                n += (size_t)snprintf(buf + n, size - n, "%s %s", i ? "," : "", f->words[i]);
        return buf;
}

static int word_index(const struct field *f, const char *text)
{
        for (int i = 0; f->words[i]; i++)
                if (strcmp(f->words[i], text) == 0)
                        return i;
        return -1;
}

/* A text of a scalar field, from the document (@value) or from the table (@value is NULL). */
static void set_scalar(struct decoder *d, const struct field *f, const char *text, const struct lkg_value *value)
{
        struct complaint no = { 0 };
        char words[128];
        uint64_t *number = member(d, f);

        switch (f->type) {
        case F_TEXT:
                set_text(d, member(d, f), text);
                break;
        case F_NAME:
                if (*text && !lkg_bare_name_ok(text))
                        no = (struct complaint){ 3008, "a bare file name (no slash, not . or ..)" };
                else
                        set_text(d, member(d, f), text);
                break;
        case F_LAYER:
                if (!layer_path_ok(text))
                        no = (struct complaint){ 3017, "a path inside the source directory or an absolute one "
                                                       "(no empty, . or .. parts)" };
                else
                        set_text(d, member(d, f), text);
                break;
        case F_PATH:
                set_path(d, member(d, f), text);
                break;
        case F_BOOL:
                *(bool *)member(d, f) = strcmp(text, "true") == 0;
                break;
        case F_DURATION:
                if (lkg_parse_duration(text, number) < 0)
                        no = (struct complaint){ 3005, "a duration (want 500ms, 30s, 5m, 1h30m)" };
                break;
        case F_MODE:
                if (parse_mode(text, member(d, f)) < 0)
                        no = (struct complaint){ 3006, "an octal file mode (want \"0600\", \"0640\", at most "
                                                       "\"0777\")" };
                break;
        case F_NUMBER:
                if (parse_number(text, number) < 0 || *number < f->min || *number > f->max) {
                        (void)snprintf(words, sizeof(words),
                                       "a whole number from %" PRIu64 " to %" PRIu64, f->min, f->max);
                        no = (struct complaint){ 3010, words };
                }
                break;
        case F_BYTES:
                if (parse_bytes(text, number) < 0)
                        no = (struct complaint){ 3011, "a size (want 1048576, 512Ki, 3Mi)" };
                break;
        case F_WORD:
                if (word_index(f, text) < 0)
                        no = (struct complaint){ 3009, word_list(f, words, sizeof(words)) };
                else
                        *(int *)member(d, f) = word_index(f, text);
                break;
        case F_USER:
        case F_GROUP:
                if (parse_owner(text, f->type == F_GROUP, member(d, f)) < 0)
                        no = (struct complaint){ 3007, f->type == F_GROUP ? "a group of this system or a number"
                                                                          : "a user of this system or a number" };
                break;
        default:
                break;
        }
        if (no.code)
                complain(d, f, value, text, no);
}

static void add_item(struct decoder *d, const struct field *f, const char *text, size_t size,
                     const struct lkg_value *value)
{
        char words[128];

        if (f->type == F_NAMES && !lkg_bare_name_ok(text))
                complain(d, f, value, text, (struct complaint){ 3008, "a bare file name (no slash, not . or ..)" });
        else if (f->type == F_PATHS && (*text != '/' || strlen(text) >= PATH_MAX))
                complain(d, f, value, text, (struct complaint){ 3012, "an absolute path" });
        else if (f->type == F_WORDS && word_index(f, text) < 0)
                complain(d, f, value, text, (struct complaint){ 3009, word_list(f, words, sizeof(words)) });
        else
                add_text(d, member(d, f), text, size);
}

static bool is_list(const struct field *f)
{
        return f->type == F_TEXTS || f->type == F_NAMES || f->type == F_PATHS || f->type == F_WORDS;
}

/* ---- defaults ---- */

static void apply_defaults(struct decoder *d, const struct field *table)
{
        for (const struct field *f = table; f->name; f++) {
                struct lkg_buf text = LKG_BUF_INIT;

                if (f->type == F_OBJECT)
                        apply_defaults(d, f->sub);
                if (!f->fallback || f->type == F_OBJECT || f->type == F_SKIP)
                        continue;
                lkg_buf_append(&text, "", 0);
                for (const char *p = f->fallback; *p; p++)
                        if (*p == '%')
                                lkg_buf_puts(&text, d->component);
                        else
                                lkg_buf_putc(&text, *p);
                if (lkg_buf_failed(&text)) {
                        d->no_memory = true;
                } else if (is_list(f)) {
                        char *rest = text.data, *item;

                        while ((item = strsep(&rest, ",")))
                                add_text(d, member(d, f), item, strlen(item));
                } else {
                        set_scalar(d, f, text.data, NULL);
                }
                lkg_buf_deinit(&text);
        }
}

/* ---- the walk ---- */

static void wrong_type(struct decoder *d, const struct field *f, const struct lkg_value *value, const char *want)
{
        const struct lkg_where where = lkg_where_of(value);

        lkg_report_add(d->report, LKG_ERROR, 3004, &where, "%s%s: is a %s, want %s", d->prefix, f->name,
                       lkg_type_name(lkg_value_type(value)), want);
}

static bool text_ok(struct decoder *d, const struct field *f, const struct lkg_value *value)
{
        size_t size;
        const char *text = lkg_value_text(value, &size);

        if (strlen(text) == size)
                return true;
        complain(d, f, value, text, (struct complaint){ 3004, "free of NUL bytes" });
        return false;
}

static void decode_list(struct decoder *d, const struct field *f, const struct lkg_value *value)
{
        if (lkg_value_type(value) != LKG_LIST) {
                wrong_type(d, f, value, "a list of strings");
                return;
        }
        free_strings(member(d, f));
        for (size_t i = 0; i < lkg_value_size(value); i++) {
                const struct lkg_value *item = lkg_list_get(value, i);
                size_t size;

                if (lkg_value_type(item) != LKG_STRING)
                        wrong_type(d, f, item, "a string");
                else if (text_ok(d, f, item))
                        add_item(d, f, lkg_value_text(item, &size), size, item);
        }
}

/* What a scalar must look like in the document, and how to say so. */
static const char *scalar_problem(const struct field *f, enum lkg_type type)
{
        switch (f->type) {
        case F_BOOL:
                return type == LKG_BOOL ? NULL : "true or false";
        case F_NUMBER:
                return type == LKG_NUMBER ? NULL : "a number";
        case F_BYTES:
        case F_USER:
        case F_GROUP:
                return type == LKG_NUMBER || type == LKG_STRING ? NULL : "a string or a number";
        case F_MODE:
                return type == LKG_STRING ? NULL : "a string: an octal mode in quotes, like \"0600\"";
        case F_DURATION:
                return type == LKG_STRING ? NULL : "a string: a duration like 30s or 5m";
        default:
                return type == LKG_STRING ? NULL : "a string";
        }
}

static void decode_table(struct decoder *d, const struct field *table, const struct lkg_value *map);

static void decode_object(struct decoder *d, const struct field *f, const struct lkg_value *value)
{
        size_t length = strlen(d->prefix);

        if (lkg_value_type(value) != LKG_MAP) {
                wrong_type(d, f, value, "a map");
                return;
        }
        (void)snprintf(d->prefix + length, sizeof(d->prefix) - length, "%s.", f->name);
        decode_table(d, f->sub, value);
        d->prefix[length] = '\0';
}

static void decode_field(struct decoder *d, const struct field *f, const struct lkg_value *value)
{
        const char *problem;

        if (f->type == F_SKIP || lkg_value_type(value) == LKG_NULL) /* null = the default */
                return;
        if (f->set_offset)
                *(bool *)((char *)d->target + f->set_offset) = true;
        if (f->type == F_OBJECT) {
                decode_object(d, f, value);
                return;
        }
        if (is_list(f)) {
                decode_list(d, f, value);
                return;
        }
        problem = scalar_problem(f, lkg_value_type(value));
        if (problem)
                wrong_type(d, f, value, problem);
        else if (lkg_value_type(value) == LKG_BOOL)
                set_scalar(d, f, lkg_value_bool(value) ? "true" : "false", value);
        else if (text_ok(d, f, value))
                set_scalar(d, f, lkg_value_text(value, NULL), value);
}

/* Names that differ by letter case only are the usual slip (`dropinDir`). */
static const char *nearest(const struct field *table, const char *key)
{
        for (const struct field *f = table; f->name; f++)
                if (strcasecmp(f->name, key) == 0)
                        return f->name;
        return NULL;
}

static void unknown_field(struct decoder *d, const struct field *table, const char *key, size_t size,
                          const struct lkg_value *value)
{
        const struct lkg_where where = lkg_where_of(value);
        const char *guess = nearest(table, key);
        struct lkg_buf known = LKG_BUF_INIT;
        char quoted[5 * 64 + 8];

        for (const struct field *f = table; f->name; f++)
                lkg_buf_printf(&known, "%s%s", f == table ? "" : ", ", f->name);
        if (guess)
                lkg_report_add(d->report, LKG_ERROR, 3003, &where, "%sunknown field %s, did you mean %s?", d->prefix,
                               lkg_quote(key, size, quoted), guess);
        else
                lkg_report_add(d->report, LKG_ERROR, 3003, &where, "%sunknown field %s (known: %s)", d->prefix,
                               lkg_quote(key, size, quoted), lkg_buf_failed(&known) ? "" : known.data);
        lkg_buf_deinit(&known);
}

static void decode_table(struct decoder *d, const struct field *table, const struct lkg_value *map)
{
        for (size_t i = 0; i < lkg_value_size(map); i++) {
                const char *key;
                size_t size;
                const struct lkg_value *value = lkg_map_at(map, i, &key, &size);
                const struct field *f = table;

                while (f->name && strcmp(f->name, key) != 0)
                        f++;
                if (f->name)
                        decode_field(d, f, value);
                else
                        unknown_field(d, table, key, size, value);
        }
}

/* ---- documents ---- */

static void decode_component(struct decoder *d, struct lkg_config_component *component, const struct lkg_value *map)
{
        const char *name = map ? lkg_map_get_string(map, "name") : "kubelet";
        char shown[160];

        d->target = component;
        d->component = name && lkg_bare_name_ok(name) ? name : "unnamed";
        (void)snprintf(shown, sizeof(shown), "%s", d->component);
        (void)snprintf(d->prefix, sizeof(d->prefix), "components[%s].", shown);
        apply_defaults(d, component_fields);
        if (map && (!name || !*name)) {
                const struct lkg_where where = lkg_where_of(map);

                lkg_report_add(d->report, LKG_ERROR, 3015, &where,
                               "components: a component has no name (want name: kubelet)");
        }
        if (map)
                decode_table(d, component_fields, map);
        if (!component->base)
                set_text(d, &component->base, component->file ? component->file : "");
        d->prefix[0] = '\0';
}

static void decode_components(struct decoder *d, struct lkg_config *config, const struct lkg_value *list)
{
        const struct field row = { "components", F_SKIP };
        size_t n = list && lkg_value_type(list) == LKG_LIST ? lkg_value_size(list) : 0;

        if (list && lkg_value_type(list) != LKG_LIST && lkg_value_type(list) != LKG_NULL)
                wrong_type(d, &row, list, "a list of components");
        if (n > LKG_COMPONENTS_MAX) {
                const struct lkg_where where = lkg_where_of(list);

                lkg_report_add(d->report, LKG_ERROR, 3016, &where, "components: %zu components, the limit is %u", n,
                               LKG_COMPONENTS_MAX);
                n = LKG_COMPONENTS_MAX;
        }
        config->components = calloc(n ? n : 1, sizeof(*config->components));
        if (!config->components) {
                d->no_memory = true;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *map = lkg_list_get(list, i);

                if (lkg_value_type(map) == LKG_MAP)
                        decode_component(d, &config->components[config->n_components++], map);
                else
                        wrong_type(d, &row, map, "a map");
        }
        if (n == 0) /* nothing said: the component everybody means */
                decode_component(d, &config->components[config->n_components++], NULL);
}

static void decode_header(struct decoder *d, const struct lkg_value *doc, const char *field, const char *want)
{
        const struct lkg_value *value = lkg_map_get(doc, field);
        const struct lkg_where where = lkg_where_of(value ? value : doc);
        char quoted[5 * 64 + 8];

        if (!value)
                lkg_report_add(d->report, LKG_ERROR, 3002, &where, "%s is missing (want %s)", field, want);
        else if (lkg_value_type(value) != LKG_STRING)
                lkg_report_add(d->report, LKG_ERROR, 3002, &where, "%s is a %s (want %s)", field,
                               lkg_type_name(lkg_value_type(value)), want);
        else if (strcmp(lkg_value_text(value, NULL), want) != 0)
                lkg_report_add(d->report, LKG_ERROR, 3002, &where, "%s is %s (want %s)", field,
                               lkg_quote(lkg_value_text(value, NULL), strlen(lkg_value_text(value, NULL)), quoted),
                               want);
}

int lkg_config_decode(const struct lkg_value *doc, const char *directory, struct lkg_config **ret,
                      struct lkg_report *report)
{
        struct lkg_config *config = calloc(1, sizeof(*config));
        struct decoder d = { .target = config, .directory = directory, .component = "", .report = report };
        size_t errors = report->n_severity[LKG_ERROR];

        if (!config)
                return -ENOMEM;
        apply_defaults(&d, config_fields);
        if (doc && lkg_value_type(doc) == LKG_MAP) {
                decode_header(&d, doc, "apiVersion", LKG_CONFIG_API_VERSION);
                decode_header(&d, doc, "kind", LKG_CONFIG_KIND);
                decode_table(&d, config_fields, doc);
                decode_components(&d, config, lkg_map_get(doc, "components"));
        } else {
                if (doc && lkg_value_type(doc) != LKG_NULL) {
                        const struct lkg_where where = lkg_where_of(doc);

                        lkg_report_add(report, LKG_ERROR, 3004, &where, "the document is a %s, want a map",
                                       lkg_type_name(lkg_value_type(doc)));
                }
                decode_components(&d, config, NULL);
        }
        if (d.no_memory) {
                lkg_config_free(config);
                return -ENOMEM;
        }
        lkg_config_check(config, doc, report);
        if (report->n_severity[LKG_ERROR] > errors) {
                lkg_config_free(config);
                return -EBADMSG;
        }
        *ret = config;
        return 0;
}

/* ---- the end ---- */

static void free_table(void *target, const struct field *table)
{
        for (const struct field *f = table; f->name; f++) {
                void *place = (char *)target + f->offset;

                if (f->type == F_OBJECT)
                        free_table(target, f->sub);
                else if (is_list(f))
                        free_strings(place);
                else if (f->type == F_TEXT || f->type == F_NAME || f->type == F_LAYER || f->type == F_PATH)
                        free(*(char **)place);
        }
}

struct lkg_config *lkg_config_free(struct lkg_config *config)
{
        if (!config)
                return NULL;
        for (size_t i = 0; i < config->n_components; i++)
                free_table(&config->components[i], component_fields);
        free(config->components);
        free_table(config, config_fields);
        free(config);
        return NULL;
}
