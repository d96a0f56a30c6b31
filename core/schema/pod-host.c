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
#include "typed.h"

static const char *text(const struct lkg_value *map, const char *path)
{
        return lkg_object_text(map, path).data;
}

static bool ends_in(struct lkg_span text, const char *end)
{
        size_t n = strlen(end);

        return text.size >= n && memcmp(text.data + text.size - n, end, n) == 0;
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

        if (fstatat(below ? c->host->source_fd : AT_FDCWD, below ? below : path, &st, 0) == 0)
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
        const struct lkg_value *path = lkg_object_get(volume, "hostPath.path");
        const char *type = text(volume, "hostPath.type");

        for (size_t i = 0; i < LKG_ARRAY_SIZE(types); i++) {
                unsigned found;

                if (!path || strcmp(types[i].type, type) != 0)
                        continue;
                found = type_of(c, text(volume, "hostPath.path"));
                if (found != UINT_MAX && found != types[i].mode)
                        lkg_report_add(c->report, c->host->severity, LKG_F_NO_SUCH_FILE, LKG_AT(path),
                                       "spec.volumes[%s].hostPath.path: %s is no %s on this node, and the "
                                       "pod does not start before it is",
                                       text(volume, "name"), LKG_QUOTE(lkg_text_of(path)), types[i].what);
        }
}

/* ---- files on the command line ---- */

/* Flags whose value is a file that is there before the container is. */
static bool names_file(struct lkg_span flag)
{
        static const char *const ends[] = {
                "-file",           "cafile",       "certfile", "keyfile",
                "kubeconfig",      "-certificate", "-key",     "-certificate-authority",
                "-provider-config"
        };
        bool found = false;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(ends); i++)
                found |= ends_in(flag, ends[i]);
        return found && !ends_in(flag, "log-file");
}

/* Without slashes at the end. */
static size_t top_size(const struct lkg_value *mount)
{
        struct lkg_span top = lkg_object_text(mount, "mountPath");

        while (top.size > 0 && top.data[top.size - 1] == '/')
                top.size--;
        return top.size;
}

/* The innermost mount that has @path; NULL = none. */
static const struct lkg_value *mount_of(const struct lkg_value *container, const char *path)
{
        const struct lkg_value *mounts = lkg_object_get(container, "volumeMounts"), *found = NULL;

        for (struct lkg_member m = { 0 }; lkg_value_next(mounts, &m);) {
                size_t n = top_size(m.value);

                if ((!found || n > top_size(found)) && strncmp(path, text(m.value, "mountPath"), n) == 0 &&
                    (path[n] == '/' || path[n] == '\0'))
                        found = m.value;
        }
        return found;
}

/* Is the file missing on the host, if that is where the mount has it from? */
static bool is_missing(const struct host_check *c, const struct lkg_value *mount, const char *path)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_object_get(c->spec, "volumes"), &m);) {
                const char *host = text(m.value, "hostPath.path");
                LKG_CLEANUP(lkg_freep) char *real = lkg_format("%s%s", host, path + top_size(mount));

                if (strcmp(text(m.value, "name"), text(mount, "name")) == 0)
                        return *host && !*text(mount, "subPath") && !*text(mount, "subPathExpr") &&
                               !strstr(text(m.value, "hostPath.type"), "OrCreate") && type_of(c, real) == 0;
        }
        return false;
}

static void check_word(const struct host_check *c, const struct lkg_value *container,
                       const struct lkg_value *word)
{
        struct lkg_span flag, path;
        const struct lkg_value *mount;

        if (!lkg_span_cut(lkg_text_of(word), '=', &flag, &path) || strncmp(flag.data, "--", 2) != 0 ||
            *path.data != '/' || !names_file(lkg_span(flag.data + 2, flag.size - 2)))
                return;
        mount = mount_of(container, path.data);
        if (!mount)
                lkg_report_add(c->report, c->host->severity, LKG_F_NO_SUCH_FILE, LKG_AT(word),
                               "%.*s: %s lies in no volume that container %s mounts, so it sees only what "
                               "its image has there",
                               (int)flag.size, flag.data, LKG_QUOTE(path), text(container, "name"));
        else if (is_missing(c, mount, path.data))
                lkg_report_add(c->report, c->host->severity, LKG_F_NO_SUCH_FILE, LKG_AT(word),
                               "%.*s: %s does not exist on this node", (int)flag.size, flag.data,
                               LKG_QUOTE(path));
}

