// SPDX-License-Identifier: Apache-2.0
// Data sets: descriptions of sequences of elements, each a list of tensors. A data set is immutable and lives in a
// variant scalar; what changes while it is read lives in an iterator over it.
//
// Iterators are pulled: an iterator asks those below it. They run on threads that may wait, end when the context's
// cancellation says so, and are used by one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "kernel/kernel_registry.h"
#include "kernel/step_function.h"

namespace millrace {

// The tensors of an element may be rows of larger ones, which lie anywhere in memory and keep all of it: `OwnMemory`.
using Element = std::vector<Tensor>;

struct StatsSink;

struct DataContext {
  CancellationManager& cancellation;
  Env& env;
  std::optional<int> inter_op_threads{};  // of functions, see FunctionCall
  StepTrace* trace = nullptr;             // of the step that waits, see FunctionCall
  const StatsSink* stats = nullptr;       // null: nothing is counted; it lives as long as the iterators that are told
  bool sloppy = false;                    // what works in parallel gives elements as they are ready
  // Of a thread that works ahead until `stop`.
  DataContext Ahead(CancellationManager& stop) const {
    return {.cancellation = stop, .env = env, .stats = stats, .sloppy = sloppy};
  }
  // Cancelled, whatever the reason's code is: to data sets OutOfRange is an end, and other errors may be passed over.
  Status KeepGoing() const {
    return cancellation.IsCancelled() ? Cancelled(cancellation.reason().message()) : absl::OkStatus();
  }
};

class DataIterator {
 public:
  virtual ~DataIterator() = default;
  // Gives the next element and true, or false at the end and ever after. An error need not be the end.
  virtual StatusOr<bool> Next(DataContext& ctx, Element* element) = 0;
  // Passes over elements until *passed, which counts them, is n: true, or false at the end. After an error it can go
  // on.
  virtual StatusOr<bool> Skip(DataContext& ctx, int64_t n, int64_t* passed) {
    for (; *passed < n; ++*passed) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      Element unwanted;
      MR_ASSIGN_OR_RETURN(const bool found, Next(ctx, &unwanted));
      if (!found) return false;
    }
    return true;
  }
};
using DataIteratorPtr = std::unique_ptr<DataIterator>;

struct ElementSpec {
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
};

// The node that made a data set: its op, its attributes, what it took, and where the functions are that it names.
struct DatasetOrigin {
  struct Op {
    std::string name;
    AttrMap attrs;
  };
  std::shared_ptr<const Op> op;
  Element inputs;                             // with what was drawn for those that stand for any
  Element given;                              // without
  std::shared_ptr<FunctionSource> functions;  // null: it names none
};

// What AssertNextDataset said of the data sets over it, nearest first, and the names of those that lie there.
struct NextAssertion {
  std::vector<std::string> wanted;
  std::vector<std::string> found;
};

class Dataset : public VariantValue {
 public:
  explicit Dataset(ElementSpec spec) : spec_(std::move(spec)) {}
  virtual StatusOr<DataIteratorPtr> MakeIterator(DataContext& ctx) const = 0;
  const ElementSpec& spec() const { return spec_; }
  std::string TypeName() const override { return "tensorflow::data::DatasetBase"; }
  std::string DebugString() const override { return "a data set"; }
  // Puts into the inputs that made it what it drew for those that stand for any, so that it can be made again as it is.
  virtual void SetDrawnInputs(Element*) const {}

  // How many data sets lie one over the other, with this one. Iterators call each other that deep.
  static constexpr int kMaxHeight = 500;
  int height() const { return height_; }
  // Null where no node made it, or one whose inputs were too large to be kept twice.
  const DatasetOrigin* origin() const { return origin_.get(); }
  // Of the data sets under it, and its own.
  const std::vector<NextAssertion>& assertions() const { return assertions_; }

 private:
  friend class DatasetKernel;
  const ElementSpec spec_;
  // Set before anybody else has the data set.
  int height_ = 1;
  std::unique_ptr<const DatasetOrigin> origin_;
  std::vector<NextAssertion> assertions_;
};
using DatasetRef = RefPtr<const Dataset>;

StatusOr<DatasetRef> DatasetOf(const Tensor& variant, absl::string_view what);
Tensor TensorOf(DatasetRef dataset);

// InvalidArgument where a data set that iterators begin with does not lie as an AssertNextDataset under it says.
Status CheckAssertions(const Dataset& last);

// InvalidArgument unless `got` can be what `want` says, in number, types and shapes.
Status CheckSpec(const ElementSpec& want, const ElementSpec& got);
Status CheckElement(const ElementSpec& want, const Element& got);

// Copies those that are parts of larger tensors. What leaves data sets, to graphs and functions, has been made so.
Status OwnMemory(Element* element);
// The checked element as the outputs of a kernel.
Status OutputElement(KernelContext& ctx, const ElementSpec& spec, Element element);

