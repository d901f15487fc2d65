"""Matrix instructions: layouts against AMD's calculator, products against plain sums, signs, saturation."""
from __future__ import annotations
import random
import struct
from pathlib import Path

import pytest
from amd.kernels import Box, Kernel, floats, words

from tinyhw.dtype import decode_float, dtypes
from tinyhw.emulator.amd.execute.matrix import WIDTHS, Product, operand_places, product_of, result_places
from tinyhw.emulator.errors import StrictError, UnknownInstruction
from tinyhw.isa.amd.table import regs

GOLDEN = Path(__file__).resolve().parents[3] / "golden/amd_matrix_layouts.txt"
LAYOUTS = [line.split(" ; ") for line in GOLDEN.read_text(encoding="utf-8").splitlines() if line[0] != "#"]

def product(name: str) -> Product:
  found = product_of(name)
  assert found is not None
  return found

@pytest.mark.parametrize("row", LAYOUTS, ids=lambda row: row[0].replace(" ", "-"))
def test_layouts(row: list[str]) -> None:
  """Each element is where the calculator has it, and no other place has an element."""
  arch, lanes, name = row[0].split()
  p, rdna3 = product(name), arch == "gfx1100"
  codes = [compile(text.strip(), name, "eval") for text in row[1:]]
  def place(code: int, **names: int) -> tuple[int, ...]: return tuple(eval(c, {}, names) for c in codes[code:code + 3])
  found = {(x.block, x.line, x.depth): (x.register, x.shift, x.lane)
           for x in reversed(operand_places(p, p.a, int(lanes), rdna3))}
  assert found == {(b, i, k): place(0, block=b, i=i, k=k) for b in range(p.blocks) for i in range(p.m)
                   for k in range(p.k)}
  found = {(x.block, x.line, x.depth): (x.register, x.shift, x.lane) for x in result_places(p, int(lanes), rdna3)}
  assert found == {(b, i, j): place(3, block=b, i=i, j=j) for b in range(p.blocks) for i in range(p.m)
                   for j in range(p.n)}

def encoded(kind: str, value: int, arch: str) -> int:
  """Encode a small integer as an element; for 8-bit floats the code of a small number."""
  if kind == "f64": return int(struct.unpack("<Q", struct.pack("<d", value))[0])
  if kind in ("f32", "xf32"): return int(struct.unpack("<I", struct.pack("<f", value))[0])
  if kind == "f16": return int(struct.unpack("<H", struct.pack("<e", value))[0])
  if kind == "bf16": return int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16
  if kind in ("fp8", "bf8"): return next(code for code in range(256) if decode_float(code, float8(kind, arch)) == value)
  return value & (1 << WIDTHS[kind]) - 1

def float8(kind: str, arch: str) -> object:
  return (dtypes.fp8_fnuz if arch == "gfx942" else dtypes.fp8_ocp)[kind == "bf8"]

