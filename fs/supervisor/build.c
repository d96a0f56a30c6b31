/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>

#include <lkg/file.h>

#include "build.h"

#define PROGRAM_MAX (64u << 20)
#define NOTES_MAX   65536u
#define HEADERS_MAX 64u

static int read_at(int fd, void *buf, size_t size, uint64_t at)
{
        ssize_t n = pread(fd, buf, size, (off_t)at);

        if (n < 0)
                return -errno;
        return (size_t)n == size ? 0 : -EBADMSG;
}

static size_t padded(size_t n)
{
        return (n + 3) & ~(size_t)3;
}

/* Return: bytes of the id in @notes, 0 = none. */
static int find_note(const char *notes, size_t size, unsigned char ret[static LKG_BUILD_ID_MAX])
{
        for (size_t at = 0; size - at >= sizeof(ElfW(Nhdr));) {
                ElfW(Nhdr) note;
                size_t name, data;

                memcpy(&note, notes + at, sizeof(note));
                name = at + sizeof(note);
                if (note.n_namesz > size || note.n_descsz > size)
                        return 0;
                data = name + padded(note.n_namesz);
                at = data + padded(note.n_descsz);
                if (at > size)
                        return 0;
                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
                    memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && note.n_descsz > 0 &&
                    note.n_descsz <= LKG_BUILD_ID_MAX) {
                        memcpy(ret, notes + data, note.n_descsz);
                        return (int)note.n_descsz;
                }
        }
        return 0;
}

int lkg_build_id(int fd, unsigned char ret[static LKG_BUILD_ID_MAX])
{
        ElfW(Ehdr) head;
        int r = read_at(fd, &head, sizeof(head), 0);

        if (r < 0)
                return r;
        if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)))
                return -EBADMSG;
        for (unsigned i = 0; i < head.e_phnum && i < HEADERS_MAX; i++) {
                LKG_CLEANUP(lkg_freep) char *notes = NULL;
                ElfW(Phdr) segment;

                r = read_at(fd, &segment, sizeof(segment), head.e_phoff + i * sizeof(segment));
                if (r < 0)
                        return r;
                if (segment.p_type != PT_NOTE || segment.p_filesz > NOTES_MAX)
                        continue;
                notes = malloc(segment.p_filesz + 1);
                if (!notes)
                        return -ENOMEM;
                r = read_at(fd, notes, segment.p_filesz, segment.p_offset);
                if (r < 0)
                        return r;
                r = find_note(notes, segment.p_filesz, ret);
                if (r > 0)
                        return r;
        }
        return -ENOENT;
}

static int same_bytes(int a, int b)
{
        unsigned char hash[2][LKG_SHA256_BYTES];
        const int fds[2] = { a, b };

        for (int i = 0; i < 2; i++) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                size_t size = 0;
                int r = lseek(fds[i], 0, SEEK_SET) < 0
                                ? -errno
                                : lkg_read_file(fds[i], PROGRAM_MAX, &text, &size, NULL);

                if (r >= 0)
                        r = lkg_sha256(text, size, hash[i]);
                if (r < 0)
                        return r;
        }
        return memcmp(hash[0], hash[1], LKG_SHA256_BYTES) == 0;
}

int lkg_build_same(int pid, const char *path)
{
        LKG_CLEANUP(lkg_closep) int ours = open(path, O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        unsigned char id[2][LKG_BUILD_ID_MAX];
        char link[64];
        int n, m;

        (void)snprintf(link, sizeof(link), "/proc/%d/exe", pid);
        theirs = ours < 0 ? -EBADF : open(link, O_RDONLY | O_CLOEXEC);
        if (ours < 0 || theirs < 0)
                return -errno;
        n = lkg_build_id(ours, id[0]);
        m = lkg_build_id(theirs, id[1]);
        if (n > 0 && m > 0)
                return n == m && memcmp(id[0], id[1], (size_t)n) == 0;
        return n > 0 || m > 0 ? 0 : same_bytes(ours, theirs);
}
