/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pflag's grammar: `--name=value`, `--name value`, `--bool`, `-v 2`, `-v2`; `--` ends the flags, and neither
 * component accepts any other word.
 */
#include "command-line.h"

#include <lkg/text.h>
#include <lkg/tree.h>

#include "findings-codes.h"

/* @release: 0 = any */
static bool is_in(const struct lkg_flag *flag, unsigned release)
{
        return release == 0 || (flag->since <= release && (flag->until == 0 || release <= flag->until));
}

static bool applies(const struct lkg_flag_apply *apply, const struct lkg_flag *flag)
{
        return is_in(flag, lkg_schema_release(apply->schema));
}

static bool same_name(const char *given, size_t size, const char *name)
{
        for (size_t i = 0; i < size; i++)
                if (name[i] == '\0' || (given[i] == '_' ? '-' : given[i]) != name[i])
                        return false;
        return name[size] == '\0';
}

static const struct lkg_flag *find(const struct lkg_flag_apply *apply, const char *name, size_t size,
                                   unsigned release)
{
        for (size_t i = 0; i < apply->n_flags; i++)
                if (is_in(&apply->flags[i], release) && same_name(name, size, apply->flags[i].name))
                        return &apply->flags[i];
        return NULL;
}

static const struct lkg_flag *find_short(const struct lkg_flag_apply *apply, char letter)
{
        for (size_t i = 0; i < apply->n_flags; i++)
                if (letter && apply->flags[i].shorthand == letter)
                        return &apply->flags[i];
        return NULL;
}

static int refuse_unknown(struct lkg_flag_apply *apply, const char *name, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *given = strndup(name, size);
        unsigned release = lkg_schema_release(apply->schema);
        char quoted[5 * 64 + 8], text[LKG_RELEASE_TEXT_MAX];
        struct lkg_nearest nearest;
        const char *best;

        if (!given)
                return -ENOMEM;
        if (apply->runs && find(apply, name, size, apply->runs))
                return lkg_flag_refuse_lost(
                        apply,
                        "no flag %s in %s any more, and the component does not start with it; remove it",
                        lkg_quote(given, size, quoted), lkg_release_text(release, text));
        lkg_nearest_init(&nearest, given);
        for (size_t i = 0; i < apply->n_flags; i++)
                if (applies(apply, &apply->flags[i]))
                        lkg_nearest_offer(&nearest, apply->flags[i].name);
        best = size < 3 ? NULL : lkg_nearest_best(&nearest); /* everything short is near */
        return lkg_flag_refuse(apply, "no flag %s in %s%s%s%s%s", lkg_quote(given, size, quoted),
                               lkg_release_text(release, text),
                               apply->observed ? "" : ", and the component does not start with it",
                               best ? "; did you mean --" : "", best ? best : "", best ? "?" : "");
}

/*
 * The word after an unknown flag may be its value or another mistake. One of another release takes its value as it did there, whatever
 * that looks like: it may be a secret.
 */
static void skip_value(const struct lkg_flag_apply *apply, const char *name, size_t size,
                       const struct lkg_command_line *line, size_t *i)
{
        const struct lkg_flag *flag = find(apply, name, size, /* release= */ 0);

        if (*i + 1 < line->n_words && (flag ? !flag->no_value : line->words[*i + 1][0] != '-'))
                ++*i;
}

/*
 * A word that is not a flag may be the value of a flag, and so a credential: only its position is reported.
 */
static int refuse_word(struct lkg_flag_apply *apply, size_t i)
{
        return lkg_flag_refuse(apply, "word %zu of the command line is not a flag%s", i + 1,
                               apply->observed ? "" : ", and the component takes no other words");
}

/* Of a command line that a node will have in another release. */
static void report_deprecated(const struct lkg_flag_apply *apply, const struct lkg_flag *flag)
{
        char text[LKG_RELEASE_TEXT_MAX];

        if (apply->runs && (flag->deprecated || flag->until))
                lkg_report_add(apply->report, LKG_NOTE, LKG_F_FLAG_GOING, NULL,
                               "--%s is deprecated in %s, and the component does not start with it once it "
                               "is gone; "
                               "remove it",
                               flag->name, lkg_release_text(lkg_schema_release(apply->schema), text));
}

/* Can the flag stand without a value, meaning `=true`? */
static int take(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *attached,
                const struct lkg_command_line *line, size_t *i)
{
        report_deprecated(apply, flag);
        if (attached)
                return lkg_flag_use(apply, flag, attached);
        if (flag->no_value)
                return lkg_flag_use(apply, flag, "true");
        if (*i + 1 >= line->n_words)
                return lkg_flag_refuse(apply, "--%s needs a value", flag->name);
        return lkg_flag_use(apply, flag, line->words[++*i]);
}

