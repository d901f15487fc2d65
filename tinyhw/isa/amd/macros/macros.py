"""Macros: instruction sequences that selection treats as one row, because they must stay together or write parts of a
register.

The 64-bit values that a macro makes are never half written. Outside of macros exec is whole, and nothing comes between
the writer and the reader of vcc. machine/select/macros.py has the notation. Classes: v1 v2 (vector), s1 s2 (scalar), x1
x2 (vector, scalar or constant), m (a bit for each lane), i (an integer). A line is an instruction's key, then operands.
An operand is a name, `name.lo` or `name.hi` for a word of it, a number, vcc or exec. A "-" before it negates it, and
"|" around it takes the absolute value.

div_f64: v_rcp_f64 has 24 correct bits. Two Newton steps leave an error below 1 unit in the last place. A third, r +
r*e, is correctly rounded unless the divisor's mantissa is all ones. Then 1/b is a little above the middle of two
numbers, by e*e, which the step omits. With 2*e*e in the step, all quotients are correct. This is tested with the same
recipe in all formats of 4 to 8 bits, from all estimates with half of the bits correct, for all operands
(test_macros.py).
"""
from __future__ import annotations
import functools
import re
from collections.abc import Callable
from typing import Any

from tinyhw.data_class import replace
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Access, Effect, Function, Inst, MInst, Operand, Reg, RegClass
from tinyhw.machine.ir.target import Target
from tinyhw.machine.select.macros import MACRO, Macro, expand, parse_macros
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

