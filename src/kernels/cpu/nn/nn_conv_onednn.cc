// SPDX-License-Identifier: Apache-2.0
// float32 and bfloat16 convolution through oneDNN, split over our pool.
//
// Forward: slices of images, or of output rows when there are few images. Backward-input with stride 1 is a forward
// convolution by the filter turned half around (oneDNN's forward code is the faster one); with other strides it is
// oneDNN's own, by slices of images. Backward-filter: each of a fixed number of image chunks makes a filter of its own;
// they are added in order. Which slices there are depends on the geometry alone, so results do not depend on threads.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "kernels/cpu/engine/onednn.h"
#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_simd.h"

namespace millrace {
namespace {

using onednn::Conv;
using onednn::ConvKey;
using onednn::ConvKind;
using ConvPtr = std::shared_ptr<const Conv>;

constexpr double kFlopsPerSlice = 8e6;
constexpr double kFlopsPerNanosecond = 100;
constexpr int64_t kMaxSlices = 64;
constexpr double kMostFlopsOfASlice = 1e9;  // a step that is to stop waits for its slices

ConvKey KeyOf(ConvKind kind, const ConvGeometry& g, bool bf16) {
  ConvKey k;
  k.kind = kind;
  k.bf16 = bf16;
  k.volumetric = g.volumetric;
  k.batch = g.batch;
  k.in_channels = g.in_channels;
  k.out_channels = g.out_channels;
  k.groups = g.groups;
  k.in = g.in;
  k.kernel = g.kernel;
  k.out = g.out;
  k.stride = g.stride;
  k.dilation = g.dilation;
  k.pad_before = g.pad_before;
  // What the window really needs after the last cell; it may be negative where cells stay unused.
  for (size_t i = 0; i < 3; ++i) {
    k.pad_after[i] = std::max<int64_t>(0, (g.out[i] - 1) * g.stride[i] + g.window(i) - g.in[i] - g.pad_before[i]);
  }
  return k;
}

// Windows that lie wholly in padding are left to our own loops.
bool Ordinary(const ConvGeometry& g) {
  for (size_t i = 0; i < 3; ++i) {
    if (g.pad_before[i] >= g.window(i) || g.pad_after[i] >= g.window(i)) return false;
    if (g.in[i] > INT32_MAX || g.out[i] > INT32_MAX || g.stride[i] > INT32_MAX || g.window(i) > INT32_MAX) return false;
  }
  constexpr int64_t kMaxDim = 1 << 24;
  if (g.in_pixels() > INT32_MAX / g.in_channels || g.out_pixels() > INT32_MAX / g.out_channels) return false;
  return g.batch < kMaxDim && g.in_channels < kMaxDim && g.out_channels < kMaxDim;
}

// A part of a convolution that is a convolution of its own.
struct Slice {
  ConvGeometry g;
  int64_t in_offset = 0;  // in elements
  int64_t out_offset = 0;
};

int64_t WantedSlices(const ConvGeometry& g) {
  const double most = std::max(static_cast<double>(kMaxSlices), g.flops() / kMostFlopsOfASlice);
  const double by_work = std::min(g.flops() / kFlopsPerSlice, most);
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(1.0, by_work))));
}

// No slice holds more elements than an int32 counts: oneDNN is not tested beyond.
std::vector<Slice> SliceImages(const ConvGeometry& g, int64_t wanted) {
  const int64_t image = std::max(g.in_pixels() * g.in_channels, g.out_pixels() * g.out_channels);
  const int64_t most = std::max<int64_t>(1, INT32_MAX / std::max<int64_t>(1, image));
  const int64_t per = std::min((g.batch + wanted - 1) / wanted, most);
  std::vector<Slice> slices;
  for (int64_t n = 0; n < g.batch; n += per) {
    Slice s{g, n * g.in_pixels() * g.in_channels, n * g.out_pixels() * g.out_channels};
    s.g.batch = std::min(per, g.batch - n);
    slices.push_back(s);
  }
  return slices;
}

