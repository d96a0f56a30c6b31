/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses writes to the control files: see lkg/component.h. One write is one command; every wrong value is EINVAL
 * with a reason.
 */
#include <limits.h>

#include <lkg/config.h>
#include <lkg/text.h>

#include <lkg/component.h>

/* the longest word; a longer write is EINVAL, not E2BIG, which shells misreport */
#define TEXT_MAX LKG_SOURCE_ID_MAX

/* Each parses what is written; the row of the command has set the action. */

static int parse_now(const char *text, struct lkg_command_call *ret)
{
        (void)ret;
        return strcmp(text, "now") == 0 ? 0 : -EINVAL;
}

static int parse_number(const char *text, uint64_t max, struct lkg_command_call *ret)
{
        const char *rest = lkg_digits(text, &ret->argument);

        return rest && !*rest && *text != '0' && ret->argument <= max ? 0 : -EINVAL;
}

static int parse_rollback(const char *text, struct lkg_command_call *ret)
{
        if (strcmp(text, "lkg") != 0)
                return parse_number(text, UINT64_MAX, ret);
        ret->action = LKG_DO_ROLLBACK_GOOD;
        return 0;
}

static int parse_hold(const char *text, struct lkg_command_call *ret)
{
        bool on = strcmp(text, "on") == 0;

        ret->hold = on ? LKG_CMD_HOLD_ON : LKG_CMD_HOLD_OFF;
        return on || strcmp(text, "off") == 0 ? 0 : -EINVAL;
}

static int parse_try(const char *text, struct lkg_command_call *ret)
{
        return lkg_duration_parse_plain(text, &ret->argument);
}

/* A uid or a source id. */
static int parse_id(const char *text, struct lkg_command_call *ret)
{
        struct lkg_config_source source;

        if (strlen(text) > LKG_SOURCE_ID_MAX || lkg_config_source_parse_id(text, &source) < 0)
                return -EINVAL;
        (void)snprintf(ret->id, sizeof(ret->id), "%s", text);
        return 0;
}

static int parse_forget(const char *text, struct lkg_command_call *ret)
{
        return strcmp(text, "all") == 0 ? 0 : parse_id(text, ret);
}

static int parse_startup(const char *text, struct lkg_command_call *ret)
{
        return strcmp(text, "now") == 0 ? 0 : parse_number(text, INT_MAX, ret);
}

const struct lkg_command lkg_commands[] = {
        { "commit", LKG_DO_HOLD, LKG_CMD_COMMIT, parse_now, "now" },
        { "forget", LKG_DO_FORGET, 0, parse_forget, "a uid, a source id, or all" },
        { "hold", LKG_DO_HOLD, 0, parse_hold, "on or off" },
        { "promote", LKG_DO_PROMOTE, 0, parse_now, "now" },
        { "rollback", LKG_DO_HOLD, LKG_CMD_ROLLBACK, parse_rollback,
          "lkg, or a generation number from history" },
        { "startup", LKG_DO_STARTUP, 0, parse_startup, "a pid, or now" },
        { "sync", LKG_DO_SYNC, 0, parse_now, "now" },
        { "try", LKG_DO_HOLD, LKG_CMD_TRY, parse_try, "a duration like 5m" },
};
const size_t lkg_n_commands = LKG_ARRAY_SIZE(lkg_commands);

static const struct lkg_command *find_command(const char *name)
{
        for (size_t i = 0; i < lkg_n_commands; i++)
                if (strcmp(lkg_commands[i].name, name) == 0)
                        return &lkg_commands[i];
        return NULL;
}

static int refuse_text(char why[static 256], const char *name, const char *what,
                       const struct lkg_command *command)
{
        (void)snprintf(why, 256, "%s: %s%s%s", name, what, command ? "; want " : "",
                       command ? command->usage : "");
        return -EINVAL;
}

/* bad/<name>: a one-line reason; an empty write gives none. */
static int parse_condemn(const char *text, size_t size, struct lkg_command_call *ret, char why[static 256])
{
        const char *end = memchr(text, '\0', size);
        size_t n = end ? size - (size_t)(end - text) - 1 : 0;
        char quoted[5 * 64 + 8], what[200];

        *ret = (struct lkg_command_call){ .action = LKG_DO_CONDEMN };
        if (!end || parse_id(text, ret) < 0) {
                (void)snprintf(what, sizeof(what), "%.150s is neither a uid nor a source id",
                               lkg_quote(text, strnlen(text, size), quoted));
                return refuse_text(why, LKG_COMMAND_BAD, what, NULL);
        }
        if (n > 0 && end[n] == '\n')
                n--;
        if (n == 0)
                return 0;
        if (n > LKG_COMMAND_TEXT_MAX)
                return refuse_text(why, LKG_COMMAND_BAD, "the reason is too long", NULL);
        for (size_t i = 1; i <= n; i++)
                if ((unsigned char)end[i] < 0x20 || end[i] == 0x7f)
                        return refuse_text(why, LKG_COMMAND_BAD, "the reason must be one line of text",
                                           NULL);
        memcpy(ret->text, end + 1, n);
        ret->text[n] = '\0';
        return 1;
}

int lkg_command_parse(const char *name, const char *text, size_t size, struct lkg_command_call *ret,
                      char why[static 256])
{
        static const struct lkg_command forgive = { LKG_COMMAND_FORGIVE, LKG_DO_FORGIVE, 0, parse_id,
                                                    "a name in bad/" };
        const struct lkg_command *command = strcmp(name, forgive.name) == 0 ? &forgive : find_command(name);
        char word[LKG_SOURCE_ID_MAX + 1], quoted[5 * 64 + 8], what[200];

        if (strcmp(name, LKG_COMMAND_BAD) == 0)
                return parse_condemn(text, size, ret, why);
        if (!command)
                return refuse_text(why, name, "no such command", NULL);
        if (size > 0 && text[size - 1] == '\n')
                size--;
        if (size == 0)
                return 0;
        if (size > TEXT_MAX)
                return refuse_text(why, name, "too long", command);
        if (memchr(text, '\n', size))
                return refuse_text(why, name, "more than one line", command);
        memcpy(word, text, size);
        word[size] = '\0';
        *ret = (struct lkg_command_call){ .action = command->action, .hold = command->hold };
        if (strlen(word) == size && command->parse(word, ret) >= 0)
                return 1;
        (void)snprintf(what, sizeof(what), "%.150s is not understood",
                       lkg_quote(word, strlen(word), quoted));
        return refuse_text(why, name, what, command);
}
