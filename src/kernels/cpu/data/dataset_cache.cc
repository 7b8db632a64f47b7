// SPDX-License-Identifier: Apache-2.0
// Data sets that keep their elements, in memory or in files.
//
// The first iteration that comes to the end fills the cache; later ones read it. In files it is a checkpoint whose
// tensors are called by element and component, as TensorFlow calls them. While one iterator writes, a file beside it
// keeps others from beginning.
#include "absl/strings/str_format.h"
#include "io/bundle_reader.h"
#include "io/bundle_writer.h"
#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {
namespace {

// ---- In memory ----

// The elements of the first iteration that has come to the end.
class MemoryCache final : public Resource {
 public:
  bool IsComplete() const {
    absl::MutexLock lock(&mu_);
    return complete_;
  }
  void Complete(std::vector<Element> elements) {
    absl::MutexLock lock(&mu_);
    if (!complete_) elements_ = std::move(elements);
    complete_ = true;
  }
  // Of a complete cache, which does not change any more.
  const std::vector<Element>& elements() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return elements_; }
  std::string DebugString() const override { return "a memory cache"; }

 private:
  mutable absl::Mutex mu_;
  bool complete_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Element> elements_ ABSL_GUARDED_BY(mu_);
};

struct Cached {
  DatasetRef input;
  RefPtr<MemoryCache> memory;  // null: in files
  std::string prefix{};
};
using CachedDataset = Derived<Cached>;
using CachedRef = RefPtr<const CachedDataset>;

class MemoryReader final : public DataIterator {
 public:
  explicit MemoryReader(CachedRef dataset) : dataset_(std::move(dataset)) {}
  StatusOr<bool> Next(DataContext&, Element* element) override {
    const std::vector<Element>& elements = dataset_->params().memory->elements();
    if (at_ >= elements.size()) return false;
    *element = elements[at_++];
    return true;
  }

 private:
  const CachedRef dataset_;
  size_t at_ = 0;
};

class MemoryWriter final : public DataIterator {
 public:
  MemoryWriter(CachedRef dataset, DataIteratorPtr input) : dataset_(std::move(dataset)), input_(std::move(input)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (!input_) return false;
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
    if (found) {
      seen_.push_back(*element);
      return true;
    }
    input_.reset();
    dataset_->params().memory->Complete(std::move(seen_));
    return false;
  }

 private:
  const CachedRef dataset_;
  DataIteratorPtr input_;  // null: it has ended
  std::vector<Element> seen_;
};

// ---- In files ----

constexpr size_t kMostElements = 10000000;

std::string KeyOf(size_t element, size_t component, size_t components) {
  const int width = static_cast<int>(absl::StrCat(components - 1).size());
  return absl::StrFormat("%7u_%*u", element, width, component);
}

std::string IndexFile(const std::string& prefix) { return absl::StrCat(prefix, ".index"); }

class FileReader final : public DataIterator {
 public:
  static StatusOr<DataIteratorPtr> New(Env& env, const CachedRef& dataset) {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> reader, BundleReader::Open(env, dataset->params().prefix));
    const size_t components = dataset->spec().types.size(), tensors = reader->Names().size();
    if (tensors % components != 0) {
      return DataLoss("cache ", dataset->params().prefix, " holds ", tensors, " tensors, which are no elements of ",
                      components, " components");
    }
    return std::make_unique<FileReader>(dataset, std::move(reader), tensors / components);
  }
  FileReader(CachedRef dataset, std::unique_ptr<BundleReader> reader, size_t elements)
      : dataset_(std::move(dataset)), reader_(std::move(reader)), elements_(elements) {}
  StatusOr<bool> Next(DataContext&, Element* element) override {
    if (at_ >= elements_) return false;
    const size_t components = dataset_->spec().types.size();
    element->clear();
    for (size_t c = 0; c < components; ++c) {
      MR_ASSIGN_OR_RETURN(Tensor value, reader_->Read(KeyOf(at_, c, components)));
      element->push_back(std::move(value));
    }
    MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    ++at_;
    return true;
  }

 private:
  const CachedRef dataset_;
  const std::unique_ptr<BundleReader> reader_;
  const size_t elements_;
  size_t at_ = 0;
};

