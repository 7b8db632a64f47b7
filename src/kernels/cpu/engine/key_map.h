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
    Slot& slot = Place(key);
    if (slot.used) return {slot.number, false};
    slot = {key, number, true};
    ++size_;
    return {number, true};
  }
  // The number of `key`, 0 if it had none. Valid until the next call that inserts.
  int64_t& operator[](const Key& key) {
    Slot& slot = Place(key);
    if (!slot.used) {
      slot = {key, 0, true};
      ++size_;
    }
    return slot.number;
  }
  // Null: it has none.
  const int64_t* Find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[Search(slots_, key)];
    return slot.used ? &slot.number : nullptr;
  }
  bool Contains(const Key& key) const { return Find(key) != nullptr; }

 private:
  struct Slot {
    Key key{};
    int64_t number = 0;
    bool used = false;
  };
  using Slots = std::vector<Slot>;  // a power of two of them, a quarter of them free

  // That of `key`, or the free one where it belongs.
  static size_t Search(const Slots& slots, const Key& key) {
    const size_t mask = slots.size() - 1;
    size_t at = absl::HashOf(key) & mask;
    while (slots[at].used && !(slots[at].key == key)) at = (at + 1) & mask;
    return at;
  }
  Slot& Place(const Key& key) {
    if (slots_.empty() || 4 * (size_ + 1) > 3 * slots_.size()) Grow();
    return slots_[Search(slots_, key)];
  }
  void Grow() {
    Slots larger(slots_.empty() ? 16 : 2 * slots_.size());
    for (Slot& slot : slots_) {
      if (slot.used) larger[Search(larger, slot.key)] = std::move(slot);
    }
    slots_.swap(larger);
  }

  Slots slots_;
  size_t size_ = 0;
};

}  // namespace millrace
