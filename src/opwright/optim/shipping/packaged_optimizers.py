"""Optimizers of a package: their definitions as they were written, and kernels that were built ahead of time.

The package has this module, and those that it imports; they need torch alone.
"""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from opwright.deployment.wheels.runtime.gpus import Gpus
from opwright.deployment.wheels.runtime.registered import find_kernel
from opwright.errors import NoKernel, OpwrightError
from opwright.optim.classes import optimizer_class
from opwright.optim.definition import Start, read_definition
from opwright.optim.kinds import Kind
from opwright.optim.serving.kernels import Variant, Wanted, of_any_sizes, variant_of
from opwright.optim.stepping import SteppingOptimizer


class AllGpus:
    """All GPUs: the kernels of a project were compiled for those that are where it was built."""

    def serve(self, index: int) -> bool:
        """Whether kernels run on a GPU."""
        return True


Records = Mapping[str, Sequence[Mapping[str, Any]]]


def optimizer(
    *,
    state: Sequence[str] | Mapping[str, Start | None] = (),
    sparse: bool = False,
    check: Callable[..., None] | None = None,
    checks_all: bool = False,
    constants: Sequence[str] = (),
    restarts: Sequence[str] = (),
    early: bool = False,
) -> Callable[[Callable[..., Any]], type[SteppingOptimizer]]:
    """Turn the update of one parameter into an optimizer, as `opwright.optimizer` does.

    Its kernels come from the package; until `equip` has found them, the function itself runs.
    """

    def make(function: Callable[..., Any]) -> type[SteppingOptimizer]:
        definition = read_definition(
            function, state, sparse=sparse, check=check, checks_all=checks_all, constants=constants, restarts=restarts,
            early=early,
        )  # fmt: skip
        return optimizer_class(SteppingOptimizer, definition, PackagedKernels(definition.name))

    return make


def equip(
    made: type[SteppingOptimizer],
    package: str,
    records: Records,
    namespace: str,
    gpus: Gpus | AllGpus | None = None,
    default_dtype: str = "float32",
) -> None:
    """Give an optimizer of a package its kernels.

    Args:
        made: What `optimizer` has made.
        package: What Python imports.
        records: Of the kernels, for the text of each kind.
        namespace: Where they are registered.
        gpus: Which GPUs they are for; None for none.
        default_dtype: The name of that of torch when they were built.
    """
    assert isinstance(made.variants, PackagedKernels)
    made.variants.equip(package, records, functools.partial(find_kernel, namespace), gpus, default_dtype)


def equip_all(reference: ModuleType, folder: Path, level: str | None) -> None:
    """Give the optimizers of a wheel their kernels.

    Args:
        reference: The module with the optimizers.
        folder: The package.
        level: Of the processors whose kernels are loaded; None if none are, which was said when they should have been.
    """
    stamp = json.loads((folder / "stamp.json").read_text(encoding="utf-8"))
    for record in json.loads((folder / "optimizers.json").read_text(encoding="utf-8")):
        if level is not None:
            gpus = Gpus(stamp["package"], stamp["gpus"], stamp["cuda"])
            made, default = getattr(reference, record["name"]), stamp["default_dtype"]
            equip(made, stamp["package"], record["kernels"], stamp["namespace"], gpus, default)


