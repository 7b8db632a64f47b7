// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/index_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "absl/strings/str_join.h"
#include "base/checked.h"
#include "kernels/cpu/engine/strided_block.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

template <size_t kBytes>
void CopyFixed(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, size_t) {
  for (int64_t i = 0; i < n; ++i, dst += dst_step, src += src_step) std::memcpy(dst, src, kBytes);
}

void CopyBytes(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, size_t bytes) {
  if (dst_step == static_cast<int64_t>(bytes) && src_step == dst_step) {
    std::memcpy(dst, src, bytes * static_cast<size_t>(n));
    return;
  }
  strided::WithCopyOfRuns(static_cast<int64_t>(bytes), [=](auto copy) {
    for (int64_t i = 0; i < n; ++i) copy(dst + i * dst_step, src + i * src_step);
  });
}

template <typename T>
void CopyObjects(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n, size_t count) {
  for (int64_t i = 0; i < n; ++i, dst += dst_step, src += src_step) {
    T* to = reinterpret_cast<T*>(dst);
    const T* from = reinterpret_cast<const T*>(src);
    for (size_t k = 0; k < count; ++k) to[k] = from[k];
  }
}

// Its top bit is set unless 0 <= v <= last.
template <typename Index>
std::make_unsigned_t<Index> Beyond(Index v, Index last) {
  using U = std::make_unsigned_t<Index>;
  return static_cast<U>(static_cast<U>(v) | (static_cast<U>(last) - static_cast<U>(v)));
}
template <typename U>
bool TopBit(U v) {
  return v >> (std::numeric_limits<U>::digits - 1) != 0;
}

// The first of n indices that is not in [0, limit), or -1. Blocks without one take no branch per element: where v is
// not negative, limit - 1 - v is if v is too large, and does not overflow.
template <typename Index>
int64_t FirstOutside(const Index* ids, int64_t n, int64_t limit) {
  constexpr int64_t kBlock = 1024, kMost = std::numeric_limits<Index>::max();
  const Index last = static_cast<Index>(std::min(limit - 1, kMost));
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t end = std::min(n, at + kBlock);
    std::make_unsigned_t<Index> seen[16] = {};
    int64_t i = at;
    for (; i + 16 <= end; i += 16) {
      for (int64_t k = 0; k < 16; ++k) seen[k] |= Beyond(ids[i + k], last);
    }
    for (; i < end; ++i) seen[0] |= Beyond(ids[i], last);
    for (int k = 1; k < 16; ++k) seen[0] |= seen[k];
    if (!TopBit(seen[0])) continue;
    i = at;
    while (InRange(int64_t{ids[i]}, limit)) ++i;
    return i;
  }
  return -1;
}

template <typename Index>
int64_t FirstNotBelow(const Index* ids, int64_t n, int64_t limit) {
  if (limit > int64_t{std::numeric_limits<Index>::max()}) return -1;
  const Index bound = static_cast<Index>(limit);
  constexpr int64_t kBlock = 1024;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t end = std::min(n, at + kBlock);
    unsigned found = 0;
    for (int64_t i = at; i < end; ++i) found |= static_cast<unsigned>(ids[i] >= bound);
    for (int64_t i = at; found != 0 && i < end; ++i) {
      if (ids[i] >= bound) return i;
    }
  }
  return -1;
}

}  // namespace

RunCopier::RunCopier(DType dtype, int64_t run)
    : size_(static_cast<int64_t>(DTypeSize(dtype))),
      count_(static_cast<size_t>(run)),
      run_(run),
      plain_(IsPlain(dtype)) {
  if (dtype == DType::kString) {
    copy_ = CopyObjects<TString>;
    cost_ = 20.0 * static_cast<double>(run);
  } else if (dtype == DType::kResource) {
    copy_ = CopyObjects<ResourceHandle>;
    cost_ = 80.0 * static_cast<double>(run);
  } else if (dtype == DType::kVariant) {
    copy_ = CopyObjects<Variant>;
    cost_ = 10.0 * static_cast<double>(run);
  } else {
    count_ *= static_cast<size_t>(size_);
    cost_ = 2.0 + static_cast<double>(count_) * 0.1;
    switch (count_) {
      case 1: copy_ = CopyFixed<1>; break;
      case 2: copy_ = CopyFixed<2>; break;
      case 4: copy_ = CopyFixed<4>; break;
      case 8: copy_ = CopyFixed<8>; break;
      case 12: copy_ = CopyFixed<12>; break;
      case 16: copy_ = CopyFixed<16>; break;
      case 32: copy_ = CopyFixed<32>; break;
      case 64: copy_ = CopyFixed<64>; break;
      default: copy_ = CopyBytes;
    }
  }
}

