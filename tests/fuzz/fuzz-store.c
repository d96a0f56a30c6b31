/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of the store: the first byte selects one, the rest is its content. The state can always be
 * read; and what was read is the same after it was saved, without a finding.
 */
#include <fcntl.h>
#include <ftw.h>

#include <lkg/file.h>

#include "tests/lib/store-sample.h"
#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const records[] = {
        "dynamic/kubelet/pointers.json",
        "dynamic/kubelet/trial.json",
        "dynamic/kubelet/releases/unknown/startups.json",
        "dynamic/kubelet/releases/unknown/bad/11111111-aaaa-4bbb-8ccc-000000000001@101",
        "dynamic/kubelet/release",
        "checkpoints/11111111-aaaa-4bbb-8ccc-000000000001/100/configmap.json",
};

static char top[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

static void remove_top(void)
{
        (void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* An empty directory for every input, in memory if possible. */
static int make_top(const char *record)
{
        char path[256];
        int fd;

        (void)snprintf(top, sizeof(top), "%s/lkgfs-fuzz-XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(top));
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        FUZZ_CHECK(fd >= 0);
        (void)snprintf(path, sizeof(path), "%s", record);
        *strrchr(path, '/') = '\0';
        FUZZ_CHECK(lkg_mkdir_p(fd, path, 0700, NULL) == 0);
        return fd;
}

/* Read everything and save it again. */
static void resave(int fd, struct lkg_buf *ret, struct lkg_report *report)
{
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_config_source source;
        struct lkg_pointers pointers;
        struct lkg_startups startups;
        struct lkg_store_component c;
        struct lkg_store store;
        struct lkg_trial trial;

        FUZZ_CHECK(lkg_store_open(fd, &store, report, NULL) == 0);
        dump_checkpoints(ret, &store);
        FUZZ_CHECK(lkg_store_component_open(&store, SAMPLE_COMPONENT, &c, report, NULL) == 0);
        FUZZ_CHECK(dump_component(ret, &c, report) == 0);
        FUZZ_CHECK(sample_source(0, &source) == 0);
        FUZZ_CHECK(lkg_store_load_pointers(&c, &pointers, report) == 0);
        FUZZ_CHECK(lkg_store_load_trial(&c, &source, &trial, report) == 0);
        FUZZ_CHECK(lkg_store_load_startups(&c, &startups, report) == 0);
        FUZZ_CHECK(lkg_store_load_bad(&c, &list, report) == 0);
        FUZZ_CHECK(lkg_store_save_pointers(&c, &pointers, NULL) == 0);
        FUZZ_CHECK(lkg_store_save_trial(&c, &source, &trial, 0, NULL) == 0);
        FUZZ_CHECK(lkg_store_save_startups(&c, &startups, NULL) == 0);
        for (size_t i = 0; i < list.n_items; i++) {
                const struct lkg_bad bad = list.items[i];

                FUZZ_CHECK(lkg_store_mark_bad(&c, &list, &bad, NULL) == 0);
        }
        FUZZ_CHECK(lkg_store_set_release(&c, c.release, NULL) >= 0);
        lkg_bad_list_deinit(&list);
        lkg_store_component_close(&c);
        lkg_store_close(&store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_report first_report = LKG_REPORT_INIT, second_report = LKG_REPORT_INIT;
        struct lkg_buf first = LKG_BUF_INIT, second = LKG_BUF_INIT;
        const char *record;
        int fd, file;

        if (size == 0)
                return 0;
        record = records[data[0] % LKG_ARRAY_SIZE(records)];
        fd = make_top(record);
        file = openat(fd, record, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        FUZZ_CHECK(file >= 0 && lkg_write_all(file, data + 1, size - 1) == 0);
        lkg_close(file);
        resave(fd, &first, &first_report);
        resave(fd, &second, &second_report);
        FUZZ_CHECK(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        FUZZ_CHECK(second_report.n_findings == 0);
        lkg_buf_deinit(&first);
        lkg_buf_deinit(&second);
        lkg_report_deinit(&first_report);
        lkg_report_deinit(&second_report);
        lkg_close(fd);
        remove_top();
        return 0;
}
