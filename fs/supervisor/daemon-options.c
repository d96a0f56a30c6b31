/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdarg.h>

#include "daemon-options.h"

#define MOUNT_USAGE   1
#define MOUNT_SYSTEM  2
#define MOUNT_FAILURE 32

enum { OPT_HELP = 256, OPT_VERSION };

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
        "SIGTERM unmounts and exits; SIGHUP reads the configuration again.\n"
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

static int usage(struct lkg_error *err, const char *fmt, ...) LKG_PRINTF(2, 3);
static int usage(struct lkg_error *err, const char *fmt, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        lkg_error_set(err, 0, NULL, "%s", text);
        return EX_USAGE;
}

/*
 * Options of -o. General options that mount(8), systemd or an administrator put into any fstab line are
 * ignored.
 */
struct mount_option {
        const char *name;
        enum { IGNORED, CONFIG, REFUSED } action;
        const char *why;
};

static const struct mount_option mount_options[] = {
        { "config", CONFIG, NULL },
        { "ro", REFUSED, "the view has writable parts; there is no read-only mount" },
        { "remount", REFUSED, "send SIGHUP to lkgfsd, or unmount and mount again" },
        { "bind", REFUSED, "use `mount --bind`" },
        { "suid", REFUSED, "the view is always nosuid" },
        { "dev", REFUSED, "the view is always nodev" },
        { "noexec", REFUSED, "programs below the source directory stay executable" },
        { "defaults", IGNORED, NULL },
        { "rw", IGNORED, NULL },
        { "nosuid", IGNORED, NULL },
        { "nodev", IGNORED, NULL },
        { "exec", IGNORED, NULL },
        { "async", IGNORED, NULL },
        { "sync", IGNORED, NULL },
        { "dirsync", IGNORED, NULL },
        { "atime", IGNORED, NULL },
        { "noatime", IGNORED, NULL },
        { "diratime", IGNORED, NULL },
        { "nodiratime", IGNORED, NULL },
        { "relatime", IGNORED, NULL },
        { "norelatime", IGNORED, NULL },
        { "strictatime", IGNORED, NULL },
        { "nostrictatime", IGNORED, NULL },
        { "lazytime", IGNORED, NULL },
        { "nolazytime", IGNORED, NULL },
        { "iversion", IGNORED, NULL },
        { "noiversion", IGNORED, NULL },
        { "silent", IGNORED, NULL },
        { "loud", IGNORED, NULL },
        { "auto", IGNORED, NULL },
        { "noauto", IGNORED, NULL },
        { "nofail", IGNORED, NULL },
        { "_netdev", IGNORED, NULL },
        { "user", IGNORED, NULL },
        { "nouser", IGNORED, NULL },
        { "users", IGNORED, NULL },
        { "owner", IGNORED, NULL },
        { "group", IGNORED, NULL },
        { "allow_other", IGNORED, NULL },
        { "default_permissions", IGNORED, NULL },
        { "comment", IGNORED, NULL },
        { "helper", IGNORED, NULL },
};

static int mount_option(char *option, struct lkg_options *options, struct lkg_error *err)
{
        char *value = strchr(option, '=');

        if (value)
                *value++ = '\0';
        if (!*option || strncmp(option, "x-", 2) == 0 || strncmp(option, "X-", 2) == 0)
                return 0;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(mount_options); i++) {
                const struct mount_option *o = &mount_options[i];

                if (strcmp(o->name, option) != 0)
                        continue;
                if (o->action == REFUSED)
                        return usage(err, "mount option '%s' is not possible: %s.", option, o->why);
                if (o->action == CONFIG && (!value || !*value))
                        return usage(err, "mount option 'config' needs a file: -o config=FILE.");
                if (o->action == CONFIG)
                        options->config = value;
                return 0;
        }
        return usage(err, "unknown mount option '%s'; the only one of lkgfs is config=FILE.", option);
}

