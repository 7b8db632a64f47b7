// SPDX-License-Identifier: Apache-2.0
// Workers of this process, which speak to each other by call: values are handed over by reference.
#pragma once

#include <map>
#include <string>

#include "service/worker_interface.h"

namespace millrace {

class LocalDirectory final : public WorkerDirectory {
 public:
  // All workers are added before the first step; they must outlive the steps.
  void Add(WorkerInterface* worker) { workers_.emplace(worker->task(), worker); }
  WorkerInterface* Find(absl::string_view task) override {
    const auto at = workers_.find(task);
    return at == workers_.end() ? nullptr : at->second;
  }

 private:
  std::map<std::string, WorkerInterface*, std::less<>> workers_;
};

}  // namespace millrace