// Rows [begin, end) of axis `a` of the output of image n.
Slice SliceRows(const ConvGeometry& g, int64_t n, size_t a, int64_t begin, int64_t end) {
  Slice s{g, 0, 0};
  s.g.batch = 1;
  const int64_t first = begin * g.stride[a] - g.pad_before[a];
  const int64_t last = (end - 1) * g.stride[a] - g.pad_before[a] + g.window(a);  // one past
  const int64_t from = std::clamp<int64_t>(first, 0, g.in[a]);
  const int64_t to = std::clamp<int64_t>(last, from, g.in[a]);
  s.g.out[a] = end - begin;
  s.g.in[a] = to - from;
  s.g.pad_before[a] = from - first;
  s.g.pad_after[a] = last - to;
  const int64_t in_row = a == 0 ? g.in[1] * g.in[2] : g.in[2];
  const int64_t out_row = a == 0 ? g.out[1] * g.out[2] : g.out[2];
  s.in_offset = (n * g.in_pixels() + from * in_row) * g.in_channels;
  s.out_offset = (n * g.out_pixels() + begin * out_row) * g.out_channels;
  return s;
}

std::vector<Slice> SliceForward(const ConvGeometry& g) {
  const int64_t wanted = WantedSlices(g);
  const size_t axis = g.out[0] > 1 ? 0 : 1;
  constexpr int64_t kMinRows = 4;
  const int64_t row_blocks = std::min((wanted + g.batch - 1) / g.batch, g.out[axis] / kMinRows);
  if (g.batch >= wanted || row_blocks <= 1) return SliceImages(g, wanted);
  const int64_t rows = (g.out[axis] + row_blocks - 1) / row_blocks;
  std::vector<Slice> slices;
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t r = 0; r < g.out[axis]; r += rows) {
      slices.push_back(SliceRows(g, n, axis, r, std::min(r + rows, g.out[axis])));
      if (!Ordinary(slices.back().g) || slices.back().g.in[axis] < 1) return SliceImages(g, wanted);
    }
  }
  return slices;
}

// Element i of an image tensor.
void* At(void* p, int64_t i, bool bf16) { return static_cast<char*>(p) + i * (bf16 ? 2 : 4); }

// The first error of many threads.
class FirstError {
 public:
  void Set(Status s) {
    if (s.ok()) return;
    absl::MutexLock lock(&mu_);
    if (status_.ok()) status_ = std::move(s);
    failed_.store(true, std::memory_order_relaxed);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  Status Take() {
    absl::MutexLock lock(&mu_);
    return status_;
  }

 private:
  absl::Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> failed_{false};
};

StatusOr<RefPtr<Buffer>> Scratch(KernelContext& ctx, size_t bytes) {
  return AllocateBuffer(ctx.device().allocator(), std::max<size_t>(bytes, 1));
}

// Filters in the layouts that the primitives want, each packed once. Nearly always there is one.
class PackedFilters {
 public:
  PackedFilters(KernelContext& ctx, const void* plain) : ctx_(ctx), plain_(plain) {}
  StatusOr<const void*> For(const Conv& conv) {
    if (conv.packed_is_plain()) return plain_;
    for (const auto& [owner, buffer] : packed_) {
      if (owner->SamePacking(conv)) return static_cast<const void*>(buffer->data());
    }
    MR_ASSIGN_OR_RETURN(RefPtr<Buffer> buffer, Scratch(ctx_, conv.packed_bytes()));
    MR_RETURN_IF_ERROR(conv.Pack(plain_, buffer->data()));
    packed_.emplace_back(&conv, std::move(buffer));
    return static_cast<const void*>(packed_.back().second->data());
  }

