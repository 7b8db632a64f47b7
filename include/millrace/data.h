// SPDX-License-Identifier: Apache-2.0
// Data sets: elements of one or several tensors, read in order, with functions stated in C++.
//
//   auto examples = millrace::Dataset::FromTensorSlices(scope, {images, labels})
//                       .Shuffle(1000, /*seed=*/7)
//                       .Map([](Scope s, const Outputs& e) { return Outputs{s.Op("Neg", {e[0]}), e[1]}; })
//                       .Batch(64)
//                       .Repeat();
//   millrace::Iterator batches = examples.MakeIterator();
//   session.RunTargets({batches.initializer});   // then batches.next is the next batch; TF_OUT_OF_RANGE at the end
#pragma once

#include "millrace/function.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// A place in a data set.
struct Iterator {
  Operation initializer;  // begins at the first element
  Outputs next;           // the next element in each step
};

// Data sets are values: each function returns another one. Without exceptions, those after an error are null, which the
// scope's status tells.
class Dataset {
 public:
  Dataset() : scope_(Graph()) {}  // none
  // The slices along the first dimension of the tensors.
  static Dataset FromTensorSlices(const Scope& scope, const Outputs& tensors) {
    Dataset d(scope);
    for (const Output& t : tensors) {
      TensorSpec spec = t ? internal::SpecOf(d.scope_.graph(), t) : TensorSpec();
      if (spec.shape && !spec.shape->empty()) spec.shape->erase(spec.shape->begin());
      d.elements_.push_back(std::move(spec));
    }
    return d.Become("TensorSliceDataset", {tensors}, {{"Toutput_types", internal::TypesOf(d.elements_)}}, false);
  }
  // start, start + step, ... below `stop`: int64 scalars.
  static Dataset Range(const Scope& scope, int64_t start, int64_t stop, int64_t step = 1) {
    Dataset d(scope);
    d.elements_ = {{DType::kInt64, Shape{}}};
    return d.Become("RangeDataset", {start, stop, step});
  }
  // The records of TFRecord files: scalar strings. compression: "", "ZLIB" or "GZIP".
  static Dataset TFRecord(const Scope& scope, const std::vector<std::string>& files, const char* compression = "") {
    return OfFiles("TFRecordDataset", scope, files, compression);
  }
  // The lines of text files, without their ends.
  static Dataset TextLine(const Scope& scope, const std::vector<std::string>& files, const char* compression = "") {
    return OfFiles("TextLineDataset", scope, files, compression);
  }
  // Elements with the tensors of an element of each; as long as the shortest.
  static Dataset Zip(const std::vector<Dataset>& sets) {
    Dataset d(sets.empty() ? Scope(Graph()) : sets[0].scope_);
    Outputs handles;
    for (const Dataset& s : sets) {
      handles.push_back(s.handle_);
      d.elements_.insert(d.elements_.end(), s.elements_.begin(), s.elements_.end());
    }
    return d.Become("ZipDataset", {handles});
  }

  // `fn` of each element, given its tensors; its results are the new element. parallel > 1: so many at a time.
  Dataset Map(const Part& fn, int parallel = 1) const {
    Dataset d = *this;
    const std::string f = d.AddFunction("map", fn, &d.elements_);
    const Attrs attrs = {{"f", Attr::Function(f)}, {"Targuments", std::vector<DType>{}}};
    if (f.empty()) return d.Fail();
    if (parallel > 1) return d.Become("ParallelMapDataset", {handle_, Outputs{}, parallel}, attrs);
    return d.Become("MapDataset", {handle_, Outputs{}}, attrs);
  }
  // The elements of which `predicate`, one scalar bool, is true.
  Dataset Filter(const Part& predicate) const {
    Dataset d = *this;
    const std::string f = d.AddFunction("filter", predicate, nullptr);
    if (f.empty()) return d.Fail();
    return d.Become("FilterDataset", {handle_, Outputs{}},
                    {{"predicate", Attr::Function(f)}, {"Targuments", std::vector<DType>{}}});
  }
  // `size` elements stacked; the last ones, when they are fewer, are left out or a smaller batch.
  Dataset Batch(int64_t size, bool drop_remainder = false) const {
    Dataset d = *this;
    for (TensorSpec& e : d.elements_) {
      if (e.shape) e.shape->insert(e.shape->begin(), drop_remainder ? size : -1);
    }
    return d.Become("BatchDatasetV2", {handle_, size, drop_remainder});
  }
  // Each of the next `buffer` elements as likely to come. Both seeds 0: another order in each process.
  Dataset Shuffle(int64_t buffer, int64_t seed = 0, bool reshuffle_each_iteration = true) const {
    Dataset d = *this;
    return d.Become("ShuffleDataset", {handle_, buffer, seed, int64_t{0}},
                    {{"reshuffle_each_iteration", reshuffle_each_iteration}});
  }
  Dataset Repeat(int64_t count = -1) const { return With("RepeatDataset", count); }  // -1: for ever
  // The first `count` elements; -1: all.
  Dataset Take(int64_t count) const { return With("TakeDataset", count); }
  // The elements behind the first `count`; with -1 there are none.
  Dataset Skip(int64_t count) const { return With("SkipDataset", count); }
  // Elements are made while others are used, `buffer` at most.
  Dataset Prefetch(int64_t buffer) const { return With("PrefetchDataset", buffer); }
  // These elements, then those of `other`, which have the same types.
  Dataset Concatenate(const Dataset& other) const {
    Dataset d = *this;
    for (size_t i = 0; i < d.elements_.size() && i < other.elements_.size(); ++i) {
      if (d.elements_[i].shape != other.elements_[i].shape) d.elements_[i].shape.reset();
    }
    return d.Become("ConcatenateDataset", {handle_, other.handle_});
  }

