"""Python functions from semantics: a function executes an instruction on the registers of a wave.

The text of a function depends only on its `InstructionShape` (shapes.py). Register numbers and constants are arguments
of its maker. So instructions that differ only in these share one compilation. `D.f32 = S0.f32 + S1.f32` on vector
registers gives this:

    def make(S0, S1, D):
      def run(w):                             # a wave: state.Wave
        s = w.s
        D_f0 = w.f[D]                         # rows of lanes, as float32
        XS0F0 = w.f[S0]
        XS1F0 = w.f[S1]
        if w.full:                            # all lanes at once: for one assignment of a plain 32-bit value or a mask
          w.f[D][:] = array('f', [(xs0f0 + xs1f0) for xs0f0, xs1f0 in zip(XS0F0.tolist(),XS1F0.tolist())])
          return
        for l in w.active:                    # else one by one
          xs0f0 = XS0F0[l]
          xs1f0 = XS1F0[l]
          D_f0[l] = (xs0f0 + xs1f0)
      return run

A function of scalars has no lanes and no loop. emulator/python/expressions.py has the values, operands.py the
reads, and this file the writes and the frame.
"""
from __future__ import annotations
from array import array
from collections.abc import Callable
from itertools import compress
from typing import Any

from tinyhw.emulator.amd.semantics import numerics
from tinyhw.emulator.python.expressions import PythonExpression
from tinyhw.emulator.amd.python.operands import VIEW, Operands, plus
from tinyhw.emulator.amd.python.shapes import Evaluation, InstructionShape, ResultForm
from tinyhw.emulator.notation import Assignment, ExpressionNode, NotationError, ValueType, parse
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

class FunctionMaker(NamedTuple):
  """make(*arguments) returns the function for waves. A parameter is the name of an operand. Its argument is a register
  number, or a constant (operands.constant_argument)."""
  make: Callable[..., Callable[[Any], None]]
  parameters: tuple[str, ...]
  text: str

@once
def compiled(shape: InstructionShape) -> FunctionMaker:
  """Compile the function of a shape."""
  writer = Writer(shape)
  text = writer.function()
  names: dict[str, Any] = {}
  exec(compile(text, f"<{shape.semantics}>", "exec"), environment(shape.fnuz), names)
  return FunctionMaker(names["make"], tuple(writer.parameters), text)

@once
def environment(fnuz: bool) -> dict[str, Any]:
  """Return the globals of generated functions."""
  return numerics.environment(fnuz) | {"array": array, "compress": compress, "BITS": tuple(1 << i for i in range(64)),
                                       "__name__": __name__}  # marks them as not a user's

_CODE = {"u32": "I", "i32": "i", "f32": "f"}   # of an array
_ENCODE = {"f16": "encode_float16", "bf16": "encode_bfloat16", "f32": "bits_of_float32", "f64": "bits_of_float64"}

