/* Keeps what a power loss would leave: of each file the content at its last fsync, of each folder
 * the names at its last fsync. Preloaded (LD_PRELOAD); synced_only.py makes a tree of what is kept.
 *
 *     $SYNCED_ONLY/files/<inode>      content
 *     $SYNCED_ONLY/folders/<inode>    a line for each name: inode, "d" or "f", name
 *     $SYNCED_ONLY/gone/<inode>       a link to a file that was removed, so that no new file gets
 *                                     its inode
 *     $SYNCED_ONLY/lock               one thread at a time keeps something: else what a slow one
 *                                     has read replaces what a later one has synced
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *kept(void) { return getenv("SYNCED_ONLY"); }

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

static void draft_and_path(char *draft, char *path, size_t size, const char *kind, ino_t inode) {
    snprintf(path, size, "%s/%s/%lu", kept(), kind, (unsigned long)inode);
    snprintf(draft, size, "%s/draft-%ld-%ld", kept(), (long)getpid(), (long)syscall(SYS_gettid));
}

static void keep_file(int fd, ino_t inode) {
    char draft[4096], path[4096], self[64], buffer[1 << 16];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    draft_and_path(draft, path, sizeof path, "files", inode);
    int in = open(self, O_RDONLY), out = open(draft, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n = 0;
    while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof buffer)) > 0)
        if (syscall(SYS_write, out, buffer, n) != n) abort();
    if (in < 0 || out < 0 || n < 0) abort();
    close(in);
    close(out);
    if (syscall(SYS_renameat2, AT_FDCWD, draft, AT_FDCWD, path, 0)) abort();
}

static void keep_folder(int fd, ino_t inode) {
    char draft[4096], path[4096], self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    draft_and_path(draft, path, sizeof path, "folders", inode);
    DIR *folder = opendir(self);
    FILE *out = fopen(draft, "w");
    if (!folder || !out) abort();
    for (struct dirent *one; (one = readdir(folder));)
        if (strcmp(one->d_name, ".") && strcmp(one->d_name, ".."))
            fprintf(out, "%lu %c %s\n", (unsigned long)one->d_ino,
                    one->d_type == DT_DIR ? 'd' : 'f', one->d_name);
    fclose(out);
    closedir(folder);
    if (syscall(SYS_renameat2, AT_FDCWD, draft, AT_FDCWD, path, 0)) abort();
}

static void keep(int fd) {
    struct stat status;
    int error = errno;
    if (kept() && !fstat(fd, &status)) {
        char path[4096];
        snprintf(path, sizeof path, "%s/lock", kept());
        int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (lock < 0 || flock(lock, LOCK_EX)) abort();
        if (S_ISREG(status.st_mode)) keep_file(fd, status.st_ino);
        if (S_ISDIR(status.st_mode)) keep_folder(fd, status.st_ino);
        close(lock);
    }
    errno = error;
}

static void keep_if_synced_at_once(int fd) {
    int error = errno, flags = kept() ? fcntl(fd, F_GETFL) : 0;
    errno = error;
    if (flags > 0 && flags & (O_DSYNC | O_SYNC)) keep(fd);
}

static void keep_inode(int folder, const char *name) {
    char path[4096];
    struct stat status;
    int error = errno;
    if (kept() && !fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode)) {
        snprintf(path, sizeof path, "%s/gone/%lu", kept(), (unsigned long)status.st_ino);
        linkat(folder, name, AT_FDCWD, path, 0);
    }
    errno = error;
}

int fsync(int fd) {
    REAL(fsync);
    int done = real(fd);
    if (!done) keep(fd);
    return done;
}
int fdatasync(int fd) {
    REAL(fdatasync);
    int done = real(fd);
    if (!done) keep(fd);
    return done;
}
#define WRITER(name, parameters, ...)                                                              \
    ssize_t name parameters {                                                                      \
        REAL(name);                                                                                \
        ssize_t done = real(__VA_ARGS__);                                                          \
        keep_if_synced_at_once(fd);                                                                \
        return done;                                                                               \
    }
WRITER(write, (int fd, const void *data, size_t n), fd, data, n)
WRITER(writev, (int fd, const struct iovec *data, int n), fd, data, n)
WRITER(pwrite, (int fd, const void *data, size_t n, off_t at), fd, data, n, at)
WRITER(pwrite64, (int fd, const void *data, size_t n, off64_t at), fd, data, n, at)
WRITER(pwritev, (int fd, const struct iovec *data, int n, off_t at), fd, data, n, at)
WRITER(pwritev64, (int fd, const struct iovec *data, int n, off64_t at), fd, data, n, at)

/* a new folder may get the inode of one that was removed */
static int forget_folder(int folder, const char *name, int (*remove)(int, const char *, int), int flags) {
    char path[4096] = "";
    struct stat status;
    int error = errno;
    if (kept() && !fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW))
        snprintf(path, sizeof path, "%s/folders/%lu", kept(), (unsigned long)status.st_ino);
    errno = error;
    int done = remove(folder, name, flags);
    error = errno;
    if (!done && *path) syscall(SYS_unlink, path);
    errno = error;
    return done;
}
int unlink(const char *path) {
    REAL(unlink);
    keep_inode(AT_FDCWD, path);
    return real(path);
}
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    if (flags & AT_REMOVEDIR) return forget_folder(folder, path, real, flags);
    keep_inode(folder, path);
    return real(folder, path, flags);
}
int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
int rename(const char *from, const char *to) {
    REAL(rename);
    keep_inode(AT_FDCWD, to);
    return real(from, to);
}
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    REAL(renameat);
    keep_inode(to_folder, to);
    return real(from_folder, from, to_folder, to);
}
