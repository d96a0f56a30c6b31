/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/schema.h>

const struct lkg_kind lkg_kinds[] = {
        { "KubeletConfiguration", "kubelet.config.k8s.io/v1beta1", "kubelet", lkg_kubelet_fields,
          &lkg_n_kubelet_fields, lkg_kubelet_flags, &lkg_n_kubelet_flags },
        { "KubeProxyConfiguration", "kubeproxy.config.k8s.io/v1alpha1", "kube-proxy", lkg_kubeproxy_fields,
          &lkg_n_kubeproxy_fields, lkg_kubeproxy_flags, &lkg_n_kubeproxy_flags },
};
const size_t lkg_n_kinds = LKG_ARRAY_SIZE(lkg_kinds);

bool lkg_field_in(const struct lkg_field *field, unsigned release)
{
        return field->since <= release && (field->until == 0 || release <= field->until);
}

const struct lkg_gate_state *lkg_gate_in(const struct lkg_gate *gate, unsigned release)
{
        const struct lkg_gate_state *found = NULL;

        for (size_t i = 0; i < LKG_GATE_STATES_MAX && gate->states[i].since; i++)
                if (gate->states[i].since <= release)
                        found = &gate->states[i];
        return found;
}

const char *lkg_release_text(unsigned release, char buf[static LKG_RELEASE_TEXT_MAX])
{
        (void)snprintf(buf, LKG_RELEASE_TEXT_MAX, "%u.%u", release / 100, release % 100);
        return buf;
}

const char *lkg_gate_dropped(const struct lkg_gate_state *state, char buf[static LKG_GATE_DROPPED_MAX])
{
        char text[LKG_RELEASE_TEXT_MAX];

        (void)snprintf(buf, LKG_GATE_DROPPED_MAX, "%s %s", state->before ? "before" : "in",
                       lkg_release_text(state->since + state->before, text));
        return buf;
}

const char *lkg_gate_stage_name(enum lkg_gate_stage stage)
{
        switch (stage) {
        case LKG_GATE_ALPHA:
                return "alpha";
        case LKG_GATE_BETA:
                return "beta";
        case LKG_GATE_GA:
                return "GA";
        case LKG_GATE_DEPRECATED:
                return "deprecated";
        case LKG_GATE_REMOVED:
                break;
        }
        return "dropped";
}
