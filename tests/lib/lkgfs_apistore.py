# SPDX-License-Identifier: Apache-2.0
"""The data of an API server: objects with uid and resourceVersion, a history that watches replay, and access rules.

No network and no threads; every method may be called from any thread.
"""
import copy
import datetime
import os
import threading
import uuid

KINDS = {"nodes": "Node", "configmaps": "ConfigMap", "events": "Event"}
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
           409: "Conflict", 410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests",
           500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


def status(code, message, reason=None, **details):
    """A metav1.Status, the answer to every failed request."""
    result = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
              "reason": reason or REASONS.get(code, ""), "code": code}
    return {**result, "details": details} if details else result


class Refused(Exception):
    """The request is answered with this Status."""

    def __init__(self, code, message, **details):
        super().__init__(message)
        self.code, self.status = code, status(code, message, **details)


class Watch:
    """One open watch: events are queued here; `fd` is readable when there are any."""

    def __init__(self, plural, ns, name, bookmarks):
        self.plural, self.ns, self.name, self.bookmarks = plural, ns, name, bookmarks
        self.events, self.ended = [], None
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def matches(self, plural, obj):
        meta = obj["metadata"]
        return plural == self.plural and self.ns in (None, meta.get("namespace")) and \
            self.name in (None, meta["name"])

    def put(self, event):
        self.events.append(event)
        os.eventfd_write(self.fd, 1)

    def end(self, how):
        self.ended = how
        os.eventfd_write(self.fd, 1)


def apply_merge(target, patch):
    """JSON merge patch (RFC 7386)."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            apply_merge(target[key], value)
        else:
            target[key] = value


MERGE_KEYS = {"conditions": "type", "addresses": "type"}


def apply_strategic(target, patch):
    """Strategic merge patch, as far as the lists of a Node's status need it."""
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if key in MERGE_KEYS and isinstance(value, list):
            target[key] = merge_list(target.get(key) or [], value, MERGE_KEYS[key])
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            apply_strategic(target[key], value)
        else:
            apply_merge(target, {key: value})


def merge_list(items, patch, merge_key):
    items = copy.deepcopy(items)
    for item in patch:
        found = next((old for old in items if old[merge_key] == item.get(merge_key)), None)
        if item.get("$patch") == "delete":
            items = [old for old in items if old is not found]
        elif found is None:
            items.append(item)
        else:
            apply_strategic(found, item)
    return items


PATCHES = {"application/merge-patch+json": apply_merge, "application/strategic-merge-patch+json": apply_strategic}


