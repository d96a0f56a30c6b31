/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the operations of `answer`; see answer.c. */
#pragma once

#include <lkg/documents.h>

struct answer {
        struct lkg_buf *out; /* the reply so far: an open JSON object */
        const struct lkg_value *request;
};

/** answer_die() - end the program: memory, disk, a bug of ours. */
_Noreturn void answer_die(const char *why);
/** answer_error() - append `,"KEY":"all findings"`. */
void answer_error(struct lkg_buf *out, const char *key, const struct lkg_report *report);

/* answer-component.c */
void answer_kubelet(const struct answer *a);
void answer_kubeproxy(const struct answer *a);
void answer_other(const struct answer *a);
/** answer_close() - release files and memory at the end. */
void answer_close(void);
/* answer-values.c */
void answer_pod(const struct answer *a);
void answer_duration(const struct answer *a);
void answer_quantity(const struct answer *a);
