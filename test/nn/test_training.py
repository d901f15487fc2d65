"""Training as users write it. 100 steps of each optimizer run against its formula in float64 and against PyTorch.

Also schedules, clipping, mixed precision, accumulation, shared and frozen parameters, averages of weights. Each is
tested plain and under TinyJit.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator
import math
from typing import Any

import numpy as np
import pytest

from test.helpers import has_float64, on, same, wide_types
from tinyhw import Tensor, TinyJit, dtypes, nn
from tinyhw.config import DEV
from tinyhw.dtype import DType
from tinyhw.errors import ArgumentError, GradientError, IndexRangeError
from tinyhw.nn import optim

@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
  with on(DEV.value or "CPU"), Tensor.train(): yield

STEPS = 100
RNG = np.random.default_rng(0)
START = [RNG.standard_normal(s) / 2 for s in ((6, 5), (5, 4), (4,))]
INPUTS, TARGETS = RNG.standard_normal((STEPS, 8, 6)), RNG.standard_normal((STEPS, 8, 4))

def loss_of(params: Any, x: Any, y: Any) -> Any:
  """Return a small network's loss, with Tensors of either kind."""
  return ((x @ params[0]).tanh() @ params[1] + params[2] - y).square().mean()

def gradients_of(params: list[Any], x: Any, y: Any) -> list[Any]:
  """Return its gradients, in NumPy."""
  h = np.tanh(x @ params[0])
  d = 2 * (h @ params[1] + params[2] - y) / y.size
  return [x.T @ (d @ params[1].T * (1 - h * h)), h.T @ d, d.sum(0)]

def trained(make: Callable[[list[Tensor]], Any], jit: bool = False, dtype: Any = np.float64,
            steps: int = STEPS) -> list[Any]:
  """Return the parameters after some steps."""
  params = [Tensor(a.astype(dtype)) for a in START]
  opt = make(params)
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    loss: Tensor = loss_of(params, x, y).backward()
    return loss.realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  for x, y in zip(INPUTS[:steps], TARGETS): run(Tensor(x.astype(dtype)), Tensor(y.astype(dtype)))
  return [p.numpy() for p in params]

# ***** formulas *****

# (parameter, gradient, its state, step from 1 on) -> new parameter
Update = Callable[[Any, Any, dict[str, Any], int], Any]

def by_formula(update: Update, steps: int = STEPS) -> list[Any]:
  params, states = [a.copy() for a in START], [{} for _ in START]
  for t, (x, y) in enumerate(zip(INPUTS[:steps], TARGETS), 1):
    params = [update(p, g, s, t) for p, g, s in zip(params, gradients_of(params, x, y), states)]
  return params

def norm(a: Any) -> float: return math.sqrt((a * a).sum())

def sgd(lr: float, momentum: float = 0.0, decay: float = 0.0, nesterov: bool = False, classic: bool = False) -> Update:
  """SGD by Sutskever et al. 2013. classic: the momentum includes the learning rate."""
  def update(p: Any, g: Any, s: dict[str, Any], t: int) -> Any:
    g = (g + decay * p) * (lr if classic else 1)
    if momentum:
      s["b"] = momentum * s.get("b", 0) + g
      g = g + momentum * s["b"] if nesterov else s["b"]
    return p - g * (1 if classic else lr)
  return update

def adam(lr: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, decay: float = 0.0,
         layers: bool = False) -> Update:
  """Adam by Kingma and Ba 2014, AdamW by Loshchilov and Hutter 2017; layers: LAMB by You et al. 2019."""
  def update(p: Any, g: Any, s: dict[str, Any], t: int) -> Any:
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    up = s["m"] / (1 - b1 ** t) / (np.sqrt(s["v"] / (1 - b2 ** t)) + eps) + decay * p
    return p - lr * up * (norm(p) / norm(up) if layers and norm(p) else 1)
  return update

def lars(lr: float, momentum: float, decay: float, trust: float, nesterov: bool = False, inside: bool = True,
         decoupled: bool = False) -> Update:
  """LARS by You et al. 2017, algorithm 1.

  inside: the momentum includes the rate, as in algorithm 1. Otherwise it does not, as in Goyal et al. 2017, section 3.
  decoupled: weights decay separately, as in Loshchilov and Hutter 2017 (SGDW), but the layer's rate still includes the
  decay.
  """
  def update(p: Any, g: Any, s: dict[str, Any], t: int) -> Any:
    layer = trust * norm(p) / (norm(g) + decay * norm(p)) if trust and norm(p) and norm(g) else 1.0
    rate = lr * layer
    change = g if decoupled else g + decay * p
    if inside: change = rate * change
    if momentum:
      s["b"] = momentum * s.get("b", 0) + change
      change = change + momentum * s["b"] if nesterov else s["b"]
    if not inside: change = rate * change
    return (1 - lr * decay if decoupled else 1) * p - change
  return update