def run(arch: str, name: str, lanes: int, a: list[list[list[int]]], b: list[list[list[int]]], c: list[list[list[int]]],
        **modifiers: int
        ) -> dict[tuple[int, int, int], int]:
  """Return (block, row, column) -> bits of D.

  The registers of A, B and C come from memory, so that any kernel can load them.
  """
  p, rdna3 = product(name), arch == "gfx1100"
  k, box = Kernel(arch, lanes), Box()
  images = []
  for kind, matrix in ((p.a, a), (p.b, b)):
    image: dict[int, list[int]] = {}
    for x in operand_places(p, kind, lanes, rdna3):
      bits = encoded(kind, matrix[x.block][x.line][x.depth], arch)
      for extra in range(max(WIDTHS[kind] // 32, 1)):
        row = image.setdefault(x.register + extra, [0] * lanes)
        row[x.lane] |= (bits >> 32 * extra & 0xffffffff) << x.shift & 0xffffffff
    images.append(image)
  image = {}
  for x in result_places(p, lanes, rdna3):
    bits = encoded(p.d, c[x.block][x.line][x.depth], arch)
    for extra in range(max(WIDTHS[p.d] // 32, 1)):
      row = image.setdefault(x.register + extra, [0] * lanes)
      row[x.lane] |= (bits >> 32 * extra & 0xffffffff) << x.shift & 0xffffffff
  images.append(image)
  box.buffer(b"".join(struct.pack(f"<{lanes}I", *image[r]) for image in images for r in range(len(image))))
  out = box.buffer(4 * lanes * len(images[2]))
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("s_load_b64", k.s(6, 2), k.s(0, 2), None, offset=8)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k.wait(lgkm=0)
  starts, next_row = [], 2
  for image in images:
    starts.append(next_row)
    for r in range(len(image)):
      k("global_load_b32", k.v(next_row + r), k.v(1), k.s(4, 2))
      k("s_add_u32", k.s(4), k.s(4), 4 * lanes)
    next_row += len(image) + len(image) % 2
  k.wait(vm=0)
  size = [len(image) for image in images]
  d = k.v(starts[2], size[2])
  k(name, d, k.v(starts[0], size[0]), k.v(starts[1], size[1]), d, **modifiers)
  for _ in range(2): k("s_nop", 15)
  for r in range(size[2]):
    k("global_store_b32", k.v(1), k.v(starts[2] + r), k.s(6, 2))
    k("s_add_u32", k.s(6), k.s(6), 4 * lanes)
  k("s_endpgm")
  box.run(k, (lanes,), vgprs=128, accumulator=128 if k.cdna else None)
  found, raw = {}, words(out)
  for x in result_places(p, lanes, rdna3):
    bits = raw[x.register * lanes + x.lane]
    if WIDTHS[p.d] == 64: bits |= raw[(x.register + 1) * lanes + x.lane] << 32
    found[x.block, x.line, x.depth] = bits >> x.shift & (1 << WIDTHS[p.d]) - 1
  return found

def matrices(p: Product, source: random.Random, low: int = -2, high: int = 2) -> tuple[list[list[list[int]]], ...]:
  """Return A by rows, B by columns, C by rows, of small integers."""
  if p.a in ("iu8", "iu4"): low = 0
  return tuple([[[source.randint(low, high) for _ in range(inner)] for _ in range(outer)] for _ in range(p.blocks)]
               for outer, inner in ((p.m, p.k), (p.n, p.k), (p.m, p.n)))

CASES = [("gfx1100", 32, "v_wmma_f32_16x16x16_f16"), ("gfx1100", 64, "v_wmma_f32_16x16x16_bf16"),
         ("gfx1100", 32, "v_wmma_f16_16x16x16_f16"),
         ("gfx1100", 32, "v_wmma_i32_16x16x16_iu8"), ("gfx1100", 32, "v_wmma_i32_16x16x16_iu4"),
         ("gfx1100", 64, "v_wmma_bf16_16x16x16_bf16"),
         ("gfx1200", 32, "v_wmma_f32_16x16x16_f16"), ("gfx1200", 64, "v_wmma_f32_16x16x16_bf16"),
         ("gfx1200", 32, "v_wmma_f16_16x16x16_f16"),
         ("gfx1200", 32, "v_wmma_f32_16x16x16_fp8_bf8"), ("gfx1200", 32, "v_wmma_i32_16x16x32_iu4"),
         ("gfx1200", 64, "v_wmma_i32_16x16x16_iu8"),
         ("gfx942", 64, "v_mfma_f32_32x32x8_f16"), ("gfx942", 64, "v_mfma_f32_16x16x16_bf16"),
         ("gfx942", 64, "v_mfma_f32_16x16x4_f32"),
         ("gfx942", 64, "v_mfma_f32_32x32x1_2b_f32"), ("gfx942", 64, "v_mfma_f32_4x4x4_16b_f16"),
         ("gfx942", 64, "v_mfma_i32_16x16x32_i8"),
         ("gfx942", 64, "v_mfma_f64_16x16x4_f64"), ("gfx942", 64, "v_mfma_f64_4x4x4_4b_f64"),
         ("gfx942", 64, "v_mfma_f32_16x16x32_fp8_bf8"),
         ("gfx942", 64, "v_mfma_f32_16x16x8_xf32"), ("gfx950", 64, "v_mfma_f32_16x16x32_f16"),
         ("gfx950", 64, "v_mfma_i32_32x32x32_i8")]

@pytest.mark.parametrize("arch,lanes,name", CASES, ids=lambda x: str(x))
def test_products(arch: str, lanes: int, name: str) -> None:
  p = product(name)
  a, b, c = matrices(p, random.Random(name))
  found = run(arch, name, lanes, a, b, c)
  for (block, i, j), bits in found.items():
    expected = sum(x * y for x, y in zip(a[block][i], b[block][j])) + c[block][i][j]
    assert bits == encoded(p.d, expected, arch), (block, i, j)

@pytest.mark.slow
def test_signs_of_integers_and_saturation() -> None:
  """neg_lo says which operands are signed. Without it 0xff is 255."""
  name = "v_wmma_i32_16x16x16_iu8"
  ones, minus = [[[1] * 16 for _ in range(16)]], [[[-1] * 16 for _ in range(16)]]
  zero = [[[0] * 16 for _ in range(16)]]
  assert set(run("gfx1100", name, 32, minus, ones, zero).values()) == {255 * 16}
  assert set(run("gfx1100", name, 32, minus, ones, zero, neg_lo=1).values()) == {-16 & 0xffffffff}
  assert set(run("gfx1100", name, 32, minus, minus, zero, neg_lo=2).values()) == {-255 * 16 & 0xffffffff}
  high = [[[0x7fffffff] * 16 for _ in range(16)]]
  assert set(run("gfx1100", name, 32, ones, ones, high, clamp=1).values()) == {0x7fffffff}
  assert set(run("gfx1100", name, 32, ones, ones, high).values()) == {0x8000000f}

@pytest.mark.slow
def test_negation_of_floats() -> None:
  name = "v_wmma_f32_16x16x16_f16"
  ones, two = [[[1] * 16 for _ in range(16)]], [[[2] * 16 for _ in range(16)]]
  def value(**modifiers: int) -> float:
    return floats(struct.pack("<I", run("gfx1100", name, 32, ones, ones, two, **modifiers)[0, 0, 0]))[0]
  assert value() == 18.0
  assert value(neg_lo=1, neg_hi=1) == -14.0
  assert value(neg_lo=4) == 14.0
  assert value(neg_lo=4, neg_hi=4) == 14.0   # -|2|

def test_what_is_refused() -> None:
  k = Kernel("gfx1100")
  for i in range(1, 40): k("v_mov_b32", k.v(i), 0)
  k("s_mov_b32", regs.reg(regs.S[1], regs.EXEC), 1)
  k("v_wmma_f32_16x16x16_f16", k.v(8, 8), k.v(16, 8), k.v(24, 8), k.v(8, 8))
  with pytest.raises(StrictError, match="WMMA needs all bits of EXEC"): Box().run(k)
  k = Kernel("gfx942")
  k("v_mfma_f32_32x32x4_2b_f16", k.v(32, 32), k.v(2, 2), k.v(4, 2), k.v(32, 32), cbsz=1)
  with pytest.raises(UnknownInstruction, match="cbsz"): Box().run(k, (64,))
