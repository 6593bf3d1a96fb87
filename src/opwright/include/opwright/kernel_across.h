// The same as kernel.h, for an operator whose rows lie across the memory even of row-major tensors.
#pragma once

#undef OPWRIGHT_ROW_MAJOR
#include "opwright/kernel.h"
