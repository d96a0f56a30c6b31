/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line. Options may come before and after the verb and its words; `--` ends them. No
 * abbreviations: a working script must not break because a later version has another option with the same
 * beginning.
 */
#include "tool.h"

/* The kinds from FORMAT on take one of a few words; what is stored is the word's place among them. */
enum kind {
        STRING,
        FLAG,
        DURATION,
        RELEASE,
        FORMAT,
        FINDINGS_FORMAT,
        REPORT_FORMAT,
        COLOUR,
        HOST,
        _KIND_MAX
};
#define WORDS_MAX 8

static const char *const words_of[_KIND_MAX][WORDS_MAX] = {
        [FORMAT] = { [LKG_TOOL_TEXT] = "text", [LKG_TOOL_JSON] = "json", [LKG_TOOL_YAML] = "yaml" },
        [FINDINGS_FORMAT] = { [LKG_TOOL_TEXT] = "text",
                              [LKG_TOOL_JSON] = "json",
                              [LKG_TOOL_YAML] = "yaml",
                              [LKG_TOOL_SARIF] = "sarif",
                              [LKG_TOOL_GITHUB] = "github" },
        [REPORT_FORMAT] = { [LKG_TOOL_HTML] = "html", [LKG_TOOL_TAR] = "tar" },
        [COLOUR] = { "auto", "always", "never" },
        /* the versions of the cgroup hierarchy */
        [HOST] = { [1] = "cgroup=1", [2] = "cgroup=2", [LKG_TOOL_HOST_THIS] = "this" },
};

#define AT(member) offsetof(struct lkg_tool_options, member)

