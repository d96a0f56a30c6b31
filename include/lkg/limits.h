/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every limit of the product, defined once. A limit that input can reach is reported as a finding that names
 * it; docs/man/lkgfs.conf.5 lists those that users may encounter.
 */
#pragma once

/* documents (reference: sigs.k8s.io/yaml and go.yaml.in/yaml/v2 limits) */
#define LKG_DOC_BYTES_MAX     (4u << 20) /* one layer file; etcd's own limit for an object is 1.5 MiB */
#define LKG_DOC_DEPTH_MAX     1000u      /* nested collections: code that walks a document recurses */
#define LKG_DOC_NODES_MAX     1000000u   /* values in one document after alias expansion */
#define LKG_ALIAS_DECODED_MIN 1000u      /* alias bomb guard starts above this many nodes ... */
#define LKG_ALIAS_INSIDE_MIN  100u       /* ... of which this many came from aliases */

/* layers */
#define LKG_DROPINS_MAX       256u        /* of one component, if its settings do not say otherwise ... */
#define LKG_DROPINS_LIMIT     16384u      /* ... and the most that they can say; the same for patches */
#define LKG_LAYER_BYTES_MAX   (8u << 20)  /* the layers of one component together, the same way */
#define LKG_LAYER_BYTES_LIMIT (16u << 20) /* more would need more memory than an engine may have */
#define LKG_WALK_DEPTH_MAX    64u         /* nested directories below a drop-in directory */
#define LKG_WALK_ENTRIES_MAX  65536u      /* directory entries read in one walk */
/* findings stored in a report, and advice about a component's layers; others are counted */
#define LKG_FINDINGS_MAX       1000u
#define LKG_LAYER_FINDINGS_MAX 100u /* of those about reading one layer */
#define LKG_QUOTE_MAX          64u  /* bytes of a user's value in a message: docs/specification.md 2.13 */

/* publications and messages */
#define LKG_MANIFEST_BYTES_MAX   (16u << 20)
#define LKG_MANIFEST_ENTRIES_MAX 65536u
#define LKG_CONTROL_TEXT_MAX     1024u /* one control write */
/* a name and NUL, a write, one byte too many */
#define LKG_MESSAGE_TEXT_MAX   (256u + LKG_CONTROL_TEXT_MAX + 1)
#define LKG_MESSAGE_BYTES_MAX  8192u /* one datagram between two processes of ours */
#define LKG_MESSAGES_AT_ONCE   64u   /* from one peer, before others have their turn */

#define LKG_FALLBACK_BYTES_MAX (64u << 20) /* a served document, read again from where it was published */

/* components and configuration */
#define LKG_COMPONENTS_MAX   32u
#define LKG_RUNTIME_SCHEME   "unix://"
#define LKG_RUNTIME_PATH_MAX 108u /* of a container runtime's socket, with a NUL: sun_path of unix(7) */
#define LKG_CONFIG_BYTES_MAX (1u << 20)
#define LKG_HISTORY_MAX      256u
