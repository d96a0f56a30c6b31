/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check that libraries make before they parse, merge or judge content from users:
 * docs/decisions/012-poison.md. Only the engine implements it (core/engine/poison.h); all other callers pass
 * NULL, and everything is admitted.
 */
#pragma once

#include <lkg/error.h>

enum lkg_admit_what {
        LKG_ADMIT_LAYER,    /* the content of one layer */
        LKG_ADMIT_TOGETHER, /* all layers of a component, to be merged and judged */
        LKG_ADMIT_OBJECT,   /* the origin of a layer: an API object as received, or as stored */
        LKG_ADMIT_READ, /* the file of a layer, about to be opened and read; what is in it is not known yet */
        _LKG_ADMIT_MAX
};

/* What is asked about. The texts are the caller's. */
struct lkg_content {
        enum lkg_admit_what what;
        const char *file;   /* as findings name it; "" of LKG_ADMIT_TOGETHER */
        const char *sha256; /* hexadecimal; of LKG_ADMIT_READ: of what stat(2) says of the file */
        size_t size;        /* bytes; of LKG_ADMIT_TOGETHER: of all layers */
};

struct lkg_admission {
        /**
         * admit() - may this content be used? Called after it was read, right before it is used.
         * @ret_why: the message if it may not; heap
         *
         * Return: 0; -EKEYREJECTED: it may not; -ENOMEM.
         */
        int (*admit)(const struct lkg_content *content, char **ret_why, void *userdata);
        /** finished() - what was admitted last is not worked on any more, and nothing else is yet. May be NULL. */
        void (*finished)(void *userdata);
        /** judged() - a layer's content was merged and judged with the others, and did no harm. May be NULL. */
        void (*judged)(const char *file, const char *sha256, void *userdata);
        void *userdata;
};

/** lkg_admit() - call admit(); 0 if @admission is NULL. */
int lkg_admit(const struct lkg_admission *admission, const struct lkg_content *content, char **ret_why);
/** lkg_admit_finished() - call finished(). */
void lkg_admit_finished(const struct lkg_admission *admission);
/** lkg_admit_text() - the same for content whose digest has not been computed. */
int lkg_admit_text(const struct lkg_admission *admission, enum lkg_admit_what what, const char *file,
                   const void *text, size_t size, char **ret_why);
