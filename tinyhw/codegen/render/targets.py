"""Compilers for devices whose kernels are source text: `capabilities(arch)` and `compile(program, arch) -> Code`.

PYTHON computes every operation itself, exactly; it is the oracle. C has arithmetic of all widths and vectors. In C
narrow floats are storage only. Transcendental functions are polynomials, as on every processor, so that no mathematical
library decides a result.
"""
from __future__ import annotations

from tinyhw.codegen.render import compile_source
from tinyhw.codegen.render.metal import MATRICES
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.code import Code
from tinyhw.machine.ir.target import Capabilities
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.occupancy import ComputeUnit, RegisterFile
from tinyhw.threads import once
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.program import Program

def pairs(ops: frozenset[Ops], types: tuple[DType, ...]) -> frozenset[tuple[Ops, DType]]:
  return frozenset((op, dtype) for op in ops for dtype in types)

DOTS = frozenset({Ops.DOT4, Ops.DOT2})
EVERYTHING = pairs(GroupOp.Elementwise - DOTS, dtypes.all)
IN_C = (pairs(GroupOp.Elementwise - GroupOp.Transcendental - DOTS,
              tuple(d for d in dtypes.all if d not in dtypes.narrow_floats))
        | pairs(frozenset({Ops.CAST, Ops.BITCAST, Ops.WHERE}), dtypes.narrow_floats)) - pairs(frozenset({Ops.MAX}),
                                                                                              dtypes.floats)

IN_OPENCL = (pairs(GroupOp.Elementwise - GroupOp.Transcendental - DOTS - {Ops.THREEFRY, Ops.MAX},
                   (*dtypes.ints, dtypes.bool, dtypes.float32))
             | pairs(frozenset({Ops.BITCAST, Ops.WHERE}), dtypes.narrow_floats))
DOUBLES = pairs(GroupOp.Elementwise - GroupOp.Transcendental - DOTS - {Ops.MAX}, (dtypes.float64,))
IN_WGSL = (pairs(GroupOp.Elementwise - GroupOp.Transcendental - DOTS
                 - {Ops.THREEFRY}, (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.float32))
           - pairs(frozenset({Ops.MAX}), (dtypes.float32,))
           | pairs(frozenset({Ops.AND, Ops.OR, Ops.XOR, Ops.CMPEQ, Ops.CMPNE, Ops.WHERE}), (dtypes.bool,))
           | pairs(frozenset({Ops.CAST}), (*dtypes.ints, dtypes.bool))
           | pairs(frozenset({Ops.BITCAST, Ops.WHERE}), (*dtypes.ints, *dtypes.narrow_floats)))
LANES = 32
VECTORS = "vectors"     # a feature of OpenCL's arch: with the bytes of a vector ("vectors64"), for processors

def opencl(features: frozenset[str]) -> Capabilities:
  """Return the capabilities of OpenCL C: with lanes of workgroups, or with vectors.

  features: "fp64"; "vectors" with a number of bytes, for processors.
  """
  operations = IN_OPENCL | DOUBLES if "fp64" in features else IN_OPENCL
  bytes_each = [int(word.removeprefix(VECTORS)) for word in features if word.startswith(VECTORS)]
  if bytes_each:
    return Capabilities(vector_bytes=bytes_each[0], vector_lanes=16, vector_registers=16, operations=operations,
                        vector_operations=operations, threads=2, local_bytes=32 * 1024, wide_casts=True,
                        cache_bytes=(32 * 1024, 512 * 1024, 16 << 20), shuffled_bytes=(4, 8),
                        transposed_bytes=(4, 8), flushes=True)
  return Capabilities(vector_bytes=16, vector_registers=64, operations=operations, threads=64, lanes=LANES,
                      local_bytes=32 * 1024, cache_bytes=(32 * 1024, 512 * 1024, 16 << 20), flushes=True)

# An M1 with 8 cores. Published (metal-benchmarks by Philip Turner): four SIMD-groups start an operation in a cycle of a
# core, 208 KB of registers and 60 KB of threadgroup memory a core, 102.4 multiply-adds a cycle of a core for matrices;
# Apple: 68 GB/s. Assumed: latencies and the rates of caches
APPLE_M1 = Hardware("M1", ComputeUnit("core", 4, 24, LANES, {"register": RegisterFile(416, 8)}, 60 << 10, 256, 32), 8,
                    1.278, 128, 64, 512, 68.25, 0, {"f16": 51.2, "f32": 51.2}, latency=400, local_latency=30,
                    shares_vector=True)
METAL = Capabilities(
  vector_bytes=16, vector_lanes=4, vector_registers=64, aligned=True, flushes=True, threads=64, lanes=LANES,
  exchanges=True,
  operations=IN_OPENCL | pairs(frozenset({Ops.CAST}), (dtypes.float16,)), local_bytes=32 * 1024,
  cache_bytes=(8 * 1024, 768 * 1024, 8 << 20), matrix=MATRICES, card=APPLE_M1)

LOOPS = "loops"   # a feature of WGSL's arch: with the iterations after which a driver ends all loops of a lane
WGSL = Capabilities(
  vector_bytes=16, vector_lanes=4, vector_registers=64, aligned=True, flushes=True, slow_fused=True, threads=64,
  lanes=LANES, operations=IN_WGSL, local_bytes=16 * 1024, cache_bytes=(16 * 1024, 512 * 1024, 8 << 20))

@once
def capabilities(arch: str) -> Capabilities:
  """Return the capabilities of "python", "c", "metal", "wgsl" and "opencl" with their features ("opencl:fp64").

  threads and the sizes of memory are assumed, unless a device finds them out: see engine/run/compile.py.
  """
  language, _, features = arch.partition(":")
  if language == "metal": return METAL
  if language == "wgsl": return WGSL
  if language == "opencl": return opencl(frozenset(features.split("+")))
  if language == "python": return Capabilities(vector_bytes=0, vector_registers=16, operations=EVERYTHING)
  return Capabilities(vector_bytes=32, vector_registers=16, operations=IN_C, vector_operations=IN_C, threads=2,
                      local_bytes=256 * 1024,
                      cache_bytes=(32 * 1024, 512 * 1024, 16 << 20), shuffled_bytes=(4, 8), transposed_bytes=(4, 8))

def iterations(program: Program) -> int:
  """Return the most iterations of all loops that one lane executes, with those of 64-bit divisions."""
  total, factors = 0, [1]
  for u in program.uops:
    if u.op in (Ops.RANGE, Ops.IF):
      is_loop = u.op is Ops.RANGE and u.arg[1] not in (AxisType.GLOBAL, AxisType.LOCAL)
      factors.append(factors[-1] * (max(int(u.src[0].vmax), 1) if is_loop else 1))
      total += factors[-1] * is_loop
    elif u.op in (Ops.END, Ops.ENDIF): factors.pop()
    elif u.op in (Ops.IDIV, Ops.MOD) and u.dtype.scalar() in (dtypes.int64, dtypes.uint64): total += 64 * factors[-1]
  return total

def compile(program: Program, arch: str) -> Code:
  """Return the program as source. Raises CompileError for loops that the driver would end."""
  language, _, features = arch.partition(":")
  if language == "wgsl" and features.startswith(LOOPS):
    needed, most = iterations(program), int(features.removeprefix(LOOPS))
    if needed > most:
      raise CompileError(f"{program.name}: this driver ends the loops of a kernel after {most} iterations, and a lane "
                         f"needs {needed}; use smaller tensors, or another device")
  return compile_source(program, arch)
