// SPDX-License-Identifier: Apache-2.0
// What a step costs beside its kernels, through the public C++ client: no Python, no other library.
#define MILLRACE_EXCEPTIONS 1
#include <benchmark/benchmark.h>
#include <millrace/millrace.h>

namespace {

using millrace::Config;
using millrace::Feed;
using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::Scope;
using millrace::Session;
using millrace::SessionOptions;
using millrace::Tensor;

// One feed, one op, one fetch.
void TinyRun(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output x = s.Placeholder(millrace::DType::kFloat);
  const Output y = s.Op("Add", {x, 1.0f});
  const Session session(graph);
  const std::vector<Feed> feeds = {{x, Tensor(2.0f)}};
  for (auto _ : state) benchmark::DoNotOptimize(session.Run(feeds, {y}));
}
BENCHMARK(TinyRun);

// A chain of scalar additions: nanoseconds per op in "per_op".
void DependentAdds(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output x = s.Placeholder(millrace::DType::kFloat);
  Output y = x;
  for (int64_t i = 0; i < state.range(0); ++i) y = s.Op("Add", {y, x});
  const Session session(graph);
  const std::vector<Feed> feeds = {{x, Tensor(1.0f)}};
  for (auto _ : state) benchmark::DoNotOptimize(session.Run(feeds, {y}));
  state.counters["per_op"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(DependentAdds)->Arg(1000);

// The same adds behind a node that waits, for what is there already: counts, a queue of ready nodes and a lock must not
// be paid for by each of them.
void Adds(benchmark::State& state, Scope& s, Output x, const Session& session, const std::vector<Feed>& feeds,
          const std::vector<Operation>& targets) {
  Output y = x;
  for (int64_t i = 0; i < state.range(0); ++i) y = s.Op("Add", {y, x});
  for (auto _ : state) benchmark::DoNotOptimize(session.Run(feeds, {y}, targets));
  state.counters["per_op"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// A queue that is always full: what is taken is put back.
struct FullQueue {
  FullQueue(Scope& s, const Tensor& value) {
    const std::vector<millrace::DType> types = {value.dtype()};
    const Output queue = s.Op("FIFOQueueV2", {}, {{"component_types", types}, {"capacity", 1}});
    fill = s.Op("QueueEnqueueV2", {queue, std::vector<Output>{s.Const(value)}});
    taken = s.Op("QueueDequeueV2", {queue}, {{"component_types", types}});
    put_back = s.Op("QueueEnqueueV2", {queue, std::vector<Output>{taken}});
  }
  Output taken;
  Operation fill, put_back;
};

void AddsBehindAFullQueue(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const FullQueue queue(s, Tensor(1.0f));
  const Session session(graph);
  session.RunTargets({queue.fill});
  Adds(state, s, queue.taken, session, {}, {queue.put_back});
}
BENCHMARK(AddsBehindAFullQueue)->Arg(1000)->UseRealTime();

SessionOptions TwoDevices() {
  Config config;
  config.device_count = {{"CPU", 2}};
  return {.config = config.Encode()};
}

void AddsBehindARecv(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output x = s.Placeholder(millrace::DType::kFloat);
  const Output sent = s.WithDevice("/cpu:1").Op("Neg", {x});
  const Session session(graph, TwoDevices());
  Scope here = s.WithDevice("/cpu:0");
  Adds(state, here, sent, session, {{x, Tensor(1.0f)}}, {});
}
BENCHMARK(AddsBehindARecv)->Arg(1000)->UseRealTime();

// ---- Lines of work beside each other: products too small to be split, about 5 ms a line ----

constexpr int64_t kSide = 64;
Tensor Square() { return Tensor::Of({kSide, kSide}, std::vector<float>(kSide * kSide, 1.0f / kSide)); }
Output Line(Scope s, Output x, Output w) {
  for (int i = 0; i < 1000; ++i) x = s.Op("MatMul", {x, w});
  return x;
}
// Which way is faster is decided in the first steps.
void RunWarm(benchmark::State& state, const Session& session, const std::vector<Feed>& feeds,
             const std::vector<Output>& fetches, const std::vector<Operation>& targets = {}) {
  for (int i = 0; i < 40; ++i) session.Run(feeds, fetches, targets);
  for (auto _ : state) benchmark::DoNotOptimize(session.Run(feeds, fetches, targets));
}

void Lines(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output w = s.Placeholder(millrace::DType::kFloat, {kSide, kSide});
  std::vector<Output> lines = {Line(s, w, w)};
  if (state.range(0) > 1) lines.push_back(Line(s, s.Op("Neg", {w}), w));
  const Session session(graph);
  RunWarm(state, session, {{w, Square()}}, lines);
}
BENCHMARK(Lines)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// Two lines of one device in a step that has a part on another device too, so that it goes by messages.
void LinesOfAJointStep(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output w = s.Placeholder(millrace::DType::kFloat, {kSide, kSide});
  const Scope here = s.WithDevice("/cpu:0");
  Scope there = s.WithDevice("/cpu:1");
  const Session session(graph, TwoDevices());
  RunWarm(state, session, {{w, Square()}},
          {Line(here, w, w), Line(here, Scope(here).Op("Neg", {w}), w), there.Op("Neg", {w})});
}
BENCHMARK(LinesOfAJointStep)->UseRealTime()->Unit(benchmark::kMillisecond);

// Two lines on two devices.
void LinesOfTwoDevices(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output w = s.Placeholder(millrace::DType::kFloat, {kSide, kSide});
  const Session session(graph, TwoDevices());
  RunWarm(state, session, {{w, Square()}},
          {Line(s.WithDevice("/cpu:0"), w, w), Line(s.WithDevice("/cpu:1"), s.Op("Neg", {w}), w)});
}
BENCHMARK(LinesOfTwoDevices)->UseRealTime()->Unit(benchmark::kMillisecond);

// Two lines, each behind a queue of its own: a step that waits.
void LinesBehindQueues(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const FullQueue one(s, Square()), two(s, Square());
  const Session session(graph);
  session.RunTargets({one.fill, two.fill});
  RunWarm(
      state, session, {}, {Line(s, one.taken, one.taken), Line(s, two.taken, two.taken)}, {one.put_back, two.put_back});
}
BENCHMARK(LinesBehindQueues)->UseRealTime()->Unit(benchmark::kMillisecond);

// The first step of a signature: microseconds per node in "per_node".
void FirstStep(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output x = s.Placeholder(millrace::DType::kFloat, {8, 8});
  Output y = x;
  for (int64_t i = 0; i < state.range(0); ++i)
    y = s.Op(i % 2 == 0 ? "Tanh" : "MatMul",
             i % 2 == 0 ? std::vector<millrace::Input>{y} : std::vector<millrace::Input>{y, x});
  const std::vector<Feed> feeds = {{x, Tensor::Of({8, 8}, std::vector<float>(64, 0.1f))}};
  for (auto _ : state) {
    const Session session(graph);
    benchmark::DoNotOptimize(session.Run(feeds, {y}));
  }
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(FirstStep)->Arg(3000)->Unit(benchmark::kMillisecond);

// Feeding and fetching without a copy: the cost must not grow with the size.
void FeedFetch(benchmark::State& state) {
  Graph graph;
  Scope s(graph);
  const Output x = s.Placeholder(millrace::DType::kFloat);
  const Output y = s.Op("Identity", {x});
  const Session session(graph);
  const std::vector<Feed> feeds = {
      {x, Tensor::Of({state.range(0)}, std::vector<float>(static_cast<size_t>(state.range(0)), 1.0f))}};
  for (auto _ : state) benchmark::DoNotOptimize(session.Run(feeds, {y}));
}
BENCHMARK(FeedFetch)->Arg(1)->Arg(16 << 20);

// Stating a graph: microseconds per node in "per_node".
void BuildGraph(benchmark::State& state) {
  for (auto _ : state) {
    Graph graph;
    Scope s(graph);
    Output y = s.Placeholder(millrace::DType::kFloat, {8, 8});
    for (int64_t i = 0; i < state.range(0); ++i) y = s.Op("Tanh", {y});
  }
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BuildGraph)->Arg(10000);

}  // namespace
