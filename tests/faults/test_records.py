"""Records that are cut short, altered, or of another kind altogether: none is believed, and none does harm."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.binding.variants.variant import Plan
from opwright.settings import Settings
from opwright.toolchain.storage.records import RecordStore, canonical_json, digest
from tests.faults.injection import sample
from tests.faults.trial import Subject, problems

pytestmark = pytest.mark.falls_back


def kept(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(x, -1) * torch.sigmoid(y).sum(0)


def results(function: Any) -> list[Tensor]:
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    z = function(x, torch.full((3, 4), 0.5))
    return [z.detach(), *torch.autograd.grad(z.square().sum(), x)]


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    settings = Settings(tmp_path_factory.mktemp("records") / "cache", os.environ["CXX"], tape="off")
    made = Subject(kept, lambda: Operator(kept, settings=settings, identity=lambda _: "kept"), results)
    results(made.make())
    return made


@pytest.fixture(scope="module")
def record(subject: Subject) -> Path:
    (path,) = (subject.make()._settings.cache_directory / "records" / "plans").iterdir()
    return path


@contextlib.contextmanager
def holding(path: Path, content: bytes) -> Iterator[None]:
    """The record, with another content; afterwards it is what it was, and the only one."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        for other in path.parent.iterdir():
            other.unlink()
        path.write_bytes(before)


@pytest.mark.parametrize("step", [257, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_record_cut_at_any_byte_reads_as_absent(step, record):
    store, whole = RecordStore(Settings(record.parents[2])), record.read_bytes()
    assert store.read("plans", record.stem) is not None
    for length in range(0, len(whole), step):
        with holding(record, whole[:length]):
            assert store.read("plans", record.stem) is None, length
    print(f"{len(range(0, len(whole), step))} records cut short")


def altered(whole: bytes) -> Iterator[bytes]:
    chooser = random.Random(7)
    yield from (b"", b"null", b"[]", b"{}", b'{"record": 1}', b"\xff\xfe", b"[" * 100_000, bytes(1000), whole * 2)
    for _ in range(12):
        yield whole[: chooser.randrange(len(whole))]
    for _ in range(12):
        place = chooser.randrange(len(whole))
        yield whole[:place] + bytes([whole[place] ^ (1 << chooser.randrange(8))]) + whole[place + 1 :]


@pytest.mark.parametrize("count", [8, pytest.param(None, marks=pytest.mark.nightly)])
def test_an_altered_record_is_made_again(count, subject, record):
    found = []
    for content in sample(list(altered(record.read_bytes())), count, seed=1):
        with holding(record, content):
            found += [f"{content[:40]!r}: {problem}" for problem in problems(subject, contextlib.nullcontext)]
    assert not found, "\n".join(found)


WRONG = (None, "x", -1.5, [], {}, [None], [["x", "y"]], True)


def of_other_kinds(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The record with another kind of value at each place, and without each entry."""
    for place in places(record):
        for wrong in (*WRONG, KeyError):
            other = copy.deepcopy(record)
            inside: Any = other
            for step in place[:-1]:
                inside = inside[step]
            if wrong is KeyError:
                del inside[place[-1]]
            else:
                inside[place[-1]] = wrong
            if not is_a_plan(other):
                yield f"{'.'.join(map(str, place))} = {wrong}", other


def is_a_plan(record: dict[str, Any]) -> bool:
    """Whether all in it is of the right kind; what it says is what the digest vouches for."""
    try:
        Plan.from_record(record)
    except Exception:
        return False
    return True


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield (*way, step)
        yield from places(member, (*way, step))


@pytest.mark.parametrize("count", [6, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_record_of_another_kind_does_no_harm(count, subject, record):
    """One that is intact, and was written by another opwright under the same name."""
    plan = json.loads(record.read_bytes())["record"]
    chosen, found = sample(list(of_other_kinds(plan)), count, seed=3), []
    for what, other in chosen:
        content = canonical_json({"record": other, "sha256": digest(canonical_json(other))}).encode()
        with holding(record, content):
            found += [f"{what}: {problem}" for problem in problems(subject, contextlib.nullcontext)]
    assert not found, f"{len(found)} problems after {len(chosen)} records:\n" + "\n".join(found)
    print(f"{len(chosen)} records of another kind")


def test_what_was_written_is_read(record):
    plan = json.loads(record.read_bytes())["record"]
    assert is_a_plan(plan)
    assert len(list(of_other_kinds(plan))) > 0.8 * (len(WRONG) + 1) * len(list(places(plan)))
    assert json.loads(json.dumps(Plan.from_record(plan).to_record())) == plan