const struct lkg_tool_option lkg_tool_option_rows[] = {
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
        { "type", 0, "TYPE", LKG_OPT_PATCH, STRING, AT(document.type),
          "`merge` (JSON merge patch) or `strategic`" },
        { "strict", 0, NULL, LKG_OPT_STRICT, FLAG, AT(document.strict), "a duplicate key is an error" },
        { "pending", 0, NULL, LKG_OPT_DIFF, FLAG, AT(diff.pending),
          "what would be served if nothing were held" },
        { "running", 0, NULL, LKG_OPT_DIFF, FLAG, AT(diff.running),
          "from what the component runs with to what is served" },
        { "bad", 0, "ID", LKG_OPT_DIFF, STRING, AT(diff.bad),
          "from the last known good to what was marked bad" },
        { "watch", 'w', NULL, LKG_OPT_ALL, FLAG, AT(watch), "print it again whenever it changes" },
        { "watch", 'w', NULL, LKG_OPT_FLEET, FLAG, AT(watch),
          "print it again whenever it changes (of a fleet: default on a terminal)" },
        { "configmap", 0, "NS/NAME", LKG_OPT_CLUSTER, STRING, AT(checking.configmap),
          "that ConfigMap of a cluster (--kubeconfig, --context)" },
        { "kubeconfig", 0, "FILE", LKG_OPT_FLEET, STRING, AT(fleet.kubeconfig),
          "of a fleet; default: $KUBECONFIG, else ~/.kube/config" },
        { "context", 0, "NAME", LKG_OPT_FLEET, STRING, AT(fleet.context),
          "context of the kubeconfig (default: its current one)" },
        { "kubeconfig", 0, "FILE", LKG_OPT_CLUSTER, STRING, AT(fleet.kubeconfig), NULL },
        { "context", 0, "NAME", LKG_OPT_CLUSTER, STRING, AT(fleet.context), NULL },
        { "rollout-namespace", 0, "NS", LKG_OPT_FLEET, STRING, AT(fleet.slots_namespace),
          "namespace of the slots (default: lkgfs-rollout)" },
        { "halt", 0, NULL, LKG_OPT_FLEET, FLAG, AT(fleet.halt), "no other node switches" },
        { "resume", 0, NULL, LKG_OPT_FLEET, FLAG, AT(fleet.resume), "end what --halt has begun" },
        { "forgive", 0, "NODE", LKG_OPT_FLEET, STRING, AT(fleet.forgive),
          "its failure does not count any more" },
        { "all", 0, NULL, LKG_OPT_ALL, FLAG, AT(all), "show notes, too" },
        { "directory", 0, "DIR", LKG_OPT_BAKE, STRING, AT(directory), "existing directory to write into" },
        { "output", 0, "DIR", LKG_OPT_BAKE, STRING, AT(directory), NULL },
        { "effective", 0, NULL, LKG_OPT_FINDINGS, FLAG, AT(effective), NULL }, /* check judges it anyway */
        { "all", 0, NULL, LKG_OPT_FINDINGS, FLAG, AT(all),
          "list every note, and what could be left out, too" },
        { "force", 0, NULL, LKG_OPT_BAKE, FLAG, AT(force), "replace existing files" },
        { "dry-run", 'n', NULL, LKG_OPT_ROOT, FLAG, AT(adopt.dry_run), "only show what would be done" },
        { "over", 0, NULL, LKG_OPT_ADOPT, FLAG, AT(adopt.over),
          "adopt again a node that was adopted before" },
        { "static-pods", 0, NULL, LKG_OPT_ADOPT, FLAG, AT(adopt.static_pods), "static pods, too" },
        { "root", 0, "DIR", LKG_OPT_ROOT, STRING, AT(adopt.root),
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
        { "timeout", 0, "T", LKG_OPT_TIMEOUT, DURATION, AT(wait.timeout_ns), "give up after 30s, 5m, ..." },
        { "no-wait", 0, NULL, LKG_OPT_EDIT, FLAG, AT(wait.never),
          "of a manifest: do not wait for the verdict" },
        { "check", 0, "CHECK", LKG_OPT_CHECK, STRING, AT(check),
          "condition (default), served, bad or processes" },
        { "output", 'o', "FORMAT", LKG_OPT_FORMAT, FORMAT, AT(format), "text, json or yaml" },
        { "output", 'o', "FORMAT", LKG_OPT_FINDINGS, FINDINGS_FORMAT, AT(format),
          "text, json, yaml, sarif or github" },
        { "against", 0, "FILE", LKG_OPT_FINDINGS, STRING, AT(checking.against),
          "also say what a change from the document FILE needs" },
        { "errors-only", 0, NULL, LKG_OPT_FINDINGS, FLAG, AT(checking.errors_only),
          "exit 1 for errors, not for warnings" },
        { "output", 'o', "FORMAT", LKG_OPT_REPORT, REPORT_FORMAT, AT(format), "html (default) or tar" },
        { "file", 0, "FILE", LKG_OPT_REPORT, STRING, AT(report.file),
          "write it there (default: standard output, if it is not a terminal)" },
        { "log", 0, "FILE", LKG_OPT_REPORT, STRING, AT(report.log), "log of lkgfsd (default: the journal)" },
        { "color", 0, "WHEN", 0, COLOUR, AT(colour), "auto, always or never" },
        { "help", 'h', NULL, 0, FLAG, AT(help), "this text" },
        { "version", 'V', NULL, 0, FLAG, AT(version), "version of the tool" },
};
const size_t lkg_n_tool_option_rows = LKG_ARRAY_SIZE(lkg_tool_option_rows);

/* Longest name of an option in a message. */
#define SHOWN(arg) (int)strcspn((arg), "="), (arg)

static int refuse_arguments(char message[static 512], const char *fmt, ...) LKG_PRINTF(2, 3);

static int refuse_arguments(char message[static 512], const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(message, 512, fmt, ap);
        va_end(ap);
        return -EINVAL;
}

static bool row_named(const struct lkg_tool_option *row, const char *arg)
{
        size_t n;

        if (arg[1] != '-')
                return row->letter && arg[1] == row->letter;
        n = strcspn(arg + 2, "=");
        return strlen(row->name) == n && strncmp(row->name, arg + 2, n) == 0;
}

/* To find the verb, it only matters whether a value follows, which is the same in all rows of a name. */
const struct lkg_tool_option *lkg_tool_option_named(unsigned bits, const char *arg)
{
        for (const struct lkg_tool_option *row = lkg_tool_option_rows;
             row < lkg_tool_option_rows + lkg_n_tool_option_rows; row++)
                if ((!row->bits || !bits || (row->bits & bits)) && row_named(row, arg))
                        return row;
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
                const struct lkg_tool_option *row;

                if (!is_option(argv[i]))
                        return i;
                if (strcmp(argv[i], "--") == 0)
                        return 0;
                row = lkg_tool_option_named(0, argv[i]);
                if (row && row->value && !inline_value(argv[i]))
                        i++;
        }
        return 0;
}

