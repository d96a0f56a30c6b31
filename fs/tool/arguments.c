/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Options may come before and after the verb and its words; `--` ends them. No
 * abbreviations: a working script must not break because a later version has another option with the same
 * beginning.
 */
#include "tool.h"

#include <lkg/text.h>

enum kind { STRING, FLAG, FORMAT, FINDINGS_FORMAT, REPORT_FORMAT, COLOUR, DURATION, RELEASE, HOST };

struct row {
        const char *name;
        char letter;       /* 0 = none */
        const char *value; /* NULL = has no value */
        unsigned bits;     /* verbs that accept it; 0 = all */
        enum kind kind;
        size_t offset;    /* in struct lkg_tool_options */
        const char *help; /* NULL: an earlier name, which works and is not shown */
};

#define AT(member) offsetof(struct lkg_tool_options, member)

/* A name may have several rows for different verbs: the row whose bits include the verb applies. */
static const struct row rows[] = {
        { "config", 0, "BASE", LKG_OPT_STACK, STRING, AT(config), "base document, `-` = standard input" },
        { "config-dir", 0, "DIR", LKG_OPT_STACK, STRING, AT(config_dir), "drop-in directory" },
        { "instance-config", 0, "FILE", LKG_OPT_STACK, STRING, AT(instance_config),
          "instance document, applied last" },
        { "kind", 0, "K", LKG_OPT_STACK | LKG_OPT_PATCH, STRING, AT(kind),
          "kind that every document must have (default: that of the base)" },
        { "kind", 0, "K", LKG_OPT_EXPLAIN, STRING, AT(kind), "kind of the field (default: every kind)" },
        { "release", 0, "1.NN", LKG_OPT_JUDGE | LKG_OPT_EXPLAIN | LKG_OPT_ADOPT | LKG_OPT_SCHEMA, RELEASE,
          AT(release), "a Kubernetes release, such as 1.36 (default: the latest known)" },
        { "host", 0, "FACTS", LKG_OPT_JUDGE, HOST, AT(host),
          "cgroup=1 or cgroup=2: validate for such a node; this: for this one" },
        { "effective", 0, NULL, LKG_OPT_EFFECTIVE, FLAG, AT(effective),
          "with defaults and component flags, as the component sees it" },
        { "remote", 0, "FILE", LKG_OPT_JUDGE, STRING, AT(remote),
          "ConfigMap whose document replaces the base" },
        { "remote-key", 0, "KEY", LKG_OPT_JUDGE, STRING, AT(remote_key),
          "key in the ConfigMap (default: kubelet)" },
        { "type", 0, "TYPE", LKG_OPT_PATCH, STRING, AT(type), "`merge` (JSON merge patch) or `strategic`" },
        { "strict", 0, NULL, LKG_OPT_STRICT, FLAG, AT(strict), "a duplicate key is an error" },
        { "pending", 0, NULL, LKG_OPT_DIFF, FLAG, AT(pending), "what would be served if nothing were held" },
        { "running", 0, NULL, LKG_OPT_DIFF, FLAG, AT(running),
          "from what the component runs with to what is served" },
        { "bad", 0, "ID", LKG_OPT_DIFF, STRING, AT(bad), "from the last known good to what was marked bad" },
        { "watch", 'w', NULL, LKG_OPT_ALL, FLAG, AT(watch), "print it again whenever it changes" },
        { "watch", 'w', NULL, LKG_OPT_FLEET, FLAG, AT(watch),
          "print it again whenever it changes (of a fleet: default on a terminal)" },
        { "configmap", 0, "NS/NAME", LKG_OPT_CLUSTER, STRING, AT(configmap),
          "that ConfigMap of a cluster (--kubeconfig, --context)" },
        { "kubeconfig", 0, "FILE", LKG_OPT_FLEET, STRING, AT(kubeconfig),
          "of a fleet; default: $KUBECONFIG, else ~/.kube/config" },
        { "context", 0, "NAME", LKG_OPT_FLEET, STRING, AT(context),
          "context of the kubeconfig (default: its current one)" },
        { "kubeconfig", 0, "FILE", LKG_OPT_CLUSTER, STRING, AT(kubeconfig), NULL },
        { "context", 0, "NAME", LKG_OPT_CLUSTER, STRING, AT(context), NULL },
        { "rollout-namespace", 0, "NS", LKG_OPT_FLEET, STRING, AT(rollout_namespace),
          "namespace of the slots (default: lkgfs-rollout)" },
        { "halt", 0, NULL, LKG_OPT_FLEET, FLAG, AT(halt), "no other node switches" },
        { "resume", 0, NULL, LKG_OPT_FLEET, FLAG, AT(resume), "end what --halt has begun" },
        { "forgive", 0, "NODE", LKG_OPT_FLEET, STRING, AT(forgive), "its failure does not count any more" },
        { "all", 0, NULL, LKG_OPT_ALL, FLAG, AT(all), "show notes, too" },
        { "directory", 0, "DIR", LKG_OPT_BAKE, STRING, AT(directory), "existing directory to write into" },
        { "output", 0, "DIR", LKG_OPT_BAKE, STRING, AT(directory), NULL },
        { "effective", 0, NULL, LKG_OPT_FINDINGS, FLAG, AT(effective), NULL }, /* check judges it anyway */
        { "all", 0, NULL, LKG_OPT_FINDINGS, FLAG, AT(all),
          "list every note, and what could be left out, too" },
        { "force", 0, NULL, LKG_OPT_BAKE, FLAG, AT(force), "replace existing files" },
        { "dry-run", 'n', NULL, LKG_OPT_ROOT, FLAG, AT(dry_run), "only show what would be done" },
        { "over", 0, NULL, LKG_OPT_ADOPT, FLAG, AT(over), "adopt again a node that was adopted before" },
        { "root", 0, "DIR", LKG_OPT_ROOT, STRING, AT(root),
          "a tree that does not run, instead of this node" },
        { "force", 0, NULL, LKG_OPT_ROOT, FLAG, AT(force),
          "even if the kubelet sees another configuration" },
        { "config", 0, "FILE", LKG_OPT_MOUNT, STRING, AT(config), "configuration of lkgfsd" },
        { "node-config", 0, "FILE", LKG_OPT_NODE, STRING, AT(node_config),
          "judge this node by this configuration of lkgfs" },
        { "component", 'c', "C", LKG_OPT_VIEW | LKG_OPT_NODE, STRING, AT(component),
          "component (default: the only one)" },
        { "mountpoint", 'm', "M", LKG_OPT_VIEW | LKG_OPT_NODE, STRING, AT(mountpoint),
          "default: $LKGFS_MOUNTPOINT, else the only lkgfs mount" },
        { "virtual-dir", 0, "D", LKG_OPT_VIEW, STRING, AT(virtual_dir),
          "virtualDir of the mount (default: detected)" },
        { "timeout", 0, "T", LKG_OPT_TIMEOUT, DURATION, AT(timeout_ns), "give up after 30s, 5m, ..." },
        { "check", 0, "CHECK", LKG_OPT_CHECK, STRING, AT(check),
          "condition (default), served, bad or processes" },
        { "output", 'o', "FORMAT", LKG_OPT_FORMAT, FORMAT, AT(format), "text, json or yaml" },
        { "output", 'o', "FORMAT", LKG_OPT_FINDINGS, FINDINGS_FORMAT, AT(format),
          "text, json, yaml, sarif or github" },
        { "against", 0, "FILE", LKG_OPT_FINDINGS, STRING, AT(against),
          "also say what a change from the document FILE needs" },
        { "errors-only", 0, NULL, LKG_OPT_FINDINGS, FLAG, AT(errors_only),
          "exit 1 for errors, not for warnings" },
        { "output", 'o', "FORMAT", LKG_OPT_REPORT, REPORT_FORMAT, AT(format), "html (default) or tar" },
        { "file", 0, "FILE", LKG_OPT_REPORT, STRING, AT(file),
          "write it there (default: standard output, if it is no terminal)" },
        { "log", 0, "FILE", LKG_OPT_REPORT, STRING, AT(log), "log of lkgfsd (default: the journal)" },
        { "color", 0, "WHEN", 0, COLOUR, AT(colour), "auto, always or never" },
        { "help", 'h', NULL, 0, FLAG, AT(help), "this text" },
        { "version", 'V', NULL, 0, FLAG, AT(version), "version of the tool" },
};

