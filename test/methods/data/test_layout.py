"""Views of storage as strides, against NumPy's."""
import numpy as np
import pytest

from tinyhw import Tensor, UOp
from tinyhw.methods.data.layout import layout

@pytest.mark.parametrize("view", [
  lambda t: t, lambda t: t[1], lambda t: t[:, 1:, 2], lambda t: t[::-1], lambda t: t.reshape(6, 4)[2:5],
  lambda t: t[None], lambda t: t[:, None, 1:],
  lambda t: t[:, ::2], lambda t: t[:, ::-2, ::3], lambda t: t[:, ::2][..., ::-3],
  lambda t: t[..., ::2], lambda t: t[..., 1::2], lambda t: t[..., ::-2], lambda t: t[..., ::2].reshape(12)])
def test_strides_are_numpys(view):
  x, a = Tensor.arange(24).reshape(2, 3, 4).contiguous().realize(), np.arange(24, dtype=np.int32).reshape(2, 3, 4)
  found = layout(view(x).uop)
  assert found is not None
  want = view(a)
  numbers = a.reshape(-1)
  assert found[1].shape == want.shape
  for at in np.ndindex(*want.shape):
    assert numbers[found[1].offset + sum(i * s for i, s in zip(at, found[1].strides))] == want[at]

@pytest.mark.slow
def test_what_has_no_strides():
  x = Tensor.arange(24).reshape(4, 6).contiguous().realize()
  assert (layout(x.T.reshape(24).uop) is None and layout((x + 1).uop) is None
          and layout(x[:, :4:2].reshape(8).uop) is None)
  assert layout(x[:UOp.variable("n", 1, 4).bind(2)].uop) is None
