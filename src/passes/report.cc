// SPDX-License-Identifier: Apache-2.0
#include "passes/report.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "op/op_cost.h"
#include "passes/value_memory.h"

namespace millrace {
namespace {

constexpr size_t kMostHolders = 20;
constexpr size_t kMostToldHolders = 8;  // in a text

double BytesOfVariable(const Node& n) {
  if (!n.Is(OpTrait::kMakesVariable)) return 0;
  const StatusOr<PartialShape> shape = n.Attr<PartialShape>("shape");
  const StatusOr<DType> dtype = n.Attr<DType>("dtype");
  return shape.ok() && dtype.ok() && shape->IsFullyDefined() ? EstimateBytes(*dtype, *shape) : 0;
}

bool HasLoop(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* n) {
    return n->control_op() == ControlOp::kEnter || n->control_op() == ControlOp::kNextIteration;
  });
}

// {"name": value, ...}, whose values are JSON already.
std::string Object(std::initializer_list<std::pair<const char*, std::string>> members) {
  return absl::StrCat(
      "{",
      absl::StrJoin(members, ", ",
                    [](std::string* out, const auto& member) {
                      absl::StrAppend(out, "\"", member.first, "\": ", member.second);
                    }),
      "}");
}
template <typename Items, typename ToJson>
std::string Array(const Items& items, ToJson to_json) {
  return absl::StrCat(
      "[", absl::StrJoin(items, ", ", [&](std::string* out, const auto& item) { absl::StrAppend(out, to_json(item)); }),
      "]");
}
std::string Number(int64_t n) { return absl::StrCat(n); }
std::string Bytes(double bytes) { return absl::StrFormat("%.0f", bytes); }

std::string StageJson(const StageReport& s) {
  return Object(
      {{"name", JsonQuoted(s.name)},
       {"ran", s.ran ? "true" : "false"},
       {"microseconds", absl::StrFormat("%.3f", static_cast<double>(s.nanos) / 1e3)},
       {"nodes_after", Number(s.nodes)},
       {"gone", Array(s.gone, JsonQuoted)},
       {"added", Array(s.added, JsonQuoted)},
       {"did", Array(s.did, JsonQuoted)}});
}

std::string PartitionJson(const Partition& p) {
  return Object({{"device", JsonQuoted(p.device)},
                 {"nodes", Number(static_cast<int64_t>(p.graph->nodes().size()))},
                 {"loops", Array(p.loops, [](const auto& named) {
                    const auto& [node, loop] = named;
                    return Object(
                        {{"node", JsonQuoted(node)},
                         {"loop", JsonQuoted(loop.name)},
                         {"nodes_an_iteration", Number(static_cast<int64_t>(loop.body->nodes().size()))},
                         {"nodes_of_condition", Number(static_cast<int64_t>(loop.predicate->nodes().size()))}});
                  })}});
}

std::string PlacedJson(const PlacedNode& n) {
  return Object({{"node", JsonQuoted(n.name)},
                 {"op", JsonQuoted(n.op)},
                 {"device", JsonQuoted(n.device)},
                 {"reason", JsonQuoted(n.reason)}});
}

std::string MemoryJson(const MemoryReport& m) {
  const auto holder = [](const MemoryReport::Holder& h) {
    return Object({{"node", JsonQuoted(h.node)}, {"op", JsonQuoted(h.op)}, {"bytes", Bytes(h.bytes)}});
  };
  return Object({{"device", JsonQuoted(m.device)},
                 {"variable_bytes", Bytes(m.variable_bytes)},
                 {"peak_bytes", Bytes(m.peak_bytes)},
                 {"peak_at", JsonQuoted(m.peak_at)},
                 {"holders", Array(m.holders, holder)}});
}

std::string CutJson(const WorkersCut& c) {
  return Object({{"task", JsonQuoted(c.task)},
                 {"segments", Number(c.segments)},
                 {"longest", Number(c.longest)},
                 {"single_nodes", Number(c.single_nodes)}});
}

}  // namespace

