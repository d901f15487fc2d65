"""Sums of four products of bytes, executed by the processor in Python; the instructions that they take."""
from __future__ import annotations
import itertools
import random

from generators.byte_words import WORDS, byte_words
from generators.program_builder import Builder
import pytest
from x86 import kernels as x86_kernels

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

I32, U32 = dtypes.int32, dtypes.uint32
AVX2, AVX512, VNNI = "x86_64:avx2", "x86_64:avx512", "x86_64:avx512vnni"
LANES = [(AVX2, 2), (AVX2, 4), (AVX2, 8), (AVX512, 2), (AVX512, 4), (AVX512, 8), (AVX512, 16)]
SIGNS = list(itertools.product((I32, U32), (I32, U32)))

# All products are the largest, so that sums of 16 bits would overflow
LARGEST = [bytes([byte]) * 4 * WORDS for byte in (0x80, 0xff, 0x7f)]

def dot(a: DType, b: DType, lanes: int, masks: tuple[int | None, int | None] = (None, None), total: int | None = None,
        times: int = 1) -> Program:
  """Return the program of out = dot(a & mask, b & mask) + total, and again with that as the total. total: a constant,
  or None for one in memory."""
  build = Builder("dot")
  out, x, y, z = [build.param(k, dtype, WORDS) for k, dtype in enumerate((I32, a, b, I32))]
  with build.loop(WORDS // lanes, AxisType.GLOBAL) as g:
    factors = []
    for p, mask in zip((x, y), masks, strict=True):
      u = build.load(p, g * lanes, lanes)
      if mask is not None: u = build.add(u.alu(Ops.AND, UOp.const(u.dtype, mask)))
      factors.append(u)
    value = build.load(z, g * lanes, lanes) if total is None else build.const(I32.vec(lanes), total)
    for _ in range(times): value = build.add(UOp(Ops.DOT4, I32.vec(lanes), (*factors, value)))
    build.store(out, g * lanes, value)
  return build.program()

def run(program: Program, arch: str) -> None:
  data = [byte_words(1), byte_words(2), bytes(random.Random(3).randbytes(4 * WORDS))]
  x86_kernels.run(program, arch, [bytes(4 * WORDS), *data])
  for x, y in itertools.product(LARGEST, LARGEST):
    x86_kernels.run(program, arch, [bytes(4 * WORDS), x, y, bytes(4 * WORDS)])

def rows(program: Program, arch: str) -> list[str]:
  """Return the names of the instructions of DOT4s, without their operands."""
  found = [inst.row.name.partition("_")[0] for block in target(arch).select(program, target(arch)).blocks
           for inst in block.insts]
  return sorted(name for name in found if name.startswith(("vpmadd", "vpdp", "vpadd", "vpsll", "vpsra", "vpsrl")))

@pytest.mark.parametrize("arch, lanes", [(AVX2, 8), (AVX512, 16), (VNNI, 16)])
@pytest.mark.parametrize("users", (1, 2))
def test_a_word_that_all_lanes_share_is_spread_from_memory(arch: str, lanes: int, users: int) -> None:
  """It is loaded as uint32, and its bits are those of an int32. A second user has it in a register."""
  build = Builder("shared word")
  out, x, y = build.param(0, I32, WORDS), build.param(1, U32, WORDS), build.param(2, U32, WORDS)
  with build.loop(WORDS // lanes, AxisType.GLOBAL) as g:
    word = build.add(UOp(Ops.BITCAST, I32, (build.load(y, g, 1),)))
    shared = build.add(UOp(Ops.BROADCAST, I32.vec(lanes), (word,)))
    value = build.add(UOp(Ops.DOT4, I32.vec(lanes), (build.load(x, g * lanes, lanes), shared,
                                                      build.const(I32.vec(lanes), 0))))
    if users > 1: value = build.add(value.alu(Ops.ADD, build.add(UOp(Ops.BROADCAST, I32.vec(lanes), (
      build.add(word.alu(Ops.ADD, word)),)))))
    build.store(out, g * lanes, value)
  program = build.program()
  x86_kernels.run(program, arch, [bytes(4 * WORDS), byte_words(1), byte_words(2)])
  names = [inst.row.isa.key for block in target(arch).select(program, target(arch)).blocks for inst in block.insts]
  assert ("mov_r32_m32" in names) == (users == 2), names

@pytest.mark.parametrize("arch, lanes", LANES)
@pytest.mark.parametrize("a, b", SIGNS, ids=str)
def test_all_bytes(a: DType, b: DType, arch: str, lanes: int) -> None:
  """The sums of vpmaddubsw would saturate."""
  program = dot(a, b, lanes)
  run(program, arch)
  assert "vpmaddubsw" not in rows(program, arch) and rows(program, arch).count("vpmaddwd") == 2

@pytest.mark.parametrize("arch, lanes", LANES)
@pytest.mark.parametrize("mask", (0x7f7f7f7f, 0x0f0f0f0f, 0x01010101))
@pytest.mark.parametrize("swapped", (False, True))
def test_small_unsigned_bytes(mask: int, swapped: bool, arch: str, lanes: int) -> None:
  program = dot(I32, U32, lanes, (None, mask)) if swapped else dot(U32, I32, lanes, (mask, None))
  run(program, arch)
  assert rows(program, arch) == ["vpaddd", "vpmaddubsw", "vpmaddwd"]

@pytest.mark.parametrize("arch", (AVX2, AVX512))
@pytest.mark.parametrize("a, b, masks", [
  (U32, I32, (0x7fff7f7f, None)),   # one of the bytes is large
  (U32, I32, (-0x7f7f7f80 & 0xffffffff, None)), (U32, U32, (0x7f7f7f7f, None)), (U32, U32, (0x7f7f7f7f, 0x7f7f7f7f)),
  (I32, I32, (0x7f7f7f7f, None)), (U32, I32, (None, 0x7f7f7f7f))], ids=str)
def test_bytes_that_are_small_in_vain(a: DType, b: DType, masks: tuple[int | None, int | None], arch: str) -> None:
  """Both the type and the size of the bytes count."""
  program = dot(a, b, 8, masks)
  run(program, arch)
  assert "vpmaddubsw" not in rows(program, arch)

@pytest.mark.parametrize("arch", (AVX2, AVX512))
@pytest.mark.parametrize("mask, additions", ((0x0f0f0f0f, 0), (None, 1)))
def test_a_total_of_zero_is_not_added(mask: int | None, additions: int, arch: str) -> None:
  programs = [dot(U32, I32, 8, (mask, None), total) for total in (0, 7, None)]
  for program in programs: run(program, arch)
  assert [rows(program, arch).count("vpaddd") for program in programs] == [additions, additions + 1, additions + 1]

@pytest.mark.parametrize("arch", (AVX2, AVX512))
@pytest.mark.parametrize("mask", (0x7f7f7f7f, None))
def test_totals_wrap_and_chains(mask: int | None, arch: str) -> None:
  program = dot(U32, I32, 8, (mask, None), times=3)
  run(program, arch)
  for total in (b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"):   # the largest and the smallest
    for factor in LARGEST:
      x86_kernels.run(program, arch, [bytes(4 * WORDS), LARGEST[2], factor, total * WORDS])

@pytest.mark.parametrize("arch", (AVX2, AVX512))
def test_fields_of_signed_words_are_not_small(arch: str) -> None:
  """A shift of int32 copies the sign, so the highest byte is large, whatever the mask before was."""
  build = Builder("sign")
  out, x, y = build.param(0, I32, WORDS), build.param(1, I32, WORDS), build.param(2, I32, WORDS)
  with build.loop(WORDS // 8, AxisType.GLOBAL) as g:
    u = build.add(build.load(x, g * 8, 8).alu(Ops.AND, UOp.const(I32.vec(8), -0x3f3f3f40)))
    u = build.add(build.add(u.alu(Ops.SHR, UOp.const(I32.vec(8), 2))).bitcast(U32.vec(8)))
    build.store(out, g * 8, build.add(UOp(Ops.DOT4, I32.vec(8), (u, build.load(y, g * 8, 8),
                                                                 build.const(I32.vec(8), 0)))))
  x86_kernels.run(build.program(), arch, [bytes(4 * WORDS), *LARGEST[:1], LARGEST[0]])
  x86_kernels.run(build.program(), arch, [bytes(4 * WORDS), LARGEST[1], LARGEST[0]])

@pytest.mark.parametrize("lanes", (2, 4, 8, 16))
@pytest.mark.parametrize("a, b", SIGNS, ids=str)
def test_all_bytes_with_vnni(a: DType, b: DType, lanes: int) -> None:
  program = dot(a, b, lanes, times=2)
  run(program, VNNI)
  if a is not b: assert rows(program, VNNI) == ["vpdpbusd", "vpdpbusd"]
  elif a is I32: assert rows(program, VNNI).count("vpdpbusd") == 4

def test_masked_bytes_with_vnni() -> None:
  program = dot(U32, I32, 16, (0x0f0f0f0f, None))
  run(program, VNNI)
  assert rows(program, VNNI) == ["vpdpbusd"]

# ***** pairs of bfloat16 *****

F32, BF16 = dtypes.float32, "x86_64:avx512bf16"
HALVES = (0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x3f80, 0xbf81, 0x3f00, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 0x4049,
          0x0f10)

def pairs(lanes: int, spread: bool = False) -> Program:
  """Return the program of out = dot2(x, y) + z. spread: y is one word for all lanes."""
  build = Builder("pairs")
  out, x, y, z = [build.param(k, dtype, WORDS) for k, dtype in enumerate((F32, U32, U32, F32))]
  with build.loop(WORDS // lanes, AxisType.GLOBAL) as g:
    second = build.load(y, g * lanes, 1 if spread else lanes)
    if spread: second = build.add(UOp(Ops.BROADCAST, U32.vec(lanes), (second,)))
    operands = build.load(x, g * lanes, lanes), second, build.load(z, g * lanes, lanes)
    build.store(out, g * lanes, build.add(UOp(Ops.DOT2, F32.vec(lanes), operands)))
  return build.program()

@pytest.mark.parametrize("lanes", (2, 4, 8, 16))
@pytest.mark.parametrize("spread", (False, True))
def test_pairs_of_bfloat16(lanes: int, spread: bool) -> None:
  rng, program = random.Random(lanes), pairs(lanes, spread)
  for _ in range(20):
    words = [b"".join(rng.choice(HALVES).to_bytes(2, "little") if rng.random() < 0.5 else rng.randbytes(2)
                      for _ in range(2 * WORDS)) for _ in range(2)]
    x86_kernels.run(program, BF16, [bytes(4 * WORDS), *words, rng.randbytes(4 * WORDS)])
  found = [inst.row.name for block in target(BF16).select(program, target(BF16)).blocks for inst in block.insts]
  assert found.count("vdpbf16ps") == 1
  assert lanes < 4 or not any("broadcast" in name for name in found), "the instruction spreads a word itself"
