// Functions that are compiled once for many libraries.
//
// They do not depend on a kernel, and take the compiler longer than a kernel does. A library that is linked with an
// object that has them defines OPWRIGHT_APART, and only declares them; any other library has its own.
#pragma once

#ifndef OPWRIGHT_ONCE  // the object has a definition of its own
#define OPWRIGHT_ONCE __attribute__((noinline)) inline
#endif