class PackagedKernels:
    """The kernels of one optimizer, for the kinds of parameters that they were built for.

    Args:
        name: Of the optimizer.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._package: str | None = None
        self._default_dtype: torch.dtype = torch.float32
        self._records: Records = {}
        self._launched: tuple[str, ...] = ("cuda",)
        self._found: dict[tuple[str, torch.device], list[Variant]] = {}
        self._said: set[str] = set()

    def equip(
        self,
        package: str,
        records: Records,
        find: Callable[[str], Any],
        gpus: Gpus | AllGpus | None,
        default_dtype: str = "float32",
    ) -> None:
        """Serve from now on.

        Args:
            package: What Python imports.
            records: Of the kernels, for the text of each kind.
            find: Finds a loaded kernel by its name.
            gpus: Which GPUs there are kernels for.
            default_dtype: The name of that of torch when they were built; under another one the definition runs.
        """
        self._default_dtype = getattr(torch, default_dtype)
        self._package, self._records, self._find, self._gpus = package, records, functools.cache(find), gpus
        texts = [kind for kind, of_kind in records.items() if any("launch" in record for record in of_kind)]
        self._launched = ("cuda", *(["cpu"] if any("device='cpu'" in text for text in texts) else []))

    def undoing(self) -> AbstractContextManager[object]:
        """Nothing is: definitions that change something outside have no kernels, and are in no package."""
        return nullcontext()

    @property
    def launched(self) -> tuple[str, ...]:
        """The types of devices whose kernels run while the processor goes on; also its own, if CUDA is judged there."""
        return self._launched

    def state(self) -> Hashable:
        """The definition is as it was built; None without kernels, and under another default dtype."""
        return self._package if torch.get_default_dtype() is self._default_dtype else None

    def known(self, state: Any, kind: Kind, device: torch.device) -> list[Variant]:
        """All variants of a kind, also those of any sizes; none for a GPU on which they do not run."""
        found = self._found.get((text := repr(kind), device))
        if found is None:
            if device.type == "cuda" and not self._serves(device):
                return []
            names = dict.fromkeys((text, repr(of_any_sizes(kind))))
            found = [self._variant(record) for name in names for record in self._records.get(name, ())]
            self._found[text, device] = found
        return found

    def _serves(self, gpu: torch.device) -> bool:
        """Whether kernels run on a GPU; of one where they do not, it was said."""
        index = torch.cuda.current_device() if gpu.index is None else gpu.index
        return self._gpus is not None and self._gpus.serve(index)

    def _variant(self, record: Mapping[str, Any]) -> Variant:
        run = self._find(record["name"])
        launch = self._find(record["launch"]) if "launch" in record else None
        names = tuple(record["operands"]), tuple(record["numbers"])
        return variant_of(run, record["name"], *names, launch=launch, one_by_one=record["one_by_one"])

    def another(self, state: Any, wanted: Wanted) -> Variant:
        """Refuse: nothing is built here."""
        if self.known(state, wanted.kind, wanted.tensors["param"].device):
            raise NoKernel(f"its kernels for {_described(wanted.kind)} are for other hyper-parameters, or another step")
        raise NoKernel(f"none of its kernels is for {_described(wanted.kind)}")

    @property
    def fallbacks(self) -> PackagedKernels:
        """Itself."""
        return self

    def tell(self, refusal: OpwrightError) -> None:
        """Warn, once for each reason."""
        if refusal.fact not in self._said:
            said = f"{self._package} runs the definition of {self._name}, operation by operation: {refusal.fact}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)
            self._said.add(refusal.fact)

    def watch(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any]) -> None:
        """Nothing: Python looks at the tensors."""


def _described(kind: Kind) -> str:
    sizes = ", ".join("1" if is_one else "n" for is_one in kind.sizes)
    facts = [
        f"parameters of {kind.param} and sizes ({sizes})",
        *([f"gradients of {kind.grad}"] if kind.grad is not kind.param else []),
        *(f"states of {state.dtype}" for state in kind.states if state and state.dtype is not kind.param),
        *([f"copies of {kind.master}"] if kind.master else []),
        *(f"{name}={value!r}" for name, value in kind.constants),
        *(["maximize=True"] if kind.maximize else []),
        *(["gradients that are scaled"] if kind.scaled else []),
        *(["rounding at random"] if kind.at_random else []),
        *(["GPUs"] if kind.device == "cuda" else []),
        *([] if kind.is_flat or not kind.sizes else ["gradients or states that lie otherwise in memory"]),
    ]
    return ", ".join(dict.fromkeys(facts)).replace("torch.", "")
