// SPDX-License-Identifier: Apache-2.0
// Items dealt out to parts, in order within each part, by all threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/kernel.h"

namespace millrace {

// Items 0 .. n - 1, of which part_of(i) in [0, parts) says where they go; it is asked twice and must say the same.
// Chunks of items are counted side by side; where a chunk's own begin in each part is then known.
template <typename PartOf>
class Deal {
 public:
  // cost: nanoseconds that part_of takes, about.
  Deal(const KernelContext& ctx, int64_t n, int64_t parts, double cost, PartOf part_of)
      : n_(n),
        parts_(parts),
        chunk_(std::max<int64_t>(4096, 8 * parts)),
        chunks_((n + chunk_ - 1) / chunk_),
        part_of_(std::move(part_of)),
        next_(static_cast<size_t>(chunks_ * parts)),
        sizes_(static_cast<size_t>(parts)) {
    ctx.ParallelFor(chunks_, cost * static_cast<double>(chunk_), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        int64_t* const counts = next_.data() + c * parts_;
        for (int64_t i = c * chunk_; i < std::min(n_, (c + 1) * chunk_); ++i) ++counts[part_of_(i)];
      }
    });
    for (int64_t c = 0; c < chunks_; ++c) {
      for (int64_t p = 0; p < parts_; ++p) {
        int64_t& size = sizes_[static_cast<size_t>(p)];
        size += std::exchange(next_[static_cast<size_t>(c * parts_ + p)], size);
      }
    }
  }

  int64_t size(int64_t part) const { return sizes_[static_cast<size_t>(part)]; }

  // Calls visit(i, part, the item's place in its part) for all items, once only; about `cost` nanoseconds each.
  template <typename Visit>
  void Run(const KernelContext& ctx, double cost, const Visit& visit) {
    ctx.ParallelFor(chunks_, cost * static_cast<double>(chunk_), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        int64_t* const next = next_.data() + c * parts_;
        for (int64_t i = c * chunk_; i < std::min(n_, (c + 1) * chunk_); ++i) {
          const auto part = static_cast<int64_t>(part_of_(i));
          visit(i, part, next[part]++);
        }
      }
    });
  }

 private:
  const int64_t n_, parts_, chunk_, chunks_;
  const PartOf part_of_;
  std::vector<int64_t> next_;  // [chunk, part]: how many items, then the place of the next one
  std::vector<int64_t> sizes_;
};

}  // namespace millrace
