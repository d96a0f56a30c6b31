/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's own protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), without waiting; private to core/base. */
#pragma once

#include <lkg/buf.h>

/** lkg_journal_field() - one field of an entry; @value may have lines. */
void lkg_journal_field(struct lkg_buf *entry, const char *name, const char *value);
/**
 * lkg_journal_send() - sd_journal_sendv(3) waits while journald does not take anything (stopped, or too slow), and a daemon that
 * a node depends on waits for no log.
 *
 * Return: 0; -EAGAIN: it takes nothing now; another -errno.
 */
int lkg_journal_send(const struct lkg_buf *entry);
