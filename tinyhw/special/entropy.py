"""x log y and its relatives, with the limit 0 at x = 0."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.functional.arithmetic import log1p
from tinyhw.functional.operands import broadcast, checked, floats
from tinyhw.special.horner import with_slope
from tinyhw.tensor import Tensor

def xlogy(input: Any, other: Any) -> Tensor:
  """Return input * log(other), 0 where input is 0. The gradient for input is log(other) there, too, if it is finite."""
  x, y = broadcast(*floats(input, other))
  limit = x.eq(0) & ~(y.gt(0) & y.lt(math.inf))
  return y.isnan().where(math.nan, limit.where(0, x.mul(limit.where(1, y).log())))

def xlog1py(input: Any, other: Any) -> Tensor:
  """Return input * log(1 + other), 0 where input is 0. The gradient for input is that logarithm there, if finite."""
  x, y = broadcast(*floats(input, other))
  limit = x.eq(0) & ~(y.gt(-1) & y.lt(math.inf))
  return y.isnan().where(math.nan, limit.where(0, x.mul(log1p(limit.where(0, y)))))

def entr(input: Tensor) -> Tensor:
  """Return -x log(x): 0 at 0, -inf below."""
  x = floats(checked("entr", input))[0]
  positive = x.gt(0)
  found = positive.where(x.mul(positive.where(x, 1).log()).neg(), x.eq(0).where(0, -math.inf))
  return with_slope(x.isnan().where(math.nan, found).detach(), x, lambda x: x.log().neg().sub(1))
