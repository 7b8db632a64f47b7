// SPDX-License-Identifier: Apache-2.0
// float32 and bfloat16 convolution through oneDNN, split over our pool.
//
// Forward: slices of images, or of output rows when there are few images, or of those and of output channels when there
// are few rows. One tap over few cells is a product of matrices, which packs less; several taps over few cells pack
// nothing (nn_conv_few.cc). Backward-input with stride 1 is a forward convolution by the filter turned half around
// (oneDNN's forward code is the faster one); with other strides it is oneDNN's own, by slices of images.
// Backward-filter: chunks, slices as of a forward pass, make a filter each, and these are added in order; where they
// are too few for the work, each is cut by output channels. Which slices there are depends on the geometry alone, so
// results do not depend on threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cpu/elementwise/elementwise_in_place.h"
#include "kernels/cpu/engine/epilogue.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/engine/onednn.h"
#include "kernels/cpu/engine/row_ranges.h"
#include "kernels/cpu/nn/nn_conv.h"
#include "kernels/cpu/nn/nn_conv_filter.h"

namespace millrace {
namespace {

using onednn::Conv;
using onednn::ConvKey;
using onednn::ConvKind;
using onednn::Filter;
using onednn::FirstError;
using onednn::PackedFilter;
using onednn::PackedFilters;
using onednn::Scratch;
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

// What a pass costs, in multiplications and additions. In a depthwise one, which does few with each value, moving the
// values takes long, too.
double WorkOf(const ConvGeometry& g) {
  if (!g.depthwise()) return g.flops();
  constexpr double kFlopsPerMove = 2;
  const int64_t moved = g.in_pixels() * g.in_channels + g.out_pixels() * g.out_channels;
  return g.flops() + kFlopsPerMove * static_cast<double>(g.batch) * static_cast<double>(moved);
}

int64_t WantedSlices(const ConvGeometry& g) {
  const double work = WorkOf(g), most = std::max(static_cast<double>(kMaxSlices), work / kMostFlopsOfASlice);
  const double by_work = std::min(std::round(work / kFlopsPerSlice), most);
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

// Images, or rows where there are few images.
std::vector<Slice> SliceImagesOrRows(const ConvGeometry& g, int64_t wanted) {
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

// Into how many parts of at least `least` the output channels of each slice are cut, when there are too few slices for
// the work.
int64_t ChannelParts(const ConvGeometry& g, size_t slices, int64_t least) {
  if (g.groups != 1) return 1;
  int64_t parts = 1;
  while (2 * parts * static_cast<int64_t>(slices) <= WantedSlices(g) && g.out_channels % (2 * parts * least) == 0) {
    parts *= 2;
  }
  return parts;
}
constexpr int64_t kForwardChannels = 64;

// Runs the `slices` of `whole`, a pass of one kind; in_offset goes with src, out_offset with dst. Of a forward pass,
// each may be run in parts, which make some of the output channels each, and each part is finished by the epilogue.
Status RunSlices(KernelContext& ctx, ConvKind kind, bool bf16, const ConvGeometry& whole,
                 const std::vector<Slice>& slices, void* src, const Filter& filter, void* dst,
                 const Epilogue* epilogue = nullptr) {
  const int64_t parts = kind == ConvKind::kForward ? ChannelParts(whole, slices.size(), kForwardChannels) : 1;
  const int64_t channels = whole.out_channels / parts;  // of a part
  const size_t element = bf16 ? 2 : 4;
  std::vector<ConvPtr> convs(slices.size());
  std::vector<PackedFilter> weights(slices.size());
  const auto n = static_cast<int64_t>(slices.size());
  // Where parts alone occupy the threads, who runs a part packs its filter just before, so that it lies in the cache.
  const int threads = ThreadsOf(ctx);
  const bool by_part = parts > 1 && (n == 1 || parts % threads == 0 || parts >= 4 * threads);
  const size_t columns = static_cast<size_t>(channels * (filter.transposed ? whole.in_channels : 1));
  PackedFilters packed(ctx, filter, parts, columns * element, by_part);
  size_t scratch_bytes = 0, taps_bytes = 0;
  int64_t pixels = 0;
  ConvKey last;
  for (size_t i = 0; i < slices.size(); ++i) {
    ConvKey key = KeyOf(kind, slices[i].g, bf16);
    key.transposed = filter.transposed;
    if (parts > 1) {
      key.all_outputs = key.out_channels;
      key.out_channels = channels;
    }
    const bool same = i > 0 && key == last;
    last = key;
    if (same) {
      convs[i] = convs[i - 1];
      weights[i] = weights[i - 1];
      continue;
    }
    MR_ASSIGN_OR_RETURN(convs[i], Conv::Get(key));
    MR_ASSIGN_OR_RETURN(weights[i], packed.For(*convs[i]));
    scratch_bytes = std::max(scratch_bytes, (convs[i]->scratch_bytes() + 63) / 64 * 64);
    if (weights[i].first == nullptr) taps_bytes = std::max(taps_bytes, weights[i].stride);
    pixels = std::max(pixels, slices[i].g.batch * slices[i].g.out_pixels());
  }
  const bool beside = parts > 1 || (epilogue != nullptr && epilogue->residual != nullptr);  // before it goes to dst
  const size_t result_bytes = beside ? static_cast<size_t>(pixels * channels) * element : 0;
  const int64_t stretch = by_part ? n : 1;  // slices that one thread runs
  const double cost =
      WorkOf(slices[0].g) / static_cast<double>(parts) / kFlopsPerNanosecond * static_cast<double>(stretch);
  FirstError error;
  // The slices of one part follow one another: they share its weights.
  ctx.ParallelFor(n * parts / stretch, cost, [&](int64_t begin, int64_t end) {
    auto scratch = Scratch(ctx, scratch_bytes + taps_bytes + result_bytes);
    if (!scratch.ok()) return error.Set(scratch.status());
    char* const own_taps = static_cast<char*>((*scratch)->data()) + scratch_bytes;
    char* const result = own_taps + taps_bytes;
    const Conv* taps_of = nullptr;  // for which, and for which part, own_taps are packed
    size_t taps_part = 0;
    for (int64_t i = begin * stretch; i < end * stretch && !error.failed(); ++i) {
      const auto at = static_cast<size_t>(i % n), part = static_cast<size_t>(i / n);
      const Slice& s = slices[at];
      const char* taps = own_taps;
      if (weights[at].first != nullptr) {
        taps = static_cast<const char*>(weights[at].first) + part * weights[at].stride;
      } else if (taps_of == nullptr || part != taps_part || !taps_of->SamePacking(*convs[at])) {
        const Status ready = packed.PackPart(*convs[at], part, own_taps);
        if (!ready.ok()) return error.Set(ready);
        taps_of = convs[at].get();
        taps_part = part;
      }
      char* const to = static_cast<char*>(At(dst, s.out_offset, bf16));
      const Status ran =
          convs[at]->Run(At(src, s.in_offset, bf16), const_cast<char*>(taps), beside ? result : to, (*scratch)->data());
      if (!ran.ok()) return error.Set(ran);
      const int64_t count = s.g.batch * s.g.out_pixels();
      if (epilogue != nullptr) {
        const float* const made = reinterpret_cast<const float*>(beside ? result : to);
        const int64_t pixel = s.out_offset / whole.out_channels, channel = static_cast<int64_t>(part) * channels;
        ApplyEpilogue(*epilogue, {made, channels, pixel, count, channel, channels}, static_cast<float*>(dst));
      } else if (parts > 1) {
        const size_t bytes = static_cast<size_t>(channels) * element, pixel = bytes * static_cast<size_t>(parts);
        for (size_t p = 0; p < static_cast<size_t>(count); ++p) {
          std::memcpy(to + p * pixel + part * bytes, result + p * bytes, bytes);
        }
      }
    }
  });
  return error.Take();
}

bool UnitStride(const ConvGeometry& g) { return g.stride == std::array<int64_t, 3>{1, 1, 1}; }

// ---- forward ----

// Whether g is a product of its cells and its filter, and so few cells that packing the filter for a convolution would
// cost more than it gains.
bool IsSmallProduct(const ConvGeometry& g) {
  constexpr int64_t kMostRows = 1024, kLeastChannels = 64;
  return g.taps() == 1 && UnitStride(g) && g.groups == 1 && g.in == g.out && g.batch * g.out_pixels() <= kMostRows &&
         std::min(g.in_channels, g.out_channels) >= kLeastChannels;
}

// Whether each window is one run of the input, as those of whole rows are: then g is a product of matrices, the windows
// and the filter.
bool HasWindowsOfRows(const ConvGeometry& g) {
  const std::array<int64_t, 3> none{0, 0, 0}, one{1, 1, 1};
  return g.taps() > 1 && g.groups == 1 && g.in[0] == 1 && g.kernel[2] == g.in[2] && g.pad_before == none &&
         g.pad_after == none && g.dilation == one;
}
// How many images are taken at once: as many as have windows of a megabyte.
int64_t ImagesAtOnce(const ConvGeometry& g) {
  constexpr int64_t kNumbers = int64_t{1} << 18;
  return std::clamp<int64_t>(kNumbers / (g.out_pixels() * g.taps() * g.in_channels), 1, g.batch);
}

Status WindowsProduct(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v) {
  const int64_t window = g.taps() * g.in_channels, image = g.in_pixels() * g.in_channels;
  const int64_t step = g.stride[1] * g.in[2] * g.in_channels, at_once = ImagesAtOnce(g);
  GemmArgs args;
  args.n = args.ldb = args.ldc = g.out_channels;
  args.k = args.lda = window;
  args.b = v.filter;
  args.b_value = v.filter_value;
  // Windows overlap, or have gaps between them: they are written out.
  MR_ASSIGN_OR_RETURN(
      Tensor windows, ctx.AllocateTemp(DType::kFloat, Shape::Vector(at_once * g.out_pixels() * window)));
  auto* const rows = windows.mutable_data<float>();
  const auto* const input = static_cast<const float*>(v.input);
  auto* const output = static_cast<float*>(v.output);
  for (int64_t first = 0; first < g.batch; first += at_once) {
    args.m = std::min(at_once, g.batch - first) * g.out_pixels();
    ctx.ParallelFor(args.m, 0.1 * static_cast<double>(window), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* const from = input + (first + r / g.out_pixels()) * image + r % g.out_pixels() * step;
        std::copy_n(from, window, rows + r * window);
      }
    });
    float* const to = output + first * g.out_pixels() * g.out_channels;
    args.a = rows;
    args.c = to;
    Gemm(&ctx, DType::kFloat, args);
    if (v.epilogue != nullptr) {
      ApplyEpilogue(*v.epilogue, {to, g.out_channels, first * g.out_pixels(), args.m, 0, g.out_channels}, output);
    }
  }
  return absl::OkStatus();
}

Status ForwardProduct(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v) {
  GemmArgs args;
  args.m = g.batch * g.out_pixels();
  args.n = args.ldb = args.ldc = g.out_channels;
  args.k = args.lda = g.in_channels;
  args.a = v.input;
  args.b = v.filter;
  args.b_value = v.filter_value;
  args.c = v.output;
  Tensor beside;  // the residual may be where the result goes
  if (v.epilogue != nullptr && v.epilogue->residual != nullptr) {
    MR_ASSIGN_OR_RETURN(beside, ctx.AllocateTemp(DType::kFloat, Shape::Vector(args.m * args.n)));
    args.c = beside.mutable_raw();
  }
  Gemm(&ctx, DType::kFloat, args, v.epilogue, static_cast<float*>(v.output));
  return absl::OkStatus();
}

Status Forward(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  if (!bf16 && IsSmallProduct(g)) return ForwardProduct(ctx, g, v);
  const bool residual = v.epilogue != nullptr && v.epilogue->residual != nullptr;
  if (!bf16 && !residual && HasWindowsOfRows(g)) return WindowsProduct(ctx, g, v);
  if (!bf16 && HasFewPixels(g)) return FewPixelsConv(ctx, g, v);
  return RunSlices(ctx, ConvKind::kForward, bf16, g, SliceImagesOrRows(g, WantedSlices(g)), v.input,
                   {v.filter, v.filter_value}, v.output, v.epilogue);
}

// ---- backward by the input ----

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

// Whether oneDNN's forward code serves, which is the faster one.
bool RunsTurned(const ConvGeometry& g) { return UnitStride(g) && !g.depthwise() && Ordinary(TurnedAround(g)); }

Status BackwardInput(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  const ConvGeometry t = TurnedAround(g);
  if (!RunsTurned(g)) {
    // Cells that no window covers still get their zeros from the primitive.
    return RunSlices(ctx, ConvKind::kBackwardData, bf16, g, SliceImages(g, WantedSlices(g)), v.input,
                     {v.filter, v.filter_value}, v.output);
  }
  Filter filter{v.filter, v.filter_value, /*transposed=*/true};
  filter.turned = g.taps() > 1;
  filter.num_taps = static_cast<size_t>(g.taps());
  filter.tap_bytes = static_cast<size_t>(g.group_in() * g.out_channels) * (bf16 ? 2 : 4);
  return RunSlices(ctx, ConvKind::kForward, bf16, t, SliceImagesOrRows(t, WantedSlices(t)), v.output, filter, v.input);
}

// ---- backward by the filter ----

// So many that adding their filters costs little beside making them, and that these lie in the cache or take no more
// memory than what is read.
int64_t FilterChunks(const ConvGeometry& g) {
  constexpr double kPixelsPerChunk = 500, kFiltersInCache = 2e6;  // elements
  const double filter = static_cast<double>(g.taps()) * static_cast<double>(g.group_in() * g.out_channels);
  const double pixels = static_cast<double>(g.batch) * static_cast<double>(g.out_pixels());
  const double read = static_cast<double>(g.batch) *
                      static_cast<double>(g.in_pixels() * g.in_channels + g.out_pixels() * g.out_channels);
  const double most = std::min({static_cast<double>(WantedSlices(g)), std::max(pixels / kPixelsPerChunk, 2.0),
                                std::max(kFiltersInCache, read) / filter});
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(most, 1.0))));
}

