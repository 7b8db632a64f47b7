// SPDX-License-Identifier: Apache-2.0
#include "any_op.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "graph_shaper.h"

namespace millrace::fuzz {
namespace {

using Kind = wire::AttrValue::Kind;

constexpr int kMaxDepth = 4;  // of nodes that are made for others
constexpr char kFunction[] = "same_number";
const std::vector<int64_t> kShapes[] = {
    {}, {}, {0}, {1}, {2}, {3}, {2, 2}, {2, 3}, {3, 0}, {1, 2, 2}, {1, 4, 4, 1}, {2, 2, 2, 3}, {1, 1, 1, 1, 1}};
constexpr int64_t kNumbers[] = {0, 1, 2, 3, 1, 2, -1, -2, 4, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
constexpr double kReals[] = {0, 1, -1, 0.5, 2, 3, -0.0, 1e-38, 1e38, -1e38, 2147483648.0, NAN, INFINITY, -INFINITY};
constexpr absl::string_view kStrings[] = {
    "", "a", "1", "x:0", "\xff\xfe", "%", "[", "a,b", "NHWC", "SAME", "a,a->a", "...ab->a..."};
constexpr DType kCommon[] = {DType::kFloat, DType::kFloat, DType::kInt64, DType::kInt32, DType::kString, DType::kBool};

// Who makes the handle or the variant that an op wants; the first row of which the op's or the argument's name has a
// part. References to strings are handles of the first generation.
struct Maker {
  const char* part;
  const char* of_resource;
  const char* of_reference;
  const char* of_variant;
};
constexpr Maker kMakers[] = {
    {"Queue", "FIFOQueueV2", "FIFOQueue", ""},
    {"Barrier", "", "Barrier", ""},
    {"Reader", "IdentityReaderV2", "IdentityReader", ""},
    {"Table", "MutableHashTableV2", "MutableHashTable", ""},
    {"SparseAcc", "", "SparseConditionalAccumulator", ""},
    {"ResourceAcc", "ResourceConditionalAccumulator", "", ""},
    {"Accumulator", "", "ConditionalAccumulator", ""},
    {"TensorArray", "TensorArrayV3", "TensorArray", ""},
    {"Stack", "StackV2", "Stack", ""},
    {"MultiDevice", "MultiDeviceIterator", "", "TensorDataset"},
    {"Mutex", "MutexV2", "", "MutexLock"},
    {"emory", "AnonymousMemoryCache", "", ""},
    {"eed_gen", "AnonymousRandomSeedGenerator", "", ""},
    {"SeedGen", "AnonymousRandomSeedGenerator", "", ""},
    {"Iterator", "IteratorV2", "", ""},
    {"iterator", "IteratorV2", "", ""},
    {"TensorList", "", "", "EmptyTensorList"},
    {"Optional", "", "", "OptionalFromValue"},
    {"", "VarHandleOp", "", "TensorDataset"},
};

template <typename T, size_t n>
const T& Pick(Random& random, const T (&from)[n]) {
  return from[Below(random, n)];
}

bool IsAllowed(const AttrDef& attr, DType t) {
  const auto& allowed = attr.allowed_types;
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), t) != allowed.end();
}

DType DrawType(Random& random, const AttrDef& attr) {
  const DType common = Pick(random, kCommon);
  if (IsAllowed(attr, common)) return common;
  return attr.allowed_types.empty() ? DType::kFloat : attr.allowed_types[Below(random, attr.allowed_types.size())];
}

void FillValues(Random& random, DType type, int64_t n, wire::TensorProto* t) {
  const bool same = IsLikely(random, 50);
  const int64_t number = Pick(random, kNumbers);
  const double real = Pick(random, kReals);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = same ? number : Pick(random, kNumbers);
    const double x = same ? real : Pick(random, kReals);
    switch (type) {
      case DType::kFloat: t->float_val.push_back(static_cast<float>(x)); break;
      case DType::kDouble: t->double_val.push_back(x); break;
      case DType::kString: t->string_val.emplace_back(std::string(Pick(random, kStrings))); break;
      case DType::kBool: t->bool_val.push_back((k & 1) != 0); break;
      case DType::kInt64: t->int64_val.push_back(k); break;
      case DType::kUInt64: t->uint64_val.push_back(static_cast<uint64_t>(k)); break;
      case DType::kUInt32: t->uint32_val.push_back(static_cast<uint32_t>(k)); break;
      case DType::kHalf:
      case DType::kBFloat16: t->half_val.push_back(static_cast<int32_t>(k & 0xffff)); break;
      case DType::kComplex64: t->scomplex_val.insert(t->scomplex_val.end(), 2, static_cast<float>(x)); break;
      case DType::kComplex128: t->dcomplex_val.insert(t->dcomplex_val.end(), 2, x); break;
      default: t->int_val.push_back(static_cast<int32_t>(k));
    }
  }
}

