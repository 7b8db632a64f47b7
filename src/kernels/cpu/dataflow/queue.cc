// SPDX-License-Identifier: Apache-2.0
// Two lines of waiters over one store. Whoever changes the store, or joins or leaves a line, serves the lines from
// their fronts until neither moves; whom that ends is told after the lock is released. Only who must wait registers
// with its step's cancellation.
#include "kernels/cpu/dataflow/queue.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/exceptions.h"
#include "kernel/stop_node.h"
#include "kernels/cpu/dataflow/queue_elements.h"

namespace millrace {

struct Queue::Waiter {
  enum class Kind : uint8_t { kEnqueue, kClose, kDequeue };
  Kind kind = Kind::kEnqueue;
  bool single = false;  // one element, not stacked
  bool up_to = false;
  bool ended = false;             // guarded by the queue's lock, as all that follows until then
  Element element;                // to enqueue, when single; else a batch
  int64_t next = 0;               // the first row of it that is not enqueued yet
  std::vector<Element> elements;  // dequeued so far
  int64_t wanted = 0;             // rows to enqueue, or elements to dequeue, in all
  Status status;
  DoneCallback done;
  ElementCallback done_element;
  CancellationManager* cancellation = nullptr;
  CancellationManager::Token token = CancellationManager::kInvalid;

  Status WhyCancelled() const noexcept {
    return WithPrefix(
        kind == Kind::kDequeue ? "Dequeue operation was cancelled: " : "Enqueue operation was cancelled: ",
        cancellation->reason());
  }
};

Queue::~Queue() = default;

std::string Queue::DebugString() const { return absl::StrCat(options_.kind, " '", options_.name, "'"); }

Status Queue::Matches(const Queue& declared) const {
  const Options& want = declared.options();
  const std::string shared = absl::StrCat("Shared queue '", options_.name, "' has ");
  const auto types = [](const Options& o) {
    return absl::StrJoin(o.types, ", ", [](std::string* out, DType t) { out->append(DTypeName(t)); });
  };
  const auto shapes = [](const Options& o) {
    return absl::StrCat(
        "[", absl::StrJoin(o.shapes, ",", [](std::string* out, const PartialShape& s) { out->append(s.ToString()); }),
        "]");
  };
  if (options_.kind != want.kind) {
    return InvalidArgument(
        shared, "type '", options_.kind, "' that does not match type of Node '", want.name, "': ", want.kind);
  }
  if (options_.capacity != want.capacity) {
    return InvalidArgument(shared, "capacity ", options_.capacity, " but requested capacity was ", want.capacity);
  }
  if (options_.types != want.types) {
    return InvalidArgument(
        shared, "component types ", types(options_), " but requested component types were ", types(want));
  }
  if (options_.shapes != want.shapes) {
    return InvalidArgument(
        shared, "component shapes ", shapes(options_), " but requested component shapes were ", shapes(want));
  }
  if (want.seeds != std::array<int64_t, 2>{0, 0} && options_.seeds != want.seeds) {  // without seeds any will do
    return InvalidArgument(shared, "random seeds (", absl::StrJoin(options_.seeds, ", "),
                           ") but requested seeds were (", absl::StrJoin(want.seeds, ", "), ")");
  }
  return absl::OkStatus();
}

Status Queue::CheckStackable() const {
  const auto has_rank = [](const PartialShape& s) { return s.has_rank(); };
  if (!options_.shapes.empty() && std::all_of(options_.shapes.begin(), options_.shapes.end(), has_rank)) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      options_.kind, "'s DequeueMany and DequeueUpTo require the components to have specified shapes.");
}

namespace {

Status CheckTypes(const Queue::Options& o, const Queue::Element& element) {
  if (element.size() != o.types.size()) {
    return InvalidArgument("Wrong number of components in tuple. Expected ", o.types.size(), ", got ", element.size());
  }
  for (size_t c = 0; c < element.size(); ++c) {
    if (element[c].dtype() == o.types[c]) continue;
    return InvalidArgument("Type mismatch in tuple component ", c, ". Expected ", DTypeName(o.types[c]), ", got ",
                           DTypeName(element[c].dtype()));
  }
  return absl::OkStatus();
}

}  // namespace

