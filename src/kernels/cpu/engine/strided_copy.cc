// SPDX-License-Identifier: Apache-2.0
// The loop nest is first simplified: dimensions of size 1 go, neighbours that form one run on both sides become one,
// and a short innermost run becomes one wider element. What remains is one of three inner kernels over the two
// innermost dimensions (runs by memcpy, a blocked transposition, or single elements), below an odometer over the outer
// ones. Work is split over outer indices and blocks of rows. All strides are in bytes from there on.
#include "kernels/cpu/engine/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/engine/strided_block.h"
#include "kernels/cpu/engine/strided_fill_simd.h"
#include "kernels/cpu/engine/strided_interleave_simd.h"

namespace millrace {
namespace {

using namespace strided;

constexpr int64_t kBlockBytes = 64 << 10;  // what one unit of parallel work moves, about
constexpr double kNanosecondsPerByte = 0.1;

void CopyRuns(char* dst, const char* src, const Block& b) {
  if (b.streams) {
    for (int64_t r = 0; r < b.rows; ++r) StreamRun(dst + r * b.dst_row, src + r * b.src_row, b.n);
  } else {
    WithCopyOfRuns(b.n, [&](auto copy) {
      for (int64_t r = 0; r < b.rows; ++r) copy(dst + r * b.dst_row, src + r * b.src_row);
    });
  }
}

template <typename T>
void FillRun(char* dst, T value, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  const int64_t bytes = n * kSize;
  if (bytes < 16) {
    for (int64_t i = 0; i < n; ++i) Store(dst + i * kSize, value);
    return;
  }
  char pattern[16];
  for (int64_t i = 0; i < 16; i += kSize) Store(pattern + i, value);
  FillPattern(dst, pattern, bytes);
}

template <typename T>
void CopyItems(char* dst, const char* src, const Block& b) {
  constexpr int64_t kSize = sizeof(T);
  if (b.src_stride == 0 && b.dst_stride == kSize && b.dst_row == b.n * kSize && b.dst_row <= kFilledRow && kSize <= 8) {
    return FillRows(kSize, src, b.src_row, b.rows, b.n, dst);
  }
  for (int64_t r = 0; r < b.rows; ++r) {
    char* d = dst + r * b.dst_row;
    const char* s = src + r * b.src_row;
    if (b.dst_stride != kSize) {
      for (int64_t i = 0; i < b.n; ++i) Store(d + i * b.dst_stride, Load<T>(s + i * b.src_stride));
    } else if (b.src_stride == 0) {
      FillRun(d, Load<T>(s), b.n);
    } else if (b.src_stride == -kSize && b.n * kSize >= 32) {
      Reverse(kSize, s, d, b.n);
    } else {
      for (int64_t i = 0; i < b.n; ++i) Store(d + i * kSize, Load<T>(s + i * b.src_stride));
    }
  }
}

template <typename T>
void AssignObjects(char* dst, const char* src, const Block& b) {
  for (int64_t r = 0; r < b.rows; ++r) {
    for (int64_t i = 0; i < b.n; ++i) {
      *reinterpret_cast<T*>(dst + r * b.dst_row + i * b.dst_stride) =
          *reinterpret_cast<const T*>(src + r * b.src_row + i * b.src_stride);
    }
  }
}

struct Nest {
  CopyDims outer;  // byte strides
  Block block;     // rows x n
  BlockFn fn = nullptr;
  int64_t item_bytes = 1;
  bool transposes = false;
};

// Size-1 dimensions dropped, mergeable neighbours merged; false when nothing is to be copied.
bool Simplify(absl::Span<const CopyDim> in, CopyDims* out) {
  for (const CopyDim& d : in) {
    if (d.size <= 0) return false;
    if (d.size == 1) continue;
    if (!out->empty()) {
      CopyDim& last = out->back();
      if (last.dst_stride == d.dst_stride * d.size && last.src_stride == d.src_stride * d.size) {
        last = {last.size * d.size, d.dst_stride, d.src_stride};
        continue;
      }
    }
    out->push_back(d);
  }
  return true;
}

template <template <typename> class F>
BlockFn BySize(int64_t size) {
  switch (size) {
    case 1: return F<uint8_t>::Call;
    case 2: return F<uint16_t>::Call;
    case 4: return F<uint32_t>::Call;
    case 8: return F<uint64_t>::Call;
    default: return F<Bytes16>::Call;
  }
}
template <typename T>
struct ItemsFn {
  static void Call(char* d, const char* s, const Block& b) { CopyItems<T>(d, s, b); }
};
BlockFn ObjectItems(DType dtype) {
  switch (dtype) {
    case DType::kString: return AssignObjects<TString>;
    case DType::kResource: return AssignObjects<ResourceHandle>;
    default: return AssignObjects<Variant>;
  }
}

bool IsItemSize(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16; }

CopyDim PopBack(CopyDims* dims) {
  if (dims->empty()) return {1, 0, 0};
  const CopyDim d = dims->back();
  dims->pop_back();
  return d;
}

void SetRows(Nest* nest, const CopyDim& rows) {
  nest->block.rows = rows.size;
  nest->block.dst_row = rows.dst_stride;
  nest->block.src_row = rows.src_stride;
}
void SetItems(Nest* nest, const CopyDim& items) {
  nest->block.n = items.size;
  nest->block.dst_stride = items.dst_stride;
  nest->block.src_stride = items.src_stride;
}

// Chooses the inner kernel for simplified dimensions with byte strides.
Nest ChooseKernel(DType dtype, CopyDims dims) {
  Nest nest;
  nest.item_bytes = static_cast<int64_t>(DTypeSize(dtype));
  if (!IsPlain(dtype)) {
    nest.fn = ObjectItems(dtype);
    SetItems(&nest, PopBack(&dims));
    SetRows(&nest, PopBack(&dims));
    nest.outer = std::move(dims);
    return nest;
  }
  const bool run =
      !dims.empty() && dims.back().dst_stride == nest.item_bytes && dims.back().src_stride == nest.item_bytes;
  if (run) {
    const int64_t bytes = dims.back().size * nest.item_bytes;
    dims.pop_back();
    if (dims.empty() || !IsItemSize(bytes)) {
      nest.item_bytes = 1;
      SetItems(&nest, {bytes, 1, 1});
      SetRows(&nest, PopBack(&dims));
      nest.fn = CopyRuns;
      nest.outer = std::move(dims);
      return nest;
    }
    nest.item_bytes = bytes;
  }
  const CopyDim items = PopBack(&dims);
  SetItems(&nest, items);
  const bool fills = items.src_stride == 0 && items.size * nest.item_bytes >= 64;
  if (items.dst_stride == nest.item_bytes && !fills) {
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k].src_stride != nest.item_bytes) continue;
      SetRows(&nest, dims[k]);
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(k));
      nest.transposes = true;
      nest.fn = TransposeFunction(nest.item_bytes);
      nest.outer = std::move(dims);
      return nest;
    }
  }
  SetRows(&nest, PopBack(&dims));
  nest.fn = BySize<ItemsFn>(nest.item_bytes);
  nest.outer = std::move(dims);
  return nest;
}

