"""Kernels of attention as the scheduler makes them, for the tests of this folder."""
from __future__ import annotations
import math

from test.codegen.kernels import axis
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def staged(value: UOp, r: UOp, number: int) -> UOp: return UOp(Ops.STAGE, value.dtype, (value, r), (number,))

def read(stage: UOp, at: UOp) -> UOp: return stage.index(at).load()

def attention(heads: int, rows: int, positions: int, terms: int, columns: int, causal: bool = False, bias: bool = False,
              guarded: bool = False, dtype: DType = dtypes.float16) -> UOp:
  """Return out = softmax(q @ k.T / 4) @ v for each head.

  causal: row i sees positions up to i. bias: numbers are added to the scores. guarded: rows that see nothing are 0.
  """
  out, q = UOp.param(0, dtype, heads * rows * columns), UOp.param(1, dtype, heads * rows * terms)
  k, v = UOp.param(2, dtype, heads * positions * terms), UOp.param(3, dtype, heads * positions * columns)
  h, i, d, j = axis(heads, 0), axis(rows, 1), axis(columns, 2), axis(positions, 3, "REDUCE")
  t, m, w = axis(positions, 4, "REDUCE"), axis(positions, 5, "STAGE"), axis(positions, 6, "REDUCE")
  e, s, x = axis(positions, 7, "STAGE"), axis(positions, 8, "STAGE"), axis(terms, 9, "REDUCE")
  score = (q.index((h * rows + i) * terms + x).load().cast(F32)
           * k.index((h * positions + s) * terms + x).load().cast(F32)).reduce(Ops.ADD, x) * 0.25
  if bias: score = score + UOp.param(4, F32, rows * positions).index(i * positions + s).load()
  hidden = UOp.const(F32, -math.inf)
  if causal: score = (i.cast(dtypes.int32) < s.cast(dtypes.int32)).where(hidden, score)
  scores = staged(score, s, 0)
  most = read(scores, w).reduce(Ops.MAX, w)
  if guarded: most = most.alu(Ops.CMPEQ, hidden).where(UOp.const(F32, 0), most)
  powers = staged(read(scores, e).alu(Ops.SUB, most).alu(Ops.EXP), e, 1)
  total = read(powers, t).reduce(Ops.ADD, t)
  if guarded: total = total.alu(Ops.CMPEQ, UOp.const(F32, 0)).where(UOp.const(F32, 1), total)
  weights = staged((read(powers, m) * total.alu(Ops.RECIPROCAL)).cast(dtype).cast(F32), m, 2)
  found = (read(weights, j) * v.index((h * positions + j) * columns + d).load().cast(F32)).reduce(Ops.ADD, j)
  return UOp.sink(out.index((h * rows + i) * columns + d).store(found.cast(dtype), h, i, d))
