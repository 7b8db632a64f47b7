// SPDX-License-Identifier: Apache-2.0
// What the kernels of a step have queued on devices and what has not ended yet. Compute of such a kernel returns when
// its work is queued; the work may fail after that, and then fails the step, under the name of the node that queued it.
#pragma once

#include <vector>

#include "absl/functional/any_invocable.h"
#include "kernel/kernel.h"

namespace millrace {

// Thread-safe. One of a step, among its resources.
class LateWork : public Resource {
 public:
  // `on_failure` runs at the first failure, on the thread that reports it.
  explicit LateWork(absl::AnyInvocable<void(const Status&)> on_failure) : on_failure_(std::move(on_failure)) {}
  // Makes it the step's.
  static Status Attach(RefPtr<LateWork> work, ResourceManager& step_resources);
  // Null: the step waits for no late work (there is no step, or no device with memory of its own). It lives as long as
  // the step does.
  static LateWork* Of(const StepContext& step);

  std::string DebugString() const override { return "late work of a step"; }
  void Begin();
  // Once for each Begin. `s` names the node.
  void End(const Status& s);
  // That many calls of WhenOver will not throw.
  void Reserve(size_t calls);
  // `done` runs, with the first failure, as soon as nothing is under way; perhaps before the call returns.
  void WhenOver(absl::AnyInvocable<void(Status) &&> done);

 private:
  absl::AnyInvocable<void(const Status&)> on_failure_;
  mutable absl::Mutex mu_;
  int64_t under_way_ ABSL_GUARDED_BY(mu_) = 0;
  Status failure_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::AnyInvocable<void(Status) &&>> over_ ABSL_GUARDED_BY(mu_);
};

// `s` with the name of the node, its op, the user's line and the device; bare when there is no memory for these.
Status NamedAfter(const NodeInfo& node, const Status& s) noexcept;

}  // namespace millrace
