"""Arithmetic of float16: what float32 is computed from elements of 16 bits, and rounded to them (mixed.py), without conversions between.

Codegen computes narrow floats in float32 and rounds what is stored. The same bits come from
- v_pk_add_f16 and v_pk_mul_f16, if two neighbours are one rounded sum or product of elements that stand in the same words;
- v_fma_mixlo_f16 and v_fma_mixhi_f16, whatever the last operation is: a product of two float16 is exact in float32, so that a fused addition to it
  rounds as often as the two operations do. What is no sum or product is rounded as x * 1.0 + -0.0.
v_pk_fma_f16 rounds once where the other ways round to float32 first: other bits in rare cases, so it is not used.
"""
from __future__ import annotations
import struct
from collections import Counter
from typing import TYPE_CHECKING

from tinyhw.arithmetic import round_to
from tinyhw.dtype import dtypes
from tinyhw.isa.amd import regs
from tinyhw.isa.amd.constants import KINDS, float_bits
from tinyhw.isa.amd.mixed import NOTHING, UNIT, Fused, Pair, Term, Word, fused_row, rounded_row
from tinyhw.isa.amd.select_group import Groups
from tinyhw.machine.inst import Function, MInst, Reg
from tinyhw.machine.selection import constant_bits
from tinyhw.machine.structure import LOOSE, element_of, origin_of
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.codegen.program import Program
  from tinyhw.isa.amd.form import Generation

Sources = dict[Reg, int]                          # of a macro, numbered
Parts = tuple[UOp, "UOp | None", "UOp | None"]   # a, b and c of a * b + c; without b a sum, without c a product
FEW = 2   # readers of an element for which it is not converted: instructions that read it can not be one of two that are issued together