std::vector<Slice> FilterSlices(const ConvGeometry& g) { return SliceImagesOrRows(g, FilterChunks(g)); }

// A part copies its channels of the output's gradient first, which must be little beside the work on them.
int64_t FilterParts(const ConvGeometry& g, size_t chunks) {
  constexpr int64_t kChannels = 32, kLeastWork = 128;
  return g.taps() * g.group_in() >= kLeastWork ? ChannelParts(g, chunks, kChannels) : 1;
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

// The primitives of the chunks, each of which makes the filter of `channels` outputs. Empty: their layouts differ.
StatusOr<std::vector<ConvPtr>> FilterConvs(const ConvGeometry& g, const std::vector<Slice>& chunks, int64_t channels,
                                           bool bf16) {
  std::vector<ConvPtr> convs;
  for (const Slice& chunk : chunks) {
    ConvKey key = KeyOf(ConvKind::kBackwardWeights, chunk.g, bf16);
    key.blocked = BlockedPays(g);
    if (channels != g.out_channels) {
      key.all_outputs = g.out_channels;
      key.out_channels = channels;
    }
    MR_ASSIGN_OR_RETURN(convs.emplace_back(), Conv::Get(key));
    if (!convs.back()->SamePacking(*convs.front())) return std::vector<ConvPtr>();
  }
  return convs;
}

// Chunks times parts; the filters of the chunks of one part lie behind one another, in the primitives' layout.
class FilterGradient {
 public:
  FilterGradient(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v, bool bf16)
      : ctx_(ctx), g_(g), v_(v), element_(bf16 ? 2 : 4), bf16_(bf16) {}

  Status Run() {
    MR_RETURN_IF_ERROR(Plan());
    const size_t bytes = convs_[0]->packed_bytes();
    stride_ = (bytes + 63) / 64 * 64;
    is_direct_ = convs_[0]->packed_is_plain();
    if (!is_direct_ || chunks_.size() > 1) {
      MR_ASSIGN_OR_RETURN(partial_, Scratch(ctx_, stride_ * chunks_.size() * parts_));
    }
    MR_RETURN_IF_ERROR(MakeFilters());
    if (chunks_.size() > 1) AddFilters(static_cast<int64_t>(bytes / sizeof(float)));
    if (is_direct_) return absl::OkStatus();
    FirstError error;
    ctx_.ParallelFor(static_cast<int64_t>(parts_), static_cast<double>(bytes) / 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end && !error.failed(); ++p) {
        error.Set(
            convs_[0]->Unpack(FilterOf(0, static_cast<size_t>(p)), static_cast<float*>(v_.filter) + p * channels_));
      }
    });
    return error.Take();
  }

 private:
  Status Plan() {
    chunks_ = FilterSlices(g_);
    parts_ = static_cast<size_t>(FilterParts(g_, chunks_.size()));
    channels_ = g_.out_channels / static_cast<int64_t>(parts_);
    MR_ASSIGN_OR_RETURN(convs_, FilterConvs(g_, chunks_, channels_, bf16_));
    if (!convs_.empty()) return absl::OkStatus();
    chunks_ = SliceImages(g_, FilterChunks(g_));
    MR_ASSIGN_OR_RETURN(convs_, FilterConvs(g_, chunks_, channels_, bf16_));
    return convs_.empty() ? Unimplemented("chunks of different layouts") : absl::OkStatus();
  }

  float* FilterOf(size_t chunk, size_t part) const {
    if (is_direct_ && chunk == 0) return static_cast<float*>(v_.filter);
    return reinterpret_cast<float*>(static_cast<char*>(partial_->data()) + stride_ * (part * chunks_.size() + chunk));
  }

  Status MakeFilters() {
    FirstError error;
    const auto n = static_cast<int64_t>(chunks_.size()), parts = static_cast<int64_t>(parts_);
    const double cost = WorkOf(chunks_[0].g) / static_cast<double>(parts) / kFlopsPerNanosecond;
    ctx_.ParallelFor(n * parts, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && !error.failed(); ++i) {
        error.Set(MakeFilter(static_cast<size_t>(i % n), static_cast<size_t>(i / n)));
      }
    });
    return error.Take();
  }

  Status MakeFilter(size_t chunk, size_t part) const {
    const Slice& s = chunks_[chunk];
    const Conv& conv = *convs_[chunk];
    const auto pixels = static_cast<size_t>(s.g.batch * s.g.out_pixels());
    const size_t row = static_cast<size_t>(channels_) * element_, scratch_bytes = (conv.scratch_bytes() + 63) / 64 * 64;
    MR_ASSIGN_OR_RETURN(const RefPtr<Buffer> scratch, Scratch(ctx_, scratch_bytes + (parts_ > 1 ? pixels * row : 0)));
    char* gradient = static_cast<char*>(At(v_.output, s.out_offset, bf16_));
    if (parts_ > 1) {
      char* const own = static_cast<char*>(scratch->data()) + scratch_bytes;
      for (size_t p = 0; p < pixels; ++p) std::memcpy(own + p * row, gradient + (p * parts_ + part) * row, row);
      gradient = own;
    }
    return conv.Run(At(v_.input, s.in_offset, bf16_), FilterOf(chunk, part), gradient, scratch->data());
  }

  void AddFilters(int64_t n) const {
    const InPlaceOp add("Add", DType::kFloat);
    constexpr int64_t kBlock = 4096;
    const int64_t blocks = (n + kBlock - 1) / kBlock;
    const double cost = static_cast<double>(kBlock) * 0.2 * static_cast<double>(chunks_.size());
    ctx_.ParallelFor(blocks * static_cast<int64_t>(parts_), cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const auto part = static_cast<size_t>(b / blocks);
        const int64_t from = b % blocks * kBlock, to = std::min(n, from + kBlock);
        for (size_t i = 1; i < chunks_.size(); ++i) {
          add(FilterOf(0, part) + from, FilterOf(i, part) + from, to - from);
        }
      }
    });
  }

  KernelContext& ctx_;
  const ConvGeometry& g_;
  const ConvOperands& v_;
  const size_t element_;
  const bool bf16_;
  std::vector<Slice> chunks_;
  std::vector<ConvPtr> convs_;  // by chunk
  size_t parts_ = 1;
  int64_t channels_ = 0;    // of a part
  size_t stride_ = 0;       // bytes
  bool is_direct_ = false;  // one part, in the user's layout: the first chunk writes into the result
  RefPtr<Buffer> partial_;
};

