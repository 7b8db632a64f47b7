// SPDX-License-Identifier: Apache-2.0
// Data sets that say how a pipeline is to be run, and change no element: threads, what rewriting would make of it.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "kernel/device_env.h"
#include "kernels/cpu/data/dataset_cardinality.h"
#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/data/dataset_wait.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {
namespace {

// The input.
class PassOnKernel : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override { return DatasetOf(ctx.input(0), "input_dataset"); }
};

// The input as a data set of its own, which what is asserted of pipelines sees.
using OneMoreDataset = Derived<DatasetRef>;

StatusOr<DatasetRef> OneMore(DatasetRef input) {
  ElementSpec spec = input->spec();
  return DatasetRef(MakeRef<OneMoreDataset>(
      std::move(spec), std::move(input),
      [](const RefPtr<const OneMoreDataset>& self, DataContext& ctx) { return self->params()->MakeIterator(ctx); }));
}

class ModelKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    return input->assertions().empty() ? std::move(input) : OneMore(std::move(input));
  }
};

// The input, of which all that works in parallel gives elements as they are ready.
class SloppyIterator final : public DataIterator {
 public:
  explicit SloppyIterator(DataIteratorPtr input) : input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    DataContext sloppy = ctx;
    sloppy.sloppy = true;
    return input_->Next(sloppy, element);
  }

 private:
  const DataIteratorPtr input_;
};

StatusOr<DatasetRef> Sloppy(DatasetRef input) {
  ElementSpec spec = input->spec();
  return DatasetRef(MakeRef<OneMoreDataset>(
      std::move(spec), std::move(input),
      [](const RefPtr<const OneMoreDataset>& self, DataContext& ctx) -> StatusOr<DataIteratorPtr> {
        MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params()->MakeIterator(ctx));
        return std::make_unique<SloppyIterator>(std::move(under));
      }));
}

// Nothing is rewritten but orders that need not be kept, so what rewriting should make of the pipeline cannot be
// asserted.
class OptimizeKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    const auto names = ctx.input(1).flat<TString>();
    if (std::any_of(names.begin(), names.end(), [](const TString& n) { return n.view() == "make_sloppy"; })) {
      return Sloppy(std::move(input));
    }
    const bool stays = input->assertions().empty() || names.empty();
    return stays ? std::move(input) : OneMore(std::move(input));
  }
  StatusOr<std::vector<NextAssertion>> Assertions(const KernelContext&) const override {
    return std::vector<NextAssertion>();
  }
};

class AssertNextKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    return OneMore(std::move(input));
  }
  StatusOr<std::vector<NextAssertion>> Assertions(const KernelContext& ctx) const override {
    MR_ASSIGN_OR_RETURN(std::vector<NextAssertion> all, DatasetKernel::Assertions(ctx));
    NextAssertion own;
    if (ctx.input(1).rank() != 1) return InvalidArgument("transformations must be a vector");
    for (const TString& name : ctx.input(1).flat<TString>()) own.wanted.emplace_back(name.view());
    all.push_back(std::move(own));
    return all;
  }
};

// The input, beside a number that must not be below `least`.
class NumberedPassOnKernel : public DatasetKernel {
 public:
  NumberedPassOnKernel(const char* what, int64_t least) : what_(what), least_(least) {}

 private:
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const int64_t number, ScalarInput(ctx, 1, what_));
    if (number < least_) return InvalidArgument("`", what_, "` must be >= ", least_);
    return DatasetOf(ctx.input(0), "input_dataset");
  }
  const char* const what_;
  const int64_t least_;
};
class MaxIntraOpKernel final : public NumberedPassOnKernel {
 public:
  MaxIntraOpKernel() : NumberedPassOnKernel("max_intra_op_parallelism", 0) {}
};
class PrivateThreadPoolKernel final : public NumberedPassOnKernel {
 public:
  PrivateThreadPoolKernel() : NumberedPassOnKernel("num_threads", 1) {}
};

// A pool of threads that nothing runs on: data sets have threads of their own.
class NominalThreadPool final : public Resource {
 public:
  std::string DebugString() const override { return "a thread pool of data sets"; }
};

class ThreadPoolHandleKernel final : public ResourceKernel<NominalThreadPool> {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t threads, init.Attr<int64_t>("num_threads"));
    if (threads <= 0) return InvalidArgument("`num_threads` must be greater than zero.");
    return ResourceKernel::Init(init);
  }

 private:
  absl::string_view TypeName() const override { return "tensorflow::data::ThreadPoolResource"; }
  StatusOr<RefPtr<NominalThreadPool>> Make(KernelContext&) override { return MakeRef<NominalThreadPool>(); }
  Status Verify(const NominalThreadPool&) const override { return absl::OkStatus(); }
};

class ThreadPoolKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(FindResource<NominalThreadPool>(ctx, 1).status());
    return DatasetOf(ctx.input(0), "input_dataset");
  }
};

