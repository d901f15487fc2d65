"""Quantized operators against their formulas."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

F32, MS = np.float32, "com.microsoft"
U8, I8 = np.uint8, np.int8

def quantized(x: Any, scale: Any, zero: Any, dtype: Any = U8) -> Any:
  info = np.iinfo(dtype)
  return np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(dtype)

def test_quantize_and_back() -> None:
  x = np.array([[-300, -1.5, 0.5, 1.5], [2.5, 100, 254, 900]], F32)
  assert (run("QuantizeLinear", x, F32(1), U8(3)).tolist() == quantized(x, 1, 3.0).tolist()
          and run("QuantizeLinear", x, F32(2)).dtype == U8)
  assert run("QuantizeLinear", x, F32(1), np.int16(3)).tolist() == quantized(x, 1, 3.0, np.int16).tolist()
  scale, zero = np.array([1, 2], F32), np.array([0, 5], I8)
  assert run("QuantizeLinear", x, scale, zero, axis=0).tolist() == quantized(x, scale[:, None],
                                                                             zero[:, None].astype(F32), I8).tolist()
  q = quantized(x, 1, 3.0)
  assert run("DequantizeLinear", q, F32(0.5), U8(3)).tolist() == ((q.astype(F32) - 3) * 0.5).tolist()
  blocks = np.array([[1, 2], [3, 4]], F32)
  assert run("DequantizeLinear", q, blocks, block_size=2, axis=1).tolist() == (q * np.repeat(blocks, 2, 1)).tolist()
  assert run("QuantizeLinear", x, F32(1), output_dtype=22).tolist()[0] == [-8, -2, 0, 2]
  with pytest.raises(TinyError, match="2 scales for axis"): run("QuantizeLinear", x, scale, axis=1)

def test_quantized_by_range() -> None:
  x = np.array([-1, 0, 2.5, 4], F32)
  y, scale, zero = run("DynamicQuantizeLinear", x, outputs=3)
  assert scale == F32(5 / 255) and zero == 51 and y.tolist() == quantized(x, F32(5 / 255), 51).tolist()
  assert run("DynamicQuantizeLinear", x * 0, outputs=3)[0].tolist() == [0] * 4

def test_integer_products() -> None:
  rng = np.random.default_rng(0)
  a, b = rng.integers(0, 255, (3, 4)).astype(U8), rng.integers(-128, 127, (4, 2)).astype(I8)
  az, bz = np.array([1, 2, 3], U8), np.array([-4, 5], I8)
  exact = (a.astype(np.int32) - az[:, None]) @ (b.astype(np.int32) - bz)
  assert run("MatMulInteger", a, b, az, bz).tolist() == exact.tolist()
  assert run("MatMulInteger", a, b).tolist() == (a.astype(np.int32) @ b.astype(np.int32)).tolist()
  y = run("QLinearMatMul", a, F32(0.1), U8(7), b, F32(0.2), I8(1), F32(0.5), U8(9))
  assert abs(y.astype(int) - quantized(((a.astype(np.int32) - 7) @ (b.astype(np.int32) - 1)) * 0.02, 0.5, 9)).max() <= 1
  x, w = rng.integers(0, 255, (1, 1, 4, 4)).astype(U8), rng.integers(-9, 9, (2, 1, 2, 2)).astype(I8)
  windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32) - 3, (2, 2), (2, 3))
  exact = np.einsum("nihwkl,oikl->nohw", windows, w.astype(np.int32))
  assert run("ConvInteger", x, w, U8(3)).tolist() == exact.tolist()
  bias, scales = np.array([10, -20], np.int32), np.array([0.1, 0.2], F32)
  y = run("QLinearConv", x, F32(0.5), U8(3), w, scales, np.zeros(2, I8), F32(4), U8(128), bias)
  expected = (exact + bias.reshape(1, -1, 1, 1)) * (0.5 * scales.reshape(1, -1, 1, 1))
  assert abs(y.astype(int) - quantized(expected, 4, 128)).max() <= 1

def test_onnx_runtimes_operators() -> None:
  a, b = np.array([10, 200], U8), np.array([5, 90], U8)
  real_a, real_b = (a.astype(F32) - 4) * 0.5, (b.astype(F32) - 2) * 0.25
  parameters = (a, F32(0.5), U8(4), b, F32(0.25), U8(2), F32(1), U8(1))
  assert run("QLinearAdd", *parameters, domain=MS).tolist() == quantized(real_a + real_b, 1, 1).tolist()
  assert run("QLinearMul", *parameters, domain=MS).tolist() == quantized(real_a * real_b, 1, 1).tolist()
  assert run("QLinearSigmoid", a, F32(0.5), U8(40), F32(1 / 256), U8(0), domain=MS).tolist() == \
    quantized(1 / (1 + np.exp(-(a.astype(F32) - 40) * 0.5)), 1 / 256, 0).tolist()
  assert run("QLinearLeakyRelu", a, F32(0.5), U8(40), F32(1), U8(20), domain=MS, alpha=0.5).tolist() == [12, 100]
  image = np.arange(8, dtype=U8).reshape(1, 2, 2, 2)
  assert run("QLinearGlobalAveragePool", image, F32(1), U8(0), F32(0.5), U8(0),
             domain=MS).reshape(-1).tolist() == [3, 11]
  x, w = np.array([[-1, 0.5, 4]], F32), np.arange(6, dtype=U8).reshape(3, 2)
  np.testing.assert_allclose(run("DynamicQuantizeMatMul", x, w, F32(0.5), U8(1), domain=MS),
                             x @ ((w.astype(F32) - 1) * 0.5), atol=0.1)
  found = run("MatMulIntegerToFloat", w[:2, :1].T.copy(), w[1:], F32(2), F32(0.5), domain=MS)
  assert found.tolist() == (w[:2, :1].T.astype(F32) @ w[1:].astype(F32)).tolist()

def test_on_each_engine(engine: str) -> None:
  assert run("QuantizeLinear", np.array([-1, 0.5, 2.5], F32), F32(1), U8(128)).tolist() == [127, 128, 130]
