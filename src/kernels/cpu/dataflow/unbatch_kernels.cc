// SPDX-License-Identifier: Apache-2.0
// CPU kernels: Unbatch gives each step its rows of what one of them made of a batch; UnbatchGrad gathers the steps'
// gradients for the one that had the batch. Steps wait for each other by the ids that Batch gave them, with a deadline.
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "kernel/device_env.h"
#include "kernels/cpu/dataflow/batch_kernels.h"
#include "kernels/cpu/dataflow/batch_queue.h"
#include "kernels/cpu/dataflow/queue_elements.h"

namespace millrace {
namespace {

// Tensors that wait for who asks for their ids. What nobody has asked for until its deadline is dropped.
class IdTable final : public WaitingResource {
 public:
  explicit IdTable(std::string name) : name_(std::move(name)) {}
  std::string DebugString() const override { return absl::StrCat("pieces '", name_, "'"); }

  // The rest is for attempts.

  Status Put(int64_t id, Tensor tensor, int64_t deadline, int64_t now) {
    std::erase_if(tensors_, [now](const auto& entry) { return entry.second.deadline <= now; });
    if (tensors_.try_emplace(id, Entry{std::move(tensor), deadline}).second) return absl::OkStatus();
    return InvalidArgument("Multiple tensors returned for same batch key: ", id);
  }
  bool Has(int64_t id) const { return tensors_.contains(id); }
  Tensor Take(int64_t id) { return std::move(tensors_.extract(id).mapped().tensor); }

 private:
  struct Entry {
    Tensor tensor;
    int64_t deadline = 0;
  };
  const std::string name_;
  std::map<int64_t, Entry> tensors_;
};

// What Batch says of the rows of a batch.
struct Piece {
  int64_t id = 0, begin = 0, end = 0;
};
StatusOr<std::vector<Piece>> PiecesOf(const Tensor& index, const Tensor& batched) {
  if (index.rank() != 2 || index.dim(1) != 3) {
    return InvalidArgument("batch_index must have shape [n, 3], got ", index.shape().ToString());
  }
  if (batched.rank() == 0) return InvalidArgument("a batch must have at least one dimension");
  std::vector<Piece> pieces;
  std::set<int64_t> ids;
  const int64_t* row = index.data<int64_t>();
  for (int64_t i = 0; i < index.dim(0); ++i, row += 3) {
    const Piece piece{row[0], row[1], row[2]};
    const int64_t last = pieces.empty() ? 0 : pieces.back().end;
    if (piece.begin != last || piece.end < piece.begin || piece.end > batched.dim(0)) {
      return InvalidArgument(
          "batch_index says rows ", piece.begin, " to ", piece.end, " behind row ", last, " of ", batched.dim(0));
    }
    if (!ids.insert(piece.id).second) return InvalidArgument("batch_index has id ", piece.id, " twice");
    pieces.push_back(piece);
  }
  return pieces;
}

class IdKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    return absl::OkStatus();
  }
  bool IsExpensive() const final { return false; }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) final {
    StatusOr<RefPtr<IdTable>> table = ctx.resources().LookupOrCreate<IdTable>(
        name_.container, name_.name, [this] { return MakeRef<IdTable>(name_.name); });
    if (!table.ok()) return std::move(done)(table.status());
    Env& env = EnvOf(ctx.device());
    const int64_t deadline = DeadlineAfter(env, patience_);
    if (const Status put = Put(ctx, **table, deadline); !put.ok()) return std::move(done)(put);
    StatusOr<WaitingResource::Attempt> attempt = Take(ctx, **table);
    if (!attempt.ok()) return std::move(done)(attempt.status());
    // Whoever waits looks again when its time is over.
    const Env::TimerId timer = env.ScheduleAfter(patience_, [table = *table] { Wake(table); });
    (*table)->Call(
        WaitingResource::Line::kNone,
        [attempt = *std::move(attempt), &env, deadline](Status* status) mutable {
          if (attempt(status)) return true;
          if (env.MonotonicNanos() < deadline) return false;
          *status = DeadlineExceeded("Batched data did not arrive within timeout window.");
          return true;
        },
        ctx.step().cancellation,
        [&env, timer, done = std::move(done)](Status status) mutable {
          env.StopTimer(timer);
          std::move(done)(std::move(status));
        });
  }

 protected:
  // Adds what the step brings.
  virtual Status Put(KernelContext& ctx, IdTable& table, int64_t deadline) = 0;
  // Sets the output when all that it needs is there.
  virtual StatusOr<WaitingResource::Attempt> Take(KernelContext& ctx, IdTable& table) = 0;

  static Status PutOne(KernelContext& ctx, IdTable& table, int64_t id, Tensor tensor, int64_t deadline) {
    MR_RETURN_IF_ERROR(KeepBeyondStep(&tensor));
    const int64_t now = EnvOf(ctx.device()).MonotonicNanos();
    Status status;
    // Ends at once.
    table.Call(
        WaitingResource::Line::kNone,
        [&](Status* s) {
          *s = table.Put(id, std::move(tensor), deadline, now);
          return true;
        },
        nullptr, [&](Status s) { status = std::move(s); });
    return status;
  }
  void set_patience(absl::Duration patience) { patience_ = patience; }

 private:
  static int64_t DeadlineAfter(Env& env, absl::Duration patience) {
    const int64_t now = env.MonotonicNanos(), nanos = absl::ToInt64Nanoseconds(patience);
    return nanos > std::numeric_limits<int64_t>::max() - now ? std::numeric_limits<int64_t>::max() : now + nanos;
  }
  static void Wake(const RefPtr<IdTable>& table) {
    table->Call(WaitingResource::Line::kNone, [](Status*) { return true; }, nullptr, [](Status) {});
  }

  ResourceName name_;
  absl::Duration patience_;
};