static int take_long(struct lkg_flag_apply *apply, const char *name, const struct lkg_command_line *line,
                     size_t *i)
{
        size_t size = strcspn(name, "=");
        const struct lkg_flag *flag = find(apply, name, size, lkg_schema_release(apply->schema));

        if (size == 0 || *name == '-')
                return lkg_flag_refuse(
                        apply,
                        "word %zu of the command line is not a flag; a flag is two hyphens and a name",
                        *i + 1);
        if (!flag) {
                if (name[size] != '=')
                        skip_value(apply, name, size, line, i);
                return refuse_unknown(apply, name, size);
        }
        return take(apply, flag, name[size] == '=' ? name + size + 1 : NULL, line, i);
}

/* A word such as -v2, -v=2, -v 2; letters without a value may be combined. */
static int take_short(struct lkg_flag_apply *apply, const char *letters, const struct lkg_command_line *line,
                      size_t *i)
{
        for (; *letters; letters++) {
                const struct lkg_flag *flag = find_short(apply, *letters);
                int r;

                if (!flag)
                        return refuse_unknown(apply, letters, 1);
                if (letters[1] == '=')
                        return take(apply, flag, letters + 2, line, i);
                if (!flag->no_value)
                        return take(apply, flag, letters[1] ? letters + 1 : NULL, line, i);
                r = take(apply, flag, NULL, line, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_word(struct lkg_flag_apply *apply, const struct lkg_command_line *line, size_t *i)
{
        const char *word = line->words[*i];

        if (word[0] != '-' || word[1] == '\0')
                return refuse_word(apply, *i);
        if (word[1] == '-')
                return take_long(apply, word + 2, line, i);
        return take_short(apply, word + 1, line, i);
}

static int take_words(struct lkg_flag_apply *apply, const struct lkg_command_line *line)
{
        bool flags = true;
        int r = 0;

        for (size_t i = 0; r == 0 && i < line->n_words; i++) {
                if (!flags)
                        r = refuse_word(apply, i);
                else if (strcmp(line->words[i], "--") == 0)
                        flags = false;
                else
                        r = take_word(apply, line, &i);
        }
        return r;
}

static const char vmodule[] = "logging.vmodule";

/* Append @items, which may be NULL, to the items of the flags. */
static int append_vmodule(struct lkg_value *object, const struct lkg_value *items)
{
        const struct lkg_value *given = lkg_object_get(object, vmodule);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *list = NULL;

        if (!items)
                return 0;
        if (!given)
                return lkg_object_set(object, vmodule, lkg_value_ref((struct lkg_value *)items));
        list = lkg_value_clone_shallow(given);
        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < lkg_value_size(items); i++) {
                int r = lkg_list_append(list, lkg_value_ref(lkg_list_get(items, i)));

                if (r < 0)
                        return r;
        }
        return lkg_object_set(object, vmodule, LKG_STEAL(list));
}

/* The kubelet parses its flags over the document; kube-proxy has parsed them when it reads the document. */
static int apply_in_order(struct lkg_flag_apply *apply, const struct lkg_command_line *line, bool kubelet)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *later = NULL;
        int r;

        if (kubelet)
                return take_words(apply, line);
        later = lkg_value_ref((struct lkg_value *)lkg_object_get(apply->object, vmodule));
        r = lkg_object_set(apply->object, vmodule, NULL);
        if (r == 0)
                r = take_words(apply, line);
        return r < 0 ? r : append_vmodule(apply->object, later);
}

int lkg_flags_apply(const struct lkg_schema *schema, const struct lkg_command_line *line,
                    struct lkg_value *object, struct lkg_value *zeros, struct lkg_report *report)
{
        bool kubelet = lkg_schema_is_kubelet(schema);
        struct lkg_flag_apply apply = { .schema = schema,
                                        .flags = kubelet ? lkg_kubelet_flags : lkg_kubeproxy_flags,
                                        .n_flags = kubelet ? lkg_n_kubelet_flags : lkg_n_kubeproxy_flags,
                                        .object = object,
                                        .zeros = zeros,
                                        .report = report,
                                        .observed = line->observed,
                                        .runs = line->runs };
        int r;

        apply.used = calloc(apply.n_flags + 1, sizeof(*apply.used));
        if (!apply.used)
                return -ENOMEM;
        r = apply_in_order(&apply, line, kubelet);
        free(apply.used);
        return r < 0 ? r : apply.refused ? -EBADMSG : 0;
}
