/* SPDX-License-Identifier: Apache-2.0 */
/* Users by name and number, read from a file on this machine and from nowhere else: rows/account.rows. */
#include <limits.h>

#include <lkg/process.h>

#include "rows.h"

static void say_account(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_account account = { .uid = 5, .gid = 5 };
        char path[PATH_MAX];
        int r;

        (void)snprintf(path, sizeof(path), "%s/rows/%s", TEST_DIR, q->args[1]);
        r = lkg_account_find(path, q->text, &account);
        lkg_buf_printf(ret, "%s%u:%u", r < 0 ? "ENOENT " : "", account.uid, account.gid);
        assert_true(r == 0 || r == -ENOENT);
}

static const struct operation operations[] = {
        { "account", say_account, 0 },
        { 0 },
};

ROWS(account, operations)
