// SPDX-License-Identifier: Apache-2.0
// Stacks, tensor arrays and tensor lists: sizes, indices and handles that must not be trusted.
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);
const wire::AttrValue kI32 = Type(DType::kInt32);
const wire::AttrValue kVar = Type(DType::kVariant);

// "l": a list of three vectors of two; "bad" follows.
GraphMaker WithList() {
  GraphMaker g;
  g.F32("rows", {3, 2}, {1}).I32("row_shape", {1}, {2});
  g.Raw("l", "TensorListFromTensor", {"rows", "row_shape"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
  return g;
}

// "a": a tensor array of three floats; "flow" says that nothing has happened to it.
GraphMaker WithArray(bool dynamic = false) {
  GraphMaker g;
  g.I32("n", {}, {3})
      .F32("flow", {})
      .Raw("a", "TensorArrayV3", {"n"}, {{"dtype", kF32}, {"dynamic_size", Bool(dynamic)}});
  return g;
}

TEST(BadInput, D01_SizesOfLists) {
  for (const char* op : {"TensorListReserve", "EmptyTensorList"}) {
    const Attrs attrs = {{"element_dtype", kF32}, {"shape_type", kI32}};
    const bool reserves = op[0] == 'T';
    for (int32_t n : {-1, -2, INT32_MIN, INT32_MAX}) {
      GraphMaker g;
      g.I32("s", {1}, {2}).I32("n", {}, {n}).Raw("bad", op, {"s", "n"}, attrs);
      Check(g, reserves ? (n < 0 ? kInvalid : kTooLarge) : kOk);
    }
    for (const Dims& dims : {Dims{0}, Dims{2}, Dims{1, 0}}) {
      GraphMaker g;
      g.I32("s", {1}, {2}).I32("n", dims, {1}).Raw("bad", op, {"s", "n"}, attrs);
      Check(g);
    }
    for (int32_t s : {0, 5, -2, INT32_MIN}) {
      GraphMaker g;
      g.I32("s", {}, {s}).I32("n", {}, {1}).Raw("bad", op, {"s", "n"}, attrs);
      Check(g, kInvalid, How::kFed);
    }
    GraphMaker overflow;
    overflow.I32("s", {3}, {INT32_MAX}).I32("n", {}, {1}).Raw("bad", op, {"s", "n"}, attrs);
    Check(overflow);
  }
  for (int32_t n : {-1, INT32_MIN, INT32_MAX}) {
    GraphMaker g = WithList();
    g.I32("size", {}, {n}).Raw("bad", "TensorListResize", {"l", "size"});
    Check(g, n < 0 ? kInvalid : kTooLarge);
  }
}

TEST(BadInput, D02_IndicesIntoLists) {
  for (int32_t i : {-1, 3, INT32_MAX, INT32_MIN}) {
    GraphMaker get = WithList();
    get.I32("i", {}, {i}).Raw("bad", "TensorListGetItem", {"l", "i", "row_shape"}, {{"element_dtype", kF32}});
    Check(get);
    GraphMaker set = WithList();
    set.I32("i", {}, {i}).F32("v", {2}).Raw("bad", "TensorListSetItem", {"l", "i", "v"}, {{"element_dtype", kF32}});
    Check(set);
    GraphMaker gather = WithList();
    gather.I32("i", {1}, {i}).Raw("bad", "TensorListGather", {"l", "i", "row_shape"}, {{"element_dtype", kF32}});
    Check(gather);
  }
  for (const Dims& dims : {Dims{0}, Dims{2}}) {
    GraphMaker get = WithList();
    get.I32("i", dims).Raw("bad", "TensorListGetItem", {"l", "i", "row_shape"}, {{"element_dtype", kF32}});
    Check(get);
  }
  for (int32_t i : {-1, INT32_MIN, INT32_MAX}) {
    GraphMaker g;
    g.F32("v", {1, 2}).I32("i", {1}, {i}).I32("s", {1}, {2});
    g.Raw("bad", "TensorListScatter", {"v", "i", "s"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
    Check(g, i < 0 ? kInvalid : kTooLarge);
    GraphMaker into = WithList();
    into.F32("v", {1, 2}).I32("i", {1}, {i});
    into.Raw("bad", "TensorListScatterIntoExistingList", {"l", "v", "i"}, {{"element_dtype", kF32}});
    Check(into, i < 0 ? kInvalid : kTooLarge);
  }
  GraphMaker few;
  few.F32("v", {3, 2}).I32("i", {1}).I32("s", {1}, {2}).I32("n", {}, {3});
  few.Raw("bad", "TensorListScatterV2", {"v", "i", "s", "n"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
  Check(few);
}

TEST(BadInput, D03_ShapesOfListElements) {
  GraphMaker scalar;
  scalar.F32("v", {}).I32("s", {0});
  scalar.Raw("bad", "TensorListFromTensor", {"v", "s"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
  Check(scalar);
  GraphMaker other = WithList();
  other.F32("v", {3}).Raw("bad", "TensorListPushBack", {"l", "v"}, {{"element_dtype", kF32}});
  Check(other);
  GraphMaker type = WithList();
  type.I32("v", {2}).Raw("bad", "TensorListPushBack", {"l", "v"}, {{"element_dtype", kI32}});
  Check(type);
  GraphMaker stack = WithList();
  stack.I32("s", {1}, {3}).Raw("bad", "TensorListStack", {"l", "s"}, {{"element_dtype", kF32}});
  Check(stack);
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{-1, 4}, {INT64_MAX, INT64_MAX}, {4}, {1, 1}, {INT64_MIN, 3}}) {
    GraphMaker split;
    split.F32("v", {3, 2}).I32("s", {2}, {-1, 2}).I64("n", {static_cast<int64_t>(lengths.size())}, lengths);
    split.Raw("bad", "TensorListSplit", {"v", "s", "n"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
    Check(split);
    GraphMaker concat;
    concat.I32("s", {2}, {-1, 2}).I32("n", {}, {3}).I64("lead", {static_cast<int64_t>(lengths.size())}, lengths);
    concat.Raw("l", "TensorListReserve", {"s", "n"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
    concat.Raw("bad", "TensorListConcatV2", {"l", "s", "lead"}, {{"element_dtype", kF32}, {"shape_type", kI32}});
    Check(concat);
  }
  GraphMaker batch = WithList();
  batch.F32("v", {5, 2}).I32("one", {1}, {1}).Op("ls", "Reshape", {"l", "one"}, {{"T", kVar}});
  batch.Raw("bad", "TensorListPushBackBatch", {"ls", "v"}, {{"element_dtype", kF32}});
  Check(batch);
  GraphMaker nothing = WithList();
  nothing.I32("zero", {}).Raw("empty", "TensorListResize", {"l", "zero"});
  nothing.Raw("bad", "TensorListPopBack", {"empty", "row_shape"}, {{"element_dtype", kF32}});
  Check(nothing);
}

TEST(BadInput, D04_SizesAndIndicesOfArrays) {
  for (int32_t n : {-1, INT32_MIN, INT32_MAX}) {
    GraphMaker g;
    g.I32("n", {}, {n}).Raw("bad", "TensorArrayV3", {"n"}, {{"dtype", kF32}});
    Check(g, n < 0 ? kInvalid : kTooLarge);
  }
  for (bool dynamic : {false, true}) {
    for (int32_t i : {-1, INT32_MIN, INT32_MAX}) {
      GraphMaker write = WithArray(dynamic);
      write.I32("i", {}, {i}).F32("v", {}).Raw("bad", "TensorArrayWriteV3", {"a", "i", "v", "flow"}, {{"T", kF32}});
      Check(write, kTooLarge);
      GraphMaker read = WithArray(dynamic);
      read.I32("i", {}, {i}).Raw("bad", "TensorArrayReadV3", {"a", "i", "flow"}, {{"dtype", kF32}});
      Check(read);
      GraphMaker scatter = WithArray(dynamic);
      scatter.I32("i", {2}, {0, i})
          .F32("v", {2})
          .Raw("bad", "TensorArrayScatterV3", {"a", "i", "v", "flow"}, {{"T", kF32}});
      Check(scatter, kTooLarge);
      GraphMaker gather = WithArray(dynamic);
      gather.I32("i", {1}, {i}).Raw("bad", "TensorArrayGatherV3", {"a", "i", "flow"}, {{"dtype", kF32}});
      Check(gather);
    }
  }
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{-1, 4, 0}, {INT64_MAX, INT64_MAX, 5}, {3}, {1, 1, 0}}) {
    GraphMaker split = WithArray();
    split.F32("v", {3}).I64("len", {static_cast<int64_t>(lengths.size())}, lengths);
    split.Raw("bad", "TensorArraySplitV3", {"a", "v", "len", "flow"}, {{"T", kF32}});
    Check(split);
  }
  GraphMaker scalar = WithArray();
  scalar.F32("v", {}).I32("i", {0}).Raw("bad", "TensorArrayScatterV3", {"a", "i", "v", "flow"}, {{"T", kF32}});
  Check(scalar);
}

TEST(BadInput, D05_HandlesOfOtherThings) {
  GraphMaker stack = WithArray();
  stack.Raw("bad", "StackPopV2", {"a"}, {{"elem_type", kF32}});
  Check(stack);
  GraphMaker array;
  array.I32("n", {}, {3}).F32("flow", {}).Raw("s", "StackV2", {"n"}, {{"elem_type", kF32}});
  array.Raw("bad", "TensorArraySizeV3", {"s", "flow"});
  Check(array);
  GraphMaker names;
  names.Strings("h", {2}, {"_tensor_arrays", "nobody"}).F32("flow", {}).Raw("bad", "TensorArraySizeV2", {"h", "flow"});
  Check(names, {absl::StatusCode::kNotFound, absl::StatusCode::kInvalidArgument});
  GraphMaker text;
  text.Strings("h", {3}, {"x"}).F32("flow", {}).Raw("bad", "TensorArraySizeV2", {"h", "flow"});
  Check(text);
  GraphMaker variable;
  variable.Raw("v", "VarHandleOp", {}, {{"dtype", kF32}, {"shape", ShapeOf({})}}).F32("flow", {});
  variable.Raw("bad", "TensorArraySizeV3", {"v", "flow"});
  Check(variable);
  GraphMaker empty;
  empty.I32("s", {}).Raw("v", "Empty", {"dims"}, {{"dtype", kVar}, {"init", Bool(true)}}).I32("dims", {0});
  empty.Raw("bad", "TensorListLength", {"v"});
  Check(empty, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kUnimplemented});
}

}  // namespace
}  // namespace millrace::bad_inputs