Status Queue::CheckElement(const Element& element) const {
  MR_RETURN_IF_ERROR(CheckTypes(options_, element));
  for (size_t c = 0; c < options_.shapes.size(); ++c) {
    const PartialShape& want = options_.shapes[c];
    if (IsElementShape(want, element[c].shape().dims())) continue;
    return InvalidArgument("Shape mismatch in tuple component ", c, ". Expected ", want.ToString(), ", got ",
                           element[c].shape().ToString());
  }
  return absl::OkStatus();
}

Status Queue::CheckBatch(const Element& batch) const {
  MR_RETURN_IF_ERROR(CheckTypes(options_, batch));
  for (size_t c = 0; c < batch.size(); ++c) {
    const Shape& got = batch[c].shape();
    if (got.rank() == 0) {
      return InvalidArgument("tuple component ", c, " is a scalar; EnqueueMany needs a first dimension to split");
    }
    if (got.dim(0) != batch[0].dim(0)) {
      return InvalidArgument("All input tensors must have the same size in the 0th dimension. Component ", c, " has ",
                             got.dim(0), ", and should have ", batch[0].dim(0));
    }
    if (options_.shapes.empty()) continue;
    const PartialShape& want = options_.shapes[c];
    if (IsElementShape(want, got.dims().subspan(1))) continue;
    std::vector<int64_t> whole = want.dims();
    whole.insert(whole.begin(), got.dim(0));
    return InvalidArgument("Shape mismatch in tuple component ", c, ". Expected ",
                           PartialShape::Of(std::move(whole)).ToString(), ", got ", got.ToString());
  }
  return absl::OkStatus();
}

// ---- The lines ----

int64_t Queue::Available() const { return Stored() - (closed_ ? 0 : Reserve()); }

bool Queue::TryEnqueue(Waiter& w) {
  if (closed_) {
    w.status = w.kind == Waiter::Kind::kClose
                   ? Cancelled("Queue '", options_.name, "' is already closed.")
                   : Cancelled(DebugString(), " is closed.");
    return true;
  }
  if (w.kind == Waiter::Kind::kClose) {
    closed_ = true;
    return true;
  }
  while (w.next < w.wanted && Stored() < options_.capacity) {
    if (w.single) {
      Push(std::move(w.element));
    } else {
      StatusOr<Element> row = RowOfBatch(w.element, w.next, MayShareBatch());
      if (!row.ok()) {
        w.status = row.status();
        return true;
      }
      Push(*std::move(row));
    }
    ++w.next;
  }
  return w.next == w.wanted;
}

bool Queue::TryDequeue(Waiter& w) {
  const auto missing = [&] { return w.wanted - static_cast<int64_t>(w.elements.size()); };
  const bool too_few = closed_ && Stored() < missing();
  const int64_t stored = Stored(), requested = missing();
  if (too_few && w.up_to && KeepsRest() && stored + static_cast<int64_t>(w.elements.size()) > 0) {
    w.wanted = stored + static_cast<int64_t>(w.elements.size());
  } else if (too_few) {
    if (KeepsRest()) {
      GiveBack(w);
    } else {
      for (int64_t i = 0; i < stored; ++i) w.elements.push_back(Pop());
    }
    w.status = OutOfRange(DebugString(), " is closed and has insufficient elements (requested ", requested,
                          ", current size ", stored, ")");
    return true;
  }
  if (LeaveTogether()) {
    if (requested > options_.capacity) {
      w.status = InvalidArgument(DebugString(), " gives elements in their order: it cannot give ", requested,
                                 " at once, its capacity is ", options_.capacity);
      return true;
    }
    if (Available() < requested) return false;
  }
  while (missing() > 0 && Available() > 0) w.elements.push_back(Pop());
  return missing() == 0;
}

