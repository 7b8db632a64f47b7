// SPDX-License-Identifier: Apache-2.0
#include "passes/value_memory.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace millrace {

ValueMemory::ValueMemory(const std::vector<Node*>& nodes, const PassEnvironment& env, size_t device) {
  const CostModel costs(env);
  const bool own_memory = device < env.own_memory.size() && env.own_memory[device];
  for (Node* n : nodes) {  // sources first, back edges aside
    if (costs.SharesItsInput(*n) && n->input(0)) {
      const int from = ValueOf(n->input(0));
      for (int o = 0; from >= 0 && o < n->num_outputs(); ++o) value_of_.emplace(n->output(o), from);
    } else if (!n->Is(OpTrait::kMakesVariable) && !n->Is(OpTrait::kConstant) && !n->Is(OpTrait::kArgument)) {
      ArgMemory memory;
      if (own_memory) memory = env.memory_of(*n, env.devices[device].type);
      for (int o = 0; o < n->num_outputs(); ++o) {
        const bool elsewhere =
            static_cast<size_t>(o) < memory.host_outputs.size() && memory.host_outputs[static_cast<size_t>(o)];
        const double bytes = elsewhere || IsRef(n->output_type(o)) ? 0 : costs.Bytes(n->output(o));
        if (bytes == 0) continue;
        value_of_.emplace(n->output(o), static_cast<int>(values_.size()));
        made_[n].push_back(static_cast<int>(values_.size()));
        values_.push_back({n->output(o), bytes, {}, false});
      }
    }
    for (const Output in : n->inputs()) {
      const int v = in ? ValueOf(in) : -1;
      if (v < 0) continue;
      Value& value = values_[static_cast<size_t>(v)];
      value.is_kept |= n->Is(OpTrait::kResult);
      if (!value.readers.empty() && value.readers.back() == n) continue;
      value.readers.push_back(n);
      read_[n].push_back(v);
    }
  }
}

const std::vector<int>& ValueMemory::Find(const Lists& lists, const Node* n) {
  static const std::vector<int> none;
  const auto at = lists.find(n);
  return at == lists.end() ? none : at->second;
}

int ValueMemory::ValueOf(Output o) const {
  const auto at = value_of_.find(o);
  return at == value_of_.end() ? -1 : at->second;
}

ValueMemory::Peak ValueMemory::PeakOf(const std::vector<Node*>& order) const {
  std::vector<size_t> left(values_.size());
  for (size_t v = 0; v < values_.size(); ++v) left[v] = values_[v].readers.size();
  double now = 0;
  Peak peak;
  for (size_t k = 0; k < order.size(); ++k) {
    for (const int v : MadeBy(order[k])) now += values_[static_cast<size_t>(v)].bytes;
    if (now > peak.bytes) peak = {now, k};
    const auto end = [&](int v) {
      if (!values_[static_cast<size_t>(v)].is_kept) now -= values_[static_cast<size_t>(v)].bytes;
    };
    for (const int v : MadeBy(order[k])) {
      if (left[static_cast<size_t>(v)] == 0) end(v);
    }
    for (const int v : ReadBy(order[k])) {
      if (--left[static_cast<size_t>(v)] == 0) end(v);
    }
  }
  return peak;
}

size_t PositionOfDevice(const PassEnvironment& env, const std::string& device) {
  for (size_t d = 0; d < env.devices.size(); ++d) {
    if (env.devices[d].ToString() == device) return d;
  }
  return 0;
}

std::string BytesText(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.1f kB", bytes / 1e3);
  return bytes < 1e9 ? absl::StrFormat("%.2f MB", bytes / 1e6) : absl::StrFormat("%.2f GB", bytes / 1e9);
}

}  // namespace millrace
