/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), without blocking; private to
 * core/base.
 */
#pragma once

#include <lkg/text.h>

/** lkg_journal_field() - add a field to an entry; @value may have several lines. */
void lkg_journal_field(struct lkg_buf *entry, const char *name, const char *value);
/**
 * lkg_journal_send() - send an entry without waiting. (sd_journal_sendv(3) waits if journald is stopped or
 * too slow, and a daemon that a node depends on must not wait for a log.)
 *
 * Return: 0; -EAGAIN: journald is not ready; another -errno.
 */
int lkg_journal_send(const struct lkg_buf *entry);
