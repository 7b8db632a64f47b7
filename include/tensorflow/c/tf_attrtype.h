/* SPDX-License-Identifier: Apache-2.0
 *
 * Declared with operations.
 */
#ifndef TENSORFLOW_C_TF_ATTRTYPE_H_
#define TENSORFLOW_C_TF_ATTRTYPE_H_

#include "millrace/c_api_graph.h"

#endif /* TENSORFLOW_C_TF_ATTRTYPE_H_ */
