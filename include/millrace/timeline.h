// SPDX-License-Identifier: Apache-2.0
// The times of a step, and a picture of them for chrome://tracing and ui.perfetto.dev.
//
//   millrace::RunMetadata told;
//   session.Run({}, {y}, {}, {.trace_level = millrace::TraceLevel::kFull}, &told);
//   millrace::WriteTimeline(told, "step.json");
#pragma once

#include <cstdio>

#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// One run of an op, as StepStats has it.
struct NodeStats {
  std::string name;   // of the node
  std::string label;  // what it did: "MatMul = MatMul(a, b)"
  // The device's full name.
  std::string device;
  // The number of the thread that it ran on, on that device.
  int64_t thread = 0;
  int64_t scheduled_nanos = 0;  // when its inputs were there; 0: not told
  int64_t start_nanos = 0;      // both since 1970
  int64_t duration_nanos = 0;
  // The same cut to microseconds.
  int64_t scheduled_micros = 0, start_micros = 0, duration_micros = 0;
  // What its outputs take; those of its inputs that it passes on count, too.
  int64_t output_bytes = 0;
};

// What a step's ops did.
struct StepStats {
  // In the order in which devices tell them.
  std::vector<NodeStats> nodes;
  std::map<std::string, std::map<int64_t, std::string>> threads;  // their names, by device and number
};

namespace internal {

inline int64_t OutputBytes(std::string_view node_output) {
  for (Decoder output(node_output); output.Next();) {
    if (output.field() != 3) continue;  // tensor_description
    for (Decoder tensor(output.bytes()); tensor.Next();) {
      if (tensor.field() != 4) continue;  // allocation_description
      for (Decoder allocation(tensor.bytes()); allocation.Next();) {
        if (allocation.field() == 1) return allocation.number();
      }
    }
  }
  return 0;
}

inline NodeStats ReadNodeStats(std::string_view encoded, bool* damaged) {
  NodeStats n;
  int64_t op_end = 0, all_end = 0, op_end_nanos = 0, all_end_nanos = 0;
  Decoder d(encoded);
  while (d.Next()) {
    switch (d.field()) {
      case 1: n.name = d.text(); break;
      case 2: n.start_micros = d.number(); break;
      case 4: op_end = d.number(); break;
      case 5: all_end = d.number(); break;
      case 7: n.output_bytes += OutputBytes(d.bytes()); break;
      case 8: n.label = d.text(); break;
      case 9: n.scheduled_micros = d.number(); break;
      case 10: n.thread = d.number(); break;
      case 13: n.start_nanos = d.number(); break;
      case 15: op_end_nanos = d.number(); break;
      case 16: all_end_nanos = d.number(); break;
      case 17: n.scheduled_nanos = d.number(); break;
      default: break;
    }
  }
  n.duration_micros = op_end > all_end ? op_end : all_end;
  n.duration_nanos = op_end_nanos > all_end_nanos ? op_end_nanos : all_end_nanos;
  if (n.start_nanos == 0) {  // of a writer that has none
    n.start_nanos = n.start_micros * 1000;
    n.duration_nanos = n.duration_micros * 1000;
    n.scheduled_nanos = n.scheduled_micros * 1000;
  }
  *damaged |= d.damaged();
  return n;
}

inline std::string JsonText(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    char code[8];
    if (c == '"' || c == '\\') {
      json += '\\', json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      json += code;
    } else {
      json += c;
    }
  }
  return json + '"';
}

// Nanoseconds as microseconds: "12.345".
inline std::string MicrosText(int64_t nanos) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanos / 1000), static_cast<int>(nanos % 1000));
  return text;
}

}  // namespace internal

