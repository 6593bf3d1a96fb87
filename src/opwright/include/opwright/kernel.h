// Everything an emitted operator includes.
#pragma once

#include "opwright/complex.h"
#include "opwright/half.h"
#include "opwright/launch.h"
#include "opwright/rows.h"
#include "opwright/vmath.h"