namespace {

struct Bytes16 {
  uint64_t lo, hi;
};

// Calls fn(T()) with a type of `bytes` bytes; false where there is none.
template <typename Fn>
bool WithBytes(size_t bytes, const Fn& fn) {
  switch (bytes) {
    case 1: return fn(uint8_t()), true;
    case 2: return fn(uint16_t()), true;
    case 4: return fn(uint32_t()), true;
    case 8: return fn(uint64_t()), true;
    case 16: return fn(Bytes16()), true;
    default: return false;
  }
}

}  // namespace

void RunCopier::Gather(void* dst, const void* src, const int64_t* from, int64_t n) const {
  const bool done = plain_ && WithBytes(count_, [&](auto zero) {
                      auto* to = static_cast<decltype(zero)*>(dst);
                      const auto* p = static_cast<const decltype(zero)*>(src);
                      for (int64_t i = 0; i < n; ++i) to[i] = p[from[i]];
                    });
  if (done) return;
  const int64_t run = run_, bytes = static_cast<int64_t>(count_);
  if (!plain_) {
    for (int64_t i = 0; i < n; ++i) CopyOne(dst, i * run, src, from[i] * run);
    return;
  }
  strided::WithCopyOfRuns(bytes, [=](auto copy) {
    for (int64_t i = 0; i < n; ++i)
      copy(static_cast<char*>(dst) + i * bytes, static_cast<const char*>(src) + from[i] * bytes);
  });
}
void RunCopier::Scatter(void* dst, const int64_t* to, const void* src, int64_t src_stride, int64_t n) const {
  const bool done = plain_ && WithBytes(count_, [&](auto zero) {
                      auto* p = static_cast<decltype(zero)*>(dst);
                      const auto* from = static_cast<const decltype(zero)*>(src);
                      for (int64_t i = 0; i < n; ++i) p[to[i]] = from[i * src_stride];
                    });
  if (done) return;
  const int64_t run = run_, bytes = static_cast<int64_t>(count_);
  if (!plain_) {
    for (int64_t i = 0; i < n; ++i) CopyOne(dst, to[i] * run, src, i * src_stride * run);
    return;
  }
  strided::WithCopyOfRuns(bytes, [=](auto copy) {
    for (int64_t i = 0; i < n; ++i) {
      copy(static_cast<char*>(dst) + to[i] * bytes, static_cast<const char*>(src) + i * src_stride * bytes);
    }
  });
}

void ZeroElements(DType dtype, void* dst, int64_t at, int64_t n) {
  if (!IsPlain(dtype) || n <= 0) return;
  const size_t size = DTypeSize(dtype);
  std::memset(static_cast<char*>(dst) + static_cast<size_t>(at) * size, 0, static_cast<size_t>(n) * size);
}

void FillElements(DType dtype, void* dst, int64_t at, int64_t n, const void* value) {
  if (n > 0) RunFunctions(dtype).fill(ElementAt(dst, dtype, at), value, n);
}

int64_t DimProduct(const Shape& s, int from, int to) {
  int64_t p = 1;
  for (int i = from; i < to; ++i) {
    // Dimensions beside a zero may overflow; such a tensor has no elements, so any count will do.
    if (!CheckedMul(p, s.dim(i), &p)) return 0;
  }
  return p;
}

std::vector<int64_t> DimsOf(const Shape& s, int from, int to) {
  return {s.dims().begin() + from, s.dims().begin() + to};
}

