"""What PyTorch asks of an optimizer, around the update of a definition. It needs torch alone, and wheels include it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.optim.optimizer import Optimizer, ParamsT, required

from opwright.binding.environment import is_quiet
from opwright.errors import UpdateRefused
from opwright.optim.definition import STEP, Definition
from opwright.optim.examine import examine
from opwright.optim.factor import factor_of
from opwright.optim.first_values import begin
from opwright.optim.functional import functional
from opwright.optim.hyper import are_same, as_number, by_name, check_hyper, implementation, kept
from opwright.optim.kinds import split_numbers
from opwright.optim.options import Options, Rounding, StateDtype, check_options, refuse_differentiable
from opwright.optim.rounding import seed_of_step
from opwright.optim.serving.buckets import Given
from opwright.optim.serving.entries import Manner
from opwright.optim.serving.kernels import Kernels
from opwright.optim.serving.parts import same_everywhere
from opwright.optim.serving.plan import Plan, refuse_capture
from opwright.optim.serving.skips import Skip, Undecided

_ROUNDING = "rounding"  # in a state_dict: the seed of random rounding, and how often it was used


class SteppingOptimizer(Optimizer):
    """An optimizer whose step is the update of a definition.

    Its states are in `state[param]` under their names, beside `step`. Hyper-parameters are read at every step.
    """

    definition: ClassVar[Definition]
    variants: ClassVar[Kernels]
    _step_supports_amp_scaling = True
    _undecided: Undecided | None = None  # the last step, if it is not known yet whether it changed anything

    if TYPE_CHECKING:
        grad_scale: torch.Tensor | None
        found_inf: torch.Tensor | None

    def __init__(
        self,
        params: ParamsT,
        *given: Any,
        maximize: bool = False,
        max_grad_norm: float | None = None,
        state_dtype: StateDtype = None,
        rounding: Rounding = "nearest",
        master: bool = False,
        free_grads: bool = False,
        **hyper: Any,
    ) -> None:
        """Make an optimizer.

        Args:
            params: Parameters, named parameters or groups, as for every optimizer of PyTorch.
            given: Hyper-parameters by position, in the order of the definition.
            maximize: Whether to go up instead of down.
            max_grad_norm: Scale the gradients of all groups together down to this norm before the step, as
                `torch.nn.utils.clip_grad_norm_` does; the gradients themselves stay as they are.
            state_dtype: In which floating states are kept: a dtype, or one for each name; by default the parameter's.
            rounding: "nearest"; or "stochastic": up or down at random, so that the mean is exact, for parameters and
                states of half types. The default generator of PyTorch gives the seed when the optimizer is made.
            master: Keep a float32 copy of each parameter of a half type, in the state "master", and update that.
            free_grads: Set gradients to None when the step has used them, or was called off.
            hyper: Hyper-parameters of the definition. Those with which torch.optim's optimizer of the same name chooses
                an implementation (`foreach`, `fused`, `capturable`) are taken, and change nothing.

        Raises:
            TypeError: If there is no such hyper-parameter.
            ValueError: If PyTorch would refuse a value.
            UpdateRefused: If the definition is not the update of one parameter.
        """
        definition = self.definition
        chosen = implementation(definition, hyper)
        defaults = {**definition.hyper, **by_name(type(self).__name__, definition, given, hyper)}
        self._check(defaults)
        self._options = Options(max_grad_norm, state_dtype, rounding, master, free_grads)
        check_options(self._options, type(self).__name__, definition.states)
        self._forget()
        super().__init__(params, {**defaults, "maximize": maximize, **chosen})
        self._seed = self._new_seed() if rounding == "stochastic" else 0
        self._drawn = 0
        if definition.early and not master:  # a master is a copy of what the parameter is in the first step
            for group in self.param_groups:
                own = self._hyper_of_first_values(group)
                for param in group["params"]:
                    begin(definition, self._options, param, self.state[param], own)
        shapes = {param.dim(): (group, param) for group in self.param_groups for param in group["params"]}
        for group, param in shapes.values():
            examine(definition, param, self._hyper(group), self.variants.undoing())

    def _check(self, hyper: Mapping[str, Any]) -> None:
        if not self.definition.checks_all:
            check_hyper(hyper)
        if self.definition.check and required not in hyper.values():
            self.definition.check(**hyper)

    def _new_seed(self) -> int:
        params = [param for group in self.param_groups for param in group["params"]]
        return same_everywhere(int(torch.randint(2**62, ())), params)

    def _forget(self) -> None:
        """Look at everything again in the next step."""
        self._plan: Plan | None = None
        self._read: list[tuple[tuple[Any, ...], dict[str, float]]] = []
        self._lengths: list[int] = []
        self._groups: list[int] = []
        self._constants: dict[int, tuple[dict[str, Any], bool]] = {}

    @property
    def state(self) -> Any:
        """The states of parameters, by the parameter."""
        if "state" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no states before it is made")
        self._settle()
        return self.__dict__["state"]

    @state.setter
    def state(self, states: Any) -> None:
        self.__dict__["state"] = states

    # -- the step --------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients.

        Args:
            closure: Computes the loss again and returns it; optional.

        Returns:
            What the closure returns; None without one.

        Raises:
            RuntimeError: If a gradient is sparse, and the definition does not take such.
            CaptureRefused: If a CUDA graph is captured, and parameters are on a GPU.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        advance = torch.compiler.disable(self._advance) if torch.compiler.is_dynamo_compiling() else self._advance
        with torch.no_grad():
            advance()
        if self._options.free_grads:
            for param in (param for group in self.param_groups for param in group["params"]):
                param.grad = None
        return loss

    def _advance(self) -> None:
        if self._plan is not None:
            self._plan.refuse_capture()  # in which nothing can be waited for
        self._settle()
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        most, at_random = self._options.max_grad_norm, self._options.rounding == "stochastic"
        manner = Manner(scale is not None or most is not None, scale is not None, at_random, self.variants.launched)
        quiet = is_quiet()
        state = self.variants.state() if quiet else None
        skip = None if found is None else Skip(found)
        plan = self._plan_that_holds(manner)
        if skip is not None and (plan is None or not plan.decides_later(state)):
            if skip.now():  # before there are states
                self._plan = plan
                return
            skip = None
        plan = self._plan = plan or self._new_plan_of_step(manner)
        if plan is None:
            return
        factor = factor_of(plan.gradients, most, scale)
        self._drawn += 1
        seed = seed_of_step(self._seed, self._drawn) if at_random else 0
        self._undecided = None if skip is None else Undecided(skip.later())
        given = Given(state, [read[1] for read in self._read], seed, factor, skip, self._undecided)
        plan.run(given, quiet=quiet)
        torch.autograd.graph.increment_version(plan.written)
        if self._undecided is not None:
            self._undecided.is_over()

    def _settle(self) -> None:
        """Count the last step only if it changed something: wait for the GPU if that was to decide."""
        last, self._undecided = self._undecided, None
        if last is not None and last.settle():
            self._drawn -= 1

    def _plan_that_holds(self, manner: Manner) -> Plan | None:
        """The plan of the last step; None if it holds no longer."""
        changed = self._read_groups()
        plan = None if changed else self._plan
        if plan is None:
            return None
        if plan.holds_unseen([group["params"] for group in self.param_groups], self.state, manner):
            return plan
        params, gradients, groups = self._with_gradients()
        holds = bool(params) and plan.groups == groups and plan.holds(params, gradients, self.state, manner)
        return plan if holds else None

    def _new_plan_of_step(self, manner: Manner) -> Plan | None:
        """A plan for the parameters that have gradients; None if none has."""
        params, _, groups = self._with_gradients()
        return self._new_plan(params, groups, manner) if params else None

    def _with_gradients(self) -> tuple[list[torch.Tensor], list[torch.Tensor], list[int]]:
        """The parameters that have gradients, these, and the numbers of their groups."""
        params = [param for group in self.param_groups for param in group["params"]]
        gradients = [param.grad for param in params]
        lengths = [len(group["params"]) for group in self.param_groups]
        if lengths != self._lengths:
            self._lengths = lengths
            self._groups = [number for number, length in enumerate(lengths) for _ in range(length)]
        missing = [grad is None for grad in gradients]
        if True not in missing:
            return params, gradients, self._groups  # none is None
        there = [position for position, is_missing in enumerate(missing) if not is_missing]
        found = ([each[position] for position in there] for each in (params, gradients, self._groups))
        return tuple(found)  # type: ignore[return-value]  # as above

    def _read_groups(self) -> bool:
        """Read the hyper-parameters of all groups; returns whether more than numbers has changed."""
        names = (*self.definition.hyper, "maximize")
        read = self._read
        if len(read) != len(self.param_groups):
            read = self._read = [((), {})] * len(self.param_groups)
        changed = False
        for position, group in enumerate(self.param_groups):
            values = tuple([group[name] for name in names])
            before, numbers = read[position]
            if are_same(values, before):
                continue
            hyper = self._hyper(group)
            now, constants = split_numbers(self.definition, hyper)
            changed |= not before or now.keys() != numbers.keys() or self._constants.get(position) != (
                constants, group["maximize"]
            )  # fmt: skip
            changed = changed or (self._plan is not None and self._plan.lacks_states(position, hyper))
            self._constants[position] = constants, group["maximize"]
            read[position] = tuple(map(kept, values)), now
        return changed

    def _hyper(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The hyper-parameters of a group; tensors as numbers."""
        defaults = self.definition.hyper
        return {name: as_number(group[name], defaults[name]) for name in defaults}

    def _hyper_of_first_values(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The hyper-parameters that make the states of a group: its own, or those of the optimizer."""
        known = {name: value for name, value in self.defaults.items() if value is not required}
        return self._hyper({**group, **known} if self.definition.early else group)

    def _new_plan(self, params: list[torch.Tensor], groups: list[int], manner: Manner) -> Plan:
        """Look at parameters with gradients, the groups of each by number; states are made where there are none."""
        refuse_capture(self.definition.name, params)  # before there are states
        hyper = [self._hyper(group) for group in self.param_groups]
        states: list[dict[str, Any]] = [self.state[param] for param in params]
        starting = [self._hyper_of_first_values(group) for group in self.param_groups]
        for param, state, group in zip(params, states, groups, strict=True):
            begin(self.definition, self._options, param, state, starting[group])
        maximize = [bool(group["maximize"]) for group in self.param_groups]
        lists = [group["params"] for group in self.param_groups]
        return Plan(self.definition, self.variants, params, states, groups, hyper, maximize, manner, lists, self.state)

    def share_memory(self) -> None:
        """Move the states that there are to shared memory, for other processes."""
        for state in self.state.values():
            for name in self.definition.states:
                if isinstance(held := state.get(name), torch.Tensor):
                    held.share_memory_()

    # -- the definition --------------------------------------------------------------------------------------------

    @classmethod
    def functional(
        cls,
        params: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor | None],
        states: Sequence[Mapping[str, torch.Tensor]] | None = None,
        step: Any = 1,
        **hyper: Any,
    ) -> tuple[list[torch.Tensor], list[dict[str, torch.Tensor]]]:
        """Return parameters and states after a step, and change nothing; differentiable in everything, in any order.

        Args:
            params: The parameters.
            grads: Their gradients; None leaves a parameter as it is.
            states: For each parameter its states by name; None before the first step.
            step: The number of the step, from 1.
            hyper: Hyper-parameters: numbers, or tensors without dimensions.

        Returns:
            The new parameters, and the new states.
        """
        return functional(cls.definition, params, grads, states, step, cls._defaults(hyper))

    @classmethod
    def _defaults(cls, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """The hyper-parameters of the definition, some of them replaced."""
        return {**cls.definition.hyper, **by_name(cls.__name__, cls.definition, (), hyper)}

    # -- saving and loading ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The states and the groups, as for every optimizer; with the seed of random rounding if there is one."""
        self._settle()
        made = super().state_dict()
        if self._options.rounding == "stochastic":
            made[_ROUNDING] = {"seed": self._seed, "drawn": self._drawn}
        return made

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` gave, also that of the optimizer of the same name in torch.optim.

        States keep the dtypes that they were saved in, and are copied.

        Raises:
            ValueError: If the groups are others.
            RuntimeError: If a state has another shape than here.
        """
        self._settle()
        self._refuse_other_shapes(state_dict)
        super().load_state_dict(state_dict)
        ids = [number for group in state_dict["param_groups"] for number in group["params"]]
        params = [param for group in self.param_groups for param in group["params"]]
        hyper = [self._hyper(group) for group in self.param_groups for _ in group["params"]]
        for number, param, own in zip(ids, params, hyper, strict=True):
            for name, value in (state_dict["state"].get(number) or {}).items():
                if isinstance(value, torch.Tensor):
                    device = self._device_of(name, value, param, own)
                    self.state[param][name] = value.detach().to(device).clone(memory_format=torch.preserve_format)
        if rounding := state_dict.get(_ROUNDING):
            self._seed, self._drawn = rounding["seed"], rounding["drawn"]

    def _device_of(self, name: str, value: torch.Tensor, param: torch.Tensor, hyper: Mapping[str, Any]) -> torch.device:
        """Where a loaded state belongs: beside the parameter; a number, where its first value would be."""
        if name == STEP:
            return torch.device("cpu")
        first = (
            self.definition.start(name, param, hyper) if name in self.definition.starts and not value.dim() else None
        )
        return param.device if first is None else first.device

    def _refuse_other_shapes(self, state_dict: Mapping[str, Any]) -> None:
        ids = [number for group in state_dict["param_groups"] for number in group["params"]]
        params = [param for group in self.param_groups for param in group["params"]]
        for group in self.param_groups if len(ids) == len(params) else ():
            hyper = self._hyper(group)
            for number, param in zip(ids, params, strict=True):
                saved = state_dict["state"].get(number) or {}
                if any(param is own for own in group["params"]):
                    self._refuse_shapes_of(param, saved, hyper)

    def _refuse_shapes_of(self, param: torch.Tensor, saved: Mapping[str, Any], hyper: Mapping[str, Any]) -> None:
        for name in self.definition.states:
            value = saved.get(name)
            if not isinstance(value, torch.Tensor):
                continue
            like = self.state[param].get(name) if param in self.state else None
            own = like if like is not None else self.definition.start(name, param, hyper)
            if own is not None and own.shape != value.shape:
                raise RuntimeError(
                    f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, "
                    f"the shape in current model is {own.shape}."
                )

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        own = {"_options": asdict(self._options), "_seed": self._seed, "_drawn": self._drawn}
        return {**super().__getstate__(), **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` or `load_state_dict` gives."""
        self._undecided = None
        state = dict(state)
        if (options := state.pop("_options", None)) is not None:
            self._options = Options(**options)
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
        self._forget()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with hyper-parameters of its own."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            self._check({name: group[name] for name in self.definition.hyper})
            refuse_differentiable(self.definition, group)
        except (ValueError, TypeError, UpdateRefused):
            self.param_groups.pop()
            raise
        self._forget()
