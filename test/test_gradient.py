"""gradient.py: what rules decide, graphs of any depth and order, and which nodes gradients reach."""
import math

import numpy as np
import pytest

from test.helpers import arrays, check_gradient, only_on, same
from tinyhw import Context, TinyJit, nn
from tinyhw.config import EMULATE
from tinyhw.engine.schedule.schedule import canonicalize, make_schedule
from tinyhw.errors import ArgumentError, GradientError, ShapeError
from tinyhw.gradient import define_gradient, gradients
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

pytestmark = pytest.mark.usefixtures("engine")

def test_higher_derivatives():
  x = Tensor([0.7])
  y = x.sin() * x.exp() + x ** 4
  for want in (lambda a: (math.sin(a) + math.cos(a)) * math.exp(a) + 4 * a ** 3,
               lambda a: 2 * math.cos(a) * math.exp(a) + 12 * a * a,
               lambda a: 2 * (math.cos(a) - math.sin(a)) * math.exp(a) + 24 * a):
    y = y.sum().gradient(x)[0]
    same(y, np.array([want(0.7)], np.float32))

def test_shared_nodes_add_up():
  x = Tensor([2.0, 3.0])
  h = x * x
  assert ((h + h * h).sum().gradient(x, h) and [g.tolist() for g in (h + h * h).sum().gradient(x, h)]
          == [[36.0, 114.0], [9.0, 19.0]])

def test_deep_graphs_need_no_recursion():
  x = Tensor([1.0])
  y = x
  for _ in range(3000): y = y + x
  g = y.sum().gradient(x)[0]
  assert len(g.uop.toposort()) > 3000

def test_cost_is_linear_in_the_graph():
  def nodes(layers: int) -> int:
    x = Tensor.ones(4, 4, requires_grad=True)
    y = x
    for _ in range(layers): y = (y @ x).relu()
    return len(y.sum().gradient(x)[0].uop.toposort())
  assert nodes(16) < 2.2 * nodes(8)

def test_reshaped_and_realized_targets():
  w = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))
  h = (w * 2).reshape(4)
  z = (h.reshape(2, 2) * w).sum()
  assert z.gradient(h)[0].tolist() == [0, 1, 2, 3]
  h.realize()
  assert z.gradient(h, w)[0].tolist() == [0, 1, 2, 3] and z.gradient(w)[0].tolist() == [[0, 4], [8, 12]]

def test_assign_passes_the_gradient_of_its_value():
  w, v = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
  w.assign(v * 2)
  assert (w * w).sum().gradient(v)[0].tolist() == [24.0, 32.0]

def test_copies_return_the_gradient_to_their_source():
  x = Tensor([1.0, 2.0], device="PYTHON")
  g = (x.to("PYTHON:1") * 3).sum().gradient(x)[0]
  assert g.device == "PYTHON"

def test_gather_adds_up():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert x[Tensor([1, 1, 0, -1, 7])].sum(0).square().sum().gradient(x)[0].tolist() == [[20.0, 28.0], [60.0, 84.0]]

def test_a_rule_of_its_own():
  x = Tensor([1.0, 2.0])
  node = graph.unary(Ops.TRUNC, x.uop)
  define_gradient(node, (x.uop,), lambda u, g: (g,))
  assert gradients(node, graph.like(node, 5), [x.uop])[0] is graph.like(node, 5)

def test_powers_at_zero():
  a, b = Tensor([0.0, 0.0, 2.0]), Tensor([2.0, 1.0, 0.0])
  ga, gb = (a ** b).sum().gradient(a, b)
  assert ga.tolist() == [0.0, 1.0, 0.0] and gb.tolist()[:2] == [0.0, 0.0]

def test_nothing_flows_through_integers_and_rounding():
  x = Tensor([1.5, 2.5])
  assert (x.floor() + x.int()).sum().gradient(x)[0].tolist() == [0.0, 0.0]

def test_several_targets():
  """One of them twice, one from which others were computed, one that does not matter."""
  x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
  h = x * y
  z = (h * h + y.detach()).sum()
  assert [g.tolist() for g in z.gradient(x, h, x, y)] == [[18.0, 64.0], [6.0, 16.0], [18.0, 64.0], [6.0, 32.0]]
  assert (x * 0 + y.floor()).sum().gradient(x, y)[1].tolist() == [0.0, 0.0]

def test_weighted_gradients():
  x = Tensor([1.0, 2.0, 3.0])
  assert x.square().gradient(x, gradient=Tensor([1.0, 0.0, -1.0]))[0].tolist() == [2.0, 0.0, -6.0]
  assert x.square().gradient(x, gradient=Tensor([1, 2, 3]))[0].tolist() == [2.0, 8.0, 18.0]
  x.square().backward(gradient=Tensor([1.0, 0.0, 0.0]))
  assert x.grad.tolist() == [2.0, 0.0, 0.0]

