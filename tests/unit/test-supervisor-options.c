/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of lkgfsd and mount.lkgfs: what is accepted, what is refused and with which message, exit
 * codes.
 */
#include "unit.h"
#include "fs/supervisor/daemon-options.h"

#define WORDS_MAX 12

struct row {
        const char *words[WORDS_MAX];
        int want;          /* 0 or an exit code */
        const char *error; /* part of the message */
        const char *mount_point, *config, *mount_namespace;
        bool background, verbose, fake;
        enum lkg_options_action action;
};

static const struct row daemon_rows[] = {
        { .words = { "lkgfsd", "/mnt" }, .mount_point = "/mnt" },
        { .words = { "lkgfsd", "-N", "/proc/1/ns/mnt", "/mnt" },
          .mount_point = "/mnt",
          .mount_namespace = "/proc/1/ns/mnt" },
        { .words = { "lkgfsd", "--mount-namespace=/x", "/mnt" },
          .mount_point = "/mnt",
          .mount_namespace = "/x" },
        { .words = { "/usr/sbin/lkgfsd", "-v", "/mnt" }, .mount_point = "/mnt", .verbose = true },
        { .words = { "lkgfsd", "/mnt", "--config", "c.yaml" }, .mount_point = "/mnt", .config = "c.yaml" },
        { .words = { "lkgfsd", "--config=c.yaml", "--background", "/mnt" },
          .mount_point = "/mnt",
          .config = "c.yaml",
          .background = true },
        { .words = { "lkgfsd", "-bv", "-c", "c", "--", "-odd" },
          .mount_point = "-odd",
          .config = "c",
          .background = true,
          .verbose = true },
        { .words = { "lkgfsd", "--help" }, .action = LKG_ACTION_HELP },
        { .words = { "lkgfsd", "-h" }, .action = LKG_ACTION_HELP },
        { .words = { "lkgfsd", "--version" }, .action = LKG_ACTION_VERSION },
        { .words = { "lkgfsd" }, .want = EX_USAGE, .error = "want one MOUNTPOINT, got 0 words" },
        { .words = { "lkgfsd", "/a", "/b" }, .want = EX_USAGE, .error = "want one MOUNTPOINT, got 2 words" },
        { .words = { "lkgfsd", "" }, .want = EX_USAGE, .error = "the mount point is an empty word" },
        { .words = { "lkgfsd", "--config", "", "/a" },
          .want = EX_USAGE,
          .error = "configuration file is an empty" },
        { .words = { "lkgfsd", "/a", "--config" },
          .want = EX_USAGE,
          .error = "option --config needs a value" },
        { .words = { "lkgfsd", "--fast", "/a" }, .want = EX_USAGE, .error = "unknown option --fast" },
        { .words = { "lkgfsd", "-o", "ro", "/a" }, .want = EX_USAGE, .error = "unknown option -o" },
};

static const struct row helper_rows[] = {
        { .words = { "mount.lkgfs", "none", "/mnt" }, .mount_point = "/mnt" },
        { .words = { "/sbin/mount.lkgfs", "lkgfs", "/mnt", "-o", "rw" }, .mount_point = "/mnt" },
        { .words = { "mount.lkgfs", "/etc/c.yaml", "/mnt", "-sn" },
          .mount_point = "/mnt",
          .config = "/etc/c.yaml" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-fv", "-t", "lkgfs" },
          .mount_point = "/mnt",
          .fake = true,
          .verbose = true },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o",
                     "config=/c,nofail,_netdev,x-systemd.automount,comment=x y" },
          .mount_point = "/mnt",
          .config = "/c" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o", "defaults", "-o", "config=/late,,noauto" },
          .mount_point = "/mnt",
          .config = "/late" },
        { .words = { "mount.lkgfs", "-h" }, .action = LKG_ACTION_HELP },
        { .words = { "mount.lkgfs", "none" }, .want = EX_USAGE, .error = "want SPEC and DIR, got 1 words" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o", "ro" },
          .want = EX_USAGE,
          .error = "'ro' is not possible" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o", "remount,rw" },
          .want = EX_USAGE,
          .error = "'remount' is not possible: send SIGHUP" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o", "rw,colour=red" },
          .want = EX_USAGE,
          .error = "unknown mount option 'colour'" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o", "config" },
          .want = EX_USAGE,
          .error = "needs a file" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o", "config=" },
          .want = EX_USAGE,
          .error = "needs a file" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-o" },
          .want = EX_USAGE,
          .error = "option -o needs a value" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-N", "/proc/1/ns/mnt" },
          .want = EX_USAGE,
          .error = "-N is not possible" },
        { .words = { "mount.lkgfs", "none", "/mnt", "-x" }, .want = EX_USAGE, .error = "unknown option -x" },
};

static void assert_same(const char *got, const char *want)
{
        if (!want)
                assert_null(got);
        else
                assert_string_equal(got, want);
}

static void run_row(const struct row *row, bool helper)
{
        char words[WORDS_MAX][64], *argv[WORDS_MAX + 1] = { NULL };
        struct lkg_options options = { 0 };
        struct lkg_error err = { 0 };
        int argc = 0, r;

        for (; argc < WORDS_MAX && row->words[argc]; argc++) {
                (void)snprintf(words[argc], sizeof(words[argc]), "%s", row->words[argc]);
                argv[argc] = words[argc];
        }
        r = lkg_options_parse(argc, argv, &options, &err);
        if (r != row->want || (row->error && !strstr(err.message, row->error)))
                fail_msg("%s %s: got %d '%s'", row->words[0], row->words[1] ? row->words[1] : "", r,
                         err.message);
        assert_int_equal(options.helper, helper);
        if (r == 0) {
                assert_int_equal(options.action, row->action);
                assert_same(options.mount_point, row->mount_point);
                assert_same(options.config, row->config);
                assert_same(options.mount_namespace, row->mount_namespace);
                assert_int_equal(options.background, row->background || helper);
                assert_int_equal(options.verbose, row->verbose);
                assert_int_equal(options.fake, row->fake);
        }
        lkg_options_deinit(&options);
}

TEST(test_daemon)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(daemon_rows); i++)
                run_row(&daemon_rows[i], false);
}

TEST(test_helper)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(helper_rows); i++)
                run_row(&helper_rows[i], true);
}

TEST(test_no_words_at_all)
{
        struct lkg_options options;
        struct lkg_error err = { 0 };
        char *argv[] = { NULL };

        assert_int_equal(lkg_options_parse(0, argv, &options, &err), EX_USAGE);
}

TEST(test_exit_codes_of_mount)
{
        assert_int_equal(lkg_options_exit_code(false, EX_NOPERM), EX_NOPERM);
        assert_int_equal(lkg_options_exit_code(true, 0), 0);
        assert_int_equal(lkg_options_exit_code(true, EX_USAGE), 1);
        assert_int_equal(lkg_options_exit_code(true, EX_OSERR), 2);
        assert_int_equal(lkg_options_exit_code(true, EX_NOPERM), 32);
        assert_int_equal(lkg_options_exit_code(true, EX_CONFIG), 32);
}

TEST(test_help_fits_a_screen)
{
        for (int helper = 0; helper < 2; helper++) {
                const char *p = lkg_options_usage(helper);
                unsigned n_lines = 0;

                for (; *p; p = strchr(p, '\n') + 1) {
                        assert_true(strcspn(p, "\n") <= 100);
                        n_lines++;
                }
                assert_true(n_lines <= 24);
        }
}