namespace {

Status NotInRange(absl::string_view name, const Shape& shape, int64_t at, int64_t value, int64_t limit,
                  absl::string_view is) {
  std::vector<int64_t> position(static_cast<size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int64_t d = std::max<int64_t>(shape.dim(i), 1);
    position[static_cast<size_t>(i)] = at % d;
    at /= d;
  }
  return InvalidArgument(name, position.empty() ? "" : absl::StrCat("[", absl::StrJoin(position, ","), "]"), " = ",
                         value, " ", is, " [0, ", limit, ")");
}

}  // namespace

Status IndexOutOfRange(absl::string_view name, const Shape& shape, int64_t at, int64_t value, int64_t limit) {
  return NotInRange(name, shape, at, value, limit, "is not in");
}

Status CheckIndices(absl::string_view name, const Tensor& t, int64_t limit) {
  const int64_t n = t.num_elements();
  if (t.dtype() == DType::kInt32) {
    const int64_t at = FirstOutside(t.data<int32_t>(), n, limit);
    return at < 0 ? absl::OkStatus() : IndexOutOfRange(name, t.shape(), at, t.data<int32_t>()[at], limit);
  }
  if (t.dtype() != DType::kInt64) return InvalidArgument(name, " must be int32 or int64, got ", DTypeName(t.dtype()));
  const int64_t at = FirstOutside(t.data<int64_t>(), n, limit);
  return at < 0 ? absl::OkStatus() : IndexOutOfRange(name, t.shape(), at, t.data<int64_t>()[at], limit);
}

Status CheckIndicesBelow(absl::string_view name, const Tensor& t, int64_t limit) {
  constexpr absl::string_view kIs = "is out of range";  // in TensorFlow's words for segments
  const int64_t n = t.num_elements();
  if (t.dtype() == DType::kInt32) {
    const int64_t at = FirstNotBelow(t.data<int32_t>(), n, limit);
    return at < 0 ? absl::OkStatus() : NotInRange(name, t.shape(), at, t.data<int32_t>()[at], limit, kIs);
  }
  if (t.dtype() != DType::kInt64) return InvalidArgument(name, " must be int32 or int64, got ", DTypeName(t.dtype()));
  const int64_t at = FirstNotBelow(t.data<int64_t>(), n, limit);
  return at < 0 ? absl::OkStatus() : NotInRange(name, t.shape(), at, t.data<int64_t>()[at], limit, kIs);
}

Status RequireScalar(absl::string_view name, const Tensor& t) {
  return t.rank() == 0 ? absl::OkStatus()
                       : InvalidArgument(name, " must be a scalar, got shape ", t.shape().ToString());
}
Status RequireVector(absl::string_view name, const Tensor& t) {
  return t.rank() == 1 ? absl::OkStatus()
                       : InvalidArgument(name, " must be a vector, got shape ", t.shape().ToString());
}

StatusOr<WideIndices> WideIndices::Make(KernelContext& ctx, const Tensor& indices) {
  WideIndices w;
  if (indices.dtype() == DType::kInt64) {
    w.tensor_ = indices;
    return w;
  }
  if (indices.dtype() != DType::kInt32) return InvalidArgument("indices must be int32 or int64");
  MR_ASSIGN_OR_RETURN(w.tensor_, ctx.AllocateTemp(DType::kInt64, indices.shape()));
  const int32_t* from = indices.data<int32_t>();
  int64_t* to = w.tensor_.mutable_data<int64_t>();
  ctx.ParallelFor(indices.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      for (int64_t k = 0; k < 16; ++k) to[i + k] = from[i + k];
    }
    for (; i < end; ++i) to[i] = from[i];
  });
  return w;
}

