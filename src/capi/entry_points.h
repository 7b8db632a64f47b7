// SPDX-License-Identifier: Apache-2.0
// The functions that libtensorflow.so.1 and libtensorflow.so.2 have (faces/): the names of TensorFlow's C API over
// one implementation. Both find it in one table of this library by its place in these lists, so that neither takes a
// function of the same name from another library of the process.
#pragma once

#include "millrace/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/env.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/logging.h"

// Another name where the lists changed since a release: a face that is not of this library's build fails to load.
#define MR_FACE_TABLE MR_FaceTable_0_1

// clang-format off
// Where strings cross: a list of what each face has under the names.
#define MR_FORM_POINTS(X) \
  X(TF_Version, MR_OldVersion) X(TF_NewTensor, MR_OldNewTensor) X(TF_AllocateTensor, MR_OldAllocateTensor) \
  X(TF_TensorData, MR_OldTensorData) X(TF_TensorByteSize, MR_OldTensorByteSize) \
  X(TF_TensorIsAligned, MR_OldTensorIsAligned)

#define MR_COMMON_POINTS(X) \
  X(TF_NewStatus) X(TF_DeleteStatus) X(TF_SetStatus) X(TF_SetPayload) X(TF_ForEachPayload) \
  X(TF_SetStatusFromIOError) X(TF_GetCode) X(TF_Message) X(TF_NewBufferFromString) X(TF_NewBuffer) \
  X(TF_DeleteBuffer) X(TF_GetBuffer) X(TF_DataTypeSize) X(TF_TensorDefaultAlignment) X(TF_TensorMaybeMove) \
  X(TF_DeleteTensor) X(TF_TensorType) X(TF_SetShape) X(TF_NumDims) X(TF_Dim) X(TF_TensorElementCount) \
  X(TF_TensorBitcastFrom) X(TF_TensorFromProto) X(TF_StringInit) X(TF_StringCopy) X(TF_StringAssignView) \
  X(TF_StringGetDataPointer) X(TF_StringGetType) X(TF_StringGetSize) X(TF_StringGetCapacity) \
  X(TF_StringDealloc) X(TF_StringEncode) X(TF_StringDecode) X(TF_StringEncodedSize) X(TF_NewGraph) \
  X(TF_DeleteGraph) X(TF_GraphOperationByName) X(TF_GraphNextOperation) X(TF_GraphToGraphDef) \
  X(TF_GraphGetOpDef) X(TF_GraphVersions) X(TF_GraphSetTensorShape) X(TF_GraphGetTensorNumDims) \
  X(TF_GraphGetTensorShape) X(TF_TryEvaluateConstant) X(TF_NewOperation) X(TF_SetDevice) X(TF_AddInput) \
  X(TF_AddInputList) X(TF_AddControlInput) X(TF_ColocateWith) X(TF_FinishOperation) X(TF_SetAttrString) \
  X(TF_SetAttrStringList) X(TF_SetAttrInt) X(TF_SetAttrIntList) X(TF_SetAttrFloat) X(TF_SetAttrFloatList) \
  X(TF_SetAttrBool) X(TF_SetAttrBoolList) X(TF_SetAttrType) X(TF_SetAttrTypeList) X(TF_SetAttrPlaceholder) \
  X(TF_SetAttrFuncName) X(TF_SetAttrShape) X(TF_SetAttrShapeList) X(TF_SetAttrTensorShapeProto) \
  X(TF_SetAttrTensorShapeProtoList) X(TF_SetAttrTensor) X(TF_SetAttrTensorList) X(TF_SetAttrValueProto) \
  X(TF_OperationName) X(TF_OperationOpType) X(TF_OperationDevice) X(TF_OperationNumOutputs) \
  X(TF_OperationOutputType) X(TF_OperationInputType) X(TF_OperationOutputListLength) \
  X(TF_OperationInputListLength) X(TF_OperationNumInputs) X(TF_OperationInput) X(TF_OperationAllInputs) \
  X(TF_OperationOutputNumConsumers) X(TF_OperationOutputConsumers) X(TF_OperationNumControlInputs) \
  X(TF_OperationGetControlInputs) X(TF_OperationNumControlOutputs) X(TF_OperationGetControlOutputs) \
  X(TF_OperationToNodeDef) X(TF_OperationGetAttrMetadata) X(TF_OperationGetAttrString) \
  X(TF_OperationGetAttrStringList) X(TF_OperationGetAttrInt) X(TF_OperationGetAttrIntList) \
  X(TF_OperationGetAttrFloat) X(TF_OperationGetAttrFloatList) X(TF_OperationGetAttrBool) \
  X(TF_OperationGetAttrBoolList) X(TF_OperationGetAttrType) X(TF_OperationGetAttrTypeList) \
  X(TF_OperationGetAttrShape) X(TF_OperationGetAttrShapeList) X(TF_OperationGetAttrTensorShapeProto) \
  X(TF_OperationGetAttrTensorShapeProtoList) X(TF_OperationGetAttrTensor) X(TF_OperationGetAttrTensorList) \
  X(TF_OperationGetAttrValueProto) X(TF_OperationGetNumAttrs) X(TF_OperationGetAttrNameLength) \
  X(TF_OperationGetAttrName) X(TF_UpdateEdge) X(TF_AddOperationControlInput) X(TF_RemoveAllControlInputs) \
  X(TF_SetRequestedDevice) X(TF_SetAttr) X(TF_ClearAttr) X(TF_NewImportGraphDefOptions) \
  X(TF_DeleteImportGraphDefOptions) X(TF_ImportGraphDefOptionsSetPrefix) \
  X(TF_ImportGraphDefOptionsSetDefaultDevice) X(TF_ImportGraphDefOptionsSetUniquifyNames) \
  X(TF_ImportGraphDefOptionsSetUniquifyPrefix) X(TF_ImportGraphDefOptionsAddInputMapping) \
  X(TF_ImportGraphDefOptionsRemapControlDependency) X(TF_ImportGraphDefOptionsAddControlDependency) \
  X(TF_ImportGraphDefOptionsAddReturnOutput) X(TF_ImportGraphDefOptionsNumReturnOutputs) \
  X(TF_ImportGraphDefOptionsAddReturnOperation) X(TF_ImportGraphDefOptionsNumReturnOperations) \
  X(TF_ImportGraphDefOptionsSetValidateColocationConstraints) X(TF_GraphImportGraphDefWithResults) \
  X(TF_GraphImportGraphDefWithReturnOutputs) X(TF_GraphImportGraphDef) X(TF_ImportGraphDefResultsReturnOutputs) \
  X(TF_ImportGraphDefResultsReturnOperations) X(TF_ImportGraphDefResultsMissingUnusedInputMappings) \
  X(TF_DeleteImportGraphDefResults) X(TF_GraphToFunction) X(TF_GraphToFunctionWithControlOutputs) \
  X(TF_FunctionName) X(TF_FunctionToFunctionDef) X(TF_FunctionImportFunctionDef) \
  X(TF_FunctionSetAttrValueProto) X(TF_FunctionGetAttrValueProto) X(TF_DeleteFunction) X(TF_GraphCopyFunction) \
  X(TF_GraphNumFunctions) X(TF_GraphGetFunctions) X(TF_AddGradients) X(TF_AddGradientsWithPrefix) \
  X(TF_NewWhile) X(TF_FinishWhile) X(TF_AbortWhile) X(TF_NewSessionOptions) X(TF_SetTarget) X(TF_SetConfig) \
  X(TF_DeleteSessionOptions) X(TF_NewSession) X(TF_LoadSessionFromSavedModel) X(TF_CloseSession) \
  X(TF_DeleteSession) X(TF_ExtendSession) X(TF_SessionRun) X(TF_SessionPRunSetup) X(TF_SessionPRun) \
  X(TF_DeletePRunHandle) X(TF_SessionListDevices) X(TF_DeprecatedSessionListDevices) X(TF_DeleteDeviceList) \
  X(TF_DeviceListCount) X(TF_DeviceListName) X(TF_DeviceListType) X(TF_DeviceListMemoryBytes) \
  X(TF_DeviceListIncarnation) X(TF_NewDeprecatedSession) X(TF_CloseDeprecatedSession) \
  X(TF_DeleteDeprecatedSession) X(TF_Reset) X(TF_ExtendGraph) X(TF_Run) X(TF_PRunSetup) X(TF_PRun) \
  X(TF_GetAllOpList) X(TF_GetAllRegisteredKernels) X(TF_GetRegisteredKernelsForOp) X(TF_LoadLibrary) \
  X(TF_GetOpList) X(TF_DeleteLibraryHandle) X(TF_NewApiDefMap) X(TF_DeleteApiDefMap) X(TF_ApiDefMapPut) \
  X(TF_ApiDefMapGet) X(TF_NewServer) X(TF_ServerStart) X(TF_ServerStop) X(TF_ServerJoin) X(TF_ServerTarget) \
  X(TF_DeleteServer) X(TF_RegisterFilesystemPlugin) X(TF_RegisterLogListener)

