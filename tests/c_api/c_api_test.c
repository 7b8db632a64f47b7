/* SPDX-License-Identifier: Apache-2.0
 *
 * A C99 program that uses the library as a language binding would: builds a graph, runs it, differentiates it, and
 * makes mistakes. Exits with 0 when everything is as expected.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millrace/c_api.h"

static int failures = 0;

#define EXPECT(condition)                                            \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

#define EXPECT_OK(status)                                            \
  do {                                                               \
    if (TF_GetCode(status) != TF_OK) {                               \
      printf("%s:%d: %s\n", __FILE__, __LINE__, TF_Message(status)); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

static TF_Output Port(TF_Operation* oper, int index) {
  TF_Output out;
  out.oper = oper;
  out.index = index;
  return out;
}

static TF_Operation* Placeholder(TF_Graph* graph, const char* name, TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  return TF_FinishOperation(desc, status);
}

static TF_Operation* Binary(TF_Graph* graph, const char* op, const char* name, TF_Operation* a, TF_Operation* b,
                            TF_Status* status) {
  TF_OperationDescription* desc = TF_NewOperation(graph, op, name);
  TF_AddInput(desc, Port(a, 0));
  TF_AddInput(desc, Port(b, 0));
  return TF_FinishOperation(desc, status);
}

static TF_Tensor* Matrix(int64_t rows, int64_t columns, const float* values) {
  int64_t dims[2];
  size_t size = (size_t)(rows * columns) * sizeof(float);
  TF_Tensor* tensor;
  dims[0] = rows;
  dims[1] = columns;
  tensor = TF_AllocateTensor(TF_FLOAT, dims, 2, size);
  if (tensor != NULL) memcpy(TF_TensorData(tensor), values, size);
  return tensor;
}

static void ExpectFloats(const TF_Tensor* tensor, const float* values, int count) {
  int i;
  EXPECT(tensor != NULL);
  if (tensor == NULL) return;
  EXPECT(TF_TensorType(tensor) == TF_FLOAT);
  EXPECT(TF_TensorElementCount(tensor) == count);
  for (i = 0; i < count; ++i) EXPECT(((const float*)TF_TensorData(tensor))[i] == values[i]);
}

/* y = a b, dy/da = 1 bT, dy/db = aT 1. */
static void TestRunAndGradients(TF_Graph* graph, TF_Session* session, TF_Status* status) {
  const float a_values[] = {1, 2, 3, 4}, b_values[] = {5, 6, 7, 8};
  const float y_values[] = {19, 22, 43, 50}, da_values[] = {11, 15, 11, 15}, db_values[] = {4, 4, 6, 6};
  TF_Operation* a = Placeholder(graph, "a", status);
  TF_Operation* b = Placeholder(graph, "b", status);
  TF_Operation* y = Binary(graph, "MatMul", "y", a, b, status);
  TF_Output ys[1], xs[2], feeds[2], fetches[3];
  TF_Tensor *values[2], *results[3];
  int i;
  EXPECT_OK(status);
  ys[0] = Port(y, 0);
  feeds[0] = xs[0] = Port(a, 0);
  feeds[1] = xs[1] = Port(b, 0);
  fetches[0] = ys[0];
  TF_AddGradients(graph, ys, 1, xs, 2, NULL, status, fetches + 1);
  EXPECT_OK(status);
  values[0] = Matrix(2, 2, a_values);
  values[1] = Matrix(2, 2, b_values);
  TF_SessionRun(session, NULL, feeds, values, 2, fetches, results, 3, NULL, 0, NULL, status);
  EXPECT_OK(status);
  ExpectFloats(results[0], y_values, 4);
  ExpectFloats(results[1], da_values, 4);
  ExpectFloats(results[2], db_values, 4);
  for (i = 0; i < 3; ++i) TF_DeleteTensor(results[i]);
  for (i = 0; i < 2; ++i) TF_DeleteTensor(values[i]);
}

