// SPDX-License-Identifier: Apache-2.0
#include "service/edge_numbers.h"

namespace millrace {

Status EdgeNumbers::Assign(
    absl::Span<PartitionToRegister> partitions,
    const std::function<StatusOr<PartitionToRegister::Source>(const std::string& device)>& source_of) {
  for (PartitionToRegister& p : partitions) {
    MR_ASSIGN_OR_RETURN(const PartitionToRegister::Source here, source_of(p.partition.device));
    for (Node* n : p.partition.graph->nodes()) {
      if (!n->Is(OpTrait::kTransfer)) continue;
      MR_ASSIGN_OR_RETURN(const std::string from, n->Attr<std::string>("send_device"));
      MR_ASSIGN_OR_RETURN(const std::string to, n->Attr<std::string>("recv_device"));
      MR_ASSIGN_OR_RETURN(const std::string name, n->Attr<std::string>("tensor_name"));
      MR_ASSIGN_OR_RETURN(const bool of_client, n->Attr<bool>("client_terminated"));
      const auto [at, is_new] = numbers_.try_emplace({from, to, name}, static_cast<int64_t>(numbers_.size()));
      n->SetAttr(kEdgeAttr, at->second);
      if (of_client) client_tensors_.emplace(name, at->second);
      const bool receives = n->num_outputs() > 0;
      if (of_client || !receives) continue;
      MR_ASSIGN_OR_RETURN(PartitionToRegister::Source source, source_of(from));
      if (source.task == here.task) continue;
      source.edge = at->second;
      p.sources.push_back(std::move(source));
    }
  }
  return absl::OkStatus();
}

StatusOr<int64_t> EdgeNumbers::OfClientTensor(const std::string& name) const {
  const auto at = client_tensors_.find(name);
  if (at == client_tensors_.end()) return NotFound("no partition gives or takes '", name, "'");
  return at->second;
}

}  // namespace millrace
