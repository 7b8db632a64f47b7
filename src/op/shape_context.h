// SPDX-License-Identifier: Apache-2.0
// What a shape function sees and does: reads what is known of the inputs, checks it, sets what follows for the outputs.
// It must accept "unknown" everywhere and refuse only what no step could run. Outputs not set are of unknown rank.
#pragma once

#include <optional>
#include <vector>

#include "op/op_def.h"

namespace millrace {

// What is known of the value behind a resource handle.
struct HandleShape {
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

class ShapeContext {
 public:
  struct Input {
    PartialShape shape;
    const Tensor* constant = nullptr;      // its value where known
    std::optional<PartialShape> as_shape;  // for integer vectors: the partial shape that the value denotes
    std::optional<HandleShape> handle;
  };
  ShapeContext(const OpDef& op, const AttrMap& attrs, const NodeSignature& signature, std::vector<Input> inputs);

  const OpDef& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[static_cast<size_t>(i)].shape; }
  DType input_dtype(int i) const { return signature_.input_types[static_cast<size_t>(i)]; }
  DType output_dtype(int i) const { return signature_.output_types[static_cast<size_t>(i)]; }
  // Flat positions of the arg with this name ({0,0} when there is none).
  ArgRange input_arg(absl::string_view name) const;
  ArgRange output_arg(absl::string_view name) const;

  // The value of input i where it is known before the step, else null.
  const Tensor* constant(int i) const { return inputs_[static_cast<size_t>(i)].constant; }
  // The one integer in input i, when known; InvalidArgument when it is known and is no integer scalar.
  StatusOr<std::optional<int64_t>> ConstantInt(int i) const;
  StatusOr<std::optional<std::vector<int64_t>>> ConstantInts(int i) const;
  // Input i read as a shape (a vector of dimensions; a known -1 stays unknown). Unknown rank when nothing is known.
  StatusOr<PartialShape> InputAsShape(int i) const;
  const std::optional<HandleShape>& handle(int i) const { return inputs_[static_cast<size_t>(i)].handle; }

  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return GetAttr<T>(attrs_, name);
  }
  const AttrMap& attrs() const { return attrs_; }

  void set_output(int i, PartialShape s) { outputs_[static_cast<size_t>(i)] = std::move(s); }
  void set_output_handle(int i, HandleShape h) { output_handles_[static_cast<size_t>(i)] = std::move(h); }
  // An integer vector output whose value denotes this shape (Shape, Pack of dimensions, ...).
  void set_output_as_shape(int i, PartialShape s) { output_as_shape_[static_cast<size_t>(i)] = std::move(s); }

  // Checks that read like the rule; errors name op, input and shape.
  StatusOr<PartialShape> WithRank(int i, int rank) const;  // input i merged with rank
  StatusOr<PartialShape> WithRankAtLeast(int i, int rank) const;
  StatusOr<PartialShape> WithRankAtMost(int i, int rank) const;
  Status RequireScalar(int i) const { return WithRank(i, 0).status(); }
  StatusOr<PartialShape> Merge(const PartialShape& a, const PartialShape& b, absl::string_view what) const;
  StatusOr<int64_t> MergeDim(int64_t a, int64_t b, absl::string_view what) const;  // -1 unknown
  // axis in [-rank, rank) made non-negative; rank must be known.
  StatusOr<int> Axis(int64_t axis, int rank) const;

  // Results, for the framework.
  const std::vector<PartialShape>& outputs() const { return outputs_; }
  const std::vector<std::optional<HandleShape>>& output_handles() const { return output_handles_; }
  const std::vector<std::optional<PartialShape>>& output_as_shape() const { return output_as_shape_; }

 private:
  const OpDef& op_;
  const AttrMap& attrs_;
  const NodeSignature& signature_;
  std::vector<Input> inputs_;
  std::vector<PartialShape> outputs_;
  std::vector<std::optional<HandleShape>> output_handles_;
  std::vector<std::optional<PartialShape>> output_as_shape_;
};

// Shape functions that many families share (op/common_shapes.cc).
Status ScalarShape(ShapeContext& c);   // every output is a scalar
Status UnknownShape(ShapeContext& c);  // nothing can be said
Status NoOutputs(ShapeContext& c);
Status UnchangedShape(ShapeContext& c);  // output 0 (and all others) like input 0
Status BroadcastShape(ShapeContext& c);  // output 0 = broadcast of inputs 0 and 1
Status MergedShape(ShapeContext& c);     // all inputs alike, output 0 too
PartialShape BroadcastPartial(const PartialShape& a, const PartialShape& b, bool* incompatible);

}  // namespace millrace
