// SPDX-License-Identifier: Apache-2.0
// ParallelInterleave, and Interleave with calls in parallel: the elements of the data sets that a function makes, read
// by a thread each.
//
// A cycle of readers is gone around, `block` elements from each; more readers than the cycle has work ahead. Where one
// has ended, it takes the next element of the input and goes behind those that work ahead, of which the first takes its
// place in the cycle, and the next in the cycle has its turn. So the order does not depend on who is fast; unless it is
// sloppy: then a reader that has nothing yet is passed over.
#include <algorithm>
#include <deque>
#include <memory>

#include "kernels/cpu/data/dataset_calls.h"
#include "kernels/cpu/data/dataset_function_kernel.h"
#include "kernels/cpu/data/dataset_order.h"

namespace millrace {
namespace {

constexpr int64_t kMaxReaders = 1024;  // threads
// What a reader may have ready where nobody says how much: enough that threads need not wait for each other over every
// small element. Large ones it makes two of.
constexpr int64_t kBuffered = 64;
constexpr size_t kMostBytesAhead = 1 << 20;

struct ParallelInterleave {
  DatasetRef input;
  CapturedFunction function;
  int64_t cycle = 1, block = 1;
  ElementOrder order = ElementOrder::kAsAsked;
  int64_t buffered = 1;  // elements that a reader may have ready
  int64_t ahead = 0;     // readers beside those of the cycle
};

class ParallelInterleaveDataset final : public Dataset {
 public:
  ParallelInterleaveDataset(ElementSpec spec, ParallelInterleave params)
      : Dataset(std::move(spec)), params_(std::move(params)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, params_.input->MakeIterator(ctx));
    return std::make_unique<Iterator>(ctx.env, RefPtr<const ParallelInterleaveDataset>::Share(this), std::move(input));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(Env& env, RefPtr<const ParallelInterleaveDataset> d, DataIteratorPtr input)
        : env_(env), dataset_(std::move(d)), input_(std::move(input)) {}
    ~Iterator() override {
      stop_.Cancel(WithoutExceptions([] { return Cancelled("the iterator has ended"); }));
      absl::MutexLock lock(&mu_);
      stopped_ = true;
      env_.Await(mu_, absl::Condition(+[](size_t* running) { return *running == 0; }, &running_));
    }

    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      MR_RETURN_IF_ERROR(Begin(ctx));
      while (true) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        Made made;
        MR_ASSIGN_OR_RETURN(const Turn turn, TakeTurn(ctx, &made));
        if (turn == Turn::kEnd) return false;
        if (turn == Turn::kAgain) continue;
        MR_RETURN_IF_ERROR(made.status);
        *element = std::move(made.element);
        return true;
      }
    }

   private:
    struct Made {
      Status status;
      Element element;
      size_t bytes = 0;
    };
    // What a thread reads. All of it belongs to the lock.
    struct Reader {
      std::deque<Made> made;
      size_t bytes = 0;      // of what is made
      bool reading = false;  // more may come
    };
    enum class Turn { kMade, kAgain, kEnd };
    enum class Found { kMade, kWait, kOver };

