// SPDX-License-Identifier: Apache-2.0
// Where a step's Sends and Recvs meet. One per step. A key is used once: the second Send of a key, or the second Recv,
// is an error. Either may come first. After Abort every waiting and later call fails with the given status.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "tensor/tensor.h"

namespace millrace {

class Rendezvous : public RefCounted {
 public:
  using DoneCallback = absl::AnyInvocable<void(const Status&, Tensor value, bool is_dead) &&>;
  virtual Status Send(absl::string_view key, Tensor value, bool is_dead) = 0;
  // `done` runs exactly once, on any thread, perhaps before RecvAsync returns; never under a lock.
  virtual void RecvAsync(absl::string_view key, DoneCallback done) = 0;
  virtual void Abort(const Status& why) = 0;
};

RefPtr<Rendezvous> NewLocalRendezvous();

}  // namespace millrace
