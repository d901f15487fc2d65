"""Optimizers: SGD with momentum, LARS, Muon, Adam, AdamW, LAMB; and, by rules of their own (ruled.py, loaded at first
use), RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam, Lion, Adafactor.

`step()` reads `grad` of the parameters (`loss.backward()` fills it) and assigns new values in place, all in one
schedule. The learning rate is a Tensor: `optimizer.lr = 0.1` or `assign` changes it, between calls of a TinyJit too.
So do the schedules of schedules.py. All state to be saved is in attributes that `state.get_state_dict` finds.

A step computes in the type of each parameter, at least float32. Shared values are rounded to that type last. The
learning rate has the widest type of the parameters. The bias correction of Adam is kept in float64 where a device has
it (`widest_float`), since 1 - b**t cancels.

fused=True treats all parameters as one long vector: a few large kernels instead of several for each parameter.
"""
from __future__ import annotations
from collections.abc import Iterable
import importlib
from typing import Any

from tinyhw.device import Device, DeviceLike
from tinyhw.dtype import DType, dtypes, least_upper_dtype
from tinyhw.engine.run.compile import capabilities_of
from tinyhw.errors import ArgumentError, GradientError, IndexRangeError
from tinyhw.helpers import dedup
from tinyhw.methods.checks import finite, flag
from tinyhw.tensor import Tensor
from tinyhw.trace import of_one_line
from tinyhw.uop.enums import Ops

def widest_float(device: DeviceLike) -> DType:
  """Return the type of numbers that no element has: float64, or float32 where a device does not have it. There
  1 - 0.999 is off by 1.3e-5 of its value."""
  names = (device,) if isinstance(device, str) else device
  has = all(capabilities_of(Device[name].arch, name).supports(Ops.MUL, dtypes.float64) for name in names)
  return dtypes.float64 if has else dtypes.float32

def _storage(value: float, size: int, dtype: DType, device: DeviceLike) -> Tensor:
  """Return a vector of one value in storage, filled without a kernel."""
  data = bytes(size * dtype.itemsize) if value == 0 else [value] * size
  return Tensor(data, device=device, dtype=dtype, requires_grad=False)

_RULED = ("RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Lion", "Adafactor")

def __getattr__(name: str) -> Any:
  """Load the optimizers of ruled.py on first use."""
  if name not in _RULED: raise AttributeError(f"module 'tinyhw.nn.optim' has no attribute {name!r}")
  found = globals()[name] = getattr(importlib.import_module("tinyhw.nn.optim.ruled"), name)
  return found

def __dir__() -> list[str]: return sorted({*globals(), *_RULED})

class RateGroup(dict[str, Any]):
  """The learning rate of an optimizer as an item, "lr", for schedules. To set it assigns to the optimizer's Tensor."""
  _rate: Tensor | None = None

  def __setitem__(self, key: str, value: Any) -> None:
    super().__setitem__(key, value)
    if key == "lr" and self._rate is not None: self._rate.assign(self._rate.full_like(finite("lr", value)))

def _wide(*tensors: Tensor) -> DType:
  """Return the type in which a step of tensors is computed: the widest of theirs, at least float32."""
  return least_upper_dtype(dtypes.float32, *[t.dtype for t in tensors])

