"""Macros: their text, the rows that the allocator sees, and their expansion."""
import struct
from fractions import Fraction

import pytest

from test.isa.amd.machine import ARCHS as MACHINES, check
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.macros.macros import (
  MACROS, classes_of, expand_macros, macro_row, make, masked_row, selector_of, permute)
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Access, Block, Effect, Function, MInst, Reg
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

ARCHS = ("gfx1100", "gfx1100:wave64", "gfx1200", "gfx942", "gfx950")

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", MACROS)
def test_every_macro_can_be_encoded(name: str, arch: str) -> None:
  """Registers do not overlap, as after allocation. Operands of any kind are vectors."""
  generation, macro = Generation(arch), MACROS[name]
  kinds = tuple(classes_of(generation)[f"{'s' if name[:2] == 's_' else 'v'}{letters[1]}"]
                for _, _, letters in macro.operands if letters[0] == "x")
  row = macro_row(generation, name, kinds)
  operands = [3 if o.cls is None else regs.reg(o.cls, 8 * k) for k, o in enumerate(row.operands)]
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(row, list(operands))]
  expand_macros(function, target(arch))
  made = function.blocks[0].insts
  assert len(made) == len(macro.lines) and all(encode(inst) for inst in made) and all(inst.comment == name
                                                                                      for inst in made)

@pytest.mark.parametrize("name", MACROS)
def test_no_line_reads_what_was_not_written(name: str) -> None:
  """Results and temporary registers are undefined at the start. Halves are tracked separately."""
  macro, rows = MACROS[name], table("gfx1100")
  wide = {operand: letters[1:] == "2" for operand, _, letters in macro.operands}
  known = {"vcc.lo", "vcc.hi"} | {f"{o}.{half}" for o, access, _ in macro.operands if access is not Access.WRITE
                                  for half in ("lo", "hi")}
  def halves(operand: str, half: str | None) -> set[str]:
    return {f"{operand}.{h}" for h in ([half] if half else ["lo", "hi"] if wide.get(operand) else ["lo"])}
  for line in macro.lines:
    specs = [spec for spec in rows[line.key].isa.specs if spec.show]
    for spec, word in zip(specs, line.operands):
      if not isinstance(word, int) and spec.access is not Access.WRITE:
        assert halves(word[0], word[1]) <= known, f"{name}: {line.key} reads {word[0]}"
    for spec, word in zip(specs, line.operands):
      if not isinstance(word, int) and spec.access is not Access.READ: known |= halves(word[0], word[1])
  for operand, access, _ in macro.operands[:macro.shown]:
    if access is Access.WRITE: assert halves(operand, None) <= known, f"{name} does not write all of {operand}"

def test_temporary_registers_are_the_macro_s_own() -> None:
  generation, function = Generation("gfx1100"), Function("k")
  dst, a, b = (function.new_reg(regs.V[1]) for _ in range(3))
  made = make(function, generation, "div_f32", dst, a, b)
  assert len(made.operands) == 8 and len({id(o) for o in made.operands}) == 8
  assert all(o.early for o in made.row.operands if o.access is Access.WRITE)

