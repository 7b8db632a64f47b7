// SPDX-License-Identifier: Apache-2.0
#include "wire/enums.h"

namespace millrace::wire {
namespace {

constexpr EnumValue kDataTypeValues[] = {
    {0, "DT_INVALID"},
    {1, "DT_FLOAT"},
    {2, "DT_DOUBLE"},
    {3, "DT_INT32"},
    {4, "DT_UINT8"},
    {5, "DT_INT16"},
    {6, "DT_INT8"},
    {7, "DT_STRING"},
    {8, "DT_COMPLEX64"},
    {9, "DT_INT64"},
    {10, "DT_BOOL"},
    {11, "DT_QINT8"},
    {12, "DT_QUINT8"},
    {13, "DT_QINT32"},
    {14, "DT_BFLOAT16"},
    {15, "DT_QINT16"},
    {16, "DT_QUINT16"},
    {17, "DT_UINT16"},
    {18, "DT_COMPLEX128"},
    {19, "DT_HALF"},
    {20, "DT_RESOURCE"},
    {21, "DT_VARIANT"},
    {22, "DT_UINT32"},
    {23, "DT_UINT64"},
    {24, "DT_FLOAT8_E5M2"},
    {25, "DT_FLOAT8_E4M3FN"},
    {26, "DT_FLOAT8_E4M3FNUZ"},
    {27, "DT_FLOAT8_E4M3B11FNUZ"},
    {28, "DT_FLOAT8_E5M2FNUZ"},
    {29, "DT_INT4"},
    {30, "DT_UINT4"},
    {31, "DT_INT2"},
    {32, "DT_UINT2"},
    {33, "DT_FLOAT4_E2M1FN"},
    {101, "DT_FLOAT_REF"},
    {102, "DT_DOUBLE_REF"},
    {103, "DT_INT32_REF"},
    {104, "DT_UINT8_REF"},
    {105, "DT_INT16_REF"},
    {106, "DT_INT8_REF"},
    {107, "DT_STRING_REF"},
    {108, "DT_COMPLEX64_REF"},
    {109, "DT_INT64_REF"},
    {110, "DT_BOOL_REF"},
    {111, "DT_QINT8_REF"},
    {112, "DT_QUINT8_REF"},
    {113, "DT_QINT32_REF"},
    {114, "DT_BFLOAT16_REF"},
    {115, "DT_QINT16_REF"},
    {116, "DT_QUINT16_REF"},
    {117, "DT_UINT16_REF"},
    {118, "DT_COMPLEX128_REF"},
    {119, "DT_HALF_REF"},
    {120, "DT_RESOURCE_REF"},
    {121, "DT_VARIANT_REF"},
    {122, "DT_UINT32_REF"},
    {123, "DT_UINT64_REF"},
    {124, "DT_FLOAT8_E5M2_REF"},
    {125, "DT_FLOAT8_E4M3FN_REF"},
    {126, "DT_FLOAT8_E4M3FNUZ_REF"},
    {127, "DT_FLOAT8_E4M3B11FNUZ_REF"},
    {128, "DT_FLOAT8_E5M2FNUZ_REF"},
    {129, "DT_INT4_REF"},
    {130, "DT_UINT4_REF"},
    {131, "DT_INT2_REF"},
    {132, "DT_UINT2_REF"},
    {133, "DT_FLOAT4_E2M1FN_REF"},
};

constexpr EnumValue kCheckpointFormatVersionValues[] = {
    {0, "LEGACY"},
    {1, "V1"},
    {2, "V2"},
};

constexpr EnumValue kVariableSynchronizationValues[] = {
    {0, "VARIABLE_SYNCHRONIZATION_AUTO"},
    {1, "VARIABLE_SYNCHRONIZATION_NONE"},
    {2, "VARIABLE_SYNCHRONIZATION_ON_WRITE"},
    {3, "VARIABLE_SYNCHRONIZATION_ON_READ"},
};

constexpr EnumValue kVariableAggregationValues[] = {
    {0, "VARIABLE_AGGREGATION_NONE"},
    {1, "VARIABLE_AGGREGATION_SUM"},
    {2, "VARIABLE_AGGREGATION_MEAN"},
    {3, "VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA"},
};

constexpr EnumValue kErrorCodeValues[] = {
    {0, "OK"},
    {1, "CANCELLED"},
    {2, "UNKNOWN"},
    {3, "INVALID_ARGUMENT"},
    {4, "DEADLINE_EXCEEDED"},
    {5, "NOT_FOUND"},
    {6, "ALREADY_EXISTS"},
    {7, "PERMISSION_DENIED"},
    {8, "RESOURCE_EXHAUSTED"},
    {9, "FAILED_PRECONDITION"},
    {10, "ABORTED"},
    {11, "OUT_OF_RANGE"},
    {12, "UNIMPLEMENTED"},
    {13, "INTERNAL"},
    {14, "UNAVAILABLE"},
    {15, "DATA_LOSS"},
    {16, "UNAUTHENTICATED"},
};

constexpr EnumValue kSessionStatusValues[] = {
    {0, "STATUS_UNSPECIFIED"},
    {1, "START"},
    {2, "STOP"},
    {3, "CHECKPOINT"},
};

constexpr EnumValue kLogLevelValues[] = {
    {0, "UNKNOWN"}, {10, "DEBUGGING"}, {20, "INFO"}, {30, "WARN"}, {40, "ERROR"}, {50, "FATAL"},
};

constexpr EnumValue kDataClassValues[] = {
    {0, "DATA_CLASS_UNKNOWN"},
    {1, "DATA_CLASS_SCALAR"},
    {2, "DATA_CLASS_TENSOR"},
    {3, "DATA_CLASS_BLOB_SEQUENCE"},
};

constexpr EnumValue kEndiannessValues[] = {
    {0, "LITTLE"},
    {1, "BIG"},
};

constexpr EnumValue kMemOptTypeValues[] = {
    {0, "DEFAULT_MEM_OPT"},
    {1, "NO_MEM_OPT"},
    {2, "MANUAL"},
    {3, "HEURISTICS"},
    {4, "SWAPPING_HEURISTICS"},
    {5, "RECOMPUTATION_HEURISTICS"},
    {6, "SCHEDULING_HEURISTICS"},
};

constexpr EnumValue kToggleValues[] = {{0, "DEFAULT"}, {1, "ON"}, {2, "OFF"}, {3, "AGGRESSIVE"}};

constexpr EnumValue kOptimizerLevelValues[] = {
    {0, "L1"},
    {-1, "L0"},
};

constexpr EnumValue kGlobalJitLevelValues[] = {
    {0, "DEFAULT"},
    {-1, "OFF"},
    {1, "ON_1"},
    {2, "ON_2"},
};

constexpr EnumValue kTraceLevelValues[] = {
    {0, "NO_TRACE"},
    {1, "SOFTWARE_TRACE"},
    {2, "HARDWARE_TRACE"},
    {3, "FULL_TRACE"},
};

}  // namespace

constinit const EnumInfo kDataTypeEnum = {"DataType", kDataTypeValues};
constinit const EnumInfo kCheckpointFormatVersionEnum = {
    "SaverDef.CheckpointFormatVersion", kCheckpointFormatVersionValues};
constinit const EnumInfo kVariableSynchronizationEnum = {"VariableSynchronization", kVariableSynchronizationValues};
constinit const EnumInfo kVariableAggregationEnum = {"VariableAggregation", kVariableAggregationValues};
constinit const EnumInfo kErrorCodeEnum = {"error.Code", kErrorCodeValues};
constinit const EnumInfo kSessionStatusEnum = {"SessionLog.SessionStatus", kSessionStatusValues};
constinit const EnumInfo kLogLevelEnum = {"LogMessage.Level", kLogLevelValues};
constinit const EnumInfo kDataClassEnum = {"DataClass", kDataClassValues};
constinit const EnumInfo kEndiannessEnum = {"BundleHeaderProto.Endianness", kEndiannessValues};
constinit const EnumInfo kMemOptTypeEnum = {"RewriterConfig.MemOptType", kMemOptTypeValues};
constinit const EnumInfo kToggleEnum = {"RewriterConfig.Toggle", kToggleValues};
constinit const EnumInfo kOptimizerLevelEnum = {"OptimizerOptions.Level", kOptimizerLevelValues};
constinit const EnumInfo kGlobalJitLevelEnum = {"OptimizerOptions.GlobalJitLevel", kGlobalJitLevelValues};
constinit const EnumInfo kTraceLevelEnum = {"RunOptions.TraceLevel", kTraceLevelValues};

}  // namespace millrace::wire
