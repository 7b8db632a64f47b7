// SPDX-License-Identifier: Apache-2.0
#include "service/collective_round.h"

#include <algorithm>
#include <cstring>

#include "base/exceptions.h"
#include "op/device_name.h"
#include "service/collective_groups.h"
#include "service/worker_env.h"

namespace millrace {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr int64_t kAlignment = 64;  // elements
constexpr int64_t kLineBytes = int64_t{64} << 10;

std::string PartialName(size_t p) { return absl::StrCat("partial ", p); }
std::string WholeName(size_t p) { return absl::StrCat("whole ", p); }

}  // namespace

Status ForOthers(const std::string& task, const Status& why) {
  const Status s = Annotate(why, absl::StrCat("a member at ", task, " failed: "));
  return absl::IsCancelled(s) ? Aborted(s.message()) : s;
}

CollectiveRound::CollectiveRound(std::shared_ptr<RoundHost> host, uint64_t id)
    : host_(std::move(host)), id_(id), pieces_out_(NewLocalRendezvous()) {}

Status CollectiveRound::SetUp(const CollectiveCall& call, const JoinCollectiveResponse& told) {
  std::vector<CollectiveMember> sorted = told.members;
  MR_RETURN_IF_ERROR(SortByRank(&sorted));
  if (sorted != told.members || static_cast<int64_t>(sorted.size()) != call.group_size || told.source < 0 ||
      told.source >= call.group_size) {
    return Internal("the leader's list of members makes no sense");
  }
  int64_t rank = 0;
  for (const CollectiveMember& m : told.members) {
    MR_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(m.device));
    const std::string task = TaskOf(name);
    if (tasks_.empty() || tasks_.back().name != task) tasks_.push_back({task, m.incarnation, rank, 0});
    ++tasks_.back().members;
    ++rank;
  }
  index_ = tasks_.size();
  for (size_t t = 0; t < tasks_.size(); ++t) {
    if (tasks_[t].name == host_->task()) index_ = t;
  }
  if (index_ == tasks_.size()) return Internal("the leader's list of members lacks ", call.device);
  how_ = call;
  how_.input = Tensor();
  how_.cancellation = nullptr;
  source_ = told.source;
  inputs_.resize(told.members.size());
  if (call.kind == CollectiveKind::kBroadcast) {
    MR_ASSIGN_OR_RETURN(source_shape_, Shape::Make(told.dims));
  }
  return absl::OkStatus();
}

StatusOr<bool> CollectiveRound::Enter(CollectiveCall& call, const JoinCollectiveResponse& told,
                                      CollectiveExecutor::Done& done) {
  if (tasks_.empty()) MR_RETURN_IF_ERROR(SetUp(call, told));
  const auto at = std::find_if(
      told.members.begin(), told.members.end(), [&](const CollectiveMember& m) { return m.device == call.device; });
  const int64_t rank = at - told.members.begin();
  Member& member = members_.emplace_back();
  if (rank < static_cast<int64_t>(inputs_.size())) inputs_[static_cast<size_t>(rank)] = std::move(call.input);
  call.input = Tensor();
  member.rank = rank;
  member.call = std::move(call);
  member.done = std::move(done);
  return static_cast<int64_t>(members_.size()) == tasks_[index_].members;
}

void CollectiveRound::Add(CollectiveCall call, const JoinCollectiveResponse& told, CollectiveExecutor::Done done) {
  StatusOr<bool> starts = false;
  bool tell_others = false;
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) {
      starts = failure_;
    } else {
      starts = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return Enter(call, told, done); });
      failure_ = starts.status();
      tell_others = !starts.ok();
    }
  }
  if (!starts.ok()) {
    std::move(done)(starts.status());
    if (tell_others) Fail(starts.status(), true);
    return;
  }
  if (!*starts) return;
  const Status s = WithoutExceptions([&] { return host_->Schedule([self = shared_from_this()] { self->Start(); }); });
  if (!s.ok()) Fail(s, true);
}

