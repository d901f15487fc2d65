"""`torch.testing.assert_close`: compare tensors, numbers, and lists and dicts of them, within tolerances by type."""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyhw.compat.torch.dress import plain
from tinyhw.dtype import DType, dtypes, plane_of
from tinyhw.errors import ArgumentError
from tinyhw.functional.logic import isclose
from tinyhw.functional.operands import result_type, sizes
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

# (rtol, atol). Source: PyTorch's documentation of assert_close. Other types are compared exactly.
TOLERANCES = {dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
              dtypes.float64: (1e-7, 1e-7)}

class Comparison:
  """The options of a comparison."""
  def __init__(self, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool, check_device: bool,
               msg: str | Callable[[str], str] | None):
    if (rtol is None) != (atol is None): raise ArgumentError("assert_close wants rtol and atol together, or neither")
    self.rtol, self.atol, self.equal_nan, self.check_dtype, self.msg = rtol, atol, equal_nan, check_dtype, msg
    self.check_device = check_device

  def fail(self, text: str) -> None:
    """Raise AssertionError."""
    raise AssertionError(text if self.msg is None else self.msg(text) if callable(self.msg) else self.msg)

  def compare(self, a: Any, b: Any, where: str = "") -> None:
    """Compare two values at a place of the whole."""
    place = f" at {where}" if where else ""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
      if a.keys() != b.keys(): self.fail(f"the keys differ{place}: {sorted(a)} and {sorted(b)}")
      for key in a: self.compare(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
      if len(a) != len(b): self.fail(f"the lengths differ{place}: {len(a)} and {len(b)}")
      for k, (x, y) in enumerate(zip(a, b)): self.compare(x, y, f"{where}[{k}]")
    elif a is None or b is None:
      if a is not b: self.fail(f"{a!r} and {b!r} differ{place}")
    else: self._tensors(_tensor(a), _tensor(b), place)

  def _tensors(self, a: Tensor, b: Tensor, place: str) -> None:
    if sizes(a) != sizes(b): self.fail(f"the shapes differ{place}: {tuple(a.shape)} and {tuple(b.shape)}")
    if self.check_dtype and a.dtype is not b.dtype: self.fail(f"the types differ{place}: {a.dtype} and {b.dtype}")
    if self.check_device and a.device != b.device: self.fail(f"the devices differ{place}: {a.device} and {b.device}")
    kind = result_type(a, b)
    rtol, atol = self._tolerances(a.dtype, b.dtype)
    a, b = a.to(b.device).cast(kind), b.cast(kind)
    bad = isclose(a, b, rtol, atol, self.equal_nan).logical_not()
    count = int(bad.sum().item()) if a.numel() else 0
    if not count: return
    largest = float(bad.where(a.sub(b).abs(), 0).max().item()) if kind is not dtypes.bool else 1.0
    self.fail(f"Tensor-likes are not close{place}: {count} of {a.numel()} elements differ; the greatest absolute "
              f"difference is {largest:.6g} (rtol={rtol}, atol={atol})")

  def _tolerances(self, *kinds: DType) -> tuple[float, float]:
    if self.rtol is not None and self.atol is not None: return self.rtol, self.atol
    found = [TOLERANCES.get(plane_of(k) if k in dtypes.complexes else k, (0.0, 0.0)) for k in kinds]
    return max(r for r, _ in found), max(a for _, a in found)

def _tensor(x: Any) -> Tensor:
  if isinstance(x, Handle): return plain(x)  # type: ignore[no-any-return]
  return Tensor(x, dtype=dtypes.float64) if isinstance(x, float) else Tensor(x)

def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
  """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

  Tolerances are those of the type unless given. Shapes, types and devices are compared, too.
  """
  Comparison(rtol, atol, equal_nan, check_dtype, check_device, msg).compare(actual, expected)