// How the work is cut: one unit is a block of at most rows x columns of the inner two dimensions at one outer index.
struct Cut {
  int64_t rows, columns;  // of a full unit
  int64_t row_blocks, column_blocks;
  int64_t units;
};

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Cut CutWork(const Nest& nest) {
  const Block& b = nest.block;
  Cut cut;
  const bool squares = nest.transposes && b.rows > 4;
  cut.columns = std::min<int64_t>(b.n, squares ? 64 : kBlockBytes / nest.item_bytes / (nest.transposes ? b.rows : 1));
  // Multiples of 64 keep the tiles of a transposition whole.
  const int64_t rows = kBlockBytes / (cut.columns * nest.item_bytes);
  cut.rows = std::min(b.rows, nest.transposes ? (rows + 63) / 64 * 64 : std::max<int64_t>(rows, 1));
  cut.row_blocks = CeilDiv(b.rows, cut.rows);
  cut.column_blocks = CeilDiv(b.n, cut.columns);
  cut.units = cut.row_blocks * cut.column_blocks;
  for (const CopyDim& d : nest.outer) cut.units *= d.size;
  return cut;
}

// The position of an odometer over the outer dimensions.
class OuterIndex {
 public:
  OuterIndex(const CopyDims& dims, int64_t position, char* dst, const char* src)
      : dims_(dims), index_(dims.size()), dst_(dst), src_(src) {
    for (size_t k = dims.size(); k-- > 0;) {
      index_[k] = position % dims[k].size;
      position /= dims[k].size;
      dst_ += index_[k] * dims[k].dst_stride;
      src_ += index_[k] * dims[k].src_stride;
    }
  }
  void Advance() {
    for (size_t k = dims_.size(); k-- > 0;) {
      const CopyDim& dim = dims_[k];
      dst_ += dim.dst_stride;
      src_ += dim.src_stride;
      if (++index_[k] < dim.size) return;
      dst_ -= dim.size * dim.dst_stride;
      src_ -= dim.size * dim.src_stride;
      index_[k] = 0;
    }
  }
  char* dst() const { return dst_; }
  const char* src() const { return src_; }

