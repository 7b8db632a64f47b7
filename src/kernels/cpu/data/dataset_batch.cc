// SPDX-License-Identifier: Apache-2.0
// Data sets of batches and windows.
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_order.h"

namespace millrace {
namespace {

// How components of elements become one tensor.
struct Padding {
  std::vector<PartialShape> shapes;  // of a row; an open dimension is that of the largest element
  Element values;
};

void FillWith(const Tensor& value, Tensor* t) {
  const int64_t n = t->num_elements();
  if (t->dtype() == DType::kString) {
    for (int64_t i = 0; i < n; ++i) t->mutable_data<TString>()[i] = *value.data<TString>();
    return;
  }
  const size_t size = DTypeSize(t->dtype());
  char* to = static_cast<char*>(t->mutable_raw());
  for (int64_t i = 0; i < n; ++i, to += size) std::memcpy(to, value.raw(), size);
}

// `from` into the corner of the block of shape `dims` that begins at element `at` of `to`.
void CopyCorner(const Tensor& from, int dim, int64_t source, absl::Span<const int64_t> dims, int64_t at, Tensor* to) {
  if (dim + 1 >= from.rank()) {
    const int64_t n = from.rank() == 0 ? 1 : from.dim(from.rank() - 1);
    if (from.dtype() == DType::kString) {
      for (int64_t i = 0; i < n; ++i) to->mutable_data<TString>()[at + i] = from.data<TString>()[source + i];
      return;
    }
    const size_t size = DTypeSize(from.dtype());
    if (n == 0) return;
    std::memcpy(
        static_cast<char*>(to->mutable_raw()) + static_cast<size_t>(at) * size,
        static_cast<const char*>(from.raw()) + static_cast<size_t>(source) * size, static_cast<size_t>(n) * size);
    return;
  }
  int64_t from_stride = 1, to_stride = 1;
  for (int d = dim + 1; d < from.rank(); ++d) {
    from_stride *= from.dim(d);
    to_stride *= dims[static_cast<size_t>(d)];
  }
  for (int64_t i = 0; i < from.dim(dim); ++i) {
    CopyCorner(from, dim + 1, source + i * from_stride, dims, at + i * to_stride, to);
  }
}

StatusOr<Tensor> PadComponent(const std::vector<Element>& elements, size_t c, const PartialShape& want,
                              const Tensor& value) {
  std::vector<int64_t> dims = want.has_rank() ? want.dims() : std::vector<int64_t>();
  const std::vector<int64_t> asked = dims;
  for (const Element& e : elements) {
    const Tensor& t = e[c];
    if (t.rank() != static_cast<int>(dims.size())) {
      return InvalidArgument("All elements in a batch must have the same rank as the padded shape for component ", c,
                             ": expected rank ", dims.size(), " but got element with rank ", t.rank());
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t size = t.dim(static_cast<int>(d));
      if (asked[d] >= 0 && size > asked[d]) {
        return DataLoss("Attempted to pad to a smaller size than the input element: dimension ", d, " is ", size,
                        ", padded ", asked[d]);
      }
      dims[d] = std::max(dims[d], size);
    }
  }
  for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
  std::vector<int64_t> all = {static_cast<int64_t>(elements.size())};
  all.insert(all.end(), dims.begin(), dims.end());
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(absl::Span<const int64_t>(all)));
  MR_ASSIGN_OR_RETURN(Tensor batch, Tensor::Make(value.dtype(), shape));
  FillWith(value, &batch);
  const int64_t row = elements.empty() ? 0 : shape.num_elements() / static_cast<int64_t>(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i][c].num_elements() == 0) continue;
    CopyCorner(elements[i][c], 0, 0, dims, static_cast<int64_t>(i) * row, &batch);
  }
  return batch;
}

class BatchDataset final : public Dataset {
 public:
  BatchDataset(ElementSpec spec, DatasetRef input, int64_t size, bool drop_remainder, Padding padding)
      : Dataset(std::move(spec)),
        input_(std::move(input)),
        size_(size),
        drop_remainder_(drop_remainder),
        padding_(std::move(padding)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, input_->MakeIterator(ctx));
    return std::make_unique<Iterator>(RefPtr<const BatchDataset>::Share(this), std::move(input));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const BatchDataset> d, DataIteratorPtr input) : dataset_(std::move(d)), input_(std::move(input)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      const BatchDataset& d = *dataset_;
      std::vector<Element> rows;
      rows.reserve(static_cast<size_t>(std::min(d.size_, last_)));
      while (input_ && static_cast<int64_t>(rows.size()) < d.size_) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        Element row;
        MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &row));
        if (found) {
          rows.push_back(std::move(row));
        } else {
          input_.reset();
        }
      }
      if (rows.empty() || (d.drop_remainder_ && static_cast<int64_t>(rows.size()) < d.size_)) return false;
      last_ = static_cast<int64_t>(rows.size());
      MR_ASSIGN_OR_RETURN(*element, d.Stack(rows));
      return true;
    }

   private:
    const RefPtr<const BatchDataset> dataset_;
    DataIteratorPtr input_;  // null: it has ended
    int64_t last_ = 0;       // rows of the batch before
  };

  StatusOr<Element> Stack(std::vector<Element>& rows) const {
    if (padding_.values.empty()) return StackElementRows(rows, spec().types);
    Element batch;
    for (size_t c = 0; c < padding_.values.size(); ++c) {
      for (const Element& row : rows) {
        if (row.size() != padding_.values.size() || row[c].dtype() != padding_.values[c].dtype()) {
          return InvalidArgument("an element does not have the types that its data set declares");
        }
      }
      MR_ASSIGN_OR_RETURN(Tensor padded, PadComponent(rows, c, padding_.shapes[c], padding_.values[c]));
      batch.push_back(std::move(padded));
    }
    return batch;
  }

  const DatasetRef input_;
  const int64_t size_;
  const bool drop_remainder_;
  const Padding padding_;
};

class BatchKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("deterministic")) MR_RETURN_IF_ERROR(ElementOrderOf(init).status());
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(const int64_t size, ScalarInput(ctx, 1, "batch_size"));
    if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
    const ArgRange calls = ctx.input_arg("num_parallel_calls");
    if (calls.end > calls.begin) MR_RETURN_IF_ERROR(CheckParallelCalls(ctx, calls.begin));
    bool drop = false;
    if (const int last = ctx.num_inputs() - 1; last > 1) {
      MR_ASSIGN_OR_RETURN(drop, FlagInput(ctx, last, "drop_remainder"));
    }
    ElementSpec batches = spec();
    batches.types = input->spec().types;
    return DatasetRef(MakeRef<BatchDataset>(std::move(batches), std::move(input), size, drop, Padding{}));
  }
};

class PaddedBatchKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(const int64_t size, ScalarInput(ctx, 1, "batch_size"));
    if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
    const ArgRange flag = ctx.input_arg("drop_remainder");
    bool drop = false;
    if (flag.end > flag.begin) {
      MR_ASSIGN_OR_RETURN(drop, FlagInput(ctx, flag.begin, "drop_remainder"));
    }
    Padding padding;
    const ArgRange shapes = ctx.input_arg("padded_shapes");
    for (int i = shapes.begin; i < shapes.end; ++i) {
      if (ctx.input(i).rank() != 1) return InvalidArgument("All padded shapes must be vectors");
      MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ctx.input(i).IntValues());
      MR_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(dims));
      padding.shapes.push_back(std::move(shape));
    }
    MR_ASSIGN_OR_RETURN(padding.values, KeptInputs(ctx, "padding_values"));
    const std::vector<DType>& types = input->spec().types;
    if (padding.shapes.size() != types.size() || padding.values.size() != types.size()) {
      return InvalidArgument(
          "Number of padded shapes (", padding.shapes.size(), ") and values (", padding.values.size(),
          ") must match the number of components in the input dataset's "
          "elements (",
          types.size(), ")");
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const Tensor& value = padding.values[i];
      if (value.rank() != 0) return InvalidArgument("All padding values must be scalars");
      if (value.dtype() != types[i]) {
        return InvalidArgument(
            "padding value ", i, " is ", DTypeName(value.dtype()), ", the component ", DTypeName(types[i]));
      }
      if (types[i] == DType::kVariant || types[i] == DType::kResource) {
        return InvalidArgument("component ", i, " is ", DTypeName(types[i]), " and cannot be padded");
      }
    }
    return DatasetRef(MakeRef<BatchDataset>(spec(), std::move(input), size, drop, std::move(padding)));
  }
};

// Elements that have been read already, component by component: what is in a window.
class ListDataset final : public Dataset {
 public:
  ListDataset(ElementSpec spec, std::vector<Tensor> values) : Dataset(std::move(spec)), values_(std::move(values)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const ListDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const ListDataset> d) : dataset_(std::move(d)) {}
    StatusOr<bool> Next(DataContext&, Element* element) override {
      if (at_ >= dataset_->values_.size()) return false;
      *element = {dataset_->values_[at_++]};
      return true;
    }

   private:
    const RefPtr<const ListDataset> dataset_;
    size_t at_ = 0;
  };
  const std::vector<Tensor> values_;
};

struct Windows {
  int64_t size = 0;
  int64_t shift = 0;
  int64_t stride = 0;
  bool drop_remainder = false;
  bool stacked = false;  // their elements one below the other, else a data set of each component
  int64_t span() const { return (size - 1) * stride + 1; }
};

