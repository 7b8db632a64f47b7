/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: building, inspecting, importing, functions, gradients, loops. See c_api.h for the conventions.
 */
#ifndef MILLRACE_C_API_GRAPH_H_
#define MILLRACE_C_API_GRAPH_H_

#include "millrace/c_api_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_Graph TF_Graph;
typedef struct TF_OperationDescription TF_OperationDescription;
typedef struct TF_Operation TF_Operation; /* belongs to its graph; never freed before it */
typedef struct TF_Function TF_Function;
typedef struct TF_FunctionOptions TF_FunctionOptions;
typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;
typedef struct TF_ImportGraphDefResults TF_ImportGraphDefResults;

/* Input `index` of an operation, counted over all its input arguments. */
typedef struct TF_Input {
  TF_Operation* oper;
  int index;
} TF_Input;

/* Output `index` of an operation, counted over all its output arguments: a tensor of the graph. */
typedef struct TF_Output {
  TF_Operation* oper;
  int index;
} TF_Output;

/* ---- Graph ---- */

TF_CAPI_EXPORT TF_Graph* TF_NewGraph(void);
/* Sessions on it keep what they need. Operations of it become invalid with the last of these. */
TF_CAPI_EXPORT void TF_DeleteGraph(TF_Graph* graph);
TF_CAPI_EXPORT TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name); /* NULL: none */
/* Walks the operations in the order of their making: start with *pos = 0; NULL at the end. */
TF_CAPI_EXPORT TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos);
TF_CAPI_EXPORT void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status);
/* The encoded OpDef of an op or of a function in the graph. TF_NOT_FOUND. */
TF_CAPI_EXPORT void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status);

/* What is known of the shape of a tensor: number of dimensions (-1 unknown), each dimension (-1 unknown). Setting
 * merges with what is known; TF_INVALID_ARGUMENT when they contradict. GetTensorShape wants exactly the known number.
 */
TF_CAPI_EXPORT void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims, const int num_dims,
                                           TF_Status* status);
TF_CAPI_EXPORT int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims,
                                           TF_Status* status);
/* 1 and a new tensor in *result when the value follows from constants and shapes alone; 0 and NULL otherwise. */
TF_CAPI_EXPORT unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result,
                                                    TF_Status* status);

/* ---- Building an operation ---- */

/* Describe, then finish. Inputs are added in the order of the op's arguments: TF_AddInput for a single one,
 * TF_AddInputList for a list. Attributes that the inputs determine may be left out. What is wrong with the description
 * is reported by TF_FinishOperation, which frees it in every case. */
TF_CAPI_EXPORT TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type, const char* oper_name);
TF_CAPI_EXPORT void TF_SetDevice(TF_OperationDescription* desc, const char* device);
TF_CAPI_EXPORT void TF_AddInput(TF_OperationDescription* desc, TF_Output input);
TF_CAPI_EXPORT void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs);
TF_CAPI_EXPORT void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input);
TF_CAPI_EXPORT void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op);
/* The operation lies with what the references among its inputs so far refer to, and so with what that lies with
 * (attribute _class), as TensorFlow's Python client has it. */
TF_CAPI_EXPORT void MR_ColocateReferences(TF_OperationDescription* desc);
/* Returns NULL on error; the graph is then as before. */
TF_CAPI_EXPORT TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status);

/* Where in the user's program the operation comes from; errors of running it say so. Kept in this process only. */
TF_CAPI_EXPORT void MR_SetLocation(TF_OperationDescription* desc, const char* file, int line);

/* The name of input number `index` of an op or a composite, such as "shape" for 1 of Reshape; NULL when there is none.
 * It stays valid. */
TF_CAPI_EXPORT const char* MR_OpInputName(const char* op_type, int index);
/* "file:line", or "" when it was not told. Lives as long as the operation. */
TF_CAPI_EXPORT const char* MR_OperationLocation(TF_Operation* oper);

/* Attributes. Values are copied (a tensor's memory is shared). A shape has num_dims -1 when unknown, a dimension -1
 * when unknown. FuncName names a function or op; Placeholder stands for an attribute of the function being built. */
TF_CAPI_EXPORT void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name, const void* value,
                                     size_t length);
