/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Node object: the reference to a configuration that it carries. Pure.
 */
#pragma once

#include <lkg/reference.h>

#define LKG_ANNOTATION_CONFIG_SOURCE "lkgfs.io/config-source"

/* What one place says. */
enum lkg_says {
        LKG_SAYS_UNKNOWN, /* it could not be looked at yet */
        LKG_SAYS_NOTHING, /* it is not set */
        LKG_SAYS_LOCAL,   /* the local configuration, in words */
        LKG_SAYS_REFERENCE,
        LKG_SAYS_INVALID, /* set, and not understood */
};

struct lkg_saying {
        enum lkg_says says;
        struct lkg_reference reference; /* REFERENCE */
        char fault[LKG_REASON_MAX];     /* UNKNOWN, INVALID: why */
};

struct lkg_node_object {
        char uid[LKG_IDENTIFIER_MAX + 1], version[LKG_IDENTIFIER_MAX + 1];
        struct lkg_saying annotation; /* metadata.annotations["lkgfs.io/config-source"] */
        struct lkg_saying spec;       /* spec.configSource, both shapes */
};

/**
 * lkg_node_read() - @object is a Node of the API server.
 * Return: 0; -EINVAL: uid or name are missing or hostile, or it is another node than @name; -ENOMEM.
 */
int lkg_node_read(const struct lkg_value *object, const char *name, struct lkg_node_object *ret,
                  struct lkg_error *err);
