// SPDX-License-Identifier: Apache-2.0
// Data sets in random order: a buffer, from which the next element is drawn, and where its place is filled again; and
// those of random numbers. The same seeds give the same order and numbers as in TensorFlow.
#include <deque>
#include <random>

#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/engine/resource_handle.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

struct Seeds {
  uint64_t first = 0;
  uint64_t second = 0;
};

Philox PhiloxOf(const Seeds& seeds) { return {seeds.first, seeds.second}; }

// The seeds of one iteration after the other.
class SeedGenerator final : public Resource {
 public:
  explicit SeedGenerator(const Seeds& seeds) : words_(PhiloxOf(seeds)) {}
  Seeds Next() {
    absl::MutexLock lock(&mu_);
    const uint64_t first = words_();
    return {first, words_()};
  }
  std::string DebugString() const override { return "a generator of random seeds"; }

 private:
  absl::Mutex mu_;
  PhiloxWords words_ ABSL_GUARDED_BY(mu_);
};

struct Shuffling {
  int64_t buffer_size = 0;
  Seeds seeds{};
  RefPtr<SeedGenerator> generator{};  // null: every iteration has these seeds, and its repetitions go on with them
  int64_t count = 1;                  // repetitions; below 0: for ever
};

class ShuffleDataset final : public Dataset {
 public:
  ShuffleDataset(ElementSpec spec, DatasetRef input, const Shuffling& params)
      : Dataset(std::move(spec)), input_(std::move(input)), params_(params) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    const Seeds seeds = params_.generator ? params_.generator->Next() : params_.seeds;
    return std::make_unique<Iterator>(RefPtr<const ShuffleDataset>::Share(this), PhiloxOf(seeds));
  }
  void SetDrawnInputs(Element* inputs) const override {
    if ((*inputs)[2].dtype() != DType::kInt64) return;  // a generator, which has drawn them
    (*inputs)[2] = Tensor::Scalar(static_cast<int64_t>(params_.seeds.first));
    (*inputs)[3] = Tensor::Scalar(static_cast<int64_t>(params_.seeds.second));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const ShuffleDataset> d, Philox random) : dataset_(std::move(d)), random_(random) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      MR_RETURN_IF_ERROR(Fill(ctx));
      const size_t rounds = rounds_.size();
      while (!rounds_.empty() && rounds_.front().begin == rounds_.front().end) rounds_.pop_front();
      if (rounds_.empty()) return false;
      SeedGenerator* const seeds = dataset_->params_.generator.get();
      if (seeds && rounds_.size() < rounds) random_ = PhiloxWords(PhiloxOf(seeds->Next()));
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
    std::deque<Round> rounds_;
    int64_t next_ = 0;
    int64_t held_ = 0;
  };

  const DatasetRef input_;
  const Shuffling params_;
};

// Seeds that are both 0 stand for any.
StatusOr<Seeds> SeedInputs(const KernelContext& ctx, int first) {
  MR_ASSIGN_OR_RETURN(const int64_t seed, ScalarInput(ctx, first, "seed"));
  MR_ASSIGN_OR_RETURN(const int64_t seed2, ScalarInput(ctx, first + 1, "seed2"));
  if (seed != 0 || seed2 != 0) return Seeds{static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2)};
  std::random_device entropy;
  const uint64_t any = entropy();
  return Seeds{any, entropy()};
}

class ShuffleKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    repeats_ = init.op.name == "ShuffleAndRepeatDataset";
    if (init.op.name != "ShuffleDatasetV2") {
      MR_ASSIGN_OR_RETURN(reshuffle_, init.Attr<bool>("reshuffle_each_iteration"));
    }
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    Shuffling p;
    MR_ASSIGN_OR_RETURN(p.buffer_size, ScalarInput(ctx, 1, "buffer_size"));
    if (p.buffer_size <= 0) return InvalidArgument("buffer_size must be greater than zero.");
    if (ctx.input_dtype(2) == DType::kResource) {
      MR_ASSIGN_OR_RETURN(p.generator, FindResource<SeedGenerator>(ctx, 2));
    } else {
      MR_ASSIGN_OR_RETURN(p.seeds, SeedInputs(ctx, 2));
      if (reshuffle_) p.generator = MakeRef<SeedGenerator>(p.seeds);
    }
    if (repeats_) {
      MR_ASSIGN_OR_RETURN(p.count, ScalarInput(ctx, 4, "count"));
      if (p.count == 0 || p.count < -1) return InvalidArgument("count must be greater than zero or equal to -1.");
    }
    return DatasetRef(MakeRef<ShuffleDataset>(spec(), std::move(input), p));
  }
  bool repeats_ = false;
  bool reshuffle_ = false;
};

