// SPDX-License-Identifier: Apache-2.0
#include "graph_mutator.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "any_op.h"
#include "graph_run.h"
#include "graph_shaper.h"
#include "op/example.h"
#include "tensor/tensor_proto.h"

namespace millrace::fuzz {
namespace {

using Kind = wire::AttrValue::Kind;

constexpr int64_t kIntegers[] = {
    0,
    1,
    -1,
    2,
    3,
    4,
    5,
    7,
    16,
    -2,
    100,
    1 << 20,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    int64_t{1} << 32,
    (int64_t{1} << 31) + 1,
    (int64_t{1} << 62) + 1};
constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 16, 17, -1, 1 << 20, int64_t{1} << 31, int64_t{1} << 40};
const float kFloats[] = {
    0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 1e-38f, 1e38f, -1e38f, 2147483648.0f, NAN, INFINITY, -INFINITY};
constexpr int32_t kTypes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 17, 18, 19, 20, 21, 22, 23, 11, 101, 0, 9999};

template <typename T, size_t n>
T Pick(Random& random, const T (&from)[n]) {
  return from[Below(random, n)];
}

bool TouchesFiles(const wire::NodeDef& n) {
  for (const char* word : {"Save", "Restore", "Checkpoint", "File", "Print"}) {
    if (n.op.find(word) != std::string::npos) return true;
  }
  return false;
}

void SpoilShape(Random& random, wire::TensorShapeProto* shape) {
  if (shape->dim.empty() || IsLikely(random, 20)) {
    shape->dim.emplace_back().size = Pick(random, kSizes);
  } else if (IsLikely(random, 20)) {
    shape->dim.pop_back();
  } else {
    shape->dim[Below(random, shape->dim.size())].size = Pick(random, kSizes);
  }
}

void SpoilTensor(Random& random, wire::TensorProto* t) {
  const auto spoil = [&](auto& values, auto value) {
    if (values.empty() || IsLikely(random, 20)) {
      values.push_back(value);
    } else {
      values[Below(random, values.size())] = value;
    }
  };
  switch (Below(random, 6)) {
    case 0: SpoilShape(random, &t->tensor_shape.Ensure()); break;
    case 1:
      if (!t->tensor_content.empty()) {
        t->tensor_content[Below(random, t->tensor_content.size())] = static_cast<char>(Pick(random, kIntegers));
      }
      break;
    case 2: t->dtype = Pick(random, kTypes); break;
    default:
      t->tensor_content.clear();
      spoil(t->float_val, Pick(random, kFloats));
      spoil(t->double_val, static_cast<double>(Pick(random, kFloats)));
      spoil(t->int_val, static_cast<int32_t>(Pick(random, kIntegers)));
      spoil(t->int64_val, Pick(random, kIntegers));
  }
}

void SpoilAttr(Random& random, wire::AttrValue* v) {
  switch (v->kind) {
    case Kind::kI: v->i = Pick(random, kIntegers); break;
    case Kind::kF: v->f = Pick(random, kFloats); break;
    case Kind::kB: v->b = !v->b; break;
    case Kind::kType: v->type = Pick(random, kTypes); break;
    case Kind::kS: v->s = v->s.empty() ? "SAME" : std::string(); break;
    case Kind::kShape: SpoilShape(random, &v->shape.Ensure()); break;
    case Kind::kTensor: SpoilTensor(random, &v->tensor.Ensure()); break;
    case Kind::kList: {
      std::vector<int64_t>& i = v->list.Ensure().i;
      if (i.empty() || IsLikely(random, 20)) {
        i.push_back(Pick(random, kIntegers));
      } else {
        i[Below(random, i.size())] = Pick(random, kIntegers);
      }
      break;
    }
    default: v->kind = Kind::kI; v->i = Pick(random, kIntegers);
  }
}

