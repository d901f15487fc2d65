"""fft/transforms.py against NumPy: axes, lengths, norms; and PyTorch's gradients."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.fft import transforms

numpy = pytest.importorskip("numpy")

def data(*shape: int, real: bool = False) -> Any:
  draw = numpy.random.default_rng(sum(shape))
  x = draw.standard_normal(shape)
  return x if real else x + 1j * draw.standard_normal(shape)

def agree(name: str, x: Any, **options: Any) -> None:
  theirs = {{"s": "s", "dim": "axes" if name.endswith(("n", "2", "shift")) else "axis"}.get(k, k): v
            for k, v in options.items()}
  expected = getattr(numpy.fft, name)(x, **theirs)
  found = getattr(transforms, name)(Tensor(x), **options).numpy()
  assert found.dtype == expected.dtype and found.shape == expected.shape
  assert numpy.allclose(found, expected, rtol=1e-10, atol=1e-10), (name, options)

@pytest.mark.parametrize("name", ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
@pytest.mark.parametrize("options", ({}, {"n": 5}, {"n": 8, "norm": "ortho"}, {"dim": 0, "norm": "forward"}, {"n": 1}))
def test_one_axis(name: str, options: dict[str, Any]) -> None:
  agree(name, data(4, 6, real=name in ("rfft", "ihfft")), **options)

@pytest.mark.parametrize("name", ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"))
@pytest.mark.parametrize("options", ({}, {"s": (3, 4), "dim": (0, 1)}, {"dim": (1, 2), "norm": "ortho"}))
def test_several_axes(name: str, options: dict[str, Any]) -> None:
  agree(name, data(4, 3, 5, real="r" == name[0]), **options)

def test_half_of_several_axes() -> None:
  """A transform of half a spectrum is the inverse of the inverse."""
  x = data(3, 8, real=True)
  for name in ("fftn", "fft2"):
    found = getattr(transforms, f"h{name}")(getattr(transforms, f"ih{name}")(Tensor(x)))
    assert numpy.allclose(found.numpy(), x)

def test_shifts_and_frequencies() -> None:
  for name in ("fftshift", "ifftshift"):
    agree(name, data(3, 4))
    agree(name, data(3, 4), dim=(1,))
  for n in (4, 5):
    assert transforms.fftfreq(n, 0.5).tolist() == pytest.approx(list(numpy.fft.fftfreq(n, 0.5)))
    assert transforms.rfftfreq(n, 0.5).tolist() == pytest.approx(list(numpy.fft.rfftfreq(n, 0.5)))

def test_types_and_refusals() -> None:
  assert transforms.fft(Tensor([1.0, 2.0])).dtype is dtypes.complex64
  assert transforms.rfft(Tensor([1, 2, 3])).dtype is dtypes.complex64
  assert transforms.irfft(Tensor([1j, 2]).cast("complex128")).dtype is dtypes.float64
  with pytest.raises(DTypeError, match="float32 or float64"): transforms.fft(Tensor([1.0]).half())
  with pytest.raises(DTypeError, match="real numbers"): transforms.rfft(Tensor([1j]))
  with pytest.raises(ArgumentError, match="at least 1"): transforms.fft(Tensor([1.0]), n=0)
  with pytest.raises(ArgumentError, match="norm is"): transforms.fft(Tensor([1.0]), norm="both")
  with pytest.raises(ArgumentError, match="twice"): transforms.fftn(Tensor([[1.0]]), dim=(0, 0))
  with pytest.raises(ArgumentError, match="more lengths"): transforms.fftn(Tensor([1.0]), s=(1, 1))
  with pytest.raises(ShapeError, match="with an axis"): transforms.fft(Tensor(1.0))

def test_gradients() -> None:
  torch = pytest.importorskip("torch")
  x = data(6).astype("complex64")
  for name in ("fft", "irfft"):
    a, b = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    getattr(transforms, name)(a).abs().sum().backward()
    getattr(torch.fft, name)(b).abs().sum().backward()
    assert a.grad is not None
    assert numpy.allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-5)

def test_samples_need_a_distance() -> None:
  for f in (transforms.fftfreq, transforms.rfftfreq):
    with pytest.raises(ArgumentError, match="0 apart"): f(4, d=0)
