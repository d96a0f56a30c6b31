/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>

#include "daemon-options.h"
#include "jobs.h"

#define MOUNT_USAGE   1
#define MOUNT_SYSTEM  2
#define MOUNT_FAILURE 32

enum { OPT_VERSION = 256 };

static const char daemon_usage[] =
        "Usage: lkgfsd [OPTION...] MOUNTPOINT\n"
        "Mount the live merged configuration of the components of this node on MOUNTPOINT.\n"
        "\n"
        "  -c, --config FILE   configuration (default " LKG_CONFIG_DEFAULT ", which may be absent)\n"
        "  -b, --background    return when the view is served\n"
        "  -N, --mount-namespace FILE\n"
        "                      mount in this namespace (/proc/1/ns/mnt); helpers stay in the caller's\n"
        "  -v, --verbose       log more\n"
        "      --version       print the version and exit\n"
        "  -h, --help          print this and exit\n"
        "\n"
        "SIGTERM unmounts and exits; SIGQUIT exits, for a restart; SIGHUP reads the configuration again.\n"
        "Exit codes: 64 usage, 69 unavailable, 70 internal, 74 input/output, 77 permission, 78 "
        "configuration.\n"
        "\n"
        "Example: lkgfsd --background /etc/kubernetes\n";

static const char helper_usage[] =
        "Usage: mount.lkgfs SPEC DIR [-fnsv] [-o OPTION,...]\n"
        "Called by mount(8): mount -t lkgfs SPEC DIR. SPEC is `none`, `lkgfs` or a configuration file.\n"
        "\n"
        "  -o config=FILE   configuration (default " LKG_CONFIG_DEFAULT ", which may be absent)\n"
        "  -f               check everything, but do not mount\n"
        "  -v               log more\n"
        "\n"
        "Example line of fstab: lkgfs /etc/kubernetes lkgfs defaults,nofail 0 0\n";

const char *lkg_options_usage(bool helper)
{
        return helper ? helper_usage : daemon_usage;
}

static const char *help_of(const struct lkg_options *options)
{
        return options->helper ? "mount.lkgfs -h" : "lkgfsd --help";
}

/* Options of -o that are not possible. */
static const struct {
        const char *name, *why;
} refused[] = {
        { "ro", "the view has writable parts; there is no read-only mount" },
        { "remount", "send SIGHUP to lkgfsd, or unmount and mount again" },
        { "bind", "use `mount --bind`" },
        { "suid", "the view is always nosuid" },
        { "dev", "the view is always nodev" },
        { "noexec", "programs below the source directory stay executable" },
};

/* General options that mount(8), systemd or an administrator put into any fstab line. */
static const char *const ignored[] = {
        "defaults",      "rw",          "nosuid",
        "nodev",         "exec",        "async",
        "sync",          "dirsync",     "atime",
        "noatime",       "diratime",    "nodiratime",
        "relatime",      "norelatime",  "strictatime",
        "nostrictatime", "lazytime",    "nolazytime",
        "iversion",      "noiversion",  "silent",
        "loud",          "auto",        "noauto",
        "nofail",        "_netdev",     "user",
        "nouser",        "users",       "owner",
        "group",         "allow_other", "default_permissions",
        "comment",       "helper",
};

static int mount_option(char *option, struct lkg_options *options, struct lkg_error *err)
{
        char *value = strchr(option, '=');

        if (value)
                *value++ = '\0';
        if (!*option || strncmp(option, "x-", 2) == 0 || strncmp(option, "X-", 2) == 0)
                return 0;
        if (strcmp(option, "config") == 0) {
                if (!value || !*value)
                        return lkg_fail(err, EX_USAGE, 0,
                                        "mount option 'config' needs a file: -o config=FILE.");
                options->config = value;
                return 0;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(refused); i++)
                if (strcmp(refused[i].name, option) == 0)
                        return lkg_fail(err, EX_USAGE, 0, "mount option '%s' is not possible: %s.", option,
                                        refused[i].why);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ignored); i++)
                if (strcmp(ignored[i], option) == 0)
                        return 0;
        return lkg_fail(err, EX_USAGE, 0, "unknown mount option '%s'; the only one of lkgfs is config=FILE.",
                        option);
}

/* Several -o form one list. It is our own copy, because the parser splits it in place. */
static int append_list(struct lkg_options *options, const char *list, struct lkg_error *err)
{
        char *joined = NULL;

        if (asprintf(&joined, "%s%s%s", options->storage ? options->storage : "",
                     options->storage ? "," : "", list) < 0) {
                lkg_error_set(err, -ENOMEM, NULL, "mount options");
                return EX_OSERR;
        }
        free(options->storage);
        options->storage = joined;
        return 0;
}

