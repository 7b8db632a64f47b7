// SPDX-License-Identifier: Apache-2.0
// The fields of worker_messages.h (see wire_codec.h). Their numbers are never used again for something else.
#pragma once

#include "cluster/common_codec.h"
#include "service/collective_messages.h"
#include "service/worker_messages.h"

namespace millrace {

template <typename V>
void VisitFields(V& v, SessionRef& m) {
  v(1, m.session);
  v(2, m.incarnation);
  v(3, m.epoch);
}
template <typename V>
void VisitFields(V& v, StepRef& m) {
  v(1, m.session);
  v(2, m.step);
}

template <typename V>
void VisitFields(V& v, SessionSettings& m) {
  v(1, m.max_threads);
  v(2, m.inter_op_threads);
  v(3, m.deterministic);
  v(4, m.order_seed);
  v(5, m.switched_off);
  v(6, m.max_folded_bytes);
}
template <typename V>
void VisitFields(V& v, CreateWorkerSessionRequest& m) {
  v(1, m.session);
  v(3, m.epoch);
  v(4, m.lease_millis);
  v(5, m.isolates_state);
  v(6, m.cluster);
  v(7, m.task);
  v(8, m.settings);
}
template <typename V>
void VisitFields(V& v, CreateWorkerSessionResponse& m) {
  v(1, m.incarnation);
  v(2, m.devices);
}
template <typename V>
void VisitFields(V& v, DeleteWorkerSessionRequest& m) {
  v(1, m.session);
}
template <typename V>
void VisitFields(V&, DeleteWorkerSessionResponse&) {}

template <typename V>
void VisitFields(V& v, LoopValue& m) {
  v(1, m.kind);
  v(2, m.index);
}
// A graph is bytes.
void VisitGraph(WireEncoder& v, uint32_t number, std::unique_ptr<Graph>& graph);
void VisitGraph(WireDecoder& v, uint32_t number, std::unique_ptr<Graph>& graph);
template <typename V>
void VisitFields(V& v, CollapsedLoop& m) {
  v(1, m.name);
  v(2, m.num_variables);
  VisitGraph(v, 3, m.predicate);
  VisitGraph(v, 4, m.body);
  v(5, m.predicate_args);
  v(6, m.body_args);
  v(7, m.results);
}
template <typename V>
void VisitFields(V& v, Partition& m) {
  v(1, m.device);
  VisitGraph(v, 2, m.graph);
  v(3, m.loops);
  v(4, m.in_segments);
  v(5, m.updates_early);
}
template <typename V>
void VisitFields(V& v, PartitionToRegister::Peer& m) {
  v(1, m.edge);
  v(2, m.task);
  v(3, m.incarnation);
  v(4, m.is_pushed);
}
template <typename V>
void VisitFields(V& v, PartitionToRegister& m) {
  v(1, m.partition);
  v(2, m.peers);
}
template <typename V>
void VisitFields(V& v, RegisterPartitionsRequest& m) {
  v(1, m.session);
  v(2, m.partitions);
}
template <typename V>
void VisitFields(V& v, CutReport& m) {
  v(1, m.segments);
  v(2, m.single_nodes);
  v(3, m.longest);
  v(4, m.nanos);
  v(5, m.order_nanos);
}
template <typename V>
void VisitFields(V& v, RegisterPartitionsResponse& m) {
  v(1, m.handles);
  v(2, m.cuts);
}
template <typename V>
void VisitFields(V& v, DeregisterPartitionsRequest& m) {
  v(1, m.session);
  v(2, m.handles);
}
template <typename V>
void VisitFields(V&, DeregisterPartitionsResponse&) {}

template <typename V>
void VisitFields(V& v, RunStepRequest::Part& m) {
  v(1, m.handle);
  v(2, m.args);
}
template <typename V>
void VisitFields(V& v, RunStepRequest& m) {
  v(1, m.step);
  v(2, m.parts);
  v(3, m.is_alone);
  v(4, m.max_threads);
  v(5, m.inter_op_threads);
  v(6, m.trace);
  v(7, m.deterministic);
  v(8, m.order_seed);
  v(9, m.over);
}
// The results of a partition.
struct PartRetvals {
  std::vector<Tensor> values;
};
template <typename V>
void VisitFields(V& v, PartRetvals& m) {
  v(1, m.values);
}
template <typename V>
void VisitFields(V& v, StepRecord::Output& m) {
  std::vector<int64_t> dims(m.shape.dims().begin(), m.shape.dims().end());
  v(1, m.dtype);  // also one that is none: it is only told
  v(2, dims);
  v(3, m.bytes);
  v(4, m.buffer);
  v(5, m.is_shared);
  if constexpr (std::is_same_v<V, WireDecoder>) {
    if (!v.IsAt(2)) return;
    StatusOr<Shape> shape = Shape::Make(absl::MakeConstSpan(dims));
    if (!shape.ok()) return v.Fail(shape.status());
    m.shape = *std::move(shape);
  }
}
template <typename V>
void VisitFields(V& v, HelpPart& m) {
  v(1, m.thread);
  v(2, m.asked_nanos);
  v(3, m.start_nanos);
  v(4, m.end_nanos);
}
template <typename V>
void VisitFields(V& v, TracedPlan::Node& m) {
  v(1, m.name);
  v(2, m.op);
  v(3, m.inputs);
  v(4, m.controls);
  uint64_t edge = static_cast<uint64_t>(m.edge) + 1;  // 0: none
  v(5, edge);
  m.edge = static_cast<int64_t>(edge - 1);
}
template <typename V>
void VisitFields(V& v, TracedPlan& m) {
  v(1, m.device);
  v(2, m.nodes);
}
void VisitPlans(WireEncoder& v, uint32_t number, std::vector<std::shared_ptr<const TracedPlan>>& plans);
void VisitPlans(WireDecoder& v, uint32_t number, std::vector<std::shared_ptr<const TracedPlan>>& plans);
template <typename V>
void VisitFields(V& v, StepRecord::Run& m) {
  v(1, m.plan);
  v(2, m.node);
  v(3, m.start_nanos);
  v(4, m.end_nanos);
  v(5, m.thread);
  v(6, m.is_asynchronous);
  v(7, m.outputs_end);
  v(8, m.parts_end);
}
template <typename V>
void VisitFields(V& v, StepRecord::Thread& m) {
  v(1, m.number);
  v(2, m.name);
}
template <typename V>
void VisitFields(V& v, StepRecord& m) {
  VisitPlans(v, 1, m.plans);
  v(2, m.runs);
  v(3, m.outputs);
  v(4, m.parts);
  v(5, m.threads);
}
void VisitRetvals(WireEncoder& v, uint32_t number, std::vector<std::vector<Tensor>>& retvals);
void VisitRetvals(WireDecoder& v, uint32_t number, std::vector<std::vector<Tensor>>& retvals);
template <typename V>
void VisitFields(V& v, RunStepResponse& m) {
  v(1, m.status);
  VisitRetvals(v, 2, m.retvals);
  v(4, m.is_consequence);
  v(5, m.trace);
}

template <typename V>
void VisitFields(V& v, AbortStepRequest& m) {
  v(1, m.step);
  v(2, m.why);
}
template <typename V>
void VisitFields(V&, AbortStepResponse&) {}
template <typename V>
void VisitFields(V& v, StepHorizon& m) {
  v(1, m.next);
  v(2, m.live);
}
template <typename V>
void VisitFields(V& v, CleanUpStepsRequest& m) {
  v(1, m.session);
  v(2, m.horizon);
}
template <typename V>
void VisitFields(V&, CleanUpStepsResponse&) {}

template <typename V>
void VisitFields(V& v, ExchangeTensorsRequest::Feed& m) {
  v(1, m.edge);
  v(2, m.value);
}
template <typename V>
void VisitFields(V& v, ExchangeTensorsRequest& m) {
  v(1, m.step);
  v(2, m.feeds);
  v(3, m.fetches);
}
template <typename V>
void VisitFields(V& v, ReceivedTensor& m) {
  v(1, m.value);
  v(2, m.is_dead);
}
template <typename V>
void VisitFields(V& v, ExchangeTensorsResponse& m) {
  v(1, m.fetches);
}
template <typename V>
void VisitFields(V& v, EdgeKey& m) {
  v(1, m.edge);
  v(2, m.frame);
  v(3, m.iteration);
}
template <typename V>
void VisitFields(V& v, RecvTensorRequest& m) {
  v(1, m.step);
  v(2, m.key);
}
template <typename V>
void VisitFields(V& v, RecvTensorResponse& m) {
  v(1, m.tensor);
}
template <typename V>
void VisitFields(V& v, SendTensorRequest& m) {
  v(1, m.step);
  v(2, m.key);
  v(3, m.tensor);
}
template <typename V>
void VisitFields(V&, SendTensorResponse&) {}

template <typename V>
void VisitFields(V&, GetStatusRequest&) {}
template <typename V>
void VisitFields(V& v, GetStatusResponse& m) {
  v(1, m.task);
  v(2, m.incarnation);
  v(3, m.devices);
  v(4, m.num_sessions);
  v(5, m.clock_nanos);
}
template <typename V>
void VisitFields(V& v, HeartbeatRequest& m) {
  v(1, m.sessions);
}
template <typename V>
void VisitFields(V& v, HeartbeatResponse& m) {
  v(1, m.incarnation);
  v(2, m.lost);
}
template <typename V>
void VisitFields(V& v, ResetRequest& m) {
  v(1, m.containers);
}
template <typename V>
void VisitFields(V&, ResetResponse&) {}

template <typename V>
void VisitFields(V& v, GetRandomPositionsRequest& m) {
  v(1, m.session);
}
template <typename V>
void VisitFields(V& v, GetRandomPositionsResponse& m) {
  VisitPositions(v, 1, m.positions);
}
template <typename V>
void VisitFields(V& v, SetRandomPositionsRequest& m) {
  v(1, m.session);
  VisitPositions(v, 2, m.positions);
}
template <typename V>
void VisitFields(V&, SetRandomPositionsResponse&) {}

template <typename V>
void VisitFields(V& v, JoinCollectiveRequest& m) {
  v(1, m.member);
  v(2, m.device);
  v(3, m.incarnation);
  v(4, m.session);
  v(5, m.step);
  v(6, m.group_key);
  v(7, m.instance_key);
  v(8, m.iteration);
  v(9, m.group_size);
  v(10, m.claim);
  v(11, m.has_source);
  v(12, m.is_source);
  v(13, m.dims);
  v(14, m.timeout_millis);
}
template <typename V>
void VisitFields(V& v, CollectiveMember& m) {
  v(1, m.device);
  v(2, m.incarnation);
}
template <typename V>
void VisitFields(V& v, JoinCollectiveResponse& m) {
  v(1, m.round);
  v(2, m.members);
  v(3, m.source);
  v(4, m.dims);
}
template <typename V>
void VisitFields(V& v, RecvCollectiveRequest& m) {
  v(1, m.round);
  v(2, m.incarnation);
  v(3, m.piece);
}
template <typename V>
void VisitFields(V& v, RecvCollectiveResponse& m) {
  v(1, m.value);
}
template <typename V>
void VisitFields(V& v, AbortCollectiveRequest& m) {
  v(1, m.id);
  v(2, m.why);
}
template <typename V>
void VisitFields(V&, AbortCollectiveResponse&) {}

// Whether a message that was read makes sense, as far as nobody else looks.
Status CheckMessage(const RegisterPartitionsRequest& m);
template <typename Message>
Status CheckMessage(const Message&) {
  return absl::OkStatus();
}

}  // namespace millrace
