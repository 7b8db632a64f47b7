// SPDX-License-Identifier: Apache-2.0
// Fresh memory from the system: a large range is reserved, and committed step by step, so that what is taken one after
// the other is mostly contiguous. Huge pages where the system has them. Not thread-safe. Nothing is given back before
// the end.
#pragma once

#include <cstddef>
#include <vector>

namespace millrace {

class AddressSpace {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;

  AddressSpace() = default;
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Zeroed memory, `bytes` a multiple of 64; null when the system refuses. It follows what was taken last if `bytes` is
  // at most Room().
  char* Take(size_t bytes);
  size_t Room() const { return static_cast<size_t>(reserved_end_ - next_); }
  size_t committed_bytes() const { return committed_bytes_; }

 private:
  bool Reserve(size_t bytes);

  struct Mapping {
    void* address;
    size_t size;
  };

  std::vector<Mapping> mappings_;
  char* next_ = nullptr;
  char* committed_end_ = nullptr;
  char* reserved_end_ = nullptr;
  size_t committed_bytes_ = 0;
};

}  // namespace millrace
