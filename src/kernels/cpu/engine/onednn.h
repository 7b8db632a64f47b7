// SPDX-License-Identifier: Apache-2.0
// oneDNN as a single-thread library below our own thread pool. Only this file's .cc includes its headers.
//
// A Conv is one convolution primitive for one geometry, compiled on first use and kept in a bounded cache that the
// whole process shares. It is immutable: any number of threads may run it at once, each with scratch memory of its own.
// Every call into oneDNN runs with an OpenMP thread count of 1 on the calling thread and puts the caller's count back
// after.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace millrace::onednn {

enum class ConvKind : uint8_t { kForward, kBackwardData, kBackwardWeights };

// float32 or bfloat16, images channels-last without gaps. Weights as the user has them: [taps][in / groups][out], or,
// for a forward convolution that stands for a backward one, [taps][out][in / groups] (`transposed`, out being that
// convolution's own output). Entry 0 of the arrays is depth: all ones (and no padding) for images.
struct ConvKey {
  ConvKind kind = ConvKind::kForward;
  bool transposed = false;
  bool blocked = false;  // images are brought into oneDNN's own layout first, where that pays
  bool bf16 = false;     // sums are float32; so are the packed weights of the backward-weights pass
  bool volumetric = false;
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  int64_t all_outputs = 0;  // in the user's weights, where this convolution makes a part of the outputs; else 0
  std::array<int64_t, 3> in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> pad_before{0, 0, 0}, pad_after{0, 0, 0};
  bool operator==(const ConvKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ConvKey& k) {
    return H::combine(
        std::move(h), k.kind, k.transposed, k.blocked, k.bf16, k.volumetric, k.batch, k.in_channels, k.out_channels,
        k.groups, k.all_outputs, k.in, k.kernel, k.out, k.stride, k.dilation, k.pad_before, k.pad_after);
  }
};

class Conv {
 public:
  // Unimplemented when oneDNN has no fast code for this geometry.
  static StatusOr<std::shared_ptr<const Conv>> Get(const ConvKey& key);
  ~Conv();

  // Bytes of the weights in the layout that the primitive wants.
  size_t packed_bytes() const;
  // True when that layout is the user's: then no packing is needed.
  bool packed_is_plain() const;
  bool SamePacking(const Conv& o) const;
  // Names what Pack makes: equal for convolutions that make the same of the same weights.
  const std::string& packing() const;
  size_t scratch_bytes() const;

  Status Pack(const void* weights, void* packed) const;
  Status Unpack(const void* packed, void* weights) const;
  // Forward: reads src and weights, writes dst. Backward data: reads weights and dst, writes src. Backward weights:
  // reads src and dst, writes weights. Weights are packed. Pointers to 64-byte aligned memory run fastest.
  Status Run(void* src, void* weights, void* dst, void* scratch) const;

 private:
  struct Impl;
  explicit Conv(std::unique_ptr<Impl> impl);
  static StatusOr<std::shared_ptr<const Conv>> Create(const ConvKey& key);
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::onednn
