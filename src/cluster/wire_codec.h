// SPDX-License-Identifier: Apache-2.0
// Messages as bytes. Each message lists its fields once, by a function that the encoder and the decoder call alike:
//
//   template <typename V>
//   void VisitFields(V& v, AbortStepRequest& m) {
//     v(1, m.step);
//     v(2, m.why);
//   }
//
// A frame is the length of its header (8 bytes, little-endian), the header, and the bytes of tensors. The header is in
// protobuf's wire form: a field is a varint (numbers, two's complement), or bytes (texts, messages, whatever a list
// holds). Fields that hold zero, nothing or false are left out, unless they are in a list; those that a reader does not
// know are skipped. A tensor in the header is its dtype, its shape, and where its bytes are behind it.
//
// The encoder copies no bytes of tensors that are large: the frame holds their buffers. It aligns them, by zeros
// between them and a field of zeros at the end of the header, so that the decoder can take the one that is most of a
// frame as it lies, if the frame is in one piece; it copies all others once, into aligned memory. It trusts nothing:
// sizes are checked before anything is allocated, what it makes is in proportion to the frame, and nothing recurses but
// GraphDefs, whose decoder has limits.
#pragma once

#include <array>
#include <concepts>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace millrace {

class OpRegistry;

namespace codec {

template <typename T>
concept WireMessage = requires { T::Info(); };
template <typename T>
concept Number = std::is_integral_v<T> || std::is_enum_v<T>;

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsMap : std::false_type {};
template <typename T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

// One entry of a map.
template <typename T>
struct MapEntry {
  std::string key;
  T value{};
};
template <typename V, typename T>
void VisitFields(V& v, MapEntry<T>& e) {
  v(1, e.key);
  v(2, e.value);
}

}  // namespace codec

// Appends fields. The first error stays.
class WireEncoder {
 public:
  template <typename T>
  void operator()(uint32_t number, T& field) {
    if constexpr (codec::IsVector<T>::value) {
      for (auto&& element : field) Put(number, element);
    } else if constexpr (codec::IsMap<T>::value) {
      for (auto& [key, value] : field) {
        codec::MapEntry<typename T::mapped_type> entry{key, std::move(value)};
        Put(number, entry);
      }
    } else if (!IsDefault(field)) {
      Put(number, field);
    }
  }
  // A part of the message that is made where it is written.
  void PutBytes(uint32_t number, absl::string_view bytes);
  void Fail(Status s) { status_.Update(std::move(s)); }

  // The frame.
  StatusOr<absl::Cord> Finish() &&;

 private:
  template <typename T>
  static bool IsDefault(const T& field) {
    if constexpr (codec::Number<T>) {
      return field == T{};
    } else if constexpr (std::is_same_v<T, std::string>) {
      return field.empty();
    } else if constexpr (std::is_same_v<T, Status>) {
      return field.ok();
    } else {
      return false;
    }
  }
  template <typename T>
  void Put(uint32_t number, T& value) {
    if constexpr (codec::Number<T>) {
      PutNumber(number, static_cast<uint64_t>(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      PutBytes(number, value);
    } else if constexpr (std::is_same_v<T, Status>) {
      PutStatus(number, value);
    } else if constexpr (std::is_same_v<T, Tensor>) {
      PutTensor(number, value);
    } else if constexpr (codec::WireMessage<T>) {
      PutBytes(number, wire::Encode(value));
    } else {
      std::string outer = std::exchange(header_, {});
      VisitFields(*this, value);
      const std::string inner = std::exchange(header_, std::move(outer));
      PutBytes(number, inner);
    }
  }
  void PutNumber(uint32_t number, uint64_t value);
  void PutStatus(uint32_t number, const Status& s);
  void PutTensor(uint32_t number, const Tensor& t);
  void FillHeader();

  std::string header_;
  absl::Cord tensors_;
  bool has_places_ = false;  // tensors that are worth one
  Status status_;
};

// Reads a frame. Call for each message; the first error stays.
class WireDecoder {
 public:
  // `registry` for graphs, null where messages have none.
  explicit WireDecoder(const OpRegistry* registry) : registry_(registry) {}

  template <typename Message>
  Status Decode(const absl::Cord& frame, Message* message) {
    std::string header;
    MR_RETURN_IF_ERROR(Split(frame, &header));
    ReadMessage(header, *message);
    return status_;
  }

  // Called by VisitFields for each field of the message, for each field that is read.
  template <typename T>
  void operator()(uint32_t number, T& field) {
    if (number != at_.number || !status_.ok()) return;
    if constexpr (codec::IsVector<T>::value) {
      using Element = typename T::value_type;
      if (!Take(sizeof(Element))) return;
      if constexpr (std::is_same_v<Element, bool>) {
        bool value = false;
        Get(value);
        field.push_back(value);
      } else {
        Get(field.emplace_back());
      }
    } else if constexpr (codec::IsMap<T>::value) {
      if (!Take(sizeof(typename T::value_type) + 4 * sizeof(void*))) return;
      codec::MapEntry<typename T::mapped_type> entry;
      Get(entry);
      field.insert_or_assign(std::move(entry.key), std::move(entry.value));
    } else {
      Get(field);
    }
  }
  // For fields that a function of their own reads: whether it is the turn of this one, and its bytes.
  bool IsAt(uint32_t number) const { return number == at_.number && status_.ok(); }
  absl::string_view bytes();
  void Fail(Status s) { status_.Update(std::move(s)); }
  const OpRegistry* registry() const { return registry_; }

 private:
  struct Field {
    uint32_t number = 0;
    bool is_varint = false;
    uint64_t varint = 0;
    absl::string_view bytes;
  };

  template <typename T>
  void Get(T& value) {
    if constexpr (codec::Number<T>) {
      value = static_cast<T>(GetNumber());
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = std::string(bytes());
    } else if constexpr (std::is_same_v<T, Status>) {
      GetStatus(&value);
    } else if constexpr (std::is_same_v<T, Tensor>) {
      GetTensor(&value);
    } else if constexpr (codec::WireMessage<T>) {
      const absl::string_view encoded = bytes();
      if (status_.ok()) Fail(wire::Decode(encoded, &value));
    } else {
      const absl::string_view inner = bytes();
      const Field outer = at_;
      if (status_.ok()) ReadMessage(inner, value);
      at_ = outer;
    }
  }
  template <typename Message>
  void ReadMessage(absl::string_view in, Message& message) {
    while (!in.empty() && status_.ok()) {
      if (Next(&in)) VisitFields(*this, message);
    }
  }
  Status Split(const absl::Cord& frame, std::string* header);
  bool Next(absl::string_view* in);  // false: an error, or a field of no kind that is used
  bool Take(size_t bytes);
  uint64_t GetNumber();
  void GetStatus(Status* s);
  void GetTensor(Tensor* t);

  const OpRegistry* const registry_;
  absl::Cord tensors_;
  size_t tensor_bytes_left_ = 0;
  size_t memory_left_ = 0;
  Field at_;
  Status status_;
};

template <typename Message>
StatusOr<absl::Cord> EncodeMessage(Message&& message) {
  WireEncoder encoder;
  VisitFields(encoder, message);
  return std::move(encoder).Finish();
}

template <typename Message>
Status DecodeMessage(const absl::Cord& frame, const OpRegistry* registry, Message* message) {
  return WireDecoder(registry).Decode(frame, message);
}

}  // namespace millrace
