/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of one component of this node, merged and judged as the engine would do it, without an engine:
 * `lkgfsd -f`, and the tool's verbs that judge this node.
 *
 * Nothing is written. What an engine has stored (the checkpoint that is followed, the component's version and command line) is
 * used if its directories are given; the caller opens them read-only.
 */
#pragma once

#include <lkg/config.h>
#include <lkg/remote-base.h>
#include <lkg/schema.h>
#include <lkg/stack.h>

/* What to judge. Everything is borrowed. */
struct lkg_offline_place {
        const struct lkg_config *config;
        const struct lkg_config_component *component;
        int source_fd;
        const char *source_path;
        int runtime_fd, state_fd; /* -EBADF: what they hold is not known */
        /* Instead of what is known about the component: */
        unsigned release; /* 0 = nothing */
        unsigned runs;    /* the release that runs, if @release is a planned one: 0 = what is known */
        const char *const *flags;
        size_t n_flags; /* 0 = nothing */
        bool lint_all;  /* also say what could be left out */
};

struct lkg_offline {
        struct lkg_stack *stack;
        struct lkg_judge *judge;
        struct lkg_remote_base *remote; /* NULL = the base is a file, or missing */
        struct lkg_candidate *candidate;
        struct lkg_facts *
                facts; /* of the component that runs here; the judge borrows its command line. NULL = unknown */
};

/**
 * lkg_offline_judge() - read, merge and judge the layers once.
 * @ret:    caller releases with lkg_offline_deinit()
 * @report: findings that are not of the candidate: damage of stored state, fields that the guard forbids
 *
 * Return: 0, whatever the verdict is; -errno.
 */
int lkg_offline_judge(const struct lkg_offline_place *place, struct lkg_offline *ret,
                      struct lkg_report *report, struct lkg_error *err);
void lkg_offline_deinit(struct lkg_offline *offline);

/**
 * lkg_offline_check() - judge every component, up to the first one that could not be served.
 * @print: gets the findings of each
 *
 * Return: 0; 1: one could not be served; -errno.
 */
int lkg_offline_check(const struct lkg_config *config, int source_fd, const char *source_path,
                      void (*print)(const struct lkg_report *report), struct lkg_error *err);
