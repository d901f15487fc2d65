"""Tensors with strides agree with NumPy's as_strided, or are refused."""
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import FileFormatError
from tinyhw.nn.strided import strided
from tinyhw.nn.tensor_io import InputFile

COUNT = 48
NUMBERS = np.arange(COUNT, dtype=np.int16)

@pytest.fixture(scope="module")
def source(tmp_path_factory):
  path = tmp_path_factory.mktemp("strided") / "f"
  path.write_bytes(b"head" + NUMBERS.tobytes())
  return InputFile(path, "test")

@given(data=st.data())
@settings(max_examples=60)
def test_slices_of_numpy(source, data):
  """Test arrays made by slicing, transposing and broadcasting."""
  shape = data.draw(st.sampled_from(((48,), (6, 8), (2, 3, 8), (2, 2, 3, 4))))
  x = NUMBERS.reshape(shape)
  x = x[tuple(data.draw(st.slices(n).filter(lambda s: (s.step or 1) > 0)) for n in shape)]
  x = x.transpose(data.draw(st.permutations(range(x.ndim))))
  if data.draw(st.booleans()): x = np.broadcast_to(x, (3, *x.shape))
  offset = (x.__array_interface__["data"][0] - NUMBERS.__array_interface__["data"][0]) // 2 if x.size else 0
  found = strided(source, 4, COUNT, dtypes.int16, offset, x.shape, tuple(s // 2 for s in x.strides))
  assert found.shape == x.shape and found.tolist() == x.tolist()

def test_all_small_strides(source):
  """Each pair of strides either gives the same as NumPy, or is refused because elements overlap or are outside."""
  for shape, strides in itertools.product(((2, 3), (3, 2), (1, 4)), itertools.product(range(6), repeat=2)):
    wanted = np.lib.stride_tricks.as_strided(NUMBERS, shape, [2 * s for s in strides])
    try: found = strided(source, 4, COUNT, dtypes.int16, 0, shape, strides)
    except FileFormatError as error:
      assert "overlaps itself" in str(error) and len(np.unique(wanted)) < wanted.size
      continue
    assert found.tolist() == wanted.tolist(), (shape, strides)

def test_outside(source):
  for offset, shape, strides in ((0, (49,), (1,)), (48, (1,), (1,)), (40, (3, 3), (3, 1)), (47, (2,), (1,))):
    with pytest.raises(FileFormatError, match="reaches element .* of a storage of 48"):
      strided(source, 4, COUNT, dtypes.int16, offset,
              shape, strides)
  assert strided(source, 4, COUNT, dtypes.int16, 47, (1, 1), (100, 100)).tolist() == [[47]]

def test_of_a_tensor_in_memory():
  found = strided(InputFile(Tensor(NUMBERS.tobytes()), "test"), 0, COUNT, dtypes.int16, 1, (3, 2), (1, 24))
  assert found.tolist() == [[1, 25], [2, 26], [3, 27]] and not found.device.startswith("DISK")