class Optimizer:
  """Base of the optimizers: the parameters, the learning rate, and the execution of a step.

  params: Tensors. Those with requires_grad=False are not changed, but realized with each step (batchnorm's statistics).
  The others get requires_grad=True.

  >>> w = Tensor([1.0, 2.0], requires_grad=True)
  >>> opt = nn.optim.SGD([w], lr=0.1)
  >>> with Tensor.train():
  ...   loss = (w * w).sum().backward()
  ...   opt.step()
  ...
  >>> w.realize()
  <Tensor (2,) float32 on CPU, grad (2,), realized: [0.8, 1.6]>
  """
  def __init__(self, params: list[Tensor], lr: float | Tensor, device: str | None = None, fused: bool = False):
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
      raise ArgumentError(f"an optimizer wants a list of Tensors, not {params!r}; nn.state.get_parameters(model) "
                          f"makes one")
    params = list(params)
    for x in params:
      if not isinstance(x, Tensor): raise ArgumentError(f"an optimizer wants a list of Tensors, and it has {x!r}")
      if x._requires_grad is None and dtypes.is_float(x.dtype): x.requires_grad = True
    self.params: list[Tensor] = dedup([x for x in params if x.requires_grad])
    self.buffers: list[Tensor] = dedup([x for x in params if not x.requires_grad])
    if not self.params: raise ArgumentError("an optimizer needs at least one parameter that wants a gradient")
    self.device = Device.canonicalize(device) if device is not None else self.params[0].device
    self.fused = flag("fused", fused)
    rate = least_upper_dtype(dtypes.default_float, _wide(*self.params))
    self.lr = lr if isinstance(lr, Tensor) else _storage(finite("lr", lr), 1, rate, self.device)
    if self.lr.numel() != 1: raise ArgumentError(f"lr is one number, and its shape is {self.lr.shape}")
    Tensor.realize(*self.params)

  def __setattr__(self, name: str, value: Any) -> None:
    """Set an attribute. A number for lr is assigned to the Tensor that is there."""
    old = self.__dict__.get("lr") if name == "lr" and not isinstance(value, Tensor) else None
    if old is None: object.__setattr__(self, name, value)
    else: old.assign(old.full_like(finite("lr", value)))

  @property
  def param_groups(self) -> list[RateGroup]:
    """A list of one dict with the learning rate as "lr", which schedules read and set."""
    if "_groups" not in self.__dict__:
      group = RateGroup(lr=self.lr.item())
      group._rate = self.lr
      self._groups = [group]
    return self._groups

  def _state(self) -> list[Tensor]:
    """Return zeros for each parameter, at least float32."""
    if self.fused: return [_storage(0.0, sum(int(t.numel()) for t in self.params), _wide(*self.params), self.device)]
    zeros = [Tensor(_storage(0.0, int(t.numel()), _wide(t), t.device).reshape(t.shape), requires_grad=False)
             for t in self.params]
    return [z if isinstance(t.device, str) else z.shard_like(t).realize() for t, z in zip(self.params, zeros)]

  def zero_grad(self) -> None:
    """Reset the gradients to None."""
    for t in self.params: t.grad = None

  def step(self) -> None:
    """Update the parameters now.

    Raises GradientError outside of training mode, in which dropout and batchnorm would not behave as for training.
    """
    if not Tensor.training:
      raise GradientError("step() outside of training mode: put it under `with Tensor.train():`, or set "
                          "Tensor.training = True")
    Tensor.realize(*self.schedule_step())

  @of_one_line
  def schedule_step(self) -> list[Tensor]:
    """Assign new values to parameters and state. Return the tensors to realize.

    Raises GradientError for a parameter without a gradient.
    """
    grads = []
    for i, t in enumerate(self.params):
      if t.grad is None:
        raise GradientError(f"parameter {i} of shape {t.shape} has no gradient; call backward() on a loss that uses "
                            f"it, or leave it out of the "
                            "optimizer")
      grads.append(t.grad)
    if self.fused: changed = self._fused_step(grads)
    else:
      updates, changed = self._step(self.params, grads)
      for t, new in zip(self.params, updates): t.assign(new.cast(t.dtype))
    return changed + self.params + self.buffers

  def _fused_step(self, grads: list[Tensor]) -> list[Tensor]:
    wide = _wide(*self.params)
    flat, grad = (xs[0].flatten().cast(wide).cat(*[x.flatten().cast(wide) for x in xs[1:]])
                  for xs in (self.params, grads))
    updates, changed = self._step([flat], [grad.contiguous()])
    parts = updates[0].contiguous().split([int(t.numel()) for t in self.params])
    for t, new in zip(self.params, parts): t.assign(new.reshape(t.shape).cast(t.dtype))
    return changed

  def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Return new values of the parameters, and the state that was assigned to."""
    raise NotImplementedError

class OptimizerGroup(Optimizer):
  """Several optimizers that step together."""
  def __init__(self, *optimizers: Optimizer):
    for o in optimizers:
      if not isinstance(o, Optimizer): raise ArgumentError(f"an OptimizerGroup is made of optimizers, and it has {o!r}")
    self.optimizers = optimizers
    self.params = [x for o in optimizers for x in o.params]
    self.buffers = [x for o in optimizers for x in o.buffers]

  def __getitem__(self, i: int) -> Optimizer:
    count = len(self.optimizers)
    if not -count <= i < count: raise IndexRangeError(f"there is no optimizer {i}: the group has {count}")
    return self.optimizers[i]

  def zero_grad(self) -> None:
    """Reset the gradients of all optimizers to None."""
    for o in self.optimizers: o.zero_grad()

  @of_one_line
  def schedule_step(self) -> list[Tensor]:
    """Return the tensors to realize for the steps of all optimizers."""
    return [x for o in self.optimizers for x in o.schedule_step()]

def _trust(parameter: Tensor, update: Tensor, scale: float, decay: float) -> Tensor:
  """Return the ratio of norms by which a layer's step is scaled. It is 1 where a norm is zero."""
  r1, r2 = parameter.square().sum().sqrt(), update.square().sum().sqrt()
  return ((r1 > 0) & (r2 > 0)).where(r1 * scale / (r2 + r1 * decay), 1.0)

