// SPDX-License-Identifier: Apache-2.0
// Memory that several processes see. It has no name: it is gone when the last of them lets go, however that happens.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/status.h"

namespace millrace {

class Segment {
 public:
  // To be written, by this process alone. All of it is there (or ResourceExhausted), and nobody can make it shorter,
  // sealed as it is.
  static StatusOr<std::unique_ptr<Segment>> Create(size_t capacity);
  // Of another process, to be read. InvalidArgument unless it has `capacity` bytes and keeps them.
  static StatusOr<std::unique_ptr<Segment>> Map(Descriptor memory, size_t capacity);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  char* data() const { return data_; }
  absl::string_view bytes() const { return {data_, capacity_}; }
  size_t capacity() const { return capacity_; }
  int descriptor() const { return memory_.get(); }

 private:
  Segment(Descriptor memory, char* data, size_t capacity)
      : memory_(std::move(memory)), data_(data), capacity_(capacity) {}

  Descriptor memory_;  // of one that is written
  char* const data_;
  const size_t capacity_;
};

}  // namespace millrace
