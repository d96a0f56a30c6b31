/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a text looks like that is no layer, and what to do with it. Asked only after a text could not be read or its header does not
 * fit, so a sign may be short: a wrong guess costs one clause of a finding that is there anyway. Nothing of the text is quoted.
 */
#include <ctype.h>

#include <lkg/text.h>
#include <lkg/tree.h>

/* NULL = not there. @signs: ends with NULL; NULL = the test knows its sign. @line: where the mistake is; 0 = not known */
typedef const char *find_fn(struct lkg_span text, const char *const *signs, unsigned line);

static bool starts(struct lkg_span text, const char *at, const char *sign)
{
        size_t n = strlen(sign);

        return (size_t)(text.data + text.size - at) >= n && strncmp(at, sign, n) == 0;
}

static const char *at_any(struct lkg_span text, const char *at, const char *const *signs)
{
        for (size_t i = 0; signs[i]; i++)
                if (starts(text, at, signs[i]))
                        return at;
        return NULL;
}

/* At the first character that is not white space. */
static const char *at_start(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *at = text.data, *end = at + text.size;

        (void)line;
        while (at < end && isspace((unsigned char)*at))
                at++;
        return at_any(text, at, signs);
}

/* At the start of a line, indented or not. */
static const char *at_line(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *at = text.data, *end = at + text.size;

        (void)line;
        while (at < end) {
                const char *next = memchr(at, '\n', (size_t)(end - at));

                while (at < end && (*at == ' ' || *at == '\t'))
                        at++;
                if (at_any(text, at, signs))
                        return at;
                at = next ? next + 1 : end;
        }
        return NULL;
}

static const char *anywhere(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *first = NULL;

        (void)line;
        for (size_t i = 0; signs[i]; i++) {
                const char *at = memmem(text.data, text.size, signs[i], strlen(signs[i]));

                if (at && (!first || at < first))
                        first = at;
        }
        return first;
}

/* A character that is easily taken for another: only on the line of the mistake, since elsewhere it may be meant. */
static const char *lookalike(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *end = text.data + text.size;
        unsigned now = 1;
        uint32_t c;

        for (const char *at = text.data; at < end;) {
                size_t n = lkg_utf8_decode((const unsigned char *)at, (size_t)(end - at), &c);

                if (n > 1 && (!line || now == line) && lkg_lookalike_is(c, *signs))
                        return at;
                now += *at == '\n';
                at += n ? n : 1;
        }
        return NULL;
}

/* ` --max-pods=50`; `---` begins a document. */
static const char *flag(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *at = at_line(text, (const char *const[]){ "--", NULL }, line);

        (void)signs;
        return at && at + 2 < text.data + text.size && isalpha((unsigned char)at[2]) ? at : NULL;
}

/* More than a word, and nothing but the characters of base64 and line breaks. */
static const char *base64(struct lkg_span text, const char *const *signs, unsigned line)
{
        (void)signs;
        (void)line;
        for (size_t i = 0; i < text.size; i++) {
                unsigned char c = (unsigned char)text.data[i];

                if (!isalnum(c) && !memchr("+/=\r\n", c, 5))
                        return NULL;
        }
        return text.size >= 40 ? text.data : NULL;
}

/* What JSON does not have and its relatives do, outside of strings: a comment, a comma before a bracket, single quotes. */
static const char *json(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *end = text.data + text.size, *comma = NULL;
        char before = '\0';
        bool quoted = false;

        (void)line;
        if (!at_start(text, (const char *const[]){ "{", "[", "//", "/*", NULL }, 0))
                return NULL;
        for (const char *at = text.data; at < end;
             before = before == '\\' && *at == '\\' ? '\0' : *at, at++) {
                if (*at == '"' && before != '\\')
                        quoted = !quoted;
                if (quoted || isspace((unsigned char)*at))
                        continue;
                if (**signs == ',' && comma && (*at == '}' || *at == ']'))
                        return comma;
                comma = *at == ',' ? at : NULL;
                if (**signs != ',' && at_any(text, at, signs))
                        return at;
        }
        return NULL;
}

