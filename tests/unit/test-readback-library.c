/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries of other versions as second readers: one that is worse is asked differently, or left out, and refuses no document. A process has
 * one verdict about a library, so each case is a process.
 */
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>
#include <yaml.h>

#include <lkg/documents.h>

#include "config-helpers.h"

static enum { AS_IT_IS, STRICT_ASCII, ASCII, ANYTHING } library;
static int flags;

void __real_json_tokener_set_flags(struct json_tokener *tokener, int to);
void __wrap_json_tokener_set_flags(struct json_tokener *tokener, int to);
struct json_object *__real_json_tokener_parse_ex(struct json_tokener *tokener, const char *text, int size);
struct json_object *__wrap_json_tokener_parse_ex(struct json_tokener *tokener, const char *text, int size);
int __real_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);
int __wrap_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);

void __wrap_json_tokener_set_flags(struct json_tokener *tokener, int to)
{
        flags = to;
        __real_json_tokener_set_flags(tokener, to);
}

struct json_object *__wrap_json_tokener_parse_ex(struct json_tokener *tokener, const char *text, int size)
{
        bool refuses = library == ASCII || (library == STRICT_ASCII && flags & JSON_TOKENER_STRICT);

        for (int i = 0; i < size && refuses; i++)
                if ((unsigned char)text[i] > 0x7f)
                        return __real_json_tokener_parse_ex(tokener, "\xff", 1);
        if (library == ANYTHING)
                return __real_json_tokener_parse_ex(tokener, "{\"a\":\"x\"}", 9);
        return __real_json_tokener_parse_ex(tokener, text, size);
}

int __wrap_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event)
{
        return library == ASCII ? 0 : __real_yaml_parser_parse(parser, event);
}

static int read_text(enum lkg_format format, const char *json, const char *text)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        struct lkg_error err = { 0 };

        if (lkg_decode_json(json, strlen(json), LKG_DECODE_UNTYPED, NULL, NULL, &value) < 0)
                return 100;
        return lkg_readback(value, format, text, strlen(text), &err);
}

/* In a process of its own. Return: what lkg_readback() says. */
static int with(int which, enum lkg_format format, const char *json, const char *text)
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                library = which;
                _exit(read_text(format, json, text) & 0xff);
        }
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        return (signed char)WEXITSTATUS(status);
}

#define ZURICH "{\"a\":\"Z\xc3\xbcrich\"}"

/* json-c 0.18, which refuses every character beyond ASCII when it is strict. */
TEST(test_a_library_that_cannot_be_strict)
{
        assert_int_equal(with(STRICT_ASCII, LKG_FORMAT_JSON, ZURICH, ZURICH "\n"), 0);
        assert_int_equal(with(STRICT_ASCII, LKG_FORMAT_JSON, ZURICH, "{\"a\":\"Zurich\"}\n"),
                         (signed char)-EBADMSG);
        assert_int_equal(with(STRICT_ASCII, LKG_FORMAT_JSON, ZURICH, ZURICH "\n{}"), (signed char)-EBADMSG);
}

TEST(test_a_library_that_is_left_out)
{
        assert_int_equal(with(ASCII, LKG_FORMAT_JSON, ZURICH, ZURICH "\n"), LKG_READBACK_LEFT_OUT);
        assert_int_equal(with(ASCII, LKG_FORMAT_YAML, ZURICH, "a: Z\xc3\xbcrich\n"), LKG_READBACK_LEFT_OUT);
        assert_int_equal(with(ANYTHING, LKG_FORMAT_JSON, ZURICH, ZURICH "\n"), LKG_READBACK_LEFT_OUT);
        assert_int_equal(with(ANYTHING, LKG_FORMAT_YAML, ZURICH, "a: Z\xc3\xbcrich\n"), 0);
}

TEST(test_the_finding_names_library_and_version)
{
        struct lkg_error why = { 0 };

        assert_int_equal(with(AS_IT_IS, LKG_FORMAT_JSON, ZURICH, ZURICH "\n"), 0);
        library = ASCII; /* the verdict about json-c of this process is made here */
        assert_int_equal(lkg_readback_test(LKG_FORMAT_JSON, &why), LKG_READBACK_LEFT_OUT);
        assert_ptr_equal(strstr(why.message, "json-c "), why.message);
        assert_non_null(strstr(why.message, json_c_version()));
}