// What a step that was traced did. TF_DATA_LOSS: these are no such metadata.
inline Returned<StepStats> ReadStepStats(const RunMetadata& metadata) {
  StepStats stats;
  internal::Decoder all(metadata.encoded);
  bool damaged = false;
  while (all.Next()) {
    if (all.field() != 1) continue;  // step_stats
    internal::Decoder step(all.bytes());
    while (step.Next()) {
      if (step.field() != 1) continue;  // dev_stats
      std::string device;
      const size_t first = stats.nodes.size();
      std::map<int64_t, std::string> threads;
      internal::Decoder d(step.bytes());
      while (d.Next()) {
        if (d.field() == 1) device = d.text();
        if (d.field() == 2) stats.nodes.push_back(internal::ReadNodeStats(d.bytes(), &damaged));
        if (d.field() != 3) continue;
        int64_t number = 0;
        std::string name;
        for (internal::Decoder entry(d.bytes()); entry.Next();) {
          if (entry.field() == 1) number = entry.number();
          if (entry.field() == 2) name = entry.text();
        }
        threads[number] = name;
      }
      damaged |= d.damaged();
      for (size_t i = first; i < stats.nodes.size(); ++i) stats.nodes[i].device = device;
      stats.threads[device].merge(threads);
    }
    damaged |= step.damaged();
  }
  damaged |= all.damaged();
  return internal::Give(
      damaged ? Status(TF_DATA_LOSS, "the metadata of the step are damaged") : Status(), std::move(stats));
}

// The step as JSON of Chrome's trace format: a row for each device, a line for each thread. Times are microseconds with
// three decimals since the first node began, as in the files that Python writes; otherData has when that was.
inline std::string ChromeTrace(const StepStats& stats) {
  std::map<std::string, int> rows;
  for (const NodeStats& n : stats.nodes) rows.emplace(n.device, static_cast<int>(rows.size()));
  int64_t began = stats.nodes.empty() ? 0 : stats.nodes[0].start_nanos;
  for (const NodeStats& n : stats.nodes) began = n.start_nanos < began ? n.start_nanos : began;
  std::string json = "{\"traceEvents\":[";
  auto add = [&json, first = true](const std::string& event) mutable {
    json += (first ? "\n" : ",\n") + event;
    first = false;
  };
  for (const auto& [device, row] : rows) {
    const std::string pid = std::to_string(row);
    add(R"({"ph":"M","name":"process_name","pid":)" + pid + R"(,"args":{"name":)" +
        internal::JsonText(device + " Compute") + "}}");
    const auto threads = stats.threads.find(device);
    if (threads == stats.threads.end()) continue;
    for (const auto& [thread, name] : threads->second) {
      add(R"({"ph":"M","name":"thread_name","pid":)" + pid + R"(,"tid":)" + std::to_string(thread) +
          R"(,"args":{"name":)" + internal::JsonText(name) + "}}");
    }
  }
  for (const NodeStats& n : stats.nodes) {
    std::string event =
        R"({"ph":"X","cat":"Op","name":)" + internal::JsonText(n.name) + R"(,"pid":)" + std::to_string(rows[n.device]) +
        R"(,"tid":)" + std::to_string(n.thread) + R"(,"ts":)" + internal::MicrosText(n.start_nanos - began) +
        R"(,"dur":)" + internal::MicrosText(n.duration_nanos) + R"(,"args":{"label":)" + internal::JsonText(n.label) +
        R"(,"output_bytes":)" + std::to_string(n.output_bytes);
    if (n.scheduled_nanos > 0 && n.scheduled_nanos <= n.start_nanos) {
      event += R"(,"waited_us":)" + internal::MicrosText(n.start_nanos - n.scheduled_nanos);
    }
    add(event + "}}");
  }
  return json + "\n],\"otherData\":{\"began_nanos_since_1970\":\"" + std::to_string(began) + "\"}}\n";
}

// Writes ChromeTrace of a step into a file.
inline Done WriteTimeline(const RunMetadata& metadata, const std::string& path) {
#if MILLRACE_EXCEPTIONS
  const StepStats stats = ReadStepStats(metadata);
#else
  const Result<StepStats> read = ReadStepStats(metadata);
  if (!read.ok()) return read.status();
  const StepStats& stats = *read;
#endif
  const std::string json = ChromeTrace(stats);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool good = file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (file) good = std::fclose(file) == 0 && good;
  return internal::Finish(good ? Status() : Status(TF_UNKNOWN, "cannot write " + path));
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
