/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node ids and open files of the file server: what the kernel was told must remain true, in this process and
 * the next.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include <lkg/publication.h>

#include "unit.h"
#include "quota.h"
#include "server-place.h"

static int chown_below(const char *name, uid_t uid)
{
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        return chown(path, uid, uid);
}

static struct lkg_node *look_up(uint64_t parent, const char *name)
{
        struct fuse_entry_param entry;

        assert_int_equal(lkg_source_lookup(lkg_node_get(parent), name, &entry), 0);
        return lkg_node_get(entry.ino);
}

static struct lkg_node *look_up_view(const char *name)
{
        struct fuse_entry_param entry;

        assert_int_equal(lkg_view_lookup(lkg_node_get(FUSE_ROOT_ID), name, &entry), 0);
        return lkg_node_get(entry.ino);
}

TEST_WITH(test_one_inode_one_node, set_up, tear_down)
{
        struct lkg_node *a = look_up(FUSE_ROOT_ID, "a"), *again = look_up(FUSE_ROOT_ID, "a");
        uint64_t id = lkg_node_id(a);

        assert_ptr_equal(a, again);
        assert_int_equal(atomic_load(&a->nlookup), 2);
        lkg_node_forget(a, 1);
        assert_ptr_equal(lkg_node_get(id), a);
        lkg_node_forget(a, 1);
        assert_null(lkg_node_get(id)); /* a stale id stays invalid, even when the index is used again */
        (void)look_up(FUSE_ROOT_ID, "a");
        assert_null(lkg_node_get(id));
        assert_null(lkg_node_get(0));
        assert_null(lkg_node_get(UINT64_MAX));
        assert_non_null(lkg_node_get(FUSE_ROOT_ID));
}

/* Pages of the table stay in memory once they are touched: nodes that come and go do not touch all of it. */
TEST_WITH(test_records_are_used_again, set_up, tear_down)
{
        uint64_t last = 0;

        for (int i = 0; i < 20000; i++) {
                struct lkg_node *a = look_up(1, "a");

                assert_int_not_equal(lkg_node_id(a), last);
                last = lkg_node_id(a);
                lkg_node_forget(a, 1);
                assert_null(lkg_node_get(last));
        }
        assert_in_range(atomic_load(&server.shm->touched.nodes), 1, 2048);
}

TEST_WITH(test_there_are_as_many_records_as_it_takes, set_up, tear_down)
{
        struct rlimit limit;
        uint64_t d, ids[3000];
        const struct lkg_node *last;
        char name[32];

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = LKG_ARRAY_SIZE(ids) + 100; /* each node has a descriptor */
        if (limit.rlim_max < limit.rlim_cur)
                limit.rlim_max = limit.rlim_cur;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        d = lkg_node_id(look_up(1, "d"));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ids); i++) {
                (void)snprintf(name, sizeof(name), "source/d/%zu", i);
                make(name);
                (void)snprintf(name, sizeof(name), "%zu", i);
                ids[i] = lkg_node_id(look_up(d, name));
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ids); i++) {
                (void)snprintf(name, sizeof(name), "%zu", i);
                assert_non_null(lkg_node_get(ids[i]));
                assert_string_equal(lkg_node_get(ids[i])->name, name);
        }
        /* After they are gone, their memory is freed, and no id is ever used for another node. */
        last = lkg_node_at((uint32_t)ids[LKG_ARRAY_SIZE(ids) - 100]);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(ids); i++)
                lkg_node_forget(lkg_node_get(ids[i]), 1);
        assert_int_equal(lkg_nodes_next(1024),
                         atomic_load(&server.shm->touched.nodes)); /* no record is left above */
        assert_int_equal(last->incarnation, 0);
        for (int round = 0; round < 2; round++)
                for (size_t i = 0; i < LKG_ARRAY_SIZE(ids); i++) {
                        (void)snprintf(name, sizeof(name), "%zu", i);
                        if (round == 0)
                                (void)look_up(d, name);
                        assert_null(lkg_node_get(ids[i]));
                }
}

