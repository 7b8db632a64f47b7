// SPDX-License-Identifier: Apache-2.0
#include "service/copy_message.h"

namespace millrace {
namespace {

Status Own(Tensor& t) {
  MR_ASSIGN_OR_RETURN(t, t.Clone());
  return absl::OkStatus();
}

}  // namespace

Status OwnTensors(RunStepRequest& m) {
  for (RunStepRequest::Part& part : m.parts) {
    for (Tensor& t : part.args) MR_RETURN_IF_ERROR(Own(t));
  }
  return absl::OkStatus();
}

Status OwnTensors(RunStepResponse& m) {
  for (std::vector<Tensor>& retvals : m.retvals) {
    for (Tensor& t : retvals) MR_RETURN_IF_ERROR(Own(t));
  }
  return absl::OkStatus();
}

Status OwnTensors(ExchangeTensorsRequest& m) {
  for (ExchangeTensorsRequest::Feed& f : m.feeds) MR_RETURN_IF_ERROR(Own(f.value));
  return absl::OkStatus();
}

Status OwnTensors(ExchangeTensorsResponse& m) {
  for (ReceivedTensor& f : m.fetches) MR_RETURN_IF_ERROR(Own(f.value));
  return absl::OkStatus();
}

Status OwnTensors(RecvTensorResponse& m) { return Own(m.tensor.value); }

}  // namespace millrace