/* Longest name of an option in a message. */
#define SHOWN(arg) (int)strcspn((arg), "="), (arg)

static bool row_named(const struct row *row, const char *arg)
{
        size_t n;

        if (arg[1] != '-')
                return row->letter && arg[1] == row->letter;
        n = strcspn(arg + 2, "=");
        return strlen(row->name) == n && strncmp(row->name, arg + 2, n) == 0;
}

/*
 * @bits 0: of any verb. (To find the verb, it only matters whether a value follows, which is the same in all
 * rows.)
 */
static const struct row *find_row(const char *arg, unsigned bits)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if ((!rows[i].bits || !bits || (rows[i].bits & bits)) && row_named(&rows[i], arg))
                        return &rows[i];
        return NULL;
}

static bool is_option(const char *arg)
{
        return arg[0] == '-' && arg[1] != '\0';
}

/* The value of an option may be the next word, or follow `=` or the letter (-ojson). */
static const char *inline_value(const char *arg)
{
        const char *equals;

        if (arg[1] != '-')
                return arg[2] ? arg + 2 + (arg[2] == '=') : NULL;
        equals = strchr(arg, '=');
        return equals ? equals + 1 : NULL;
}

static int find_verb(int argc, char **argv)
{
        for (int i = 1; i < argc; i++) {
                const struct row *row;

                if (!is_option(argv[i]))
                        return i;
                if (strcmp(argv[i], "--") == 0)
                        return 0;
                row = find_row(argv[i], 0);
                if (row && row->value && !inline_value(argv[i]))
                        i++;
        }
        return 0;
}