 private:
  KernelContext& ctx_;
  const void* plain_;
  std::vector<std::pair<const Conv*, RefPtr<Buffer>>> packed_;
};

// Runs `slices` of one kind of pass; in_offset goes with src, out_offset with dst.
Status RunSlices(KernelContext& ctx, ConvKind kind, bool bf16, bool transposed, const std::vector<Slice>& slices,
                 void* src, const void* filter, void* dst) {
  std::vector<ConvPtr> convs(slices.size());
  std::vector<const void*> weights(slices.size());
  PackedFilters packed(ctx, filter);
  size_t scratch_bytes = 0;
  ConvKey last;
  for (size_t i = 0; i < slices.size(); ++i) {
    ConvKey key = KeyOf(kind, slices[i].g, bf16);
    key.transposed = transposed;
    const bool same = i > 0 && key == last;
    last = key;
    if (same) {
      convs[i] = convs[i - 1];
      weights[i] = weights[i - 1];
      continue;
    }
    MR_ASSIGN_OR_RETURN(convs[i], Conv::Get(key));
    MR_ASSIGN_OR_RETURN(weights[i], packed.For(*convs[i]));
    scratch_bytes = std::max(scratch_bytes, convs[i]->scratch_bytes());
  }
  const double cost = slices[0].g.flops() / kFlopsPerNanosecond;
  FirstError error;
  ctx.ParallelFor(static_cast<int64_t>(slices.size()), cost, [&](int64_t begin, int64_t end) {
    auto scratch = Scratch(ctx, scratch_bytes);
    if (!scratch.ok()) return error.Set(scratch.status());
    for (int64_t i = begin; i < end && !error.failed(); ++i) {
      const size_t at = static_cast<size_t>(i);
      error.Set(convs[at]->Run(At(src, slices[at].in_offset, bf16), const_cast<void*>(weights[at]),
                               At(dst, slices[at].out_offset, bf16), (*scratch)->data()));
    }
  });
  return error.Take();
}

// ---- backward by the input ----

bool UnitStride(const ConvGeometry& g) { return g.stride == std::array<int64_t, 3>{1, 1, 1}; }

// The forward convolution that computes the gradient of g's input from that of its output, when g has stride 1.
ConvGeometry TurnedAround(const ConvGeometry& g) {
  ConvGeometry t = g;
  std::swap(t.in, t.out);
  std::swap(t.in_channels, t.out_channels);
  for (size_t i = 0; i < 3; ++i) {
    t.pad_before[i] = g.window(i) - 1 - g.pad_before[i];
    t.pad_after[i] = t.out[i] + g.window(i) - 1 - t.in[i] - t.pad_before[i];
  }
  return t;
}

Status BackwardInput(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  const ConvGeometry t = TurnedAround(g);
  if (!UnitStride(g) || g.depthwise() || !Ordinary(t)) {
    // Cells that no window covers still get their zeros from the primitive.
    return RunSlices(
        ctx, ConvKind::kBackwardData, bf16, false, SliceImages(g, WantedSlices(g)), v.input, v.filter, v.output);
  }
  const void* turned = v.filter;
  RefPtr<Buffer> buffer;
  const size_t taps = static_cast<size_t>(g.taps());
  const size_t tap = static_cast<size_t>(g.group_in() * g.out_channels) * (bf16 ? 2 : 4);
  if (taps > 1) {
    MR_ASSIGN_OR_RETURN(buffer, Scratch(ctx, taps * tap));
    char* to = static_cast<char*>(buffer->data());
    const char* from = static_cast<const char*>(v.filter);
    for (size_t k = 0; k < taps; ++k) std::memcpy(to + k * tap, from + (taps - 1 - k) * tap, tap);
    turned = to;
  }
  return RunSlices(ctx, ConvKind::kForward, bf16, true, SliceForward(t), v.output, turned, v.input);
}

// ---- backward by the filter ----

// Chunks, so that adding the filters of all chunks costs little beside making them; beyond 16 as long as all lie in the
// cache.
int64_t FilterChunks(const ConvGeometry& g) {
  constexpr double kPixelsPerChunk = 1000, kFiltersInCache = 2e6;  // elements
  const double filter = static_cast<double>(g.taps()) * static_cast<double>(g.group_in() * g.out_channels);
  const double pixels = static_cast<double>(g.batch) * static_cast<double>(g.out_pixels());
  const double most =
      std::min({static_cast<double>(g.batch), static_cast<double>(WantedSlices(g)),
                std::max(pixels / kPixelsPerChunk, 2.0), std::clamp(kFiltersInCache / filter, 16.0, 64.0)});
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(most, 1.0))));
}

