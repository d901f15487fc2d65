"""Bars of a card's numbers, most of them as a share of PyTorch's on the same card in the same run, and
whether it was met."""
from __future__ import annotations
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

class Bar(NamedTuple):
  """number: what it is about; limit: its bound; of: the number of PyTorch's that the bound is a share of; most: the
  number may not exceed it."""
  number: str
  limit: float
  of: str | None = None
  most: bool = False

  def judge(self, value: float, peer: float | None) -> str:
    """In words. peer: PyTorch's number."""
    unit = 1.0 if peer is None else peer
    share = f"{value:g}, PyTorch {peer:g}: {100 * value / unit:.0f} %" if peer else f"{value:g}"
    wanted = (f"{'at most' if self.most else 'at least'} "
              f"{f'{100 * self.limit:.0f} % of it' if self.of else f'{self.limit:g}'}")
    met = value <= self.limit * unit if self.most else value >= self.limit * unit
    return f"{share} ({wanted}): {'met' if met else 'NOT met'}"

COPY, EMPTY, COLD = "copy GB/s", "empty launch to completion, us", "first kernel, nothing compiled before, s"
WARM = "first kernel, on disk before, s"     # told, and not judged
PRODUCT = "bfloat16 matmul TFLOP/s"

def by_unit(unit: str) -> str:
  """The name of the product's rate with one unit."""
  return f"bfloat16 matmul with {unit} TFLOP/s"

BARS = (
  Bar(COPY, 0.85, COPY), Bar("a + b GB/s", 0.85, COPY), Bar("softmax GB/s", 1, "softmax GB/s"),
  Bar("layernorm GB/s", 1, "layernorm GB/s"),
  Bar("float32 matmul TFLOP/s", 0.8, "float32 matmul TFLOP/s"),
  Bar(by_unit("HMMA"), 0.4, PRODUCT), Bar(by_unit("wgmma"), 0.75, PRODUCT),
  Bar(EMPTY, 0.6, EMPTY, most=True), Bar("each small kernel of a captured step, us", 1.5, most=True),
  Bar(COLD, 1.5, most=True),
)

def _number(found: Mapping[str, Any], name: str | None) -> float | None:
  """A number that was measured; None for an error that stands in its place."""
  value = found.get(name) if name is not None else None
  return float(value) if isinstance(value, (int, float)) else None

def bars(ours: Mapping[str, Any], peer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
  """(what it is about, how it compares) for each bar. ours, peer: numbers by name; what is missing is said to be."""
  for bar in BARS:
    value, base = _number(ours, bar.number), _number(peer, bar.of)
    if value is None: yield bar.number, "not measured"
    elif bar.of is not None and not base: yield bar.number, f"{value:g}; PyTorch's is not measured"
    else: yield bar.number, bar.judge(value, base)
