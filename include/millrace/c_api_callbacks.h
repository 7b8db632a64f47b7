/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the library calls back into the client's language while a step runs: functions that operations call, and a look
 * at what interrupts the client. Conventions are those of c_api.h.
 */
#ifndef MILLRACE_C_API_CALLBACKS_H_
#define MILLRACE_C_API_CALLBACKS_H_

#include "millrace/c_api_session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an operation of type PyFunc, PyFuncStateless or EagerPyFunc calls. inputs[0..num_inputs) are the library's; the
 * callback may keep one by putting NULL in its place, and then deletes it with TF_DeleteTensor. It puts num_outputs new
 * tensors, of the types that the operation declares, into outputs, where it finds NULL; they become the library's, on
 * error too. An error in `status` stops the step with its code and message.
 *
 * It is called on a thread that the library keeps for such calls, several at a time when several steps or operations
 * call it, and may run steps itself. A step that is cancelled or passes its deadline does not wait for a call that
 * runs. */
typedef void (*MR_ClientFunction)(void* data, TF_Tensor** inputs, int num_inputs, TF_Tensor** outputs, int num_outputs,
                                  TF_Status* status);

/* Operations whose attribute "token" is this call `function` from now on, in every session of the process.
 * TF_ALREADY_EXISTS: the token is taken. `release` (may be NULL) is called once with `data`, on any thread, when the
 * function is registered no longer and no call of it runs; on error it is not called. */
TF_CAPI_EXPORT void MR_RegisterClientFunction(const char* token, MR_ClientFunction function, void* data,
                                              void (*release)(void* data), TF_Status* status);
/* Later steps that call it fail with TF_INVALID_ARGUMENT. */
TF_CAPI_EXPORT void MR_UnregisterClientFunction(const char* token);

/* While a step runs, `check` is called every 40 ms or so on the thread that asked for the step, between two kernels,
 * within those that take long, and while the thread waits: a client looks for signals there. A result other than 0
 * stops the step, which reports TF_CANCELLED. It may not start steps of this session. NULL: no check. To be set before
 * the session's first step. */
TF_CAPI_EXPORT void MR_SetInterruptCheck(TF_Session* session, int (*check)(void* data), void* data, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_CALLBACKS_H_ */
