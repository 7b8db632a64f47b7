// SPDX-License-Identifier: Apache-2.0
// What is under way in a step, for who asks from outside what it waits for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace millrace {

// Thread-safe.
class StepWatch {
 public:
  // An execution by readiness. It is added and removed where it holds no lock that these functions take.
  class Part {
   public:
    virtual int64_t num_finished() = 0;  // nodes, or what stands for several
    // Nodes that are under way, and some of those that wait.
    virtual void Describe(std::vector<std::string>* lines) = 0;

   protected:
    Part() = default;
    ~Part() = default;

   private:
    friend class StepWatch;
    Part* previous_ = nullptr;
    Part* next_ = nullptr;
  };

  void Add(Part* part) {
    absl::MutexLock lock(&mu_);
    part->next_ = first_;
    if (first_) first_->previous_ = part;
    first_ = part;
  }
  // After return nobody asks it any more.
  void Remove(Part* part) {
    absl::MutexLock lock(&mu_);
    (part->previous_ ? part->previous_->next_ : first_) = part->next_;
    if (part->next_) part->next_->previous_ = part->previous_;
    removed_ += part->num_finished() + 1;
  }
  // It grows while something happens.
  int64_t progress() const {
    absl::MutexLock lock(&mu_);
    int64_t sum = removed_;
    for (Part* part = first_; part; part = part->next_) sum += part->num_finished();
    return sum;
  }
  void Describe(std::vector<std::string>* lines) const {
    absl::MutexLock lock(&mu_);
    for (Part* part = first_; part; part = part->next_) part->Describe(lines);
  }

 private:
  mutable absl::Mutex mu_;
  Part* first_ ABSL_GUARDED_BY(mu_) = nullptr;
  int64_t removed_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace millrace
