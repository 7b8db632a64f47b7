// SPDX-License-Identifier: Apache-2.0
#include "kernel/late_work.h"

#include <new>

#include "absl/strings/match.h"

namespace millrace {
namespace {

constexpr char kContainer[] = "_late";
constexpr char kName[] = "work";

}  // namespace

Status LateWork::Attach(RefPtr<LateWork> work, ResourceManager& step_resources) {
  return step_resources.Create<LateWork>(kContainer, kName, std::move(work));
}

LateWork* LateWork::Of(const StepContext& step) {
  if (step.step_resources == nullptr) return nullptr;
  const StatusOr<RefPtr<LateWork>> work = step.step_resources->Lookup<LateWork>(kContainer, kName);
  return work.ok() ? work->get() : nullptr;
}

void LateWork::Begin() {
  absl::MutexLock lock(&mu_);
  ++under_way_;
}

void LateWork::End(const Status& s) {
  bool is_first = false;
  if (!s.ok()) {
    absl::MutexLock lock(&mu_);
    is_first = failure_.ok();
    if (is_first) failure_ = s;
  }
  if (is_first) on_failure_(s);  // counts as under way until it has returned
  std::vector<absl::AnyInvocable<void(Status) &&>> over;
  Status failure;
  {
    absl::MutexLock lock(&mu_);
    if (--under_way_ > 0) return;
    over.swap(over_);
    failure = failure_;
  }
  for (auto& done : over) std::move(done)(failure);
}

void LateWork::Reserve(size_t calls) {
  absl::MutexLock lock(&mu_);
  over_.reserve(calls);
}

void LateWork::WhenOver(absl::AnyInvocable<void(Status) &&> done) {
  Status failure;
  {
    absl::MutexLock lock(&mu_);
    if (under_way_ > 0) {
      over_.push_back(std::move(done));
      return;
    }
    failure = failure_;
  }
  std::move(done)(std::move(failure));
}

Status NamedAfter(const NodeInfo& node, const Status& s) noexcept {
  if (absl::StrContains(s.message(), "\n\t [[node ")) return s;  // from a plan within this one
  try {
    std::string text = absl::StrCat(s.message(), "\n\t [[node ", node.name, " (", node.op->name, ")");
    if (!node.location.empty()) absl::StrAppend(&text, " defined at ", node.location);
    absl::StrAppend(&text, " on ", node.device->name(), "]]");
    return Status(s.code(), text);
  } catch (const std::bad_alloc&) {
    return s;
  }
}

}  // namespace millrace
