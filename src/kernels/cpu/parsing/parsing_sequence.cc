// SPDX-License-Identifier: Apache-2.0
// Kernels of ParseSequenceExample and ParseSingleSequenceExample. The context of a sequence is like an example; of a
// feature list each step is a row.
#include <algorithm>
#include <set>
#include <string>

#include "kernels/cpu/parsing/parsing.h"

namespace millrace {
namespace {

using parsing::Cell;
using parsing::DenseSpec;
using parsing::Place;
using parsing::SparseOutputs;

// Which features are wanted, and as what. Columns are counted from 0 in each of the four groups.
struct Wanted {
  std::vector<std::string> context_sparse, context_dense, list_sparse, list_dense;
  std::set<std::string> may_be_missing;  // dense lists that count as empty then
  parsing::KeyIndex context, lists;      // sparse ones first

  void MakeIndex() {
    int64_t column = 0;
    for (const auto& key : context_sparse) context.Add(key, column++);
    for (const auto& key : context_dense) context.Add(key, column++);
    column = 0;
    for (const auto& key : list_sparse) lists.Add(key, column++);
    for (const auto& key : list_dense) lists.Add(key, column++);
  }
  size_t context_count() const { return context_sparse.size() + context_dense.size(); }
  size_t list_count() const { return list_sparse.size() + list_dense.size(); }
};

struct Types {
  std::vector<DType> context_sparse, list_sparse;
  std::vector<DenseSpec> context_dense, list_dense;

  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(context_sparse, init.Attr<std::vector<DType>>("context_sparse_types"));
    MR_ASSIGN_OR_RETURN(list_sparse, init.Attr<std::vector<DType>>("feature_list_sparse_types"));
    MR_RETURN_IF_ERROR(Dense(init, "Tcontext_dense", "context_dense_shapes", &context_dense));
    return Dense(init, "feature_list_dense_types", "feature_list_dense_shapes", &list_dense);
  }
  StatusOr<std::vector<DenseSpec>> WithDefaults(const KernelContext& ctx) const {
    std::vector<DenseSpec> specs = context_dense;
    const int first = ctx.input_arg("context_dense_defaults").begin;
    for (size_t i = 0; i < specs.size(); ++i) {
      specs[i].fallback = &ctx.input(first + static_cast<int>(i));
      MR_RETURN_IF_ERROR(parsing::CheckFallback(specs[i], *specs[i].fallback, i));
    }
    return specs;
  }

 private:
  static Status Dense(const KernelInit& init, const char* types_name, const char* shapes_name,
                      std::vector<DenseSpec>* specs) {
    MR_ASSIGN_OR_RETURN(const auto types, init.Attr<std::vector<DType>>(types_name));
    MR_ASSIGN_OR_RETURN(const auto shapes, init.Attr<std::vector<PartialShape>>(shapes_name));
    if (types.size() != shapes.size()) {
      return InvalidArgument("len(", shapes_name, ") is ", shapes.size(), ", len(", types_name, ") is ", types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      MR_ASSIGN_OR_RETURN(DenseSpec spec, parsing::MakeDenseSpec(types[i], shapes[i], false));
      specs->push_back(std::move(spec));
    }
    return absl::OkStatus();
  }
};

// One feature list of all sequences: the cells of sequence i are [offsets[i], offsets[i + 1]).
struct ListColumn {
  std::vector<Cell> cells;
  std::vector<int64_t> offsets{0};
  std::vector<bool> present;
};

// All that is wanted of some sequences.
class Sequences {
 public:
  explicit Sequences(const Wanted& wanted)
      : wanted_(wanted), context_keys_(wanted.context), list_keys_(wanted.lists), lists_(wanted.list_count()) {}

