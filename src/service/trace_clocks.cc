// SPDX-License-Identifier: Apache-2.0
#include "service/trace_clocks.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/stopwatch.h"
#include "service/awaited.h"

namespace millrace {
namespace {

constexpr int kQuestions = 3;
constexpr absl::Duration kPatience = absl::Seconds(1);

bool IsOf(const StepRecord& record, absl::string_view task) {
  if (record.is_of_this_process || record.plans.empty()) return false;
  absl::string_view device = record.plans.front()->device;
  return absl::ConsumePrefix(&device, task) && absl::StartsWith(device, "/");
}

// By how many nanoseconds the worker's clock is ahead; 0: by no more than cannot be told.
int64_t Lead(WorkerInterface& worker, Env& env) {
  int64_t lead = 0, shortest = INT64_MAX;
  for (int i = 0; i < kQuestions; ++i) {
    const auto awaited = std::make_shared<Awaited<GetStatusResponse>>();
    const int64_t asked = RealNanos();
    worker.GetStatus({}, {}, [awaited](StatusOr<GetStatusResponse> got) { awaited->Give(std::move(got)); });
    const StatusOr<GetStatusResponse> status =
        awaited->Wait(env, kPatience, [] { return DeadlineExceeded("the worker does not tell its time"); });
    if (!status.ok() || status->clock_nanos == 0) return 0;
    const int64_t took = RealNanos() - asked;
    if (took >= shortest) continue;
    shortest = took;
    lead = status->clock_nanos - (asked + took / 2);
  }
  return std::abs(lead) <= shortest / 2 + 1 ? 0 : lead;
}

void SetBack(StepRecord& record, int64_t lead) {
  for (StepRecord::Run& run : record.runs) {
    run.start_nanos -= lead;
    run.end_nanos -= lead;
  }
  for (HelpPart& part : record.parts) {
    part.asked_nanos -= lead;
    part.start_nanos -= lead;
    part.end_nanos -= lead;
  }
}

}  // namespace

void AlignClocks(absl::Span<const std::pair<WorkerInterface*, SessionRef>> workers, Env& env,
                 std::vector<StepRecord>* records) {
  for (const auto& [worker, session] : workers) {
    std::vector<StepRecord*> its;
    for (StepRecord& record : *records) {
      if (IsOf(record, worker->task())) its.push_back(&record);
    }
    if (its.empty()) continue;
    const int64_t lead = Lead(*worker, env);
    for (StepRecord* record : its) SetBack(*record, lead);
  }
}

}  // namespace millrace
