/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Node object: the reference to a configuration that it carries. Pure.
 */
#pragma once

#include <lkg/reference.h>

#define LKG_ANNOTATION_CONFIG_SOURCE "lkgfs.io/config-source"

/* The reference in one place. */
enum lkg_says {
        LKG_SAYS_UNKNOWN, /* it could not be read yet */
        LKG_SAYS_NOTHING, /* it is not set */
        LKG_SAYS_LOCAL,   /* explicitly the local configuration */
        LKG_SAYS_REFERENCE,
        LKG_SAYS_INVALID, /* set, but invalid */
};

struct lkg_saying {
        enum lkg_says says;
        struct lkg_reference reference; /* REFERENCE */
        char fault[LKG_REASON_MAX];     /* UNKNOWN, INVALID: the reason */
};

enum lkg_node_ready {
        LKG_NODE_READY_UNKNOWN, /* it has no such condition */
        LKG_NODE_READY,
        LKG_NODE_NOT_READY, /* False, or Unknown: the kubelet has stopped to report */
};

struct lkg_node_object {
        char uid[LKG_IDENTIFIER_MAX + 1], version[LKG_IDENTIFIER_MAX + 1];
        struct lkg_saying annotation; /* metadata.annotations["lkgfs.io/config-source"] */
        struct lkg_saying spec;       /* spec.configSource, in both forms */
        enum lkg_node_ready ready;    /* status of the condition Ready */
        char ready_reason[64];        /* its reason, a word like KubeletNotReady; "" = none, or not a word */
};

/**
 * lkg_node_read() - read @object, a Node of the API server.
 * Return: 0; -EINVAL: uid or name is missing or unsafe, or it is not the node @name; -ENOMEM.
 */
int lkg_node_read(const struct lkg_value *object, const char *name, struct lkg_node_object *ret,
                  struct lkg_error *err);