  Status LookThrough(KernelContext& ctx, absl::Span<const TString> serialized, const Tensor& names) {
    rows_ = static_cast<int64_t>(serialized.size());
    int64_t count = 0;
    if (__builtin_mul_overflow(rows_, static_cast<int64_t>(wanted_.context_count()), &count)) {
      return ResourceExhausted("too many features");
    }
    MR_RETURN_IF_ERROR(context_.Allocate(ctx, count));
    for (int64_t i = 0; i < rows_; ++i) {
      if (!Add(i, serialized[static_cast<size_t>(i)])) {
        return InvalidArgument(
            "Could not parse sequence example (Name: ", Place{"", &names}.Of(i), "): not a serialized SequenceExample");
      }
    }
    return absl::OkStatus();
  }
  absl::Span<const Cell> context(size_t column) const {
    return context_.span(static_cast<int64_t>(column) * rows_, rows_);
  }
  const ListColumn& list(size_t column) const { return lists_[column]; }
  int64_t rows() const { return rows_; }

 private:
  bool Add(int64_t row, absl::string_view sequence) {
    bool good = true;
    context_keys_.Restart();
    list_keys_.Restart();
    std::vector<absl::string_view> found(lists_.size());
    std::vector<bool> present(lists_.size());
    const bool whole = wire::VisitSequence(
        sequence,
        [&](absl::string_view key, absl::string_view value) {
          context_keys_.ForEach(key, [&](int64_t column) {
            Cell& cell = context_.data()[column * rows_ + row];
            cell.present = true;
            good = wire::ViewFeature(value, &cell.feature) && good;
          });
        },
        [&](absl::string_view key, absl::string_view value) {
          list_keys_.ForEach(key, [&](int64_t column) {
            found[static_cast<size_t>(column)] = value;
            present[static_cast<size_t>(column)] = true;
          });
        });
    for (size_t k = 0; whole && good && k < lists_.size(); ++k) {
      ListColumn& list = lists_[k];
      good = wire::VisitList(found[k],
                             [&](absl::string_view feature) {
                               Cell cell;
                               cell.present = true;
                               good = wire::ViewFeature(feature, &cell.feature) && good;
                               list.cells.push_back(cell);
                             }) &&
             good;
      list.offsets.push_back(static_cast<int64_t>(list.cells.size()));
      list.present.push_back(present[k]);
    }
    return whole && good;
  }

