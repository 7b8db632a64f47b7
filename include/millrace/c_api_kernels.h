/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that a program or a shared library adds: TensorFlow's C API for them (tensorflow/c/kernels.h), and what that
 * API lacks. Conventions are those of c_api.h.
 *
 * A construction context lives as long as the call of the create function. A context lives as long as the call of the
 * compute function or, for an asynchronous kernel, until its done callback is run; it may be used by one thread at a
 * time, but for failures, which any thread may report. Tensors that these functions return belong to the caller, who
 * deletes them; deleting one does not undo what it was made for (an output stays an output).
 */
#ifndef MILLRACE_C_API_KERNELS_H_
#define MILLRACE_C_API_KERNELS_H_

#include "millrace/c_api_session.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TF_Bool
#define TF_Bool unsigned char
#endif
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
#endif

/* Characters without a NUL at their end. */
typedef struct TF_StringView {
  const char* data;
  size_t len;
} TF_StringView;

typedef struct TF_AllocatorAttributes {
  size_t struct_size; /* TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE */
  TF_Bool on_host;
} TF_AllocatorAttributes;
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;
typedef struct SP_Stream_st* SP_Stream;

/* ---- Registration ---- */

/* A library that exports it has it called once, when it is loaded, to register its kernels and ops. */
TF_CAPI_EXPORT void TF_InitKernel(void);

/* A kernel of `op_name` for devices of type `device_name` ("CPU"). create_func (may be NULL) makes the state of one
 * operation, which compute_func gets and delete_func (may be NULL) frees. compute_func runs for several steps at once
 * with the same state. What is wrong is reported by TF_RegisterKernelBuilder. */
TF_CAPI_EXPORT TF_KernelBuilder* TF_NewKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_func)(void*, TF_OpKernelContext*), void (*delete_func)(void*));
/* A kernel that may wait: compute_async_func returns without waiting, and TF_RunAsyncOpKernelDoneCallback is called
 * with `done` exactly once, on any thread, when the outputs are set or the failure is reported. */
TF_CAPI_EXPORT TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*));
/* Ends the operation; neither context nor `done` may be used after it. A `done` that has been run is ignored. */
TF_CAPI_EXPORT void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done);
/* Only for operations whose type attribute has this value. */
TF_CAPI_EXPORT void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder, const char* attr_name,
                                                    const TF_DataType type, TF_Status* status);
/* The argument is in host memory even where the device has memory of its own. */
TF_CAPI_EXPORT void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder, const char* arg_name);
/* Among kernels that fit, the highest is taken; the library's own have 0. */
TF_CAPI_EXPORT void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder, int32_t priority_number);
/* Only for operations whose attribute _kernel is this. */
TF_CAPI_EXPORT void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label);
/* Consumes the builder, on error too. TF_ALREADY_EXISTS: there is a kernel of this priority that fits operations which
 * this one fits. While a library is being loaded its kernels wait, as its ops do. */
TF_CAPI_EXPORT void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder, TF_Status* status);
/* The same with an encoded KernelDef, NUL-terminated, in place of what the builder says; NULL: the builder's. */
TF_CAPI_EXPORT void TF_RegisterKernelBuilderWithKernelDef(
    const char* serialized_kernel_def, const char* name, TF_KernelBuilder* builder, TF_Status* status);
/* Only for a builder that is not registered. */
TF_CAPI_EXPORT void TF_DeleteKernelBuilder(TF_KernelBuilder* builder);

/* ---- Making a kernel ---- */

/* Reports that it cannot be made; the first failure counts. The message gets the names of operation and op. */
TF_CAPI_EXPORT void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx, TF_Status* status);
TF_CAPI_EXPORT TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx);
TF_CAPI_EXPORT bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx, const char* attr_name,
                                                    TF_Status* status);
/* *list_size: -1 when not a list; *total_size: as in TF_AttrMetadata. Both are -1 on error. */
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrSize(
    TF_OpKernelConstruction* ctx, const char* attr_name, int32_t* list_size, int32_t* total_size, TF_Status* status);
