// SPDX-License-Identifier: Apache-2.0
// The elements that go into one result are cut into pieces of about kPiece elements, by shape alone; pieces are reduced
// independently, on any thread, and merged in order. So the result does not depend on the number of threads.
#include "kernels/cpu/engine/math_reduce.h"

#include <algorithm>

namespace millrace {
namespace {

constexpr int64_t kPiece = 128 << 10;
constexpr double kNanosPerByte = 0.08;
constexpr int64_t kSequentialBytes = 64 << 10;  // read in order before going to the next stretch

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Accumulators on the stack.
struct Tile {
  alignas(64) char bytes[kReduceTile * kReduceAccumulatorBytes];
};

class Reduction {
 public:
  Reduction(KernelContext& ctx, const Reducer& reducer, const ReducePlan& plan, const Tensor& in, Tensor* out)
      : ctx_(ctx),
        reducer_(reducer),
        plan_(plan),
        in_(static_cast<const char*>(in.raw())),
        out_(static_cast<char*>(out->mutable_raw())),
        element_(reducer.element_bytes()),
        acc_(reducer.accumulator_bytes()) {}

  Status Run() { return plan_.inner_reduced ? RunRows() : RunColumns(); }

 private:
  const char* In(int64_t offset) const { return in_ + offset * element_; }
  void* Out(int64_t i) const { return out_ + i * element_; }
  void Finish(const void* acc, int64_t n, int64_t first) const {
    reducer_.Finish(acc, n, plan_.reduced_elements, Out(first));
  }

  // Innermost axis reduced: runs of plan_.inner elements.
  Status RunRows() {
    const int64_t runs = plan_.reduced.count, n = plan_.inner;
    if (runs * n <= 2 * kPiece) {
      if (plan_.reduced.sizes.empty() && plan_.kept.sizes.size() <= 1) {
        ContiguousRows();
      } else {
        StridedRows();
      }
      return absl::OkStatus();
    }
    return LongRows();
  }

  void ContiguousRows() {
    const int64_t n = plan_.inner;
    ctx_.ParallelFor(plan_.kept.count, Cost(n), [&](int64_t begin, int64_t end) {
      Tile acc;
      for (int64_t i = begin; i < end; i += kReduceTile) {
        const int64_t rows = std::min(kReduceTile, end - i);
        reducer_.Init(acc.bytes, rows);
        reducer_.Inner(In(i * n), rows, n, acc.bytes);
        Finish(acc.bytes, rows, i);
      }
    });
  }

  // Runs of neighbouring results that lie one after another are read as they lie, some results at a time.
  void StridedRows() {
    const int64_t runs = plan_.reduced.count, n = plan_.inner;
    const bool adjacent = !plan_.kept.strides.empty() && plan_.kept.strides.back() == n;
    const int64_t neighbours = adjacent ? plan_.kept.sizes.back() : 1;
    const int64_t group = std::min({neighbours, kReduceTile, std::max<int64_t>(kSequentialBytes / (n * element_), 1)});
    const int64_t groups = CeilDiv(neighbours, group);
    ctx_.ParallelFor(plan_.kept.count / neighbours * groups, Cost(runs * n * group), [&](int64_t begin, int64_t end) {
      Tile acc;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i / groups * neighbours + i % groups * group;
        const int64_t rows = std::min(group, neighbours - i % groups * group);
        const int64_t start = plan_.kept.Offset(first);
        reducer_.Init(acc.bytes, rows);
        for (int64_t r = 0; r < runs; ++r) reducer_.Inner(In(start + plan_.reduced.Offset(r)), rows, n, acc.bytes);
        Finish(acc.bytes, rows, first);
      }
    });
  }

  // Few results of many elements each: pieces of runs, or of parts of runs.
  Status LongRows() {
    const int64_t runs = plan_.reduced.count, n = plan_.inner;
    const int64_t parts = n > kPiece ? CeilDiv(n, kPiece) : 1;
    const int64_t runs_per_piece = n > kPiece ? 1 : kPiece / n;
    const int64_t pieces = CeilDiv(runs, runs_per_piece) * parts;
    return InPieces(pieces, 1, kPiece, [&](int64_t output, int64_t piece, void* acc) {
      const int64_t start = plan_.kept.Offset(output);
      const int64_t first = piece / parts * runs_per_piece, last = std::min(first + runs_per_piece, runs);
      const int64_t from = piece % parts * kPiece, count = parts == 1 ? n : std::min(kPiece, n - from);
      for (int64_t r = first; r < last; ++r) {
        reducer_.Inner(In(start + plan_.reduced.Offset(r) + from), 1, count, acc);
      }
    });
  }