/* The index is an enum lkg_tool_format. */
static const char *const format_names[] = { NULL, "text", "json", "yaml" };
static const char *const findings_format_names[] = { NULL, "text", "json", "yaml", "sarif", "github" };
static const char *const report_format_names[] = { [LKG_TOOL_HTML] = "html", [LKG_TOOL_TAR] = "tar" };
static const char *const colour_names[] = { "auto", "always", "never" };

/* The index is the version of the cgroup hierarchy. */
static const char *const host_names[] = { NULL, "cgroup=1", "cgroup=2", [LKG_TOOL_HOST_THIS] = "this" };

static int choose(const char *const *names, size_t n, const char *text)
{
        for (size_t i = 0; i < n; i++)
                if (names[i] && strcmp(names[i], text) == 0)
                        return (int)i;
        return -EINVAL;
}

/* Only 1.NN has ever existed; two digits, so that 100 + NN orders all of them. */
int lkg_tool_release(const char *text, unsigned *ret)
{
        const char *p = text + (*text == 'v');
        unsigned minor = 0;
        size_t digits;

        if (strncmp(p, "1.", 2) != 0)
                return -EINVAL;
        p += 2;
        digits = strspn(p, "0123456789");
        if (digits < 1 || digits > 2)
                return -EINVAL;
        for (; digits > 0; digits--)
                minor = minor * 10 + (unsigned)(*p++ - '0');
        if (*p == '.') { /* a patch release has the tables of its minor one */
                digits = strspn(++p, "0123456789");
                if (digits < 1 || p[digits])
                        return -EINVAL;
        } else if (*p) {
                return -EINVAL;
        }
        *ret = 100 + minor;
        return 0;
}

/* `1.37`, or `1.36..1.37`; the verbs that do not compare two releases refuse the second form. */
static int store_release(struct lkg_tool_options *options, const char *value, unsigned *ret)
{
        const char *dots = strstr(value, "..");
        char first[16];

        options->runs = 0;
        if (!dots)
                return lkg_tool_release(value, ret);
        if (snprintf(first, sizeof(first), "%.*s", (int)(dots - value), value) >= (int)sizeof(first) ||
            lkg_tool_release(first, &options->runs) < 0)
                return -EINVAL;
        return lkg_tool_release(dots + 2, ret);
}