def muon(lr: float, momentum: float, decay: float, nesterov: bool) -> Update:
  """Muon by Jordan et al. 2024: Nesterov momentum. Matrices are orthogonalized by 5 steps of a quintic iteration."""
  def update(p: Any, g: Any, s: dict[str, Any], t: int) -> Any:
    s["b"] = momentum * s.get("b", 0) + g
    g = g + momentum * s["b"] if nesterov else s["b"]
    if g.ndim > 1:
      x = g / (norm(g) + 1e-7)
      if g.shape[0] > g.shape[1]: x = x.T
      for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
      g = x.T if g.shape[0] > g.shape[1] else x
    return p * (1 - lr * decay) - lr * g
  return update

OPTIMIZERS: dict[str, tuple[Callable[..., Any], Update]] = {
  "SGD": (lambda p, **k: optim.SGD(p, lr=0.05, **k), sgd(0.05)),
  "SGD momentum": (lambda p, **k: optim.SGD(p, lr=0.05, momentum=0.9, **k), sgd(0.05, 0.9)),
  "SGD decay": (lambda p, **k: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1, **k), sgd(0.05, 0.9, 0.1)),
  "SGD nesterov": (lambda p, **k: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, **k),
                   sgd(0.05, 0.9, nesterov=True)),
  "SGD classic": (lambda p, **k: optim.SGD(p, lr=0.05, momentum=0.9, classic=True, **k), sgd(0.05, 0.9, classic=True)),
  "Adam": (lambda p, **k: optim.Adam(p, lr=0.01, **k), adam(0.01)),
  "Adam options": (lambda p, **k: optim.Adam(p, lr=0.01, b1=0.8, b2=0.95, eps=1e-3, **k), adam(0.01, 0.8, 0.95, 1e-3)),
  "AdamW": (lambda p, **k: optim.AdamW(p, lr=0.01, weight_decay=0.1, **k), adam(0.01, decay=0.1)),
  "LAMB": (lambda p: optim.LAMB(p, lr=0.01, weight_decay=0.1), adam(0.01, eps=1e-6, decay=0.1, layers=True)),
  "LARS": (lambda p: optim.LARS(p, lr=0.1, momentum=0.9, weight_decay=0.01, tcoef=0.1), lars(0.1, 0.9, 0.01, 0.1)),
  "LARS nesterov": (lambda p: optim.LARS(p, lr=0.1, weight_decay=0.01, tcoef=0.1, nesterov=True),
                    lars(0.1, 0.9, 0.01, 0.1, nesterov=True)),
  "LARS outside": (lambda p: optim.LARS(p, lr=0.1, weight_decay=0.01, tcoef=0.1, classic=False),
                   lars(0.1, 0.9, 0.01, 0.1, inside=False)),
  "LARS outside nesterov": (lambda p: optim.LARS(p, lr=0.1, weight_decay=0.01, tcoef=0.05, classic=False,
                                                 nesterov=True),
                            lars(0.1, 0.9, 0.01, 0.05, True, inside=False)),
  "LARS decoupled": (lambda p: optim.LARS(p, lr=0.1, weight_decay=0.3, tcoef=0.1, pre_wd=False),
                     lars(0.1, 0.9, 0.3, 0.1, decoupled=True)),
  "LARS decoupled outside": (lambda p: optim.LARS(p, lr=0.1, momentum=0.8, weight_decay=0.3, tcoef=0.1, pre_wd=False,
                                                  classic=False),
                             lars(0.1, 0.8, 0.3, 0.1, inside=False, decoupled=True)),
  "LARS without trust": (lambda p: optim.LARS(p, lr=0.05, weight_decay=0.1, tcoef=0.0), lars(0.05, 0.9, 0.1, 0.0)),
  "LARS without momentum": (lambda p: optim.LARS(p, lr=0.1, momentum=0.0, weight_decay=0.2, tcoef=0.1),
                            lars(0.1, 0.0, 0.2, 0.1)),
  "Muon": (lambda p: optim.Muon(p, lr=0.02), muon(0.02, 0.95, 0.1, True)),
  "Muon plain": (lambda p: optim.Muon(p, lr=0.02, nesterov=False, momentum=0.8, weight_decay=0.0),
                 muon(0.02, 0.8, 0.0, False)),
}

