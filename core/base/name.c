/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/text.h>

static bool is_label(struct lkg_span s)
{
        if (s.size == 0 || s.data[0] == '-' || s.data[s.size - 1] == '-')
                return false;
        for (size_t i = 0; i < s.size; i++) {
                char c = s.data[i];

                if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
                        return false;
        }
        return true;
}

int lkg_name_dns_label(const char *text, size_t size, char *reason)
{
        if (size == 0)
                return lkg_refuse(reason, "empty; want a name, such as kube-system");
        if (size > LKG_DNS_LABEL_MAX)
                return lkg_refuse(reason, "longer than %u bytes", LKG_DNS_LABEL_MAX);
        if (!is_label(lkg_span(text, size)))
                return lkg_refuse(reason, "not a name of a-z, 0-9 and -, such as kube-system");
        return 0;
}

int lkg_name_dns_subdomain(const char *text, size_t size, char *reason)
{
        struct lkg_span rest = { text, size }, label;

        if (size == 0)
                return lkg_refuse(reason, "empty; want a domain, such as example.com");
        if (size > LKG_DNS_SUBDOMAIN_MAX)
                return lkg_refuse(reason, "longer than %u bytes", LKG_DNS_SUBDOMAIN_MAX);
        while (lkg_span_next(&rest, '.', &label)) {
                if (!is_label(label))
                        return lkg_refuse(reason,
                                          "not a domain of a-z, 0-9, - and points, such as example.com");
        }
        return 0;
}
