"""Update rules of optimizers: functions from a parameter, its gradient and its state to their new values.

A rule has three parts, so that numbers are computed once for many parameters:
- `initial` says which state a parameter has before its first step, and which numbers its parameters share.
- `numbers` computes from options and the count of steps what does not depend on elements: learning rates, corrections.
  It works on Python's numbers and on Tensors without axes alike, which are float64 where the device has that.
- `update` computes new elements. It puts new state into the dict that it gets, and returns the new parameter.

Nothing is assigned here. Formulas are PyTorch's, so that a step has its value up to rounding.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any


from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

# The options of a group. `o.lr` is a number, or a Tensor without axes; o.given("momentum") is a number always.
Options = Any
Numbers = dict[str, Any]
State = dict[str, Tensor]

class UpdateRule(NamedTuple):
  """The parts of an optimizer that compute. The module's text says what each does.

  initial: (parameter, options) -> {name: value}; None stands for a name that the first step adds.
  shared: names of numbers that all parameters with the same count of steps share, with their first values.
  layerwise: a step depends on a whole parameter, so parameters are not joined into one vector.
  """
  initial: Callable[[Tensor, Options], dict[str, float | Tensor]]
  numbers: Callable[[Options, Numbers], Numbers]
  update: Callable[[Tensor, Tensor, State, Numbers, Options], Any]
  shared: Callable[[Options], dict[str, float]]
  layerwise: bool = False

# ***** pieces *****

def blend(old: Tensor, new: Tensor, weight: Any) -> Any:
  """Return old + weight * (new - old), a running mean."""
  return old + (new - old) * weight

def decayed(p: Tensor, g: Tensor, n: Numbers, o: Options) -> Any:
  """Return the gradient of a loss with weight decay."""
  return g + p * n["weight_decay"] if o.given("weight_decay") else g

def root(x: Any) -> Any:
  """Return the square root of a number or Tensor."""
  return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)

def power(base: Any, exponent: Any) -> Any:
  """Return base ** exponent, of numbers or of Tensors without axes."""
  if isinstance(base, Tensor) and isinstance(exponent, Tensor): return (base.log2() * exponent).exp2()
  if isinstance(exponent, Tensor): return (exponent * math.log2(base)).exp2() if base > 0 else exponent * 0
  if isinstance(base, Tensor): return (base.log2() * exponent).exp2()
  return base ** exponent

def larger(x: Any, least: float) -> Any:
  """Return the larger one of a number or Tensor and a number."""
  return x.maximum(least) if isinstance(x, Tensor) else max(x, least)

def choose(condition: Any, yes: Any, no: Any) -> Any:
  """Return one of two, by a bool or by a Tensor of one."""
  if not isinstance(condition, Tensor): return yes if condition else no
  return condition.where(yes, no)

def _steps(o: Options) -> dict[str, float]: return {"step": 0.0}
def _no_numbers(o: Options) -> dict[str, float]: return {}
def _zeros(*names: str) -> Callable[[Tensor, Options], dict[str, float | Tensor]]: return lambda p, o: dict.fromkeys(
  names, 0.0)

# ***** SGD *****

def _sgd_numbers(o: Options, s: Numbers) -> Numbers:
  return {"lr": o.lr, "momentum": o.momentum, "fresh": 1 - o.dampening, "weight_decay": o.weight_decay}

def _sgd(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  g = decayed(p, g, n, o)
  if o.given("momentum"):
    old = s.get("momentum_buffer")
    s["momentum_buffer"] = new = g if old is None else old * n["momentum"] + g * n["fresh"]
    g = g + new * n["momentum"] if o.given("nesterov") else new
  return p - g * n["lr"]

SGD = UpdateRule(lambda p, o: {}, _sgd_numbers, _sgd, _no_numbers)

# ***** Adam and its kin *****

def _corrections(o: Options, s: Numbers) -> Numbers:
  b1, b2 = o.betas
  t = s["step"] = s["step"] + 1
  return {"m": 1 - b1, "b2": b2, "v": 1 - b2, "c1": 1 - power(b1, t), "c2": 1 - power(b2, t), "eps": o.eps, "lr": o.lr,
          "weight_decay": o.weight_decay, "keep": 1 - o.lr * o.weight_decay}

def _adam_numbers(o: Options, s: Numbers) -> Numbers:
  n = _corrections(o, s)
  return {**n, "size": n.pop("lr") / n.pop("c1"), "root": root(n.pop("c2"))}

def _moments(p: Tensor, g: Tensor, s: State, n: Numbers) -> tuple[Tensor, Tensor]:
  s["exp_avg"] = m = blend(s["exp_avg"], g, n["m"])
  s["exp_avg_sq"] = v = s["exp_avg_sq"] * n["b2"] + g * g * n["v"]
  return m, v

def _adam(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  p, g = _with_decay(p, g, n, o)
  m, v = _moments(p, g, s, n)
  if o.given("amsgrad"): s["max_exp_avg_sq"] = v = s["max_exp_avg_sq"].maximum(v)
  return p - m / (v.sqrt() / n["root"] + n["eps"]) * n["size"]

def _with_decay(p: Tensor, g: Tensor, n: Numbers, o: Options) -> tuple[Tensor, Tensor]:
  """Let the parameter or its gradient have the weight decay."""
  if not o.given("weight_decay"): return p, g
  return (p * n["keep"], g) if o.given("decoupled_weight_decay") else (p, g + p * n["weight_decay"])

def _adam_state(p: Tensor, o: Options) -> dict[str, float | Tensor]:
  return dict.fromkeys(("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if o.given("amsgrad") else ())), 0.0)

ADAM = UpdateRule(_adam_state, _adam_numbers, _adam, _steps)

def _adamax_numbers(o: Options, s: Numbers) -> Numbers:
  n = _corrections(o, s)
  return {k: n[k] for k in ("m", "b2", "eps", "weight_decay")} | {"size": n["lr"] / n["c1"]}

def _adamax(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  g = decayed(p, g, n, o)
  s["exp_avg"] = m = blend(s["exp_avg"], g, n["m"])
  s["exp_inf"] = most = (s["exp_inf"] * n["b2"]).maximum(g.abs() + n["eps"])
  return p - m / most * n["size"]

ADAMAX = UpdateRule(_zeros("exp_avg", "exp_inf"), _adamax_numbers, _adamax, _steps)

def _nadam_numbers(o: Options, s: Numbers) -> Numbers:
  n, b1 = _corrections(o, s), o.betas[0]
  now, following = (b1 * (1 - power(0.96, t * o.momentum_decay) * 0.5) for t in (s["step"], s["step"] + 1))
  s["mu_product"] = product = s["mu_product"] * now
  lr = n.pop("lr")
  n.pop("c1")
  return {**n, "gradient": lr * (1 - now) / (1 - product), "mean": lr * following / (1 - product * following)}

def _nadam(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  p, g = _with_decay(p, g, n, o)
  m, v = _moments(p, g, s, n)
  below = (v / n["c2"]).sqrt() + n["eps"]
  return p - g / below * n["gradient"] - m / below * n["mean"]

NADAM = UpdateRule(_zeros("exp_avg", "exp_avg_sq"), _nadam_numbers, _nadam, lambda o: {"step": 0.0, "mu_product": 1.0})

def _radam_numbers(o: Options, s: Numbers) -> Numbers:
  n, b2 = _corrections(o, s), o.betas[1]
  most = 2 / (1 - b2) - 1
  length = most - s["step"] * power(b2, s["step"]) * 2 / n["c2"]
  trusted = length > 5
  known = choose(trusted, length, 6.0)
  ratio = root((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known))
  n["size"], c2 = n.pop("lr") / n.pop("c1"), n.pop("c2")
  return {**n, "adaptive": choose(trusted, ratio * root(c2), 0.0), "plain": choose(trusted, 0.0, 1.0)}

def _radam(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  p, g = _with_decay(p, g, n, o)
  m, v = _moments(p, g, s, n)
  return p - m * n["size"] * (n["adaptive"] / (v.sqrt() + n["eps"]) + n["plain"])

RADAM = UpdateRule(_zeros("exp_avg", "exp_avg_sq"), _radam_numbers, _radam, _steps)

def _lion_numbers(o: Options, s: Numbers) -> Numbers:
  b1, b2 = o.betas
  return {"direction": 1 - b1, "m": 1 - b2, "lr": o.lr, "keep": 1 - o.lr * o.weight_decay}

def _lion(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  m = s["exp_avg"]
  s["exp_avg"] = blend(m, g, n["m"])
  return p * n["keep"] - blend(m, g, n["direction"]).sign() * n["lr"]

LION = UpdateRule(_zeros("exp_avg"), _lion_numbers, _lion, _no_numbers)

# ***** running squares *****

def _rmsprop_numbers(o: Options, s: Numbers) -> Numbers:
  s["step"] = s["step"] + 1
  return {"lr": o.lr, "alpha": o.alpha, "fresh": 1 - o.alpha, "eps": o.eps, "momentum": o.momentum,
          "weight_decay": o.weight_decay}

def _rmsprop(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  g = decayed(p, g, n, o)
  s["square_avg"] = squares = s["square_avg"] * n["alpha"] + g * g * n["fresh"]
  if o.given("centered"):
    s["grad_avg"] = mean = blend(s["grad_avg"], g, n["fresh"])
    squares = squares - mean * mean
  step = g / (squares.sqrt() + n["eps"])
  if o.given("momentum"): s["momentum_buffer"] = step = s["momentum_buffer"] * n["momentum"] + step
  return p - step * n["lr"]

def _rmsprop_state(p: Tensor, o: Options) -> dict[str, float | Tensor]:
  return {"square_avg": 0.0, **({"momentum_buffer": 0.0} if o.given("momentum") else {}),
          **({"grad_avg": 0.0} if o.given("centered") else {})}

RMSPROP = UpdateRule(_rmsprop_state, _rmsprop_numbers, _rmsprop, _steps)

def _adagrad_numbers(o: Options, s: Numbers) -> Numbers:
  s["step"] = s["step"] + 1
  return {"size": o.lr / ((s["step"] - 1) * o.lr_decay + 1), "eps": o.eps, "weight_decay": o.weight_decay}

def _adagrad(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  g = decayed(p, g, n, o)
  s["sum"] = total = s["sum"] + g * g
  return p - g / (total.sqrt() + n["eps"]) * n["size"]

ADAGRAD = UpdateRule(lambda p, o: {"sum": o.given("initial_accumulator_value")}, _adagrad_numbers, _adagrad, _steps)

def _adadelta_numbers(o: Options, s: Numbers) -> Numbers:
  s["step"] = s["step"] + 1
  return {"lr": o.lr, "rho": o.rho, "fresh": 1 - o.rho, "eps": o.eps, "weight_decay": o.weight_decay}

def _adadelta(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  g = decayed(p, g, n, o)
  s["square_avg"] = squares = s["square_avg"] * n["rho"] + g * g * n["fresh"]
  step = (s["acc_delta"] + n["eps"]).sqrt() / (squares + n["eps"]).sqrt() * g
  s["acc_delta"] = s["acc_delta"] * n["rho"] + step * step * n["fresh"]
  return p - step * n["lr"]

ADADELTA = UpdateRule(_zeros("square_avg", "acc_delta"), _adadelta_numbers, _adadelta, _steps)

# ***** others *****

def _asgd_numbers(o: Options, s: Numbers) -> Numbers:
  t = s["step"] = s["step"] + 1
  eta, mu = s["eta"], s["mu"]
  s["eta"] = o.lr / power(o.lambd * o.lr * t + 1, o.given("alpha"))
  s["mu"] = 1 / larger(t - o.t0, 1.0)
  return {"keep": 1 - o.lambd * eta, "eta": eta, "mu": mu, "weight_decay": o.weight_decay}

def _asgd(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  new = p * n["keep"] - decayed(p, g, n, o) * n["eta"]
  s["ax"] = choose(n["mu"] == 1, new, blend(s["ax"], new, n["mu"]))
  return new

ASGD = UpdateRule(_zeros("ax"), _asgd_numbers, _asgd, lambda o: {"step": 0.0, "eta": o.given("lr"), "mu": 1.0})

def _rprop_numbers(o: Options, s: Numbers) -> Numbers:
  s["step"] = s["step"] + 1
  (less, more), (least, most) = o.etas, o.step_sizes
  return {"less": less, "more": more, "least": least, "most": most}

def _rprop(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  agree = g * s["prev"]
  factor = (agree > 0).where(n["more"], (agree < 0).where(n["less"], 1.0))
  s["step_size"] = size = (s["step_size"] * factor).maximum(n["least"]).minimum(n["most"])
  s["prev"] = g = (agree < 0).where(0.0, g)
  return p - g.sign() * size

RPROP = UpdateRule(lambda p, o: {"prev": 0.0, "step_size": o.given("lr")}, _rprop_numbers, _rprop, _steps)

def _adafactor_numbers(o: Options, s: Numbers) -> Numbers:
  t = s["step"] = s["step"] + 1
  rate = 1 / root(t)
  return {"fresh": power(t, o.given("beta2_decay")), "keep": 1 - o.lr * o.weight_decay,
          "rho": rate.minimum(o.lr) if isinstance(rate, Tensor) else min(o.lr, rate)}

def _adafactor(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  least, floor = o.given("eps")
  if least is None: least = 2.0 ** -dtypes.finfo(p.dtype)[1]
  size = p.square().mean().sqrt().maximum(floor) * n["rho"]
  if o.given("weight_decay"): p = p * n["keep"]
  if g.ndim > 1:
    s["row_var"] = rows = blend(s["row_var"], g.square().mean(-1, keepdim=True), n["fresh"])
    s["col_var"] = columns = blend(s["col_var"], g.square().mean(-2, keepdim=True), n["fresh"])
    squares = rows.matmul(columns) / rows.mean(-2, keepdim=True).maximum(least)
  else: s["variance"] = squares = blend(s["variance"], g.square(), n["fresh"])
  step = g * squares.maximum(least * least).rsqrt()
  return p - step * (size / (step.square().mean().sqrt() / o.given("d")).maximum(1.0))

def _adafactor_state(p: Tensor, o: Options) -> dict[str, float | Tensor]:
  if p.ndim < 2: return {"variance": 0.0}
  shape = [int(d) for d in p.shape]
  return {"row_var": Tensor.zeros(*shape[:-1], 1), "col_var": Tensor.zeros(*shape[:-2], 1, shape[-1])}

ADAFACTOR = UpdateRule(_adafactor_state, _adafactor_numbers, _adafactor, _steps, layerwise=True)

def _muon_numbers(o: Options, s: Numbers) -> Numbers:
  return {"lr": o.lr, "momentum": o.momentum, "fresh": 1 - o.momentum, "keep": 1 - o.lr * o.weight_decay}

def _muon(p: Tensor, g: Tensor, s: State, n: Numbers, o: Options) -> Any:
  s["momentum_buffer"] = mean = blend(s["momentum_buffer"], g, n["fresh"])
  if o.given("nesterov"): mean = blend(g, mean, n["momentum"])
  step = mean.newton_schulz(o.given("ns_steps"), o.given("ns_coefficients"), o.given("eps"))
  return p * n["keep"] - step * n["lr"] * muon_factor(o.given("adjust_lr_fn"), [int(d) for d in p.shape])

def muon_factor(how: str | None, shape: list[int]) -> float:
  """Return the factor of the learning rate of a matrix: by its ratio of sides, or by the size of Adam's steps."""
  if how in (None, "original"): return math.sqrt(max(1.0, shape[0] / shape[1]))
  if how == "match_rms_adamw": return 0.2 * math.sqrt(max(shape))
  raise ArgumentError(f"adjust_lr_fn is None, 'original' or 'match_rms_adamw', not {how!r}")

MUON = UpdateRule(_zeros("momentum_buffer"), _muon_numbers, _muon, _no_numbers, layerwise=True)