/* The owner of the files has a share of the nodes; a node beyond the share is not created. */
TEST_WITH(test_nodes_are_shared_out, set_up, tear_down)
{
        struct rlimit before, limit;
        struct fuse_entry_param entry;
        uint32_t n = 0;
        uint64_t d;
        char name[32];
        int r;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        limit = (struct rlimit){ .rlim_cur = 800, .rlim_max = before.rlim_max }; /* 400 to share */
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        lkg_nodes_init();
        d = lkg_node_id(look_up(1, "d"));
        for (uint32_t i = 0; i < 60; i++) {
                (void)snprintf(name, sizeof(name), "source/d/%u", i);
                make(name);
                if (chown_below(name, 1000) < 0)
                        skip(); /* not root */
        }
        for (;; n++) {
                (void)snprintf(name, sizeof(name), "%u", n);
                r = lkg_source_lookup(lkg_node_get(d), name, &entry);
                if (r < 0)
                        break;
                assert_int_equal(lkg_node_get(entry.ino)->uid, 1000);
        }
        assert_int_equal(r, -ENFILE);
        assert_int_equal(n, 50);
        assert_int_equal(lkg_node_reserve(1000), -ENFILE);
        lkg_nodes_init(); /* the next server */
        assert_int_equal(lkg_source_lookup(lkg_node_get(d), name, &entry), -ENFILE);
        assert_int_equal(lkg_node_reserve(1001), 0);
        lkg_node_unreserve();
        (void)look_up(1, "a"); /* root's nodes are not affected */
        lkg_node_forget(lkg_node_find_child(d, "0"), 2);
        assert_int_equal(lkg_node_reserve(1000), 0);
        assert_int_equal(lkg_source_lookup(lkg_node_get(d), name, &entry),
                         0); /* with the reserved descriptor */
        lkg_node_unreserve();
        assert_int_equal(lkg_node_reserve(1000), -ENFILE);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Unlinked but open files: those of one user leave room for other users, those of users for root. */
TEST_WITH(test_kept_files_are_shared_out, set_up, tear_down)
{
        static const struct {
                uid_t uid;
                uint32_t kept;
        } owners[] = { { 1000, 25 }, { 1001, 25 }, { 1002, 25 }, { 1003, 25 }, { 1004, 0 }, { 0, 100 } };
        struct lkg_node *nodes[LKG_ARRAY_SIZE(owners)][110];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(owners); i++) {
                uint32_t n = 0;

                for (size_t k = 0; k < LKG_ARRAY_SIZE(nodes[i]); k++) {
                        char name[32];

                        (void)snprintf(name, sizeof(name), "source/%zu-%zu", i, k);
                        make(name);
                        nodes[i][k] = look_up(1, name + strlen("source/"));
                        nodes[i][k]->uid = owners[i].uid;
                        lkg_node_keep(nodes[i][k]);
                        n += nodes[i][k]->kept;
                }
                assert_int_equal(n, owners[i].kept);
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(owners); i++)
                for (size_t k = 0; k < LKG_ARRAY_SIZE(nodes[i]); k++) {
                        lkg_node_unkeep(nodes[i][k]);
                        nodes[i][k]->uid = 0; /* as it was counted */
                }
}

TEST_WITH(test_paths_follow_renames, set_up, tear_down)
{
        struct lkg_node *d = look_up(FUSE_ROOT_ID, "d"), *b = look_up(lkg_node_id(d), "b");
        char path[64], child[64];

        assert_int_equal(lkg_node_path(b, path, sizeof(path)), 0);
        assert_string_equal(path, "d/b");
        assert_int_equal(lkg_node_child_path(d, "new", child, sizeof(child)), 0);
        assert_string_equal(child, "d/new");
        lkg_node_moved(d, FUSE_ROOT_ID, "e");
        assert_int_equal(lkg_node_path(b, path, sizeof(path)), 0);
        assert_string_equal(path, "e/b");
        assert_int_equal(lkg_node_path(b, path, 3), -ENAMETOOLONG);
        assert_int_equal(lkg_node_path(lkg_node_get(FUSE_ROOT_ID), path, sizeof(path)), 0);
        assert_string_equal(path, "");
}

TEST_WITH(test_one_content_one_node, set_up, tear_down)
{
        struct lkg_node *first = look_up_view("kubelet.conf"), *second;
        struct stat st;
        uint64_t ids[4];

        assert_ptr_equal(look_up_view("kubelet.conf"), first);
        lkg_node_attributes(first, &st);
        assert_int_equal(st.st_size, 4);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
        assert_int_equal(lkg_nodes_old_views(ids, 4), 0);
        publish(2, SHA_B);
        second = look_up_view("kubelet.conf");
        assert_ptr_not_equal(first, second);
        assert_int_equal(lkg_nodes_old_views(ids, 4), 1);
        assert_int_equal(ids[0], lkg_node_id(first));
        assert_null(lkg_node_old_view(lkg_node_id(second)));
        assert_ptr_equal(lkg_node_old_view(ids[0]), first);
        lkg_node_forget(first, 3);
        assert_int_equal(lkg_nodes_old_views(ids, 4), 0);
}

