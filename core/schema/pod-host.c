/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only this host can say of the manifest of a static pod, as far as it is certain: paths that are not there, files that a container
 * cannot see, ports that two pods want.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/file.h>
#include <lkg/pod.h>
#include <lkg/tree.h>

#include "findings-codes.h"

/* ---- parts of a manifest that a kubelet would take ---- */

static const struct lkg_value *part(const struct lkg_value *map, const char *name, enum lkg_type type)
{
        const struct lkg_value *value =
                map && lkg_value_type(map) == LKG_MAP ? lkg_map_get(map, name) : NULL;

        return value && lkg_value_type(value) == type ? value : NULL;
}

static const char *text(const struct lkg_value *map, const char *name)
{
        const struct lkg_value *value = part(map, name, LKG_STRING);

        return value ? lkg_value_text(value, NULL) : "";
}

static const struct lkg_value *named(const struct lkg_value *list, const char *name)
{
        for (struct lkg_member m = { 0 }; list && lkg_value_next(list, &m);)
                if (strcmp(text(m.value, "name"), name) == 0)
                        return m.value;
        return NULL;
}

struct host_check {
        const struct lkg_value *spec;
        const struct lkg_pod_host *host;
        struct lkg_report *report;
};

/* ---- hostPath ---- */

/* What is there: 0 = nothing; UINT_MAX = that is not known. */
static unsigned type_of(const struct host_check *c, const char *path)
{
        const char *below = c->host->mount_point ? lkg_path_below(path, c->host->mount_point) : NULL;
        struct stat st;

        if (fstatat(below ? c->host->source_fd : AT_FDCWD,
                    !below   ? path
                    : *below ? below
                             : ".",
                    &st, 0) == 0)
                return st.st_mode & S_IFMT;
        return errno == ENOENT || errno == ENOTDIR ? 0 : UINT_MAX;
}

static void check_volume(const struct host_check *c, const struct lkg_value *volume)
{
        static const struct {
                const char *type, *what;
                unsigned mode;
        } types[] = { { "File", "file", S_IFREG },
                      { "Directory", "directory", S_IFDIR },
                      { "Socket", "socket", S_IFSOCK },
                      { "CharDevice", "character device", S_IFCHR },
                      { "BlockDevice", "block device", S_IFBLK } };
        const struct lkg_value *host = part(volume, "hostPath", LKG_MAP);
        const char *path = text(host, "path"), *type = text(host, "type");

        for (size_t i = 0; host && i < LKG_ARRAY_SIZE(types); i++) {
                unsigned found;

                if (strcmp(types[i].type, type) != 0)
                        continue;
                found = type_of(c, path);
                if (found != UINT_MAX && found != types[i].mode)
                        lkg_report_add(c->report, c->host->severity, LKG_F_NO_SUCH_FILE,
                                       LKG_AT(lkg_map_get(host, "path")),
                                       "spec.volumes[%s].hostPath.path: %s is no %s on this node, and the "
                                       "pod does not "
                                       "start before it is",
                                       text(volume, "name"), LKG_QUOTE(lkg_span(path, strlen(path))),
                                       types[i].what);
        }
}

/* ---- files on the command line ---- */

/* Flags whose value is a file that is there before the container is. */
static bool names_file(const char *flag, size_t size)
{
        static const char *const ends[] = {
                "-file",           "cafile",       "certfile", "keyfile",
                "kubeconfig",      "-certificate", "-key",     "-certificate-authority",
                "-provider-config"
        };

        if (size >= 8 && strncmp(flag + size - 8, "log-file", 8) == 0)
                return false;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ends); i++) {
                size_t n = strlen(ends[i]);

                if (size >= n && strncmp(flag + size - n, ends[i], n) == 0)
                        return true;
        }
        return false;
}

/* The innermost mount that has @path; NULL = none. */
static const struct lkg_value *mount_of(const struct lkg_value *container, const char *path)
{
        const struct lkg_value *mounts = part(container, "volumeMounts", LKG_LIST), *found = NULL;
        size_t longest = 0;

        for (struct lkg_member m = { 0 }; mounts && lkg_value_next(mounts, &m);) {
                const char *top = text(m.value, "mountPath");
                size_t n = strlen(top);

                while (n > 1 && top[n - 1] == '/')
                        n--;
                if (n <= longest || strncmp(path, top, n) != 0 ||
                    (path[n] != '/' && path[n] != '\0' && n != 1))
                        continue;
                longest = n;
                found = m.value;
        }
        return found;
}

/* Is the file missing on the host, if that is where the mount has it from? */
static bool is_missing(const struct host_check *c, const struct lkg_value *mount, const char *path)
{
        const struct lkg_value *volumes = part(c->spec, "volumes", LKG_LIST);
        const struct lkg_value *host = part(named(volumes, text(mount, "name")), "hostPath", LKG_MAP);
        const char *type = text(host, "type"), *top = text(mount, "mountPath");
        LKG_CLEANUP(lkg_freep) char *real = NULL;
        size_t n = strlen(top);

        if (!host || *text(mount, "subPath") || *text(mount, "subPathExpr") || strstr(type, "OrCreate"))
                return false;
        while (n > 1 && top[n - 1] == '/')
                n--;
        real = lkg_format("%s%s", text(host, "path"), path + n);
        return type_of(c, real) == 0;
}

