// SPDX-License-Identifier: Apache-2.0
// Starts each Recv as late as the critical path allows (white paper 5.2), so that what it receives, and the copy of it
// in a device's memory, is not there long before it is used.
//
// All partitions are run together in thought: each device one node at a time, a value that crosses after its transfer
// (earliest times, "as soon as possible"). From the end of the step backwards each node gets the latest time at which
// it may begin without the step ending later ("as late as possible"). A Recv must be started one transfer, and a
// quarter, before its first reader's latest time; a control edge makes it wait for the last node of its device that has
// ended by then.
//
// Sorted by latest times, sources come before what reads them, over all partitions, and every added edge goes forward
// in that order. So nothing can wait for itself, also through other devices. A node that may be dead starts no Recv.
#include <algorithm>
#include <map>
#include <queue>

#include "base/hash_map.h"
#include "op/op_cost.h"
#include "passes/value_memory.h"

namespace millrace {
namespace {

constexpr double kWorthBytes = 4096;
constexpr double kTransferSlack = 1.25;

class Scheduler {
 public:
  Scheduler(std::vector<Partition>& partitions, const PassEnvironment& env)
      : partitions_(partitions), env_(env), costs_(env) {}

  Status Run(std::vector<std::string>* notes) {
    MR_RETURN_IF_ERROR(Read());
    FindEarliest();
    std::vector<double> before;
    if (notes != nullptr) before = Peaks();
    FindLatest();
    const int added = Delay();
    if (notes == nullptr) return absl::OkStatus();
    FindEarliest();
    const std::vector<double> after = Peaks();
    for (size_t p = 0; p < partitions_.size(); ++p) {
      notes->push_back(absl::StrCat("peak of values on ", partitions_[p].device, ": ", BytesText(before[p]),
                                    " with receives at once, ", BytesText(after[p]), " with late ones"));
    }
    notes->push_back(absl::StrCat(added, " receives were delayed"));
    return absl::OkStatus();
  }

 private:
  struct Task {
    Node* node = nullptr;
    size_t partition = 0;
    bool is_recv = false, may_be_dead = false, in_loop = false;
    double nanos = 0, transfer = 0;  // of a Recv: until the value is there once both sides are ready
    std::vector<int> from, to;
    double begins = 0, ends = 0;  // earliest
    double latest = 0;            // beginning
  };
  static size_t At(int t) { return static_cast<size_t>(t); }

  Status Read() {
    HashMap<std::string, int> sends;
    for (size_t p = 0; p < partitions_.size(); ++p) {
      MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(*partitions_[p].graph));
      const size_t device = PositionOfDevice(env_, partitions_[p].device);
      for (Node* n : order) {
        index_.emplace(n, static_cast<int>(tasks_.size()));
        Task t{.node = n, .partition = p};
        t.is_recv = n->Is(OpTrait::kTransfer) && n->num_outputs() == 1;
        t.nanos = t.is_recv ? 0 : costs_.Nanos(*n, device);
        if (n->Is(OpTrait::kTransfer) && !t.is_recv) sends.emplace(KeyOf(*n), static_cast<int>(tasks_.size()));
        tasks_.push_back(std::move(t));
      }
    }
    for (size_t k = 0; k < tasks_.size(); ++k) {
      const Task& t = tasks_[k];
      const auto link = [&](int from) {
        tasks_[k].from.push_back(from);
        tasks_[At(from)].to.push_back(static_cast<int>(k));
      };
      for (const Output in : t.node->inputs()) {
        if (!IsBackEdge(in.node->control_op(), t.node->control_op())) link(index_.at(in.node));
      }
      for (const Node* c : t.node->control_inputs()) link(index_.at(c));
      if (!t.is_recv) continue;
      const auto send = sends.find(KeyOf(*t.node));
      if (send == sends.end()) continue;  // the client's
      link(send->second);
      const size_t here = PositionOfDevice(env_, partitions_[t.partition].device);
      const size_t there = PositionOfDevice(env_, partitions_[tasks_[At(send->second)].partition].device);
      tasks_[k].transfer = costs_.TransferNanos(costs_.Bytes(t.node->output(0)), there, here);
    }
    return FindOrder();
  }

  static std::string KeyOf(const Node& n) {
    const auto text = [&](const char* attr) { return n.Attr<std::string>(attr).value_or(""); };
    return absl::StrCat(text("send_device"), ";", text("recv_device"), ";", text("tensor_name"));
  }

  // Over all partitions.
  Status FindOrder() {
    std::vector<size_t> pending(tasks_.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t k = 0; k < tasks_.size(); ++k) {
      pending[k] = tasks_[k].from.size();
      if (pending[k] == 0) ready.push(static_cast<int>(k));
    }
    while (!ready.empty()) {
      const int k = ready.top();
      ready.pop();
      Task& t = tasks_[At(k)];
      const ControlOp op = t.node->control_op();
      t.may_be_dead = op != ControlOp::kNone;
      t.in_loop = op == ControlOp::kEnter;
      for (const int f : t.from) {
        t.may_be_dead |= tasks_[At(f)].may_be_dead;
        t.in_loop |= tasks_[At(f)].in_loop;
      }
      order_.push_back(k);
      for (const int to : t.to) {
        if (--pending[At(to)] == 0) ready.push(to);
      }
    }
    return order_.size() == tasks_.size() ? absl::OkStatus() : Internal("partitions wait for each other in a cycle");
  }