class UnbatchKernel final : public IdKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t micros, init.Attr<int64_t>("timeout_micros"));
    if (micros < 0) return InvalidArgument("timeout_micros must not be negative; was ", micros);
    set_patience(absl::Microseconds(micros));
    return IdKernel::Init(init);
  }

 private:
  Status Put(KernelContext& ctx, IdTable& table, int64_t deadline) override {
    const Tensor& batched = ctx.input(0);
    MR_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(ctx.input(1), batched));
    for (const Piece& piece : pieces) {
      MR_ASSIGN_OR_RETURN(Tensor rows, batched.Rows(piece.begin, piece.end));
      MR_RETURN_IF_ERROR(PutOne(ctx, table, piece.id, std::move(rows), deadline));
    }
    return absl::OkStatus();
  }
  StatusOr<WaitingResource::Attempt> Take(KernelContext& ctx, IdTable& table) override {
    MR_ASSIGN_OR_RETURN(const int64_t id, ctx.input(2).IntScalar());
    return WaitingResource::Attempt([&ctx, &table, id](Status* status) {
      if (!table.Has(id)) return false;
      Tensor rows = table.Take(id);
      if (rows.dtype() == ctx.output_dtype(0)) {
        ctx.set_output(0, std::move(rows));
      } else {
        *status =
            InvalidArgument("the batch is ", DTypeName(rows.dtype()), ", wanted ", DTypeName(ctx.output_dtype(0)));
      }
      return true;
    });
  }
};

class UnbatchGradKernel final : public IdKernel {
 public:
  Status Init(const KernelInit& init) override {
    // The op says none. A step whose partner never asks for gradients must end.
    set_patience(absl::Minutes(10));
    return IdKernel::Init(init);
  }

 private:
  Status Put(KernelContext& ctx, IdTable& table, int64_t deadline) override {
    MR_RETURN_IF_ERROR(PiecesOf(ctx.input(1), ctx.input(0)).status());
    MR_ASSIGN_OR_RETURN(const int64_t id, ctx.input(3).IntScalar());
    if (ctx.input(2).rank() == 0) return InvalidArgument("a gradient must have at least one dimension");
    return PutOne(ctx, table, id, ctx.input(2), deadline);
  }
  StatusOr<WaitingResource::Attempt> Take(KernelContext& ctx, IdTable& table) override {
    MR_ASSIGN_OR_RETURN(std::vector<Piece> pieces, PiecesOf(ctx.input(1), ctx.input(0)));
    return WaitingResource::Attempt([&ctx, &table, pieces = std::move(pieces)](Status* status) {
      for (const Piece& piece : pieces) {
        if (!table.Has(piece.id)) return false;
      }
      *status = Gather(ctx, table, pieces);
      return true;
    });
  }
  // Rows that are padding have no gradient.
  static Status Gather(KernelContext& ctx, IdTable& table, const std::vector<Piece>& pieces) {
    const Tensor& original = ctx.input(0);
    const int64_t covered = pieces.empty() ? 0 : pieces.back().end;
    std::vector<Tensor> parts;
    for (const Piece& piece : pieces) {
      parts.push_back(table.Take(piece.id));
      if (parts.back().dtype() != original.dtype()) {
        return InvalidArgument(
            "the batch is ", DTypeName(original.dtype()), ", a step's gradient ", DTypeName(parts.back().dtype()));
      }
      if (parts.back().dim(0) != piece.end - piece.begin) {
        return InvalidArgument("a step had ", piece.end - piece.begin, " rows of the batch, its gradient has shape ",
                               parts.back().shape().ToString());
      }
    }
    if (covered < original.dim(0) || parts.empty()) {
      MR_ASSIGN_OR_RETURN(const Tensor rest, original.Rows(covered, original.dim(0)));
      MR_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Zeros(original.dtype(), rest.shape()));
      parts.push_back(std::move(zeros));
    }
    MR_ASSIGN_OR_RETURN(Tensor all, JoinRowsOf(parts, 0));
    ctx.set_output(0, std::move(all));
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterUnbatchKernels(KernelRegistry& r) {
  r.Add<UnbatchKernel>({.op = "Unbatch"});
  r.Add<UnbatchGradKernel>({.op = "UnbatchGrad"});
}

}  // namespace millrace