static int store_word(const char *const words[static WORDS_MAX], const char *text, unsigned *ret)
{
        for (unsigned i = 0; i < WORDS_MAX; i++)
                if (words[i] && strcmp(words[i], text) == 0) {
                        *ret = i;
                        return 0;
                }
        return -EINVAL;
}

/* Only 1.NN has ever existed; two digits, so that 100 + NN orders all of them. */
static int parse_release(const char *text, unsigned *ret)
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
                return parse_release(value, ret);
        if (snprintf(first, sizeof(first), "%.*s", (int)(dots - value), value) >= (int)sizeof(first) ||
            parse_release(first, &options->runs) < 0)
                return -EINVAL;
        return parse_release(dots + 2, ret);
}

static int store(struct lkg_tool_options *options, const struct lkg_tool_option *row, const char *arg,
                 const char *value, char message[static 512])
{
        char *member = (char *)options + row->offset;
        int r = 0;

        switch (row->kind) {
        case STRING:
                *(const char **)member = value;
                break;
        case FLAG:
                *(bool *)member = true;
                break;
        case DURATION:
                r = lkg_duration_parse_plain(value, (uint64_t *)member);
                options->wait.limited = r >= 0;
                break;
        case RELEASE:
                r = store_release(options, value, (unsigned *)member);
                break;
        default:
                r = store_word(words_of[row->kind], value, (unsigned *)member);
        }
        return r >= 0 ? 0
                      : refuse_arguments(message, "%.*s: \"%.60s\" is not right, want %s", SHOWN(arg), value,
                                         row->help);
}

/* Parse the option at argv[*i]; *i advances past its value. */
static int take_option(struct lkg_tool *tool, int argc, char **argv, int *i, char message[static 512])
{
        const char *arg = argv[*i], *value = inline_value(arg);
        unsigned bits = tool->verb ? tool->verb->options : 0;
        const struct lkg_tool_option *row = lkg_tool_option_named(bits ? bits : ~0u, arg);

        if (!row)
                return refuse_arguments(message,
                                        lkg_tool_option_named(0, arg) ? "`%s` does not take %.*s"
                                                                      : "`%s` has no option %.*s",
                                        tool->verb ? tool->verb->name : "lkgfs", SHOWN(arg));
        if (!row->value && value)
                return refuse_arguments(message, "%.*s takes no value", SHOWN(arg));
        if (!row->value)
                return store(&tool->options, row, arg, value, message);
        if (!value && *i + 1 >= argc)
                return refuse_arguments(message, "%s needs a value: %s", arg, row->value);
        if (!value)
                value = argv[++*i];
        return store(&tool->options, row, arg, value, message);
}

/* `lkgfs explain --max-pods`: an option unknown to the tool may be a flag of a component. */
static bool is_flag_to_explain(const struct lkg_tool *tool, const char *arg)
{
        return tool->verb && (tool->verb->options & LKG_OPT_EXPLAIN) && arg[1] == '-' &&
               !lkg_tool_option_named(tool->verb->options, arg);
}

/* The verb that was probably meant, or NULL: a prefix of one is suggested before a similar spelling. */
static const char *nearest(const char *name)
{
        struct lkg_nearest similar;

        for (size_t i = 0; i < lkg_n_tool_verbs && strlen(name) >= 2; i++)
                if (strncmp(lkg_tool_verbs[i].name, name, strlen(name)) == 0)
                        return lkg_tool_verbs[i].name;
        lkg_nearest_init(&similar, name);
        for (size_t i = 0; i < lkg_n_tool_verbs; i++)
                lkg_nearest_offer(&similar, lkg_tool_verbs[i].name);
        return lkg_nearest_best(&similar);
}

