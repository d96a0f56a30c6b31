/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is to blame for a configuration that is marked bad: the fields in which it differs from the last known good, the most
 * dangerous first (column `danger` of the tables).
 *
 * A pure value: a map as it is stored in the record of the mark and shown in bad/ (docs/specification.md 2.12). Its values are
 * masked like those of status/<c>/origin, and it is limited in number and size.
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/doc.h>
#include <lkg/schema.h>

#define LKG_SUSPECTS_MAX       32u   /* fields that are listed; the others are counted */
#define LKG_SUSPECTS_BYTES_MAX 8192u /* of their texts, about */
#define LKG_SUSPECT_VALUE_MAX  120u  /* bytes of a value; then it is cut */
#define LKG_SUSPECT_TEXT_MAX   256u  /* bytes of a pointer, a layer, a file; then it is cut */

/* One of the two documents. */
struct lkg_suspects_side {
        const struct lkg_value *doc; /* not masked */
        const char *origin;          /* the text of `origin` for it, NUL-terminated */
        uint64_t generation;         /* 0 = it has no number */
};

/**
 * lkg_suspects_find() - the fields in which @condemned differs from @good.
 * @schema: NULL = a kind without a table: the order is that of the documents
 * @whole:  all of them; otherwise within the limits above
 * @ret:    one reference
 *
 * Return: 0; -ENOMEM.
 */
int lkg_suspects_find(const struct lkg_schema *schema, const struct lkg_suspects_side *good,
                      const struct lkg_suspects_side *condemned, bool whole, struct lkg_value **ret);
/** lkg_suspects_unknown() - the map for a mark whose documents cannot be compared: @why. Return: one reference; NULL = no memory. */
struct lkg_value *lkg_suspects_unknown(const char *why);
/** lkg_suspects_known() - are there fields, or is it known that there are none? @suspects: may be NULL, or anything from a disk */
bool lkg_suspects_known(const struct lkg_value *suspects);
/** lkg_suspects_number() - a number of the map: generation, lastKnownGood, notListed; 0 = none. */
uint64_t lkg_suspects_number(const struct lkg_value *suspects, const char *name);
/**
 * lkg_suspects_say() - append `suspects: cgroupDriver (drop-in 10-x.conf:3), maxPods (...) and 2 more`: names of fields and places,
 * never a value nor the key of a map. Appends nothing if they are not known.
 * @room: bytes that it may have
 */
void lkg_suspects_say(const struct lkg_value *suspects, size_t room, struct lkg_buf *buf);
