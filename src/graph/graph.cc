// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/hash_map.h"
#include "graph/infer_attrs.h"
#include "graph/node_name.h"
#include "graph/shape_values.h"

namespace millrace {
namespace {

const PartialShape& UnknownShapeRef() {
  static const auto* shape = new PartialShape();
  return *shape;
}

// What TensorFlow's error for a failed shape function says, and the reader needs.
Status ShapeError(const Status& s, const Node& node) {
  std::string shapes = absl::StrJoin(node.inputs(), ", ", [](std::string* out, const Output& o) {
    absl::StrAppend(out, o ? o.shape().ToString() : "?");
  });
  const auto code = s.code() == absl::StatusCode::kUnimplemented ? s.code() : absl::StatusCode::kInvalidArgument;
  return Status(
      code, absl::StrCat(s.message(), " for '", node.name(), "' (op: '", node.op_name(), "') with input shapes: ",
                         shapes, ".", node.location().empty() ? "" : " At ", node.location()));
}

Status CheckInputTypes(const NodeSpec& spec, const NodeSignature& signature) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i]) continue;
    const DType got = spec.inputs[i].dtype(), want = signature.input_types[i];
    if (got == DType::kInvalid || got == want || (!IsRef(want) && BaseType(got) == want)) continue;
    return InvalidArgument("Input ", i, " of node ", spec.name, " was passed ", DTypeName(got), " from ",
                           spec.inputs[i].ToString(), " incompatible with expected ", DTypeName(want), ".");
  }
  return absl::OkStatus();
}

// The content of a constant has the type that its consumers will believe in.
Status CheckConstant(const NodeSpec& spec) {
  if (spec.op != "Const" && spec.op != "HostConst") return absl::OkStatus();
  const auto value = spec.attrs.find("value"), dtype = spec.attrs.find("dtype");
  if (value == spec.attrs.end() || dtype == spec.attrs.end()) return absl::OkStatus();
  const Tensor* t = value->second.get<Tensor>();
  const DType* want = dtype->second.get<DType>();
  if (t == nullptr || want == nullptr || t->dtype() == *want) return absl::OkStatus();
  return InvalidArgument(
      "attribute 'value' has type ", DTypeName(t->dtype()), ", attribute 'dtype' says ", DTypeName(*want));
}

Status Prefix(const Status& s, const NodeSpec& spec) {
  if (s.ok()) return s;
  return Annotate(s, absl::StrCat("NodeDef '", spec.name, "'",
                                  spec.location.empty() ? "" : absl::StrCat(" at ", spec.location), ": "));
}

}  // namespace

DType Output::dtype() const {
  if (node == nullptr || index < 0 || index >= node->num_outputs()) return DType::kInvalid;
  return node->output_type(index);
}
const PartialShape& Output::shape() const {
  if (node == nullptr || index < 0 || index >= node->num_outputs()) return UnknownShapeRef();
  return node->shape(index);
}
std::string Output::ToString() const { return node == nullptr ? "(none)" : absl::StrCat(node->name(), ":", index); }

ArgRange Node::input_arg(absl::string_view arg) const {
  if (op_ == nullptr) return {};
  for (size_t i = 0; i < op_->inputs.size() && i < signature_.input_args.size(); ++i) {
    if (op_->inputs[i].name == arg) return signature_.input_args[i];
  }
  return {};
}
ArgRange Node::output_arg(absl::string_view arg) const {
  if (op_ == nullptr) return {};
  for (size_t i = 0; i < op_->outputs.size() && i < signature_.output_args.size(); ++i) {
    if (op_->outputs[i].name == arg) return signature_.output_args[i];
  }
  return {};
}
std::vector<Consumer> Node::ConsumersOf(int output) const {
  std::vector<Consumer> out;
  for (const Consumer& c : consumers_) {
    if (c.node->inputs_[static_cast<size_t>(c.input)].index == output) out.push_back(c);
  }
  return out;
}
bool Node::IsConstantEnter() const {
  return control_op_ == ControlOp::kEnter && Attr<bool>("is_constant").value_or(false);
}

std::string Node::Describe() const {
  // What folding made stands for the client's node.
  const size_t folded = name_.rfind("/_folded_");
  const bool is_folded = folded != std::string::npos && op_name_ == "Const";
  return absl::StrCat("node '", is_folded ? absl::string_view(name_).substr(0, folded) : name_, "' (",
                      is_folded ? "folded" : op_name_, ")", location_.empty() ? "" : " at ", location_);
}

