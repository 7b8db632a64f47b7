// SPDX-License-Identifier: Apache-2.0
//
// Writes the binary form of messages in one walk, from the last field to the first, so that a message's length is known
// when it is due. For what is written once a step and never read here; everything else has a table (message.h).
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <protozero/varint.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace millrace::wire {

class BackwardWriter {
 public:
  // It grows beyond `bytes` where it must.
  explicit BackwardWriter(size_t bytes)
      : capacity_(std::max<size_t>(bytes, 64)), at_(capacity_), data_(new char[capacity_]) {}

  size_t size() const { return capacity_ - at_; }
  // The field before those that are there. Zero and nothing are left out, as Encode does.
  void Number(uint32_t field, uint64_t value) {
    if (value == 0) return;
    Varint(value);
    Varint(field << 3);
  }
  void String(uint32_t field, absl::string_view value) {
    if (value.empty()) return;
    Reserve(value.size());
    at_ -= value.size();
    std::memcpy(data_.get() + at_, value.data(), value.size());
    Prefix(field, value.size());
  }
  // What was written since size() was `end` is the message of this field.
  void Message(uint32_t field, size_t end) { Prefix(field, size() - end); }

  // Forgets what was written since size() was `end`.
  void Drop(size_t end) { at_ = capacity_ - end; }

  std::string Finish() const { return std::string(data_.get() + at_, size()); }

 private:
  void Prefix(uint32_t field, size_t bytes) {
    Varint(bytes);
    Varint(field << 3 | 2);
  }
  void Varint(uint64_t value) {
    Reserve(10);
    if (value < 128) {
      data_[--at_] = static_cast<char>(value);
      return;
    }
    at_ -= static_cast<size_t>(protozero::length_of_varint(value));
    protozero::write_varint(data_.get() + at_, value);
  }
  void Reserve(size_t bytes) {
    if (bytes > at_) Grow(bytes);
  }
  void Grow(size_t bytes) {
    const size_t capacity = 2 * capacity_ + bytes, used = size();
    std::unique_ptr<char[]> data(new char[capacity]);
    std::memcpy(data.get() + capacity - used, data_.get() + at_, used);
    data_ = std::move(data);
    capacity_ = capacity;
    at_ = capacity - used;
  }

  size_t capacity_;
  size_t at_;  // what is written begins here
  std::unique_ptr<char[]> data_;
};

}  // namespace millrace::wire
