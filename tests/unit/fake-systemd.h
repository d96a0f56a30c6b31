/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the bus and the service manager; DBUS_SYSTEM_BUS_ADDRESS is set to its address. It has one
 * unit, `kubelet.service`, whose properties a test sets while it runs. Calls that are not answered are
 * counted, too.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <systemd/sd-bus.h>

#include <lkg/base.h>

struct fake_unit {
        uint32_t main_pid, n_restarts;
        char sub_state[32], result[32];
        char job_result[32];     /* "" = the job never ends */
        atomic_uint n_queries;   /* GetAll */
        atomic_uint n_restarted; /* TryRestartUnit of the unit that exists */
        atomic_bool silent;      /* read everything, answer nothing */
};

struct fake_systemd {
        pid_t pid;
        int listen_fd;
        char address[160];
        struct fake_unit *unit; /* shared with the stand-in */
};

static inline int fake_job(sd_bus *bus, sd_bus_message *m, struct fake_unit *unit)
{
        sd_bus_message *signal = NULL;
        int r = sd_bus_reply_method_return(m, "o", "/org/freedesktop/systemd1/job/17");

        for (int id = 16; r >= 0 && *unit->job_result && id <= 17;
             id++) { /* another unit's job comes first */
                char path[64];

                (void)snprintf(path, sizeof(path), "/org/freedesktop/systemd1/job/%d", id);
                r = sd_bus_message_new_signal(bus, &signal, "/org/freedesktop/systemd1",
                                              "org.freedesktop.systemd1.Manager", "JobRemoved");
                if (r >= 0)
                        r = sd_bus_message_append(signal, "uoss", (uint32_t)id, path, "kubelet.service",
                                                  id == 17 ? unit->job_result : "canceled");
                if (r >= 0)
                        r = sd_bus_message_set_sender(signal, "org.freedesktop.systemd1");
                if (r >= 0)
                        r = sd_bus_send(bus, signal, NULL);
                signal = sd_bus_message_unref(signal);
        }
        return r < 0 ? r : 1;
}

static inline int fake_properties(sd_bus_message *m, struct fake_unit *unit)
{
        sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(m, &reply);

        unit->n_queries++;
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "Id", "s", "kubelet.service");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "SubState", "s", unit->sub_state);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "Conditions", "a(sbbsi)", 0);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "MainPID", "u", unit->main_pid);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "Result", "s", unit->result);
        if (r >= 0 && *unit->result)
                r = sd_bus_message_append(reply, "{sv}", "NRestarts", "u", unit->n_restarts);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(reply);
        return r < 0 ? r : 1;
}

static inline int fake_answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        static const char manager[] = "org.freedesktop.systemd1.Manager";
        struct fake_unit *unit = userdata;
        const char *name = "", *mode = "";

        (void)error;
        if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus", "Hello"))
                return sd_bus_reply_method_return(m, "s", ":1.1");
        if (unit->silent)
                return 1;
        if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus", NULL) ||
            sd_bus_message_is_method_call(m, manager, "Subscribe"))
                return sd_bus_reply_method_return(m, NULL); /* AddMatch and the like */
        if (sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "GetAll"))
                return fake_properties(m, unit);
        if (!sd_bus_message_is_method_call(m, manager, "GetUnit") &&
            !sd_bus_message_is_method_call(m, manager, "TryRestartUnit"))
                return 0;
        (void)sd_bus_message_read(m, "s", &name);
        if (strcmp(name, "kubelet.service") != 0)
                return sd_bus_reply_method_errorf(m, "org.freedesktop.systemd1.NoSuchUnit",
                                                  "Unit %s not loaded.", name);
        if (sd_bus_message_is_method_call(m, manager, "GetUnit"))
                return sd_bus_reply_method_return(m, "o",
                                                  "/org/freedesktop/systemd1/unit/kubelet_2eservice");
        (void)sd_bus_message_read(m, "s", &mode);
        if (strcmp(mode, "replace") != 0)
                return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INVALID_ARGS, "mode %s", mode);
        unit->n_restarted++;
        return fake_job(sd_bus_message_get_bus(m), m, unit);
}

/* Serves one client at a time: the programs under test have one connection each. */
static inline void fake_serve(int listen_fd, struct fake_unit *unit)
{
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        while (true) {
                int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
                sd_id128_t id = { .qwords = { 1, 2 } };
                sd_bus *bus = NULL;

                if (fd < 0 || sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 ||
                    sd_bus_set_server(bus, 1, id) < 0 ||
                    sd_bus_add_filter(bus, NULL, fake_answer, unit) < 0 || sd_bus_start(bus) < 0)
                        _exit(1);
                while (sd_bus_process(bus, NULL) >= 0 && sd_bus_wait(bus, UINT64_MAX) >= 0)
                        ;
                sd_bus_close_unref(bus);
        }
}

/* Return: 0 or -1. @directory: place for the socket; not longer than TMPDIR_MAX. */
static inline int fake_systemd_start(struct fake_systemd *fake, const char *directory)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/bus", directory);
        (void)snprintf(fake->address, sizeof(fake->address), "unix:path=%s", address.sun_path);
        fake->unit =
                mmap(NULL, sizeof(*fake->unit), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        fake->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fake->unit == MAP_FAILED || fake->listen_fd < 0 ||
            bind(fake->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fake->listen_fd, 8) < 0 || setenv("DBUS_SYSTEM_BUS_ADDRESS", fake->address, 1) < 0)
                return -1;
        (void)snprintf(fake->unit->sub_state, sizeof(fake->unit->sub_state), "running");
        (void)snprintf(fake->unit->result, sizeof(fake->unit->result), "success");
        (void)snprintf(fake->unit->job_result, sizeof(fake->unit->job_result), "done");
        fake->pid = fork();
        if (fake->pid == 0)
                fake_serve(fake->listen_fd, fake->unit);
        return fake->pid < 0 ? -1 : 0;
}

static inline void fake_systemd_stop(struct fake_systemd *fake)
{
        (void)kill(fake->pid, SIGKILL);
        (void)waitpid(fake->pid, NULL, 0);
        lkg_close(fake->listen_fd);
        (void)munmap(fake->unit, sizeof(*fake->unit));
        (void)unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
}
