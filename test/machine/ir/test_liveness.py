"""Liveness, loops and last uses, against a slow search over paths."""
from __future__ import annotations
import pytest
from generators.invented import Build, cisc, lanes, matmul_loop, random_function

from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.liveness import Flow, Liveness, bits, first_jump, jumps_of
from tinyhw.machine.ir.registers import registers_of

def live_in_slowly(function: Function) -> dict[str, set[int]]:
  """For each block, values that some path from its start reads before it writes them. Arguments count for parameters
  that are live."""
  live: dict[str, set[int]] = {repr(b): set() for b in function.blocks}
  starts: dict[str, set[int]] = {repr(b): set() for b in function.blocks}
  changed = True
  while changed:
    changed = False
    for b in function.blocks:
      now: set[int] = set()
      for _, _, s, arguments in jumps_of(b):
        now |= live[repr(s)] | {a.id for p, a in zip(s.params, arguments) if p.id in starts[repr(s)]}
      for inst in reversed(b.insts):
        now -= {r.id for r in inst.writes()}
        passed = [r for values in inst.arguments for r in values]
        now |= {r.id for r in list(inst.reads())[:len(list(inst.reads())) - len(passed)]}
      outside = now - {p.id for p in b.params}
      if now != starts[repr(b)] or outside != live[repr(b)]: changed = True
      starts[repr(b)], live[repr(b)] = now, outside
  return live

@pytest.mark.parametrize("seed", range(12))
def test_live_in_is_what_paths_read(seed: int) -> None:
  target = lanes() if seed % 2 else cisc()
  function = random_function(target, seed, 8, 60)
  liveness, slow = Liveness(function, registers_of(target)), live_in_slowly(function)
  for b, block in enumerate(liveness.flow.blocks): assert set(bits(liveness.live_in[b])) == slow[repr(block)]
  assert liveness.live_in[0] == 0

def test_last_uses_and_dead_writes() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64")
  b.emit("lea", z := b.new("r64"), x, y, 0)
  b.emit("lea", b.new("r64"), z, y, 0)
  b.emit("lea", w := b.new("r64"), z, y, 0)
  b.emit("ret", w)
  lines = Liveness(b.function, registers_of(b.target)).code[0]
  assert [sorted(line.ends) for line in lines] == [[x.id], [], sorted([y.id, z.id]), [w.id]]
  assert [len(line.dead) for line in lines] == [0, 1, 0, 0]

def test_peak_is_what_values_have_at_once() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64")
  b.emit("lea", z := b.new("r64"), x, y, 0)
  b.emit("lea", b.new("r64"), z, x, 0)
  b.emit("lea", w := b.new("r64"), z, y, 0)
  b.emit("ret", w)
  liveness = Liveness(b.function, registers_of(b.target))
  gpr = registers_of(b.target).views[x.cls].bank
  assert liveness.peak(gpr) == 3, "z, y and a value that nobody reads"
  assert liveness.peak(registers_of(b.target).views[b.new("v").cls].bank) == 0

def test_loops_nest() -> None:
  target = cisc()
  b = Build(target)
  x = b.params("r64")[0]
  blocks = [b.at] + [b.block(n) for n in ("outer", "inner", "latch", "done")]
  def jump(source: int, *goals: int) -> None:
    b.at = blocks[source]
    if len(goals) == 2:
      b.emit("cmp", x, x)
      b.emit("jl", blocks[goals[0]], arguments=([],))
    b.emit("jmp", blocks[goals[-1]], arguments=([],))
  jump(0, 1)
  jump(1, 2)
  jump(2, 2, 3)
  jump(3, 1, 4)
  b.at = blocks[4]
  b.emit("ret", x)
  flow = Flow(b.function)
  assert [str(block) for block in flow.blocks] == [".entry0", ".outer1", ".inner2", ".latch3", ".done4"]
  assert flow.depth == [0, 1, 2, 1, 0] and flow.loop == [-1, 1, 2, 1, -1] and flow.parent[2] == 1
  assert list(flow.loops_of(2)) == [2, 1] and flow.inside(3, 1) and not flow.inside(3, 2)
  assert first_jump(blocks[2]) == 1 and first_jump(blocks[4]) == 1

def test_pressure_is_over_only_where_it_is() -> None:
  for vectors, over in ((15, False), (14, True)):
    target = cisc(10, vectors)
    assert any(Liveness(matmul_loop(target, 12, 2), registers_of(target)).over) == over

def test_argument_of_a_dead_parameter_is_dead() -> None:
  b = Build(cisc())
  x, y = b.params("r64", "r64")
  entry, following = b.at, b.block("next", 0, ("r64", "r64"))
  b.emit("ret", following.params[0])
  b.at = entry
  b.emit("jmp", following, arguments=([x, y],))
  liveness = Liveness(b.function, registers_of(b.target))
  assert set(bits(liveness.live_out[0])) == {x.id}
