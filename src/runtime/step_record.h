// SPDX-License-Identifier: Apache-2.0
// What the nodes of a traced step did, as it is kept until somebody wants to read it: what is the same in every step is
// told once for a plan, and a run of a node takes some hundred bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/help_point.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace millrace {

// What a trace tells of a plan's nodes that is the same in every step. It may outlive the plan.
struct TracedPlan {
  struct Node {
    std::string name;
    std::string op;
    std::vector<int32_t> inputs;    // nodes that it waits for
    std::vector<int32_t> controls;  // for an order alone
    int64_t edge = -1;              // of a Send or Recv: the same number on both sides
    std::string label;              // "name = op(inputs)", "^node" for an order alone
  };
  std::string device;
  std::vector<Node> nodes;

  // Once, when all else is there: makes the labels, in proportion to the rest: names that would take too much are left
  // out. InvalidArgument: a node waits for one that is not there.
  Status MakeLabels();
};

struct StepRecord {
  struct Output {
    DType dtype = DType::kInvalid;
    Shape shape;
    int64_t bytes = 0;
    uint64_t buffer = 0;     // its address: outputs with the same one share their bytes
    bool is_shared = false;  // somebody else held the buffer, too: a variable, or who reads it already
  };
  struct Run {
    int32_t plan = 0;
    int32_t node = 0;
    int64_t start_nanos = 0;  // as RealNanos says
    int64_t end_nanos = 0;
    uint32_t thread = 0;           // that began it
    bool is_asynchronous = false;  // its thread did something else before it ended
    uint32_t outputs_end = 0;      // in `outputs`; they begin where those of the run before end
    uint32_t parts_end = 0;        // in `parts`
  };
  struct Thread {
    uint32_t number = 0;
    std::string name;
  };
  std::vector<std::shared_ptr<const TracedPlan>> plans;
  std::vector<Run> runs;
  std::vector<Output> outputs;
  std::vector<HelpPart> parts;  // what other threads did of ParallelFor calls
  std::vector<Thread> threads;
  bool is_of_this_process = false;  // messages do not say it

  const TracedPlan::Node& NodeOf(const Run& run) const {
    return plans[static_cast<size_t>(run.plan)]->nodes[static_cast<size_t>(run.node)];
  }
  absl::Span<const Output> OutputsOf(size_t run) const {
    return absl::MakeConstSpan(outputs).subspan(
        run == 0 ? 0 : runs[run - 1].outputs_end, runs[run].outputs_end - (run == 0 ? 0 : runs[run - 1].outputs_end));
  }
  absl::Span<const HelpPart> PartsOf(size_t run) const {
    return absl::MakeConstSpan(parts).subspan(
        run == 0 ? 0 : runs[run - 1].parts_end, runs[run].parts_end - (run == 0 ? 0 : runs[run - 1].parts_end));
  }
  // How much memory it holds, about.
  size_t TotalBytes() const {
    return sizeof(*this) + runs.size() * sizeof(Run) + outputs.size() * sizeof(Output) +
           parts.size() * sizeof(HelpPart);
  }
  // It has come from somewhere else. InvalidArgument: a number in it is out of range; ResourceExhausted: to write its
  // statistics would take far too long.
  Status Check() const;
};

}  // namespace millrace