class LARS(Optimizer):
  """SGD whose step is scaled for each layer by the ratio of norms. Source: You et al. 2017.

  classic: the momentum includes the learning rate. pre_wd: weight decay is added to the gradient; otherwise it shrinks
  the weight. tcoef: the trust coefficient; 0 turns the scaling off. ns_steps > 0: updates are orthogonalized (Muon).
  """
  def __init__(self, params: list[Tensor], lr: float | Tensor = 0.001, momentum: float = 0.9,
               weight_decay: float = 1e-4, ns_steps: int = 0,
               ns_coefficients: tuple[float, ...] | None = None, nesterov: bool = False, classic: bool = True,
               pre_wd: bool = True,
               tcoef: float = 0.001, device: str | None = None, fused: bool = False):
    super().__init__(params, lr, device, fused)
    if self.fused and (tcoef or ns_steps): raise ArgumentError("fused=True knows no layers; LARS and Muon need them")
    momentum, weight_decay, tcoef = finite("momentum", momentum), finite("weight_decay",
                                                                         weight_decay), finite("tcoef", tcoef)
    self.momentum, self.wd, self.tcoef = momentum, weight_decay, tcoef
    self.nesterov, self.classic, self.pre_wd = flag("nesterov", nesterov), flag("classic",
                                                                                classic), flag("pre_wd", pre_wd)
    self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients or (3.4445, -4.775, 2.0315)
    self.b = self._state() if momentum else []

  def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    updates = []
    for i, (t, g) in enumerate(zip(params, grads)):
      wide = _wide(t)
      t, g, lr = t.detach().cast(wide), g.cast(wide), self.lr.cast(wide)
      ratio: Tensor | float = _trust(t, g, self.tcoef, self.wd) if self.tcoef else 1.0
      if self.pre_wd and self.wd: g = g + t * self.wd
      if self.classic: g = g * ratio * lr
      if self.momentum:
        self.b[i].assign(self.b[i] * self.momentum + g)
        g = g + self.b[i] * self.momentum if self.nesterov else self.b[i]
      if self.ns_steps and g.ndim > 1:
        g = g.reshape(g.shape[0], -1).newton_schulz(self.ns_steps, self.ns_coefficients).reshape(g.shape)
      if not self.pre_wd and self.wd: t = t * (1 - lr * self.wd)
      updates.append(t - (g if self.classic else g * ratio * lr))
    return updates, list(self.b)