class Store:
    """Nodes, ConfigMaps and Events. Objects are copied on the way in and out."""

    def __init__(self):
        self.lock = threading.RLock()
        self.version, self.floor = 100, 0  # newest version; watches that start below `floor` are too old
        self.objects, self.history, self.watches = {}, [], []

    # for a test

    def put(self, plural, obj, uid=None):
        """Create or replace; return the stored object. `uid`: only for a new object."""
        with self.lock:
            obj = copy.deepcopy(obj)
            obj.setdefault("apiVersion", "v1")
            obj.setdefault("kind", KINDS[plural])
            meta = obj["metadata"]
            key = plural, meta.get("namespace"), meta["name"]
            old = self.objects.get(key)
            meta["uid"] = old["metadata"]["uid"] if old else uid or str(uuid.uuid4())
            meta["creationTimestamp"] = old["metadata"]["creationTimestamp"] if old else now()
            return self._store(key, obj, "MODIFIED" if old else "ADDED")

    def delete(self, plural, ns, name):
        with self.lock:
            obj = self.objects.pop((plural, ns, name))
            self.version += 1
            obj["metadata"]["resourceVersion"] = str(self.version)
            self._tell(plural, "DELETED", obj)
            return copy.deepcopy(obj)

    def get(self, plural, ns, name):
        """Return the object or None."""
        with self.lock:
            return copy.deepcopy(self.objects.get((plural, ns, name)))

    def change(self, plural, ns, name, function):
        """Change the object with `function`."""
        with self.lock:
            obj = self.get(plural, ns, name)
            function(obj)
            return self.put(plural, obj)

    def node(self, name, annotations=None, spec=None, uid=None, status=None):
        """Create or replace a Node; its status is kept if none is given."""
        old = {"status": status} if status else self.get("nodes", None, name) or {"status": {"conditions": []}}
        return self.put("nodes", {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec or {},
                                  "status": old["status"]}, uid)

    def configmap(self, ns, name, data, annotations=None, uid=None, **more):
        return self.put("configmaps", {"metadata": {"namespace": ns, "name": name, "annotations": annotations or {}},
                                       "data": data, **more}, uid)

    def list(self, plural):
        with self.lock:
            return [copy.deepcopy(obj) for (which, _, _), obj in self.objects.items() if which == plural]

    def pass_by(self, count=1):
        """Use up versions, as changes of other objects do."""
        with self.lock:
            self.version += count

    def compact(self):
        """Drop the history: a watch from an older version is told that it is too old."""
        with self.lock:
            self.version += 1
            self.floor, self.history = self.version, []

    def restore(self, version):
        """Go back to a version, like an etcd restored from a backup. Objects stay, with that version."""
        with self.lock:
            self.version, self.floor, self.history = version, 0, []
            for obj in self.objects.values():
                obj["metadata"]["resourceVersion"] = str(version)

    def inject(self, kind, obj, plural=None):
        """Send an event that never happened to every watch of the object's kind."""
        with self.lock:
            for watch in self.watches:
                if plural is None or watch.plural == plural:
                    watch.put({"type": kind, "object": copy.deepcopy(obj)})

    def inject_bytes(self, data, plural=None):
        """Send these bytes in the stream of every watch."""
        with self.lock:
            for watch in self.watches:
                if plural is None or watch.plural == plural:
                    watch.put(data)

    def end_watches(self, how="end"):
        """End all watches. `end`: properly; `reset`, `cut`: without the end of the stream. Return how many."""
        with self.lock:
            for watch in self.watches:
                watch.end(how)
            return len(self.watches)

    # for the server

    def _store(self, key, obj, kind):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = obj
        self._tell(key[0], kind, obj)
        return copy.deepcopy(obj)

    def _tell(self, plural, kind, obj):
        event = {"type": kind, "object": copy.deepcopy(obj)}
        self.history.append((self.version, plural, event))
        del self.history[:-1000]
        for watch in self.watches:
            if watch.matches(plural, obj):
                watch.put(event)

    def bookmark_event(self, watch):
        return {"type": "BOOKMARK", "object": {"kind": KINDS[watch.plural], "apiVersion": "v1", "metadata": {
            "resourceVersion": str(self.version), "creationTimestamp": None}}}

    def open_watch(self, plural, ns, name, version, bookmarks):
        """Replay what came after `version`; '' and '0' start with the current state as ADDED."""
        with self.lock:
            watch = Watch(plural, ns, name, bookmarks)
            if version in ("", "0", None):
                for (which, _, _), obj in self.objects.items():
                    if watch.matches(which, obj):
                        watch.put({"type": "ADDED", "object": copy.deepcopy(obj)})
            elif int(version) < self.floor:
                told = status(410, f"too old resource version: {version} ({self.floor})")
                watch.put({"type": "ERROR", "object": told})
                watch.end("end")
            else:
                for at, which, event in self.history:
                    if at > int(version) and watch.matches(which, event["object"]):
                        watch.put(event)
            self.watches.append(watch)
            return watch

    def close_watch(self, watch):
        with self.lock:
            if watch in self.watches:
                self.watches.remove(watch)
            os.close(watch.fd)

    def take(self, watch):
        """Return (events, ended) since the last call."""
        with self.lock:
            try:
                os.eventfd_read(watch.fd)
            except BlockingIOError:
                pass
            events, watch.events = watch.events, []
            return events, watch.ended

    def find(self, plural, ns, name):
        obj = self.get(plural, ns, name)
        if obj is None:
            raise Refused(404, f'{plural} "{name}" not found', name=name, kind=plural)
        return obj

    def create(self, plural, ns, obj):
        with self.lock:
            meta = obj.get("metadata") or {}
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = meta["generateName"] + os.urandom(4).hex()
            if not meta.get("name"):
                raise Refused(422, f'{KINDS[plural]} "" is invalid: metadata.name: Required value')
            if meta.get("namespace", ns) != ns:
                raise Refused(400, "the namespace of the provided object does not match that of the request")
            if plural == "events":
                check_event(obj, ns)
            if (plural, ns, meta["name"]) in self.objects:
                raise Refused(409, f'{plural} "{meta["name"]}" already exists')
            return self.put(plural, {**obj, "metadata": {**meta, "namespace": ns}})

    def patch(self, plural, ns, name, subresource, content_type, patch):
        """Patch and return the object; below /status only the status changes."""
        apply = PATCHES.get(content_type)
        if apply is None:
            raise Refused(415, "the body of the request was in an unknown format - accepted media types include: "
                          + ", ".join(PATCHES))
        with self.lock:
            obj = self.find(plural, ns, name)
            for field in ("uid", "resourceVersion"):
                wanted = (patch.get("metadata") or {}).get(field)
                if wanted and wanted != obj["metadata"][field]:
                    raise Refused(409, f'Operation cannot be fulfilled on {plural} "{name}": the object has been '
                                  "modified; please apply your changes to the latest version and try again")
            changed = copy.deepcopy(obj)
            apply(changed, patch)
            if subresource == "status":
                changed = {**obj, "status": changed.get("status", {})}
            return obj if changed == obj else self.put(plural, changed)