// Elements one below the other. Their components must have equal shapes; the elements are used up.
StatusOr<Element> StackElementRows(std::vector<Element>& elements, const std::vector<DType>& types);

// A function of the graph with the inputs that it captures, which come after its arguments.
class CapturedFunction {
 public:
  CapturedFunction() = default;
  CapturedFunction(RefPtr<StepFunction> function, Element captured)
      : function_(std::move(function)), captured_(std::move(captured)) {}
  // Cancelled where it failed and the context is cancelled, as KeepGoing.
  Status Run(DataContext& ctx, Element args, Element* results) const;

 private:
  RefPtr<StepFunction> function_;
  Element captured_;
};

// Base of the kernels that make a data set.
class DatasetKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override;
  Status Compute(KernelContext& ctx) final;

 protected:
  virtual StatusOr<DatasetRef> Make(KernelContext& ctx) = 0;
  virtual std::shared_ptr<FunctionSource> functions() const { return nullptr; }
  // What is asserted of the data sets over the one that is made.
  virtual StatusOr<std::vector<NextAssertion>> Assertions(const KernelContext& ctx) const;
  const ElementSpec& spec() const { return spec_; }

 private:
  ElementSpec spec_;
  std::shared_ptr<const DatasetOrigin::Op> op_;
};

// A function that a kernel's attribute names. Compiled when it is first wanted.
class FunctionAttr {
 public:
  FunctionAttr() = default;
  explicit FunctionAttr(FuncAttr function) : attr_(std::move(function)) {}
  Status Init(const KernelInit& init, absl::string_view attr);
  void SetSource(std::shared_ptr<FunctionSource> source) { source_ = std::move(source); }
  const std::shared_ptr<FunctionSource>& source() const { return source_; }
  // `cancellation`, null where there is no step, ends the compilation.
  StatusOr<CapturedFunction> Bind(CancellationManager* cancellation, const std::vector<DType>& arg_types,
                                  Element captured);

 private:
  FuncAttr attr_;
  std::shared_ptr<FunctionSource> source_;
  absl::Mutex mu_;
  std::vector<DType> compiled_for_ ABSL_GUARDED_BY(mu_);
  RefPtr<StepFunction> compiled_ ABSL_GUARDED_BY(mu_);
};

// Inputs of a kernel, checked and fit to outlive the step.
StatusOr<Element> KeptInputs(const KernelContext& ctx, absl::string_view arg);
StatusOr<int64_t> ScalarInput(const KernelContext& ctx, int i, absl::string_view what);  // int32, int64
StatusOr<bool> FlagInput(const KernelContext& ctx, int i, absl::string_view what);       // bool
// Output 0: a handle of a resource that nobody finds by name and that lives as long as its handles. Output 1, where
// there is one: what the op that deletes it wants to be given.
Status OutputAnonymous(KernelContext& ctx, absl::string_view type_name, RefPtr<Resource> resource);

void RegisterDatasetKernels(KernelRegistry& registry);  // all of them
void RegisterDatasetSourceKernels(KernelRegistry& registry);
void RegisterDatasetSequenceKernels(KernelRegistry& registry);
void RegisterDatasetBatchKernels(KernelRegistry& registry);
void RegisterDatasetShuffleKernels(KernelRegistry& registry);
void RegisterDatasetFunctionKernels(KernelRegistry& registry);
void RegisterDatasetPrefetchKernels(KernelRegistry& registry);
void RegisterDatasetIteratorKernels(KernelRegistry& registry);
void RegisterSavedIteratorKernels(KernelRegistry& registry);
void RegisterDatasetCacheKernels(KernelRegistry& registry);
void RegisterDatasetDeviceKernels(KernelRegistry& registry);
void RegisterDatasetGeneratorKernels(KernelRegistry& registry);
void RegisterDatasetStatefulKernels(KernelRegistry& registry);
void RegisterDatasetRowKernels(KernelRegistry& registry);
void RegisterDatasetReducerKernels(KernelRegistry& registry);
void RegisterDatasetHintKernels(KernelRegistry& registry);
void RegisterDatasetFileKernels(KernelRegistry& registry);
void RegisterDatasetStatsKernels(KernelRegistry& registry);
void RegisterDatasetCsvKernels(KernelRegistry& registry);
void RegisterDatasetMapAndBatchKernels(KernelRegistry& registry);
void RegisterDatasetParallelInterleaveKernels(KernelRegistry& registry);
void RegisterDatasetCardinalityKernels(KernelRegistry& registry);
void RegisterDatasetAutoShardKernels(KernelRegistry& registry);
void RegisterDatasetBranchKernels(KernelRegistry& registry);
void RegisterDatasetSnapshotKernels(KernelRegistry& registry);

}  // namespace millrace
