/* Counts the calls that change a folder's files, dies at a chosen one, and writes down what was done: see kill_points.py.
 *
 * Preloaded before the C library; does nothing until `kill_points_arm` names a folder. A call that writes dies half-way,
 * every other one before it begins. The log has one line per call: a letter, then the paths, parted by tabs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real(#name))
#define MOST 4096

static char root[MOST], journal[MOST];
static long n_calls, kill_at, n_kept, n_clock, jump_seconds, shift_seconds;
static int armed, fatal, log_file = -1;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

void kill_points_arm(const char *folder, long at, const char *log, const char *kept, long jump, long number, long shift) {
    strcpy(root, folder);
    strcpy(journal, kept);
    kill_at = at;
    jump_seconds = jump;
    fatal = (int)number;
    shift_seconds = shift;
    if (*log) log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_TRUNC, 0600);
    armed = 1;
}

long kill_points_calls(void) { return n_calls; }

static int under(const char *path) { return armed && path && !strncmp(path, root, strlen(root)); }

static int path_of(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = readlink(link, out, MOST - 1);
    if (n < 0) return 0;
    out[n] = 0;
    return under(out);
}

static int at(int fd, const char *name, char *out) {
    if (!armed || !name) return 0;
    if (*name == '/') snprintf(out, MOST, "%s", name);
    else if (fd == AT_FDCWD) { if (!getcwd(out, MOST)) return 0; strncat(out, "/", 2); strncat(out, name, MOST - strlen(out) - 1); }
    else { char folder[MOST]; if (!path_of(fd, folder)) return 0; snprintf(out, MOST, "%s/%s", folder, name); }
    return under(out);
}

/* Whether the disk is full: from the chosen call on, every call that needs room fails, with the error -fatal. */
static int is_full(void) { return fatal < 0 && kill_at && n_calls >= kill_at; }

/* Whether the signal ends the process, or stops it, before the next instruction; others are handled by the program, which goes on. */
static int at_once(void) { return fatal == SIGKILL || fatal == SIGSTOP; }

/* Dies, stands still until somebody else kills it, or gets another signal and goes on. */
static void die(void) { syscall(SYS_kill, getpid(), fatal); while (at_once()) pause(); }

/* Whether this call is the last one. */
static int last(void) { return __atomic_add_fetch(&n_calls, 1, __ATOMIC_SEQ_CST) == kill_at; }

static void count(void) { if (last() && fatal > 0) die(); }

/* The same of a call that needs room; whether there is none. */
static int refused(void) { count(); if (!is_full()) return 0; errno = -fatal; return 1; }

static void say(char what, const char *one, const char *two) {
    if (log_file < 0) return;
    char line[3 * MOST];
    int n = snprintf(line, sizeof line, "%c\t%s\t%s\n", what, one, two);
    syscall(SYS_write, log_file, line, (size_t)n);
}

static long size_of(const char *path) { struct stat found; return stat(path, &found) ? -1 : (long)found.st_size; }

/* Keep what a call is about to remove or replace under a number; "" when nothing stands there. */
static const char *keep(const char *path, char *name) {
    *name = 0;
    if (log_file < 0 || size_of(path) < 0) return name;
    snprintf(name, MOST, "%s/%ld", journal, __atomic_add_fetch(&n_kept, 1, __ATOMIC_SEQ_CST));
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, name, 0)) *name = 0;
    return name;
}

static int opened(const char *path, int flags, int fd, int is_new) {
    if (fd >= 0 && is_new) say('C', path, "");
    else if (fd >= 0 && (flags & O_TRUNC)) say('W', path, "");
    return fd;
}

#define OPENING(name, fd_given, call) \
    va_list rest; va_start(rest, flags); mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0; va_end(rest); \
    char full[MOST]; \
    if (!(flags & (O_CREAT | O_TRUNC)) || !at(fd_given, path, full)) return call; \
    int is_new = size_of(full) < 0; \
    if ((is_new || (flags & O_TRUNC)) && refused()) return -1; \
    return opened(full, flags, call, is_new);

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, REAL(open)(path, flags, mode)) }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, REAL(open64)(path, flags, mode)) }
int openat(int fd, const char *path, int flags, ...) { OPENING(openat, fd, REAL(openat)(fd, path, flags, mode)) }
int openat64(int fd, const char *path, int flags, ...) { OPENING(openat64, fd, REAL(openat64)(fd, path, flags, mode)) }

#define WRITING(fd, half, whole) \
    char full[MOST]; \
    if (!armed || fd == log_file || !path_of(fd, full)) return whole; \
    say('W', full, ""); \
    if (fatal < 0) { if (refused()) return -1; } \
    else if (last()) { if (at_once()) { half; } die(); } \
    return whole;

