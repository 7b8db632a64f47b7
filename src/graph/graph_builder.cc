// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"

#include <cmath>
#include <limits>

#include "base/checked.h"

namespace millrace {

struct GraphBuilder::Shared {
  Status status;
};

namespace {

template <typename T>
Tensor IntegerScalar(double v) {
  return Tensor::Scalar<T>(SaturatingCast<T>(v));
}

StatusOr<Tensor> NumberAs(DType dtype, double v) {
  switch (dtype) {
    case DType::kFloat: return Tensor::Scalar(static_cast<float>(v));
    case DType::kDouble: return Tensor::Scalar(v);
    case DType::kHalf: return Tensor::Scalar(Half(static_cast<float>(v)));
    case DType::kBFloat16: return Tensor::Scalar(BFloat16(static_cast<float>(v)));
    case DType::kComplex64: return Tensor::Scalar(complex64(static_cast<float>(v), 0));
    case DType::kComplex128: return Tensor::Scalar(complex128(v, 0));
    case DType::kBool: return Tensor::Scalar(v != 0);
    case DType::kInt8: return IntegerScalar<int8_t>(v);
    case DType::kInt16: return IntegerScalar<int16_t>(v);
    case DType::kInt32: return IntegerScalar<int32_t>(v);
    case DType::kInt64: return IntegerScalar<int64_t>(v);
    case DType::kUInt8: return IntegerScalar<uint8_t>(v);
    case DType::kUInt16: return IntegerScalar<uint16_t>(v);
    case DType::kUInt32: return IntegerScalar<uint32_t>(v);
    case DType::kUInt64: return IntegerScalar<uint64_t>(v);
    default: return InvalidArgument("no number of type ", DTypeName(dtype));
  }
}

}  // namespace

GraphBuilder::GraphBuilder(Graph* graph) : graph_(graph), shared_(std::make_shared<Shared>()) {}

const Status& GraphBuilder::status() const { return shared_->status; }
void GraphBuilder::Fail(Status s) const { shared_->status.Update(s); }

GraphBuilder GraphBuilder::Scope(absl::string_view name) const {
  GraphBuilder b = *this;
  b.scope_ = graph_->UniqueName(scope_.empty() ? std::string(name) : absl::StrCat(scope_, "/", name));
  b.name_.clear();
  return b;
}
GraphBuilder GraphBuilder::ScopeExact(absl::string_view name) const {
  GraphBuilder b = *this;
  b.scope_ = scope_.empty() ? std::string(name) : absl::StrCat(scope_, "/", name);
  b.name_.clear();
  return b;
}
GraphBuilder GraphBuilder::WithName(absl::string_view name) const {
  GraphBuilder b = *this;
  b.name_ = std::string(name);
  return b;
}
GraphBuilder GraphBuilder::WithDevice(absl::string_view device) const {
  GraphBuilder b = *this;
  b.device_ = std::string(device);
  return b;
}
GraphBuilder GraphBuilder::WithControl(std::vector<Node*> nodes) const {
  GraphBuilder b = *this;
  b.control_.insert(b.control_.end(), nodes.begin(), nodes.end());
  return b;
}
GraphBuilder GraphBuilder::WithoutControl() const {
  GraphBuilder b = *this;
  b.control_.clear();
  return b;
}
GraphBuilder GraphBuilder::ColocateWithNodeToCome(absl::string_view name) const {
  return InGroups({absl::StrCat("loc:@", name)});
}
GraphBuilder GraphBuilder::InGroups(std::vector<std::string> groups) const {
  GraphBuilder b = *this;
  b.colocate_ = std::move(groups);
  return b;
}

GraphBuilder GraphBuilder::ColocateWith(Node* node) const {
  GraphBuilder b = *this;
  if (node == nullptr) return b;
  // A node that is itself colocated passes its group on.
  if (auto group = node->Attr<std::vector<std::string>>("_class"); group.ok() && !group->empty()) {
    b.colocate_ = *std::move(group);
  } else {
    b.colocate_ = {absl::StrCat("loc:@", node->name())};
  }
  b.device_ = node->device();
  return b;
}
GraphBuilder GraphBuilder::At(absl::string_view file_line) const {
  GraphBuilder b = *this;
  b.location_ = std::string(file_line);
  return b;
}

Node* GraphBuilder::OpNode(absl::string_view op, std::vector<Arg> inputs, AttrMap attrs) const {
  if (!shared_->status.ok()) return nullptr;
  NodeSpec spec;
  bool has_list = false;
  for (const Arg& arg : inputs) {
    has_list |= arg.is_list;
    for (const Output& o : arg.values) {
      if (!o) {
        Fail(InvalidArgument(op, ": an input is missing"));
        return nullptr;
      }
      spec.inputs.push_back(o);
    }
  }
  if (has_list) {
    for (const Arg& arg : inputs) spec.input_arg_sizes.push_back(static_cast<int>(arg.values.size()));
  }
  spec.op = std::string(op);
  const absl::string_view base = name_.empty() ? op : absl::string_view(name_);
  if (base == "/") {  // the name of the scope itself, as TensorFlow names an op whose arguments lie below it
    spec.name = scope_;
  } else {
    spec.name = graph_->UniqueName(scope_.empty() ? std::string(base) : absl::StrCat(scope_, "/", base));
  }
  spec.attrs = std::move(attrs);
  if (!colocate_.empty()) spec.attrs.emplace("_class", AttrValue(colocate_));
  spec.device = device_;
  spec.location = location_;
  spec.control_inputs = control_;
  auto node = graph_->AddNode(std::move(spec));
  if (!node.ok()) {
    Fail(node.status());
    return nullptr;
  }
  return *node;
}

Node* GraphBuilder::OpNode(absl::string_view op, std::initializer_list<Arg> inputs,
                           std::initializer_list<std::pair<const char*, AttrValue>> attrs) const {
  AttrMap map;
  for (const auto& [name, value] : attrs) map.insert_or_assign(name, value);
  return OpNode(op, std::vector<Arg>(inputs), std::move(map));
}

Output GraphBuilder::Op(absl::string_view op, std::initializer_list<Arg> inputs,
                        std::initializer_list<std::pair<const char*, AttrValue>> attrs) const {
  Node* node = OpNode(op, inputs, attrs);
  if (node == nullptr) return {};
  if (node->num_outputs() == 0) {
    Fail(InvalidArgument("op ", op, " has no output"));
    return {};
  }
  return node->output(0);
}

Output GraphBuilder::Const(Tensor value) const {
  if (!value.IsInitialized()) {
    Fail(ResourceExhausted("no memory for a constant"));
    return {};
  }
  const DType dtype = value.dtype();
  AttrMap attrs;
  attrs.emplace("dtype", AttrValue(dtype));
  attrs.emplace("value", AttrValue(std::move(value)));
  Node* node = OpNode("Const", std::vector<Arg>(), std::move(attrs));
  return node == nullptr ? Output() : node->output(0);
}

Output GraphBuilder::ScalarOf(DType dtype, double v) const {
  auto t = NumberAs(BaseType(dtype), v);
  if (!t.ok()) {
    Fail(t.status());
    return {};
  }
  return Const(*std::move(t));
}

Output GraphBuilder::Conj(Output a) const { return IsComplex(BaseType(a.dtype())) ? Op("Conj", {a}) : a; }

Output GraphBuilder::Cast(Output a, DType to) const {
  if (!a || BaseType(a.dtype()) == to) return a;
  return Op("Cast", {a}, {{"DstT", to}});
}

}  // namespace millrace