  // Innermost axis kept: each row of plan_.inner elements is added to as many accumulators.
  Status RunColumns() {
    const int64_t rows = plan_.reduced.count, columns = plan_.inner;
    const int64_t width = std::min(columns, kReduceTile), tiles = CeilDiv(columns, kReduceTile);
    const int64_t rows_per_piece = std::max<int64_t>(kPiece / width, 16);
    if (rows <= 2 * rows_per_piece) {
      ctx_.ParallelFor(plan_.kept.count * tiles, Cost(rows * width), [&](int64_t begin, int64_t end) {
        Tile acc;
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % tiles * kReduceTile, n = std::min(kReduceTile, columns - first);
          reducer_.Init(acc.bytes, n);
          Rows(plan_.kept.Offset(i / tiles) + first, 0, rows, n, acc.bytes);
          Finish(acc.bytes, n, i / tiles * columns + first);
        }
      });
      return absl::OkStatus();
    }
    const int64_t pieces = CeilDiv(rows, rows_per_piece);
    return InPieces(pieces, columns, rows_per_piece * columns, [&](int64_t output, int64_t piece, char* acc) {
      const int64_t begin = piece * rows_per_piece, end = std::min(begin + rows_per_piece, rows);
      for (int64_t first = 0; first < columns; first += kReduceTile) {
        Rows(plan_.kept.Offset(output) + first, begin, end, std::min(kReduceTile, columns - first), acc + first * acc_);
      }
    });
  }

  // Rows [begin, end) of the reduced loop nest, `n` columns of each.
  void Rows(int64_t start, int64_t begin, int64_t end, int64_t n, char* acc) const {
    if (plan_.reduced.sizes.empty()) return reducer_.Outer(In(start), end - begin, n, n, acc);
    const int64_t size = plan_.reduced.sizes.back(), stride = plan_.reduced.strides.back();
    for (int64_t r = begin; r < end;) {
      const int64_t count = std::min(size - r % size, end - r);
      Block(In(start + plan_.reduced.Offset(r)), count, stride, n, acc);
      r += count;
    }
  }

  // Many short rows that lie one after another are taken several at a time, as one longer row: memory is read in
  // order, and vectors are full.
  void Block(const char* in, int64_t rows, int64_t stride, int64_t n, char* acc) const {
    if (stride != n || n > kReduceTile / 2 || rows < 64) return reducer_.Outer(in, rows, stride, n, acc);
    const int64_t group = kReduceTile / n, groups = rows / group;
    Tile wide;
    reducer_.Init(wide.bytes, group * n);
    reducer_.Outer(in, groups, group * n, group * n, wide.bytes);
    for (int64_t g = 0; g < group; ++g) reducer_.Merge(acc, wide.bytes + g * n * acc_, n);
    reducer_.Outer(in + groups * group * n * element_, rows - groups * group, n, n, acc);
  }

  // fn(output, piece, accumulators) for all pieces of all outputs, `width` accumulators each; merged in order of
  // pieces.
  template <typename Fn>
  Status InPieces(int64_t pieces, int64_t width, int64_t piece_elements, Fn fn) {
    const int64_t outputs = plan_.kept.count;
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({outputs, pieces, width, acc_}));
    MR_ASSIGN_OR_RETURN(Tensor partial, ctx_.AllocateTemp(DType::kUInt8, shape));
    char* const partials = static_cast<char*>(partial.mutable_raw());
    auto at = [&](int64_t output, int64_t piece) { return partials + (output * pieces + piece) * width * acc_; };
    ctx_.ParallelFor(outputs * pieces, Cost(piece_elements), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        char* acc = at(i / pieces, i % pieces);
        reducer_.Init(acc, width);
        fn(i / pieces, i % pieces, acc);
      }
    });
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t p = 1; p < pieces; ++p) reducer_.Merge(at(o, 0), at(o, p), width);
      Finish(at(o, 0), width, o * width);
    }
    return absl::OkStatus();
  }

  double Cost(int64_t elements) const { return kNanosPerByte * static_cast<double>(elements * element_) + 2; }

  KernelContext& ctx_;
  const Reducer& reducer_;
  const ReducePlan& plan_;
  const char* in_;
  char* out_;
  int64_t element_, acc_;
};

// Results of nothing at all, or of reductions over no element.
void FillEmpty(const Reducer& reducer, const ReducePlan& plan, Tensor* out) {
  Tile acc;
  const int64_t n = out->num_elements();
  reducer.Init(acc.bytes, std::min(n, kReduceTile));
  for (int64_t i = 0; i < n; i += kReduceTile) {
    reducer.Finish(acc.bytes, std::min(kReduceTile, n - i), plan.reduced_elements,
                   static_cast<char*>(out->mutable_raw()) + i * reducer.element_bytes());
  }
}

}  // namespace

Status Reduce(KernelContext& ctx, const Reducer& reducer, const ReducePlan& plan, const Tensor& in, Tensor* out) {
  if (in.num_elements() == 0) {
    FillEmpty(reducer, plan, out);
    return absl::OkStatus();
  }
  return Reduction(ctx, reducer, plan, in, out).Run();
}

}  // namespace millrace
