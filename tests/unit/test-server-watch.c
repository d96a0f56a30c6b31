/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of other file systems are watched by separate threads, which race with a kernel that forgets
 * them.
 */
#define UNIT_OWN_MAIN

#include <poll.h>

#include "server-place.h"

#define ROUNDS 2000

static uint64_t look_up(void)
{
        struct fuse_entry_param entry;

        assert_int_equal(lkg_source_lookup(lkg_node_get(FUSE_ROOT_ID), "d", &entry), 0);
        return entry.ino;
}

/*
 * Wait until the notifier is told of a file in @dir; the file is written again in case the watch was late.
 */
static bool is_relayed(uint64_t dir)
{
        int d = openat(server.source, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bool told = false;

        for (int tries = 0; tries < 2000 && !told; tries++) {
                uint32_t head = atomic_load(&server.shm->notify.relay_head);

                lkg_close(openat(d, "f", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
                for (int waits = 0; waits < 2 && !told; waits++) {
                        uint32_t now = atomic_load(&server.shm->notify.relay_head);

                        for (uint32_t i = head; i != now; i++)
                                told = told || server.shm->notify.relay[i % LKG_RELAY_JOBS].dir == dir;
                        atomic_store(&server.shm->notify.relay_tail, now);
                        if (!told)
                                (void)poll(NULL, 0, 1);
                }
        }
        lkg_close(d);
        return told;
}

TEST_WITH(test_a_directory_that_is_forgotten_and_found_again_is_watched, set_up, NULL)
{
        server.source_dev = 0; /* every node seems to be on another file system */
        assert_int_equal(lkg_watch_init(NULL), 0);
        for (int i = 0; i < ROUNDS; i++) {
                uint64_t dir;

                lkg_node_forget(lkg_node_get(look_up()),
                                1); /* as when a file system is mounted on a known name */
                dir = look_up();
                if (!is_relayed(dir))
                        fail_msg("not watched in round %d", i);
                lkg_node_forget(lkg_node_get(dir), 1);
        }
}

int main(void)
{
        int failed = run_all(NULL, NULL);

        (void)tmpdir_remove(top); /* the threads keep running, and with them the shared memory */
        return failed;
}
