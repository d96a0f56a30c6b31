/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the control files: see command.h. One write is one command; every wrong value is EINVAL with a reason. */
#include <limits.h>

#include <lkg/duration.h>

#include "command.h"
#include "config.h"

#define TEXT_MAX \
        127u /* longer than any command; a longer write is EINVAL, not E2BIG, which shells misreport */

static int parse_now(const char *text)
{
        return strcmp(text, "now") == 0 ? 0 : -EINVAL;
}

static int parse_rollback(const char *text, struct lkg_command_call *ret)
{
        char *end;

        *ret = (struct lkg_command_call){ LKG_DO_HOLD, LKG_CMD_ROLLBACK, 0 };
        if (*text < '1' || *text > '9')
                return -EINVAL;
        errno = 0;
        ret->argument = strtoull(text, &end, 10);
        return errno || *end ? -EINVAL : 0;
}

static int parse_hold(const char *text, struct lkg_command_call *ret)
{
        bool on = strcmp(text, "on") == 0;

        *ret = (struct lkg_command_call){ LKG_DO_HOLD, on ? LKG_CMD_HOLD_ON : LKG_CMD_HOLD_OFF, 0 };
        return on || strcmp(text, "off") == 0 ? 0 : -EINVAL;
}

static int parse_sync(const char *text, struct lkg_command_call *ret)
{
        *ret = (struct lkg_command_call){ .action = LKG_DO_SYNC };
        return parse_now(text);
}

static int parse_try(const char *text, struct lkg_command_call *ret)
{
        *ret = (struct lkg_command_call){ LKG_DO_HOLD, LKG_CMD_TRY, 0 };
        return lkg_duration_parse_plain(text, &ret->argument);
}

static int parse_commit(const char *text, struct lkg_command_call *ret)
{
        *ret = (struct lkg_command_call){ LKG_DO_HOLD, LKG_CMD_COMMIT, 0 };
        return parse_now(text);
}

const struct lkg_command lkg_commands[] = {
        { "commit", parse_commit, "now", "keep the tried change" },
        { "hold", parse_hold, "on or off",
          "freeze the active generation; off publishes what came in between" },
        { "rollback", parse_rollback, "a generation number from history",
          "serve that generation until hold off" },
        { "sync", parse_sync, "now", "look at all layers again" },
        { "try", parse_try, "a duration like 5m", "keep the next change only if commit follows in time" },
};
const size_t lkg_n_commands = LKG_ARRAY_SIZE(lkg_commands);

static const struct lkg_command *find(const char *name)
{
        for (size_t i = 0; i < lkg_n_commands; i++)
                if (strcmp(lkg_commands[i].name, name) == 0)
                        return &lkg_commands[i];
        return NULL;
}

static int refuse(char why[static 256], const char *name, const char *what,
                  const struct lkg_command *command)
{
        (void)snprintf(why, 256, "%s: %s%s%s", name, what, command ? "; want " : "",
                       command ? command->usage : "");
        return -EINVAL;
}

int lkg_command_parse(const char *name, const char *text, size_t size, struct lkg_command_call *ret,
                      char why[static 256])
{
        const struct lkg_command *command = find(name);
        char word[TEXT_MAX + 1], quoted[5 * 64 + 8], what[160];

        if (!command)
                return refuse(why, name, "no such command", NULL);
        if (size > 0 && text[size - 1] == '\n')
                size--;
        if (size == 0)
                return 0;
        if (size > TEXT_MAX)
                return refuse(why, name, "too long", command);
        if (memchr(text, '\n', size))
                return refuse(why, name, "more than one line", command);
        memcpy(word, text, size);
        word[size] = '\0';
        if (strlen(word) == size && command->parse(word, ret) >= 0)
                return 1;
        if (strcmp(name, "rollback") == 0 && strcmp(word, "lkg") == 0)
                return refuse(why, name,
                              "no last-known-good was recorded apart from the local configuration", command);
        (void)snprintf(what, sizeof(what), "%s is not understood", lkg_quote(word, strlen(word), quoted));
        return refuse(why, name, what, command);
}
