"""Pseudo-code to read, for DEBUG=4.

Expressions are nested where a value is used once. Loops are named by their kind, vectors have their number of lanes,
gates are written out.
"""
from __future__ import annotations

from tinyhw.codegen.render.dialect import Dialect, VectorSyntax
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.helpers import strip_parens
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.text import SYMBOLS

MOST_COLUMNS = 100  # a longer expression gets a name

def type_name(dtype: DType) -> str:
  """`f32`, `i64`, `f32x8`."""
  short = ALIASES_BY_TYPE[dtype.scalar()].replace("uint", "u").replace("bfloat",
                                                                       "bf").replace("float", "f").replace("int", "i")
  return short if dtype.count == 1 else f"{short}x{dtype.count}"

def head(source: SourceText) -> list[str]:
  """Return the line with the name and the arguments."""
  program = source.program
  arguments = [f"{source.value(p)}: {type_name(p.dtype)}[{p.arg[1]}]{'' if p.arg[0] in program.written else ' const'}"
               for p in program.params]
  arguments += [f"{v.arg[0]}: {v.arg[1]}..{v.arg[2]}" for v in program.variables]
  return [f"kernel {program.name}({', '.join(arguments)}):"]

def literal(u: UOp) -> str:
  return f"{u.arg:.9g}" if dtypes.is_float(u.dtype) and u.dtype.scalar() is not dtypes.float64 else str(u.arg)

def constant(source: SourceText, u: UOp) -> None: source.values[u] = [literal(u)]

def nest(source: SourceText, u: UOp, texts: list[str]) -> None:
  """Nest the expression where it is used, or give it a name.

  It gets a name if it is used more than once, used in another block, long, or if the time of its computation matters.
  """
  text, (home, used) = texts[0], source.blocks
  if u.op is Ops.LOAD:
    buffer = u.src[0].src[0]
    keep = buffer.arg[0] in source.program.written or buffer.op is Ops.DEFINE_LOCAL
  else: keep = u.op not in GroupOp.Elementwise and any(s.op is Ops.ACC for s in u.src)
  if not keep and source.uses[u] == 1 and used[u] == home[u] and len(text) <= MOST_COLUMNS:
    source.values[u] = [text]
    return
  number = source.number()
  source.values[u] = [f"x{number}" if u.dtype.count == 1 else f"v{u.dtype.count}_{number}"]
  source.line(f"{source.value(u)} = {strip_parens(text)}")

def operation(source: SourceText, u: UOp) -> None:
  x = [source.value(s) for s in u.src]
  if u.op in SYMBOLS: text = f"({x[0]} {SYMBOLS[u.op]} {x[1]})"
  elif u.op is Ops.WHERE: text = f"({x[1]} if {strip_parens(x[0])} else {x[2]})"
  elif u.op is Ops.MULACC: text = f"fma({', '.join(map(strip_parens, x))})"
  elif u.op is Ops.CAST: text = f"{type_name(u.dtype)}({strip_parens(x[0])})"
  elif u.op is Ops.BITCAST: text = f"bits_as_{type_name(u.dtype)}({strip_parens(x[0])})"
  elif u.op is Ops.BROADCAST:
    text = x[0] if u.src[0].op is Ops.CONST else f"{type_name(u.dtype)}({strip_parens(x[0])})"
  elif u.op is Ops.VECTORIZE: text = f"[{', '.join(map(strip_parens, x))}]"
  elif u.op is Ops.GEP: text = f"{x[0]}.{u.arg}" if u.dtype.count == 1 else f"{x[0]}[{u.arg}:{u.arg + u.dtype.count}]"
  elif u.op is Ops.SHUFFLE: text = f"lanes{u.arg} of {', '.join(map(strip_parens, x))}"
  else: text = f"{u.op.name.lower()}({', '.join(map(strip_parens, x))}{f', {u.arg}' if u.arg is not None else ''})"
  nest(source, u, [text])