static void check_word(const struct host_check *c, const struct lkg_value *container,
                       const struct lkg_value *word)
{
        const char *data = lkg_value_type(word) == LKG_STRING ? lkg_value_text(word, NULL) : "";
        const char *equals = strchr(data, '=');
        const struct lkg_value *mount;

        if (strncmp(data, "--", 2) != 0 || !equals || equals[1] != '/' ||
            !names_file(data + 2, (size_t)(equals - data) - 2))
                return;
        mount = mount_of(container, equals + 1);
        if (!mount)
                lkg_report_add(c->report, c->host->severity, LKG_F_NO_SUCH_FILE, LKG_AT(word),
                               "%.*s: %s lies in no volume that container %s mounts, so it sees only what "
                               "its image has "
                               "there",
                               (int)(equals - data), data,
                               LKG_QUOTE(lkg_span(equals + 1, strlen(equals + 1))), text(container, "name"));
        else if (is_missing(c, mount, equals + 1))
                lkg_report_add(c->report, c->host->severity, LKG_F_NO_SUCH_FILE, LKG_AT(word),
                               "%.*s: %s does not exist on this node", (int)(equals - data), data,
                               LKG_QUOTE(lkg_span(equals + 1, strlen(equals + 1))));
}

static void check_container(const struct host_check *c, const struct lkg_value *container)
{
        static const char *const lists[] = { "command", "args" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(lists); i++) {
                const struct lkg_value *words = part(container, lists[i], LKG_LIST);

                for (struct lkg_member m = { 0 }; words && lkg_value_next(words, &m);)
                        check_word(c, container, m.value);
        }
}

void lkg_pod_check_host(const struct lkg_value *doc, const struct lkg_pod_host *host,
                        struct lkg_report *report)
{
        const struct host_check c = { part(doc, "spec", LKG_MAP), host, report };
        const struct lkg_value *volumes = part(c.spec, "volumes", LKG_LIST);
        const struct lkg_value *containers = part(c.spec, "containers", LKG_LIST);

        for (struct lkg_member m = { 0 }; volumes && lkg_value_next(volumes, &m);)
                check_volume(&c, m.value);
        for (struct lkg_member m = { 0 }; containers && lkg_value_next(containers, &m);)
                check_container(&c, m.value);
}

/* ---- ports of the host ---- */

/* The host port of @port; NULL = none. */
static const struct lkg_value *host_port(const struct lkg_value *spec, const struct lkg_value *port)
{
        const struct lkg_value *host = part(port, "hostPort", LKG_NUMBER);
        const struct lkg_value *network = part(spec, "hostNetwork", LKG_BOOL);

        if (host && strcmp(lkg_value_text(host, NULL), "0") != 0)
                return host;
        return network && lkg_value_bool(network) ? part(port, "containerPort", LKG_NUMBER) : NULL;
}

static const char *or_else(const char *value, const char *otherwise)
{
        return *value ? value : otherwise;
}

/* Do both want the same port of the same address? */
static bool is_wanted(const struct lkg_value *doc, const struct lkg_value *port, const char *number)
{
        const struct lkg_value *spec = part(doc, "spec", LKG_MAP);
        const struct lkg_value *containers = part(spec, "containers", LKG_LIST);
        const char *protocol = or_else(text(port, "protocol"), "TCP"),
                   *ip = or_else(text(port, "hostIP"), "0.0.0.0");

        for (struct lkg_member c = { 0 }; containers && lkg_value_next(containers, &c);) {
                const struct lkg_value *ports = part(c.value, "ports", LKG_LIST);

                for (struct lkg_member m = { 0 }; ports && lkg_value_next(ports, &m);) {
                        const struct lkg_value *other = host_port(spec, m.value);
                        const char *other_ip = or_else(text(m.value, "hostIP"), "0.0.0.0");

                        if (other && strcmp(lkg_value_text(other, NULL), number) == 0 &&
                            strcmp(or_else(text(m.value, "protocol"), "TCP"), protocol) == 0 &&
                            (strcmp(ip, other_ip) == 0 || strcmp(ip, "0.0.0.0") == 0 ||
                             strcmp(other_ip, "0.0.0.0") == 0))
                                return true;
                }
        }
        return false;
}

void lkg_pod_check_ports(const struct lkg_value *doc, const char *file, const struct lkg_value *other,
                         enum lkg_severity severity, struct lkg_report *report)
{
        const struct lkg_value *spec = part(doc, "spec", LKG_MAP);
        const struct lkg_value *containers = part(spec, "containers", LKG_LIST);

        for (struct lkg_member c = { 0 }; containers && lkg_value_next(containers, &c);) {
                const struct lkg_value *ports = part(c.value, "ports", LKG_LIST);

                for (struct lkg_member m = { 0 }; ports && lkg_value_next(ports, &m);) {
                        const struct lkg_value *port = host_port(spec, m.value);

                        if (port && is_wanted(other, m.value, lkg_value_text(port, NULL)))
                                lkg_report_add(report, severity, LKG_F_PORT_TWICE, LKG_AT(port),
                                               "port %s of the host is wanted by %s, too; a kubelet runs "
                                               "one of the two pods",
                                               lkg_value_text(port, NULL), file);
                }
        }
}