ssize_t write(int fd, const void *data, size_t n) { WRITING(fd, syscall(SYS_write, fd, data, n / 2), REAL(write)(fd, data, n)) }
ssize_t pwrite(int fd, const void *data, size_t n, off_t to) { WRITING(fd, REAL(pwrite)(fd, data, n / 2, to), REAL(pwrite)(fd, data, n, to)) }
ssize_t pwrite64(int fd, const void *data, size_t n, off_t to) { WRITING(fd, REAL(pwrite64)(fd, data, n / 2, to), REAL(pwrite64)(fd, data, n, to)) }
ssize_t writev(int fd, const struct iovec *parts, int n) { WRITING(fd, REAL(writev)(fd, parts, n / 2), REAL(writev)(fd, parts, n)) }
ssize_t sendfile(int fd, int from, off_t *at_, size_t n) { WRITING(fd, (void)0, REAL(sendfile)(fd, from, at_, n)) }
ssize_t copy_file_range(int from, off_t *a, int fd, off_t *b, size_t n, unsigned flags) { WRITING(fd, (void)0, REAL(copy_file_range)(from, a, fd, b, n, flags)) }
int ftruncate(int fd, off_t n) { WRITING(fd, (void)0, REAL(ftruncate)(fd, n)) }
int ftruncate64(int fd, off_t n) { WRITING(fd, (void)0, REAL(ftruncate64)(fd, n)) }

#define SYNCING(name) \
    int name(int fd) { \
        char full[MOST]; \
        int ours = armed && path_of(fd, full); \
        if (ours) count(); \
        int answer = REAL(name)(fd); \
        if (ours && !answer) { char size[32]; snprintf(size, sizeof size, "%ld", size_of(full)); say('S', full, size); } \
        return answer; \
    }
/* Not counted: it changes nothing. */
int flock(int fd, int how) {
    char full[MOST];
    if (armed && (how & LOCK_EX) && path_of(fd, full)) say('K', full, "");
    return REAL(flock)(fd, how);
}

SYNCING(fsync)
SYNCING(fdatasync)

#define TWO(what, given, one_fd, one_name, two_fd, two_name, call) \
    char one[MOST], two[MOST], kept[MOST]; \
    int ours = at(one_fd, one_name, one) | at(two_fd, two_name, two); \
    if (!ours) return call; \
    if (what != 'L') count(); \
    else if (refused()) return -1; \
    keep(two, kept); \
    int answer = call; \
    if (!answer) { char both[2 * MOST]; snprintf(both, sizeof both, "%s\t%s", two, kept); say(what, one, both); } \
    return answer;

int rename(const char *a, const char *b) { TWO('R', 1, AT_FDCWD, a, AT_FDCWD, b, REAL(rename)(a, b)) }
int renameat(int i, const char *a, int j, const char *b) { TWO('R', 1, i, a, j, b, REAL(renameat)(i, a, j, b)) }
int link(const char *a, const char *b) { TWO('L', 1, AT_FDCWD, a, AT_FDCWD, b, REAL(link)(a, b)) }
int linkat(int i, const char *a, int j, const char *b, int flags) { TWO('L', 1, i, a, j, b, REAL(linkat)(i, a, j, b, flags)) }

#define ONE(what, fd, name, call) \
    char full[MOST], kept[MOST]; \
    *kept = 0; \
    if (!at(fd, name, full)) return call; \
    if (what != 'M') count(); \
    else if (refused()) return -1; \
    if (what == 'U') keep(full, kept); \
    int answer = call; \
    if (!answer) say(what, full, kept); \
    return answer;

int unlink(const char *path) { ONE('U', AT_FDCWD, path, REAL(unlink)(path)) }
int unlinkat(int fd, const char *path, int flags) { ONE(((flags & AT_REMOVEDIR) ? 'D' : 'U'), fd, path, REAL(unlinkat)(fd, path, flags)) }
int mkdir(const char *path, mode_t mode) { ONE('M', AT_FDCWD, path, REAL(mkdir)(path, mode)) }
int mkdirat(int fd, const char *path, mode_t mode) { ONE('M', fd, path, REAL(mkdirat)(fd, path, mode)) }
int rmdir(const char *path) { ONE('D', AT_FDCWD, path, REAL(rmdir)(path)) }

/* A clock that is wrong by so many seconds; or set to and fro: every second question is answered with a moment that far ahead, the others behind. */
int clock_gettime(clockid_t which, struct timespec *now) {
    int answer = (int)syscall(SYS_clock_gettime, which, now);
    if (armed && which == CLOCK_REALTIME && !answer) now->tv_sec += shift_seconds;
    if (armed && jump_seconds && which == CLOCK_REALTIME && !answer)
        now->tv_sec += (__atomic_add_fetch(&n_clock, 1, __ATOMIC_SEQ_CST) & 1) ? jump_seconds : -jump_seconds;
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
