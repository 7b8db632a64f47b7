// SPDX-License-Identifier: Apache-2.0
// Data sets of the rows of elements, and of elements as rows of sparse tensors.
#include <algorithm>

#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/engine/tensor_variant.h"

namespace millrace {
namespace {

// ---- Unbatch ----

using UnbatchDataset = Derived<DatasetRef>;

class UnbatchIterator final : public DataIterator {
 public:
  UnbatchIterator(RefPtr<const UnbatchDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (at_ == rows_) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      at_ = rows_ = 0;
      batch_.clear();
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &batch_));
      if (!found) return false;
      MR_ASSIGN_OR_RETURN(rows_, RowsOf(batch_));
    }
    element->clear();
    for (const Tensor& t : batch_) {
      MR_ASSIGN_OR_RETURN(const Tensor one, t.Rows(at_, at_ + 1));
      MR_ASSIGN_OR_RETURN(Tensor row, one.Reshaped(t.shape().WithoutDim(0)));
      element->push_back(std::move(row));
    }
    ++at_;
    MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    return true;
  }

 private:
  static StatusOr<int64_t> RowsOf(const Element& batch) {
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch[i].rank() == 0) {
        return InvalidArgument("Input element must have a non-scalar value in each component.");
      }
      if (batch[i].dim(0) != batch[0].dim(0)) {
        return InvalidArgument("Input element must have the same batch size in each component. Component 0 had size ",
                               batch[0].dim(0), " but component ", i, " had size, ", batch[i].dim(0), ".");
      }
    }
    return batch.empty() ? 0 : batch[0].dim(0);
  }

  const RefPtr<const UnbatchDataset> dataset_;
  const DataIteratorPtr input_;
  Element batch_;
  int64_t at_ = 0, rows_ = 0;  // in `batch_`
};

class UnbatchKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    return DatasetRef(MakeRef<UnbatchDataset>(
        spec(), std::move(input),
        [](const RefPtr<const UnbatchDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params()->MakeIterator(c));
          return std::make_unique<UnbatchIterator>(self, std::move(under));
        }));
  }
};

// ---- Rebatch: each batch in as many parts as there are replicas ----

struct Rebatched {
  DatasetRef input;
  int64_t replicas = 0;
};
using RebatchDataset = Derived<Rebatched>;

class RebatchIterator final : public DataIterator {
 public:
  RebatchIterator(RefPtr<const RebatchDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    const int64_t replicas = dataset_->params().replicas;
    if (part_ == replicas) {
      batch_.clear();
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &batch_));
      if (!found) return false;
      MR_RETURN_IF_ERROR(CheckRows());
      part_ = 0;
    }
    element->clear();
    for (const Tensor& t : batch_) {
      const int64_t rows = t.dim(0), size = rows / replicas + (rows % replicas != 0);
      const int64_t begin = std::min(rows, size * part_);
      MR_ASSIGN_OR_RETURN(Tensor part, t.Rows(begin, std::min(rows, begin + size)));
      element->push_back(std::move(part));
    }
    ++part_;
    MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    return true;
  }

 private:
  Status CheckRows() const {
    for (size_t i = 0; i < batch_.size(); ++i) {
      if (batch_[i].rank() > 0) continue;
      return InvalidArgument(
          "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not "
          "batched? Component ",
          i, " is scalar.");
    }
    return absl::OkStatus();
  }

  const RefPtr<const RebatchDataset> dataset_;
  const DataIteratorPtr input_;
  Element batch_;
  int64_t part_ = dataset_->params().replicas;  // the next of `batch_`
};

class RebatchKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Rebatched p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(p.replicas, ScalarInput(ctx, 1, "num_replicas"));
    if (p.replicas <= 0) return InvalidArgument("num_replicas must be greater than zero.");
    return DatasetRef(MakeRef<RebatchDataset>(
        spec(), std::move(p),
        [](const RefPtr<const RebatchDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(c));
          return std::make_unique<RebatchIterator>(self, std::move(under));
        }));
  }
};

// ---- DenseToSparseBatch: tensors of different sizes as the rows of sparse ones ----

struct SparseBatches {
  DatasetRef input;
  int64_t size = 0;
  PartialShape row;  // an open dimension is that of the largest element
};
using SparseBatchDataset = Derived<SparseBatches>;

