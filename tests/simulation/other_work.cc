// SPDX-License-Identifier: Apache-2.0
// What clients do beside their training, each by itself: partial runs, queues, collective ops.
#include "simulation/training_client.h"

namespace millrace {
namespace {

constexpr int64_t kPatienceMillis = 5'000;  // for an element of a queue

}  // namespace

void Training::OtherWork::Build(const GraphBuilder& b, int num_ps, int num_workers, int own) {
  const GraphBuilder ps = b.WithDevice(OnTask("ps", num_ps - 1)), here = b.WithDevice(OnTask("worker", own));
  const auto fed = [&](DType dtype) {
    return here.Op("Placeholder", {}, {{"dtype", dtype}, {"shape", PartialShape::Scalar()}});
  };
  x = fed(DType::kFloat);
  y = fed(DType::kFloat);
  first = ps.Mul(x, ps.Scalar(2.0f));
  second = b.WithDevice(OnTask("worker", num_workers - 1)).Add(first, y);
  item = fed(DType::kInt64);
  const std::vector<DType> types = {DType::kInt64};
  const Output queue = ps.Op("FIFOQueueV2", {}, {{"component_types", types}, {"shared_name", "items"}});
  put = ps.OpNode("QueueEnqueueV2", std::vector<Arg>{queue, std::vector<Output>{here.Identity(item)}}, AttrMap());
  taken = ps.Op("QueueDequeueV2", {queue}, {{"component_types", types}});
  for (int k = 0; k < num_workers; ++k) {
    const GraphBuilder at = b.WithDevice(OnTask("worker", k));
    const Output input = at.Mul(x, at.Vector<float>({static_cast<float>(k + 1), 1.0f}));
    sums.push_back(at.Op(
        "CollectiveReduce", {input},
        {{"group_size", int64_t{num_workers}},
         {"group_key", int64_t{own + 1}},
         {"instance_key", int64_t{1}},
         {"merge_op", "Add"},
         {"final_op", "Id"},
         {"subdiv_offsets", std::vector<int64_t>{0}},
         {"timeout_seconds", 20.0f}}));
  }
}

Status Training::DoOtherWork(SimTask& task, int64_t life, Client& client, const OtherWork& work) {
  ++num_others;
  const auto number = static_cast<float>(NextRandom(&random_) % 1000);
  switch (NextRandom(&random_) % 3) {
    case 0: return RunInParts(task, life, client, work, number);
    case 1: return PutAndTake(task, life, client, work);
    default: return AddUp(task, life, client, work, number);
  }
}

Status Training::RunInParts(SimTask& task, int64_t life, Client& client, const OtherWork& work, float x) {
  Session& session = *client.session;
  MR_ASSIGN_OR_RETURN(
      const std::string handle, session.PartialRunSetup({work.x, work.y}, {work.first, work.second}, {}));
  std::vector<Tensor> first, second;
  Status s = session.PartialRun(handle, {work.x}, {Tensor::Scalar(x)}, {work.first}, &first);
  if (s.ok()) {
    Sleep(task, plan_.think_time);
    s = session.PartialRun(handle, {work.y}, {Tensor::Scalar(7.0f)}, {work.second}, &second);
  }
  const Status released = session.ReleasePartialRun(handle);
  if (!GoesOn(task, life)) return absl::OkStatus();
  MR_RETURN_IF_ERROR(s);
  if (*first[0].ScalarValue<float>() != 2 * x || *second[0].ScalarValue<float>() != 2 * x + 7) {
    Fail("the values of a partial run");
  }
  return released;
}

// Each element is put by one step and taken by one, or lost with its server.
Status Training::PutAndTake(SimTask& task, int64_t life, Client& client, const OtherWork& work) {
  const int64_t item = ++num_items_;
  MR_RETURN_IF_ERROR(client.Run({}, {work.put}, {work.item}, {Tensor::Scalar(item)}).status());
  wire::RunOptions options;
  options.timeout_in_ms = kPatienceMillis;
  const StatusOr<std::vector<Tensor>> got = client.Run({work.taken}, {}, {}, {}, &options);
  if (!GoesOn(task, life)) return absl::OkStatus();
  if (absl::IsDeadlineExceeded(got.status())) return absl::OkStatus();  // others were sooner
  MR_RETURN_IF_ERROR(got.status());
  const int64_t taken = *(*got)[0].ScalarValue<int64_t>();
  if (taken < 1 || taken > num_items_) Fail(absl::StrCat("element ", taken, " of a queue was never put there"));
  if (!taken_.insert(taken).second) Fail(absl::StrCat("element ", taken, " of a queue was taken twice"));
  return absl::OkStatus();
}

Status Training::AddUp(SimTask& task, int64_t life, Client& client, const OtherWork& work, float x) {
  MR_ASSIGN_OR_RETURN(const std::vector<Tensor> got, client.Run(work.sums, {}, {work.x}, {Tensor::Scalar(x)}));
  if (!GoesOn(task, life)) return absl::OkStatus();
  const auto n = static_cast<float>(got.size());
  for (const Tensor& sum : got) {
    if (sum.data<float>()[0] != x * n * (n + 1) / 2 || sum.data<float>()[1] != x * n) Fail("the sum of a group");
  }
  return absl::OkStatus();
}

}  // namespace millrace
