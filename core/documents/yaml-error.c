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
static int unreadable(struct lkg_yaml *p)
{
        const struct lkg_yaml_text *text = &p->parse.scan.text;
        struct lkg_yaml_mark at = { 0 };

        for (size_t i = 0; i < text->fault_offset && i < p->size; i++) {
                if (p->data[i] == '\n')
                        at = (struct lkg_yaml_mark){ .line = at.line + 1 };
                else if (((unsigned char)p->data[i] & 0xc0) != 0x80)
                        at.column++;
        }
        if (text->fault_offset < p->size && p->data[text->fault_offset] == '\0')
                return fail_at(p, LKG_C_BYTES, at,
                               "a NUL byte; this is not a text file, save it as plain UTF-8 text");
        return fail_at(p, LKG_C_BYTES, at, "%s; save the file as plain UTF-8 text", text->fault);
}

/* ---- where the mistake is ---- */

static const char *character(const struct lkg_yaml_text *text, size_t index)
{
        const char *s = text->data;

        for (; index > 0 && s < text->data + text->size; index--)
                s += lkg_yaml_char_size(*s);
        return s;
}

/* Is there nothing before @at on its line but blanks and the dashes of lists? */
static bool begins_line(const struct lkg_yaml_text *text, struct lkg_yaml_mark at)
{
        return strspn(character(text, at.index - at.column), " -") >= at.column;
}

/* Is it a scalar without quotes? */
static bool is_plain(const struct lkg_yaml_text *text, struct lkg_yaml_mark at)
{
        return !strchr("\"'|>", *character(text, at.index));
}

/* The token before the failure: the scanner is ahead of the parser. */
static struct lkg_yaml_mark token_before(const struct lkg_yaml_scan *s)
{
        bool scanning = s->problem_at.index == s->at.index;

        return scanning && s->n_tokens > s->head ? s->tokens[s->n_tokens - 1].at : s->taken;
}

/*
 * A mistake is often noticed on a later line than it was made on: a key without its colon, a quote or a bracket that is not closed,
 * a comma that is missing at the end of a line.
 */
static struct lkg_yaml_mark place_of_mistake(const struct lkg_yaml *p)
{
        const struct lkg_yaml_scan *s = &p->parse.scan;
        struct lkg_yaml_mark noticed = s->problem_at, before = token_before(s);
        bool flow = s->context && strstr(s->context, "flow");

        if (strcmp(s->problem, "could not find expected ':'") == 0 ||
            strcmp(s->problem, "found unexpected end of stream") == 0)
                return s->context_at;
        if (flow && p->parse.open && *s->p == '\0' && s->problem_at.index == s->at.index)
                return p->parse.open->start;
        if (before.line >= noticed.line)
                return noticed;
        if (flow)
                return before;
        if (begins_line(&s->text, noticed)) /* in the wrong column */
                return noticed;
        return is_plain(&s->text, before) && !begins_line(&s->text, before) ? noticed : before;
}

static const char *advice_at(const struct lkg_yaml_scan *scan, bool moved)
{
        if (moved && strcmp(scan->problem, "mapping values are not allowed in this context") == 0)
                return "write 'key: value', with a colon behind the key and a space after it, and close "
                       "what "
                       "is quoted";
        return advice_for(scan->problem);
}

int lkg_yaml_syntax_error(struct lkg_yaml *p)
{
        const struct lkg_yaml_scan *scan = &p->parse.scan;
        const char *problem = scan->problem, *advice;
        struct lkg_yaml_mark at;
        char where[128] = "";

        if (scan->unreadable)
                return unreadable(p);
        if (strncmp(problem, "exceeded", strlen("exceeded")) == 0)
                return fail_at(p, LKG_C_LIMIT, scan->problem_at, "nested deeper than %u levels",
                               LKG_DOC_DEPTH_MAX);
        at = place_of_mistake(p);
        advice = advice_at(scan, at.line != scan->problem_at.line);
        if (at.line != scan->problem_at.line)
                (void)snprintf(where, sizeof(where), " (noticed on line %u)", scan->problem_at.line + 1);
        else if (scan->context && scan->context_at.line != scan->problem_at.line)
                (void)snprintf(where, sizeof(where), " (%s that starts on line %u)", scan->context,
                               scan->context_at.line + 1);
        return fail_at(p, LKG_C_SYNTAX, at, "%s%s%s%s", problem, where, advice ? "; " : "",
                       advice ? advice : "");
}