@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.slow
def test_a_hundred_steps_are_those_of_the_formula(name, monkeypatch):
  """In float64 throughout, plain and jitted (and fused), they agree to 1e-9. In float32 they agree to 1e-4."""
  make, update = OPTIMIZERS[name]
  want = by_formula(update)
  assert max(abs(w - a).max() for w, a in zip(want, START)) > 0.1
  for got in [trained(make, jit=True, dtype=np.float32)]:
    for g, w in zip(got, want): np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)
  if not has_float64(): return
  monkeypatch.setattr(dtypes, "default_float", dtypes.float64)
  for got in [trained(make), *([trained(lambda p: make(p, fused=True), jit=True)]
                               if name.split()[0] in ("SGD", "Adam", "AdamW") else [])]:
    for g, w in zip(got, want): np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)

@pytest.mark.parametrize("name", ["SGD", "SGD momentum", "SGD decay", "SGD nesterov", "Adam", "Adam options", "AdamW"])
def test_a_hundred_steps_are_those_of_pytorch(name):
  torch = pytest.importorskip("torch")
  theirs = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05), "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "SGD decay": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
    "SGD nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "Adam options": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-3),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1)}[name]
  params = [torch.tensor(a, requires_grad=True) for a in START]
  opt = theirs(params)
  for x, y in zip(INPUTS, TARGETS):
    opt.zero_grad()
    loss_of(params, torch.tensor(x), torch.tensor(y)).backward()
    opt.step()
  for g, w in zip(by_formula(OPTIMIZERS[name][1]), params):
    np.testing.assert_allclose(g, w.detach().numpy(), rtol=1e-9, atol=1e-9)

FROM_ZERO = {name: OPTIMIZERS[name] for name in ("SGD decay", "Adam", "Adam options", "AdamW", "LAMB", "LARS",
                                                 "LARS decoupled outside")}

def updates(make: Callable[[list[Tensor]], Any], steps: list[Any], jit: bool) -> Iterator[Any]:
  """Return the change of a parameter in each of some steps, given the gradients. The parameter is 0 before each step,
  so that the addition loses nothing."""
  p = Tensor(np.zeros_like(steps[0]))
  opt = make([p])
  def step(g: Tensor) -> Tensor:
    p.assign(p.zeros_like())
    p.grad = g + 0
    return p.clone().realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  for g in steps:
    run(Tensor(g))
    yield p.numpy()

def powers() -> DType:
  """The type of the powers b**t of Adam: float32 where the device has no float64."""
  return wide_types()[-1]

@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", FROM_ZERO)
def test_first_steps_are_right_to_the_last_bits(name, jit):
  """Bias is corrected by 1 - b**t, which cancels. Once 7e-6 of the result was wrong, as it is on a device without
  float64.

  The types are those of the parameters, whatever the default is.
  """
  make, update = FROM_ZERO[name]
  for dtype, within in ((np.float32, 4e-7 if has_float64() else 8e-6), (np.float64, 1e-14))[:len(wide_types())]:
    gradients = [RNG.standard_normal(20).astype(dtype) for _ in range(6)]
    state: dict[str, Any] = {}
    for t, (g, got) in enumerate(zip(gradients, updates(make, gradients, jit)), 1):
      want = update(np.zeros(20), g.astype(np.float64), state, t)
      assert got.dtype == dtype
      # With gradients of both signs, the sum loses digits.
      np.testing.assert_allclose(got, want, rtol=within, atol=within * abs(want).max())

@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_of_float64_have_all_their_bits(name):
  """This holds where the default type is float32, too. The learning rate and the bias correction once were float32."""
  make, update = OPTIMIZERS[name]
  for got in (trained(make, steps=12), trained(make, jit=True, steps=12)):
    for g, w in zip(got, by_formula(update, 12)): np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-13)

