/* Refuses, in one folder, what a mounted object store refuses: LD_PRELOAD=refusing.so REFUSING_FOLDER=/folder REFUSES=rename,lock
 *
 *   rename   any rename                     replace  a rename onto a file that exists
 *   link     hard and symbolic links        lock     flock, and locks of fcntl
 *   append   O_APPEND to what exists        random   opening a file that exists for writing, unless that empties it; pwrite
 *
 * As on FUSE in Databricks, the error is EOPNOTSUPP ("Operation not supported"); for locks it is ENOLCK.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int refuses(const char *what) {
    const char *list = getenv("REFUSES"), *found = list ? strstr(list, what) : NULL;
    return found != NULL;
}

/* The absolute path of `path`, which need not exist; relative ones begin in the directory `at`. */
static void absolute(int at, const char *path, char *out) {
    char base[PATH_MAX] = "", link[64];
    if (path[0] == '/') { snprintf(out, PATH_MAX, "%s", path); return; }
    if (at == AT_FDCWD) { if (!getcwd(base, sizeof base)) base[0] = 0; }
    else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t size = readlink(link, base, sizeof base - 1);
        base[size > 0 ? size : 0] = 0;
    }
    if (strlen(base) + strlen(path) + 2 > PATH_MAX) { out[0] = 0; return; }
    strcpy(out, base); strcat(out, "/"); strcat(out, path);
}

static int inside(int at, const char *path) {
    const char *folder = getenv("REFUSING_FOLDER");
    char full[PATH_MAX];
    if (!folder || !path) return 0;
    absolute(at, path, full);
    size_t length = strlen(folder);
    return strncmp(full, folder, length) == 0 && (full[length] == '/' || full[length] == 0);
}

static int inside_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return inside(AT_FDCWD, path);
}

static int refused(int error) { errno = error; return -1; }

static int refused_rename(int from, const char *old, int to, const char *new) {
    struct stat found;
    if (!inside(from, old) && !inside(to, new)) return 0;
    return refuses("rename") || (refuses("replace") && fstatat(to, new, &found, AT_SYMLINK_NOFOLLOW) == 0);
}

int rename(const char *old, const char *new) {
    return refused_rename(AT_FDCWD, old, AT_FDCWD, new) ? refused(EOPNOTSUPP) : NEXT(rename)(old, new);
}
int renameat(int from, const char *old, int to, const char *new) {
    return refused_rename(from, old, to, new) ? refused(EOPNOTSUPP) : NEXT(renameat)(from, old, to, new);
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return refused_rename(from, old, to, new) ? refused(EOPNOTSUPP) : NEXT(renameat2)(from, old, to, new, flags);
}
int link(const char *old, const char *new) {
    return refuses("link") && inside(AT_FDCWD, new) ? refused(EOPNOTSUPP) : NEXT(link)(old, new);
}
int linkat(int from, const char *old, int to, const char *new, int flags) {
    return refuses("link") && inside(to, new) ? refused(EOPNOTSUPP) : NEXT(linkat)(from, old, to, new, flags);
}
int symlink(const char *target, const char *path) {
    return refuses("link") && inside(AT_FDCWD, path) ? refused(EOPNOTSUPP) : NEXT(symlink)(target, path);
}
int symlinkat(const char *target, int at, const char *path) {
    return refuses("link") && inside(at, path) ? refused(EOPNOTSUPP) : NEXT(symlinkat)(target, at, path);
}
int flock(int fd, int operation) {
    return refuses("lock") && inside_fd(fd) ? refused(ENOLCK) : NEXT(flock)(fd, operation);
}

static int fcntl_of(int (*next)(int, int, ...), int fd, int command, void *argument) {
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    return locks && refuses("lock") && inside_fd(fd) ? refused(ENOLCK) : next(fd, command, argument);
}
int fcntl(int fd, int command, ...) {
    va_list more; va_start(more, command); void *argument = va_arg(more, void *); va_end(more);
    return fcntl_of(NEXT(fcntl), fd, command, argument);
}
int fcntl64(int fd, int command, ...) {
    va_list more; va_start(more, command); void *argument = va_arg(more, void *); va_end(more);
    return fcntl_of((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64"), fd, command, argument);
}

static int refused_open(int at, const char *path, int flags) {
    struct stat found;
    if ((flags & O_ACCMODE) == O_RDONLY || !inside(at, path)) return 0;
    int exists = fstatat(at, path, &found, 0) == 0 && S_ISREG(found.st_mode) && found.st_size > 0;
    if (!exists || flags & O_TRUNC) return 0;
    return (flags & O_APPEND) ? refuses("append") : refuses("random");
}

#define OPENS(name)                                                                              \
    int name(const char *path, int flags, ...) {                                                 \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more);   \
        int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        return refused_open(AT_FDCWD, path, flags) ? refused(EOPNOTSUPP) : next(path, flags, mode); \
    }
#define OPENS_AT(name)                                                                           \
    int name(int at, const char *path, int flags, ...) {                                         \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more);   \
        int (*next)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        return refused_open(at, path, flags) ? refused(EOPNOTSUPP) : next(at, path, flags, mode); \
    }
OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    struct stat found;
    if (refuses("random") && inside_fd(fd) && fstat(fd, &found) == 0 && found.st_size != offset) return refused(EOPNOTSUPP);
    return NEXT(pwrite)(fd, data, size, offset);
}
