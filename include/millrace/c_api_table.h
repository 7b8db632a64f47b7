/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of this library as a table, so that a program that also has TensorFlow loaded, whose functions have the
 * same names, reaches ours: the dynamic linker would otherwise bind TF_SessionRun to whichever library came first.
 *
 *   const MR_Api* api = MR_GetApi();
 *   TF_Graph* graph = api->NewGraph();
 *
 * Or, without linking: dlopen("libmillrace.so", RTLD_NOW | RTLD_LOCAL) and dlsym(handle, "MR_GetApi").
 *
 * TensorFlow itself has no such table: loaded after this library, it works when this one is not in the global scope,
 * that is, when it was opened with RTLD_LOCAL (the default of dlopen in C, Python and most languages) and not linked to
 * the program. Loaded before it, it works in every case.
 */
#ifndef MILLRACE_C_API_TABLE_H_
#define MILLRACE_C_API_TABLE_H_

#include "millrace/c_api_callbacks.h"
#include "millrace/c_api_control_flow.h"
#include "millrace/c_api_devices.h"
#include "millrace/c_api_files.h"
#include "millrace/c_api_io.h"
#include "millrace/c_api_kernels.h"
#include "millrace/c_api_ops.h"
#include "millrace/c_api_session.h"
#include "millrace/c_api_training.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every TF_ function declared in these headers, without its prefix. The order is the table's, so it never changes: what
 * comes later goes into a further list at the table's end. */
