// SPDX-License-Identifier: Apache-2.0
// Makes ThreadSanitizer understand an Abseil that was built without it, as a system's package is: the linker sends our
// calls of its mutexes, notifications and counters through here (--wrap, see src/CMakeLists.txt), and each says what it
// orders. Empty in every other build.
#if defined(__SANITIZE_THREAD__)

#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace millrace {
namespace {

using absl::BlockingCounter;
using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

// Abseil calls conditions of waiting threads under the lock, in whatever thread holds it: their reads are ordered by
// the lock, but outside of what we see of it.
class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// Releases before and acquires after the real call, both on `sync`.
template <typename Call>
auto Around(const void* sync, bool release, bool acquire, Call call) {
  struct AcquireAtEnd {
    void* sync;
    ~AcquireAtEnd() {
      if (sync != nullptr) __tsan_acquire(sync);
    }
  };
  void* const address = const_cast<void*>(sync);
  const AcquireAtEnd at_end{acquire ? address : nullptr};
  if (release) __tsan_release(address);
  const IgnoreReads ignore;
  return call();
}

// HasBeenNotified() is inline and reads the flag that follows the mutex; waiting is ordered by the same address.
const void* NotifiedFlag(const Notification* n) { return reinterpret_cast<const char*>(n) + sizeof(Mutex); }

}  // namespace

// MR_WRAP(result, end of the mangled name, parameters, arguments, object that orders, releases, acquires).
// MR_ABSL_NAMESPACE is Abseil's namespace, mangled, from the build.
#define MR_WRAP(R, symbol, params, args, sync, release, acquire) \
  MR_WRAP_AS("_ZN", R, symbol, params, args, sync, release, acquire)
#define MR_WRAP_CONST(R, symbol, params, args, sync, release, acquire) \
  MR_WRAP_AS("_ZNK", R, symbol, params, args, sync, release, acquire)
#define MR_WRAP_AS(start, R, symbol, params, args, sync, release, acquire)    \
  R Real##symbol params asm("__real_" start MR_ABSL_NAMESPACE #symbol);       \
  R Wrap##symbol params asm("__wrap_" start MR_ABSL_NAMESPACE #symbol);       \
  R Wrap##symbol params {                                                     \
    return Around(sync, release, acquire, [&] { return Real##symbol args; }); \
  }

MR_WRAP(void, 5Mutex4LockEv, (Mutex * mu), (mu), mu, false, true)
MR_WRAP(void, 5Mutex6UnlockEv, (Mutex * mu), (mu), mu, true, false)
MR_WRAP(bool, 5Mutex7TryLockEv, (Mutex * mu), (mu), mu, false, true)
MR_WRAP(void, 5Mutex10ReaderLockEv, (Mutex * mu), (mu), mu, false, true)
MR_WRAP(void, 5Mutex12ReaderUnlockEv, (Mutex * mu), (mu), mu, true, false)
MR_WRAP(void, 5Mutex5AwaitERKNS0_9ConditionE, (Mutex * mu, const Condition& c), (mu, c), mu, true, true)
MR_WRAP(bool, 5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE, (Mutex * mu, const Condition& c, Duration d),
        (mu, c, d), mu, true, true)
MR_WRAP(bool, 5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, (Mutex * mu, const Condition& c, Time t),
        (mu, c, t), mu, true, true)
MR_WRAP(void, 5Mutex8LockWhenERKNS0_9ConditionE, (Mutex * mu, const Condition& c), (mu, c), mu, false, true)
MR_WRAP(void, 7CondVar4WaitEPNS0_5MutexE, (CondVar * cv, Mutex* mu), (cv, mu), mu, true, true)
MR_WRAP(bool, 7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, (CondVar * cv, Mutex* mu, Duration d), (cv, mu, d),
        mu, true, true)
MR_WRAP(bool, 7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, (CondVar * cv, Mutex* mu, Time t), (cv, mu, t), mu,
        true, true)
MR_WRAP(void, 12Notification6NotifyEv, (Notification * n), (n), NotifiedFlag(n), true, false)
MR_WRAP(void, 12NotificationD1Ev, (Notification * n), (n), NotifiedFlag(n), false, true)
MR_WRAP_CONST(void, 12Notification19WaitForNotificationEv, (const Notification* n), (n), NotifiedFlag(n), false, true)
MR_WRAP_CONST(bool, 12Notification30WaitForNotificationWithTimeoutENS0_8DurationE, (const Notification* n, Duration d),
              (n, d), NotifiedFlag(n), false, true)
MR_WRAP_CONST(bool, 12Notification31WaitForNotificationWithDeadlineENS0_4TimeE, (const Notification* n, Time t), (n, t),
              NotifiedFlag(n), false, true)
MR_WRAP(bool, 15BlockingCounter14DecrementCountEv, (BlockingCounter * c), (c), c, true, true)
MR_WRAP(void, 15BlockingCounter4WaitEv, (BlockingCounter * c), (c), c, false, true)
MR_WRAP(bool, 7Barrier5BlockEv, (absl::Barrier * b), (b), b, true, true)
// The count of a status's shared message.
MR_WRAP(void, 6Status15UnrefNonInlinedEm, (uintptr_t rep), (rep), reinterpret_cast<void*>(rep - rep % 4), true, true)

}  // namespace millrace

#endif