void SetType(wire::AttrValue& v, DType t) {
  v.kind = Kind::kType;
  v.type = static_cast<int32_t>(t);
}

// A function of one int64, which it gives back.
void EnsureFunction(wire::GraphDef* graph) {
  auto& functions = graph->library.Ensure().function;
  for (const wire::FunctionDef& f : functions) {
    if (f.signature && f.signature->name == kFunction) return;
  }
  wire::FunctionDef& f = functions.emplace_back();
  f.signature.Ensure().name = kFunction;
  const auto arg = [](const char* name) {
    wire::OpArgDef a;
    a.name = name;
    a.type = static_cast<int32_t>(DType::kInt64);
    return a;
  };
  f.signature->input_arg.push_back(arg("x"));
  f.signature->output_arg.push_back(arg("y"));
  wire::NodeDef& same = f.node_def.emplace_back();
  same.name = "same";
  same.op = "Identity";
  same.input.push_back("x");
  SetType(same.attr["T"], DType::kInt64);
  f.ret["y"] = "same:output:0";
}

class Adder {
 public:
  Adder(const OpRegistry& ops, Random& random, wire::GraphDef* graph) : ops_(ops), random_(random), graph_(graph) {}

  // The name of the node.
  std::string Add(const OpDef& op, int depth) {
    // Lists of a node are mostly as long as each other (types and shapes), and its inputs of one shape.
    const size_t length = 1 + Below(random_, 2);
    const std::vector<int64_t> shape = Pick(random_, kShapes);
    wire::NodeDef node;
    node.op = op.name;
    for (const AttrDef& attr : op.attrs) {
      if (attr.has_default && IsLikely(random_, 60)) {
        auto value = AttrToProto(attr.default_value);
        if (value.ok()) node.attr[attr.name] = *std::move(value);
      } else {
        node.attr[attr.name] = DrawAttr(attr, length, shape);
      }
    }
    for (const ArgDef& arg : op.inputs) {
      for (const DType type : TypesOf(arg, node)) {
        const std::vector<int64_t>& dims = IsLikely(random_, 60) ? shape : Pick(random_, kShapes);
        node.input.push_back(Input(op, arg, type, dims, depth));
      }
    }
    return Append(std::move(node));
  }

 private:
  std::string Append(wire::NodeDef node) {
    node.name = absl::StrCat("a", graph_->node.size(), "_", random_());
    graph_->node.push_back(std::move(node));
    return graph_->node.back().name;
  }

  wire::AttrValue DrawAttr(const AttrDef& attr, size_t length, const std::vector<int64_t>& shape) {
    wire::AttrValue v;
    if (attr.is_list) {
      v.kind = Kind::kList;
      wire::AttrListValue& list = v.list.Ensure();
      if (IsLikely(random_, 10)) length = Below(random_, 4);
      const bool is_window = attr.kind == AttrKind::kInt && IsLikely(random_, 50);  // strides, sizes, dilations
      if (is_window) length = 4 + Below(random_, 2);
      if (attr.has_minimum) length = std::max(length, static_cast<size_t>(std::min<int64_t>(attr.minimum, 16)));
      for (size_t i = 0; i < length; ++i) {
        const wire::AttrValue one = DrawOne(attr, shape);
        switch (attr.kind) {
          case AttrKind::kString: list.s.push_back(one.s); break;
          case AttrKind::kInt: list.i.push_back(is_window && IsLikely(random_, 80) ? 1 : one.i); break;
          case AttrKind::kFloat: list.f.push_back(one.f); break;
          case AttrKind::kBool: list.b.push_back(one.b); break;
          case AttrKind::kType: list.type.push_back(one.type); break;
          case AttrKind::kShape: list.shape.push_back(*one.shape); break;
          case AttrKind::kTensor: list.tensor.push_back(*one.tensor); break;
          case AttrKind::kFunc: list.func.push_back(*one.func); break;
        }
      }
      return v;
    }
    return DrawOne(attr, shape);
  }

