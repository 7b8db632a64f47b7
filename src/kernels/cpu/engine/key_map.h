// SPDX-License-Identifier: Apache-2.0
// A hash map to numbers that stays whole when it cannot grow: an allocation that fails leaves it as it was (Abseil's
// maps are broken then, and so is what destroys them). Keys are never removed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"

namespace millrace {

template <typename Key>
class KeyMap {
 public:
  size_t size() const { return size_; }
  // The number of `key`, which is `number` if it had none; and whether it had none.
  std::pair<int64_t, bool> Insert(const Key& key, int64_t number) {
    const size_t hash = HashOf(key);
    Slot& slot = Place(key, hash);
    if (slot.hash != kFree) return {slot.number, false};
    slot = {key, number, hash};
    ++size_;
    return {number, true};
  }
  // The number of `key`, 0 if it had none. Valid until the next call that inserts.
  int64_t& operator[](const Key& key) {
    const size_t hash = HashOf(key);
    Slot& slot = Place(key, hash);
    if (slot.hash == kFree) {
      slot = {key, 0, hash};
      ++size_;
    }
    return slot.number;
  }
  // Null: it has none.
  const int64_t* Find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[Search(slots_, key, HashOf(key))];
    return slot.hash != kFree ? &slot.number : nullptr;
  }
  bool Contains(const Key& key) const { return Find(key) != nullptr; }

 private:
  static constexpr size_t kFree = 0;  // no key's hash
  struct Slot {
    Key key{};
    int64_t number = 0;
    size_t hash = kFree;  // so that few keys are compared, and none is hashed again
  };
  using Slots = std::vector<Slot>;  // a power of two of them, a quarter of them free

  static size_t HashOf(const Key& key) {
    const size_t hash = absl::HashOf(key);
    return hash == kFree ? 1 : hash;
  }
  // That of `key`, or the free one where it belongs.
  static size_t Search(const Slots& slots, const Key& key, size_t hash) {
    const size_t mask = slots.size() - 1;
    size_t at = hash & mask;
    while (slots[at].hash != kFree && !(slots[at].hash == hash && slots[at].key == key)) at = (at + 1) & mask;
    return at;
  }
  Slot& Place(const Key& key, size_t hash) {
    if (slots_.empty() || 4 * (size_ + 1) > 3 * slots_.size()) Grow();
    return slots_[Search(slots_, key, hash)];
  }
  void Grow() {
    Slots larger(slots_.empty() ? 16 : 2 * slots_.size());
    const size_t mask = larger.size() - 1;
    for (Slot& slot : slots_) {
      if (slot.hash == kFree) continue;
      size_t at = slot.hash & mask;
      while (larger[at].hash != kFree) at = (at + 1) & mask;
      larger[at] = std::move(slot);
    }
    slots_.swap(larger);
  }

  Slots slots_;
  size_t size_ = 0;
};

}  // namespace millrace