TF_CAPI_EXPORT void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                                         const void* const* values, const size_t* lengths, int num_values);
TF_CAPI_EXPORT void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value);
TF_CAPI_EXPORT void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name, const int64_t* values,
                                      int num_values);
TF_CAPI_EXPORT void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value);
TF_CAPI_EXPORT void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name, const float* values,
                                        int num_values);
TF_CAPI_EXPORT void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value);
TF_CAPI_EXPORT void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                                       const unsigned char* values, int num_values);
TF_CAPI_EXPORT void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value);
TF_CAPI_EXPORT void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name, const TF_DataType* values,
                                       int num_values);
TF_CAPI_EXPORT void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                                          const char* placeholder);
TF_CAPI_EXPORT void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name, const char* value,
                                       size_t length);
TF_CAPI_EXPORT void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name, const int64_t* dims,
                                    int num_dims);
TF_CAPI_EXPORT void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                                        const int64_t* const* dims, const int* num_dims, int num_shapes);
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                                               size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorShapeProtoList(
    TF_OperationDescription* desc, const char* attr_name, const void* const* protos, const size_t* proto_lens,
    int num_shapes, TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value,
                                     TF_Status* status);
TF_CAPI_EXPORT void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* const* values,
                                         int num_values, TF_Status* status);
/* Any kind of value, as an encoded AttrValue. */
TF_CAPI_EXPORT void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                                         size_t proto_len, TF_Status* status);

/* ---- Inspecting an operation ---- */

/* Strings live as long as the operation. */
TF_CAPI_EXPORT const char* TF_OperationName(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationOpType(TF_Operation* oper);
TF_CAPI_EXPORT const char* TF_OperationDevice(TF_Operation* oper); /* as asked for; "" when not */
TF_CAPI_EXPORT int TF_OperationNumOutputs(TF_Operation* oper);
/* 0 when there is no such output or input. */
TF_CAPI_EXPORT TF_DataType TF_OperationOutputType(TF_Output oper_out);
TF_CAPI_EXPORT TF_DataType TF_OperationInputType(TF_Input oper_in);
/* How many tensors an argument stands for. TF_INVALID_ARGUMENT and -1 when the op has no argument of that name. */
TF_CAPI_EXPORT int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status);
TF_CAPI_EXPORT int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status);
TF_CAPI_EXPORT int TF_OperationNumInputs(TF_Operation* oper);
TF_CAPI_EXPORT TF_Output TF_OperationInput(TF_Input oper_in); /* {NULL, -1}: no such input */
TF_CAPI_EXPORT void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs);
/* The Get functions and OutputConsumers write at most max_... entries and return how many they wrote. */
TF_CAPI_EXPORT int TF_OperationOutputNumConsumers(TF_Output oper_out);
TF_CAPI_EXPORT int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers);
TF_CAPI_EXPORT int TF_OperationNumControlInputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                                int max_control_inputs);
TF_CAPI_EXPORT int TF_OperationNumControlOutputs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                                 int max_control_outputs);
TF_CAPI_EXPORT void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status);

typedef enum TF_AttrType MR_ENUM_OF_INT {
  TF_ATTR_STRING = 0,
  TF_ATTR_INT = 1,
  TF_ATTR_FLOAT = 2,
  TF_ATTR_BOOL = 3,
  TF_ATTR_TYPE = 4,
  TF_ATTR_SHAPE = 5,
  TF_ATTR_TENSOR = 6,
  TF_ATTR_PLACEHOLDER = 7,
  TF_ATTR_FUNC = 8
} TF_AttrType;

/* list_size: -1 when not a list. total_size: characters of a string or of all in a list; dimensions of a shape (-1
 * unknown rank) or of all in a list; -1 for other kinds. */
typedef struct TF_AttrMetadata {
  unsigned char is_list;
  int64_t list_size;
  TF_AttrType type;
  int64_t total_size;
} TF_AttrMetadata;

/* All of these: TF_INVALID_ARGUMENT when the operation has no such attribute, or one of another kind. They write at
 * most max_... (num_..., storage_size) entries; the list forms with `storage` fail when it is too small. */
