// SPDX-License-Identifier: Apache-2.0
// Data sets whose iterators keep something from one element to the next: a state, what was seen, groups of elements.
#include <map>

#include "base/hash_map.h"
#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/data/dataset_function_kernel.h"

namespace millrace {
namespace {

// ---- Scan: (state, element) -> (state, output) ----

struct Scan {
  DatasetRef input;
  Element initial;
  CapturedFunction function;
  bool keeps_count = false;  // a call may not end the sequence
};
using ScanDataset = Derived<Scan>;

class ScanIterator final : public DataIterator {
 public:
  ScanIterator(RefPtr<const ScanDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)), state_(dataset_->params().initial) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    Element next;
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &next));
    if (!found) return false;
    Element results;
    const Status s = dataset_->params().function.Run(ctx, WithBehind(state_, next), &results);
    if (absl::IsOutOfRange(s)) {  // the function says that it is over
      if (!dataset_->params().keeps_count) return false;
      return InvalidArgument("Function invocation produced OutOfRangeError: ", s.message());
    }
    MR_RETURN_IF_ERROR(s);
    if (results.size() < state_.size()) return InvalidArgument("the function of a scan returns no state");
    for (size_t i = 0; i < state_.size(); ++i) {
      if (results[i].dtype() != state_[i].dtype()) {
        return InvalidArgument("component ", i, " of the state is ", DTypeName(state_[i].dtype()),
                               ", the function gave ", DTypeName(results[i].dtype()));
      }
      state_[i] = results[i];
    }
    element->assign(results.begin() + static_cast<std::ptrdiff_t>(state_.size()), results.end());
    MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    return true;
  }

 private:
  const RefPtr<const ScanDataset> dataset_;
  const DataIteratorPtr input_;
  Element state_;
};

class ScanKernel final : public FunctionsKernel {
 public:
  ScanKernel() : FunctionsKernel({"f"}) {}
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(keeps_count_, init.Attr<bool>("preserve_cardinality"));
    return FunctionsKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Scan scan;
    MR_ASSIGN_OR_RETURN(scan.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(scan.initial, KeptInputs(ctx, "initial_state"));
    scan.keeps_count = keeps_count_;
    MR_ASSIGN_OR_RETURN(
        scan.function, Bind(ctx, 0, Joined(TypesOf(scan.initial), scan.input->spec().types), "other_arguments"));
    return DatasetRef(MakeRef<ScanDataset>(
        spec(), std::move(scan),
        [](const RefPtr<const ScanDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr input, self->params().input->MakeIterator(c));
          return std::make_unique<ScanIterator>(self, std::move(input));
        }));
  }

 private:
  bool keeps_count_ = false;
};

// ---- TakeWhile ----

struct While {
  DatasetRef input;
  CapturedFunction predicate;
};
using WhileDataset = Derived<While>;

class WhileIterator final : public DataIterator {
 public:
  WhileIterator(RefPtr<const WhileDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (!input_) return false;
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
    if (!found) return false;
    MR_RETURN_IF_ERROR(OwnMemory(element));  // once, for the function and for who reads it here
    Element results;
    MR_RETURN_IF_ERROR(dataset_->params().predicate.Run(ctx, *element, &results));
    if (results.size() != 1 || results[0].dtype() != DType::kBool || results[0].num_elements() != 1) {
      return InvalidArgument("`predicate` must returns a scalar bool tensor.");
    }
    if (*results[0].data<bool>()) return true;
    input_.reset();
    element->clear();
    return false;
  }

 private:
  const RefPtr<const WhileDataset> dataset_;
  DataIteratorPtr input_;  // null: it is over
};

class WhileKernel final : public FunctionsKernel {
 public:
  WhileKernel() : FunctionsKernel({"predicate"}) {}
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    While w;
    MR_ASSIGN_OR_RETURN(w.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(w.predicate, Bind(ctx, 0, w.input->spec().types, "other_arguments"));
    return DatasetRef(MakeRef<WhileDataset>(
        spec(), std::move(w), [](const RefPtr<const WhileDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr input, self->params().input->MakeIterator(c));
          return std::make_unique<WhileIterator>(self, std::move(input));
        }));
  }
};

// ---- Unique and IgnoreErrors ----

class UniqueIterator final : public DataIterator {
 public:
  explicit UniqueIterator(DataIteratorPtr input) : input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (true) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      element->clear();
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
      if (!found) return false;
      if (element->size() != 1) return InvalidArgument("UniqueDataset takes elements of one component");
      const Tensor& t = (*element)[0];
      MR_ASSIGN_OR_RETURN(std::string key, KeyOf(t));
      if (seen_.insert(std::move(key)).second) return true;
    }
  }

 private:
  // The same of equal tensors alone: the shape, then the bytes, of strings behind their lengths.
  static StatusOr<std::string> KeyOf(const Tensor& t) {
    std::string key = absl::StrCat(t.shape().ToString(), ":");
    switch (t.dtype()) {
      case DType::kString:
        for (const TString& s : t.flat<TString>()) absl::StrAppend(&key, s.view().size(), ":", s.view());
        return key;
      case DType::kInt32:
      case DType::kInt64: key.append(static_cast<const char*>(t.raw()), t.TotalBytes()); return key;
      default: return InvalidArgument("UniqueDataset takes int32, int64 or string, got ", DTypeName(t.dtype()));
    }
  }
  const DataIteratorPtr input_;
  HashSet<std::string> seen_;
};

