/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of changing a drop-in or a manifest, and whether the next open shows the change.
 *
 *     edit [-c CPU] [-r ROUNDS] [-n ITERATIONS] LABEL=DROPIN[,VIEW]...
 *
 * Rewrites DROPIN in place (open with O_TRUNC, write, close) with a new value of maxPods each time; if its name ends with .yaml, it is a
 * pod, with a new image. With VIEW, opens the merged file at once and looks for that value: a miss is counted as stale.
 * Prints, per target, the lines `LABEL.close` (the close alone), `LABEL.edit` (open to close) and,
 * with VIEW, `LABEL.stale`, whose second field is the count.
 */
#include <fcntl.h>

#include "measure.h"

#define WARM_UP 3
#define TARGETS 8

struct target {
        const char *label, *dropin, *view; /* view: NULL for a peer */
        struct samples closing, whole;
        size_t stale;
};

static const char header[] = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
static const char pod[] =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: edit}\nspec:\n  containers:\n  - name: edit\n";

static int shows(const char *path, const char *line)
{
        static char text[1 << 17];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                give_up("open %s", path);
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                give_up("read %s", path);
        close(fd);
        text[n] = '\0';
        return strstr(text, line) != NULL;
}

static void edit(struct target *t, unsigned value, int count)
{
        bool is_pod = strcmp(strrchr(t->dropin, '.'), ".yaml") == 0;
        char text[256], line[64];
        uint64_t start, before, end;
        int fd, n;

        (void)snprintf(line, sizeof(line), is_pod ? "\n    image: i:%u\n" : "\nmaxPods: %u\n", value);
        n = snprintf(text, sizeof(text), "%s%s", is_pod ? pod : header, line + 1);
        start = now_ns();
        fd = open(t->dropin, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                give_up("open %s", t->dropin);
        if (write(fd, text, (size_t)n) != n)
                give_up("write %s", t->dropin);
        before = now_ns();
        if (close(fd) < 0)
                give_up("close %s", t->dropin);
        end = now_ns();
        if (count) {
                samples_add(&t->closing, end - before);
                samples_add(&t->whole, end - start);
        }
        if (t->view && !shows(t->view, line))
                t->stale++;
}

static void target_parse(struct target *t, char *text, size_t n_samples)
{
        char *dropin = split_label(text), *comma = strchr(dropin, ',');

        t->label = text;
        t->dropin = dropin;
        if (comma) {
                *comma = '\0';
                t->view = comma + 1;
        }
        samples_init(&t->closing, n_samples);
        samples_init(&t->whole, n_samples);
}

static void target_print(struct target *t)
{
        char label[128];

        (void)snprintf(label, sizeof(label), "%s.close", t->label);
        samples_print(label, &t->closing);
        (void)snprintf(label, sizeof(label), "%s.edit", t->label);
        samples_print(label, &t->whole);
        if (t->view)
                printf("%s.stale\t%zu\t0\t0\t0\n", t->label, t->stale);
        free(t->closing.ns);
        free(t->whole.ns);
}

int main(int argc, char **argv)
{
        const struct command_line c =
                command_line(argc, argv, /* has_word= */ false, TARGETS,
                             "edit [-c CPU] [-r ROUNDS] [-n ITERATIONS] LABEL=DROPIN[,VIEW]...");
        struct target targets[TARGETS] = { 0 };
        unsigned value = 100;

        for (size_t i = 0; i < c.n_targets; i++)
                target_parse(&targets[i], c.targets[i], (size_t)(c.rounds * c.iterations));
        for (long r = 0; r < c.rounds; r++)
                for (size_t t = 0; t < c.n_targets; t++)
                        for (long i = -WARM_UP; i < c.iterations; i++)
                                edit(&targets[t], value++, i >= 0);
        for (size_t t = 0; t < c.n_targets; t++)
                target_print(&targets[t]);
        return 0;
}