// Of env.h and logging.h.
#define MR_ENV_POINTS(X) \
  X(TF_CreateDir) X(TF_DeleteDir) X(TF_DeleteRecursively) X(TF_FileStat) X(TF_DeleteFile) X(TF_NewWritableFile) \
  X(TF_CloseWritableFile) X(TF_SyncWritableFile) X(TF_FlushWritableFile) X(TF_AppendWritableFile) \
  X(TF_StringStreamNext) X(TF_StringStreamDone) X(TF_GetChildren) X(TF_GetLocalTempDirectories) \
  X(TF_GetTempFileName) X(TF_NowNanos) X(TF_NowMicros) X(TF_NowSeconds) X(TF_DefaultThreadOptions) \
  X(TF_StartThread) X(TF_JoinThread) X(TF_LoadSharedLibrary) X(TF_GetSymbolFromLibrary) \
  X(TF_Log) X(TF_VLog) X(TF_DVLog)

// Of eager/c_api.h.
#define MR_EAGER_POINTS(X) \
  X(TFE_NewContextOptions) X(TFE_DeleteContextOptions) X(TFE_ContextOptionsSetConfig) \
  X(TFE_ContextOptionsSetAsync) X(TFE_ContextOptionsSetDevicePlacementPolicy) X(TFE_NewContext) \
  X(TFE_DeleteContext) X(TFE_ContextListDevices) X(TFE_ContextClearCaches) \
  X(TFE_ContextSetThreadLocalDevicePlacementPolicy) X(TFE_ContextGetDevicePlacementPolicy) \
  X(TFE_ContextSetServerDef) X(TFE_ContextAddFunctionDef) X(TFE_ContextAddFunction) \
  X(TFE_ContextRemoveFunction) X(TFE_ContextHasFunction) X(TFE_ContextEnableRunMetadata) \
  X(TFE_ContextDisableRunMetadata) X(TFE_ContextExportRunMetadata) X(TFE_ContextStartStep) \
  X(TFE_ContextEndStep) X(TFE_NewTensorHandle) X(TFE_DeleteTensorHandle) X(TFE_TensorHandleDataType) \
  X(TFE_TensorHandleNumDims) X(TFE_TensorHandleNumElements) X(TFE_TensorHandleDim) \
  X(TFE_TensorHandleDeviceName) X(TFE_TensorHandleBackingDeviceName) X(TFE_TensorHandleCopySharingTensor) \
  X(TFE_TensorHandleResolve) X(TFE_TensorHandleCopyToDevice) X(TFE_TensorHandleTensorDebugInfo) \
  X(TFE_DeleteTensorDebugInfo) X(TFE_TensorDebugInfoOnDeviceNumDims) X(TFE_TensorDebugInfoOnDeviceDim) \
  X(TFE_NewOp) X(TFE_DeleteOp) X(TFE_OpGetName) X(TFE_OpGetContext) X(TFE_OpSetDevice) X(TFE_OpGetDevice) \
  X(TFE_OpSetXLACompilation) X(TFE_OpAddInput) X(TFE_OpAddInputList) X(TFE_OpGetFlatInputCount) \
  X(TFE_OpGetFlatInput) X(TFE_OpGetAttrType) X(TFE_OpNameGetAttrType) X(TFE_OpSetAttrString) \
  X(TFE_OpSetAttrInt) X(TFE_OpSetAttrFloat) X(TFE_OpSetAttrBool) X(TFE_OpSetAttrType) X(TFE_OpSetAttrShape) \
  X(TFE_OpSetAttrFunction) X(TFE_OpSetAttrFunctionName) X(TFE_OpSetAttrTensor) X(TFE_OpSetAttrValueProto) \
  X(TFE_OpSetAttrStringList) X(TFE_OpSetAttrIntList) X(TFE_OpSetAttrFloatList) X(TFE_OpSetAttrBoolList) \
  X(TFE_OpSetAttrTypeList) X(TFE_OpSetAttrShapeList) X(TFE_OpSetAttrFunctionList) X(TFE_OpGetInputLength) \
  X(TFE_OpGetOutputLength) X(TFE_Execute)

