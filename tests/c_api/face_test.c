/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that was written for libtensorflow: it sees <tensorflow/c/c_api.h> and the library it is linked to, in
 * whose form it writes and reads strings. Its argument is how the version begins that it expects. Built as a shared
 * library it is the client FaceClient, as a binding's native part is, for processes that hold more (faces.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tensorflow/c/c_api.h>

static int old_form;

static void Die(const char* what, TF_Status* status) {
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(EXIT_FAILURE);
}
static void Check(const char* what, TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) Die(what, status);
}

static TF_Tensor* MakeString(const char* text, TF_Status* status) {
  const size_t length = strlen(text), encoded = TF_StringEncodedSize(length);
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, NULL, 0, old_form ? 8 + encoded : sizeof(TF_TString));
  if (t == NULL) Die("TF_AllocateTensor", status);
  if (old_form) {
    char* bytes = (char*)TF_TensorData(t);
    memset(bytes, 0, 8);
    TF_StringEncode(text, length, bytes + 8, encoded, status);
    Check("TF_StringEncode", status);
  } else {
    TF_TString_Init((TF_TString*)TF_TensorData(t));
    TF_TString_Copy((TF_TString*)TF_TensorData(t), text, length);
  }
  return t;
}

static int IsString(const TF_Tensor* t, const char* text, TF_Status* status) {
  const char* data;
  size_t size;
  if (old_form) {
    TF_StringDecode((const char*)TF_TensorData(t) + 8, TF_TensorByteSize(t) - 8, &data, &size, status);
    Check("TF_StringDecode", status);
  } else {
    data = TF_TString_GetDataPointer((const TF_TString*)TF_TensorData(t));
    size = TF_TString_GetSize((const TF_TString*)TF_TensorData(t));
  }
  return size == strlen(text) && memcmp(data, text, size) == 0;
}

int FaceClient(const char* version);

int FaceClient(const char* version) {
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_OperationDescription* desc;
  TF_Output parts[2], joined;
  TF_Session* session;
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Tensor *constant = NULL, *fed, *result = NULL, *invalid;
  if (strncmp(TF_Version(), version, strlen(version)) != 0) Die(TF_Version(), status);
  old_form = TF_Version()[0] == '1';

  desc = TF_NewOperation(graph, "Placeholder", "x");
  TF_SetAttrType(desc, "dtype", TF_STRING);
  parts[0].oper = TF_FinishOperation(desc, status);
  parts[0].index = 0;
  Check("Placeholder", status);
  constant = MakeString(", a tail that is longer than 22 characters", status);
  desc = TF_NewOperation(graph, "Const", "c");
  TF_SetAttrType(desc, "dtype", TF_STRING);
  TF_SetAttrTensor(desc, "value", constant, status);
  Check("TF_SetAttrTensor", status);
  parts[1].oper = TF_FinishOperation(desc, status);
  parts[1].index = 0;
  Check("Const", status);
  TF_DeleteTensor(constant);
  desc = TF_NewOperation(graph, "StringJoin", "joined");
  TF_AddInputList(desc, parts, 2);
  joined.oper = TF_FinishOperation(desc, status);
  joined.index = 0;
  Check("StringJoin", status);

  session = TF_NewSession(graph, options, status);
  Check("TF_NewSession", status);
  fed = MakeString("head", status);
  TF_SessionRun(session, NULL, parts, &fed, 1, &joined, &result, 1, NULL, 0, NULL, status);
  Check("TF_SessionRun", status);
  if (!IsString(result, "head, a tail that is longer than 22 characters", status)) Die("another string", status);
  TF_DeleteTensor(result);
  TF_DeleteTensor(fed);

  /* What is no string: 24 bytes in which an offset, or a pointer, leads nowhere. */
  invalid = TF_AllocateTensor(TF_STRING, NULL, 0, 24);
  memset(TF_TensorData(invalid), 0, 24);
  memset(TF_TensorData(invalid), old_form ? 0xff : 0x7e, 8);
  TF_SessionRun(session, NULL, parts, &invalid, 1, &joined, &result, 1, NULL, 0, NULL, status);
  if (TF_GetCode(status) != TF_INVALID_ARGUMENT) Die("bytes that are no string were taken", status);
  memset(TF_TensorData(invalid), 0, 24);
  TF_DeleteTensor(invalid);

  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return EXIT_SUCCESS;
}

int main(int argc, char** argv) {
  if (argc < 2 || FaceClient(argv[1]) != EXIT_SUCCESS) return EXIT_FAILURE;
  printf("all as expected\n");
  return EXIT_SUCCESS;
}
