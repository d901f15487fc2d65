"""functional/arithmetic.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

CASES = """
torch.add(x, y, alpha=2)
torch.sub(x, w, alpha=0.5)
torch.rsub(x, y)
torch.floor_divide(x.detach(), p.detach())
torch.remainder(x, p)
torch.fmod(x, -p)
torch.div(ints, 4, rounding_mode="trunc")
torch.pow(p, y)
torch.pow(2, x)
torch.float_power(p, 2)
torch.fmax(hole, torch.zeros(3))
torch.fmin(hole, torch.zeros(3))
torch.addcmul(x, y, p, value=3)
torch.addcdiv(x, y, p, value=2)
torch.frac(x)
torch.round(x, decimals=2)
torch.frexp(x)
torch.ldexp(x, i)
torch.nextafter(x.detach(), y.detach())
torch.hypot(x, y)
torch.gcd(ints, i)
torch.lcm(ints, i)
torch.expm1(x)
torch.log1p(p)
torch.log1p(p.detach() * 0 - 1)
torch.atan2(x, y)
torch.atan2(x * 0, y) + torch.atan2(x, y * 0)
torch.angle(x)
torch.sinc(x)
torch.logaddexp2(x, y)
torch.copysign(x, y)
torch.lerp(x, y, 0.3)
torch.diff(x, n=2)
torch.diff(x, prepend=y, dim=0)
torch.trapezoid(x, dx=0.5)
torch.cumulative_trapezoid(x, p)
torch.gradient(x, spacing=2.0, edge_order=2)
torch.clamp(x, min=-p, max=p)
torch.clamp_min(x, 0.1)
torch.nan_to_num(hole, nan=7.0)
torch.deg2rad(x) + torch.rad2deg(y)
x - ints
2 / p
ints // 4
ints % 4
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.remainder(torch.tensor([-7, 7]), 3).tolist() == [2, 1]
  assert torch.gcd(torch.tensor([12, -18, 0]), torch.tensor([18, 12, 5])).tolist() == [6, 6, 5]
  assert torch.hypot(torch.tensor([3e30, 0.0]), torch.tensor([4e30, 0.0])).tolist() == pytest.approx([5e30, 0.0])
  assert torch.sign(torch.tensor([-3.0, 0.0, float("nan")])).tolist() == [-1.0, 0.0, 0.0]

@pytest.mark.parametrize("call", [
  lambda: torch.add(torch.tensor([1]), 1, alpha=1.5), lambda: torch.sub(torch.tensor([True]), torch.tensor([True])),
  lambda: torch.gradient(torch.tensor([1.0]), edge_order=2), lambda: torch.clamp(torch.tensor([1.0])),
  lambda: torch.diff(torch.tensor(1.0)), lambda: torch.trapezoid(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0,
                                                                                                         3.0])),
  lambda: torch.gcd(torch.tensor([1.5]), torch.tensor([2.0]))])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]
