"""Python functions from semantics: a function executes an instruction on the registers of a warp.

The text of a function depends only on the semantics and on whether all operands are uniform. Operands are arguments of
its maker: functions of a warp that read a source in all lanes, and sinks. `D.f32 = A.f32 + B.f32` gives this:

    def make(s0, s1, d0):
      def run(warp, mask):
        r0 = [(x0 + x1) for x0, x1 in zip(s0(warp), s1(warp))]
        d0(warp, r0, mask)
      return run

The semantics of uniform instructions have one value and no loop. emulator/python/expressions.py has the values.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.emulator.notation import Assignment, ExpressionNode, ValueType, nodes, parse
from tinyhw.emulator.nvidia.semantics.numerics import environment
from tinyhw.emulator.nvidia.warp.numbers import WORD, signed
from tinyhw.emulator.nvidia.warp.operands import (
  Operands, Sink, Source, constants, put_uniform, put_uniform_predicate)
from tinyhw.emulator.nvidia.warp.state import LANES, Warp
from tinyhw.emulator.python.expressions import Expressions, PythonExpression
from tinyhw.emulator.python.numerics import lane_bits
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

Step = Callable[[Warp, int], None]
# kinds of operands.py, by type
KINDS = {"u32": "u", "i32": "s", "f32": "f", "u64": "q", "i64": "sq", "f64": "d"}
# names of the notation that are parts of a warp's state
STATE = {"LANES": "mask", "FIRST": f"(warp.number * {LANES})", "BLOCK": "warp.block"}
Name = tuple[str, str]     # an operand's name in the notation, and its type

class FunctionMaker(NamedTuple):
  """make(*sources, *sinks) returns the function for warps."""
  make: Callable[..., Step]
  sources: tuple[Name, ...]
  targets: tuple[Name, ...]
  text: str

@once
def compiled(semantics: str, uniform: bool) -> FunctionMaker:
  """Compile the function of semantics. uniform: its operands have one value for all lanes."""
  writer = Writer(semantics, uniform)
  text, names = writer.function(), dict[str, Any]()
  exec(compile(text, f"<{semantics}>", "exec"), environment() | {"__name__": __name__}, names)
  return FunctionMaker(names["make"], tuple(writer.sources), tuple(writer.targets), text)

def step(o: Operands, semantics: str) -> Step:
  """Return the function of an instruction."""
  uniform = any(is_uniform(o, assignment) for assignment in parse(semantics))
  made = compiled(semantics, uniform)
  sources = [source(o, *name) for name in made.sources]
  if uniform: sources = [first(read) for read in sources]
  return made.make(*sources, *[sink(o, *name) for name in made.targets])

def is_uniform(o: Operands, assignment: Assignment) -> bool:
  """Return whether a result is a uniform register, or the whole mask of a predicate."""
  target = o.values.get(o.named(assignment.target))
  if not isinstance(target, Reg): return False
  return target.cls.bank in (regs.UNIFORM, regs.UNIFORM_PREDICATE) or (
    target.cls.bank is regs.PREDICATE and assignment.type.kind != "b")

# ***** text *****

class Writer(Expressions):
  """Writer of one function's text. lines: of a lane; targets: names that are written, and their results."""
  def __init__(self, semantics: str, uniform: bool):
    self.semantics, self.uniform = parse(semantics), uniform
    self.sources: dict[Name, str] = {}
    self.targets: dict[Name, str] = {}
    self.counts = any(n.value == "LANE" for a in self.semantics for n in nodes(a.value))
    self.locals = {}

  def read(self, node: ExpressionNode) -> PythonExpression:
    name, kind = str(node.value), node.type
    if name == "LANE": return PythonExpression("lane", 0, LANES - 1)
    if name in STATE: return PythonExpression(STATE[name], 0, WORD)
    text = self.sources.setdefault((name, kind.name), f"x{len(self.sources)}")
    return PythonExpression(text) if kind.kind == "f" else PythonExpression(text, kind.low, kind.high)

  def function(self) -> str:
    lines: list[str] = []
    for target, kind, value in ((a.target, a.type, a.value) for a in self.semantics):
      if target[0].islower(): lines.append(self.local(target, kind, value))
      else:
        result = self.targets[target, kind.name] = f"r{len(self.targets)}"
        found = self.value(value).text
        lines.append(f"{result} = {found}" if self.uniform else f"if {found}: {result} |= 1 << lane"
                     if kind.kind == "b" else f"{result}.append({found})")
    sources = [f"s{k}" for k in range(len(self.sources))]
    sinks = [f"d{k}" for k in range(len(self.targets))]
    body = [f"{x} = {s}(warp)" for x, s in zip(self.sources.values(), sources)] if self.uniform else []
    body += lines if self.uniform else self.loop(sources, lines)
    body += [f"{sink}(warp, {result}, mask)" for sink, result in zip(sinks, self.targets.values())]
    return "\n".join([f"def make({', '.join(sources + sinks)}):", "  def run(warp, mask):",
                      *(f"    {line}" for line in body), "  return run\n"])

  def local(self, target: str, kind: ValueType, value: ExpressionNode) -> str:
    """Return the line of a value that the semantics name."""
    text = self.exact(value)
    self.locals[target] = PythonExpression(target, kind.low, kind.high)
    return f"{target} = {text}"

  def loop(self, sources: list[str], lines: list[str]) -> list[str]:
    """Return the lines over all lanes. One value for each lane is a list comprehension."""
    reads = [f"{s}(warp)" for s in sources]
    names, values = ", ".join(self.sources.values()), reads[0] if len(reads) == 1 else f"zip({', '.join(reads)})"
    counts = self.counts or not reads or any(line.startswith("if ") for line in lines)
    if counts: head = f"for lane, ({names},) in enumerate(zip({', '.join(reads)}))"
    else: head = f"for {names} in {values}"
    if not reads: head = f"for lane in range({LANES})"
    if len(lines) == 1 and lines[0].startswith("r0.append("): return [f"r0 = [{lines[0][10:-1]} {head}]"]
    results = [f"{result} = {'0' if kind == 'bool' else '[]'}" for (_, kind), result in self.targets.items()]
    return [*results, f"{head}:", *(f"  {line}" for line in lines)]

