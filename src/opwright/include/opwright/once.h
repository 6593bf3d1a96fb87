// Functions that are compiled once for many libraries.
//
// They do not depend on a kernel, and take the compiler longer than a kernel does. A library that is linked with objects
// that have them defines OPWRIGHT_APART, and only declares them; any other library has its own. Walks over rows, memory
// and registration have an object of their own, which is linked with the others: these define OPWRIGHT_WALKS_APART.
#pragma once

#ifdef OPWRIGHT_APART
#define OPWRIGHT_WALKS_APART
#endif

#ifndef OPWRIGHT_ONCE  // an object has a definition of its own for what it holds
#define OPWRIGHT_ONCE __attribute__((noinline)) inline
#endif
