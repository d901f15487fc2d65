"""Products in tiles of AMX: executed by the processor in Python, and by this processor where it has them."""
from __future__ import annotations
import random
import struct

from generators.program_builder import Builder
import pytest
from x86 import kernels as x86_kernels

from test.codegen.lower.test_tiles import BF16, I8, U8, opts, product
from tinyhw import Device, Tensor, dtypes
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.passes import lower
from tinyhw.device import Launch
from tinyhw.dtype import DType
from tinyhw.errors import CompileError
from tinyhw.isa.x86.capabilities import TILES, capabilities
from tinyhw.isa.x86.describe import compile_listed
from tinyhw.isa.x86.target import compile as compile_program, target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import MatrixRows
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCH = "x86_64:amx"
F32, U32 = dtypes.float32, dtypes.uint32

def chain(products: int, live: int = 1, steps: int = 3, prefetched: int = 0) -> Program:
  """Return the program of sums of products of matrices of bfloat16, of which `live` are kept in tiles at once."""
  build = Builder("chain")
  out, x, y = build.param(0, F32, 256 * live), build.param(1, U32, 512 * steps), build.param(2, U32, 256 * steps)
  with build.loop(1, AxisType.GLOBAL):
    zero = build.const(F32.vec(256), 0.0)
    sums = [build.accumulator(zero) for _ in range(live)]
    with build.loop(steps) as r:
      places = (build.add(x.index(r * 16)), build.add(x.index(r * 16 + 5)))
      a = build.add(UOp(Ops.LOAD, U32.vec(256), places if prefetched else places[:1],
                        MatrixRows(16, 16 * steps, prefetched)))
      b = build.add(UOp(Ops.LOAD, U32.vec(256), (build.add(y.index(r * 256)),), MatrixRows(16, 16)))
      for total in sums:
        value = total
        for _ in range(products): value = build.add(UOp(Ops.MMA, F32.vec(256), (a, b, value), TILES[0]))
        build.assign(total, value)
    for k, total in enumerate(sums): build.store(out, k * 256, total)
  return build.program()

def words(n: int, seed: int, wild: bool = False) -> bytes:
  """Return words of bfloat16: small numbers, or any bits."""
  rng = random.Random(seed)
  if wild: return rng.randbytes(4 * n)
  return b"".join(struct.pack("<f", rng.randint(-64, 64) / 8)[2:] for _ in range(2 * n))

@pytest.mark.parametrize("wild", (False, True))
@pytest.mark.parametrize("products", (1, 3))
def test_chains_of_products(products: int, wild: bool) -> None:
  program = chain(products)
  x86_kernels.run(program, ARCH, [bytes(1024), words(1536, 1, wild), words(768, 2, wild)])

def test_rows_that_are_prefetched() -> None:
  program = chain(1, prefetched=3)
  x86_kernels.run(program, ARCH, [bytes(1024), words(1536, 1), words(768, 2)])
  lines = [line for line in compile_listed(program, ARCH)[1].splitlines() if "prefetcht1" in line]
  assert len(lines) == 3 and all(f"+ {20 + 4 * 48 * row}]" in line for row, line in enumerate(lines)), lines

@pytest.mark.parametrize("live", (6, 9))
def test_more_sums_than_tiles_are_spilled(live: int) -> None:
  """Two tiles are those of the operands, so six sums fit."""
  program = chain(1, live)
  x86_kernels.run(program, ARCH, [bytes(1024 * live), words(1536, 1), words(768, 2)])
  text = compile_listed(program, ARCH)[1]
  assert ("spill" in text.split("instructions")[0]) == (live > 6)

@pytest.mark.parametrize("types", [(BF16, BF16), (I8, I8), (I8, U8), (U8, I8), (U8, U8)], ids=str)
def test_kernels(types: tuple[DType, DType]) -> None:
  kernel = product(20, 32, 128, types)
  program = lower(with_opts(kernel, opts(kernel, 1, 2), TILES), capabilities(ARCH), "product")
  make = words if types[0] is BF16 else lambda n, seed: random.Random(seed).randbytes(4 * n)
  count = 128 * types[0].itemsize // 4
  x86_kernels.run(program, ARCH, [bytes(4 * 640), make(20 * count, 1), make(32 * count, 2)])

def test_a_function_with_tiles_configures_and_releases_them() -> None:
  text = compile_listed(chain(1), ARCH)[1]
  names = ("ldtilecfg", "tilezero", "tileloadd", "tdpbf16ps", "tilestored", "tilerelease")
  order = [text.index(name) for name in names]
  assert order == sorted(order)

def test_only_zeros_are_made_without_memory() -> None:
  build = Builder("ones")
  out, x = build.param(0, F32, 256), build.param(1, U32, 256)
  with build.loop(1, AxisType.GLOBAL):
    a = build.add(UOp(Ops.LOAD, U32.vec(256), (build.add(x.index(UOp.const(dtypes.int32, 0))),), MatrixRows(16, 16)))
    one = build.const(F32.vec(256), 1.0)
    build.store(out, 0, build.add(UOp(Ops.MMA, F32.vec(256), (a, a, one), TILES[0])))
  with pytest.raises(CompileError, match="only zeros are made"): target(ARCH).select(build.program(), target(ARCH))

def test_this_processor() -> None:
  """Sums of any bits, subnormal numbers, infinities and NaN among them, are those of the interpreter."""
  device = Device["CPU"]
  if device.arch != ARCH: pytest.skip(f"this processor is used as {device.arch}")
  for seed in range(12):
    program = chain(1 + seed % 3, 1 + seed % 9)
    data = [bytes(1024 * (1 + seed % 9)), words(1536, 2 * seed, seed % 2 > 0), words(768, 2 * seed + 1, seed % 2 > 0)]
    buffers = [Tensor(part, dtype=dtypes.uint8).realize() for part in data]
    memory = [t._buffer().ensure_allocated()._buf for t in buffers]
    device.submit([Launch(device.load(compile_program(program, ARCH)), tuple(memory), (), 1)])
    device.synchronize()
    wanted = [bytearray(part) for part in data]
    evaluate(program, dict(enumerate(wanted)), {}, 0, 1)
    x86_kernels.same_bytes(F32, bytes(buffers[0].data()), bytes(wanted[0]), "chain")