class Writer(Operands):
  """Writer of one function's text. after: lines that are executed once, after all lanes."""
  def __init__(self, shape: InstructionShape):
    super().__init__(shape)
    self.semantics = parse(shape.semantics)
    self.after: list[str] = []

  def function(self) -> str:
    """Return the text. Raises NotationError for semantics that an instruction of this shape cannot have."""
    quick = self.all_at_once() if self.shape.lanes else []
    for number, part in enumerate(self.shape.passes):
      self.begin(part)
      for assignment in self.semantics: self.assign(assignment, f"{number}" if number else "")
    lines = [*self.before]
    if self.shape.lanes:
      lines += [f"{name.upper()} = {storage}" for name, storage in self.streams.items()]
      lines += quick
      lines.append("for l in lanes:" if self.shape.permuted else "for l in w.active:")
      lines += [f"  {name} = {name.upper()}[l]" for name in self.streams]
      lines += [f"  {line}" for line in self.inside] or ["  pass"]
    else: lines += self.inside
    if self.shape.permuted: lines.insert(0, f"lanes, moves = w.permutation({self.parameter('MOVES')})")
    body = "\n".join(f"    {line}" for line in (*lines, *self.after)) or "    pass"
    return f"def make({', '.join(self.parameters)}):\n  def run(w):\n    s = w.s\n{body}\n  return run\n"

  def begin(self, part: Evaluation) -> None:
    """Begin a pass."""
    self.sources, self.targets, self.reads, self.locals = dict(part.sources), dict(part.targets), {}, {}

  # ***** all lanes at once *****

  def all_at_once(self) -> list[str]:
    """Return the lines for a wave whose lanes are all active, if the semantics are one assignment of a whole register
    or of a lane mask. Else return no lines."""
    if len(self.semantics) != 1 or len(self.shape.passes) != 1 or self.shape.permuted: return []
    target, kind, value = self.semantics[0].target, self.semantics[0].type, self.semantics[0].value
    self.begin(self.shape.passes[0])
    mask = target == "CARRY"
    if not mask and (self.targets.get(target) != ResultForm("v") or kind.name not in VIEW): return []
    self.inline = True
    wide = self.unrounded_fma(value) if kind.name == "f32" else None
    result = self.exact(value) if mask else self.result(value, kind, rounding=False).text
    streams, self.streams, self.inline = self.streams, {}, False
    if not streams: return []
    lists = [name.upper() if storage.startswith(("lane_bits", "range")) else f"{name.upper()}.tolist()"
             for name, storage in streams.items()]
    each = f"for {', '.join(streams)} in {lists[0] if len(lists) == 1 else f'zip({chr(44).join(lists)})'}"
    if mask: return ["if w.full:", f"  w.set_mask(CARRY, sum(compress(BITS, [{result} {each}])))", "  return"]
    stored = f"w.{VIEW[kind.name]}[{target}][:] = array('{_CODE[kind.name]}', "
    if wide is None: return ["if w.full:", f"  {stored}[{result} {each}])", "  return"]
    reads = [f"    {name} = {name.upper()}[l]" for name in streams]
    return ["if w.full:", f"  sums = [{wide} {each}]", "  for l in doubtful(sums):", *reads, f"    sums[l] = {result}",
            f"  {stored}sums)",
            "  return"]

  def unrounded_fma(self, value: ExpressionNode) -> str | None:
    """Return a fused multiply-add of float32 as two operations on doubles, if the semantics are just that. `doubtful`
    finds the lanes where the result may be wrong."""
    if value.op != "call" or value.value != "fma" or self.shape.omod or self.shape.clamp or self.shape.flush32:
      return None
    a, b, c = (self.exact(argument) for argument in value.args)
    return f"{a} * {b} + {c}"

  # ***** results *****

  def assign(self, assignment: Assignment, suffix: str) -> None:
    """Write one assignment of the semantics. suffix: distinguishes local values of passes."""
    target, kind, value = assignment.target, assignment.type, assignment.value
    if target == "CARRY" and self.shape.lanes: self.assign_carry(value)
    elif target == "SCC": self.after.append(f"w.scc = 1 if {self.exact(value)} else 0")
    elif target == "PC": self.after.append(f"w.pc = {self.exact(value)}")
    elif target == "EXEC": self.after.append(f"w.set_exec({self.exact(value)})")
    elif target in self.targets: self.write(target, self.targets[target], kind, value)
    elif target.startswith("D"): raise NotationError(f"{target} is no operand of this instruction")
    else: self.assign_local(target, f"t_{target}{suffix}", kind, value)

  def assign_carry(self, value: ExpressionNode) -> None:
    """Write this lane's bit of the result mask."""
    self.parameter("CARRY")
    if "mask_out = 0" not in self.before:
      self.before.append("mask_out = 0")
      self.after.append("w.set_mask(CARRY, mask_out)")
    self.inside.append(f"if {self.exact(value)}: mask_out |= 1 << l")

  def assign_local(self, target: str, name: str, kind: ValueType, value: ExpressionNode) -> None:
    """Write a value that the semantics name."""
    self.inside.append(f"{name} = {self.exact(value)}")
    found = self.value(value)
    low, high = (0, 1) if kind.kind == "b" else (kind.low, kind.high)
    within = low <= found.low and found.high <= high
    self.locals[target] = PythonExpression(name, found.low if within else low, found.high if within else high)

  def result(self, value: ExpressionNode, kind: ValueType, rounding: bool = True) -> PythonExpression:
    """Return the value as it is written: modified, rounded, with denormals flushed as the mode says.

    Without `rounding`, the store rounds a float32.
    """
    found, flushes = self.value(value), self.shape.flushes(kind)
    if kind.kind == "f":
      if not (rounding or self.shape.omod or self.shape.clamp or flushes): return found
      text = self.rounded(found, kind)
      if self.shape.omod:
        text = self.rounded(PythonExpression(f"({text} * {2.0 ** self.shape.omod})", rounded=False), kind)
      if self.shape.clamp: text = f"clamp_float({text})"
      return PythonExpression(f"flush_{kind.name}({text})" if flushes else text)
    if self.shape.clamp:
      return PythonExpression(f"min(max({found.text}, {kind.low}), {kind.high})", max(found.low, kind.low),
                              min(found.high, kind.high))
    return PythonExpression(self.wrapped(found, kind), kind.low, kind.high)

  def write(self, target: str, form: ResultForm, kind: ValueType, value: ExpressionNode) -> None:
    """Write a result to its register."""
    if form.kind == "none": return
    self.parameter(target)
    if form.kind == "v" and kind.name in VIEW and not form.width:
      name = f"{target}_{VIEW[kind.name]}{form.dword}"
      self.once(f"{name} = w.{VIEW[kind.name]}[{target}{plus(form.dword)}]")
      self.inside.append(f"{name}[l] = {self.result(value, kind, rounding=False).text}")
      return
    bits = self.bits_of(self.result(value, kind).text, kind)
    if form.kind == "s": self.write_scalar(target, form, kind, bits)
    else: self.write_lane(target, form, kind, bits)

  def bits_of(self, text: str, kind: ValueType) -> str:
    """Return an exact value as an unsigned number."""
    if kind.kind == "i": return f"({text} & {(1 << kind.bits) - 1:#x})"
    if kind.kind == "b": return f"(1 if {text} else 0)"
    if kind.kind == "u": return text
    return f"{_ENCODE[kind.name]}({text})"

  def write_scalar(self, target: str, form: ResultForm, kind: ValueType, bits: str) -> None:
    """Write bits to scalar registers, after all reads."""
    if kind.bits <= 32: self.after.append(f"s[{target}{plus(form.dword)}] = {bits}")
    else:
      self.after.append(f"{target}_bits = {bits}")
      self.after += [f"s[{target}{plus(i)}] = {target}_bits >> {32 * i} & 0xffffffff" for i in range(kind.bits // 32)]

  def write_lane(self, target: str, form: ResultForm, kind: ValueType, bits: str) -> None:
    """Write bits to this lane of vector registers, or to a part of one."""
    count = max(kind.bits // 32, 1)
    for i in range(form.dword, form.dword + count): self.once(f"{target}_u{i} = w.u[{target}{plus(i)}]")
    if count > 1:
      self.inside.append(f"{target}_bits = {bits}")
      self.inside += [f"{target}_u{form.dword + i}[l] = {target}_bits >> {32 * i} & 0xffffffff" for i in range(count)]
      return
    name, width = f"{target}_u{form.dword}", form.width or kind.bits
    if width < kind.bits: bits = f"({bits} & {(1 << width) - 1:#x})"
    moved = f"({bits} << {form.shift})" if form.shift else bits
    if form.keep:
      self.inside.append(f"{name}[l] = {name}[l] & {0xffffffff ^ ((1 << width) - 1 << form.shift):#x} | {moved}")
    elif form.extend:
      self.inside.append(f"{name}[l] = (({bits} ^ {1 << width - 1:#x}) - {1 << width - 1:#x} << {form.shift}) & "
                         f"0xffffffff")
    else: self.inside.append(f"{name}[l] = {moved}")
