"""Python source, for the PYTHON device: the results of uop/evaluate/evaluate.py, ten times as fast.

    def kernel(buffers, variables, first, last): ...

buffers: memory with the buffer protocol, by slot. variables: ints by name. first, last: the part of the grid to do. The
source expects the names of tinyhw.arithmetic.

Every value is a local variable, one for each lane. float32 rounds by a store into one element of memory (40 ns) instead
of a call (200 ns). A value that goes only to float32 memory is not rounded at all. Integers wrap unless their bounds
exclude it.
"""
from __future__ import annotations

from tinyhw.codegen.render.dialect import Dialect
from tinyhw.codegen.render.python_numbers import NARROW, expression, literal, needs_rounding, type_name, wrap
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def head(source: SourceText) -> list[str]:
  """Return the lines before the body: the function, memory to round in, and functions that round."""
  return [f"def kernel(buffers, variables, first, last):  # {source.program.name}",
          "  t = memoryview(bytearray(4)).cast('f')", *source.needed.values()]

def compute(source: SourceText, u: UOp) -> None:
  """Define an elementwise operation, lane by lane."""
  if u.op is Ops.BITCAST and u.dtype.count != u.src[0].dtype.count:
    raise CompileError(f"{source.program.name}: no BITCAST between numbers of lanes")
  scalar = u.dtype.scalar()
  texts = [expression(u, list(lane)) for lane in zip(*[source.values[s] for s in u.src])]
  if needs_rounding(u):
    if scalar is dtypes.float32 and u not in source.only_stored: return round_float32(source, u, texts)
    if scalar in NARROW: texts = [f"{rounding(source, scalar)}({x})" for x in texts]
    if dtypes.is_int(scalar): texts = [wrap(x, scalar) for x in texts]
  source.define(u, texts)

def rounding(source: SourceText, dtype: DType) -> str:
  """Return the name of a function that rounds to a narrow float."""
  name = f"round_{ALIASES_BY_TYPE[dtype]}"
  source.needed[name] = f"  {name} = round_to({type_name(dtype)})"
  return name

def round_float32(source: SourceText, u: UOp, texts: list[str]) -> None:
  name = f"v{source.number()}"
  names = [name] if len(texts) == 1 else [f"{name}_{k}" for k in range(len(texts))]
  for n, text in zip(names, texts):
    source.line(f"t[0] = {text}")
    source.line(f"{n} = t[0]")
  source.values[u] = names

PYTHON = Dialect(
  name="device PYTHON", head=head, type=lambda source, dtype: type_name(dtype), literal=literal, compute=compute,
  declaration="{name} = {value}", assignment="{place} = {value}", choice="{value} if {gate} else {other}",
  guard="if {gate}: {statement}", condition="if {gate}:", close="", empty="pass",
  loop="for {name} in range({end}):", loops={AxisType.GLOBAL: "for {name} in range(first, last):"},
  param_name="p{number}", param="{name} = elements(buffers[{position}], {type})",
  variable_name="n{number}", variable="{name} = variables[{index}]",
  local_name="l{number}", local="{name} = [0] * {size}")
render = PYTHON.render
