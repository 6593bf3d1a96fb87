"""The base of every operator, and the order of the stages on one page.

reference ─trace→ Graph ─derive→ Graphs ─lower→ Programs ─passes→ Programs ─emit→ Sources ─build→ Libraries ─bind→ calls
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch._ops import OpOverload

from opwright.binding.autograd.function_rung import FunctionRung
from opwright.binding.dispatcher.autocast import AutocastPolicy, check_policy, without_autocast
from opwright.binding.dispatcher.registered import Registered, Serving
from opwright.binding.environment import is_compiling
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.own_errors import awaits_tensors
from opwright.binding.rungs import Ladder, Rung, RungName, Way
from opwright.binding.serving.inside import serve_inside
from opwright.binding.serving.mutating import MutatingServer
from opwright.binding.serving.mutating_structures import MutatingStructuredServer
from opwright.binding.serving.numbers import Numbers, numbers_in
from opwright.binding.serving.server import Server
from opwright.binding.serving.structured import StructuredServer
from opwright.binding.transforms.differentiating import Differentiating
from opwright.binding.transforms.family import Family, Identity
from opwright.binding.transforms.levels import TransformServer
from opwright.binding.transforms.now import TransformsNow
from opwright.binding.transforms.safe import SafeTransforms
from opwright.binding.variants.backends import BACKENDS, Backend, backend_for, devices_of, examine, refuse_another
from opwright.binding.variants.by_state import VariantsByState
from opwright.binding.variants.states import Outside, State
from opwright.binding.variants.variant import Plan
from opwright.binding.variants.variants import Variants
from opwright.derivation.saving.save_policy import SavePolicy, read_policy
from opwright.errors import NoKernel, OpwrightError, OutsideTensor
from opwright.handwritten.server import WrittenServer
from opwright.ir.names.identifiers import ascii_spelling, identifiers
from opwright.operators.parts.capturing import Captures
from opwright.operators.parts.example import HasExample
from opwright.operators.parts.flattening import Flattens
from opwright.operators.parts.methods import Binds, Methods
from opwright.operators.registry import remember
from opwright.operators.structure import HasStructure
from opwright.operators.transforming import Transforming
from opwright.operators.unserved import refuse_unserved
from opwright.samples import SampleFactory
from opwright.settings import Settings
from opwright.toolchain.process.forks import hold_off_forks, refuse_torn
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.callables import as_function, operator_name
from opwright.tracing.interface.signature import (
    Signature,
    check_outputs,
    mutated_positions,
    place_of,
    read_signature,
)
from opwright.tracing.interface.specs import ArgumentSpec, describe, requiring_gradients

if TYPE_CHECKING:
    from opwright.ir.expressions.integer import Condition
    from opwright.operators.stages import Derivation
    from opwright.tracing.interface.results import Result

DEFAULT_NAMESPACE = "opwright"


class BaseOperator(Transforming["BaseOperator"], HasStructure, Flattens, Captures, HasExample, Binds):
    """A PyTorch function with kernels of its own: called, differentiated, transformed.

    Call it like the function it was made from. The first call with a new dtype, rank or broadcast pattern derives and
    builds kernels; later calls and processes find them. A call without a kernel runs the reference.

    Attributes:
        name: Its name at the dispatcher, "namespace::name".
        reference: The function as written: the rung "composed".
        samples: Makes example arguments for a device and dtype; None if none were given.
        save: What the backward pass may keep: a word, a share (a float) or a number of bytes (an int).
        inline: Whether compilers and exporters see the operations of the reference instead of one operator; they always
            do if it draws random numbers.
        autocast: What its arguments are cast to under autocast; None if the reference runs there, under autocast's own
            rules.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        *,
        name: str | None = None,
        samples: SampleFactory | None = None,
        save: SavePolicy = "auto",
        signature: Signature | None = None,
        settings: Settings | None = None,
        mutates: Sequence[str] = (),
        identity: Identity | None = None,
        inline: bool = False,
        autocast: AutocastPolicy | None = None,
        freeze: Sequence[str] = (),
        outside: Outside | None = None,
        fallbacks: Fallbacks | None = None,
    ) -> None:
        given = getattr(reference, "reference", reference)
        if signature is None and (reference := as_function(given)) is given:
            self._methods = Methods(functools.partial(self._bind, mutates, freeze))
        if autocast is not None:
            check_policy(autocast, mutates, place_of(reference))
        short = ascii_spelling(name) if name else operator_name(reference)
        self.name = short if "::" in short else f"{DEFAULT_NAMESPACE}::{short}"
        self.reference: Callable[..., Any] = reference
        self.samples = samples
        self.inline = inline
        self.autocast = autocast
        self.save = read_policy(save, place_of(reference))
        self._signature = signature or read_signature(reference, mutates)
        self._settings = settings or Settings.from_environment()
        self._positional = self._signature.positional(reference)
        self._mutated = mutated_positions(reference, self._signature, mutates)
        self._functional: BaseOperator | None = None
        self._identity = identity or self._recorded_under
        self._outside = outside or Outside(getattr(reference, "reads_from", reference), freeze)
        self._arity = len(self._signature.parameters)
        self._names = identifiers([parameter.name for parameter in self._signature.parameters])
        self._numbers = Numbers(self._positional)
        self._variants = VariantsByState(self._outside, self._make_variants)
        self._family = Family(
            self._positional, self.name, self._signature, self._names, self._identity, self._make_relative
        )
        self._fallbacks = fallbacks or Fallbacks(self._short_name, self._settings)
        self._transforms = SafeTransforms(self._family, self._positional, self._arity, self._fallbacks)
        self.transformed = TransformServer(self, self._positional, self._settings, self._outside)
        self._server = self._make_server()
        self._serving: Serving = self._server
        if signature is None and not self._mutated:
            self.let_capture(freeze)
        self._function = FunctionRung(self._short_name, self._names, self._derive_function, self.outside_now)
        self._ladder = self._derived_rungs()
        self._registered = Registered(
            self.name,
            self._signature,
            reference,
            self,
            lambda: self.transforms.backward,
            lambda: self._variants.plain and self._serving is self._server,
            autocast=autocast,
            inline=inline,
        )
        functools.update_wrapper(self, reference)
        if signature is None or signature.schema is not None:
            remember(self, self._registered, self._signature)
        if self._signature.outputs is not None and not self._mutated:
            self._registered.register(self._signature.outputs)

    def _make_server(self) -> Server | StructuredServer | MutatingServer | MutatingStructuredServer:
        if self._mutated:
            about = (self._positional, self._signature, self._make_mutating)
            structured = MutatingStructuredServer(self._fallbacks.name, *about)
            if not self._signature.is_flat:
                return structured
            self._functional = self._family.functional(self._mutated)
            functional = lambda: self._flattened(())[0].server  # noqa: E731
            about_flat = (self._positional, self._signature, self._mutated, functional, self._fallbacks)
            return MutatingServer(*about_flat, in_containers=structured)
        if not self._signature.is_flat:
            flat = lambda *given: self._family.flat(*given).server  # noqa: E731
            return StructuredServer(self._positional, self._signature, flat, self._fallbacks, self._served_cast)
        return Server(
            self.reference,
            self._positional,
            getattr(self._positional, "fallback", self._positional),
            self._signature,
            self._settings,
            self._fallbacks,
            self._variants,
            self._numbers,
            lambda args, recording, state: self._derive(args, recording, state).plan,
            self.transformed.serve,
            lambda args: self._registered.serve_compiled(args),
            lambda args: serve_inside(self, self.name, self.transforms.backward, args, self.serve_sharded),
            self._served_cast,
        )

    def _make_relative(self, reference: Callable[..., Any], **options: Any) -> BaseOperator:
        options |= {"save": self.save, "settings": self._settings, "inline": self.inline, "autocast": self.autocast}
        options = {"outside": self._outside, "name": self.name, **options}
        told = self._fallbacks if options["name"] == self.name else None  # then the same, with flat arguments
        return type(self)(reference, fallbacks=told, **options)

    @property
    def _served_cast(self) -> Callable[[Sequence[Any]], Any] | None:
        return self.autocast and functools.partial(without_autocast, self.autocast, self)

    @property
    def server(self) -> Server:
        """Serves calls with flat arguments."""
        assert isinstance(self._server, Server)
        return self._server

    @property
    def variants(self) -> Variants | None:
        """The kernels for the state of its last call."""
        return self._variants.latest

    # -- calling ---------------------------------------------------------------------------------------------------

    @awaits_tensors
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; see the reference for arguments, results and errors."""
        if is_compiling():
            return self._registered.serve_compiled(self._signature.bind(args, kwargs))
        try:
            return self._serving.serve(args, kwargs)
        except OutsideTensor:
            if not self.can_capture:
                raise
            return self.serve(args, kwargs)

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call of this thread; None before the first."""
        rung: RungName | None = self._server.last_rung
        return rung

    def _recorded_under(self, state: State) -> str | None:
        """The key under which the variants of a state are recorded."""
        return state.identity and f"{state.identity} {self.name} {self.save}"

    def _make_variants(self, state: State) -> Variants:
        differentiate = Differentiating(state, self._transforms)
        identity = lambda: self._identity(state)  # noqa: E731
        return Variants(identity, self._signature, differentiate, self._short_name, state, self._numbers)

    def _derive(self, args: Sequence[Any], recording: bool, state: State | None = None) -> Derivation:
        specs = describe(self._names, args, gradients=recording, numbers=numbers_in(args))
        derivation = self._derive_for(specs, backend_for(args, self._settings), state)
        refuse_unserved(derivation.plan, self._names, args, place_of(self.reference))
        self._check_outputs(derivation.plan)
        return derivation

    def _derive_for(self, specs: Sequence[ArgumentSpec], backend: Backend, state: State | None = None) -> Derivation:
        refuse_torn()
        with hold_off_forks():
            from opwright.operators.stages import derive  # imports sympy (0.3 s), which loading kernels needs not

            how = (self._short_name, self.save, backend)
            try:
                derived: Derivation = (state or self._outside.now()).tracing(
                    self._positional, lambda reference: guarded(reference, lambda: derive(reference, specs, *how))
                )
            except OpwrightError as refusal:
                refusal.is_settled = True
                if isinstance(refusal, OutsideTensor):
                    refusal.outside = self._outside
                raise
            return derived

    def _check_outputs(self, plan: Plan) -> None:
        check_outputs(self.reference, self._signature, outputs := len(plan.result.members))
        if self._registered.overload is None and plan.result.is_plain and not self._mutated:
            self._registered.register(outputs)

    # -- transforms ------------------------------------------------------------------------------------------------

    @property
    def transforms(self) -> TransformsNow:
        """The operators that function transforms derive from this one, by position of the arguments."""
        return TransformsNow(self._transforms, self._outside)

    # -- the dispatcher --------------------------------------------------------------------------------------------

    @property
    def _short_name(self) -> str:
        return self.name.split("::")[1]

    @property
    def overload(self) -> OpOverload | None:
        """The operator at torch's dispatcher; calling it is the same as calling this object.

        None if no schema can spell its parameters and results, such as a dict, or if its name is taken.
        """
        return None if self._mutated else self._registered.found(self._example_plan)

    def _example_plan(self) -> Plan:
        plan: Plan = self.of_example(lambda flat, args: flat._derive(args, recording=False).plan)
        return plan

    # -- rungs -----------------------------------------------------------------------------------------------------

    def _derived_rungs(self) -> Ladder:
        return Ladder(
            self._short_name,
            {
                "composed": Way("reference", self._serve_reference),
                "function": Way("derived", self._serve_function, self._examine_function),
                **{backend: self._kernels(backend) for backend in BACKENDS},
            },
        )

    def rungs(self) -> tuple[Rung, ...]:
        """Which rungs exist here, and why one is missing."""
        return self._ladder.rungs()

    def on(self, rung: RungName) -> Callable[..., Any]:
        """The operator pinned to a rung.

        A pinned call raises where the unpinned one would run the reference; but the reference always serves empty
        tensors and calls under a transform or mode.

        Raises:
            RungMissing: If the rung does not exist here.
        """
        return self._ladder.on(rung)

    def implement(self, rung: RungName, function: Any = None, /, **options: Any) -> Any:
        """Replace a derived rung with a handwritten one, for the calls that it supports.

        "cpp" and "cuda" take options, which `opwright.handwritten.implement.written_sources` tells; "function" takes an
        `autograd.Function` or a callable, and is a decorator without one. Errors name the offending line.
        """
        if rung == "function" and function is None:
            return functools.partial(self.implement, rung)
        self._ladder.put(rung, self._written.implement(rung, function, options))
        self._registered.serve_by(self._written, self._written.laid_out)
        self._serving = self._written
        return function or self

    @functools.cached_property
    def _written(self) -> WrittenServer:
        about = (self._short_name, self._positional, self._signature, self._settings)
        return WrittenServer(*about, self._server, self._transforms.backward, self._fallbacks)

    def _examine_function(self) -> None:
        if self._mutated:
            raise NoKernel("an emitted autograd.Function does not change its arguments")
        if self.samples is not None:
            self.function_source()

    def _kernels(self, backend: Backend) -> Way:
        bound = functools.partial
        serve, look = bound(self._serve_kernels, backend), bound(self._examine_kernels, backend)
        return Way("derived", serve, look, bound(self._count, backend), devices_of(backend, self._settings))

    def _examine_kernels(self, backend: Backend) -> None:
        examine(backend, self._settings)
        if self.samples is not None:
            self.derivation().cuda_sources() if backend == "cuda" else self.derivation()

    def _count(self, backend: Backend) -> int:
        count: int = self._variants.count(backend) + sum(flat._count(backend) for flat in self._flats)
        return count

    def _serve_reference(self, *args: Any, **kwargs: Any) -> Any:
        return self._server.serve_by_reference(self._signature.bind(args, kwargs))

    def _serve_kernels(self, backend: Backend, *args: Any, **kwargs: Any) -> Any:
        result = self.serve(args, kwargs, pinned=True)
        refuse_another(backend, self._server.last_rung)
        return result

    def _serve_function(self, *args: Any, **kwargs: Any) -> Any:
        flat, given = self._flattened(self._signature.bind(args, kwargs))
        result = flat.server.serve_by("function", flat._function, given)
        self._server.last_rung = flat.last_rung
        return result

    # -- reading ---------------------------------------------------------------------------------------------------

    def _derive_function(self, args: Sequence[Any]) -> tuple[str, tuple[Condition, ...], Result]:
        refuse_torn()
        with hold_off_forks():
            from opwright.operators.function_module import derive_function

            specs = describe(self._names, requiring_gradients(args), gradients=True)
            how = (self._short_name, str(place_of(self.reference)))
            module = self._outside.now().tracing(
                self._positional, lambda reference: guarded(reference, lambda: derive_function(reference, specs, *how))
            )
        return module.text, module.guards, module.result

    def __reduce__(self) -> str:
        """An operator is copied and pickled as a function is: by its name."""
        return self.__qualname__  # type: ignore[no-any-return, attr-defined]  # set by update_wrapper

    def __repr__(self) -> str:
        return f"<opwright operator {self.name}>"
