// SPDX-License-Identifier: Apache-2.0
#include "service/trace_clocks.h"

#include <gtest/gtest.h>

#include "base/stopwatch.h"
#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A worker on a machine whose clock is ahead.
class AheadWorker final : public ForwardingWorker {
 public:
  AheadWorker(std::string task, int64_t lead) : ForwardingWorker(std::move(task)), lead_(lead) {}
  void GetStatus(const CallOptions&, GetStatusRequest, Reply<GetStatusResponse> reply) override {
    ++asked;
    if (!answers) return;
    GetStatusResponse response;
    response.clock_nanos = RealNanos() + lead_;
    std::move(reply)(std::move(response));
  }

  int asked = 0;
  bool answers = true;

 private:
  const int64_t lead_;
};

StepRecord RecordOf(const std::string& task, int64_t start) {
  StepRecord record;
  auto plan = std::make_shared<TracedPlan>();
  plan->device = task + "/device:CPU:0";
  plan->nodes.resize(1);
  record.plans.push_back(std::move(plan));
  StepRecord::Run& run = record.runs.emplace_back();
  run.start_nanos = start;
  run.end_nanos = start + 10;
  record.parts.push_back({0, start + 1, start + 2, start + 3});
  return record;
}

class TraceClocksTest : public ::testing::Test {
 protected:
  void Align() {
    AlignClocks({{&ahead_, {}}, {&same_, {}}, {&silent_, {}}, {&behind_, {}}}, Env::Default(), &records_);
  }
  AheadWorker ahead_{"/job:w/replica:0/task:1", 1000 * kSecond}, behind_{"/job:w/replica:0/task:11", -7 * kSecond};
  AheadWorker same_{"/job:w/replica:0/task:2", 0}, silent_{"/job:w/replica:0/task:3", kSecond};
  std::vector<StepRecord> records_;
};

TEST_F(TraceClocksTest, TimesOfOtherMachinesAreBroughtOntoThisClock) {
  const int64_t now = RealNanos();
  records_.push_back(RecordOf(ahead_.task(), now + 1000 * kSecond));
  records_.push_back(RecordOf(behind_.task(), now - 7 * kSecond));
  records_.push_back(RecordOf(same_.task(), now));
  Align();
  for (const StepRecord& record : records_) {
    const int64_t start = record.runs[0].start_nanos;
    EXPECT_LT(std::abs(start - now), kSecond) << record.plans[0]->device;
    EXPECT_EQ(record.runs[0].end_nanos, start + 10);
    EXPECT_EQ(record.parts[0].asked_nanos, start + 1);
    EXPECT_EQ(record.parts[0].start_nanos, start + 2);
    EXPECT_EQ(record.parts[0].end_nanos, start + 3);
  }
  EXPECT_EQ(records_[2].runs[0].start_nanos, now) << "what may be the same clock is not touched";
  EXPECT_EQ(silent_.asked, 0) << "it has no part in the step";
}

TEST_F(TraceClocksTest, WhoDoesNotTellItsTimeIsLeftAlone) {
  silent_.answers = false;
  records_.push_back(RecordOf(silent_.task(), 5));
  records_.push_back(RecordOf(ahead_.task(), 5));
  records_.back().is_of_this_process = true;
  Align();
  EXPECT_EQ(records_[0].runs[0].start_nanos, 5);
  EXPECT_EQ(silent_.asked, 1);
  EXPECT_EQ(records_[1].runs[0].start_nanos, 5);
  EXPECT_EQ(ahead_.asked, 0);
}

}  // namespace
}  // namespace millrace