  const Wanted& wanted_;
  parsing::KeyCursor context_keys_, list_keys_;
  int64_t rows_ = 0;
  parsing::Cells context_;
  std::vector<ListColumn> lists_;
};

// A dense feature that is there must have a value.
Status CheckContext(absl::Span<const Cell> column, DType dtype, const Place& place) {
  for (size_t i = 0; i < column.size(); ++i) {
    if (column[i].present) MR_RETURN_IF_ERROR(CheckKind(column[i], dtype, place, static_cast<int64_t>(i)));
  }
  return absl::OkStatus();
}

Status CheckList(const ListColumn& list, const DenseSpec& spec, const Place& place, bool may_be_missing) {
  for (size_t i = 0; i < list.present.size(); ++i) {
    if (list.present[i] || may_be_missing) continue;
    return InvalidArgument(
        "Name: ", place.Of(static_cast<int64_t>(i)), ", Feature list '", place.key,
        "' is required but could not be found.  Did you mean to include it in "
        "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?");
  }
  for (size_t i = 0; i < list.cells.size(); ++i) {
    MR_RETURN_IF_ERROR(CheckKind(list.cells[i], spec.dtype, place, static_cast<int64_t>(i)));
    if (list.cells[i].feature.count != spec.elements) {
      return InvalidArgument(
          "Name: ", place.Of(0), ", Key: ", place.key, ", Index: ", i, ".  Number of ", DTypeName(spec.dtype),
          " values != expected.  values size: ", list.cells[i].feature.count,
          " but output shape: ", PartialShape::Of(spec.dims).ToString());
    }
  }
  return absl::OkStatus();
}

// Numbers of the first outputs: context sparse indices, values, shapes, context dense, list sparse likewise, list
// dense.
struct OutputMap {
  int context_sparse, context_dense, list_sparse, list_dense, lengths;
  explicit OutputMap(const Wanted& w) {
    const int cs = static_cast<int>(w.context_sparse.size()), cd = static_cast<int>(w.context_dense.size());
    const int ls = static_cast<int>(w.list_sparse.size()), ld = static_cast<int>(w.list_dense.size());
    context_sparse = 0;
    context_dense = 3 * cs;
    list_sparse = context_dense + cd;
    list_dense = list_sparse + 3 * ls;
    lengths = list_dense + ld;
  }
};

SparseOutputs Sparse(int first, size_t column, size_t count) {
  const int k = first + static_cast<int>(column), n = static_cast<int>(count);
  return {k, k + n, k + 2 * n};
}

// The outputs of one sequence.
Status WriteOne(KernelContext& ctx, const Wanted& w, const Types& types, const Sequences& s, const Tensor& names) {
  const OutputMap at(w);
  MR_ASSIGN_OR_RETURN(const std::vector<DenseSpec> dense, types.WithDefaults(ctx));
  for (size_t k = 0; k < w.context_sparse.size(); ++k) {
    MR_RETURN_IF_ERROR(WriteSparseCell(
        ctx, types.context_sparse[k], s.context(k)[0], Place{w.context_sparse[k], &names},
        Sparse(at.context_sparse, k, w.context_sparse.size())));
  }
  for (size_t k = 0; k < dense.size(); ++k) {
    const Place place{w.context_dense[k], &names};
    const auto column = s.context(w.context_sparse.size() + k);
    MR_RETURN_IF_ERROR(CheckContext(column, dense[k].dtype, place));
    MR_RETURN_IF_ERROR(WriteDenseCell(ctx, dense[k], column[0], place, at.context_dense + static_cast<int>(k)));
  }
  for (size_t k = 0; k < w.list_sparse.size(); ++k) {
    MR_RETURN_IF_ERROR(WriteSparse(ctx, types.list_sparse[k], s.list(k).cells, Place{w.list_sparse[k], &names, true},
                                   Sparse(at.list_sparse, k, w.list_sparse.size())));
  }
  for (size_t k = 0; k < w.list_dense.size(); ++k) {
    const ListColumn& list = s.list(w.list_sparse.size() + k);
    const Place place{w.list_dense[k], &names, true};
    MR_RETURN_IF_ERROR(CheckList(list, types.list_dense[k], place, w.may_be_missing.contains(w.list_dense[k])));
    MR_RETURN_IF_ERROR(WriteDense(ctx, types.list_dense[k], list.cells, place, at.list_dense + static_cast<int>(k)));
  }
  return absl::OkStatus();
}

// [sequences, longest, dims...], zeros behind the end.
Status WriteLists(KernelContext& ctx, const DenseSpec& spec, const ListColumn& list, int output) {
  const size_t count = list.present.size();
  int64_t longest = 0;
  for (size_t i = 0; i < count; ++i) longest = std::max(longest, list.offsets[i + 1] - list.offsets[i]);
  std::vector<int64_t> dims = spec.dims;
  dims.insert(dims.begin(), {static_cast<int64_t>(count), longest});
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, shape));
  if (out->dtype() != DType::kString && shape.num_elements() > 0) {
    std::fill_n(static_cast<char*>(out->mutable_raw()), out->TotalBytes(), char{0});
  }
  for (size_t i = 0; i < count; ++i) {
    int64_t to = static_cast<int64_t>(i) * longest * spec.elements;
    for (int64_t c = list.offsets[i]; c < list.offsets[i + 1]; ++c, to += spec.elements) {
      parsing::CopyValues(list.cells[static_cast<size_t>(c)], *out, to);
    }
  }
  return absl::OkStatus();
}

Status WriteLengths(KernelContext& ctx, const ListColumn& list, bool scalar, int output) {
  const int64_t count = static_cast<int64_t>(list.present.size());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, scalar ? Shape() : Shape::Vector(count)));
  for (size_t i = 0; i < list.present.size(); ++i) {
    out->mutable_data<int64_t>()[i] = list.offsets[i + 1] - list.offsets[i];
  }
  return absl::OkStatus();
}

