"""Windows and Fourier transforms against NumPy."""
import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32 = np.float32

def split(z: object) -> object: return np.stack([np.real(z), np.imag(z)], -1)  # type: ignore[call-overload]

def test_windows() -> None:
  for op, function in {"HannWindow": np.hanning, "HammingWindow": np.hamming, "BlackmanWindow": np.blackman}.items():
    atol = 8e-3 if op == "HammingWindow" else 1e-6   # NumPy has 0.54 for 25 / 46
    np.testing.assert_allclose(run(op, np.array(9), periodic=0), function(9), atol=atol)
    np.testing.assert_allclose(run(op, np.array(8)), function(9)[:8], atol=atol)
  assert run("HannWindow", np.array(4), output_datatype=11).dtype == np.float64
  with pytest.raises(TinyError, match="a window of"): run("HannWindow", np.array(-1))

@pytest.mark.parametrize("length", [None, 6, 12])
def test_fourier_transforms(length: int | None) -> None:
  x = np.random.default_rng(0).standard_normal((2, 9, 3)).astype(F32)
  n = None if length is None else np.array(length)
  np.testing.assert_allclose(run("DFT", x[..., None], n, np.array(1)), split(np.fft.fft(x, length, 1)), atol=1e-4)
  np.testing.assert_allclose(run("DFT", x[..., None], n, np.array(1), onesided=1), split(np.fft.rfft(x, length, 1)),
                             atol=1e-4)
  z = x + 1j * np.random.default_rng(1).standard_normal(x.shape).astype(F32)
  np.testing.assert_allclose(run("DFT", split(z), n, opset=19, axis=1, inverse=1), split(np.fft.ifft(z, length, 1)),
                             atol=1e-4)

def test_short_time_fourier_transform() -> None:
  x, window = np.random.default_rng(0).standard_normal((2, 20)).astype(F32), np.hanning(8).astype(F32)
  frames = np.lib.stride_tricks.sliding_window_view(x, 8, 1)[:, ::4] * window
  np.testing.assert_allclose(run("STFT", x[..., None], np.array(4), window), split(np.fft.rfft(frames)), atol=1e-4)
  np.testing.assert_allclose(run("STFT", x[..., None], np.array(4), window, onesided=0), split(np.fft.fft(frames)),
                             atol=1e-4)
  with pytest.raises(TinyError, match="in frames of"): run("STFT", x[..., None], np.array(0), window)

def test_mel_filters_are_triangles() -> None:
  found = run("MelWeightMatrix", np.array(4), np.array(64), np.array(16000), F32(0), F32(8000))
  assert found.shape == (33, 4) and found.max() == 1 and found.min() == 0
  for column in found.T:
    peak = column.argmax()
    assert (np.diff(column[:peak + 1]) >= 0).all() and (np.diff(column[peak:]) <= 0).all()
