"""Mixed precision macros of float16 and float32: they read 16-bit elements in place and round results into 16-bit
halves.

v_fma_mix computes a fused multiply-add in float32. Each source is a register, or a half of one that it converts. The
result is float32, or it is rounded to one half of a register, and the other half stays. So a conversion is x * 1.0 +
-0.0.

v_pk_add_f16 and v_pk_mul_f16 compute both halves at once, in float16. Their bits equal the rounded float32, since 24
bits are enough for sums and products of 11 (Figueroa 1995, When is double rounding innocuous?).
select/mixed_precision.py decides where these macros are used.
"""
from __future__ import annotations
import functools
from typing import Any

from tinyhw.isa.amd.macros.macros import registers
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Access, Inst, MInst, Operand, RegClass
from tinyhw.machine.select.macros import MACRO
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

class Term(NamedTuple):
  """An operand.

  - source: the number of the macro's source; -1: the word is a constant.
  - word: the number of a word of it, or the constant.
  - half: the half of the word, or None for all of it.
  - negated: whether its sign is changed.
  """
  source: int
  word: int
  half: int | None = None
  negated: bool = False

class Fused(NamedTuple):
  """a * b + c in float32."""
  a: Term
  b: Term
  c: Term

class Pair(NamedTuple):
  """An instruction for both halves of a word: its key, and for each operand the terms of the low and the high half."""
  key: str
  operands: tuple[tuple[Term, Term], ...]

Word = Pair | tuple[Fused, Fused]

UNIT, NOTHING = Term(-1, 0x3f800000), Term(-1, 0, negated=True)   # 1.0, and -0.0: adding it changes no number

@once
def rounded_row(generation: Generation, cls: RegClass, sources: tuple[RegClass, ...], words: tuple[Word, ...]) -> Inst:
  """A macro that makes a group of float16."""
  return _row("rounded", generation, cls, sources, functools.partial(_rounded, words))

@once
def fused_row(generation: Generation, sources: tuple[RegClass, ...], fused: Fused) -> Inst:
  """A macro that makes a float32."""
  return _row("mixed", generation, regs.V[1], sources, functools.partial(_fused, fused))

def _row(name: str, generation: Generation, cls: RegClass, sources: tuple[RegClass, ...], made: Any) -> Inst:
  early = name == "rounded"   # it writes its first word before it has read all sources
  operands = [Operand("d", Access.WRITE, cls, early=early),
              *(Operand(f"a{k}", Access.READ, c) for k, c in enumerate(sources))]
  return Inst(f"{name}_{cls.name}", MACRO, tuple(operands), "valu", 0, isa=(generation, made))

def _rounded(words: tuple[Word, ...], generation: Generation, operands: list[Any]) -> list[MInst]:
  """Compute all low halves before the high ones, so that no instruction waits for the one before it."""
  group, *sources = operands
  found: list[MInst] = []
  for high in (0, 1):
    for d, word in zip(registers(group), words):
      if not isinstance(word, Pair):
        found.append(_mix(generation, ("v_fma_mixlo_f16", "v_fma_mixhi_f16")[high], d, word[high], sources))
      elif not high: found.append(_pair(generation, d, word, sources))
  return found

def _fused(fused: Fused, generation: Generation, operands: list[Any]) -> list[MInst]:
  d, *sources = operands
  if fused[1:] == (UNIT, NOTHING) and fused.a.half == 0 and not fused.a.negated:
    return [build(table(generation.arch)["v_cvt_f32_f16"], d, _register(fused.a, sources))]   # shorter
  return [_mix(generation, "v_fma_mix_f32", d, fused, sources)]

def _register(term: Term, sources: list[Any]) -> Any:
  return term.word if term.source < 0 else registers(sources[term.source])[term.word]

def _bits(flags: list[bool]) -> int: return sum(1 << k for k, flag in enumerate(flags) if flag)

def _mix(generation: Generation, key: str, d: Any, fused: Fused, sources: list[Any]) -> MInst:
  """Build a mixed precision multiply-add.

  op_sel_hi: the source is half of a register; op_sel: it is the high half.
  """
  return build(table(generation.arch)[key], d, *(_register(t, sources) for t in fused),
               neg=_bits([t.negated for t in fused]),
               op_sel=_bits([t.half == 1 for t in fused]), op_sel_hi=_bits([t.half is not None for t in fused]))

def _pair(generation: Generation, d: Any, pair: Pair, sources: list[Any]) -> MInst:
  """Build a packed instruction.

  op_sel and op_sel_hi: the halves of each source for the low and for the high half of the result.
  """
  low, high = [t for t, _ in pair.operands], [t for _, t in pair.operands]
  return build(table(generation.arch)[pair.key], d, *(_register(t, sources) for t in low),
               op_sel=_bits([t.half == 1 for t in low]),
               op_sel_hi=_bits([t.half == 1 for t in high]), neg_lo=_bits([t.negated for t in low]),
               neg_hi=_bits([t.negated for t in high]))
