// Everything an emitted CUDA source includes.
#pragma once

#include "opwright/reduce_order.h"
#include "opwright/cuda/half.h"
#include "opwright/cuda/mathematics.h"
#include "opwright/cuda/complex_functions.h"
#include "opwright/cuda/columns.h"
#include "opwright/cuda/points.h"
#include "opwright/cuda/rows.h"
