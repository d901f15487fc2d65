"""Compare calls that ran the function of a TinyJit, to detect numbers and data that change between them.

Two calls are comparable if their arguments are alike, and the values of their Variables decide the same. Comparable
calls have the same kernels and data. A difference comes from a hidden source: a clock, a file, a counter. If the values
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

Data = tuple[int, str, int]     # elements, type and hash of data that was copied from the host

def data_of(storage: Storage, content: bytes) -> Data: return storage.size, str(storage.dtype), hash(content)

class CallSignature(NamedTuple):
  """The arguments of a call without the values of Variables: the views of its Tensors, and the other arguments."""
  looks: tuple[Any, ...]
  rest: tuple[Rest, ...]

  def is_like(self, other: CallSignature) -> bool: return self.looks == other.looks and same_rest(self.rest, other.rest)

def kind_of_call(given: Arguments) -> CallSignature:
  """Return the Kind of a call. Call it before the function runs, which may write to its arguments."""
  _, tensors, _, rest = given
  return CallSignature(tuple([look_of(t.uop) for t in tensors]), rest)

class Ran(NamedTuple):
  """A call that ran: its arguments, the decisions by values of Variables, the data copied from the host, and its
  kernels."""
  kind: CallSignature
  decisions: Decisions
  data: Counter[Data]
  kernels: list[UOp]

  def difference(self, now: Ran) -> str | None:
    """Return a message if a later call uses another number or other data, with advice; else None."""
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

def comparable(before: Sequence[Ran], kind: CallSignature, values: dict[str, int]) -> Ran | None:
  """Return the last call with arguments of this kind whose decisions hold for these values of Variables."""
  return next((ran for ran in reversed(before) if ran.kind.is_like(kind) and ran.decisions.hold(values)), None)

def shape_of(kernel: UOp) -> tuple[Any, ...]:
  """Return the structure of a kernel: its nodes without the values of constants."""
  order = list(kernel.toposort())
  position = {u: k for k, u in enumerate(order)}
  return tuple([(u.op, u.dtype, None if u.op is Ops.CONST else u.arg, tuple([position[s] for s in u.src]))
                for u in order])