static int positional_helper(char *const words[], struct lkg_options *options, struct lkg_error *err)
{
        char *list = options->storage, *option;
        int r = 0;

        if (strcmp(words[0], "none") != 0 && strcmp(words[0], "lkgfs") != 0)
                options->config = words[0];
        options->mount_point = words[1];
        while (r == 0 && (option = strsep(&list, ",")))
                r = mount_option(option, options, err);
        return r;
}

static int take_option(int c, const char *word, struct lkg_options *options, struct lkg_error *err)
{
        switch (c) {
        case 'c':
                options->config = optarg;
                return 0;
        case 'N':
                if (options->helper)
                        return lkg_fail(err, EX_USAGE, 0,
                                        "-N is not possible: lkgfs serves the mount namespace it runs in.");
                options->mount_namespace = optarg;
                return 0;
        case 'o':
                return append_list(options, optarg, err);
        case 'b':
                options->background = true;
                return 0;
        case 'f':
                options->fake = true;
                return 0;
        case 'v':
                options->verbose = true;
                return 0;
        case 'h':
                options->action = LKG_ACTION_HELP;
                return 0;
        case OPT_VERSION:
                options->action = LKG_ACTION_VERSION;
                return 0;
        case ':':
                return lkg_fail(err, EX_USAGE, 0, "option %s needs a value.", word);
        case '?':
                return lkg_fail(err, EX_USAGE, 0, "unknown option %s; see %s.", word, help_of(options));
        default: /* s, n, t of mount(8) */
                return 0;
        }
}

static int parse(int argc, char *const argv[], struct lkg_options *options, struct lkg_error *err)
{
        static const struct option none[] = { { NULL, 0, NULL, 0 } };
        static const struct option names[] = {
                { "config", required_argument, NULL, 'c' },
                { "background", no_argument, NULL, 'b' },
                { "mount-namespace", required_argument, NULL, 'N' },
                { "verbose", no_argument, NULL, 'v' },
                { "version", no_argument, NULL, OPT_VERSION },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        const bool helper = options->helper;
        const int n_wanted = helper ? 2 : 1;
        int c, r = 0;

        while (r == 0 && (c = getopt_long(argc, argv, helper ? ":sfnvhN:o:t:" : ":c:bvhN:",
                                          helper ? none : names, NULL)) != -1) {
                char letter[] = { '-', (char)optopt, '\0' };

                r = take_option(c, helper ? letter : argv[optind - 1], options, err);
        }
        if (r != 0 || options->action != LKG_ACTION_RUN)
                return r;
        if (argc - optind != n_wanted)
                return lkg_fail(err, EX_USAGE, 0, "want %s, got %d words; see %s.",
                                helper ? "SPEC and DIR" : "one MOUNTPOINT", argc - optind, help_of(options));
        if (helper)
                return positional_helper(argv + optind, options, err);
        options->mount_point = argv[optind];
        return 0;
}

int lkg_options_parse(int argc, char *const argv[], struct lkg_options *ret, struct lkg_error *err)
{
        struct lkg_options options = { .action = LKG_ACTION_RUN };
        const char *base;
        int r;

        if (argc < 1 || !argv[0])
                return lkg_fail(err, EX_USAGE, 0, "no arguments.");
        base = strrchr(argv[0], '/');
        options.helper = options.background = strcmp(base ? base + 1 : argv[0], "mount.lkgfs") == 0;
        opterr = 0;
        optind = 0; /* glibc: forget an earlier parse of this process */
        r = parse(argc, argv, &options, err);
        if (r == 0 && options.action == LKG_ACTION_RUN && !*options.mount_point)
                r = lkg_fail(err, EX_USAGE, 0, "the mount point is an empty word.");
        if (r == 0 && options.config && !*options.config)
                r = lkg_fail(err, EX_USAGE, 0, "the name of the configuration file is an empty word.");
        *ret = options;
        if (r != 0) {
                lkg_options_deinit(ret);
                ret->helper = options.helper;
        }
        return r;
}

void lkg_options_deinit(struct lkg_options *options)
{
        free(options->storage);
        *options = (struct lkg_options){ 0 };
}

int lkg_options_exit_code(bool helper, int code)
{
        if (!helper || code == 0)
                return code;
        if (code == EX_USAGE)
                return MOUNT_USAGE;
        return code == EX_OSERR ? MOUNT_SYSTEM : MOUNT_FAILURE;
}