Status BackwardFilter(KernelContext& ctx, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  if (OverrunsScratch(g)) return Unimplemented("left to the direct loops");
  return FilterGradient(ctx, g, v, bf16).Run();
}

Status Dispatch(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  if (pass == ConvPass::kBackwardInput) return BackwardInput(ctx, g, v, bf16);
  if (pass == ConvPass::kBackwardFilter) return BackwardFilter(ctx, g, v, bf16);
  return Forward(ctx, g, v, bf16);
}

}  // namespace

Status OneDnnConv(KernelContext& ctx, ConvPass pass, const ConvGeometry& g, const ConvOperands& v, bool bf16) {
  // A few multiplications are done before oneDNN has looked its primitive up.
  constexpr double kTinyFlops = 2e3;
  if (!Ordinary(g) || g.flops() < kTinyFlops) return Unimplemented("left to the direct loops");
  return Dispatch(ctx, pass, g, v, bf16);
}

std::vector<double> OneDnnConvParts(ConvPass pass, const ConvGeometry& g) {
  if (pass == ConvPass::kForward && IsSmallProduct(g)) {
    const GemmTiling t = TileGemm(g.batch * g.out_pixels(), g.out_channels, g.in_channels);
    return std::vector<double>(
        static_cast<size_t>(t.down * t.across), g.flops() / static_cast<double>(t.down * t.across));
  }
  if (pass == ConvPass::kForward && HasWindowsOfRows(g)) {
    const GemmTiling t = TileGemm(ImagesAtOnce(g) * g.out_pixels(), g.out_channels, g.taps() * g.in_channels);
    const int64_t parts = t.down * t.across * ((g.batch + ImagesAtOnce(g) - 1) / ImagesAtOnce(g));
    return std::vector<double>(static_cast<size_t>(parts), g.flops() / static_cast<double>(parts));
  }
  if (pass == ConvPass::kForward && HasFewPixels(g)) return FewPixelsParts(g);
  const bool turned = pass == ConvPass::kBackwardInput && RunsTurned(g);
  const ConvGeometry whole = turned ? TurnedAround(g) : g;
  std::vector<Slice> slices;
  int64_t channel_parts = 1;
  if (pass == ConvPass::kBackwardFilter) {
    slices = FilterSlices(g);
    channel_parts = FilterParts(g, slices.size());
  } else if (turned || pass == ConvPass::kForward) {
    slices = SliceImagesOrRows(whole, WantedSlices(whole));
    channel_parts = ChannelParts(whole, slices.size(), kForwardChannels);
  } else {
    slices = SliceImages(g, WantedSlices(g));
  }
  std::vector<double> parts;
  for (int64_t p = 0; p < channel_parts; ++p) {
    for (const Slice& s : slices) parts.push_back(s.g.flops() / static_cast<double>(channel_parts));
  }
  return parts;
}

}  // namespace millrace