def SGD(params: list[Tensor], lr: float | Tensor = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False, device: str | None = None, fused: bool = False) -> LARS:
  """Gradient descent with momentum and weight decay. classic: the momentum includes the learning rate."""
  return LARS(params, lr, momentum, weight_decay, 0, None, nesterov, classic, tcoef=0.0, device=device, fused=fused)

def Muon(params: list[Tensor], lr: float | Tensor = 0.001, momentum: float = 0.95, weight_decay: float = 0.1,
         ns_steps: int = 5,
         ns_coefficients: tuple[float, ...] = (3.4445, -4.775, 2.0315), nesterov: bool = True,
         device: str | None = None,
         fused: bool = False) -> LARS:
  """SGD with momentum whose updates are orthogonalized. Source: Jordan et al. 2024."""
  return LARS(params, lr, momentum, weight_decay, ns_steps, ns_coefficients, nesterov, classic=False, pre_wd=False,
              tcoef=0.0, device=device,
              fused=fused)

class LAMB(Optimizer):
  """Adam whose step is scaled for each layer by the ratio of norms. `adam` turns the scaling off.

  Source: You et al. 2019.
  """
  def __init__(self, params: list[Tensor], lr: float | Tensor = 0.001, b1: float = 0.9, b2: float = 0.999,
               eps: float = 1e-6,
               weight_decay: float = 0.0, adam: bool = False, device: str | None = None, fused: bool = False):
    super().__init__(params, lr, device, fused)
    self.adam = flag("adam", adam)
    if self.fused and not self.adam: raise ArgumentError("fused=True knows no layers; LAMB needs them")
    self.b1, self.b2, self.eps = finite("b1", b1), finite("b2", b2), finite("eps", eps)
    self.wd = finite("weight_decay", weight_decay)
    self.b1_t, self.b2_t = (_storage(1.0, 1, widest_float(self.device), self.device) for _ in range(2))
    self.m, self.v = self._state(), self._state()

  def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    self.b1_t *= self.b1
    self.b2_t *= self.b2
    corrections = [1 - self.b1_t, 1 - self.b2_t]
    shared = {wide: [x.cast(wide).reciprocal() for x in corrections] for wide in dict.fromkeys(map(_wide, params))}
    updates = []
    for i, (t, g) in enumerate(zip(params, grads)):
      wide = _wide(t)
      t, g, lr = t.detach().cast(wide), g.cast(wide), self.lr.cast(wide)
      m, v, (first, second) = self.m[i], self.v[i], shared[wide]
      m.assign(m * self.b1 + g * (1 - self.b1))
      v.assign(v * self.b2 + g * g * (1 - self.b2))
      update = (m * first) / ((v * second).sqrt() + self.eps)
      if self.wd: update = update + t * self.wd
      if not self.adam: update = update * _trust(t, update, 1.0, 0.0)
      updates.append(t - update * lr)
    return updates, [self.b1_t, self.b2_t, *self.m, *self.v]

def Adam(params: list[Tensor], lr: float | Tensor = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
         device: str | None = None,
         fused: bool = False) -> LAMB:
  """Steps by running means of gradients and of their squares. Source: Kingma and Ba 2014."""
  return LAMB(params, lr, b1, b2, eps, 0.0, adam=True, device=device, fused=fused)

def AdamW(params: list[Tensor], lr: float | Tensor = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          weight_decay: float = 0.01,
          device: str | None = None, fused: bool = False) -> LAMB:
  """Adam with decoupled weight decay. Source: Loshchilov and Hutter 2017."""
  return LAMB(params, lr, b1, b2, eps, weight_decay, adam=True, device=device, fused=fused)
