/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake-manager DIRECTORY: a stand-in for systemd at DIRECTORY/bus that runs until standard input ends. Each
 * input line is the type of the job that the unit has from then on ("-": none); an output line confirms the
 * change.
 */
#include "tests/unit/fake-systemd.h"

int main(int argc, char *argv[])
{
        struct fake_systemd fake;
        char line[32];

        if (argc != 2 || fake_systemd_start(&fake, argv[1]) < 0)
                return 1;
        (void)setvbuf(stdout, NULL, _IOLBF, 0);
        (void)puts("ready");
        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = '\0';
                (void)snprintf(fake.unit->job_type, sizeof(fake.unit->job_type), "%s",
                               strcmp(line, "-") == 0 ? "" : line);
                (void)puts("set");
        }
        fake_systemd_stop(&fake);
        return 0;
}
