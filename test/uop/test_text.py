"""Text of graphs and Programs for people, text that parses back, and digests."""
import math
import os
import subprocess
import sys
from enum import Enum
from typing import NamedTuple

import pytest
from generators.program_builder import RandomProgram, add, gather, matmul, pad, softmax, workgroups

from tinyhw.dtype import dtypes
from tinyhw.errors import ParseError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp
from tinyhw.uop.program import Program
from tinyhw.uop.text import digest, line_number, parse, render, show

a, b = UOp.variable("a", 0, 10), UOp.variable("b", 0, 10)

@pytest.mark.parametrize(("u", "text"), [
  (a * 10, "(a*10)"), ((a % 10) * 10 + a // 10, "(((a%10)*10)+(a//10))"), ((a < 3) & (b < a), "((a<3)&(b<a))"),
  ((a < 3).logical_not(), "((a<3)!=True)"),
  ((a < 3).where(a, b), "(a if (a<3) else b)"), (a.maximum(3), "max(a, 3)"), (a.bind(4) + 1, "(a[=4]+1)"),
  (a << 2, "(a<<2)"),
  (a.cast(dtypes.int32), "cast(a, int32)"), (UOp.range(4, 1) + 1, "(r1+1)"),
  (UOp.param(2, dtypes.float32, 8).index(a + 1).load(), "data2[a+1]"),
  (UOp(Ops.GEP, dtypes.int32, (a.cast(dtypes.int32),), 3), "cast(a, int32)[3]"),
  (UOp(Ops.GEP, dtypes.int32.vec(2), (a.cast(dtypes.int32),), 2), "cast(a, int32)[2:4]"),
  (a.cast(dtypes.float32).exp2(), "exp2(cast(a, float32))"), (UOp.const(dtypes.float32, -0.5), "-0.5"),
])
def test_render(u: UOp, text: str) -> None: assert render(u) == text

def test_a_rendered_expression_evaluates_to_itself() -> None:
  u = ((a * 10 + b) // 3) % 7 + (a & 6)
  assert eval(render(u), {"a": a, "b": b}) is u

ARGUMENTS = [None, 0, -5, 1 << 70, True, 1.5, -0.0, math.inf, -math.inf, "x", "it's \"quoted\"\nline", b"\x00\xff", (),
             (1,),
             (1, (2.5, "a"), None), Ops.ADD, (Ops.MAX, (0, 1)), AxisType.GLOBAL, KernelInfo("k"),
             KernelInfo("k", (1, 2), "file.py:3"),
             dtypes.float32.vec(4), frozenset({1, 2}),
             (0, AxisType.LOCAL)]

@pytest.mark.parametrize("arg", ARGUMENTS, ids=repr)
def test_arguments_come_back(arg: object) -> None:
  u = UOp(Ops.NOOP, dtypes.void, (), arg, tag=arg)
  v = parse(show(u))
  assert v is u and repr(v.arg) == repr(arg) and type(v.arg) is type(arg)

@pytest.mark.parametrize("value", [math.nan, -0.0, 0.0, math.inf, 1e-45, 0.1])
def test_float_constants_come_back(value: float) -> None:
  u = UOp.const(dtypes.float32, value)
  assert parse(show(u)) is u

@pytest.mark.parametrize("dtype", dtypes.all + (dtypes.weakint, dtypes.void), ids=str)
def test_types_come_back(dtype: object) -> None:
  for lanes in (1, 2, 8):
    u = UOp(Ops.NOOP, dtype.vec(lanes))
    assert parse(show(u)) is u

def test_the_form_of_a_line() -> None:
  x = UOp.param(0, dtypes.float32, 8)
  u = UOp.sink(x.index(UOp.range(8, 0)).store(UOp.const(dtypes.float32, -0.0)), arg=KernelInfo("k"))
  assert show(u) == """\
u0 = PARAM(float32, arg=(0, 8))
u1 = CONST(weakint, arg=8)
u2 = RANGE(weakint, u1, arg=(0, AxisType.LOOP))
u3 = INDEX(float32, u0, u2)
u4 = CONST(float32, arg=-0.0)
u5 = STORE(void, u3, u4)
u6 = SINK(void, u5, arg=KernelInfo(name='k'))"""

class Kind(Enum):
  FINE = "fine"

class Choice(NamedTuple):
  kind: Kind
  amount: int = 0

def test_classes_are_known_once_they_were_shown() -> None:
  text = "u0 = NOOP(void, arg=(Choice(kind=Kind.FINE, amount=3),))"
  with pytest.raises(ParseError, match="Choice is not known here"): parse(text)
  u = UOp(Ops.NOOP, dtypes.void, (), (Choice(Kind.FINE, 3),))
  assert show(u) == text and parse(text) is u

def test_arguments_that_mention_nodes() -> None:
  u = UOp(Ops.NOOP, dtypes.void, (), (a + 1, 3))
  assert parse(show(u)) is u and "arg=(u2, 3)" in show(u)

@pytest.mark.parametrize("program", [add(), add(16, 4), matmul(4), pad(), gather(), softmax(), workgroups(),
                                     RandomProgram(0, lanes=4).program],
                         ids=lambda p: p.name)
def test_programs_come_back(program: Program) -> None:
  again = parse(show(program))
  assert again.uops == program.uops and show(again) == show(program)
  assert (again.name, again.grid, again.written, again.local_bytes) == (program.name, program.grid, program.written,
                                                                        program.local_bytes)

def test_a_program_with_a_symbolic_grid_and_a_node_that_stands_twice() -> None:
  barrier = UOp(Ops.BARRIER)
  program = Program("p", (a, barrier, barrier), grid=a * 2 + 1)
  again = parse(show(program))
  assert again.uops == program.uops and again.grid is program.grid

def test_deep_graphs() -> None:
  u = a
  for i in range(3000): u = u + (i % 3)
  assert parse(show(u)) is u and len(digest(u)) == 32 and render(u).startswith("((((")

def test_line_number() -> None:
  u = (a + 1) * 2
  assert show(u).split("\n")[line_number(u, a + 1)].startswith("u2 = ADD")
  p = add()
  assert show(p).split("\n")[line_number(p, p.uops[7])].endswith(show(p).split("\n")[7])

def test_digest_tells_graphs_apart() -> None:
  x = UOp.const(dtypes.float32, 0.0)
  graphs = [a + b, b + a, a + 1, (a + 1).cast(dtypes.int32), (a + 1).cast(dtypes.int64), x,
            UOp.const(dtypes.float32, -0.0),
            UOp.const(dtypes.float64, 0.0), UOp.const(dtypes.int32, 0), UOp.const(dtypes.bool, False),
            (a + b).replace(tag="t"), UOp.range(3, 0),
            UOp.range(3, 0, AxisType.REDUCE), UOp(Ops.NOOP, dtypes.void, (), "a"), UOp(Ops.NOOP, dtypes.void, (), a),
            UOp.sink(x, arg=KernelInfo("k")), UOp.sink(x, arg=KernelInfo("l")), add()]
  assert len({digest(u) for u in graphs}) == len(graphs)
  assert (digest(UOp.sink(x, arg=KernelInfo("k", origin="here")))
          == digest(UOp.sink(x, arg=KernelInfo("k", origin=object()))))

def test_digest_is_the_same_in_every_process() -> None:
  code = ("from tinyhw.uop.ops import UOp, KernelInfo; from tinyhw.dtype import dtypes; from tinyhw.uop.text import "
          "digest\n"
          "a = UOp.variable('a', 0, 10); print(digest(UOp.sink((a % 10) * 10 + a // 10, UOp.range(3, 0), "
          "arg=KernelInfo('k', (1, 'x')))).hex())")
  runs = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=os.getcwd(),
                         env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
  assert len(runs) == 1
