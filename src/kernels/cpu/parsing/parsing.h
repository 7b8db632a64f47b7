// SPDX-License-Identifier: Apache-2.0
// What the kernels share that make tensors of Example messages. A column is what one key has in every row; a row is an
// example, or a step of a sequence. Rows are looked through first (which also finds all that is malformed), then
// outputs are allocated as they are needed, then values are copied, both on several threads.
#pragma once

#include <string>
#include <vector>

#include "base/hash_map.h"
#include "kernel/kernel_registry.h"
#include "wire/example_view.h"

namespace millrace {

void RegisterExampleKernels(KernelRegistry& registry);   // ParseExample*, ParseSingleExample
void RegisterSequenceKernels(KernelRegistry& registry);  // ParseSequenceExample, ParseSingleSequenceExample
void RegisterCsvKernels(KernelRegistry& registry);
void RegisterLibsvmKernels(KernelRegistry& registry);
void RegisterJsonKernels(KernelRegistry& registry);
void RegisterMessageTensorKernels(KernelRegistry& registry);  // tensors in messages, compressed and padded bytes
void RegisterParsingKernels(KernelRegistry& registry);        // all of these

namespace parsing {

// A Feature, and whether it was there at all.
struct Cell {
  wire::FeatureView feature;
  bool present = false;
};
// Memory for cells that fails with a status.
class Cells {
 public:
  Status Allocate(KernelContext& ctx, int64_t count);
  Cell* data() const { return data_; }
  absl::Span<Cell> span(int64_t begin, int64_t count) const { return {data_ + begin, static_cast<size_t>(count)}; }

 private:
  Tensor memory_;
  Cell* data_ = nullptr;
};

// Where the names of features lead: the columns that want them.
class KeyIndex {
 public:
  using Columns = std::vector<int64_t>;
  void Add(absl::string_view key, int64_t column) { columns_[std::string(key)].push_back(column); }
  // Null: no column wants it.
  const std::pair<const std::string, Columns>* Find(absl::string_view key) const {
    const auto found = columns_.find(key);
    return found == columns_.end() ? nullptr : &*found;
  }

 private:
  HashMap<std::string, Columns> columns_;
};

// Looks names up that come in about the same order again and again, as they do in the examples of a file.
class KeyCursor {
 public:
  explicit KeyCursor(const KeyIndex& index) : index_(index) {}
  void Restart() { at_ = 0; }
  // fn(column) for each column of this name.
  template <typename Fn>
  void ForEach(absl::string_view key, Fn fn) {
    if (at_ == last_.size()) last_.push_back(nullptr);
    auto& guess = last_[at_++];
    if (!guess || guess->first != key) {
      guess = index_.Find(key);
      if (!guess) return;
    }
    for (const int64_t column : guess->second) fn(column);
  }

 private:
  const KeyIndex& index_;
  size_t at_ = 0;
  std::vector<const std::pair<const std::string, KeyIndex::Columns>*> last_;
};

// What an error message calls a value.
struct Place {
  std::string key;
  const Tensor* names = nullptr;  // of the rows; null or empty: none
  bool list = false;              // of one sequence: its cells are rows
  std::string Of(int64_t row) const;
};

Status CheckKind(const Cell& cell, DType dtype, const Place& place, int64_t row);
// The values of a cell, from element `at` of a tensor of the cell's type on.
void CopyValues(const Cell& cell, Tensor& to, int64_t at);

// How a column of equal cells becomes a dense tensor.
struct DenseSpec {
  DType dtype = DType::kFloat;
  std::vector<int64_t> dims;  // of a cell; with `variable` the first one is open
  bool variable = false;
  int64_t elements = 1;              // of a cell; with `variable` of one step
  const Tensor* fallback = nullptr;  // what stands where there is nothing; with `variable` the padding
};
// From an attribute dense_shapes; `may_vary`: whether its first dimension may be unknown.
StatusOr<DenseSpec> MakeDenseSpec(DType dtype, const PartialShape& shape, bool may_vary);
// `fallback` fits: one element with `variable`, else the shape of a cell, or nothing (the feature is required then).
Status CheckFallback(const DenseSpec& spec, const Tensor& fallback, size_t number);

// [rows..., dims...]: cells without a value get the fallback, those too short (with `variable`) are padded.
Status WriteDense(KernelContext& ctx, const DenseSpec& spec, absl::Span<const Cell> column, const Place& place,
                  int output);
// The same for the one cell of a single example: nothing is padded.
Status WriteDenseCell(KernelContext& ctx, const DenseSpec& spec, const Cell& cell, const Place& place, int output);

// A column as a sparse tensor: outputs for indices, values and shape.
struct SparseOutputs {
  int indices, values, shape;
};
// [rows, longest], with two numbers an index.
Status WriteSparse(KernelContext& ctx, DType dtype, absl::Span<const Cell> column, const Place& place,
                   SparseOutputs outputs);
// [length], with one number an index.
Status WriteSparseCell(KernelContext& ctx, DType dtype, const Cell& cell, const Place& place, SparseOutputs outputs);
// A column as a ragged tensor: outputs for values and, of int32 or int64, where rows begin.
Status WriteRagged(KernelContext& ctx, DType dtype, absl::Span<const Cell> column, const Place& place, int values,
                   int splits);
// The values alone: no splits.
Status WriteRaggedCell(KernelContext& ctx, DType dtype, const Cell& cell, const Place& place, int values, int splits);
// [sequences, longest sequence, longest]: sequence i has the cells [offsets[i], offsets[i + 1]).
Status WriteSparseLists(KernelContext& ctx, DType dtype, absl::Span<const Cell> cells,
                        absl::Span<const int64_t> offsets, const Place& place, SparseOutputs outputs);

}  // namespace parsing
}  // namespace millrace
