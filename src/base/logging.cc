// SPDX-License-Identifier: Apache-2.0
#include "base/logging.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/settings.h"

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

// What the environment says of lines: MILLRACE_LOG_FORMAT=json, and MILLRACE_LOG_FIELDS such as job=ps,task=0.
struct Style {
  bool is_json = false;
  std::string before;  // the fields, in front of each text
};

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (byte < 0x20 || byte >= 0x7f) {
      absl::StrAppend(&out, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Style ReadStyle() {
  Style style;
  style.is_json = TextSetting("MILLRACE_LOG_FORMAT") == "json";
  const std::string fields = TextSetting("MILLRACE_LOG_FIELDS");
  for (const absl::string_view field : absl::StrSplit(fields, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> named = absl::StrSplit(field, absl::MaxSplits('=', 1));
    if (style.is_json) {
      absl::StrAppend(&style.before, Quoted(named.first), ": ", Quoted(named.second), ", ");
    } else {
      absl::StrAppend(&style.before, field, " ");
    }
  }
  return style;
}

void WriteToStderr(LogLevel level, absl::string_view text) {
  static constexpr char kLetters[] = {'I', 'W', 'E'};
  static const Style& style = *new Style(ReadStyle());
  const absl::string_view letter(&kLetters[static_cast<int>(level)], 1);
  const std::string line =
      style.is_json
          ? absl::StrCat("{\"time\": \"", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()),
                         "\", \"level\": \"", letter, "\", ", style.before, "\"text\": ", Quoted(text), "}\n")
          : absl::StrCat(absl::FormatTime("%m-%d %H:%M:%E6S", absl::Now(), absl::LocalTimeZone()), " ", letter, " ",
                         style.before, text, "\n");
  // One write per line keeps the lines of several threads whole. A closed stderr is nobody's error.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

// Writes by itself: whoever logs waits for this.
LogLevel ReadMinLogLevel() {
  const StatusOr<std::string> format = CheckedSetting("MILLRACE_LOG_FORMAT");
  const StatusOr<int64_t> level = NumberSetting("MILLRACE_MIN_LOG_LEVEL");
  for (const Status& s : {format.status(), level.status()}) {
    if (!s.ok()) WriteToStderr(LogLevel::kWarning, absl::StrCat("ignoring a setting: ", s.message()));
  }
  const int64_t least = level.value_or(0);
  return least >= 2 ? LogLevel::kError : static_cast<LogLevel>(least);
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
