/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a unit, and variables in its command line: systemd.exec(5), systemd.service(5). */
#include <ctype.h>

#include <lkg/text.h>

static bool is_assignment(const char *text)
{
        size_t n = 0;

        while (text[n] == '_' || isalpha((unsigned char)text[n]) ||
               (n > 0 && isdigit((unsigned char)text[n])))
                n++;
        return n > 0 && text[n] == '=';
}

/* The place of the value of a variable; NULL: it is not set. */
static char **find_variable(const struct lkg_strings *env, const char *name, size_t size)
{
        for (size_t i = 0; i < env->n_items; i++)
                if (strncmp(env->items[i], name, size) == 0 && env->items[i][size] == '=')
                        return &env->items[i];
        return NULL;
}

int lkg_env_set(struct lkg_strings *env, const char *assignment)
{
        char **earlier, *copy;

        if (!is_assignment(assignment))
                return 0;
        copy = strdup(assignment);
        if (!copy)
                return -ENOMEM;
        earlier = find_variable(env, assignment, strcspn(assignment, "="));
        if (!earlier)
                return lkg_strings_take(&env->items, &env->n_items, copy);
        free(*earlier);
        *earlier = copy;
        return 0;
}

/* ---- environment files ---- */

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r';
}

/*
 * Parts in quotes, `"a b" 'c'`, are one value without a blank in between. What begins without a quote goes to the end of
 * the line, without trailing blanks. In double quotes a backslash escapes special characters. Return: at the line break.
 */
static const char *parse_value(const char *p, const char *end, struct lkg_buf *value)
{
        size_t keep = value->size;
        bool bare = false; /* the part without quotes */
        char quote = '\0';

        for (; p < end && (quote || *p != '\n'); p++) {
                bool escaped = *p == '\\' && quote != '\'' && p + 1 < end;

                if (quote ? *p == quote : !bare && (*p == '"' || *p == '\'')) {
                        quote = quote ? '\0' : *p;
                        continue;
                }
                if (!quote && !bare && is_blank(*p))
                        continue;
                bare = !quote;
                p += escaped;
                if (escaped && *p == '\n')
                        continue;
                if (escaped && quote && !strchr("\"\\`$", *p))
                        lkg_buf_putc(value, '\\');
                lkg_buf_putc(value, *p);
                if (escaped || quote || !is_blank(*p))
                        keep = value->size;
        }
        if (!lkg_buf_failed(value))
                value->size = keep;
        return p;
}

int lkg_env_parse(struct lkg_strings *env, const char *text, size_t size)
{
        const char *p = text, *end = text + size;
        int r = 0;

        while (r == 0 && p < end) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf item = LKG_BUF_INIT;
                bool comment;

                while (p < end && (is_blank(*p) || *p == '\n'))
                        p++;
                comment = p < end && (*p == '#' || *p == ';');
                for (; p < end && (comment || *p != '=') && *p != '\n'; p++)
                        if (comment)
                                p += *p == '\\' && p + 1 < end; /* it continues in the next line */
                        else if (!is_blank(*p))
                                lkg_buf_putc(&item, *p);
                if (p == end || *p != '=')
                        continue; /* not an assignment */
                lkg_buf_putc(&item, '=');
                p = parse_value(p + 1, end, &item);
                lkg_buf_putc(&item, '\0');
                r = lkg_buf_failed(&item) ? -ENOMEM : lkg_env_set(env, item.data);
        }
        return r;
}

/* ---- expansion ---- */

/* "" if it is not set, as for systemd. */
static const char *value_of(const struct lkg_strings *env, const char *name, size_t size,
                            struct lkg_strings *ret_lacking)
{
        char **item = find_variable(env, name, size);

        if (!item && ret_lacking)
                (void)lkg_strings_add(ret_lacking, name, size); /* only for people */
        return item ? *item + size + 1 : "";
}

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

void lkg_exec_expand(const struct lkg_strings *env, const char *word, struct lkg_buf *ret,
                     struct lkg_strings *ret_lacking)
{
        if (word[0] == '$' && word[1] != '{' && word[1] != '$') {
                split(value_of(env, word + 1, strlen(word + 1), ret_lacking), ret);
                return;
        }
        for (const char *p = word; *p; p++) {
                size_t n = *p == '$' && p[1] == '{' ? strcspn(p + 2, "}:") : 0;

                if (*p == '$' && p[1] == '$') {
                        lkg_buf_putc(ret, *p++);
                        /* no defaults: ${A:-b} is not expanded */
                } else if (*p == '$' && p[1] == '{' && p[2 + n] == '}') {
                        lkg_buf_puts(ret, value_of(env, p + 2, n, ret_lacking));
                        p += 2 + n;
                } else {
                        lkg_buf_putc(ret, *p);
                }
        }
        lkg_buf_putc(ret, '\0');
}