/* A document of a component that is not the first of its file. */
static const char *later_document(struct lkg_span text, const char *const *signs, unsigned line)
{
        const char *cut = memmem(text.data, text.size, "\n---", 4);

        return cut ? at_line(lkg_span(cut, (size_t)(text.data + text.size - cut)), signs, line) : NULL;
}

#define SIGNS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The first one that fits is said. */
static const struct {
        const char *what, *todo;
        find_fn *find;
        const char *const *signs;
} texts[] = {
        { "gzip-compressed data", "unpack it with zcat", at_start, SIGNS("\x1f\x8b") },
        { "a program or an archive", "put the text of a configuration here", at_start,
          SIGNS("\x7f"
                "ELF",
                "PK\x03\x04",
                "\xfd"
                "7zXZ",
                "\x28\xb5\x2f\xfd") },
        { "a web page or the error of a download", "look at it, and fetch the file again with curl --fail",
          at_start,
          SIGNS("<!doctype", "<!DOCTYPE", "<html", "<HTML", "<?xml", "404 page not found",
                "404 Not Found") },
        { "an error message of kubectl", "look at it, and ask again", at_start,
          SIGNS("Error from server", "The connection to the server", "error: ") },
        { "a certificate or a key",
          "name its file in the field for it, such as authentication.x509.clientCAFile", at_start,
          SIGNS("-----BEGIN ") },
        { "a file with merge-conflict markers",
          "keep one of the two sides, and remove the lines with <<<<<<<, ======= and >>>>>>>", at_line,
          SIGNS("<<<<<<< ", ">>>>>>> ", "||||||| ") },
        { "a difference made by diff", "apply it with patch, and put the result here", at_line,
          SIGNS("@@ -", "diff --git ") },
        { "a shell script", "put here what it writes", at_start, SIGNS("#!") },
        { "a here-document of a shell", "leave out the lines that are the shell's (cat <<EOF, EOF)", at_line,
          SIGNS("cat <<", "cat >", "tee ", "sudo ", "EOF", "EOT") },
        { "an ERB template (Puppet, Chef) that nobody rendered",
          "let the program that owns the template write the file", anywhere, SIGNS("<%") },
        { "a Jinja template (Ansible, Salt) that nobody rendered",
          "write the file with Ansible's template module, not with copy", anywhere, SIGNS("{%", "{#") },
        { "a template (Go, Helm, Jinja) that nobody rendered",
          "put the result here, of `helm template` or of Ansible's template module", anywhere, SIGNS("{{") },
        { "a text whose variables nobody replaced", "replace them, for example with envsubst", anywhere,
          SIGNS("${", "$(") },
        { "a text with placeholders that nobody replaced", "replace @NAME@ by a value", anywhere,
          SIGNS(": @", "- @") },
        { "a unit or drop-in of systemd",
          "it belongs in /etc/systemd/system/kubelet.service.d; for a flag in it, `lkgfs explain --FLAG` "
          "names the "
          "field",
          at_line, SIGNS("[Unit]", "[Service]", "[Install]", "ExecStart=", "Environment=") },
        { "settings of Bottlerocket", "write the field of the kubelet: maxPods for max-pods", at_line,
          SIGNS("[settings.", "settings.") },
        { "a TOML file, such as containerd's", "put a document of the component's kind here", at_line,
          SIGNS("[plugins", "[grpc]", "[debug]") },
        { "an environment file with flags", "`lkgfs explain --FLAG` names the field of each flag", at_line,
          SIGNS("KUBELET_", "KUBE_", "DAEMON_ARGS=", "export ", "CONTAINER_RUNTIME_ARGS=") },
        { "flags of a command line", "`lkgfs explain --FLAG` names the field of each", flag, NULL },
        { "JSON with comments", "take them out, or write the document as YAML, which has # for comments",
          json, SIGNS("//", "/*", "#") },
        { "JSON with a comma behind the last member", "take the comma out", json, SIGNS(",") },
        { "JSON with single quotes", "write double ones; Python does with json.dumps()", json, SIGNS("'") },
        { "a text with typographic quotes, which a word processor or a chat made", "write \" or '",
          lookalike, SIGNS("QUOTATION MARK") },
        { "a text with a no-break space or another one that is none of ASCII", "write a plain one (U+0020)",
          lookalike, SIGNS("SPACE") },
        { "a text with a dash that is none of ASCII", "write - (U+002D)", lookalike, SIGNS("DASH") },
        { "base64", "decode it with base64 -d", base64, NULL },
};