/*
 * The engine may remove a blob as soon as a newer publication is served; a reader with the old one open
 * continues to read it.
 */
TEST_WITH(test_old_content_stays_readable, set_up, tear_down)
{
        struct lkg_node *first = look_up_view("kubelet.conf");
        char name[32], text[8] = "";
        int fd;

        publish(2, SHA_B);
        assert_int_equal(unlinkat(server.blobs, SHA_A, 0), 0);
        (void)snprintf(name, sizeof(name), "%llx", (unsigned long long)lkg_node_id(first));
        fd = openat(server.pinned, name, O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, text, 4), 4);
        assert_string_equal(text, "aaaa");
        lkg_close(fd);
        lkg_node_forget(first, 1);
        assert_int_equal(faccessat(server.pinned, name, F_OK, 0), -1);
}

/* A server that is killed while it forgets a node leaves the whole node or nothing. */
TEST_WITH(test_forgetting_is_not_left_half_done, set_up, tear_down)
{
        struct lkg_node *first = look_up_view("kubelet.conf");
        uint64_t id = lkg_node_id(first);
        char name[32];

        atomic_store(&first->nlookup, 0); /* how far it got */
        lkg_nodes_init();                 /* the next server */
        assert_null(lkg_node_get(id));
        (void)snprintf(name, sizeof(name), "%llx", (unsigned long long)id);
        assert_int_equal(faccessat(server.pinned, name, F_OK, 0), -1);
        assert_int_equal(look_up_view("kubelet.conf")->size, 4);
}

/* A new engine published and cleaned up before its message reached us. */
TEST_WITH(test_blob_gone_means_newer_publication, set_up, tear_down)
{
        char text[512];

        assert_int_equal(unlinkat(server.blobs, SHA_A, 0), 0);
        (void)snprintf(text, sizeof(text),
                       HEAD "file\tkubelet.conf\t0600\t0\t0\t5\t4\t" SHA_B "\tv\t0\t7\nend\n", 7);
        put("runtime/current", text);
        assert_int_equal(look_up_view("kubelet.conf")->generation, 7);
}

TEST_WITH(test_what_commits, set_up, tear_down)
{
        static const struct {
                const char *path;
                bool commits;
        } cases[] = {
                { "kubelet.conf", true },
                { "kubelet.conf.d", true },
                { "kubelet.conf.d/x", true },
                { "kubelet.conf.d/s/x", true },
                { "kubelet.conf.dx", false },
                { "manifests/x", false },
                { "pki", false },
                { "kubelet", false },
        };
        struct publication_ref *ref = lkg_publication_get();

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++)
                if (lkg_publication_commits(ref->publication, cases[i].path) != cases[i].commits)
                        fail_msg("%s", cases[i].path);
        assert_true(lkg_publication_hides(ref->publication, "hidden"));
        assert_true(lkg_publication_hides(ref->publication, LKG_FALLBACK_DIR));
        assert_true(lkg_publication_hides(ref->publication, LKG_DOOR_DIR));
        assert_false(lkg_publication_hides(ref->publication, "pki"));
        lkg_publication_put(ref);
}

static uint64_t new_file(struct lkg_node *node, int flags, int fd)
{
        const struct fuse_ctx root = { 0 };
        uint32_t record;

        assert_int_equal(lkg_file_reserve(&root, &record), 0);
        return lkg_file_fill(record, node, flags, fd);
}

TEST_WITH(test_files, set_up, tear_down)
{
        struct lkg_node *a = look_up(FUSE_ROOT_ID, "a");
        uint64_t fh, other;
        char c;

        fh = new_file(a, O_RDWR, open_below("source/a", O_RDWR));
        other = new_file(a, O_RDONLY, -EBADF); /* opened on demand */
        assert_int_equal(atomic_load(&a->n_open), 2);
        assert_int_equal(atomic_load(&a->n_writers), 1);
        assert_int_equal(pread(lkg_file_fd(other), &c, 1, 0), 1);
        assert_int_equal(c, 'a');
        atomic_store(&a->n_open, 77); /* a server died between updating the table and the counters */
        lkg_files_recount();
        assert_int_equal(atomic_load(&a->n_open), 2);
        lkg_file_close(fh);
        assert_null(lkg_file_get(fh));
        assert_int_equal(lkg_file_fd(fh), -EBADF);
        lkg_file_close(fh); /* a release that is processed twice counts once */
        assert_int_equal(atomic_load(&a->n_open), 1);
        assert_int_equal(atomic_load(&a->n_writers), 0);
        lkg_file_close(other);
        assert_int_equal(atomic_load(&a->n_open), 0);
}

