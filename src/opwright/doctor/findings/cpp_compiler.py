"""cpp_compiler: which C++ compiler builds kernels."""

from __future__ import annotations

from opwright.doctor.finding import Finding
from opwright.doctor.installing import installing
from opwright.errors import CacheUnusable, CompilerMissing, UnsafeCache
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler


def cpp_compiler(settings: Settings) -> Finding:
    """Find the compiler; without one, operators fall back."""
    name = "C++ compiler"
    try:
        compiler = find_compiler(settings)
    except CompilerMissing as refusal:
        remedy = "unset CXX" if settings.compiler else installing("compiler")
        return Finding(name, "broken", f"{refusal.fact}; every call falls back to your function", remedy)
    except (UnsafeCache, CacheUnusable) as refusal:
        return Finding(name, "broken", f"the search failed: {refusal.fact}")
    chosen = " (chosen by CXX)" if settings.compiler else ""
    return Finding(name, "works", f"{compiler.version}, {' '.join(compiler.command)}{chosen}")
