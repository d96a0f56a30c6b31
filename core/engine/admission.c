/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content that may make the engine die: a component asks before it uses content. If the loop waits again, that content was
 * harmless. Refused content is tried again on request.
 */
#include <lkg/base.h>

#include "engine-internal.h"

/* ---- admission ---- */

/* An object belongs to the component that follows a remote configuration. */
static int admit_object(const struct lkg_content *content, char **ret_why, void *userdata)
{
        struct lkg_engine *e = userdata;

        for (size_t i = 0; i < e->n_components; i++)
                if (lkg_component_is_remote(&e->components[i]))
                        return lkg_poison_admit(&e->poison, e->components[i].config->name, content, "",
                                                ret_why);
        return 0;
}

/* Of the one engine of this process. */
static struct lkg_poison *noted;

static void note_no_memory(void)
{
        if (noted)
                (void)lkg_poison_give_up(noted);
        lkg_log_error("the memory limit is reached; ending, so that the next engine refuses what is new");
}

int lkg_engine_open_poison(struct lkg_engine *e, struct lkg_error *err)
{
        int r = lkg_poison_open(e->options.runtime_fd, e->options.state_fd, e->env.config->virtual_dir,
                                &e->poison, &e->reports.setup, err);

        e->admission = (struct lkg_admission){ .admit = admit_object, .userdata = e };
        noted = &e->poison;
        lkg_at_no_memory(note_no_memory);
        return r;
}

void lkg_engine_close_poison(struct lkg_engine *e)
{
        if (noted == &e->poison)
                noted = NULL;
        lkg_poison_close(&e->poison);
}

/* ---- trying again ---- */

static void save(struct lkg_engine *e)
{
        struct lkg_error err = { 0 };

        if (lkg_poison_save(&e->poison, &err) < 0)
                lkg_log_warning("%s", err.message);
}

void lkg_engine_lift_poison(struct lkg_engine *e, struct lkg_component *c)
{
        for (size_t i = 0; i < e->poison.n_items; i++)
                if (strcmp(e->poison.items[i].component, c->config->name) == 0)
                        lkg_component_forgive(c, e->poison.items[i].source);
        lkg_poison_lift(&e->poison, c->config->name, NULL);
        save(e);
}

void lkg_engine_lift_old_poison(struct lkg_engine *e)
{
        for (size_t i = e->poison.n_items; i-- > 0;) {
                const struct lkg_refused *refused = &e->poison.items[i];

                if (!refused->lifted)
                        continue;
                for (size_t k = 0; k < e->n_components; k++)
                        if (strcmp(e->components[k].config->name, refused->component) == 0)
                                lkg_component_forgive(&e->components[k], refused->source);
                lkg_poison_remove(&e->poison, i);
        }
        save(e);
}
