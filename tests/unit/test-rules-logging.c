/* SPDX-License-Identifier: Apache-2.0 */
/* The logging section, which is common to both kinds. */
#include "rules-helpers.h"

#define ALPHA  "featureGates: {LoggingAlphaOptions: true}\n"
#define BUFFER "logging.options.json.infoBufferSize"

static const struct expectation rows[] = {
        { "logging: {flushFrequency: 1ns}", NULL },
        { "logging: {flushFrequency: 5000000000}", NULL },
        { "logging: {flushFrequency: -1}", "logging.flushFrequency", LKG_F_OUT_OF_RANGE },
        { "logging: {flushFrequency: -1s}", "logging.flushFrequency", LKG_F_OUT_OF_RANGE },
        { "logging: {format: text}", NULL },
        { "logging: {format: json}", NULL },
        { "logging: {format: Text}", "logging.format", LKG_F_NOT_ONE_OF },
        { "featureGates: {LoggingBetaOptions: false}\nlogging: {format: json}", "logging.format",
          LKG_F_NEEDS_GATE },
        { "featureGates: {LoggingBetaOptions: false}\nlogging: {format: text}", NULL },
        { "logging: {verbosity: 2147483647}", NULL },
        { "logging: {verbosity: 2147483648}", "logging.verbosity", LKG_F_OUT_OF_RANGE },
        { "logging: {vmodule: [{filePattern: \"a*\", verbosity: 2147483647}]}", NULL },
        { "logging: {vmodule: [{filePattern: a}, {verbosity: 1}]}", "logging.vmodule[1].filePattern",
          LKG_F_REQUIRED },
        { "logging: {vmodule: [{filePattern: \"a=b\"}]}", "logging.vmodule[0].filePattern",
          LKG_F_BAD_FORMAT },
        { "logging: {vmodule: [{filePattern: \"a,b\"}]}", "logging.vmodule[0].filePattern",
          LKG_F_BAD_FORMAT },
        { "logging: {vmodule: [{filePattern: a, verbosity: 2147483648}]}", "logging.vmodule[0].verbosity",
          LKG_F_OUT_OF_RANGE },
        { "logging: {format: json, vmodule: [{filePattern: a}]}", "logging.vmodule", LKG_F_CONTRADICTION },
        { "logging: {format: json, vmodule: []}", NULL },
        { "logging: {options: {json: {splitStream: true}}}", "logging.options.json.splitStream",
          LKG_F_NEEDS_GATE },
        { ALPHA "logging: {options: {json: {splitStream: true}}}", NULL },
        { "logging: {options: {text: {splitStream: true}}}", "logging.options.text.splitStream",
          LKG_F_NEEDS_GATE },
        { "logging: {options: {text: {infoBufferSize: 1Ki}}}", "logging.options.text.infoBufferSize",
          LKG_F_NEEDS_GATE },
        { ALPHA "logging: {options: {text: {infoBufferSize: 1Ki}}}", NULL },
        /* values that the component reads as 0 */
        { "logging: {options: {json: {infoBufferSize: 0Gi}}}", NULL },
        { "logging: {options: {json: {infoBufferSize: 1m}}}", BUFFER, LKG_F_NEEDS_GATE },
        { "logging: {options: {json: {infoBufferSize: \"-1Ki\"}}}", BUFFER, LKG_F_NEEDS_GATE },
        { "logging: {options: {json: {infoBufferSize: 1E}}}", BUFFER, LKG_F_NEEDS_GATE },
        { "logging: {options: {json: {infoBufferSize: 100E}}}", NULL },
        { "logging: {options: {json: {infoBufferSize: \"1e400\"}}}", NULL },
        { "logging: {options: {json: {infoBufferSize: \"18446744073709551616\"}}}", NULL },
        { "logging: {options: {json: {infoBufferSize: \"18446744073709551617\"}}}", BUFFER,
          LKG_F_NEEDS_GATE },
        /* based on the original text, not on the printed one (22337203685474776k, 1) */
        { "logging: {options: {json: {infoBufferSize: 22337203685474775808}}}", BUFFER, LKG_F_NEEDS_GATE },
        { "logging: {options: {json: {infoBufferSize: 1000E}}}", NULL },
};

TEST(test_rows)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                check_row(&rows[i], KUBELET, false);
                check_row(&rows[i], PROXY, false);
        }
}

TEST(test_flush_frequency_was_not_judged_before_1_35)
{
        static const struct expectation before = { "logging: {flushFrequency: -1}", NULL, .release = 134 };
        static const struct expectation since = { "logging: {flushFrequency: -1}", "logging.flushFrequency",
                                                  LKG_F_OUT_OF_RANGE, .release = 135 };

        check_row(&before, KUBELET, false);
        check_row(&since, KUBELET, false);
}
