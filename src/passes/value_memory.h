// SPDX-License-Identifier: Apache-2.0
// How much memory the values of a partition take while its nodes run one after the other. A value lives from the node
// that makes it to its last reader; one that is passed on (an Identity, a Reshape, the read of a variable) is the value
// that it came from. Variables, constants, arguments and what is in another memory than the device's count nothing.
#pragma once

#include <vector>

#include "base/hash_map.h"
#include "passes/cost_model.h"

namespace millrace {

class ValueMemory {
 public:
  // `device`: the position of the partition's device in PassEnvironment::devices.
  ValueMemory(const std::vector<Node*>& nodes, const PassEnvironment& env, size_t device);

  // A value with memory of its own.
  struct Value {
    Output output;
    double bytes = 0;
    std::vector<Node*> readers;  // each once; of all that it is passed on as
    bool is_kept = false;        // it is a result
  };
  const std::vector<Value>& values() const { return values_; }
  // Positions in values().
  const std::vector<int>& MadeBy(const Node* n) const { return Find(made_, n); }
  const std::vector<int>& ReadBy(const Node* n) const { return Find(read_, n); }
  int ValueOf(Output o) const;  // -1: none that counts

  // While the nodes run in this order, which has all of them.
  struct Peak {
    double bytes = 0;
    size_t at = 0;  // position in the order
  };
  Peak PeakOf(const std::vector<Node*>& order) const;

 private:
  using Lists = HashMap<const Node*, std::vector<int>>;
  static const std::vector<int>& Find(const Lists& lists, const Node* n);
  std::vector<Value> values_;
  HashMap<Output, int> value_of_;
  Lists made_, read_;
};

// The position in PassEnvironment::devices; the first where there is no such device.
size_t PositionOfDevice(const PassEnvironment& env, const std::string& device);

// "12.5 MB"
std::string BytesText(double bytes);

}  // namespace millrace