def test_a_weight_broadcasts():
  for weight, expected in ((Tensor(2.0), [[4.0, 8.0], [12.0, 16.0]]), (Tensor([1.0, 10.0]), [[2.0, 40.0], [6.0, 80.0]]),
                           (Tensor([[1], [0]]), [[2.0, 4.0], [0.0, 0.0]])):
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.square().gradient(x, gradient=weight)[0].tolist() == expected
    x.square().backward(gradient=weight)
    assert x.grad.tolist() == expected
  with pytest.raises(ShapeError, match=r"weight the gradient of"): x.square().backward(gradient=Tensor([1.0, 2.0, 3.0]))
  with pytest.raises(ShapeError, match=r"weight the gradient of"): x.square().backward(gradient=Tensor.ones(3, 2, 2))

def test_a_gradient_has_storage_of_its_own():
  for view in (lambda t: t, lambda t: t.reshape(2, 1), lambda t: t.reshape(1, 2).expand(3, 2)):
    x = Tensor([[1.0, 2.0]] * 3) if view(Tensor([0.0, 0.0])).shape == (3, 2) else view(Tensor([1.0, 2.0]))
    x = x.clone().realize()
    weight = Tensor([1.0, 2.0])
    x.backward(gradient=view(weight))
    g, = x.gradient(x, gradient=view(weight))
    x.grad += 1
    g *= 3
    assert (weight.tolist() == [1.0, 2.0] and x.grad.tolist() == (view(weight) + 1).tolist()
            and g.tolist() == (view(weight) * 3).tolist())

def test_results_retain_their_gradients_if_asked():
  w = Tensor([1.0, 2.0], requires_grad=True)
  y, other = w * 2, w * 5
  assert y.retain_grad() is None and y.retains_grad and not other.retains_grad and not w.retains_grad
  w.retain_grad()
  for times in (1, 2):
    (y * y + other).sum().backward()
    assert y.grad.tolist() == [4.0 * times, 8.0 * times] and w.grad.tolist() == [13.0 * times,
                                                                                 21.0 * times] and other.grad is None
  y *= 3    # the gradient of what it is now
  y[0] = 1.0
  y.grad = None
  (y * y).sum().backward()
  assert y.grad.tolist() == [2.0, 24.0] and w.grad.tolist() == [26.0, 42.0 + 144.0]
  plain = Tensor([1.0, 2.0])
  c, e = plain.clone(), plain.reshape(1, 2).expand(3, 2)
  for t in (c, e): t.retain_grad()
  (c * e).sum().backward()
  assert plain.grad.tolist() == [6.0, 12.0] and c.grad.tolist() == [3.0, 6.0] and e.grad.tolist() == [[1.0, 2.0]] * 3
  written = Tensor([1.0, 2.0])     # data, which is a result once it is written
  written += w
  written.retain_grad()
  (written * 3).sum().backward()
  assert written.grad.tolist() == [3.0, 3.0]
  loss = (plain * 2).sum()
  loss.retain_grad()
  assert loss.backward().grad.item() == 1.0
  for t in (Tensor([1]), Tensor([1.0], requires_grad=False)):
    with pytest.raises(GradientError, match="has no gradient to retain"): t.retain_grad()

def test_gradients_have_the_type_and_place_of_their_targets():
  for dtype in ("float16", "bfloat16", "float32", "float64"):
    x = Tensor([1.0, 2.0], dtype=dtype)
    g = (x.float() * 3).sum().gradient(x)[0]
    assert g.dtype is x.dtype and g.device == x.device and g.tolist() == [3.0, 3.0]

def test_who_gets_a_grad():
  a, b, c = Tensor([1.0]), Tensor([2.0], requires_grad=False), Tensor([3.0])
  (a * b * c).backward()
  assert a.grad.item() == 6.0 and b.grad is None and c.grad.item() == 2.0
  d = Tensor([4.0], requires_grad=True)
  (a * d).backward()
  assert a.grad.item() == 6.0 and d.grad.item() == 1.0   # only those that were asked for
  (a * d).backward()
  assert d.grad.item() == 2.0                            # it adds up
  d.requires_grad = False
  (a * d).backward()
  assert d.grad.item() == 2.0 and a.grad.item() == 10.0
  with Tensor.no_grad: e = a * 2
  assert e.sum().gradient(a)[0].item() == 0.0
  f = (a * 2).detach()
  with pytest.raises(GradientError, match="not computed from"): (f + c).sum().gradient(d)
  assert (f * a).sum().gradient(a)[0].item() == 2.0

