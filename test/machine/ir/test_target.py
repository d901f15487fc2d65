"""Capabilities answer for scalars and vectors."""
from __future__ import annotations
from generators.invented import cisc

from tinyhw.dtype import dtypes
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops

def test_supports() -> None:
  c = Capabilities(32, 16, frozenset({(Ops.ADD, dtypes.int64)}), frozenset({(Ops.ADD, dtypes.float32)}))
  assert c.supports(Ops.ADD, dtypes.int64) and not c.supports(Ops.ADD,
                                                              dtypes.float32) and not c.supports(Ops.MUL, dtypes.int64)
  assert c.supports(Ops.ADD, dtypes.float32.vec(8)) and c.supports(Ops.ADD, dtypes.float32.vec(4))
  assert not c.supports(Ops.ADD, dtypes.float32.vec(16)) and not c.supports(Ops.ADD, dtypes.int64.vec(2))
  assert hash(c) == hash(Capabilities(32, 16, frozenset({(Ops.ADD, dtypes.int64)}),
                                      frozenset({(Ops.ADD, dtypes.float32)})))

def test_allocatable_may_be_narrowed() -> None:
  target = cisc(15, 16)
  target.allocatable = {"vec": (3, 2, 1)}
  file = registers_of(target)
  assert file.banks[1].limit == 3 and file.banks[1].numbers[:3] == [3, 2, 1] and file.banks[0].limit == 15
