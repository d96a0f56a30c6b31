/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our scanner and libyaml agree except where decision 008 says otherwise. On texts without those cases, both
 * refuse, or both make the same nodes of the first document.
 */
#include <yaml.h>

#include "../../core/documents/yaml-scan.h"
#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libyaml is quadratic, and a key of more than 1024 characters is a known case */
#define SIZE_MAX_PEER 2000u

/* ---- the cases that are known ---- */

static bool is_one_of(char c, const char *set)
{
        return c && strchr(set, c);
}

/* The first character after @p that is not a space; a line break at the end. */
static char behind(const char *p, const char *end)
{
        for (p++; p < end && *p == ' '; p++)
                ;
        return p < end ? *p : '\n';
}

/* Does the word, up to the next space, contain one of @set? */
static bool word_has(const char *p, const char *end, const char *set)
{
        for (; p < end && *p != ' ' && *p != '\n'; p++)
                if (is_one_of(*p, set))
                        return true;
        return false;
}

static bool is_known_case(const char *p, const char *end, bool flow)
{
        char next = p + 1 < end ? p[1] : '\0';

        switch (*p) {
        case '\\': /* `\/`, `\'` */
                return next == '/' || next == '\'';
        case '%': /* %YAML 1.2, and %00 in a tag, which libyaml returns as a C string */
                return true;
        case '!': /* `!x,` */
                return word_has(p, end, ",[]{}");
        case '?': /* `[x?y]` */
                return flow;
        case ':': /* `[a:]`, `{a:,b:}` */
                return flow && !is_one_of(next, " \n");
        case '}':
        case ']': /* `{}: b`, and anything after a collection that could be a key */
                return !is_one_of(behind(p, end), ",]}#\n");
        default:
                return *p != '\n' &&
                       (*p < ' ' || *p > '~'); /* encodings, byte order marks, chunks of bytes */
        }
}

static bool is_read_alike(const char *text, size_t size)
{
        bool flow = memchr(text, '[', size) || memchr(text, '{', size);

        if (size > SIZE_MAX_PEER)
                return false;
        for (const char *p = text; p < text + size; p++)
                if (is_known_case(p, text + size, flow))
                        return false;
        return true;
}

/* ---- both ---- */

struct events {
        char *text;
        size_t size;
        FILE *file;
};

static void events_open(struct events *events)
{
        events->file = open_memstream(&events->text, &events->size);
        FUZZ_CHECK(events->file);
}

static void put_text(struct events *events, const char *what, const char *text, size_t size)
{
        (void)fprintf(events->file, "%s(", what);
        (void)fwrite(text, 1, size, events->file);
        (void)fprintf(events->file, ")");
}

static void put_node(struct events *events, const struct lkg_yaml_node *node)
{
        static const char *const names[] = {
                [LKG_YN_SCALAR] = "=", [LKG_YN_ALIAS] = "*", [LKG_YN_LIST] = "[", [LKG_YN_MAP] = "{"
        };

        if (node->type == LKG_YN_ALIAS || node->anchor.size > 0)
                put_text(events, "&", node->anchor.data, node->anchor.size);
        if (node->tag.size > 0)
                put_text(events, "!", node->tag.data, node->tag.size);
        if (node->type == LKG_YN_SCALAR)
                put_text(events, node->plain ? "-" : "'", node->value.data, node->value.size);
        (void)fprintf(events->file, "%s\n", names[node->type]);
}

/* Return: 1; -EBADMSG. */
static int put_ours(struct events *events, struct lkg_yaml_parse *parse, const struct lkg_yaml_node *node)
{
        struct lkg_yaml_open open = { node->shape, node->start, .up = parse->open };
        struct lkg_yaml_node member;
        int r = 1;

        put_node(events, node);
        if (node->type != LKG_YN_LIST && node->type != LKG_YN_MAP)
                return 1;
        parse->open = &open;
        while (r > 0 && (r = lkg_yaml_member(parse, &open, &member)) > 0) {
                r = put_ours(events, parse, &member);
                if (r > 0 && node->type == LKG_YN_MAP)
                        r = lkg_yaml_value(parse, &open, &member);
                if (r > 0 && node->type == LKG_YN_MAP)
                        r = put_ours(events, parse, &member);
        }
        parse->open = open.up;
        (void)fprintf(events->file, "%s\n", node->type == LKG_YN_LIST ? "]" : "}");
        return r < 0 ? r : 1;
}

