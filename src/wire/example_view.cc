// SPDX-License-Identifier: Apache-2.0
#include "wire/example_view.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace::wire {
namespace {

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// Walks over the fields of one message.
class Fields {
 public:
  explicit Fields(absl::string_view bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // False at the end, and at what is no field: then failed() is true.
  __attribute__((always_inline)) bool Next() {
    if (next_ == end_) return false;
    uint64_t tag;
    if (!Varint(&tag) || tag >> 3 == 0 || tag >> 32 != 0) return Fail();
    number_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<uint8_t>(tag & 7);
    switch (type_) {
      case kVarint: return Varint(&value_) || Fail();
      case kFixed64: return Take(8);
      case kFixed32: return Take(4);
      case kLength: {
        uint64_t size;
        return Varint(&size) ? Take(size) : Fail();
      }
      default: return Fail();
    }
  }
  bool failed() const { return failed_; }
  bool Is(uint32_t number, uint8_t type) const { return number_ == number && type_ == type; }
  uint32_t number() const { return number_; }
  uint64_t value() const { return value_; }           // of a varint
  absl::string_view bytes() const { return bytes_; }  // of anything else

 private:
  bool Fail() {
    failed_ = true;
    next_ = end_;
    return false;
  }
  bool Take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - next_)) return Fail();
    bytes_ = {next_, static_cast<size_t>(size)};
    next_ += size;
    return true;
  }
  bool Varint(uint64_t* value) {
    if (next_ != end_ && static_cast<signed char>(*next_) >= 0) {
      *value = static_cast<unsigned char>(*next_++);
      return true;
    }
    return LongVarint(value);
  }
  bool LongVarint(uint64_t* value) {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70 && next_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*next_++);
      result |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) {
        *value = result;
        return true;
      }
    }
    return false;
  }

  const char* next_;
  const char* end_;
  uint32_t number_ = 0;
  uint8_t type_ = 0;
  uint64_t value_ = 0;
  absl::string_view bytes_;
  bool failed_ = false;
};

inline uint64_t ReadVarint(const char** next) {
  uint64_t result = static_cast<unsigned char>(*(*next)++);
  if (result < 128) return result;
  result &= 127;
  for (unsigned shift = 7;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*(*next)++);
    result |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return result;
  }
}

// The number of varints in `bytes`; -1 when one is longer than ten bytes, or
// the last one does not end.
int64_t CountVarints(absl::string_view bytes) {
  int64_t count = 0;
  size_t length = 0;
  for (const char c : bytes) {
    if (++length > 10) return -1;
    if (static_cast<signed char>(c) >= 0) {
      ++count;
      length = 0;
    }
  }
  return length == 0 ? count : -1;
}

// Values in one list; -1 when it is malformed.
int64_t CountValues(FeatureKind kind, absl::string_view list) {
  int64_t count = 0;
  Fields fields(list);
  while (fields.Next()) {
    if (fields.number() != 1) continue;
    if (kind == FeatureKind::kBytes) {
      count += fields.Is(1, kLength) ? 1 : 0;
    } else if (fields.Is(1, kLength)) {
      const bool floats = kind == FeatureKind::kFloat;
      const int64_t size = static_cast<int64_t>(fields.bytes().size());
      const int64_t more = !floats ? CountVarints(fields.bytes()) : size % 4 == 0 ? size / 4 : -1;
      if (more < 0) return -1;
      count += more;
    } else {
      count += fields.Is(1, kind == FeatureKind::kFloat ? kFixed32 : kVarint);
    }
  }
  return fields.failed() ? -1 : count;
}

// The one field of a list that is packed and has nothing else; else empty.
absl::string_view OnlyPacked(absl::string_view list) {
  Fields fields(list);
  if (!fields.Next() || !fields.Is(1, kLength)) return {};
  const absl::string_view packed = fields.bytes();
  return packed.end() == list.end() ? packed : absl::string_view();
}

// Calls fn(list) for the lists that make up the feature's value: those of its
// kind after the last one of another kind.
template <typename Fn>
void ForEachList(const FeatureView& view, Fn fn) {
  if (view.part == FeatureView::Part::kList) return fn(view.bytes);
  const auto number = static_cast<uint32_t>(view.kind);
  const char* begin = view.bytes.data();
  for (Fields fields(view.bytes); fields.Next();) {
    if (fields.number() == 0 || fields.number() > 3 || !fields.Is(fields.number(), kLength)) {
      continue;
    }
    if (fields.number() != number) {
      begin = fields.bytes().data() + fields.bytes().size();
    }
  }
  const char* end = view.bytes.data() + view.bytes.size();
  Fields fields({begin, static_cast<size_t>(end - begin)});
  while (fields.Next()) {
    if (fields.Is(number, kLength)) fn(fields.bytes());
  }
}

float FloatAt(const char* p) {
  uint32_t bits = 0;
  for (unsigned i = 0; i < 4; ++i) {
    bits |= static_cast<uint32_t>(static_cast<unsigned char>(p[i])) << (8 * i);
  }
  return std::bit_cast<float>(bits);
}

