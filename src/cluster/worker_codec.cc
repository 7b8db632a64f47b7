// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker_codec.h"

#include <algorithm>

#include "cluster/graph_codec.h"

namespace millrace {
namespace {

// The number of arguments and results of a graph, which are numbered from 0, each once.
StatusOr<std::pair<size_t, size_t>> CheckArguments(const Graph& graph) {
  std::vector<int64_t> args, retvals;
  for (const Node* n : graph.nodes()) {
    if (!n->Is(OpTrait::kArgument) && !n->Is(OpTrait::kResult)) continue;
    MR_ASSIGN_OR_RETURN(const int64_t index, n->Attr<int64_t>("index"));
    (n->Is(OpTrait::kArgument) ? args : retvals).push_back(index);
  }
  for (std::vector<int64_t>* list : {&args, &retvals}) {
    std::sort(list->begin(), list->end());
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i] != static_cast<int64_t>(i)) {
        return InvalidArgument("the arguments and results of a partition must be numbered from 0, each once");
      }
    }
  }
  return std::pair(args.size(), retvals.size());
}

Status CheckLoop(const CollapsedLoop& loop, const Node& node) {
  if (!loop.predicate || !loop.body) return InvalidArgument(node.Describe(), " lacks a predicate or a body");
  MR_ASSIGN_OR_RETURN(const auto predicate, CheckArguments(*loop.predicate));
  MR_ASSIGN_OR_RETURN(const auto body, CheckArguments(*loop.body));
  const size_t inputs = static_cast<size_t>(node.num_inputs());
  if (loop.num_variables > inputs || body.second != loop.num_variables || predicate.second < 1 ||
      predicate.first != loop.predicate_args.size() || body.first != loop.body_args.size() ||
      loop.results.size() != static_cast<size_t>(node.num_outputs())) {
    return InvalidArgument(node.Describe(), ": the loop's variables, arguments and results do not fit each other");
  }
  const auto is_there = [&](bool within_body) {
    return [&, within_body](const LoopValue& v) {
      size_t n = 0;
      switch (v.kind) {
        case LoopValue::Kind::kVariable: n = loop.num_variables; break;
        case LoopValue::Kind::kInvariant: n = inputs - loop.num_variables; break;
        case LoopValue::Kind::kComputed: n = within_body ? predicate.second - 1 : 0; break;
      }
      return v.index >= 0 && static_cast<size_t>(v.index) < n;
    };
  };
  if (std::all_of(loop.predicate_args.begin(), loop.predicate_args.end(), is_there(false)) &&
      std::all_of(loop.body_args.begin(), loop.body_args.end(), is_there(true)) &&
      std::all_of(loop.results.begin(), loop.results.end(), is_there(true))) {
    return absl::OkStatus();
  }
  return InvalidArgument(node.Describe(), ": the loop refers to a value that it does not have");
}

Status CheckPartition(const Partition& p) {
  if (!p.graph) return InvalidArgument("a partition for ", p.device, " has no graph");
  MR_RETURN_IF_ERROR(CheckArguments(*p.graph).status());
  std::vector<const Graph*> graphs = {p.graph.get()};
  for (const auto& [name, loop] : p.loops) {
    for (const Graph* g : {loop.predicate.get(), loop.body.get()}) {
      if (g != nullptr) graphs.push_back(g);
    }
  }
  for (const auto& [name, loop] : p.loops) {
    const Node* node = nullptr;
    for (const Graph* g : graphs) {
      if (node == nullptr) node = g->Find(name);
    }
    if (node == nullptr) return InvalidArgument("a partition has a loop '", name, "', but no such node");
    MR_RETURN_IF_ERROR(CheckLoop(loop, *node));
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckMessage(const RegisterPartitionsRequest& m) {
  for (const PartitionToRegister& p : m.partitions) MR_RETURN_IF_ERROR(CheckPartition(p.partition));
  return absl::OkStatus();
}

void VisitGraph(WireEncoder& v, uint32_t number, std::unique_ptr<Graph>& graph) {
  if (!graph) return;
  StatusOr<std::string> bytes = EncodeGraph(*graph);
  bytes.ok() ? v.PutBytes(number, *bytes) : v.Fail(bytes.status());
}

void VisitGraph(WireDecoder& v, uint32_t number, std::unique_ptr<Graph>& graph) {
  if (!v.IsAt(number)) return;
  const absl::string_view bytes = v.bytes();
  if (!v.IsAt(number)) return;
  if (v.registry() == nullptr) return v.Fail(Internal("a graph came where messages have none"));
  StatusOr<std::unique_ptr<Graph>> made = DecodeGraph(bytes, *v.registry());
  made.ok() ? void(graph = *std::move(made)) : v.Fail(made.status());
}

void VisitRetvals(WireEncoder& v, uint32_t number, std::vector<std::vector<Tensor>>& retvals) {
  std::vector<PartRetvals> parts;
  for (const std::vector<Tensor>& values : retvals) parts.push_back({values});
  v(number, parts);
}

void VisitRetvals(WireDecoder& v, uint32_t number, std::vector<std::vector<Tensor>>& retvals) {
  std::vector<PartRetvals> one;
  v(number, one);
  for (PartRetvals& part : one) retvals.push_back(std::move(part.values));
}

void VisitPlans(WireEncoder& v, uint32_t number, std::vector<std::shared_ptr<const TracedPlan>>& plans) {
  for (const auto& plan : plans) {
    std::vector<TracedPlan> one = {*plan};
    v(number, one);
  }
}

void VisitPlans(WireDecoder& v, uint32_t number, std::vector<std::shared_ptr<const TracedPlan>>& plans) {
  std::vector<TracedPlan> one;
  v(number, one);
  for (TracedPlan& plan : one) {
    v.Fail(plan.MakeLabels());
    plans.push_back(std::make_shared<const TracedPlan>(std::move(plan)));
  }
}

}  // namespace millrace
