// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation as graph construction (white paper 4.1): a breadth-first walk from ys back to xs that
// calls each op's gradient function, sums over paths, and puts zeros for outputs that nothing flows into.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/gradient.h"

namespace millrace {

struct GradientOptions {
  std::vector<Output> stop_gradients;  // treated as constants
  bool colocate = false;               // gradient ops carry the colocation of their forward op
  bool aggregate_with_accumulate = false;
  // As TensorFlow's C API: gradient ops are named after their types in the builder's scope, without a scope for the op
  // that they belong to, ones are made by OnesLike, and integers have gradients.
  bool as_in_c = false;
  // The client's own gradient functions: by the name in a node's attribute _gradient_op_type, or by op type. They come
  // before those of the registry.
  std::map<std::string, std::function<Status(GradContext&)>, std::less<>> custom;
};

// Adds to builder.graph() the nodes that compute d(sum of ys)/d xs. `grad_ys` is empty (ones) or one per y (a null
// Output means ones). The result has one entry per x; none where no path leads from x to ys. On error nodes may have
// been added but none that existed is changed.
//
// Errors: InvalidArgument (a y that is not float or complex, a grad_y of another dtype), NotFound / Unimplemented
// naming the op without a gradient on the path.
StatusOr<std::vector<Gradient>> AddGradients(
    const GraphBuilder& builder, const std::vector<Output>& ys, const std::vector<Output>& xs,
    const std::vector<Output>& grad_ys = {}, const GradientOptions& options = {});

// The same, with sparse gradients made dense.
StatusOr<std::vector<Output>> AddDenseGradients(const GraphBuilder& builder, const std::vector<Output>& ys,
                                                const std::vector<Output>& xs, const std::vector<Output>& grad_ys);

}  // namespace millrace
