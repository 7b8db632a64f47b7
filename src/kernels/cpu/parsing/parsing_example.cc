// SPDX-License-Identifier: Apache-2.0
// Kernels of ParseExample, ParseExampleV2 and ParseSingleExample.
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

// ParseExample takes a scalar for each key; ParseExampleV2 takes vectors of keys, has ragged features too, and takes a
// single example as well, which has no batch dimension.
class ParseExampleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(attributes_.Init(init));
    is_second_ = init.op.name == "ParseExampleV2";
    if (!is_second_) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(ragged_types_, init.Attr<std::vector<DType>>("ragged_value_types"));
    MR_ASSIGN_OR_RETURN(const auto split_types, init.Attr<std::vector<DType>>("ragged_split_types"));
    MR_ASSIGN_OR_RETURN(const int64_t count, init.Attr<int64_t>("num_sparse"));
    if (split_types.size() != ragged_types_.size()) {
      return InvalidArgument(
          "len(ragged_value_types) is ", ragged_types_.size(), ", len(ragged_split_types) is ", split_types.size());
    }
    if (count == static_cast<int64_t>(attributes_.sparse_types.size())) return absl::OkStatus();
    return InvalidArgument("num_sparse is ", count, ", len(sparse_types) is ", attributes_.sparse_types.size());
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor &serialized = ctx.input(0), &names = ctx.input(1);
    if (serialized.rank() > 1 || (serialized.rank() == 0 && !is_second_)) {
      return InvalidArgument("Expected serialized to be a ", is_second_ ? "scalar or " : "",
                             "vector, got shape: ", serialized.shape().ToString());
    }
    if (names.num_elements() != 0 && names.shape() != serialized.shape()) {
      return InvalidArgument("Expected names to be empty or of the shape of serialized, got ", names.shape().ToString(),
                             " and ", serialized.shape().ToString());
    }
    const int defaults = ctx.input_arg("dense_defaults").begin;
    MR_ASSIGN_OR_RETURN(const std::vector<DenseSpec> specs, attributes_.WithDefaults(ctx, defaults));
    std::vector<std::string> keys;
    MR_RETURN_IF_ERROR(AddKeys(ctx, "sparse_keys", attributes_.sparse_types.size(), &keys));
    MR_RETURN_IF_ERROR(AddKeys(ctx, "dense_keys", specs.size(), &keys));
    if (is_second_) MR_RETURN_IF_ERROR(AddKeys(ctx, "ragged_keys", ragged_types_.size(), &keys));
    parsing::KeyIndex index;
    for (size_t i = 0; i < keys.size(); ++i) index.Add(keys[i], static_cast<int64_t>(i));
    parsing::Cells cells;
    const int64_t rows = serialized.num_elements(), columns = static_cast<int64_t>(keys.size());
    int64_t count = 0;
    if (__builtin_mul_overflow(rows, columns, &count)) return ResourceExhausted("too many features");
    MR_RETURN_IF_ERROR(cells.Allocate(ctx, count));
    MR_RETURN_IF_ERROR(LookThroughAll(ctx, serialized, names, index, cells));
    for (int64_t k = 0; k < columns; ++k) {
      const Place place{keys[static_cast<size_t>(k)], &names};
      MR_RETURN_IF_ERROR(
          Write(ctx, specs, static_cast<int>(k), cells.span(k * rows, rows), place, serialized.rank() == 1));
    }
    return absl::OkStatus();
  }

 private:
  static Status AddKeys(const KernelContext& ctx, const char* name, size_t count, std::vector<std::string>* keys) {
    const ArgRange range = ctx.input_arg(name);
    const size_t before = keys->size();
    for (int i = range.begin; i < range.end; ++i) {
      const Tensor& key = ctx.input(i);
      if (range.end - range.begin != 1 && key.num_elements() != 1) {
        return InvalidArgument("a key must be a scalar, got shape ", key.shape().ToString());
      }
      for (const TString& k : key.flat<TString>()) keys->push_back(k.str());
    }
    if (keys->size() - before == count) return absl::OkStatus();
    return InvalidArgument(name, " has ", keys->size() - before, " keys for ", count, " types");
  }

  // Column k: those of sparse features come first, then dense and ragged ones.
  Status Write(KernelContext& ctx, const std::vector<DenseSpec>& specs, int k, absl::Span<const Cell> column,
               const Place& place, bool is_batch) const {
    const int sparse = static_cast<int>(attributes_.sparse_types.size()), dense = static_cast<int>(specs.size());
    if (k < sparse) {
      const DType type = attributes_.sparse_types[static_cast<size_t>(k)];
      const SparseOutputs outputs{k, sparse + k, 2 * sparse + k};
      return is_batch ? WriteSparse(ctx, type, column, place, outputs)
                      : WriteSparseCell(ctx, type, column[0], place, outputs);
    }
    k -= sparse;
    if (k < dense) {
      const DenseSpec& spec = specs[static_cast<size_t>(k)];
      return is_batch ? WriteDense(ctx, spec, column, place, 3 * sparse + k)
                      : WriteDenseCell(ctx, spec, column[0], place, 3 * sparse + k);
    }
    k -= dense;
    const DType type = ragged_types_[static_cast<size_t>(k)];
    const int values = 3 * sparse + dense + k, splits = values + static_cast<int>(ragged_types_.size());
    return is_batch ? WriteRagged(ctx, type, column, place, values, splits)
                    : WriteRaggedCell(ctx, type, column[0], place, values, splits);
  }

  static Status LookThroughAll(KernelContext& ctx, const Tensor& serialized, const Tensor& names,
                               const parsing::KeyIndex& index, const parsing::Cells& cells) {
    const int64_t rows = serialized.num_elements();
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
  std::vector<DType> ragged_types_;
  bool is_second_ = false;
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
  registry.Add<ParseExampleKernel>({.op = "ParseExampleV2"});
  registry.Add<ParseSingleExampleKernel>({.op = "ParseSingleExample"});
}

void RegisterParsingKernels(KernelRegistry& registry) {
  RegisterExampleKernels(registry);
  RegisterSequenceKernels(registry);
  RegisterCsvKernels(registry);
  RegisterLibsvmKernels(registry);
  RegisterJsonKernels(registry);
  RegisterMessageTensorKernels(registry);
}

}  // namespace millrace
