// SPDX-License-Identifier: Apache-2.0
// Messages as the other side of a network gets them: tensors have memory of their own.
#pragma once

#include "service/worker_messages.h"

namespace millrace {

// ResourceExhausted when there is no memory for the copy. (Resource handles still name what they named: such values do
// not leave the process.)
Status OwnTensors(RunStepRequest& m);
Status OwnTensors(RunStepResponse& m);
Status OwnTensors(ExchangeTensorsRequest& m);
Status OwnTensors(ExchangeTensorsResponse& m);
Status OwnTensors(RecvTensorResponse& m);
// No tensors in these. (Graphs are moved: nobody else has them.)
template <typename Message>
Status OwnTensors(Message&) {
  return absl::OkStatus();
}

}  // namespace millrace
