// SPDX-License-Identifier: Apache-2.0
// Data sets that begin a pipeline: tensors, their slices, ranges of numbers, records of files.
#include <atomic>
#include <optional>

#include "base/checked.h"
#include "io/glob.h"
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/reader.h"

namespace millrace {
namespace {

// One element: the tensors themselves.
class TensorDataset final : public Dataset {
 public:
  TensorDataset(ElementSpec spec, Element element) : Dataset(std::move(spec)), element_(std::move(element)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const TensorDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const TensorDataset> d) : dataset_(std::move(d)) {}
    StatusOr<bool> Next(DataContext&, Element* element) override {
      if (std::exchange(done_, true)) return false;
      *element = dataset_->element_;
      return true;
    }

   private:
    const RefPtr<const TensorDataset> dataset_;
    bool done_ = false;
  };
  const Element element_;
};

class TensorDatasetKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Element element, KeptInputs(ctx, "components"));
    MR_RETURN_IF_ERROR(CheckElement(spec(), element));
    return DatasetRef(MakeRef<TensorDataset>(spec(), std::move(element)));
  }
};

// The rows of tensors.
class SliceDataset final : public Dataset {
 public:
  SliceDataset(ElementSpec spec, Element tensors)
      : Dataset(std::move(spec)), tensors_(std::move(tensors)), num_rows_(tensors_.front().dim(0)) {
    for (const Tensor& t : tensors_) row_shapes_.push_back(t.shape().WithoutDim(0));
  }
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const SliceDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const SliceDataset> d) : dataset_(std::move(d)) {}
    StatusOr<bool> Next(DataContext&, Element* element) override {
      const SliceDataset& d = *dataset_;
      if (row_ >= d.num_rows_) return false;
      element->clear();
      element->reserve(d.tensors_.size());
      for (size_t i = 0; i < d.tensors_.size(); ++i) {
        MR_ASSIGN_OR_RETURN(Tensor row, d.Row(i, row_));
        element->push_back(std::move(row));
      }
      ++row_;
      return true;
    }
    StatusOr<bool> Skip(DataContext&, int64_t n, int64_t* passed) override {
      const int64_t step = std::min(n - *passed, dataset_->num_rows_ - row_);
      row_ += step;
      *passed += step;
      return *passed == n;
    }

   private:
    const RefPtr<const SliceDataset> dataset_;
    int64_t row_ = 0;
  };

  // Of component i; it shares the memory.
  StatusOr<Tensor> Row(size_t i, int64_t row) const {
    const Tensor& t = tensors_[i];
    const size_t bytes = t.TotalBytes() / static_cast<size_t>(num_rows_);
    if (bytes == 0) return Tensor::Make(t.dtype(), row_shapes_[i]);
    const auto begin = static_cast<size_t>(static_cast<const char*>(t.raw()) - static_cast<char*>(t.buffer()->data()));
    return Tensor::FromBuffer(
        t.dtype(), row_shapes_[i], RefPtr<Buffer>::Share(t.buffer()), begin + bytes * static_cast<size_t>(row));
  }

  const Element tensors_;
  const int64_t num_rows_;
  std::vector<Shape> row_shapes_;
};

class SliceDatasetKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Element tensors, KeptInputs(ctx, "components"));
    if (tensors.empty()) return InvalidArgument("there are no components");
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].rank() == 0) return InvalidArgument("All components must be at least 1-dimensional");
      if (tensors[i].dim(0) != tensors.front().dim(0)) {
        return InvalidArgument("All components must have the same size in the 0th dimension: component 0 has ",
                               tensors.front().dim(0), ", component ", i, " has ", tensors[i].dim(0));
      }
      const PartialShape row(tensors[i].shape().WithoutDim(0));
      if (!spec().shapes[i].Merge(row).ok()) {
        return InvalidArgument("slices of component ", i, " have shape ", row.ToString(), ", output_shapes says ",
                               spec().shapes[i].ToString());
      }
    }
    return DatasetRef(MakeRef<SliceDataset>(spec(), std::move(tensors)));
  }
};