  wire::AttrValue DrawOne(const AttrDef& attr, const std::vector<int64_t>& shape) {
    wire::AttrValue v;
    switch (attr.kind) {
      case AttrKind::kString:
        v.kind = Kind::kS;
        v.s = std::string(Pick(random_, kStrings));
        if (!attr.allowed_strings.empty()) v.s = attr.allowed_strings[Below(random_, attr.allowed_strings.size())];
        break;
      case AttrKind::kInt:
        v.kind = Kind::kI;
        v.i = IsLikely(random_, 80) ? static_cast<int64_t>(Below(random_, 4)) : Pick(random_, kNumbers);
        if (attr.has_minimum) v.i = std::max(v.i, attr.minimum);
        break;
      case AttrKind::kFloat:
        v.kind = Kind::kF;
        v.f = static_cast<float>(Pick(random_, kReals));
        break;
      case AttrKind::kBool:
        v.kind = Kind::kB;
        v.b = IsLikely(random_, 50);
        break;
      case AttrKind::kType: SetType(v, DrawType(random_, attr)); break;
      case AttrKind::kShape:
        v.kind = Kind::kShape;
        for (const int64_t d : shape) v.shape.Ensure().dim.emplace_back().size = d;
        v.shape.Ensure().unknown_rank = IsLikely(random_, 20);
        if (v.shape->unknown_rank) v.shape->dim.clear();
        break;
      case AttrKind::kTensor:
        v.kind = Kind::kTensor;
        v.tensor.Ensure() = Value(DType::kFloat, shape);
        break;
      case AttrKind::kFunc:
        v.kind = Kind::kFunc;
        EnsureFunction(graph_);
        v.func.Ensure().name = kFunction;
        break;
    }
    return v;
  }

  wire::TensorProto Value(DType type, const std::vector<int64_t>& dims) {
    wire::TensorProto t;
    t.dtype = static_cast<int32_t>(type);
    int64_t n = 1;
    for (const int64_t d : dims) {
      t.tensor_shape.Ensure().dim.emplace_back().size = d;
      n *= d;
    }
    t.tensor_shape.Ensure();
    FillValues(random_, type, n, &t);
    return t;
  }

  std::vector<DType> TypesOf(const ArgDef& arg, wire::NodeDef& node) {
    std::vector<DType> types;
    if (!arg.type_list_attr.empty()) {
      for (const int32_t t : node.attr[arg.type_list_attr].list.Ensure().type) types.push_back(static_cast<DType>(t));
      return types;
    }
    const DType type = arg.type_attr.empty() ? arg.type : static_cast<DType>(node.attr[arg.type_attr].type);
    const int64_t count = arg.number_attr.empty() ? 1 : node.attr[arg.number_attr].i;
    types.assign(static_cast<size_t>(std::clamp<int64_t>(count, 0, 8)), type);
    return types;
  }

  std::string Input(const OpDef& op, const ArgDef& arg, DType type, const std::vector<int64_t>& dims, int depth) {
    if (IsLikely(random_, 5) && !graph_->node.empty()) return AnyNode(random_, &graph_->node)->name;
    if (arg.is_ref && type != DType::kString) return Variable(type, dims);
    if (arg.is_ref || type == DType::kResource || type == DType::kVariant) {
      const std::string made = Made(op, arg, type, depth);
      if (!made.empty()) return made;
    }
    wire::NodeDef node;
    node.op = "Const";
    SetType(node.attr["dtype"], type);
    node.attr["value"].kind = Kind::kTensor;
    node.attr["value"].tensor.Ensure() = Value(type, dims);
    return Append(std::move(node));
  }

  std::string Variable(DType type, const std::vector<int64_t>& dims) {
    wire::NodeDef node;
    node.op = "VariableV2";
    SetType(node.attr["dtype"], type);
    node.attr["shape"].kind = Kind::kShape;
    for (const int64_t d : dims) node.attr["shape"].shape.Ensure().dim.emplace_back().size = d;
    node.attr["shape"].shape.Ensure();
    return Append(std::move(node));
  }

  // What makes a handle or a variant for `arg`; "" where nothing does.
  std::string Made(const OpDef& op, const ArgDef& arg, DType type, int depth) {
    if (depth >= kMaxDepth) return "";
    for (const Maker& m : kMakers) {
      const std::string maker = arg.is_ref ? m.of_reference : type == DType::kVariant ? m.of_variant : m.of_resource;
      const bool fits = op.name.find(m.part) != std::string::npos || arg.name.find(m.part) != std::string::npos;
      if (maker.empty() || !fits || maker == op.name) continue;
      const OpDef* found = ops_.Find(maker);
      return found == nullptr ? "" : Add(*found, depth + 1);
    }
    return arg.is_ref ? Variable(type, {}) : "";
  }

  const OpRegistry& ops_;
  Random& random_;
  wire::GraphDef* const graph_;
};

}  // namespace

void AddNodeOf(const OpDef& op, const OpRegistry& ops, Random& random, wire::GraphDef* graph) {
  Adder(ops, random, graph).Add(op, 0);
}

}  // namespace millrace::fuzz
