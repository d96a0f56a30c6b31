/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `logging` section, the same in both kinds: component-base, logs/api/v1, Validate.
 */
#include "rules.h"
#include "values/values.h"

static const char alpha_gate[] = "LoggingAlphaOptions", beta_gate[] = "LoggingBetaOptions";

const struct lkg_value_rule lkg_logging_rules[] = {
        { "logging.flushFrequency", LKG_RULE_DURATION, "it must be greater than 0", .min = 1,
          .max = INT64_MAX, .since = 135 },
        { "logging.verbosity", LKG_RULE_NUMBER, "want 0 to 2147483647", .max = INT32_MAX },
        { "logging.options.text.splitStream", LKG_RULE_UNSET, "turn the gate on, or remove the line",
          .gate = alpha_gate, .flags = LKG_RULE_GATE_OFF },
        { "logging.options.json.splitStream", LKG_RULE_UNSET, "turn the gate on, or remove the line",
          .gate = alpha_gate, .flags = LKG_RULE_GATE_OFF },
};
const size_t lkg_n_logging_rules = LKG_ARRAY_SIZE(lkg_logging_rules);

/*
 * Formats that a component knows: `text` is built in, the others are registered by its main program with the
 * feature gate they need (cmd/kubelet/kubelet.go and cmd/kube-proxy/proxy.go register json).
 */
static const struct {
        const char *name, *gate;
} formats[] = { { "text", NULL }, { "json", beta_gate } };

static void check_format(const struct lkg_rules *rules)
{
        static const char path[] = "logging.format";
        const struct lkg_value *value = lkg_rule_about(rules, path);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(formats); i++) {
                if (!lkg_span_is(lkg_text_of(value), formats[i].name))
                        continue;
                if (formats[i].gate && !lkg_rule_gate(rules, formats[i].gate))
                        lkg_breach_gate(rules, LKG_F_NEEDS_GATE, path, value, formats[i].gate,
                                        "turn it on, or use text");
                return;
        }
        lkg_breach(rules, LKG_F_NOT_ONE_OF, path, value, "is not known; want one of text, json");
}

static void check_vmodule(const struct lkg_rules *rules)
{
        static const char list_path[] = "logging.vmodule", format_path[] = "logging.format";
        const struct lkg_value *list = lkg_rule_each(rules, list_path);
        struct lkg_span format = lkg_rule_text(rules, format_path);

        if (list && lkg_value_size(list) > 0 && format.size > 0 && !lkg_span_is(format, "text"))
                lkg_breach_pair(rules, LKG_F_CONTRADICTION, list_path, "cannot go with", format_path,
                                "cannot go with", "the list needs the format text");
        lkg_rule_begin(rules);
        for (struct lkg_member m = { 0 }; lkg_value_next(list, &m);) {
                const struct lkg_value *pattern = lkg_object_get(m.value, "filePattern");
                struct lkg_span text = lkg_text_of(pattern);
                const char *path = LKG_ITEM_PATH(list_path, m.i, "filePattern");

                if (text.size == 0)
                        lkg_breach_missing(rules, path, pattern ? pattern : m.value,
                                           "the name of a source file without .go, * allowed");
                else if (memchr(text.data, '=', text.size) || memchr(text.data, ',', text.size))
                        lkg_breach(rules, LKG_F_BAD_FORMAT, path, pattern, "must not have = or ,");
                if (lkg_object_int(m.value, "verbosity") > INT32_MAX)
                        lkg_breach(rules, LKG_F_OUT_OF_RANGE, LKG_ITEM_PATH(list_path, m.i, "verbosity"),
                                   lkg_object_get(m.value, "verbosity"),
                                   "is out of range; want 0 to 2147483647");
        }
}

static void check_buffer(const struct lkg_rules *rules, const char *path)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        const struct lkg_value *value = lkg_rule_about(rules, path);
        struct lkg_span text = lkg_text_of(value);

        if (!lkg_rule_gate(rules, alpha_gate) &&
            lkg_quantity_parse(text.data, text.size, &quantity, NULL) == 0 &&
            lkg_quantity_value(&quantity) != 0)
                lkg_breach_gate(rules, LKG_F_NEEDS_GATE, path, value, alpha_gate,
                                "turn the gate on, or remove the line");
}

void lkg_rules_logging(const struct lkg_rules *rules)
{
        lkg_rules_apply(rules, lkg_logging_rules, lkg_n_logging_rules);
        check_buffer(rules, "logging.options.text.infoBufferSize");
        check_buffer(rules, "logging.options.json.infoBufferSize");
        check_format(rules);
        check_vmodule(rules);
}
