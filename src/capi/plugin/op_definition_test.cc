// SPDX-License-Identifier: Apache-2.0
// Ops through the C API: declarations, shape functions, gradients.
#include <climits>
#include <stdexcept>

#include "capi/plugin/test_ops.h"

namespace millrace::capi {
namespace {

TEST(OpDefinitionTest, TextsThatAreWrongAreRefused) {
  const struct {
    const char *name, *attr, *input, *why;
  } cases[] = {
      {"lower", nullptr, nullptr, "CamelCase"},
      {"", nullptr, nullptr, "CamelCase"},
      {"Bad1", "T", nullptr, "Trouble parsing '<name>:'"},
      {"Bad2", "T: nonsense", nullptr, "Trouble parsing type string"},
      {"Bad3", "T: {float, nonsense}", nullptr, "Unrecognized type string 'nonsense'"},
      {"Bad4", "T: {float, ", nullptr, "Unrecognized"},
      {"Bad5", "n: int >= x", nullptr, "lower limit"},
      {"Bad6", "n: int = 1.5", nullptr, "Extra"},
      {"Bad7", "n: int >= 3 = 2", nullptr, "at least 3"},
      {"Bad8", "s: string = 'open", nullptr, "default value"},
      {"Bad9", "s: {'a','b'} = 'c'", nullptr, "allowed list"},
      {"Bad10", "l: list(int = []", nullptr, "Expected ) to close 'list('"},
      {"Bad11", "t: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: -5 } } }", nullptr, "dim"},
      {"Bad12", "b: bool = maybe", nullptr, "neither true nor false"},
      {"Bad13", nullptr, "x", "Trouble parsing 'name:'"},
      {"Bad14", nullptr, "x: T", "Reference to unknown attr 'T'"},
      {"Bad15", nullptr, "X: float", "Trouble parsing 'name:'"},
      {"Bad16", "n: int", "x: n", "isn't type or list(type)"},
      {"Bad17", nullptr, "x: Ref(float", "closing ')'"},
      {"Bad18", "n: int", "x: m * float", "unknown attr 'm'"},
      {"Bad19", nullptr, "x: float extra", "Extra 'extra'"},
      {"MatMul", nullptr, nullptr, "Op with name MatMul"},
  };
  for (const auto& c : cases) {
    ScopedStatus s;
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(c.name);
    if (c.attr != nullptr) TF_OpDefinitionBuilderAddAttr(op, c.attr);
    if (c.input != nullptr) TF_OpDefinitionBuilderAddInput(op, c.input);
    TF_RegisterOpDefinition(op, s);
    EXPECT_EQ(s.code(), std::string(c.name) == "MatMul" ? TF_ALREADY_EXISTS : TF_INVALID_ARGUMENT) << c.name;
    EXPECT_TRUE(Contains(s.message(), c.why)) << c.name << ": " << s.message();
  }
  ScopedStatus s;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("NullText");
  TF_OpDefinitionBuilderAddAttr(op, nullptr);
  TF_RegisterOpDefinition(op, s);
  EXPECT_EQ(s.code(), TF_INVALID_ARGUMENT);
}

TEST(OpDefinitionTest, EveryKindOfDeclaration) {
  ScopedStatus s;
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("AllKinds");
  for (const char* attr :
       {"T: numbertype", "R: realnumbertype = DT_INT8", "Q: quantizedtype = DT_QINT8", "N: int", "Ts: list(type)",
        "names: list({'a', 'b', }) = ['b']", "shape: shape = { dim { size: 2 } dim { size: -1 } }",
        "shapes: list(shape) >= 0 = [{}, { unknown_rank: true }]",
        "value: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 7 }", "f: func = { name: 'body' }",
        "text: string = \"a\\nb\"", "x: float = -1.5e-3", "on: bool = false"}) {
    TF_OpDefinitionBuilderAddAttr(op, attr);
  }
  for (const char* input : {"a: T", "list: N * T", "any: Ts", "fixed: int64", "ref: Ref(T)"}) {
    TF_OpDefinitionBuilderAddInput(op, input);
  }
  TF_OpDefinitionBuilderAddOutput(op, "out: Ref(float)");
  TF_OpDefinitionBuilderSetIsCommutative(op, true);
  TF_OpDefinitionBuilderSetIsStateful(op, false);
  TF_OpDefinitionBuilderDeprecated(op, 20, "Use another.");
  MR_OpDefinitionBuilderSetDoc(op, "All that there is.");
  TF_RegisterOpDefinition(op, s);
  ASSERT_TF_OK(s);
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(graph, "AllKinds", def, s);
  ASSERT_TF_OK(s);
  const std::string bytes(static_cast<const char*>(def->data), def->length);
  for (const char* part : {"AllKinds", "list(string)", "body", "a\nb", "Use another.", "All that there is."}) {
    EXPECT_TRUE(Contains(bytes, part)) << part;
  }
  TF_DeleteBuffer(def);
  TF_DeleteGraph(graph);
}

// ---- Gradients

TF_OperationDescription* begun = nullptr;

// d(x * x) = 2 * x * dy, by operations of the C API.
void SquareGradient(void*, TF_Graph* graph, const MR_Scope* scope, TF_Operation* oper, const MR_Gradient* dys, int,
                    MR_Gradient* dxs, int, TF_Status* status) {
  const TF_Output x = TF_OperationInput({oper, 0});
  TF_OperationDescription* d = TF_NewOperation(graph, "AddV2", (std::string(scope->name) + "/twice").c_str());
  TF_AddInput(d, x);
  TF_AddInput(d, x);
  TF_Operation* twice = TF_FinishOperation(d, status);
  if (TF_GetCode(status) != TF_OK) return;
  d = TF_NewOperation(graph, "Mul", (std::string(scope->name) + "/mul").c_str());
  TF_AddInput(d, {twice, 0});
  TF_AddInput(d, dys[0].dense);
  dxs[0].dense = {TF_FinishOperation(d, status), 0};
  ScopedStatus own;
  EXPECT_EQ(TF_NewSession(graph, nullptr, own), nullptr);
  TF_DeleteGraph(graph);  // is not the function's to delete
}

void Square(void*, TF_OpKernelContext* ctx) {
  ScopedStatus s;
  TF_Tensor* x = nullptr;
  TF_GetInput(ctx, 0, &x, s);
  const int64_t n = TF_Dim(x, 0);
  TF_Tensor* out = TF_AllocateOutput(ctx, 0, TF_FLOAT, &n, 1, TF_TensorByteSize(x), s);
  for (int64_t i = 0; i < n; ++i) {
    const float v = static_cast<const float*>(TF_TensorData(x))[i];
    static_cast<float*>(TF_TensorData(out))[i] = v * v;
  }
  TF_DeleteTensor(out);
  TF_DeleteTensor(x);
}

TEST(OpGradientTest, TheFunctionBuildsIt) {
  AddOp("OwnSquare", &Square, nullptr,
        [](TF_OpDefinitionBuilder* b) { MR_OpDefinitionBuilderSetGradient(b, &SquareGradient, nullptr); });
  AddOp("Opaque", &Square);
  AddOp("Blocking", &Square, nullptr,
        [](TF_OpDefinitionBuilder* b) { MR_OpDefinitionBuilderSetNotDifferentiable(b, "it counts"); });
  AddOp("BadGradient", &Square, nullptr, [](TF_OpDefinitionBuilder* b) {
    MR_OpDefinitionBuilderSetGradient(
        b,
        [](void*, TF_Graph*, const MR_Scope*, TF_Operation*, const MR_Gradient*, int, MR_Gradient* dxs, int,
           TF_Status*) {
          dxs[0].dense.index = 7;
          throw std::runtime_error("lost the thread");
        },
        nullptr);
  });
  TestGraph graph;
  TF_Operation* in = graph.Placeholder("x");
  TF_Operation* y = graph.Op("OwnSquare", "square", {graph.Op("OwnSquare", "inner", {in})});
  const TF_Output ys{y, 0}, xs{in, 0};
  TF_Output dx{nullptr, 0};
  ScopedStatus s;
  TF_AddGradients(graph.g, const_cast<TF_Output*>(&ys), 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  ASSERT_TF_OK(s);
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph.g, options, s);
  TF_DeleteSessionOptions(options);
  TF_Tensor* value = FloatTensor({2}, {3, -2});
  TF_Tensor* out = nullptr;
  TF_SessionRun(session, nullptr, &xs, &value, 1, &dx, &out, 1, nullptr, 0, nullptr, s);
  ASSERT_TF_OK(s);
  EXPECT_EQ(Floats(out), std::vector<float>({108, -32}));  // 4 x^3
  TF_DeleteTensor(out);
  TF_DeleteTensor(value);
  TF_DeleteSession(session, s);

  TF_Output none{graph.Op("Opaque", "opaque", {in}), 0};
  TF_AddGradients(graph.g, &none, 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  EXPECT_NE(s.code(), TF_OK);
  EXPECT_TRUE(Contains(s.message(), "Opaque")) << s.message();
  AddOp("Unfinished", &Square, nullptr, [](TF_OpDefinitionBuilder* b) {
    MR_OpDefinitionBuilderSetGradient(
        b,
        [](void*, TF_Graph* g, const MR_Scope*, TF_Operation*, const MR_Gradient*, int, MR_Gradient*, int, TF_Status*) {
          begun = TF_NewOperation(g, "NoOp", "begun");
        },
        nullptr);
  });
  TF_Output unfinished{graph.Op("Unfinished", "unfinished", {in}), 0};
  TF_AddGradients(graph.g, &unfinished, 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  EXPECT_EQ(s.code(), TF_FAILED_PRECONDITION) << s.message();
  TF_SetAttrPlaceholder(begun, "_abandoned", "");
  TF_AddInput(begun, {nullptr, -1});
  TF_FinishOperation(begun, s);
  EXPECT_NE(s.code(), TF_OK);
  TF_Output bad{graph.Op("BadGradient", "bad", {in}), 0};
  TF_AddGradients(graph.g, &bad, 1, const_cast<TF_Output*>(&xs), 1, nullptr, s, &dx);
  EXPECT_TRUE(Contains(s.message(), "lost the thread")) << s.message();
  EXPECT_TRUE(Contains(s.message(), "bad")) << s.message();
}

// ---- Shape functions

TEST(ShapeFunctionTest, WrongCallsGiveAStatus) {
  static std::string failures;
  failures.clear();
  AddOp(
      "MisusesShapes", [](void*, TF_OpKernelContext*) {}, nullptr,
      [](TF_OpDefinitionBuilder* b) {
        TF_OpDefinitionBuilderAddAttr(b, "n: int = 5");
        TF_OpDefinitionBuilderSetShapeInferenceFunction(b, [](TF_ShapeInferenceContext* ctx, TF_Status* result) {
          ScopedStatus s;
          const auto expect = [&](TF_Code code, const char* what) {
            if (s.code() != code) failures += std::string(what) + ": " + s.message() + "; ";
          };
          TF_ShapeHandle* h = TF_NewShapeHandle();
          TF_ShapeHandle* out = TF_NewShapeHandle();
          TF_DimensionHandle* d = TF_NewDimensionHandle();
          if (TF_ShapeInferenceContextRankKnown(ctx, h) || TF_ShapeInferenceContextRank(ctx, h) != -1)
            failures += "a rank; ";
          for (int i : {-1, 1, INT_MAX}) {
            TF_ShapeInferenceContextGetInput(ctx, i, h, s), expect(TF_INVALID_ARGUMENT, "GetInput");
            TF_ShapeInferenceContextSetOutput(ctx, i, h, s), expect(TF_INVALID_ARGUMENT, "SetOutput");
            MR_ShapeInferenceContextInputValue(ctx, i, s), expect(TF_INVALID_ARGUMENT, "InputValue");
          }
          TF_ShapeInferenceContextGetInput(ctx, 0, nullptr, s), expect(TF_INVALID_ARGUMENT, "into NULL");
          const int64_t dims[] = {2, -1, 4}, negative = -2, huge[] = {INT64_MAX, INT64_MAX};
          MR_ShapeInferenceContextMakeShape(ctx, dims, 3, h, s), expect(TF_OK, "MakeShape");
          MR_ShapeInferenceContextMakeShape(ctx, &negative, 1, out, s), expect(TF_INVALID_ARGUMENT, "a negative dim");
          MR_ShapeInferenceContextMakeShape(ctx, huge, 2, out, s), expect(TF_INVALID_ARGUMENT, "huge dims");
          for (int64_t rank : {int64_t{2}, int64_t{-1}, INT64_MAX}) {
            TF_ShapeInferenceContextWithRank(ctx, h, rank, out, s), expect(TF_INVALID_ARGUMENT, "WithRank");
          }
          TF_ShapeInferenceContextWithRankAtLeast(ctx, h, 4, out, s), expect(TF_INVALID_ARGUMENT, "AtLeast");
          TF_ShapeInferenceContextWithRankAtMost(ctx, h, 2, out, s), expect(TF_INVALID_ARGUMENT, "AtMost");
          TF_ShapeInferenceContextSubshape(ctx, h, 2, 1, out, s), expect(TF_INVALID_ARGUMENT, "Subshape");
          TF_ShapeInferenceContextSubshape(ctx, h, INT64_MIN, 1, out, s), expect(TF_INVALID_ARGUMENT, "Subshape from");
          TF_ShapeInferenceContextSubshape(ctx, h, 1, INT64_MAX, out, s), expect(TF_OK, "Subshape to the end");
          if (TF_ShapeInferenceContextRank(ctx, out) != 2) failures += "not two dimensions; ";
          for (int64_t i : {INT64_MIN, int64_t{-4}, int64_t{1}, int64_t{3}, INT64_MAX}) {
            TF_ShapeInferenceContextDim(ctx, h, i, d);
            if (TF_DimensionHandleValueKnown(d) || TF_DimensionHandleValue(d) != -1) failures += "a dimension; ";
          }
          TF_ShapeInferenceContextDim(ctx, h, -1, d);
          if (TF_DimensionHandleValue(d) != 4) failures += "not 4; ";
          TF_ShapeInferenceContextConcatenateShapes(ctx, h, nullptr, out, s),
              expect(TF_INVALID_ARGUMENT, "Concatenate");
          for (int i = 0; i < 9; ++i) TF_ShapeInferenceContextConcatenateShapes(ctx, h, h, h, s);
          expect(TF_INVALID_ARGUMENT, "a rank without end");
          TF_DataType type = TF_FLOAT;
          TF_ShapeInferenceContext_GetAttrType(ctx, "T", &type, s), expect(TF_INVALID_ARGUMENT, "no attribute");
          int64_t n = 0;
          MR_ShapeInferenceContextGetAttrInt(ctx, "n", &n, s), expect(TF_OK, "GetAttrInt");
          TF_ShapeHandle* vector = TF_ShapeInferenceContextVectorFromSize(ctx, SIZE_MAX);
          TF_ShapeInferenceContextDim(ctx, vector, 0, d);
          if (TF_DimensionHandleValueKnown(d)) failures += "a size above all; ";
          TF_DeleteShapeHandle(vector);
          vector = TF_ShapeInferenceContextVectorFromSize(ctx, static_cast<size_t>(n));
          TF_ShapeInferenceContextSetOutput(ctx, 0, vector, s), expect(TF_OK, "SetOutput");
          for (TF_ShapeHandle* each : {h, out, vector}) TF_DeleteShapeHandle(each);
          TF_DeleteDimensionHandle(d);
          TF_SetStatus(result, TF_OK, "");
        });
      });
  TestGraph graph;
  TF_Operation* op = graph.Op("MisusesShapes", "m", {graph.Placeholder("x")});
  EXPECT_EQ(failures, "");
  ScopedStatus s;
  int64_t dim = 0;
  TF_GraphGetTensorShape(graph.g, {op, 0}, &dim, 1, s);
  EXPECT_TF_OK(s);
  EXPECT_EQ(dim, 5);
}

}  // namespace
}  // namespace millrace::capi