namespace {

// Slice numbers of n coordinates of kDepth (0: `depth`) parts; false if a part is out of its range.
template <int kDepth, typename Index>
bool Flatten(const Index* ids, int64_t n, int depth, const int64_t* dims, int64_t* out) {
  const int parts = kDepth > 0 ? kDepth : depth;
  uint64_t seen = 0;
  for (int64_t i = 0; i < n; ++i, ids += parts) {
    uint64_t number = 0;
    for (int d = 0; d < parts; ++d) {
      const int64_t v = int64_t{ids[d]};
      seen |= Beyond(v, dims[d] - 1);
      number = number * static_cast<uint64_t>(dims[d]) + static_cast<uint64_t>(v);
    }
    out[i] = static_cast<int64_t>(number);
  }
  return !TopBit(seen);
}

// Writes slice numbers; returns the flat position of the first bad coordinate, or -1.
template <typename Index>
int64_t FlattenCoordinates(KernelContext& ctx, const Index* ids, int64_t n, int depth, const int64_t* dims,
                           int64_t* out) {
  const auto flatten =
      depth == 1   ? Flatten<1, Index>
      : depth == 2 ? Flatten<2, Index>
      : depth == 3 ? Flatten<3, Index>
                   : Flatten<0, Index>;
  std::atomic<bool> bad = false;
  ctx.ParallelFor(n, 1.0 + depth, [&](int64_t begin, int64_t end) {
    if (!flatten(ids + begin * depth, end - begin, depth, dims, out + begin)) bad = true;
  });
  if (!bad) return -1;
  int64_t at = 0;
  while (InRange(int64_t{ids[at]}, dims[at % depth])) ++at;
  return at;
}

}  // namespace

StatusOr<Tensor> SliceNumbers(KernelContext& ctx, const Tensor& indices, const Shape& target) {
  if (indices.rank() < 1) return InvalidArgument("indices must have at least one dimension, got a scalar");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > target.rank()) {
    return InvalidArgument("indices of depth ", depth, " address a tensor of shape ", target.ToString());
  }
  const int64_t n = DimProduct(indices.shape(), 0, indices.rank() - 1);
  MR_ASSIGN_OR_RETURN(Tensor numbers, ctx.AllocateTemp(DType::kInt64, Shape::Vector(n)));
  int64_t* out = numbers.mutable_data<int64_t>();
  const int64_t* dims = target.dims().data();
  const bool narrow = indices.dtype() == DType::kInt32;
  const int64_t at = narrow ? FlattenCoordinates(ctx, indices.data<int32_t>(), n, static_cast<int>(depth), dims, out)
                            : FlattenCoordinates(ctx, indices.data<int64_t>(), n, static_cast<int>(depth), dims, out);
  if (at >= 0) {
    const int64_t v = narrow ? indices.data<int32_t>()[at] : indices.data<int64_t>()[at];
    return IndexOutOfRange("indices", indices.shape(), at, v, dims[at % depth]);
  }
  return numbers;
}

StatusOr<SliceUpdates> CheckSliceUpdates(KernelContext& ctx, const Tensor& given, const Tensor& updates,
                                         const Shape& target) {
  if (given.rank() < 1) return InvalidArgument("indices must have at least one dimension, got a scalar");
  if (target.num_elements() == 0 && (given.num_elements() > 0 || updates.num_elements() > 0)) {
    return InvalidArgument(
        "Indices and updates specified for empty output: of shape ", target.ToString(), ", updates of shape ",
        updates.shape().ToString(), ", indices of shape ", given.shape().ToString());
  }
  Tensor indices = given;
  if (given.rank() == 1) {
    MR_ASSIGN_OR_RETURN(Shape column, Shape::Make({given.dim(0), 1}));
    MR_ASSIGN_OR_RETURN(indices, given.Reshaped(column));
  }
  const int lead = indices.rank() - 1;
  const int64_t depth = indices.dim(lead);
  if (depth > target.rank() || (depth < 1 && target.num_elements() > 0)) {
    return InvalidArgument("indices of depth ", depth, " cannot address a tensor of shape ", target.ToString());
  }
  std::vector<int64_t> want = DimsOf(indices.shape(), 0, lead);
  for (int i = static_cast<int>(depth); i < target.rank(); ++i) want.push_back(target.dim(i));
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(want));
  if (!(updates.shape() == shape)) {
    return InvalidArgument(
        "updates have shape ", updates.shape().ToString(), ", but indices of shape ", given.shape().ToString(),
        " into a tensor of shape ", target.ToString(), " want ", shape.ToString());
  }
  SliceUpdates s;
  MR_ASSIGN_OR_RETURN(s.numbers, SliceNumbers(ctx, indices, target));
  s.slices = DimProduct(target, 0, static_cast<int>(depth));
  s.width = DimProduct(target, static_cast<int>(depth), target.rank());
  return s;
}

}  // namespace millrace
