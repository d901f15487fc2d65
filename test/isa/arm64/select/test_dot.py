"""Sums of products of bytes and of pairs of bfloat16, executed by QEMU; the instructions that they take."""
from __future__ import annotations
import itertools
import math
import random
import struct
from fractions import Fraction

import pytest
from arm64.machine import execute, needs_qemu, run, same_bytes
from generators.byte_words import WORDS, byte_words
from generators.program_builder import Builder

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.dot import fits_signs
from tinyhw.isa.arm64.target import compile, target
from tinyhw.machine.ir.inst import MInst
from tinyhw.machine.select.unused import drop_unused
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

I32, U32, F32 = dtypes.int32, dtypes.uint32, dtypes.float32
CPUS = {"arm64:neon": "cortex-a72", "arm64:dotprod": "neoverse-n1", "arm64:bf16": "max", "arm64:fhm": "max"}
SIGNS = list(itertools.product((I32, U32), (I32, U32)))

def dots(a: DType, b: DType, lanes: int, mask: int | None = None, times: int = 1, spread: bool = False) -> Program:
  """The program of out = dot(a & mask, b) + total, and again with that as the total. spread: b is one word for all
  lanes."""
  build = Builder("dot")
  out, x, y, z = [build.param(k, dtype, WORDS) for k, dtype in enumerate((I32, a, b, I32))]
  with build.loop(WORDS // lanes, AxisType.GLOBAL) as g:
    first = build.load(x, g * lanes, lanes)
    if mask is not None: first = build.add(first.alu(Ops.AND, UOp.const(first.dtype, mask)))
    second = build.load(y, g * lanes, 1 if spread else lanes)
    if spread: second = build.add(UOp(Ops.BROADCAST, b.vec(lanes), (second,)))
    value = build.load(z, g * lanes, lanes)
    for _ in range(times): value = build.add(UOp(Ops.DOT4, I32.vec(lanes), (first, second, value)))
    build.store(out, g * lanes, value)
  return build.program()

def names(program: Program, arch: str) -> list[str]:
  function = target(arch).select(program, target(arch))   # type: ignore[misc]  # it has one
  return [inst.row.name for block in function.blocks for inst in block.insts]

@needs_qemu
@pytest.mark.parametrize("arch", CPUS)
@pytest.mark.parametrize("lanes", (2, 4))
@pytest.mark.parametrize("a, b", SIGNS, ids=str)
def test_all_bytes(a: DType, b: DType, lanes: int, arch: str) -> None:
  """In 16 bits some of the products and sums would overflow; totals wrap."""
  for spread in (False, True):
    program = dots(a, b, lanes, times=2, spread=spread)
    data = [byte_words(1), byte_words(2), random.Random(3).randbytes(4 * WORDS)]
    for factors in (data, [b"\x80" * 4 * WORDS] * 2 + [b"\xff\xff\xff\x7f" * WORDS], [b"\xff" * 4 * WORDS] * 3):
      run(program, arch, [bytes(4 * WORDS), *factors], cpu=CPUS[arch])

@pytest.mark.parametrize("arch,a,b,mask,spread,found", [
  ("arm64:dotprod", I32, I32, None, False, ["sdot"]), ("arm64:dotprod", U32, U32, None, False, ["udot"]),
  ("arm64:dotprod", U32, I32, 0x7f7f7f7f, False, ["sdot"]),       # bytes below 128 need no sign
  ("arm64:dotprod", U32, I32, 0x0f0f0f0f, True, ["sdot"]),
  ("arm64:dotprod", U32, I32, None, False, ["add", "eor", "sdot"]),
  ("arm64:dotprod", I32, U32, None, False, ["add", "eor", "sdot"]),
  ("arm64:bf16", U32, I32, None, False, ["usdot"]), ("arm64:bf16", I32, U32, None, False, ["usdot"]),
  ("arm64:bf16", I32, U32, None, True, ["sudot"]), ("arm64:bf16", U32, I32, None, True, ["usdot"]),
  ("arm64:bf16", I32, I32, None, True, ["sdot"])])
def test_instructions(arch: str, a: DType, b: DType, mask: int | None, spread: bool, found: list[str]) -> None:
  """A word for all lanes is an element of a register, so nothing copies it."""
  made = names(dots(a, b, 4, mask, spread=spread), arch)
  assert [n for n in sorted(set(made)) if n in ("sdot", "udot", "usdot", "sudot", "eor", "dup")
          or n == "add" and "eor" in made] == found

@needs_qemu
@pytest.mark.parametrize("source", (F32, U32, I32), ids=lambda d: d.name)
@pytest.mark.parametrize("times", (1, 2))
def test_words_for_all_lanes_from_any_load(source: DType, times: int) -> None:
  """The bits of a float are a word, too. A word that something else reads is in a general register."""
  build = Builder("bits")
  out, x, y = build.param(0, I32, WORDS), build.param(1, I32, WORDS), build.param(2, source, WORDS)
  with build.loop(WORDS // 4, AxisType.GLOBAL) as g:
    word = build.load(y, g)
    if source is not I32: word = build.add(word.bitcast(I32))
    second = build.add(UOp(Ops.BROADCAST, I32.vec(4), (word,)))
    value = build.add(UOp(Ops.DOT4, I32.vec(4), (build.load(x, g * 4, 4), second, build.const(I32.vec(4), 5))))
    if times == 2: value = build.add(value + build.add(UOp(Ops.BROADCAST, I32.vec(4), (build.add(word + 1),))))
    build.store(out, g * 4, value)
  numbers = struct.pack(f"<{WORDS}f", *(1.37 * k - 20 for k in range(WORDS)))   # bits of NaN may change
  run(build.program(), "arm64:dotprod", [bytes(4 * WORDS), byte_words(8), numbers], cpu="max")

def test_a_chain_adds_the_sum_of_bytes_once() -> None:
  made = names(dots(U32, I32, 4, times=5), "arm64:dotprod")
  assert made.count("sdot") == 5 and made.count("saddlp") == 2 * 5

@needs_qemu
@pytest.mark.parametrize("arch", CPUS)
def test_rows_share_the_sum_of_bytes(arch: str) -> None:
  """Two rows by the same words, of which one sum is used again later."""
  build = Builder("rows")
  out, x, y, z = [build.param(k, dtype, WORDS) for k, dtype in enumerate((I32, U32, I32, I32))]
  with build.loop(WORDS // 16, AxisType.GLOBAL) as g:
    second = [build.load(y, build.add(g * 8 + 4 * k), 4) for k in range(2)]
    first = [build.load(x, build.add(g * 16 + 4 * k), 4) for k in range(4)]
    start, sums = build.load(z, g * 4, 4), []
    for row in range(2):
      value = start
      for k in range(2): value = build.add(UOp(Ops.DOT4, I32.vec(4), (first[2 * row + k], second[k], value)))
      sums.append(value)
    again = build.add(UOp(Ops.DOT4, I32.vec(4), (first[0], second[1], sums[0])))
    for k, value in enumerate((*sums, again)): build.store(out, build.add(g * 16 + 4 * k), value)
  run(build.program(), arch, [bytes(4 * WORDS), byte_words(4), byte_words(5), byte_words(6)], cpu=CPUS[arch])
  made = names(build.program(), arch)
  if arch == "arm64:dotprod": assert made.count("saddlp") == 2 * 2 + 2, "sums of words 0, 1, and of 1 alone"

@needs_qemu
@pytest.mark.parametrize("down,mask,shifted", [(4, 0x0f0f0f0f, True), (2, 0x3f3f3f3f, True), (4, 0x03030303, False),
                                               (8, 0x00ffffff, False), (1, 0x7f7f7f7f, True)])
def test_bytes_that_are_shifted_by_themselves(down: int, mask: int, shifted: bool) -> None:
  build = Builder("shift")
  out, x = build.param(0, U32, WORDS), build.param(1, U32, WORDS)
  with build.loop(WORDS // 4, AxisType.GLOBAL) as g:
    value = build.add(build.load(x, g * 4, 4).alu(Ops.SHR, UOp.const(U32.vec(4), down)))
    build.store(out, g * 4, build.add(value.alu(Ops.AND, UOp.const(U32.vec(4), mask))))
  run(build.program(), "arm64:neon", [bytes(4 * WORDS), byte_words(7)])
  assert ("and" not in names(build.program(), "arm64:neon")) == shifted

def test_signs() -> None:
  """Small unsigned bytes are signed ones, too. Signed ones are never unsigned."""
  small = UOp.const(U32, 0x7f010203)
  words_of = {"s": UOp.variable("s", -9, 9).cast(I32), "u": UOp.variable("u", 0, 9).cast(U32)}
  assert fits_signs("ss", [small, words_of["s"]]) and fits_signs("us", [small, words_of["s"]])
  assert not fits_signs("ss", [words_of["u"], words_of["s"]]) and not fits_signs("uu", [small, words_of["s"]])
  assert fits_signs("", [words_of["u"]])

# ***** pairs of bfloat16 *****

HALVES = (0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x3f80, 0xbf81, 0x3f00, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0x4049,
          0x0f10)

def number(bits: int) -> float:
  """A float32. Subnormal ones count as zero."""
  value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
  return math.copysign(0.0, value) if abs(value) < 2.0 ** -126 else value

def odd(x: Fraction) -> float:
  """A number as float32, rounded to odd: of the two neighbours the one with the odd last bit. Subnormals are zero."""
  sign, x = (-1 if x < 0 else 1), abs(x)
  if not x: return 0.0
  exponent = math.floor(math.log2(x)) if x < 2 ** 1000 else 1000
  while 2 ** Fraction(exponent + 1) <= x: exponent += 1
  while 2 ** Fraction(exponent) > x: exponent -= 1
  if exponent < -126: return math.copysign(0.0, sign)
  if exponent > 127: return math.copysign(math.inf, sign)
  unit = Fraction(2) ** (exponent - 23)
  count = x // unit
  return sign * float((count + (count * unit != x and count % 2 == 0)) * unit)

def added(a: float, b: float) -> float:
  """The manual's BFAdd."""
  if not (math.isfinite(a) and math.isfinite(b)): return a + b
  return odd(Fraction(a) + Fraction(b)) if a or b else a + b

def multiplied(a: float, b: float) -> float:
  """The manual's BFMul."""
  if not (math.isfinite(a) and math.isfinite(b)) or not a or not b: return a * b
  return odd(Fraction(a) * Fraction(b))

def bfdot(x: int, y: int, z: int) -> float:
  """The manual's BFDotAdd (DDI 0487, shared pseudocode): the sum of both products, then that and z."""
  upper, lower = (multiplied(*(number(w >> shift << 16 & 0xffff0000) for w in (x, y))) for shift in (16, 0))
  return added(number(z), added(lower, upper))

def pairs(lanes: int, spread: bool) -> Program:
  """The program of out = dot2(x, y) + z. spread: y is one word for all lanes."""
  build = Builder("pairs")
  out, x, y, z = [build.param(k, dtype, WORDS) for k, dtype in enumerate((F32, U32, U32, F32))]
  with build.loop(WORDS // lanes, AxisType.GLOBAL) as g:
    second = build.load(y, g * lanes, 1 if spread else lanes)
    if spread: second = build.add(UOp(Ops.BROADCAST, U32.vec(lanes), (second,)))
    operands = build.load(x, g * lanes, lanes), second, build.load(z, g * lanes, lanes)
    build.store(out, g * lanes, build.add(UOp(Ops.DOT2, F32.vec(lanes), operands)))
  return build.program()

@needs_qemu
@pytest.mark.parametrize("lanes", (2, 4))
@pytest.mark.parametrize("spread", (False, True))
def test_pairs_of_bfloat16_are_those_of_the_manual(lanes: int, spread: bool) -> None:
  rng, program = random.Random(lanes), pairs(lanes, spread)
  made = names(program, "arm64:bf16")
  assert made.count("bfdot") == 1 and "dup" not in made
  code = compile(program, "arm64:bf16")
  for _ in range(20):
    x, y = [b"".join(rng.choice(HALVES).to_bytes(2, "little") if rng.random() < 0.5 else rng.randbytes(2)
                     for _ in range(2 * WORDS)) for _ in range(2)]
    z = rng.randbytes(4 * WORDS)
    found = execute(code.text, [bytes(4 * WORDS), x, y, z], (0, WORDS // lanes), cpu="max")[0]
    first, second, third = (struct.unpack(f"<{WORDS}I", data) for data in (x, y, z))
    wanted = [bfdot(first[k], second[k - k % lanes if spread else k], third[k]) for k in range(WORDS)]
    same_bytes(F32, found, struct.pack(f"<{WORDS}f", *wanted), "bfdot")

@needs_qemu
def test_pairs_of_bfloat16_are_near_the_definition() -> None:
  """Rounding to odd errs by less than a unit in the last place, at each of two steps."""
  rng = random.Random(5)
  halves = [struct.pack("<f", rng.uniform(-4, 4))[2:] for _ in range(4 * WORDS)]
  x, y = b"".join(halves[:2 * WORDS]), b"".join(halves[2 * WORDS:])
  found = execute(compile(pairs(4, False), "arm64:bf16").text, [bytes(4 * WORDS), x, y, bytes(4 * WORDS)],
                  (0, WORDS // 4), cpu="max")[0]
  for k, value in enumerate(struct.unpack(f"<{WORDS}f", found)):
    a, b = (struct.unpack("<2I", b"".join(b"\0\0" + data[4 * k + 2 * j:4 * k + 2 * j + 2] for j in (0, 1)))
            for data in (x, y))
    products = [number(p) * number(q) for p, q in zip(a, b)]
    assert abs(value - sum(products)) <= 2 ** -22 * sum(map(abs, products))

# ***** products of float16 *****

F16 = dtypes.float16

def halves(lanes: int, alone: bool = True) -> Program:
  """The program of out = float32(x) * float32(y) + z. alone: nothing else reads the conversions."""
  build = Builder("halves")
  out, x, y, z = [build.param(k, dtype, WORDS) for k, dtype in enumerate((F32, F16, F16, F32))]
  with build.loop(WORDS // lanes, AxisType.GLOBAL) as g:
    a, b = (build.add(build.load(p, g * lanes, lanes).cast(F32.vec(lanes))) for p in (x, y))
    value = build.add(UOp(Ops.MULACC, F32.vec(lanes), (a, b, build.load(z, g * lanes, lanes))))
    build.store(out, g * lanes, value if alone else build.add(value + b))
  return build.program()

@needs_qemu
@pytest.mark.parametrize("arch", ("arm64:bf16", "arm64:fhm"))
@pytest.mark.parametrize("lanes", (1, 2, 4))
def test_products_of_float16_are_the_definition(lanes: int, arch: str) -> None:
  """To the bit, subnormal numbers, infinities and NaN included: one rounding for each product."""
  rng = random.Random(lanes)
  for alone in (True, False):
    program = halves(lanes, alone)
    for _ in range(4): run(program, arch, [bytes(4 * WORDS), *(rng.randbytes(2 * WORDS) for _ in range(2)),
                                           rng.randbytes(4 * WORDS)], cpu="max")

def test_products_of_float16_convert_nothing() -> None:
  def code(arch: str, alone: bool = True) -> list[str]:
    return [inst.row.name for inst in selected(halves(4, alone), arch)]
  assert code("arm64:fhm").count("fmlal") == 1 and "fcvtl" not in code("arm64:fhm")
  assert code("arm64:bf16").count("fcvtl") == 2 and "fmlal" not in code("arm64:bf16")
  assert code("arm64:fhm", alone=False).count("fcvtl") == 1, "the conversion that another operation reads stays"
  scalar = [inst.row.name for inst in selected(halves(1), "arm64:neon")]
  assert "fmov" not in scalar, "a half is loaded where fcvt reads it"

def selected(program: Program, arch: str) -> list[MInst]:
  """The instructions, without those that nothing reads."""
  function = drop_unused(target(arch).select(program, target(arch)), target(arch))  # type: ignore[misc]  # it has one
  return [inst for block in function.blocks for inst in block.insts]
