"""What `save=` says: how much the backward pass may keep.

save ::= "auto" | "inputs" | "all" | share | bytes
share ::= a float from 0 to 1, of what "auto" keeps beside the arguments;  bytes ::= an int, or a text such as "64 MiB"
"""

from __future__ import annotations

from opwright.errors import Place, SaveRefused
from opwright.settings import bytes_of

SavePolicy = str | float
WORDS = ("auto", "inputs", "all")


def read_policy(policy: SavePolicy, place: Place | None) -> SavePolicy:
    """The policy as a word, a share (a float) or a number of bytes (an int).

    Args:
        policy: What a user wrote.
        place: Where the operator is defined.

    Raises:
        SaveRefused: If it says nothing of this.
    """
    if policy in WORDS or (type(policy) is float and 0 <= policy <= 1) or (type(policy) is int and policy >= 0):
        return policy
    if isinstance(policy, str) and policy[-1:].isalpha() and (found := bytes_of(policy)) is not None:
        return found
    raise SaveRefused(
        f"save={policy!r} is neither a word nor a budget",
        place=place,
        hint='write "auto", "inputs" or "all"; or, of the bytes that "auto" keeps beside the arguments, a share from '
        '0.0 to 1.0, or the most there may be, such as 65536 or "64 MiB"',
    )
