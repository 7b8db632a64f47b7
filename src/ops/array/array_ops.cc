// SPDX-License-Identifier: Apache-2.0
// Ops: shape and movement of data.
#include "ops/array/array_ops.h"

#include <limits>

#include "ops/op_list.h"

namespace millrace {

std::optional<std::vector<int64_t>> KnownInts(const GraphBuilder& b, Output o) {
  const Tensor* t = o ? b.graph().ConstantValue(o) : nullptr;
  if (t == nullptr) return std::nullopt;
  auto values = t->IntValues();
  if (!values.ok()) return std::nullopt;
  return *std::move(values);
}

namespace {

bool Fits(DType dtype, int64_t v) {
  return dtype == DType::kInt64 || (dtype == DType::kInt32 && v >= std::numeric_limits<int32_t>::min() &&
                                    v <= std::numeric_limits<int32_t>::max());
}

Output IntTensor(const GraphBuilder& b, DType dtype, const std::vector<int64_t>& values, const Shape& shape) {
  for (int64_t v : values) {
    if (Fits(dtype, v)) continue;
    b.Fail(InvalidArgument(v, " does not fit in ", DTypeName(dtype)));
    return {};
  }
  auto t = Tensor::Make(dtype, shape);
  if (!t.ok()) {
    b.Fail(t.status());
    return {};
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kInt32) {
      t->mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    } else {
      t->mutable_data<int64_t>()[i] = values[i];
    }
  }
  return b.Const(*std::move(t));
}

}  // namespace

Output IntVector(const GraphBuilder& b, DType dtype, const std::vector<int64_t>& values) {
  return IntTensor(b, dtype, values, Shape::Vector(static_cast<int64_t>(values.size())));
}

Output IntScalar(const GraphBuilder& b, DType dtype, int64_t value) { return IntTensor(b, dtype, {value}, Shape()); }

Output ShapeOf(const GraphBuilder& b, Output x, DType dtype) {
  if (x && x.shape().IsFullyDefined()) {
    bool fits = true;
    for (int64_t d : x.shape().dims()) fits = fits && Fits(dtype, d);
    if (fits) return IntVector(b, dtype, x.shape().dims());
  }
  return b.Shape(x, dtype);
}

void RegisterArrayOps(OpRegistry& registry) {
  RegisterArraySourceOps(registry);
  RegisterArrayReshapeOps(registry);
  RegisterArrayJoinOps(registry);
  RegisterArraySliceOps(registry);
  RegisterArrayPadOps(registry);
}

}  // namespace millrace