  // What is known of the tensors of an element.
  const std::vector<TensorSpec>& elements() const { return elements_; }
  // The variant tensor that ops of data sets take.
  Output handle() const { return handle_; }
  // An iterator in the scope of the data set. Run its initializer first, and to begin again.
  Iterator MakeIterator() const {
    Scope s = scope_;
    const std::vector<DType> types = internal::TypesOf(elements_);
    const Attr shapes = internal::ShapesOf(elements_);
    Iterator it;
    const Operation iterator = s.Op(
        "Iterator", {}, {{"shared_name", ""}, {"container", ""}, {"output_types", types}, {"output_shapes", shapes}});
    it.initializer = s.Op("MakeIterator", {handle_, iterator});
    const Operation next = s.Op("IteratorGetNext", {iterator}, {{"output_types", types}, {"output_shapes", shapes}});
    for (int i = 0; next && i < next.num_outputs(); ++i) it.next.push_back(next[i]);
    return it;
  }

 private:
  explicit Dataset(const Scope& scope) : scope_(scope) {}
  static Dataset OfFiles(const char* op, const Scope& scope, const std::vector<std::string>& files,
                         const char* compression) {
    Dataset d(scope);
    d.elements_ = {{DType::kString, Shape{}}};
    const Output names = d.scope_.Const(Tensor::Strings({static_cast<int64_t>(files.size())}, files));
    return d.Become(op, {names, compression, int64_t{1} << 18}, {}, false, false);
  }
  Dataset With(const char* op, int64_t number) const {
    Dataset d = *this;
    return d.Become(op, {handle_, number});
  }
  Dataset Fail() {
    handle_ = Output();
    return *this;
  }
  Dataset Become(const char* op, const std::vector<Input>& inputs, Attrs attrs = {}, bool with_types = true,
                 bool with_shapes = true) {
    if (with_types) attrs.push_back({"output_types", internal::TypesOf(elements_)});
    if (with_shapes) attrs.push_back({"output_shapes", internal::ShapesOf(elements_)});
    handle_ = scope_.Op(op, inputs, attrs);
    return *this;
  }
  // The name that the function has in the graph; empty after an error.
  std::string AddFunction(const char* what, const Part& body, std::vector<TensorSpec>* results) {
    const std::string name =
        "Dataset_" + std::string(what) + "_" + std::to_string(Api().GraphNumFunctions(scope_.graph().get()));
    const auto keep = [&](const Status& s) {
      if (s.ok()) return true;
      scope_.Note(s);
      return false;
    };
#if MILLRACE_EXCEPTIONS
    const Function f = Function::Define(name, elements_, body);
    f.AddTo(scope_.graph());
    (void)keep;
#else
    const Result<Function> defined = Function::Define(name, elements_, body);
    if (!keep(defined.status())) return {};
    const Function& f = *defined;
    if (!keep(f.AddTo(scope_.graph()))) return {};
#endif
    if (results) *results = f.results();
    return name;
  }

  Scope scope_;
  Output handle_;
  std::vector<TensorSpec> elements_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