// The outputs of a batch of sequences.
Status WriteBatch(KernelContext& ctx, const Wanted& w, const Types& types, const Sequences& s, const Tensor& names) {
  const OutputMap at(w);
  MR_ASSIGN_OR_RETURN(const std::vector<DenseSpec> dense, types.WithDefaults(ctx));
  for (size_t k = 0; k < w.context_sparse.size(); ++k) {
    MR_RETURN_IF_ERROR(WriteSparse(ctx, types.context_sparse[k], s.context(k), Place{w.context_sparse[k], &names},
                                   Sparse(at.context_sparse, k, w.context_sparse.size())));
  }
  for (size_t k = 0; k < dense.size(); ++k) {
    const Place place{w.context_dense[k], &names};
    const auto column = s.context(w.context_sparse.size() + k);
    MR_RETURN_IF_ERROR(CheckContext(column, dense[k].dtype, place));
    MR_RETURN_IF_ERROR(WriteDense(ctx, dense[k], column, place, at.context_dense + static_cast<int>(k)));
  }
  for (size_t k = 0; k < w.list_sparse.size(); ++k) {
    MR_RETURN_IF_ERROR(WriteSparseLists(
        ctx, types.list_sparse[k], s.list(k).cells, s.list(k).offsets, Place{w.list_sparse[k], &names, true},
        Sparse(at.list_sparse, k, w.list_sparse.size())));
  }
  for (size_t k = 0; k < w.list_dense.size(); ++k) {
    const ListColumn& list = s.list(w.list_sparse.size() + k);
    const Place place{w.list_dense[k], &names, true};
    MR_RETURN_IF_ERROR(CheckList(list, types.list_dense[k], place, w.may_be_missing.contains(w.list_dense[k])));
    MR_RETURN_IF_ERROR(WriteLists(ctx, types.list_dense[k], list, at.list_dense + static_cast<int>(k)));
  }
  return absl::OkStatus();
}

Status WriteAllLengths(KernelContext& ctx, const Wanted& w, const Sequences& s, bool scalar) {
  for (size_t k = 0; k < w.list_dense.size(); ++k) {
    MR_RETURN_IF_ERROR(
        WriteLengths(ctx, s.list(w.list_sparse.size() + k), scalar, OutputMap(w).lengths + static_cast<int>(k)));
  }
  return absl::OkStatus();
}

// Keys are attributes.
class ParseSequenceExampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(types_.Init(init));
    using Strings = std::vector<std::string>;
    MR_ASSIGN_OR_RETURN(wanted_.context_sparse, init.Attr<Strings>("context_sparse_keys"));
    MR_ASSIGN_OR_RETURN(wanted_.context_dense, init.Attr<Strings>("context_dense_keys"));
    MR_ASSIGN_OR_RETURN(wanted_.list_sparse, init.Attr<Strings>("feature_list_sparse_keys"));
    MR_ASSIGN_OR_RETURN(wanted_.list_dense, init.Attr<Strings>("feature_list_dense_keys"));
    MR_ASSIGN_OR_RETURN(const auto missing, init.Attr<Strings>("feature_list_dense_missing_assumed_empty"));
    wanted_.may_be_missing.insert(missing.begin(), missing.end());
    wanted_.MakeIndex();
    MR_RETURN_IF_ERROR(CheckCount(init, "Ncontext_sparse", wanted_.context_sparse, types_.context_sparse.size()));
    MR_RETURN_IF_ERROR(CheckCount(init, "Ncontext_dense", wanted_.context_dense, types_.context_dense.size()));
    MR_RETURN_IF_ERROR(CheckCount(init, "Nfeature_list_sparse", wanted_.list_sparse, types_.list_sparse.size()));
    return CheckCount(init, "Nfeature_list_dense", wanted_.list_dense, types_.list_dense.size());
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &serialized = ctx.input(0), &names = ctx.input(1);
    if (serialized.rank() > 1) {
      return InvalidArgument("serialized must be a scalar or a vector, got shape ", serialized.shape().ToString());
    }
    if (names.num_elements() != 0 && names.num_elements() != serialized.num_elements()) {
      return InvalidArgument(
          "debug_name must be empty or have ", serialized.num_elements(), " elements, got ", names.num_elements());
    }
    Sequences sequences(wanted_);
    MR_RETURN_IF_ERROR(sequences.LookThrough(ctx, serialized.flat<TString>(), names));
    const bool one = serialized.rank() == 0;
    MR_RETURN_IF_ERROR(
        one ? WriteOne(ctx, wanted_, types_, sequences, names) : WriteBatch(ctx, wanted_, types_, sequences, names));
    return WriteAllLengths(ctx, wanted_, sequences, one);
  }

 private:
  static Status CheckCount(const KernelInit& init, const char* attr, const std::vector<std::string>& keys,
                           size_t types) {
    MR_ASSIGN_OR_RETURN(const int64_t count, init.Attr<int64_t>(attr));
    if (count == static_cast<int64_t>(keys.size()) && keys.size() == types) return absl::OkStatus();
    return InvalidArgument(attr, " is ", count, ", with ", keys.size(), " keys and ", types, " types");
  }

  Wanted wanted_;
  Types types_;
};

