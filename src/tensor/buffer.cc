// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <utility>

#include "tensor/allocator.h"
#include "tensor/prepared.h"
#include "tensor/shared_memory.h"

namespace millrace {
namespace {

// The header in front of the bytes it owns.
class OwnedBuffer final : public Buffer {
 public:
  static constexpr size_t kHeaderBytes = Allocator::kAlignment;

  OwnedBuffer(Allocator& allocator, size_t size)
      : Buffer(reinterpret_cast<char*>(this) + kHeaderBytes, size, true), allocator_(allocator) {}

  PreparedState& prepared() const { return prepared_; }
  std::atomic<bool>& was_sent() const { return was_sent_; }

 private:
  void Destroy() override {
    Allocator& allocator = allocator_;
    const size_t total = kHeaderBytes + size_;
    this->~OwnedBuffer();
    allocator.Deallocate(this, total);
  }

  mutable std::atomic<bool> was_sent_{false};
  Allocator& allocator_;
  mutable PreparedState prepared_;
};
static_assert(sizeof(OwnedBuffer) <= OwnedBuffer::kHeaderBytes);

class ForeignBuffer final : public Buffer {
 public:
  using Release = void (*)(void* data, size_t size, void* arg);
  ForeignBuffer(void* data, size_t size, Release release, void* arg, bool writable)
      : Buffer(data, size, writable), release_(release), arg_(arg) {}

 private:
  ~ForeignBuffer() override {
    if (release_ != nullptr) release_(data_, size_, arg_);
  }

  const Release release_;
  void* const arg_;
};

}  // namespace

PreparedState* PreparedStateOf(const Buffer& buffer) {
  if (const auto* const owned = dynamic_cast<const OwnedBuffer*>(&buffer)) return &owned->prepared();
  const auto* const shared = dynamic_cast<const SharedBuffer*>(&buffer);
  return shared != nullptr ? &shared->prepared() : nullptr;
}

void NoteSent(const Buffer& buffer) {
  if (const auto* const owned = dynamic_cast<const OwnedBuffer*>(&buffer)) owned->was_sent() = true;
}
bool WasSent(const Buffer& buffer) {
  const auto* const owned = dynamic_cast<const OwnedBuffer*>(&buffer);
  return owned != nullptr && owned->was_sent();
}

Buffer* TryAllocateSpareBuffer(Allocator& allocator, size_t bytes) {
  size_t total;
  if (__builtin_add_overflow(bytes, OwnedBuffer::kHeaderBytes, &total)) return nullptr;
  void* const memory = allocator.Allocate(total);
  return memory != nullptr ? new (memory) OwnedBuffer(allocator, bytes) : nullptr;
}

Buffer* TryAllocateBuffer(Allocator& allocator, size_t bytes) {
  Buffer* const buffer = TryAllocateSpareBuffer(allocator, bytes);
  if (buffer == nullptr && DropPreparedForms() > 0) return TryAllocateSpareBuffer(allocator, bytes);
  return buffer;
}

StatusOr<RefPtr<Buffer>> AllocateBuffer(Allocator& allocator, size_t bytes) {
  Buffer* const buffer = TryAllocateBuffer(allocator, bytes);
  if (buffer == nullptr) {
    const AllocatorStats stats = allocator.Stats();
    return ResourceExhausted("allocator ", allocator.name(), " cannot allocate ", bytes, " bytes (", stats.bytes_in_use,
                             " in use, limit ", stats.bytes_limit, ")");
  }
  return RefPtr<Buffer>::Adopt(buffer);
}

RefPtr<Buffer> WrapBuffer(void* data, size_t size, void (*release)(void* data, size_t size, void* arg), void* arg,
                          bool writable) {
  return RefPtr<Buffer>(MakeRef<ForeignBuffer>(data, size, release, arg, writable));
}

}  // namespace millrace