class WindowDataset final : public Dataset {
 public:
  WindowDataset(ElementSpec spec, DatasetRef input, Windows windows)
      : Dataset(std::move(spec)), input_(std::move(input)), windows_(windows) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, input_->MakeIterator(ctx));
    return std::make_unique<Iterator>(RefPtr<const WindowDataset>::Share(this), std::move(input));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const WindowDataset> d, DataIteratorPtr input) : dataset_(std::move(d)), input_(std::move(input)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      const Windows& w = dataset_->windows_;
      while (input_ && (to_skip_ > 0 || static_cast<int64_t>(buffer_.size()) < w.span())) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        Slot next;
        const StatusOr<bool> found = input_->Next(ctx, &next.element);
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        next.status = found.status();
        if (found.ok() && !*found) {
          input_.reset();
        } else if (to_skip_ > 0) {
          --to_skip_;
        } else {
          buffer_.push_back(std::move(next));
        }
      }
      const int64_t have = static_cast<int64_t>(buffer_.size());
      if (have == 0 || (w.drop_remainder && have < w.span())) return false;
      std::vector<Element> window;
      Status failed;  // of the first element that failed
      for (int64_t i = 0; i < std::min(have, w.span()); i += w.stride) {
        const Slot& slot = buffer_[static_cast<size_t>(i)];
        failed.Update(slot.status);
        window.push_back(slot.element);
      }
      const int64_t drop = std::min(have, w.shift);
      buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(drop));
      to_skip_ = w.shift - drop;
      MR_RETURN_IF_ERROR(failed);
      if (w.stacked) {
        MR_ASSIGN_OR_RETURN(*element, StackElementRows(window, dataset_->input_->spec().types));
        return true;
      }
      MR_RETURN_IF_ERROR(ListComponents(window, element));
      return true;
    }

   private:
    // What the input gave. An error is one of the windows that hold it; one that lies in none is passed over.
    struct Slot {
      Status status;
      Element element;
    };
    // Each component as a data set of its own.
    Status ListComponents(const std::vector<Element>& window, Element* lists) const {
      const ElementSpec& inner = dataset_->input_->spec();
      lists->clear();
      for (size_t c = 0; c < inner.types.size(); ++c) {
        std::vector<Tensor> values;
        for (const Element& e : window) {
          if (e.size() != inner.types.size()) return InvalidArgument("an element has ", e.size(), " components");
          values.push_back(e[c]);
        }
        ElementSpec one{{inner.types[c]}, {c < inner.shapes.size() ? inner.shapes[c] : PartialShape()}};
        lists->push_back(TensorOf(DatasetRef(MakeRef<ListDataset>(std::move(one), std::move(values)))));
        if (!lists->back().IsInitialized()) return ResourceExhausted("no memory for a window");
      }
      return absl::OkStatus();
    }

    const RefPtr<const WindowDataset> dataset_;
    DataIteratorPtr input_;  // null: it has ended
    std::vector<Slot> buffer_;
    int64_t to_skip_ = 0;
  };

  const DatasetRef input_;
  const Windows windows_;
};

StatusOr<Windows> WindowInputs(const KernelContext& ctx) {
  Windows w;
  MR_ASSIGN_OR_RETURN(w.size, ScalarInput(ctx, 1, "size"));
  MR_ASSIGN_OR_RETURN(w.shift, ScalarInput(ctx, 2, "shift"));
  MR_ASSIGN_OR_RETURN(w.stride, ScalarInput(ctx, 3, "stride"));
  if (w.size <= 0) return InvalidArgument("Window size must be greater than zero.");
  if (w.shift <= 0) return InvalidArgument("Window shift must be greater than zero.");
  if (w.stride <= 0) return InvalidArgument("Window stride must be greater than zero.");
  if (w.size - 1 > (std::numeric_limits<int64_t>::max() - 1) / w.stride) {
    return InvalidArgument("windows of ", w.size, " elements, ", w.stride, " apart, are too long");
  }
  return w;
}

class WindowKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(Windows w, WindowInputs(ctx));
    MR_ASSIGN_OR_RETURN(w.drop_remainder, FlagInput(ctx, 4, "drop_remainder"));
    ElementSpec windows;  // the attributes speak of what is in them
    windows.types.assign(input->spec().types.size(), DType::kVariant);
    windows.shapes.assign(windows.types.size(), PartialShape::Scalar());
    return DatasetRef(MakeRef<WindowDataset>(std::move(windows), std::move(input), w));
  }
};

class SlidingWindowKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(Windows w, WindowInputs(ctx));
    w.drop_remainder = w.stacked = true;
    return DatasetRef(MakeRef<WindowDataset>(spec(), std::move(input), w));
  }
};

}  // namespace

void RegisterDatasetBatchKernels(KernelRegistry& r) {
  for (const char* op : {"BatchDataset", "BatchDatasetV2", "ParallelBatchDataset"}) r.Add<BatchKernel>({.op = op});
  for (const char* op : {"PaddedBatchDataset", "PaddedBatchDatasetV2"}) r.Add<PaddedBatchKernel>({.op = op});
  r.Add<WindowKernel>({.op = "WindowDataset"});
  for (const char* op : {"SlidingWindowDataset", "ExperimentalSlidingWindowDataset"}) {
    r.Add<SlidingWindowKernel>({.op = op});
  }
}

}  // namespace millrace
