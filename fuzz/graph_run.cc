// SPDX-License-Identifier: Apache-2.0
#include "graph_run.h"

#include <cstdlib>
#include <vector>

#include "autodiff/gradients.h"
#include "graph/graph_def.h"
#include "graph_mutator.h"
#include "system/system.h"
#include "tensor/tensor_proto.h"

namespace millrace::fuzz {
namespace {

constexpr size_t kMaxNodes = 1024;
constexpr size_t kMaxFetches = 8;
constexpr int64_t kTimeoutMs = 200;

struct Feeds {
  std::vector<Output> outputs;
  std::vector<Tensor> values;
};

struct Plan {
  Feeds feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
};

using Values = std::vector<std::pair<std::string, Tensor>>;

// Constants outside functions become placeholders, their values feeds.
Values TakeConstants(wire::GraphDef* def) {
  Values values;
  for (wire::NodeDef& n : def->node) {
    if (n.op != "Const" || !n.attr["value"].tensor) continue;
    StatusOr<Tensor> value = TensorFromProto(*n.attr["value"].tensor);
    if (!value.ok()) continue;
    n.op = "Placeholder";
    n.attr.erase("value");
    values.emplace_back(n.name, *std::move(value));
  }
  return values;
}

Plan MakePlan(Graph& graph, const Values& values) {
  Plan plan;
  for (const auto& [name, value] : values) {
    if (Node* n = graph.Find(name); n != nullptr && n->num_outputs() == 1) {
      plan.feeds.outputs.push_back(n->output(0));
      plan.feeds.values.push_back(value);
    }
  }
  for (Node* n : graph.nodes()) {
    if (n->op() == nullptr || n->op_name() == "Placeholder") continue;
    if (n->num_outputs() == 0) {
      plan.targets.push_back(n);
    } else if ((n->consumers().empty() || n->num_inputs() == 0) && plan.fetches.size() < kMaxFetches) {
      plan.fetches.push_back(n->output(0));
    }
  }
  return plan;
}

void AddGradientFetches(Graph& graph, Outcome outcome, Plan* plan) {
  std::vector<Output> ys, xs;
  for (Output o : plan->fetches) {
    if (IsFloating(o.dtype())) ys.push_back(o);
  }
  for (Node* n : graph.nodes()) {
    const bool is_source = n->op_name() == "Const" || n->op_name() == "Placeholder";
    if (is_source && n->num_outputs() == 1 && IsFloating(n->output(0).dtype())) xs.push_back(n->output(0));
  }
  if (ys.empty() || xs.empty()) return;
  const GraphBuilder builder(&graph);
  const StatusOr<std::vector<Output>> gradients = AddDenseGradients(builder, ys, xs, {});
  outcome("gradients", gradients.status(), {});
  if (!gradients.ok()) return;
  size_t added = 0;
  for (Output g : *gradients) {
    if (g.node == nullptr || added == kMaxFetches) continue;
    plan->fetches.push_back(g);
    ++added;
  }
}

void RunPlan(Session& session, const Plan& plan, bool all_at_once, Outcome outcome) {
  wire::RunOptions options;
  options.timeout_in_ms = kTimeoutMs;
  std::vector<Tensor> out;
  const auto run = [&](absl::Span<const Output> fetches, absl::Span<Node* const> targets) {
    out.clear();
    const Status s = session.Run(&options, plan.feeds.outputs, plan.feeds.values, fetches, targets, &out, nullptr);
    outcome(fetches.empty() ? "targets" : fetches[0].node->op_name(), s, out);
  };
  if (all_at_once) {
    run(plan.fetches, plan.targets);
    run(plan.fetches, plan.targets);
    return;
  }
  for (const Output& fetch : plan.fetches) run({fetch}, {});  // one bad node must not hide the others
  if (!plan.targets.empty()) run({}, plan.targets);
}

wire::ConfigProto ConfigFor(Way way) {
  wire::ConfigProto config;
  config.isolate_session_state = true;  // each input starts without variables
  config.allow_soft_placement = true;
  if (way & kThreeDevices) config.device_count["CPU"] = 3;
  if (way & kUnoptimized) config.graph_options.Ensure().optimizer_options.Ensure().opt_level = -1;
  return config;
}

}  // namespace

Way WayOf(const wire::GraphDef& def) {
  if (!def.versions || def.versions->producer >= 0) return kPlain;
  return static_cast<Way>(-(def.versions->producer + 1) & kAllWays);
}

void SetWay(int32_t way, wire::GraphDef* def) { def->versions.Ensure().producer = -1 - (way & kAllWays); }

// Legal graphs may want more memory than there is: beyond this the allocator says so.
void LimitMemory() { setenv("MILLRACE_MEMORY_LIMIT_BYTES", "536870912", /*overwrite=*/0); }

void RunInput(absl::string_view bytes, Outcome outcome, bool may_touch_files) {
  wire::GraphDef def;
  if (!wire::Decode(bytes, &def).ok()) return;
  if (def.node.size() > kMaxNodes || (!may_touch_files && TouchesFiles(def))) return;
  const Way way = WayOf(def);
  if (def.versions && def.versions->producer < 0) def.versions->producer = 0;
  Values values;
  if (way & kFeedConstants) values = TakeConstants(&def);
  const auto graph = MakeRef<SharedGraph>(&System::Default().ops());
  Plan plan;
  {
    const GraphLock lock(&graph->mu);
    const Status s = ImportGraphDef(def, {}, &graph->graph).status();
    if (!s.ok()) return outcome("import", s, {});
    plan = MakePlan(graph->graph, values);
    if (way & kGradients) AddGradientFetches(graph->graph, outcome, &plan);
  }
  Determinism determinism;
  determinism.on = (way & kOneThread) != 0;
  auto session = System::Default().NewSession(graph, ConfigFor(way), "", determinism);
  if (session.ok()) RunPlan(**session, plan, (way & kAllAtOnce) != 0, outcome);
}

}  // namespace millrace::fuzz