def element(source: SourceText, place: UOp, lanes: int) -> str:
  """Return an element, or this many from it on: `data0[i:+8]`."""
  text = source.value(place)
  return text if lanes == 1 or place.src[1].dtype.count > 1 else f"{text[:-1]}:+{lanes}]"

def index(source: SourceText, u: UOp) -> None:
  source.index(u)
  source.values[u] = [f"{source.value(u.src[0])}[{source.bare(u.src[1])}]"]

def accumulator(source: SourceText, u: UOp) -> None:
  number, lanes = source.number(), f".{u.dtype.count}" if u.dtype.count > 1 else ""
  source.values[u] = [f"acc{u.arg}" if isinstance(u.arg, int) else f"acc{number}"]
  source.line(f"{source.value(u)}{lanes} = {source.bare(u.src[0])}")

# ***** asynchronous copies *****

def async_copy(source: SourceText, u: UOp) -> None:
  origin = source.value(u.src[1]) if u.src[1].op is Ops.TENSOR_BOX else element(source, u.src[1], u.arg)
  source.statement(f"{element(source, u.src[0], u.arg)} <- {origin}", u.src[2] if len(u.src) > 2 else None)

def box(source: SourceText, u: UOp) -> None:
  sizes, first = "x".join(map(str, u.arg.sizes)), ", ".join(source.bare(s) for s in u.src[1:])
  source.values[u] = [f"box {sizes} of {source.value(u.src[0])} at ({first})"]

def signals(source: SourceText, u: UOp) -> None:
  source.line(f"signals {source.value(u.src[0])}{' end' if u.arg else ''}")

def commit(source: SourceText, u: UOp) -> None:
  source.statement(f"commit to {source.value(u.src[0])}" if u.src else "commit", u.src[1] if len(u.src) > 1 else None)

def wait(source: SourceText, u: UOp) -> None:
  phase = f" for phase {source.bare(u.src[1])} of {source.value(u.src[0])}," if u.src else ""
  source.line(f"wait{phase} until {u.arg if isinstance(u.arg, int) else ' and '.join(map(str, u.arg))} left")

VECTORS = VectorSyntax(
  lane=lambda dtype, value, k: f"{value}.{k}", join=lambda source, dtype, lanes: f"[{', '.join(lanes)}]",
  is_whole=lambda dtype, indices, gates: True,
  load=lambda source, place, dtype: element(source, place, dtype.count),
  store=lambda source, place, value: f"{element(source, place, value.dtype.count)} = {source.bare(value)}",
  choice="({value} if {gate} else {other})")

PSEUDO = Dialect(
  name="pseudo-code", head=head, type=lambda source, dtype: type_name(dtype), literal=literal, compute=operation,
  others=operation, define=nest, vectors=VECTORS, bare=strip_parens,
  declaration="{name} = {value}", assignment="{place} = {value}", choice="({value} if {gate} else {other})",
  guard="if {gate}: {statement}", condition="if {gate}:", close="", tail=(), barrier="barrier",
  loop="for {name} in range({end}):", loop_name="{letter}{id}",
  loops={AxisType.GLOBAL: "for {name} in grid({end}):", AxisType.LOCAL: "for {name} in lanes({end}):"},
  param_name="data{slot}", param="", variable_name="{word}", variable="",
  local_name="local{id}", local="{name} = {type}[{size}]",
  rules={Ops.CONST: constant, Ops.INDEX: index, Ops.ACC: accumulator, Ops.ASYNC_COPY: async_copy, Ops.COMMIT: commit,
         Ops.WAIT: wait, Ops.TENSOR_BOX: box, Ops.SIGNALS: signals,
         **dict.fromkeys((Ops.BROADCAST, Ops.VECTORIZE, Ops.GEP, Ops.SHUFFLE, Ops.EXCHANGE), operation)})
render = PSEUDO.render