#define EXPLAIN_FLAG "`lkgfs explain --FLAG` names the field of each flag"
#define COMPONENT    "it belongs to the component that reads it"

/* @group: a part of the apiVersion, but all of v1; NULL = there is no header. @keys: one of them at the top, `*` for any end */
static const struct {
        const char *group, *kind;
        const char *const *keys;
        const char *what, *todo;
} headers[] = {
        { "v1", "ConfigMap", NULL, "a ConfigMap",
          "the document is the text below a key of its data, `kubelet` in kubeadm's: kubectl get configmap "
          "NAME -o "
          "jsonpath='{.data.kubelet}' prints it" },
        { "v1", "Secret", NULL, "a Secret",
          "a configuration holds no secrets, so put a document of its own here" },
        { "v1", "Pod", NULL, "the manifest of a pod",
          "it belongs in the directory of static pods, manifests/" },
        { "v1", "List", NULL, "a list that kubectl printed", "get the one object by its name" },
        { "v1", "Status", NULL, "an error of the API server", "look at its message, and ask again" },
        { "v1", "Config", NULL, "a kubeconfig", "the component's --kubeconfig names its file" },
        { "kubeadm.k8s.io/", "ClusterConfiguration", NULL, "kubeadm's ClusterConfiguration",
          "kubeadm init --config reads it; the kubelet's fields are a KubeletConfiguration, which kubeadm "
          "takes as another "
          "document of that file" },
        { "kubeadm.k8s.io/", NULL, NULL, "a configuration of kubeadm",
          "kubeadm --config reads it; of a flag in nodeRegistration.kubeletExtraArgs, `lkgfs explain "
          "--FLAG` names the field" },
        { "kind.x-k8s.io/", NULL, NULL, "the configuration of a kind cluster",
          "the text in its kubeadmConfigPatches that begins with kind: KubeletConfiguration belongs here" },
        { "node.eks.aws/", NULL, NULL, "an EKS NodeConfig (nodeadm)",
          "the fields below its spec.kubelet.config belong here, and flags are below spec.kubelet.flags" },
        { "eksctl.io/", NULL, NULL, "a configuration of eksctl",
          "the fields below kubeletExtraConfig of a node group belong here" },
        { "karpenter", NULL, NULL, "an object of Karpenter",
          "the fields below its spec.kubelet belong here" },
        { "kops.k8s.io/", NULL, NULL, "a specification of kOps",
          "the fields below its spec.kubelet belong here" },
        { "machineconfiguration.openshift.io/", NULL, NULL,
          "an object of OpenShift's machine-config operator",
          "the fields below its spec.kubeletConfig belong here" },
        { "cluster.x-k8s.io/", NULL, NULL, "an object of Cluster API",
          "put a document of the component's kind here, for example as one of its files" },
        { "cattle.io/", NULL, NULL, "an object of Rancher", "in its kubelet-arg, " EXPLAIN_FLAG },
        { "k0sproject.io/", NULL, NULL, "a configuration of k0s",
          "the fields below values of one of its spec.workerProfiles belong here" },
        { "gardener.cloud/", NULL, NULL, "an object of Gardener",
          "the fields below its spec.kubernetes.kubelet belong here" },
        { "kustomize.config.k8s.io/", NULL, NULL, "a kustomization",
          "put here what `kubectl kustomize` prints" },
        { "config.lkgfs.io/", NULL, NULL, "the configuration of lkgfs",
          "lkgfsd reads it as /etc/lkgfs/lkgfs.conf" },
        { "kubelet.config.k8s.io/", "CredentialProviderConfig", NULL,
          "a configuration of credential providers",
          "the kubelet's --image-credential-provider-config names its file" },
        { "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", NULL, "a configuration of the kubelet",
          COMPONENT },
        { "kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration", NULL,
          "a configuration of kube-proxy", COMPONENT },
        { "kubescheduler.config.k8s.io/", NULL, NULL, "a configuration of kube-scheduler", COMPONENT },
        { "apiserver", NULL, NULL, "a configuration of the API server", COMPONENT },
        { "audit.k8s.io/", NULL, NULL, "a policy of the API server", COMPONENT },
        { "apps/", NULL, NULL, "an object for the API server", "kubectl apply sends it there" },
        { NULL, NULL,
          SIGNS("kubelet-arg*", "kube-proxy-arg*", "kube-apiserver-arg*", "write-kubeconfig-mode",
                "tls-san"),
          "the config.yaml of k3s or RKE2",
          "write the field of each flag in its kubelet-arg: `lkgfs explain --FLAG` names it" },
        { NULL, NULL, SIGNS("machine"), "a machine configuration of Talos",
          "the fields below its machine.kubelet.extraConfig belong here" },
        { NULL, NULL, SIGNS("extraKubeletArgs"), "a launch configuration of MicroK8s", EXPLAIN_FLAG },
        { NULL, NULL, SIGNS("kubeletconfig"), "what the kubelet's /configz prints",
          "it is the running configuration with all defaults; put only the fields here that are to differ" },
        { NULL, NULL, SIGNS("kubeletConfig", "linuxConfig"), "a node configuration of GKE",
          "the fields below its kubeletConfig belong here" },
        { NULL, NULL, SIGNS("settings"), "settings of Bottlerocket",
          "write the field of the kubelet: maxPods for max-pods" },
        { NULL, NULL, SIGNS("write_files", "runcmd", "cloud_init_modules", "package_update"),
          "user data of cloud-init", "the text below content of one of its write_files belongs here" },
        { NULL, NULL, SIGNS("ignition", "storage"), "a configuration of Ignition or Butane",
          "the contents of one of its storage.files belong here" },
        { NULL, NULL, SIGNS("kubelet_*", "kube_*", "kubeadm_*"), "variables of Ansible (kubespray)",
          "write the fields themselves: maxPods for kubelet_max_pods" },
        { NULL, NULL,
          SIGNS("max-pods", "cluster-dns", "cluster-domain", "feature-gates", "node-labels", "eviction-hard",
                "kube-reserved", "system-reserved", "cgroup-driver", "fail-swap-on", "read-only-port",
                "anonymous-auth", "register-with-taints", "--*"),
          "flags of a command line", EXPLAIN_FLAG },
        { "v2", NULL, SIGNS("appVersion", "version"), "the Chart.yaml of a Helm chart",
          "put here what `helm template` prints" },
        { NULL, NULL,
          SIGNS("replicaCount", "image", "images", "fullnameOverride", "nameOverride", "podAnnotations",
                "serviceAccount", "imagePullSecrets", "ingress", "resources", "global"),
          "a values file of Helm", "put here what `helm template` prints" },
        { NULL, NULL, SIGNS("404", "Error from server*"), "the error of a download",
          "look at it, and fetch the file again with curl --fail" },
        { NULL, NULL, SIGNS("apiversion", "ApiVersion", "APIVersion", "api_version", "Kind", "KIND"),
          "a header in another spelling", "write apiVersion and kind" },
        { NULL, NULL,
          SIGNS("maxPods", "evictionHard", "evictionSoft", "systemReserved", "kubeReserved", "clusterDNS",
                "clusterDomain", "featureGates", "authentication", "authorization", "cgroupDriver",
                "podPidsLimit", "cpuManagerPolicy", "imageGCHighThresholdPercent", "readOnlyPort",
                "serializeImagePulls"),
          "a patch for kubeadm, which has no header",
          "as one it belongs in patchesDir, named kubeletconfiguration+merge.yaml" },
};