static int mount_option_list(char *list, struct lkg_options *options, struct lkg_error *err)
{
        char *option;
        int r;

        while ((option = strsep(&list, ","))) {
                r = mount_option(option, options, err);
                if (r != 0)
                        return r;
        }
        return 0;
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

static int parse_helper(int argc, char *const argv[], struct lkg_options *options, struct lkg_error *err)
{
        const char *spec;
        int c, r;

        options->helper = options->background = true;
        while ((c = getopt(argc, argv, ":sfnvhN:o:t:")) != -1) {
                r = 0;
                if (c == 'f')
                        options->fake = true;
                else if (c == 'v')
                        options->verbose = true;
                else if (c == 'h')
                        options->action = LKG_ACTION_HELP;
                else if (c == 'o')
                        r = append_list(options, optarg, err);
                else if (c == 'N')
                        r = usage(err, "-N is not possible: lkgfs serves the mount namespace it runs in.");
                else if (c == ':')
                        r = usage(err, "option -%c needs a value.", optopt);
                else if (c == '?')
                        r = usage(err, "unknown option -%c; see mount.lkgfs -h.", optopt);
                if (r != 0)
                        return r;
        }
        if (options->action != LKG_ACTION_RUN)
                return 0;
        if (argc - optind != 2)
                return usage(err, "want SPEC and DIR, got %d words; see mount.lkgfs -h.", argc - optind);
        spec = argv[optind];
        if (strcmp(spec, "none") != 0 && strcmp(spec, "lkgfs") != 0)
                options->config = spec;
        options->mount_point = argv[optind + 1];
        return options->storage ? mount_option_list(options->storage, options, err) : 0;
}

static int parse_daemon(int argc, char *const argv[], struct lkg_options *options, struct lkg_error *err)
{
        static const struct option names[] = {
                { "config", required_argument, NULL, 'c' },
                { "background", no_argument, NULL, 'b' },
                { "mount-namespace", required_argument, NULL, 'N' },
                { "verbose", no_argument, NULL, 'v' },
                { "version", no_argument, NULL, OPT_VERSION },
                { "help", no_argument, NULL, OPT_HELP },
                { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, ":c:bvhN:", names, NULL)) != -1) {
                if (c == 'c')
                        options->config = optarg;
                else if (c == 'N')
                        options->mount_namespace = optarg;
                else if (c == 'b')
                        options->background = true;
                else if (c == 'v')
                        options->verbose = true;
                else if (c == OPT_VERSION)
                        options->action = LKG_ACTION_VERSION;
                else if (c == OPT_HELP || c == 'h')
                        options->action = LKG_ACTION_HELP;
                else if (c == ':')
                        return usage(err, "option %s needs a value.", argv[optind - 1]);
                else
                        return usage(err, "unknown option %s; see lkgfsd --help.", argv[optind - 1]);
        }
        if (options->action != LKG_ACTION_RUN)
                return 0;
        if (argc - optind != 1)
                return usage(err, "want one MOUNTPOINT, got %d words; see lkgfsd --help.", argc - optind);
        options->mount_point = argv[optind];
        return 0;
}

int lkg_options_parse(int argc, char *const argv[], struct lkg_options *ret, struct lkg_error *err)
{
        struct lkg_options options = { .action = LKG_ACTION_RUN };
        const char *base;
        int r;

        if (argc < 1 || !argv[0])
                return usage(err, "no arguments.");
        base = strrchr(argv[0], '/');
        base = base ? base + 1 : argv[0];
        opterr = 0;
        optind = 0; /* glibc: forget an earlier parse of this process */
        if (strcmp(base, "mount.lkgfs") == 0)
                r = parse_helper(argc, argv, &options, err);
        else
                r = parse_daemon(argc, argv, &options, err);
        if (r == 0 && options.action == LKG_ACTION_RUN && !*options.mount_point)
                r = usage(err, "the mount point is an empty word.");
        if (r == 0 && options.config && !*options.config)
                r = usage(err, "the name of the configuration file is an empty word.");
        if (r != 0) {
                bool helper = options.helper;

                lkg_options_deinit(&options);
                *ret = (struct lkg_options){ .helper = helper };
                return r;
        }
        *ret = options;
        return 0;
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
