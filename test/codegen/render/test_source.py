"""The skeleton of source renderers: names, blocks, uses. What it writes is tested with each language."""
import pytest
from generators.program_builder import Builder, add, i32, named, pad, softmax, workgroups

from tinyhw.codegen.render.c import C
from tinyhw.codegen.render.opencl import OPENCL
from tinyhw.codegen.render.pseudo import PSEUDO
from tinyhw.codegen.render.python import PYTHON
from tinyhw.codegen.render.source import LETTERS, RULES, SourceText
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def test_every_kind_of_range_has_a_letter() -> None:
  assert set(LETTERS) == set(AxisType) and len(set(LETTERS.values())) == len(AxisType)

def test_values_have_names_of_their_own() -> None:
  for dialect in (C, OPENCL, PYTHON):
    for program in named():
      if len(set(program.uops)) < len(program.uops): continue   # made by hand: codegen's have each uop once
      source = SourceText(program, dialect)
      source.text()
      made = [name for u, texts in source.values.items() for name in texts
              if u.op not in (Ops.CONST, Ops.ASSIGN_ACC, *MOVES)]
      assert len(made) == len(set(made)), program.name

MOVES = (Ops.BROADCAST, Ops.VECTORIZE, Ops.GEP, Ops.SHUFFLE)   # without vectors they are other texts

def test_blocks_and_uses() -> None:
  program = softmax()
  source = SourceText(program, PYTHON)
  home, used = source.blocks
  loads = [u for u in program.uops if u.op is Ops.LOAD]
  assert len({home[u] for u in loads}) == 3 and all(used[u] == home[u] for u in loads)
  stored = [u.src[1] for u in program.uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM]
  assert source.only_stored == set(stored) and all(source.uses[u] == 1 for u in stored)

def test_a_gate_of_lanes_is_asked_lane_by_lane() -> None:
  assert OPENCL.render(pad()).count(" ? data1[") == 4 and PYTHON.render(pad()).count(" else (-1.0)") == 4
  assert PSEUDO.render(pad()).count(" else -1") == 1

def test_operations_without_a_rule_are_refused_by_name() -> None:
  b = Builder("waits")
  b.uops.append(UOp(Ops.WAIT, dtypes.void, (), 0))
  for dialect in (C, OPENCL, PYTHON):
    with pytest.raises(CompileError, match=f"waits: {dialect.name} has no WAIT; compile without .*matrix units"):
      dialect.render(b.program())
  assert "wait until 0 left" in PSEUDO.render(b.program()) and Ops.WAIT not in RULES

def test_lanes_of_a_workgroup_are_refused_without_them() -> None:
  for dialect in (C, PYTHON):
    with pytest.raises(CompileError, match=f"workgroups: {dialect.name} has no BARRIER; compile without workgroups"):
      dialect.render(workgroups())

def test_variables_that_change_are_copied_when_they_are_moved() -> None:
  b = Builder("moved")
  out = b.param(0, i32, 2)
  acc = b.accumulator(b.const(i32, 1))
  pair = b.add(UOp(Ops.BROADCAST, i32.vec(2), (acc,)))
  b.assign(acc, acc + 1)
  b.store(out, 0, pair)
  text = PYTHON.render(b.program())
  memory = bytearray(8)
  from tinyhw import arithmetic
  namespace = dict(vars(arithmetic))
  exec(text, namespace)
  namespace["kernel"]([memory], (), 0, 1)
  assert memoryview(memory).cast("i").tolist() == [1, 1] and add().name == "add_16_1"