void Queue::GiveBack(Waiter& w) {
  for (auto e = w.elements.rbegin(); e != w.elements.rend(); ++e) PutBack(std::move(*e));
  w.elements.clear();
}

void Queue::Serve(std::vector<WaiterPtr>* ended) {
  for (bool moved = true; moved;) {
    moved = false;
    while (!enqueuers_.empty()) {
      const int64_t stored = Stored();
      const bool end = TryEnqueue(*enqueuers_.front());
      moved |= end || Stored() != stored;
      if (!end) break;
      enqueuers_.front()->ended = true;
      ended->push_back(std::move(enqueuers_.front()));
      enqueuers_.pop_front();
    }
    while (!dequeuers_.empty()) {
      const int64_t stored = Stored();
      const bool end = TryDequeue(*dequeuers_.front());
      moved |= end || Stored() != stored;
      if (!end) break;
      dequeuers_.front()->ended = true;
      ended->push_back(std::move(dequeuers_.front()));
      dequeuers_.pop_front();
    }
  }
}

Queue::Line& Queue::LineOf(const Waiter& w) { return w.kind == Waiter::Kind::kDequeue ? dequeuers_ : enqueuers_; }

// The waiter itself is for the caller to end: that must not want for memory.
void Queue::Withdraw(const WaiterPtr& waiter, std::vector<WaiterPtr>* ended) {
  std::erase(LineOf(*waiter), waiter);
  waiter->ended = true;
  waiter->status = waiter->WhyCancelled();
  WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (waiter->kind == Waiter::Kind::kDequeue) GiveBack(*waiter);
    Serve(ended);
    return absl::OkStatus();
  }).IgnoreError();
}

void Queue::Wait(WaiterPtr waiter) {
  std::vector<WaiterPtr> ended;
  bool withdrawn = false;
  {
    absl::MutexLock lock(&mu_);
    LineOf(*waiter).push_back(waiter);
    Serve(&ended);
    if (!waiter->ended && waiter->cancellation != nullptr) {
      // Under the lock, since the step may be over as soon as it is released.
      waiter->token =
          waiter->cancellation->Register([queue = RefPtr<Queue>::Share(this), waiter] { queue->Cancel(waiter); });
      withdrawn = waiter->token == CancellationManager::kInvalid;
      if (withdrawn) Withdraw(waiter, &ended);
    }
  }
  if (withdrawn) End(*waiter);
  End(std::move(ended));
}

void Queue::Cancel(const WaiterPtr& waiter) {
  std::vector<WaiterPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    if (waiter->ended) return;
    Withdraw(waiter, &ended);
  }
  End(*waiter);
  End(std::move(ended));
}

// A registration whose step is being cancelled stays: its callback finds that the waiter has ended. To wait for it here
// could be to wait for oneself, since this may run inside that cancellation.
void Queue::End(Waiter& w) {
  if (w.token != CancellationManager::kInvalid && !w.cancellation->IsCancelled()) w.cancellation->Deregister(w.token);
  if (w.kind == Waiter::Kind::kDequeue) return EndDequeue(w);
  DoneCallback done = std::move(w.done);
  std::move(done)(std::move(w.status));
}

void Queue::End(std::vector<WaiterPtr> ended) {
  for (const WaiterPtr& w : ended) End(*w);
}

void Queue::EndDequeue(Waiter& w) {
  ElementCallback done = std::move(w.done_element);
  if (!w.status.ok()) return std::move(done)(std::move(w.status), {});
  if (w.single) return std::move(done)(absl::OkStatus(), std::move(w.elements[0]));
  StatusOr<Element> stacked = StackElements(options_.types, options_.shapes, w.elements);
  if (stacked.ok()) return std::move(done)(absl::OkStatus(), *std::move(stacked));
  std::vector<WaiterPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    GiveBack(w);
    Serve(&ended);
  }
  End(std::move(ended));
  std::move(done)(stacked.status(), {});
}

// ---- Entry points ----