// Of c_api.h for TensorFlow's Python, of c_api_experimental.h, and of kernels.h.
#define MR_FURTHER_POINTS(X) \
  X(TF_NewOperationLocked) X(TF_FinishOperationLocked) X(TF_SetRequireShapeInferenceFns) X(TF_SetFullType) \
  X(TF_AddWhileInputHack) X(TF_GetHandleShapeAndType) X(TF_SetHandleShapeAndType) \
  X(TF_GraphImportGraphDefWithResultsNoSerialization) X(TF_InitMain) X(TF_EnableXLACompilation) \
  X(TF_MakeInternalErrorStatus) X(TF_CreateConfig) X(TF_CreateRunOptions) X(TF_GraphDebugString) \
  X(TF_FunctionDebugString) X(TF_OpIsStateful) X(TF_GetNumberAttrForOpListInput) X(TF_NewCheckpointReader) \
  X(TF_DeleteCheckpointReader) X(TF_CheckpointReaderHasTensor) X(TF_CheckpointReaderGetVariable) \
  X(TF_CheckpointReaderSize) X(TF_CheckpointReaderGetVariableDataType) X(TF_CheckpointReaderGetVariableShape) \
  X(TF_CheckpointReaderGetVariableNumDims) X(TF_CheckpointReaderGetTensor) X(TFE_NewTensorHandleFromScalar) \
  X(TF_DequeueNamedTensor) X(TF_EnqueueNamedTensor) X(TF_LoadPluggableDeviceLibrary) \
  X(TF_DeletePluggableDeviceLibraryHandle) X(TF_GraphRemoveFunction) X(TFE_GetServerDef) \
  X(TFE_EnableCollectiveOps) X(TF_GetRendezvous)
