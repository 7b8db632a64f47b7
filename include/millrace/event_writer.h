// SPDX-License-Identifier: Apache-2.0
// Event files of the C++ client.
#pragma once

#include "millrace/c_api_io.h"
#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// A new event file for TensorBoard in `folder`.
class EventWriter {
 public:
  explicit EventWriter(const std::string& folder) {
    internal::CallStatus status;
    writer_ = {MR_EventWriterOpen(folder.c_str(), nullptr, status), [](MR_EventWriter* w) {
                 internal::CallStatus ignored;
                 if (w) MR_EventWriterClose(w, ignored);
               }};
    error_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!error_.ok()) throw Error(error_);
#endif
  }
  Done AddGraph(const Graph& graph) {
    if (!writer_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_EventWriterAddGraph(writer_.get(), graph.get(), status);
    return internal::Finish(status.Get());
  }
  // `summary` is what a summary op returned.
  Done AddSummary(const std::string& summary, int64_t step) {
    if (!writer_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_EventWriterAddSummary(writer_.get(), summary.data(), summary.size(), step, status);
    if (status.ok()) MR_EventWriterFlush(writer_.get(), status);
    return internal::Finish(status.Get());
  }
  // Of a fetched summary; with a status where others throw.
  Status TryAddSummary(const Tensor& summary, int64_t step) const {
    if (!writer_) return error_;
    if (!summary || summary.dtype() != DType::kString || summary.num_elements() != 1) {
      return Status(TF_INVALID_ARGUMENT, "a summary is one string");
    }
    const auto* text = static_cast<const TF_TString*>(Api().TensorData(summary.get()));
    internal::CallStatus status;
    MR_EventWriterAddSummary(writer_.get(), Api().StringGetDataPointer(text), Api().StringGetSize(text), step, status);
    if (status.ok()) MR_EventWriterFlush(writer_.get(), status);
    return status.Get();
  }

 private:
  std::shared_ptr<MR_EventWriter> writer_;
  Status error_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
