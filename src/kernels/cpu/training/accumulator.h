// SPDX-License-Identifier: Apache-2.0
// Accumulators of gradients (TensorFlow's conditional accumulators). A gradient carries the step that it was computed
// in; one that is older than the accumulator's global step is dropped. All but the checks at the head of the classes is
// for attempts (waiting_resource.h): it runs under the lock.
#pragma once

#include <string>
#include <vector>

#include "base/hash_map.h"
#include "kernels/cpu/engine/waiting_resource.h"

namespace millrace {

struct AccumulatorOptions {
  std::string name;
  DType dtype = DType::kInvalid;  // half, float or double
  PartialShape shape;             // of a gradient
  bool mean = true;               // else sum
};

class Accumulator : public WaitingResource {
 public:
  explicit Accumulator(AccumulatorOptions options) : options_(std::move(options)) {}
  const AccumulatorOptions& options() const { return options_; }
  std::string DebugString() const override { return absl::StrCat("Accumulator '", options_.name, "'"); }
  Status CheckDeclared(const AccumulatorOptions& o) const;
  Status CheckDType(DType dtype) const;

  bool IsStale(int64_t local_step) const { return local_step < global_step_; }
  void SetGlobalStep(int64_t step) { global_step_ = step; }
  int64_t count() const { return count_; }
  void CountOne() { ++count_; }
  void BeginNextStep() {
    count_ = 0;
    global_step_ = static_cast<int64_t>(static_cast<uint64_t>(global_step_) + 1);
  }

 private:
  const AccumulatorOptions options_;
  int64_t count_ = 0;
  int64_t global_step_ = 0;
};

class DenseAccumulator final : public Accumulator {
 public:
  using Accumulator::Accumulator;
  Status Check(const Tensor& gradient) const;
  Status Add(const Tensor& gradient);  // checked
  StatusOr<Tensor> Finish();

 private:
  Tensor sum_;  // of half gradients in float
};

// Slices by their index in the first dimension, as IndexedSlices.
struct SparseGradient {
  Tensor indices;
  Tensor values;
  Tensor shape;
};

// The mean of a slice is that of the gradients that had it. Slices lie in the order in which they came first; as long
// as that is the order of their indices, they are found by it, then by a map.
class SparseAccumulator final : public Accumulator {
 public:
  using Accumulator::Accumulator;
  Status Check(const SparseGradient& g, bool has_known_shape) const;
  Status Add(const SparseGradient& g);  // checked
  StatusOr<SparseGradient> Finish();

 private:
  struct Row {
    int64_t index = 0;
    int64_t gradients = 0;
    int64_t last = -1;  // the gradient that it was last in
  };
  Status CheckRows(const Shape& values) const;
  // The place of a slice in rows_, or -1; `near` is where the one before it was.
  int64_t Find(int64_t index, int64_t near) const;
  int64_t Append(int64_t index);
  Status Reserve(int64_t rows);
  void Clear();

  Shape row_shape_;
  std::vector<Row> rows_;
  Tensor sums_;  // of rows_, and room for more; of half gradients in float
  bool in_order_ = true;
  HashMap<int64_t, int64_t> places_;  // unless in_order_
};

}  // namespace millrace
