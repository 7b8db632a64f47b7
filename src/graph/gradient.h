// SPDX-License-Identifier: Apache-2.0
// What a gradient function in src/ops sees: one forward node, the gradients of its outputs, and a builder to state the
// gradients of its inputs. The backward walk itself is src/autodiff.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph_builder.h"

namespace millrace {

// Rows `values[i]` added at `indices[i]` of a tensor of shape `dense_shape` (an integer vector).
struct IndexedSlices {
  Output values;
  Output indices;
  Output dense_shape;
};

// None, dense or sparse.
struct Gradient {
  Output dense;
  std::optional<IndexedSlices> sparse;
  bool none() const { return !dense && !sparse; }
};

class GradContext {
 public:
  GradContext(GraphBuilder builder, Node* node, std::vector<Gradient> output_gradients);

  const GraphBuilder& b() const { return builder_; }
  Node* node() const { return node_; }
  int num_inputs() const { return node_->num_inputs(); }
  int num_outputs() const { return node_->num_outputs(); }
  Output x(int i) const { return node_->input(i); }
  Output y(int i = 0) const { return node_->output(i); }
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return node_->Attr<T>(name);
  }
  // The gradient of output i as a dense tensor (sparse ones are made dense, an absent one becomes zeros).
  Output dy(int i = 0) const;
  // True when something flows into output i.
  bool has_dy(int i) const { return !gradients_[static_cast<size_t>(i)].none(); }
  const Gradient& raw_dy(int i) const { return gradients_[static_cast<size_t>(i)]; }

  // Inputs not set get none.
  void set_dx(int i, Output g) { results_[static_cast<size_t>(i)].dense = g; }
  void set_dx(int i, IndexedSlices g) { results_[static_cast<size_t>(i)].sparse = g; }
  const std::vector<Gradient>& results() const { return results_; }

  // b().status(), for the last line of a gradient function.
  const Status& status() const { return builder_.status(); }

 private:
  GraphBuilder builder_;
  Node* node_;
  mutable std::vector<Gradient> gradients_;  // dy() keeps what it makes
  std::vector<Gradient> results_;
};

// Zeros of the dtype and shape of `like`.
Output Zeros(const GraphBuilder& b, Output like);
// Sum over the rows that share an index: dense form of a sparse gradient.
Output Densify(const GraphBuilder& b, const IndexedSlices& s);
// `g` (of the shape of a broadcast result) summed down to the shape of `x`.
Output SumToShapeOf(const GraphBuilder& b, Output g, Output x);
// For a binary broadcast op: gx and gy summed down to the shapes of x and y, skipping work where shapes are known
// equal.
std::pair<Output, Output> Unbroadcast(const GraphBuilder& b, Output x, Output y, Output gx, Output gy);

}  // namespace millrace
