/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines and environment files as the service manager reads them: see facts-collectors.h. */
#include <string.h>

#include <lkg/text.h>

#include "facts-collectors.h"

/* ---- the environment ---- */

void lkg_env_deinit(struct lkg_env *env)
{
        for (size_t i = 0; i < env->n_items; i++)
                free(env->items[i]);
        free(env->items);
        *env = (struct lkg_env){ 0 };
}

static bool is_name_char(char c, bool first)
{
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (!first && c >= '0' && c <= '9');
}

static bool is_assignment(const char *text)
{
        size_t n = 0;

        while (is_name_char(text[n], n == 0))
                n++;
        return n > 0 && text[n] == '=';
}

int lkg_env_set(struct lkg_env *env, const char *assignment)
{
        size_t n = strcspn(assignment, "=") + 1;
        char *copy;

        if (!is_assignment(assignment))
                return 0;
        copy = strdup(assignment);
        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < env->n_items; i++) {
                if (strncmp(env->items[i], assignment, n) != 0)
                        continue;
                free(env->items[i]);
                env->items[i] = copy;
                return 0;
        }
        return lkg_strings_take(&env->items, &env->n_items, copy);
}

static const char *get(const struct lkg_env *env, const char *name, size_t size)
{
        for (size_t i = 0; i < env->n_items; i++)
                if (strncmp(env->items[i], name, size) == 0 && env->items[i][size] == '=')
                        return env->items[i] + size + 1;
        return NULL;
}

/* ---- environment files ---- */

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

/* A comment continues after a backslash at the end of its line. Return: the position after it. */
static const char *skip_comment(const char *p, const char *end)
{
        for (; p < end && *p != '\n'; p++)
                if (*p == '\\' && p + 1 < end)
                        p++;
        return p;
}

/*
 * Within quotes. In double quotes a backslash escapes special characters.
 * Return: the position after the end.
 */
static const char *quoted(const char *p, const char *end, struct lkg_buf *value)
{
        char quote = *p++;

        for (; p < end && *p != quote; p++) {
                if (quote == '"' && *p == '\\' && p + 1 < end) {
                        p++;
                        if (*p == '\n')
                                continue;
                        if (!strchr("\"\\`$", *p))
                                lkg_buf_putc(value, '\\');
                }
                lkg_buf_putc(value, *p);
        }
        return p < end ? p + 1 : p;
}

/* An unquoted value: to the end of the line, without trailing blanks. Return: at the line break. */
static const char *unquoted(const char *p, const char *end, struct lkg_buf *value)
{
        size_t keep = value->size;

        for (; p < end && *p != '\n'; p++) {
                bool escaped = *p == '\\' && p + 1 < end;

                p += escaped;
                if (escaped && *p == '\n')
                        continue;
                lkg_buf_putc(value, *p);
                if (escaped || !is_blank(*p))
                        keep = value->size;
        }
        if (!lkg_buf_failed(value))
                value->size = keep;
        return p;
}

/* `"a b" 'c'` is one value without a blank in between. Return: at the line break. */
static const char *parse_value(const char *p, const char *end, struct lkg_buf *value)
{
        while (p < end && *p != '\n') {
                if (is_blank(*p))
                        p++;
                else if (*p == '"' || *p == '\'')
                        p = quoted(p, end, value);
                else
                        return unquoted(p, end, value);
        }
        return p;
}

int lkg_env_parse(struct lkg_env *env, const char *text, size_t size)
{
        const char *p = text, *end = text + size;
        int r = 0;

        while (r == 0 && p < end) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf item = LKG_BUF_INIT;
                const char *name;

                while (p < end && (is_blank(*p) || *p == '\n'))
                        p++;
                if (p == end)
                        break;
                if (*p == '#' || *p == ';') {
                        p = skip_comment(p, end);
                        continue;
                }
                for (name = p; p < end && *p != '=' && *p != '\n'; p++)
                        if (!is_blank(*p))
                                lkg_buf_putc(&item, *p);
                if (p == name || p == end || *p == '\n')
                        continue; /* not an assignment */
                lkg_buf_putc(&item, '=');
                p = parse_value(p + 1, end, &item);
                lkg_buf_putc(&item, '\0');
                r = lkg_buf_failed(&item) ? -ENOMEM : lkg_env_set(env, item.data);
        }
        return r;
}

/* ---- expansion ---- */

/* Splits the value of a variable that is a whole word. */
static void split(const char *p, struct lkg_buf *ret)
{
        while (*p) {
                char quote = '\0';

                p += strspn(p, " \t\n\r");
                if (!*p)
                        return;
                for (; *p && (quote || !strchr(" \t\n\r", *p)); p++) {
                        if (*p == '\\' && p[1] && quote != '\'')
                                lkg_buf_putc(ret, *++p);
                        else if (quote ? *p == quote : (*p == '"' || *p == '\''))
                                quote = quote ? '\0' : *p;
                        else
                                lkg_buf_putc(ret, *p);
                }
                lkg_buf_putc(ret, '\0');
        }
}

void lkg_exec_expand(const struct lkg_env *env, const char *word, struct lkg_buf *ret)
{
        const char *value;

        if (word[0] == '$' && word[1] != '{' && word[1] != '$') {
                value = get(env, word + 1, strlen(word + 1));
                if (value)
                        split(value, ret);
                return;
        }
        for (const char *p = word; *p; p++) {
                size_t n = *p == '$' && p[1] == '{' ? strcspn(p + 2, "}:") : 0;

                if (*p == '$' && p[1] == '$') {
                        lkg_buf_putc(ret, *p++);
                        /* no defaults: ${A:-b} is not expanded */
                } else if (*p == '$' && p[1] == '{' && p[2 + n] == '}') {
                        value = get(env, p + 2, n);
                        lkg_buf_puts(ret, value ? value : "");
                        p += 2 + n;
                } else {
                        lkg_buf_putc(ret, *p);
                }
        }
        lkg_buf_putc(ret, '\0');
}
