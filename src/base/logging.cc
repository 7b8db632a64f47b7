// SPDX-License-Identifier: Apache-2.0
#include "base/logging.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
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
  const char* const format = std::getenv("MILLRACE_LOG_FORMAT");
  const char* const fields = std::getenv("MILLRACE_LOG_FIELDS");
  Style style;
  style.is_json = format != nullptr && absl::string_view(format) == "json";
  if (fields == nullptr || *fields == '\0') return style;
  for (const absl::string_view field : absl::StrSplit(fields, ',')) {
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
  const auto text_of = [](const char* name) -> absl::string_view {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  const absl::string_view format = text_of("MILLRACE_LOG_FORMAT");
  if (format != "" && format != "text" && format != "json") {
    WriteToStderr(LogLevel::kWarning, absl::StrCat("ignoring MILLRACE_LOG_FORMAT=", format, ": want text or json"));
  }
  const absl::string_view text = text_of("MILLRACE_MIN_LOG_LEVEL");
  int level = 0;
  if (text != "" && (!absl::SimpleAtoi(text, &level) || level < 0)) {
    WriteToStderr(
        LogLevel::kWarning, absl::StrCat("ignoring MILLRACE_MIN_LOG_LEVEL=", text, ": want a number from 0 on"));
    return LogLevel::kInfo;
  }
  return level >= 2 ? LogLevel::kError : static_cast<LogLevel>(level);
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
