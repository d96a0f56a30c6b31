/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal parts of the tool: command line, examples, mount table. What it says to mistakes, and the rest, is golden: session-wrong-use,
 * session-blame-and-diff. No file is touched.
 */
#define UNIT_OWN_MAIN

#include <sys/stat.h>

#include "unit.h"
#include "fs/tool/tool.h"

#define PARSE(...) parse((char *[]){ (char *)(uintptr_t) "lkgfs", __VA_ARGS__, NULL })
#define W(text)    ((char *)(uintptr_t)(text))

static struct lkg_tool tool;
static char message[512];

static int parse(char **argv)
{
        int argc = 0;

        while (argv[argc])
                argc++;
        message[0] = '\0';
        return lkg_tool_parse(&tool, argc, argv, message);
}

TEST(test_verb_and_words)
{
        assert_int_equal(PARSE(W("hold"), W("on")), 0);
        assert_string_equal(tool.verb->name, "hold");
        assert_int_equal(tool.n_words, 1);
        assert_string_equal(tool.words[0], "on");

        assert_int_equal(PARSE(W("wait"), W("--timeout"), W("1m30s"), W("generation"), W("7")), 0);
        assert_true(tool.options.wait.limited);
        assert_int_equal(tool.options.wait.timeout_ns, 90 * LKG_NSEC_PER_SEC);
        assert_int_equal(tool.n_words, 2);
        assert_string_equal(tool.words[1], "7");
}

TEST(test_options_may_stand_anywhere)
{
        assert_int_equal(PARSE(W("-m"), W("/mnt"), W("-ojson"), W("status"), W("--component=kubelet")), 0);
        assert_string_equal(tool.verb->name, "status");
        assert_string_equal(tool.options.mountpoint, "/mnt");
        assert_string_equal(tool.options.component, "kubelet");
        assert_int_equal(tool.options.format, LKG_TOOL_JSON);
        assert_int_equal(tool.n_words, 0);

        assert_int_equal(PARSE(W("patch"), W("a"), W("--type"), W("merge"), W("b"), W("--output=yaml")), 0);
        assert_int_equal(tool.n_words, 2);
        assert_string_equal(tool.words[0], "a");
        assert_string_equal(tool.words[1], "b");
        assert_int_equal(tool.options.format, LKG_TOOL_YAML);
}

TEST(test_double_dash_ends_options)
{
        assert_int_equal(PARSE(W("convert"), W("--"), W("--strict")), 0);
        assert_false(tool.options.document.strict);
        assert_int_equal(tool.n_words, 1);
        assert_string_equal(tool.words[0], "--strict");

        assert_int_equal(PARSE(W("convert"), W("-")), 0);
        assert_string_equal(tool.words[0], "-");
}

TEST(test_the_same_name_means_what_the_verb_means)
{
        assert_int_equal(PARSE(W("bake"), W("--config"), W("b"), W("--directory"), W("/dir")), 0);
        assert_string_equal(tool.options.directory, "/dir");
        assert_int_equal(PARSE(W("bake"), W("--output"), W("/earlier/name")), 0);
        assert_string_equal(tool.options.directory, "/earlier/name");
        assert_int_equal(PARSE(W("bake"), W("-o"), W("json")), -EINVAL);
        assert_int_equal(PARSE(W("render"), W("--output"), W("/dir")), -EINVAL);
}

TEST(test_what_to_judge_by)
{
        assert_int_equal(PARSE(W("check"), W("--release"), W("1.34"), W("--host=cgroup=1")), 0);
        assert_int_equal(tool.options.release, 134);
        assert_int_equal(tool.options.host, 1);
        assert_false(tool.options.effective);
        assert_int_equal(PARSE(W("explain"), W("--release=v1.36.3"), W("maxPods")), 0);
        assert_int_equal(tool.options.release, 136);
        assert_int_equal(PARSE(W("render"), W("--effective"), W("--remote"), W("cm.yaml")), 0);
        assert_true(tool.options.effective);
        assert_string_equal(tool.options.remote, "cm.yaml");
        assert_null(tool.options.remote_key);
        assert_int_equal(PARSE(W("diff"), W("--remote-key=blue"), W("--remote=-")), 0);
        assert_string_equal(tool.options.remote_key, "blue");
        assert_string_equal(tool.options.remote, "-");
        assert_int_equal(tool.options.release, 0);
        assert_int_equal(tool.n_flags, 0);
}