TF_CAPI_EXPORT TF_AttrMetadata
TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name, void* value, size_t max_length,
                                              TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrStringList(
    TF_Operation* oper, const char* attr_name, void** values, size_t* lengths, int max_values, void* storage,
    size_t storage_size, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrInt(TF_Operation* oper, const char* attr_name, int64_t* value,
                                           TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrIntList(TF_Operation* oper, const char* attr_name, int64_t* values,
                                               int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloat(TF_Operation* oper, const char* attr_name, float* value,
                                             TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrFloatList(TF_Operation* oper, const char* attr_name, float* values,
                                                 int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBool(TF_Operation* oper, const char* attr_name, unsigned char* value,
                                            TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrBoolList(TF_Operation* oper, const char* attr_name, unsigned char* values,
                                                int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrType(TF_Operation* oper, const char* attr_name, TF_DataType* value,
                                            TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTypeList(TF_Operation* oper, const char* attr_name, TF_DataType* values,
                                                int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name, int64_t* value, int num_dims,
                                             TF_Status* status);
/* dims[i] points into `storage`; num_dims[i] is -1 for an unknown rank. */
TF_CAPI_EXPORT void TF_OperationGetAttrShapeList(
    TF_Operation* oper, const char* attr_name, int64_t** dims, int* num_dims, int num_shapes, int64_t* storage,
    int storage_size, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProto(
    TF_Operation* oper, const char* attr_name, TF_Buffer* value, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorShapeProtoList(
    TF_Operation* oper, const char* attr_name, TF_Buffer** values, int max_values, TF_Status* status);
/* The caller deletes the tensors, and must not write into them. */
TF_CAPI_EXPORT void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name, TF_Tensor** value,
                                              TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name, TF_Tensor** values,
                                                  int max_values, TF_Status* status);
TF_CAPI_EXPORT void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                                  TF_Buffer* output_attr_value, TF_Status* status);
/* The attributes by number, in the order of their names. The name is written without a terminating NUL. */
TF_CAPI_EXPORT int TF_OperationGetNumAttrs(TF_Operation* oper);
TF_CAPI_EXPORT int TF_OperationGetAttrNameLength(TF_Operation* oper, int i);
TF_CAPI_EXPORT void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status);

/* ---- Changing a graph ---- */

/* For clients that build loops and transform graphs. A session that has already run the operation may not see the
 * change. UpdateEdge: the input reads new_src from now on; types must agree. */
TF_CAPI_EXPORT void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst, TF_Status* status);
TF_CAPI_EXPORT void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op, TF_Operation* input);
TF_CAPI_EXPORT void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op);
TF_CAPI_EXPORT void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device);
TF_CAPI_EXPORT void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Buffer* attr_value_proto,
                               TF_Status* status);
TF_CAPI_EXPORT void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Status* status);

/* ---- Importing a GraphDef ---- */

TF_CAPI_EXPORT TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts);
/* Names become "prefix/name". */
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix);
/* For operations that name no device. */
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device);
/* Whether a name (the prefix) that is taken gets a suffix; otherwise a clash is TF_INVALID_ARGUMENT. */
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyNames(
    TF_ImportGraphDefOptions* opts, unsigned char uniquify_names);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetUniquifyPrefix(
    TF_ImportGraphDefOptions* opts, unsigned char uniquify_prefix);
/* Whoever reads src_name:src_index of the GraphDef reads `dst` of the graph instead. */
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddInputMapping(
    TF_ImportGraphDefOptions* opts, const char* src_name, int src_index, TF_Output dst);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsRemapControlDependency(
    TF_ImportGraphDefOptions* opts, const char* src_name, TF_Operation* dst);
/* Everything imported runs after `oper`. */
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts, TF_Operation* oper);
/* What to return of the import, by its name in the GraphDef (before the prefix). */
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOutput(
    TF_ImportGraphDefOptions* opts, const char* oper_name, int index);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts, const char* oper_name);
TF_CAPI_EXPORT int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts);
TF_CAPI_EXPORT void TF_ImportGraphDefOptionsSetValidateColocationConstraints(
    TF_ImportGraphDefOptions* opts, unsigned char enable);

/* All or nothing. `options` may be NULL. WithReturnOutputs wants as many as the options ask for. */
TF_CAPI_EXPORT TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options, TF_Output* return_outputs,
    int num_return_outputs, TF_Status* status);
