/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of what a fake API server says (fake-remote.h): the words that all stories about a cluster have. A program defines the loop of its node,
 * steps_event(), before.
 */
#pragma once

#include "rows.h"

#include "fake-remote.h"

static sd_event *steps_event(void);

/* Run until nothing is due now. */
static void settle(void)
{
        for (unsigned i = 0; sd_event_run(steps_event(), 0) > 0; i++)
                assert_in_range(i, 0, 100);
}

STEP(credential, 1)
{
        fake_credential(strcmp(q->parts[0], "none") == 0 ? LKG_CREDENTIAL_NONE : LKG_CREDENTIAL_NODE);
}

/* UID, the annotation, and the rest of the Node. */
static void tell_node(const char *uid, const char *annotation, const char *rest)
{
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"%s\","
                       "\"resourceVersion\":\"5\"%s%s%s}%s}",
                       uid, *annotation ? ",\"annotations\":{\"lkgfs.io/config-source\":\"" : "", annotation,
                       *annotation ? "\"}" : "", rest);
        fake_tell("nodes", text);
        settle();
}

STEP(node, 3)
{
        tell_node(q->parts[0], q->parts[1], q->parts[2]);
}

/* NAME, VERSION, maxPods, annotations */
static const char *configmap_json(const char *name, const char *version, const char *pods,
                                  const char *annotations)
{
        static char text[2048];

        (void)snprintf(
                text, sizeof(text),
                "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":"
                "\"kube-system\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%s\","
                "\"annotations\":{%s}},\"data\":{\"kubelet\":\"apiVersion: kubelet.config.k8s.io/v1beta1\\n"
                "kind: KubeletConfiguration\\nmaxPods: %s\\n\"}}",
                name, name, version, annotations, pods);
        return text;
}

STEP(configmap, 4)
{
        fake_tell("configmaps", configmap_json(q->parts[0], q->parts[1], q->parts[2], q->parts[3]));
        settle();
}

/* The server says that it does not exist. */
STEP(gone, 1)
{
        fake_tell(q->parts[0], NULL);
        settle();
}

/* OBJECT, for how many seconds, status, words */
STEP(fail, 4)
{
        fake_fail(q->parts[0], rows_named(lkg_api_status_name, _LKG_API_STATUS_MAX, q->parts[2]),
                  q->parts[3], (unsigned)strtoul(q->parts[1], NULL, 10));
        settle();
}
