/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: a source that is written for TensorFlow's header of this name registers its kernels with Millrace.
 */
#ifndef TENSORFLOW_C_KERNELS_H_
#define TENSORFLOW_C_KERNELS_H_

#include "millrace/c_api_kernels.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What TF_GetRendezvous gives in TensorFlow. */
struct TF_RendezvousSend_Params;
struct TF_RendezvousAsyncRecv_Params;
typedef struct TF_RendezvousThunk {
  void* rendezvous;
  void (*send_func)(void* rendezvous, struct TF_RendezvousSend_Params* params);
  void (*async_recv_func)(void* rendezvous, struct TF_RendezvousAsyncRecv_Params* params);
  void (*start_abort_func)(void* rendezvous, const TF_Status* status);
} TF_RendezvousThunk;

/* Not provided: the operation fails with TF_UNIMPLEMENTED, and all of what is returned is NULL. */
TF_CAPI_EXPORT extern TF_RendezvousThunk TF_GetRendezvous(TF_OpKernelContext* ctx);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TENSORFLOW_C_KERNELS_H_ */