TF_CAPI_EXPORT void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                                           const TF_ImportGraphDefOptions* options, TF_Status* status);
/* The arrays belong to the results. */
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOutputs(
    TF_ImportGraphDefResults* results, int* num_outputs, TF_Output** outputs);
TF_CAPI_EXPORT void TF_ImportGraphDefResultsReturnOperations(
    TF_ImportGraphDefResults* results, int* num_opers, TF_Operation*** opers);
/* Input mappings that matched nothing in the GraphDef. */
TF_CAPI_EXPORT void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings, const char*** src_names,
    int** src_indexes);
TF_CAPI_EXPORT void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results);

/* ---- Functions ---- */

/* A function from part of a graph: `inputs` become its arguments, `outputs` its results (named by output_names, or
 * after their operations when NULL), the `opers` its body; num_opers -1 takes every operation of the graph that is not
 * an input. `control_outputs` are operations that a call always runs. TF_INVALID_ARGUMENT when the body reads what is
 * neither in it nor an input. `opts` must be NULL. */
TF_CAPI_EXPORT TF_Function* TF_GraphToFunction(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs, int noutputs, const TF_Output* outputs,
    const char* const* output_names, const TF_FunctionOptions* opts, const char* description, TF_Status* status);
TF_CAPI_EXPORT TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs, int noutputs, const TF_Output* outputs,
    const char* const* output_names, int ncontrol_outputs, const TF_Operation* const* control_outputs,
    const char* const* control_output_names, const TF_FunctionOptions* opts, const char* description,
    TF_Status* status);
TF_CAPI_EXPORT const char* TF_FunctionName(TF_Function* func); /* lives as long as `func` */
TF_CAPI_EXPORT void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status);
TF_CAPI_EXPORT TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_FunctionSetAttrValueProto(TF_Function* func, const char* attr_name, const void* proto,
                                                 size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_FunctionGetAttrValueProto(TF_Function* func, const char* attr_name, TF_Buffer* output_attr_value,
                                                 TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteFunction(TF_Function* func);
/* Adds `func`, and `grad` as its gradient unless NULL. Adding the same function again is fine, another one of the same
 * name is TF_INVALID_ARGUMENT. */
TF_CAPI_EXPORT void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad,
                                         TF_Status* status);
TF_CAPI_EXPORT int TF_GraphNumFunctions(TF_Graph* g);
/* Copies, for the caller to delete. Returns how many. */
TF_CAPI_EXPORT int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status);

/* ---- Gradients ---- */

/* Adds operations for the partial derivatives of y_1 + y_2 + ... with respect to each x; dx (NULL: all ones) are the
 * gradients that arrive at the ys. dy[i] gets the result for x[i]; {NULL, -1} when no path leads from x[i] to the ys.
 * Sparse gradients are made dense. Errors: TF_INVALID_ARGUMENT; TF_NOT_FOUND or TF_UNIMPLEMENTED for an op on the path
 * that has no gradient. */
TF_CAPI_EXPORT void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                                    TF_Status* status, TF_Output* dy);
/* The new operations are named "prefix/..."; TF_INVALID_ARGUMENT when such names exist. NULL: "gradients", made unique.
 */
TF_CAPI_EXPORT void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x,
                                              int nx, TF_Output* dx, TF_Status* status, TF_Output* dy);

/* ---- Loops ---- */

/* A loop under construction: the caller builds the condition and the body in two graphs of their own, sets cond_output
 * (a scalar bool) and body_outputs (one per input, of the same types) and may set `name`; then finishes or aborts. */
typedef struct TF_WhileParams {
  const int ninputs;
  TF_Graph* const cond_graph;
  const TF_Output* const cond_inputs;
  TF_Output cond_output;
  TF_Graph* const body_graph;
  const TF_Output* const body_inputs;
  TF_Output* const body_outputs;
  const char* name;
} TF_WhileParams;

/* Finish and Abort free what NewWhile made, and must be called once. After an error of Finish, operations may have been
 * added to the graph, without harm. */
TF_CAPI_EXPORT TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status);
TF_CAPI_EXPORT void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs);
TF_CAPI_EXPORT void TF_AbortWhile(const TF_WhileParams* params);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_GRAPH_H_ */
