// SPDX-License-Identifier: Apache-2.0
#include "string_bytes.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "capi/entry_points.h"

namespace millrace::fuzz {
namespace {

constexpr size_t kElement = sizeof(TF_TString);
constexpr size_t kArena = size_t{1} << 20;

// Memory that pointers of strings may point to, with a page behind it that is never there.
char* Arena() {
  static char* const arena = [] {
    const size_t page = 4096;
    void* const p = mmap(nullptr, kArena + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    std::memset(p, 'a', kArena);
    mprotect(static_cast<char*>(p) + kArena, page, PROT_NONE);
    return static_cast<char*>(p);
  }();
  return arena;
}

std::string Encoded(const Strings& strings) {
  std::string table(strings.size() * 8, '\0'), rest;
  for (size_t i = 0; i < strings.size(); ++i) {
    const uint64_t offset = rest.size();
    std::memcpy(&table[i * 8], &offset, 8);
    const size_t size = TF_StringEncodedSize(strings[i].size());
    rest.resize(rest.size() + size);
    TF_StringEncode(strings[i].data(), strings[i].size(), &rest[offset], size, nullptr);
  }
  return table + rest;
}

template <size_t n>
uint64_t Pick(Random& random, const uint64_t (&from)[n]) {
  return from[Below(random, n)];
}

void SpoilOld(Random& random, std::string* bytes) {
  const uint64_t offsets[] = {
      0, 1, 7, 8, bytes->size(), bytes->size() - 1, uint64_t{1} << 31, uint64_t{1} << 63, ~0ull};
  for (size_t i = 1 + Below(random, 4); i > 0 && !bytes->empty(); --i) {
    if (bytes->size() >= 8 && Below(random, 3) == 0) {
      const uint64_t offset = Pick(random, offsets);
      std::memcpy(&(*bytes)[Below(random, bytes->size() / 8) * 8], &offset, 8);
    } else {
      (*bytes)[Below(random, bytes->size())] = static_cast<char>(Below(random, 256));
    }
  }
  if (Below(random, 4) == 0) bytes->resize(Below(random, bytes->size() + 1));
}

// One element, laid out by hand: kind in the two low bits, the size above them (see tensor/tstring.cc).
void SpoilElement(Random& random, char* element, size_t bytes_behind) {
  uint64_t raw[3];
  std::memcpy(raw, element, kElement);
  const char* const arena = Arena();
  const uint64_t sizes[] = {0, 1, 22, 23, 24, 4096, kArena, kArena + 1, uint64_t{1} << 31, ~0ull >> 2};
  const uint64_t places[] = {
      0,
      16,
      reinterpret_cast<uintptr_t>(arena),
      reinterpret_cast<uintptr_t>(arena) + kArena - 1,
      reinterpret_cast<uintptr_t>(arena) + kArena,
      uint64_t{1} << 47,
      ~0ull - 100};
  switch (Below(random, 4)) {
    case 0: raw[0] = (raw[0] & ~uint64_t{0xff}) | (Below(random, 64) << 2); break;  // small, of any size
    case 1: raw[0] = (Pick(random, sizes) << 2) | 1, raw[1] = Pick(random, sizes), raw[2] = Pick(random, places); break;
    case 2: {  // an offset, often within the tensor
      const uint64_t size = Below(random, 3) ? Below(random, 64) : Pick(random, sizes) & 0x3fffffff;
      const uint64_t offset = Below(random, 3) ? Below(random, bytes_behind + 8) : Pick(random, sizes) & 0xffffffff;
      raw[0] = (size << 2) | 2 | (offset << 32), raw[1] = Below(random, 3), raw[2] = ~0ull;
      break;
    }
    default: raw[0] = (Pick(random, sizes) << 2) | 3, raw[1] = Pick(random, places), raw[2] = ~0ull; break;
  }
  std::memcpy(element, raw, kElement);
}

void FreeElements(void* data, size_t size, void* count) {
  auto* const elements = static_cast<TF_TString*>(data);
  // What was laid out by hand claims memory that is not its own.
  const size_t own = reinterpret_cast<uintptr_t>(count);
  for (size_t i = 0; i < own && (i + 1) * kElement <= size; ++i) TF_StringDealloc(&elements[i]);
  std::free(data);
}

TF_Tensor* MakeOld(const std::vector<int64_t>& dims, const Strings& strings, bool spoil, Random& random) {
  std::string bytes = Encoded(strings);
  if (spoil) SpoilOld(random, &bytes);
  const int rank = static_cast<int>(dims.size());
  if (Below(random, 2) == 0) {
    TF_Tensor* const t = MR_OldAllocateTensor(TF_STRING, dims.data(), rank, bytes.size());
    if (t != nullptr && !bytes.empty()) std::memcpy(MR_OldTensorData(t), bytes.data(), bytes.size());
    return t;
  }
  void* const data = std::malloc(bytes.size() + (bytes.empty() ? 1 : 0));
  std::memcpy(data, bytes.data(), bytes.size());
  return MR_OldNewTensor(
      TF_STRING, dims.data(), rank, data, bytes.size(), [](void* p, size_t, void*) { std::free(p); }, nullptr);
}

TF_Tensor* MakeNew(const std::vector<int64_t>& dims, const Strings& strings, bool spoil, Random& random) {
  const int rank = static_cast<int>(dims.size());
  const size_t size = strings.size() * kElement;
  if (!spoil && Below(random, 2) == 0) {
    TF_Tensor* const t = TF_AllocateTensor(TF_STRING, dims.data(), rank, size);
    if (t == nullptr) return t;
    auto* const elements = static_cast<TF_TString*>(TF_TensorData(t));
    for (size_t i = 0; i < strings.size(); ++i) TF_StringCopy(&elements[i], strings[i].data(), strings[i].size());
    return t;
  }
  auto* const elements = static_cast<TF_TString*>(std::calloc(strings.size() + (strings.empty() ? 1 : 0), kElement));
  for (size_t i = 0; i < strings.size(); ++i) TF_StringCopy(&elements[i], strings[i].data(), strings[i].size());
  size_t own = strings.size();
  if (spoil && !strings.empty()) {  // from some element on
    own = Below(random, strings.size());
    for (size_t i = own; i < strings.size(); ++i) {
      TF_StringDealloc(&elements[i]);
      if (Below(random, 2)) SpoilElement(random, reinterpret_cast<char*>(&elements[i]), size - i * kElement);
    }
  }
  return TF_NewTensor(TF_STRING, dims.data(), rank, elements, size, &FreeElements, reinterpret_cast<void*>(own));
}

}  // namespace

TF_Tensor* MakeStrings(Form form, const std::vector<int64_t>& dims, const Strings& strings, bool spoil,
                       Random& random) {
  std::vector<int64_t> shape = dims;
  if (spoil && !shape.empty() && Below(random, 8) == 0) {
    const int64_t sizes[] = {-1, 0, 1, shape[0] + 1, int64_t{1} << 40, INT64_MAX};
    shape[Below(random, shape.size())] = sizes[Below(random, 6)];
  }
  return form == Form::kOld ? MakeOld(shape, strings, spoil, random) : MakeNew(shape, strings, spoil, random);
}

bool ReadStrings(Form form, const TF_Tensor* tensor, Strings* strings) {
  strings->clear();
  const auto count = static_cast<size_t>(TF_TensorElementCount(tensor));
  if (form == Form::kNew) {
    const auto* const elements = static_cast<const TF_TString*>(TF_TensorData(tensor));
    if (elements == nullptr && count > 0) return false;
    for (size_t i = 0; i < count; ++i) {
      strings->emplace_back(TF_StringGetDataPointer(&elements[i]), TF_StringGetSize(&elements[i]));
    }
    return true;
  }
  const char* const data = static_cast<const char*>(MR_OldTensorData(tensor));
  const size_t size = MR_OldTensorByteSize(tensor);
  if (size < count * 8) return false;
  for (size_t i = 0; i < count; ++i) {
    uint64_t offset;
    std::memcpy(&offset, data + i * 8, 8);
    if (offset > size - count * 8) return false;
    const char* s = nullptr;
    size_t n = 0;
    TF_Status* const status = TF_NewStatus();
    TF_StringDecode(data + count * 8 + offset, size - count * 8 - static_cast<size_t>(offset), &s, &n, status);
    const bool good = TF_GetCode(status) == TF_OK;
    TF_DeleteStatus(status);
    if (!good) return false;
    strings->emplace_back(s, n);
  }
  return true;
}

}  // namespace millrace::fuzz