static bool has_key(const struct lkg_value *doc, const char *key)
{
        size_t n = strlen(key);

        if (key[n - 1] != '*')
                return lkg_map_get(doc, key) != NULL;
        for (struct lkg_member m = { 0 }; lkg_value_next(doc, &m);)
                if (m.key.size >= n - 1 && memcmp(m.key.data, key, n - 1) == 0)
                        return true;
        return false;
}

static bool has_group(const char *version, const char *group)
{
        return *group == 'v' ? strcmp(version, group) == 0 : strstr(version, group) != NULL;
}

static bool fits(size_t row, const struct lkg_value *doc)
{
        const char *version = lkg_map_get_string(doc, "apiVersion"), *kind = lkg_map_get_string(doc, "kind");
        bool any = !headers[row].keys;

        if (!headers[row].group && (lkg_map_get(doc, "apiVersion") || lkg_map_get(doc, "kind")))
                return false;
        if (headers[row].group && (!version || !has_group(version, headers[row].group)))
                return false;
        if (headers[row].kind && (!kind || strcmp(kind, headers[row].kind) != 0))
                return false;
        for (size_t i = 0; !any && headers[row].keys[i]; i++)
                any = has_key(doc, headers[row].keys[i]);
        return any;
}

/* kubeadm's patches and those of kubectl: a list of operations. */
static bool is_json_patch(const struct lkg_value *doc)
{
        const struct lkg_value *first = lkg_value_type(doc) == LKG_LIST ? lkg_list_get(doc, 0) : NULL;

        return first && lkg_value_type(first) == LKG_MAP && lkg_map_get(first, "op") &&
               lkg_map_get(first, "path");
}