/* clang-format off */
#define MR_API_FUNCTIONS(X) \
  X(Version) X(NewStatus) X(DeleteStatus) X(SetStatus) X(SetPayload) X(ForEachPayload) X(SetStatusFromIOError)        \
  X(GetCode) X(Message) X(NewBufferFromString) X(NewBuffer) X(DeleteBuffer) X(GetBuffer) X(DataTypeSize)              \
  X(NewTensor) X(AllocateTensor) X(TensorDefaultAlignment) X(TensorMaybeMove) X(DeleteTensor) X(TensorType)           \
  X(SetShape) X(NumDims) X(Dim) X(TensorByteSize) X(TensorData) X(TensorElementCount) X(TensorBitcastFrom)            \
  X(TensorIsAligned) X(TensorFromProto) X(StringInit) X(StringCopy) X(StringAssignView) X(StringGetDataPointer)       \
  X(StringGetType) X(StringGetSize) X(StringGetCapacity) X(StringDealloc) X(StringEncode) X(StringDecode)             \
  X(StringEncodedSize) X(NewGraph) X(DeleteGraph) X(GraphOperationByName) X(GraphNextOperation) X(GraphToGraphDef)    \
  X(GraphGetOpDef) X(GraphVersions) X(GraphSetTensorShape) X(GraphGetTensorNumDims) X(GraphGetTensorShape)            \
  X(TryEvaluateConstant) X(NewOperation) X(SetDevice) X(AddInput) X(AddInputList) X(AddControlInput) X(ColocateWith)  \
  X(FinishOperation) X(SetAttrString) X(SetAttrStringList) X(SetAttrInt) X(SetAttrIntList) X(SetAttrFloat)            \
  X(SetAttrFloatList) X(SetAttrBool) X(SetAttrBoolList) X(SetAttrType) X(SetAttrTypeList) X(SetAttrPlaceholder)       \
  X(SetAttrFuncName) X(SetAttrShape) X(SetAttrShapeList) X(SetAttrTensorShapeProto) X(SetAttrTensorShapeProtoList)    \
  X(SetAttrTensor) X(SetAttrTensorList) X(SetAttrValueProto) X(OperationName) X(OperationOpType) X(OperationDevice)   \
  X(OperationNumOutputs) X(OperationOutputType) X(OperationInputType) X(OperationOutputListLength)                    \
  X(OperationInputListLength) X(OperationNumInputs) X(OperationInput) X(OperationAllInputs)                           \
  X(OperationOutputNumConsumers) X(OperationOutputConsumers) X(OperationNumControlInputs)                             \
  X(OperationGetControlInputs) X(OperationNumControlOutputs) X(OperationGetControlOutputs) X(OperationToNodeDef)      \
  X(OperationGetAttrMetadata) X(OperationGetAttrString) X(OperationGetAttrStringList) X(OperationGetAttrInt)          \
  X(OperationGetAttrIntList) X(OperationGetAttrFloat) X(OperationGetAttrFloatList) X(OperationGetAttrBool)            \
  X(OperationGetAttrBoolList) X(OperationGetAttrType) X(OperationGetAttrTypeList) X(OperationGetAttrShape)            \
  X(OperationGetAttrShapeList) X(OperationGetAttrTensorShapeProto) X(OperationGetAttrTensorShapeProtoList)            \
  X(OperationGetAttrTensor) X(OperationGetAttrTensorList) X(OperationGetAttrValueProto) X(OperationGetNumAttrs)       \
  X(OperationGetAttrNameLength) X(OperationGetAttrName) X(UpdateEdge) X(AddOperationControlInput)                     \
  X(RemoveAllControlInputs) X(SetRequestedDevice) X(SetAttr) X(ClearAttr) X(NewImportGraphDefOptions)                 \
  X(DeleteImportGraphDefOptions) X(ImportGraphDefOptionsSetPrefix) X(ImportGraphDefOptionsSetDefaultDevice)           \
  X(ImportGraphDefOptionsSetUniquifyNames) X(ImportGraphDefOptionsSetUniquifyPrefix)                                  \
  X(ImportGraphDefOptionsAddInputMapping) X(ImportGraphDefOptionsRemapControlDependency)                              \
  X(ImportGraphDefOptionsAddControlDependency) X(ImportGraphDefOptionsAddReturnOutput)                                \
  X(ImportGraphDefOptionsNumReturnOutputs) X(ImportGraphDefOptionsAddReturnOperation)                                 \
  X(ImportGraphDefOptionsNumReturnOperations) X(ImportGraphDefOptionsSetValidateColocationConstraints)                \
  X(GraphImportGraphDefWithResults) X(GraphImportGraphDefWithReturnOutputs) X(GraphImportGraphDef)                    \
  X(ImportGraphDefResultsReturnOutputs) X(ImportGraphDefResultsReturnOperations)                                      \
  X(ImportGraphDefResultsMissingUnusedInputMappings) X(DeleteImportGraphDefResults) X(GraphToFunction)                \
  X(GraphToFunctionWithControlOutputs) X(FunctionName) X(FunctionToFunctionDef) X(FunctionImportFunctionDef)          \
  X(FunctionSetAttrValueProto) X(FunctionGetAttrValueProto) X(DeleteFunction) X(GraphCopyFunction)                    \
  X(GraphNumFunctions) X(GraphGetFunctions) X(AddGradients) X(AddGradientsWithPrefix) X(NewWhile) X(FinishWhile)      \
  X(AbortWhile) X(NewSessionOptions) X(SetTarget) X(SetConfig) X(DeleteSessionOptions) X(NewSession)                  \
  X(LoadSessionFromSavedModel) X(CloseSession) X(DeleteSession) X(ExtendSession) X(SessionRun) X(SessionPRunSetup)    \
  X(SessionPRun) X(DeletePRunHandle) X(SessionListDevices) X(DeprecatedSessionListDevices) X(DeleteDeviceList)        \
  X(DeviceListCount) X(DeviceListName) X(DeviceListType) X(DeviceListMemoryBytes) X(DeviceListIncarnation)            \
  X(NewDeprecatedSession) X(CloseDeprecatedSession) X(DeleteDeprecatedSession) X(Reset) X(ExtendGraph) X(Run)         \
  X(PRunSetup) X(PRun) X(GetAllOpList) X(GetAllRegisteredKernels) X(GetRegisteredKernelsForOp) X(LoadLibrary)         \
  X(GetOpList) X(DeleteLibraryHandle) X(NewApiDefMap) X(DeleteApiDefMap) X(ApiDefMapPut) X(ApiDefMapGet)              \
  X(NewServer) X(ServerStart) X(ServerStop) X(ServerJoin) X(ServerTarget) X(DeleteServer)                             \
  X(RegisterFilesystemPlugin) X(RegisterLogListener)

