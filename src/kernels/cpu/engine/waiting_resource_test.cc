// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/waiting_resource.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace millrace {
namespace {

using Line = WaitingResource::Line;

// Holds a number; calls add to it, or take from it what they want.
class Account final : public WaitingResource {
 public:
  std::string DebugString() const override { return "Account"; }

  // What the call ended with, once it has.
  using Result = std::shared_ptr<std::vector<Status>>;
  Result Take(int amount, Line line = Line::kTake, CancellationManager* step = nullptr) {
    return Start(
        line,
        [this, amount](Status*) {
          if (held_ < amount) return false;
          held_ -= amount;
          return true;
        },
        step);
  }
  Result Add(int amount) {
    return Start(
        Line::kNone,
        [this, amount](Status* s) {
          if (amount < 0) *s = InvalidArgument("less than nothing");
          if (s->ok()) held_ += amount;
          return true;
        },
        nullptr);
  }
  int held() const {
    return Locked([this] { return held_; });
  }

 private:
  Result Start(Line line, Attempt attempt, CancellationManager* step) {
    auto result = std::make_shared<std::vector<Status>>();
    Call(line, std::move(attempt), step, [result](Status s) { result->push_back(std::move(s)); });
    return result;
  }
  int held_ = 0;
};

TEST(WaitingResource, ALineIsServedInItsOrder) {
  const auto a = MakeRef<Account>();
  const auto large = a->Take(3), small = a->Take(1), aside = a->Take(1, Line::kNone);
  EXPECT_EQ(a->Add(-1)->at(0).code(), absl::StatusCode::kInvalidArgument);
  a->Add(1);
  EXPECT_TRUE(large->empty() && small->empty()) << "the small one waits behind the large one";
  EXPECT_EQ(aside->size(), 1u) << "it stands in no line";
  a->Add(4);
  EXPECT_EQ(large->size(), 1u);
  EXPECT_EQ(small->size(), 1u);
  EXPECT_EQ(a->held(), 0);
}

TEST(WaitingResource, ACancelledCallLetsThoseBehindItGoOn) {
  const auto a = MakeRef<Account>();
  CancellationManager step;
  const auto large = a->Take(3, Line::kTake, &step), small = a->Take(1);
  a->Add(1);
  EXPECT_TRUE(small->empty());
  step.Cancel(Cancelled("enough"));
  ASSERT_EQ(large->size(), 1u);
  EXPECT_EQ(large->at(0).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(small->size(), 1u);
  EXPECT_EQ(a->Take(1, Line::kTake, &step)->at(0).code(), absl::StatusCode::kCancelled);
}

TEST(WaitingResource, OneCancellationEndsAllCallsOfItsStep) {
  const auto a = MakeRef<Account>();
  CancellationManager step;
  std::vector<Account::Result> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(a->Take(1, i % 2 == 0 ? Line::kTake : Line::kNone, &step));
  step.Cancel(Cancelled("enough"));
  for (const auto& c : calls) EXPECT_EQ(c->size(), 1u);
}

}  // namespace
}  // namespace millrace