// The slices of a sparse tensor along its first dimension, each as indices, values and a shape.
class SparseSliceDataset final : public Dataset {
 public:
  // indices in the order of the first dimension.
  SparseSliceDataset(Tensor indices, Tensor values, Tensor shape)
      : Dataset(
            {{DType::kInt64, values.dtype(), DType::kInt64},
             {PartialShape::Of({-1, shape.dim(0) - 1}), PartialShape::Of({-1}), PartialShape::Of({shape.dim(0) - 1})}}),
        indices_(std::move(indices)),
        values_(std::move(values)),
        shape_(std::move(shape)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const SparseSliceDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const SparseSliceDataset> d) : dataset_(std::move(d)) {}
    StatusOr<bool> Next(DataContext&, Element* element) override {
      const SparseSliceDataset& d = *dataset_;
      if (slice_ >= d.shape_.data<int64_t>()[0]) return false;
      const int64_t rank = d.shape_.dim(0), *index = d.indices_.data<int64_t>();
      int64_t end = at_;
      while (end < d.values_.dim(0) && index[end * rank] == slice_) ++end;
      MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({end - at_, rank - 1}));
      MR_ASSIGN_OR_RETURN(Tensor indices, Tensor::Make(DType::kInt64, matrix));
      int64_t* to = indices.mutable_data<int64_t>();
      for (int64_t i = at_; i < end; ++i) to = std::copy_n(index + i * rank + 1, rank - 1, to);
      MR_ASSIGN_OR_RETURN(Tensor values, d.values_.Rows(at_, end));
      MR_ASSIGN_OR_RETURN(values, values.Clone());
      MR_ASSIGN_OR_RETURN(Tensor shape, d.shape_.Rows(1, rank));
      MR_ASSIGN_OR_RETURN(shape, shape.Clone());
      *element = {std::move(indices), std::move(values), std::move(shape)};
      at_ = end;
      ++slice_;
      return true;
    }

   private:
    const RefPtr<const SparseSliceDataset> dataset_;
    int64_t slice_ = 0, at_ = 0;
  };
  const Tensor indices_, values_, shape_;
};

class SparseSliceKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Element parts;
    for (const char* name : {"indices", "values", "dense_shape"}) {
      MR_ASSIGN_OR_RETURN(const Element one, KeptInputs(ctx, name));
      parts.push_back(one[0]);
    }
    const Tensor &indices = parts[0], &values = parts[1], &shape = parts[2];
    if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1 || shape.dim(0) < 1 ||
        indices.dim(0) != values.dim(0) || indices.dim(1) != shape.dim(0)) {
      return InvalidArgument(
          "want indices [n, rank], values [n] and a dense_shape [rank] of rank 1 or more; got shapes ",
          indices.shape().ToString(), ", ", values.shape().ToString(), " and ", shape.shape().ToString());
    }
    int64_t before = 0;
    for (int64_t i = 0; i < values.dim(0); ++i) {
      const int64_t slice = indices.data<int64_t>()[i * shape.dim(0)];
      if (slice < 0 || slice >= shape.data<int64_t>()[0]) {
        return InvalidArgument("indices[", i, ",0] = ", slice, " is not in [0, ", shape.data<int64_t>()[0], ")");
      }
      if (slice < before) {
        return Unimplemented("The SparseTensor must be ordered in the batch dimension; use tf.sparse_reorder first");
      }
      before = slice;
    }
    return DatasetRef(MakeRef<SparseSliceDataset>(indices, values, shape));
  }
};

