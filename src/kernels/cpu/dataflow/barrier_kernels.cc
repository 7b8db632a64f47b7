// SPDX-License-Identifier: Apache-2.0
// CPU kernels: barriers. An element comes in parts, one component at a time, and is ready when all are there.
#include <algorithm>
#include <limits>
#include <map>

#include "kernels/cpu/dataflow/queue_elements.h"
#include "kernels/cpu/dataflow/queue_kernels.h"
#include "kernels/cpu/engine/waiting_resource.h"

namespace millrace {
namespace {

class Barrier final : public WaitingResource {
 public:
  struct Options {
    std::string name;
    std::vector<DType> types;
    std::vector<PartialShape> shapes;  // none: any
  };
  explicit Barrier(Options options) : options_(std::move(options)) {}
  const Options& options() const { return options_; }
  std::string DebugString() const override { return absl::StrCat("Barrier '", options_.name, "'"); }

  // The rest is for attempts.

  Status Insert(const Tensor& keys, size_t component, const Tensor& values) {
    if (closed_ && (cancelled_ || incomplete_.empty())) {
      return Cancelled(
          DebugString(), " is closed. Pending inserts cancelled: ", cancelled_,
          ". Number of new insertions: ", keys.num_elements(), ". Number of incomplete keys: ", incomplete_.size());
    }
    bool any_new = false;
    Status s;
    for (int64_t i = 0; s.ok() && i < keys.num_elements(); ++i) {
      s = InsertOne(std::string(keys.data<TString>()[i].view()), component, values, i, &any_new);
    }
    if (any_new) ++next_index_;
    return s;
  }

  // False: there are too few yet. `*taken` is how many to take.
  bool CanTake(int64_t n, bool small_batch, int64_t* taken, Status* status) const {
    *taken = n;
    const auto ready = static_cast<int64_t>(ready_.size());
    if (closed_) {
      const int64_t available = ready + static_cast<int64_t>(incomplete_.size());
      if (small_batch) *taken = std::min(n, std::max<int64_t>(ready, 1));  // nobody waits for more than one
      if (available < std::max<int64_t>(*taken, 1)) {
        *status = OutOfRange(
            DebugString(), " is closed and has insufficient elements (requested ", n, ", total size ", available, ")");
        return true;
      }
    }
    return ready >= *taken;
  }
  // Index, key, components.
  std::vector<Queue::Element> Take(int64_t n) {
    std::vector<Queue::Element> elements;
    for (; n > 0; --n) elements.push_back(std::move(ready_.extract(ready_.begin()).mapped()));
    return elements;
  }
  void PutBack(std::vector<Queue::Element>& elements) {
    for (auto e = elements.rbegin(); e != elements.rend(); ++e) {
      const int64_t index = *(*e)[0].data<int64_t>();
      ready_.emplace_hint(ready_.lower_bound(index), index, std::move(*e));
    }
  }

  Status Close(bool cancel) {
    // Who has closed it may still cancel.
    if (closed_ && (cancelled_ || !cancel)) return Cancelled(DebugString(), " is already closed.");
    closed_ = true;
    cancelled_ = cancel;
    if (cancel) incomplete_.clear();
    return absl::OkStatus();
  }
  int64_t ReadySize() const { return static_cast<int64_t>(ready_.size()); }
  int64_t IncompleteSize() const { return static_cast<int64_t>(incomplete_.size()); }

 private:
  struct Incomplete {
    Queue::Element element;  // index, key, components; those that are missing have no value
    size_t missing = 0;
  };

  Status InsertOne(const std::string& key, size_t component, const Tensor& values, int64_t row, bool* any_new) {
    auto found = incomplete_.find(key);
    if (found == incomplete_.end()) {
      if (closed_) return Cancelled(DebugString(), " is closed, but attempted to insert a brand new key: ", key);
      Incomplete made;
      made.element = {Tensor::Scalar(next_index_), Tensor::Scalar(TString(key))};
      made.element.resize(2 + options_.types.size());
      made.missing = options_.types.size();
      found = incomplete_.emplace(key, std::move(made)).first;
      *any_new = true;
    }
    Incomplete& entry = found->second;
    Tensor& part = entry.element[2 + component];
    if (part.IsInitialized()) {
      return InvalidArgument(
          "Key ", key, " already has a value for component ", component, " in barrier ", options_.name);
    }
    MR_ASSIGN_OR_RETURN(Queue::Element one, RowOfBatch({values}, row, false));
    part = std::move(one[0]);
    if (--entry.missing > 0) return absl::OkStatus();
    const int64_t index = *entry.element[0].data<int64_t>();
    ready_.emplace(index, std::move(entry.element));
    incomplete_.erase(found);
    return absl::OkStatus();
  }

