// SPDX-License-Identifier: Apache-2.0
#include "graph_shaper.h"

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace millrace::fuzz {
namespace {

using Kind = wire::AttrValue::Kind;

constexpr size_t kMaxNodes = 600;
constexpr int32_t kInt32 = 3;

wire::AttrValue Type(int32_t type) {
  wire::AttrValue v;
  v.kind = Kind::kType;
  v.type = type;
  return v;
}

wire::AttrValue Types(size_t n, int32_t type) {
  wire::AttrValue v;
  v.kind = Kind::kList;
  v.list.Ensure().type.assign(n, type);
  return v;
}

wire::AttrValue Text(std::string s) {
  wire::AttrValue v;
  v.kind = Kind::kS;
  v.s = std::move(s);
  return v;
}

wire::AttrValue Function(std::string name) {
  wire::AttrValue v;
  v.kind = Kind::kFunc;
  v.func.Ensure().name = std::move(name);
  return v;
}

std::string Add(wire::GraphDef* graph, const std::string& op, std::vector<std::string> inputs,
                wire::Map<std::string, wire::AttrValue> attrs, Random& random) {
  wire::NodeDef& n = graph->node.emplace_back();
  n.name = absl::StrCat("s", graph->node.size(), "_", random());
  n.op = op;
  n.input = std::move(inputs);
  n.attr = std::move(attrs);
  return n.name;
}

std::string AddInt(wire::GraphDef* graph, int32_t value, Random& random) {
  wire::AttrValue held;
  held.kind = Kind::kTensor;
  wire::TensorProto& t = held.tensor.Ensure();
  t.dtype = kInt32;
  t.tensor_shape.Ensure();
  t.int_val.push_back(value);
  return Add(graph, "Const", {}, {{"dtype", Type(kInt32)}, {"value", held}}, random);
}

// The type of a node's first output, as far as its attributes tell.
int32_t TypeOf(const wire::NodeDef& n) {
  for (const char* name : {"T", "dtype", "out_type", "DstT", "element_dtype"}) {
    const auto it = n.attr.find(name);
    if (it != n.attr.end() && it->second.kind == Kind::kType) return it->second.type;
  }
  return 1;
}

void ReplaceReads(const std::string& from, const std::string& to, size_t nodes, wire::GraphDef* graph) {
  for (size_t i = 0; i < nodes; ++i) {
    for (std::string& input : graph->node[i].input) {
      if (input == from) input = to;
    }
  }
}

// Puts a node into a loop of its own: its inputs enter, its first output goes around where the first input came from.
// The loop is counted, or never ends.
void WrapInLoop(Random& random, wire::GraphDef* graph) {
  const size_t before = graph->node.size();
  const size_t index = Below(random, before);
  const wire::NodeDef node = graph->node[index];
  if (node.input.empty() || absl::StartsWith(node.input[0], "^") || before > kMaxNodes) return;
  const std::string frame = absl::StrCat("frame", random());
  const auto enter = [&](const std::string& input, int32_t type, bool constant) {
    wire::AttrValue is_constant;
    is_constant.kind = Kind::kB;
    is_constant.b = constant;
    return Add(graph, "Enter", {input}, {{"T", Type(type)}, {"frame_name", Text(frame)}, {"is_constant", is_constant}},
               random);
  };
  const int32_t type = TypeOf(node);
  const std::string count = enter(AddInt(graph, 0, random), kInt32, false);
  const std::string limit = enter(AddInt(graph, IsLikely(random, 20) ? INT32_MAX : 3, random), kInt32, true);
  const std::string one = enter(AddInt(graph, 1, random), kInt32, true);
  const std::string count_merge = Add(graph, "Merge", {count, count}, {{"T", Type(kInt32)}}, random);
  const size_t count_at = graph->node.size() - 1;
  const std::string less = Add(graph, "Less", {count_merge, limit}, {{"T", Type(kInt32)}}, random);
  const std::string condition = Add(graph, "LoopCond", {less}, {}, random);
  const std::string gate = Add(graph, "Switch", {count_merge, condition}, {{"T", Type(kInt32)}}, random);
  const std::string next = Add(graph, "AddV2", {gate + ":1", one}, {{"T", Type(kInt32)}}, random);
  graph->node[count_at].input[1] = Add(graph, "NextIteration", {next}, {{"T", Type(kInt32)}}, random);

  const std::string first = enter(node.input[0], type, false);
  const std::string merge = Add(graph, "Merge", {first, first}, {{"T", Type(type)}}, random);
  const size_t merge_at = graph->node.size() - 1;
  const std::string branch = Add(graph, "Switch", {merge, condition}, {{"T", Type(type)}}, random);
  std::vector<std::string> inputs = {branch + ":1"};
  for (size_t i = 1; i < node.input.size(); ++i) {
    inputs.push_back(absl::StartsWith(node.input[i], "^") ? node.input[i] : enter(node.input[i], type, true));
  }
  graph->node[index].input = inputs;
  graph->node[merge_at].input[1] = Add(graph, "NextIteration", {node.name}, {{"T", Type(type)}}, random);
  const std::string exit = Add(graph, "Exit", {branch}, {{"T", Type(type)}}, random);
  ReplaceReads(node.name, exit, before, graph);
}

// Makes a node run only when a predicate says so, and merges what it gives with what it read.
void WrapInConditional(Random& random, wire::GraphDef* graph) {
  const size_t before = graph->node.size();
  const size_t index = Below(random, before);
  const wire::NodeDef node = graph->node[index];
  if (node.input.empty() || absl::StartsWith(node.input[0], "^") || before > kMaxNodes) return;
  const int32_t type = TypeOf(node);
  const std::string two = AddInt(graph, 2, random);
  const std::string predicate =
      Add(graph, IsLikely(random, 50) ? "Less" : "Greater", {two, two}, {{"T", Type(kInt32)}}, random);
  const std::string gate = Add(graph, "Switch", {node.input[0], predicate}, {{"T", Type(type)}}, random);
  const std::string merge = Add(graph, "Merge", {gate, node.name}, {{"T", Type(type)}}, random);
  graph->node[index].input[0] = gate + ":1";
  ReplaceReads(node.name, merge, before, graph);
}

// Moves a node into a function and calls it, in one of the ways there are.
void WrapInFunction(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  wire::NodeDef* n = AnyNode(random, &graph->node);
  const OpDef* op = ops.Find(n->op);
  if (op == nullptr || op->outputs.empty() || n->input.empty() || n->input.size() > 8) return;
  for (const std::string& input : n->input) {
    if (absl::StartsWith(input, "^")) return;
  }
  const int32_t type = TypeOf(*n);
  const std::string name = absl::StrCat("fn", random());
  wire::FunctionDef& function = graph->library.Ensure().function.emplace_back();
  wire::OpDef& signature = function.signature.Ensure();
  signature.name = name;
  wire::NodeDef& inner = function.node_def.emplace_back(*n);
  inner.name = "inner";
  inner.device.clear();
  for (size_t i = 0; i < n->input.size(); ++i) {
    wire::OpArgDef& arg = signature.input_arg.emplace_back();
    arg.name = inner.input[i] = absl::StrCat("a", i);
    arg.type = type;
  }
  signature.output_arg.emplace_back().name = "out";
  signature.output_arg.back().type = type;
  function.ret["out"] = absl::StrCat("inner:", op->outputs[0].name, ":0");
  const size_t arity = n->input.size();
  n->attr.clear();
  switch (Below(random, 4)) {
    case 0: n->op = name; return;
    case 1:
      n->op = IsLikely(random, 50) ? "PartitionedCall" : "StatefulPartitionedCall";
      n->attr = {{"Tin", Types(arity, type)}, {"Tout", Types(1, type)}, {"f", Function(name)}};
      return;
    case 2: {
      n->op = IsLikely(random, 50) ? "StatelessIf" : "If";
      n->attr = {{"Tcond", Type(kInt32)},
                 {"Tin", Types(arity, type)},
                 {"Tout", Types(1, type)},
                 {"then_branch", Function(name)},
                 {"else_branch", Function(name)}};
      const std::string self = n->name;
      const std::string predicate = AddInt(graph, 1, random);
      for (wire::NodeDef& m : graph->node) {
        if (m.name == self) m.input.insert(m.input.begin(), predicate);
      }
      return;
    }
    default: {  // around with one variable, with a condition that is any function there is
      n->op = IsLikely(random, 50) ? "StatelessWhile" : "While";
      auto& functions = graph->library->function;
      n->attr = {{"T", Types(arity, type)},
                 {"cond", Function(functions[Below(random, functions.size())].signature.Ensure().name)},
                 {"body", Function(name)}};
      return;
    }
  }
}

// Many copies of a node, each reading the one before or all reading the same.
void Repeat(Random& random, wire::GraphDef* graph) {
  if (graph->node.size() > kMaxNodes / 2) return;
  const wire::NodeDef node = *AnyNode(random, &graph->node);
  const bool deep = IsLikely(random, 50) && !node.input.empty();
  const size_t copies = size_t{1} << Below(random, 8);
  std::string last = node.name;
  for (size_t i = 0; i < copies; ++i) {
    std::vector<std::string> inputs = node.input;
    if (deep) inputs[0] = last;
    last = Add(graph, node.op, std::move(inputs), node.attr, random);
  }
}

void SetDevice(Random& random, wire::GraphDef* graph) {
  static const char* const kDevices[] = {
      "", "/cpu:0", "/cpu:1", "/device:CPU:2", "/gpu:0", "/job:worker/task:1", "/cpu:x"};
  wire::NodeDef* n = AnyNode(random, &graph->node);
  n->device = kDevices[Below(random, std::size(kDevices))];
  if (IsLikely(random, 80)) return;
  wire::AttrValue& colocation = n->attr["_class"];
  colocation.kind = Kind::kList;
  colocation.list.Ensure().s.push_back("loc:@" + AnyNode(random, &graph->node)->name);
}

void AddControlEdge(Random& random, wire::GraphDef* graph) {
  const std::string from = AnyNode(random, &graph->node)->name;
  AnyNode(random, &graph->node)->input.push_back("^" + from);
}

}  // namespace

void Reshape(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  if (graph->node.empty()) return;
  switch (Below(random, 8)) {
    case 0:
    case 1: return WrapInLoop(random, graph);
    case 2: return WrapInConditional(random, graph);
    case 3:
    case 4: return WrapInFunction(ops, random, graph);
    case 5: return Repeat(random, graph);
    case 6: return SetDevice(random, graph);
    default: return AddControlEdge(random, graph);
  }
}

void NameFunctionInputs(const OpRegistry& ops, wire::GraphDef* body) {
  absl::flat_hash_map<std::string, std::string> first;
  for (const wire::NodeDef& n : body->node) {
    const OpDef* op = ops.Find(n.op);
    if (op != nullptr && !op->outputs.empty()) first[n.name] = absl::StrCat(n.name, ":", op->outputs[0].name, ":0");
  }
  for (wire::NodeDef& n : body->node) {
    for (std::string& input : n.input) {
      if (const auto it = first.find(input); it != first.end()) input = it->second;
    }
  }
}

void Join(Random& random, const wire::GraphDef& from, wire::GraphDef* to) {
  if (from.node.size() + to->node.size() > kMaxNodes) return;
  const size_t before = to->node.size();
  const std::string prefix = absl::StrCat("j", random(), "/");
  for (wire::NodeDef n : from.node) {
    n.name = prefix + n.name;
    for (std::string& input : n.input) {
      const bool control = absl::StartsWith(input, "^");
      input = absl::StrCat(control ? "^" : "", prefix, control ? input.substr(1) : input);
    }
    const auto frame = n.attr.find("frame_name");
    if (frame != n.attr.end()) frame->second.s += prefix;
    to->node.push_back(std::move(n));
  }
  if (from.library) {
    auto& functions = to->library.Ensure().function;
    for (const wire::FunctionDef& f : from.library->function) {
      bool known = false;
      for (const wire::FunctionDef& g : functions) {
        known = known || (f.signature && g.signature && f.signature->name == g.signature->name);
      }
      if (!known) functions.push_back(f);
    }
  }
  for (size_t i = Below(random, 4); i > 0 && before > 0; --i) {
    wire::NodeDef& reader = to->node[Below(random, to->node.size())];
    if (reader.input.empty()) continue;
    reader.input[Below(random, reader.input.size())] = AnyNode(random, &to->node)->name;
  }
}

}  // namespace millrace::fuzz