// Writes what it passes on. An iterator that goes before it has come to the end leaves nothing.
class FileWriter final : public DataIterator {
 public:
  FileWriter(Env& env, CachedRef dataset, DataIteratorPtr input)
      : env_(env), dataset_(std::move(dataset)), input_(std::move(input)) {}
  ~FileWriter() override { Unlock().IgnoreError(); }

  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (!input_) return false;
    if (!locked_) MR_RETURN_IF_ERROR(Lock());
    MR_ASSIGN_OR_RETURN(const bool found, input_->Next(ctx, element));
    if (found) {
      if (at_ >= kMostElements) return OutOfRange("a cache in files holds at most ", kMostElements, " elements");
      for (size_t c = 0; c < element->size(); ++c) {
        MR_RETURN_IF_ERROR(writer_->Add(KeyOf(at_, c, element->size()), (*element)[c]));
      }
      ++at_;
      return true;
    }
    MR_RETURN_IF_ERROR(writer_->Finish());
    input_.reset();
    MR_RETURN_IF_ERROR(Unlock());
    return false;
  }

 private:
  const std::string& prefix() const { return dataset_->params().prefix; }
  std::string LockFile() const { return absl::StrCat(prefix(), ".lockfile"); }

  Status Lock() {
    if (env_.FileExists(IndexFile(prefix()))) {
      return AlreadyExists("cache ", prefix(), " has been completed by another iterator; initialize this one again");
    }
    if (env_.FileExists(LockFile())) {
      return AlreadyExists(
          "There appears to be a concurrent caching iterator running: ", LockFile(),
          " exists. Where nothing else uses this cache, delete that file and initialize the iterator "
          "again.");
    }
    MR_RETURN_IF_ERROR(WriteFileAtomically(env_, LockFile(), "an iterator writes this cache\n"));
    locked_ = true;
    MR_ASSIGN_OR_RETURN(writer_, BundleWriter::Open(env_, prefix()));
    return absl::OkStatus();
  }
  Status Unlock() {
    if (!locked_) return absl::OkStatus();
    locked_ = false;
    writer_.reset();
    return env_.DeleteFile(LockFile());
  }

  Env& env_;
  const CachedRef dataset_;
  DataIteratorPtr input_;  // null: it has ended
  std::unique_ptr<BundleWriter> writer_;
  bool locked_ = false;
  size_t at_ = 0;
};

StatusOr<DataIteratorPtr> NewCacheIterator(const CachedRef& dataset, DataContext& ctx) {
  const Cached& p = dataset->params();
  if (p.memory) {
    if (p.memory->IsComplete()) return std::make_unique<MemoryReader>(dataset);
  } else if (ctx.env.FileExists(IndexFile(p.prefix))) {
    return FileReader::New(ctx.env, dataset);
  }
  MR_ASSIGN_OR_RETURN(DataIteratorPtr input, p.input->MakeIterator(ctx));
  if (p.memory) return std::make_unique<MemoryWriter>(dataset, std::move(input));
  return std::make_unique<FileWriter>(ctx.env, dataset, std::move(input));
}

// CacheDataset has a cache of its own, CacheDatasetV2 that of a resource.
class CacheKernel final : public DatasetKernel {
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Cached cached;
    MR_ASSIGN_OR_RETURN(cached.input, DatasetOf(ctx.input(0), "input_dataset"));
    if (ctx.input(1).rank() != 0) return InvalidArgument("filename must be a scalar");
    cached.prefix = ctx.input(1).data<TString>()->str();
    if (cached.prefix.empty() && ctx.num_inputs() > 2) {
      MR_ASSIGN_OR_RETURN(cached.memory, FindResource<MemoryCache>(ctx, 2));
    } else if (cached.prefix.empty()) {
      cached.memory = MakeRef<MemoryCache>();
    }
    return DatasetRef(MakeRef<CachedDataset>(spec(), std::move(cached), &NewCacheIterator));
  }
};

}  // namespace

void RegisterDatasetCacheKernels(KernelRegistry& r) {
  for (const char* op : {"CacheDataset", "CacheDatasetV2"}) r.Add<CacheKernel>({.op = op});
  r.AddFn({.op = "AnonymousMemoryCache"}, [](KernelContext& ctx) -> Status {
    return OutputAnonymous(ctx, "tensorflow::data::MemoryCache", MakeRef<MemoryCache>());
  });
  // The cache goes with its last handle.
  r.AddFn({.op = "DeleteMemoryCache"}, [](KernelContext&) -> Status { return absl::OkStatus(); });
}

}  // namespace millrace
