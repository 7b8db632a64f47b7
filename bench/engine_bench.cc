// SPDX-License-Identifier: Apache-2.0
// What a step costs beside its kernels, through the public C++ client: no Python, no other library.
#define MILLRACE_EXCEPTIONS 1
#include <benchmark/benchmark.h>
#include <millrace/millrace.h>

namespace {

using millrace::Feed;
using millrace::Graph;
using millrace::Output;
using millrace::Scope;
using millrace::Session;
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