// clang-format on

#ifdef __cplusplus
// What the face of 1.x has in place of the functions of MR_FORM_POINTS.
const char* MR_OldVersion();
TF_Tensor* MR_OldNewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                           void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg);
TF_Tensor* MR_OldAllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len);
void* MR_OldTensorData(const TF_Tensor* tensor);
size_t MR_OldTensorByteSize(const TF_Tensor* tensor);
bool MR_OldTensorIsAligned(const TF_Tensor* tensor);

// The table: pointers in the order of the lists, those for kernels and op definitions (c_api_table.h) first, the
// functions of 1.x last.
struct MR_Face {
#define MR_POINT(name) __typeof__(&::name) name;
#define MR_PLUGIN_POINT(name) MR_POINT(TF_##name)
#define MR_FORM_POINT(name, old) MR_POINT(name)
#define MR_OLD_POINT(name, old) MR_POINT(old)
  MR_API_PLUGIN_FUNCTIONS(MR_PLUGIN_POINT)
  MR_COMMON_POINTS(MR_POINT)
  MR_ENV_POINTS(MR_POINT)
  MR_EAGER_POINTS(MR_POINT)
  MR_FURTHER_POINTS(MR_POINT)
  MR_FORM_POINTS(MR_FORM_POINT)
  MR_FORM_POINTS(MR_OLD_POINT)
#undef MR_PLUGIN_POINT
#undef MR_OLD_POINT
#undef MR_FORM_POINT
#undef MR_POINT
};
extern "C" TF_CAPI_EXPORT const MR_Face MR_FACE_TABLE;
#endif
