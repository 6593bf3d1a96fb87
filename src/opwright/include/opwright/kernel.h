// Everything an emitted operator includes.
#pragma once

#include "opwright/blend.h"
#include "opwright/complex.h"
#include "opwright/divisors.h"
#include "opwright/half.h"
#include "opwright/lanes.h"
#include "opwright/reduce_columns.h"
#include "opwright/reduce_order.h"
#include "opwright/reduce_rows.h"
#include "opwright/launch.h"
#include "opwright/rows.h"
#include "opwright/vmath.h"
#include "opwright/whole_rows.h"
