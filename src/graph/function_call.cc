// SPDX-License-Identifier: Apache-2.0
// A body is turned into a GraphDef (attributes bound, "node:output:index" made "node:k") that ImportGraphDef adds with
// the arguments as its input map: so a body is checked as any other input is.
#include "graph/function_call.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "graph/control_depth.h"
#include "graph/graph_def.h"
#include "graph/inline_calls.h"
#include "graph/unknown_op.h"

namespace millrace {
namespace {

// The value with every placeholder replaced by the attribute of the call.
Status Bind(const wire::Map<std::string, wire::AttrValue>& call, wire::AttrValue* v, int depth) {
  using Kind = wire::AttrValue::Kind;
  if (depth > 32) return InvalidArgument("attributes are nested too deep");
  const auto bind_all = [&](wire::NameAttrList& f) {
    for (auto& [name, value] : f.attr) MR_RETURN_IF_ERROR(Bind(call, &value, depth + 1));
    return absl::OkStatus();
  };
  if (v->kind == Kind::kPlaceholder) {
    auto it = call.find(v->placeholder);
    if (it == call.end()) return InvalidArgument("the call does not give attribute '", v->placeholder, "'");
    *v = wire::AttrValue(it->second);
  } else if (v->kind == Kind::kFunc && v->func) {
    return bind_all(*v->func);
  } else if (v->kind == Kind::kList && v->list) {
    for (wire::NameAttrList& f : v->list->func) MR_RETURN_IF_ERROR(bind_all(f));
  }
  return absl::OkStatus();
}

class Instantiation {
 public:
  Instantiation(const CallSpec& call, Graph* graph) : call_(call), graph_(graph) {}

  StatusOr<FunctionBody> Run() {
    function_ = graph_->FindFunction(call_.function);
    const OpDef* op = graph_->FindOp(call_.function);
    if (function_ == nullptr || op == nullptr) return NotFound("function '", call_.function, "' is not in the library");
    AttrMap attrs = call_.attrs;
    MR_RETURN_IF_ERROR(CompleteAttrs(*op, &attrs, nullptr));
    for (const AttrDef& a : op->attrs) {
      MR_ASSIGN_OR_RETURN(bound_[a.name], AttrToProto(attrs.find(a.name)->second));
    }
    MR_ASSIGN_OR_RETURN(signature_, ResolveSignature(*op, attrs));
    if (signature_.input_types.size() != call_.inputs.size()) {
      return InvalidArgument("takes ", signature_.input_types.size(), " inputs, got ", call_.inputs.size());
    }
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const DType got = BaseType(call_.inputs[i].dtype()), want = signature_.input_types[i];
      if (got == want || got == DType::kInvalid) continue;
      return InvalidArgument(
          "argument ", i, " is ", DTypeName(want), ", got ", DTypeName(got), " from ", call_.inputs[i].ToString());
    }
    MR_RETURN_IF_ERROR(DefineArguments(*op));
    MR_RETURN_IF_ERROR(DefineNodes());
    for (wire::NodeDef& n : body_.node) MR_RETURN_IF_ERROR(ResolveInputs(&n));
    MR_RETURN_IF_ERROR(ResolveResults(*op));
    return Add();
  }

 private:
  // Outputs of an argument or node: "node:k" for k in [begin, end).
  struct Values {
    std::string node;
    int begin = 0;
    int end = 0;
  };