Graph::Graph(const OpRegistry* registry, GraphLimits limits) : registry_(registry), limits_(limits) {
  versions_.producer = 25;
}
Graph::~Graph() = default;

const OpDef* Graph::FindOp(absl::string_view name) const {
  if (const OpDef* op = registry_->Find(name)) return op;
  auto it = function_ops_.find(name);
  return it == function_ops_.end() ? nullptr : it->second.get();
}

Node* Graph::Find(absl::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

std::string Graph::UniqueName(absl::string_view prefix) {
  std::string key = absl::AsciiStrToLower(prefix);
  auto [it, fresh] = name_counters_.try_emplace(key, 1);
  if (fresh && !by_name_.contains(prefix)) return std::string(prefix);  // copies of graphs know names of nodes alone
  int suffix = it->second;
  std::string candidate = absl::StrCat(key, "_", suffix);
  while (name_counters_.contains(candidate) || by_name_.contains(absl::StrCat(prefix, "_", suffix))) {
    candidate = absl::StrCat(key, "_", ++suffix);
  }
  it->second = suffix + 1;
  name_counters_.emplace(std::move(candidate), 1);
  return absl::StrCat(prefix, "_", suffix);
}

Status Graph::CheckNewName(absl::string_view name) const {
  if (name.size() > limits_.max_name) {
    return InvalidArgument("node name of ", name.size(), " bytes exceeds the limit of ", limits_.max_name);
  }
  if (!IsProgramNodeName(name) || name == "_SOURCE" || name == "_SINK") {
    return InvalidArgument("'", name, "' is not a valid node name");
  }
  if (by_name_.contains(name)) return InvalidArgument("Duplicate node name in graph: '", name, "'");
  if (next_id_ >= limits_.max_nodes) {
    return ResourceExhausted("the graph has reached its limit of ", limits_.max_nodes, " nodes");
  }
  return absl::OkStatus();
}

StatusOr<Node*> Graph::AddNode(NodeSpec spec) {
  if (context_ == nullptr) return Add(std::move(spec), false);
  GraphContext* context = context_;
  MR_RETURN_IF_ERROR(context->Adapt(*this, &spec));
  MR_ASSIGN_OR_RETURN(Node * node, Add(std::move(spec), false));
  context->Added(node);
  return node;
}

StatusOr<Node*> Graph::Add(NodeSpec spec, bool may_lack_inputs) {
  MR_RETURN_IF_ERROR(CheckNewName(spec.name));
  const OpDef* op = FindOp(spec.op);
  if (op == nullptr) {
    return NotFound("Op type not registered '", spec.op, "' (node '", spec.name, "')");
  }
  if (!may_lack_inputs) {
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      if (!spec.inputs[i]) return Prefix(InvalidArgument("input ", i, " is missing"), spec);
      const Output o = spec.inputs[i];
      if (o.index < 0 || (o.node->op() != nullptr && o.index >= o.node->num_outputs()) ||
          o.index >= kMaxUnknownOutputs) {
        return Prefix(InvalidArgument("Connecting to invalid output ", o.index, " of source node ", o.node->name(),
                                      " which has ", o.node->num_outputs(), " outputs."),
                      spec);
      }
    }
  }
  auto node = std::make_unique<Node>();
  MR_RETURN_IF_ERROR(Prefix(InferAttrs(*op, spec), spec));
  MR_RETURN_IF_ERROR(Prefix(CompleteAttrs(*op, &spec.attrs, nullptr), spec));
  for (const auto& [name, value] : spec.attrs) {
    if (value.get<PlaceholderAttr>()) {
      return Prefix(InvalidArgument("attribute '", name, "' had a placeholder outside of a function"), spec);
    }
  }
  auto signature = ResolveSignature(*op, spec.attrs);
  if (!signature.ok()) return Prefix(signature.status(), spec);
  if (signature->input_types.size() != spec.inputs.size()) {
    return Prefix(
        InvalidArgument("op ", op->name, " takes ", signature->input_types.size(), " inputs, got ", spec.inputs.size()),
        spec);
  }
  MR_RETURN_IF_ERROR(CheckInputTypes(spec, *signature));
  MR_RETURN_IF_ERROR(Prefix(CheckConstant(spec), spec));

  node->name_ = std::move(spec.name);
  node->op_name_ = std::move(spec.op);
  node->control_op_ = ControlOpOf(node->op_name_);
  node->device_ = std::move(spec.device);
  node->location_ = std::move(spec.location);
  node->op_ = op;
  node->traits_ = registry_->TraitsOf(*op);
  node->attrs_ = std::move(spec.attrs);
  node->signature_ = *std::move(signature);
  node->inputs_ = std::move(spec.inputs);
  const size_t outputs = node->signature_.output_types.size();
  node->shapes_.resize(outputs);
  node->handles_.resize(outputs);
  node->as_shape_.resize(outputs);
  MR_RETURN_IF_ERROR(Infer(node.get(), /*refine=*/false));
  return Insert(std::move(node), spec.control_inputs);
}

