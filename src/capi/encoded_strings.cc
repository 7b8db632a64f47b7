// SPDX-License-Identifier: Apache-2.0
#include "capi/encoded_strings.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

namespace millrace::capi {
namespace {

constexpr size_t kEntry = sizeof(uint64_t);

// Strings that are views into bytes of which they hold a share.
struct Views {
  RefPtr<Buffer> bytes;
  std::unique_ptr<TString[]> strings;
};

void DeleteViews(void*, size_t, void* views) { delete static_cast<Views*>(views); }

// A file in memory to write into; below 0 where there is none. It is looked at each time: a program may close files
// that are not its own, as daemons do, and open another by the same number.
int ScratchFile() {
  static auto* mutex = new std::mutex;
  static int file = -1;
  static struct stat made;
  std::lock_guard<std::mutex> lock(*mutex);
  struct stat now;
  if (file >= 0 && fstat(file, &now) == 0 && now.st_dev == made.st_dev && now.st_ino == made.st_ino) return file;
  file = memfd_create("places", MFD_CLOEXEC);
  if (file >= 0) fstat(file, &made);
  return file;
}

// Asks the system whether memory can be read, many places at a time: to write a byte of each into a file in memory
// fails at an address that is not mapped, where a load would end the process. Where the system does not let us ask,
// every place counts as readable.
class Readable {
 public:
  Readable() { asked_.fill(UINTPTR_MAX); }
  // False when a byte in [p, p + size) is known not to be there; size > 0.
  bool Add(const char* p, size_t size) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(p);
    if (size > UINTPTR_MAX - first) return false;
    const uintptr_t begin = first / kPage, end = (first + size - 1) / kPage;
    if (begin == last_ && end == last_) return true;
    last_ = end;
    for (uintptr_t page = begin; page <= end; ++page) {
      uintptr_t& asked = asked_[page % asked_.size()];
      if (asked == page) continue;
      asked = page;
      places_[count_++] = {reinterpret_cast<void*>(std::max(first, page * kPage)), 1};
      if (count_ == places_.size() && !Ask()) return false;
    }
    return true;
  }
  bool Ask() {
    const size_t count = count_;
    count_ = 0;
    if (count == 0) return true;
    const int file = ScratchFile();
    if (file < 0 || !MayWrite()) return true;
    const ssize_t got = pwritev(file, places_.data(), static_cast<int>(count), 0);
    return got < 0 ? errno != EFAULT : static_cast<size_t>(got) == count;
  }

 private:
  static constexpr size_t kPlaces = 256;
  // A write beyond the limit of files would end the process.
  static bool MayWrite() {
    rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= kPlaces;
  }

  static constexpr uintptr_t kPage = 4096;  // at most that of the machine
  std::array<iovec, kPlaces> places_;
  size_t count_ = 0;
  uintptr_t last_ = UINTPTR_MAX;      // the page asked for last
  std::array<uintptr_t, 256> asked_;  // pages asked for of late: many strings lie in one
};

Status Malformed(int64_t element, absl::string_view why) {
  return InvalidArgument("Malformed TF_STRING tensor; element ", element, " ", why);
}

}  // namespace

size_t EncodedSize(size_t length) {
  size_t prefix = 1;
  for (size_t rest = length >> 7; rest > 0; rest >>= 7) ++prefix;
  return prefix + length;
}

void EncodeString(absl::string_view s, char* to) {
  size_t rest = s.size();
  for (; rest >= 0x80; rest >>= 7) *to++ = static_cast<char>((rest & 0x7f) | 0x80);
  *to++ = static_cast<char>(rest);
  if (!s.empty()) std::memcpy(to, s.data(), s.size());
}