class Mixed(Groups):
  """The part of Selector that computes with float16. uses: how many nodes read a node."""

  def __init__(self, generation: Generation, function: Function):
    super().__init__(generation, function)
    self.uses: Counter[UOp] = Counter()

  def select(self, program: Program) -> Function:
    self.uses.update(s for u in program.uops if u.op in GroupOp.Elementwise for s in u.src)
    return super().select(program)

  def cast(self, u: UOp) -> Reg:
    """A conversion; of vectors, from float32 to float16. An element of 16 bits is read where it stands."""
    if u.dtype.count > 1: return self.rounded(u)
    if u.dtype is not dtypes.float32 or u.src[0] not in self.halves: return super().cast(u)
    sources: Sources = {}
    return self.mixed(Fused(self.half_term(u.src[0], sources), UNIT, NOTHING), sources)

  def mixed(self, fused: Fused, sources: Sources) -> Reg:
    dst = self.new(regs.V[1])
    self.block.insts.append(MInst(fused_row(self.generation, tuple(s.cls for s in sources), fused), [dst, *sources], self.origin))
    return dst

  def make_group(self, u: UOp) -> Reg:
    """A vector; of float16, of which some elements were rounded one by one, too."""
    if u.op is not Ops.VECTORIZE or not any(map(is_rounded, u.src)): return super().make_group(u)
    sources: Sources = {}
    return self.rounded_group(u, [self.sum_of_half(s, sources) for s in u.src], sources)

  def sum_of_half(self, u: UOp, sources: Sources) -> Fused:
    """A float16, rounded or as it stands."""
    return self.sum_of(u.src[0], sources) if is_rounded(u) else Fused(self.half_term(u, sources), UNIT, NOTHING)

  def rounded(self, u: UOp) -> Reg:
    """A vector of float32 as float16."""
    sources: Sources = {}
    vector, start = origin_of(u.src[0]) if u.src[0].op is Ops.GEP else (u.src[0], 0)
    if vector.op in LOOSE: sums = [self.sum_of(element_of(vector, start + k), sources) for k in range(u.dtype.count)]
    else:
      group = sources.setdefault(self.group(vector), 0)
      sums = [Fused(Term(group, start + k), UNIT, NOTHING) for k in range(u.dtype.count)]
    return self.rounded_group(u, sums, sources)

  def rounded_group(self, u: UOp, sums: list[Fused], sources: Sources) -> Reg:
    words = tuple(paired(low, high) for low, high in zip(sums[::2], sums[1::2]))
    cls = self.group_class(u.dtype)
    dst = self.new(cls)
    self.block.insts.append(MInst(rounded_row(self.generation, cls, tuple(s.cls for s in sources), words), [dst, *sources], self.origin))
    return dst

  # ***** sums and products *****

  def float_operation(self, u: UOp) -> Reg:
    """Operations of float32 read elements of float16 that few others read, and are not converted for those."""
    parts = parts_of(u)
    narrow = [x for part in parts if part is not None and half_of(x := unsigned(part)[0])]
    if parts[0] is u or not narrow or any(self.uses[x] > FEW for x in narrow): return super().float_operation(u)
    sources: Sources = {}
    return self.mixed(self.fused(parts, sources), sources)

  def sum_of(self, u: UOp, sources: Sources) -> Fused:
    """A float32 that was computed before as a fused product and sum that rounds as it does. Variables may have changed since."""
    parts = parts_of(u)
    changed = any(part is not None and unsigned(part)[0].op is Ops.ACC for part in parts)
    return self.fused((u, None, None) if changed else parts, sources)

  def fused(self, parts: Parts, sources: Sources) -> Fused:
    a, b, c = parts
    return Fused(self.term(a, sources), UNIT if b is None else self.term(b, sources), NOTHING if c is None else self.term(c, sources))

  def term(self, u: UOp, sources: Sources) -> Term:
    """An operand of a fused operation."""
    u, minus = unsigned(u)
    if u.op is Ops.CONST: found = self.constant_term(u, sources)
    elif half_of(u): found = self.half_term(u.src[0], sources)
    else: found = Term(sources.setdefault(self.vector(u), len(sources)), 0)
    return negated(found) if minus else found

  def constant_term(self, u: UOp, sources: Sources) -> Term:
    """What has a code of its own stands in the instruction; of other constants, those of float16 are in both halves of a register."""
    bits = constant_bits(u)
    if bits in KINDS["f32"].codes: return Term(-1, bits)
    if not is_half(u.arg): return Term(sources.setdefault(self.in_vector(bits, 4), len(sources)), 0)
    return Term(sources.setdefault(self.in_vector(float_bits(u.arg, "e") * 0x10001, 4), len(sources)), 0, 0)

  def half_term(self, u: UOp, sources: Sources) -> Term:
    """A value of 16 bits, where it stands."""
    group, number = self.halves.get(u) or (self.vector(u), 0)
    return Term(sources.setdefault(group, len(sources)), number // 2, number % 2)

# ***** what is computed *****

def is_half(value: float) -> bool:
  """Whether a number is one of float16 (a NaN is not)."""
  return bool(round_to(dtypes.float16)(value) == value)

def is_rounded(u: UOp) -> bool:
  """Whether a value is a float32 rounded to float16."""
  return u.op is Ops.CAST and u.dtype is dtypes.float16 and u.src[0].dtype is dtypes.float32

def half_of(u: UOp) -> bool:
  """Whether a float32 is a float16 that can be read instead. A variable may have changed since it was converted."""
  return u.op is Ops.CAST and u.src[0].dtype is dtypes.float16 and u.src[0].op is not Ops.ACC

def unsigned(u: UOp) -> tuple[UOp, bool]:
  """A value without the operation that changes its sign, and whether there is one."""
  return (u.src[0], True) if u.op is Ops.NEG and u.src[0].op is not Ops.ACC else (u, False)

def exact(u: UOp) -> bool:
  """Whether u is a product that float32 holds whatever the factors are: two of float16 have 22 bits, and exponents in the middle."""
  if u.op is not Ops.MUL: return False
  factors = [unsigned(s)[0] for s in u.src]
  return all(half_of(f) or f.op is Ops.CONST and is_half(f.arg) for f in factors)

def parts_of(u: UOp) -> Parts:
  """a, b and c of a fused operation a * b + c that is u: without b it is a + c."""
  if u.op is Ops.MULACC: return u.src[0], u.src[1], u.src[2]
  if u.op is Ops.MUL: return u.src[0], u.src[1], None
  if u.op not in (Ops.ADD, Ops.SUB): return u, None, None
  p, q = u.src
  minus = u.op is Ops.SUB
  if exact(p): return p.src[0], p.src[1], opposite(q) if minus else q
  if exact(q): return opposite(q.src[0]) if minus else q.src[0], q.src[1], p
  return p, None, opposite(q) if minus else q

def opposite(u: UOp) -> UOp: return UOp(Ops.NEG, u.dtype, (u,))

def negated(term: Term) -> Term: return term._replace(negated=not term.negated)

# ***** two at once *****

def paired(low: Fused, high: Fused) -> Word:
  """Both halves of a word by one instruction of float16, if there is one."""
  if low.c == high.c == NOTHING: key, left, right = "v_pk_mul_f16", (low.a, low.b), (high.a, high.b)
  elif low.b == high.b == UNIT: key, left, right = "v_pk_add_f16", (low.a, low.c), (high.a, high.c)
  else: return low, high
  for others in (right, right[::-1]):
    operands = [beside(a, b) for a, b in zip(left, others)]
    if None not in operands: return Pair(key, tuple(o for o in operands if o is not None))
  return low, high

def beside(low: Term, high: Term) -> tuple[Term, Term] | None:
  """Two terms as one operand: halves of one word, or the same constant."""
  low, high = as_half(low), as_half(high)
  return (low, high) if low.half is not None and high.half is not None and low[:2] == high[:2] else None

def as_half(term: Term) -> Term:
  """A constant as instructions of float16 have it, if it is one of theirs: the low half."""
  if term.source >= 0: return term
  value = struct.unpack("<f", term.word.to_bytes(4, "little"))[0]
  return Term(-1, float_bits(value, "e"), 0, term.negated) if is_half(value) else term
