/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines in the library's log, for libraries that it loads. `fmt` and what follows are those of printf.
 */
#ifndef TENSORFLOW_C_LOGGING_H_
#define TENSORFLOW_C_LOGGING_H_

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TF_FATAL writes an error and returns: nothing ends the program. */
typedef enum TF_LogLevel { TF_INFO = 0, TF_WARNING = 1, TF_ERROR = 2, TF_FATAL = 3 } TF_LogLevel;

TF_CAPI_EXPORT extern void TF_Log(TF_LogLevel level, const char* fmt, ...);
/* What is said for those who look for faults in the library that says it: not written. */
TF_CAPI_EXPORT extern void TF_VLog(int level, const char* fmt, ...);
TF_CAPI_EXPORT extern void TF_DVLog(int level, const char* fmt, ...);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TENSORFLOW_C_LOGGING_H_ */
