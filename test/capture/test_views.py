"""Views of storage: the same movement or another, with the values of their Variables."""
from __future__ import annotations
from typing import Any

import pytest

from tinyhw.capture.jit import TinyJit
from tinyhw.capture.views import base_buffer, binds_in, chain, look_of, same_view, with_values
from tinyhw.errors import JitError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def tensor(*values: float, **kwargs: Any) -> Tensor: return Tensor([float(v) for v in values], **kwargs).realize()

def captured(function: Any, *args: Any) -> TinyJit[Any, Any]:
  """A TinyJit that has captured a call with these arguments."""
  jit: TinyJit[Any, Any] = TinyJit(function)
  for _ in range(2): jit(*args)
  assert jit.captured is not None
  return jit

def test_other_views_of_the_same_shape_have_a_message_of_their_own() -> None:
  jit = captured(lambda x: x + 1, tensor(1, 2))
  with pytest.raises(JitError, match="another view of its buffer"):
    jit(Tensor([[1.0, 2.0], [3.0, 4.0]]).realize().permute(1, 0)[0])

# ***** gradients *****

def test_views_are_compared_by_their_movements() -> None:
  a, b = (Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).realize() for _ in range(2))
  assert base_buffer(a.T.uop) is base_buffer(a.uop) and base_buffer(a.uop) is not base_buffer(b.uop)
  for f in (lambda t: t, lambda t: t.T, lambda t: t[1:], lambda t: t.flip(0), lambda t: t.reshape(3, 2)):
    assert same_view(f(a).uop, f(b).uop)
  for f, g in ((lambda t: t, lambda t: t.reshape(3, 2)), (lambda t: t[1:], lambda t: t[:1]),
               (lambda t: t.flip(0), lambda t: t.flip(1))):
    assert (not same_view(f(a).uop, g(b).uop) and look_of(f(a).uop) != look_of(g(b).uop)
            and look_of(f(a).uop) == look_of(f(b).uop))
  assert not same_view(a.uop, a.cast("int32").realize().uop) and not same_view(a.uop, Tensor([1.0]).realize().uop)
  assert [u.op for u in chain(a.T[1:].uop)][-1] is base_buffer(a.uop).op

def test_variables_of_views_have_other_values() -> None:
  n, a = UOp.variable("n", 1, 3), Tensor([1.0, 2.0, 3.0]).realize()
  view, other = a[:n.bind(2)].uop, a[:n.bind(3)].uop
  assert [b.unbind()[1] for b in binds_in(view)] == [2] and same_view(view,
                                                                      other) and with_values(view, {"n": 3}) is other
  assert look_of(view) == look_of(other) != look_of(a[:2].uop)
  with pytest.raises(JitError, match="has no buffer of its own; realize it first"): base_buffer(Tensor(1.0).uop)
