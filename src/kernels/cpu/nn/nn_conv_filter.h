// SPDX-License-Identifier: Apache-2.0
// The filters of convolutions by oneDNN, in the layouts that its primitives want.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernel/kernel.h"
#include "kernels/cpu/engine/onednn.h"
#include "tensor/prepared.h"

namespace millrace::onednn {

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

inline StatusOr<RefPtr<Buffer>> Scratch(KernelContext& ctx, size_t bytes) {
  return AllocateBuffer(ctx.device().allocator(), std::max<size_t>(bytes, 1));
}

// The filter of a convolution, perhaps turned half around: its taps in reverse order.
struct Filter {
  const void* taps = nullptr;
  const Tensor* value = nullptr;  // ConvOperands::filter_value
  bool transposed = false;        // see ConvKey
  bool turned = false;
  size_t num_taps = 1, tap_bytes = 0;  // when it is turned
};

// The parts of a filter, one behind the other, for convolutions of some of its outputs each.
struct PackedFilter {
  const void* first = nullptr;  // null: each part is packed by who uses it
  size_t stride = 0;            // bytes
};

// A filter in the layouts that the primitives want, packed once for each. Nearly always there is one.
class PackedFilters {
 public:
  // A part begins `part_bytes` after the one before. `later`: parts whose packed form is not kept are left to PackPart.
  PackedFilters(KernelContext& ctx, const Filter& filter, int64_t parts, size_t part_bytes, bool later)
      : ctx_(ctx), filter_(filter), parts_(parts), part_bytes_(part_bytes), later_(later) {}

  // For `conv`, which makes one of the parts.
  StatusOr<PackedFilter> For(const Conv& conv) {
    if (conv.packed_is_plain() && !filter_.turned && parts_ == 1) return PackedFilter{filter_.taps, 0};
    const size_t stride = (conv.packed_bytes() + 63) / 64 * 64;
    for (const auto& [owner, buffer] : packed_) {
      if (owner->SamePacking(conv)) return PackedFilter{buffer->data(), stride};
    }
    const size_t bytes = stride * static_cast<size_t>(parts_);
    const auto pack = [&](void* to) { return Pack(conv, stride, static_cast<char*>(to)); };
    RefPtr<Buffer> buffer;
    if (filter_.value != nullptr) {
      const std::string form =
          absl::StrCat(filter_.turned ? "turned filter of " : "filter of ", parts_, " parts ", conv.packing());
      buffer = PreparedForms::Of(*filter_.value, form, bytes, ctx_.device().allocator(), pack);
    }
    if (!buffer && later_) {
      if (filter_.turned) MR_RETURN_IF_ERROR(Turn());
      return PackedFilter{nullptr, stride};
    }
    if (!buffer) {
      MR_ASSIGN_OR_RETURN(buffer, Scratch(ctx_, bytes));
      MR_RETURN_IF_ERROR(pack(buffer->data()));
    }
    packed_.emplace_back(&conv, std::move(buffer));
    return PackedFilter{packed_.back().second->data(), stride};
  }

  // One part for `conv`, for which For has left it. Thread-safe.
  Status PackPart(const Conv& conv, size_t part, char* to) const { return conv.Pack(Taps() + part * part_bytes_, to); }

 private:
  const char* Taps() const { return static_cast<const char*>(turned_ ? turned_->data() : filter_.taps); }
  Status Pack(const Conv& conv, size_t stride, char* to) {
    if (filter_.turned) MR_RETURN_IF_ERROR(Turn());
    if (conv.packed_is_plain() && parts_ == 1) {
      std::memcpy(to, Taps(), conv.packed_bytes());
      return absl::OkStatus();
    }
    FirstError error;
    const double nanos = static_cast<double>(conv.packed_bytes()) / 4;
    ctx_.ParallelFor(parts_, nanos, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && !error.failed(); ++i) {
        const auto part = static_cast<size_t>(i);
        error.Set(PackPart(conv, part, to + part * stride));
      }
    });
    return error.Take();
  }
  Status Turn() {
    if (turned_) return absl::OkStatus();
    const size_t taps = filter_.num_taps, bytes = filter_.tap_bytes;
    MR_ASSIGN_OR_RETURN(turned_, Scratch(ctx_, taps * bytes));
    const char* const from = static_cast<const char*>(filter_.taps);
    char* const to = static_cast<char*>(turned_->data());
    for (size_t k = 0; k < taps; ++k) std::memcpy(to + k * bytes, from + (taps - 1 - k) * bytes, bytes);
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  const Filter filter_;
  const int64_t parts_;
  const size_t part_bytes_;
  const bool later_;
  RefPtr<Buffer> turned_;
  std::vector<std::pair<const Conv*, RefPtr<Buffer>>> packed_;
};

}  // namespace millrace::onednn