TEXT = """
pack64         d=v2 lo:x1 hi:x1
  v_mov_b32 d.lo lo
  v_mov_b32 d.hi hi
s_pack64       d=s2 lo:x1 hi:x1
  s_mov_b32 d.lo lo
  s_mov_b32 d.hi hi
low            d=v1 a:x2
  v_mov_b32 d a.lo
high           d=v1 a:x2
  v_mov_b32 d a.hi
s_low          d=s1 a:x2
  s_mov_b32 d a.lo
s_high         d=s1 a:x2
  s_mov_b32 d a.hi
sign64         d=v2 a:v1
  v_ashrrev_i32 d.hi 31 a
  v_mov_b32 d.lo a
s_sign64       d=s2 a:s1
  s_ashr_i32 d.hi a 31
  s_mov_b32 d.lo a
move64         d=v2 a:x2
  v_mov_b32 d.lo a.lo
  v_mov_b32 d.hi a.hi

add64          d=v2 a:x2 b:v2 | c=m
  v_add_co_u32 d.lo c a.lo b.lo
  v_add_co_ci_u32 d.hi c a.hi b.hi c
sub64          d=v2 a:v2 b:v2 | c=m
  v_sub_co_u32 d.lo c a.lo b.lo
  v_sub_co_ci_u32 d.hi c a.hi b.hi c
mul64          d=v2 a:v2 b:v2 | t=v1 c=m
  v_mad_u64_u32 d c a.lo b.lo 0
  v_mul_lo_u32 t a.lo b.hi
  v_add_nc_u32 d.hi d.hi t
  v_mul_lo_u32 t a.hi b.lo
  v_add_nc_u32 d.hi d.hi t
mul_wide       d=v2 a:v1 b:v1 | c=m
  v_mad_u64_u32 d c a b 0
and64          d=v2 a:v2 b:v2
  v_and_b32 d.lo a.lo b.lo
  v_and_b32 d.hi a.hi b.hi
or64           d=v2 a:v2 b:v2
  v_or_b32 d.lo a.lo b.lo
  v_or_b32 d.hi a.hi b.hi
xor64          d=v2 a:v2 b:v2
  v_xor_b32 d.lo a.lo b.lo
  v_xor_b32 d.hi a.hi b.hi
choose64       d=v2 m:m a:v2 b:v2
  v_cndmask_b32 d.lo b.lo a.lo m
  v_cndmask_b32 d.hi b.hi a.hi m
negate_f64     d=v2 a:v2
  v_xor_b32 d.hi 0x80000000 a.hi
  v_mov_b32 d.lo a.lo
s_add64        d=s2 a:x2 b:x2
  s_add_u32 d.lo a.lo b.lo
  s_addc_u32 d.hi a.hi b.hi
s_sub64        d=s2 a:x2 b:x2
  s_sub_u32 d.lo a.lo b.lo
  s_subb_u32 d.hi a.hi b.hi
s_mul64        d=s2 a:x2 b:x2 | t=s1
  s_mul_i32 d.lo a.lo b.lo
  s_mul_hi_u32 d.hi a.lo b.lo
  s_mul_i32 t a.lo b.hi
  s_add_u32 d.hi d.hi t
  s_mul_i32 t a.hi b.lo
  s_add_u32 d.hi d.hi t

spill32        k+v1 a:s1 n:i
  v_writelane_b32 k a n
reload32       a=s1 k:v1 n:i
  v_readlane_b32 a k n
spill64        k+v1 a:s2 n:i m:i
  v_writelane_b32 k a.lo n
  v_writelane_b32 k a.hi m
reload64       a=s2 k:v1 n:i m:i
  v_readlane_b32 a.lo k n
  v_readlane_b32 a.hi k m

div_f32        q=v1 a:v1 b:v1 | den=v1 num=v1 r=v1 e=v1 m=m
  v_div_scale_f32 den m b b a
  v_div_scale_f32 num vcc a b a
  v_rcp_f32 r den
  v_fma_f32 e -den r 0x3f800000
  v_fma_f32 r e r r
  v_mul_f32 q num r
  v_fma_f32 e -den q num
  v_fma_f32 q e r q
  v_fma_f32 e -den q num
  v_div_fmas_f32 q e r q
  v_div_fixup_f32 q q b a
div_f64        q=v2 a:v2 b:v2 | den=v2 num=v2 r=v2 e=v2 m=m
  v_div_scale_f64 den m b b a
  v_rcp_f64 r den
  v_fma_f64 e -den r 0x3ff0000000000000
  v_fma_f64 r r e r
  v_fma_f64 e -den r 0x3ff0000000000000
  v_fma_f64 r r e r
  v_fma_f64 e -den r 0x3ff0000000000000
  v_mul_f64 num e e
  v_fma_f64 e num 0x4000000000000000 e
  v_fma_f64 r r e r
  v_div_scale_f64 num vcc a b a
  v_mul_f64 q num r
  v_fma_f64 e -den q num
  v_div_fmas_f64 q e r q
  v_div_fixup_f64 q q b a
reciprocal_f32 q=v1 b:v1 | den=v1 num=v1 r=v1 e=v1 m=m
  v_div_scale_f32 den m b b 0x3f800000
  v_div_scale_f32 num vcc 0x3f800000 b 0x3f800000
  v_rcp_f32 r den
  v_fma_f32 e -den r 0x3f800000
  v_fma_f32 r e r r
  v_mul_f32 q num r
  v_fma_f32 e -den q num
  v_div_fmas_f32 q e r q
  v_div_fixup_f32 q q b 0x3f800000
"""

class MacroLine(NamedTuple):
  """A line of a macro: a key, and operands as (name, half, modifier), or an int."""
  key: str
  operands: tuple[Any, ...]

WORD = re.compile(r"(?P<sign>[-|]?)(?P<name>[a-z]\w*)(?:\.(?P<half>lo|hi))?\|?$")

def parse_line(text: str) -> MacroLine:
  key, *words = text.split()
  operands: list[Any] = []
  for word in words:
    match = WORD.match(word)
    operands.append((match["name"], match["half"], match["sign"]) if match else int(word, 0))
  return MacroLine(key, tuple(operands))

MACROS = parse_macros(TEXT, parse_line)

