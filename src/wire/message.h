// SPDX-License-Identifier: Apache-2.0
//
// Messages of the TensorFlow 1.x wire formats, without a protobuf runtime.
//
// A message is a plain struct: scalar fields are plain members, repeated fields
// are std::vector, maps are std::map, a singular submessage is a Box<T> (null
// means absent, which differs from present and empty). Members have the name of
// the field. A message with a oneof has a nested `enum class Kind` and a member
// `kind` that tells which member of the oneof is set; the other members of the
// oneof are ignored, whatever they hold.
//
// Each struct is declared to the codec once, by a table of fields that its
// Info() returns (see table.h). That one table serves the functions below:
//
//   Decode, Encode           the binary form. Deterministic: fields in order of
//                            their number, maps in order of their keys.
//   DecodeText, EncodeText   the text form (.pbtxt).
//   Equal                    the same fields, oneof cases and unknown fields.
//
// Fields that a table does not know are kept as bytes in `unknown_fields` and
// written back at the end of their message by Encode. The text form has no
// unknown fields: EncodeText leaves them out, DecodeText refuses them.
//
// Input is not trusted: decoding checks its limits before it allocates, never
// recurses deeper than Limits::max_depth, and returns a status that names the
// message, the field and the position. After an error the output message is
// valid but its content is unspecified. Bytes that are no UTF-8 are accepted in
// strings.
//
// Functions are thread-safe; a message is as thread-compatible as its members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace millrace::wire {

struct MessageInfo;

// A map field. Lookup by string view needs no temporary string.
template <class K, class V>
using Map = std::map<K, V, std::less<>>;

// What one Decode or DecodeText may use. An input that is malformed or nested
// too deep gives InvalidArgument, one that is too large ResourceExhausted.
struct Limits {
  // Largest input.
  size_t max_bytes = 0x7fffffff;
  // Levels of submessages (a map entry is one too). Values above
  // kMaxDepthLimit count as kMaxDepthLimit.
  int max_depth = 100;
  // Memory of decoded structs, beyond the first MiB, per byte of input.
  size_t max_expansion = 64;

  static constexpr int kMaxDepthLimit = 1000;
};

// Type-erased part of Box, for the codec.
class BoxBase {
 public:
  explicit operator bool() const { return ptr_ != nullptr; }
  const void* raw() const { return ptr_; }

 protected:
  friend struct BoxAccess;
  BoxBase() = default;
  explicit BoxBase(void* ptr) : ptr_(ptr) {}
  ~BoxBase() = default;

  void* ptr_ = nullptr;
};

// An optional submessage: an owning pointer that copies what it points to. T
// may be incomplete where a Box<T> member is declared.
template <class T>
class Box : public BoxBase {
 public:
  using element_type = T;

  Box() = default;
  Box(const Box& other) : BoxBase(other ? new T(*other) : nullptr) {}
  Box(Box&& other) noexcept : BoxBase(std::exchange(other.ptr_, nullptr)) {}
  Box& operator=(const Box& other) {
    if (this != &other) *this = Box(other);
    return *this;
  }
  Box& operator=(Box&& other) noexcept {
    if (this != &other) {
      reset();
      ptr_ = std::exchange(other.ptr_, nullptr);
    }
    return *this;
  }
  ~Box() { reset(); }

  T* get() { return static_cast<T*>(ptr_); }
  const T* get() const { return static_cast<const T*>(ptr_); }
  T& operator*() { return *get(); }
  const T& operator*() const { return *get(); }
  T* operator->() { return get(); }
  const T* operator->() const { return get(); }

  // The submessage, made empty first if it is absent.
  T& Ensure() {
    if (ptr_ == nullptr) ptr_ = new T();
    return *get();
  }
  void reset() {
    static_assert(sizeof(T) > 0, "T must be complete here");
    delete static_cast<T*>(std::exchange(ptr_, nullptr));
  }
};

// Encoded fields (tag and value each) that the message's table does not know.
class UnknownFields {
 public:
  UnknownFields() = default;
  UnknownFields(const UnknownFields& other)
      : bytes_(other.empty() ? nullptr : std::make_unique<std::string>(*other.bytes_)) {}
  UnknownFields(UnknownFields&&) noexcept = default;
  UnknownFields& operator=(const UnknownFields& other) {
    if (this != &other) *this = UnknownFields(other);
    return *this;
  }
  UnknownFields& operator=(UnknownFields&&) noexcept = default;
  ~UnknownFields() = default;

  bool empty() const { return bytes_ == nullptr || bytes_->empty(); }
  absl::string_view bytes() const { return bytes_ == nullptr ? absl::string_view() : *bytes_; }
  void Append(absl::string_view bytes) {
    if (bytes_ == nullptr) bytes_ = std::make_unique<std::string>();
    bytes_->append(bytes.data(), bytes.size());
  }
  void clear() { bytes_.reset(); }

 private:
  std::unique_ptr<std::string> bytes_;
};

// The codec, compiled once for all messages: `message` points to a struct that
// `info` describes. Use the templates below.
[[nodiscard]] absl::Status DecodeErased(const MessageInfo& info, absl::string_view bytes, void* message,
                                        const Limits& limits);
[[nodiscard]] absl::Status DecodeTextErased(const MessageInfo& info, absl::string_view text, void* message,
                                            const Limits& limits);
size_t EncodedSizeErased(const MessageInfo& info, const void* message);
void AppendEncodedErased(const MessageInfo& info, const void* message, std::string* out);
void AppendTextErased(const MessageInfo& info, const void* message, std::string* out);
bool EqualErased(const MessageInfo& info, const void* a, const void* b);

// Replaces *out by the message that `bytes` encodes.
template <class M>
[[nodiscard]] absl::Status Decode(absl::string_view bytes, M* out, const Limits& limits = {}) {
  *out = M();
  return DecodeErased(M::Info(), bytes, out, limits);
}

// Number of bytes that Encode returns.
template <class M>
size_t EncodedSize(const M& message) {
  return EncodedSizeErased(M::Info(), &message);
}

template <class M>
void AppendEncoded(const M& message, std::string* out) {
  AppendEncodedErased(M::Info(), &message, out);
}

template <class M>
std::string Encode(const M& message) {
  std::string out;
  AppendEncodedErased(M::Info(), &message, &out);
  return out;
}

// Replaces *out by the message that `text` describes. A field the message does
// not have, or a singular field given twice, is InvalidArgument.
template <class M>
[[nodiscard]] absl::Status DecodeText(absl::string_view text, M* out, const Limits& limits = {}) {
  *out = M();
  return DecodeTextErased(M::Info(), text, out, limits);
}

template <class M>
std::string EncodeText(const M& message) {
  std::string out;
  AppendTextErased(M::Info(), &message, &out);
  return out;
}

// Floats are compared by their bits: NaN equals itself, 0 differs from -0.
template <class M>
bool Equal(const M& a, const M& b) {
  return EqualErased(M::Info(), &a, &b);
}

}  // namespace millrace::wire