# ***** operands *****

def first(read: Source) -> Source: return lambda warp: read(warp)[0]

def source(o: Operands, name: str, kind: str) -> Source:
  """Return a source in all lanes, as a type. Floats have their signs."""
  if name == "W": return constant(o, kind)
  operand = o.named(name)
  value = o.values[operand]
  if isinstance(value, Reg) and value.cls.bank in (regs.PREDICATE, regs.UNIFORM_PREDICATE):
    mask = o.mask(operand)
    return (lambda warp: lane_bits(mask(warp), LANES)) if kind == "bool" else lambda warp: [mask(warp)]
  return o.source(operand, KINDS[kind]) if kind[0] == "f" else o.raw(operand, KINDS[kind])

def constant(o: Operands, kind: str) -> Source:
  """Return a number of constant memory."""
  bank, offset, bits = o.number("bank"), o.number("w"), int(kind[1:])
  def read(warp: Warp) -> list[int]:
    found = int.from_bytes(constants(warp, bank, offset, bits // 8), "little")
    return [signed(found, bits) if kind[0] == "i" else found] * LANES
  return read

def sink(o: Operands, name: str, kind: str) -> Sink:
  """Return the sink of a result."""
  operand = o.named(name)
  value: Reg = o.values[operand]
  index, bank = value.index, value.cls.bank
  assert index is not None, "a physical register is expected"
  if bank is regs.UNIFORM: return lambda warp, word, mask: put_uniform(warp, index, word, 2 if kind[1:] == "64" else 1)
  if bank is regs.UNIFORM_PREDICATE: return lambda warp, truth, mask: put_uniform_predicate(warp, index, bool(truth))
  if bank is regs.PREDICATE: return o.sink(operand, "p")
  return o.sink(operand, {"i64": "q", "i32": "u"}.get(kind, KINDS[kind]))
