// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/log.h"

#include <grpc/support/log.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/env.h"
#include "base/exceptions.h"
#include "base/logging.h"

namespace millrace::grpc_transport {
namespace {

constinit thread_local std::string* heard = nullptr;

LogLevel LevelOf(gpr_log_severity severity) {
  return severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kError : LogLevel::kInfo;
}

void Tell(gpr_log_func_args* line) {
  WithoutExceptions([&] {
    if (heard != nullptr) {
      absl::StrAppend(heard, line->message, "\n");
    } else {
      LogLine(LevelOf(line->severity),
              absl::StrCat("gRPC: ", line->message, " (", Basename(line->file), ":", line->line, ")"));
    }
    return absl::OkStatus();
  }).IgnoreError();
}

// What stands behind the last `before`, up to `end`; empty: nothing does.
absl::string_view Behind(absl::string_view text, absl::string_view before, absl::string_view end) {
  const size_t at = text.rfind(before);
  if (at == absl::string_view::npos) return "";
  text.remove_prefix(at + before.size());
  return text.substr(0, text.find(end));
}

}  // namespace

void TakeOverLog() { gpr_set_log_function(&Tell); }

LogEar::LogEar() { heard = &text_; }
LogEar::~LogEar() { heard = nullptr; }

std::string LogEar::Why(const std::string& otherwise) const {
  absl::string_view why = Behind(text_, "os_error:\"", "\"");
  if (why.empty()) why = Behind(text_, "UNKNOWN:", " {");
  return why.empty() ? otherwise : std::string(why);
}

}  // namespace millrace::grpc_transport
