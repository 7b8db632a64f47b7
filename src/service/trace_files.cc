// SPDX-License-Identifier: Apache-2.0
#include "service/trace_files.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/settings.h"

namespace millrace {
namespace {

constexpr char kFolder[] = "MILLRACE_TRACE", kSteps[] = "MILLRACE_TRACE_STEPS";

StatusOr<std::vector<std::pair<int64_t, int64_t>>> ReadSteps(absl::string_view text) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int64_t from = 0, to = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &from) || !absl::SimpleAtoi(ends.back(), &to) || from < 0 ||
        to < from) {
      return InvalidArgument(kSteps, ": '", part, "' is no step and no range of steps, want such as 0-9,100");
    }
    steps.emplace_back(from, to);
  }
  return steps;
}

}  // namespace

StatusOr<TraceFiles> TraceFiles::FromEnvironment() {
  static std::atomic<int64_t> sessions{0};
  TraceFiles files;
  const std::string folder = TextSetting(kFolder), steps = TextSetting(kSteps);
  if (folder.empty()) return files;
  MR_ASSIGN_OR_RETURN(files.steps_, ReadSteps(steps.empty() ? FindSetting(kSteps)->otherwise : steps));
  files.folder_ = folder;
  files.session_ = sessions++;
  return files;
}

int64_t TraceFiles::Next() {
  const int64_t step = next_.fetch_add(1, std::memory_order_relaxed);
  const bool is_wanted =
      std::any_of(steps_.begin(), steps_.end(), [&](const auto& s) { return s.first <= step && step <= s.second; });
  return is_wanted ? step : -1;
}

std::string TraceFiles::PathOf(int64_t step) const {
  return absl::StrFormat("%s/trace-%d-%d-%06d.pb", folder_, ::getpid(), session_, step);
}

}  // namespace millrace
