/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that no kernel sends: they are refused before the server reads beyond them or follows a forbidden
 * name.
 */
#include "unit.h"
#include "requests.h"

static char buf[4096] __attribute__((aligned(8)));

/* A request with @fixed zero bytes, then @text. */
static const struct fuse_in_header *make(uint32_t opcode, size_t fixed, const char *text, size_t size)
{
        struct fuse_in_header *header = (void *)buf;

        memset(buf, 0, sizeof(buf));
        header->opcode = opcode;
        header->unique = 7;
        header->nodeid = 1;
        header->len = (uint32_t)(sizeof(*header) + fixed + size);
        memcpy(buf + sizeof(*header) + fixed, text, size);
        return header;
}

static bool is_sound(uint32_t opcode, size_t fixed, const char *text, size_t size)
{
        const struct fuse_in_header *header = make(opcode, fixed, text, size);

        return lkg_request_is_sound(header, header->len);
}

TEST(test_names)
{
        static const struct {
                const char *text;
                size_t size;
                bool sound;
        } cases[] = {
                { "a", 2, true },     { "a", 1, false },
                { "", 0, false },     { "", 1, false },
                { ".", 2, false },    { "..", 3, false },
                { "...", 4, true },   { "..a", 4, true },
                { "a/b", 4, false },  { "/etc/passwd", 12, false },
                { "../x", 5, false }, { "a\nb", 4, true },
                { "a\0b", 4, true }, /* bytes after the name are ignored */
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                const char *text = cases[i].text;
                size_t size = cases[i].size;

                assert_int_equal(is_sound(FUSE_LOOKUP, 0, text, size), cases[i].sound);
                assert_int_equal(is_sound(FUSE_UNLINK, 0, text, size), cases[i].sound);
                assert_int_equal(is_sound(FUSE_RMDIR, 0, text, size), cases[i].sound);
                assert_int_equal(is_sound(FUSE_MKDIR, sizeof(struct fuse_mkdir_in), text, size),
                                 cases[i].sound);
                assert_int_equal(is_sound(FUSE_MKNOD, sizeof(struct fuse_mknod_in), text, size),
                                 cases[i].sound);
                assert_int_equal(is_sound(FUSE_CREATE, sizeof(struct fuse_create_in), text, size),
                                 cases[i].sound);
                assert_int_equal(is_sound(FUSE_LINK, sizeof(struct fuse_link_in), text, size),
                                 cases[i].sound);
        }
}

TEST(test_two_names)
{
        assert_true(is_sound(FUSE_RENAME, 8, "a\0b", 4));
        assert_false(is_sound(FUSE_RENAME, 8, "a\0b", 3));
        assert_false(is_sound(FUSE_RENAME, 8, "a", 2));
        assert_false(is_sound(FUSE_RENAME, 8, "a\0..", 5));
        assert_false(is_sound(FUSE_RENAME2, 16, "..\0a", 5));
        assert_true(is_sound(FUSE_RENAME2, 16, "a\0b", 4));
        /* The target of a symlink is not checked. */
        assert_true(is_sound(FUSE_SYMLINK, 0, "a\0../../etc", 12));
        assert_false(is_sound(FUSE_SYMLINK, 0, "../a\0b", 7));
        assert_false(is_sound(FUSE_SYMLINK, 0, "a\0b", 3));
        assert_true(is_sound(FUSE_GETXATTR, 8, "user./", 7));
        assert_false(is_sound(FUSE_GETXATTR, 8, "user.a", 6));
        assert_false(is_sound(FUSE_REMOVEXATTR, 0, "", 0));
}

TEST(test_fixed_parts)
{
        for (uint32_t opcode = 0; opcode < 64; opcode++)
                for (size_t n = 0; n < 128; n++) {
                        const struct fuse_in_header *header = make(opcode, n, "", 0);

                        /* Its stated length is the received length. */
                        assert_false(lkg_request_is_sound(header, header->len + 1u));
                        assert_false(lkg_request_is_sound(header, header->len - 1u));
                }
        assert_true(is_sound(FUSE_GETATTR, sizeof(struct fuse_getattr_in), "", 0));
        assert_false(is_sound(FUSE_GETATTR, sizeof(struct fuse_getattr_in) - 1, "", 0));
        assert_false(is_sound(FUSE_SETATTR, sizeof(struct fuse_setattr_in) - 1, "", 0));
        assert_false(is_sound(FUSE_INTERRUPT, 7, "", 0));
        assert_false(is_sound(FUSE_COPY_FILE_RANGE, sizeof(struct fuse_copy_file_range_in) - 1, "", 0));
        assert_true(is_sound(FUSE_STATFS, 0, "", 0));
        assert_true(is_sound(FUSE_READLINK, 0, "", 0));
        assert_true(is_sound(4000, 0, "", 0)); /* libfuse answers ENOSYS */
}

/* The fixed part says how much follows. */
TEST(test_counts)
{
        struct fuse_write_in *write_in = (void *)(buf + sizeof(struct fuse_in_header));
        struct fuse_batch_forget_in *forget_in = (void *)write_in;
        const struct fuse_in_header *header;

        header = make(FUSE_WRITE, sizeof(*write_in), "data", 4);
        for (uint32_t n = 0; n < 8; n++) {
                write_in->size = n;
                assert_int_equal(lkg_request_is_sound(header, header->len), n <= 4);
        }
        write_in->size = UINT32_MAX;
        assert_false(lkg_request_is_sound(header, header->len));
        header = make(FUSE_BATCH_FORGET, sizeof(*forget_in) + 2 * sizeof(struct fuse_forget_one), "", 0);
        for (uint32_t n = 0; n < 4; n++) {
                forget_in->count = n;
                assert_int_equal(lkg_request_is_sound(header, header->len), n <= 2);
        }
        forget_in->count = UINT32_MAX; /* 64 GiB of them: the product must not wrap */
        assert_false(lkg_request_is_sound(header, header->len));
        forget_in->count = 1u << 28;
        assert_false(lkg_request_is_sound(header, header->len));
}

TEST(test_replies)
{
        struct fuse_in_header *header = (void *)buf;

        assert_true(lkg_request_has_reply(make(FUSE_LOOKUP, 0, "a", 2)));
        assert_false(lkg_request_has_reply(make(FUSE_FORGET, 8, "", 0)));
        assert_false(lkg_request_has_reply(make(FUSE_BATCH_FORGET, 8, "", 0)));
        assert_false(lkg_request_has_reply(make(FUSE_INTERRUPT, 8, "", 0)));
        assert_false(is_sound(FUSE_DESTROY, 0, "", 0));
        assert_false(is_sound(FUSE_NOTIFY_REPLY, 64, "", 0));
        /* Unique 0 belongs to notifications: no answer is possible. */
        (void)make(FUSE_LOOKUP, 0, "a", 2);
        header->unique = 0;
        assert_false(lkg_request_has_reply(header));
        assert_false(lkg_request_is_sound(header, header->len));
        (void)make(FUSE_FORGET, 8, "", 0);
        header->unique = 0;
        assert_true(lkg_request_is_sound(header, header->len));
}