static void check_container(const struct host_check *c, const struct lkg_value *container)
{
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_object_get(container, "command"), &m);)
                check_word(c, container, m.value);
        for (struct lkg_member m = { 0 }; lkg_value_next(lkg_object_get(container, "args"), &m);)
                check_word(c, container, m.value);
}

void lkg_pod_check_host(const struct lkg_value *doc, const struct lkg_pod_host *host,
                        struct lkg_report *report)
{
        const struct host_check c = { lkg_object_get(doc, "spec"), host, report };
        const struct lkg_value *volumes = lkg_object_get(c.spec, "volumes");
        const struct lkg_value *containers = lkg_object_get(c.spec, "containers");

        for (struct lkg_member m = { 0 }; lkg_value_next(volumes, &m);)
                check_volume(&c, m.value);
        for (struct lkg_member m = { 0 }; lkg_value_next(containers, &m);)
                check_container(&c, m.value);
}

/* ---- ports of the host ---- */

struct port {
        const struct lkg_value *number, *port; /* of the host, and what asks for it */
};

/* Step to the next port of the host that the containers of @spec take. @at begins as { 0 }. */
static bool next_port(const struct lkg_value *spec, struct lkg_member at[static 2], struct port *ret)
{
        const struct lkg_value *containers = lkg_object_get(spec, "containers");

        while (at[0].value || lkg_value_next(containers, &at[0])) {
                while (lkg_value_next(lkg_object_get(at[0].value, "ports"), &at[1])) {
                        ret->port = at[1].value;
                        ret->number = lkg_object_get(ret->port, "hostPort");
                        if (lkg_value_int(ret->number) == 0 && lkg_object_bool(spec, "hostNetwork"))
                                ret->number = lkg_object_get(ret->port, "containerPort");
                        if (lkg_value_int(ret->number) != 0)
                                return true;
                }
                at[0].value = NULL;
                at[1] = (struct lkg_member){ 0 };
        }
        return false;
}

static const char *or_else(const char *value, const char *otherwise)
{
        return *value ? value : otherwise;
}

static bool is_same_port(const struct port *a, const struct port *b)
{
        const char *any = "0.0.0.0", *ip_a = or_else(text(a->port, "hostIP"), any),
                   *ip_b = or_else(text(b->port, "hostIP"), any);

        return lkg_value_int(a->number) == lkg_value_int(b->number) &&
               strcmp(or_else(text(a->port, "protocol"), "TCP"),
                      or_else(text(b->port, "protocol"), "TCP")) == 0 &&
               (strcmp(ip_a, ip_b) == 0 || strcmp(ip_a, any) == 0 || strcmp(ip_b, any) == 0);
}

void lkg_pod_check_ports(const struct lkg_value *doc, const char *file, const struct lkg_value *other,
                         enum lkg_severity severity, struct lkg_report *report)
{
        struct port ours, theirs;

        for (struct lkg_member at[2] = { 0 }; next_port(lkg_object_get(doc, "spec"), at, &ours);)
                for (struct lkg_member in[2] = { 0 }; next_port(lkg_object_get(other, "spec"), in, &theirs);)
                        if (is_same_port(&ours, &theirs)) {
                                lkg_report_add(report, severity, LKG_F_PORT_TWICE, LKG_AT(ours.number),
                                               "port %s of the host is wanted by %s, too; a kubelet runs "
                                               "one of the two pods",
                                               lkg_value_text(ours.number, NULL), file);
                                break;
                        }
}