StatusOr<Node*> Graph::AddUnknownNode(NodeSpec spec) { return AddUnknown(std::move(spec), false); }

StatusOr<Node*> Graph::AddUnknown(NodeSpec spec, bool may_lack_inputs) {
  MR_RETURN_IF_ERROR(CheckNewName(spec.name));
  auto node = std::make_unique<Node>();
  for (const Output& o : spec.inputs) {
    const bool bad =
        !o ? !may_lack_inputs
           : o.index < 0 || o.index >= kMaxUnknownOutputs ||
                 (o.node->op() != nullptr && o.index >= o.node->num_outputs());
    if (bad) {
      return Prefix(InvalidArgument("invalid input ", o.ToString()), spec);
    }
    node->signature_.input_types.push_back(o.dtype());
  }
  node->name_ = std::move(spec.name);
  node->op_name_ = std::move(spec.op);
  node->control_op_ = ControlOpOf(node->op_name_);
  node->device_ = std::move(spec.device);
  node->location_ = std::move(spec.location);
  node->attrs_ = std::move(spec.attrs);
  node->inputs_ = std::move(spec.inputs);
  return Insert(std::move(node), spec.control_inputs);
}

// Outputs of a node of an unknown op appear as they are read.
void Graph::GrowOutputs(Output o) {
  if (o.node->op_ != nullptr || o.index < o.node->num_outputs() || o.index >= kMaxUnknownOutputs) return;
  const size_t n = static_cast<size_t>(o.index) + 1;
  o.node->signature_.output_types.resize(n, DType::kInvalid);
  o.node->shapes_.resize(n);
  o.node->handles_.resize(n);
  o.node->as_shape_.resize(n);
}

Node* Graph::Insert(std::unique_ptr<Node> owned, absl::Span<Node* const> control_inputs) {
  Node* node = owned.get();
  node->id_ = next_id_++;
  for (size_t i = 0; i < node->inputs_.size(); ++i) {
    const Output o = node->inputs_[i];
    if (!o) continue;
    o.node->consumers_.push_back({node, static_cast<int>(i)});
    GrowOutputs(o);
  }
  storage_.push_back(std::move(owned));
  live_.push_back(node);
  by_name_.emplace(node->name_, node);
  name_counters_.try_emplace(absl::AsciiStrToLower(node->name_), 1);
  for (Node* c : control_inputs) AddControlEdge(c, node);
  return node;
}

Status Graph::Infer(Node* node, bool refine) {
  if (node->op_ == nullptr) return absl::OkStatus();
  std::vector<ShapeContext::Input> inputs(node->inputs_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Output o = node->inputs_[i];
    if (!o || o.index >= o.node->num_outputs()) continue;
    inputs[i].shape = o.shape();
    inputs[i].constant = ConstantValue(o);
    inputs[i].as_shape = o.node->as_shape(o.index);
    inputs[i].handle = o.node->handle(o.index);
  }
  ShapeContext context(*node->op_, node->attrs_, node->signature_, std::move(inputs));
  if (node->op_->shape_fn != nullptr) {
    const Status s = node->op_->shape_fn(context);
    if (!s.ok()) return ShapeError(s, *node);
  }
  std::vector<PartialShape> merged;
  if (refine) {
    for (size_t i = 0; i < node->shapes_.size(); ++i) {
      auto m = context.outputs()[i].Merge(node->shapes_[i]);
      if (!m.ok()) return ShapeError(m.status(), *node);
      merged.push_back(*std::move(m));
    }
    ++shape_epoch_;
  }
  for (size_t i = 0; i < node->shapes_.size(); ++i) {
    node->shapes_[i] = refine ? std::move(merged[i]) : context.outputs()[i];
    if (!refine || context.output_handles()[i]) node->handles_[i] = context.output_handles()[i];
    node->as_shape_[i] = context.output_as_shape()[i];
  }
  InferShapeValues(*this, *node, &node->as_shape_);
  return absl::OkStatus();
}

