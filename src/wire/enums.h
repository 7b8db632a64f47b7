// SPDX-License-Identifier: Apache-2.0
//
// Names of enum values, for the text form.
#pragma once

#include "wire/table.h"

namespace millrace::wire {

extern const EnumInfo kDataTypeEnum;
extern const EnumInfo kCheckpointFormatVersionEnum;
extern const EnumInfo kVariableSynchronizationEnum;
extern const EnumInfo kVariableAggregationEnum;
extern const EnumInfo kErrorCodeEnum;
extern const EnumInfo kSessionStatusEnum;
extern const EnumInfo kLogLevelEnum;
extern const EnumInfo kDataClassEnum;
extern const EnumInfo kEndiannessEnum;
extern const EnumInfo kMemOptTypeEnum;
extern const EnumInfo kToggleEnum;
extern const EnumInfo kOptimizerLevelEnum;
extern const EnumInfo kGlobalJitLevelEnum;
extern const EnumInfo kTraceLevelEnum;

}  // namespace millrace::wire
