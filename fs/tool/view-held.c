/* SPDX-License-Identifier: Apache-2.0 */
#include "view-held.h"

void lkg_held_deinit(struct lkg_held *held)
{
        char *texts[] = { held->mode, held->generation, held->since, held->uid,
                          held->pid,  held->program,    held->until, held->rollout };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++)
                free(texts[i]);
        *held = (struct lkg_held){ 0 };
}

/* If there is no memory for a fact, it counts as unknown. */
static void take_line(char *line, struct lkg_held *held)
{
        const struct {
                const char *key;
                char **text;
        } rows[] = {
                { "mode", &held->mode },   { "generation", &held->generation },
                { "since", &held->since }, { "uid", &held->uid },
                { "pid", &held->pid },     { "program", &held->program },
                { "until", &held->until }, { "rollout", &held->rollout },
        };
        char *value = strchr(line, '=');

        if (!value)
                return;
        *value++ = '\0';
        if (strcmp(line, "newer") == 0)
                held->newer_waits = strcmp(value, "waits") == 0;
        if (strcmp(line, "try") == 0) {
                held->on_try = strcmp(value, "running") == 0;
                held->try_armed = strcmp(value, "armed") == 0;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                if (strcmp(line, rows[i].key) != 0)
                        continue;
                free(*rows[i].text);
                *rows[i].text = *value ? strdup(value) : NULL;
        }
}

void lkg_held_parse(const char *text, struct lkg_held *ret)
{
        LKG_CLEANUP(lkg_freep) char *copy = strdup(text);
        struct lkg_held held = { 0 };
        char *save = NULL;

        for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save))
                take_line(line, &held);
        if (held.mode && strcmp(held.mode, "free") == 0) {
                free(held.mode);
                held.mode = NULL;
        }
        *ret = held;
}

void lkg_held_read(const struct lkg_view *view, const char *component, struct lkg_held *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (lkg_view_read(view, &text, NULL, "status/%s/hold", component) < 0)
                text = NULL;
        lkg_held_parse(text ? text : "", ret);
}

void lkg_held_who(const struct lkg_held *held, struct lkg_buf *buf)
{
        if (held->since) {
                lkg_buf_puts(buf, " since ");
                lkg_tool_put_clean(buf, held->since);
        }
        if (!held->uid)
                return;
        if (held->mode && strcmp(held->mode, "try-expired") == 0)
                lkg_buf_puts(buf, ", after a try");
        lkg_buf_puts(buf, " by uid ");
        lkg_tool_put_clean(buf, held->uid);
        lkg_buf_puts(buf, " (pid ");
        lkg_tool_put_clean(buf, held->pid ? held->pid : "?");
        lkg_buf_puts(buf, ", ");
        lkg_tool_put_clean(buf, held->program ? held->program : "unknown program");
        lkg_buf_putc(buf, ')');
}

void lkg_held_text(const struct lkg_held *held, struct lkg_buf *buf)
{
        if (held->mode) {
                lkg_buf_puts(buf, "  held      at generation ");
                lkg_tool_put_clean(buf, held->generation ? held->generation : "?");
                lkg_buf_puts(buf, " (");
                lkg_tool_put_clean(buf, held->mode);
                lkg_buf_putc(buf, ')');
                lkg_held_who(held, buf);
                lkg_buf_printf(buf, "; %s\n",
                               held->newer_waits ? "a newer one waits" : "nothing newer waits");
        }
        if (held->on_try || held->try_armed) {
                lkg_buf_puts(buf, "  try       ");
                lkg_buf_puts(buf, held->on_try ? "until " : "armed: the next change is on try");
                if (held->on_try)
                        lkg_tool_put_clean(buf, held->until ? held->until : "?");
                lkg_buf_putc(buf, '\n');
        }
        if (held->rollout) {
                lkg_buf_puts(buf, "  rollout   ");
                lkg_tool_put_clean(buf, held->rollout);
                lkg_buf_putc(buf, '\n');
        }
}

void lkg_held_map(const struct lkg_held *held, struct lkg_tool_map *map)
{
        struct lkg_tool_map hold;

        if (!held->mode && !held->on_try && !held->try_armed && !held->rollout)
                return;
        lkg_tool_map_init(&hold, false);
        lkg_tool_map_string(&hold, "mode", held->mode ? held->mode : "free");
        lkg_tool_map_string(&hold, "generation", held->generation);
        lkg_tool_map_string(&hold, "since", held->since);
        lkg_tool_map_string(&hold, "uid", held->uid);
        lkg_tool_map_string(&hold, "pid", held->pid);
        lkg_tool_map_string(&hold, "program", held->program);
        lkg_tool_map_bool(&hold, "newerWaits", held->newer_waits);
        lkg_tool_map_string(&hold, "try", held->on_try ? "running" : held->try_armed ? "armed" : "none");
        lkg_tool_map_string(&hold, "until", held->until);
        lkg_tool_map_string(&hold, "rollout", held->rollout);
        map->failed |= hold.failed;
        lkg_tool_map_value(map, "hold", hold.value);
}

bool lkg_held_next(const struct lkg_held *held, const char *component, struct lkg_buf *buf)
{
        if (held->mode) {
                lkg_buf_printf(buf, "`lkgfs hold off --component %s` follows the files again", component);
                if (strcmp(held->mode, "try-expired") == 0 && held->newer_waits)
                        lkg_buf_puts(buf,
                                     ", with the change that was tried: repair it before, if it was wrong");
                return true;
        }
        if (!held->on_try)
                return false;
        lkg_buf_printf(buf,
                       "`lkgfs commit --component %s` keeps the tried change; without it the previous one "
                       "is served again",
                       component);
        return true;
}
