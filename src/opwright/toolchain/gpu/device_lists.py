"""For which devices CUDA sources are compiled: a list that was read and checked, with PTX for devices to come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opwright.errors import ArchitectureUnknown

# The generations by name, as torch.utils.cpp_extension reads them. The longer names come first.
GENERATIONS = {
    "Volta+Tegra": "7.2",
    "Volta": "7.0",
    "Turing": "7.5",
    "Ampere+Tegra": "8.7",
    "Ampere": "8.0 8.6",
    "Ada": "8.9",
    "Hopper": "9.0",
    "Blackwell+Tegra": "11.0",
    "Blackwell": "10.0 10.3 12.0 12.1",
}
# What is compiled for where there is neither a device nor a list: data centres of three generations.
WITHOUT_A_DEVICE = "8.0 9.0 10.0"

_NAME = re.compile(r"(\d+)\.(\d)([af]?)(\+PTX)?")


@dataclass(frozen=True, slots=True, order=True)
class Architecture:
    """One kind of device.

    Attributes:
        major: The first part of its compute capability.
        minor: The second part.
        variant: "a" or "f" for instructions of this architecture, or this family, alone; else empty.
        ptx: Whether PTX goes along, which later devices can run.
    """

    major: int
    minor: int
    variant: str = ""
    ptx: bool = False

    @property
    def name(self) -> str:
        """Its compute capability, such as "9.0"."""
        return f"{self.major}.{self.minor}"

    @property
    def text(self) -> str:
        """How it is written in a list, such as "9.0+PTX"."""
        return f"{self.name}{self.variant}{'+PTX' if self.ptx else ''}"

    @property
    def codes(self) -> tuple[str, ...]:
        """What is compiled: "sm_90" is machine code, "compute_90" PTX."""
        return (f"sm_{self._number}", *((f"compute_{self._number}",) if self.ptx else ()))

    @property
    def flags(self) -> tuple[str, ...]:
        """What nvcc is told."""
        return tuple(f"-gencode=arch=compute_{self._number},code={code}" for code in self.codes)

    @property
    def _number(self) -> str:
        return f"{self.major}{self.minor}{self.variant}"


def architecture_flags(text: str, known: Sequence[str], compiler: str) -> tuple[str, ...]:
    """Return what nvcc is told to compile for the architectures of a list, with PTX for devices newer than all of them.

    Args:
        text: Compute capabilities or generations, separated by spaces, commas or semicolons, as in "8.0 9.0+PTX".
        known: The compute capabilities that the compiler compiles for.
        compiler: What to call the compiler in a refusal.

    Raises:
        ArchitectureUnknown: A word is no architecture, or the compiler does not compile for it.
    """
    architectures = with_ptx(read_architectures(text))
    for architecture in architectures:
        _demand(architecture, known, compiler)
    return tuple(dict.fromkeys(flag for architecture in architectures for flag in architecture.flags))


def with_ptx(architectures: Sequence[Architecture]) -> tuple[Architecture, ...]:
    """The same in ascending order, and something that a device newer than all of them can run.

    Where none of them asks for PTX, the highest one without a variant gets it.
    """
    ordered = sorted(set(architectures))
    general = [architecture for architecture in ordered if not architecture.variant]
    if general and not any(architecture.ptx for architecture in ordered):
        ordered.append(replace(general[-1], ptx=True))
    return tuple(ordered)


def read_architectures(text: str) -> tuple[Architecture, ...]:
    """Read a list of compute capabilities or generations, in its order.

    Raises:
        ArchitectureUnknown: A word is neither.
    """
    return tuple(_read(word) for word in _words(text))


def _words(text: str) -> list[str]:
    """Split a list into compute capabilities; the PTX of a generation is that of its highest one."""
    words = []
    for word in re.split(r"[\s,;]+", text.strip(" ,;\t\n")):
        plain = word.removesuffix("+PTX")
        if plain in GENERATIONS:
            *others, highest = GENERATIONS[plain].split()
            words += [*others, highest + word[len(plain) :]]
        else:
            words.append(word)
    return words


def _read(word: str) -> Architecture:
    match = _NAME.fullmatch(word)
    if match is None:
        raise ArchitectureUnknown(
            f"{word!r} in the list of CUDA architectures is neither a compute capability nor a generation",
            hint=f"write it as in TORCH_CUDA_ARCH_LIST='8.0 9.0+PTX'; generations are {', '.join(GENERATIONS)}",
        )
    return Architecture(int(match[1]), int(match[2]), match[3], bool(match[4]))


def _demand(architecture: Architecture, known: Sequence[str], compiler: str) -> None:
    if architecture.name not in known:
        raise ArchitectureUnknown(
            f"{compiler} does not compile for compute capability {architecture.name}",
            hint=f"it knows {', '.join(known)}; name some of these in TORCH_CUDA_ARCH_LIST, or use another toolkit",
        )