// oneDNN's code for strided and 1x1 filters is up to twice as fast on its blocked layout: more than the two reorders
// cost.
bool BlockedPays(const ConvGeometry& g) {
  const bool whole = g.groups == 1 && g.in_channels % 16 == 0 && g.out_channels % 16 == 0;
  return whole && (g.taps() == 1) == UnitStride(g);
}

// For these, newer versions of oneDNN write past their scratch memory (reported for 3.12, not seen in 2.6;
// https://github.com/uxlfoundation/oneDNN/issues/6035).
bool OverrunsScratch(const ConvGeometry& g) { return g.taps() == 1 && !UnitStride(g) && g.group_in() < 16; }

Status BackwardFilter(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  if (OverrunsScratch(g)) return Unimplemented("left to the direct loops");
  const std::vector<Slice> slices = SliceImages(g, FilterChunks(g));
  std::vector<ConvPtr> convs(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    ConvKey key = KeyOf(ConvKind::kBackwardWeights, slices[i].g, bf16);
    key.blocked = BlockedPays(g);
    MR_ASSIGN_OR_RETURN(convs[i], Conv::Get(key));
    if (!convs[i]->SamePacking(*convs[0])) return Unimplemented("chunks of different layouts");
  }
  const size_t bytes = convs[0]->packed_bytes();
  const size_t stride = (bytes + 63) / 64 * 64;
  const bool direct = convs[0]->packed_is_plain();
  RefPtr<Buffer> partial;
  if (!direct || slices.size() > 1) {
    MR_ASSIGN_OR_RETURN(partial, Scratch(ctx, stride * slices.size()));
  }
  const auto part = [&](size_t i) -> float* {
    if (direct && i == 0) return static_cast<float*>(v.filter);
    return reinterpret_cast<float*>(static_cast<char*>(partial->data()) + stride * i);
  };
  FirstError error;
  ctx.ParallelFor(
      static_cast<int64_t>(slices.size()), slices[0].g.flops() / kFlopsPerNanosecond, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && !error.failed(); ++i) {
          const size_t at = static_cast<size_t>(i);
          auto scratch = Scratch(ctx, convs[at]->scratch_bytes());
          if (!scratch.ok()) return error.Set(scratch.status());
          error.Set(convs[at]->Run(At(v.input, slices[at].in_offset, bf16), part(at),
                                   At(v.output, slices[at].out_offset, bf16), (*scratch)->data()));
        }
      });
  MR_RETURN_IF_ERROR(error.Take());
  if (slices.size() > 1) {
    constexpr int64_t kBlock = 4096;
    const int64_t n = static_cast<int64_t>(bytes / sizeof(float));
    ctx.ParallelFor((n + kBlock - 1) / kBlock, static_cast<double>(kBlock) * 0.2 * static_cast<double>(slices.size()),
                    [&](int64_t begin, int64_t end) {
                      const int64_t from = begin * kBlock, to = std::min(n, end * kBlock);
                      for (size_t i = 1; i < slices.size(); ++i) {
                        AddInto(part(i) + from, part(0) + from, static_cast<size_t>(to - from));
                      }
                    });
  }
  return direct ? absl::OkStatus() : convs[0]->Unpack(part(0), v.filter);
}

Status Dispatch(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  if (pass == ConvPass::kBackwardInput) return BackwardInput(ctx, g, v, bf16);
  if (pass == ConvPass::kBackwardFilter) return BackwardFilter(ctx, g, v, bf16);
  return RunSlices(ctx, ConvKind::kForward, bf16, false, SliceForward(g), v.input, v.filter, v.output);
}

}  // namespace

Status OneDnnConv(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  // A few multiplications are done before oneDNN has looked its primitive up.
  constexpr double kTinyFlops = 2e3;
  if (!Ordinary(g) || g.flops() < kTinyFlops) return Unimplemented("left to the direct loops");
  return Dispatch(ctx, pass, g, v, bf16);
}

}  // namespace millrace
