"""What opwright says when it refuses: the fact, the place in the user's source, the remedy.

Two families: `OpwrightError` is the user's mistake or a limit of the machine; `InternalError` is our bug. One class per
refusal. Low stages raise facts; the outer stage adds the place once.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self  # of Python 3.11; wheels include this module, and run on 3.10


@dataclass(frozen=True, slots=True)
class Place:
    """A line in the user's source; with line 0, a name instead of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class OpwrightError(Exception):
    """A refusal: the fact, the place, and what to do about it.

    Args:
        fact: One sentence with the offending value.
        place: The line of the user's source it is about, when known.
        hint: The remedy, printed on a line of its own.

    Attributes:
        is_settled: Whether a derivation came to it, which every other process would come to as well.
    """

    is_settled = False

    def __init__(self, fact: str, *, place: Place | None = None, hint: str | None = None) -> None:
        self.fact = fact
        self.place = place
        self.hint = hint
        super().__init__(str(self))

    def again(self, place: Place | None = None) -> Self:
        """The same refusal, at a place if it has none, without its traceback, which keeps the arguments of a call."""
        other = copy(self)
        other.place = self.place or place
        return other

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        remedy = f"\nhint: {self.hint}" if self.hint else ""
        return f"{where}{self.fact}{remedy}"


class CallableUnsupported(OpwrightError):
    """`opwright.operator` was given something that is not a function, or not one to derive kernels from."""


class UnsupportedParameter(OpwrightError):
    """A parameter of the reference is of the wrong kind, such as a number where a tensor is needed."""


class UnsupportedReturn(OpwrightError):
    """The reference returns something that is not a tensor or a tuple of tensors."""


class UntraceableReference(OpwrightError):
    """The reference cannot be turned into a graph: its control flow, a shape or a number depends on data."""


class SideEffect(UntraceableReference):
    """The reference has a side effect, which would happen in its trace and never again."""


class NoKernel(OpwrightError):
    """No kernel can be derived for this signature (a dtype, a device, an operation); the reference serves the call."""


class LeftToFunction(NoKernel):
    """Kernels gain nothing over the function itself, which serves without a warning."""


class OutsideTensor(NoKernel):
    """The function uses a tensor that is not one of its parameters.

    Attributes:
        outside: What the function reads outside, if the tensor may become an argument; None otherwise.
    """

    outside: Any = None

    @property
    def becomes_an_argument(self) -> bool:
        """Whether the operator is served again, with the tensor as an argument."""
        return self.outside is not None and bool(self.outside.may_capture)


class StillBuilding(NoKernel):
    """Kernels are being built for longer than the user's patience lasts; the reference serves until they are there."""


class NotElementwise(NoKernel):
    """The update of an optimizer is not one element by element, which a table of tensors could serve."""


class ChangesItself(NoKernel):
    """The forward of a module changes the module; it may do so in one call and not in another."""


class HidesFromGradients(NoKernel):
    """Reverse mode is no help for tangents of a function, for one under `no_grad`: torch takes them, as written."""


class NumberNeeded(NoKernel):
    """A kernel needs the value of a Python number that changes from call to call, so each value has its own.

    Args:
        fact: What needs it.
        names: The parameters in question; none if they are not known.
        only_here: Whether another value may do without.
    """

    def __init__(
        self,
        fact: str,
        *,
        place: Place | None = None,
        hint: str | None = None,
        names: tuple[str, ...] = (),
        only_here: bool = False,
    ) -> None:
        self.names = names
        self.only_here = only_here
        super().__init__(fact, place=place, hint=hint)


class UndeclaredMutation(OpwrightError):
    """The reference changes an argument that `mutates=` does not name."""


class AutocastRefused(OpwrightError):
    """The value of `autocast=` is not a policy, or not one that this operator can have."""


class SaveRefused(OpwrightError):
    """The value of `save=` is neither a word that it knows nor a budget."""


class PartsRefused(OpwrightError):
    """The values of `depth=` and `parts=` do not choose modules to be served."""


class ModuleUnsupported(OpwrightError):
    """`opwright.module` was given something that is not a module, or a module that no operator can run."""


class TracingFailed(NoKernel):
    """The reference raised in its trace: either it cannot be traced, or it was called wrongly."""


class UpdateRefused(OpwrightError):
    """The definition of an optimizer is not the update of one parameter."""


class CaptureRefused(OpwrightError, RuntimeError):
    """A step of an optimizer is in the capture of a CUDA graph, whose replay would update with the numbers of then."""


class InterpreterUnsupported(OpwrightError, ImportError):
    """opwright is imported in an interpreter that is not the main one of its process."""


class Fault(NoKernel):
    """Deriving, building, loading or running kernels failed unexpectedly; the reference serves."""


