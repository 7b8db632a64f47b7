// SPDX-License-Identifier: Apache-2.0
// Devices whose functions are C.
#pragma once

#include <memory>
#include <string>

#include "millrace/c_api_devices.h"
#include "system/device_types.h"

namespace millrace::capi {

// InvalidArgument: a name or a table that cannot be.
StatusOr<DeviceType> MakeDeviceType(const char* type, const MR_DeviceFunctions* functions);

// Of a device of such a type that is open; NotFound otherwise.
StatusOr<AllocatorStats> PluginDeviceMemory(const std::string& type, int ordinal);

}  // namespace millrace::capi