/* Likewise the MR_ functions of c_api_training.h and c_api_io.h, which lie behind them in the table. */
#define MR_API_OWN_FUNCTIONS(X) \
  X(FinishComposite) X(AddVariable) X(AddInitializer) X(Minimize) X(SaverCreate) X(SaverFromDef) X(SaverDelete)       \
  X(SaverSave) X(SaverRestore) X(SaverToDef) X(LatestCheckpoint) X(CheckpointReaderOpen) X(CheckpointReaderDelete)    \
  X(CheckpointReaderNumTensors) X(CheckpointReaderName) X(CheckpointReaderRead) X(EventWriterOpen)                    \
  X(EventWriterAddSummary) X(EventWriterAddGraph) X(EventWriterAddEvent) X(EventWriterFlush) X(EventWriterPath)       \
  X(EventWriterClose) X(CellStates) X(AddCellVariables)

/* And those that came later. */
#define MR_API_LATER_FUNCTIONS(X) \
  X(AddGradients) X(RegisterGradient) X(OptimizerNew) X(OptimizerDelete) X(OptimizerSetSlotValue) X(OptimizerApply)   \
  X(OptimizerSlot)

/* And those of c_api_control_flow.h. */
#define MR_API_FLOW_FUNCTIONS(X) \
  X(NewOutputs) X(DeleteOutputs) X(OutputsAppend) X(OutputsSize) X(OutputsGet) X(Cond) X(Case) X(WhileLoop) X(MapFn)  \
  X(FoldL) X(FoldR) X(Scan) X(WithDependencies) X(Group) X(Tuple) X(BlockScope) X(BlockAbort) X(CondBegin)            \
  X(CondElse) X(CondEnd) X(WhileBegin) X(WhileBody) X(WhileEnd) X(FlowSuspend) X(FlowResume)

/* And those of c_api_session.h and c_api_graph.h that came later. */
#define MR_API_SESSION_FUNCTIONS(X) X(SessionRandomState) X(SetSessionRandomState) X(OpInputName)

/* And those of c_api_callbacks.h, and those of c_api_io.h that came later. */
#define MR_API_CALLBACK_FUNCTIONS(X) \
  X(RegisterClientFunction) X(UnregisterClientFunction) X(SetInterruptCheck) X(SaverKeepEvery) X(SaverSetCheckpoints)

/* Those of c_api_kernels.h and c_api_ops.h: the TF_ functions, and the MR_ functions with what came later. */
#define MR_API_PLUGIN_FUNCTIONS(X) \
  X(NewKernelBuilder) X(NewAsyncKernelBuilder) X(RunAsyncOpKernelDoneCallback) X(KernelBuilder_TypeConstraint)        \
  X(KernelBuilder_HostMemory) X(KernelBuilder_Priority) X(KernelBuilder_Label) X(RegisterKernelBuilder)               \
  X(RegisterKernelBuilderWithKernelDef) X(DeleteKernelBuilder) X(OpKernelConstruction_Failure)                        \
  X(OpKernelConstruction_GetName) X(OpKernelConstruction_HasAttr) X(OpKernelConstruction_GetAttrSize)                 \
  X(OpKernelConstruction_GetAttrType) X(OpKernelConstruction_GetAttrInt32) X(OpKernelConstruction_GetAttrInt64)       \
  X(OpKernelConstruction_GetAttrFloat) X(OpKernelConstruction_GetAttrBool) X(OpKernelConstruction_GetAttrString)      \
  X(OpKernelConstruction_GetAttrTensor) X(OpKernelConstruction_GetAttrTypeList)                                       \
  X(OpKernelConstruction_GetAttrInt32List) X(OpKernelConstruction_GetAttrInt64List)                                   \
  X(OpKernelConstruction_GetAttrFloatList) X(OpKernelConstruction_GetAttrBoolList)                                    \
  X(OpKernelConstruction_GetAttrStringList) X(OpKernelConstruction_GetAttrTensorList)                                 \
  X(OpKernelConstruction_GetAttrFunction) X(OpKernelConstruction_GetNodeDef) X(OpKernelContext_Failure) X(NumInputs)  \
  X(NumOutputs) X(GetInput) X(InputDatatype) X(InputRange) X(SetOutput) X(GetMutableOutput) X(ExpectedOutputDataType) \
  X(AllocateOutput) X(ForwardInputOrAllocateOutput) X(AllocateTemp) X(IsHostMemoryInput) X(IsHostMemoryOutput)        \
  X(StepId) X(GetStepId) X(GetFrameId) X(GetIterId) X(GetDeviceId) X(GetDeviceName) X(GetOpKernelName)                \
  X(GetResourceMgrDefaultContainerName) X(GetSerializedResourceHandleProto) X(GetSerializedFunctionDefLibrary)        \
  X(GetSerializedConfigProto) X(GetStream) X(IncNumDeferredOps) X(DecNumDeferredOps) X(GetGraphDefVersion)            \
  X(GetOpKernelRequestedInput) X(NewOpDefinitionBuilder) X(RegisterOpDefinition) X(DeleteOpDefinitionBuilder)         \
  X(OpDefinitionBuilderAddAttr) X(OpDefinitionBuilderAddInput) X(OpDefinitionBuilderAddOutput)                        \
  X(OpDefinitionBuilderSetIsCommutative) X(OpDefinitionBuilderSetIsAggregate) X(OpDefinitionBuilderSetIsStateful)     \
  X(OpDefinitionBuilderSetAllowsUninitializedInput) X(OpDefinitionBuilderDeprecated)                                  \
  X(OpDefinitionBuilderSetShapeInferenceFunction) X(NewShapeHandle) X(DeleteShapeHandle) X(NewDimensionHandle)        \
  X(DeleteDimensionHandle) X(ShapeInferenceContextNumInputs) X(ShapeInferenceContextGetInput)                         \
  X(ShapeInferenceContextSetOutput) X(ShapeInferenceContextScalar) X(ShapeInferenceContextVectorFromSize)             \
  X(ShapeInferenceContext_GetAttrType) X(ShapeInferenceContextRank) X(ShapeInferenceContextRankKnown)                 \
  X(ShapeInferenceContextWithRank) X(ShapeInferenceContextWithRankAtLeast) X(ShapeInferenceContextWithRankAtMost)     \
  X(ShapeInferenceContextDim) X(ShapeInferenceContextSubshape) X(ShapeInferenceContextConcatenateShapes)              \
  X(ShapeInferenceContextSetUnknownShape) X(DimensionHandleValueKnown) X(DimensionHandleValue)