StatusOr<size_t> DecodeString(absl::Span<const char> from, absl::string_view* s) {
  uint64_t length = 0;
  size_t used = 0;
  for (int shift = 0;; shift += 7) {
    if (used == from.size() || shift > 63) return InvalidArgument("the length before the characters is cut off");
    const uint64_t byte = static_cast<unsigned char>(from[used++]);
    if (shift == 63 && byte > 1) return InvalidArgument("the length before the characters is too large");
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (length > from.size() - used) {
    return InvalidArgument("the length says ", length, " characters, but ", from.size() - used, " are there");
  }
  *s = absl::string_view(from.data() + used, static_cast<size_t>(length));
  return used + static_cast<size_t>(length);
}

StatusOr<Tensor> DecodeStrings(const EncodedStrings& encoded) {
  const size_t count = static_cast<size_t>(encoded.shape.num_elements());
  if (count > encoded.size / kEntry) {
    return InvalidArgument("Malformed TF_STRING tensor; too short to hold number of elements: ", encoded.size,
                           " bytes for shape ", encoded.shape.ToString());
  }
  if (count == 0) return Tensor::Make(DType::kString, encoded.shape);
  const char* const table = encoded.data();
  const absl::Span<const char> strings(table + count * kEntry, encoded.size - count * kEntry);
  auto views = std::make_unique<Views>();
  views->bytes = encoded.bytes;
  views->strings = std::make_unique<TString[]>(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t offset;
    std::memcpy(&offset, table + i * kEntry, kEntry);
    if (offset >= strings.size()) return Malformed(static_cast<int64_t>(i), "out of range");
    absl::string_view s;
    const StatusOr<size_t> used = DecodeString(strings.subspan(static_cast<size_t>(offset)), &s);
    if (!used.ok()) return Malformed(static_cast<int64_t>(i), absl::StrCat("is no string: ", used.status().message()));
    views->strings[i].AssignView(s);
  }
  void* const memory = views->strings.get();
  return Tensor::FromBuffer(
      DType::kString, encoded.shape,
      WrapBuffer(memory, count * sizeof(TString), DeleteViews, views.release(), /*writable=*/false));
}

StatusOr<RefPtr<EncodedStrings>> EncodeStrings(const Tensor& strings) {
  const absl::Span<const TString> elements = strings.flat<TString>();
  size_t size = elements.size() * kEntry;
  for (const TString& s : elements) {
    if (s.size() > SIZE_MAX / 2 - size) return ResourceExhausted("the strings are too long to be encoded");
    size += EncodedSize(s.size());
  }
  RefPtr<EncodedStrings> made = MakeRef<EncodedStrings>();
  MR_ASSIGN_OR_RETURN(made->bytes, AllocateBuffer(HostAllocator(), size > 0 ? size : 1));
  made->size = size;
  made->shape = strings.shape();
  char* const table = static_cast<char*>(made->bytes->data());
  char* const begin = table + elements.size() * kEntry;
  char* next = begin;
  for (size_t i = 0; i < elements.size(); ++i) {
    const uint64_t offset = static_cast<uint64_t>(next - begin);
    std::memcpy(table + i * kEntry, &offset, kEntry);
    EncodeString(elements[i].view(), next);
    next += EncodedSize(elements[i].size());
  }
  return made;
}

Status CheckStrings(absl::Span<const TString> strings, const void* begin, size_t size) {
  Readable readable;
  bool any = false;
  for (size_t i = 0; i < strings.size(); ++i) {
    const TString& s = strings[i];
    const int64_t element = static_cast<int64_t>(i);
    const TString::Kind kind = s.kind();
    const absl::string_view text = s.view();
    if (kind == TString::Kind::kSmall) {
      if (text.size() > s.capacity()) return Malformed(element, "is longer than a small string can be");
      continue;
    }
    if (kind == TString::Kind::kOffset) {
      const auto from = static_cast<size_t>(text.data() - static_cast<const char*>(begin));
      if (from > size || text.size() > size - from) return Malformed(element, "lies outside the tensor's memory");
      continue;
    }
    if (kind == TString::Kind::kLarge && text.size() > s.capacity()) {
      return Malformed(element, "is longer than its memory");
    }
    if (text.empty()) continue;
    any = true;
    if (!readable.Add(text.data(), text.size())) return Malformed(element, "or one before it points to no memory");
  }
  if (any && !readable.Ask()) return InvalidArgument("Malformed TF_STRING tensor; an element points to no memory");
  return absl::OkStatus();
}

}  // namespace millrace::capi
