// SPDX-License-Identifier: Apache-2.0
// Transport between workers of one process: a value is handed over by reference.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "service/transport.h"

namespace millrace {

class LocalWorker;

class InProcessTransport : public Transport {
 public:
  // All workers are added before the first step; they must outlive the steps.
  void Add(LocalWorker* worker);
  void RecvAsync(absl::string_view device, int64_t step_id, absl::string_view key,
                 Rendezvous::DoneCallback done) override;

 private:
  absl::flat_hash_map<std::string, LocalWorker*> worker_of_device_;
};

}  // namespace millrace
