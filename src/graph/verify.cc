// SPDX-License-Identifier: Apache-2.0
#include "graph/verify.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "graph/node_name.h"

namespace millrace {
namespace {

constexpr int kMaxFunctionDepth = 256;

Status VerifyEdges(const Node& n) {
  if (n.inputs().size() != n.signature().input_types.size()) {
    return InvalidArgument(n.Describe(), " takes ", n.signature().input_types.size(), " inputs, has ", n.inputs().size());
  }
  for (int i = 0; i < n.num_inputs(); ++i) {
    const Output o = n.input(i);
    if (!o) return InvalidArgument(n.Describe(), " lacks input ", i);
    if (o.index < 0 || o.index >= o.node->num_outputs()) {
      return InvalidArgument(n.Describe(), ", input ", i, ": ", o.node->Describe(), " has no output ", o.index);
    }
    const DType got = o.dtype(), want = n.input_type(i);
    if (got == DType::kInvalid || want == DType::kInvalid || got == want || BaseType(got) == want) continue;
    return InvalidArgument(n.Describe(), ", input ", i, ": got ", DTypeName(got), ", wanted ", DTypeName(want));
  }
  return absl::OkStatus();
}

// Frames, by number; 0 is the outermost.
struct Frame {
  std::string name;
  int parent = -1;
};

class FrameVerifier {
 public:
  explicit FrameVerifier(const Graph& graph) : frame_of_(static_cast<size_t>(graph.num_node_ids()), 0) {
    frames_.push_back({"", -1});
  }

  // In topological order: the frame that the outputs of `n` are in.
  Status Visit(const Node& n) {
    int frame = -1;
    const Node* first = nullptr;
    const auto meet = [&](const Node* from) {
      const int f = frame_of_[static_cast<size_t>(from->id())];
      if (first != nullptr && f != frame) {
        return InvalidArgument(n.Describe(), " has inputs from different frames: '", first->name(), "' is in '",
                               Name(frame), "', '", from->name(), "' is in '", Name(f), "'");
      }
      first = from;
      frame = f;
      return absl::OkStatus();
    };
    for (const Output& o : n.inputs()) {
      if (IsMergeOp(n.op_name()) && IsNextIterationOp(o.node->op_name())) continue;
      MR_RETURN_IF_ERROR(meet(o.node));
    }
    for (const Node* c : n.control_inputs()) MR_RETURN_IF_ERROR(meet(c));
    frame = std::max(frame, 0);
    const std::string& op = n.op_name();
    if (op == "Enter" || op == "RefEnter") {
      MR_ASSIGN_OR_RETURN(frame, Child(n, frame));
    } else if (op == "Exit" || op == "RefExit") {
      if (frame == 0) return InvalidArgument(n.Describe(), " leaves a loop that no Enter has entered");
      frame = frames_[static_cast<size_t>(frame)].parent;
    } else if (IsNextIterationOp(op) && frame == 0) {
      return InvalidArgument(n.Describe(), " is in no loop");
    }
    frame_of_[static_cast<size_t>(n.id())] = frame;
    return absl::OkStatus();
  }

  Status VisitBackEdges(const Node& merge) const {
    for (const Output& o : merge.inputs()) {
      if (!IsNextIterationOp(o.node->op_name())) continue;
      const int from = frame_of_[static_cast<size_t>(o.node->id())], to = frame_of_[static_cast<size_t>(merge.id())];
      if (from != to) {
        return InvalidArgument(merge.Describe(), " in frame '", Name(to), "' is fed by '", o.node->name(),
                               "' in frame '", Name(from), "'");
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::string_view Name(int frame) const { return frames_[static_cast<size_t>(frame)].name; }

  StatusOr<int> Child(const Node& enter, int parent) {
    MR_ASSIGN_OR_RETURN(std::string name, enter.Attr<std::string>("frame_name"));
    const auto [it, fresh] = by_name_.try_emplace(name, static_cast<int>(frames_.size()));
    if (fresh) {
      frames_.push_back({name, parent});
    } else if (const int other = frames_[static_cast<size_t>(it->second)].parent; other != parent) {
      return InvalidArgument(enter.Describe(), ": frame '", name, "' lies in '", Name(other), "' and in '", Name(parent),
                             "'");
    }
    return it->second;
  }

  std::vector<int> frame_of_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<std::string, int> by_name_;
};

// Names of the functions that a body calls or passes on.
void CollectCalls(const Graph& graph, const wire::AttrValue& attr, std::vector<absl::string_view>* out) {
  const auto add = [&](const wire::NameAttrList& f) {
    if (graph.FindFunction(f.name) != nullptr) out->push_back(f.name);
  };
  if (attr.kind == wire::AttrValue::Kind::kFunc && attr.func) add(*attr.func);
  if (attr.kind == wire::AttrValue::Kind::kList && attr.list) {
    for (const auto& f : attr.list->func) add(f);
  }
}
std::vector<absl::string_view> CallsOf(const Graph& graph, const wire::FunctionDef& def) {
  std::vector<absl::string_view> out;
  for (const wire::NodeDef& n : def.node_def) {
    if (const auto* f = graph.FindFunction(n.op)) out.push_back(f->signature->name);
    for (const auto& [name, attr] : n.attr) CollectCalls(graph, attr, &out);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

// Depth-first over the call graph with a stack of our own: no recursion, no chain deeper than the limit.
Status VerifyFunctions(const Graph& graph) {
  struct Visit {
    absl::string_view name;
    std::vector<absl::string_view> calls;
    size_t next = 0;
    int height = 1;
  };
  absl::flat_hash_map<absl::string_view, int> height;  // 0: on the stack
  for (const wire::FunctionDef* root : graph.Functions()) {
    if (height.contains(root->signature->name)) continue;
    std::vector<Visit> stack;
    const auto push = [&](const wire::FunctionDef& f) {
      height[f.signature->name] = 0;
      stack.push_back({f.signature->name, CallsOf(graph, f)});
    };
    push(*root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == top.calls.size()) {
        const int done = top.height;
        if (done > kMaxFunctionDepth) {
          return InvalidArgument("function '", top.name, "' calls functions ", done, " deep; the limit is ",
                                 kMaxFunctionDepth);
        }
        height[top.name] = done;
        stack.pop_back();
        if (!stack.empty()) stack.back().height = std::max(stack.back().height, done + 1);
        continue;
      }
      const absl::string_view callee = top.calls[top.next++];
      auto it = height.find(callee);
      if (it == height.end()) {
        push(*graph.FindFunction(callee));
      } else if (it->second == 0) {
        return InvalidArgument("function '", callee, "' calls itself, by way of '", top.name, "'");
      } else {
        top.height = std::max(top.height, it->second + 1);
      }
    }
  }
  return absl::OkStatus();
}

Status VerifyGraph(const Graph& graph) {
  for (const Node* n : graph.nodes()) {
    MR_RETURN_IF_ERROR(VerifyEdges(*n));
  }
  MR_ASSIGN_OR_RETURN(std::vector<Node*> order, TopologicalOrder(graph));
  FrameVerifier frames(graph);
  for (const Node* n : order) MR_RETURN_IF_ERROR(frames.Visit(*n));
  for (const Node* n : order) {
    if (IsMergeOp(n->op_name())) MR_RETURN_IF_ERROR(frames.VisitBackEdges(*n));
  }
  return VerifyFunctions(graph);
}

}  // namespace millrace