 private:
  const CopyDims& dims_;
  absl::InlinedVector<int64_t, 8> index_;
  char* dst_;
  const char* src_;
};

void RunUnits(const Nest& nest, const Cut& cut, char* dst, const char* src, int64_t begin, int64_t end) {
  const Block& b = nest.block;
  const int64_t per_outer = cut.row_blocks * cut.column_blocks;
  OuterIndex outer(nest.outer, begin / per_outer, dst, src);
  int64_t block = begin % per_outer;
  for (int64_t unit = begin; unit < end; ++unit) {
    if (per_outer == 1) {  // as short runs have it, beside which the general way takes long
      nest.fn(outer.dst(), outer.src(), b);
      outer.Advance();
      continue;
    }
    Block part = b;
    const int64_t row = block / cut.column_blocks * cut.rows;
    const int64_t column = block % cut.column_blocks * cut.columns;
    part.rows = std::min(cut.rows, b.rows - row);
    part.n = std::min(cut.columns, b.n - column);
    nest.fn(outer.dst() + row * b.dst_row + column * b.dst_stride,
            outer.src() + row * b.src_row + column * b.src_stride, part);
    if (++block == per_outer) {
      block = 0;
      outer.Advance();
    }
  }
  if (b.streams) FinishStreams();
}

// Whether runs of these bytes go past the caches: long ones, and those that are whole lines; what others leave of lines
// costs more than that saves.
bool RunStreams(int64_t bytes, bool at_lines) {
  constexpr int64_t kLong = 768, kShortest = 128;
  return bytes >= kLong || (at_lines && bytes >= kShortest && bytes % 64 == 0);
}

// Whether runs, or the lines of a transposition, go past the caches: those of a large result.
bool Streams(const Nest& nest, const Cut& cut, const char* dst) {
  int64_t bytes = nest.block.rows * nest.block.n * nest.item_bytes;
  for (const CopyDim& d : nest.outer) bytes *= d.size;
  if (bytes < kStreamBytes) return false;
  bool at_lines = (reinterpret_cast<uintptr_t>(dst) | static_cast<uintptr_t>(nest.block.dst_row)) % 64 == 0;
  // Repeated sources do not wait for memory, and memcpy takes care of long runs one after another.
  constexpr int64_t kLongRun = 4096;
  bool pays = nest.block.src_row != 0 && (nest.block.dst_row != nest.block.n || nest.block.n < kLongRun);
  for (const CopyDim& d : nest.outer) {
    at_lines &= d.dst_stride % 64 == 0;
    pays &= d.src_stride != 0;
  }
  if (!nest.transposes) return pays && RunStreams(nest.block.n, at_lines);
  return at_lines && cut.columns * nest.item_bytes % 64 == 0 && nest.block.n * nest.item_bytes % 64 == 0;
}

void RunNest(const KernelContext* ctx, Nest nest, char* dst, const char* src) {
  const Cut cut = CutWork(nest);
  nest.block.streams = Streams(nest, cut, dst);
  if (ctx == nullptr || cut.units == 1) return RunUnits(nest, cut, dst, src, 0, cut.units);
  const double cost = static_cast<double>(cut.rows * cut.columns * nest.item_bytes) * kNanosecondsPerByte;
  ctx->ParallelFor(cut.units, cost, [&](int64_t begin, int64_t end) { RunUnits(nest, cut, dst, src, begin, end); });
}

}  // namespace

void StridedCopy(const KernelContext* ctx, DType dtype, void* dst, const void* src, absl::Span<const CopyDim> dims) {
  CopyDims simple;
  if (!Simplify(dims, &simple)) return;
  const int64_t size = static_cast<int64_t>(DTypeSize(dtype));
  if (simple.empty()) simple.push_back({1, 1, 1});
  for (CopyDim& d : simple) {
    d.dst_stride *= size;
    d.src_stride *= size;
  }
  RunNest(ctx, ChooseKernel(dtype, std::move(simple)), static_cast<char*>(dst), static_cast<const char*>(src));
}

