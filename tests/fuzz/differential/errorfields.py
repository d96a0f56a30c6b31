# SPDX-License-Identifier: Apache-2.0
"""Which fields two refusals name. The words are ours to choose, the field is not."""

import re

QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|cannot decode !!\w+ `[^`]*`')
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:\[\d+\]|\.[A-Za-z][A-Za-z0-9]*)*")
ERROR = re.compile(r"^(?:.*?: )?error: (.*) \[LKG(\d+)\]$", re.MULTILINE)
GATE = re.compile(r"(?:unrecognized feature gate: |cannot set feature gate |invalid value of )(\w+)")

# Where upstream names a field in other words than those of the document, or by a field of its internal type.
OTHER_WORDS = (
    (r"NodeLogQuery feature gate is required for enableSystemLogHandler", "enableSystemLogQuery"),
    (r"invalid taint: |taint\.TimeAdded", "registerWithTaints"),
    (r"pod logs path ", "podLogsDir"),
    (r"for NUMA node ", "reservedMemory"),
    (r"not run on a host using cgroup v1", "failCgroupV1"),
    (r"CredentialsVertificationPolicy", "imagePullCredentialsVerificationPolicy"),
    (r"KubeProxyConfiguration\.Mode", "mode"),
    (r"KubeProxyConfiguration\.SyncPeriod", "syncPeriod"),
    (r"KubeProxyConfiguration\.MinSyncPeriod", "minSyncPeriod"),
    (r"DetectLocalConfiguration\.ClusterCIDRs", "clusterCIDR"),
    (r"DetectLocalConfiguration\.InterfaceName", "detectLocal.bridgeInterface"),
    (r"DetectLocalConfiguration\.InterfacePrefix", "detectLocal.interfaceNamePrefix"),
)
# What follows is a document or a header.
NO_FIELDS = re.compile(r" is missing in '|unknown apiVersion/kind|unexpected GroupVersion string")
# One of two, and upstream does not say which.
EITHER = re.compile(r"systemReservedCgroup \(--system-reserved-cgroup\) or kubeReservedCgroup \(--kube-reserved-cgroup\)")
# The same, where ours says it.
EITHER_OF = (("specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires",
              {"shutdowngraceperiod", "shutdowngraceperiodcriticalpods"}),)
# Upstream stops at the first of these rules that is broken: what may stand behind which.
HIDDEN = {"failcgroupv1": ["singleprocessoomkill", "usernamespaces"], "singleprocessoomkill": ["usernamespaces"]}
SECTIONS = {
    "kubeproxyiptablesconfiguration": ["iptables"], "kubeproxyipvsconfiguration": ["ipvs"],
    "kubeproxynftablesconfiguration": ["nftables"], "kubeproxyconntrackconfiguration": ["conntrack"],
    "kubeproxylinuxconfiguration": [], "detectlocalconfiguration": ["detectlocal"],
}


def plain(name):
    """As names are compared: without indices and case."""
    return re.sub(r"\[\d*\]", "", name).lower()


class Fields:
    """The fields of one kind; @paths as the oracle's `fields` says them."""

    def __init__(self, paths):
        self.paths = {plain(path) for path in paths}

    def known(self, name):
        """The longest path that @name is or begins with: behind it is a key of a map. None: no field's."""
        parts = plain(name).split(".")
        if parts[0] == "kubeproxyconfiguration":
            parts = parts[1:]
        while parts and parts[0] in SECTIONS:
            parts = [*SECTIONS[parts[0]], *parts[1:]]
        for n in range(len(parts), 0, -1):
            if ".".join(parts[:n]) in self.paths:
                return ".".join(parts[:n])
        return None

    def of_upstream(self, error):
        """Every field that a message of upstream names."""
        text = QUOTED.sub('""', NO_FIELDS.split(error)[0])
        text = GATE.sub("", text)
        text, found = EITHER.sub("", text), set()
        for words, field in OTHER_WORDS:
            text, n = re.subn(words, "", text)
            found |= {plain(field)} if n else set()
        for match in WORD.finditer(text):
            name, behind = match.group(), text[match.end():]
            if re.search(r"Go struct field $", text[:match.start()]):
                name = name.partition(".")[2]  # the Go type, and the path behind it
            elif name.islower() and "." not in name and not behind.startswith(" (--"):
                continue  # port, address, mode: words of any sentence
            field = self.known(name)
            if field and field not in ("kind", "apiversion"):
                found.add(field)
        return found

    def of_ours(self, text):
        """For every error the fields that it names, that which it is about among them."""
        errors = []
        for match in ERROR.finditer(text):
            message = QUOTED.sub('""', match.group(1))
            fields = {self.known(word.group()) for word in WORD.finditer(message)}
            errors.append((match.group(), {field for field in fields if field}))
        return errors

    @staticmethod
    def is_read(text):
        """Whether ours came as far as fields: a document that cannot be read has no kind, so no flags either."""
        return any(match.group(2).startswith("5") and not re.search(r"is unknown (?:for kind|in)", match.group(1))
                   for match in ERROR.finditer(text))


def near(field, fields):
    """Is it there, or a part of it, or what it is a part of?"""
    return any(other == field or other.startswith(field + ".") or field.startswith(other + ".")
               or other.endswith("." + field) or field.endswith("." + other) for other in fields)


def unnamed(fields, want, got):
    """
    What one side names and the other does not: fields that upstream refuses and no error of ours names, and, where
    upstream says all that is wrong (its validation), errors of ours about something else.
    """
    theirs = fields.of_upstream(want.get("error") or "")
    ours = fields.of_ours(got.get("error") or "")
    ours_all = {field for _, named in ours for field in named}
    if want.get("stage") in ("flags", "gates") and not fields.is_read(got.get("error") or ""):
        return []
    for words, either in EITHER_OF:
        if words in (want.get("error") or ""):
            theirs = theirs - either | either & ours_all or either
    missing = [field for field in sorted(theirs) if not near(field, ours_all)]
    text = got.get("error") or ""
    missing += [gate for gate in GATE.findall(want.get("error") or "") if gate not in text]
    theirs |= {hidden for field in theirs for hidden in HIDDEN.get(field, [])}
    if want.get("stage") == "validate" and theirs:
        missing += [line for line, named in ours if not any(near(field, theirs) for field in named)]
    return missing