static char *sentence(const char *what, unsigned line, const char *todo)
{
        char where[24] = "", *ret;

        if (line > 1)
                (void)snprintf(where, sizeof(where), " (line %u)", line);
        return asprintf(&ret, "this looks like %s%s: %s", what, where, todo) < 0 ? NULL : ret;
}

static unsigned line_of(struct lkg_span text, const char *at)
{
        unsigned line = 1;

        for (const char *p = text.data; p < at; p++)
                line += *p == '\n';
        return line;
}

static char *by_text(struct lkg_span text, unsigned line)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                const char *at = texts[i].find(text, texts[i].signs, line);

                if (at)
                        return sentence(texts[i].what, line_of(text, at), texts[i].todo);
        }
        return NULL;
}

static char *by_header(const struct lkg_value *doc)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(headers); i++)
                if (fits(i, doc))
                        return sentence(headers[i].what, 0, headers[i].todo);
        return NULL;
}

char *lkg_resembles(const char *data, size_t size, unsigned line, const struct lkg_value *doc)
{
        struct lkg_span text = lkg_span(data, data ? size : 0);
        const char *at =
                doc && text.size
                        ? later_document(text,
                                         SIGNS("kind: KubeletConfiguration", "kind: KubeProxyConfiguration"),
                                         0)
                        : NULL;
        char *ret = NULL;

        if (at)
                return sentence("a file whose first document is not that of the component",
                                line_of(text, at),
                                "only the first one counts, so put the other one into a file of its own");
        if (doc && is_json_patch(doc))
                return sentence("a JSON patch, such as kubeadm's", 0,
                                "as one it belongs in patchesDir, named kubeletconfiguration+json.json");
        if (doc && lkg_value_type(doc) == LKG_MAP)
                ret = by_header(doc);
        return ret || !text.size ? ret : by_text(text, line);
}