@pytest.mark.parametrize("fused", [False, True])
def test_parameters_of_several_types(fused):
  """Each is computed in its own type, or in a wider one. Fused float64 parameters were once computed in the type of the
  first parameter."""
  start = [RNG.standard_normal(4).astype(np.float32), RNG.standard_normal(3)]
  params = [Tensor(a) for a in start]
  opt = optim.AdamW(params, lr=0.1, fused=fused)
  assert opt.lr.dtype is dtypes.float64 and opt.b1_t.dtype is opt.b2_t.dtype is powers()
  states: list[dict[str, Any]] = [{}, {}]
  want = [a.astype(np.float64) for a in start]
  for t in range(1, 6):
    for p in params: p.grad = Tensor(np.cos(np.arange(p.shape[0]) + t).astype(np.float32)).cast(p.dtype)
    opt.step()
    cosines = [np.cos(np.arange(len(a)) + t).astype(np.float32).astype(np.float64) for a in start]
    want = [adam(0.1, decay=0.01)(a, g, s, t) for a, g, s in zip(want, cosines, states)]
  assert params[0].dtype is dtypes.float32 and params[1].dtype is dtypes.float64
  np.testing.assert_allclose(params[0].numpy(), want[0], rtol=1e-6)
  np.testing.assert_allclose(params[1].numpy(), want[1], rtol=1e-13)

def test_checkpoints_with_powers_of_float32_go_on():
  """Checkpoints of earlier versions, and of others, have b1_t and b2_t in float32."""
  gradients = [RNG.standard_normal(20).astype(np.float32) for _ in range(8)]
  def step(opt: Any, g: Any) -> None:
    opt.params[0].grad = Tensor(g)
    opt.step()
  whole, first, second = (optim.Adam([Tensor(np.zeros(20, dtype=np.float32))], lr=0.1) for _ in range(3))
  for g in gradients[:5]: step(first, g)
  saved = {name: t.float().clone().realize() if name in ("b1_t", "b2_t") else t
           for name, t in nn.state.get_state_dict(first).items()}
  nn.state.load_state_dict(second, saved, verbose=False)
  assert second.b1_t.dtype is powers() and second.b2_t.item() == pytest.approx(0.999 ** 5, rel=1e-7)
  for g in gradients[5:]: step(second, g)
  for g in gradients: step(whole, g)
  np.testing.assert_allclose(second.params[0].numpy(), whole.params[0].numpy(), rtol=1e-5, atol=1e-6)

def test_muon_is_that_of_pytorch():
  """PyTorch's rounds to bfloat16 while it orthogonalizes, and takes matrices only."""
  torch = pytest.importorskip("torch")
  if not hasattr(torch.optim, "Muon"): pytest.skip("this PyTorch has no Muon")
  start = RNG.standard_normal((6, 6))
  mine, theirs = Tensor(start), torch.tensor(start, requires_grad=True)
  opt, other = optim.Muon([mine], lr=0.02), torch.optim.Muon([theirs], lr=0.02)
  for _ in range(5):
    opt.zero_grad()
    other.zero_grad()
    mine.square().sum().backward()
    theirs.square().sum().backward()
    opt.step()
    other.step()
  np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), atol=0.01)

# ***** code that users write around optimizers *****

def sgd_by_hand(steps: int, rate: Callable[[int], float],
                change: Callable[[list[Any]], list[Any]] = lambda g: g) -> list[Any]:
  params = [a.copy() for a in START]
  for t, (x, y) in enumerate(zip(INPUTS[:steps], TARGETS)):
    params = [p - rate(t) * g for p, g in zip(params, change(gradients_of(params, x, y)))]
  return params

def check(params: list[Tensor], want: list[Any], tolerance: float = 1e-5) -> None:
  for p, w in zip(params, want):
    np.testing.assert_allclose(p.numpy().astype(np.float64), w, rtol=tolerance, atol=tolerance)

def start() -> list[Tensor]: return [Tensor(a.astype(np.float32)) for a in START]
def batch(t: int) -> tuple[Tensor, Tensor]:
  return Tensor(INPUTS[t].astype(np.float32)), Tensor(TARGETS[t].astype(np.float32))

@pytest.mark.parametrize("jit", [False, True])
def test_a_schedule_of_the_learning_rate(jit):
  """Warm-up and cosine, by assignment to lr between steps."""
  def rate(t: int) -> float: return 0.1 * min((t + 1) / 5, 0.5 * (1 + math.cos(math.pi * t / 20)))
  params = start()
  opt = optim.SGD(params, lr=0.0)
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    loss: Tensor = loss_of(params, x, y).backward()
    return loss.realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  for t in range(20):
    opt.lr.assign(Tensor([rate(t)]))
    run(*batch(t))
  check(params, sgd_by_hand(20, rate))

