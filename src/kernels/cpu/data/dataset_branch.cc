// SPDX-License-Identifier: Apache-2.0
// A data set that several functions make of another in the same way: each makes some elements while time is taken, the
// fastest makes the rest.
#include <limits>

#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/data/dataset_function_kernel.h"

namespace millrace {
namespace {

struct Branches {
  DatasetRef input;
  std::vector<CapturedFunction> functions;
  int64_t elements = 0;  // that each function makes while time is taken
  int64_t consumed = 0;  // elements of the input that it has for them
};
using BranchDataset = Derived<Branches>;

// The input, of which the functions read one after the other, perhaps by threads of their own.
class SharedInput {
 public:
  explicit SharedInput(DataIteratorPtr iterator) : iterator_(std::move(iterator)) {}
  // From here on at most so many.
  void Allow(int64_t elements) {
    absl::MutexLock lock(&mu_);
    left_ = elements;
  }
  StatusOr<bool> Next(DataContext& ctx, Element* element) {
    absl::MutexLock lock(&mu_);
    if (left_ == 0) return false;
    MR_ASSIGN_OR_RETURN(const bool found, iterator_->Next(ctx, element));
    if (found) --left_;
    return found;
  }

 private:
  absl::Mutex mu_;
  const DataIteratorPtr iterator_ ABSL_GUARDED_BY(mu_);
  int64_t left_ ABSL_GUARDED_BY(mu_) = 0;
};

// What a function is given in place of the input: the elements that come next, once.
class PartDataset final : public Dataset {
 public:
  PartDataset(ElementSpec spec, std::shared_ptr<SharedInput> input)
      : Dataset(std::move(spec)), input_(std::move(input)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    absl::MutexLock lock(&mu_);
    if (!input_) {
      return InvalidArgument(
          "Cannot create more than one WrapperIterator per WrapperDataset. Make sure the branches to "
          "ChooseFastestDataset do not expect the input to repeat.");
    }
    return std::make_unique<Iterator>(std::exchange(input_, nullptr));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(std::shared_ptr<SharedInput> input) : input_(std::move(input)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override { return input_->Next(ctx, element); }

   private:
    const std::shared_ptr<SharedInput> input_;
  };

  mutable absl::Mutex mu_;
  mutable std::shared_ptr<SharedInput> input_ ABSL_GUARDED_BY(mu_);
};

class BranchIterator final : public DataIterator {
 public:
  BranchIterator(RefPtr<const BranchDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::make_shared<SharedInput>(std::move(input))) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (ended_) return false;
    if (!branch_) MR_RETURN_IF_ERROR(Begin(ctx));
    const int64_t before = ctx.env.MonotonicNanos();
    MR_ASSIGN_OR_RETURN(const bool found, branch_->Next(ctx, element));
    spent_ += ctx.env.MonotonicNanos() - before;
    ended_ = !found;
    if (found && IsTrial() && ++made_ == dataset_->params().elements) EndTrial();
    return found;
  }

 private:
  bool IsTrial() const { return next_ < dataset_->params().functions.size(); }

  Status Begin(DataContext& ctx) {
    const Branches& p = dataset_->params();
    input_->Allow(IsTrial() ? p.consumed : std::numeric_limits<int64_t>::max());
    Element made;
    const DatasetRef part(MakeRef<PartDataset>(p.input->spec(), input_));
    MR_RETURN_IF_ERROR(p.functions[IsTrial() ? next_ : fastest_].Run(ctx, {TensorOf(part)}, &made));
    if (made.size() != 1) return InvalidArgument("a branch must return one value, a data set");
    MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(made[0], "what a branch returns"));
    MR_RETURN_IF_ERROR(CheckSpec(dataset_->spec(), dataset->spec()));
    MR_ASSIGN_OR_RETURN(branch_, dataset->MakeIterator(ctx));
    made_ = spent_ = 0;
    return absl::OkStatus();
  }

  // Its iterator goes before another function reads the input.
  void EndTrial() {
    branch_.reset();
    if (next_ == 0 || spent_ < least_) {
      fastest_ = next_;
      least_ = spent_;
    }
    ++next_;
  }

