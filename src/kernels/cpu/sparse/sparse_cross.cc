// SPDX-License-Identifier: Apache-2.0
// CPU kernel: crosses of features.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/string_hash.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

// One more fingerprint chained to those before.
uint64_t ChainFingerprint(uint64_t before, uint64_t next) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  const auto mix = [](uint64_t v) { return v ^ (v >> 47); };
  const uint64_t chained = ((before ^ kMul) ^ (mix(next * kMul) * kMul)) * kMul;
  return mix(mix(chained) * kMul);
}

// How TensorFlow's first crosses chained them (core/lib/hash/hash.h, Hash64Combine), of numbers with a sign.
uint64_t ChainHash(uint64_t before, uint64_t next) {
  return before ^
         (next + 0x9e3779b97f4a7800 + (before << 10) + static_cast<uint64_t>(static_cast<int64_t>(before) >> 4));
}
constexpr uint64_t kFirstKey = 0xDECAFCAFFE;

// The features of one column, in the order of their rows.
struct Column {
  const Tensor* values = nullptr;
  bool sparse = false;
  const int64_t* indices = nullptr;  // of a sparse column: [n, 2], sorted by row
  int64_t n = 0;
  int64_t width = 0;  // of a dense one

  uint64_t Hash(int64_t at) const {
    if (values->dtype() == DType::kString) return Fingerprint64(values->data<TString>()[at].view());
    return static_cast<uint64_t>(values->data<int64_t>()[at]);
  }
  std::string Text(int64_t at) const {
    if (values->dtype() == DType::kString) return values->data<TString>()[at].str();
    return absl::StrCat(values->data<int64_t>()[at]);
  }
};

// The features [begin, end) that each column has in a row, from which the crosses choose.
struct Choices {
  int64_t row = 0, count = 0;
  std::vector<std::pair<int64_t, int64_t>> ranges;
};

// Rows in which each column has a feature. Walks the elements of sparse columns, so that their shape costs nothing.
StatusOr<std::vector<Choices>> ChoicesOf(const std::vector<Column>& columns, int64_t rows) {
  std::vector<Choices> all;
  std::vector<int64_t> next(columns.size(), 0);
  const auto is_empty = [](const Column& c) { return c.sparse ? c.n == 0 : c.width == 0; };
  if (columns.empty() || std::any_of(columns.begin(), columns.end(), is_empty)) return all;
  StopNowAndThen pause;
  for (int64_t row = 0; row < rows; ++row) {
    pause(std::ssize(columns));
    Choices choices{.row = row, .count = 1, .ranges = {}};
    int64_t skip_to = row;
    for (size_t c = 0; c < columns.size(); ++c) {
      const Column& column = columns[c];
      int64_t begin = row * column.width, end = begin + column.width;
      if (column.sparse) {
        for (begin = next[c]; begin < column.n && column.indices[2 * begin] < row; ++begin) pause();
        for (end = begin; end < column.n && column.indices[2 * end] == row; ++end) pause();
        next[c] = end;
        if (begin == end) skip_to = std::max(skip_to, begin == column.n ? rows : column.indices[2 * begin]);
      }
      if (!CheckedMul(choices.count, end - begin, &choices.count)) return InvalidArgument("too many crosses in a row");
      choices.ranges.emplace_back(begin, end);
    }
    if (choices.count > 0) all.push_back(std::move(choices));
    row = std::max(row, skip_to - 1);
  }
  return all;
}

ArgRange DenseArg(const KernelContext& ctx) {
  return ctx.input_arg(ctx.node().op->name == "SparseCross" ? "dense_inputs" : "dense");
}

class CrossKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(hashed_, init.Attr<bool>("hashed_output"));
    MR_ASSIGN_OR_RETURN(buckets_, init.Attr<int64_t>("num_buckets"));
    if (init.HasAttr("hash_key")) {
      MR_ASSIGN_OR_RETURN(const int64_t key, init.Attr<int64_t>("hash_key"));
      key_ = static_cast<uint64_t>(key);
    } else {
      chain_ = ChainHash;
    }
    if (hashed_ != (init.output_type(1) == DType::kInt64)) {
      return InvalidArgument("hashed output is int64, and other output string, not ", DTypeName(init.output_type(1)));
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const int64_t rows, NumberOfRows(ctx));
    MR_ASSIGN_OR_RETURN(const std::vector<Column> columns, Columns(ctx, rows));
    MR_ASSIGN_OR_RETURN(const std::vector<Choices> all, ChoicesOf(columns, rows));
    int64_t total = 0, most = 0;
    for (const Choices& choices : all) {
      if (!CheckedAdd(total, choices.count, &total)) return InvalidArgument("too many crosses");
      most = std::max(most, choices.count);
    }
    MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({total, 2}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, matrix));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Vector(total)));
    MR_RETURN_IF_ERROR(SetVector(ctx, 2, {rows, most}));
    int64_t at = 0;
    StopNowAndThen pause;
    std::vector<int64_t> chosen(columns.size());
    for (const Choices& choices : all) {
      for (size_t c = 0; c < columns.size(); ++c) chosen[c] = choices.ranges[c].first;
      for (int64_t k = 0; k < choices.count; ++k, ++at) {
        pause();
        indices->mutable_data<int64_t>()[2 * at] = choices.row;
        indices->mutable_data<int64_t>()[2 * at + 1] = k;
        Write(columns, chosen, values, at);
        for (size_t c = columns.size(); c-- > 0;) {  // the last column's feature changes first
          if (++chosen[c] < choices.ranges[c].second) break;
          chosen[c] = choices.ranges[c].first;
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static StatusOr<int64_t> NumberOfRows(const KernelContext& ctx) {
    const ArgRange shapes = ctx.input_arg("shapes"), dense = DenseArg(ctx);
    int64_t rows = -1;
    const auto merge = [&](int64_t own) -> Status {
      if (own < 0) return InvalidArgument("a number of rows is negative: ", own);
      if (rows >= 0 && own != rows) return InvalidArgument("Expected batch size ", rows, ", got ", own);
      rows = own;
      return absl::OkStatus();
    };
    for (int i = shapes.begin; i < shapes.end; ++i) {
      if (ctx.input(i).rank() != 1 || ctx.input(i).dim(0) != 2) {
        return InvalidArgument("shapes should describe matrices, got a shape of ", ctx.input(i).shape().ToString());
      }
      MR_RETURN_IF_ERROR(merge(ctx.input(i).data<int64_t>()[0]));
    }
    for (int i = dense.begin; i < dense.end; ++i) {
      if (ctx.input(i).rank() != 2) {
        return InvalidArgument("dense inputs should be matrices, got ", ctx.input(i).shape().ToString());
      }
      MR_RETURN_IF_ERROR(merge(ctx.input(i).dim(0)));
    }
    return std::max(rows, int64_t{0});
  }

  static StatusOr<std::vector<Column>> Columns(const KernelContext& ctx, int64_t rows) {
    const ArgRange indices = ctx.input_arg("indices"), values = ctx.input_arg("values"),
                   shapes = ctx.input_arg("shapes"), dense = DenseArg(ctx);
    const int count = indices.end - indices.begin;
    if (values.end - values.begin != count) {
      return InvalidArgument("expected ", count, " values, got ", values.end - values.begin);
    }
    std::vector<Column> columns;
    for (int i = 0; i < count; ++i) {
      MR_ASSIGN_OR_RETURN(
          const SparseArg s, SparseArgOf(ctx, indices.begin + i, values.begin + i, shapes.begin + i, "a column"));
      StopNowAndThen pause;
      for (int64_t e = 0; e < s.n; ++e) {
        pause();
        const int64_t row = s.at(e)[0];
        if (!InRange(row, rows)) return IndexOutOfRange("indices", s.indices->shape(), 2 * e, row, rows);
        if (e > 0 && row < s.at(e - 1)[0]) return InvalidArgument("indices[", e, "] is out of order");
      }
      columns.push_back({.values = s.values, .sparse = true, .indices = s.indices->data<int64_t>(), .n = s.n});
    }
    for (int i = dense.begin; i < dense.end; ++i) {
      columns.push_back({.values = &ctx.input(i), .width = ctx.input(i).dim(1)});
    }
    return columns;
  }

  void Write(const std::vector<Column>& columns, const std::vector<int64_t>& chosen, Tensor* out, int64_t at) const {
    if (hashed_) {
      uint64_t hash = key_;
      for (size_t c = 0; c < columns.size(); ++c) hash = chain_(hash, columns[c].Hash(chosen[c]));
      const uint64_t limit = static_cast<uint64_t>(buckets_ > 0 ? buckets_ : std::numeric_limits<int64_t>::max());
      out->mutable_data<int64_t>()[at] = static_cast<int64_t>(hash % limit);
      return;
    }
    std::string text;
    for (size_t c = 0; c < columns.size(); ++c) {
      absl::StrAppend(&text, c == 0 ? "" : "_X_", columns[c].Text(chosen[c]));
    }
    out->mutable_data<TString>()[at] = text;
  }

  bool hashed_ = false;
  int64_t buckets_ = 0;
  uint64_t key_ = kFirstKey;
  uint64_t (*chain_)(uint64_t before, uint64_t next) = ChainFingerprint;
};

}  // namespace

void RegisterSparseCrossKernels(KernelRegistry& registry) {
  for (const char* op : {"SparseCross", "SparseFeatureCross", "SparseFeatureCrossV2"}) {
    registry.Add<CrossKernel>({.op = op});
  }
}

}  // namespace millrace