  const Options options_;
  bool closed_ = false;
  bool cancelled_ = false;
  int64_t next_index_ = std::numeric_limits<int64_t>::min();
  std::map<std::string, Incomplete> incomplete_;
  std::multimap<int64_t, Queue::Element> ready_;  // by the index of the insertion that began it
};

class BarrierKernel final : public ResourceKernel<Barrier> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ResourceKernel::Init(init));
    options_.name = name().name;
    MR_ASSIGN_OR_RETURN(options_.types, init.Attr<std::vector<DType>>("component_types"));
    MR_ASSIGN_OR_RETURN(options_.shapes, init.Attr<std::vector<PartialShape>>("shapes"));
    MR_ASSIGN_OR_RETURN(const int64_t capacity, init.Attr<int64_t>("capacity"));
    if (capacity != -1) {
      return InvalidArgument("Barrier only accepts capacity=-1, not ", capacity,
                             ". Feed the inputs to your Barrier through a queue to enforce a limited capacity.");
    }
    if (!options_.shapes.empty() && options_.shapes.size() != options_.types.size()) {
      return InvalidArgument(
          "Barrier has ", options_.types.size(), " component types, but ", options_.shapes.size(), " shapes");
    }
    for (const PartialShape& s : options_.shapes) {
      if (!s.IsFullyDefined()) return InvalidArgument("Shape ", s.ToString(), " of a Barrier is not fully defined");
    }
    return absl::OkStatus();
  }

 private:
  absl::string_view TypeName() const override { return "Barrier"; }
  StatusOr<RefPtr<Barrier>> Make(KernelContext&) override { return MakeRef<Barrier>(options_); }
  Status Verify(const Barrier& b) const override {
    const bool same_types = b.options().types == options_.types;
    if (same_types && b.options().shapes == options_.shapes) return absl::OkStatus();
    return InvalidArgument("Shared barrier '", options_.name, "' has other component ", same_types ? "shapes" : "types",
                           " than requested");
  }
  Barrier::Options options_;
};

class InsertKernel final : public CallKernel<Barrier> {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(component_, init.Attr<int64_t>("component_index"));
    return absl::OkStatus();
  }

 private:
  Status Check(const KernelContext& ctx, const Barrier::Options& o) const {
    const Tensor &keys = ctx.input(1), &values = ctx.input(2);
    const auto c = static_cast<size_t>(component_);
    if (component_ < 0 || c >= o.types.size()) {
      return InvalidArgument("The component ID is out of range: ", component_, " of ", o.types.size(), " components");
    }
    if (values.dtype() != o.types[c]) {
      return InvalidArgument("component ", component_, " of barrier '", o.name, "' is ", DTypeName(o.types[c]),
                             ", the values are ", DTypeName(values.dtype()));
    }
    if (keys.rank() != 1) return InvalidArgument("keys must be a vector, got shape ", keys.shape().ToString());
    if (values.rank() == 0 || values.dim(0) < keys.dim(0)) {
      return InvalidArgument("there are ", keys.dim(0), " keys, but values of shape ", values.shape().ToString());
    }
    if (!o.shapes.empty() && !IsElementShape(o.shapes[c], values.shape().dims().subspan(1))) {
      return InvalidArgument("Shape mismatch: component ", component_, " of barrier '", o.name, "' has shape ",
                             o.shapes[c].ToString(), ", values have shape ", values.shape().ToString());
    }
    if (keys.dim(0) > 0 && values.num_elements() == 0) {
      return InvalidArgument("Tensors with no elements are not supported by barrier '", o.name, "': received shape ",
                             values.shape().ToString());
    }
    return absl::OkStatus();
  }
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, Barrier& barrier) override {
    MR_RETURN_IF_ERROR(Check(ctx, barrier.options()));
    return WaitingResource::Attempt([this, &ctx, &barrier](Status* s) {
      *s = barrier.Insert(ctx.input(1), static_cast<size_t>(component_), ctx.input(2));
      return true;
    });
  }
  int64_t component_ = 0;
};

