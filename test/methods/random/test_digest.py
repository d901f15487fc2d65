"""keccak and hash against hashlib."""
import hashlib

import numpy as np
import pytest

from test.helpers import only_on
from tinyhw import Context, Tensor, dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods.random import digest
from tinyhw.methods.random.digest import CONFIGURATIONS

def expected(data: bytes, name: str) -> bytes:
  found = hashlib.new(name, data)
  return (found.digest({"shake_128": 16, "shake_256": 32}[name]) if name.startswith("shake")
          else found.digest())  # type: ignore[call-arg]

@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_keccak(engine, name):
  rate = CONFIGURATIONS[name][0]
  for n in (3,) if engine == "interpreter" else (0, rate - 1, rate + 5):
    data = bytes(i * 7 % 251 for i in range(n))
    got = Tensor(data, dtype=dtypes.uint8).keccak(name)
    assert got.dtype is dtypes.uint8 and bytes(got.tolist()) == expected(data, name)

@pytest.mark.slow
def test_keccak_of_many():
  data = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5)
  got = Tensor(data).keccak().numpy()
  assert got.shape == (2, 3, 32)
  for at in np.ndindex(2, 3): assert got[at].tobytes() == expected(data[at].tobytes(), "sha3_256")
  assert Tensor(data[:0]).keccak("sha3_224").shape == (0, 3, 28)

@pytest.mark.slow
def test_keccak_of_a_rate_of_ones_own():
  assert Tensor(b"abc").keccak((136, 6)).tolist() == Tensor(b"abc").keccak("sha3_256").tolist()
  assert bytes(Tensor(b"").keccak((136, 1)).tolist()).hex()[:8] == "c5d24601"    # Keccak-256 before it became SHA-3

def test_keccak_refuses():
  for cfg in ("sha1", 5, (137, 6), (200, 6), (136, 256), (136,), None):
    with pytest.raises(ArgumentError, match="sha3_256"): Tensor(b"abc").keccak(cfg)
  with pytest.raises(DTypeError, match="uint8"): Tensor([1, 2]).keccak()
  with pytest.raises(ShapeError, match="axis"): Tensor(1, dtype=dtypes.uint8).keccak()

def tree(data: bytes, block: int, chunk: int) -> bytes:
  """Compute the definition of hash()."""
  while True:
    chunks = max(1, -(-len(data) // chunk))
    data = data.ljust(chunks * chunk, b"\0")
    for _ in range(2):
      data = b"".join(hashlib.shake_128(data[i:i + block]).digest(16) for i in range(0, len(data), block))
    if chunks == 1: return data

@pytest.mark.slow
def test_hash(engine, monkeypatch):
  """Use blocks of 64 bytes, which 4 digests fill."""
  only_on(engine, "CPU", "PYTHON", why="hundreds of kernels, which test_keccak has on all engines")
  monkeypatch.setattr(digest, "BLOCK", 64)
  monkeypatch.setattr(digest, "CHUNK", 256)
  for n in (0, 64, 257):
    data = bytes(i * 7 % 251 for i in range(n))
    assert bytes(Tensor(data, dtype=dtypes.uint8).hash().tolist()) == tree(data, 64, 256), n
  assert Tensor([1.0, 2.0]).hash().tolist() == Tensor(np.float32([1, 2]).tobytes()).hash().tolist()
  assert Tensor([True, False]).hash().tolist() == Tensor(b"\1\0").hash().tolist()

@pytest.mark.slow
def test_hash_of_blocks_as_they_are(engine):
  only_on(engine, "CPU", why="25 steps of 4 KiB: once is enough")
  data = bytes(range(256)) * 17
  with Context(SPEC=0): assert bytes(Tensor(data).hash().tolist()) == tree(data, 1 << 12, 1 << 20)