void JoinRows(const KernelContext* ctx, void* dst, int64_t rows, absl::Span<const JoinedPart> parts) {
  int64_t row_bytes = 0;
  for (const JoinedPart& part : parts) row_bytes += part.row_bytes;
  bool streams = rows * row_bytes >= kStreamBytes;
  const bool at_lines = (reinterpret_cast<uintptr_t>(dst) | static_cast<uintptr_t>(row_bytes)) % 64 == 0;
  for (const JoinedPart& part : parts) streams &= RunStreams(part.row_bytes, at_lines && part.row_bytes % 64 == 0);
  const auto run = [&](int64_t begin, int64_t end) {
    char* to = static_cast<char*>(dst) + begin * row_bytes;
    for (int64_t r = begin; r < end; ++r) {
      for (const JoinedPart& part : parts) {
        (streams ? StreamRun : CopyRun)(to, static_cast<const char*>(part.from) + r * part.row_bytes, part.row_bytes);
        to += part.row_bytes;
      }
    }
    if (streams) FinishStreams();
  };
  if (ctx == nullptr) return run(0, rows);
  ctx->ParallelFor(rows, static_cast<double>(row_bytes) * kNanosecondsPerByte, run);
}

void FillElements(const KernelContext* ctx, DType dtype, void* dst, const void* value, int64_t n) {
  const CopyDim dim{n, 1, 0};
  StridedCopy(ctx, dtype, dst, value, absl::MakeConstSpan(&dim, 1));
}

namespace {

template <typename T>
struct PlainRuns {
  static void Copy(void* dst, const void* src, int64_t n) {
    CopyRun(static_cast<char*>(dst), static_cast<const char*>(src), n * static_cast<int64_t>(sizeof(T)));
  }
  static void Fill(void* dst, const void* src, int64_t n) {
    FillRun(static_cast<char*>(dst), Load<T>(static_cast<const char*>(src)), n);
  }
};
template <typename T>
struct ObjectRuns {
  static void Copy(void* dst, const void* src, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = static_cast<const T*>(src)[i];
  }
  static void Fill(void* dst, const void* src, int64_t n) {
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(dst)[i] = *static_cast<const T*>(src);
  }
};

}  // namespace

RunFns RunFunctions(DType dtype) {
  if (dtype == DType::kString) return {ObjectRuns<TString>::Copy, ObjectRuns<TString>::Fill};
  if (dtype == DType::kResource) return {ObjectRuns<ResourceHandle>::Copy, ObjectRuns<ResourceHandle>::Fill};
  if (dtype == DType::kVariant) return {ObjectRuns<Variant>::Copy, ObjectRuns<Variant>::Fill};
  switch (DTypeSize(dtype)) {
    case 1: return {PlainRuns<uint8_t>::Copy, PlainRuns<uint8_t>::Fill};
    case 2: return {PlainRuns<uint16_t>::Copy, PlainRuns<uint16_t>::Fill};
    case 4: return {PlainRuns<uint32_t>::Copy, PlainRuns<uint32_t>::Fill};
    case 8: return {PlainRuns<uint64_t>::Copy, PlainRuns<uint64_t>::Fill};
    default: return {PlainRuns<Bytes16>::Copy, PlainRuns<Bytes16>::Fill};
  }
}

absl::InlinedVector<int64_t, 8> RowMajorStrides(const Shape& shape) {
  absl::InlinedVector<int64_t, 8> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    if (shape.num_elements() > 0) stride *= shape.dim(i);
  }
  return strides;
}

void TransposeInto(const KernelContext* ctx, const Tensor& in, absl::Span<const int64_t> perm, Tensor* out) {
  const auto in_strides = RowMajorStrides(in.shape());
  const auto out_strides = RowMajorStrides(out->shape());
  CopyDims dims;
  for (size_t i = 0; i < perm.size(); ++i) {
    dims.push_back({out->dim(static_cast<int>(i)), out_strides[i], in_strides[static_cast<size_t>(perm[i])]});
  }
  StridedCopy(ctx, in.dtype(), out->mutable_raw(), in.raw(), dims);
}

}  // namespace millrace
