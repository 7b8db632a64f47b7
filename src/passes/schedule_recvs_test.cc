// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>
#include <random>

#include "passes/pass_testutil.h"

namespace millrace {
namespace {

constexpr int64_t kMany = 1 << 20;  // 4 MB

class ScheduleRecvsTest : public PassTest {
 protected:
  ScheduleRecvsTest() { env_.schedule_recvs = true; }
  Node* Made(const char* op, const std::string& name, std::vector<Output> inputs, int device) {
    Node* n = On(device, Add(op, name.c_str(), std::move(inputs)));
    n->set_shape(0, PartialShape::Of({kMany}));
    return n;
  }
  std::vector<Partition> Scheduled(std::vector<std::string>* notes = nullptr) {
    EXPECT_TRUE(Place(*graph_, env_).ok());
    auto parts = PartitionGraph(std::move(graph_), env_);
    EXPECT_TRUE(parts.ok()) << parts.status();
    const Status s = ScheduleRecvs(*parts, env_, notes);
    EXPECT_TRUE(s.ok()) << s;
    return *std::move(parts);
  }
  // Values of one device that another reads one after the other.
  void FanIn(int width) {
    Node* sum = nullptr;
    std::vector<Node*> values;
    for (int i = 0; i < width; ++i) values.push_back(Made("Placeholder", absl::StrCat("x", i), {}, 0));
    for (int i = 0; i < width; ++i) {
      Node* work = Made("Work", absl::StrCat("work", i), {values[static_cast<size_t>(i)]->output(0)}, 1);
      sum = sum == nullptr ? work : Made("Join", absl::StrCat("sum", i), {sum->output(0), work->output(0)}, 1);
    }
  }
  static int Delayed(const Graph& graph) {
    int count = 0;
    for (const Node* n : graph.nodes()) count += n->op_name() == "_Recv" && !n->control_inputs().empty();
    return count;
  }
};

TEST_F(ScheduleRecvsTest, WhatIsReadLateIsReceivedLate) {
  FanIn(8);
  std::vector<std::string> notes;
  const std::vector<Partition> parts = Scheduled(&notes);
  ASSERT_EQ(parts.size(), 2u);
  const Graph& to = *parts[1].graph;
  EXPECT_TRUE(to.Find("work0")->input(0).node->control_inputs().empty());
  for (const char* name : {"work3", "work7"}) {
    const Node* recv = to.Find(name)->input(0).node;
    ASSERT_EQ(recv->op_name(), "_Recv");
    EXPECT_FALSE(recv->control_inputs().empty()) << name;
  }
  ASSERT_EQ(notes.size(), 3u);
  double before = 0, after = 0;
  const size_t at = notes[1].find(": ");
  ASSERT_EQ(std::sscanf(notes[1].c_str() + at + 2, "%lf MB with receives at once, %lf MB", &before, &after), 2)
      << notes[1];
  EXPECT_GT(before, 8 * 4.0);
  EXPECT_LT(after, 5 * 4.2);
}

TEST_F(ScheduleRecvsTest, NobodyAsksSoNothingWaits) {
  env_.schedule_recvs = false;
  FanIn(8);
  EXPECT_EQ(Delayed(*Scheduled()[1].graph), 0);
}

TEST_F(ScheduleRecvsTest, SmallValuesAreNotWorthAnEdge) {
  FanIn(8);
  for (Node* n : graph_->nodes()) n->set_shape(0, PartialShape::Of({10}));
  EXPECT_EQ(Delayed(*Scheduled()[1].graph), 0);
}

// Also through other devices.
TEST_F(ScheduleRecvsTest, NothingComesToWaitForItself) {
  env_.devices.push_back(*DeviceName::Parse("/job:localhost/replica:0/task:1/device:CPU:0"));
  env_.incarnations.push_back(3);
  int delayed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    graph_ = std::make_unique<Graph>(&registry_);
    std::vector<Node*> nodes{Made("Placeholder", "x", {}, 0)};
    for (int i = 0; i < 40; ++i) {
      const auto any = [&] { return nodes[random() % nodes.size()]->output(0); };
      const char* const op = random() % 2 != 0 ? "Join" : "Work";
      std::vector<Output> inputs{any()};
      if (op[0] == 'J') inputs.push_back(any());
      Node* n = Add(op, absl::StrCat("n", i).c_str(), inputs);
      n->set_shape(0, PartialShape::Of({static_cast<int64_t>(random() % 4) * kMany / 8}));
      n->set_device(random() % 3 != 0 ? absl::StrCat("/task:0/device:CPU:", random() % 2) : "/task:1");
      nodes.push_back(n);
    }
    const std::vector<Partition> parts = Scheduled();
    // All partitions as one graph, with an edge from each Send to its Recv.
    std::map<const Node*, std::vector<const Node*>> from;
    std::map<std::string, const Node*> sends;
    for (const Partition& p : parts) {
      delayed += Delayed(*p.graph);
      for (const Node* n : p.graph->nodes()) {
        if (n->op_name() == "_Send") sends[*n->Attr<std::string>("tensor_name")] = n;
      }
    }
    for (const Partition& p : parts) {
      for (const Node* n : p.graph->nodes()) {
        for (const Output in : n->inputs()) from[n].push_back(in.node);
        for (const Node* c : n->control_inputs()) from[n].push_back(c);
        if (n->op_name() == "_Recv") from[n].push_back(sends.at(*n->Attr<std::string>("tensor_name")));
        from.try_emplace(n);
      }
    }
    size_t left = from.size();
    std::map<const Node*, bool> done;
    for (bool more = true; more;) {
      more = false;
      for (const auto& [n, sources] : from) {
        if (done[n] || !std::all_of(sources.begin(), sources.end(), [&](const Node* s) { return done[s]; })) continue;
        done[n] = more = true;
        --left;
      }
    }
    ASSERT_EQ(left, 0u) << "seed " << seed;
  }
  EXPECT_GT(delayed, 100);
}

}  // namespace
}  // namespace millrace