StatusOr<std::vector<MemoryReport>> MemoryOf(const std::vector<Partition>& partitions, const PassEnvironment& env) {
  std::vector<MemoryReport> all;
  for (const Partition& p : partitions) {
    if (HasLoop(*p.graph)) continue;
    MemoryReport& told = all.emplace_back();
    told.device = p.device;
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(*p.graph));
    for (const Node* n : order) told.variable_bytes += BytesOfVariable(*n);
    const ValueMemory memory(order, env, PositionOfDevice(env, p.device));
    const ValueMemory::Peak peak = memory.PeakOf(order);
    told.peak_bytes = peak.bytes;
    if (peak.bytes == 0) continue;
    told.peak_at = order[peak.at]->name();
    HashMap<const Node*, size_t> place;
    for (size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
    for (const ValueMemory::Value& v : memory.values()) {
      const bool is_read_later = std::any_of(
          v.readers.begin(), v.readers.end(), [&](const Node* reader) { return place.at(reader) >= peak.at; });
      const size_t made = place.at(v.output.node);
      const bool lives = made <= peak.at && (v.is_kept || is_read_later || made == peak.at);
      if (lives && v.bytes > 0) told.holders.push_back({v.output.node->name(), v.output.node->op_name(), v.bytes});
    }
    std::stable_sort(
        told.holders.begin(), told.holders.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    if (told.holders.size() > kMostHolders) told.holders.resize(kMostHolders);
  }
  return all;
}

// Every node with its place and reason; where there is one device, only those nodes of which something else is to be
// said.
static void AppendPlaces(const std::vector<PlacedNode>& placed, std::string* text) {
  if (placed.empty()) return;
  const std::string& first = placed.front().device;
  const bool is_one = std::all_of(placed.begin(), placed.end(), [&](const PlacedNode& n) { return n.device == first; });
  absl::StrAppend(text, "\n");
  if (is_one) absl::StrAppend(text, placed.size(), " nodes are on ", first, ", the only device of the step\n");
  for (const PlacedNode& n : placed) {
    const bool is_plain = n.reason == "the client's" || absl::EndsWith(n.reason, "the only device");
    if (!is_one || !is_plain) absl::StrAppend(text, n.ToString(), "\n");
  }
}

// "2 gone: a, b; 1 new: c", with the first names alone where there are many.
static std::string ChangeOf(const StageReport& s) {
  static constexpr size_t kMostNames = 3;
  const auto change = [](const std::vector<std::string>& names, absl::string_view what) -> std::string {
    if (names.empty()) return "";
    const size_t shown = std::min(names.size(), kMostNames);
    return absl::StrCat(names.size(), " ", what, ": ", absl::StrJoin(absl::MakeConstSpan(names).first(shown), ", "),
                        shown < names.size() ? ", ..." : "");
  };
  const std::string gone = change(s.gone, "gone"), added = change(s.added, "new");
  return absl::StrCat(gone, gone.empty() || added.empty() ? "" : "; ", added);
}

std::string ReportText(const CompileReport& report, const std::vector<Partition>& partitions) {
  std::string text = absl::StrFormat("%-28s %10s %10s\n", "stage", "us", "nodes");
  std::vector<std::string> did;
  for (const StageReport& s : report.stages) {
    const std::string time = s.ran ? absl::StrFormat("%.1f", static_cast<double>(s.nanos) / 1e3) : "off";
    const std::string change = ChangeOf(s);
    absl::StrAppendFormat(&text, "%-28s %10s %10d%s%s\n", s.name, time, s.nodes, change.empty() ? "" : "  ", change);
    did.insert(did.end(), s.did.begin(), s.did.end());
  }
  for (const Partition& p : partitions) {
    absl::StrAppend(&text, "\npartition on ", p.device, ": ", p.graph->nodes().size(), " nodes\n");
    for (const auto& [name, loop] : p.loops) {
      absl::StrAppend(&text, "  ", name, " is the loop '", loop.name, "': ", loop.body->nodes().size(),
                      " nodes an iteration, ", loop.predicate->nodes().size(), " for its condition\n");
    }
  }
  if (!did.empty()) absl::StrAppend(&text, "\n", absl::StrJoin(did, "\n"), "\n");
  for (const MemoryReport& m : report.memory) {
    absl::StrAppend(&text, "\nmemory on ", m.device, ": ", BytesText(m.variable_bytes), " of variables, and at most ",
                    BytesText(m.peak_bytes), " of other values");
    if (!m.peak_at.empty()) absl::StrAppend(&text, ", at ", m.peak_at);
    absl::StrAppend(&text, "\n");
    for (const MemoryReport::Holder& h :
         absl::MakeSpan(m.holders).first(std::min(m.holders.size(), kMostToldHolders))) {
      absl::StrAppend(&text, "  ", h.node, " (", h.op, ") holds ", BytesText(h.bytes), "\n");
    }
  }
  for (const WorkersCut& c : report.cuts) {
    absl::StrAppend(&text, "\nplan on ", c.task, ": ", c.segments, " segments, the longest of ", c.longest,
                    " nodes, and ", c.single_nodes, " nodes by themselves\n");
  }
  if (!report.refusal.empty()) absl::StrAppend(&text, "\nworkers refuse it: ", report.refusal, "\n");
  AppendPlaces(report.placement, &text);
  return text;
}

std::string ReportJson(const CompileReport& report, const std::vector<Partition>& partitions) {
  return Object(
      {{"stages", Array(report.stages, StageJson)},
       {"partitions", Array(partitions, PartitionJson)},
       {"memory", Array(report.memory, MemoryJson)},
       {"plans", Array(report.cuts, CutJson)},
       {"refusal", report.refusal.empty() ? "null" : JsonQuoted(report.refusal)},
       {"placement", Array(report.placement, PlacedJson)}});
}

}  // namespace millrace
