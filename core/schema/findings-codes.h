/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes of the findings that depend on a kind: 5001-5029 for one layer, 5030-5099 rules of the component's
 * own validation. Each has a row in core/base/findings.c. A code never changes its meaning and is never
 * reused.
 */
#pragma once

enum lkg_schema_code {
        LKG_F_WRONG_TYPE = 5001,            /* a string where an integer is wanted */
        LKG_F_NOT_FITTING = 5002,           /* the right type, but overflow, no duration, no quantity ... */
        LKG_F_UNKNOWN_FIELD = 5003,         /* ignored by the component */
        LKG_F_WRONG_CASE = 5004,            /* `maxpods`: the effect depends on the kind of layer */
        LKG_F_NOT_IN_RELEASE = 5005,        /* a field of a later or an earlier release */
        LKG_F_DEPRECATED_FIELD = 5006,      /* works, will be removed some day */
        LKG_F_EQUALS_DEFAULT = 5007,        /* could be left out */
        LKG_F_RESETS_EARLIER = 5008,        /* null, empty or the default over a value of an earlier layer */
        LKG_F_EVICTION_MERGE_DROPIN = 5009, /* mergeDefaultEvictionSettings in a drop-in */
        LKG_F_RELATIVE_PATH_DROPIN = 5010,  /* relative to the working directory of the component */
        LKG_F_PORT_TWICE = 5011,            /* two fields listen on one port */
        LKG_F_NO_SUCH_FILE = 5012,          /* a path field names a missing file */
        LKG_F_GATE_UNKNOWN = 5013,          /* no release knows it */
        LKG_F_GATE_REMOVED = 5014,          /* dropped in an earlier release */
        LKG_F_GATE_TOO_NEW = 5015,          /* comes with a later release */
        LKG_F_GATE_LOCKED = 5016,           /* only its default may be set */
        LKG_F_GATE_NEEDS = 5017,            /* on, while one that it depends on is off */
        LKG_F_GATE_GOING = 5018,            /* GA or deprecated: setting it fails in some later release */
        LKG_F_APPLIED_TWICE = 5019,         /* the component has --config-dir on our drop-in directory too */
        LKG_F_BAD_FLAG = 5020,              /* unknown flag, or a value that it does not take */
        LKG_F_REFUSED_LATER = 5021,         /* passes validation, the component ends a moment later */
        LKG_F_GATE_KEEPS_DEFAULT = 5022,    /* a drop-in's gate comes after a default that depends on it */
        LKG_F_NO_BASE_DEFAULTS = 5023,      /* without a base the defaults are those of the flags */
        LKG_F_VALUE_ADDED = 5024,           /* we serve one more value to keep the component's result */
        LKG_F_LOST = 5025,                  /* accepted, and forgotten by the component */
        LKG_F_NOT_IN_ONE_FILE = 5026,       /* base and drop-ins come to what no single document says */
        LKG_F_WORD_UNKNOWN = 5027, /* a word that the component takes for another, without a message */
        LKG_F_ROUNDED = 5028,      /* less than a thousandth, which one file rounds up */

        LKG_F_OUT_OF_RANGE = 5030,  /* a number or duration beyond its limits */
        LKG_F_NOT_ONE_OF = 5031,    /* not in the list of allowed words */
        LKG_F_CONTRADICTION = 5032, /* two fields exclude each other */
        LKG_F_NEEDS_GATE = 5033,    /* only with a feature gate (or only without it) */
        LKG_F_REQUIRED = 5034,      /* empty, and must not be */
        LKG_F_BAD_FORMAT = 5035,    /* not an address, a CIDR, a CPU list, a path ... */
        LKG_F_DUPLICATE = 5036,     /* one entry twice in a list */
        LKG_F_HOST = 5037,          /* does not fit this host (cgroup version, operating system) */
        LKG_F_STATIC_POD = 5038,    /* what only a pod of the API server can have */
        LKG_F_EMPTY_MAP = 5040,     /* {} over the base */

        /* asks for what the host does not have, and the component ends at its start */
        LKG_F_HOST_LACKS = 5047,
        LKG_F_HOST_STATE = 5048, /* the same for what a command can change: swap, kernel settings */

        LKG_F_DEFAULT_CHANGES = 5070, /* of another release, for a field that no layer sets */
        LKG_F_MEANING_CHANGES = 5071, /* another release reads what is set by another rule */
        LKG_F_GATES_CHANGE = 5072,    /* gates that no layer sets have another default in another release */
        LKG_F_FLAG_GOING = 5073,      /* deprecated, in the release that is planned */
};
