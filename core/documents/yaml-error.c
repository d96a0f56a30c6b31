/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of syntax errors: line, column and what was expected. They never quote the document.
 */
#include "yaml-state.h"

/* The correct form, for the parser's most frequent errors. */
static const struct {
        const char *problem, *advice;
} advices[] = {
        { "mapping values are not allowed in this context",
          "a value that contains ': ' must be quoted, and a nested key belongs on its own, deeper indented "
          "line" },
        { "found character that cannot start any token",
          "indent with spaces, not tabs, and quote a value that starts with @, ` or %" },
        { "found a tab character that violates indentation", "indent with spaces, not tabs" },
        { "found a tab character where an indentation space is expected", "indent with spaces, not tabs" },
        { "could not find expected ':'", "write 'key: value', with a space after the colon" },
        { "did not find expected key",
          "the line is indented differently from its neighbours, or a quote or bracket "
          "before it is not closed" },
        { "did not find expected '-' indicator", "all items of a list start in the same column" },
        { "did not find expected ',' or ']'", "close the list with ]" },
        { "did not find expected ',' or '}'", "close the map with }" },
        { "did not find expected node content", "a value is missing between two commas" },
        { "found unexpected end of stream", "a quote or bracket is not closed" },
        { "found unknown escape character",
          "in double quotes write a backslash as \\\\, or use single quotes" },
        { "control characters are not allowed", "save the file as plain UTF-8 text" },
        { "found incompatible YAML document", "remove the %YAML line, or write %YAML 1.1" },
        { "block sequence entries are not allowed in this context",
          "start the list on the line below its key" },
};

static const char *advice_for(const char *problem)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(advices); i++)
                if (strcmp(advices[i].problem, problem) == 0)
                        return advices[i].advice;
        return NULL;
}

/* The reader knows only a byte offset. */
static void place_of_offset(const struct lkg_yaml *p, size_t offset, unsigned *ret_line,
                            unsigned *ret_column)
{
        unsigned line = 1, column = 1;

        for (size_t i = 0; i < offset && i < p->size; i++) {
                if (p->data[i] == '\n') {
                        line++;
                        column = 1;
                } else if (((unsigned char)p->data[i] & 0xc0) != 0x80) {
                        column++;
                }
        }
        *ret_line = line;
        *ret_column = column;
}

static int unreadable(struct lkg_yaml *p)
{
        const struct lkg_yaml_text *text = &p->parse.scan.text;
        unsigned line, column;

        place_of_offset(p, text->fault_offset, &line, &column);
        if (text->fault_offset < p->size && p->data[text->fault_offset] == '\0')
                return fail_at(p, LKG_C_BYTES, line, column,
                               "a NUL byte; this is no text file, save it as plain UTF-8 text");
        return fail_at(p, LKG_C_BYTES, line, column, "%s; save the file as plain UTF-8 text", text->fault);
}

int lkg_yaml_syntax_error(struct lkg_yaml *p, int r)
{
        const struct lkg_yaml_scan *scan = &p->parse.scan;
        const char *problem = scan->problem, *advice;
        unsigned line = line_of(scan->problem_at), column = column_of(scan->problem_at);

        if (r == -ENOMEM)
                return r;
        if (scan->unreadable)
                return unreadable(p);
        if (strncmp(problem, "exceeded", strlen("exceeded")) == 0)
                return fail_at(p, LKG_C_LIMIT, line, column, "nested deeper than %u levels",
                               LKG_DOC_DEPTH_MAX);
        advice = advice_for(problem);
        if (scan->context && scan->context_at.line != scan->problem_at.line)
                return fail_at(p, LKG_C_SYNTAX, line, column, "%s (%s that starts on line %u)%s%s", problem,
                               scan->context, line_of(scan->context_at), advice ? "; " : "",
                               advice ? advice : "");
        return fail_at(p, LKG_C_SYNTAX, line, column, "%s%s%s", problem, advice ? "; " : "",
                       advice ? advice : "");
}
