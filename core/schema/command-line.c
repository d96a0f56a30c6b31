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

static const struct lkg_flag *find_flag(const struct lkg_flag_apply *apply, const char *name, size_t size,
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

static void refuse_unknown(struct lkg_flag_apply *apply, const char *name, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *given = lkg_must(strndup(name, size));
        unsigned release = lkg_schema_release(apply->schema);
        struct lkg_nearest nearest;
        const char *best;

        if (apply->config->runs && find_flag(apply, name, size, apply->config->runs)) {
                lkg_flag_refuse(
                        apply, true,
                        "no flag %s in %s any more, and the component does not start with it; remove it",
                        LKG_QUOTE(lkg_span(given, size)), LKG_RELEASE_TEXT(release));
                return;
        }
        lkg_nearest_init(&nearest, given);
        for (size_t i = 0; i < apply->n_flags; i++)
                if (applies(apply, &apply->flags[i]))
                        lkg_nearest_offer(&nearest, apply->flags[i].name);
        best = size < 3 ? NULL : lkg_nearest_best(&nearest); /* everything short is near */
        lkg_flag_refuse(apply, false, "no flag %s in %s%s%s%s%s", LKG_QUOTE(lkg_span(given, size)),
                        LKG_RELEASE_TEXT(release),
                        apply->config->flags_observed ? "" : ", and the component does not start with it",
                        best ? "; did you mean --" : "", best ? best : "", best ? "?" : "");
}

/* NULL = there is none. */
static const char *next_word(const struct lkg_flag_apply *apply)
{
        return apply->word + 1 < apply->config->n_flags ? apply->config->flags[apply->word + 1] : NULL;
}

/*
 * The word after an unknown flag may be its value or another mistake. One of another release takes its value as it did there, whatever
 * that looks like: it may be a secret.
 */
static void skip_value(struct lkg_flag_apply *apply, const char *name, size_t size)
{
        const struct lkg_flag *flag = find_flag(apply, name, size, /* release= */ 0);
        const char *next = next_word(apply);

        if (next && (flag ? !flag->no_value : *next != '-'))
                apply->word++;
}

/*
 * A word that is not a flag may be the value of a flag, and so a credential: only its position is reported.
 */
static void refuse_word(struct lkg_flag_apply *apply)
{
        lkg_flag_refuse(apply, false, "word %zu of the command line is not a flag%s", apply->word + 1,
                        apply->config->flags_observed ? "" : ", and the component takes no other words");
}

/* Of a command line that a node will have in another release. */
static void report_deprecated(const struct lkg_flag_apply *apply, const struct lkg_flag *flag)
{
        if (apply->config->runs && (flag->deprecated || flag->until))
                lkg_report_add(apply->report, LKG_NOTE, LKG_F_FLAG_GOING, NULL,
                               "--%s is deprecated in %s, and the component does not start with it once it "
                               "is gone; "
                               "remove it",
                               flag->name, LKG_RELEASE_TEXT(lkg_schema_release(apply->schema)));
}

/* Without a value it may mean `=true`. */
static void take(struct lkg_flag_apply *apply, const struct lkg_flag *flag, const char *attached)
{
        report_deprecated(apply, flag);
        if (!attached && flag->no_value)
                attached = "true";
        else if (!attached && (attached = next_word(apply)))
                apply->word++;
        if (attached)
                lkg_flag_use(apply, flag, attached);
        else
                lkg_flag_refuse(apply, false, "--%s needs a value", flag->name);
}

static void take_long(struct lkg_flag_apply *apply, const char *name)
{
        size_t size = strcspn(name, "=");
        const struct lkg_flag *flag = find_flag(apply, name, size, lkg_schema_release(apply->schema));

        if (size == 0 || *name == '-') {
                lkg_flag_refuse(
                        apply, false,
                        "word %zu of the command line is not a flag; a flag is two hyphens and a name",
                        apply->word + 1);
        } else if (flag) {
                take(apply, flag, name[size] == '=' ? name + size + 1 : NULL);
        } else {
                if (name[size] != '=')
                        skip_value(apply, name, size);
                refuse_unknown(apply, name, size);
        }
}

/* A word such as -v2, -v=2, -v 2; letters without a value may be combined. */
static void take_short(struct lkg_flag_apply *apply, const char *letters)
{
        for (; *letters; letters++) {
                const struct lkg_flag *flag = find_short(apply, *letters);

                if (!flag) {
                        refuse_unknown(apply, letters, 1);
                        return;
                }
                if (letters[1] == '=' || !flag->no_value) {
                        take(apply, flag, letters[1] == '=' ? letters + 2 : letters[1] ? letters + 1 : NULL);
                        return;
                }
                take(apply, flag, NULL);
        }
}

static void take_words(struct lkg_flag_apply *apply)
{
        bool flags = true;

        for (; apply->word < apply->config->n_flags; apply->word++) {
                const char *word = apply->config->flags[apply->word];

                if (flags && strcmp(word, "--") == 0)
                        flags = false;
                else if (!flags || word[0] != '-' || word[1] == '\0')
                        refuse_word(apply);
                else if (word[1] == '-')
                        take_long(apply, word + 2);
                else
                        take_short(apply, word + 1);
        }
}

static const char vmodule[] = "logging.vmodule";

/* Append @items, which may be NULL, to the items of the flags. */
static void append_vmodule(struct lkg_value *object, const struct lkg_value *items)
{
        const struct lkg_value *given = lkg_object_get(object, vmodule);
        struct lkg_value *list;

        if (!items)
                return;
        list = lkg_value_clone_shallow(given ? given : items);
        for (struct lkg_member m = { 0 }; given && lkg_value_next(items, &m);)
                lkg_list_append(list, lkg_value_ref(m.value));
        lkg_object_set(object, vmodule, list);
}

int lkg_flags_apply(const struct lkg_schema *schema, const struct lkg_judge_config *config,
                    struct lkg_value *object, struct lkg_value *zeros, struct lkg_report *report)
{
        bool kubelet = lkg_schema_is_kubelet(schema);
        struct lkg_flag_apply apply = { .schema = schema,
                                        .config = config,
                                        .flags = kubelet ? lkg_kubelet_flags : lkg_kubeproxy_flags,
                                        .n_flags = kubelet ? lkg_n_kubelet_flags : lkg_n_kubeproxy_flags,
                                        .object = object,
                                        .zeros = zeros,
                                        .report = report };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *later = NULL;

        if (config->n_flags == 0)
                return 0;
        apply.used = lkg_must(calloc(apply.n_flags + 1, sizeof(*apply.used)));
        /* The kubelet parses its flags over the document; kube-proxy has parsed them when it reads the document. */
        if (!kubelet) {
                later = lkg_value_ref((struct lkg_value *)lkg_object_get(object, vmodule));
                lkg_object_set(object, vmodule, NULL);
        }
        take_words(&apply);
        append_vmodule(object, later);
        free(apply.used);
        return apply.refused ? -EBADMSG : 0;
}
