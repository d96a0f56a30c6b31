/* SPDX-License-Identifier: Apache-2.0 */
/* %XX escapes of the manifest and of settings; private to core/base. */
#pragma once

#include <lkg/text.h>

/** lkg_escape() - append @text, with bytes up to @max_control, 0x7f and '%' as %XX. */
void lkg_escape(struct lkg_buf *buf, const char *text, unsigned char max_control);
/** lkg_unescape() - in place. Return: 0; -EBADMSG: an invalid escape, or an escaped NUL. */
int lkg_unescape(char *text);
