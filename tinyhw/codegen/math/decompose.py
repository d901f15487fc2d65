"""Express operations that a target does not have in those that it has.

Input: a kernel of machine types, scalars and vectors. Output: the same values from operations that `Capabilities` lists
for their type, at least for scalars or for narrower vectors (legalize.py splits). One walk: `Decomposer.alu` builds
each node again from its final sources. It keeps a supported operation. Otherwise it calls the rule of RULES, which
gives the semantics in other operations, or widens small types. Rules build with `alu` themselves, so that their result
is final. Transcendental functions are templates of transcendental.py, decomposed once for each type.

Instruction selectors may rely on these properties of the result:
- IDIV and MOD have a divisor above 0, and a dividend that is not negative.
- A shift's amount is in 0..bits-1.
- Types narrower than float32 without arithmetic are only loaded, stored, moved and converted. Their arithmetic is done
  in float32. It is rounded where the value is stored, cast or reinterpreted, not after each operation.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw import trace
from tinyhw.arithmetic import round_to
from tinyhw.codegen.math import casts, division
from tinyhw.codegen.math.casts import SMALL_FLOATS
from tinyhw.codegen.math.maximum import FOLD, larger, never_nan
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import ROUGH, GroupOp, Ops
from tinyhw.uop.ops import UOp

Value = UOp | int | float | bool
_MOVES = frozenset({Ops.BROADCAST, Ops.VECTORIZE, Ops.GEP, Ops.SHUFFLE, Ops.GROUP, Ops.EXCHANGE})
_SIGNED = {dtypes.uint8: dtypes.int8, dtypes.uint16: dtypes.int16, dtypes.uint32: dtypes.int32,
           dtypes.uint64: dtypes.int64}
UNSIGNED = {signed: unsigned for unsigned, signed in _SIGNED.items()}
UNSIGNED.update({unsigned: unsigned for unsigned in _SIGNED})
# the expression of a function over NOOPs, which are placeholders for its operands
_templates: dict[tuple[Capabilities, Ops, DType], UOp] = {}

class Decomposer:
  """The state of the walk.

  `new`: the new nodes. `wide`: float32 values of nodes of a narrower type, before rounding. `sums`: where MULACC is
  slow, the variables of reductions, their starts, and the MULACCs that add to them, which need not be fused.
  """
  def __init__(self, capabilities: Capabilities):
    self.capabilities = capabilities
    self.new: dict[UOp, UOp] = {}
    self.wide: dict[UOp, UOp] = {}
    self._known: dict[tuple[Ops, DType], bool] = {}
    self.sums: set[UOp] = set()

  # ***** what the target has *****

  def has(self, op: Ops, dtype: DType) -> bool:
    """Does the target have op for this type: with these lanes, or with as many as fill its widest register?"""
    found = self._known.get((op, dtype))
    if found is None: found = self._known[op, dtype] = self._has(op, dtype)
    return found

  def _has(self, op: Ops, dtype: DType) -> bool:
    # lanes that are threads compute scalars: legalize.py takes vectors apart
    if self.capabilities.lanes: dtype = dtype.scalar()
    if dtype.count > 1 and not self.capabilities.fits(dtype):
      most = self.capabilities.vector_bytes // dtype.scalar().itemsize
      dtype = dtype.scalar().vec(max(min(most, self.capabilities.vector_lanes or most), 1))
    return self.capabilities.supports(op, dtype)

  def narrow(self, dtype: DType) -> bool: return dtype.scalar() in SMALL_FLOATS and not self.has(Ops.ADD, dtype)

  # ***** building *****

  def const(self, dtype: DType, value: Any) -> UOp: return UOp(Ops.CONST, dtype, (), dtype.const(value))

  def alu(self, op: Ops, *operands: Value, dtype: DType | None = None) -> UOp:
    """Build op on final operands, in operations that the target has. Python numbers take the first UOp's type."""
    typed = operands[1:] if op is Ops.WHERE else operands
    first = next(x for x in typed if isinstance(x, UOp))
    src = tuple([x if isinstance(x, UOp) else self.const(first.dtype, x) for x in operands])
    if dtype is None: dtype = dtypes.bool.vec(first.dtype.count) if op in GroupOp.Comparison else first.dtype
    return self.build(op, dtype, src)

  def build(self, op: Ops, dtype: DType, src: tuple[UOp, ...]) -> UOp:
    if op is Ops.CAST: return casts.cast(self, src[0], dtype)
    own = _ALWAYS.get(op)
    if own is not None:
      result = own(self, src, dtype)
      if result is not None: return self._reported(own, op, dtype, src, result)
    operand = src[0].dtype if op in GroupOp.Comparison or op is Ops.BITCAST else dtype
    if self.has(op, operand): return UOp(op, dtype, src)
    rule: Callable[..., UOp | None] | None = (RULES.get(op) if operand.scalar() is not dtypes.bool
                                              else BOOL_RULES.get(op))
    result = None if rule is None else rule(self, src, dtype)
    if result is None: rule, result = Decomposer._widened, self._widened(op, dtype, src, operand)
    if result is not None: return self._reported(rule, op, dtype, src, result)
    if operand.count > 1 and self.has(op, operand.scalar()): return UOp(op, dtype, src)
    if op in GroupOp.Transcendental: return self.expanded(op, src)
    if op is Ops.BITCAST: return UOp(op, dtype, src)
    raise CompileError(f"the target has no {op.name} of {operand}, and codegen knows no other way to compute it; cast "
                       f"the operands to another type")

  def _reported(self, rule: Callable[..., Any] | None, op: Ops, dtype: DType, src: tuple[UOp, ...], result: UOp) -> UOp:
    """Return the result of a rule, and report it to the recorder."""
    if trace.recorder is not None and rule is not None: trace.recorder.rewrite(rule, UOp(op, dtype, src), result)
    return result

  def _widened(self, op: Ops, dtype: DType, src: tuple[UOp, ...], operand: DType) -> UOp | None:
    """Build an operation of 8 or 16 bit integers in 32 bits. The result wraps when it is converted back."""
    if not dtypes.is_int(operand) or operand.scalar().itemsize > 2 or op is Ops.BITCAST: return None
    if op in GroupOp.Transcendental: return None
    if operand.count > 1 and not self.has(op, dtypes.int32.vec(operand.count)) and self.has(op, operand.scalar()):
      return None
    result = self.alu(op, *[self.cast(s, dtypes.int32) if dtypes.is_int(s.dtype) else s for s in src])
    return result if op in GroupOp.Comparison else self.cast(result, dtype.scalar())

  def cast(self, x: UOp, scalar: DType) -> UOp: return casts.cast(self, x, scalar.vec(x.dtype.count))

  def bitcast(self, x: UOp, scalar: DType) -> UOp:
    target = scalar.vec(x.dtype.count)
    return x if x.dtype is target else UOp(Ops.BITCAST, target, (x,))

  # ***** templates *****

  def expanded(self, op: Ops, src: tuple[UOp, ...]) -> UOp:
    """Return a transcendental function of the operands. Its expression is decomposed once, over placeholders, and
    copied."""
    from tinyhw.codegen.math import transcendental  # 1.5 ms to load, for kernels that have such functions
    count, scalars = src[0].dtype.count, [s.dtype.scalar() for s in src]
    key = (self.capabilities, op, src[0].dtype)
    if key not in _templates:
      holes = [UOp(Ops.NOOP, d, (), k) for k, d in enumerate(scalars)]
      splits = self.capabilities.slow_fused and op not in transcendental.NEED_FUSED
      is_fused = not splits and self.has(Ops.MULACC, src[0].dtype)
      body = transcendental.expand(UOp(op, scalars[0], tuple(holes)), is_fused)
      assert body is not None
      if splits: body = transcendental.unfused(body)
      _templates[key] = self.copied(body, {h: UOp(Ops.NOOP, h.dtype.vec(count), (), h.arg) for h in holes}, count)
    return self._reported(transcendental.FUNCTIONS[op], op, src[0].dtype, src, _fill(_templates[key], src))

  def rough(self, u: UOp, src: tuple[UOp, ...]) -> UOp:
    """Build an EXP2 or MAX with the argument ROUGH."""
    if self.capabilities.rough: return UOp(u.op, u.dtype, src, u.arg)
    if u.op is Ops.MAX: return larger(*src)
    from tinyhw.codegen.math import exponential  # as above
    x = src[0]
    hole = UOp(Ops.NOOP, x.dtype.scalar(), (), 0)
    return self.copied(exponential.rough_exp2(hole), {hole: x}, x.dtype.count)

  def copied(self, body: UOp, new: dict[UOp, UOp], count: int) -> UOp:
    """Return an expression of scalars as the same on lanes, decomposed."""
    for u in body.toposort():
      if u in new: continue
      dtype = u.dtype.vec(count) if u.dtype.count == 1 else u.dtype
      if not u.src: new[u] = UOp(u.op, dtype, (), u.arg)
      elif u.op is Ops.BITCAST: new[u] = self.bitcast(new[u.src[0]], u.dtype)
      else: new[u] = self.build(u.op, dtype, tuple([new[s] for s in u.src]))
    return new[body]

  # ***** the walk *****

  def _operation(self, u: UOp, dtype: DType, src: tuple[UOp, ...]) -> UOp:
    """Build the operation of a node. A term of a reduction is not fused where MULACC is slow."""
    if u not in self.sums: return self.build(u.op, dtype, src)
    return self.alu(Ops.ADD, self.alu(Ops.MUL, *src[:2]), src[2])

  def _note_sum(self, u: UOp) -> None:
    """Note u if it is the variable of a reduction, the start of a sum, or a MULACC that adds to a sum."""
    starts = u.op is Ops.ACC or u.op is Ops.CONST and u.arg == 0
    if starts or u.op is Ops.MULACC and u.src[2] in self.sums: self.sums.add(u)

  def visit(self, u: UOp) -> None:
    op = u.op
    if self.capabilities.slow_fused and dtypes.is_float(u.dtype): self._note_sum(u)
    if u.dtype.scalar() in SMALL_FLOATS and self.narrow(u.dtype) and self._visit_narrow(u): return
    if op in GroupOp.Elementwise and self.narrow(u.src[0].dtype):
      if op is Ops.CAST:
        self.new[u] = casts.cast(self, self.get(u.src[0]), u.dtype)
        return
      if op in GroupOp.Comparison:
        self.new[u] = self.alu(op, *[self.widened(s) for s in u.src])
        return
    src = tuple([self.get(s) for s in u.src])
    if u.arg == ROUGH: self.new[u] = self.rough(u, src)
    elif op in GroupOp.Elementwise and u.tag != FOLD: self.new[u] = self._operation(u, u.dtype, src)
    else: self.new[u] = u if src == u.src else UOp(op, u.dtype, src, u.arg, u.tag)

  def _visit_narrow(self, u: UOp) -> bool:
    """Build a value narrower than float32 that is computed in float32; return False if it is only moved."""
    single = dtypes.float32.vec(u.dtype.count)
    if u.op in GroupOp.ALU:
      operands = [self.widened(s) if s.dtype.scalar() in SMALL_FLOATS else self.get(s) for s in u.src]
      self.wide[u] = self._operation(u, single, tuple(operands))
      return True
    if u.op in _MOVES and any(s in self.wide for s in u.src):
      self.wide[u] = UOp(u.op, single, tuple([self.widened(s) for s in u.src]), u.arg)
      return True
    return False

  def widened(self, u: UOp) -> UOp:
    """Return the float32 value of a node of a narrower type."""
    found = self.wide.get(u)
    if found is None:
      if u.op is Ops.CONST:
        found = UOp(Ops.CONST, dtypes.float32.vec(u.dtype.count), (), round_to(u.dtype.scalar())(u.arg))
      else: found = casts.cast(self, self.get(u), dtypes.float32.vec(u.dtype.count))
      self.wide[u] = found
    return found

  def get(self, u: UOp) -> UOp:
    """Return the final node of u, rounded where it was computed in float32."""
    found = self.new.get(u)
    if found is None: found = self.new[u] = casts.cast(self, self.wide[u], u.dtype)
    return found

