// SPDX-License-Identifier: Apache-2.0
#include "client/rnn_variables.h"

#include <algorithm>

namespace millrace {
namespace {

template <typename T>
StatusOr<Tensor> AllOf(const Shape& shape, T value) {
  MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Make(DTypeOf<T>::value, shape));
  std::fill_n(t.mutable_data<T>(), t.num_elements(), value);
  return t;
}

StatusOr<Tensor> AllOf(DType dtype, const Shape& shape, double value) {
  switch (dtype) {
    case DType::kFloat: return AllOf(shape, static_cast<float>(value));
    case DType::kDouble: return AllOf(shape, value);
    case DType::kHalf: return AllOf(shape, Half(static_cast<float>(value)));
    case DType::kBFloat16: return AllOf(shape, BFloat16(static_cast<float>(value)));
    default: return InvalidArgument("no variables of cells of type ", DTypeName(dtype));
  }
}

StatusOr<Output> Number(const GraphBuilder& b, const CellParameter& p, DType dtype) {
  constexpr int64_t kMostZerosInConstant = 1000;
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(p.dims));
  if (p.initial != CellInitial::kZeros) {
    MR_ASSIGN_OR_RETURN(Tensor t, AllOf(dtype, shape, p.initial == CellInitial::kOnes ? 1 : p.value));
    return b.Const(std::move(t));
  }
  const GraphBuilder zeros = b.Scope("zeros");
  if (shape.num_elements() < kMostZerosInConstant) {
    MR_ASSIGN_OR_RETURN(Tensor t, Tensor::Zeros(dtype, shape));
    return zeros.WithName("/").Const(std::move(t));
  }
  const std::vector<int32_t> dims(p.dims.begin(), p.dims.end());
  const Output size = zeros.WithName("shape_as_tensor").Const(Tensor::Vector<int32_t>(dims));
  return zeros.WithName("/").Op("Fill", {size, zeros.ScalarOf(dtype, 0)});
}

StatusOr<Output> InitialValue(const CompositeRegistry& composites, const GraphBuilder& b, const CellParameter& p,
                              DType dtype, int64_t seed, int64_t seed2) {
  if (p.initial != CellInitial::kKernel) return Number(b, p, dtype);
  NodeSpec spec;
  spec.op = "VarianceScaling";
  spec.name = "/";
  spec.attrs = {{"shape", PartialShape::Of(p.dims)},      {"dtype", dtype}, {"mode", std::string("fan_avg")},
                {"distribution", std::string("uniform")}, {"seed", seed},   {"seed2", seed2}};
  MR_ASSIGN_OR_RETURN(const std::vector<Output> made, ExpandComposite(composites, b, std::move(spec)));
  return made[0];
}

}  // namespace

StatusOr<std::vector<ClientVariable>> AddCellVariables(
    const CompositeRegistry& composites, const GraphBuilder& b, absl::string_view scope, const CellLayout& layout,
    DType dtype, int64_t seed) {
  std::vector<ClientVariable> made;
  for (const CellParameter& p : layout.parameters) {
    if (p.initial == CellInitial::kGiven) {
      made.push_back({});
      continue;
    }
    const std::string name = scope.empty() ? p.name : absl::StrCat(scope, "/", p.name);
    const int64_t seed2 = seed == 0 ? 0 : static_cast<int64_t>(made.size()) + 1;
    const GraphBuilder inside =
        b.ScopeExact(absl::StrCat(name, "/Initializer"))
            .ColocateWithNodeToCome(b.scope().empty() ? name : absl::StrCat(b.scope(), "/", name));
    MR_ASSIGN_OR_RETURN(const Output initial, InitialValue(composites, inside, p, dtype, seed, seed2));
    MR_RETURN_IF_ERROR(b.status());
    MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(b, name, initial));
    made.push_back(v);
  }
  return made;
}

}  // namespace millrace
