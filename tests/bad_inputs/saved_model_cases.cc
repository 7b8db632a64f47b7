// SPDX-License-Identifier: Apache-2.0
// Saved models whose parts do not fit each other.
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "bad_inputs/harness.h"
#include "base/env.h"
#include "millrace/c_api.h"
#include "wire/meta_graph.h"

namespace millrace::bad_inputs {
namespace {

class BadSavedModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = JoinPath(testing::TempDir(), absl::StrCat("millrace-model-", Env::Default().Random64()));
    ASSERT_TRUE(Env::Default().CreateDirs(folder_).ok());
  }
  void TearDown() override {
    (void)Env::Default().DeleteFile(JoinPath(folder_, "saved_model.pb"));
    (void)Env::Default().DeleteDir(folder_);
  }

  void Put(absl::string_view bytes) {
    auto file = Env::Default().NewWritableFile(JoinPath(folder_, "saved_model.pb"));
    ASSERT_TRUE(file.ok() && (*file)->Append(bytes).ok() && (*file)->Close().ok());
  }
  TF_Code Load(const char* tag = "serve") {
    TF_Status* st = TF_NewStatus();
    TF_Graph* g = TF_NewGraph();
    TF_Session* session = TF_LoadSessionFromSavedModel(nullptr, nullptr, folder_.c_str(), &tag, 1, g, nullptr, st);
    const TF_Code code = TF_GetCode(st);
    EXPECT_EQ(session != nullptr, code == TF_OK) << TF_Message(st);
    if (code != TF_OK) {
      EXPECT_STRNE(TF_Message(st), "");
    }
    if (session != nullptr) {
      TF_CloseSession(session, st);
      TF_DeleteSession(session, st);
    }
    TF_DeleteGraph(g);
    TF_DeleteStatus(st);
    return code;
  }
  TF_Code LoadChanged(const std::function<void(wire::MetaGraphDef*)>& change) {
    GraphMaker g;
    g.F32("x", {2}, {1, 2}).Raw("init", "NoOp").Strings("name", {}, {"none"});
    wire::SavedModel model;
    model.saved_model_schema_version = 1;
    wire::MetaGraphDef& meta = model.meta_graphs.emplace_back();
    meta.meta_info_def.Ensure().tags = {"serve"};
    meta.graph_def.Ensure() = g.def();
    change(&meta);
    Put(wire::Encode(model));
    return Load();
  }

  std::string folder_;
};

void SetMainOp(wire::MetaGraphDef* meta, const char* key, std::vector<std::string> names) {
  wire::CollectionDef& c = meta->collection_def[key];
  c.kind = wire::CollectionDef::Kind::kNodeList;
  c.node_list.Ensure().value = std::move(names);
}

TEST_F(BadSavedModel, G15_KeysThatNameNothing) {
  EXPECT_EQ(LoadChanged([](wire::MetaGraphDef*) {}), TF_OK);
  EXPECT_EQ(LoadChanged([](auto* m) { SetMainOp(m, "saved_model_main_op", {"init"}); }), TF_OK);
  for (const char* key : {"saved_model_main_op", "legacy_init_op"}) {
    for (const std::vector<std::string>& names :
         {std::vector<std::string>{}, {"gone"}, {"init", "init"}, {"x:7"}, {"^init"}}) {
      EXPECT_NE(LoadChanged([&](auto* m) { SetMainOp(m, key, names); }), TF_OK) << key << " of " << names.size();
    }
  }
  EXPECT_NE(LoadChanged([](auto* m) { m->collection_def["saved_model_main_op"]; }), TF_OK);
  const char* const key = "__saved_model_init_op";
  EXPECT_NE(LoadChanged([&](auto* m) { m->signature_def[key]; }), TF_OK);
  for (const char* name : {"", "gone", "gone:0", ":0", "x:-1"}) {
    EXPECT_NE(LoadChanged([&](auto* m) { m->signature_def[key].outputs[key].name = name; }), TF_OK) << name;
  }
}

TEST_F(BadSavedModel, G15_AssetsThatAreElsewhere) {
  for (const char* file : {"", "/etc/passwd", "../x", "a/../../x"}) {
    EXPECT_EQ(LoadChanged([&](auto* m) {
                SetMainOp(m, "saved_model_main_op", {"init"});
                wire::AssetFileDef& a = m->asset_file_def.emplace_back();
                a.filename = file;
                a.tensor_info.Ensure().name = "name:0";
              }),
              TF_INVALID_ARGUMENT)
        << file;
  }
  for (const char* tensor : {"", "gone:0", "name:3", "x:0", "init:0"}) {
    EXPECT_NE(LoadChanged([&](auto* m) {
                SetMainOp(m, "saved_model_main_op", {"init"});
                wire::AssetFileDef& a = m->asset_file_def.emplace_back();
                a.filename = "words";
                a.tensor_info.Ensure().name = tensor;
              }),
              TF_OK)
        << tensor;
  }
}

TEST_F(BadSavedModel, G15_ModelsThatAreNone) {
  EXPECT_EQ(Load(), TF_NOT_FOUND);
  EXPECT_NE(LoadChanged([](auto* m) { m->graph_def = {}; }), TF_OK);
  EXPECT_EQ(LoadChanged([](auto* m) { m->meta_info_def.Ensure().tags = {"other"}; }), TF_NOT_FOUND);
  EXPECT_EQ(LoadChanged([](auto* m) { m->meta_info_def = {}; }), TF_NOT_FOUND);
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string(1000, '\x12'), std::string("\x12\x7f")}) {
    Put(bytes);
    EXPECT_NE(Load(), TF_OK);
  }
  wire::SavedModel whole;
  wire::MetaGraphDef& meta = whole.meta_graphs.emplace_back();
  meta.meta_info_def.Ensure().tags = {"serve"};
  GraphMaker g;
  meta.graph_def.Ensure() = g.F32("x", {2}, {1, 2}).def();
  const std::string good = wire::Encode(whole);
  for (size_t n = 0; n < good.size(); ++n) {
    Put(good.substr(0, n));
    (void)Load();  // some cuts are models of less
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