static int store(struct lkg_tool_options *options, const struct row *row, const char *arg, const char *value,
                 char message[static 512])
{
        char *member = (char *)options + row->offset;
        int r = 0;

        switch (row->kind) {
        case STRING:
                *(const char **)member = value;
                return 0;
        case FLAG:
                *(bool *)member = true;
                return 0;
        case FORMAT:
                r = choose(format_names, LKG_ARRAY_SIZE(format_names), value);
                if (r >= 0)
                        *(enum lkg_tool_format *)member = (enum lkg_tool_format)r;
                break;
        case FINDINGS_FORMAT:
                r = choose(findings_format_names, LKG_ARRAY_SIZE(findings_format_names), value);
                if (r >= 0)
                        *(enum lkg_tool_format *)member = (enum lkg_tool_format)r;
                break;
        case REPORT_FORMAT:
                r = choose(report_format_names, LKG_ARRAY_SIZE(report_format_names), value);
                if (r >= 0)
                        *(enum lkg_tool_format *)member = (enum lkg_tool_format)r;
                break;
        case COLOUR:
                r = choose(colour_names, LKG_ARRAY_SIZE(colour_names), value);
                if (r >= 0)
                        *(enum lkg_tool_colour *)member = (enum lkg_tool_colour)r;
                break;
        case DURATION:
                r = lkg_duration_parse_plain(value, (uint64_t *)member);
                options->has_timeout = r >= 0;
                break;
        case RELEASE:
                r = store_release(options, value, (unsigned *)member);
                break;
        case HOST:
                r = choose(host_names, LKG_ARRAY_SIZE(host_names), value);
                if (r >= 0)
                        *(unsigned *)member = (unsigned)r;
                break;
        }
        if (r >= 0)
                return 0;
        (void)snprintf(message, 512, "%.*s: \"%.60s\" is not right, want %s", SHOWN(arg), value, row->help);
        return -EINVAL;
}

/* Parse the option at argv[*i]; *i advances past its value. */
static int take_option(struct lkg_tool *tool, int argc, char **argv, int *i, char message[static 512])
{
        const char *arg = argv[*i], *value = inline_value(arg);
        unsigned bits = tool->verb ? tool->verb->options : 0;
        const struct row *row = find_row(arg, bits ? bits : ~0u);

        if (!row) {
                (void)snprintf(message, 512,
                               find_row(arg, 0) ? "`%s` does not take %.*s" : "`%s` has no option %.*s",
                               tool->verb ? tool->verb->name : "lkgfs", SHOWN(arg));
                return -EINVAL;
        }
        if (!row->value && value) {
                (void)snprintf(message, 512, "%.*s takes no value", SHOWN(arg));
                return -EINVAL;
        }
        if (!row->value)
                return store(&tool->options, row, arg, value, message);
        if (!value) {
                if (*i + 1 >= argc) {
                        (void)snprintf(message, 512, "%s needs a value: %s", arg, row->value);
                        return -EINVAL;
                }
                value = argv[++*i];
        }
        return store(&tool->options, row, arg, value, message);
}

static int check_words(const struct lkg_tool *tool, char message[static 512])
{
        const struct lkg_tool_verb *verb = tool->verb;

        if (tool->n_words < verb->min_words) {
                (void)snprintf(message, 512, "missing: %s", verb->words);
                return -EINVAL;
        }
        if (tool->n_words > verb->max_words) {
                (void)snprintf(message, 512, "unexpected word \"%.60s\"", tool->words[verb->max_words]);
                return -EINVAL;
        }
        return 0;
}

/* `lkgfs explain --max-pods`: an option unknown to the tool may be a flag of a component. */
static bool is_flag_to_explain(const struct lkg_tool *tool, const char *arg)
{
        return tool->verb && (tool->verb->options & LKG_OPT_EXPLAIN) && arg[1] == '-' &&
               !find_row(arg, tool->verb->options);
}