/* Return: was the first document read to its end? */
static bool read_ours(const char *text, size_t size, struct events *events)
{
        struct lkg_yaml_parse parse = { 0 };
        struct lkg_yaml_node node;
        int r;

        lkg_yaml_scan_init(&parse.scan, text, size);
        r = lkg_yaml_document(&parse, &node);
        if (r > 0)
                r = put_ours(events, &parse, &node);
        if (r > 0)
                r = lkg_yaml_document_end(&parse);
        lkg_yaml_parse_deinit(&parse);
        (void)fflush(events->file);
        return r >= 0;
}

static void put_theirs(struct events *events, const yaml_event_t *event)
{
        const unsigned char *anchor = NULL, *tag = NULL;
        const char *name = "";

        switch (event->type) {
        case YAML_SCALAR_EVENT:
                anchor = event->data.scalar.anchor;
                tag = event->data.scalar.tag;
                name = "=";
                break;
        case YAML_ALIAS_EVENT:
                anchor = event->data.alias.anchor;
                name = "*";
                break;
        case YAML_SEQUENCE_START_EVENT:
                anchor = event->data.sequence_start.anchor;
                tag = event->data.sequence_start.tag;
                name = "[";
                break;
        case YAML_MAPPING_START_EVENT:
                anchor = event->data.mapping_start.anchor;
                tag = event->data.mapping_start.tag;
                name = "{";
                break;
        default:
                name = event->type == YAML_SEQUENCE_END_EVENT ? "]" : "}";
                break;
        }
        if (anchor)
                put_text(events, "&", (const char *)anchor, strlen((const char *)anchor));
        if (tag && *tag)
                put_text(events, "!", (const char *)tag, strlen((const char *)tag));
        if (event->type == YAML_SCALAR_EVENT)
                put_text(events, event->data.scalar.plain_implicit ? "-" : "'",
                         (const char *)event->data.scalar.value, event->data.scalar.length);
        (void)fprintf(events->file, "%s\n", name);
}

static bool read_theirs(const char *text, size_t size, struct events *events)
{
        yaml_parser_t parser;
        yaml_event_type_t type = YAML_NO_EVENT;
        bool fine = true;

        FUZZ_CHECK(yaml_parser_initialize(&parser) == 1);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
        while (fine && type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT) {
                yaml_event_t event;

                fine = yaml_parser_parse(&parser, &event) == 1;
                if (!fine)
                        break;
                type = event.type;
                if (type >= YAML_ALIAS_EVENT)
                        put_theirs(events, &event);
                yaml_event_delete(&event);
        }
        yaml_parser_delete(&parser);
        (void)fflush(events->file);
        return fine;
}

static void events_close(struct events *events)
{
        (void)fclose(events->file);
        free(events->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data;
        struct events ours = { .text = NULL }, theirs = { .text = NULL };
        bool our, their;

        if (!is_read_alike(text, size))
                return 0;
        events_open(&ours);
        events_open(&theirs);
        our = read_ours(text, size, &ours);
        their = read_theirs(text, size, &theirs);
        if (our != their || (our && strcmp(ours.text, theirs.text) != 0)) {
                (void)fprintf(stderr, "---\n%.*s\n--- ours: %s\n%s--- libyaml: %s\n%s", (int)size, text,
                              our ? "read" : "refused", ours.text, their ? "read" : "refused", theirs.text);
                abort();
        }
        events_close(&ours);
        events_close(&theirs);
        return 0;
}