/* Open as many as @uid may; the last ones are kept in @fhs. */
static uint32_t open_all(uid_t uid, pid_t pid, uint64_t *fhs)
{
        const struct fuse_ctx ctx = { .uid = uid, .gid = uid, .pid = pid };
        struct lkg_node *a = look_up(FUSE_ROOT_ID, "a");
        uint32_t record, n = 0;
        int r;

        while ((r = lkg_file_reserve(&ctx, &record)) == 0)
                fhs[n++] = lkg_file_fill(record, a, O_RDONLY, -EBADF);
        assert_int_equal(r, -ENFILE);
        return n;
}

static ino_t mount_namespace(void)
{
        struct stat st;

        assert_int_equal(stat("/proc/self/ns/mnt", &st), 0);
        return st.st_ino;
}

/*
 * Users have a half, root in a container counts as a user, the host's root has the rest; also in the next
 * server.
 */
TEST_WITH(test_open_files_are_shared_out, set_up, tear_down)
{
        static uint64_t fhs[LKG_FILES];
        uint64_t loose = lkg_handle_new();
        uint32_t n = 0;

        assert_false(lkg_handle_is_file(loose));
        assert_int_not_equal(loose, lkg_handle_new());
        assert_null(lkg_file_get(loose));
        assert_int_equal(open_all(1000, 1, fhs), LKG_FILES / 8);
        n = LKG_FILES / 8;
        lkg_files_recount();
        assert_int_equal(open_all(1000, 1, fhs + n), 0);
        lkg_file_close(fhs[0]);
        assert_int_equal(open_all(1000, 1, fhs), 1);
        for (uid_t uid = 1001; uid < 1004; uid++, n += LKG_FILES / 8)
                assert_int_equal(open_all(uid, 1, fhs + n), LKG_FILES / 8);
        assert_int_equal(open_all(1004, 1, fhs + n), 0);
        lkg_files_recount();
        assert_int_equal(open_all(1004, 1, fhs + n), 0);
        /* Root of another mount namespace, as far as the server knows; then of its own one. */
        atomic_store(&server.shm->mount_namespace, 1);
        assert_int_equal(open_all(0, getpid(), fhs + n),
                         LKG_FILES / 16); /* no caller was identified until then */
        n += LKG_FILES / 16;
        atomic_store(&server.shm->mount_namespace, mount_namespace());
        assert_int_equal(open_all(0, getpid(), fhs + n), LKG_FILES / 2 - LKG_FILES / 16);
        n += LKG_FILES / 2 - LKG_FILES / 16;
        assert_int_equal(n, LKG_FILES);
        while (n > 0)
                lkg_file_close(fhs[--n]);
        atomic_store(&server.shm->mount_namespace, 1);
        assert_int_equal(open_all(0, getpid(), fhs), LKG_FILES / 16 + LKG_FILES / 8);
        for (n = 0; n < LKG_FILES / 16 + LKG_FILES / 8; n++)
                lkg_file_close(fhs[n]);
        atomic_store(&server.shm->mount_namespace, mount_namespace());
        assert_int_equal(open_all(1004, 1, fhs), LKG_FILES / 8);
        for (n = 0; n < LKG_FILES / 8; n++)
                lkg_file_close(fhs[n]);
        atomic_store(&server.shm->mount_namespace, 0);
}