#define MR_API_OWN_PLUGIN_FUNCTIONS(X) \
  X(OpDefinitionBuilderSetGradient) X(OpDefinitionBuilderSetNotDifferentiable) X(OpDefinitionBuilderSetDoc)           \
  X(ShapeInferenceContextMakeShape) X(ShapeInferenceContextMerge) X(ShapeInferenceContextGetAttrInt)                  \
  X(ShapeInferenceContextInputValue) X(OpKernelConstruction_GetAttrShape) X(OpKernelContext_IsCancelled)              \
  X(OpKernelContext_OnCancel) X(OpKernelContext_ParallelFor) X(LoadPlugin) X(ReleasePartialRun)

/* And one more of c_api_session.h. */
#define MR_API_COMPILE_FUNCTIONS(X) X(SessionExplain)

/* And those of c_api_devices.h. */
#define MR_API_DEVICE_FUNCTIONS(X) \
  X(RegisterDevice) X(DeviceBytesInUse) X(DevicePeakBytesInUse) X(OpKernelContext_BeginLateWork) X(EndLateWork)       \
  X(OpKernelContext_LockVariables) X(OpKernelContext_ForwardRef)

/* And those of c_api_training.h that came last. */
#define MR_API_SOLVER_FUNCTIONS(X) X(LbfgsNew) X(LbfgsDelete) X(LbfgsTell) X(LbfgsReason)

/* And those of servers, of c_api_session.h. */
#define MR_API_SERVER_FUNCTIONS(X) X(ServerStatus) X(TargetStatus)

/* And those of c_api_io.h that save a snapshot. */
#define MR_API_SNAPSHOT_FUNCTIONS(X) X(SaverRead) X(SaverSnapshotDelete) X(SaverSaveSnapshot)

/* And what c_api_session.h tells of a server's steps. */
#define MR_API_SERVER_STEPS_FUNCTIONS(X) X(ServerSteps)

/* And those of c_api_files.h. */
#define MR_API_FILE_FUNCTIONS(X) \
  X(RecordWriterOpen) X(RecordWriterWrite) X(RecordWriterFlush) X(RecordWriterClose) X(RecordReaderOpen)              \
  X(RecordReaderDelete) X(RecordReaderRead) X(WriteFileAtomically) X(NoteCheckpointScore) X(BestCheckpoints)