static void TestErrors(TF_Graph* graph, TF_Session* session, TF_Status* status) {
  const float values[] = {1, 2, 3};
  TF_Output feed = Port(TF_GraphOperationByName(graph, "a"), 0), fetch = Port(TF_GraphOperationByName(graph, "y"), 0);
  TF_Tensor *wide = Matrix(1, 3, values), *result = NULL;
  TF_SessionRun(session, NULL, &feed, &wide, 1, &fetch, &result, 1, NULL, 0, NULL, status);
  EXPECT(TF_GetCode(status) == TF_INVALID_ARGUMENT); /* b is not fed */
  EXPECT(result == NULL);
  EXPECT(strlen(TF_Message(status)) > 0);
  fetch.index = 1;
  TF_SessionRun(session, NULL, &feed, &wide, 1, &fetch, &result, 1, NULL, 0, NULL, status);
  EXPECT(TF_GetCode(status) == TF_OUT_OF_RANGE); /* y has one output */
  EXPECT(TF_FinishOperation(TF_NewOperation(graph, "NoSuchOp", "n"), status) == NULL);
  EXPECT(TF_GetCode(status) != TF_OK);
  EXPECT(TF_GraphOperationByName(graph, "n") == NULL);
  TF_DeleteTensor(wide);
}

static void Negative(void* data, TF_Tensor** inputs, int num_inputs, TF_Tensor** outputs, int num_outputs,
                     TF_Status* status) {
  float value;
  (void)data;
  if (num_inputs != 1 || num_outputs != 1) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "wanted one of each");
    return;
  }
  value = -*(const float*)TF_TensorData(inputs[0]);
  outputs[0] = Matrix(1, 1, &value);
}

static int CountLooks(void* data) {
  ++*(int*)data;
  return 0;
}

/* A client function, and an interrupt check, by the table alone. */
static void TestTableOfCallbacks(const MR_Api* api) {
  const float value = 3;
  const TF_DataType result = TF_FLOAT;
  int looks = 0;
  TF_Status* status = api->NewStatus();
  TF_Graph* graph = api->NewGraph();
  TF_Session* session = api->NewSession(graph, NULL, status);
  TF_Tensor *input = Matrix(1, 1, &value), *output = NULL;
  TF_OperationDescription* d = api->NewOperation(graph, "Placeholder", "x");
  TF_Output x, y;
  api->SetAttrType(d, "dtype", TF_FLOAT);
  x = Port(api->FinishOperation(d, status), 0);
  d = api->NewOperation(graph, "PyFunc", "y");
  api->AddInputList(d, &x, 1);
  api->SetAttrString(d, "token", "negative", 8);
  api->SetAttrTypeList(d, "Tout", &result, 1);
  y = Port(api->FinishOperation(d, status), 0);
  EXPECT_OK(status);
  api->RegisterClientFunction("negative", &Negative, NULL, NULL, status);
  EXPECT_OK(status);
  api->SetInterruptCheck(session, &CountLooks, &looks, status);
  EXPECT_OK(status);
  api->SessionRun(session, NULL, &x, &input, 1, &y, &output, 1, NULL, 0, NULL, status);
  EXPECT_OK(status);
  EXPECT(output != NULL && *(const float*)TF_TensorData(output) == -3);
  api->DeleteTensor(output);
  api->UnregisterClientFunction("negative");
  output = NULL;
  api->SessionRun(session, NULL, &x, &input, 1, &y, &output, 1, NULL, 0, NULL, status);
  EXPECT(api->GetCode(status) == TF_INVALID_ARGUMENT);
  api->DeleteTensor(input);
  api->DeleteSession(session, status);
  api->DeleteGraph(graph);
  api->DeleteStatus(status);
}

static void TestTable(void) {
  const MR_Api* api = MR_GetApi();
  TF_Graph* graph = api->NewGraph();
  size_t i;
  for (i = offsetof(MR_Api, MillraceVersion); i < sizeof(MR_Api); i += sizeof(void (*)(void))) {
    const unsigned char* entry = (const unsigned char*)api + i;
    size_t k, zeros = 0;
    for (k = 0; k < sizeof(void (*)(void)); ++k) zeros += entry[k] == 0;
    EXPECT(zeros < sizeof(void (*)(void)));
  }
  TestTableOfCallbacks(api);
  EXPECT(api->struct_size >= sizeof(MR_Api));
  EXPECT(api->version == MR_API_VERSION);
  EXPECT(strcmp(api->Version(), TF_Version()) == 0);
  EXPECT(strcmp(api->MillraceVersion(), MR_Version()) == 0);
  EXPECT(graph != NULL);
  api->DeleteGraph(graph);
}

int main(void) {
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  TF_DeleteSessionOptions(options);
  EXPECT_OK(status);
  if (session == NULL) return EXIT_FAILURE;
  TestRunAndGradients(graph, session, status);
  TestErrors(graph, session, status);
  TestTable();
  TF_CloseSession(session, status);
  EXPECT_OK(status);
  TF_DeleteSession(session, status);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  if (failures == 0) printf("all as expected\n");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
