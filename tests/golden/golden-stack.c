/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the layer stack once over a directory and prints everything that a golden case compares, each part
 * after a `== name` line: the state, the document, the findings, the layers in merge order.
 *
 *     golden-stack DIRECTORY [key=value ...]     keys are the fields of struct lkg_stack_config
 */
#include <fcntl.h>
#include <strings.h>

#include <lkg/documents.h>
#include <lkg/stack.h>

static struct lkg_stack_config config = {
        .component = "kubelet",
        .source_path = "/etc/kubernetes",
        .base = "kubelet.conf",
        .base_is_view_name = true,
        .dropin_dir = "kubelet.conf.d",
        .instance = "kubelet-instance.conf",
        .patches_dir = "",
        .patches_target = "kubeletconfiguration",
        .kind = "",
        .api_version = "",
};

static const struct {
        const char *key;
        const char **text;
        bool *flag;
} settings[] = {
        { "base", &config.base, NULL },
        { "dropin_dir", &config.dropin_dir, NULL },
        { "instance", &config.instance, NULL },
        { "patches_dir", &config.patches_dir, NULL },
        { "kind", &config.kind, NULL },
        { "api_version", &config.api_version, NULL },
        { "base_is_view_name", NULL, &config.base_is_view_name },
        { "dropin_dir_required", NULL, &config.dropin_dir_required },
        { "instance_required", NULL, &config.instance_required },
        { "headerless_instance", NULL, &config.headerless_instance },
};

static bool set(const char *argument)
{
        const char *equals = strchr(argument, '=');

        for (size_t i = 0; equals && i < LKG_ARRAY_SIZE(settings); i++) {
                size_t n = (size_t)(equals - argument);

                if (strlen(settings[i].key) != n || strncmp(settings[i].key, argument, n) != 0)
                        continue;
                if (settings[i].text)
                        *settings[i].text = equals + 1;
                else
                        *settings[i].flag = strcasecmp(equals + 1, "true") == 0;
                return true;
        }
        return false;
}

static void print_document(const struct lkg_candidate *candidate)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        if (candidate->doc)
                lkg_render(candidate->doc, candidate->format, &buf);
        (void)fwrite(buf.data ? buf.data : "", 1, buf.size, stdout);
        lkg_buf_deinit(&buf);
}

static void print_origin(const struct lkg_candidate *candidate)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        if (candidate->doc)
                lkg_render_origin(candidate->doc, &buf);
        (void)fwrite(buf.data ? buf.data : "", 1, buf.size, stdout);
        lkg_buf_deinit(&buf);
}

int main(int argc, char **argv)
{
        static const char *const states[] = { "none", "valid", "invalid", "name taken" };
        struct lkg_candidate *candidate = NULL;
        struct lkg_stack *stack = NULL;
        struct lkg_error err = { 0 };
        char *findings;

        for (int i = 2; i < argc; i++) {
                if (!set(argv[i])) {
                        (void)fprintf(stderr, "unknown setting %s\n", argv[i]);
                        return 2;
                }
        }
        config.source_fd = argc > 1 ? open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
        stack = lkg_stack_new(&config);
        if (config.source_fd < 0 || lkg_stack_refresh(stack, &candidate, &err) < 0) {
                (void)fprintf(stderr, "%s\n", err.message);
                return 2;
        }
        findings = lkg_report_format(&candidate->report, NULL);
        (void)printf("== state\n%s\n== document\n", states[candidate->state]);
        print_document(candidate);
        (void)printf("== findings\n%s== layers\n", findings);
        for (size_t i = 0; i < candidate->n_layers; i++)
                (void)printf("%s %s %s\n", lkg_layer_role_name(candidate->layers[i].role),
                             candidate->layers[i].name, candidate->layers[i].whole ? "merged" : "-");
        (void)printf("== origin\n");
        print_origin(candidate);
        free(findings);
        lkg_candidate_unref(candidate);
        lkg_stack_free(stack);
        lkg_close(config.source_fd);
        return 0;
}
