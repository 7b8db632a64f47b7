// SPDX-License-Identifier: Apache-2.0
// Staging areas: small stores between steps, bounded in elements and bytes. What Try... and the like say of "under the
// lock" is an attempt's (waiting_resource.h).
#pragma once

#include <deque>
#include <map>

#include "kernels/cpu/dataflow/queue_elements.h"
#include "kernels/cpu/dataflow/queue_kernels.h"
#include "kernels/cpu/engine/waiting_resource.h"

namespace millrace {

struct StagingLimits {
  int64_t capacity = 0;  // elements; 0: any number
  int64_t bytes = 0;     // 0: any number
};

class StagingBase : public WaitingResource {
 public:
  StagingBase(std::string name, const StagingLimits& limits) : name_(std::move(name)), limits_(limits) {}
  std::string DebugString() const override { return absl::StrCat("Staging area '", name_, "'"); }
  // ResourceExhausted when values can never fit.
  Status CheckFits(const std::vector<Tensor>& values) const {
    const int64_t bytes = BytesOf(values);
    if (limits_.bytes == 0 || bytes <= limits_.bytes) return absl::OkStatus();
    return ResourceExhausted("Attempted to insert tensors with combined size of '", bytes, "' bytes into ",
                             DebugString(), " with a memory limit of '", limits_.bytes, "'.");
  }

 protected:
  static int64_t BytesOf(const std::vector<Tensor>& values) {
    int64_t bytes = 0;
    for (const Tensor& t : values) bytes += static_cast<int64_t>(t.TotalBytes());
    return bytes;
  }
  bool HasRoom(size_t elements) const {
    return limits_.capacity == 0 || static_cast<int64_t>(elements) < limits_.capacity;
  }
  bool HasBytes(int64_t more) const { return limits_.bytes == 0 || bytes_ + more <= limits_.bytes; }
  int64_t bytes_ = 0;  // that are held; under the lock

 private:
  const std::string name_;
  const StagingLimits limits_;
};

// First in, first out.
class StagingArea final : public StagingBase {
 public:
  StagingArea(std::string name, const StagingLimits& limits, const std::vector<DType>&)
      : StagingBase(std::move(name), limits) {}

  // Under the lock. False: there is no room.
  bool TryPut(std::vector<Tensor>& values) {
    const int64_t bytes = BytesOf(values);
    if (!HasRoom(elements_.size()) || !HasBytes(bytes)) return false;
    bytes_ += bytes;
    elements_.push_back(std::move(values));
    return true;
  }
  const std::vector<Tensor>* At(int64_t i) const {  // null: not there yet
    return i < Size() ? &elements_[static_cast<size_t>(i)] : nullptr;
  }
  void PopFront() {
    bytes_ -= BytesOf(elements_.front());
    elements_.pop_front();
  }
  void Clear() {
    elements_.clear();
    bytes_ = 0;
  }
  int64_t Size() const { return static_cast<int64_t>(elements_.size()); }

 private:
  std::deque<std::vector<Tensor>> elements_;
};

// By key, in their order. Values of one key may come, and go, one by one; a key is there when all have come, until all
// have gone.
class StagingMap final : public StagingBase {
 public:
  StagingMap(std::string name, const StagingLimits& limits, std::vector<DType> types)
      : StagingBase(std::move(name), limits), types_(std::move(types)) {}

  // A vector of increasing positions of values; InvalidArgument otherwise.
  StatusOr<std::vector<int64_t>> Indices(const Tensor& t) const {
    if (t.rank() != 1) return InvalidArgument("indices must be a vector, got shape: ", t.shape().ToString());
    MR_ASSIGN_OR_RETURN(std::vector<int64_t> indices, t.IntValues());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= static_cast<int64_t>(types_.size())) {
        return InvalidArgument("Index '", indices[i], "' was out of bounds '", types_.size(), "'.");
      }
      if (i > 0 && indices[i] <= indices[i - 1]) return InvalidArgument("Indices are not strictly ordered");
    }
    return indices;
  }

  // Under the lock. False: there is no room.
  bool TryPut(int64_t key, const std::vector<int64_t>& indices, std::vector<Tensor>& values, Status* s) {
    const auto incomplete = incomplete_.find(key);
    const bool begun = incomplete != incomplete_.end();
    *s = CheckPut(key, indices, values, begun ? &incomplete->second : nullptr);
    if (!s->ok()) return true;
    const int64_t bytes = BytesOf(values);
    size_t there = indices.size();
    if (begun) {
      for (const Tensor& t : incomplete->second) there += t.IsInitialized();
    }
    const bool completes = there == types_.size();
    if (!HasBytes(bytes) || (completes && !HasRoom(complete_.size()))) return false;
    std::vector<Tensor>& entry = begun ? incomplete->second : incomplete_[key];
    entry.resize(types_.size());
    for (size_t i = 0; i < indices.size(); ++i) entry[static_cast<size_t>(indices[i])] = std::move(values[i]);
    bytes_ += bytes;
    if (completes) complete_.insert(incomplete_.extract(key));
    return true;
  }
  bool Has(int64_t key) const { return complete_.contains(key); }
  bool FirstKey(int64_t* key) const {
    if (complete_.empty()) return false;
    *key = complete_.begin()->first;
    return true;
  }
  // The key is there.
  Status Find(int64_t key, const std::vector<int64_t>& indices, std::vector<const Tensor*>* values) const {
    const std::vector<Tensor>& entry = complete_.find(key)->second;
    for (const int64_t i : indices) {
      const Tensor& t = entry[static_cast<size_t>(i)];
      if (!t.IsInitialized()) {
        return InvalidArgument("Tensor at index '", i, "' for key '", key, "' has already been removed.");
      }
      values->push_back(&t);
    }
    return absl::OkStatus();
  }
  void Remove(int64_t key, const std::vector<int64_t>& indices) {
    const auto entry = complete_.find(key);
    for (const int64_t i : indices) {
      Tensor& t = entry->second[static_cast<size_t>(i)];
      bytes_ -= static_cast<int64_t>(t.TotalBytes());
      t = Tensor();
    }
    for (const Tensor& t : entry->second) {
      if (t.IsInitialized()) return;
    }
    complete_.erase(entry);
  }
  void Clear() {
    complete_.clear();
    incomplete_.clear();
    bytes_ = 0;
  }
  int64_t Size() const { return static_cast<int64_t>(complete_.size()); }
  int64_t IncompleteSize() const { return static_cast<int64_t>(incomplete_.size()); }

 private:
  Status CheckPut(int64_t key, const std::vector<int64_t>& indices, const std::vector<Tensor>& values,
                  const std::vector<Tensor>* begun) const {
    if (indices.empty()) return InvalidArgument("no values are given for key '", key, "'");
    if (Has(key)) return InvalidArgument("key '", key, "' is in the map already");
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto at = static_cast<size_t>(indices[i]);
      if (begun != nullptr && (*begun)[at].IsInitialized()) {
        return InvalidArgument(
            "The tensor for index '", at, "' for key '", key, "' was already initialized '", types_.size(), "'.");
      }
      if (values[i].dtype() != types_[at]) {
        return InvalidArgument("value ", at, " of key '", key, "' must be ", DTypeName(types_[at]), ", got ",
                               DTypeName(values[i].dtype()));
      }
    }
    return absl::OkStatus();
  }

  const std::vector<DType> types_;
  std::map<int64_t, std::vector<Tensor>> complete_, incomplete_;
};

}  // namespace millrace
