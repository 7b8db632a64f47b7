// SPDX-License-Identifier: Apache-2.0
// Gives each edge between partitions a number, which is its name at the workers.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/types/span.h"
#include "service/worker_messages.h"

namespace millrace {

class EdgeNumbers {
 public:
  // Sets the attribute kEdgeAttr of every Send and Recv. `source_of` says who sends what the device sends: filled into
  // PartitionToRegister::sources for edges from another task than the partition's.
  Status Assign(absl::Span<PartitionToRegister> partitions,
                const std::function<StatusOr<PartitionToRegister::Source>(const std::string& device)>& source_of);
  // The number under which the client of a partial run gives or takes the tensor of that name (ClientTensorName).
  // NotFound: no partition has it.
  StatusOr<int64_t> OfClientTensor(const std::string& name) const;

 private:
  // From a device to a device, by the name of the tensor.
  using Edge = std::tuple<std::string, std::string, std::string>;
  std::map<Edge, int64_t> numbers_;
  std::map<std::string, int64_t> client_tensors_;
};

}  // namespace millrace
