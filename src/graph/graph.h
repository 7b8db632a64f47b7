// SPDX-License-Identifier: Apache-2.0
// Graph: nodes and edges, each checked as it is added (names, arity, types, attributes, shapes). Not thread-safe: who
// shares a graph guards it. Nodes are owned by the graph and stay where they are until removed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_map.h"
#include "graph/control_op.h"
#include "op/op_registry.h"
#include "op/shape_context.h"

namespace millrace {

class Graph;
class Node;

// One output of a node; the value that an edge carries.
struct Output {
  Node* node = nullptr;
  int index = 0;
  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Output&) const = default;
  DType dtype() const;  // a reference type where the op returns one
  const PartialShape& shape() const;
  std::string ToString() const;  // "name:index"
  template <typename H>
  friend H AbslHashValue(H h, const Output& o) {
    return H::combine(std::move(h), o.node, o.index);
  }
};

struct Consumer {
  Node* node = nullptr;
  int input = 0;
  bool operator==(const Consumer&) const = default;
};

class Node {
 public:
  int id() const { return id_; }  // construction order, dense except for removed nodes
  const std::string& name() const { return name_; }
  const std::string& op_name() const { return op_name_; }
  ControlOp control_op() const { return control_op_; }
  const OpDef* op() const { return op_; }  // null: an imported op that this system does not have
  bool Is(OpTrait t) const { return traits_.Has(t); }
  bool IsConstantEnter() const;  // into every iteration of a loop
  const AttrMap& attrs() const { return attrs_; }
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return GetAttr<T>(attrs_, name);
  }
  const std::string& device() const { return device_; }                    // as the user asked, may be partial
  const std::string& assigned_device() const { return assigned_device_; }  // as placed
  void set_device(std::string d) { device_ = std::move(d); }
  void set_assigned_device(std::string d) { assigned_device_ = std::move(d); }
  const std::string& location() const { return location_; }  // "file:line" of the user's program, or empty
  void set_location(std::string l) { location_ = std::move(l); }
  void SetAttr(absl::string_view name, AttrValue v) { attrs_.insert_or_assign(std::string(name), std::move(v)); }
  void ClearAttr(absl::string_view name) {
    if (auto it = attrs_.find(name); it != attrs_.end()) attrs_.erase(it);
  }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(signature_.output_types.size()); }
  Output input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const std::vector<Output>& inputs() const { return inputs_; }
  Output output(int i) { return {this, i}; }
  DType input_type(int i) const { return signature_.input_types[static_cast<size_t>(i)]; }
  DType output_type(int i) const { return signature_.output_types[static_cast<size_t>(i)]; }
  const NodeSignature& signature() const { return signature_; }
  ArgRange input_arg(absl::string_view arg) const;  // {0,0} when there is none
  ArgRange output_arg(absl::string_view arg) const;
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  const std::vector<Node*>& control_outputs() const { return control_outputs_; }
  const std::vector<Consumer>& consumers() const { return consumers_; }  // of all outputs
  std::vector<Consumer> ConsumersOf(int output) const;

  const PartialShape& shape(int output) const { return shapes_[static_cast<size_t>(output)]; }
  const std::optional<HandleShape>& handle(int output) const { return handles_[static_cast<size_t>(output)]; }
  const std::optional<PartialShape>& as_shape(int output) const { return as_shape_[static_cast<size_t>(output)]; }
  void set_shape(int output, PartialShape s) { shapes_[static_cast<size_t>(output)] = std::move(s); }

  std::string Describe() const;  // "node 'x' (MatMul) at file:line", for messages

 private:
  friend class Graph;
  int id_ = 0;
  ControlOp control_op_ = ControlOp::kNone;
  OpTraits traits_;
  std::string name_, op_name_, device_, assigned_device_, location_;
  const OpDef* op_ = nullptr;
  AttrMap attrs_;
  NodeSignature signature_;
  std::vector<Output> inputs_;
  std::vector<Node*> control_inputs_, control_outputs_;
  std::vector<Consumer> consumers_;
  std::vector<PartialShape> shapes_;
  std::vector<std::optional<HandleShape>> handles_;
  std::vector<std::optional<PartialShape>> as_shape_;
};

// What is needed to add a node. Types and list lengths that the inputs determine need no attribute.
struct NodeSpec {
  std::string name;
  std::string op;
  std::vector<Output> inputs;  // flat
  // Lengths of list arguments, in the order of OpDef::inputs, when two or more lists make the flat form ambiguous;
  // otherwise empty. Non-list arguments count 1.
  std::vector<int> input_arg_sizes;
  std::vector<Node*> control_inputs;
  AttrMap attrs;
  std::string device;
  std::string location;
};

// What a call was expanded to in the graph that holds it, so that gradients can read what it computes on its way:
// whoever runs the graph reads this instead of the call. Who changes inputs or attributes of the call makes the graph
// forget it.
struct Expansion {
  std::vector<Output> outputs;  // one per output of the call
  Node* done = nullptr;         // for who waits for the call
};

struct GraphLimits {
  int64_t max_nodes = 4'000'000;
  size_t max_name = 64 << 10;
};

// What stands around the nodes that are being added: the branch of a conditional, the body of a loop. While a graph has
// a context, AddNode shows it every new node first; the context replaces inputs from outside by what carries them in,
// and adds the control inputs without which the node would run although the branch is not taken.
class GraphContext {
 public:
  virtual ~GraphContext() = default;
  // On error nothing is added. May itself add nodes; they are the business of the context around this one.
  virtual Status Adapt(Graph& graph, NodeSpec* spec) = 0;
  // Tells that `node` has been added inside.
  virtual void Added(Node* node) = 0;
  // Tells that all nodes with an id >= `mark` are about to go.
  virtual void Forget(int /*mark*/) {}
};

