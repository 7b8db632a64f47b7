// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/bytes.h"

#include <atomic>
#include <vector>

namespace millrace::grpc_transport {
namespace {

// Shorter pieces are copied: that costs less than their bookkeeping. (gRPC and Abseil keep yet shorter ones inside of
// slices and Cords, where nobody may point.)
constexpr size_t kLeastReferred = 256;

// A Cord that several slices refer to.
struct Held {
  explicit Held(const absl::Cord& c) : cord(c) {}
  static void Release(void* held) {
    auto* self = static_cast<Held*>(held);
    if (self->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete self;
  }
  const absl::Cord cord;
  std::atomic<int64_t> references{1};
};

}  // namespace

grpc::ByteBuffer ToByteBuffer(const absl::Cord& cord) {
  std::vector<grpc::Slice> slices;
  auto* const held = new Held(cord);
  for (absl::string_view chunk : held->cord.Chunks()) {
    if (chunk.size() < kLeastReferred) {
      slices.emplace_back(chunk.data(), chunk.size());
    } else {
      held->references.fetch_add(1, std::memory_order_relaxed);
      slices.emplace_back(const_cast<char*>(chunk.data()), chunk.size(), &Held::Release, held);
    }
  }
  Held::Release(held);
  return grpc::ByteBuffer(slices.data(), slices.size());  // which may have none: a message of no bytes
}

StatusOr<absl::Cord> ToCord(grpc::ByteBuffer* buffer) {
  std::vector<grpc::Slice> slices;
  if (buffer->Valid() && !buffer->Dump(&slices).ok()) return InvalidArgument("a message that cannot be read");
  buffer->Clear();
  absl::Cord cord;
  for (grpc::Slice& slice : slices) {
    const absl::string_view bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
    if (bytes.size() < kLeastReferred) {
      cord.Append(bytes);
    } else {
      cord.Append(absl::MakeCordFromExternal(bytes, [held = std::move(slice)] {}));
    }
  }
  return cord;
}

}  // namespace millrace::grpc_transport
