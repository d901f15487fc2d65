"""Gradients across the calls of a TinyJit: as without it, or refused."""
from __future__ import annotations
import functools
import random
from typing import Any

import pytest

from tinyhw.capture.jit import TinyJit
from tinyhw.errors import JitError
from tinyhw.tensor import Tensor

def tensor(*values: float, **kwargs: Any) -> Tensor: return Tensor([float(v) for v in values], **kwargs).realize()

def captured(function: Any, *args: Any) -> TinyJit[Any, Any]:
  """A TinyJit that has captured a call with these arguments."""
  jit: TinyJit[Any, Any] = TinyJit(function)
  for _ in range(2): jit(*args)
  assert jit.captured is not None
  return jit

def test_gradients_add_up_over_calls() -> None:
  """As in micro-batches: zero_grad() before some of the calls, also before the replays."""
  w = tensor(1, 2)
  w.requires_grad = True
  def f(x: Tensor) -> Tensor: return (w * x).sum().backward().realize()
  jit: Any = TinyJit(f)
  kept = []
  for batch in range(3):
    w.grad = None
    for k in range(3): jit(tensor(k + 1, batch))
    assert w.grad is not None
    kept.append(w.grad)
  assert [g.tolist() for g in kept] == [[6, 0], [6, 3], [6, 6]]
  w.grad = None
  jit(tensor(-0.0, 0))
  assert str(w.grad.tolist()) == "[-0.0, 0.0]"     # type: ignore[attr-defined]  # backward() has put it there
  w.grad = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize().permute(1, 0)[1]    # another view: copied
  assert jit(tensor(1, 1)).item() == 3 and w.grad.tolist() == [3, 5]
  w.grad = Tensor([1, 2])
  with pytest.raises(JitError, match="the gradient of a Tensor of shape .2,. has another shape, type"):
    jit(tensor(1, 1))

def test_two_functions_add_to_gradients_of_each_other() -> None:
  """As the two networks of a GAN: the generator's step leaves gradients in the discriminator, whose own step clears
  them."""
  w, v = tensor(1, 2), tensor(3, 4)
  def first(x: Tensor) -> Tensor:
    w.grad = None
    return (w * w * x).sum().backward().realize()
  def second(x: Tensor) -> Tensor:
    v.grad = None
    return (w * v * x).sum().backward().realize()
  a: Any = TinyJit(first)
  b: Any = TinyJit(second)
  w.requires_grad = v.requires_grad = True
  for k in range(5):
    a(tensor(k, 1))
    b(tensor(k, 2))
    assert w.grad is not None and v.grad is not None
    assert (w.grad.tolist(), v.grad.tolist()) == ([2 * k + 3 * k, 4 + 8], [k, 4])

def test_a_gradient_from_before_is_read_as_it_is_then() -> None:
  w = tensor(1, 2)
  w.requires_grad = True
  def f(x: Tensor) -> Tensor:
    assert w.grad is not None
    return (w.grad * x).realize()
  jit: Any = TinyJit(f)
  for k in range(5):
    w.grad = tensor(k, 1)
    assert jit(tensor(2, 3)).tolist() == [2 * k, 3]
  w.grad = None
  with pytest.raises(JitError, match="had a gradient when the function was captured, and has none now"):
    jit(tensor(2, 3))

def test_gradients_that_are_one_tensor_are_told_apart() -> None:
  w, v = tensor(1, 2), tensor(3, 4)
  w.requires_grad = v.requires_grad = True
  def f(x: Tensor) -> Tensor: return ((w + v) * x).sum().backward().realize()
  jit: Any = TinyJit(f)
  for k in range(2): jit(tensor(1, 1))
  v.grad = tensor(10, 20)
  jit(tensor(1, 1))
  assert w.grad is not None and w.grad.tolist() == [3, 3] and v.grad.tolist() == [11, 21]
  w.grad = v.grad
  jit(tensor(1, 1))
  assert w.grad.tolist() == v.grad.tolist() == [12, 22]

@pytest.mark.parametrize("seed", range(20))
def test_random_programs_that_share_gradients(seed: int) -> None:
  """Functions add to, read, replace and clear gradients, and so does the code between the calls. Results are as without
  TinyJit, or refused."""
  chance = random.Random(seed)
  w, v = ([Tensor(data, requires_grad=True).realize() for _ in range(2)] for data in ([1.0, 2.0], [3.0, -1.0]))
  def add(k: int, x: Tensor) -> Tensor: return ((w[k] + v[k]) * x * w[k]).sum().backward().realize()
  def read(k: int, x: Tensor) -> Tensor:
    (v[k] * x * x).sum().backward()
    assert v[k].grad is not None
    return v[k].grad.realize()
  def clear(k: int, x: Tensor) -> Tensor:
    v[k].grad = None
    (v[k] * w[k] * x).sum().backward()
    return v[k].assign(v[k] - 0.125 * v[k].grad).realize()
  def decay(k: int, x: Tensor) -> Tensor:
    w[k].grad = None if w[k].grad is None else w[k].grad * 0.5
    (w[k] * w[k] * x).sum().backward()
    return w[k].assign(w[k] - 0.0625 * w[k].grad).realize()
  functions = add, read, clear, decay
  jits: list[Any] = [TinyJit(functools.partial(f, 0)) for f in functions]
  for _ in range(14):
    what, data = chance.randrange(8), [float(chance.randint(-3, 3)) for _ in range(2)]
    if what < len(functions):
      try: found = jits[what](Tensor(data).realize())
      except JitError: return
      assert found.tolist() == functions[what](1, Tensor(data).realize()).tolist()
    for k in range(2):
      if what == 4: w[k].grad = None
      elif what == 5: v[k].grad = Tensor(data) * 2
      elif what == 6: w[k].grad = v[k].grad
      elif what == 7: w[k].grad = Tensor([data, data]).realize()[:, 1]
  for a, b in (w, v):
    assert a.tolist() == b.tolist() and (a.grad is None) == (b.grad is None)
    if a.grad is not None and b.grad is not None: assert a.grad.tolist() == b.grad.tolist()

def test_a_gradient_with_another_name_is_refused() -> None:
  w, g = tensor(1, 2), tensor(1, 1)
  w.requires_grad = True
  def f(x: Tensor) -> Tensor: return ((w * x).sum().backward() + g.sum()).realize()
  jit: Any = TinyJit(f)
  jit(tensor(1, 1))
  w.grad = g
  with pytest.raises(JitError, match="uses a gradient that it also has by another name"): jit(tensor(1, 1))

# ***** threads *****
