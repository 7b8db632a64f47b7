// SPDX-License-Identifier: Apache-2.0
// What a traced step records: one entry a node run. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernel/kernel.h"

namespace millrace {

struct NodeTrace {
  std::string node;
  std::string op;
  std::string device;
  int64_t start_nanos = 0;  // as RealNanos says
  int64_t end_nanos = 0;
  uint32_t thread = 0;
  struct OutputTrace {
    DType dtype;
    Shape shape;
    int64_t bytes;
  };
  std::vector<OutputTrace> outputs;
};

class StepTrace {
 public:
  void Add(NodeTrace t) {
    absl::MutexLock lock(&mu_);
    nodes_.push_back(std::move(t));
  }
  std::vector<NodeTrace> Take() {
    absl::MutexLock lock(&mu_);
    return std::move(nodes_);
  }

 private:
  absl::Mutex mu_;
  std::vector<NodeTrace> nodes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
