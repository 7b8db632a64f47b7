// SPDX-License-Identifier: Apache-2.0
// Hash tables that a failed allocation leaves as they were, so that who runs out of memory while one grows gets an
// error. Abseil's (LTS 20220623 and before) take their new capacity first and are then destroyed as what they are not.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace millrace {
namespace internal {

template <typename Key>
struct HashTableKey {
  using Hash = absl::Hash<Key>;
  using Equal = std::equal_to<Key>;
};

// Strings are found by views, too.
template <>
struct HashTableKey<std::string> {
  struct Hash {
    using is_transparent = void;
    size_t operator()(absl::string_view s) const { return absl::Hash<absl::string_view>()(s); }
  };
  using Equal = std::equal_to<>;
};

}  // namespace internal

template <typename Key, typename Value>
using HashMap = std::unordered_map<Key, Value, typename internal::HashTableKey<Key>::Hash,
                                   typename internal::HashTableKey<Key>::Equal>;
template <typename Key>
using HashSet =
    std::unordered_set<Key, typename internal::HashTableKey<Key>::Hash, typename internal::HashTableKey<Key>::Equal>;

}  // namespace millrace
