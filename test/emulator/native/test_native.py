"""Programs over lanes: rows, masks that keep the values of inactive lanes, constants; for a machine of one instruction.
"""
from __future__ import annotations
from array import array

import pytest

from tinyhw.emulator.native import native, threaded
from tinyhw.emulator.native.expressions import HOST, Untranslatable
from tinyhw.emulator.native.native import Lanes, Native, built
from tinyhw.emulator.native.records import Records
from tinyhw.emulator.native.threaded import AT, CONTEXT_BYTES, Exit
from tinyhw.emulator.notation import ValueType, parse
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.ops import UOp

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

LANES, ACTIVE, TRUTH = 32, 0, 1
ROWS = {"D": 8, "A": 40}

class Machine(Lanes):
  """D is row 8, A row 40, K a constant, T a mask in word 1; the active lanes are in word 0."""
  def __init__(self, semantics: str, masked: bool, keep: bool, host: Capabilities):
    super().__init__(parse(semantics), LANES, masked, ACTIVE, host)
    self.keep = keep

  def keeps(self, mask: str) -> bool: return self.keep

  def read(self, name: str, kind: ValueType) -> UOp:
    word = self.word_constant(name, 0) if name == "K" else self.row(name, 0)
    return word.bitcast(self.vector(HOST[kind.name]))

  def chunk(self) -> list[UOp]:
    stores = []
    for assignment in self.semantics:
      value = self.value(assignment.value)
      if assignment.target == "T": self.put_mask("T", value)
      else: stores += [self.row_store("D", i, word) for i, word in enumerate(self.words(value, assignment.type))]
    return stores

def run(function: Native, active: int, a: list[int], constant: int) -> array[int]:
  """Return the state after a record of the function."""
  loop = threaded.engine()
  assert loop is not None
  state, context, records = array("I", [active, 0xffff0000] + [7] * 38 + a + [0]
                                  * 32), array("q", bytes(CONTEXT_BYTES)), Records(loop.functions)
  words = {"row": lambda o: ROWS[o.name] + LANES * o.part, "scalar": lambda o: TRUTH, "constant": lambda o: constant}
  records.add(function.address, function.address, [words[operand.kind](operand) for operand in function.operands])
  records.python()
  records.done()
  context[AT["STATE"]], context[AT["RECORD"]] = state.buffer_info()[0], records.address
  assert loop.run(context.buffer_info()[0]) == Exit.PYTHON
  return state

A = [x * 0x01234567 & 0xffffffff for x in range(LANES)]

@pytest.mark.parametrize("keep", (False, True))
@pytest.mark.parametrize("active", (0xffffffff, 0x0ff0a001))
def test_rows_and_masks(active: int, keep: bool) -> None:
  semantics = "D.u32 = A.u32 + K.u32; T.bool = A.i32 < K.i32"
  function = built(lambda host: Machine(semantics, active != 0xffffffff, keep, host))
  assert function is not None
  state = run(function, active, A, 0x100)
  for lane in range(LANES):
    on = active >> lane & 1
    assert state[8 + lane] == (A[lane] + 0x100 & 0xffffffff if on else 7)
    less = (A[lane] ^ 1 << 31) - (1 << 31) < 0x100
    assert state[TRUTH] >> lane & 1 == (less if on else 0xffff0000 >> lane & 1 if keep else 0)

def levels() -> list[str]:
  """Return the host's level, and AVX2 if the host has more."""
  return sorted({"x86_64:avx2", threaded.level() or "x86_64:avx2"})

@pytest.mark.parametrize("arch", levels())
def test_wide_values_are_two_rows(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """AVX2 has no product of 64 bits. Its lanes are multiplied one by one, without instructions of larger processors."""
  monkeypatch.setattr(native, "level", lambda: arch)
  function = built(lambda host: Machine("D.u64 = u64(A.u32) * u64(A.u32)", False, False, host))
  assert function is not None and [o.part for o in function.operands if o.name == "D"] == [0, 1]
  state = run(function, 0xffffffff, A, 0)
  assert [state[8 + i] | state[40 + i] << 32 for i in range(LANES)] == [x * x for x in A]

def test_what_is_not_plain_stays_python() -> None:
  assert built(lambda host: Machine("D.f32 = rcp(A.f32)", False, False, host)) is None
  with pytest.raises(Untranslatable):
    Machine("D.u32 = A.u32 if A.f32 > sqrt(A.f32) else K.u32", False, False, capabilities("x86_64:avx2")).program()