@once
def classes_of(generation: Generation) -> dict[str, RegClass]:
  """Register classes by the letters of the text."""
  return {"v1": regs.V[1], "v2": generation.vectors[2], "s1": regs.S[1], "s2": regs.S[2],
          "m": regs.S[generation.wave // 32]}

@once
def macro_row(generation: Generation, name: str, sources: tuple[RegClass | None, ...]) -> Inst:
  """The row of a macro. sources: the classes of its operands of kind x, in order; None for a constant."""
  macro, given = MACROS[name], iter(sources)
  operands = []
  for operand, access, letters in macro.operands:
    cls = next(given) if letters[0] == "x" else classes_of(generation).get(letters)
    operands.append(Operand(operand, access, cls, "reg" if cls is not None else "imm", early=access is Access.WRITE))
  rows = [table(generation.arch)[line.key] for line in macro.lines]
  effects = 0
  for row in rows: effects |= row.effects & (Effect.WRITE_FLAGS | Effect.LOAD | Effect.STORE)
  return Inst(name, MACRO, tuple(operands), rows[0].pipe, effects, isa=(generation, macro))

def make(function: Function, generation: Generation, name: str, *operands: Any) -> MInst:
  """A macro over virtual registers, with new temporary registers. operands: those before "|" in the text."""
  macro = MACROS[name]
  classes = tuple(x.cls if isinstance(x, Reg) else None for x, (_, _, letters) in zip(operands, macro.operands)
                  if letters[0] == "x")
  row = macro_row(generation, name, classes)
  temporary = [function.new_reg(o.cls) for o in row.operands[macro.shown:] if o.cls is not None]
  return MInst(row, [*operands, *temporary])

# ***** groups of registers *****

@once
def group_row(name: str, generation: Generation, cls: RegClass, sources: tuple[RegClass, ...]) -> Inst:
  """A macro that makes a group of registers of some class, or reads one. GROUPS has its expansion.

  An integer may be its last operand.
  """
  spilled = name == "spill"
  operands = [Operand("d", Access.READ if spilled else Access.WRITE, cls, early=not spilled)]
  operands += [Operand(f"a{k}", Access.READ, c) for k, c in enumerate(sources)]
  if name in SPARE: operands.insert(1, Operand("spare", Access.WRITE, regs.V[1], early=True))
  if name in NUMBERED: operands.append(Operand("n", Access.READ, kind="imm"))
  pipe, effects = ("lds", Effect.LOAD) if name == "load" else ("valu", 0)
  return Inst(f"{name}_{cls.name}", MACRO, tuple(operands), pipe, effects, isa=(generation, GROUPS[name]))

# for each word: group and element of its low and of its high half, number of the selector
Pattern = tuple[tuple[int, int, int, int, int], ...]

@once
def permuted_row(generation: Generation, cls: RegClass, sources: tuple[RegClass, ...], selectors: int,
                 pattern: Pattern) -> Inst:
  """A macro that makes a group from 16-bit elements of other groups. One v_perm_b32 makes two elements."""
  operands = [Operand("d", Access.WRITE, cls, early=True),
              *(Operand(f"a{k}", Access.READ, c) for k, c in enumerate(sources)),
              *(Operand(f"s{k}", Access.READ, regs.S[1]) for k in range(selectors))]
  return Inst(f"permute_{cls.name}", MACRO, tuple(operands), "valu", 0,
              isa=(generation, functools.partial(permute, pattern, len(sources))))

def permute(pattern: Pattern, count: int, generation: Generation, operands: list[Any]) -> list[MInst]:
  groups, selectors = [registers(group) for group in operands[1:count + 1]], operands[count + 1:]
  row = table(generation.arch)["v_perm_b32"]
  return [build(row, d, groups[high][second // 2], groups[low][first // 2], selectors[n])
          for d, (low, first, high, second, n) in zip(registers(operands[0]), pattern)]

def selector_of(low: int, high: int) -> int:
  """The selector of v_perm_b32 for two elements of 16 bits. Bytes 0 to 3 are those of the second source, 4 to 7 of the
  first."""
  return (0x0302 if low % 2 else 0x0100) | (0x0706 if high % 2 else 0x0504) << 16

def registers(group: Reg) -> list[Reg]:
  """The single registers of a group."""
  assert group.index is not None, f"{group!r} has no register yet"
  return [regs.reg((regs.S if group.cls.bank is regs.SGPR else regs.V)[1], group.index + k)
          for k in range(group.cls.units)]

def pieces(generation: Generation, group: Reg) -> list[tuple[Reg, int]]:
  """Split a group into the fewest pieces that memory instructions take: 16, 8 or 4 bytes, each with its offset in
  bytes."""
  assert group.index is not None, f"{group!r} has no register yet"
  found, at = [], 0
  while at < group.cls.units:
    units = next(n for n in (4, 2, 1) if n <= group.cls.units - at)
    found.append((regs.reg(generation.vectors[units], group.index + at), 4 * at))
    at += units
  return found

def load_group(generation: Generation, operands: list[Any]) -> list[MInst]:
  """Load a group from shared memory. The address must be a multiple of the size of each piece."""
  rows, (dst, address, offset) = table(generation.arch), operands
  return [build(rows[f"ds_load_b{32 * d.cls.units}"], d, address, offset=offset + at)
          for d, at in pieces(generation, dst)]

def spill_group(generation: Generation, operands: list[Any]) -> list[MInst]:
  """Store a group to the lane's scratch memory; reload_group reloads it."""
  rows, (value, slot) = table(generation.arch), operands
  made, base, start = scratch_base(generation, slot, 4 * value.cls.units)
  return made + [build(rows[f"scratch_store_b{32 * v.cls.units}"], None, v, base, offset=slot - start + at)
                 for v, at in pieces(generation, value)]

def reload_group(generation: Generation, operands: list[Any]) -> list[MInst]:
  rows, (value, slot) = table(generation.arch), operands
  made, base, start = scratch_base(generation, slot, 4 * value.cls.units)
  return made + [build(rows[f"scratch_load_b{32 * v.cls.units}"], v, None, base, offset=slot - start + at)
                 for v, at in pieces(generation, value)]

def scratch_base(generation: Generation, slot: int, size: int) -> tuple[list[MInst], Reg | None, int]:
  """The base of an offset within an instruction's reach, and the instructions for it.

  A near slot needs no base. For a far one, a part of the offset is moved to vcc, which holds nothing between
  instructions.
  """
  if slot + size <= OFFSETS[generation.family][1]: return [], None, 0
  base, start = regs.reg(regs.S[1], regs.VCC), slot - slot % SCRATCH_STEP
  return [build(table(generation.arch)["s_mov_b32"], base, start)], base, start

# limits of the offset in an instruction that accesses memory, in bytes
OFFSETS = {"cdna": (-4096, 4095), "rdna3": (-4096, 4095), "rdna4": (-(1 << 23), (1 << 23) - 1)}
SCRATCH_STEP = 2048  # granularity of the base register; the rest of the offset and a group's bytes are within reach

def copy_words(generation: Generation, operands: list[Any]) -> list[MInst]:
  """Copy words of vector or scalar registers, one after the other."""
  dst, *sources = operands
  row = table(generation.arch)["v_mov_b32"]
  return [build(row, d, word)
          for d, word in zip(registers(dst), [word for source in sources for word in registers(source)])]

def pack_halves(generation: Generation, operands: list[Any]) -> list[MInst]:
  """Pack codes of 16 bits that are extended with zeros."""
  dst, *sources = operands
  row = table(generation.arch)["v_lshl_or_b32"]
  return [build(row, d, high, 16, low) for d, low, high in zip(registers(dst), sources[::2], sources[1::2])]

def pack_bytes(generation: Generation, operands: list[Any]) -> list[MInst]:
  """Pack integers of 8 bits, extended by their sign or with zeros.

  The bits above a byte are cut off, except those above the last byte if there are fewer than four.
  """
  rows, (dst, spare, *sources) = table(generation.arch), operands
  found = []
  for k, d in enumerate(registers(dst)):
    first, *middle, last = sources[4 * k:4 * k + 4]
    found.append(build(rows["v_and_b32"], d, 0xff, first))
    for n, source in enumerate(middle, 1):
      found += [build(rows["v_and_b32"], spare, 0xff, source), build(rows["v_lshl_or_b32"], d, spare, 8 * n, d)]
    found.append(build(rows["v_lshl_or_b32"], d, last, 8 * len(middle) + 8, d))
  return found

def pick_group(generation: Generation, operands: list[Any]) -> list[MInst]:
  """Copy an element of 32 or 64 bits, in the bank of its group."""
  dst, group, number = operands
  row = table(generation.arch)["s_mov_b32" if dst.cls.bank is regs.SGPR else "v_mov_b32"]
  return [build(row, d, word) for d, word in zip(registers(dst), registers(group)[number * dst.cls.units:])]

def extract(key: str, bits: int) -> Callable[[Generation, list[Any]], list[MInst]]:
  """Make the expansion that extends an element of fewer bits to a word."""
  def extracted(generation: Generation, operands: list[Any]) -> list[MInst]:
    dst, group, number = operands
    word, place = divmod(number * bits, 32)
    return [build(table(generation.arch)[key], dst, registers(group)[word], place, bits)]
  return extracted

def fill_group(generation: Generation, operands: list[Any]) -> list[MInst]:
  dst, value = operands
  return [build(table(generation.arch)["v_mov_b32"], d, value) for d in registers(dst)]

GROUPS: dict[str, Callable[[Generation, list[Any]], list[MInst]]] = {
  "load": load_group, "spill": spill_group, "reload": reload_group,
  "pick": pick_group, "u16": extract("v_bfe_u32", 16), "i16": extract("v_bfe_i32", 16), "u8": extract("v_bfe_u32", 8),
  "i8": extract("v_bfe_i32", 8),
  "fill": fill_group, "spread": copy_words, "pack64": copy_words, "pack32": copy_words, "pack16": pack_halves,
  "pack8": pack_bytes,
}
SPARE = frozenset({"pack8"})  # macros that need a register to compute in
# macros whose last operand is an integer
NUMBERED = frozenset({"load", "spill", "reload", "pick", "u16", "i16", "u8", "i8", "fill"})

# ***** loads and stores of some lanes *****

@once
def masked_row(row: Inst, generation: Generation) -> Inst:
  """A load or store for the lanes of a mask only. Its operands are the mask, a register to save exec, and those of the
  row.

  A load keeps the old value in the other lanes.
  """
  mask = classes_of(generation)["m"]
  operands = (Operand("mask", Access.READ, mask), Operand("saved", Access.WRITE, mask, early=True),
              *merging(row).operands)
  return Inst(f"masked_{row.name}", MACRO, operands, row.pipe, row.effects | Effect.WRITE_FLAGS, isa=(generation, row))

@once
def merging(row: Inst) -> Inst:
  """A row that keeps the old value of its result in some lanes."""
  return replace(row, operands=tuple(o._replace(access=Access.BOTH, early=False) if o.access is Access.WRITE else o
                                     for o in row.operands))

# ***** expansion *****

def expand_macros(function: Function, target: Target) -> Function:
  """Replace every macro by its instructions."""
  return expand(function, instructions)

def instructions(inst: MInst) -> list[MInst]:
  generation, what = inst.row.isa
  if isinstance(what, Inst): return masked(inst, generation, what)
  if isinstance(what, Macro): return lines_of(inst, generation, what)
  made: list[MInst] = what(generation, inst.operands)
  return made

def masked(inst: MInst, generation: Generation, row: Inst) -> list[MInst]:
  """Narrow exec, access memory, and restore exec."""
  rows, bits = table(generation.arch), generation.wave
  mask, saved, *own = inst.operands
  whole = regs.reg(regs.S[bits // 32], regs.EXEC)
  narrowed = build(rows[f"s_and_saveexec_b{bits}"], saved, mask)
  return [narrowed, MInst(merging(row), own), build(rows[f"s_mov_b{bits}"], whole, saved)]

def lines_of(inst: MInst, generation: Generation, macro: Macro) -> list[MInst]:
  """The instructions of a macro over its registers."""
  rows = table(generation.arch)
  values: dict[str, Any] = {name: value for (name, _, _), value in zip(macro.operands, inst.operands)}
  values["vcc"] = generation.vcc
  found = []
  for line in macro.lines:
    row, operands, neg, absolute = rows[line.key], [], 0, 0
    sources = [i for i, spec in enumerate(row.isa.specs) if spec.show and spec.name[:3] == "src"]
    for i, word in enumerate(line.operands):
      if isinstance(word, int): operands.append(word)
      else:
        name, half, sign = word
        operands.append(part(values[name], half))
        if sign == "-": neg |= 1 << sources.index(i)
        elif sign == "|": absolute |= 1 << sources.index(i)
    modifiers = {key: value for key, value in (("neg", neg), ("abs", absolute)) if value}
    found.append(build(row, *operands, **modifiers))
  return found

def part(value: Any, half: str | None) -> Any:
  """A word of a register pair or of a constant."""
  if half is None: return value
  if isinstance(value, int): return value >> 32 & 0xffffffff if half == "hi" else value & 0xffffffff
  assert value.index is not None, f"{value!r} has no register yet"
  return regs.reg((regs.S if value.cls.bank is regs.SGPR else regs.V)[1], value.index + (half == "hi"))
