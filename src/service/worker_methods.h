// SPDX-License-Identifier: Apache-2.0
// The methods of WorkerInterface that are messages, for who does the same with all of them.
#pragma once

#include "service/worker_interface.h"

// Name, request, response.
#define MR_WORKER_METHODS(X)                                                         \
  X(CreateSession, CreateWorkerSessionRequest, CreateWorkerSessionResponse)          \
  X(DeleteSession, DeleteWorkerSessionRequest, DeleteWorkerSessionResponse)          \
  X(RegisterPartitions, RegisterPartitionsRequest, RegisterPartitionsResponse)       \
  X(DeregisterPartitions, DeregisterPartitionsRequest, DeregisterPartitionsResponse) \
  X(RunStep, RunStepRequest, RunStepResponse)                                        \
  X(AbortStep, AbortStepRequest, AbortStepResponse)                                  \
  X(CleanUpSteps, CleanUpStepsRequest, CleanUpStepsResponse)                         \
  X(ExchangeTensors, ExchangeTensorsRequest, ExchangeTensorsResponse)                \
  X(RecvTensor, RecvTensorRequest, RecvTensorResponse)                               \
  X(SendTensor, SendTensorRequest, SendTensorResponse)                               \
  X(GetStatus, GetStatusRequest, GetStatusResponse)                                  \
  X(Heartbeat, HeartbeatRequest, HeartbeatResponse)                                  \
  X(Reset, ResetRequest, ResetResponse)                                              \
  X(GetRandomPositions, GetRandomPositionsRequest, GetRandomPositionsResponse)       \
  X(SetRandomPositions, SetRandomPositionsRequest, SetRandomPositionsResponse)       \
  X(JoinCollective, JoinCollectiveRequest, JoinCollectiveResponse)                   \
  X(RecvCollective, RecvCollectiveRequest, RecvCollectiveResponse)                   \
  X(AbortCollective, AbortCollectiveRequest, AbortCollectiveResponse)
