// SPDX-License-Identifier: Apache-2.0
// Contexts of ops that run at once: a graph and a session, in which each op that was executed stands once for every set
// of attributes and input types (its signature), with placeholders for its inputs.
#pragma once

#include "absl/synchronization/mutex.h"
#include "base/hash_map.h"
#include "capi/internal.h"
#include "tensorflow/c/eager/c_api.h"

struct TFE_ContextOptions {
  millrace::wire::ConfigProto config;
  TFE_ContextDevicePlacementPolicy policy = TFE_DEVICE_PLACEMENT_SILENT;
};

struct TFE_TensorHandle {
  millrace::Tensor tensor;
  std::string device;
};

namespace millrace::capi {

// A step that executes one op.
struct EagerStep {
  absl::InlinedVector<Output, 4> feeds;
  absl::InlinedVector<Output, 4> fetches;
  absl::InlinedVector<Node*, 1> targets;  // the op, when it gives nothing
  std::string device;                     // of what it gives
};

}  // namespace millrace::capi

struct TFE_Context {
  millrace::RefPtr<millrace::SharedGraph> shared;
  std::unique_ptr<millrace::Session> session;
  std::vector<std::string> devices;  // full names
  TFE_ContextDevicePlacementPolicy policy = TFE_DEVICE_PLACEMENT_SILENT;

  absl::Mutex mu;
  millrace::HashMap<std::string, std::unique_ptr<const millrace::capi::EagerStep>> steps ABSL_GUARDED_BY(mu);

  // The step of an op with inputs of these types.
  millrace::StatusOr<const millrace::capi::EagerStep*> FindStep(const TFE_Op& op);
  // The full name that `device`, which may be partial, means.
  millrace::StatusOr<std::string> FindDevice(absl::string_view device) const;

 private:
  millrace::StatusOr<std::unique_ptr<const millrace::capi::EagerStep>> MakeStep(const TFE_Op& op);
};

struct TFE_Op {
  TFE_Context* context = nullptr;
  TF_OperationDescription desc;  // all but the inputs
  std::vector<TFE_TensorHandle> inputs;
};
