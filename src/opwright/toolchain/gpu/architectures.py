"""The GPUs that CUDA sources are compiled for: a user's list, the GPUs of this machine, or a default.

"sm_90" is machine code for compute capability 9.0, "compute_90" PTX for it and for what comes later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from opwright.errors import ArchitectureUnknown
from opwright.settings import Settings

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
# Without a list and without a GPU to look at: the A100, the H100 and the B200, and PTX for what comes after them.
DEFAULT = "8.0 9.0 10.0"

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


def architectures(settings: Settings) -> tuple[str, ...]:
    """Return what to compile for: what the user lists, or else the GPUs of this machine, or else a default.

    Raises:
        ArchitectureUnknown: A word of the list is not an architecture.
    """
    listed = _listed(settings)
    wanted = _present() or with_ptx(read_architectures(DEFAULT)) if listed is None else read_architectures(listed)
    return tuple(dict.fromkeys(code for architecture in wanted for code in architecture.codes))


def architecture_flags(settings: Settings, known: Sequence[str], compiler: str) -> tuple[str, ...]:
    """Return what nvcc is told to compile for the same architectures, with PTX for GPUs newer than all of them.

    Args:
        settings: The list, if there is one.
        known: The compute capabilities that the compiler compiles for.
        compiler: What to call the compiler in a refusal.

    Raises:
        ArchitectureUnknown: A word is no architecture, or the compiler does not compile for it.
    """
    listed = _listed(settings)
    wanted = _nearest(known) if listed is None else read_architectures(listed)
    for architecture in wanted:
        _demand(architecture, known, compiler)
    return tuple(dict.fromkeys(flag for architecture in with_ptx(wanted) for flag in architecture.flags))


def for_others(listed: str, settings: Settings) -> Settings:
    """Settings that compile for the GPUs of others: those of a list, and by PTX all that come after them.

    Args:
        listed: Compute capabilities or generations, as in "8.0 9.0".
        settings: What else is set.

    Raises:
        ArchitectureUnknown: A word of the list is not an architecture.
    """
    wanted = with_ptx(read_architectures(listed))
    return replace(settings, cuda_architectures=" ".join(architecture.text for architecture in wanted))


def for_compiler(architecture: str, known: tuple[int, ...]) -> str:
    """What a compiler makes for an architecture: PTX of the newest it knows where it is older than the GPU."""
    wanted = int(re.sub(r"\D", "", architecture))
    older = [version for version in known if version <= wanted]
    return architecture if wanted in known or not older else f"compute_{max(older)}"


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
    """Read compute capabilities or generations, separated by spaces, commas or semicolons, in their order.

    Raises:
        ArchitectureUnknown: A word is neither.
    """
    return tuple(_read(word) for word in _words(text))


def _listed(settings: Settings) -> str | None:
    listed = (settings.cuda_architectures or "").strip()
    return listed if listed not in ("", "native") else None


def _present() -> tuple[Architecture, ...]:
    if not torch.cuda.is_available():
        return ()
    found = {torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count())}
    return tuple(Architecture(*capability) for capability in sorted(found))


def _nearest(known: Sequence[str]) -> tuple[Architecture, ...]:
    """The GPUs here as far as a compiler knows them; without any, those of the default that it knows."""
    if here := _present():
        highest = max(read_architectures(" ".join(known)))
        return tuple(sorted({min(device, highest) for device in here}))
    usual = [name for name in DEFAULT.split() if name in known]
    return read_architectures(" ".join(usual or known[-1:]))


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
