"""Random expressions for the tests of rules, and their values at a point."""
from __future__ import annotations
import random
from typing import Any

from tinyhw.arithmetic import cast, operation, round_to
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Point = dict[UOp, Any]

def value_at(u: UOp, point: Point) -> Any:
  """The value of a scalar expression where its variables have these values."""
  values: Point = {}
  for node in u.toposort():
    src = [values[s] for s in node.src]
    if node in point: values[node] = point[node]
    elif node.op is Ops.CONST: values[node] = round_to(node.dtype)(node.arg)
    elif node.op is Ops.CAST: values[node] = cast(node.src[0].dtype, node.dtype)(src[0])
    else: values[node] = operation(node.op.name, node.dtype)(*src)
  return values[u]

def same(x: Any, y: Any) -> bool:
  """Equal values; -0.0 and 0.0 differ, NaN equals NaN."""
  return x == y and str(x) == str(y) or (x != x and y != y)

def variables(rng: random.Random, count: int = 3, dtype: DType = dtypes.weakint, low: int = -8) -> list[UOp]:
  """Variables and ranges with random small bounds."""
  out: list[UOp] = []
  for k in range(count):
    start = rng.choice([0, 0, 0, rng.randint(low, 5)])
    if dtype is dtypes.weakint and start == 0 and rng.random() < 0.5: out.append(UOp.range(rng.randint(1, 24), k))
    elif dtype is not dtypes.weakint and rng.random() < 0.3:
      out.append(UOp.variable("abcd"[k], int(dtype.min), int(dtype.max), dtype))
    else: out.append(UOp.variable("abcd"[k], start, start + rng.choice([0, 1, 3, 7, 9, 19, 30]), dtype))
  return out

def random_point(rng: random.Random, leaves: list[UOp]) -> Point:
  return {v: rng.choice([int(v.vmin), int(v.vmax), rng.randint(int(v.vmin), int(v.vmax))]) for v in leaves}

NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 40)

def integer(rng: random.Random, leaves: list[UOp], depth: int) -> UOp:
  """A random integer expression of the leaves' type, of the kind that indices have, and worse."""
  if depth == 0 or rng.random() < 0.08:
    leaf = rng.choice(leaves)
    return leaf if rng.random() < 0.85 else leaf.const_like(rng.randint(0 if dtypes.is_unsigned(leaf.dtype) else -12,
                                                                        30))
  kind = rng.random()
  x = integer(rng, leaves, depth - 1)
  if kind < 0.28: return x + integer(rng, leaves, depth - 1)
  if kind < 0.46: return x * rng.choice(NUMBERS)
  if kind < 0.50: return x * -1
  if kind < 0.63: return x // rng.choice(NUMBERS)
  if kind < 0.76: return x % rng.choice(NUMBERS)
  if kind < 0.80: return x + rng.randint(0, 40)
  if kind < 0.84: return x.maximum(integer(rng, leaves, depth - 1))
  if kind < 0.88: return (x // (n := rng.choice(NUMBERS))) * n + x % n
  if kind < 0.92: return condition(rng, leaves, depth - 1).where(x, integer(rng, leaves, depth - 1))
  if kind < 0.94: return x * integer(rng, leaves, depth - 1)
  if kind < 0.96: return x // integer(rng, leaves, depth - 1)
  if kind < 0.98: return x % integer(rng, leaves, depth - 1)
  return x // -rng.choice(NUMBERS) if kind < 0.99 else x % -rng.choice(NUMBERS)

def condition(rng: random.Random, leaves: list[UOp], depth: int) -> UOp:
  """A random bool expression over integers."""
  x = integer(rng, leaves, max(depth - 1, 0))
  y = (x.const_like(rng.randint(0 if dtypes.is_unsigned(x.dtype) else -12, 40)) if rng.random() < 0.6
       else integer(rng, leaves, max(depth - 1, 0)))
  if depth > 1 and rng.random() < 0.5:
    p, q = condition(rng, leaves, depth - 1), condition(rng, leaves, depth - 1)
    return rng.choice([p & q, p & q, p | q, p ^ q, p.logical_not() & q, p.where(q, p), p & p.logical_not()])
  return rng.choice([x < y, y < x, x >= y, x <= y, x.eq(y), x.ne(y), (x < y).logical_not()])