class SparseBatchIterator final : public DataIterator {
 public:
  SparseBatchIterator(RefPtr<const SparseBatchDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    const SparseBatches& p = dataset_->params();
    std::vector<Tensor> rows;
    while (input_ && static_cast<int64_t>(rows.size()) < p.size) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      Element next;
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &next));
      if (!found) {
        input_.reset();
        break;
      }
      if (next.size() != 1) return InvalidArgument("DenseToSparseBatchDataset takes elements of one component");
      MR_RETURN_IF_ERROR(CheckRow(next[0]));
      rows.push_back(std::move(next[0]));
    }
    if (rows.empty()) return false;
    MR_ASSIGN_OR_RETURN(*element, Sparse(rows));
    return true;
  }

 private:
  Status CheckRow(const Tensor& t) const {
    const PartialShape& row = dataset_->params().row;
    if (t.dtype() != dataset_->params().input->spec().types[0]) {
      return InvalidArgument("an element does not have the type that its data set declares");
    }
    if (t.rank() != row.rank()) {
      return InvalidArgument("Input element had shape (", t.shape().ToString(),
                             ") that is incompatible with the row shape (", row.ToString(), ").");
    }
    for (int d = 0; d < row.rank(); ++d) {
      if (row.dim(d) >= 0 && t.dim(d) > row.dim(d)) {
        return DataLoss("Input element had shape (", t.shape().ToString(), ") that is larger than the row shape (",
                        row.ToString(), ").");
      }
    }
    return absl::OkStatus();
  }

  // One component: a vector of indices, values and the dense shape.
  StatusOr<Element> Sparse(const std::vector<Tensor>& rows) const {
    std::vector<int64_t> dims = dataset_->params().row.dims();
    int64_t total = 0;
    for (const Tensor& t : rows) {
      total += t.num_elements();
      for (size_t d = 0; d < dims.size(); ++d) dims[d] = std::max(dims[d], t.dim(static_cast<int>(d)));
    }
    dims.insert(dims.begin(), static_cast<int64_t>(rows.size()));
    const int64_t rank = static_cast<int64_t>(dims.size());
    MR_ASSIGN_OR_RETURN(const Shape indices_shape, Shape::Make({total, rank}));
    MR_ASSIGN_OR_RETURN(Tensor indices, Tensor::Make(DType::kInt64, indices_shape));
    MR_ASSIGN_OR_RETURN(Tensor shape, Tensor::Make(DType::kInt64, Shape::Vector(rank)));
    std::copy(dims.begin(), dims.end(), shape.mutable_data<int64_t>());
    int64_t* index = indices.mutable_data<int64_t>();
    MR_ASSIGN_OR_RETURN(Tensor values, Tensor::Make(rows[0].dtype(), Shape::Vector(total)));
    int64_t at = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Tensor& row = rows[i];
      for (int64_t k = 0; k < row.num_elements(); ++k, index += rank) {
        index[0] = static_cast<int64_t>(i);
        int64_t rest = k;
        for (int d = row.rank() - 1; d >= 0; --d) {
          index[d + 1] = rest % row.dim(d);
          rest /= row.dim(d);
        }
      }
      CopyElements(
          nullptr, row.dtype(), ElementAt(values.mutable_raw(), row.dtype(), at), row.raw(), row.num_elements());
      at += row.num_elements();
    }
    MR_ASSIGN_OR_RETURN(Tensor parts, Tensor::Make(DType::kVariant, Shape::Vector(3)));
    Variant* out = parts.mutable_data<Variant>();
    for (Tensor* t : {&indices, &values, &shape}) *out++ = Variant(MakeRef<TensorValue>(std::move(*t)));
    return Element{std::move(parts)};
  }

  const RefPtr<const SparseBatchDataset> dataset_;
  DataIteratorPtr input_;  // null: it has ended
};

class SparseBatchKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    SparseBatches p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    if (p.input->spec().types.size() != 1) {
      return Unimplemented("DenseToSparseBatchDataset only supports inputs with a single component.");
    }
    MR_ASSIGN_OR_RETURN(p.size, ScalarInput(ctx, 1, "batch_size"));
    if (p.size <= 0) return InvalidArgument("Batch size must be greater than zero.");
    if (ctx.input(2).rank() != 1) return InvalidArgument("row_shape must be a vector");
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ctx.input(2).IntValues());
    for (const int64_t d : dims) {
      if (d < -1) return InvalidArgument("Dimension ", d, " must be >= -1");
    }
    MR_ASSIGN_OR_RETURN(p.row, PartialShape::Make(dims));
    return DatasetRef(MakeRef<SparseBatchDataset>(
        spec(), std::move(p),
        [](const RefPtr<const SparseBatchDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(c));
          return std::make_unique<SparseBatchIterator>(self, std::move(under));
        }));
  }
};

}  // namespace

void RegisterDatasetRowKernels(KernelRegistry& r) {
  for (const char* op : {"RebatchDataset", "ExperimentalRebatchDataset"}) r.Add<RebatchKernel>({.op = op});
  for (const char* op : {"UnbatchDataset", "ExperimentalUnbatchDataset"}) r.Add<UnbatchKernel>({.op = op});
  for (const char* op : {"DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"}) {
    r.Add<SparseBatchKernel>({.op = op});
  }
}

}  // namespace millrace
