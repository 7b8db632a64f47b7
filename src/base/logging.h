// SPDX-License-Identifier: Apache-2.0
// Log lines to stderr, or to a listener that the host program sets. Never part of control flow.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace millrace {

enum class LogLevel { kInfo = 0, kWarning = 1, kError = 2 };

void LogLine(LogLevel level, absl::string_view text);
// Replaces stderr; an empty function restores it.
void SetLogListener(std::function<void(LogLevel, const std::string&)> listener);
// Lines below this level are dropped (MILLRACE_MIN_LOG_LEVEL; default kInfo).
LogLevel MinLogLevel();

template <typename... Args>
void LogInfo(const Args&... args) {
  LogLine(LogLevel::kInfo, absl::StrCat(args...));
}
template <typename... Args>
void LogWarning(const Args&... args) {
  LogLine(LogLevel::kWarning, absl::StrCat(args...));
}
template <typename... Args>
void LogError(const Args&... args) {
  LogLine(LogLevel::kError, absl::StrCat(args...));
}

}  // namespace millrace
