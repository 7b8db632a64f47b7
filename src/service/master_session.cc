// SPDX-License-Identifier: Apache-2.0
#include "service/master_session.h"

#include <optional>

#include "base/exceptions.h"
#include "runtime/trace.h"
#include "service/session_config.h"
#include "service/step_stats.h"
#include "service/trace_clocks.h"

namespace millrace {
namespace {

CoordinatorOptions WithThreads(CoordinatorOptions options, int inter_op_threads) {
  options.inter_op_threads = inter_op_threads;
  return options;
}

}  // namespace

MasterSession::MasterSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config,
                             std::vector<WorkerInterface*> workers, uint64_t id, CoordinatorOptions options,
                             TraceFiles trace_files)
    : graph_(graph),
      env_(*options.env),
      inter_op_threads_(InterOpThreads(config)),
      placement_(options.passes.placement),
      periods_(config.placement_period),
      trace_files_(std::move(trace_files)),
      trace_writer_(trace_files_.is_on() ? std::make_unique<TraceWriter>(env_) : nullptr),
      coordinator_(
          std::move(graph), std::move(workers), id, WithThreads(std::move(options), inter_op_threads_.front())) {}

StatusOr<StepOptions> MasterSession::OptionsOf(const wire::RunOptions& options) const {
  const int32_t pool = options.inter_op_thread_pool;
  if (pool < -1 || pool >= static_cast<int32_t>(inter_op_threads_.size())) {
    return InvalidArgument("Invalid inter_op_thread_pool: ", pool, "; the session has ", inter_op_threads_.size());
  }
  if (options.debug_options) {
    for (const wire::DebugTensorWatch& watch : options.debug_options->debug_tensor_watch_opts) {
      if (watch.debug_urls.empty()) continue;  // it tells nobody
      return Unimplemented(
          "RunOptions.debug_options.debug_tensor_watch_opts: tensors of a step are not watched, and ",
          watch.node_name.substr(0, 200), " is to be told to ", watch.debug_urls.front().substr(0, 200));
    }
  }
  StepOptions step;
  step.inter_op_threads = pool < 0 ? 1 : inter_op_threads_[static_cast<size_t>(pool)];  // -1: the caller's thread alone
  step.between_steps = options.between_steps;
  if (options.timeout_in_ms > 0) step.timeout = absl::Milliseconds(options.timeout_in_ms);
  return step;
}

// The kernel need not go on recording for a step that will not come.
MasterSession::~MasterSession() { ThreadSwitches::Get().Rest(); }

Status MasterSession::Run(const Call& call, const wire::RunOptions* options, absl::Span<const Output> feeds,
                          absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                          absl::Span<Node* const> targets, std::vector<Tensor>* outputs, wire::RunMetadata* metadata) {
  return WithoutExceptions([&]() -> Status {
    StepOptions step;
    step.inter_op_threads = inter_op_threads_.front();
    if (options) {
      MR_ASSIGN_OR_RETURN(step, OptionsOf(*options));
    }
    if (options && options->output_partition_graphs && metadata) {
      MR_ASSIGN_OR_RETURN(
          metadata->partition_graphs,
          coordinator_.PartitionGraphs(
              {{feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {targets.begin(), targets.end()}}));
    }
    step.cancellation = call.cancellation;
    step.interrupt = call.interrupt;
    const PlacementPeriods::Turn turn = periods_.Next();
    if (turn == PlacementPeriods::Turn::kPlace) coordinator_.ForgetCompiled();
    const bool is_asked_for = options && metadata && options->trace_level > wire::RunOptions::kNoTrace;
    const int64_t written_as = trace_files_.is_on() ? trace_files_.Next() : -1;
    std::optional<StepTrace> trace;
    std::optional<StepMeasure> measure;
    if (is_asked_for || written_as >= 0) {
      measure.emplace();
    } else {
      ThreadSwitches::Get().Rest();
    }
    if (measure || turn == PlacementPeriods::Turn::kMeasure) step.trace = &trace.emplace();
    const Status s = coordinator_.Run(step, feeds, feed_values, fetches, targets, outputs);
    if (measure) measure->Stop(env_.Now());
    if (!step.trace || absl::IsCancelled(s)) return s;
    WithoutExceptions([&] {  // a trace that there is no memory for is left out: the step has ended
      std::vector<StepRecord> records = trace->Take();
      if (turn == PlacementPeriods::Turn::kMeasure) KeepCosts(records, *placement_);
      if (!measure) return absl::OkStatus();
      AlignClocks(coordinator_.Sessions(), env_, &records);
      size_t bytes = 0;
      for (const StepRecord& record : records) bytes += record.TotalBytes();
      auto encode = [records = std::move(records), fetched = FetchedValues(feeds, fetches, *outputs),
                     devices = s.ok() ? coordinator_.ListDevices() : std::vector<DeviceInfo>(),
                     measure = *std::move(measure)]() mutable {
        // No devices: another step has just found that a worker forgot the session.
        if (!devices.empty()) AddUnrun(fetched, devices, &records);
        return measure.Write(records, fetched);
      };
      const bool is_written = written_as >= 0 && s.ok();
      if (!is_asked_for) {
        if (is_written) trace_writer_->Write(trace_files_.PathOf(written_as), bytes, std::move(encode));
        return absl::OkStatus();
      }
      std::string encoded = encode();
      metadata->unknown_fields.Append(encoded);  // nobody on the way reads it
      if (is_written) {
        trace_writer_->Write(
            trace_files_.PathOf(written_as), encoded.size(), [encoded = std::move(encoded)] { return encoded; });
      }
      return absl::OkStatus();
    })
        .IgnoreError();
    return s;
  });
}

void MasterSession::FlushTraces(absl::Duration patience) {
  if (trace_writer_) trace_writer_->Flush(patience);
}

}  // namespace millrace
