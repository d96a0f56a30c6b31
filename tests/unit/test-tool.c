/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examples of the help, the mount table, and what is read back. The command line is golden: session-odds, session-wrong-use.
 */
#define UNIT_OWN_MAIN

#include <sys/stat.h>

#include "unit.h"
#include "fs/tool/tool.h"

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
