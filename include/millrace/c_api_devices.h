/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that a shared library adds, with memory of their own, and what kernels on them need beyond
 * c_api_kernels.h. docs/devices.md tells how such a library is written; plugins/testacc is one.
 *
 * A device has memory that the host does not touch, and streams: queues whose work is done in order, each at its own
 * pace. The library uses three streams of each device: one for kernels, one for copies from the host, one for copies to
 * it, and orders them by events. A kernel queues its work on TF_GetStream() and returns; memory that it uses may be
 * given back, and handed out again, before that work is done, since whatever is queued later comes later.
 */
#ifndef MILLRACE_C_API_DEVICES_H_
#define MILLRACE_C_API_DEVICES_H_

#include "millrace/c_api_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a stream calls when it comes to it. `of_stream` is TF_OK, or why earlier work of the stream failed, where no
 * kernel has reported it. It is the stream's, and must not be kept. */
typedef void (*MR_StreamCallback)(void* arg, TF_Status* of_stream);

/* The functions of a type of device. All may be called from any thread, several at once. None may throw. Those that
 * take a status queue work and return; they report what they cannot queue. All members must be given but `description`.
 */
typedef struct MR_DeviceFunctions {
  size_t struct_size; /* sizeof(MR_DeviceFunctions) */
  void* data;         /* the first argument of count and open */

  int (*count)(void* data);
  /* Device `ordinal` in [0, count). Called once for each, when a session first uses it; it stays open for the life of
   * the process. */
  void* (*open)(void* data, int ordinal, TF_Status* status);
  int64_t (*memory_limit)(void* device); /* bytes */
  /* Aligned to 64 bytes; NULL when there is no room. */
  void* (*allocate)(void* device, size_t bytes);
  /* No queued work uses the memory any more. `bytes` as asked for. */
  void (*deallocate)(void* device, void* memory, size_t bytes);

  SP_Stream (*create_stream)(void* device, TF_Status* status);
  void* (*create_event)(void* device, TF_Status* status);
  /* May be called while streams still have to come to it. */
  void (*destroy_event)(void* device, void* event);
  /* The event happens when the stream comes here. */
  void (*record_event)(void* device, SP_Stream stream, void* event, TF_Status* status);
  /* The stream goes on when what was last recorded as the event has happened. */
  void (*wait_for_event)(void* device, SP_Stream stream, void* event, TF_Status* status);
  void (*copy_to_host)(void* device, SP_Stream stream, void* host, const void* memory, size_t bytes, TF_Status* status);
  void (*copy_from_host)(void* device, SP_Stream stream, void* memory, const void* host, size_t bytes,
                         TF_Status* status);
  void (*copy_within)(void* device, SP_Stream stream, void* to, const void* from, size_t bytes, TF_Status* status);
  /* The callback runs exactly once, on any thread, unless `status` is an error. It may take locks of the library and
   * queue further work, but waits for no stream. */
  void (*callback)(void* device, SP_Stream stream, MR_StreamCallback callback, void* arg, TF_Status* status);
  /* Returns when everything that was queued on the stream before has ended. */
  void (*synchronize)(void* device, SP_Stream stream, TF_Status* status);

  const char* (*description)(void* device); /* may be NULL */
} MR_DeviceFunctions;

/* A type of device, such as "TESTACC": capital letters, digits and '_'. The table is copied. Each session that is made
 * later has the type's devices, /device:TESTACC:0 and so on, or as many as ConfigProto.device_count says. Operations go
 * there when they ask for it. TF_ALREADY_EXISTS: the type is taken. While a library is being loaded its devices wait,
 * as its ops and kernels do. */
TF_CAPI_EXPORT void MR_RegisterDevice(const char* type, const MR_DeviceFunctions* functions, TF_Status* status);

/* Of a device that a library added. Bytes as tensors asked for them. TF_NOT_FOUND: no session has used it. */
TF_CAPI_EXPORT int64_t MR_DeviceBytesInUse(const char* type, int ordinal, TF_Status* status);
TF_CAPI_EXPORT int64_t MR_DevicePeakBytesInUse(const char* type, int ordinal, TF_Status* status);

/* ---- For kernels ---- */

/* Work that a kernel has queued and that may still fail. */
typedef struct MR_LateWork MR_LateWork;
/* The step is not over before MR_EndLateWork is called with what this returns: exactly once, from any thread. */
TF_CAPI_EXPORT MR_LateWork* MR_OpKernelContext_BeginLateWork(TF_OpKernelContext* ctx, TF_Status* status);
/* An error fails the step, and names the operation that began the work. NULL: it went well. */
TF_CAPI_EXPORT void MR_EndLateWork(MR_LateWork* work, const TF_Status* result);

/* The values of variables (inputs that are references or resource handles), to be changed in place: values[i] is a
 * tensor that the kernel may write to (on a device with memory of its own, by queued work), that nobody else holds, and
 * that the kernel deletes before it returns. The variables are locked until the compute function returns, in an order
 * that does not deadlock. Once in a compute function, and not in asynchronous kernels. TF_FAILED_PRECONDITION: a
 * variable has no value. TF_INVALID_ARGUMENT: an input is no variable of this device, or one is given twice. */
TF_CAPI_EXPORT void MR_OpKernelContext_LockVariables(TF_OpKernelContext* ctx, const int* inputs, int num_inputs,
                                                     TF_Tensor** values, TF_Status* status);
/* Reference input `input` as reference output `output`. */
TF_CAPI_EXPORT void MR_OpKernelContext_ForwardRef(TF_OpKernelContext* ctx, int input, int output, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_DEVICES_H_ */
