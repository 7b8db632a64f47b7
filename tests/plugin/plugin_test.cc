// SPDX-License-Identifier: Apache-2.0
// Loading of libraries, good and bad.
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "millrace/millrace.h"

namespace {

using millrace::Graph;
using millrace::Scope;
using millrace::Tensor;

struct Status {
  ~Status() { TF_DeleteStatus(s); }
  operator TF_Status*() { return s; }  // NOLINT
  std::string message() const { return TF_Message(s); }
  TF_Code code() const { return TF_GetCode(s); }
  TF_Status* s = TF_NewStatus();
};

std::string Path(const char* plugin) { return std::string(PLUGINS) + "plugin_" + plugin + ".so"; }

// The encoded list of a library's ops.
std::string Load(const char* plugin, Status& status) {
  TF_Library* library = TF_LoadLibrary(Path(plugin).c_str(), status);
  if (library == nullptr) return "";
  const TF_Buffer ops = TF_GetOpList(library);
  std::string list(static_cast<const char*>(ops.data), ops.length);
  TF_DeleteLibraryHandle(library);
  return list;
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Whether the process has an op of this name, and a kernel for it.
bool HasOp(const char* name) {
  Graph graph;
  Status status;
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(graph.get(), name, def, status);
  TF_DeleteBuffer(def);
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp(name, status);
  const bool has_kernel = kernels->length > 0;
  TF_DeleteBuffer(kernels);
  return status.code() == TF_OK && has_kernel;
}

TEST(PluginTest, OpsOfALibraryRun) {
  Status status;
  const std::string ops = Load("tensorflow_kernels", status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  for (const char* op : {"PluginAxpy", "PluginSum", "PluginAttrs", "PluginHead", "PluginFails", "PluginLater"}) {
    EXPECT_TRUE(Contains(ops, op)) << op;
  }
  EXPECT_FALSE(Contains(ops, "MatMul"));

  Graph graph;
  Scope scope(graph);
  const auto x = scope.Const(Tensor::Of<float>({2}, {1, 2}));
  const auto later = scope.Op("PluginLater", {x});
  const auto axpy = scope.Op("PluginAxpy", {later, x}, {{"a", 10.0f}});
  const auto lossy = scope.WithName("lossy").Op("PluginFails", {axpy});
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  millrace::Shape shape;
  ASSERT_TRUE(graph.ShapeOf(axpy, &shape));
  EXPECT_EQ(shape, millrace::Shape({2}));
  millrace::Session session(graph);
  const auto out = session.Run({}, {axpy});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ((*out)[0].data<float>()[0], 21.0f);
  EXPECT_EQ((*out)[0].data<float>()[1], 32.0f);
  const auto failed = session.Run({}, {lossy});
  EXPECT_EQ(failed.status().code(), TF_DATA_LOSS);
  for (const char* part : {"nothing but losses", "lossy", "PluginFails"}) {
    EXPECT_TRUE(Contains(failed.status().message(), part)) << failed.status().message();
  }
  EXPECT_FALSE(Contains(failed.status().message(), "second"));
}

TEST(PluginTest, GradientsOfALibraryAreBuilt) {
  Status status;
  EXPECT_TRUE(Contains(Load("log_cosh", status), "LogCosh")) << status.message();
  Graph graph;
  Scope scope(graph);
  const auto x = scope.Const(Tensor::Of<double>({3}, {-2, 0, 0.5}));
  const auto y = scope.Op("LogCosh", {scope.Op("Mul", {x, x})});
  const auto dx = graph.Gradients({y}, {x});
  ASSERT_TRUE(dx.ok()) << dx.status().message();
  const auto again = graph.Gradients({(*dx)[0]}, {x});
  ASSERT_TRUE(again.ok()) << again.status().message();
  const auto out = millrace::Session(graph).Run({}, {y, (*dx)[0], (*again)[0]});
  ASSERT_TRUE(out.ok()) << out.status().message();
  const double values[] = {-2, 0, 0.5};
  for (int i = 0; i < 3; ++i) {
    const double v = values[i], t = std::tanh(v * v);
    EXPECT_NEAR((*out)[0].data<double>()[i], std::log(std::cosh(v * v)), 1e-12);
    EXPECT_NEAR((*out)[1].data<double>()[i], 2 * v * t, 1e-12);
    EXPECT_NEAR((*out)[2].data<double>()[i], 2 * t + 4 * v * v * (1 - t * t), 1e-12);
  }
}

TEST(PluginTest, LoadingAgainGivesTheSame) {
  Status status;
  const std::string first = Load("tensorflow_kernels", status);
  std::vector<std::thread> threads;
  std::vector<std::string> lists(4);
  for (std::string& list : lists) {
    threads.emplace_back([&list] {
      Status own;
      list = Load("tensorflow_kernels", own);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& list : lists) EXPECT_EQ(list, first);
  MR_LoadPlugin(Path("tensorflow_kernels").c_str(), status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
}

TEST(PluginTest, ALibraryThatFailsLeavesNothingBehind) {
  const struct {
    const char* plugin;
    const char* op;
    TF_Code code;
    const char* why;
  } cases[] = {
      {"init_fails", "OfInitFails", TF_UNAVAILABLE, "the accelerator is not plugged in"},
      {"init_throws", "OfInitThrows", TF_INTERNAL, "no licence found"},
      {"newer_version", "OfNewerVersion", TF_FAILED_PRECONDITION, "made for version 2"},
      {"taken_name", "OfTakenName", TF_ALREADY_EXISTS, "MatMul"},
      {"nothing_here", "OfNothingHere", TF_INVALID_ARGUMENT, "MR_PluginInit"},
      {"missing", "OfMissing", TF_NOT_FOUND, "cannot be opened"},
  };
  for (const auto& c : cases) {
    for (int i = 0; i < 2; ++i) {  // the second time too
      Status status;
      EXPECT_EQ(Load(c.plugin, status), "");
      EXPECT_EQ(status.code(), c.code) << c.plugin << ": " << status.message();
      EXPECT_TRUE(Contains(status.message(), c.why)) << status.message();
      EXPECT_TRUE(Contains(status.message(), Path(c.plugin))) << status.message();
      EXPECT_FALSE(HasOp(c.op)) << c.op;
    }
  }
  EXPECT_TRUE(HasOp("MatMul"));
  // The names that init_fails had taken are free.
  Status status;
  MR_RegisterGradient(
      "OfInitFails", [](void*, TF_Operation*, const char*, const MR_Gradient*, int, MR_Gradient*, int, TF_Status*) {},
      nullptr, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  MR_RegisterClientFunction(
      "of init_fails", [](void*, TF_Tensor**, int, TF_Tensor**, int, TF_Status*) {}, nullptr, nullptr, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
}

TEST(PluginTest, OpsAreLookedUpWhileLibrariesAddThem) {
  // By the loader's way and directly; the graph's ops are looked up all the while.
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread reader([&] {
    for (; !stop; ++rounds) {
      Graph graph;
      Scope scope(graph);
      const auto x = scope.Const(Tensor(1.0f));
      millrace::Session session(graph);
      const auto out = session.Run({}, {scope.Op("Neg", {scope.Op("Exp", {x})})});
      EXPECT_TRUE(out.ok()) << out.status().message();
    }
  });
  for (int i = 0; i < 20000 && rounds < 200; ++i) {
    const std::string name = "Added" + std::to_string(i);
    Status status;
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name.c_str());
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderAddOutput(op, "y: float");
    TF_RegisterOpDefinition(op, status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    TF_RegisterKernelBuilder(
        name.c_str(),
        TF_NewKernelBuilder(name.c_str(), "CPU", nullptr, [](void*, TF_OpKernelContext*) {}, nullptr), status);
    ASSERT_EQ(status.code(), TF_OK) << status.message();
    EXPECT_TRUE(HasOp(name.c_str()));
  }
  EXPECT_GE(rounds, 200);
  stop = true;
  reader.join();
}

}  // namespace
