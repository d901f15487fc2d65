"""Measures how exact the transcendental functions are, and writes docs/numerics.md: `python3 test/numerics.py` (minutes; needs NumPy, mpmath).

Counts of operations are those that remain after decomposition for vectors of an AVX2 target.
"""
from __future__ import annotations
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mpmath as mp
import numpy as np
from tinyhw import arithmetic
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.uop.enums import Ops
import ulps

ROOT = Path(__file__).resolve().parent.parent

HEAD = """# How exact floating point functions are

Made by `python3 test/numerics.py`. Errors are in units of the last place (ULP) of the correct result, for which 0.5 is the best that a correctly
rounded result can have. ADD, SUB, MUL, FDIV, SQRT, RECIPROCAL, TRUNC and MULACC are correctly rounded (RECIPROCAL is a division).

The functions below are expressions of those, the same on every device (`tinyhw/codegen/transcendental.py`). Arguments are of any size and sign: sines
of the largest numbers are as exact as those of small ones; subnormal numbers come in and go out with their right values; infinities, NaN and signed
zeros follow C's functions of the same names (C17, annex F). float16, bfloat16 and fp8 are computed in float32 and rounded once.
The PYTHON device calls Python's `math` instead and rounds that.

| function | type | operations | ULP, fused | ULP, without fused multiply-add | exact |
|---|---|---|---|---|---|
"""
TAIL = """
Operations: vector instructions of an AVX2 target, without constants. "Fused": targets that round MULACC once, as all do that are here.
float32: {single} samples over all signs, exponents and the neighbourhood of 1, compared with float64.
With fused multiply-add all 2**32 numbers were tried once, by hand; the largest errors were {swept}.
float64: {double} samples, compared with mpmath.
Methods that are made of these (sinh, cosh, tan, asin, acos, atan, asinh, acosh, atanh) were at most 6 ULP wrong over 200000 float32 numbers or more
each; sinh, cosh, asinh, acosh and atanh up to the ends of the type: none of these overflows before its result does.
Exact: results that are always exactly right. `test/support/ulps.py` has the bounds that tests hold these numbers to; coefficients are from
`test/minimax.py`.
"""
SWEPT = {Ops.EXP: 1.652, Ops.EXP2: 0.879, Ops.LOG: 1.197, Ops.LOG2: 0.971, Ops.SIN: 1.536, Ops.COS: 1.540, Ops.TANH: 2.566, Ops.ERF: 1.841}
EXACT = {
  Ops.EXP: "exp(0)", Ops.EXP2: "powers with whole exponents", Ops.LOG: "log(1)", Ops.LOG2: "powers of two", Ops.SIN: "sin(±0)",
  Ops.COS: "cos(0)", Ops.TANH: "tanh(±0); never beyond ±1", Ops.ERF: "erf(±0); never beyond ±1", Ops.POW: "x**0, 1**y; C's special cases",
}
_TRUTH: dict[Ops, Any] = {
  Ops.EXP: mp.exp, Ops.EXP2: lambda x: mp.mpf(2) ** x, Ops.LOG: mp.log, Ops.LOG2: lambda x: mp.log(x) / mp.log(2), Ops.SIN: mp.sin, Ops.COS: mp.cos,
  Ops.TANH: mp.tanh, Ops.ERF: mp.erf, Ops.POW: mp.power,
}

def error_of(op: Ops, got: float, row: list[float]) -> float:
  """In ULP of float64."""
  plain = arithmetic.operation(op.name, dtypes.float64)(*row)
  if plain == 0.0 or not all(math.isfinite(x) for x in (plain, got, *row)):
    return 0.0 if got == plain or (got != got and plain != plain) else math.inf
  mp.mp.prec = 1300 if op in (Ops.SIN, Ops.COS) and abs(row[0]) > 1e3 else 160
  want = _TRUTH[op](*[mp.mpf(x) for x in row])
  return float(abs(mp.mpf(got) - want) / mp.ldexp(1, max(int(mp.frexp(want)[1]) - 53, -1074)))

def measure(op: Ops, dtype: DType, fused: bool, n: int) -> float:
  operands = ulps.power_samples(dtype, n) if op is Ops.POW else (ulps.samples(dtype, n),)
  if dtype is dtypes.float32: return ulps.worst(op, dtype, fused, operands)[0]
  got = ulps.compute(ulps.expression(op, dtype, fused), *operands)
  return max(error_of(op, float(g), [float(x) for x in row]) for g, row in zip(got, np.transpose(operands)))

def main() -> None:
  single, double = 1 << 20, 1 << 13
  rows = []
  for op in ulps.FUNCTIONS:
    for dtype in (dtypes.float32, dtypes.float64):
      n = single if dtype is dtypes.float32 else double
      fused, plain = measure(op, dtype, True, n), measure(op, dtype, False, n)
      rows.append(f"| {op.name} | {ALIASES_BY_TYPE[dtype]} | {ulps.operation_count(op, dtype)} | {fused:.2f} | {plain:.2f} | {EXACT[op]} |")
      print(rows[-1], flush=True)
  swept = ", ".join(f"{op.name} {error}" for op, error in SWEPT.items())
  (ROOT / "docs/numerics.md").write_text(HEAD + "\n".join(rows) + "\n" + TAIL.format(single=single, double=double, swept=swept), encoding="utf-8")

if __name__ == "__main__": main()