/* TF_NOT_FOUND (single values) or TF_INVALID_ARGUMENT (lists): there is no such attribute; TF_INVALID_ARGUMENT: it is
 * of another kind, or does not fit. Lists write at most max_vals entries. */
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrType(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_DataType* val, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt32(
    TF_OpKernelConstruction* ctx, const char* attr_name, int32_t* val, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt64(
    TF_OpKernelConstruction* ctx, const char* attr_name, int64_t* val, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrFloat(
    TF_OpKernelConstruction* ctx, const char* attr_name, float* val, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrBool(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_Bool* val, TF_Status* status);
/* At most max_length characters, without a NUL. */
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrString(
    TF_OpKernelConstruction* ctx, const char* attr_name, char* val, size_t max_length, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTensor(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_Tensor** val, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTypeList(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_DataType* vals, int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt32List(
    TF_OpKernelConstruction* ctx, const char* attr_name, int32_t* vals, int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrInt64List(
    TF_OpKernelConstruction* ctx, const char* attr_name, int64_t* vals, int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrFloatList(
    TF_OpKernelConstruction* ctx, const char* attr_name, float* vals, int max_vals, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrBoolList(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_Bool* vals, int max_vals, TF_Status* status);
/* The characters of all strings go to `storage`, and values[i] points there. */
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrStringList(
    TF_OpKernelConstruction* ctx, const char* attr_name, char** values, size_t* lengths, int max_values, void* storage,
    size_t storage_size, TF_Status* status);
TF_CAPI_EXPORT void TF_OpKernelConstruction_GetAttrTensorList(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_Tensor** vals, int max_values, TF_Status* status);
/* An encoded NameAttrList. */
TF_CAPI_EXPORT TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(
    TF_OpKernelConstruction* ctx, const char* attr_name, TF_Status* status);
/* The encoded NodeDef: name, op, device and attributes. The names of its inputs are not in it. */
TF_CAPI_EXPORT TF_Buffer* TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction* ctx, TF_Status* status);
/* Returns the rank, -1 when not even that is known, and writes at most max_dims dimensions (-1: not known). */
TF_CAPI_EXPORT int MR_OpKernelConstruction_GetAttrShape(
    TF_OpKernelConstruction* ctx, const char* attr_name, int64_t* dims, int max_dims, TF_Status* status);

/* ---- Computing ---- */

/* Reports that the operation fails; the first failure counts. The message gets the names of operation and op. */
TF_CAPI_EXPORT void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status);

TF_CAPI_EXPORT int TF_NumInputs(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_NumOutputs(TF_OpKernelContext* ctx);
/* TF_OUT_OF_RANGE: there is no such input. Its memory must not be written to. */
TF_CAPI_EXPORT void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status);
/* 0: there is no such input. */
TF_CAPI_EXPORT TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index);

typedef struct TF_InputRange_Args {
  size_t struct_size; /* TF_InputRange_Args_STRUCT_SIZE */
  void* priv;
  int start;         /* set: the first input of the argument */
  int stop;          /* set: one behind its last */
  TF_Status* status; /* set; the caller's */
} TF_InputRange_Args;
#define TF_InputRange_Args_STRUCT_SIZE TF_OFFSET_OF_END(TF_InputRange_Args, status)
TF_CAPI_EXPORT void TF_InputRange(TF_OpKernelContext* ctx, const char* name, TF_InputRange_Args* args);

/* The output shares the memory of `tensor`, which must have the output's type and not change any more. */
TF_CAPI_EXPORT void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor, TF_Status* status);
/* The output as it stands; TF_FAILED_PRECONDITION: it has no value yet. */
TF_CAPI_EXPORT TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);
/* 0: there is no such output. */
TF_CAPI_EXPORT TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i);

/* New memory for output `index`, to be written by the kernel (strings are empty). `len`, in bytes, may not exceed what
 * shape and type need. */
TF_CAPI_EXPORT TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType dtype,
                                            const int64_t* dims, int num_dims, size_t len, TF_Status* status);
/* The memory of the first candidate input that has the output's type and number of elements and that nobody else needs,
 * as the output; *forwarded_input (may be NULL) says which. Else new memory, and -1. */
TF_CAPI_EXPORT TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices, int num_candidate_input_indices, int output_index,
    const int64_t* output_dims, int output_num_dims, int* forwarded_input, TF_Status* status);
/* attributes may be NULL. */
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
                                          int num_dims, TF_AllocatorAttributes* attributes, TF_Status* status);

TF_CAPI_EXPORT bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status);
TF_CAPI_EXPORT bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status);
TF_CAPI_EXPORT int64_t TF_StepId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int64_t TF_GetStepId(TF_OpKernelContext* ctx);
/* Which loop, and which of its iterations; 0 outside of loops. */
TF_CAPI_EXPORT uint64_t TF_GetFrameId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int64_t TF_GetIterId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT int TF_GetDeviceId(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx);
/* A scalar handle, encoded as a ResourceHandleProto. */
TF_CAPI_EXPORT void TF_GetSerializedResourceHandleProto(
    TF_OpKernelContext* ctx, int i, TF_Buffer* serialized_resource_handle_proto, TF_Status* status);

