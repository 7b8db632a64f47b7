// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dataflow/queue_elements.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// A copy is cheaper than to keep a whole batch for a small row of it.
constexpr size_t kShareFromBytes = 16 << 10;

constexpr int64_t kMostEmptyRows = 1 << 24;

size_t RowBytes(const Tensor& batch) {
  return batch.num_elements() == 0 ? 0 : batch.TotalBytes() / static_cast<size_t>(batch.dim(0));
}

StatusOr<Tensor> RowOf(const Tensor& batch, int64_t i, bool share) {
  const Shape shape = batch.shape().WithoutDim(0);
  if (share && RowBytes(batch) >= kShareFromBytes) {
    MR_ASSIGN_OR_RETURN(const Tensor part, batch.Rows(i, i + 1));
    return part.Reshaped(shape);
  }
  MR_ASSIGN_OR_RETURN(Tensor row, Tensor::Make(batch.dtype(), shape));
  const int64_t size = shape.num_elements();
  const void* from = ElementAt(batch.raw(), batch.dtype(), i * size);
  if (!IsPlain(batch.dtype())) {
    CopyElements(nullptr, batch.dtype(), row.mutable_raw(), from, size);
  } else if (size > 0) {
    std::memcpy(row.mutable_raw(), from, row.TotalBytes());
  }
  return row;
}

StatusOr<Shape> StackedShape(const PartialShape& want, size_t c, const std::vector<Queue::Element>& elements) {
  std::vector<int64_t> dims = {static_cast<int64_t>(elements.size())};
  for (int d = 0; d < want.rank(); ++d) {
    int64_t size = want.dim(d);
    if (size < 0) {
      size = 0;
      for (const Queue::Element& e : elements) size = std::max(size, e[c].dim(d));
    }
    dims.push_back(size);
  }
  return Shape::Make(absl::MakeConstSpan(dims));
}

// `from` into the corner of a row of shape `row` at `to`.
void CopyIntoCorner(const Tensor& from, const Shape& row, void* to) {
  if (from.num_elements() == 0) return;
  const auto to_strides = RowMajorStrides(row), from_strides = RowMajorStrides(from.shape());
  CopyDims dims;
  for (int d = 0; d < from.rank(); ++d) {
    const auto k = static_cast<size_t>(d);
    dims.push_back({from.dim(d), to_strides[k], from_strides[k]});
  }
  StridedCopy(nullptr, from.dtype(), to, from.raw(), dims);
}

void Fill(size_t c, std::vector<Queue::Element>& elements, Tensor* out) {
  const Shape row = out->shape().WithoutDim(0);
  const int64_t size = row.num_elements();
  const size_t bytes = static_cast<size_t>(size) * DTypeSize(out->dtype());
  const bool plain = IsPlain(out->dtype());
  for (size_t i = 0; i < elements.size(); ++i) {
    Tensor& from = elements[i][c];
    void* to = ElementAt(out->mutable_raw(), out->dtype(), static_cast<int64_t>(i) * size);
    if (from.shape() != row) {
      if (plain && bytes > 0) std::memset(to, 0, bytes);
      CopyIntoCorner(from, row, to);
    } else if (size == 0) {
      continue;
    } else if (plain) {
      std::memcpy(to, from.raw(), bytes);
    } else if (from.dtype() == DType::kString && from.OwnsBufferAlone()) {
      std::move(from.mutable_data<TString>(), from.mutable_data<TString>() + size, static_cast<TString*>(to));
    } else {
      CopyElements(nullptr, from.dtype(), to, from.raw(), size);
    }
  }
}

}  // namespace

bool IsElementShape(const PartialShape& want, absl::Span<const int64_t> dims) {
  if (!want.has_rank()) return true;
  if (want.dims().size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (want.dims()[d] >= 0 && want.dims()[d] != dims[d]) return false;
  }
  return true;
}

Status KeepBeyondStep(Tensor* value) {
  if (value->buffer() == nullptr || value->buffer()->writable()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(*value, value->Clone());
  return absl::OkStatus();
}

Status KeepBatch(Tensor* batch) {
  if (RowBytes(*batch) == 0 && batch->dim(0) > kMostEmptyRows) {
    return ResourceExhausted("a batch of ", batch->dim(0), " empty elements; at most ", kMostEmptyRows, " are taken");
  }
  return KeepBeyondStep(batch);
}

StatusOr<Queue::Element> RowOfBatch(const Queue::Element& batch, int64_t i, bool share) {
  Queue::Element row;
  for (const Tensor& component : batch) {
    MR_ASSIGN_OR_RETURN(Tensor t, RowOf(component, i, share));
    row.push_back(std::move(t));
  }
  return row;
}

StatusOr<Queue::Element> StackElements(const std::vector<DType>& types, const std::vector<PartialShape>& shapes,
                                       std::vector<Queue::Element>& elements) {
  Queue::Element stacked;
  for (size_t c = 0; c < types.size(); ++c) {
    MR_ASSIGN_OR_RETURN(const Shape shape, StackedShape(shapes[c], c, elements));
    MR_ASSIGN_OR_RETURN(Tensor out, Tensor::Make(types[c], shape));
    stacked.push_back(std::move(out));
  }
  for (size_t c = 0; c < types.size(); ++c) Fill(c, elements, &stacked[c]);
  return stacked;
}

}  // namespace millrace