/* And what came later there. */
#define MR_API_PATH_FUNCTIONS(X) \
  X(NewAppendableFile) X(RenameFile) X(CopyFile) X(CreateDirs) X(MatchFiles) X(FileReaderOpen) X(FileReaderRead)      \
  X(FileReaderSize) X(FileReaderDelete)

/* And what came later of c_api_graph.h. */
#define MR_API_REFERENCE_FUNCTIONS(X) X(ColocateReferences)
/* clang-format on */

/* Rises when an entry changes its meaning, which it should not; new entries only make struct_size grow. */
#define MR_API_VERSION 1

typedef struct MR_Api {
  size_t struct_size; /* of the library's table: entries beyond it are not there */
  int version;        /* MR_API_VERSION of the library */
  __typeof__(&MR_Version) MillraceVersion;
  __typeof__(&MR_SetLocation) SetLocation;
  __typeof__(&MR_OperationLocation) OperationLocation;
#define MR_API_ENTRY_(name) __typeof__(&TF_##name) name;
  MR_API_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
#define MR_API_ENTRY_(name) __typeof__(&MR_##name) name;
  MR_API_OWN_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
  /* TF_AddGradients is there already, so these have their prefix in the table. */
#define MR_API_ENTRY_(name) __typeof__(&MR_##name) MR_##name;
  MR_API_LATER_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
#define MR_API_ENTRY_(name) __typeof__(&MR_##name) name;
  MR_API_FLOW_FUNCTIONS(MR_API_ENTRY_)
  MR_API_SESSION_FUNCTIONS(MR_API_ENTRY_)
  MR_API_CALLBACK_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
#define MR_API_ENTRY_(name) __typeof__(&TF_##name) name;
  MR_API_PLUGIN_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
#define MR_API_ENTRY_(name) __typeof__(&MR_##name) MR_##name;
  MR_API_OWN_PLUGIN_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
#define MR_API_ENTRY_(name) __typeof__(&MR_##name) name;
  MR_API_COMPILE_FUNCTIONS(MR_API_ENTRY_)
  MR_API_DEVICE_FUNCTIONS(MR_API_ENTRY_)
  MR_API_SOLVER_FUNCTIONS(MR_API_ENTRY_)
  MR_API_SERVER_FUNCTIONS(MR_API_ENTRY_)
  MR_API_SNAPSHOT_FUNCTIONS(MR_API_ENTRY_)
  MR_API_SERVER_STEPS_FUNCTIONS(MR_API_ENTRY_)
  MR_API_FILE_FUNCTIONS(MR_API_ENTRY_)
  MR_API_PATH_FUNCTIONS(MR_API_ENTRY_)
  MR_API_REFERENCE_FUNCTIONS(MR_API_ENTRY_)
#undef MR_API_ENTRY_
} MR_Api;

/* The same table in every call; never NULL. */
TF_CAPI_EXPORT const MR_Api* MR_GetApi(void);

/* What TF_LoadLibrary calls in a plugin, if it is there, before TF_InitKernel. It reports failure through `status`,
 * which undoes what it has registered, and keeps `api` if it wants to. */
#define MR_PLUGIN_INIT_SYMBOL "MR_PluginInit"
typedef void (*MR_PluginInitFn)(const MR_Api* api, TF_Status* status);

/* What a plugin is made for. One that has it is refused, before MR_PluginInit is called, by a library that is older. */
typedef struct MR_PluginInfo {
  size_t struct_size;
  int api_version;
  size_t api_size;
} MR_PluginInfo;
#define MR_PLUGIN_INFO_SYMBOL "MR_Plugin"
#ifdef __cplusplus
#define MR_EXTERN_C_ extern "C"
#else
#define MR_EXTERN_C_ extern
#endif
/* Once in a plugin, at file scope: MR_DECLARE_PLUGIN(); */
#define MR_DECLARE_PLUGIN()                                  \
  MR_EXTERN_C_ TF_CAPI_EXPORT const MR_PluginInfo MR_Plugin; \
  const MR_PluginInfo MR_Plugin = {sizeof(MR_PluginInfo), MR_API_VERSION, sizeof(MR_Api)}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_TABLE_H_ */
