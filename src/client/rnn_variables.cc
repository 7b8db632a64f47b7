// SPDX-License-Identifier: Apache-2.0
#include "client/rnn_variables.h"

#include <cmath>

namespace millrace {
namespace {

Output InitialValue(const GraphBuilder& b, const CellParameter& p, DType dtype, int64_t seed, int64_t seed2) {
  const Output dims = b.Const(Tensor::Vector<int64_t>(p.dims));
  if (p.initial != CellInitial::kKernel) {
    const double value = p.initial == CellInitial::kValue ? p.value : p.initial == CellInitial::kOnes ? 1 : 0;
    return b.Op("Fill", {dims, b.ScalarOf(dtype, value)});
  }
  const Output uniform = b.Op("RandomUniform", {dims}, {{"dtype", dtype}, {"seed", seed}, {"seed2", seed2}});
  const double in = static_cast<double>(p.dims.size() > 1 ? p.dims[p.dims.size() - 2] : p.dims[0]);
  const double limit = std::sqrt(6.0 / std::fmax(1.0, in + static_cast<double>(p.dims.back())));
  return b.Sub(b.Mul(uniform, b.ScalarOf(dtype, 2 * limit)), b.ScalarOf(dtype, limit));
}

}  // namespace

StatusOr<std::vector<ClientVariable>> AddCellVariables(const GraphBuilder& b, absl::string_view scope,
                                                       const CellLayout& layout, DType dtype, int64_t seed) {
  std::vector<ClientVariable> made;
  for (const CellParameter& p : layout.parameters) {
    if (p.initial == CellInitial::kGiven) {
      made.push_back({});
      continue;
    }
    const std::string name = scope.empty() ? p.name : absl::StrCat(scope, "/", p.name);
    const int64_t seed2 = seed == 0 ? 0 : static_cast<int64_t>(made.size()) + 1;
    const Output initial = InitialValue(b.ScopeExact(absl::StrCat(name, "/Initializer")), p, dtype, seed, seed2);
    MR_RETURN_IF_ERROR(b.status());
    MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(b, name, initial));
    made.push_back(v);
  }
  return made;
}

}  // namespace millrace