/* `help VERB` and `version` are options in the place of a verb. @at: where the verb is; 0 = there is none. */
static int take_verb(struct lkg_tool *tool, int argc, char **argv, int *at, char message[static 512])
{
        const char *near;

        if (*at && argc == *at + 1 && strcmp(argv[*at], "version") == 0)
                tool->options.version = true;
        if (*at && strcmp(argv[*at], "help") == 0) {
                tool->options.help = true;
                *at = argc == *at + 2 ? *at + 1 : 0;
        }
        if (!*at || tool->options.version)
                return 0;
        tool->verb = lkg_tool_find_verb(argv[*at]);
        if (tool->verb)
                return 0;
        near = nearest(argv[*at]);
        return refuse_arguments(message, "unknown verb \"%.60s\"%s%s%s", argv[*at],
                                near ? ", did you mean `" : "", near ? near : "", near ? "`?" : "");
}

/* Words are moved to the front, over arguments that have been read already. */
static int take_arguments(struct lkg_tool *tool, int argc, char **argv, int at, char message[static 512])
{
        bool rest = false;
        int n = 0, r;

        tool->words = argv + 1;
        for (int i = 1; i < argc; i++) {
                if (i == at)
                        continue;
                /* words follow, or the component's own command line */
                if (!rest && strcmp(argv[i], "--") == 0) {
                        rest = true;
                        if (!tool->verb || !(tool->verb->options & LKG_OPT_JUDGE))
                                continue;
                        tool->flags = argv + i + 1;
                        tool->n_flags = (size_t)(argc - i - 1);
                        break;
                }
                if (rest || !is_option(argv[i]) || is_flag_to_explain(tool, argv[i])) {
                        tool->words[n++] = argv[i];
                        continue;
                }
                r = take_option(tool, argc, argv, &i, message);
                if (r < 0)
                        return r;
        }
        tool->n_words = (size_t)n;
        return 0;
}

int lkg_tool_parse(struct lkg_tool *tool, int argc, char **argv, char message[static 512])
{
        int at = find_verb(argc, argv), r;

        *tool = (struct lkg_tool){ 0 };
        r = take_verb(tool, argc, argv, &at, message);
        if (r < 0 || tool->options.version || (tool->options.help && !at))
                return r;
        r = take_arguments(tool, argc, argv, at, message);
        if (r < 0)
                return r;
        if (tool->options.runs && tool->verb && tool->verb->run != lkg_verb_check)
                return refuse_arguments(message, "--release: only `check` compares two releases");
        if (!tool->verb || tool->options.help || tool->options.version)
                return 0;
        if (tool->n_words < tool->verb->min_words)
                return refuse_arguments(message, "missing: %s", tool->verb->words);
        if (tool->n_words > tool->verb->max_words)
                return refuse_arguments(message, "unexpected word \"%.60s\"",
                                        tool->words[tool->verb->max_words]);
        return 0;
}

/* ---- for the completion and help ---- */

bool lkg_tool_option_shown(const struct lkg_tool_option *row, unsigned bits)
{
        return row->help && (!row->bits || row->bits & bits);
}

const char *lkg_tool_option_word(const struct lkg_tool_option *option, size_t i)
{
        for (size_t k = 0; k < WORDS_MAX; k++)
                if (words_of[option->kind][k] && i-- == 0)
                        return words_of[option->kind][k];
        return NULL;
}

/* ---- help ---- */

void lkg_tool_format_options(unsigned bits, struct lkg_buf *buf)
{
        for (size_t i = 0; i < lkg_n_tool_option_rows; i++) {
                const struct lkg_tool_option *row = &lkg_tool_option_rows[i];
                char left[40];

                if (!lkg_tool_option_shown(row, bits))
                        continue;
                (void)snprintf(left, sizeof(left), "%s%c%s--%s%s%s", row->letter ? "-" : "",
                               row->letter ? row->letter : ' ', row->letter ? ", " : "   ", row->name,
                               row->value ? " " : "", row->value ? row->value : "");
                lkg_buf_printf(buf, "  %-26s %s\n", left, row->help);
        }
}
