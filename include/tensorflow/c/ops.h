/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions of ops and their shape functions, for sources that are written for TensorFlow's header of this name.
 */
#ifndef TENSORFLOW_C_OPS_H_
#define TENSORFLOW_C_OPS_H_

#include <stdlib.h>

#include "millrace/c_api_ops.h"

#endif /* TENSORFLOW_C_OPS_H_ */
