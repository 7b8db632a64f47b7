// SPDX-License-Identifier: Apache-2.0
// The variables of recurrent cells, with TensorFlow's names.
#pragma once

#include "client/variables.h"
#include "ops/composite.h"
#include "ops/rnn/rnn_cell.h"

namespace millrace {

// One variable per parameter of `layout`, in its order: "<scope>/<parameter>". Kernels start Glorot-uniform, from
// numbers that `seed` (0: any) and the parameter's place determine.
StatusOr<std::vector<ClientVariable>> AddCellVariables(
    const CompositeRegistry& composites, const GraphBuilder& b, absl::string_view scope, const CellLayout& layout,
    DType dtype, int64_t seed);

}  // namespace millrace
