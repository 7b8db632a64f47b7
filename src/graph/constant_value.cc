// SPDX-License-Identifier: Apache-2.0
// Small integer computations that shape functions depend on: the dimensions of a known shape, packed, sliced,
// multiplied. Results are remembered per output, failures too until some shape changes; depth and size are bounded, so
// that asking is cheap however the graph looks.
#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/hash_map.h"
#include "graph/graph.h"
#include "graph/shape_values.h"

namespace millrace {

namespace {
constexpr int64_t kMaxElements = 512;
constexpr int kMaxDepth = 48;

// Of a Placeholder in the body of a function: the value of what it stands for, an integer constant of the graph around
// it.
constexpr char kCapturedValueAttr[] = "_captured_value";

struct Ints {
  std::vector<int64_t> dims;
  std::vector<int64_t> values;
};

bool IsIndex(DType t) { return t == DType::kInt32 || t == DType::kInt64; }
}  // namespace

class ConstantEvaluator {
 public:
  explicit ConstantEvaluator(const Graph& graph) : graph_(graph) {}

  const Tensor* Value(Output o, int depth);

 private:
  using Rule = bool (ConstantEvaluator::*)(const Node&, int output, Ints* out);
  static const HashMap<absl::string_view, Rule>& Rules();

  bool Input(const Node& n, int i, Ints* out);
  bool Scalar(const Node& n, int i, int64_t* out);
  // Gives *out the inferred shape of the output; false when unknown or of another size.
  bool TakeShape(const Node& n, int output, Ints* out);

  bool Shape(const Node& n, int output, Ints* out);
  bool Size(const Node& n, int output, Ints* out);
  bool Rank(const Node& n, int output, Ints* out);
  bool Same(const Node& n, int output, Ints* out);
  bool Cast(const Node& n, int output, Ints* out);
  bool Pack(const Node& n, int output, Ints* out);
  bool Concat(const Node& n, int output, Ints* out);
  bool Unpack(const Node& n, int output, Ints* out);
  bool StridedSlice(const Node& n, int output, Ints* out);
  bool Slice(const Node& n, int output, Ints* out);
  bool Gather(const Node& n, int output, Ints* out);
  bool Range(const Node& n, int output, Ints* out);
  bool Reduce(const Node& n, int output, Ints* out);
  bool Binary(const Node& n, int output, Ints* out);
  bool Neg(const Node& n, int output, Ints* out);
  bool Reshape(const Node& n, int output, Ints* out);
  bool Fill(const Node& n, int output, Ints* out);
  bool Captured(const Node& n, int output, Ints* out);