void CollectiveRound::Recv(const std::string& piece, Rendezvous::DoneCallback done) {
  pieces_out_->RecvAsync(
      piece, [self = shared_from_this(), done = std::move(done)](const Status& s, Tensor value, bool is_dead) mutable {
        std::move(done)(s, std::move(value), is_dead);
        if (!s.ok()) return;
        bool forget = false;
        {
          absl::MutexLock lock(&self->mu_);
          forget = --self->to_be_fetched_ == 0 && self->over_;
        }
        if (forget) self->host_->Forget(self->id_, absl::OkStatus());
      });
}

void CollectiveRound::Fail(const Status& why, bool tell_others) {
  std::vector<Member> members;
  {
    absl::MutexLock lock(&mu_);
    if (over_) return;
    over_ = true;
    failure_ = why;
    members.swap(members_);
  }
  pieces_out_->Abort(why);
  cancellation_.Cancel(why);
  for (Member& m : members) std::move(m.done)(why);
  const Status told = WithoutExceptions([&] { return ForOthers(host_->task(), why); });
  if (tell_others) {
    for (const Task& t : tasks_) {
      if (t.name == host_->task()) continue;
      WorkerInterface* const peer = host_->Peer(t.name);
      if (peer == nullptr) continue;
      peer->AbortCollective({}, {id_, told}, [](const StatusOr<AbortCollectiveResponse>&) {});
    }
  }
  host_->Forget(id_, told);
}

StatusOr<Tensor> CollectiveRound::Part(const Tensor& of, int64_t begin, int64_t size) const {
  MR_ASSIGN_OR_RETURN(const Tensor flat, of.Reshaped(Shape::Vector(of.num_elements())));
  return flat.Rows(begin, begin + size);
}

void* CollectiveRound::At(int64_t element) {
  return static_cast<char*>(result_.mutable_raw()) + static_cast<size_t>(element) * DTypeSize(how_.dtype);
}

void CollectiveRound::CutPieces(int64_t begin, int64_t end, size_t start, size_t owner) {
  const int64_t most = kPieceBytes / static_cast<int64_t>(DTypeSize(how_.dtype));
  for (; begin < end; begin += most) pieces_.push_back({begin, std::min(most, end - begin), start, owner});
}

