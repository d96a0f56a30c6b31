/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions and answers in files: rows/NAME.rows.
 *
 *     # a comment
 *     == OPERATION ARGUMENT...
 *     INPUT => OUTPUT
 *
 * An operation is a function from an input to a text, or of what came before in its section, too; a program has a table of them. In both, \n \t \\ \xNN and \s (a space at an
 * end) stand for bytes; in an input, \{30:TEXT} is a text thirty times. Inputs of several parts have ` ++ ` between them.
 *
 * A story is a section of steps:
 *
 *     == steps
 *     WORD ARGUMENT... => OUTPUT
 *
 * STEP(word, n) { ... } says what is done and seen; q->parts are its n arguments, of which the last one may have spaces, and those that a row
 * leaves out are "". STEP(steps, 0) begins the story. The program's table is `rows_steps`.
 *
 * LKG_ROWS_WRITE=1 writes what is answered now into the file; read the difference before you commit it.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lkg/text.h>

#include "unit.h"

#define ROWS_PARTS_MAX 16

/* What a row asks: bytes with a NUL behind, its parts, and the arguments of its section. */
struct question {
        const char *text;
        size_t size;
        const char *parts[ROWS_PARTS_MAX];
        size_t n_parts;
        const char *args[ROWS_PARTS_MAX];
        size_t n_args;
        bool begins; /* the first row of its section */
};

struct operation {
        const char *name;
        void (*answer)(const struct question *q, struct lkg_buf *ret);
        size_t n_args; /* of a step */
};

#define ROWS_STEPS_MAX 128

static struct operation rows_steps[ROWS_STEPS_MAX] __attribute__((unused));

#define STEP(word, n)                                                           \
        static void step_##word(const struct question *q, struct lkg_buf *ret); \
        __attribute__((constructor)) static void add_step_##word(void)          \
        {                                                                       \
                size_t i = 0;                                                   \
                                                                                \
                while (rows_steps[i].name)                                      \
                        i++;                                                    \
                rows_steps[i] = (struct operation){ #word, step_##word, (n) };  \
        }                                                                       \
        static void step_##word(const struct question *q, struct lkg_buf *ret)

/* Is @name among the arguments? */
static inline bool rows_has(const struct question *q, const char *name)
{
        for (size_t i = 0; i < q->n_args; i++)
                if (strcmp(q->args[i], name) == 0)
                        return true;
        return false;
}

/* The value of the argument `name=VALUE`; @otherwise without one. */
static inline const char *rows_arg(const struct question *q, const char *name, const char *otherwise)
{
        size_t size = strlen(name);

        for (size_t i = 0; i < q->n_args; i++)
                if (strncmp(q->args[i], name, size) == 0 && q->args[i][size] == '=')
                        return q->args[i] + size + 1;
        return otherwise;
}

static inline unsigned rows_number(const struct question *q, const char *name)
{
        return (unsigned)strtoul(rows_arg(q, name, "0"), NULL, 10);
}

/* What @text stands for, with a NUL behind; the caller frees it. */
static inline char *rows_decode(const char *text, size_t *ret_size)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        while (*text) {
                char c = *text++;

                if (c == '\\' && *text == 'x') {
                        const char digits[] = { text[1], text[2], '\0' };

                        c = (char)strtoul(digits, NULL, 16);
                        text += 3;
                } else if (c == '\\' && *text == '{') {
                        char *of, *end;
                        unsigned long n = strtoul(text + 1, &of, 10);
                        LKG_CLEANUP(lkg_freep) char *piece = NULL;
                        LKG_CLEANUP(lkg_freep) char *decoded = NULL;
                        size_t size;

                        end = strchr(of, '}');
                        assert_non_null(end);
                        piece = strndup(of + 1, (size_t)(end - of) - 1);
                        decoded = rows_decode(piece, &size);
                        for (; n > 0; n--)
                                lkg_buf_append(&buf, decoded, size);
                        text = end + 1;
                        continue;
                } else if (c == '\\') {
                        c = *text++;
                        c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 's' ? ' ' : c);
                }
                lkg_buf_putc(&buf, c);
        }
        *ret_size = buf.size;
        lkg_buf_putc(&buf, '\0');
        assert_false(lkg_buf_failed(&buf));
        return lkg_buf_steal(&buf, NULL);
}

static inline void rows_encode(const char *text, size_t size, struct lkg_buf *ret)
{
        while (size > 0 && text[size - 1] == '\n')
                size--;
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)text[i];

                if (c == '\n' || c == '\t' || c == '\\')
                        lkg_buf_printf(ret, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : c);
                else if (c == ' ' && (i == 0 || i + 1 == size))
                        lkg_buf_puts(ret, "\\s");
                else if (c < ' ' || c >= 0x7f)
                        lkg_buf_printf(ret, "\\x%02x", c);
                else
                        lkg_buf_putc(ret, (char)c);
        }
        lkg_buf_puts(ret, "");
}

/* At most @max parts; the last one is the rest. */
static inline size_t rows_split_to(char *text, const char *between, size_t max, const char **ret)
{
        size_t n = 0;

        for (char *next; text; text = next) {
                assert_true(n < max);
                next = n + 1 < max || max == ROWS_PARTS_MAX ? strstr(text, between) : NULL;
                ret[n++] = text;
                if (next) {
                        *next = '\0';
                        next += strlen(between);
                }
        }
        return n;
}

static inline size_t rows_split(char *text, const char *between, const char **ret)
{
        return rows_split_to(text, between, ROWS_PARTS_MAX, ret);
}

