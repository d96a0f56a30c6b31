/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of `answer` share; see answer.c. */
#pragma once

#include <lkg/decode.h>
#include <lkg/render.h>

struct answer {
        struct lkg_buf *out; /* the reply so far: an open JSON object */
        const struct lkg_value *request;
};

/** answer_die() - the end of the program: memory, disk, a fault of our own. */
_Noreturn void answer_die(const char *why);
/** answer_error() - `,"KEY":"all findings"`. */
void answer_error(struct lkg_buf *out, const char *key, const struct lkg_report *report);

/* answer-component.c */
void answer_kubelet(const struct answer *a);
void answer_kubeproxy(const struct answer *a);
void answer_other(const struct answer *a);
/** answer_close() - the end: files and memory. */
void answer_close(void);
/* answer-values.c */
void answer_duration(const struct answer *a);
void answer_quantity(const struct answer *a);