void Queue::Enqueue(Element element, CancellationManager* cancellation, DoneCallback done) {
  if (Status s = CheckElement(element); !s.ok()) return std::move(done)(std::move(s));
  for (Tensor& t : element) {
    if (Status s = KeepBeyondStep(&t); !s.ok()) return std::move(done)(std::move(s));
  }
  std::vector<WaiterPtr> ended;
  bool entered = false;
  {
    absl::MutexLock lock(&mu_);
    entered = !closed_ && enqueuers_.empty() && Stored() < options_.capacity;
    if (entered) {
      Push(std::move(element));
      if (!dequeuers_.empty()) Serve(&ended);
    }
  }
  if (entered) {
    End(std::move(ended));
    return std::move(done)(absl::OkStatus());
  }
  auto w = std::make_shared<Waiter>();
  w->single = true;
  w->element = std::move(element);
  w->wanted = 1;
  w->cancellation = cancellation;
  w->done = std::move(done);
  Wait(std::move(w));
}

void Queue::EnqueueMany(Element batch, CancellationManager* cancellation, DoneCallback done) {
  if (Status s = CheckBatch(batch); !s.ok()) return std::move(done)(std::move(s));
  if (batch[0].dim(0) == 0) return std::move(done)(absl::OkStatus());
  for (Tensor& t : batch) {
    if (Status s = KeepBatch(&t); !s.ok()) return std::move(done)(std::move(s));
  }
  auto w = std::make_shared<Waiter>();
  w->wanted = batch[0].dim(0);
  w->element = std::move(batch);
  w->cancellation = cancellation;
  w->done = std::move(done);
  Wait(std::move(w));
}

void Queue::Dequeue(CancellationManager* cancellation, ElementCallback done) {
  std::vector<WaiterPtr> ended;
  Element element;
  {
    absl::MutexLock lock(&mu_);
    if (dequeuers_.empty() && Available() > 0) {
      element = Pop();
      if (!enqueuers_.empty()) Serve(&ended);
    }
  }
  if (!element.empty()) {
    End(std::move(ended));
    return std::move(done)(absl::OkStatus(), std::move(element));
  }
  auto w = std::make_shared<Waiter>();
  w->kind = Waiter::Kind::kDequeue;
  w->single = true;
  w->wanted = 1;
  w->cancellation = cancellation;
  w->done_element = std::move(done);
  Wait(std::move(w));
}

void Queue::DequeueMany(int64_t n, bool up_to, CancellationManager* cancellation, ElementCallback done) {
  Status s = CheckStackable();
  if (s.ok() && n < 0) s = InvalidArgument("DequeueMany wants ", n, " elements; must be >= 0");
  if (!s.ok()) return std::move(done)(std::move(s), {});
  if (n == 0) {
    std::vector<Element> nothing;
    StatusOr<Element> stacked = StackElements(options_.types, options_.shapes, nothing);
    return stacked.ok() ? std::move(done)(absl::OkStatus(), *std::move(stacked))
                        : std::move(done)(stacked.status(), {});
  }
  auto w = std::make_shared<Waiter>();
  w->kind = Waiter::Kind::kDequeue;
  w->up_to = up_to;
  w->wanted = n;
  w->cancellation = cancellation;
  w->done_element = std::move(done);
  Wait(std::move(w));
}

void Queue::Close(bool cancel_pending_enqueues, CancellationManager* cancellation, DoneCallback done) {
  if (!cancel_pending_enqueues) {
    auto w = std::make_shared<Waiter>();
    w->kind = Waiter::Kind::kClose;
    w->cancellation = cancellation;
    w->done = std::move(done);
    return Wait(std::move(w));
  }
  std::vector<WaiterPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    Serve(&ended);  // fails all that wait to enqueue
  }
  End(std::move(ended));
  std::move(done)(absl::OkStatus());
}

bool Queue::IsClosed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

int64_t Queue::Size() const {
  absl::MutexLock lock(&mu_);
  return Stored();
}

}  // namespace millrace