class TakeKernel final : public CallKernel<Barrier> {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t timeout, init.Attr<int64_t>("timeout_ms"));
    if (timeout != -1) return InvalidArgument("Timeout not supported yet: timeout_ms is ", timeout, ", want -1");
    MR_ASSIGN_OR_RETURN(small_batch_, init.Attr<bool>("allow_small_batch"));
    MR_ASSIGN_OR_RETURN(types_, init.Attr<std::vector<DType>>("component_types"));
    return absl::OkStatus();
  }

 private:
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, Barrier& barrier) override {
    const Barrier::Options& o = barrier.options();
    if (types_ != o.types) return InvalidArgument("barrier '", o.name, "' has other component types than are taken");
    if (o.shapes.empty()) {
      return InvalidArgument("BarrierTakeMany needs components with shapes; barrier '", o.name, "' has none");
    }
    MR_ASSIGN_OR_RETURN(const int64_t n, ctx.input(1).IntScalar());
    if (n < 0) return InvalidArgument("BarrierTakeMany requested ", n, " < 0 elements");
    return WaitingResource::Attempt([this, &ctx, &barrier, n](Status* s) {
      int64_t taken = 0;
      if (!barrier.CanTake(n, small_batch_, &taken, s)) return false;
      if (s->ok()) *s = Deliver(ctx, barrier, taken);
      return true;
    });
  }
  WaitingResource::Line line() const override { return WaitingResource::Line::kTake; }
  static Status Deliver(KernelContext& ctx, Barrier& barrier, int64_t n) {
    std::vector<DType> types = {DType::kInt64, DType::kString};
    std::vector<PartialShape> shapes(2, PartialShape::Scalar());
    const Barrier::Options& o = barrier.options();
    types.insert(types.end(), o.types.begin(), o.types.end());
    shapes.insert(shapes.end(), o.shapes.begin(), o.shapes.end());
    std::vector<Queue::Element> elements = barrier.Take(n);
    StatusOr<Queue::Element> stacked = StackElements(types, shapes, elements);
    if (!stacked.ok()) {
      barrier.PutBack(elements);
      return stacked.status();
    }
    for (size_t c = 0; c < stacked->size(); ++c) ctx.set_output(static_cast<int>(c), std::move((*stacked)[c]));
    return absl::OkStatus();
  }
  bool small_batch_ = false;
  std::vector<DType> types_;
};

class CloseKernel final : public CallKernel<Barrier> {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(cancel_, init.Attr<bool>("cancel_pending_enqueues"));
    return absl::OkStatus();
  }

 private:
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext&, Barrier& barrier) override {
    return WaitingResource::Attempt([this, &barrier](Status* s) {
      *s = barrier.Close(cancel_);
      return true;
    });
  }
  bool cancel_ = false;
};

template <int64_t (Barrier::*kSize)() const>
Status Size(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Barrier> barrier, FindResource<Barrier>(ctx, 0));
  return OutputSize(ctx, 0, barrier->Locked([&] { return (*barrier.*kSize)(); }));
}

}  // namespace

void RegisterBarrierKernels(KernelRegistry& r) {
  r.Add<BarrierKernel>({.op = "Barrier"});
  r.Add<InsertKernel>({.op = "BarrierInsertMany"});
  r.Add<TakeKernel>({.op = "BarrierTakeMany"});
  r.Add<CloseKernel>({.op = "BarrierClose"});
  r.AddFn({.op = "BarrierReadySize"}, Size<&Barrier::ReadySize>);
  r.AddFn({.op = "BarrierIncompleteSize"}, Size<&Barrier::IncompleteSize>);
}

}  // namespace millrace
