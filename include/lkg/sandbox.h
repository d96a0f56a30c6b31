/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine parses untrusted bytes as root's child, so it gives up what it does not need: being root, all capabilities but
 * one, new privileges, cores, being traced, most of the address space, changing files outside of two directories, and system calls
 * that it has no use for.
 */
#pragma once

#include <lkg/account.h>
#include <lkg/error.h>

/** lkg_sandbox_hide_memory() - no core, and nobody looks into this process: for whoever has a credential. Return: 0 or -errno. */
int lkg_sandbox_hide_memory(struct lkg_error *err);

/**
 * lkg_sandbox_become() - the user that the engine is from now on, and nobody looks into this process. Before anything is made
 * or locked: the directories are that user's, and root may not write into them where a policy leaves it no CAP_DAC_OVERRIDE.
 * @account: root: it stays that. Another one keeps CAP_DAC_READ_SEARCH, without which it could not read what only root may, as a base
 *           with mode 0600
 *
 * Return: 0 or -errno.
 */
int lkg_sandbox_become(const struct lkg_account *account, struct lkg_error *err);

/**
 * lkg_sandbox_enter() - for good; after lkg_sandbox_become(), and who is still root has no capability from here on.
 * @writable: descriptors of the directories in which it may make, change and remove files
 *
 * Return: 0 or -errno: better not to run than to run unprotected.
 */
int lkg_sandbox_enter(const int *writable, size_t n_writable, struct lkg_error *err);