TEST(test_component_flags_are_kept_as_they_are)
{
        assert_int_equal(
                PARSE(W("render"), W("--config"), W("b"), W("--"), W("--max-pods=1"), W("-o"), W("x")), 0);
        assert_string_equal(tool.options.config, "b");
        assert_int_equal(tool.n_words, 0);
        assert_int_equal(tool.n_flags, 3);
        assert_string_equal(tool.flags[0], "--max-pods=1");
        assert_string_equal(tool.flags[2], "x");
        assert_int_equal(tool.options.format, LKG_TOOL_NATIVE);
        assert_int_equal(PARSE(W("check"), W("--")), 0);
        assert_int_equal(tool.n_flags, 0);
}

TEST(test_help_wins_over_missing_words)
{
        assert_int_equal(PARSE(W("hold"), W("--help")), 0);
        assert_true(tool.options.help);
        assert_int_equal(PARSE(W("--version")), 0);
        assert_true(tool.options.version);
        assert_null(tool.verb);
        assert_int_equal(parse((char *[]){ W("lkgfs"), NULL }), 0);
        assert_null(tool.verb);
}

static size_t count_lines(const char *text, size_t *ret_longest)
{
        size_t n = 0;

        *ret_longest = 0;
        for (; *text; n++) {
                size_t length = strcspn(text, "\n");

                if (length > *ret_longest)
                        *ret_longest = length;
                text += length + (text[length] == '\n');
        }
        return n;
}

TEST(test_every_verb_has_an_example_that_parses)
{
        for (size_t i = 0; i < lkg_n_tool_verbs; i++) {
                struct lkg_buf buf = LKG_BUF_INIT;
                char *copy = strdup(lkg_tool_verbs[i].example), *argv[16], *save = NULL;
                size_t longest, n = 0;

                assert_non_null(copy);
                for (char *word = strtok_r(copy, " ", &save); word && n < 15;
                     word = strtok_r(NULL, " ", &save))
                        argv[n++] = word;
                argv[n] = NULL;
                assert_string_equal(argv[0], "lkgfs");
                if (parse(argv) < 0)
                        fail_msg("%s: %s", lkg_tool_verbs[i].example, message);
                assert_ptr_equal(tool.verb, &lkg_tool_verbs[i]);
                free(copy);

                lkg_tool_verb_help(&lkg_tool_verbs[i], &buf);
                assert_non_null(strstr(buf.data, lkg_tool_verbs[i].example));
                assert_in_range(count_lines(buf.data, &longest), 5, 24);
                assert_in_range(longest, 10, 100);
                lkg_buf_deinit(&buf);
        }
}

TEST(test_mounts)
{
        static const char text[] = "proc /proc proc rw,nosuid 0 0\n"
                                   "lkgfs /etc/kubernetes fuse.lkgfs rw,nosuid,nodev,user_id=0 0 0\n"
                                   "/dev/vda /etc/kubernetes/pki ext4 rw 0 0\n"
                                   "lkgfs /mnt/with\\040blank\\134 fuse.lkgfs rw 0 0\n"
                                   "fuse.lkgfs /mnt/x tmpfs rw 0 0\n"
                                   "lkgfs /mnt/y fuse.lkgfsx rw 0 0\n"
                                   "nonsense\n"
                                   "lkgfs /etc/kubernetes fuse.lkgfs rw 0 0\n";
        FILE *table = fmemopen((char *)(uintptr_t)text, strlen(text), "re");
        struct lkg_strings mounts = { 0 };

        assert_non_null(table);
        lkg_view_find_mounts(table, &mounts);
        (void)fclose(table);
        assert_int_equal(mounts.n_items, 2);
        assert_string_equal(mounts.items[0], "/etc/kubernetes");
        assert_string_equal(mounts.items[1], "/mnt/with blank\\");
        lkg_strings_deinit(&mounts);
}

/* Text that json-c does not read back as intended is not printed at all. */
TEST(test_json_is_read_back)
{
        static const struct {
                const char *text;
                int status;
        } rows[] = { { "h\xc3\xa9 \"\x1b\\", LKG_TOOL_DIFFERENT }, { "\xff", LKG_TOOL_FAILED } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                FILE *file = tmpfile();
                int saved = dup(STDOUT_FILENO);
                struct lkg_value *value =
                        lkg_value_new_string(rows[i].text, strlen(rows[i].text), NULL, 0, 0);
                struct stat st;
                int status;

                assert_true(file && value && saved >= 0);
                (void)fflush(stdout);
                (void)dup2(fileno(file), STDOUT_FILENO);
                status = lkg_tool_print_value(value, LKG_TOOL_JSON, LKG_TOOL_DIFFERENT);
                (void)dup2(saved, STDOUT_FILENO);
                assert_int_equal(status, rows[i].status);
                assert_int_equal(fstat(fileno(file), &st), 0);
                assert_int_equal(st.st_size > 0, status != LKG_TOOL_FAILED);
                (void)close(saved);
                (void)fclose(file);
                lkg_value_unref(value);
        }
}

int main(void)
{
        return run_all(NULL, NULL);
}
