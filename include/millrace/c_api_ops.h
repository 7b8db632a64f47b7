/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that a program or a shared library adds: TensorFlow's C API for op definitions and shape functions
 * (tensorflow/c/ops.h), and gradients, which that API lacks. Conventions are those of c_api.h; a NULL argument of a
 * function without a status does nothing, or answers 0, NULL or -1.
 */
#ifndef MILLRACE_C_API_OPS_H_
#define MILLRACE_C_API_OPS_H_

#include "millrace/c_api_training.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;         /* what is known of a shape; a new one: nothing */
typedef struct TF_DimensionHandle TF_DimensionHandle; /* a size, or nothing known */

/* ---- Definition ---- */

/* What is wrong with a definition is reported by TF_RegisterOpDefinition. Names of ops are in CamelCase. */
TF_CAPI_EXPORT TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name);
/* Consumes the builder, on error too. TF_ALREADY_EXISTS: there is an op of that name. While a library is being loaded
 * its ops wait; they appear all together once it is loaded, or never. */
TF_CAPI_EXPORT void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status);
/* Only for a builder that is not registered. */
TF_CAPI_EXPORT void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder);

/* "name: kind" with an optional ">= n" (int, list) and "= default". Kinds: string, int, float, bool, type, shape,
 * tensor, func, list(kind); a set of types "{float, int32}", numbertype, realnumbertype, quantizedtype; a set of
 * strings
 * "{'SAME', 'VALID'}". Defaults of shapes and tensors are messages in text form, in braces. */
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec);
/* "name: T", "name: float", "name: N * T", "name: list_of_types", "name: Ref(T)". */
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool is_commutative);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool is_aggregate);
/* An op with state is never merged with its like, computed before the step, or left out of a step that wants it. */
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool is_stateful);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetAllowsUninitializedInput(
    TF_OpDefinitionBuilder* builder, bool allows_uninitialized_input);
TF_CAPI_EXPORT void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                                     const char* explanation);
/* Called as operations are added to graphs, on any thread, several at a time. It must accept shapes of which nothing is
 * known. Without one the shapes of outputs are not known. */
TF_CAPI_EXPORT void TF_OpDefinitionBuilderSetShapeInferenceFunction(
    TF_OpDefinitionBuilder* builder, void (*shape_inference_func)(TF_ShapeInferenceContext* ctx, TF_Status* status));

/* The gradient of an op: given the operation and the gradients of its outputs it adds operations to `graph` and fills
 * in the gradients of the inputs (all none at first). Each of dys has a value; where nothing flows into an output it is
 * zeros. `scope` says what the names of these operations begin with. `graph` is for this call only: it can be built and
 * looked at, not run, and what is begun in it has to be finished; those of loops and branches around it are seen to. */
typedef void (*MR_OpGradientFn)(void* data, TF_Graph* graph, const MR_Scope* scope, TF_Operation* oper,
                                const MR_Gradient* dys, int num_dys, MR_Gradient* dxs, int num_dxs, TF_Status* status);
/* Without either of these, asking for a gradient through the op is an error. `data` must live as long as the process.
 */
TF_CAPI_EXPORT void MR_OpDefinitionBuilderSetGradient(
    TF_OpDefinitionBuilder* builder, MR_OpGradientFn gradient, void* data);
/* Gradients through the op are none. `reason` is for messages. */
TF_CAPI_EXPORT void MR_OpDefinitionBuilderSetNotDifferentiable(TF_OpDefinitionBuilder* builder, const char* reason);
TF_CAPI_EXPORT void MR_OpDefinitionBuilderSetDoc(TF_OpDefinitionBuilder* builder, const char* doc);

/* ---- Shape functions ---- */

/* Handles belong to who made them; `result` may be a handle that is also an argument. */
TF_CAPI_EXPORT TF_ShapeHandle* TF_NewShapeHandle(void);
TF_CAPI_EXPORT void TF_DeleteShapeHandle(TF_ShapeHandle* handle);
TF_CAPI_EXPORT TF_DimensionHandle* TF_NewDimensionHandle(void);
TF_CAPI_EXPORT void TF_DeleteDimensionHandle(TF_DimensionHandle* handle);

TF_CAPI_EXPORT int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx);
TF_CAPI_EXPORT void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                                     TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextSetOutput(
    TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle, TF_Status* status);
/* New handles, the caller's to delete. A size above INT64_MAX is one that is not known. */
TF_CAPI_EXPORT TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx);
TF_CAPI_EXPORT TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx, size_t size);
TF_CAPI_EXPORT void TF_ShapeInferenceContext_GetAttrType(
    TF_ShapeInferenceContext* ctx, const char* attr_name, TF_DataType* val, TF_Status* status);
/* -1: not known. */
TF_CAPI_EXPORT int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle);
TF_CAPI_EXPORT int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle);
/* The shape, if it has such a rank or none is known; else TF_INVALID_ARGUMENT. */
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle,
                                                     int64_t rank, TF_ShapeHandle* result, TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRankAtLeast(
    TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle, int64_t rank, TF_ShapeHandle* result, TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextWithRankAtMost(
    TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle, int64_t rank, TF_ShapeHandle* result, TF_Status* status);
/* Dimension i, counted from the end when negative; one that is not known where there is none. */
TF_CAPI_EXPORT void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle, int64_t i,
                                                TF_DimensionHandle* result);
/* Dimensions [start, end); both count from the end when negative, and are cut to the rank when above it. */
TF_CAPI_EXPORT void TF_ShapeInferenceContextSubshape(
    TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle, int64_t start, int64_t end, TF_ShapeHandle* result,
    TF_Status* status);
TF_CAPI_EXPORT void TF_ShapeInferenceContextConcatenateShapes(
    TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first, TF_ShapeHandle* second, TF_ShapeHandle* result,
    TF_Status* status);
/* Of every output. */
TF_CAPI_EXPORT void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx, TF_Status* status);
TF_CAPI_EXPORT int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle);
TF_CAPI_EXPORT int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle); /* -1: not known */

/* What TensorFlow's shape functions in C cannot do. A dimension of -1 is not known; num_dims -1: nothing is. */
TF_CAPI_EXPORT void MR_ShapeInferenceContextMakeShape(
    TF_ShapeInferenceContext* ctx, const int64_t* dims, int num_dims, TF_ShapeHandle* result, TF_Status* status);
/* What both say; TF_INVALID_ARGUMENT when they contradict. */
TF_CAPI_EXPORT void MR_ShapeInferenceContextMerge(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first,
                                                  TF_ShapeHandle* second, TF_ShapeHandle* result, TF_Status* status);
TF_CAPI_EXPORT void MR_ShapeInferenceContextGetAttrInt(
    TF_ShapeInferenceContext* ctx, const char* attr_name, int64_t* val, TF_Status* status);
/* The value of input i where it is known before any step, a tensor that the caller deletes; else NULL. */
TF_CAPI_EXPORT TF_Tensor* MR_ShapeInferenceContextInputValue(TF_ShapeInferenceContext* ctx, int i, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_OPS_H_ */
