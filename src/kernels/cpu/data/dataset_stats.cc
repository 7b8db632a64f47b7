// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data/dataset_stats.h"

#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {
namespace {

class AggregatorKernel final : public ResourceKernel<StatsAggregator> {
  absl::string_view TypeName() const override { return "tensorflow::data::StatsAggregator"; }
  StatusOr<RefPtr<StatsAggregator>> Make(KernelContext&) override { return MakeRef<StatsAggregator>(); }
  Status Verify(const StatsAggregator&) const override { return absl::OkStatus(); }
};

Status Summarize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<StatsAggregator> aggregator, FindResource<StatsAggregator>(ctx, 0));
  ctx.set_output(0, Tensor::Scalar(TString(wire::Encode(aggregator->ToSummary()))));
  return absl::OkStatus();
}

StatusOr<std::string> TextInput(const KernelContext& ctx, int i, absl::string_view what) {
  if (ctx.input(i).rank() != 0) return InvalidArgument(what, " must be a scalar");
  return ctx.input(i).data<TString>()->str();
}

// ---- Where the data sets below count ----

struct Counted {
  DatasetRef input;
  StatsSink sink;
};
using CountedDataset = Derived<Counted>;

class CountedIterator final : public DataIterator {
 public:
  CountedIterator(RefPtr<const CountedDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    DataContext below{ctx.cancellation, ctx.env, ctx.inter_op_threads, ctx.trace, &dataset_->params().sink};
    return input_->Next(below, element);
  }

 private:
  const RefPtr<const CountedDataset> dataset_;
  const DataIteratorPtr input_;
};

class SetAggregatorKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Counted c;
    MR_ASSIGN_OR_RETURN(c.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(c.sink.aggregator, FindResource<StatsAggregator>(ctx, 1));
    MR_ASSIGN_OR_RETURN(c.sink.prefix, TextInput(ctx, 2, "tag"));
    MR_RETURN_IF_ERROR(TextInput(ctx, 3, "counter_prefix").status());
    return DatasetRef(MakeRef<CountedDataset>(
        spec(), std::move(c),
        [](const RefPtr<const CountedDataset>& self, DataContext& data) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(data));
          return std::make_unique<CountedIterator>(self, std::move(under));
        }));
  }
};

// ---- What is counted of each element ----

struct Measured {
  DatasetRef input;
  std::string tag;
  bool bytes = false;  // of the element; else the microseconds that it took
};
using MeasuredDataset = Derived<Measured>;

class MeasuredIterator final : public DataIterator {
 public:
  MeasuredIterator(RefPtr<const MeasuredDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (ctx.stats == nullptr) return input_->Next(ctx, element);
    const Measured& m = dataset_->params();
    const int64_t begin = ctx.env.MonotonicNanos();
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
    if (!found) return false;
    double value = static_cast<double>(ctx.env.MonotonicNanos() - begin) / 1e3;
    if (m.bytes) {
      size_t total = 0;
      for (const Tensor& t : *element) total += t.TotalBytes();
      value = static_cast<double>(total);
    }
    ctx.stats->Add(m.tag, value);
    return true;
  }

 private:
  const RefPtr<const MeasuredDataset> dataset_;
  const DataIteratorPtr input_;
};

class MeasuredKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    bytes_ = init.op.name.ends_with("BytesProducedStatsDataset");
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Measured m;
    MR_ASSIGN_OR_RETURN(m.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(m.tag, TextInput(ctx, 1, "tag"));
    m.bytes = bytes_;
    return DatasetRef(MakeRef<MeasuredDataset>(
        spec(), std::move(m),
        [](const RefPtr<const MeasuredDataset>& self, DataContext& data) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params().input->MakeIterator(data));
          return std::make_unique<MeasuredIterator>(self, std::move(under));
        }));
  }
  bool bytes_ = false;
};

}  // namespace

void RegisterDatasetStatsKernels(KernelRegistry& r) {
  for (const std::string before : {"", "Experimental"}) {
    r.Add<AggregatorKernel>({.op = before + "StatsAggregatorHandle"});
    r.AddFn({.op = before + "StatsAggregatorSummary"}, Summarize);
    r.Add<SetAggregatorKernel>({.op = before + "SetStatsAggregatorDataset"});
    r.Add<MeasuredKernel>({.op = before + "LatencyStatsDataset"});
    r.Add<MeasuredKernel>({.op = before + "BytesProducedStatsDataset"});
  }
}

}  // namespace millrace
