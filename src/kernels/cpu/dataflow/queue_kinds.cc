// SPDX-License-Identifier: Apache-2.0
// The kinds of queues: in which order elements leave.
#include <deque>
#include <map>

#include "absl/strings/str_join.h"
#include "base/env.h"
#include "kernels/cpu/dataflow/queue.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

class FifoQueue : public Queue {
 public:
  explicit FifoQueue(Options options) : Queue(std::move(options)) {}

 private:
  void Push(Element element) override { elements_.push_back(std::move(element)); }
  Element Pop() override {
    Element front = std::move(elements_.front());
    elements_.pop_front();
    return front;
  }
  void PutBack(Element element) override { elements_.push_front(std::move(element)); }
  int64_t Stored() const override { return static_cast<int64_t>(elements_.size()); }

  std::deque<Element> elements_;
};

class RandomShuffleQueue final : public Queue {
 public:
  RandomShuffleQueue(Options options, int64_t min_after_dequeue, Philox generator)
      : Queue(std::move(options)), min_after_dequeue_(min_after_dequeue), random_(generator) {}

  Status Matches(const Queue& declared) const override {
    MR_RETURN_IF_ERROR(Queue::Matches(declared));
    const auto* other = dynamic_cast<const RandomShuffleQueue*>(&declared);
    if (other == nullptr || other->min_after_dequeue_ == min_after_dequeue_) return absl::OkStatus();
    return InvalidArgument("Shared queue '", options().name, "' has min_after_dequeue ", min_after_dequeue_,
                           " but requested min_after_dequeue was ", other->min_after_dequeue_, ".");
  }

 private:
  void Push(Element element) override { elements_.push_back(std::move(element)); }
  Element Pop() override {
    Element& drawn = elements_[random_() % elements_.size()];
    std::swap(drawn, elements_.back());
    Element element = std::move(elements_.back());
    elements_.pop_back();
    return element;
  }
  void PutBack(Element element) override { elements_.push_back(std::move(element)); }
  int64_t Stored() const override { return static_cast<int64_t>(elements_.size()); }
  int64_t Reserve() const override { return min_after_dequeue_; }
  bool MayShareBatch() const override { return false; }  // one of its rows may stay for long

  const int64_t min_after_dequeue_;
  PhiloxWords random_;
  std::vector<Element> elements_;
};

class PriorityQueue final : public Queue {
 public:
  explicit PriorityQueue(Options options) : Queue(std::move(options)) {}

 private:
  static int64_t PriorityOf(const Element& element) { return *element[0].data<int64_t>(); }
  void Push(Element element) override {
    const int64_t priority = PriorityOf(element);
    elements_.emplace(priority, std::move(element));
  }
  Element Pop() override { return std::move(elements_.extract(elements_.begin()).mapped()); }
  void PutBack(Element element) override {
    const int64_t priority = PriorityOf(element);
    elements_.emplace_hint(elements_.lower_bound(priority), priority, std::move(element));
  }
  int64_t Stored() const override { return static_cast<int64_t>(elements_.size()); }
  bool KeepsRest() const override { return false; }  // as TensorFlow's
  bool LeaveTogether() const override { return true; }
  bool MayShareBatch() const override { return false; }

  std::multimap<int64_t, Element> elements_;  // equal ones in the order of arrival
};

std::string Describe(const Queue::Options& o) {
  return absl::StrCat(
      "Types: ", absl::StrJoin(o.types, ", ", [](std::string* out, DType t) { out->append(DTypeName(t)); }),
      ", Shapes: [",
      absl::StrJoin(o.shapes, ", ", [](std::string* out, const PartialShape& s) { out->append(s.ToString()); }), "]");
}

Status CheckOptions(Queue::Options* o, bool shapes_open) {
  if (o->types.empty()) return InvalidArgument(o->kind, " needs at least one component type");
  if (!o->shapes.empty() && o->shapes.size() != o->types.size()) {
    return InvalidArgument("Different number of component types.  ", Describe(*o));
  }
  for (const PartialShape& s : o->shapes) {
    if (!shapes_open && !s.IsFullyDefined()) {
      return InvalidArgument("Shape ", s.ToString(), " of a component of ", o->kind, " is not fully defined");
    }
  }
  if (o->capacity < 0 || o->capacity > Queue::kUnbounded) o->capacity = Queue::kUnbounded;
  return absl::OkStatus();
}

}  // namespace

StatusOr<RefPtr<Queue>> NewFifoQueue(Queue::Options options) {
  options.kind = "FIFOQueue";
  MR_RETURN_IF_ERROR(CheckOptions(&options, false));
  return RefPtr<Queue>(MakeRef<FifoQueue>(std::move(options)));
}

StatusOr<RefPtr<Queue>> NewPaddingFifoQueue(Queue::Options options) {
  options.kind = "PaddingFIFOQueue";
  if (options.shapes.size() != options.types.size()) {
    return InvalidArgument("Shapes must be provided for all components, but received ", options.types.size(),
                           " dtypes and ", options.shapes.size(), " shapes.");
  }
  for (const PartialShape& s : options.shapes) {
    if (!s.has_rank())
      return InvalidArgument("shape <unknown> of a component of PaddingFIFOQueue must have known rank.");
  }
  MR_RETURN_IF_ERROR(CheckOptions(&options, true));
  return RefPtr<Queue>(MakeRef<FifoQueue>(std::move(options)));
}

StatusOr<RefPtr<Queue>> NewRandomShuffleQueue(Queue::Options options, int64_t min_after_dequeue, const Philox& random) {
  options.kind = "RandomShuffleQueue";
  MR_RETURN_IF_ERROR(CheckOptions(&options, false));
  if (min_after_dequeue < 0) {
    return InvalidArgument("min_after_dequeue must be >= 0, it is ", min_after_dequeue);
  }
  if (min_after_dequeue >= options.capacity) {
    return InvalidArgument("min_after_dequeue must be < capacity: ", min_after_dequeue, " vs. ", options.capacity);
  }
  return RefPtr<Queue>(MakeRef<RandomShuffleQueue>(std::move(options), min_after_dequeue, random));
}

StatusOr<RefPtr<Queue>> NewPriorityQueue(Queue::Options options) {
  options.kind = "PriorityQueue";
  options.types.insert(options.types.begin(), DType::kInt64);
  const bool open = options.shapes.empty();
  if (open) options.shapes.resize(options.types.size() - 1, PartialShape::Unknown());
  options.shapes.insert(options.shapes.begin(), PartialShape::Scalar());
  MR_RETURN_IF_ERROR(CheckOptions(&options, open));
  return RefPtr<Queue>(MakeRef<PriorityQueue>(std::move(options)));
}

}  // namespace millrace