def test_writing_in_place():
  x, v = Tensor([1.0, 2.0, 3.0, 4.0]), Tensor([10.0, 20.0])
  y = x * 2
  y[1:3] = v * 3
  gx, gv = (y * y).sum().gradient(x, v)
  assert gx.tolist() == [8.0, 0.0, 0.0, 32.0] and gv.tolist() == [180.0, 360.0]

def test_reinterpreted_bits_have_no_gradient():
  x = Tensor([1.0, 2.0], dtype="float16")
  with pytest.raises(GradientError, match="BITCAST of .*bfloat16 has no gradient; detach"):
    x.bitcast("bfloat16").float().sum().gradient(x)
  assert (x * 2 + x.bitcast("int16").bitcast("float16")).sum().gradient(x)[0].tolist() == [2.0, 2.0]

def test_refusals():
  x, y = Tensor([1.0, 2.0]), Tensor([1.0])
  with pytest.raises(GradientError, match=r"the shape is \(2,\)"): x.gradient(x)
  with pytest.raises(GradientError, match="was not computed from"): x.sum().gradient(y)
  with pytest.raises(GradientError, match="cannot be differentiated"): Tensor([1]).sum().gradient(x)
  with pytest.raises(GradientError, match="has no gradient"): x.sum().gradient(Tensor([1]))
  with pytest.raises(ShapeError): x.gradient(x, gradient=y.expand(3))

def test_a_network():
  check_gradient(lambda x, w, v: ((x @ w).gelu() @ v).layernorm().softmax(), (2, 3), (3, 4), (4, 2))

# ***** checkpoints *****

class Layers:
  """Blocks with everything that makes recomputation hard: statistics of rows, dropout, a running mean, a residual, a
  convolution."""
  def __init__(self, count: int = 3):
    self.weights = [Tensor(x) for x in arrays(*[(6, 6)] * count)]
    self.kernels = [Tensor(x) for x in arrays(*[(2, 2, 3)] * count, seed=1)]
    self.norms = [nn.BatchNorm(2) for _ in range(count)]

  def block(self, i: int, x: Tensor) -> Tensor:
    h = (x.layernorm() @ self.weights[i]).gelu().dropout(0.25)
    y = self.norms[i](h.reshape(-1, 2, 3).conv2d(self.kernels[i], padding=1)).reshape(h.shape)
    return x + y.softmax()

  def __call__(self, x: Tensor, checkpoint: bool) -> Tensor:
    for i in range(len(self.weights)): x = Tensor.checkpoint(self.block, i, x) if checkpoint else self.block(i, x)
    return x

  def gradients(self, x: Tensor, checkpoint: bool) -> list[Tensor]:
    Tensor.manual_seed(5)
    with Tensor.train():
      y = self(x, checkpoint)
      loss = y.square().mean()
      return [loss, y, *loss.gradient(x, *self.weights, *self.kernels)]

def held(*tensors: Tensor) -> int:
  """Return the peak bytes of their schedule, without its inputs and results."""
  return sum(make_schedule(list(canonicalize([t.uop for t in tensors]).roots)).plan.arena_bytes.values())

def deep(checkpoint: bool, sizes: tuple[int, ...] = (64, 32), count: int = 10) -> list[Tensor]:
  """Return the loss and the gradients of a deep network."""
  x, *weights = [Tensor(a) for a in arrays(sizes, *[(sizes[1], sizes[1])] * count)]
  y = x
  for w in weights:
    def layer(v: Tensor, w: Tensor = w) -> Tensor: return v + ((v.layernorm() @ w).gelu() @ w.T).tanh()
    y = Tensor.checkpoint(layer, y) if checkpoint else layer(y)
  loss = y.square().mean()
  return [loss, *loss.gradient(x, *weights)]

def at_once(tensors, read):
  """Values that are computed in one schedule: a later one would read what an earlier one has kept."""
  Tensor.realize(*tensors)
  return [read(t) for t in tensors]

def test_checkpoints_change_no_bit():
  x = Tensor(arrays((4, 6))[0])
  plain, again = (at_once(Layers().gradients(x, checkpoint), Tensor.tolist) for checkpoint in (False, True))
  assert plain == again

def test_checkpoints_hold_less_memory():
  """Of 10 layers that hold 5 values each: inputs only, and the values of one layer at a time."""
  plain, less = held(*deep(False)), held(*deep(True))
  assert less < 0.4 * plain, f"{less} bytes with checkpoints, {plain} without"

@pytest.mark.slow
def test_a_large_network_bit_by_bit(engine):
  only_on(engine, "CPU", "AVX2", why="large")
  shape, count = ((12, 10), 3) if EMULATE.value else ((300, 130), 6)   # virtual GPUs take their time
  with Context(NOOPT=bool(EMULATE.value)):   # whose matrix units are used or not, as a kernel comes; each has an order
                                             # of sums
    plain, again = (at_once(deep(checkpoint, shape, count), Tensor.numpy) for checkpoint in (False, True))
  for a, b in zip(plain, again): np.testing.assert_array_equal(a, b)

