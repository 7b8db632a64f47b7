// SPDX-License-Identifier: Apache-2.0
// A vector whose copies share their elements, in chunks, until one of them changes. A copy costs a pointer per chunk; a
// change copies one chunk at most; elements that were never written cost nothing. Not thread-safe; copies on several
// threads are.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ref_counted.h"

namespace millrace {

template <typename T, int64_t kChunk>
class ChunkedVector {
 public:
  int64_t size() const { return size_; }

  // 0 <= i < size().
  const T& operator[](int64_t i) const {
    const RefPtr<Chunk>& chunk = chunks_[static_cast<size_t>(i / kChunk)];
    return chunk ? chunk->items[static_cast<size_t>(i % kChunk)] : Empty();
  }
  T& Mutable(int64_t i) {
    RefPtr<Chunk>& chunk = chunks_[static_cast<size_t>(i / kChunk)];
    if (!chunk) {
      chunk = MakeRef<Chunk>();
    } else if (!chunk->HasOneRef()) {
      auto own = MakeRef<Chunk>();
      own->items = chunk->items;
      chunk = std::move(own);
    }
    return chunk->items[static_cast<size_t>(i % kChunk)];
  }

  // The first position from i on that may hold more than an empty element; size() when there is none.
  int64_t NextInUse(int64_t i) const {
    while (i < size_ && !chunks_[static_cast<size_t>(i / kChunk)]) i = (i / kChunk + 1) * kChunk;
    return i < size_ ? i : size_;
  }

  // New elements are empty.
  void Resize(int64_t n) {
    if (n < size_ && n % kChunk != 0 && chunks_[static_cast<size_t>(n / kChunk)]) {
      for (int64_t i = n; i < size_ && i / kChunk == n / kChunk; ++i) Mutable(i) = T();
    }
    size_ = n;
    chunks_.resize(static_cast<size_t>((n + kChunk - 1) / kChunk));
  }
  void PushBack(T value) {
    Resize(size_ + 1);
    Mutable(size_ - 1) = std::move(value);
  }
  // size() > 0.
  T PopBack() {
    T last = std::move(Mutable(size_ - 1));
    Resize(size_ - 1);
    return last;
  }
  void Clear() {
    chunks_.clear();
    size_ = 0;
  }

 private:
  struct Chunk final : public RefCounted {
    std::array<T, static_cast<size_t>(kChunk)> items{};
  };
  static const T& Empty() {
    static const T* const empty = new T();
    return *empty;
  }

  int64_t size_ = 0;
  std::vector<RefPtr<Chunk>> chunks_;
};

}  // namespace millrace
