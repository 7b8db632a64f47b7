// SPDX-License-Identifier: Apache-2.0
// Data sets whose elements are made ahead of time, on threads of their own.
#include <algorithm>
#include <deque>

#include "base/exceptions.h"
#include "kernels/cpu/data/dataset_calls.h"
#include "kernels/cpu/data/dataset_order.h"

namespace millrace {
namespace {

constexpr int64_t kAutotunedBuffer = 2;

// Fills a buffer on one thread, from the first call of Next until the end.
class PrefetchIterator final : public DataIterator {
 public:
  PrefetchIterator(Env& env, DatasetRef dataset, DataIteratorPtr input, size_t limit)
      : env_(env), dataset_(std::move(dataset)), input_(std::move(input)), limit_(limit) {}
  ~PrefetchIterator() override {
    stop_.Cancel(WithoutExceptions([] { return Cancelled("the iterator has ended"); }));
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    env_.Await(mu_, absl::Condition(+[](bool* running) { return !*running; }, &running_));
  }

  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    const WakeOnCancel wake(ctx.cancellation, mu_);
    absl::MutexLock lock(&mu_);
    if (!started_) {
      started_ = running_ = true;
      if (Status s = env_.StartThread([this, own = ctx.Ahead(stop_)] { Produce(own); }); !s.ok()) {
        started_ = running_ = false;
        return s;
      }
    }
    const auto ready = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return !buffer_.empty() || ended_ || ctx.cancellation.IsCancelled();
    };
    env_.Await(mu_, absl::Condition(&ready));
    if (buffer_.empty()) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      MR_RETURN_IF_ERROR(broken_);
      return false;
    }
    const Status status = std::move(buffer_.front().status);
    *element = std::move(buffer_.front().element);
    buffer_.pop_front();
    MR_RETURN_IF_ERROR(status);
    return true;
  }

 private:
  void Produce(DataContext ctx) {
    const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return buffer_.size() < limit_ || stopped_; };
    absl::MutexLock lock(&mu_);
    while (true) {
      env_.Await(mu_, absl::Condition(&wanted));
      if (stopped_) break;
      mu_.Unlock();
      Element element;
      const StatusOr<bool> found = WithoutExceptions([&] { return input_->Next(ctx, &element); });
      mu_.Lock();
      if (found.ok() && !*found) break;
      broken_ = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        buffer_.push_back({found.status(), std::move(element)});
        return absl::OkStatus();
      });
      if (!broken_.ok()) break;
    }
    ended_ = true;
    running_ = false;
  }

  struct Made {
    Status status;
    Element element;
  };

  Env& env_;
  const DatasetRef dataset_;
  const DataIteratorPtr input_;
  const size_t limit_;
  CancellationManager stop_;
  absl::Mutex mu_;
  std::deque<Made> buffer_ ABSL_GUARDED_BY(mu_);
  Status broken_ ABSL_GUARDED_BY(mu_);  // why nothing comes after the buffer
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

class PrefetchDataset final : public Dataset {
 public:
  PrefetchDataset(ElementSpec spec, DatasetRef input, int64_t size)
      : Dataset(std::move(spec)), input_(std::move(input)), size_(size) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, input_->MakeIterator(ctx));
    if (size_ == 0) return input;
    return std::make_unique<PrefetchIterator>(
        ctx.env, DatasetRef::Share(this), std::move(input), static_cast<size_t>(size_));
  }

 private:
  const DatasetRef input_;
  const int64_t size_;
};

class PrefetchKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(int64_t size, ScalarInput(ctx, 1, "buffer_size"));
    if (size == kAutotune) size = kAutotunedBuffer;
    if (size < 0) return InvalidArgument("buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning");
    return DatasetRef(MakeRef<PrefetchDataset>(spec(), std::move(input), size));
  }
};

struct ParallelMapping {
  DatasetRef input;
  CapturedFunction function;
  size_t calls = 1;
  ElementOrder order = ElementOrder::kAsAsked;
  bool keeps_count = false;
};

// Several calls at once; their results in the order of the elements, unless that is free: then as they are ready.
class ParallelMapDataset final : public Dataset {
 public:
  ParallelMapDataset(ElementSpec spec, ParallelMapping mapping)
      : Dataset(std::move(spec)), mapping_(std::move(mapping)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, mapping_.input->MakeIterator(ctx));
    return std::make_unique<Iterator>(ctx.env, RefPtr<const ParallelMapDataset>::Share(this), std::move(input));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(Env& env, RefPtr<const ParallelMapDataset> d, DataIteratorPtr input)
        : dataset_(std::move(d)), input_(std::move(input)), calls_(env, dataset_->mapping_.function) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      const ParallelMapping& m = dataset_->mapping_;
      MR_RETURN_IF_ERROR(calls_.Fill(ctx, m.calls, &input_));
      if (calls_.empty()) return false;
      MR_ASSIGN_OR_RETURN(const auto call, calls_.Take(ctx, IsFree(m.order, ctx)));
      if (absl::IsOutOfRange(call->status)) {
        if (m.keeps_count) return InvalidArgument("Function invocation produced OutOfRangeError");
        return false;
      }
      MR_RETURN_IF_ERROR(call->status);
      MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), call->results));
      *element = std::move(call->results);
      return true;
    }

   private:
    const RefPtr<const ParallelMapDataset> dataset_;
    DataIteratorPtr input_;  // null: it has ended
    ParallelCalls calls_;
  };

  const ParallelMapping mapping_;
};

class ParallelMapKernel final : public DatasetKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(function_.Init(init, "f"));
    MR_ASSIGN_OR_RETURN(order_, ElementOrderOf(init));
    MR_ASSIGN_OR_RETURN(keeps_count_, init.Attr<bool>("preserve_cardinality"));
    return DatasetKernel::Init(init);
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { function_.SetSource(std::move(functions)); }

 private:
  std::shared_ptr<FunctionSource> functions() const override { return function_.source(); }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    ParallelMapping m;
    MR_ASSIGN_OR_RETURN(m.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(Element captured, KeptInputs(ctx, "other_arguments"));
    MR_ASSIGN_OR_RETURN(
        m.function, function_.Bind(ctx.step().cancellation, m.input->spec().types, std::move(captured)));
    MR_ASSIGN_OR_RETURN(int64_t calls, ScalarInput(ctx, ctx.num_inputs() - 1, "num_parallel_calls"));
    if (calls == kAutotune) calls = kAutotunedCalls;
    if (calls <= 0) return InvalidArgument("num_parallel_calls must be greater than zero.");
    m.calls = static_cast<size_t>(std::min(calls, kMaxCalls));
    m.order = order_;
    m.keeps_count = keeps_count_;
    return DatasetRef(MakeRef<ParallelMapDataset>(spec(), std::move(m)));
  }

  FunctionAttr function_;
  ElementOrder order_ = ElementOrder::kAsAsked;
  bool keeps_count_ = false;
};

}  // namespace

void RegisterDatasetPrefetchKernels(KernelRegistry& r) {
  r.Add<PrefetchKernel>({.op = "PrefetchDataset"});
  for (const char* op : {"ParallelMapDataset", "ParallelMapDatasetV2"}) r.Add<ParallelMapKernel>({.op = op});
}

}  // namespace millrace
