/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <lkg/documents.h>
void lkg_pod_judge(const struct lkg_value *doc, unsigned release, struct lkg_report *report);