// All inputs have the same elements; nothing says that another would be faster than the first.
class ChooseFastestKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef first, DatasetOf(ctx.input(0), "input_datasets"));
    int64_t count = CardinalityOf(*first);
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      MR_ASSIGN_OR_RETURN(const DatasetRef other, DatasetOf(ctx.input(i), "input_datasets"));
      MR_RETURN_IF_ERROR(CheckLike(first->spec(), other->spec(), i));
      const int64_t its = CardinalityOf(*other);
      if (count == kUnknownCardinality) count = its;
      if (its != kUnknownCardinality && its != count) {
        return InvalidArgument("All inputs to ChooseFastestDataset must have compatible cardinalities. Input ", i,
                               " has cardinality: ", its, ", while all prior inputs have cardinality: ", count, ".");
      }
    }
    return first;
  }
  static Status CheckLike(const ElementSpec& first, const ElementSpec& other, int i) {
    if (other.types != first.types) {
      return InvalidArgument("All inputs to ChooseFastestDataset must have the same output types. Input ", i,
                             " has output types: ", TypeNames(other), ". Expected: ", TypeNames(first), ".");
    }
    for (size_t c = 0; c < std::min(first.shapes.size(), other.shapes.size()); ++c) {
      if (first.shapes[c].Merge(other.shapes[c]).ok()) continue;
      return InvalidArgument(
          "All inputs to ChooseFastestDataset must have compatible output shapes. Component ", c, " of input ", i,
          " has shape: ", other.shapes[c].ToString(),
          ". Expected to be compatible with shape: ", first.shapes[c].ToString(), ".");
    }
    return absl::OkStatus();
  }
  static std::string TypeNames(const ElementSpec& spec) {
    return absl::StrJoin(spec.types, ", ", [](std::string* out, DType t) { absl::StrAppend(out, DTypeName(t)); });
  }
};

// ---- AssertCardinality: the elements, as many as there should be ----

struct Counted {
  DatasetRef input;
  int64_t count = 0;
};
using CountedDataset = Derived<Counted>;

class CountedIterator final : public DataIterator {
 public:
  CountedIterator(RefPtr<const CountedDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    const int64_t count = dataset_->params().count;
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
    if (!found && given_ != count) return Differs(" only ", given_);
    if (found && count != kInfiniteCardinality && given_ >= count) return Differs(" at least ", given_ + 1);
    given_ += found;
    return found;
  }

 private:
  Status Differs(const char* how, int64_t found) const {
    const auto elements = [](int64_t n) { return absl::StrCat(n, n == 1 ? " element" : " elements"); };
    const int64_t count = dataset_->params().count;
    return FailedPrecondition(
        "Input dataset was expected to contain ",
        count == kInfiniteCardinality ? "an infinite number of elements" : elements(count), " but contained", how,
        elements(found), ".");
  }

  const RefPtr<const CountedDataset> dataset_;
  const DataIteratorPtr input_;
  int64_t given_ = 0;
};

class AssertCardinalityKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Counted p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(p.count, ScalarInput(ctx, 1, "cardinality"));
    return DatasetRef(MakeRef<CountedDataset>(
        spec(), std::move(p),
        [](const RefPtr<const CountedDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(c));
          return std::make_unique<CountedIterator>(self, std::move(under));
        }));
  }
};

// ---- Sleep: the elements, each after a while ----

struct Sleep {
  DatasetRef input;
  absl::Duration pause;
};
using SleepDataset = Derived<Sleep>;

class SleepIterator final : public DataIterator {
 public:
  SleepIterator(RefPtr<const SleepDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    {
      const WakeOnCancel wake(ctx.cancellation, mu_);
      absl::MutexLock lock(&mu_);
      const auto cancelled = [&] { return ctx.cancellation.IsCancelled(); };
      ctx.env.Await(mu_, absl::Condition(&cancelled), dataset_->params().pause);
    }
    MR_RETURN_IF_ERROR(ctx.KeepGoing());
    return input_->Next(ctx, element);
  }

 private:
  const RefPtr<const SleepDataset> dataset_;
  const DataIteratorPtr input_;
  absl::Mutex mu_;
};

class SleepKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(const int64_t micros, ScalarInput(ctx, 1, "sleep_microseconds"));
    if (micros < 0) return InvalidArgument("`sleep_microseconds` must be >= 0");
    return DatasetRef(MakeRef<SleepDataset>(
        spec(), Sleep{std::move(input), absl::Microseconds(micros)},
        [](const RefPtr<const SleepDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(c));
          return std::make_unique<SleepIterator>(self, std::move(under));
        }));
  }
};

// What would need a library that is not here.
template <const char* const& kWhy>
class RefusedKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext&) override { return Unimplemented(kWhy); }
};
constexpr const char* kNoLmdb = "files of LMDB cannot be read here: write the records to a TFRecord file";
constexpr const char* kNoSql =
    "this op has no database here: tf.data.experimental.SqlDataset reads SQLite files by way of Python";

template <typename K>
void AddBoth(KernelRegistry& r, absl::string_view name) {
  r.Add<K>({.op = std::string(name)});
  r.Add<K>({.op = absl::StrCat("Experimental", name)});
}

}  // namespace

void RegisterDatasetHintKernels(KernelRegistry& r) {
  r.Add<OptimizeKernel>({.op = "OptimizeDataset"});
  r.Add<ModelKernel>({.op = "ModelDataset"});
  for (const char* op : {"FinalizeDataset", "OptionsDataset", "RewriteDataset"}) r.Add<PassOnKernel>({.op = op});
  r.Add<AssertCardinalityKernel>({.op = "AssertCardinalityDataset"});
  AddBoth<AssertNextKernel>(r, "AssertNextDataset");
  AddBoth<PassOnKernel>(r, "NonSerializableDataset");
  AddBoth<MaxIntraOpKernel>(r, "MaxIntraOpParallelismDataset");
  AddBoth<PrivateThreadPoolKernel>(r, "PrivateThreadPoolDataset");
  AddBoth<ThreadPoolHandleKernel>(r, "ThreadPoolHandle");
  AddBoth<ThreadPoolKernel>(r, "ThreadPoolDataset");
  AddBoth<ChooseFastestKernel>(r, "ChooseFastestDataset");
  AddBoth<SleepKernel>(r, "SleepDataset");
  AddBoth<RefusedKernel<kNoLmdb>>(r, "LMDBDataset");
  AddBoth<RefusedKernel<kNoSql>>(r, "SqlDataset");
}

}  // namespace millrace