    // The first readers, as many as there are elements for.
    Status Begin(DataContext& ctx) {
      const ParallelInterleave& p = dataset_->params_;
      const auto wanted = static_cast<size_t>(p.cycle + p.ahead);
      while (input_ && readers_.size() < wanted) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        if (readers_.size() == static_cast<size_t>(kMaxReaders)) {
          return ResourceExhausted("parallel_interleave has more than ", kMaxReaders, " data sets in its cycle");
        }
        auto reader = std::make_unique<Reader>();
        MR_ASSIGN_OR_RETURN(const bool given, Give(ctx, reader.get()));
        if (!given) break;
        if (readers_.size() < static_cast<size_t>(p.cycle)) {
          cycle_.push_back(reader.get());
        } else {
          ahead_.push_back(reader.get());
        }
        readers_.push_back(std::move(reader));
      }
      return absl::OkStatus();
    }

    // Goes around the cycle once, from whose turn it is.
    StatusOr<Turn> TakeTurn(DataContext& ctx, Made* made) {
      const ParallelInterleave& p = dataset_->params_;
      bool any_reads = false;
      for (size_t i = 0; i < cycle_.size(); ++i) {
        const size_t at = (at_ + i) % cycle_.size();
        Reader* const reader = cycle_[at];
        if (reader == nullptr) continue;
        switch (Look(*reader, made)) {
          case Found::kMade:
            if (at != at_) taken_ = 0;
            at_ = at;
            if (++taken_ == p.block) MoveOn(at);
            return Turn::kMade;
          case Found::kWait:
            any_reads = true;
            if (IsFree(p.order, ctx)) continue;
            if (at != at_) taken_ = 0;
            at_ = at;
            Wait(ctx, [&] { return HasNews(*reader); });
            return Turn::kAgain;
          case Found::kOver: break;
        }
        cycle_[at] = nullptr;
        MR_ASSIGN_OR_RETURN(const bool given, Give(ctx, reader));
        if (given) ahead_.push_back(reader);
        if (ahead_.empty()) continue;
        cycle_[at] = ahead_.front();
        ahead_.pop_front();
        MoveOn(at);
        return Turn::kAgain;
      }
      if (!any_reads) return Turn::kEnd;
      Wait(ctx, [&] {
        return std::any_of(cycle_.begin(), cycle_.end(), [&](Reader* r) { return r != nullptr && HasNews(*r); });
      });
      return Turn::kAgain;
    }

    void MoveOn(size_t at) {
      at_ = (at + 1) % cycle_.size();
      taken_ = 0;
    }
    static bool HasNews(const Reader& reader) { return !reader.made.empty() || !reader.reading; }
    Found Look(Reader& reader, Made* made) {
      absl::MutexLock lock(&mu_);
      if (reader.made.empty()) return reader.reading ? Found::kWait : Found::kOver;
      *made = std::move(reader.made.front());
      reader.bytes -= made->bytes;
      reader.made.pop_front();
      return Found::kMade;
    }
    template <typename Condition>
    void Wait(DataContext& ctx, Condition condition) {
      const WakeOnCancel wake(ctx.cancellation, mu_);
      absl::MutexLock lock(&mu_);
      const auto ready = [&] { return ctx.cancellation.IsCancelled() || condition(); };
      env_.Await(mu_, absl::Condition(&ready));
    }

    // The next element of the input, from which `reader` makes a data set that it reads; false where there is none.
    StatusOr<bool> Give(DataContext& ctx, Reader* reader) {
      if (!input_) return false;
      Element args;
      const StatusOr<bool> found = input_->Next(ctx, &args);
      if (!found.ok()) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        absl::MutexLock lock(&mu_);
        reader->made.push_back({found.status(), {}, 0});  // in its place
        return true;
      }
      if (!*found) {
        input_.reset();
        return false;
      }
      {
        absl::MutexLock lock(&mu_);
        ++running_;
        reader->reading = true;
      }
      const Status s = env_.StartThread([this, reader, own = ctx.Ahead(stop_), args = std::move(args)]() mutable {
        const Status failed = WithoutExceptions([&] { return Read(own, std::move(args), reader); });
        absl::MutexLock lock(&mu_);
        if (!failed.ok()) {
          WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
            reader->made.push_back({failed, {}, 0});
            return absl::OkStatus();
          }).IgnoreError();
        }
        reader->reading = false;
        --running_;
      });
      if (s.ok()) return true;
      absl::MutexLock lock(&mu_);
      reader->reading = false;
      --running_;
      return s;
    }

    static size_t BytesOf(const Element& element) {
      size_t bytes = 0;
      for (const Tensor& t : element) {
        bytes += t.TotalBytes();
        if (t.dtype() != DType::kString) continue;
        for (const TString& s : t.flat<TString>()) bytes += s.view().size();
      }
      return bytes;
    }

    // An error of an element need not be the end, as one of the function is.
    Status Read(DataContext& ctx, Element args, Reader* reader) {
      Element results;
      MR_RETURN_IF_ERROR(dataset_->params_.function.Run(ctx, std::move(args), &results));
      if (results.size() != 1) return InvalidArgument("Function must return a single scalar of dtype DT_VARIANT.");
      MR_ASSIGN_OR_RETURN(const DatasetRef made, DatasetOf(results[0], "what the function returns"));
      MR_RETURN_IF_ERROR(CheckSpec(dataset_->spec(), made->spec()));
      MR_ASSIGN_OR_RETURN(const DataIteratorPtr iterator, made->MakeIterator(ctx));
      while (!stop_.IsCancelled()) {
        Element element;
        const StatusOr<bool> found = iterator->Next(ctx, &element);
        if (found.ok() && !*found) break;
        const size_t bytes = BytesOf(element);
        absl::MutexLock lock(&mu_);
        const auto room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          const auto ready = static_cast<int64_t>(reader->made.size());
          return stopped_ || ready < std::min<int64_t>(2, dataset_->params_.buffered) ||
                 (ready < dataset_->params_.buffered && reader->bytes < kMostBytesAhead);
        };
        env_.Await(mu_, absl::Condition(&room));
        reader->made.push_back({found.status(), std::move(element), bytes});
        reader->bytes += bytes;
      }
      return absl::OkStatus();
    }

    Env& env_;
    const RefPtr<const ParallelInterleaveDataset> dataset_;
    DataIteratorPtr input_;  // null: it has ended
    CancellationManager stop_;
    std::vector<std::unique_ptr<Reader>> readers_;
    std::vector<Reader*> cycle_;  // null: that place stays empty
    std::deque<Reader*> ahead_;
    size_t at_ = 0;      // whose turn it is in the cycle
    int64_t taken_ = 0;  // in that turn
    absl::Mutex mu_;
    bool stopped_ ABSL_GUARDED_BY(mu_) = false;
    size_t running_ ABSL_GUARDED_BY(mu_) = 0;
  };

  const ParallelInterleave params_;
};