  const Graph& graph_;
  int depth_ = 0;
};

const HashMap<absl::string_view, ConstantEvaluator::Rule>& ConstantEvaluator::Rules() {
  using E = ConstantEvaluator;
  static const auto* rules = new HashMap<absl::string_view, Rule>{
      {"Shape", &E::Shape},
      {"ShapeN", &E::Shape},
      {"Size", &E::Size},
      {"Rank", &E::Rank},
      {"Identity", &E::Same},
      {"StopGradient", &E::Same},
      {"PreventGradient", &E::Same},
      {"Snapshot", &E::Same},
      {"EnsureShape", &E::Same},
      {"Cast", &E::Cast},
      {"Pack", &E::Pack},
      {"ConcatV2", &E::Concat},
      {"Concat", &E::Concat},
      {"Unpack", &E::Unpack},
      {"StridedSlice", &E::StridedSlice},
      {"Slice", &E::Slice},
      {"Gather", &E::Gather},
      {"GatherV2", &E::Gather},
      {"Range", &E::Range},
      {"Sum", &E::Reduce},
      {"Prod", &E::Reduce},
      {"Max", &E::Reduce},
      {"Min", &E::Reduce},
      {"Add", &E::Binary},
      {"AddV2", &E::Binary},
      {"Sub", &E::Binary},
      {"Mul", &E::Binary},
      {"Maximum", &E::Binary},
      {"Minimum", &E::Binary},
      {"FloorDiv", &E::Binary},
      {"FloorMod", &E::Binary},
      {"Div", &E::Binary},
      {"TruncateDiv", &E::Binary},
      {"Mod", &E::Binary},
      {"TruncateMod", &E::Binary},
      {"Neg", &E::Neg},
      {"Reshape", &E::Reshape},
      {"ExpandDims", &E::Reshape},
      {"Squeeze", &E::Reshape},
      {"Fill", &E::Fill},
      {"ZerosLike", &E::Fill},
      {"OnesLike", &E::Fill},
      {"Placeholder", &E::Captured},
  };
  return *rules;
}

const Tensor* ConstantEvaluator::Value(Output o, int depth) {
  const Node& n = *o.node;
  if (n.op() == nullptr || o.index < 0 || o.index >= n.num_outputs()) return nullptr;
  if (n.Is(OpTrait::kConstant)) {
    auto it = n.attrs().find("value");
    return it == n.attrs().end() ? nullptr : it->second.get<Tensor>();
  }
  if (!IsIndex(n.output_type(o.index))) return nullptr;
  const auto rule = Rules().find(n.op_name());
  if (rule == Rules().end()) return nullptr;
  if (auto it = graph_.constants_.find(o); it != graph_.constants_.end()) {
    if (it->second.value || it->second.epoch == graph_.shape_epoch_) return it->second.value.get();
  }
  if (depth >= kMaxDepth) return nullptr;
  Ints ints;
  const int saved = depth_;
  depth_ = depth + 1;
  bool known = (this->*rule->second)(n, o.index, &ints);
  depth_ = saved;
  Graph::CachedConstant entry;
  entry.epoch = graph_.shape_epoch_;
  if (known && static_cast<int64_t>(ints.values.size()) <= kMaxElements) {
    const bool narrow = n.output_type(o.index) == DType::kInt32;
    for (int64_t v : ints.values) {
      known =
          known && (!narrow || (v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max()));
    }
    auto shape = millrace::Shape::Make(ints.dims);
    known = known && shape.ok() && shape->num_elements() == static_cast<int64_t>(ints.values.size());
    if (known) {
      if (auto t = Tensor::Make(n.output_type(o.index), *shape); t.ok()) {
        for (size_t i = 0; i < ints.values.size(); ++i) {
          if (narrow) {
            t->mutable_data<int32_t>()[i] = static_cast<int32_t>(ints.values[i]);
          } else {
            t->mutable_data<int64_t>()[i] = ints.values[i];
          }
        }
        entry.value = std::make_unique<Tensor>(*std::move(t));
      }
    }
  }
  return (graph_.constants_[o] = std::move(entry)).value.get();
}

bool ConstantEvaluator::Input(const Node& n, int i, Ints* out) {
  if (i >= n.num_inputs() || !n.input(i)) return false;
  const Tensor* t = Value(n.input(i), depth_);
  if (t == nullptr || !IsIndex(t->dtype()) || t->num_elements() > kMaxElements) return false;
  auto values = t->IntValues();
  if (!values.ok()) return false;
  out->dims.assign(t->shape().dims().begin(), t->shape().dims().end());
  out->values = *std::move(values);
  return true;
}

bool ConstantEvaluator::Scalar(const Node& n, int i, int64_t* out) {
  Ints v;
  if (!Input(n, i, &v) || v.values.size() != 1) return false;
  *out = v.values[0];
  return true;
}

bool ConstantEvaluator::TakeShape(const Node& n, int output, Ints* out) {
  const PartialShape& s = n.shape(output);
  if (!s.IsFullyDefined() || s.num_elements() != static_cast<int64_t>(out->values.size())) return false;
  out->dims = s.dims();
  return true;
}

bool ConstantEvaluator::Shape(const Node& n, int output, Ints* out) {
  if (output >= n.num_inputs()) return false;
  const PartialShape& s = n.input(output).shape();
  if (!s.IsFullyDefined()) return false;
  out->dims = {s.rank()};
  out->values = s.dims();
  return true;
}
bool ConstantEvaluator::Size(const Node& n, int, Ints* out) {
  const PartialShape& s = n.input(0).shape();
  if (!s.IsFullyDefined()) return false;
  out->values = {s.num_elements()};
  return true;
}
bool ConstantEvaluator::Rank(const Node& n, int, Ints* out) {
  const PartialShape& s = n.input(0).shape();
  if (!s.has_rank()) return false;
  out->values = {s.rank()};
  return true;
}
bool ConstantEvaluator::Same(const Node& n, int, Ints* out) { return Input(n, 0, out); }
bool ConstantEvaluator::Cast(const Node& n, int, Ints* out) {
  return IsIndex(BaseType(n.input(0).dtype())) && Input(n, 0, out);  // a value that does not fit is refused later
}

bool ConstantEvaluator::Pack(const Node& n, int, Ints* out) {
  auto axis = n.Attr<int64_t>("axis");
  if (!axis.ok() || *axis != 0 || n.num_inputs() > kMaxElements) return false;
  for (int i = 0; i < n.num_inputs(); ++i) {
    Ints v;
    if (!Input(n, i, &v) || (i > 0 && v.values.size() * static_cast<size_t>(i) != out->values.size())) return false;
    out->values.insert(out->values.end(), v.values.begin(), v.values.end());
    if (static_cast<int64_t>(out->values.size()) > kMaxElements) return false;
    out->dims = std::move(v.dims);
  }
  out->dims.insert(out->dims.begin(), n.num_inputs());
  return true;
}

bool ConstantEvaluator::Concat(const Node& n, int, Ints* out) {
  const bool axis_first = n.op_name() == "Concat";
  const int last = n.num_inputs() - 1;
  int64_t axis;
  if (last < 1 || last > kMaxElements || !Scalar(n, axis_first ? 0 : last, &axis)) return false;
  if (axis != 0 && axis != -1) return false;
  for (int i = 0; i < last; ++i) {
    Ints v;
    if (!Input(n, axis_first ? i + 1 : i, &v) || v.dims.size() != 1) return false;
    out->values.insert(out->values.end(), v.values.begin(), v.values.end());
    if (static_cast<int64_t>(out->values.size()) > kMaxElements) return false;
  }
  out->dims = {static_cast<int64_t>(out->values.size())};
  return true;
}

bool ConstantEvaluator::Unpack(const Node& n, int output, Ints* out) {
  Ints exact;
  if (Input(n, 0, &exact)) {
    if (exact.dims.size() != 1 || static_cast<size_t>(output) >= exact.values.size()) return false;
    out->values = {exact.values[static_cast<size_t>(output)]};
    return true;
  }
  const auto elements = ElementsFromShape(n.input(0));
  if (!elements || static_cast<size_t>(output) >= elements->size()) return false;
  const int64_t v = (*elements)[static_cast<size_t>(output)];
  out->values = {v};
  return v >= 0;
}

// Of a vector of which only some elements are known, the known ones can be taken.
bool ConstantEvaluator::StridedSlice(const Node& n, int, Ints* out) {
  Ints in;
  const bool exact = Input(n, 0, &in);
  if (exact ? in.dims.size() != 1 : false) return false;
  if (!exact) {
    auto elements = ElementsFromShape(n.input(0));
    if (!elements) return false;
    in.values = *std::move(elements);
  }
  Ints b, e, s;
  if (!Input(n, 1, &b) || !Input(n, 2, &e) || !Input(n, 3, &s)) return false;
  if (b.dims != std::vector<int64_t>{1} || e.dims != b.dims || s.dims != b.dims) return false;
  const auto slice =
      ResolveVectorSlice(n, static_cast<int64_t>(in.values.size()), b.values[0], e.values[0], s.values[0]);
  if (!slice) return false;
  for (int64_t p : slice->positions) {
    const int64_t v = in.values[static_cast<size_t>(p)];
    if (!exact && v < 0) return false;
    out->values.push_back(v);
  }
  if (!slice->shrinks) out->dims = {static_cast<int64_t>(out->values.size())};
  return true;
}

bool ConstantEvaluator::Slice(const Node& n, int, Ints* out) {
  Ints in;
  int64_t begin, size;
  if (!Input(n, 0, &in) || in.dims.size() != 1 || !Scalar(n, 1, &begin) || !Scalar(n, 2, &size)) return false;
  const int64_t length = static_cast<int64_t>(in.values.size());
  if (begin < 0 || begin > length || size < -1 || size > length - begin) return false;
  if (size == -1) size = length - begin;
  out->values.assign(in.values.begin() + begin, in.values.begin() + begin + size);
  out->dims = {size};
  return true;
}

bool ConstantEvaluator::Gather(const Node& n, int, Ints* out) {
  Ints indices;
  int64_t axis = 0;
  if (!Input(n, 1, &indices) || (n.num_inputs() > 2 && (!Scalar(n, 2, &axis) || axis != 0))) return false;
  if (auto batch = n.Attr<int64_t>("batch_dims"); batch.ok() && *batch != 0) return false;
  Ints in;
  const bool exact = Input(n, 0, &in);
  if (exact ? in.dims.size() != 1 : false) return false;
  if (!exact) {
    auto elements = ElementsFromShape(n.input(0));
    if (!elements) return false;
    in.values = *std::move(elements);
  }
  for (int64_t i : indices.values) {
    if (!InRange(i, static_cast<int64_t>(in.values.size()))) return false;
    const int64_t v = in.values[static_cast<size_t>(i)];
    if (!exact && v < 0) return false;
    out->values.push_back(v);
  }
  out->dims = indices.dims;
  return true;
}

bool ConstantEvaluator::Range(const Node& n, int, Ints* out) {
  int64_t start, limit, delta;
  if (!Scalar(n, 0, &start) || !Scalar(n, 1, &limit) || !Scalar(n, 2, &delta) || delta == 0) return false;
  for (int64_t v = start; delta > 0 ? v < limit : v > limit;) {
    out->values.push_back(v);
    if (static_cast<int64_t>(out->values.size()) > kMaxElements || !CheckedAdd(v, delta, &v)) return false;
  }
  out->dims = {static_cast<int64_t>(out->values.size())};
  return true;
}

// Reductions of a vector to one number.
bool ConstantEvaluator::Reduce(const Node& n, int output, Ints* out) {
  Ints in, axes;
  if (!Input(n, 0, &in) || !Input(n, 1, &axes) || in.dims.size() > 1) return false;
  if (axes.values.size() != in.dims.size()) return false;
  const std::string& op = n.op_name();
  if (in.values.empty() && (op == "Max" || op == "Min")) return false;
  int64_t acc = op == "Prod" ? 1 : op == "Sum" ? 0 : in.values[0];
  for (int64_t v : in.values) {
    bool fits = true;
    if (op == "Prod") {
      fits = CheckedMul(acc, v, &acc);
    } else if (op == "Sum") {
      fits = CheckedAdd(acc, v, &acc);
    } else {
      acc = op == "Max" ? std::max(acc, v) : std::min(acc, v);
    }
    if (!fits) return false;
  }
  out->values = {acc};
  return TakeShape(n, output, out);
}

bool ConstantEvaluator::Binary(const Node& n, int, Ints* out) {
  Ints a, b;
  if (!Input(n, 0, &a) || !Input(n, 1, &b)) return false;
  if (a.dims != b.dims && a.values.size() != 1 && b.values.size() != 1) return false;
  if (a.values.size() == 1 && b.values.size() == 1) {
    out->dims = a.dims.size() > b.dims.size() ? a.dims : b.dims;
  } else {
    const Ints& large = a.values.size() == 1 ? b : a;
    if ((a.values.size() == 1 ? a : b).dims.size() > large.dims.size()) return false;
    out->dims = large.dims;
  }
  const size_t count = a.dims == b.dims || b.values.size() == 1 ? a.values.size() : b.values.size();
  const std::string& op = n.op_name();
  for (size_t i = 0; i < count; ++i) {
    const int64_t x = a.values[a.values.size() == 1 ? 0 : i], y = b.values[b.values.size() == 1 ? 0 : i];
    int64_t z = 0;
    bool ok = true;
    if (op == "Add" || op == "AddV2") {
      ok = CheckedAdd(x, y, &z);
    } else if (op == "Sub") {
      ok = CheckedSub(x, y, &z);
    } else if (op == "Mul") {
      ok = CheckedMul(x, y, &z);
    } else if (op == "Maximum") {
      z = std::max(x, y);
    } else if (op == "Minimum") {
      z = std::min(x, y);
    } else if (op == "FloorDiv" || op == "Div" || op == "TruncateDiv") {
      int64_t m = 0;
      ok = CheckedDiv(x, y, &z) && CheckedMod(x, y, &m);
      if (ok && op == "FloorDiv" && m != 0 && ((m < 0) != (y < 0))) --z;
    } else {
      ok = CheckedMod(x, y, &z);
      if (ok && op == "FloorMod" && z != 0 && ((z < 0) != (y < 0))) z += y;
    }
    if (!ok) return false;
    out->values.push_back(z);
  }
  return true;
}

bool ConstantEvaluator::Neg(const Node& n, int, Ints* out) {
  if (!Input(n, 0, out)) return false;
  for (int64_t& v : out->values) {
    if (!CheckedSub(int64_t{0}, v, &v)) return false;
  }
  return true;
}

bool ConstantEvaluator::Reshape(const Node& n, int output, Ints* out) {
  return Input(n, 0, out) && TakeShape(n, output, out);
}

bool ConstantEvaluator::Fill(const Node& n, int output, Ints* out) {
  const PartialShape& s = n.shape(output);
  if (!s.IsFullyDefined() || s.num_elements() > kMaxElements) return false;
  int64_t value = n.op_name() == "OnesLike" ? 1 : 0;
  if (n.op_name() == "Fill" && !Scalar(n, 1, &value)) return false;
  out->values.assign(static_cast<size_t>(s.num_elements()), value);
  out->dims = s.dims();
  return true;
}

// In the body of a function, what stands for a constant of the graph around it.
bool ConstantEvaluator::Captured(const Node& n, int, Ints* out) {
  const auto it = n.attrs().find(kCapturedValueAttr);
  const Tensor* const t = it == n.attrs().end() ? nullptr : it->second.get<Tensor>();
  if (t == nullptr || t->dtype() != n.output_type(0) || t->num_elements() > kMaxElements) return false;
  auto values = t->IntValues();
  if (!values.ok()) return false;
  out->dims.assign(t->shape().dims().begin(), t->shape().dims().end());
  out->values = *std::move(values);
  return true;
}

const Tensor* Graph::ConstantValue(Output o) const { return o ? ConstantEvaluator(*this).Value(o, 0) : nullptr; }

}  // namespace millrace
