// SPDX-License-Identifier: Apache-2.0
#include "ops/op_list.h"

#include "ops/audio_ops.h"
#include "ops/client_function_ops.h"
#include "ops/dataset_ops.h"
#include "ops/image_ops.h"
#include "ops/lookup_ops.h"
#include "ops/parsing_ops.h"
#include "ops/queue_ops.h"
#include "ops/reader_ops.h"
#include "ops/string_ops.h"
#include "ops/text_ops.h"

namespace millrace {

void RegisterAllOps(OpRegistry& registry) {
  RegisterElementwiseOps(registry);
  RegisterArrayOps(registry);
  RegisterIndexOps(registry);
  RegisterMathOps(registry);
  RegisterLinalgOps(registry);
  RegisterNnOps(registry);
  RegisterRnnOps(registry);
  RegisterStateOps(registry);
  RegisterTrainingOps(registry);
  RegisterRandomOps(registry);
  RegisterCandidateOps(registry);
  RegisterSparseOps(registry);
  RegisterCtcOps(registry);
  RegisterImageOps(registry);
  RegisterStringOps(registry);
  RegisterParsingOps(registry);
  RegisterIoOps(registry);
  RegisterSummaryOps(registry);
  RegisterControlFlowOps(registry);
  RegisterFunctionalOps(registry);
  RegisterClientFunctionOps(registry);
  RegisterRuntimeOps(registry);
  RegisterStackOps(registry);
  RegisterTensorArrayOps(registry);
  RegisterTensorListOps(registry);
  RegisterQueueOps(registry);
  RegisterLookupOps(registry);
  RegisterReaderOps(registry);
  RegisterTextOps(registry);
  RegisterAudioOps(registry);
  RegisterDatasetOps(registry);
}

}  // namespace millrace