  const RefPtr<const BranchDataset> dataset_;
  const std::shared_ptr<SharedInput> input_;
  DataIteratorPtr branch_;  // of the function that is read; null: it begins with the next element
  size_t next_ = 0;         // the function that is tried; behind the last, none is
  size_t fastest_ = 0;
  int64_t made_ = 0, spent_ = 0;  // by the function that is tried
  int64_t least_ = 0;
  bool ended_ = false;
};

class BranchKernel final : public DatasetKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::vector<FuncAttr> branches, init.Attr<std::vector<FuncAttr>>("branches"));
    MR_ASSIGN_OR_RETURN(captured_, init.Attr<std::vector<int64_t>>("other_arguments_lengths"));
    MR_ASSIGN_OR_RETURN(elements_, init.Attr<int64_t>("num_elements_per_branch"));
    if (branches.size() != captured_.size()) {
      return InvalidArgument("branches and other_arguments_lengths must have the same length, got ", branches.size(),
                             " and ", captured_.size());
    }
    for (const FuncAttr& branch : branches) functions_.push_back(std::make_unique<FunctionAttr>(branch));
    return DatasetKernel::Init(init);
  }
  void SetFunctions(std::shared_ptr<FunctionSource> source) override {
    for (const auto& f : functions_) f->SetSource(source);
  }

 private:
  std::shared_ptr<FunctionSource> functions() const override { return functions_.front()->source(); }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Branches p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(const int64_t numerator, ScalarInput(ctx, 1, "ratio_numerator"));
    MR_ASSIGN_OR_RETURN(const int64_t denominator, ScalarInput(ctx, 2, "ratio_denominator"));
    if (numerator <= 0) return InvalidArgument("`ratio_numerator` must be greater than zero.");
    if (denominator <= 0) return InvalidArgument("`ratio_denominator` must be greater than zero.");
    if (elements_ % denominator != 0) {
      return InvalidArgument("`num_elements_per_branch` must be divisible by `ratio_denominator`.");
    }
    p.elements = elements_;
    if (__builtin_mul_overflow(elements_ / denominator, numerator, &p.consumed)) {
      return InvalidArgument("a branch would need more than 2^63 elements of the input");
    }
    MR_RETURN_IF_ERROR(BindAll(ctx, &p.functions));
    return DatasetRef(MakeRef<BranchDataset>(
        spec(), std::move(p), [](const RefPtr<const BranchDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(c));
          return std::make_unique<BranchIterator>(self, std::move(under));
        }));
  }

  // Each with as many of the captured values as other_arguments_lengths says.
  Status BindAll(const KernelContext& ctx, std::vector<CapturedFunction>* bound) {
    MR_ASSIGN_OR_RETURN(const Element captured, KeptInputs(ctx, "other_arguments"));
    size_t at = 0;
    for (size_t i = 0; i < functions_.size(); ++i) {
      const int64_t n = captured_[i];
      if (n < 0 || static_cast<uint64_t>(n) > captured.size() - at) {
        return InvalidArgument("other_arguments_lengths do not add up to the ", captured.size(), " other_arguments");
      }
      const auto begin = captured.begin() + static_cast<std::ptrdiff_t>(at);
      MR_ASSIGN_OR_RETURN(
          CapturedFunction f,
          functions_[i]->Bind(
              ctx.step().cancellation, {DType::kVariant}, Element(begin, begin + static_cast<std::ptrdiff_t>(n))));
      bound->push_back(std::move(f));
      at += static_cast<size_t>(n);
    }
    if (at == captured.size()) return absl::OkStatus();
    return InvalidArgument(
        "other_arguments_lengths add up to ", at, ", there are ", captured.size(), " other_arguments");
  }

  std::vector<std::unique_ptr<FunctionAttr>> functions_;
  std::vector<int64_t> captured_;
  int64_t elements_ = 0;
};

}  // namespace

void RegisterDatasetBranchKernels(KernelRegistry& r) { r.Add<BranchKernel>({.op = "ChooseFastestBranchDataset"}); }

}  // namespace millrace