static inline const struct operation *rows_operation(const struct operation *operations, const char *name)
{
        while (operations->name && strcmp(operations->name, name) != 0)
                operations++;
        if (!operations->name)
                fail_msg("no operation '%s'", name);
        return operations;
}

/* What @operation says to the left side of a row. */
static inline char *rows_ask(const struct operation *operation, struct question *q, const char *input)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = rows_decode(input, &q->size);
        LKG_CLEANUP(lkg_freep) char *parts = strdup(input);
        struct lkg_buf ret = LKG_BUF_INIT;
        size_t size;

        assert_non_null(parts);
        q->text = text;
        q->n_parts = operation->n_args ? rows_split_to(parts, " ", operation->n_args, q->parts)
                                       : rows_split(parts, " ++ ", q->parts);
        for (; q->n_parts < operation->n_args; q->n_parts++)
                q->parts[q->n_parts] = "";
        for (size_t i = 0; i < q->n_parts; i++)
                q->parts[i] = rows_decode(q->parts[i], &size);
        operation->answer(q, &said);
        rows_encode(said.data, said.size, &ret);
        for (size_t i = 0; i < q->n_parts; i++)
                free((char *)q->parts[i]);
        assert_false(lkg_buf_failed(&said) || lkg_buf_failed(&ret));
        return lkg_buf_steal(&ret, NULL);
}

static inline char *rows_step(const struct operation *operations, struct question *q, const char *row)
{
        const struct operation *operation;
        size_t size = strcspn(row, " ");
        char word[32];

        (void)snprintf(word, sizeof(word), "%.*s", (int)size, row);
        operation = rows_operation(operations, word);
        if (operation->n_args == 0 && row[size])
                fail_msg("%s takes no words: '%s'", word, row);
        return rows_ask(operation, q, row + size + (row[size] == ' '));
}

/* The value of an enum of @n values whose name, by @name_of, is @word. */
#define rows_named(name_of, n, word)                                       \
        ({                                                                 \
                unsigned named = 0;                                        \
                while (named < (n) && strcmp(name_of(named), (word)) != 0) \
                        named++;                                           \
                if (named == (n))                                          \
                        fail_msg("what is '%s'?", (word));                 \
                named;                                                     \
        })

static const char *rows_path; /* what is being asked now */
static unsigned rows_line;

static inline void rows_say_where(void)
{
        if (rows_line)
                print_error("%s:%u: it ended here\n", rows_path, rows_line);
}

/* Every row of a file. @operations end with a row of zeros. */
static inline void rows_check(const char *path, const struct operation *operations)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf written = LKG_BUF_INIT;
        const struct operation *operation = NULL;
        LKG_CLEANUP(lkg_freep) char *line = NULL;
        LKG_CLEANUP(lkg_freep) char *header = NULL;
        unsigned n_rows = 0, n_wrong = 0;
        bool steps = false;
        FILE *file = fopen(path, "re");
        struct question q = { 0 };
        size_t room = 0;
        ssize_t size;

        if (!file)
                fail_msg("%s cannot be read", path);
        if (!rows_path)
                (void)atexit(rows_say_where);
        rows_say_where(); /* of the file before */
        rows_path = path;
        rows_line = 0;
        while ((size = getline(&line, &room, file)) > 0) {
                char *arrow = strstr(line, " =>");

                line[size - 1] = '\0';
                rows_line++;
                if (strncmp(line, "== ", 3) == 0) {
                        lkg_buf_printf(&written, "%s\n", line);
                        free(header);
                        header = strdup(line + 3);
                        q.n_args = rows_split(header, " ", q.args);
                        operation = rows_operation(operations, q.args[0]);
                        steps = strcmp(q.args[0], "steps") == 0;
                        q.begins = true;
                        if (steps)
                                operation->answer(&q, NULL);
                } else if (!arrow || *line == '#') {
                        if (*line && *line != '#')
                                fail_msg("%s:%u: neither a row nor a comment", path, rows_line);
                        lkg_buf_printf(&written, "%s\n", line);
                } else {
                        const char *want = arrow[3] ? arrow + 4 : "";
                        LKG_CLEANUP(lkg_freep) char *got = NULL;

                        *arrow = '\0';
                        assert_non_null(operation);
                        got = steps ? rows_step(operations, &q, line) : rows_ask(operation, &q, line);
                        q.begins = false;
                        lkg_buf_printf(&written, "%s =>%s%s\n", line, *got ? " " : "", got);
                        n_rows++;
                        if (strcmp(got, want) == 0)
                                continue;
                        n_wrong++;
                        print_error("%s:%u: %s\n  got  %s\n  want %s\n", path, rows_line, line, got, want);
                }
        }
        rows_line = 0;
        (void)fclose(file);
        assert_true(n_rows > 0);
        if (getenv("LKG_ROWS_WRITE")) {
                file = fopen(path, "we");
                assert_non_null(file);
                assert_int_equal(fwrite(written.data, 1, written.size, file), written.size);
                assert_int_equal(fclose(file), 0);
        }
        assert_int_equal(n_wrong, 0);
}

#define ROWS_WITH(name, operations, setup, teardown)                       \
        TEST_WITH(test_rows_of_##name, setup, teardown)                    \
        {                                                                  \
                rows_check(TEST_DIR "/rows/" #name ".rows", (operations)); \
        }

#define ROWS(name, operations) ROWS_WITH(name, operations, NULL, NULL)