Status Graph::InferShapes(Node* node) { return Infer(node, /*refine=*/true); }

Status Graph::RefineShape(Output o, const PartialShape& shape) {
  if (!o || o.index < 0 || o.index >= o.node->num_outputs()) return InvalidArgument("no such output: ", o.ToString());
  auto merged = o.shape().Merge(shape);
  if (!merged.ok()) {
    return InvalidArgument(merged.status().message(), " (the first is that of ", o.ToString(), ")");
  }
  if (!(*merged == o.shape())) {
    o.node->set_shape(o.index, *std::move(merged));
    ++shape_epoch_;
  }
  return absl::OkStatus();
}

namespace {

// Of a list without duplicates. Looks from the end: whoever removes many nodes removes the latest first.
template <typename T>
void EraseOne(std::vector<T>& list, const T& value) {
  const auto at = std::find(list.rbegin(), list.rend(), value);
  if (at != list.rend()) list.erase(std::next(at).base());
}

}  // namespace

Status Graph::SetInput(Node* node, int i, Output from) {
  if (node == nullptr || i < 0 || i >= node->num_inputs()) return InvalidArgument("SetInput: no such input ", i);
  if (from && from.index >= 0) GrowOutputs(from);
  if (!from || from.index < 0 || from.index >= from.node->num_outputs()) {
    return InvalidArgument("SetInput: no such output ", from.ToString());
  }
  const DType got = from.dtype(), want = node->input_type(i);
  if (got != DType::kInvalid && want != DType::kInvalid && got != want && !(BaseType(got) == want)) {
    return InvalidArgument("Input ", i, " of node ", node->name(), " was passed ", DTypeName(got), " from ",
                           from.ToString(), " incompatible with expected ", DTypeName(want), ".");
  }
  Output& slot = node->inputs_[static_cast<size_t>(i)];
  if (slot == from) return absl::OkStatus();
  if (slot) EraseOne(slot.node->consumers_, Consumer{node, i});
  slot = from;
  from.node->consumers_.push_back({node, i});
  ++shape_epoch_;
  return absl::OkStatus();
}

void Graph::AddControlEdge(Node* from, Node* to) {
  if (from == nullptr || to == nullptr) return;
  // The shorter list answers whether the edge exists.
  const auto& a = to->control_inputs_;
  const auto& b = from->control_outputs_;
  const bool exists = a.size() <= b.size() ? std::find(a.begin(), a.end(), from) != a.end()
                                           : std::find(b.begin(), b.end(), to) != b.end();
  if (exists) return;
  to->control_inputs_.push_back(from);
  from->control_outputs_.push_back(to);
}

void Graph::RemoveControlEdge(Node* from, Node* to) {
  if (from == nullptr || to == nullptr) return;
  EraseOne(to->control_inputs_, from);
  EraseOne(from->control_outputs_, to);
}

Status Graph::ReplaceUses(Output from, Output to) {
  if (!from || !to) return InvalidArgument("ReplaceUses of a missing output");
  if (from == to) return absl::OkStatus();
  const std::vector<Consumer> uses = from.node->ConsumersOf(from.index);
  const DType got = to.dtype();
  for (const Consumer& c : uses) {
    const DType want = c.node->input_type(c.input);
    if (got != want && BaseType(got) != want && got != DType::kInvalid && want != DType::kInvalid) {
      return InvalidArgument(
          "Input ", c.input, " of node ", c.node->name(), " cannot read ", to.ToString(), " of type ", DTypeName(got));
    }
  }
  std::erase_if(
      from.node->consumers_, [&](const Consumer& c) { return c.node->inputs_[static_cast<size_t>(c.input)] == from; });
  for (const Consumer& c : uses) {
    c.node->inputs_[static_cast<size_t>(c.input)] = to;
    to.node->consumers_.push_back(c);
  }
  ++shape_epoch_;
  return absl::OkStatus();
}

void Graph::Detach(Node* node) {
  for (size_t i = 0; i < node->inputs_.size(); ++i) {
    if (Node* from = node->inputs_[i].node) EraseOne(from->consumers_, Consumer{node, static_cast<int>(i)});
  }
  for (Node* from : node->control_inputs_) EraseOne(from->control_outputs_, node);
  for (Node* to : node->control_outputs_) EraseOne(to->control_inputs_, node);
}

const Expansion* Graph::FindExpansion(const Node* call) const {
  if (expansions_.empty()) return nullptr;
  auto it = expansions_.find(call);
  return it == expansions_.end() ? nullptr : it->second.get();
}

