"""fft/short_time.py: frames against their definition, and the inverse gives the signal back."""
from __future__ import annotations
import math

import pytest

from tinyhw import Tensor
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.fft.short_time import istft, stft
from tinyhw.fft.transforms import rfft

SIGNAL = [math.sin(0.3 * t) + 0.1 * t for t in range(40)]
WINDOW = [math.sin(math.pi * (t + 0.5) / 8) for t in range(8)]

def test_frames() -> None:
  x, w = Tensor(SIGNAL), Tensor(WINDOW)
  found = stft(x, 8, 4, window=w, center=False, return_complex=True)
  assert found.shape == (5, 9)
  for k in (0, 3, 8):
    expected = rfft(x[4 * k:4 * k + 8] * w).tolist()
    assert max(abs(a - b) for a, b in zip(found[:, k].tolist(), expected)) < 1e-5
  assert stft(x, 8, 4, window=w, center=False, return_complex=False).shape == (5, 9, 2)

@pytest.mark.parametrize("normalized", (False, True))
def test_the_inverse_gives_the_signal_back(normalized: bool) -> None:
  x, w = Tensor([SIGNAL, SIGNAL[::-1]]), Tensor(WINDOW)
  spectra = stft(x, 8, 2, window=w, normalized=normalized, return_complex=True)
  back = istft(spectra, 8, 2, window=w, normalized=normalized, length=40)
  assert max(abs(a - b) for row, other in zip(back.tolist(), x.tolist()) for a, b in zip(row, other)) < 1e-5

def test_complex_signals() -> None:
  x, w = Tensor([complex(a, -b) for a, b in zip(SIGNAL, SIGNAL[::-1])]), Tensor(WINDOW)
  spectra = stft(x, 8, 2, window=w)
  assert spectra.shape[0] == 8
  back = istft(spectra, 8, 2, window=w, onesided=False, length=40, return_complex=True)
  assert max(abs(a - b) for a, b in zip(back.tolist(), x.tolist())) < 1e-5

def test_refusals() -> None:
  x = Tensor(SIGNAL)
  with pytest.raises(ArgumentError, match="return_complex"): stft(x, 8)
  with pytest.raises(ShapeError, match="shorter than a frame"): stft(x, 64, center=False, return_complex=True)
  with pytest.raises(ArgumentError, match="win_length"): stft(x, 8, win_length=9, return_complex=True)
  with pytest.raises(DTypeError, match="complex numbers"): istft(x.reshape(5, 8), 8)
  with pytest.raises(ShapeError, match="frequencies"): istft(stft(x, 8, return_complex=True), 16)
  with pytest.raises(ArgumentError, match="undetermined"): istft(stft(x, 8, return_complex=True), 8,
                                                                 window=Tensor.zeros(8))
