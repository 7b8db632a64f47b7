// SPDX-License-Identifier: Apache-2.0
#include "kernel/resource_manager.h"

#include <thread>
#include <vector>

#include "tensor/prepared.h"
#include "tensor/shared_memory.h"

namespace millrace {

StatusOr<RefPtr<Resource>> ResourceManager::LookupAny(
    const std::string& container, std::type_index type, const std::string& name) const {
  absl::MutexLock lock(&mu_);
  auto it = resources_.find(Key(container, type, name));
  if (it == resources_.end()) {
    return NotFound("resource '", name, "' does not exist in container '", container, "'");
  }
  return it->second;
}

StatusOr<RefPtr<Resource>> ResourceManager::LookupOrCreateAny(
    const std::string& container, std::type_index type, const std::string& name,
    const std::function<StatusOr<RefPtr<Resource>>()>& create) {
  absl::MutexLock lock(&mu_);
  Key key(container, type, name);
  if (auto it = resources_.find(key); it != resources_.end()) return it->second;
  MR_ASSIGN_OR_RETURN(RefPtr<Resource> made, create());
  resources_.emplace(std::move(key), made);
  return made;
}

Status ResourceManager::CreateAny(const std::string& container, std::type_index type, const std::string& name,
                                  RefPtr<Resource> resource) {
  absl::MutexLock lock(&mu_);
  if (!resources_.emplace(Key(container, type, name), std::move(resource)).second) {
    return AlreadyExists("resource '", name, "' exists already in container '", container, "'");
  }
  return absl::OkStatus();
}

Status ResourceManager::DeleteAny(const std::string& container, std::type_index type, const std::string& name) {
  RefPtr<Resource> doomed;  // released outside the lock
  absl::MutexLock lock(&mu_);
  auto it = resources_.find(Key(container, type, name));
  if (it == resources_.end()) {
    return NotFound("resource '", name, "' does not exist in container '", container, "'");
  }
  doomed = std::move(it->second);
  resources_.erase(it);
  return absl::OkStatus();
}

void ResourceManager::Clear(const std::string& container) {
  std::vector<RefPtr<Resource>> doomed;
  absl::MutexLock lock(&mu_);
  for (auto it = resources_.begin(); it != resources_.end();) {
    if (std::get<0>(it->first) == container) {
      doomed.push_back(std::move(it->second));
      it = resources_.erase(it);
    } else {
      ++it;
    }
  }
}

void ResourceManager::ClearAll() {
  std::map<Key, RefPtr<Resource>> doomed;
  absl::MutexLock lock(&mu_);
  doomed.swap(resources_);
}

std::string Variable::DebugString() const {
  absl::MutexLock lock(&mu_);
  return absl::StrCat(
      "Variable ", DTypeName(dtype_), " ", value_.IsInitialized() ? value_.DebugString() : "(uninitialised)");
}

bool Variable::IsInitialized() const {
  absl::MutexLock lock(&mu_);
  return value_.IsInitialized();
}

StatusOr<Tensor> Variable::Read() const {
  absl::MutexLock lock(&mu_);
  if (!value_.IsInitialized()) return FailedPrecondition("the variable has no value yet");
  return value_;
}

void Variable::ReadUnderLock(Tensor* value) const {
  absl::MutexLock lock(&mu_);
  *value = value_;
  if (gate_.load(std::memory_order_relaxed) == kClosed) gate_.store(kOpen, std::memory_order_release);
}

void Variable::CloseGate() {
  for (;;) {
    uint32_t gate = kOpen;
    if (gate_.compare_exchange_strong(gate, kClosed, std::memory_order_acquire) || gate == kClosed) return;
    std::this_thread::yield();  // a reader is copying a few words
  }
}

void Variable::Assign(Tensor value) {
  absl::MutexLock lock(&mu_);
  CloseGate();
  const Opener opener(gate_);
  std::swap(value_, value);
  ReleasePrepared(value.buffer());
}

StatusOr<bool> Variable::MayChangeInPlace() {
  CloseGate();  // until somebody reads under the lock
  if (!value_.IsInitialized()) return FailedPrecondition("the variable has no value yet");
  ReleasePrepared(value_.buffer());
  return value_.OwnsBufferAlone() && !SharedMemory::Instance().WantsToMove(value_);
}

StatusOr<Tensor*> Variable::ExclusiveLocked() {
  MR_ASSIGN_OR_RETURN(const bool in_place, MayChangeInPlace());
  if (in_place) return &value_;
  if (!SharedMemory::Instance().CopyOf(value_, &value_) && !value_.OwnsBufferAlone()) {
    MR_ASSIGN_OR_RETURN(value_, value_.Clone());
  }
  return &value_;
}

Status Variable::Rewrite(absl::FunctionRef<Status(const Tensor& before, Tensor* after)> fn) {
  absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(const bool in_place, MayChangeInPlace());
  if (in_place) return fn(value_, &value_);
  Tensor after;
  if (!SharedMemory::Instance().MakeRoomFor(value_, &after)) {
    if (value_.OwnsBufferAlone()) return fn(value_, &value_);
    MR_ASSIGN_OR_RETURN(after, Tensor::Make(value_.dtype(), value_.shape()));
  }
  MR_RETURN_IF_ERROR(fn(value_, &after));
  value_ = std::move(after);
  return absl::OkStatus();
}

Status Variable::Update(absl::FunctionRef<Status(Tensor* value)> fn) {
  absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(Tensor * value, ExclusiveLocked());
  return fn(value);
}

}  // namespace millrace
