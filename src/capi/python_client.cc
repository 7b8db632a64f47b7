// SPDX-License-Identifier: Apache-2.0
// What TensorFlow's own Python client asks of the C API beyond others.
#include "capi/internal.h"
#include "tensorflow/c/c_api.h"

using millrace::Unimplemented;
using millrace::capi::Guarded;

extern "C" {

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type, const char* oper_name) {
  return TF_NewOperation(graph, op_type, oper_name);
}
TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc, TF_Status* status) {
  return TF_FinishOperation(desc, status);
}
void TF_SetRequireShapeInferenceFns(TF_Graph*, bool) {}
void TF_SetFullType(TF_Graph*, TF_Operation*, const TF_Buffer*) {}

void TF_AddWhileInputHack(TF_Graph*, TF_Output, TF_Operation*, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_AddWhileInputHack: make loops with TF_NewWhile"); });
}
TF_Buffer* TF_GetHandleShapeAndType(TF_Graph*, TF_Output) { return nullptr; }
void TF_SetHandleShapeAndType(TF_Graph*, TF_Output, const void*, size_t, TF_Status* status) {
  Guarded(status, [] { return Unimplemented("TF_SetHandleShapeAndType: shape functions infer it"); });
}
TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResultsNoSerialization(
    TF_Graph*, const TF_Buffer*, const TF_ImportGraphDefOptions*, TF_Status* status) {
  Guarded(status,
          [] { return Unimplemented("TF_GraphImportGraphDefWithResultsNoSerialization: its buffer is a C++ object"); });
  return nullptr;
}

}  // extern "C"
