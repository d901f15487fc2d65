"""The text of tensors, as PyTorch writes it: `tensor([1.0000, 2.5000])`.

It has the values, so it computes them; inside of a capture or a function, where nothing is computed, it is that of
`tinyhw.Tensor`. Numbers of one tensor have one width and one kind of notation. Source: PyTorch's torch/_tensor_str.py.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.compat.torch.dress import plain
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.thread import this_thread
from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import sizes
from tinyhw.methods.data.printing import described

class PrintOptions:
  """How tensors are written."""
  precision, threshold, edgeitems, linewidth = 4, 1000.0, 3, 80
  sci_mode: bool | None = None

_PROFILES = {"default": (4, 1000.0, 3, 80), "short": (2, 1000.0, 2, 80), "full": (4, math.inf, 3, 80)}

def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None) -> None:
  """Set how tensors are written: digits, elements above which only ends are, ends, columns, and the notation."""
  options = PrintOptions
  if profile is not None:
    if profile not in _PROFILES: raise ArgumentError(f"profile is 'default', 'short' or 'full', not {profile!r}")
    options.precision, options.threshold, options.edgeitems, options.linewidth = _PROFILES[profile]
  if precision is not None: options.precision = precision
  if threshold is not None: options.threshold = threshold
  if edgeitems is not None: options.edgeitems = edgeitems
  if linewidth is not None: options.linewidth = linewidth
  options.sci_mode = sci_mode

class NumberNotation:
  """One notation and width for numbers."""
  def __init__(self, numbers: Sequence[Any], is_float: bool):
    self.is_float, self.whole, self.scientific = is_float, False, False
    if is_float:
      numbers = [x for x in numbers if x and math.isfinite(x)]      # the others do not count, also for the width
      self.whole = all(x == math.floor(x) for x in numbers)
      if numbers:
        least, most = min(map(abs, numbers)), max(map(abs, numbers))
        self.scientific = most / least > 1000 or most > 1e8 or not self.whole and least < 1e-4
      if PrintOptions.sci_mode is not None: self.scientific = PrintOptions.sci_mode
    self.width = max([len(self.bare(x)) for x in numbers], default=1)

  def bare(self, x: Any) -> str:
    """Return a number without padding."""
    if not self.is_float: return str(x)
    if self.scientific: return f"{x:.{PrintOptions.precision}e}"
    if not self.whole: return f"{x:.{PrintOptions.precision}f}"
    return f"{x:.0f}" + ("." if math.isfinite(x) else "")

  def text(self, x: Any) -> str:
    """Return a number of the common width."""
    return self.bare(x).rjust(self.width)

class ComplexNotation:
  """One notation for the real parts of numbers, and one for the imaginary parts."""
  def __init__(self, numbers: Sequence[complex]):
    self.real, self.imag = (NumberNotation(part, True) for part in ([z.real for z in numbers],
                                                                    [z.imag for z in numbers]))
    self.width = self.real.width + self.imag.width + 1

  def text(self, z: complex) -> str:
    """Return a number of the common width."""
    imag = self.imag.text(z.imag).lstrip()
    return self.real.text(z.real) + (imag if imag[0] in "+-" else "+" + imag) + "j"

def _ends(x: Any) -> Any:
  """Return the first and last slices along each long axis."""
  edge = PrintOptions.edgeitems
  for axis, n in enumerate(sizes(x)):
    if n <= 2 * edge: continue
    def cut(begin: int, end: int, axis: int = axis) -> Any:
      return x.shrink([(begin, end) if k == axis else None for k in range(x.ndim)])
    x = cut(0, edge).cat(cut(n - edge, n), dim=axis)
  return x

def _nested(values: Any, shape: tuple[int, ...], notation: Any, indent: int, short: bool) -> str:
  edge = PrintOptions.edgeitems
  gap = short and bool(shape) and shape[0] > 2 * edge
  if not shape: return notation.text(values).lstrip() if not isinstance(values, bool) else str(values)
  if len(shape) > 1:
    parts = [_nested(v, shape[1:], notation, indent + 1, short) for v in values]
    if gap: parts.insert(edge, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"
  parts = [notation.text(v) for v in values]
  if gap: parts.insert(edge, " ...")
  each = max(1, (PrintOptions.linewidth - indent) // (notation.width + 2))
  lines = [", ".join(parts[k:k + each]) for k in range(0, len(parts), each)]
  return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

def _suffixes(tensor: Any, kind: DType) -> list[str]:
  found = [] if tensor.is_cpu else [f"device='{tensor.device}'"]
  usual = (dtypes.default_float, dtypes.complex64, dtypes.int64, dtypes.bool)
  if not tensor.numel() and tensor.ndim != 1: found.append(f"size={tuple(tensor.shape)}")
  if kind not in usual or not tensor.numel() and kind is not dtypes.default_float:
    found.append(f"dtype=torch.{str(kind).removeprefix('dtypes.')}")
  if (node := tensor.grad_fn) is not None: found.append(f"grad_fn={node!r}")
  elif tensor.requires_grad: found.append("requires_grad=True")
  return found

def text_of(tensor: Any) -> str:
  """Return the text of a tensor."""
  if this_thread.capture is not None or this_thread.traced is not None or isinstance(tensor.device, tuple):
    return "<a complex tensor>" if tensor.holds_complex else described(tensor)
  x, kind = plain(tensor).detach(), tensor.dtype
  shape, short = tuple(int(d) for d in sizes(x)), x.numel() > PrintOptions.threshold
  body = "[]"
  if x.numel():
    shown = _ends(x) if short else x
    values = shown.tolist()
    flat = shown.reshape(-1).tolist()
    notation: Any = ComplexNotation(flat) if tensor.holds_complex else NumberNotation(flat, dtypes.is_float(kind))
    body = _nested(values, shape, notation, len("tensor("), short)
  text = ", ".join([body, *_suffixes(tensor, kind)])
  return f"tensor({text})"
