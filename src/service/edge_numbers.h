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
  // Sets the attribute kEdgeAttr of every Send and Recv. `owner_of` says whose the device is: filled into
  // PartitionToRegister::peers for edges from another task than the partition's, and to another where values are
  // pushed: those whose size is known and small.
  Status Assign(absl::Span<PartitionToRegister> partitions,
                const std::function<StatusOr<PartitionToRegister::Peer>(const std::string& device)>& owner_of);
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
