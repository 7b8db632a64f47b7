// SPDX-License-Identifier: Apache-2.0
// What the compiler tells of its work on a step, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace millrace {

struct StageReport {
  std::string name;
  bool ran = false;
  int64_t nanos = 0;
  int64_t nodes = 0;                     // in all graphs, after it
  std::vector<std::string> gone, added;  // names of nodes, sorted; not of the first stage, which makes the graph
  std::vector<std::string> did;          // a line for each thing about transfers and memory
};

// Of the values of a partition, while its nodes run in the order chosen: estimates, from the shapes that are known.
struct MemoryReport {
  struct Holder {
    std::string node, op;
    double bytes = 0;
  };
  std::string device;
  double variable_bytes = 0, peak_bytes = 0;
  std::string peak_at;          // the node that runs then
  std::vector<Holder> holders;  // of the peak, the greatest first
};

// How a worker cut the plan of a partition.
struct WorkersCut {
  std::string task;
  int64_t segments = 0, longest = 0, single_nodes = 0;
};

struct CompileReport {
  std::vector<StageReport> stages;
  std::vector<PlacedNode> placement;
  std::vector<MemoryReport> memory;  // none of graphs with loops that have not collapsed
  std::vector<WorkersCut> cuts;
  std::string refusal;  // of workers that do not take the partitions
};

// Of a partition whose nodes run one after the other. Empty where they do not, as in loops.
StatusOr<std::vector<MemoryReport>> MemoryOf(const std::vector<Partition>& partitions, const PassEnvironment& env);

// A table of the stages, the partitions, and where nodes lie.
std::string ReportText(const CompileReport& report, const std::vector<Partition>& partitions);
// The same as one JSON object: docs/commands.md describes it.
std::string ReportJson(const CompileReport& report, const std::vector<Partition>& partitions);

}  // namespace millrace