def test_a_schedule_inside_of_the_jitted_step():
  """The rate is computed from a counter that is a Tensor."""
  params, counter = start(), Tensor([0.0])
  opt = optim.SGD(params, lr=0.1)
  @TinyJit
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    opt.lr.assign(0.1 / (1 + counter))
    counter.assign(counter + 1)
    loss: Tensor = loss_of(params, x, y).backward()
    return loss.realize(counter, opt.lr, *opt.schedule_step())
  for t in range(10): step(*batch(t))
  check(params, sgd_by_hand(10, lambda t: 0.1 / (1 + t)))

@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("by", ["norm", "value"])
def test_clipped_gradients(by, jit):
  def clip(gradients: list[Any]) -> list[Any]:
    if by == "value": return [np.clip(g, -0.01, 0.01) for g in gradients]
    total = math.sqrt(sum((g * g).sum() for g in gradients))
    return [g * min(1.0, 0.2 / total) for g in gradients]
  params = start()
  opt = optim.SGD(params, lr=0.5)
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    loss: Tensor = loss_of(params, x, y).backward()
    total = Tensor.usum(*[p.grad.square().sum() for p in opt.params]).sqrt()
    for p in opt.params: p.grad = p.grad.clip(-0.01, 0.01) if by == "value" else p.grad * (0.2 / total).minimum(1.0)
    return loss.realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  for t in range(10): run(*batch(t))
  check(params, sgd_by_hand(10, lambda t: 0.5, clip))

@pytest.mark.parametrize("jit", [False, True])
def test_gradients_of_parts_of_a_batch_add_up(jit):
  """Four micro-batches a step give the step of the whole batch."""
  params = start()
  opt = optim.SGD(params, lr=0.1)
  def step(x: Tensor, y: Tensor) -> list[Tensor]:
    opt.zero_grad()
    for a, b in zip(x.chunk(4), y.chunk(4)): (loss_of(params, a, b) / 4).backward()
    return Tensor.realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  for t in range(6): run(*batch(t))
  check(params, sgd_by_hand(6, lambda t: 0.1))

@pytest.mark.parametrize("jit", [False, True])
def test_mixed_precision_with_a_fixed_loss_scale(jit):
  """Activations in float16, parameters in float32.

  Gradients of 1e-6 survive float16 only because the loss is scaled.
  """
  params, scale = start(), 4096.0
  opt = optim.SGD(params, lr=1e4)
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    low = [p.half() for p in params]
    out = (x.half() @ low[0]).tanh() @ low[1] + low[2]
    loss = (out.float() - y).square().mean() * 1e-5
    (loss * scale).backward()
    for p in opt.params: p.grad = p.grad.float() / scale
    return loss.realize(*opt.schedule_step())
  run = TinyJit(step) if jit else step
  for t in range(10): run(*batch(t))
  check(params, sgd_by_hand(10, lambda t: 0.1), tolerance=5e-3)

@pytest.mark.parametrize("jit", [False, True])
def test_mixed_precision_with_a_moving_loss_scale(jit):
  """A step whose gradients overflow halves the scale and changes nothing else. Other steps change the parameters."""
  w, scale, taken = Tensor([1.0, 2.0]), Tensor([2.0 ** 17]), Tensor([0.0])
  opt = optim.SGD([w], lr=0.125)
  def step(x: Tensor) -> Tensor:
    opt.zero_grad()
    loss = (w.half() * x.half()).sum()
    loss.backward(gradient=scale.sum().half())
    gradient = w.grad.float() / scale
    finite = gradient.isfinite().all()
    w.grad = finite.where(gradient, 0)
    taken.assign(taken + finite.float())
    scale.assign(finite.where(scale, scale / 2))
    return loss.realize(scale, taken, *opt.schedule_step())
  run = TinyJit(step) if jit else step
  for _ in range(6): run(Tensor([1.0, 2.0]))
  # float16 cannot hold 2**17 and 2**16. It holds 2**15, but not twice that
  assert scale.tolist() == [2.0 ** 14] and taken.tolist() == [3.0] and w.tolist() == [1.0 - 3 / 8, 2.0 - 6 / 8]

