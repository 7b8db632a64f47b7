// SPDX-License-Identifier: Apache-2.0
// What kernels of collective ops ask for: to do something together with the other members of a group, which are devices
// of this process or of others.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "kernel/cancellation.h"
#include "tensor/tensor.h"

namespace millrace {

enum class CollectiveKind : uint8_t { kReduce, kGather, kBroadcast };

// One member's part, once. Lives by value: nothing in it belongs to the step but `cancellation`.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kReduce;
  std::string device;  // the member
  uint64_t session = 0;
  int64_t step = 0;
  int64_t iteration = 0;  // of the loop that the node is in
  int64_t group_key = 0;
  int64_t instance_key = 0;
  int64_t group_size = 0;
  DType dtype = DType::kInvalid;
  std::string combination;  // what a reduction does, for comparison: "Add, Div"
  Tensor input;             // uninitialised: the member receives a broadcast
  PartialShape wanted;      // that the result must fit
  Allocator* allocator = nullptr;
  // Of reductions: into[i] = left[i] combined with right[i], where `into` may be `right` or `left`; what becomes of the
  // `n` values when all `group_size` are combined (may be null).
  void (*merge)(void* into, const void* left, const void* right, int64_t n) = nullptr;
  void (*finish)(void* values, int64_t n, int64_t group_size) = nullptr;
  absl::Duration timeout = absl::InfiniteDuration();
  CancellationManager* cancellation = nullptr;  // lives until `done`
};

// Thread-safe.
class CollectiveExecutor {
 public:
  // Once, on any thread, perhaps before Run returns. Members of one device's process may share the result's buffer.
  using Done = absl::AnyInvocable<void(StatusOr<Tensor>) &&>;
  virtual ~CollectiveExecutor() = default;
  virtual void Run(CollectiveCall call, Done done) = 0;
};

// A kernel that is told, before its first step, whom to ask, and what session it belongs to.
class CollectiveUser {
 public:
  virtual ~CollectiveUser() = default;
  virtual void SetExecutor(std::shared_ptr<CollectiveExecutor> executor, uint64_t session) = 0;
};

}  // namespace millrace
