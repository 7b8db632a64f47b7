// SPDX-License-Identifier: Apache-2.0
// Iterators as resources.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_wait.h"
#include "kernels/cpu/engine/encoded_variant.h"

namespace millrace {

// Where an iterator was: how much of which data set it had given.
class IteratorState final : public EncodableVariant {
 public:
  static constexpr char kTypeName[] = "tensorflow::IteratorStateVariant";

  IteratorState(DatasetRef dataset, int64_t taken) : dataset_(std::move(dataset)), taken_(taken) {}
  const DatasetRef& dataset() const { return dataset_; }
  int64_t taken() const { return taken_; }
  std::string TypeName() const override { return kTypeName; }
  std::string DebugString() const override { return absl::StrCat("an iterator after ", taken_, " elements"); }
  // How many elements it had given, and the graph of the data set. Unimplemented where that has none.
  StatusOr<wire::VariantTensorDataProto> Encoded() const override;

 private:
  const DatasetRef dataset_;
  const int64_t taken_;
};

// Where a program is in a data set. Steps take elements one after the other.
class IteratorResource final : public Resource {
 public:
  explicit IteratorResource(ElementSpec spec) : spec_(std::move(spec)) {}
  const ElementSpec& spec() const { return spec_; }
  std::string DebugString() const override { return "an iterator"; }

  // From the element at `skipped` on: those before it are read and thrown away.
  Status Start(DataContext& ctx, const DatasetRef& dataset, int64_t skipped = 0) {
    MR_RETURN_IF_ERROR(CheckSpec(spec_, dataset->spec()));
    MR_RETURN_IF_ERROR(CheckAssertions(*dataset));
    auto made = std::make_shared<Position>();
    made->dataset = dataset;
    MR_ASSIGN_OR_RETURN(made->iterator, dataset->MakeIterator(ctx));
    int64_t taken = 0;
    while (taken < skipped) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      Element unused;
      MR_ASSIGN_OR_RETURN(const bool found, made->iterator->Next(ctx, &unused));
      if (!found) break;
      ++taken;
    }
    {
      absl::MutexLock lock(&made->mu);
      made->taken = taken;
    }
    absl::MutexLock lock(&mu_);
    std::swap(position_, made);  // the old one goes outside of the lock
    return absl::OkStatus();
  }

  StatusOr<RefPtr<IteratorState>> State() {
    const std::shared_ptr<Position> position = Current();
    if (!position) return FailedPrecondition("the iterator has not been initialized and has no state");
    absl::MutexLock lock(&position->mu);
    return MakeRef<IteratorState>(position->dataset, position->taken);
  }

  StatusOr<bool> Next(DataContext& ctx, Element* element) {
    const std::shared_ptr<Position> position = Current();
    if (!position) {
      return FailedPrecondition(
          "GetNext() failed because the iterator has not been initialized. Ensure that you have run the initializer "
          "operation for this iterator before getting the next element.");
    }
    const WakeOnCancel wake(ctx.cancellation, position->mu);
    absl::MutexLock lock(&position->mu);
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(position->mu) {
      return !position->busy || ctx.cancellation.IsCancelled();
    };
    ctx.env.Await(position->mu, absl::Condition(&ready));
    MR_RETURN_IF_ERROR(ctx.KeepGoing());
    position->busy = true;
    position->mu.Unlock();
    StatusOr<bool> found = WithoutExceptions([&] { return position->iterator->Next(ctx, element); });
    position->mu.Lock();
    position->busy = false;
    if (found.ok() && *found) ++position->taken;
    if (!absl::IsOutOfRange(found.status())) return found;
    // Who reads to the end would take it for that, and lose what comes behind.
    return Internal(
        "Iterator returned `OutOfRange`. This indicates an implementation error as `OutOfRange` errors are not "
        "expected to "
        "be returned here: only the end of a data set may say so. Original message: ",
        found.status().message());
  }

 private:
  struct Position {
    absl::Mutex mu;
    bool busy ABSL_GUARDED_BY(mu) = false;
    int64_t taken ABSL_GUARDED_BY(mu) = 0;
    DatasetRef dataset;
    DataIteratorPtr iterator;  // of whoever has set `busy`
  };
  std::shared_ptr<Position> Current() {
    absl::MutexLock lock(&mu_);
    return position_;
  }

  const ElementSpec spec_;
  absl::Mutex mu_;
  std::shared_ptr<Position> position_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
