// SPDX-License-Identifier: Apache-2.0
#include "base/logging.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace millrace {
namespace {

using Listener = std::function<void(LogLevel, const std::string&)>;

struct ListenerSlot {
  absl::Mutex mu;
  std::shared_ptr<const Listener> listener ABSL_GUARDED_BY(mu);
};

// Never destroyed: threads may still log while the process ends.
ListenerSlot& TheSlot() {
  static ListenerSlot& slot = *new ListenerSlot;
  return slot;
}

LogLevel ReadMinLogLevel() {
  const char* text = std::getenv("MILLRACE_MIN_LOG_LEVEL");
  int level = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &level) || level < 0) return LogLevel::kInfo;
  return level >= 2 ? LogLevel::kError : static_cast<LogLevel>(level);
}

void WriteToStderr(LogLevel level, absl::string_view text) {
  static constexpr char kLetters[] = {'I', 'W', 'E'};
  const std::string line = absl::StrCat(
      absl::FormatTime("%m-%d %H:%M:%E6S", absl::Now(), absl::LocalTimeZone()), " ",
      absl::string_view(&kLetters[static_cast<int>(level)], 1), " ", text, "\n");
  // One write per line keeps the lines of several threads whole. A closed stderr is nobody's error.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

LogLevel MinLogLevel() {
  static const LogLevel level = ReadMinLogLevel();
  return level;
}

void SetLogListener(Listener listener) {
  auto holder = listener ? std::make_shared<const Listener>(std::move(listener)) : nullptr;
  ListenerSlot& slot = TheSlot();
  absl::MutexLock lock(&slot.mu);
  slot.listener.swap(holder);
}

void LogLine(LogLevel level, absl::string_view text) {
  if (level < MinLogLevel()) return;
  std::shared_ptr<const Listener> listener;
  {
    ListenerSlot& slot = TheSlot();
    absl::MutexLock lock(&slot.mu);
    listener = slot.listener;
  }
  if (listener) {
    (*listener)(level, std::string(text));
  } else {
    WriteToStderr(level, text);
  }
}

}  // namespace millrace