class ReadersKernel : public FunctionsKernel {
 public:
  ReadersKernel() : FunctionsKernel({"f"}) {}

 protected:
  StatusOr<ParallelInterleave> Input(KernelContext& ctx) {
    ParallelInterleave p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(p.function, Bind(ctx, 0, p.input->spec().types, "other_arguments"));
    return p;
  }
  DatasetRef Finish(ParallelInterleave p) const {
    p.cycle = std::min(p.cycle, kMaxReaders + 1);  // which there cannot be, whatever else it is
    p.ahead = std::clamp<int64_t>(kMaxReaders - p.cycle, 0, p.ahead);
    return DatasetRef(MakeRef<ParallelInterleaveDataset>(spec(), std::move(p)));
  }
};

class ParallelInterleaveKernel final : public ReadersKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(ParallelInterleave p, Input(ctx));
    const int settings = ctx.num_inputs() - 5;
    MR_ASSIGN_OR_RETURN(p.cycle, ScalarInput(ctx, settings, "cycle_length"));
    if (p.cycle <= 0) return InvalidArgument("`cycle_length` must be > 0");
    MR_ASSIGN_OR_RETURN(p.block, ScalarInput(ctx, settings + 1, "block_length"));
    if (p.block <= 0) return InvalidArgument("`block_length` must be > 0");
    MR_ASSIGN_OR_RETURN(const bool sloppy, FlagInput(ctx, settings + 2, "sloppy"));
    if (sloppy) p.order = ElementOrder::kFree;
    MR_ASSIGN_OR_RETURN(p.buffered, ScalarInput(ctx, settings + 3, "buffer_output_elements"));
    if (p.buffered <= 0) return InvalidArgument("`buffer_output_elements` must be > 0");
    MR_ASSIGN_OR_RETURN(p.ahead, ScalarInput(ctx, settings + 4, "prefetch_input_elements"));
    if (p.ahead < 0) return InvalidArgument("`prefetch_input_elements` must be >= 0");
    return Finish(std::move(p));
  }
};

// All readers of the cycle at once, whatever number of calls is asked for: the elements are the same.
class ParallelCallsKernel final : public ReadersKernel {
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(order_, ElementOrderOf(init));
    return ReadersKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(ParallelInterleave p, Input(ctx));
    const int calls_at = ctx.num_inputs() - 1;
    const ArgRange buffers = ctx.input_arg("buffer_output_elements");
    const bool has_buffers = buffers.end > buffers.begin;
    const int settings = calls_at - (has_buffers ? 4 : 2);
    MR_ASSIGN_OR_RETURN(p.cycle, ScalarInput(ctx, settings, "cycle_length"));
    if (p.cycle == kAutotune) p.cycle = kAutotunedCalls;
    if (p.cycle <= 0) return InvalidArgument("cycle_length must be greater than zero.");
    MR_ASSIGN_OR_RETURN(p.block, ScalarInput(ctx, settings + 1, "block_length"));
    if (p.block <= 0) return InvalidArgument("block_length must be greater than zero.");
    MR_ASSIGN_OR_RETURN(const int64_t calls, ScalarInput(ctx, calls_at, "num_parallel_calls"));
    if (calls <= 0 && calls != kAutotune) return InvalidArgument("num_parallel_calls must be greater than zero.");
    if (calls > p.cycle) return InvalidArgument("num_parallel_calls must less than or equal to cycle_length.");
    p.order = order_;
    p.buffered = kBuffered;
    if (has_buffers) {
      MR_ASSIGN_OR_RETURN(const int64_t buffered, ScalarInput(ctx, buffers.begin, "buffer_output_elements"));
      if (buffered <= 0 && buffered != kAutotune) {
        return InvalidArgument("`buffer_output_elements` must be `tf.data.AUTOTUNE` or > 0 but is ", buffered);
      }
      if (buffered != kAutotune) p.buffered = buffered;
      MR_ASSIGN_OR_RETURN(const int64_t ahead, ScalarInput(ctx, buffers.begin + 1, "prefetch_input_elements"));
      if (ahead < 0 && ahead != kAutotune) {
        return InvalidArgument("`prefetch_input_elements` must be `tf.data.AUTOTUNE` or >= 0 but is ", ahead);
      }
      if (ahead != kAutotune) p.ahead = ahead;
    }
    return Finish(std::move(p));
  }
  ElementOrder order_ = ElementOrder::kAsAsked;
};

}  // namespace

void RegisterDatasetParallelInterleaveKernels(KernelRegistry& r) {
  for (const char* op : {"ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset"}) {
    r.Add<ParallelInterleaveKernel>({.op = op});
  }
  for (const char* version : {"V2", "V3", "V4"}) {
    r.Add<ParallelCallsKernel>({.op = absl::StrCat("ParallelInterleaveDataset", version)});
  }
}

}  // namespace millrace