/* Every user of a user namespace at once; each returns its own share and nothing else. */
TEST(test_quota_of_many_users)
{
        struct quota_cell cells[64] = { 0 };
        struct quota quota = { .size = 64, .n_cells = 64, .cells = cells };
        uint32_t held[97] = { 0 }, n_held = 0, seed = 1;

        for (int i = 0; i < 20000; i++) {
                uid_t uid;

                seed = seed * 1103515245u + 12345u;
                uid = 1 + (seed >> 16) % 96;
                if (seed >> 15 & 1 && held[uid] > 0) {
                        lkg_quota_remove(&quota, lkg_quota_owner(uid));
                        held[uid]--;
                        n_held--;
                } else if (lkg_quota_ask(&quota, lkg_quota_owner(uid))) {
                        assert_true(held[uid] < 8 && n_held < 32);
                        lkg_quota_add(&quota, lkg_quota_owner(uid));
                        held[uid]++;
                        n_held++;
                } else {
                        assert_true(held[uid] == 8 || n_held == 32);
                }
        }
        assert_int_equal(lkg_quota_ask(&quota, lkg_quota_owner(0)), true);
        for (uid_t uid = 1; uid < 97; uid++)
                while (held[uid]-- > 0)
                        lkg_quota_remove(&quota, lkg_quota_owner(uid));
        assert_int_equal(quota.n_users, 0);
        assert_int_equal(quota.n_used, 0);
        for (uid_t uid = 1; uid < 33; uid++) { /* more than there are cells: refused, not lost */
                assert_int_equal(lkg_quota_ask(&quota, lkg_quota_owner(uid)), true);
                lkg_quota_add(&quota, lkg_quota_owner(uid));
        }
        assert_int_equal(lkg_quota_ask(&quota, lkg_quota_owner(33)), false);
        lkg_quota_reset(&quota);
        assert_int_equal(lkg_quota_ask(&quota, lkg_quota_owner(33)), true);
}

#define LEVELS      600u
#define SMALL_STACK (256u * 1024) /* a worker's */

static void *open_deepest(void *node)
{
        return (void *)(intptr_t)lkg_node_fd(node);
}

static void *on_a_small_stack(void *(*run)(void *), void *arg)
{
        pthread_attr_t attr;
        pthread_t thread;
        void *ret;

        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
        assert_int_equal(pthread_create(&thread, &attr, run, arg), 0);
        (void)pthread_attr_destroy(&attr);
        assert_int_equal(pthread_join(thread, &ret), 0);
        return ret;
}

/* A file system without file handles: after a restart a directory is found again by its path. */
TEST_WITH(test_depth_takes_no_stack, set_up, tear_down)
{
        struct lkg_node *node = lkg_node_at(ROOT_INDEX), *saved;
        int dir = open_below("source", O_RDONLY | O_DIRECTORY), next;
        size_t n;

        for (unsigned i = 0; i < LEVELS; i++) {
                assert_int_equal(mkdirat(dir, "z", 0700), 0);
                next = openat(dir, "z", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                lkg_close(dir);
                dir = next;
                node = look_up(lkg_node_id(node), "z");
        }
        lkg_close(dir);
        n = atomic_load(&server.shm->touched.nodes);
        saved = calloc(n, sizeof(*saved));
        assert_non_null(saved);
        memcpy(saved, server.shm->nodes, n * sizeof(*saved));
        for (uint32_t i = ROOT_INDEX + 1; i < n; i++)
                lkg_node_forget(lkg_node_at(i),
                                UINT64_MAX); /* with its descriptor, as when a process ends */
        memcpy(server.shm->nodes, saved, n * sizeof(*saved));
        free(saved);
        for (uint32_t i = 0; i < n; i++)
                lkg_node_at(i)->handle_size = 0;
        lkg_nodes_init();
        assert_true((intptr_t)on_a_small_stack(open_deepest, node) >= 0);
}

/*
 * What a compromised server may leave behind: names with slashes, parents in a cycle, lengths beyond the
 * array. Rule: docs/specification.md 6.8.
 */
TEST_WITH(test_nothing_impossible_is_inherited, set_up, tear_down)
{
        struct lkg_node *d = look_up(1, "d"), *b = look_up(lkg_node_id(d), "b"), *a = look_up(1, "a");
        uint64_t id_of_a = lkg_node_id(a), id_of_b = lkg_node_id(b);
        char path[64];

        (void)snprintf(a->name, sizeof(a->name), "../outside");
        d->parent = lkg_node_id(d);
        server.shm->notify.relay_tail = 3;
        server.shm->notify.n_view_names = server.shm->touched.nodes = server.shm->touched.files = UINT32_MAX;
        lkg_inherit(server.shm);
        lkg_nodes_init();
        assert_null(lkg_node_get(id_of_a));
        assert_ptr_equal(lkg_node_get(id_of_b), b);
        assert_int_equal(lkg_node_path(b, path, sizeof(path)), -ENAMETOOLONG);
        assert_int_equal(server.shm->notify.n_view_names, LKG_VIEW_NAMES);
        assert_int_equal(server.shm->touched.nodes, LKG_NODES);
        assert_int_equal(server.shm->touched.files, LKG_FILES);
        assert_int_equal(server.shm->notify.relay_head, 3);
}
