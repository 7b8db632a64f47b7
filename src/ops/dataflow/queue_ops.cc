// SPDX-License-Identifier: Apache-2.0
// Ops: queues (white paper 4.6).
#include "ops/dataflow/queue_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "a queue is state";

// A handle is {container, name}, or a resource.
Status NewHandleShape(ShapeContext& c) {
  c.set_output(0, BaseType(c.output_dtype(0)) == DType::kString ? PartialShape::Of({2}) : PartialShape::Scalar());
  return absl::OkStatus();
}

// With one component the handle tells its shape to who dequeues.
Status QueueShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(NewHandleShape(c));
  MR_ASSIGN_OR_RETURN(const auto types, c.Attr<std::vector<DType>>("component_types"));
  MR_ASSIGN_OR_RETURN(const auto shapes, c.Attr<std::vector<PartialShape>>("shapes"));
  if (types.size() == 1 && shapes.size() == 1) c.set_output_handle(0, {types[0], shapes[0]});
  return absl::OkStatus();
}

// Of what a queue with one component holds; unknown where that is not known.
PartialShape ElementShape(const ShapeContext& c) {
  const std::optional<HandleShape>& queue = c.handle(0);
  if (!queue || c.num_outputs() != 1 || queue->dtype != c.output_dtype(0)) return PartialShape::Unknown();
  return queue->shape;
}

Status DequeueShape(ShapeContext& c) {
  if (c.num_outputs() == 1) c.set_output(0, ElementShape(c));
  return absl::OkStatus();
}

template <bool kUpTo>
Status DequeueManyShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> n, c.ConstantInt(1));
  if (n && *n < 0) return InvalidArgument("Input 'n' must be >= 0, but is ", *n);
  const PartialShape element = ElementShape(c);
  if (!element.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = element.dims();
  dims.insert(dims.begin(), n && !kUpTo ? *n : -1);
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

struct Version {
  const char* suffix;
  const char* handle;
  const char* flags;
};
constexpr Version kVersions[] = {{"", "&str", ""}, {"V2", "res", " | S"}};

void Declare(OpRegistry& r, const std::string& schema, absl::string_view doc, ShapeFn shape) {
  r.Add(schema).Traits({OpTrait::kWaits}).Doc(doc).Shape(shape).NotDifferentiable(kIsState).NoExample("state");
}

void RegisterQueues(OpRegistry& r, const Version& v) {
  const auto declare =
      [&](absl::string_view name, absl::string_view attrs, absl::string_view doc, ShapeFn queue_shape = QueueShape) {
        Declare(r,
                absl::StrCat(name, v.suffix, "() -> (handle:", v.handle, ") | ", attrs,
                             "container:string=\"\"; shared_name:string=\"\" | S"),
                doc, queue_shape);
      };
  const std::string common = "component_types:list(type)>=1; shapes:list(shape)>=0=[]; capacity:int=-1; ";
  declare("FIFOQueue", common,
          "A queue whose elements leave in the order in which they came. An element has one tensor per component type; "
          "with `shapes` each has that shape, without they may have any, and cannot be dequeued in batches. A negative "
          "`capacity` is none.");
  declare("PaddingFIFOQueue", common,
          "A FIFOQueue whose components may have dimensions of unknown size: batches are padded with zeros to the "
          "largest of their elements.");
  declare(
      "RandomShuffleQueue", common + "min_after_dequeue:int=0; seed:int=0; seed2:int=0; ",
      "A queue whose elements leave in a random order, drawn by the seeds (both 0: differently each time). While it "
      "is open, `min_after_dequeue` elements stay in it, so that they mix.");
  declare("PriorityQueue", "component_types:list(type)>=0=[]; shapes:list(shape)>=0; capacity:int=-1; ",
          "A queue whose elements have an int64 scalar before the given components; the element with the smallest one "
          "leaves first, and of equal ones the one that came first.",
          NewHandleShape);
}

void RegisterAccess(OpRegistry& r, const Version& v) {
  const auto declare = [&](absl::string_view name, absl::string_view inputs, absl::string_view rest,
                           absl::string_view doc, ShapeFn shape) {
    Declare(r, absl::StrCat(name, v.suffix, "(handle:", v.handle, inputs, ") -> ", rest, v.flags), doc, shape);
  };
  declare("QueueEnqueue", ", components:[Tcomponents]", "() | Tcomponents:list(type)>=1; timeout_ms:int=-1",
          "Puts one element into the queue; waits while it is full. Cancelled when the queue is closed.", NoOutputs);
  declare("QueueEnqueueMany", ", components:[Tcomponents]", "() | Tcomponents:list(type)>=1; timeout_ms:int=-1",
          "Puts the slices of the components along their first dimension into the queue, one element each; waits while "
          "it is full, with those that fit inside.",
          NoOutputs);
  declare(
      "QueueDequeue", "", "(components:[component_types]) | component_types:list(type)>=1; timeout_ms:int=-1",
      "Takes one element out of the queue; waits while there is none. OutOfRange when the queue is closed and empty.",
      DequeueShape);
  declare(
      "QueueDequeueMany", ", n:i32",
      "(components:[component_types]) | component_types:list(type)>=1; timeout_ms:int=-1",
      "Takes `n` elements out of the queue and stacks each component along a new first dimension; waits until there "
      "are as many. OutOfRange when the queue is closed and has fewer.",
      DequeueManyShape<false>);
  declare(
      "QueueDequeueUpTo", ", n:i32",
      "(components:[component_types]) | component_types:list(type)>=1; timeout_ms:int=-1",
      "QueueDequeueMany that takes what is left of a closed queue, unless that is nothing.", DequeueManyShape<true>);
  declare(
      "QueueClose", "", "() | cancel_pending_enqueues:bool=false",
      "Closes the queue: nothing enters any more, what is inside may leave. Enqueues that wait go on before that, or "
      "are cancelled.",
      NoOutputs);
  declare("QueueIsClosed", "", "(is_closed:bool)", "Whether the queue is closed.", ScalarShape);
  declare("QueueSize", "", "(size:i32)", "The number of elements in the queue.", ScalarShape);
}

}  // namespace

void RegisterQueueOps(OpRegistry& r) {
  for (const Version& v : kVersions) {
    RegisterQueues(r, v);
    RegisterAccess(r, v);
  }
  Declare(r, "FakeQueue(resource:res) -> (handle:&str) | S",
          "A handle of the older form for a queue, for ops that take no other.", NewHandleShape);
  RegisterBarrierOps(r);
  RegisterStagingOps(r);
  RegisterAccumulatorOps(r);
  RegisterMutexOps(r);
  RegisterCollectiveOps(r);
}

}  // namespace millrace