// One entry of a map.
bool ReadEntry(absl::string_view entry, VisitEntry visit) {
  absl::string_view key, value;
  Fields fields(entry);
  while (fields.Next()) {
    if (fields.Is(1, kLength)) key = fields.bytes();
    if (fields.Is(2, kLength)) value = fields.bytes();
  }
  if (!fields.failed()) visit(key, value);
  return !fields.failed();
}

// Field 1 of a message, repeated: the entries of its map.
bool ReadMap(absl::string_view message, VisitEntry visit) {
  Fields fields(message);
  while (fields.Next()) {
    if (fields.Is(1, kLength) && !ReadEntry(fields.bytes(), visit)) {
      return false;
    }
  }
  return !fields.failed();
}

// The usual case: one list and nothing else.
bool ViewOneList(absl::string_view bytes, FeatureView* view) {
  Fields fields(bytes);
  if (!fields.Next() || fields.number() > 3 || !fields.Is(fields.number(), kLength) ||
      fields.bytes().end() != bytes.end()) {
    return false;
  }
  const absl::string_view list = fields.bytes();
  const auto kind = static_cast<FeatureKind>(fields.number());
  const int64_t count = CountValues(kind, list);
  if (count < 0) return false;
  *view = {list, count, kind, FeatureView::Part::kList};
  if (kind == FeatureKind::kBytes) return true;
  const absl::string_view packed = OnlyPacked(list);
  if (packed.empty()) return true;
  view->bytes = packed;
  view->part = FeatureView::Part::kPacked;
  return true;
}

// Numbers packed one after another.
int64_t* UnpackInt64s(absl::string_view packed, int64_t* out) {
  const char* next = packed.data();
  const char* end = next + packed.size();
  while (next != end) *out++ = static_cast<int64_t>(ReadVarint(&next));
  return out;
}

float* UnpackFloats(absl::string_view packed, float* out) {
  if constexpr (std::endian::native == std::endian::little) {
    if (!packed.empty()) std::memcpy(out, packed.data(), packed.size());
    return out + packed.size() / 4;
  }
  for (size_t i = 0; i < packed.size(); i += 4) {
    *out++ = FloatAt(packed.data() + i);
  }
  return out;
}

}  // namespace

bool ViewFeature(absl::string_view bytes, FeatureView* view) {
  *view = {bytes};
  if (ViewOneList(bytes, view)) return true;
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() > 3 || !fields.Is(fields.number(), kLength)) continue;
    const auto kind = static_cast<FeatureKind>(fields.number());
    const int64_t count = CountValues(kind, fields.bytes());
    if (count < 0) return false;
    view->count = view->kind == kind ? view->count + count : count;
    view->kind = kind;
  }
  return !fields.failed();
}

void ReadInt64s(const FeatureView& view, int64_t* out) {
  if (view.part == FeatureView::Part::kPacked) {
    UnpackInt64s(view.bytes, out);
    return;
  }
  ForEachList(view, [&](absl::string_view list) {
    for (Fields fields(list); fields.Next();) {
      if (fields.Is(1, kVarint)) {
        *out++ = static_cast<int64_t>(fields.value());
      } else if (fields.Is(1, kLength)) {
        out = UnpackInt64s(fields.bytes(), out);
      }
    }
  });
}

void ReadFloats(const FeatureView& view, float* out) {
  if (view.part == FeatureView::Part::kPacked) {
    UnpackFloats(view.bytes, out);
    return;
  }
  ForEachList(view, [&](absl::string_view list) {
    for (Fields fields(list); fields.Next();) {
      if (fields.Is(1, kFixed32)) {
        *out++ = FloatAt(fields.bytes().data());
      } else if (fields.Is(1, kLength)) {
        out = UnpackFloats(fields.bytes(), out);
      }
    }
  });
}

void ReadBytes(const FeatureView& view, absl::FunctionRef<void(absl::string_view)> take) {
  ForEachList(view, [&](absl::string_view list) {
    for (Fields fields(list); fields.Next();) {
      if (fields.Is(1, kLength)) take(fields.bytes());
    }
  });
}

bool VisitFeatures(absl::string_view example, VisitEntry visit) {
  Fields fields(example);
  while (fields.Next()) {
    if (fields.Is(1, kLength) && !ReadMap(fields.bytes(), visit)) return false;
  }
  return !fields.failed();
}

bool VisitSequence(absl::string_view sequence, VisitEntry context, VisitEntry list) {
  Fields fields(sequence);
  while (fields.Next()) {
    if (fields.Is(1, kLength) && !ReadMap(fields.bytes(), context)) {
      return false;
    }
    if (fields.Is(2, kLength) && !ReadMap(fields.bytes(), list)) return false;
  }
  return !fields.failed();
}

bool VisitList(absl::string_view list, absl::FunctionRef<void(absl::string_view)> visit) {
  Fields fields(list);
  while (fields.Next()) {
    if (fields.Is(1, kLength)) visit(fields.bytes());
  }
  return !fields.failed();
}

}  // namespace millrace::wire