@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_parameters_have_wide_state(dtype):
  w = Tensor([1.0, -2.0], dtype=dtype)
  opt = optim.Adam([w], lr=0.25)
  assert opt.m[0].dtype is opt.v[0].dtype is dtypes.float32
  for _ in range(3):
    opt.zero_grad()
    w.float().square().sum().backward()
    opt.step()
  assert w.dtype is getattr(dtypes, dtype) and w.grad.dtype is w.dtype
  np.testing.assert_allclose(w.tolist(), [0.254, -1.253], atol=0.02)

def test_shared_and_frozen_parameters():
  """A weight that is used twice gets both gradients and one step. A frozen weight gets none."""
  shared, frozen, x = Tensor([[0.5, 0.25], [0.0, 1.0]]), Tensor([[2.0, 0.0], [0.0, 2.0]],
                                                                requires_grad=False), Tensor([[1.0, 2.0]])
  class Model:
    def __init__(self) -> None: self.a, self.b, self.c = shared, shared, frozen
    def __call__(self, x: Tensor) -> Tensor: return x @ self.a @ self.c @ self.b
  model = Model()
  opt = optim.SGD([*nn.state.get_parameters(model), shared], lr=0.1)
  assert len(opt.params) == 1 and len(opt.buffers) == 1
  w, c, v = shared.numpy().astype(np.float64), frozen.numpy(), x.numpy()
  model(x).sum().backward()
  opt.step()
  ones = np.ones((1, 2))
  same(shared, (w - 0.1 * (v.T @ (ones @ w.T @ c.T) + (v @ w @ c).T @ ones)).astype(np.float32))
  assert frozen.grad is None and frozen.tolist() == c.tolist()

@pytest.mark.parametrize("jit", [False, True])
def test_an_average_of_the_weights(jit):
  params = start()
  averages = [p.clone().realize() for p in params]
  for a in averages: a.requires_grad = False
  opt = optim.SGD(params, lr=0.1)
  def step(x: Tensor, y: Tensor) -> Tensor:
    opt.zero_grad()
    loss: Tensor = loss_of(params, x, y).backward()
    changed = opt.schedule_step()
    for a, p in zip(averages, params): a.assign(a * 0.75 + p.detach() * 0.25)
    return loss.realize(*changed, *averages)
  run = TinyJit(step) if jit else step
  want, now = [a.copy() for a in START], [a.copy() for a in START]
  for t in range(8):
    run(*batch(t))
    now = [p - 0.1 * g for p, g in zip(now, gradients_of(now, INPUTS[t], TARGETS[t]))]
    want = [0.75 * a + 0.25 * p for a, p in zip(want, now)]
  check(params, now)
  check(averages, want)

def test_optimizers_in_groups_have_rates_of_their_own():
  params = start()
  group = optim.OptimizerGroup(optim.SGD(params[:1], lr=0.1), optim.SGD(params[1:], lr=0.05))
  for t in range(3):
    group.zero_grad()
    loss_of(params, *batch(t)).backward()
    group.step()
  want = [a.copy() for a in START]
  for t in range(3):
    want = [p - (0.1 if i == 0 else 0.05) * g
            for i, (p, g) in enumerate(zip(want, gradients_of(want, INPUTS[t], TARGETS[t])))]
  check(params, want)
  assert group[1].lr.item() == pytest.approx(0.05) and len(group.params) == 3

def test_refusals():
  w = Tensor([1.0])
  opt = optim.SGD([w], lr=0.1)
  w.sum().backward()
  with Tensor.train(False):
    with pytest.raises(GradientError, match="outside of training mode"): opt.step()
    with pytest.raises(GradientError, match="outside of training mode"): optim.OptimizerGroup(opt).step()
  assert w.item() == 1.0
  for bad in (float("nan"), "fast", None, Tensor([1.0, 2.0])):
    with pytest.raises(ArgumentError, match="lr is"): optim.Adam([w], lr=bad)
  for call, message in ((lambda: optim.SGD(w), "wants a list of Tensors"),
                        (lambda: optim.SGD(None), "wants a list of Tensors"),
                        (lambda: optim.SGD([w], momentum="a"), "momentum is a number"),
                        (lambda: optim.Adam([w], eps=None), "eps is a number"),
                        (lambda: optim.OptimizerGroup(3), "made of optimizers")):
    with pytest.raises(ArgumentError, match=message): call()
  with pytest.raises(IndexRangeError, match="no optimizer 1"): optim.OptimizerGroup(opt)[1]
