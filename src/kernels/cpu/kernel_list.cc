// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernel_list.h"

#include "kernels/cpu/audio.h"
#include "kernels/cpu/client_function_kernels.h"
#include "kernels/cpu/dataset.h"
#include "kernels/cpu/image.h"
#include "kernels/cpu/lookup.h"
#include "kernels/cpu/parsing.h"
#include "kernels/cpu/queue_kernels.h"
#include "kernels/cpu/reader_kernels.h"
#include "kernels/cpu/string_texts.h"
#include "kernels/cpu/strings.h"

namespace millrace {

void RegisterCpuKernels(KernelRegistry& registry) {
  RegisterElementwiseKernels(registry);
  RegisterArrayKernels(registry);
  RegisterIndexKernels(registry);
  RegisterMathKernels(registry);
  RegisterLinalgKernels(registry);
  RegisterNnKernels(registry);
  RegisterRnnKernels(registry);
  RegisterStateKernels(registry);
  RegisterTrainingKernels(registry);
  RegisterRandomKernels(registry);
  RegisterCandidateKernels(registry);
  RegisterSparseKernels(registry);
  RegisterCtcKernels(registry);
  RegisterImageKernels(registry);
  RegisterStringKernels(registry);
  RegisterParsingKernels(registry);
  RegisterIoKernels(registry);
  RegisterSummaryKernels(registry);
  RegisterControlFlowKernels(registry);
  RegisterFunctionalKernels(registry);
  RegisterClientFunctionKernels(registry);
  RegisterRuntimeKernels(registry);
  RegisterStackKernels(registry);
  RegisterTensorArrayKernels(registry);
  RegisterTensorListKernels(registry);
  RegisterQueueKernels(registry);
  RegisterLookupKernels(registry);
  RegisterReaderKernels(registry);
  RegisterTextKernels(registry);
  RegisterAudioKernels(registry);
  RegisterDatasetKernels(registry);
}

}  // namespace millrace
