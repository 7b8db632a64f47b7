// SPDX-License-Identifier: Apache-2.0
// The state of loops in a step that runs by readiness: a frame for each time a loop is entered, and in it the
// iterations that are under way. Frame 0 with its one iteration is what is outside of all loops.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/plan.h"

namespace millrace {

struct LoopRun;

// What has arrived at a unit in one iteration.
struct NodeState {
  int32_t pending = 0;
  int32_t dead_data = 0;
  int32_t merge_input = -1;  // of a merge: the first live input
  bool is_dead = false;   // of a node by itself: anything dead has arrived; at a merge: nothing live can come any more
  bool is_ready = false;  // has been queued
  bool is_done = false;
};

struct Iteration {
  LoopRun* run = nullptr;
  int frame = 0;
  int64_t number = 0;
  int64_t serial = 0;       // in the order of their beginning, over all loops of the step
  int64_t live = 0;         // units queued or running, and loops under way that were entered from here
  Frame* values = nullptr;  // the step's, or `own`
  Frame own;
  std::vector<NodeState> nodes;                   // by unit
  std::map<int, std::unique_ptr<LoopRun>> loops;  // under way, entered from here, by frame
  StepContext step;                               // with the frame and iteration of this one

  // May be past the last one: of a node without outputs.
  Slot* slots_from(int i) const { return values->slots.data() + i; }
  Slot& slot(int i) const { return *slots_from(i); }

  Iteration();
  ~Iteration();
};

struct LoopRun {
  const PlanFrame* frame = nullptr;
  int frame_index = 0;
  uint64_t id = 0;              // the same in every partition of the step
  Iteration* parent = nullptr;  // null: frame 0
  int enters_missing = 0;
  std::vector<Slot> constants;
  struct ArrivedConstant {
    int enter;  // node
    bool is_dead;
  };
  std::vector<ArrivedConstant> arrived;
  std::deque<std::unique_ptr<Iteration>> iterations;  // consecutive numbers
  struct WaitingValue {
    int node;  // the NextIteration
    Slot value;
  };
  std::vector<WaitingValue> waiting;  // for the iteration after the last, which may not begin yet
  std::vector<int> live_exits;        // nodes; an Exit is live in one iteration at most
  std::vector<int> dead_exits;        // those that have not been live yet; iterations come in any order

  Iteration* Find(int64_t number) const {
    if (iterations.empty() || number < iterations.front()->number) return nullptr;
    const auto offset = static_cast<size_t>(number - iterations.front()->number);
    return offset < iterations.size() ? iterations[offset].get() : nullptr;
  }
};

inline Iteration::Iteration() = default;
inline Iteration::~Iteration() = default;

}  // namespace millrace