/* Not provided. The first two report TF_UNIMPLEMENTED, TF_GetStream TF_FAILED_PRECONDITION (as on TensorFlow's CPU);
 * the deferred ops make the operation fail with TF_UNIMPLEMENTED; kernels do not know the version of their graph (-1)
 * nor the names of their inputs (empty). */
TF_CAPI_EXPORT void TF_GetSerializedFunctionDefLibrary(
    TF_OpKernelContext* ctx, TF_Buffer* serialized_function_def_library, TF_Status* status);
TF_CAPI_EXPORT void TF_GetSerializedConfigProto(TF_OpKernelContext* ctx, TF_Buffer* serialized_config_proto,
                                                TF_Status* status);
TF_CAPI_EXPORT SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status);
TF_CAPI_EXPORT void TF_IncNumDeferredOps(TF_OpKernelContext* context);
TF_CAPI_EXPORT void TF_DecNumDeferredOps(TF_OpKernelContext* context);
TF_CAPI_EXPORT int TF_GetGraphDefVersion(TF_OpKernelContext* ctx);
TF_CAPI_EXPORT TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx, size_t index);

/* ---- What TensorFlow's kernels in C cannot do ---- */

/* Whether the step is being stopped: a kernel that takes long asks now and then, and returns early. */
TF_CAPI_EXPORT int MR_OpKernelContext_IsCancelled(TF_OpKernelContext* ctx);
/* For an asynchronous kernel: `callback` runs, at most once and on any thread, when the step is cancelled or passes its
 * deadline; it may run the done callback. It does not run once that has been run: running the done callback elsewhere
 * waits for it, so hold no lock then that `callback` takes. TF_CANCELLED: the step is being stopped already, `callback`
 * will not run, and the kernel has to end at once. One callback for each operation. */
TF_CAPI_EXPORT void MR_OpKernelContext_OnCancel(TF_OpKernelContext* ctx, void (*callback)(void* data), void* data,
                                                TF_Status* status);
/* Calls fn(data, begin, end) for parts of [0, n), on the threads of the device, and returns when all are done;
 * cost_per_unit is about nanoseconds for each index. TF_CANCELLED: the step is being stopped, parts were left out, and
 * the operation fails. Not for the callbacks of an asynchronous kernel. */
TF_CAPI_EXPORT void MR_OpKernelContext_ParallelFor(
    TF_OpKernelContext* ctx, int64_t n, double cost_per_unit, void (*fn)(void* data, int64_t begin, int64_t end),
    void* data, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_KERNELS_H_ */