// Appends an op, each input a constant of its example or, now and then, something that the graph has; one without an
// example, and others at times, from its declaration.
void AddExample(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  const std::vector<const OpDef*> all = ops.All();
  const OpDef* op = all[Below(random, all.size())];
  if (op->examples.empty() || IsLikely(random, 20)) return AddNodeOf(*op, ops, random, graph);
  const auto example = ParseExample(*op, op->examples[Below(random, op->examples.size())]);
  if (!example.ok()) return;
  const size_t before = graph->node.size();
  wire::NodeDef node;
  node.op = op->name;
  node.name = absl::StrCat("n", before, "_", random());
  for (const auto& [name, value] : example->attrs) {
    auto proto = AttrToProto(value);
    if (proto.ok()) node.attr[name] = *std::move(proto);
  }
  for (const Tensor& value : example->inputs) {
    if (before > 0 && IsLikely(random, 30)) {
      node.input.push_back(graph->node[Below(random, before)].name);
      continue;
    }
    auto proto = TensorToProto(value);
    if (!proto.ok()) return;
    wire::NodeDef& constant = graph->node.emplace_back();
    constant.op = "Const";
    constant.name = absl::StrCat("c", graph->node.size(), "_", random());
    wire::AttrValue& dtype = constant.attr["dtype"];
    dtype.kind = Kind::kType;
    dtype.type = proto->dtype;
    wire::AttrValue& held = constant.attr["value"];
    held.kind = Kind::kTensor;
    held.tensor.Ensure() = *std::move(proto);
    node.input.push_back(constant.name);
  }
  graph->node.push_back(std::move(node));
}

void SpoilConstant(Random& random, wire::GraphDef* graph) {
  for (int tries = 0; tries < 8; ++tries) {
    wire::NodeDef* n = AnyNode(random, &graph->node);
    if (n == nullptr) return;
    if (n->op == "Const" && n->attr["value"].kind == Kind::kTensor) {
      return SpoilTensor(random, &n->attr["value"].tensor.Ensure());
    }
  }
}

void SpoilOneAttr(Random& random, wire::GraphDef* graph) {
  wire::NodeDef* n = AnyNode(random, &graph->node);
  if (n == nullptr || n->attr.begin() == n->attr.end()) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : n->attr) names.push_back(name);
  SpoilAttr(random, &n->attr[names[Below(random, names.size())]]);
}

void Rewire(Random& random, wire::GraphDef* graph) {
  wire::NodeDef* n = AnyNode(random, &graph->node);
  if (n == nullptr || n->input.empty()) return;
  std::string from = AnyNode(random, &graph->node)->name;
  if (IsLikely(random, 30)) from = absl::StrCat(from, ":", Below(random, 3));
  if (IsLikely(random, 10)) from = "^" + from;
  n->input[Below(random, n->input.size())] = from;
}

void Rename(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  wire::NodeDef* n = AnyNode(random, &graph->node);
  if (n == nullptr || n->op == "Const") return;
  const std::vector<const OpDef*> all = ops.All();
  n->op = all[Below(random, all.size())]->name;
}

void Remove(Random& random, wire::GraphDef* graph) {
  if (graph->node.size() <= 12) return;
  graph->node.erase(graph->node.begin() + static_cast<std::ptrdiff_t>(Below(random, graph->node.size())));
}

void MutateNodes(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  switch (Below(random, 10)) {
    case 0:
    case 1:
    case 2: return AddExample(ops, random, graph);
    case 3:
    case 4:
    case 5: return SpoilConstant(random, graph);
    case 6:
    case 7: return SpoilOneAttr(random, graph);
    case 8: return IsLikely(random, 80) ? Rewire(random, graph) : Rename(ops, random, graph);
    default: return Remove(random, graph);
  }
}

// The body of a function as a graph, and back.
void MutateFunction(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  if (!graph->library || graph->library->function.empty()) return;
  wire::FunctionDef& function = graph->library->function[Below(random, graph->library->function.size())];
  wire::GraphDef body;
  body.node.swap(function.node_def);
  MutateNodes(ops, random, &body);
  NameFunctionInputs(ops, &body);
  body.node.swap(function.node_def);
  if (IsLikely(random, 20) && !function.node_def.empty()) {
    for (auto& [name, value] : function.ret) value = AnyNode(random, &function.node_def)->name + ":output:0";
  }
}

}  // namespace

void Mutate(const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  switch (Below(random, 20)) {
    case 0: return SetWay(static_cast<int32_t>(Below(random, kAllWays + 1)), graph);
    case 1:
    case 2: return MutateFunction(ops, random, graph);
    case 3:
    case 4:
    case 5: return Reshape(ops, random, graph);
    default: return MutateNodes(ops, random, graph);
  }
}

bool TouchesFiles(const wire::GraphDef& graph) {
  for (const auto& n : graph.node) {
    if (TouchesFiles(n)) return true;
  }
  if (!graph.library) return false;
  for (const auto& f : graph.library->function) {
    for (const auto& n : f.node_def) {
      if (TouchesFiles(n)) return true;
    }
  }
  return false;
}

}  // namespace millrace::fuzz