def test_constants_have_halves() -> None:
  function, generation = Function("k"), Generation("gfx1100")
  row = macro_row(generation, "move64", (None,))
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(row, [regs.v(4, 2), 0x1_0000_0007])]
  expand_macros(function, target("gfx1100"))
  assert [inst.operands[:2] for inst in function.blocks[0].insts] == [[regs.v(4), 7], [regs.v(5), 1]]

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_a_masked_access_narrows_exec_and_restores_it(arch: str) -> None:
  generation, rows = Generation(arch), table(arch)
  load = build(rows["global_load_b32"], regs.v(1), regs.v(0), regs.s(2, 2))
  row = masked_row(load.row, generation)
  assert row.effects & Effect.WRITE_FLAGS and row.operands[2].access is Access.BOTH
  mask: list[Reg] = [regs.s(4 * k, generation.wave // 32) for k in (2, 3)]
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = [MInst(row, [*mask, *load.operands])]
  expand_macros(function, target(arch))
  narrowed, access, whole = function.blocks[0].insts
  assert narrowed.row.name == f"s_and_saveexec_b{generation.wave}" and narrowed.operands == [mask[1], mask[0]]
  assert access.operands == load.operands and whole.operands[1] == mask[1] and repr(whole.operands[0])[:4] == "exec"

# ***** division *****

def rounded(x: Fraction, bits: int) -> Fraction:
  """The nearest number with this number of bits, rounded to even."""
  if not x: return x
  exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
  unit = Fraction(2) ** (exponent - (abs(x) < Fraction(2) ** exponent) - bits + 1)
  return round(x / unit) * unit

def divided(a: Fraction, b: Fraction, estimate: Fraction, bits: int) -> Fraction:
  """The quotient by div_f64's lines in a format with this number of bits and any exponent, if v_rcp_f64 returns
  `estimate`."""
  values = {"a": a, "b": b}
  def value(word: object) -> Fraction:
    if isinstance(word, int): return Fraction(struct.unpack("d", word.to_bytes(8, "little"))[0])
    assert isinstance(word, tuple)
    return -values[word[0]] if word[2] == "-" else values[word[0]]
  for key, (destination, *sources) in MACROS["div_f64"].lines:
    if key.startswith("v_div_scale"):
      values[destination[0]] = value(("b" if destination[0] == "den" else "a", None, ""))
    elif key == "v_rcp_f64": values[destination[0]] = estimate
    elif key == "v_mul_f64": values[destination[0]] = rounded(value(sources[0]) * value(sources[1]), bits)
    elif key in ("v_fma_f64", "v_div_fmas_f64"):
      values[destination[0]] = rounded(value(sources[0]) * value(sources[1]) + value(sources[2]), bits)
    else: assert key == "v_div_fixup_f64"
  return values["q"]

@pytest.mark.slow
@pytest.mark.parametrize("bits", (4, 5, 6))
def test_division_is_correctly_rounded_in_small_formats(bits: int) -> None:
  """All mantissas, from all estimates with 4 correct bits. 7 and 8 bits were tested by hand."""
  mantissas = [Fraction(k, 1 << bits - 1) for k in range(1 << bits - 1, 1 << bits)]
  for b in mantissas:
    estimates = [r for m in mantissas for r in (m / 2, m / 4, m) if abs(b * r - 1) <= Fraction(1, 16)]
    assert estimates
    for a in mantissas: assert {divided(a, b, r, bits) for r in estimates} == {rounded(a / b, bits)}, (a, b)

@pytest.mark.parametrize("arch", MACHINES)
def test_division_by_mantissas_of_ones(arch: str) -> None:
  """1/b is a little above the middle of two numbers."""
  divisors = [x * 2.0 ** k for k in (-1000, -3, 0, 1, 900) for x in (1 - 2.0 ** -53, 1 - 2.0 ** -52, 1 - 3 * 2.0 ** -53,
                                                                     1 + 2.0 ** -52)]
  r = UOp.range(len(divisors), 0, AxisType.LOCAL)
  a, b = (UOp.param(k, dtypes.float64, len(divisors)).index(r).load() for k in (1, 2))
  kernel = UOp.sink(UOp.param(0, dtypes.float64, len(divisors)).index(r).store(UOp(Ops.FDIV, dtypes.float64, (a, b)),
                                                                               r))
  for dividend in (1.0, -4.0, 1 - 2.0 ** -53, 3.0):
    check(kernel, arch, data={0: [0.0] * len(divisors), 1: [dividend] * len(divisors), 2: divisors}, optimized=False,
          what="division")

@pytest.mark.parametrize("low", range(4))
@pytest.mark.parametrize("high", range(4))
def test_halves_of_groups_are_picked_by_a_selector(low: int, high: int) -> None:
  """The result of v_perm_b32 by its own definition: bytes 0 to 3 are the second source's, 4 to 7 the first one's."""
  group, words = regs.v(4, 2), (0x1110_0100, 0x3130_2120)
  selector = selector_of(low, high)
  (inst,) = permute(((0, low, 0, high, 0),), 1, Generation("gfx1100"), [regs.v(9), group, regs.s(2)])
  first, second = (words[o.index - 4] for o in inst.operands[1:3])
  picked = (second | first << 32).to_bytes(8, "little")
  result = int.from_bytes(bytes(picked[selector >> 8 * k & 255] for k in range(4)), "little")
  def half(number: int) -> int: return words[number // 2] >> 16 * (number % 2) & 0xffff
  assert inst.row.name == "v_perm_b32" and result == half(low) | half(high) << 16
