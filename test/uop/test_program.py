"""Properties of a Program: offsets of shared arrays, lanes, order of arguments. Programs print and parse."""
from generators.program_builder import Builder, i32, workgroups

from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.text import parse, show

def everything() -> Program:
  b = Builder("everything")
  second, first = b.param(1, i32, 8), b.param(0, dtypes.float32, 8)
  z, a = (b.add(UOp.variable(name, 0, 9, i32)) for name in "za")
  bytes3, doubles = b.local(dtypes.uint8, 3), b.local(dtypes.float64, 9)
  with b.loop(8, AxisType.GLOBAL) as g:
    b.store(bytes3, 0, b.add(g.cast(dtypes.uint8)))
    b.store(doubles, 0, b.add((z + a).cast(dtypes.float64)))
    b.store(first, g, b.add(b.load(doubles, 0).cast(dtypes.float32)))
    b.store(second, g, b.load(bytes3, 0).cast(i32))
  return b.program()

def test_local_arrays_begin_at_multiples_of_64_and_do_not_overlap() -> None:
  program = everything()
  places = sorted((offset, u.arg[1] * u.dtype.itemsize) for u, offset in program.local_offsets.items())
  assert places == [(0, 3), (64, 72)] and program.local_bytes == 64 + 128

def test_arguments_in_order() -> None:
  program = everything()
  assert [p.arg[0] for p in program.params] == [0, 1] and [v.arg[0] for v in program.variables] == ["a", "z"]
  assert program.written == {0, 1} and program.grid == 8

def test_lanes() -> None: assert everything().lanes == 1 and workgroups(2, 4).lanes == 4

def test_text() -> None:
  """docs/design/uop.md: each representation prints and parses."""
  for program in (everything(), workgroups()):
    found = parse(show(program))
    assert isinstance(found, Program) and found.uops == program.uops
    assert (found.name, found.grid, found.written, found.local_bytes) == (program.name, program.grid, program.written,
                                                                          program.local_bytes)

def test_programs_are_told_apart_by_identity() -> None:
  assert everything() != everything() and not any(u.op is Ops.SINK for u in everything().uops)
