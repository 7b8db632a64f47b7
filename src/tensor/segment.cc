// SPDX-License-Identifier: Apache-2.0
#include "tensor/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace millrace {

StatusOr<std::unique_ptr<Segment>> Segment::Create(size_t capacity) {
  const auto failed = [&](absl::string_view what) {
    return SystemError(
        absl::StatusCode::kResourceExhausted, absl::StrCat("no shared memory of ", capacity, " bytes: ", what));
  };
  Descriptor memory(memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.ok()) return failed("memfd_create");
  const auto size = static_cast<off_t>(capacity);
  // Without it a full machine would show in a signal when the memory is touched.
  if (fallocate(memory.get(), 0, 0, size) != 0) return failed("fallocate");
  void* const data = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (data == MAP_FAILED) return failed("mmap");
  std::unique_ptr<Segment> segment(new Segment(std::move(memory), static_cast<char*>(data), capacity));
  // Older kernels than 5.1 cannot keep others from writing.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(segment->descriptor(), F_ADD_SEALS, kSeals | F_SEAL_FUTURE_WRITE) != 0 &&
      fcntl(segment->descriptor(), F_ADD_SEALS, kSeals) != 0) {
    return failed("sealing");
  }
  return segment;
}

StatusOr<std::unique_ptr<Segment>> Segment::Map(Descriptor memory, size_t capacity) {
  struct stat info{};
  if (capacity == 0 || fstat(memory.get(), &info) != 0 || info.st_size < 0 ||
      static_cast<uint64_t>(info.st_size) < capacity) {
    return InvalidArgument("shared memory of ", info.st_size, " bytes, which says that it has ", capacity);
  }
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return InvalidArgument("shared memory that can become shorter: want F_SEAL_SHRINK");
  }
  void* const data = mmap(nullptr, capacity, PROT_READ, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED) return SystemError(absl::StatusCode::kResourceExhausted, "cannot map shared memory");
  return std::unique_ptr<Segment>(new Segment(Descriptor(), static_cast<char*>(data), capacity));
}

Segment::~Segment() { munmap(data_, capacity_); }

}  // namespace millrace