class FallbackWarning(UserWarning):
    """An operator falls back to its function; the text says why, where in the source, and what helps."""


class FallbackRefused(OpwrightError):
    """A call would be served by the reference, which OPWRIGHT_STRICT forbids."""


class CompilerMissing(OpwrightError):
    """There is no working C++ compiler on this machine."""


class CudaCompilerMissing(OpwrightError):
    """There is no compiler of CUDA kernels on this machine, or none that can be loaded."""


class ToolkitMissing(OpwrightError):
    """There is no CUDA toolkit that can compile for this PyTorch."""


class ArchitectureUnknown(OpwrightError):
    """A requested CUDA architecture does not exist, or the compiler does not know it."""


class SourcesRefused(OpwrightError):
    """A list of a user's own sources cannot be built: one is missing, say, or conflicts with another."""


class ExtensionUnloadable(OpwrightError):
    """A library that was built of a user's own sources cannot be loaded."""


class SanitizerMissing(OpwrightError):
    """NVIDIA's compute-sanitizer is not on this machine."""


class BuildFailed(OpwrightError):
    """The compiler refused a source."""


class ImplementationRefused(OpwrightError):
    """A handwritten rung is refused: the operator, or an option, does not allow it."""


class FunctionMissing(OpwrightError):
    """A function that `implement` names is not in its sources."""


class WrongDeclaration(OpwrightError):
    """A handwritten function takes or returns something else than its operator needs."""


class WrongResult(OpwrightError):
    """A handwritten function returned something else than the reference returns."""


class ResultOverrun(OpwrightError):
    """A handwritten kernel wrote outside of its results."""


class UnsafeCache(OpwrightError):
    """The cache directory, or a folder that it lies in, belongs to another user or can be written by one.

    Args:
        fact: Which, and how.
        folder: The folder that its owner, who asks, can close to others; None if there is none.
    """

    def __init__(
        self, fact: str, *, place: Place | None = None, hint: str | None = None, folder: str | None = None
    ) -> None:
        self.folder = folder
        super().__init__(fact, place=place, hint=hint)


class CacheUnusable(OpwrightError):
    """The cache directory cannot be created, read or written."""


class LibraryUnloadable(OpwrightError):
    """A library of kernels cannot be loaded, for example from a folder mounted noexec."""


class RungMissing(OpwrightError):
    """The rung that was asked for does not exist here."""


class SamplesMissing(OpwrightError):
    """An operator has no samples, so it cannot be checked or measured."""


class ReferenceMissing(OpwrightError):
    """A callable that is not an operator is to be checked without a reference."""


class CheckUnknown(OpwrightError):
    """There is no check, or no row of an audit, of the requested name."""


class OperatorNotFound(OpwrightError):
    """A file, a module, or an operator in one, that a command names does not exist."""


class ShapesUnreadable(OpwrightError):
    """A shape, or a size, given to `opwright.shapes` cannot be read."""


class FileUnloadable(OpwrightError):
    """The user's file raises while it is imported."""


class ReferenceWithoutText(OpwrightError):
    """A function, or something that it uses, cannot be written into a module of its own."""


class NotEjectable(OpwrightError):
    """Something about an operator cannot be put into a project without opwright."""


class DirectoryTaken(OpwrightError):
    """A project is to be written to a directory that is not empty."""


class ProjectNameUnusable(OpwrightError):
    """The name of a project is not usable for a Python package."""


class WheelUnsupported(OpwrightError):
    """A wheel cannot hold an operator, or cannot be built as requested."""


class WrapperRefused(OpwrightError):
    """A wrapper type is declared in a way that cannot work, or has no rule for an operation.

    It is no TypeError, whose words the operators of tensors (`x + y`) throw away.
    """


class HandlerRefused(OpwrightError):
    """A handler of a tensor type does not fit the function that it is for, or the type itself is not whole."""


class Unhandled(OpwrightError, TypeError):
    """A tensor type does not handle a function that it is given to."""


class AttributeUnhandled(OpwrightError, AttributeError):
    """A tensor type does not answer an attribute of tensors."""


class MixedPlacement(OpwrightError, RuntimeError):
    """An operator is called with tensors that are spread over different meshes, or with spread and plain ones."""


class DeploymentUnsupported(OpwrightError):
    """A model, or a part of it, cannot leave Python in the form asked for."""


class DeploymentFailed(OpwrightError):
    """What was deployed does not build or run, or computes something else than eager."""


class DrawingMissing(OpwrightError):
    """A library that draws graphs or plots is not installed."""


class ToolMissing(OpwrightError):
    """A program that is needed to build or to run a deployment is not there."""


class InternalError(Exception):
    """A bug in opwright: an invariant between its stages does not hold."""