int lkg_tool_parse(struct lkg_tool *tool, int argc, char **argv, char message[static 512])
{
        int at = find_verb(argc, argv), n = 0, r;

        *tool = (struct lkg_tool){ 0 };
        if (at && argc == at + 1 && strcmp(argv[at], "version") == 0) {
                tool->options.version = true;
                return 0;
        }
        if (at && strcmp(argv[at], "help") == 0) {
                tool->options.help = true;
                at = argc == at + 2 ? at + 1 : 0; /* `help VERB` */
                if (!at)
                        return 0;
        }
        if (at) {
                const char *near;

                tool->verb = lkg_tool_find_verb(argv[at]);
                near = tool->verb ? NULL : lkg_tool_nearest(argv[at]);
                if (!tool->verb) {
                        (void)snprintf(message, 512, "unknown verb \"%.60s\"%s%s%s", argv[at],
                                       near ? ", did you mean `" : "", near ? near : "", near ? "`?" : "");
                        return -EINVAL;
                }
        }
        tool->words =
                argv + 1; /* words are moved to the front, over arguments that have been read already */
        for (int i = 1; i < argc; i++) {
                if (i == at)
                        continue;
                if (strcmp(argv[i], "--") == 0) {
                        if (tool->verb && (tool->verb->options & LKG_OPT_JUDGE)) {
                                tool->flags = argv + i + 1;
                                tool->n_flags = (size_t)(argc - i - 1);
                                break;
                        }
                        while (++i < argc)
                                tool->words[n++] = argv[i];
                        break;
                }
                if (!is_option(argv[i]) || is_flag_to_explain(tool, argv[i])) {
                        tool->words[n++] = argv[i];
                        continue;
                }
                r = take_option(tool, argc, argv, &i, message);
                if (r < 0)
                        return r;
        }
        if (tool->options.runs && tool->verb && tool->verb->run != lkg_verb_check) {
                (void)snprintf(message, 512, "--release: only `check` compares two releases");
                return -EINVAL;
        }
        tool->n_words = (size_t)n;
        if (!tool->verb || tool->options.help || tool->options.version)
                return 0;
        return check_words(tool, message);
}

/* ---- for the completion and help ---- */

static bool shown_for(const struct row *row, unsigned bits)
{
        return row->help && (!row->bits || row->bits & bits);
}

static void describe(const struct row *row, struct lkg_tool_option *ret)
{
        *ret = (struct lkg_tool_option){
                .name = row->name, .value = row->value, .help = row->help, .kind = (int)row->kind
        };
}

bool lkg_tool_option_at(unsigned bits, size_t i, struct lkg_tool_option *ret)
{
        for (size_t k = 0; k < LKG_ARRAY_SIZE(rows); k++) {
                if (!shown_for(&rows[k], bits) || i-- > 0)
                        continue;
                describe(&rows[k], ret);
                return true;
        }
        return false;
}

bool lkg_tool_option_named(unsigned bits, const char *arg, struct lkg_tool_option *ret)
{
        const struct row *row = find_row(arg, bits ? bits : ~0u);

        if (row)
                describe(row, ret);
        return row;
}

const char *lkg_tool_option_word(const struct lkg_tool_option *option, size_t i)
{
        static const struct {
                const char *const *words;
                size_t n;
        } all[] = {
                [FORMAT] = { format_names, LKG_ARRAY_SIZE(format_names) },
                [FINDINGS_FORMAT] = { findings_format_names, LKG_ARRAY_SIZE(findings_format_names) },
                [REPORT_FORMAT] = { report_format_names, LKG_ARRAY_SIZE(report_format_names) },
                [COLOUR] = { colour_names, LKG_ARRAY_SIZE(colour_names) },
                [HOST] = { host_names, LKG_ARRAY_SIZE(host_names) },
        };

        if ((size_t)option->kind >= LKG_ARRAY_SIZE(all))
                return NULL;
        for (size_t k = 0; k < all[option->kind].n; k++)
                if (all[option->kind].words[k] && i-- == 0)
                        return all[option->kind].words[k];
        return NULL;
}

/* ---- help ---- */

void lkg_tool_format_options(unsigned bits, struct lkg_buf *buf)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char left[40];

                if (!shown_for(&rows[i], bits))
                        continue;
                (void)snprintf(left, sizeof(left), "%s%c%s--%s%s%s", rows[i].letter ? "-" : "",
                               rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ", " : "   ",
                               rows[i].name, rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
                lkg_buf_printf(buf, "  %-26s %s\n", left, rows[i].help);
        }
}