// Numbers of 32 bits, without end, the same in every iteration.
class RandomDataset final : public Dataset {
 public:
  RandomDataset(ElementSpec spec, const Seeds& seeds) : Dataset(std::move(spec)), seeds_(seeds) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override { return std::make_unique<Iterator>(seeds_); }
  void SetDrawnInputs(Element* inputs) const override {
    (*inputs)[0] = Tensor::Scalar(static_cast<int64_t>(seeds_.first));
    (*inputs)[1] = Tensor::Scalar(static_cast<int64_t>(seeds_.second));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(const Seeds& seeds) : words_(PhiloxOf(seeds)) {}
    StatusOr<bool> Next(DataContext&, Element* element) override {
      *element = {Tensor::Scalar<int64_t>(words_())};
      return true;
    }

   private:
    PhiloxWords words_;
  };

  const Seeds seeds_;
};

class RandomDatasetKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(DatasetKernel::Init(init));
    return CheckSpec({{DType::kInt64}, {PartialShape::Scalar()}}, spec());
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const Seeds seeds, SeedInputs(ctx, 0));
    return DatasetRef(MakeRef<RandomDataset>(spec(), seeds));
  }
};

// Each element with the probability `rate`.
class SamplingDataset final : public Dataset {
 public:
  SamplingDataset(ElementSpec spec, DatasetRef input, float rate, const Seeds& seeds)
      : Dataset(std::move(spec)), input_(std::move(input)), rate_(rate), seeds_(seeds) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, input_->MakeIterator(ctx));
    return std::make_unique<Iterator>(RefPtr<const SamplingDataset>::Share(this), std::move(input));
  }
  void SetDrawnInputs(Element* inputs) const override {
    (*inputs)[2] = Tensor::Scalar(static_cast<int64_t>(seeds_.first));
    (*inputs)[3] = Tensor::Scalar(static_cast<int64_t>(seeds_.second));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    Iterator(RefPtr<const SamplingDataset> d, DataIteratorPtr input)
        : dataset_(std::move(d)), input_(std::move(input)), words_(PhiloxOf(dataset_->seeds_)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      while (true) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
        if (!found || UnitFloat(words_()) < dataset_->rate_) return found;
        element->clear();
      }
    }

   private:
    const RefPtr<const SamplingDataset> dataset_;
    const DataIteratorPtr input_;
    PhiloxWords words_;
  };

  const DatasetRef input_;
  const float rate_;
  const Seeds seeds_;
};

class SamplingKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    if (ctx.input(1).rank() != 0) return InvalidArgument("rate must be a scalar");
    MR_ASSIGN_OR_RETURN(const Seeds seeds, SeedInputs(ctx, 2));
    return DatasetRef(MakeRef<SamplingDataset>(spec(), std::move(input), *ctx.input(1).data<float>(), seeds));
  }
};

}  // namespace

void RegisterDatasetShuffleKernels(KernelRegistry& r) {
  for (const char* op : {"RandomDataset", "ExperimentalRandomDataset"}) r.Add<RandomDatasetKernel>({.op = op});
  for (const char* op : {"ShuffleDataset", "ShuffleDatasetV2", "ShuffleAndRepeatDataset"}) {
    r.Add<ShuffleKernel>({.op = op});
  }
  r.Add<SamplingKernel>({.op = "SamplingDataset"});
  r.AddFn({.op = "AnonymousRandomSeedGenerator"}, [](KernelContext& ctx) -> Status {
    MR_ASSIGN_OR_RETURN(const Seeds seeds, SeedInputs(ctx, 0));
    return OutputAnonymous(ctx, "tensorflow::data::RandomSeedGenerator", MakeRef<SeedGenerator>(seeds));
  });
  // The generator goes with its last handle.
  r.AddFn({.op = "DeleteRandomSeedGenerator"}, [](KernelContext&) -> Status { return absl::OkStatus(); });
}

}  // namespace millrace