class IgnoreErrorsIterator final : public DataIterator {
 public:
  explicit IgnoreErrorsIterator(DataIteratorPtr input) : input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (true) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      element->clear();
      const StatusOr<bool> found = input_->Next(ctx, element);
      if (found.ok() || absl::IsCancelled(found.status()) || absl::IsResourceExhausted(found.status())) return found;
    }
  }

 private:
  const DataIteratorPtr input_;
};

template <typename Iterator>
class PlainKernel final : public DatasetKernel {
  using PlainDataset = Derived<DatasetRef>;
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    return DatasetRef(MakeRef<PlainDataset>(
        spec(), std::move(input),
        [](const RefPtr<const PlainDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr under, self->params()->MakeIterator(c));
          return std::make_unique<Iterator>(std::move(under));
        }));
  }
};

// ---- DirectedInterleave: elements of several data sets, as a data set of their numbers says ----

struct Directed {
  DatasetRef selector;
  std::vector<DatasetRef> inputs;
  bool stop_on_empty = false;  // the first that ends is the end of all
};
using DirectedDataset = Derived<Directed>;

class DirectedIterator final : public DataIterator {
 public:
  DirectedIterator(DataIteratorPtr selector, std::vector<DataIteratorPtr> inputs, bool stop_on_empty)
      : selector_(std::move(selector)),
        inputs_(std::move(inputs)),
        open_(inputs_.size()),
        stop_on_empty_(stop_on_empty) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (open_ > 0) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      Element choice;
      MR_ASSIGN_OR_RETURN(const bool more, selector_->Next(ctx, &choice));
      if (!more) {
        open_ = 0;
        return false;
      }
      MR_ASSIGN_OR_RETURN(const int64_t which, OneInt64(choice, "selector_input_dataset"));
      if (which < 0 || which >= static_cast<int64_t>(inputs_.size())) {
        return InvalidArgument("Selector index out of range: ", which, " is not in [0, ", inputs_.size(), ")");
      }
      DataIteratorPtr& input = inputs_[static_cast<size_t>(which)];
      if (!input) continue;  // it has ended
      element->clear();
      MR_ASSIGN_OR_RETURN(const bool found, input->Next(ctx, element));
      if (found) return true;
      input.reset();
      open_ = stop_on_empty_ ? 0 : open_ - 1;
    }
    return false;
  }

 private:
  const DataIteratorPtr selector_;
  std::vector<DataIteratorPtr> inputs_;  // null: that one has ended
  size_t open_;
  const bool stop_on_empty_;
};

class DirectedKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("stop_on_empty_dataset")) {
      MR_ASSIGN_OR_RETURN(stop_on_empty_, init.Attr<bool>("stop_on_empty_dataset"));
    }
    return DatasetKernel::Init(init);
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Directed d;
    d.stop_on_empty = stop_on_empty_;
    MR_ASSIGN_OR_RETURN(d.selector, DatasetOf(ctx.input(0), "selector_input_dataset"));
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(i), "data_input_datasets"));
      MR_RETURN_IF_ERROR(CheckSpec(spec(), input->spec()));
      d.inputs.push_back(std::move(input));
    }
    return DatasetRef(MakeRef<DirectedDataset>(
        spec(), std::move(d),
        [](const RefPtr<const DirectedDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr selector, self->params().selector->MakeIterator(c));
          std::vector<DataIteratorPtr> inputs;
          for (const DatasetRef& input : self->params().inputs) {
            MR_ASSIGN_OR_RETURN(DataIteratorPtr one, input->MakeIterator(c));
            inputs.push_back(std::move(one));
          }
          return std::make_unique<DirectedIterator>(
              std::move(selector), std::move(inputs), self->params().stop_on_empty);
        }));
  }

  bool stop_on_empty_ = false;
};

// ---- GroupByWindow ----

using Elements = std::vector<Element>;
using ElementsDataset = Derived<Elements>;

class ElementsIterator final : public DataIterator {
 public:
  explicit ElementsIterator(RefPtr<const ElementsDataset> d) : dataset_(std::move(d)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    MR_RETURN_IF_ERROR(ctx.KeepGoing());
    if (at_ == dataset_->params().size()) return false;
    *element = dataset_->params()[at_++];
    return true;
  }

 private:
  const RefPtr<const ElementsDataset> dataset_;
  size_t at_ = 0;
};

struct Groups {
  DatasetRef input;
  CapturedFunction key, reduce, window_size;
};
using GroupsDataset = Derived<Groups>;