  // With each device at one node at a time: of those that could begin the one that could first, then by construction.
  void FindEarliest() {
    std::vector<double> free_at(partitions_.size()), begin(tasks_.size());
    std::vector<size_t> pending(tasks_.size());
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t k = 0; k < tasks_.size(); ++k) {
      pending[k] = tasks_[k].from.size();
      if (pending[k] == 0) ready.emplace(0, static_cast<int>(k));
    }
    run_.clear();
    while (!ready.empty()) {
      const int k = ready.top().second;
      ready.pop();
      Task& t = tasks_[At(k)];
      t.begins = begin[At(k)];
      if (t.nanos > 0) t.begins = std::max(t.begins, free_at[t.partition]);
      t.ends = t.begins + t.nanos + t.transfer;
      if (t.nanos > 0) free_at[t.partition] = t.ends;
      run_.push_back(k);
      for (const int to : t.to) {
        begin[At(to)] = std::max(begin[At(to)], t.ends);
        if (--pending[At(to)] == 0) ready.emplace(begin[At(to)], to);
      }
    }
  }

  // The same backwards from the end: of those whose readers have all been placed the one that may end last, then by
  // construction.
  void FindLatest() {
    double end = 0;
    for (const Task& t : tasks_) end = std::max(end, t.ends);
    std::vector<double> next_begins(partitions_.size(), end), must_end(tasks_.size(), end);
    std::vector<size_t> pending(tasks_.size());
    std::priority_queue<std::pair<double, int>> ready;
    const auto offer = [&](int k) {
      const Task& t = tasks_[At(k)];
      ready.emplace(t.nanos > 0 ? std::min(must_end[At(k)], next_begins[t.partition]) : must_end[At(k)], k);
    };
    for (size_t k = 0; k < tasks_.size(); ++k) {
      pending[k] = tasks_[k].to.size();
      if (pending[k] == 0) offer(static_cast<int>(k));
    }
    while (!ready.empty()) {
      const auto [bound, k] = ready.top();
      ready.pop();
      Task& t = tasks_[At(k)];
      if (t.nanos > 0 && next_begins[t.partition] < bound) {  // the device was given away meanwhile
        offer(k);
        continue;
      }
      t.latest = bound - t.nanos - t.transfer * kTransferSlack;
      if (t.nanos > 0) next_begins[t.partition] = t.latest;
      for (const int from : t.from) {
        must_end[At(from)] = std::min(must_end[At(from)], t.latest);
        if (--pending[At(from)] == 0) offer(from);
      }
    }
  }

  int Delay() {
    std::vector<int> by_latest = run_;
    std::stable_sort(
        by_latest.begin(), by_latest.end(), [&](int a, int b) { return tasks_[At(a)].latest < tasks_[At(b)].latest; });
    std::vector<std::vector<int>> done(partitions_.size());  // what could start a Recv
    int added = 0;
    for (const int k : by_latest) {
      Task& t = tasks_[At(k)];
      std::vector<int>& before = done[t.partition];
      if (!t.is_recv) {
        // Transfers and copies run as early as they may.
        const bool may_start = t.nanos > 0 && !t.may_be_dead && !t.in_loop && !t.node->Is(OpTrait::kInternal);
        if (may_start) before.push_back(k);
        continue;
      }
      if (t.in_loop || t.transfer == 0 || costs_.Bytes(t.node->output(0)) < kWorthBytes) continue;
      // Latest ends grow along `before`, since a device runs one node at a time.
      const auto late = std::partition_point(
          before.begin(), before.end(), [&](int b) { return tasks_[At(b)].latest + tasks_[At(b)].nanos <= t.latest; });
      if (late == before.begin()) continue;
      const int trigger = *std::prev(late);
      if (tasks_[At(trigger)].ends <= t.begins) continue;  // it is over before the value is there
      Node* const start = tasks_[At(trigger)].node;
      partitions_[t.partition].graph->AddControlEdge(start, t.node);
      t.from.push_back(trigger);
      tasks_[At(trigger)].to.push_back(k);
      ++added;
    }
    return added;
  }

  // With the nodes of each partition in the order in which they would begin.
  std::vector<double> Peaks() const {
    std::vector<std::vector<Node*>> orders(partitions_.size());
    for (const int k : run_) orders[tasks_[At(k)].partition].push_back(tasks_[At(k)].node);
    std::vector<double> peaks;
    for (size_t p = 0; p < partitions_.size(); ++p) {
      const ValueMemory memory(orders[p], env_, PositionOfDevice(env_, partitions_[p].device));
      peaks.push_back(memory.PeakOf(orders[p]).bytes);
    }
    return peaks;
  }

  std::vector<Partition>& partitions_;
  const PassEnvironment& env_;
  const CostModel costs_;
  std::vector<Task> tasks_;
  HashMap<const Node*, int> index_;
  std::vector<int> order_;  // sources first
  std::vector<int> run_;    // the same by earliest beginning
};

}  // namespace

Status ScheduleRecvs(std::vector<Partition>& partitions, const PassEnvironment& env, std::vector<std::string>* notes) {
  if (!env.schedule_recvs || partitions.size() < 2) return absl::OkStatus();
  return Scheduler(partitions, env).Run(notes);
}

}  // namespace millrace
