// SPDX-License-Identifier: Apache-2.0
// Channels-first images and narrow float types reach the kernels of this family as what those work on: channels-last
// memory, float32. These helpers convert on the way in and out.
#pragma once

#include "kernel/kernel_registry.h"
#include "tensor/window.h"

namespace millrace {

// The shape of an image tensor in this layout, seen channels-last.
StatusOr<Shape> ChannelsLastShape(const Shape& shape, const ImageLayout& layout);
// The tensor itself when it is channels-last already, else a transposed copy.
StatusOr<Tensor> ToChannelsLast(KernelContext& ctx, const Tensor& t, const ImageLayout& layout);
// Writes a channels-last tensor into `to`, of the layout's own shape.
void FromChannelsLast(KernelContext& ctx, const Tensor& from, const ImageLayout& layout, Tensor* to);

// float32 copies of half and bfloat16 tensors; other types pass through.
StatusOr<Tensor> Widened(KernelContext& ctx, const Tensor& t);
void NarrowInto(KernelContext& ctx, const Tensor& from, Tensor* to);
inline bool IsNarrowFloat(DType t) { return t == DType::kHalf || t == DType::kBFloat16; }

// Window attributes as the kernel's node has them (see WindowAttrs).
StatusOr<WindowAttrs> ReadWindowAttrs(const KernelInit& init, const char* default_format, bool spatial_only);

}  // namespace millrace
