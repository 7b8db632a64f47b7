// SPDX-License-Identifier: Apache-2.0
// Ops: convolution, pooling, normalisation.
#include "ops/nn/nn_ops.h"

#include "ops/op_list.h"

namespace millrace {

void RegisterNnOps(OpRegistry& registry) {
  RegisterConvOps(registry);
  RegisterPoolOps(registry);
  RegisterNormOps(registry);
  RegisterWindowOps(registry);
}

StatusOr<WindowAttrs> WindowAttrsOf(const ShapeContext& c, bool spatial_only) {
  WindowAttrs a;
  auto has = [&c](const char* name) { return c.attrs().find(name) != c.attrs().end(); };
  std::string format = c.op().name.find("3D") != std::string::npos ? "NDHWC" : "NHWC";
  if (has("data_format")) {
    MR_ASSIGN_OR_RETURN(format, c.Attr<std::string>("data_format"));
  }
  MR_ASSIGN_OR_RETURN(a.layout, ParseImageLayout(format));
  MR_ASSIGN_OR_RETURN(const std::string padding, c.Attr<std::string>("padding"));
  MR_ASSIGN_OR_RETURN(a.padding, ParsePadding(padding));
  auto read = [&](const char* name, std::vector<int64_t>* list) -> Status {
    if (!has(name)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(*list, c.Attr<std::vector<int64_t>>(name));
    if (list->empty() && list != &a.explicit_paddings) return InvalidArgument(name, " must not be empty");
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(read("strides", &a.strides));
  MR_RETURN_IF_ERROR(read("dilations", &a.dilations));
  MR_RETURN_IF_ERROR(read("ksize", &a.ksize));
  MR_RETURN_IF_ERROR(read("explicit_paddings", &a.explicit_paddings));
  MR_RETURN_IF_ERROR(CheckWindowAttrs(&a, spatial_only));
  return a;
}

StatusOr<int64_t> SpatialOutput(const WindowAttrs& attrs, int i, int64_t input, int64_t kernel) {
  if (input < 0 || kernel < 0) return -1;
  MR_ASSIGN_OR_RETURN(const WindowExtent w, attrs.Spatial(i, input, kernel, /*strict=*/true));
  return w.output;
}

AttrMap CopyAttrs(const Node* node, std::initializer_list<const char*> names) {
  AttrMap out;
  for (const char* name : names) {
    if (auto it = node->attrs().find(name); it != node->attrs().end()) out.emplace(it->first, it->second);
  }
  return out;
}

}  // namespace millrace