class WindowsIterator final : public DataIterator {
 public:
  WindowsIterator(RefPtr<const GroupsDataset> d, DataIteratorPtr input)
      : dataset_(std::move(d)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    while (true) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      if (current_) {
        element->clear();
        MR_ASSIGN_OR_RETURN(const bool found, current_->Next(ctx, element));
        if (found) {
          MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
          return true;
        }
        current_.reset();
      }
      if (!input_) {
        if (groups_.empty()) return false;
        MR_RETURN_IF_ERROR(Reduce(ctx, groups_.begin()));
        continue;
      }
      Element next;
      MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, &next));
      if (!found) {
        input_.reset();
        continue;
      }
      Element results;
      MR_RETURN_IF_ERROR(dataset_->params().key.Run(ctx, next, &results));
      MR_ASSIGN_OR_RETURN(const int64_t key, OneInt64(results, "key_func"));
      auto group = groups_.find(key);
      if (group == groups_.end()) {
        MR_ASSIGN_OR_RETURN(const int64_t size, WindowSize(ctx, key));
        group = groups_.emplace(key, Group{size, {}}).first;
      }
      group->second.elements.push_back(std::move(next));
      if (static_cast<int64_t>(group->second.elements.size()) == group->second.size) {
        MR_RETURN_IF_ERROR(Reduce(ctx, group));
      }
    }
  }

 private:
  struct Group {
    int64_t size;
    Elements elements;
  };
  StatusOr<int64_t> WindowSize(DataContext& ctx, int64_t key) {
    Element results;
    MR_RETURN_IF_ERROR(dataset_->params().window_size.Run(ctx, {Tensor::Scalar<int64_t>(key)}, &results));
    MR_ASSIGN_OR_RETURN(const int64_t size, OneInt64(results, "window_size_func"));
    if (size <= 0) return InvalidArgument("Window size must be greater than zero, but got ", size, ".");
    return size;
  }
  Status Reduce(DataContext& ctx, std::map<int64_t, Group>::iterator group) {
    const int64_t key = group->first;
    Elements elements = std::move(group->second.elements);
    groups_.erase(group);
    Tensor window = TensorOf(DatasetRef(MakeRef<ElementsDataset>(
        dataset_->params().input->spec(), std::move(elements),
        [](const RefPtr<const ElementsDataset>& self, DataContext&) -> StatusOr<DataIteratorPtr> {
          return std::make_unique<ElementsIterator>(self);
        })));
    if (!window.IsInitialized()) return ResourceExhausted("no memory for a window");
    Element results;
    MR_RETURN_IF_ERROR(dataset_->params().reduce.Run(ctx, {Tensor::Scalar<int64_t>(key), std::move(window)}, &results));
    if (results.size() != 1) return InvalidArgument("`reduce_func` must return a single scalar of dtype DT_VARIANT.");
    MR_ASSIGN_OR_RETURN(const DatasetRef made, DatasetOf(results[0], "what reduce_func returns"));
    MR_ASSIGN_OR_RETURN(current_, made->MakeIterator(ctx));
    return absl::OkStatus();
  }

  const RefPtr<const GroupsDataset> dataset_;
  DataIteratorPtr input_;  // null: it has ended
  std::map<int64_t, Group> groups_;
  DataIteratorPtr current_;  // over what a window was reduced to
};

class GroupByWindowKernel final : public FunctionsKernel {
 public:
  GroupByWindowKernel() : FunctionsKernel({"key_func", "reduce_func", "window_size_func"}) {}
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Groups g;
    MR_ASSIGN_OR_RETURN(g.input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(g.key, Bind(ctx, 0, g.input->spec().types, "key_func_other_arguments"));
    MR_ASSIGN_OR_RETURN(g.reduce, Bind(ctx, 1, {DType::kInt64, DType::kVariant}, "reduce_func_other_arguments"));
    MR_ASSIGN_OR_RETURN(g.window_size, Bind(ctx, 2, {DType::kInt64}, "window_size_func_other_arguments"));
    return DatasetRef(MakeRef<GroupsDataset>(
        spec(), std::move(g), [](const RefPtr<const GroupsDataset>& self, DataContext& c) -> StatusOr<DataIteratorPtr> {
          MR_ASSIGN_OR_RETURN(DataIteratorPtr input, self->params().input->MakeIterator(c));
          return std::make_unique<WindowsIterator>(self, std::move(input));
        }));
  }
};

}  // namespace

void RegisterDatasetStatefulKernels(KernelRegistry& r) {
  for (const char* op : {"ScanDataset", "ExperimentalScanDataset"}) r.Add<ScanKernel>({.op = op});
  for (const char* op : {"TakeWhileDataset", "ExperimentalTakeWhileDataset"}) r.Add<WhileKernel>({.op = op});
  for (const char* op : {"UniqueDataset", "ExperimentalUniqueDataset"}) r.Add<PlainKernel<UniqueIterator>>({.op = op});
  for (const char* op : {"IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"}) {
    r.Add<PlainKernel<IgnoreErrorsIterator>>({.op = op});
  }
  for (const char* op : {"DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"}) {
    r.Add<DirectedKernel>({.op = op});
  }
  for (const char* op : {"GroupByWindowDataset", "ExperimentalGroupByWindowDataset"}) {
    r.Add<GroupByWindowKernel>({.op = op});
  }
}

}  // namespace millrace