class RangeDataset final : public Dataset {
 public:
  RangeDataset(ElementSpec spec, int64_t start, int64_t stop, int64_t step)
      : Dataset(std::move(spec)), start_(start), stop_(stop), step_(step) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const RangeDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const RangeDataset> d) : dataset_(std::move(d)), next_(dataset_->start_) {}
    StatusOr<bool> Next(DataContext&, Element* element) override {
      const RangeDataset& d = *dataset_;
      if (!next_ || (d.step_ > 0 ? *next_ >= d.stop_ : *next_ <= d.stop_)) return false;
      *element = {Tensor::Scalar<int64_t>(*next_)};
      int64_t after = 0;
      next_ = __builtin_add_overflow(*next_, d.step_, &after) ? std::nullopt : std::optional<int64_t>(after);
      return true;
    }

   private:
    const RefPtr<const RangeDataset> dataset_;
    std::optional<int64_t> next_;
  };
  const int64_t start_, stop_, step_;
};

class RangeDatasetKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(DatasetKernel::Init(init));
    return CheckSpec({{DType::kInt64}, {PartialShape::Scalar()}}, spec());
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const int64_t start, ScalarInput(ctx, 0, "start"));
    MR_ASSIGN_OR_RETURN(const int64_t stop, ScalarInput(ctx, 1, "stop"));
    MR_ASSIGN_OR_RETURN(const int64_t step, ScalarInput(ctx, 2, "step"));
    if (step == 0) return InvalidArgument("step must be a non-zero integer.");
    return DatasetRef(MakeRef<RangeDataset>(spec(), start, stop, step));
  }
};

// The records of files, one file after the other.
class FileDataset final : public Dataset {
 public:
  using NewFormat = std::function<StatusOr<std::unique_ptr<RecordFormat>>()>;
  FileDataset(std::vector<std::string> paths, NewFormat new_format)
      : Dataset({{DType::kString}, {PartialShape::Scalar()}}),
        paths_(std::move(paths)),
        new_format_(std::move(new_format)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RecordFormat> format, new_format_());
    return std::make_unique<Iterator>(RefPtr<const FileDataset>::Share(this), std::move(format));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const FileDataset> d, std::unique_ptr<RecordFormat> format)
        : dataset_(std::move(d)), format_(std::move(format)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      Record record;
      while (file_ < dataset_->paths_.size()) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        if (!open_) {
          // A file that cannot be opened is tried again by the next call, as in TensorFlow.
          MR_RETURN_IF_ERROR(format_->Open(ctx.env, dataset_->paths_[file_]));
          open_ = true;
        }
        const StatusOr<RecordFormat::Found> found = format_->Next(&record);
        if (!found.ok() || *found != RecordFormat::Found::kRecord) {
          format_->Close();
          open_ = false;
          ++file_;
        }
        MR_RETURN_IF_ERROR(found.status());
        if (*found == RecordFormat::Found::kNothing) continue;
        *element = {Tensor::Scalar<TString>(TString(record.value))};
        return true;
      }
      return false;
    }

   private:
    const RefPtr<const FileDataset> dataset_;
    const std::unique_ptr<RecordFormat> format_;
    size_t file_ = 0;
    bool open_ = false;
  };
  const std::vector<std::string> paths_;
  const NewFormat new_format_;
};

StatusOr<std::vector<std::string>> Paths(const KernelContext& ctx, absl::string_view what = "filenames") {
  const Tensor& t = ctx.input(0);
  if (t.rank() > 1) return InvalidArgument("`", what, "` must be a scalar or a vector.");
  std::vector<std::string> paths;
  for (const TString& s : t.flat<TString>()) paths.emplace_back(s.view());
  return paths;
}

// The names of the files that match patterns. They are looked for when the first is wanted.
class MatchingFilesDataset final : public Dataset {
 public:
  explicit MatchingFilesDataset(std::vector<std::string> patterns)
      : Dataset({{DType::kString}, {PartialShape::Scalar()}}), patterns_(std::move(patterns)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const MatchingFilesDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const MatchingFilesDataset> d) : dataset_(std::move(d)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      for (; at_ == names_.size() && pattern_ < dataset_->patterns_.size(); ++pattern_) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        MR_ASSIGN_OR_RETURN(names_, MatchFiles(ctx.env, dataset_->patterns_[pattern_]));
        at_ = 0;
        found_any_ = found_any_ || !names_.empty();
      }
      if (at_ == names_.size()) return found_any_ ? StatusOr<bool>(false) : NotFound("Don't find any matched files");
      *element = {Tensor::Scalar<TString>(TString(names_[at_++]))};
      return true;
    }

   private:
    const RefPtr<const MatchingFilesDataset> dataset_;
    size_t pattern_ = 0;
    std::vector<std::string> names_;  // of the pattern before that
    size_t at_ = 0;
    bool found_any_ = false;
  };
  const std::vector<std::string> patterns_;
};

class MatchingFilesKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(std::vector<std::string> patterns, Paths(ctx, "patterns"));
    return DatasetRef(MakeRef<MatchingFilesDataset>(std::move(patterns)));
  }
};

StatusOr<Compression> CompressionInput(const KernelContext& ctx, int i) {
  if (ctx.input(i).rank() != 0) return InvalidArgument("compression_type must be a scalar");
  return CompressionFromName(ctx.input(i).data<TString>()->view());
}

Status CheckBufferSize(const KernelContext& ctx, int i) {
  MR_ASSIGN_OR_RETURN(const int64_t size, ScalarInput(ctx, i, "buffer_size"));
  return size < 0 ? InvalidArgument("`buffer_size` must be >= 0 (0 == default)") : absl::OkStatus();
}

class RecordFileKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    is_text_ = init.op.name == "TextLineDataset";
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(std::vector<std::string> paths, Paths(ctx));
    MR_ASSIGN_OR_RETURN(const Compression compression, CompressionInput(ctx, 1));
    MR_RETURN_IF_ERROR(CheckBufferSize(ctx, 2));
    return DatasetRef(MakeRef<FileDataset>(
        std::move(paths), [is_text = is_text_, compression]() -> StatusOr<std::unique_ptr<RecordFormat>> {
          return is_text ? NewTextLineFormat(0, compression) : NewTfRecordFormat(compression);
        }));
  }
  bool is_text_ = false;
};

class FixedLengthFileKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(std::vector<std::string> paths, Paths(ctx));
    FixedLengths lengths{.only_whole = true};
    MR_ASSIGN_OR_RETURN(lengths.header, ScalarInput(ctx, 1, "header_bytes"));
    MR_ASSIGN_OR_RETURN(lengths.record, ScalarInput(ctx, 2, "record_bytes"));
    MR_ASSIGN_OR_RETURN(lengths.footer, ScalarInput(ctx, 3, "footer_bytes"));
    MR_RETURN_IF_ERROR(CheckBufferSize(ctx, 4));
    Compression compression = Compression::kNone;
    if (ctx.num_inputs() > 5) {
      MR_ASSIGN_OR_RETURN(compression, CompressionInput(ctx, 5));
    }
    MR_RETURN_IF_ERROR(NewFixedLengthFormat(lengths, compression).status());
    return DatasetRef(MakeRef<FileDataset>(
        std::move(paths), [lengths, compression] { return NewFixedLengthFormat(lengths, compression); }));
  }
};

}  // namespace

void RegisterDatasetSourceKernels(KernelRegistry& r) {
  r.Add<TensorDatasetKernel>({.op = "TensorDataset"});
  r.Add<SliceDatasetKernel>({.op = "TensorSliceDataset"});
  r.Add<RangeDatasetKernel>({.op = "RangeDataset"});
  r.Add<SparseSliceKernel>({.op = "SparseTensorSliceDataset"});
  for (const char* op : {"MatchingFilesDataset", "ExperimentalMatchingFilesDataset"}) {
    r.Add<MatchingFilesKernel>({.op = op});
  }
  for (const char* op : {"TFRecordDataset", "TextLineDataset"}) r.Add<RecordFileKernel>({.op = op});
  for (const char* op : {"FixedLengthRecordDataset", "FixedLengthRecordDatasetV2"}) {
    r.Add<FixedLengthFileKernel>({.op = op});
  }
}

}  // namespace millrace
