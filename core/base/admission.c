/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/admission.h>

int lkg_admit(const struct lkg_admission *admission, const struct lkg_content *content, char **ret_why)
{
        *ret_why = NULL;
        if (!admission || !admission->admit)
                return 0;
        return admission->admit(content, ret_why, admission->userdata);
}

void lkg_admit_finished(const struct lkg_admission *admission)
{
        if (admission && admission->finished)
                admission->finished(admission->userdata);
}

int lkg_admit_text(const struct lkg_admission *admission, enum lkg_admit_what what, const char *file,
                   const void *text, size_t size, char **ret_why)
{
        char sha256[LKG_SHA256_HEX];
        int r;

        *ret_why = NULL;
        if (!admission || !admission->admit)
                return 0;
        r = lkg_sha256_hex(text, size, sha256);
        if (r < 0)
                return r;
        return lkg_admit(admission, &(struct lkg_content){ what, file, sha256, size }, ret_why);
}
