// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/log.h"

#include <grpc/support/log.h>

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "base/exceptions.h"
#include "base/logging.h"
#include "base/stopwatch.h"

namespace millrace::grpc_transport {
namespace {

constexpr int64_t kQuietNanos = 60'000'000'000;

constinit thread_local std::string* heard = nullptr;

struct Kind {
  int64_t told_nanos = 0;
  int64_t untold = 0;
};

// Whether a line from that place of gRPC's sources is to be told; how many before it were not.
bool IsToBeTold(const char* file, int line, int64_t* untold) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* const kinds = new std::map<std::pair<std::string, int>, Kind>;
  const int64_t now = RealNanos();
  absl::MutexLock lock(&mu);
  const auto [at, is_new] = kinds->try_emplace({file, line});
  Kind& kind = at->second;
  if (!is_new && now - kind.told_nanos < kQuietNanos) {
    ++kind.untold;
    return false;
  }
  *untold = std::exchange(kind.untold, 0);
  kind.told_nanos = now;
  return true;
}

LogLevel LevelOf(gpr_log_severity severity) {
  return severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kError : LogLevel::kInfo;
}

void Tell(gpr_log_func_args* line) {
  WithoutExceptions([&] {
    int64_t untold = 0;
    if (heard != nullptr) {
      absl::StrAppend(heard, line->message, "\n");
    } else if (line->severity != GPR_LOG_SEVERITY_ERROR || IsToBeTold(line->file, line->line, &untold)) {
      const bool is_handshake = absl::StrContains(line->message, "andshake failed");
      LogLine(
          LevelOf(line->severity),
          absl::StrCat(
              "gRPC: ", line->message, " (", Basename(line->file), ":", line->line, ")",
              is_handshake ? ": a peer without certificates, or with such as have expired or are of another authority"
                           : "",
              untold > 0 ? absl::StrCat("; ", untold, " more such lines in the minute before") : ""));
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
