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
        size_t n_fixed; /* items that follow from the configuration; the ways come after them */
        size_t n_fixed_texts;
};

#define LKG_WAYS_MAX 1024u /* names that links lead to; changes of further ones are found by inotify */

/**
 * lkg_rules_build() - @report: a warning for each real entry that the view covers.
 * Return: 0 or -ENOMEM.
 */
int lkg_rules_build(const struct lkg_config *config, int source_fd, const char *source_path,
                    struct lkg_manifest_rules *ret, struct lkg_report *report);
/**
 * lkg_rules_set_ways() - names of the source directory that decide what the layers are, beside those of the configuration:
 * every link on the way to a layer, and where it leads. Takes over @paths, relative to the source directory.
 * Return: 1 = they differ from the ones before; 0; -ENOMEM: there are none now.
 */
int lkg_rules_set_ways(struct lkg_manifest_rules *rules, char **paths, size_t n_paths);
void lkg_rules_deinit(struct lkg_manifest_rules *rules);
