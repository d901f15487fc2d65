"""Recipes of the AMD backend read by NumPy, thousands of values at a time, with approximate units that err as far as
they may; and how many instructions operations are."""
from __future__ import annotations
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import ulps

from tinyhw.codegen.passes import lower
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.macros.macros import expand_macros
from tinyhw.isa.amd.select.recipes import RECIPES
from tinyhw.isa.amd.select.select import select
from tinyhw.isa.amd.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

Array = ulps.Array
SIDES = ("farther", "up", "down")
# the most that a result may be wrong, in ULP: the bars of docs/numerics.md
BARS = {Ops.EXP2: 1.0, Ops.EXP: 2.0, Ops.LOG2: 1.0, Ops.LOG: 2.0, Ops.SQRT: 0.5, Ops.RECIPROCAL: 0.5}
FUNCTIONS = tuple(op for op in BARS if f"{op.name.lower()}_f32" in RECIPES)

# ***** a reading by NumPy: registers are their bits *****

def flushed(x: Array) -> Array: return np.where(np.abs(x) < np.float32(2.0 ** -126), np.copysign(np.float32(0), x), x)

def unit(exact: Callable[[Array], Array], side: str) -> Callable[[Array], Array]:
  """An approximate unit that always errs to one side as far as it may."""
  def call(bits: Array) -> Array:
    want = exact(flushed(bits.view("f4")).astype(np.float64))
    near = want.astype(np.float32)
    other = np.nextafter(near, np.where(want > near, np.inf, -np.inf).astype(np.float32))
    inexact = np.isfinite(near) & (near != want)
    taken = {"farther": inexact, "up": inexact & (near < want), "down": inexact & (near > want)}[side]
    return flushed(np.where(taken, other, near)).view("u4")
  return call

def f(function: Callable[..., Array]) -> Callable[..., Array]:
  """An operation of floats on bits."""
  return lambda *bits: np.ascontiguousarray(function(*[x.view("f4") for x in bits])).astype("f4").view("u4")

def median(a: Array, b: Array, c: Array) -> Array:
  low, high = np.minimum(b, c), np.maximum(b, c)
  return np.where(np.isnan(a), low, np.maximum(low, np.minimum(high, a)))
def fused(a: Array, b: Array, c: Array) -> Array: return ulps._fused32(*np.broadcast_arrays(a, b, c))
def scaled(x: Array, n: Array) -> Array:
  return np.ldexp(x.view("f4").astype(np.float64), np.clip(n.view("i4"), -600, 600)).astype("f4").view("u4")
def whole(bits: Array) -> Array:
  x = bits.view("f4").astype(np.float64)
  return np.where(np.isnan(x), 0, np.clip(np.nan_to_num(x), -2.0 ** 31, 2.0 ** 31 - 1)).astype("i4").view("u4")

def operations(side: str) -> dict[str, Callable[..., Array]]:
  return {
    "v_med3_f32": f(median), "v_rndne_f32": f(np.rint), "v_sub_f32": f(np.subtract), "v_mul_f32": f(np.multiply),
    "v_fma_f32": f(fused),
    "v_fmamk_f32": f(fused), "v_ldexp_f32": scaled, "v_cvt_i32_f32": whole,
    "v_cvt_f32_i32": lambda x: x.view("i4").astype("f4").view("u4"),
    "v_cmp_gt_f32": lambda a, b: a.view("f4") > b.view("f4"), "v_cmp_ge_f32": lambda a, b: a.view("f4") >= b.view("f4"),
    "v_cmp_lt_f32": lambda a, b: a.view("f4") < b.view("f4"), "v_cndmask_b32": lambda a, b, m: np.where(m, b, a),
    "v_add_nc_u32": lambda a, b: a + b, "v_exp_f32": unit(np.exp2, side), "v_log_f32": unit(np.log2, side),
    "v_sqrt_f32": unit(np.sqrt, side),
  }

def computed(name: str, x: Array, side: str) -> Array:
  """Return the results of a recipe for floats."""
  known: dict[Any, Array] = {RECIPES[name].operands[0]: x.view("u4")}
  rows = operations(side)
  with np.errstate(all="ignore"):
    for step in RECIPES[name].steps:
      sources = [known[s] if isinstance(s, str) else np.full(1, s & 0xffffffff, np.uint32) for s in step.sources]
      for k in range(len(sources)):
        if step.modifiers.get("abs", 0) >> k & 1: sources[k] = sources[k] & np.uint32(0x7fffffff)
        if step.modifiers.get("neg", 0) >> k & 1: sources[k] = sources[k] ^ np.uint32(0x80000000)
      known[step.name] = rows[step.key](*sources)
  return known[""].view("f4")

def truth(op: Ops, x: Array) -> Array:
  with np.errstate(all="ignore"):
    if op is Ops.SQRT: return np.sqrt(x.astype(np.float64))
    if op is Ops.RECIPROCAL: return 1 / x.astype(np.float64)
  return ulps.truth(op, dtypes.float32, x)

def samples() -> Array:
  """Of all sizes, and more of the positive ones."""
  return np.concatenate([ulps.samples(dtypes.float32, 1 << 17, 7),
                         np.exp2(np.linspace(-149, 127.9, 1 << 14)).astype(np.float32)])

@functools.lru_cache(None)
def worst(op: Ops, side: str) -> tuple[float, float]:
  """The largest error of a recipe, in ULP, and where."""
  x = samples()
  wrong = ulps.errors(computed(f"{op.name.lower()}_f32", x, side), truth(op, x))
  return float(wrong.max()), float(x[wrong.argmax()])

# ***** instructions *****

@functools.lru_cache(None)
def instruction_count(op: Ops, arch: str) -> int:
  """Instructions of the vector unit that an operation of float32 is: those of a kernel, less those of one that only
  copies."""
  return vector_instructions(op, arch) - vector_instructions(None, arch)

def vector_instructions(op: Ops | None, arch: str) -> int:
  n = 64
  r = UOp.range(n, 0, AxisType.LOCAL)
  operands = tuple(UOp.param(k, dtypes.float32, n).index(r).load()
                   for k in ((1, 2) if op in (Ops.POW, Ops.FDIV) else (1,)))
  value = operands[0] if op is None else UOp(op, dtypes.float32, operands)
  kernel = UOp.sink(UOp.param(0, dtypes.float32, n).index(r).store(value, r))
  function = expand_macros(select(lower(kernel, capabilities(arch), "count"), target(arch)), target(arch))
  return sum(inst.row.name.startswith("v_") for block in function.blocks for inst in block.insts)