void Graph::RemoveNode(Node* node) {
  if (node == nullptr || !node->consumers_.empty()) return;
  if (!expansions_.empty()) expansions_.erase(node);
  Detach(node);
  for (int i = 0; i < node->num_outputs(); ++i) constants_.erase(node->output(i));
  by_name_.erase(node->name_);
  has_removed_ = true;
  storage_[static_cast<size_t>(node->id_)].reset();
}

void Graph::DropRemoved() const {
  live_.clear();
  for (const auto& node : storage_) {
    if (node) live_.push_back(node.get());
  }
  has_removed_ = false;
}

void Graph::RollbackTo(int mark) {
  if (mark < 0 || mark >= next_id_) return;
  if (context_ != nullptr) context_->Forget(mark);
  const auto is_new = [mark](const Node* n) { return n->id_ >= mark; };
  HashSet<Node*> touched;  // older nodes with edges to newer ones
  for (size_t id = static_cast<size_t>(mark); id < storage_.size(); ++id) {
    Node* node = storage_[id].get();
    if (node == nullptr) continue;
    for (const Output& o : node->inputs_) {
      if (o && !is_new(o.node)) touched.insert(o.node);
    }
    for (Node* from : node->control_inputs_) {
      if (!is_new(from)) touched.insert(from);
    }
    for (Node* to : node->control_outputs_) {
      if (!is_new(to)) touched.insert(to);
    }
    for (int i = 0; i < node->num_outputs(); ++i) constants_.erase(node->output(i));
    by_name_.erase(node->name_);
    name_counters_.erase(absl::AsciiStrToLower(node->name_));
  }
  for (Node* node : touched) {
    std::erase_if(node->consumers_, [&](const Consumer& c) { return is_new(c.node); });
    std::erase_if(node->control_outputs_, is_new);
    std::erase_if(node->control_inputs_, is_new);
  }
  std::erase_if(expansions_, [&](const auto& entry) {
    const Expansion& e = *entry.second;
    return is_new(entry.first) || (e.done != nullptr && is_new(e.done)) ||
           std::any_of(e.outputs.begin(), e.outputs.end(), [&](const Output& o) { return is_new(o.node); });
  });
  storage_.resize(static_cast<size_t>(mark));
  next_id_ = mark;
  DropRemoved();
}

Status Graph::AddFunction(wire::FunctionDef def) {
  if (!def.signature || def.signature->name.empty()) return InvalidArgument("function without a name");
  const std::string name = def.signature->name;
  if (auto it = functions_.find(name); it != functions_.end()) {
    if (wire::Equal(*it->second, def)) return absl::OkStatus();
    return InvalidArgument(
        "Cannot add function '", name, "' because a different function with the same name already ", "exists.");
  }
  if (registry_->Find(name) != nullptr) {
    return InvalidArgument("Cannot add function '", name, "' because an op with the same name already exists.");
  }
  auto op = OpDefFromProto(*def.signature);
  if (!op.ok()) return Annotate(op.status(), absl::StrCat("function '", name, "': "));
  function_ops_[name] = std::make_unique<OpDef>(*std::move(op));
  functions_[name] = std::make_unique<wire::FunctionDef>(std::move(def));
  return absl::OkStatus();
}

void Graph::RemoveFunction(const std::string& name) {
  functions_.erase(name);
  function_ops_.erase(name);
}

const wire::FunctionDef* Graph::FindFunction(absl::string_view name) const {
  auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : it->second.get();
}

std::vector<const wire::FunctionDef*> Graph::Functions() const {
  std::vector<const wire::FunctionDef*> out;
  for (const auto& [name, def] : functions_) out.push_back(def.get());
  std::sort(out.begin(), out.end(), [](const wire::FunctionDef* a, const wire::FunctionDef* b) {
    return a->signature->name < b->signature->name;
  });
  return out;
}

Status Graph::AddGradientDef(wire::GradientDef def) {
  for (const wire::GradientDef& g : gradient_defs_) {
    if (g.function_name != def.function_name) continue;
    if (g.gradient_func == def.gradient_func) return absl::OkStatus();
    return InvalidArgument("Cannot assign gradient function '", def.gradient_func, "' to '", def.function_name,
                           "' because it already has gradient function '", g.gradient_func, "'");
  }
  gradient_defs_.push_back(std::move(def));
  return absl::OkStatus();
}

}  // namespace millrace
