// SPDX-License-Identifier: Apache-2.0
// Data sets in random order: a buffer, from which the next element is drawn, and where its place is filled again. The
// same seeds give the same order as in TensorFlow.
#include <random>

#include "kernels/cpu/data/dataset.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

struct Shuffling {
  int64_t buffer_size = 0;
  uint64_t seed = 0;
  uint64_t seed2 = 0;
  bool reshuffle = false;
  int64_t count = 1;  // repetitions; below 0: for ever
};

class ShuffleDataset final : public Dataset {
 public:
  ShuffleDataset(ElementSpec spec, DatasetRef input, const Shuffling& params)
      : Dataset(std::move(spec)),
        input_(std::move(input)),
        params_(params),
        seeds_(Philox(params.seed, params.seed2)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    uint64_t seed = params_.seed, seed2 = params_.seed2;
    if (params_.reshuffle) {
      absl::MutexLock lock(&mu_);
      seed = seeds_();
      seed2 = seeds_();
    }
    return std::make_unique<Iterator>(RefPtr<const ShuffleDataset>::Share(this), Philox(seed, seed2));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const ShuffleDataset> d, Philox random) : dataset_(std::move(d)), random_(random) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      MR_RETURN_IF_ERROR(Fill(ctx));
      while (!rounds_.empty() && rounds_.front().begin == rounds_.front().end) rounds_.erase(rounds_.begin());
      if (rounds_.empty()) return false;
      Round& round = rounds_.front();
      const uint64_t offset = random_() % static_cast<uint64_t>(round.end - round.begin);
      Element& chosen = Slot(round.begin + static_cast<int64_t>(offset));
      *element = std::move(chosen);
      chosen = std::move(Slot(round.begin));
      Slot(round.begin).clear();
      ++round.begin;
      --held_;
      return true;
    }

   private:
    // The elements of one pass over the input that are still in the buffer: those of different passes do not mix.
    struct Round {
      int64_t begin = 0;
      int64_t end = 0;
    };
    Element& Slot(int64_t i) { return buffer_[static_cast<size_t>(i % dataset_->params_.buffer_size)]; }

    Status Fill(DataContext& ctx) {
      const Shuffling& p = dataset_->params_;
      while (!ended_ && held_ < p.buffer_size) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        if (!input_) {
          if (p.count >= 0 && passes_ >= p.count) {
            ended_ = true;
            break;
          }
          MR_ASSIGN_OR_RETURN(input_, dataset_->input_->MakeIterator(ctx));
          const int64_t at = rounds_.empty() ? next_ : rounds_.back().end;
          rounds_.push_back({at, at});
          found_any_ = false;
        }
        Element next;
        MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &next));
        if (!found) {
          input_.reset();
          if (p.count < 0 && !found_any_) ended_ = true;
          if (p.count >= 0) ++passes_;
          continue;
        }
        found_any_ = true;
        const int64_t at = rounds_.back().end++;
        // The buffer grows with what there is, up to its size.
        if (static_cast<int64_t>(buffer_.size()) < p.buffer_size && at >= static_cast<int64_t>(buffer_.size())) {
          buffer_.emplace_back();
        }
        Slot(at) = std::move(next);
        next_ = at + 1;
        ++held_;
      }
      return absl::OkStatus();
    }

    const RefPtr<const ShuffleDataset> dataset_;
    PhiloxWords random_;
    DataIteratorPtr input_;
    bool ended_ = false;
    bool found_any_ = false;
    int64_t passes_ = 0;
    std::vector<Element> buffer_;  // a ring
    std::vector<Round> rounds_;
    int64_t next_ = 0;
    int64_t held_ = 0;
  };

  const DatasetRef input_;
  const Shuffling params_;
  mutable absl::Mutex mu_;
  mutable PhiloxWords seeds_ ABSL_GUARDED_BY(mu_);
};

class ShuffleKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    repeats_ = init.op.name == "ShuffleAndRepeatDataset";
    if (!repeats_) {
      MR_ASSIGN_OR_RETURN(reshuffle_, init.Attr<bool>("reshuffle_each_iteration"));
    }
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    Shuffling p;
    p.reshuffle = reshuffle_;
    MR_ASSIGN_OR_RETURN(p.buffer_size, ScalarInput(ctx, 1, "buffer_size"));
    if (p.buffer_size <= 0) return InvalidArgument("buffer_size must be greater than zero.");
    MR_ASSIGN_OR_RETURN(const int64_t seed, ScalarInput(ctx, 2, "seed"));
    MR_ASSIGN_OR_RETURN(const int64_t seed2, ScalarInput(ctx, 3, "seed2"));
    p.seed = static_cast<uint64_t>(seed);
    p.seed2 = static_cast<uint64_t>(seed2);
    if (repeats_) {
      MR_ASSIGN_OR_RETURN(p.count, ScalarInput(ctx, 4, "count"));
      if (p.count == 0 || p.count < -1) return InvalidArgument("count must be greater than zero or equal to -1.");
    }
    if (p.seed == 0 && p.seed2 == 0) {
      std::random_device entropy;
      p.seed = entropy();
      p.seed2 = entropy();
    }
    return DatasetRef(MakeRef<ShuffleDataset>(spec(), std::move(input), p));
  }
  bool repeats_ = false;
  bool reshuffle_ = false;
};

}  // namespace

void RegisterDatasetShuffleKernels(KernelRegistry& r) {
  for (const char* op : {"ShuffleDataset", "ShuffleAndRepeatDataset"}) r.Add<ShuffleKernel>({.op = op});
}

}  // namespace millrace
