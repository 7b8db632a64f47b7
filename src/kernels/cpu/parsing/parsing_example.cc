// SPDX-License-Identifier: Apache-2.0
// Kernels of ParseExample and ParseSingleExample.
#include <atomic>

#include "kernels/cpu/parsing/parsing.h"

namespace millrace {
namespace {

using parsing::Cell;
using parsing::DenseSpec;
using parsing::Place;
using parsing::SparseOutputs;

// Fills the cells of one example: `cell(column)` is where each column's goes. False when it is malformed.
template <typename CellOf>
bool LookThrough(absl::string_view example, parsing::KeyCursor& keys, CellOf cell) {
  bool good = true;
  keys.Restart();
  const bool whole = wire::VisitFeatures(example, [&](absl::string_view key, absl::string_view value) {
    keys.ForEach(key, [&](int64_t column) {
      Cell& c = cell(column);
      c.present = true;
      good = wire::ViewFeature(value, &c.feature) && good;
    });
  });
  return whole && good;
}

Status CannotParse(const std::string& name) {
  return InvalidArgument("Could not parse example input (Name: ", name, "): not a serialized Example");
}

// What both ops are told.
struct Attributes {
  std::vector<DType> sparse_types;
  std::vector<DenseSpec> dense;

  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(sparse_types, init.Attr<std::vector<DType>>("sparse_types"));
    MR_ASSIGN_OR_RETURN(const auto dense_types, init.Attr<std::vector<DType>>("Tdense"));
    MR_ASSIGN_OR_RETURN(const auto shapes, init.Attr<std::vector<PartialShape>>("dense_shapes"));
    if (shapes.size() != dense_types.size()) {
      return InvalidArgument("len(dense_shapes) is ", shapes.size(), ", len(dense_keys) is ", dense_types.size());
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      MR_ASSIGN_OR_RETURN(DenseSpec spec, parsing::MakeDenseSpec(dense_types[i], shapes[i], true));
      dense.push_back(std::move(spec));
    }
    return absl::OkStatus();
  }
  // With the defaults of this step, input `first` and those after it.
  StatusOr<std::vector<DenseSpec>> WithDefaults(const KernelContext& ctx, int first) const {
    std::vector<DenseSpec> specs = dense;
    for (size_t i = 0; i < specs.size(); ++i) {
      specs[i].fallback = &ctx.input(first + static_cast<int>(i));
      MR_RETURN_IF_ERROR(parsing::CheckFallback(specs[i], *specs[i].fallback, i));
    }
    return specs;
  }
};

class ParseExampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attributes_.Init(init); }

  Status Compute(KernelContext& ctx) override {
    const Tensor &serialized = ctx.input(0), &names = ctx.input(1);
    if (serialized.rank() != 1) {
      return InvalidArgument("Expected serialized to be a vector, got shape: ", serialized.shape().ToString());
    }
    if (names.num_elements() != 0 && names.shape() != serialized.shape()) {
      return InvalidArgument("Expected names to be empty or of the shape of serialized, got ", names.shape().ToString(),
                             " and ", serialized.shape().ToString());
    }
    const ArgRange sparse = ctx.input_arg("sparse_keys"), dense = ctx.input_arg("dense_keys");
    const int defaults = ctx.input_arg("dense_defaults").begin;
    MR_ASSIGN_OR_RETURN(const std::vector<DenseSpec> specs, attributes_.WithDefaults(ctx, defaults));
    std::vector<std::string> keys;
    parsing::KeyIndex index;
    for (const ArgRange& range : {sparse, dense}) {
      for (int i = range.begin; i < range.end; ++i) {
        const Tensor& key = ctx.input(i);
        if (key.num_elements() != 1) {
          return InvalidArgument("a key must be a scalar, got shape ", key.shape().ToString());
        }
        index.Add(key.data<TString>()->view(), static_cast<int64_t>(keys.size()));
        keys.push_back(key.data<TString>()->str());
      }
    }
    parsing::Cells cells;
    const int64_t rows = serialized.dim(0), columns = static_cast<int64_t>(keys.size());
    int64_t count = 0;
    if (__builtin_mul_overflow(rows, columns, &count)) return ResourceExhausted("too many features");
    MR_RETURN_IF_ERROR(cells.Allocate(ctx, count));
    MR_RETURN_IF_ERROR(LookThroughAll(ctx, serialized, names, index, cells));
    const int sparse_count = sparse.end - sparse.begin;
    for (int k = 0; k < static_cast<int>(columns); ++k) {
      const Place place{keys[static_cast<size_t>(k)], &names};
      const auto column = cells.span(k * rows, rows);
      MR_RETURN_IF_ERROR(
          k < sparse_count
              ? WriteSparse(ctx, attributes_.sparse_types[static_cast<size_t>(k)], column, place,
                            SparseOutputs{k, sparse_count + k, 2 * sparse_count + k})
              : WriteDense(ctx, specs[static_cast<size_t>(k - sparse_count)], column, place, 2 * sparse_count + k));
    }
    return absl::OkStatus();
  }

 private:
  static Status LookThroughAll(KernelContext& ctx, const Tensor& serialized, const Tensor& names,
                               const parsing::KeyIndex& index, const parsing::Cells& cells) {
    const int64_t rows = serialized.dim(0);
    size_t bytes = 0;
    for (const TString& s : serialized.flat<TString>()) bytes += s.size();
    const double cost = rows == 0 ? 0 : 200 + static_cast<double>(bytes) / static_cast<double>(rows);
    std::atomic<int64_t> bad = rows;
    ctx.ParallelFor(rows, cost, [&](int64_t begin, int64_t end) {
      parsing::KeyCursor cursor(index);
      for (int64_t i = begin; i < end; ++i) {
        const auto cell = [&](int64_t column) -> Cell& { return cells.data()[column * rows + i]; };
        if (LookThrough(serialized.data<TString>()[i], cursor, cell)) continue;
        int64_t known = bad.load();
        while (i < known && !bad.compare_exchange_weak(known, i)) {
        }
      }
    });
    return bad == rows ? absl::OkStatus() : CannotParse(Place{"", &names}.Of(bad));
  }

  Attributes attributes_;
};

class ParseSingleExampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(attributes_.Init(init));
    MR_ASSIGN_OR_RETURN(const auto sparse, init.Attr<std::vector<std::string>>("sparse_keys"));
    MR_ASSIGN_OR_RETURN(const auto dense, init.Attr<std::vector<std::string>>("dense_keys"));
    MR_ASSIGN_OR_RETURN(const int64_t count, init.Attr<int64_t>("num_sparse"));
    if (sparse.size() != attributes_.sparse_types.size() || count != static_cast<int64_t>(sparse.size())) {
      return InvalidArgument("num_sparse is ", count, ", len(sparse_keys) ", sparse.size(), ", len(sparse_types) ",
                             attributes_.sparse_types.size());
    }
    if (dense.size() != attributes_.dense.size()) {
      return InvalidArgument("len(dense_keys) is ", dense.size(), ", len(Tdense) is ", attributes_.dense.size());
    }
    keys_ = sparse;
    keys_.insert(keys_.end(), dense.begin(), dense.end());
    for (size_t i = 0; i < keys_.size(); ++i) index_.Add(keys_[i], static_cast<int64_t>(i));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& serialized = ctx.input(0);
    if (serialized.rank() != 0) {
      return InvalidArgument("Expected serialized to be a scalar, got shape: ", serialized.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const std::vector<DenseSpec> specs, attributes_.WithDefaults(ctx, 1));
    std::vector<Cell> cells(keys_.size());
    parsing::KeyCursor cursor(index_);
    if (!LookThrough(*serialized.data<TString>(), cursor, [&](int64_t column) -> Cell& {
          return cells[static_cast<size_t>(column)];
        })) {
      return CannotParse("<unknown>");
    }
    const int sparse = static_cast<int>(attributes_.sparse_types.size());
    for (int k = 0; k < static_cast<int>(cells.size()); ++k) {
      const auto i = static_cast<size_t>(k);
      MR_RETURN_IF_ERROR(
          k < sparse
              ? WriteSparseCell(ctx, attributes_.sparse_types[i], cells[i], Place{keys_[i]},
                                SparseOutputs{k, sparse + k, 2 * sparse + k})
              : WriteDenseCell(ctx, specs[static_cast<size_t>(k - sparse)], cells[i], Place{keys_[i]}, 2 * sparse + k));
    }
    return absl::OkStatus();
  }

 private:
  Attributes attributes_;
  std::vector<std::string> keys_;
  parsing::KeyIndex index_;
};

}  // namespace

void RegisterExampleKernels(KernelRegistry& registry) {
  registry.Add<ParseExampleKernel>({.op = "ParseExample"});
  registry.Add<ParseSingleExampleKernel>({.op = "ParseSingleExample"});
}

void RegisterParsingKernels(KernelRegistry& registry) {
  RegisterExampleKernels(registry);
  RegisterSequenceKernels(registry);
  RegisterCsvKernels(registry);
  RegisterJsonKernels(registry);
  RegisterMessageTensorKernels(registry);
}

}  // namespace millrace