def test_the_function_is_called_once():
  calls, norm, x = [], nn.BatchNorm(2), Tensor(arrays((4, 2))[0])
  def function(v: Tensor, scale: float) -> Tensor:
    calls.append(scale)
    return norm(v) * scale
  with Tensor.train(): Tensor.checkpoint(function, x, 2.0).square().sum().backward()
  Tensor.realize(x.grad, norm.num_batches_tracked, norm.running_mean)
  assert calls == [2.0] and norm.num_batches_tracked.item() == 1
  same(norm.running_mean, x.numpy().mean(0) * np.float32(0.1))

def test_nested_checkpoints():
  x, w = (Tensor(a) for a in arrays((3, 4), (4, 4)))
  def inner(v: Tensor) -> Tensor: return (v @ w).tanh().softmax()
  def outer(v: Tensor, inside: bool) -> Tensor:
    h = (v @ w).exp()
    return Tensor.checkpoint(inner, h) if inside else inner(h)   # the same node is the result of both
  def gradients_of(f) : return [g.tolist() for g in f(x).square().sum().gradient(x, w)]
  ways = [lambda v: outer(v, False), lambda v: outer(v, True), lambda v: Tensor.checkpoint(outer, v, True)]
  with Context(NOOPT=1): want, *found = map(gradients_of, ways)
  assert found == [want, want]
  for result in map(gradients_of, ways):   # one kernel reads the softmax of both passes, and may add up otherwise than
                                           # that of one
    for a, b in zip(result, want): np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)

def test_a_checkpoint_with_several_results():
  x, w = (Tensor(a) for a in arrays((3, 4), (4, 4)))
  def parts(v: Tensor) -> dict[str, object]:
    h = (v @ w).sin()
    return {"a": h, "b": [h.exp() * 2, h.argmax(1)], "c": (v, 3)}
  def gradients_of(found) -> list[object]:
    return ([g.tolist() for g in (found["a"] * found["b"][0]).sum().gradient(x, w, found["a"])]
            + [found["b"][1].tolist(), found["c"][1]])
  want = gradients_of(parts(x))
  assert gradients_of(Tensor.checkpoint(parts, x)) == want

def test_higher_derivatives_through_a_checkpoint():
  x = Tensor([0.3, 0.7])
  y = Tensor.checkpoint(lambda v: v.sin() * v.exp(), x)
  for want in (lambda a: (np.sin(a) + np.cos(a)) * np.exp(a), lambda a: 2 * np.cos(a) * np.exp(a),
               lambda a: 2 * (np.cos(a) - np.sin(a)) * np.exp(a)):
    y = y.sum().gradient(x)[0]
    same(y, want(np.array([0.3, 0.7], np.float32)))

def test_values_inside_of_a_checkpoint_and_around_it_are_targets():
  inside = []
  x = Tensor([1.0, 2.0])
  around = x * 3
  def function(v: Tensor) -> Tensor:
    inside.append(v.square() * around)
    return inside[0].sin()
  y = Tensor.checkpoint(function, x)
  want = [np.cos(3.0 * np.array([1, 8])), np.cos(3.0 * np.array([1, 8])) * np.array([1, 4])]
  same(y.sum().gradient(inside[0], around), [w.astype(np.float32) for w in want], rtol=1e-4)

def test_a_jitted_step_with_checkpoints(engine):
  """Jitted training draws the same numbers and takes the same steps as plain training without checkpoints."""
  if engine == "interpreter": pytest.skip("replays run on devices")
  results = []
  for checkpoint in (False, True):
    model, x = Layers(2), Tensor(arrays((4, 6))[0])
    opt = nn.optim.SGD([*model.weights, *model.kernels], lr=0.1)
    def step(v: Tensor) -> Tensor:
      opt.zero_grad()
      loss = model(v, checkpoint).square().mean().backward()
      return loss.realize(*opt.schedule_step())
    run = TinyJit(step) if checkpoint else step
    Tensor.manual_seed(3)
    with Tensor.train(): results.append([run(x + i).tolist() for i in range(4)] + [w.tolist() for w in opt.params])
  assert results[0] == results[1]

def test_checkpoints_without_gradients():
  x = Tensor([1.0, 2.0])
  with Tensor.no_grad: assert Tensor.checkpoint(lambda v: v * 2, x).tolist() == [2, 4]
  assert Tensor.checkpoint(lambda v: v, x) is x and Tensor.checkpoint(lambda: None) is None
  with pytest.raises(ArgumentError, match="checkpoint wants a function"): Tensor.checkpoint(x, x)
