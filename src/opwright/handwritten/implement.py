"""From the arguments of `op.implement(...)` to passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from opwright.binding.rungs import RungName
from opwright.errors import ImplementationRefused, Place, WrongDeclaration
from opwright.handwritten.contracts import Subject, check_layouts, kernel_contracts
from opwright.handwritten.kernels.cuda_kernel import CudaLoader
from opwright.handwritten.kernels.geometry import THREADS, geometry
from opwright.handwritten.kernels.kernel import CppLoader, HandwrittenKernel
from opwright.handwritten.kernels.kernel_passes import KernelPasses, Manner
from opwright.handwritten.kernels.layout import Layout
from opwright.handwritten.kernels.roles import Contract
from opwright.handwritten.passes import Passes
from opwright.handwritten.sources import Sources, read_sources
from opwright.handwritten.torch_functions.library import TorchLibrary
from opwright.handwritten.torch_functions.passes import (
    Names,
    TorchPasses,
    check_backward_parameters,
    check_names,
    check_parameters,
)
from opwright.handwritten.torch_functions.python import FunctionPasses
from opwright.tracing.interface.signature import Kind, place_of

Saved = Sequence[str] | Mapping[str, Callable[..., torch.Tensor]]
NONE: Mapping[str, Any] = MappingProxyType({})


def implemented(subject: Subject, rung: RungName, function: Any, options: Mapping[str, Any]) -> Passes:
    """The passes of a rung, from the arguments of `op.implement(rung, ...)`.

    Raises:
        ImplementationRefused, FunctionMissing, WrongDeclaration: If they do not match the operator.
    """
    if rung == "function" and not options:
        return written_function(subject, function)
    if rung in ("cpp", "cuda") and function is None:
        return written_sources(subject, rung, **options)
    raise ImplementationRefused(
        f"{subject.name} cannot be implemented so: '{rung}' with {', '.join(options) or repr(function)}",
        place=subject.place,
        hint='implement("function", f), or implement("cpp", sources=[...], ...) and the same with "cuda"',
    )


def written_function(subject: Subject, function: Any) -> Passes:
    """The passes of an `autograd.Function`, or of a callable.

    Raises:
        ImplementationRefused: If it is neither.
    """
    is_function = inspect.isclass(function) and issubclass(function, torch.autograd.Function)
    if not callable(function) or (inspect.isclass(function) and not is_function):
        raise ImplementationRefused(
            f"{subject.name} cannot be implemented by {function!r}",
            place=subject.place,
            hint="give a subclass of torch.autograd.Function, or a function of torch operations",
        )
    body = function.forward if is_function else function
    called = function.apply if is_function else function
    return FunctionPasses(called, function.__name__, _place_of(body, subject))


def written_sources(
    subject: Subject,
    rung: RungName,
    *,
    sources: Sequence[str | Path] = (),
    source: str | None = None,
    forward: str = "forward",
    backward: str | None = None,
    saved: Saved = (),
    results: Sequence[str] = (),
    gradients: Sequence[str] = (),
    layouts: Mapping[str, Layout] = NONE,
    dtypes: Sequence[torch.dtype] = (),
    include_directories: Sequence[str | Path] = (),
    flags: Sequence[str] = (),
    guarded: bool = False,
    threads: int | Sequence[int] = THREADS,
    blocks: Callable[..., Sequence[int] | int] | None = None,
) -> Passes:
    """The passes of C++ or CUDA sources: kernels over pointers, or functions over `torch::Tensor`.

    Args:
        subject: The operator.
        rung: "cpp" or "cuda".
        sources: Files; relative paths start at the folder of the file that defines the reference.
        source: The text of the source, instead of files.
        forward: The name of the forward function.
        backward: The name of the backward function; if there is none, the backward pass is derived.
        saved: Names of what forward returns after the results, for backward. For kernels, a function for each name: it
            takes the operator's arguments and returns a tensor with the sizes and dtype to allocate.
        results: The names of the results in backward, if it reads any; kernels name them in their parameters.
        gradients: The arguments whose gradients backward returns, in order; by default all tensors. Kernels name them
            in their parameters.
        layouts: For kernels, the layout of each tensor: "any", "contiguous" or "channels_last". The default is "any" if
            the kernel takes one of its strides, else "contiguous".
        dtypes: For functions over tensors, the dtypes that they support; by default any.
        include_directories: Where the compiler looks for headers.
        flags: Further flags for the compiler.
        guarded: For kernels, whether to check after every call that nothing was written outside of the results.
        threads: For CUDA kernels, the threads of a block: one number, or three.
        blocks: For CUDA kernels, a function of the operator's arguments that returns the number of blocks: one number,
            or three. By default every element of the first result gets a thread.

    A CUDA kernel on the rung "cpp" runs on the CPU, thread by thread, which tests it without a GPU.

    Raises:
        ImplementationRefused: If the options contradict each other.
        FunctionMissing: If a function is not in the sources.
        WrongDeclaration: If a function does not take or return what the operator needs.
    """
    read = read_sources(subject.name, sources, source, subject.place.file, include_directories, flags)
    functions = [name for name in (forward, backward) if name]
    library = TorchLibrary(f"{subject.name}_{rung}", read, functions, subject.settings)
    if library.is_over_tensors(forward):
        every = subject.named(Kind.TENSOR)
        names = Names(subject.arguments, tuple(results), tuple(saved), tuple(gradients) or every)
        _check_torch_facing(subject, library, forward, backward, names)
        return TorchPasses(library, forward, backward, names, dtypes)
    makers = _makers(subject, saved)
    contracts = kernel_contracts(subject, read, forward, backward, tuple(makers))
    check_layouts(subject, layouts, contracts)
    launched = geometry(threads, blocks, contracts[0].place)
    manner = Manner("cuda" if rung == "cuda" else "cpu", layouts, makers, guarded, launched)
    loaders = [_loader(subject, rung, contract, read) for contract in contracts]
    kernels = [HandwrittenKernel(contract, loader) for contract, loader in zip(contracts, loaders, strict=True)]
    return KernelPasses(subject.arguments, subject.expected, kernels[0], [*kernels, None][1], manner, read)


def _loader(subject: Subject, rung: RungName, contract: Contract, sources: Sources) -> CppLoader | CudaLoader:
    if rung == "cpp":
        short = contract.function.rpartition("::")[2]
        return CppLoader(f"{subject.name}_{short}", contract, sources, subject.settings)
    if not contract.is_cuda_kernel:
        raise WrongDeclaration(
            f"{contract.function} is not a __global__ function, which the rung 'cuda' needs", place=contract.place
        )
    return CudaLoader(contract, sources)


def _makers(subject: Subject, saved: Saved) -> Mapping[str, Callable[..., torch.Tensor]]:
    if not isinstance(saved, Mapping):
        if saved:
            raise ImplementationRefused(
                f"the sizes of what the kernels of {subject.name} save ({', '.join(saved)}) are not given",
                place=subject.place,
                hint=f"saved={{{saved[0]!r}: lambda {', '.join(subject.arguments)}: ...}}, a tensor of those sizes",
            )
        return {}
    return saved


def _check_torch_facing(
    subject: Subject, library: TorchLibrary, forward: str, backward: str | None, names: Names
) -> None:
    check_names(names, subject.name, subject.place)
    if library.registers:
        return  # the parameters of an operator of torch.ops are known only when it is loaded
    first = library.declaration(forward)
    check_parameters(forward, first, names.arguments)
    if backward:
        second = library.declaration(backward)
        check_backward_parameters(backward, second, names, subject.signature.outputs)


def _place_of(body: Callable[..., Any], subject: Subject) -> Place:
    return place_of(body) if hasattr(inspect.unwrap(body), "__code__") else subject.place
