// SPDX-License-Identifier: Apache-2.0
// State that outlives a step: variables, queues, tables, by container, type and name. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <typeindex>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace millrace {

class Resource : public RefCounted {
 public:
  virtual std::string DebugString() const = 0;
};

class ResourceManager {
 public:
  static constexpr char kDefaultContainer[] = "localhost";

  template <typename T>
  StatusOr<RefPtr<T>> Lookup(const std::string& container, const std::string& name) const {
    MR_ASSIGN_OR_RETURN(RefPtr<Resource> r, LookupAny(container, typeid(T), name));
    return RefPtr<T>::Share(static_cast<T*>(r.get()));
  }
  // `create` returns StatusOr<RefPtr<T>>; it runs under the lock, at most once per resource.
  template <typename T>
  StatusOr<RefPtr<T>> LookupOrCreate(const std::string& container, const std::string& name,
                                     const std::function<StatusOr<RefPtr<T>>()>& create) {
    MR_ASSIGN_OR_RETURN(
        RefPtr<Resource> r, LookupOrCreateAny(container, typeid(T), name, [&]() -> StatusOr<RefPtr<Resource>> {
          MR_ASSIGN_OR_RETURN(RefPtr<T> made, create());
          return RefPtr<Resource>(std::move(made));
        }));
    return RefPtr<T>::Share(static_cast<T*>(r.get()));
  }
  template <typename T>
  Status Create(const std::string& container, const std::string& name, RefPtr<T> resource) {
    return CreateAny(container, typeid(T), name, std::move(resource));
  }
  template <typename T>
  Status Delete(const std::string& container, const std::string& name) {
    return DeleteAny(container, typeid(T), name);
  }
  // Drops every resource of the container; users of a dropped one keep it alive.
  void Clear(const std::string& container);
  void ClearAll();

 private:
  using Key = std::tuple<std::string, std::type_index, std::string>;
  StatusOr<RefPtr<Resource>> LookupAny(const std::string& container, std::type_index type,
                                       const std::string& name) const;
  StatusOr<RefPtr<Resource>> LookupOrCreateAny(
      const std::string& container, std::type_index type, const std::string& name,
      const std::function<StatusOr<RefPtr<Resource>>()>& create);
  Status CreateAny(const std::string& container, std::type_index type, const std::string& name,
                   RefPtr<Resource> resource);
  Status DeleteAny(const std::string& container, std::type_index type, const std::string& name);

  mutable absl::Mutex mu_;
  std::map<Key, RefPtr<Resource>> resources_ ABSL_GUARDED_BY(mu_);
};

// A variable, behind reference edges and resource handles alike.
//
// The tensor's buffer is shared with readers. Update() gives a writer the tensor with a buffer nobody else holds (a
// copy is made when readers still hold the old one), so a reader never sees half an update. A large value that has been
// sent to other processes moves, with its next update, to where they can read it.
//
// Reading is one atomic exchange while nobody writes: a gate stands before the value. Writers hold the mutex and close
// the gate; who finds it closed, or another reader in it, takes the mutex, and opens it again for the next.
class Variable : public Resource {
 public:
  Variable(DType dtype, PartialShape shape) : dtype_(dtype), shape_(std::move(shape)) {}
  DType dtype() const { return dtype_; }
  const PartialShape& declared_shape() const { return shape_; }
  std::string DebugString() const override;

  bool IsInitialized() const;
  // FailedPrecondition when it has no value yet. The name in the message is the node's, given by the caller.
  StatusOr<Tensor> Read() const;
  Tensor ReadOrEmpty() const {  // uninitialised tensor when there is no value
    Tensor value;
    ReadTo(&value);
    return value;
  }
  void ReadTo(Tensor* value) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    uint32_t gate = kOpen;
    if (__builtin_expect(!gate_.compare_exchange_strong(gate, kReading, std::memory_order_acquire), 0)) {
      return ReadUnderLock(value);
    }
    const Opener opener(gate_);
    *value = value_;
  }
  void Assign(Tensor value);  // takes the buffer
  // `fn` may change *value in place (its buffer is held by nobody else) or replace it. Runs under the lock.
  // FailedPrecondition when there is no value yet.
  Status Update(absl::FunctionRef<Status(Tensor* value)> fn);
  // The same for a change of all elements: `fn` makes `*after` of `before`. Both are the value, unless others hold
  // that: then nothing is copied first, and `*after` is memory that is to be filled. Of plain types.
  Status Rewrite(absl::FunctionRef<Status(const Tensor& before, Tensor* after)> fn);
  absl::Mutex& mu() const ABSL_LOCK_RETURNED(mu_) { return mu_; }
  // For updates of several variables at once: lock mu() in address order, then use this.
  StatusOr<Tensor*> ExclusiveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsInitializedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return value_.IsInitialized(); }

 private:
  // From kOpen, readers and writers may change it; from kClosed, only who holds mu_; from kReading, only that reader.
  static constexpr uint32_t kOpen = 0;
  static constexpr uint32_t kReading = 1;
  static constexpr uint32_t kClosed = 2;
  struct Opener {
    explicit Opener(std::atomic<uint32_t>& g) : gate(g) {}
    ~Opener() { gate.store(kOpen, std::memory_order_release); }
    std::atomic<uint32_t>& gate;
  };
  void ReadUnderLock(Tensor* value) const;
  // Whether the value may be changed where it is. FailedPrecondition when there is none yet.
  StatusOr<bool> MayChangeInPlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseGate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const DType dtype_;
  const PartialShape shape_;
  mutable absl::Mutex mu_;
  mutable std::atomic<uint32_t> gate_{kOpen};
  Tensor value_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
