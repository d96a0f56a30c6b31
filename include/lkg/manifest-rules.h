/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a publication that follow from the configuration and from names in the source directory: what is watched
 * and hidden, how components are recognised, which real entries the virtual tree covers.
 */
#pragma once

#include <lkg/config.h>
#include <lkg/publication.h>

struct lkg_manifest_rules {
        struct lkg_rule *items;
        size_t n_items;
        char **texts; /* owns the strings */
        size_t n_texts;
};

/**
 * lkg_rules_build() - @report: a warning for each real entry that the view covers.
 * Return: 0 or -ENOMEM.
 */
int lkg_rules_build(const struct lkg_config *config, int source_fd, const char *source_path,
                    struct lkg_manifest_rules *ret, struct lkg_report *report);
void lkg_rules_deinit(struct lkg_manifest_rules *rules);
