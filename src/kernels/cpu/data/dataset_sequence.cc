// SPDX-License-Identifier: Apache-2.0
// Data sets that pass elements on as they are: parts of sequences, repetitions, sequences one after the other or side
// by side.
#include <functional>
#include <optional>
#include <utility>

#include "kernels/cpu/data/dataset_derived.h"

namespace millrace {
namespace {

struct Counted {
  DatasetRef input;
  int64_t count = 0;
  int64_t index = 0;
  bool require_non_empty = false;  // of the other shards
};
using CountedDataset = Derived<Counted>;
using CountedRef = RefPtr<const CountedDataset>;

class CountedIterator : public DataIterator {
 public:
  explicit CountedIterator(CountedRef dataset) : dataset_(std::move(dataset)) {}
  Status Open(DataContext& ctx) {
    MR_ASSIGN_OR_RETURN(input_, params().input->MakeIterator(ctx));
    return absl::OkStatus();
  }
  template <typename Iterator>
  static StatusOr<DataIteratorPtr> New(const CountedRef& dataset, DataContext& ctx) {
    auto made = std::make_unique<Iterator>(dataset);
    MR_RETURN_IF_ERROR(made->Open(ctx));
    return made;
  }

 protected:
  const Counted& params() const { return dataset_->params(); }
  DataIterator& input() { return *input_; }
  // At the end: what it holds, such as a generator, goes now.
  void DropInput() { input_.reset(); }

 private:
  const CountedRef dataset_;
  DataIteratorPtr input_;
};

class TakeIterator final : public CountedIterator {
 public:
  using CountedIterator::CountedIterator;
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (params().count >= 0 && taken_ >= params().count) {
      DropInput();
      return false;
    }
    MR_ASSIGN_OR_RETURN(const bool found, input().Next(ctx, element));
    taken_ += found;
    return found;
  }

 private:
  int64_t taken_ = 0;
};

class SkipIterator final : public CountedIterator {
 public:
  using CountedIterator::CountedIterator;
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (params().count < 0) return false;
    MR_ASSIGN_OR_RETURN(const bool more, input().Skip(ctx, params().count, &skipped_));
    if (!more) return false;
    return input().Next(ctx, element);
  }

 private:
  int64_t skipped_ = 0;
};

class ShardIterator final : public CountedIterator {
 public:
  using CountedIterator::CountedIterator;
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (!kept_) {
      const int64_t others = returned_ ? between_ : params().index;
      MR_ASSIGN_OR_RETURN(const bool more, input().Skip(ctx, others, &passed_));
      if (!more) return false;
      MR_ASSIGN_OR_RETURN(const bool found, input().Next(ctx, element));
      if (!found) return false;
      passed_ = 0;
      between_ = params().count - 1;
      if (returned_ || !params().require_non_empty) return returned_ = true;
      kept_ = std::move(*element);
    }
    MR_RETURN_IF_ERROR(CheckRest(ctx));
    *element = *std::exchange(kept_, std::nullopt);
    between_ = params().index;
    passed_ = 0;
    return returned_ = true;
  }

 private:
  // That the shards behind the first element have one, too; their elements are passed over.
  Status CheckRest(DataContext& ctx) {
    const int64_t shards = params().count, before = params().index + 1;
    MR_ASSIGN_OR_RETURN(const bool all, input().Skip(ctx, shards - before, &passed_));
    if (all) return absl::OkStatus();
    return InvalidArgument(
        "There aren't enough elements in this dataset for each shard to have at least one element (# elems = ",
        before + passed_, ", # shards = ", shards,
        "). If you are using datasets with distribution strategy, consider turning dataset autosharding off with "
        "`tf.data.Options`.");
  }

  bool returned_ = false;
  std::optional<Element> kept_;  // the first, until the others have been looked for
  int64_t between_ = 0;          // elements of other shards before the next
  int64_t passed_ = 0;           // of those
};

class RepeatIterator final : public DataIterator {
 public:
  explicit RepeatIterator(CountedRef dataset) : dataset_(std::move(dataset)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    const Counted& p = dataset_->params();
    while (p.count < 0 || rounds_ < p.count) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      const bool fresh = input_ == nullptr;
      if (fresh) {
        MR_ASSIGN_OR_RETURN(input_, p.input->MakeIterator(ctx));
      }
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
      if (found) return true;
      input_.reset();
      // Nothing, for ever, is nothing.
      rounds_ = p.count < 0 ? (fresh ? -2 : 0) : rounds_ + 1;
      if (rounds_ == -2) return false;
    }
    return false;
  }

 private:
  const CountedRef dataset_;
  DataIteratorPtr input_;
  int64_t rounds_ = 0;
};

template <typename Iterator>
class CountedKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("require_non_empty")) {
      MR_ASSIGN_OR_RETURN(require_non_empty_, init.Attr<bool>("require_non_empty"));
    }
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Counted p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    constexpr bool kIsShard = std::is_same_v<Iterator, ShardIterator>;
    MR_ASSIGN_OR_RETURN(p.count, ScalarInput(ctx, 1, kIsShard ? "num_shards" : "count"));
    if (kIsShard) {
      MR_ASSIGN_OR_RETURN(p.index, ScalarInput(ctx, 2, "index"));
      if (p.count <= 0) return InvalidArgument("Number of shards must be greater than zero, got ", p.count, ".");
      if (p.index < 0 || p.index >= p.count) {
        return InvalidArgument("Index must be between 0 and ", p.count - 1, ", got ", p.index, ".");
      }
    }
    p.require_non_empty = require_non_empty_;
    return DatasetRef(MakeRef<CountedDataset>(spec(), std::move(p), &CountedIterator::New<Iterator>));
  }
  bool require_non_empty_ = false;
};

class RepeatKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Counted p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(p.count, ScalarInput(ctx, 1, "count"));
    return DatasetRef(MakeRef<CountedDataset>(
        spec(), std::move(p), +[](const CountedRef& dataset, DataContext&) -> StatusOr<DataIteratorPtr> {
          return std::make_unique<RepeatIterator>(dataset);
        }));
  }
};

using Inputs = std::vector<DatasetRef>;
using ManyDataset = Derived<Inputs>;
using ManyRef = RefPtr<const ManyDataset>;

class ConcatenateIterator final : public DataIterator {
 public:
  explicit ConcatenateIterator(ManyRef dataset) : dataset_(std::move(dataset)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    const Inputs& inputs = dataset_->params();
    while (at_ < inputs.size()) {
      if (!input_) {
        MR_ASSIGN_OR_RETURN(input_, inputs[at_]->MakeIterator(ctx));
      }
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
      if (found) return true;
      input_.reset();
      ++at_;
    }
    return false;
  }

 private:
  const ManyRef dataset_;
  size_t at_ = 0;
  DataIteratorPtr input_;
};

class ZipIterator final : public DataIterator {
 public:
  ZipIterator(ManyRef dataset, std::vector<DataIteratorPtr> inputs)
      : dataset_(std::move(dataset)), inputs_(std::move(inputs)) {}
  static StatusOr<DataIteratorPtr> New(const ManyRef& dataset, DataContext& ctx) {
    std::vector<DataIteratorPtr> inputs;
    for (const DatasetRef& d : dataset->params()) {
      MR_ASSIGN_OR_RETURN(DataIteratorPtr input, d->MakeIterator(ctx));
      inputs.push_back(std::move(input));
    }
    return std::make_unique<ZipIterator>(dataset, std::move(inputs));
  }
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (ended_) return false;
    element->clear();
    for (const DataIteratorPtr& input : inputs_) {
      Element part;
      MR_ASSIGN_OR_RETURN(const bool found, input->Next(ctx, &part));
      if (!found) {
        ended_ = true;
        return false;
      }
      for (Tensor& t : part) element->push_back(std::move(t));
    }
    return true;
  }

 private:
  const ManyRef dataset_;
  const std::vector<DataIteratorPtr> inputs_;
  bool ended_ = false;
};

class ManyKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    is_zip_ = init.op.name == "ZipDataset";
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Inputs inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(i), is_zip_ ? "input_datasets" : "input_dataset"));
      inputs.push_back(std::move(input));
    }
    if (!is_zip_ && inputs[0]->spec().types != inputs[1]->spec().types) {
      return InvalidArgument("input dataset and dataset to concatenate have different output_types");
    }
    const auto concatenate = [](const ManyRef& dataset, DataContext&) -> StatusOr<DataIteratorPtr> {
      return std::make_unique<ConcatenateIterator>(dataset);
    };
    return DatasetRef(MakeRef<ManyDataset>(spec(), std::move(inputs), is_zip_ ? &ZipIterator::New : +concatenate));
  }
  bool is_zip_ = false;
};

// Elements whose last component, a bool, is true; without it.
struct Flagged {
  DatasetRef input;
};
using FlaggedDataset = Derived<Flagged>;
using FlaggedRef = RefPtr<const FlaggedDataset>;

class FlaggedIterator final : public DataIterator {
 public:
  FlaggedIterator(FlaggedRef dataset, DataIteratorPtr input) : dataset_(std::move(dataset)), input_(std::move(input)) {}
  static StatusOr<DataIteratorPtr> New(const FlaggedRef& dataset, DataContext& ctx) {
    MR_ASSIGN_OR_RETURN(DataIteratorPtr input, dataset->params().input->MakeIterator(ctx));
    return std::make_unique<FlaggedIterator>(dataset, std::move(input));
  }
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (true) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
      if (!found) return false;
      if (element->empty() || element->back().dtype() != DType::kBool || element->back().num_elements() != 1) {
        return InvalidArgument("Last component must be a bool scalar.");
      }
      const bool keep = *element->back().data<bool>();
      element->pop_back();
      if (keep) return true;
    }
  }

 private:
  const FlaggedRef dataset_;
  const DataIteratorPtr input_;
};

class FlaggedKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    return DatasetRef(MakeRef<FlaggedDataset>(spec(), Flagged{std::move(input)}, &FlaggedIterator::New));
  }
};

}  // namespace

DatasetRef ShardOf(DatasetRef input, int64_t shards, int64_t index, bool require_non_empty) {
  ElementSpec spec = input->spec();
  return DatasetRef(MakeRef<CountedDataset>(
      std::move(spec), Counted{std::move(input), shards, index, require_non_empty},
      &CountedIterator::New<ShardIterator>));
}

void RegisterDatasetSequenceKernels(KernelRegistry& r) {
  r.Add<CountedKernel<TakeIterator>>({.op = "TakeDataset"});
  r.Add<CountedKernel<SkipIterator>>({.op = "SkipDataset"});
  r.Add<CountedKernel<ShardIterator>>({.op = "ShardDataset"});
  r.Add<RepeatKernel>({.op = "RepeatDataset"});
  r.Add<ManyKernel>({.op = "ConcatenateDataset"});
  r.Add<ManyKernel>({.op = "ZipDataset"});
  r.Add<FlaggedKernel>({.op = "FilterByLastComponentDataset"});
}

}  // namespace millrace