def check_event(obj, ns):
    """What validation requires of an Event about a cluster-scoped object."""
    involved = obj.get("involvedObject") or {}
    if (involved.get("namespace") or "default") != ns:
        raise Refused(422, "Event is invalid: involvedObject.namespace: does not match event.namespace")
    for field, limit in (("reason", 128), ("message", 1024)):
        if len((obj.get(field) or "").encode()) > limit:
            raise Refused(422, f"Event is invalid: {field}: can have at most {limit} characters")


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Rbac:
    """The node authorizer and roles. Called with a request; returns None if it is allowed, else the Status of the refusal."""

    def __init__(self):
        self.roles = []

    def allow(self, subject, verbs, plural, ns=None, names=None):
        """`subject`: a user or a group; `plural` may name a subresource ("nodes/status"); `names` None: any."""
        role = (subject, set(verbs), plural, ns, names and set(names))
        self.roles.append(role)
        return role

    def forbid(self, role):
        self.roles.remove(role)

    def _node(self, request):
        """What the node authorizer and NodeRestriction allow a node to do with its own Node."""
        own = request.user.partition("system:node:")[2]
        if "system:nodes" not in request.groups or not own:
            return False
        if request.plural == "nodes":
            verbs = ("patch", "update") if request.subresource == "status" else ("get", "list", "watch")
            return request.name == own and request.verb in verbs
        return request.plural == "events" and request.verb in ("create", "patch", "update")

    def __call__(self, request):
        if self._node(request) or request.plural == "selfsubjectreviews":
            return None
        what = request.plural + (f"/{request.subresource}" if request.subresource else "")
        for subject, verbs, plural, ns, names in self.roles:
            if subject in (request.user, *request.groups) and request.verb in verbs and plural == what and \
                    ns in (None, request.ns) and (names is None or request.name in names):
                return None
        return forbidden(request, what)


def forbidden(request, what):
    name = f' "{request.name}"' if request.name else ""
    where = f' in the namespace "{request.ns}"' if request.ns else " at the cluster scope"
    return status(403, f'{what}{name} is forbidden: User "{request.user}" cannot {request.verb} resource "{what}" '
                  f'in API group ""{where}', name=request.name or "", kind=request.plural)
