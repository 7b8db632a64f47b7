// SPDX-License-Identifier: Apache-2.0
#include "service/edge_numbers.h"

namespace millrace {
namespace {

// So that a message goes through a socket as it is. Larger values wait to be asked for: who sends one keeps it until
// it is received for certain.
constexpr int64_t kMostPushedBytes = 30 << 10;

bool IsPushed(const Node& recv) {
  const DType type = recv.output_type(0);
  const int64_t elements = recv.shape(0).num_elements();
  return IsPlain(type) && elements >= 0 && elements <= kMostPushedBytes / static_cast<int64_t>(DTypeSize(type));
}

}  // namespace

Status EdgeNumbers::Assign(
    absl::Span<PartitionToRegister> partitions,
    const std::function<StatusOr<PartitionToRegister::Peer>(const std::string& device)>& owner_of) {
  std::map<int64_t, bool> pushed;  // by edge between tasks
  std::vector<std::pair<PartitionToRegister*, PartitionToRegister::Peer>> receivers;
  for (PartitionToRegister& p : partitions) {
    MR_ASSIGN_OR_RETURN(const PartitionToRegister::Peer here, owner_of(p.partition.device));
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
      if (of_client) continue;
      MR_ASSIGN_OR_RETURN(PartitionToRegister::Peer peer, owner_of(receives ? from : to));
      if (peer.task == here.task) continue;
      peer.edge = at->second;
      if (receives) {
        peer.is_pushed = pushed[peer.edge] = IsPushed(*n);
        p.peers.push_back(std::move(peer));
      } else {
        receivers.emplace_back(&p, std::move(peer));
      }
    }
  }
  for (auto& [sender, peer] : receivers) {
    peer.is_pushed = pushed[peer.edge];
    if (peer.is_pushed) sender->peers.push_back(std::move(peer));
  }
  return absl::OkStatus();
}

StatusOr<int64_t> EdgeNumbers::OfClientTensor(const std::string& name) const {
  const auto at = client_tensors_.find(name);
  if (at == client_tensors_.end()) return NotFound("no partition gives or takes '", name, "'");
  return at->second;
}

}  // namespace millrace