  Status DefineArguments(const OpDef& op) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const ArgRange range = signature_.input_args[i];
      const std::string& name = op.inputs[i].name;
      values_[name] = {name, 0, range.end - range.begin};
      arguments_.insert(name);
      for (int k = range.begin; k < range.end; ++k) {
        const Output in = call_.inputs[static_cast<size_t>(k)];
        options_.input_map[absl::StrCat(name, ":", k - range.begin)] = in;
        options_.control_map[name] = in.node;
      }
    }
    return absl::OkStatus();
  }

  Status DefineNodes() {
    body_.versions.Ensure() = graph_->versions();
    body_.node = function_->node_def;
    for (wire::NodeDef& n : body_.node) {
      const auto in_node = [&n](const Status& s) { return Annotate(s, absl::StrCat("node '", n.name, "': ")); };
      for (auto& [name, value] : n.attr) MR_RETURN_IF_ERROR(in_node(Bind(bound_, &value, 0)));
      if (values_.contains(n.name)) return InvalidArgument("node '", n.name, "' has the name of an argument or node");
      RenameFrame(&n);
      values_[n.name] = {n.name, 0, 1};
      const OpDef* op = graph_->FindOp(n.op);
      if (op == nullptr) {
        unknown_ops_[n.name] = n.op;
        continue;
      }
      AttrMap attrs;
      for (const auto& [name, value] : n.attr) {
        auto attr = AttrFromProto(value);
        if (!attr.ok()) return in_node(attr.status());
        attrs.emplace(name, *std::move(attr));
      }
      std::vector<std::string> ignored;  // import tells of them
      MR_RETURN_IF_ERROR(in_node(CompleteAttrs(*op, &attrs, &ignored)));
      auto signature = ResolveSignature(*op, attrs);
      if (!signature.ok()) return in_node(signature.status());
      values_[n.name].end = static_cast<int>(signature->output_types.size());
      for (size_t i = 0; i < op->outputs.size(); ++i) {
        values_[absl::StrCat(n.name, ":", op->outputs[i].name)] = {
            n.name, signature->output_args[i].begin, signature->output_args[i].end};
      }
    }
    return absl::OkStatus();
  }

  // "arg", "arg:i", "node:output", "node:output:i" as "node:k"; a whole list becomes several.
  Status Resolve(absl::string_view ref, std::vector<std::string>* out) const {
    auto it = values_.find(ref);
    if (it != values_.end()) {
      for (int k = it->second.begin; k < it->second.end; ++k) out->push_back(absl::StrCat(it->second.node, ":", k));
      return absl::OkStatus();
    }
    const size_t colon = ref.rfind(':');
    int index = -1;
    if (auto unknown = unknown_ops_.find(ref.substr(0, ref.find(':'))); unknown != unknown_ops_.end()) {
      return UnknownOp(unknown->second, absl::StrCat("node '", unknown->first, "'"));
    }
    if (colon != ref.npos && absl::SimpleAtoi(ref.substr(colon + 1), &index)) it = values_.find(ref.substr(0, colon));
    if (it == values_.end() || index < 0 || index >= it->second.end - it->second.begin) {
      return InvalidArgument("'", ref.substr(0, 200), "' names no argument and no output of a node");
    }
    out->push_back(absl::StrCat(it->second.node, ":", it->second.begin + index));
    return absl::OkStatus();
  }

  // A body may have been together with what is now an argument, or in no body: then it is free.
  void DropForeignColocation(wire::NodeDef* n) const {
    auto it = n->attr.find("_class");
    if (it == n->attr.end() || !it->second.list) return;
    std::erase_if(it->second.list->s, [&](absl::string_view group) {
      return absl::ConsumePrefix(&group, "loc:@") && (arguments_.contains(group) || !values_.contains(group));
    });
    if (it->second.list->s.empty()) n->attr.erase(it);
  }

  Status ResolveInputs(wire::NodeDef* n) {
    DropForeignColocation(n);
    std::vector<std::string> inputs;
    for (const std::string& ref : n->input) {
      if (!ref.empty() && ref[0] == '^') {
        inputs.push_back(ref);
        continue;
      }
      MR_RETURN_IF_ERROR(Annotate(Resolve(ref, &inputs), absl::StrCat("node '", n->name, "': ")));
    }
    n->input = std::move(inputs);
    return absl::OkStatus();
  }

  Status ResolveResults(const OpDef& op) {
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      auto it = function_->ret.find(op.outputs[i].name);
      if (it == function_->ret.end()) return InvalidArgument("output '", op.outputs[i].name, "' is not returned");
      const size_t before = options_.return_outputs.size();
      MR_RETURN_IF_ERROR(Resolve(it->second, &options_.return_outputs));
      const ArgRange range = signature_.output_args[i];
      if (options_.return_outputs.size() - before != static_cast<size_t>(range.end - range.begin)) {
        return InvalidArgument("output '", op.outputs[i].name, "' returns ", options_.return_outputs.size() - before,
                               " tensors, wants ", range.end - range.begin);
      }
    }
    for (const auto& [name, node] : function_->control_ret) options_.return_nodes.push_back(node);
    return absl::OkStatus();
  }

  StatusOr<FunctionBody> Add() {
    options_.prefix = call_.prefix;
    options_.uniquify_names = true;
    options_.is_body = true;
    options_.control_dependencies = call_.control_inputs;
    options_.default_device = call_.device;
    options_.validate_colocation = false;
    const int mark = graph_->num_node_ids();
    MR_ASSIGN_OR_RETURN(ImportResult result, ImportGraphDef(body_, options_, graph_));
    for (size_t i = 0; i < result.return_outputs.size(); ++i) {
      const DType got = result.return_outputs[i].dtype(), want = signature_.output_types[i];
      if (BaseType(got) == want || got == DType::kInvalid) continue;
      graph_->RollbackTo(mark);
      return InvalidArgument(
          "output ", i, " of the body is ", DTypeName(got), ", the signature says ", DTypeName(want));
    }
    FunctionBody body{std::move(result.return_outputs), std::move(result.return_nodes)};
    AddSideEffects(mark, &body.control_outputs);
    return body;
  }

  void RenameFrame(wire::NodeDef* n) {
    if (ControlOpOf(n->op) != ControlOp::kEnter) return;
    auto it = n->attr.find("frame_name");
    if (it == n->attr.end()) return;
    auto [frame, fresh] = frames_.try_emplace(it->second.s);
    if (fresh) frame->second = graph_->UniqueName(absl::StrCat(call_.prefix, "/", frame->first));
    it->second.s = frame->second;
  }

  // Side effects that are not inside a conditional or loop of the body. And calls wait for what the call waits for;
  // where they are in a loop, which no edge may enter, the loop does.
  void AddSideEffects(int mark, std::vector<Node*>* effects) {
    struct Depth {
      int blocks = 0, loops = 0;  // of conditionals and loops, and of loops alone
    };
    const auto& nodes = graph_->nodes();
    const auto first =
        std::partition_point(nodes.begin(), nodes.end(), [mark](const Node* n) { return n->id() < mark; });
    std::vector<Depth> depth(static_cast<size_t>(graph_->num_node_ids() - mark));
    std::vector<Node*> enters;
    bool loops_wait = false;
    for (Node* n : std::vector<Node*>(first, nodes.end())) {
      Depth& mine = depth[static_cast<size_t>(n->id() - mark)];
      const auto reads = [&](const Node* from) {
        if (from->id() < mark) return;
        const Depth& its = depth[static_cast<size_t>(from->id() - mark)];
        mine = {.blocks = std::max(mine.blocks, its.blocks), .loops = std::max(mine.loops, its.loops)};
      };
      for (const Node* from : n->control_inputs()) reads(from);
      for (const Output& o : n->inputs()) reads(o.node);
      const bool is_effect = n->op() == nullptr || n->op()->stateful;
      if (is_effect && mine.blocks == 0 && std::find(effects->begin(), effects->end(), n) == effects->end()) {
        effects->push_back(n);
      }
      if (n->control_op() == ControlOp::kEnter && mine.loops == 0) enters.push_back(n);
      if (IsCall(*graph_, *n)) {
        if (mine.loops == 0) WaitForInputs(n);
        loops_wait |= mine.loops > 0;
      }
      mine.blocks = std::max(mine.blocks + ControlDepthChange(*n), 0);
      mine.loops += n->control_op() == ControlOp::kEnter ? 1 : n->control_op() == ControlOp::kExit ? -1 : 0;
    }
    if (!loops_wait) return;
    for (Node* enter : enters) WaitForInputs(enter);
  }

  void WaitForInputs(Node* node) {
    for (Node* from : call_.control_inputs) graph_->AddControlEdge(from, node);
  }

  const CallSpec& call_;
  Graph* graph_;
  const wire::FunctionDef* function_ = nullptr;
  NodeSignature signature_;
  wire::Map<std::string, wire::AttrValue> bound_;
  HashMap<std::string, Values> values_;
  HashSet<std::string> arguments_;
  HashMap<std::string, std::string> unknown_ops_;  // by node
  HashMap<std::string, std::string> frames_;
  wire::GraphDef body_;
  ImportOptions options_;
};

}  // namespace

StatusOr<FunctionBody> InstantiateFunction(const CallSpec& call, Graph* graph) {
  return Instantiation(call, graph).Run();
}

}  // namespace millrace