// Keys are inputs.
class ParseSingleSequenceExampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return types_.Init(init); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &serialized = ctx.input(0), &missing = ctx.input(1);
    const Tensor& names = ctx.input(ctx.input_arg("debug_name").begin);
    if (serialized.rank() != 0) {
      return InvalidArgument("Expected serialized to be a scalar, got shape: ", serialized.shape().ToString());
    }
    if (names.rank() != 0) {
      return InvalidArgument("Expected debug_name to be a scalar, got shape: ", names.shape().ToString());
    }
    if (missing.rank() != 1) {
      return InvalidArgument(
          "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: ", missing.shape().ToString());
    }
    Wanted wanted;
    for (const TString& key : missing.flat<TString>()) wanted.may_be_missing.insert(key.str());
    MR_RETURN_IF_ERROR(Keys(ctx, "context_sparse_keys", types_.context_sparse.size(), &wanted.context_sparse));
    MR_RETURN_IF_ERROR(Keys(ctx, "context_dense_keys", types_.context_dense.size(), &wanted.context_dense));
    MR_RETURN_IF_ERROR(Keys(ctx, "feature_list_sparse_keys", types_.list_sparse.size(), &wanted.list_sparse));
    MR_RETURN_IF_ERROR(Keys(ctx, "feature_list_dense_keys", types_.list_dense.size(), &wanted.list_dense));
    wanted.MakeIndex();
    Sequences sequences(wanted);
    MR_RETURN_IF_ERROR(sequences.LookThrough(ctx, serialized.flat<TString>(), names));
    return WriteOne(ctx, wanted, types_, sequences, names);
  }

 private:
  static Status Keys(const KernelContext& ctx, const char* arg, size_t types, std::vector<std::string>* keys) {
    const ArgRange range = ctx.input_arg(arg);
    for (int i = range.begin; i < range.end; ++i) {
      const Tensor& key = ctx.input(i);
      if (key.rank() != 0) {
        return InvalidArgument(
            "Expected ", arg, "[", i - range.begin, "] to be a scalar, got shape: ", key.shape().ToString());
      }
      keys->push_back(key.data<TString>()->str());
    }
    if (keys->size() == types) return absl::OkStatus();
    return InvalidArgument(arg, " has ", keys->size(), " keys, for ", types, " types");
  }

  Types types_;
};

}  // namespace

void RegisterSequenceKernels(KernelRegistry& registry) {
  registry.Add<ParseSequenceExampleKernel>({.op = "ParseSequenceExample"});
  registry.Add<ParseSingleSequenceExampleKernel>({.op = "ParseSingleSequenceExample"});
}

}  // namespace millrace