class Graph {
 public:
  explicit Graph(const OpRegistry* registry, GraphLimits limits = {});
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const OpRegistry& registry() const { return *registry_; }

  // Checks and infers; errors name node, op, got and wanted. On error the graph is as before.
  StatusOr<Node*> AddNode(NodeSpec spec);
  // The context of the nodes that AddNode adds from now on; null: none. Returns the one before. Not owned.
  GraphContext* SetContext(GraphContext* context) { return std::exchange(context_, context); }
  GraphContext* context() const { return context_; }
  // For import: an op that the registry lacks. Its attributes are kept as they are; outputs appear as they are used.
  StatusOr<Node*> AddUnknownNode(NodeSpec spec);
  // For passes: a node like `from` (of this or another graph over the same registry) with these inputs, whose types
  // must agree. Nothing is inferred again: shapes, types and attributes are taken over, so this is fast. AlreadyExists
  // when the name is taken.
  StatusOr<Node*> CopyNode(const Node& from, absl::Span<const Output> inputs, absl::Span<Node* const> control_inputs);
  // Back edge of a loop (NextIteration -> Merge), or a pass rewiring: replaces input i after a type check. Shapes are
  // not inferred again.
  Status SetInput(Node* node, int i, Output from);
  void AddControlEdge(Node* from, Node* to);  // duplicate edges are ignored
  void RemoveControlEdge(Node* from, Node* to);
  // All consumers of `from` read `to` instead.
  Status ReplaceUses(Output from, Output to);
  void RemoveNode(Node* node);  // must have no consumers left; edges into it go too
  // Runs the shape function again with what is known now (after SetInput or a constant became known).
  Status InferShapes(Node* node);
  // Sets what the caller knows of an output; InvalidArgument when it contradicts.
  Status RefineShape(Output o, const PartialShape& shape);
  // Removes every node with an id >= `mark`, an earlier num_node_ids(): how a failed transaction leaves no trace. Nodes
  // older than the mark may not read newer ones.
  void RollbackTo(int mark);

  // The definition of an op of the registry, or the signature of a function of this graph; null when there is none.
  const OpDef* FindOp(absl::string_view name) const;
  Node* Find(absl::string_view name) const;
  std::string UniqueName(absl::string_view prefix);  // case-insensitive; "x", "x_1", ...
  // Live nodes in construction order.
  const std::vector<Node*>& nodes() const {
    if (has_removed_) DropRemoved();
    return live_;
  }
  int num_node_ids() const { return next_id_; }

  void SetExpansion(const Node* call, Expansion expansion) {
    expansions_[call] = std::make_unique<Expansion>(std::move(expansion));
  }
  void ForgetExpansion(const Node* call) { expansions_.erase(call); }
  const Expansion* FindExpansion(const Node* call) const;  // null when there is none

  // The value of an output when it is a constant (a Const node, or a small integer computation on constants and known
  // shapes); null when unknown. The tensor lives as long as the graph.
  const Tensor* ConstantValue(Output o) const;

  // Function library: what imports and the C API bring, kept in wire form by name.
  Status AddFunction(wire::FunctionDef def);
  const wire::FunctionDef* FindFunction(absl::string_view name) const;
  std::vector<const wire::FunctionDef*> Functions() const;
  Status AddGradientDef(wire::GradientDef def);
  const std::vector<wire::GradientDef>& gradient_defs() const { return gradient_defs_; }

  const wire::VersionDef& versions() const { return versions_; }
  void set_versions(wire::VersionDef v) { versions_ = std::move(v); }

 private:
  friend class GraphImporter;
  struct CachedConstant {
    std::unique_ptr<Tensor> value;  // null: unknown as of `epoch`
    uint64_t epoch = 0;
  };

  // Import adds a Merge before the NextIteration that feeds it: that input is null until SetInput.
  StatusOr<Node*> Add(NodeSpec spec, bool may_lack_inputs);
  StatusOr<Node*> AddUnknown(NodeSpec spec, bool may_lack_inputs);
  Status CheckNewName(absl::string_view name) const;
  Node* Insert(std::unique_ptr<Node> node, absl::Span<Node* const> control_inputs);
  void GrowOutputs(Output o);
  void Detach(Node* node);
  Status Infer(Node* node, bool refine);
  void DropRemoved() const;
  void RemoveFunction(const std::string& name);

  const OpRegistry* registry_;
  GraphLimits limits_;
  GraphContext* context_ = nullptr;
  int next_id_ = 0;
  std::vector<std::unique_ptr<Node>> storage_;  // by id; null when removed
  mutable std::vector<Node*> live_;
  mutable bool has_removed_ = false;
  HashMap<absl::string_view, Node*> by_name_;
  HashMap<std::string, int> name_counters_;  // lower-case names in use, and the next suffix to try
  HashMap<std::string, std::unique_ptr<wire::FunctionDef>> functions_;
  HashMap<std::string, std::unique_ptr<OpDef>> function_ops_;
  std::vector<wire::GradientDef> gradient_defs_;
  HashMap<const Node*, std::unique_ptr<Expansion>> expansions_;
  wire::VersionDef versions_;
  uint64_t shape_epoch_ = 0;  // advances when a shape or an edge of an existing node changes
  mutable HashMap<Output, CachedConstant> constants_;
  friend class ConstantEvaluator;
};

// Node and output order of a topological sort; ties go by construction order. InvalidArgument naming a node of a cycle
// (the edge NextIteration -> Merge does not count).
StatusOr<std::vector<Node*>> TopologicalOrder(const Graph& graph);

}  // namespace millrace
