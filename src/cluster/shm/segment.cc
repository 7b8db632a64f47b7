// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

namespace millrace::shm {

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
  if (fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed("sealing");
  void* const data = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (data == MAP_FAILED) return failed("mmap");
  return std::unique_ptr<Segment>(new Segment(std::move(memory), static_cast<char*>(data), capacity));
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

void Segment::Write(const absl::Cord& bytes) {
  char* to = data_;
  for (absl::string_view chunk : bytes.Chunks()) {
    memcpy(to, chunk.data(), chunk.size());
    to += chunk.size();
  }
}

}  // namespace millrace::shm