def _fill(body: UOp, operands: tuple[UOp, ...]) -> UOp:
  """Return a template over its operands."""
  new: dict[UOp, UOp] = {}
  for u in body.toposort():
    if u.op is Ops.NOOP: new[u] = operands[u.arg]
    elif not u.src: new[u] = u
    else: new[u] = UOp(u.op, u.dtype, tuple([new[s] for s in u.src]), u.arg)
  return new[body]

# ***** rules: (decomposer, final sources, result type) -> value, or None where the rule does not apply *****

Rule = Callable[[Decomposer, "tuple[UOp, ...]", DType], "UOp | None"]

def _add(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  """x + -y is x - y."""
  if src[1].op is Ops.NEG and d.has(Ops.SUB, dtype): return UOp(Ops.SUB, dtype, (src[0], src[1].src[0]))
  if src[0].op is Ops.NEG and d.has(Ops.SUB, dtype): return UOp(Ops.SUB, dtype, (src[1], src[0].src[0]))
  return None

def _multiply(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  """x * -1 is -x."""
  if src[1].op is Ops.CONST and src[1].arg == -1 and d.has(Ops.NEG, dtype): return UOp(Ops.NEG, dtype, src[:1])
  return None

def _shift(op: Ops) -> Rule:
  def rule(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
    """Give 0, or copies of the sign, for an amount outside of 0..bits-1."""
    bits, (x, amount) = dtype.scalar().bitsize, src
    if 0 <= amount.vmin and amount.vmax < bits: return None
    kept = d.alu(Ops.AND, amount, bits - 1)
    shifted = d.build(op, dtype, (x, kept))
    inside = d.alu(Ops.CMPEQ, amount, kept)
    if op is Ops.SHL or dtypes.is_unsigned(dtype): return d.alu(Ops.WHERE, inside, shifted, 0)
    return d.alu(Ops.WHERE, inside, shifted, d.build(op, dtype, (x, d.const(dtype, bits - 1))))
  return rule

def _less(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  """Compare unsigned numbers as signed ones, after subtracting half of their range from both."""
  scalar = src[0].dtype.scalar()
  signed = _SIGNED.get(scalar)
  if signed is None or not d.has(Ops.CMPLT, signed.vec(src[0].dtype.count)): return None
  top = 1 << (scalar.bitsize - 1)
  return d.alu(Ops.CMPLT, *[d.bitcast(d.alu(Ops.XOR, s, top), signed) for s in src])

def _invert(op: Ops) -> Rule:
  return lambda d, src, dtype: d.alu(Ops.XOR, d.alu(op, *src), True) if d.has(op, src[0].dtype) else None

def _reciprocal(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  return UOp(Ops.FDIV, dtype, (d.const(dtype, 1), src[0])) if d.has(Ops.FDIV, dtype) else None

def _subtract(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  return UOp(Ops.ADD, dtype, (src[0], d.alu(Ops.NEG, src[1]))) if d.has(Ops.ADD, dtype) else None

def _negate(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  if dtypes.is_float(dtype): return UOp(Ops.MUL, dtype, (src[0], d.const(dtype, -1))) if d.has(Ops.MUL, dtype) else None
  return UOp(Ops.SUB, dtype, (d.const(dtype, 0), src[0])) if d.has(Ops.SUB, dtype) else None

def _truncate(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  """Truncate through an integer type. Numbers too large for it have no fraction. The sign of zero is kept."""
  if not dtypes.is_float(dtype): return src[0]
  single = dtype.scalar() is dtypes.float32
  integer, limit, sign = (dtypes.int32, 2.0 ** 23, 1 << 31) if single else (dtypes.int64, 2.0 ** 52, 1 << 63)
  if not (single or d.has(Ops.CAST, dtype) and d.has(Ops.CAST, integer)): return None   # a conversion would truncate
  bits = d.bitcast(src[0], UNSIGNED[integer])
  magnitude = d.bitcast(d.alu(Ops.AND, bits, sign - 1), dtype.scalar())
  whole = d.bitcast(d.cast(d.cast(magnitude, integer), dtype.scalar()), UNSIGNED[integer])
  signed = d.bitcast(d.alu(Ops.OR, whole, d.alu(Ops.AND, bits, sign)), dtype.scalar())
  return d.alu(Ops.WHERE, d.alu(Ops.CMPLT, magnitude, limit), signed, src[0])

def _maximum(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp:
  """Test the second operand for NaN, unless it cannot be NaN. NaN in the first operand stays by itself."""
  a, b = src
  larger = d.alu(Ops.WHERE, d.alu(Ops.CMPLT, a, b), b, a)
  return d.alu(Ops.WHERE, d.alu(Ops.CMPNE, b, b), b, larger) if dtypes.is_float(dtype) and not never_nan(b) else larger

def _threefry(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp | None:
  """Source: Salmon et al. 2011, Threefry-2x32 with 20 rounds; low words first."""
  def words(x: UOp) -> list[UOp]: return [d.cast(x, dtypes.uint32), d.cast(d.alu(Ops.SHR, x, 32), dtypes.uint32)]
  (x0, x1), keys = words(src[0]), words(src[1])
  keys.append(d.alu(Ops.XOR, d.alu(Ops.XOR, keys[0], keys[1]), 0x1bd11bda))
  x0, x1 = d.alu(Ops.ADD, x0, keys[0]), d.alu(Ops.ADD, x1, keys[1])
  for group in range(5):
    for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group & 1]:
      x0 = d.alu(Ops.ADD, x0, x1)
      x1 = d.alu(Ops.XOR, d.alu(Ops.OR, d.alu(Ops.SHL, x1, rotation), d.alu(Ops.SHR, x1, 32 - rotation)), x0)
    x0 = d.alu(Ops.ADD, x0, keys[(group + 1) % 3])
    x1 = d.alu(Ops.ADD, d.alu(Ops.ADD, x1, keys[(group + 2) % 3]), group + 1)
  return d.alu(Ops.OR, d.alu(Ops.SHL, d.cast(x1, dtypes.uint64), 32), d.cast(x0, dtypes.uint64))

def _dot4(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp:
  """Add the products of four bytes one by one."""
  total = src[2]
  for k in range(4): total = d.alu(Ops.ADD, total, d.alu(Ops.MUL, _byte(d, src[0], k), _byte(d, src[1], k)))
  return total

def _byte(d: Decomposer, word: UOp, k: int) -> UOp:
  """Return byte k of a word as int32. The bytes of an int32 have signs."""
  if dtypes.is_unsigned(word.dtype): return d.bitcast(d.alu(Ops.AND, d.alu(Ops.SHR, word, 8 * k), 255), dtypes.int32)
  return d.alu(Ops.SHR, d.alu(Ops.SHL, word, 24 - 8 * k), 24)

def _dot2(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp:
  """Add the products of two bfloat16 one by one, the upper ones first. Subnormal numbers count as zero."""
  def normal(bits: UOp) -> UOp:
    tiny = d.alu(Ops.CMPLT, d.alu(Ops.AND, bits, 0x7f800000), 1)
    return d.bitcast(d.alu(Ops.WHERE, tiny, d.alu(Ops.AND, bits, 0x80000000), bits), dtypes.float32)
  total = normal(d.bitcast(src[2], dtypes.uint32))
  upper, lower = [[d.alu(op, word, by) for word in src[:2]] for op, by in ((Ops.AND, 0xffff0000), (Ops.SHL, 16))]
  for a, b in (upper, lower):
    total = normal(d.bitcast(d.alu(Ops.MULACC, normal(a), normal(b), total), dtypes.uint32))
  return total

# tried first, whatever the target has
_ALWAYS: dict[Ops, Rule] = {
  Ops.ADD: _add, Ops.MUL: _multiply, Ops.SHL: _shift(Ops.SHL), Ops.SHR: _shift(Ops.SHR), Ops.IDIV: division.divide,
  Ops.MOD: division.modulo,
}
RULES: dict[Ops, Rule] = {
  Ops.NEG: _negate, Ops.SUB: _subtract, Ops.RECIPROCAL: _reciprocal, Ops.TRUNC: _truncate, Ops.CMPLT: _less,
  Ops.CMPEQ: _invert(Ops.CMPNE), Ops.CMPNE: _invert(Ops.CMPEQ), Ops.THREEFRY: _threefry,
  Ops.MAX: _maximum,
  Ops.MULACC: lambda d, s, t: d.alu(Ops.ADD, d.alu(Ops.MUL, s[0], s[1]), s[2]), Ops.DOT4: _dot4,
  Ops.DOT2: _dot2,
}

def _and(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp: return d.alu(Ops.AND, *src)
def _or(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp: return d.alu(Ops.OR, *src)
def _xor(d: Decomposer, src: tuple[UOp, ...], dtype: DType) -> UOp: return d.alu(Ops.XOR, *src)

# of bools; every target has AND, OR and XOR
BOOL_RULES: dict[Ops, Rule] = {
  Ops.ADD: _or, Ops.MAX: _or, Ops.MUL: _and, Ops.SUB: _xor, Ops.CMPNE: _xor,
  Ops.NEG: lambda d, s, t: d.alu(Ops.XOR, s[0], True),
  Ops.CMPEQ: lambda d, s, t: d.alu(Ops.XOR, d.alu(Ops.XOR, *s), True),
  Ops.CMPLT: lambda d, s, t: d.alu(Ops.AND, d.alu(Ops.XOR, s[0], True), s[1]),
  Ops.MULACC: lambda d, s, t: d.alu(Ops.OR, d.alu(Ops.AND, s[0], s[1]), s[2]),
  Ops.WHERE: lambda d, s,
  t: d.alu(Ops.OR, d.alu(Ops.AND, s[0], s[1]), d.alu(Ops.AND, d.alu(Ops.XOR, s[0], True), s[2])),
}

def decompose(sink: UOp, capabilities: Capabilities) -> UOp:
  """Express operations that the target lacks in operations that it has."""
  walk = Decomposer(capabilities)
  inherit = trace.inherit if trace.follows() else None
  for u in sink.toposort():
    walk.visit(u)
    if inherit is not None and u in walk.new and walk.new[u] is not u: inherit(walk.new[u], u)
  return walk.new[sink]
