// SPDX-License-Identifier: Apache-2.0
// The sum of what several readers of a tensor report.
#pragma once

#include <vector>

#include "graph/gradient.h"

namespace millrace {

// One is passed on as it is, dense ones meet in an AddN, sparse ones are concatenated, a mixture becomes dense. None of
// them may be none.
Gradient SumGradients(const GraphBuilder& b, const std::vector<Gradient>& parts);

// The same rows with a vector of indices: values [n] + dense_shape[1:].
IndexedSlices FlatRows(const GraphBuilder& b, const IndexedSlices& s);

}  // namespace millrace