// Of the task's members one value: combined, or one after the other at its place in the result, or what the source
// sends.
Status CollectiveRound::Combine() {
  const Task& here = tasks_[index_];
  const auto first = static_cast<size_t>(here.first_rank), end = first + static_cast<size_t>(here.members);
  const bool alone = tasks_.size() == 1;
  if (how_.kind == CollectiveKind::kBroadcast) {
    const auto source = static_cast<size_t>(source_);
    if (source >= first && source < end) {
      result_ = inputs_[source];
    } else {
      MR_ASSIGN_OR_RETURN(result_, Tensor::Make(how_.dtype, source_shape_, *how_.allocator));
    }
    return absl::OkStatus();
  }
  const Shape& shape = inputs_[first].shape();
  for (size_t i = first; i < end; ++i) {
    if (inputs_[i].shape() != shape || inputs_[i].dtype() != how_.dtype) {
      return Internal("the members of ", here.name, " have inputs of different shapes or dtypes");
    }
  }
  if (how_.kind == CollectiveKind::kGather) {
    if (shape.rank() < 1) return InvalidArgument("scalars cannot be gathered: give them a dimension");
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    dims[0] *= how_.group_size;
    MR_ASSIGN_OR_RETURN(const Shape all, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(result_, Tensor::Make(how_.dtype, all, *how_.allocator));
    for (size_t i = first; i < end; ++i) {
      std::memcpy(At(static_cast<int64_t>(i) * shape.num_elements()), inputs_[i].raw(), inputs_[i].TotalBytes());
    }
    return absl::OkStatus();
  }
  own_ = inputs_[first];
  if (!alone || here.members > 1) {
    MR_ASSIGN_OR_RETURN(result_, Tensor::Make(how_.dtype, shape, *how_.allocator));
  } else {
    result_ = own_;
  }
  if (here.members == 1) return absl::OkStatus();
  Tensor combined = result_;
  if (!alone) {
    MR_ASSIGN_OR_RETURN(combined, Tensor::Make(how_.dtype, shape, *how_.allocator));
  }
  const auto item = static_cast<int64_t>(DTypeSize(how_.dtype));
  const int64_t line = kLineBytes / item, n = shape.num_elements();
  host_->ParallelFor((n + line - 1) / line, static_cast<double>(line * here.members) / 4, [&](int64_t b, int64_t e) {
    for (int64_t at = b * line; b < e; ++b, at += line) {
      const int64_t size = std::min(line, n - at);
      char* const into = static_cast<char*>(combined.mutable_raw()) + at * item;
      const void* left = static_cast<const char*>(inputs_[first].raw()) + at * item;
      for (size_t i = first + 1; i < end; ++i) {
        how_.merge(into, left, static_cast<const char*>(inputs_[i].raw()) + at * item, size);
        left = into;
      }
      if (alone && how_.finish != nullptr) how_.finish(into, size, how_.group_size);
    }
  });
  own_ = combined;
  return absl::OkStatus();
}

// What travels, and how much of it passes here.
Status CollectiveRound::Prepare() {
  MR_RETURN_IF_ERROR(Combine());
  const size_t n = tasks_.size();
  if (n == 1) return absl::OkStatus();
  const int64_t elements = result_.num_elements();
  if (how_.kind == CollectiveKind::kReduce) {
    const auto count = static_cast<int64_t>(n);
    const int64_t block = (elements / count + kAlignment) / kAlignment * kAlignment;
    for (int64_t b = 0; b < count; ++b) {
      const auto start = static_cast<size_t>(b);
      CutPieces(std::min(b * block, elements), b + 1 == count ? elements : std::min((b + 1) * block, elements), start,
                (start + n - 1) % n);
    }
  } else if (how_.kind == CollectiveKind::kGather) {
    const int64_t each = elements / how_.group_size;
    for (size_t t = 0; t < n; ++t) {
      CutPieces(tasks_[t].first_rank * each, (tasks_[t].first_rank + tasks_[t].members) * each, t, t);
    }
  } else {
    size_t owner = 0;
    while (owner + 1 < n && tasks_[owner + 1].first_rank <= source_) ++owner;
    CutPieces(0, elements, owner, owner);
  }
  absl::MutexLock lock(&mu_);
  for (const Piece& p : pieces_) {
    if (how_.kind == CollectiveKind::kReduce) {
      to_receive_ += Distance(p.start) >= 1;
      to_be_fetched_ += Distance(p.start) + 1 < n;
    }
    to_receive_ += Distance(p.owner) >= 1;
    to_be_fetched_ += Distance(p.owner) + 1 < n;
  }
  return absl::OkStatus();
}

void CollectiveRound::Start() {
  Status s = WithoutExceptions([&] { return Prepare(); });
  bool waits = false;
  {
    absl::MutexLock lock(&mu_);
    if (over_) return;
    ++to_receive_;  // until all is asked for
    waits = !pieces_.empty();
  }
  for (size_t p = 0; waits && s.ok() && p < pieces_.size(); ++p) {
    s = WithoutExceptions([&]() -> Status {
      const Piece& piece = pieces_[p];
      const bool reduces = how_.kind == CollectiveKind::kReduce;
      if (reduces && Distance(piece.start) == 0) {
        MR_ASSIGN_OR_RETURN(Tensor part, Part(own_, piece.begin, piece.size));
        MR_RETURN_IF_ERROR(Publish(PartialName(p), std::move(part)));
      } else if (reduces) {
        Ask(PartialName(p), [this, p](Tensor t) { return OnPartial(p, std::move(t)); });
      }
      if (Distance(piece.owner) > 0) {
        Ask(WholeName(p), [this, p](const Tensor& t) { return OnWhole(p, t); });
      } else if (!reduces) {
        MR_ASSIGN_OR_RETURN(Tensor part, Part(result_, piece.begin, piece.size));
        MR_RETURN_IF_ERROR(Publish(WholeName(p), std::move(part)));
      }
      return absl::OkStatus();
    });
  }
  if (!s.ok()) return Fail(s, true);
  Received();
}

// `then` runs on the pool while the round lasts.
void CollectiveRound::Ask(const std::string& piece, std::function<Status(Tensor)> then) {
  const Task& left = tasks_[(index_ + tasks_.size() - 1) % tasks_.size()];
  WorkerInterface* const worker = host_->Peer(left.name);
  if (worker == nullptr) {
    return Fail(InvalidArgument("worker ", host_->task(), " knows no worker ", left.name, ", a member's"), true);
  }
  CallOptions call;
  call.cancellation = &cancellation_;
  worker->RecvCollective(
      call, {id_, left.incarnation, piece},
      [self = shared_from_this(), then = std::move(then)](StatusOr<RecvCollectiveResponse> got) mutable {
        if (!got.ok()) return self->Fail(got.status(), true);
        const Status begun = WithoutExceptions([&] {
          return self->host_->Schedule([self, then = std::move(then), value = std::move(got->value)]() mutable {
            const Status s = WithoutExceptions([&] { return then(std::move(value)); });
            s.ok() ? self->Received() : self->Fail(s, true);
          });
        });
        if (!begun.ok()) self->Fail(begun, true);
      });
}

Status CollectiveRound::Publish(const std::string& piece, Tensor value) {
  return pieces_out_->Send(piece, std::move(value), false);
}

namespace {

Status CheckPiece(const Tensor& t, DType dtype, int64_t size) {
  if (t.dtype() == dtype && t.num_elements() == size) return absl::OkStatus();
  return Internal(
      "a neighbour sent ", DTypeName(t.dtype()), t.shape().ToString(), ", wanted ", size, " of ", DTypeName(dtype));
}

}  // namespace

Status CollectiveRound::OnPartial(size_t p, Tensor partial) {
  const Piece& piece = pieces_[p];
  MR_RETURN_IF_ERROR(CheckPiece(partial, how_.dtype, piece.size));
  MR_ASSIGN_OR_RETURN(const Tensor own, Part(own_, piece.begin, piece.size));
  const size_t n = tasks_.size(), distance = Distance(piece.start);
  if (distance + 1 == n) {
    MR_ASSIGN_OR_RETURN(Tensor whole, Part(result_, piece.begin, piece.size));
    how_.merge(At(piece.begin), partial.raw(), own.raw(), piece.size);
    if (how_.finish != nullptr) how_.finish(At(piece.begin), piece.size, how_.group_size);
    return Publish(WholeName(p), std::move(whole));
  }
  if (partial.OwnsBufferAlone()) {
    how_.merge(partial.mutable_raw(), partial.raw(), own.raw(), piece.size);
    return Publish(PartialName(p), std::move(partial));
  }
  MR_ASSIGN_OR_RETURN(Tensor sum, Tensor::Make(how_.dtype, Shape::Vector(piece.size)));
  how_.merge(sum.mutable_raw(), partial.raw(), own.raw(), piece.size);
  return Publish(PartialName(p), std::move(sum));
}

Status CollectiveRound::OnWhole(size_t p, const Tensor& whole) {
  const Piece& piece = pieces_[p];
  MR_RETURN_IF_ERROR(CheckPiece(whole, how_.dtype, piece.size));
  std::memcpy(At(piece.begin), whole.raw(), whole.TotalBytes());
  return Distance(piece.owner) + 1 < tasks_.size() ? Publish(WholeName(p), whole) : absl::OkStatus();
}

void CollectiveRound::Received() {
  {
    absl::MutexLock lock(&mu_);
    if (--to_receive_ > 0 || over_) return;
  }
  Finish();
}

void CollectiveRound::Finish() {
  std::vector<Member> members;
  bool forget = false;
  {
    absl::MutexLock lock(&mu_);
    if (over_) return;
    over_ = true;
    members.swap(members_);
    forget = to_be_fetched_ == 0;
  }
  inputs_.clear();
  own_ = Tensor();
  const Tensor result = std::move(result_);
  for (Member& m : members) {
    StatusOr<Tensor> own = WithoutExceptions([&]() -> StatusOr<Tensor> {
      if (m.call.wanted.IsCompatibleWith(result.shape())) return result;
      return InvalidArgument("the result of the group is ", DTypeName(result.dtype()), result.shape().ToString(),
                             ", but ", m.call.device, " wants shape ", m.call.wanted.ToString());
    });
    std::move(m.done)(std::move(own));
  }
  if (forget) host_->Forget(id_, absl::OkStatus());
}

}  // namespace millrace
