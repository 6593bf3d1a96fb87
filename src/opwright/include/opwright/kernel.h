// Everything an emitted operator includes.
#pragma once

#include "opwright/complex.h"
#include "opwright/half.h"
#include "opwright/fold_columns.h"
#include "opwright/fold_order.h"
#include "opwright/fold_rows.h"
#include "opwright/launch.h"
#include "opwright/rows.h"
#include "opwright/vmath.h"
#include "opwright/whole_rows.h"
