// SPDX-License-Identifier: Apache-2.0
// What a newer glibc's headers, or libstdc++ and Abseil built against it, ask of glibc 2.28, which has it not. Linked into
// each portable library, seen by nothing outside of it.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HERE __attribute__((visibility("hidden")))

// 2.32. Whether shared_ptr may count without atomic operations: never, since nobody here would know when that ends.
HERE char __libc_single_threaded = 0;

// 2.30. A wait that ends by another clock than the condition's: ended by the condition's own, at the same moment.
HERE int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                const struct timespec* until) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  struct timespec here, there;
  if (clock_gettime(clock, &there) != 0 || clock_gettime(CLOCK_REALTIME, &here) != 0) return EINVAL;
  const int64_t second = 1000000000;
  const int64_t nanos = until->tv_nsec - there.tv_nsec + here.tv_nsec;  // more than -1 s, less than 2 s
  struct timespec converted;
  converted.tv_sec = until->tv_sec - there.tv_sec + here.tv_sec + (nanos + second) / second - 1;
  converted.tv_nsec = (nanos + second) % second;
  if (converted.tv_sec < 0) return ETIMEDOUT;
  return pthread_cond_timedwait(condition, mutex, &converted);
}

// 2.36. std::random_device calls it; it cannot fail.
HERE uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
  }
  return value;
}

// 2.33. Until then inline functions of the headers, on these.
extern int __xstat(int version, const char* path, struct stat* to);
extern int __lxstat(int version, const char* path, struct stat* to);
extern int __fxstat(int version, int file, struct stat* to);
extern int __fxstatat(int version, int folder, const char* path, struct stat* to, int flags);
enum { kStatVersion = 1 };

HERE int stat(const char* path, struct stat* to) { return __xstat(kStatVersion, path, to); }
HERE int lstat(const char* path, struct stat* to) { return __lxstat(kStatVersion, path, to); }
HERE int fstat(int file, struct stat* to) { return __fxstat(kStatVersion, file, to); }
HERE int fstatat(int folder, const char* path, struct stat* to, int flags) {
  return __fxstatat(kStatVersion, folder, path, to, flags);
}
HERE int stat64(const char* path, struct stat64* to) { return __xstat(kStatVersion, path, (struct stat*)to); }
HERE int fstat64(int file, struct stat64* to) { return __fxstat(kStatVersion, file, (struct stat*)to); }
