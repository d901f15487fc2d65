"""Calls that ran the function of a TinyJit: what one did is compared with what the next does, to see numbers and data
that change.

Two calls are comparable if their arguments are alike and the values of their Variables decide the same. They then have
the same kernels and data. A difference comes from where nobody can see it: a clock, a file, a counter. Where the values
decide otherwise, a difference is expected.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tinyhw.capture.structure import Arguments, Rest, same_rest
from tinyhw.capture.views import look_of
from tinyhw.engine.memory.buffers import Storage
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.decide import Decisions
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Data = tuple[int, str, int]     # elements, type and hash of what was copied from the host

def data_of(storage: Storage, content: bytes) -> Data: return storage.size, str(storage.dtype), hash(content)

class Kind(NamedTuple):
  """What the arguments of a call are, but for the values of Variables: how it looks at Tensors, and the rest."""
  looks: tuple[Any, ...]
  rest: tuple[Rest, ...]

  def is_like(self, other: Kind) -> bool: return self.looks == other.looks and same_rest(self.rest, other.rest)

def kind_of_call(given: Arguments) -> Kind:
  """Taken before the call, which may write to its arguments."""
  _, tensors, _, rest = given
  return Kind(tuple([look_of(t.uop) for t in tensors]), rest)

class Ran(NamedTuple):
  """A call that ran: its arguments, what the values of Variables decided, what it copied from the host, and its
  kernels."""
  kind: Kind
  decisions: Decisions
  data: Counter[Data]
  kernels: list[UOp]

  def difference(self, now: Ran) -> str | None:
    """What a later call does with another number or other data, and what to do about that; None if there is nothing of
    it."""
    for size, dtype, _ in now.data - self.data:
      return (f"the function makes a Tensor of {size} elements of {dtype} from data that were others in the call "
              f"before, and replays "
              "would use these again; pass it as an argument")
    known = set(self.kernels)
    gone = {shape_of(u): u for u in known - set(now.kernels)}
    for u in now.kernels:
      old = None if u in known else gone.get(shape_of(u))
      if old is None: continue
      a, b = next((a.arg, b.arg) for a, b in zip(old.toposort(), u.toposort()) if a is not b and a.op is Ops.CONST)
      return (f"the function computes with {b} where it computed with {a} in the call before, and replays would "
              f"compute with {b} again; "
              "pass the number as an argument, or keep it in a Tensor")
    return None

def comparable(before: Sequence[Ran], kind: Kind, values: dict[str, int]) -> Ran | None:
  """The last of calls that had arguments of this kind, and that decided as one with these values of Variables does."""
  return next((ran for ran in reversed(before) if ran.kind.is_like(kind) and ran.decisions.hold(values)), None)

def shape_of(kernel: UOp) -> tuple[Any, ...]:
  """What a kernel does with any numbers: its nodes without the values of constants."""
  order = list(kernel.toposort())
  position = {u: k for k, u in enumerate(order)}
  return tuple([(u.op, u.dtype, None if u.op is Ops.CONST else u.arg, tuple([position[s] for s in u.src]))
                for u in order])
