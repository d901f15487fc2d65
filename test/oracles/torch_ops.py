"""Run PyTorch's operator database through `tinyhw.compat.torch`, and count what agrees.

    python3 test/oracles/torch_ops.py                  # counts
    python3 test/oracles/torch_ops.py -v               # and the reasons, operator by operator
    python3 test/oracles/torch_ops.py -v linalg. sort  # operators whose names begin so
    python3 test/oracles/torch_ops.py --errors         # PyTorch's samples of bad input: which are refused
    python3 test/oracles/torch_ops.py --gradients      # gradients of all float inputs, against autograd
    python3 test/oracles/torch_ops.py --second         # gradients of these gradients
    python3 test/oracles/torch_ops.py --dtype float16  # another type of the inputs
    python3 test/oracles/torch_ops.py --record         # write the counts to test/oracles/torch_ops.json

An operator is a name; its variants are counted together. It is whole if all samples agree in value, type and shape by
assert_close's defaults, in part if some do, none if none does, absent if `tinyhw.compat.torch` lacks the name. A sample
is wrong if it gives another result; one that raises is failed, and not wrong. Results that are free to differ are
compared by a property: DRAWN by type and shape, and the others as the database's own `output_process_fn_grad` says.

Two looser agreements are counted apart; an operator with such samples and no worse ones is close, and not whole.
A sample agrees by accuracy if it is within assert_close's bounds of PyTorch's float64 result. It also does if its
distance from that is about that of PyTorch's own result: at most MOST_FARTHER times in the mean square, and in the
largest difference. Or the inputs are ill-conditioned: the distance is at most MOST_MOVED times the largest by which
float64 results move when each float of the input moves by up to a unit in its last place. The functions of BY_MPMATH
also do if they are within assert_close's bounds of mpmath's values: PyTorch 2.13's J0 and Y1 are 3e-7 off in float64.
A gradient that is not autograd's agrees by differences if it is that of float64 difference quotients along three
directions, and autograd's is not.

Needs the extra `oracles` of setup.py; without it, the command says so and ends.
"""
from __future__ import annotations
import argparse
import collections
import importlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from packages import are_missing   # the path must be set before

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_suffix(".json")

# Operators with random or undefined results: only type and shape are compared.
DRAWN = frozenset("""
  cauchy exponential geometric log_normal normal uniform randn randn_like rand_like randint randint_like multinomial
  bernoulli empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ resize_as_
  nn.functional.rrelu nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout
  nn.functional.feature_alpha_dropout nn.functional.scaled_dot_product_attention nn.functional.fractional_max_pool2d
  nn.functional.fractional_max_pool3d nn.functional.multi_head_attention_forward svd_lowrank pca_lowrank
""".split())
# Of these, the ones that are exact where no probability is given: its keyword, or its position after the input.
EXACT_WITHOUT_CHANCE: dict[str, tuple[str, int]] = {
  "nn.functional.scaled_dot_product_attention": ("dropout_p", 3), "nn.functional.rrelu": ("training", 2),
  "nn.functional.multi_head_attention_forward": ("dropout_p", 9)}
# The database calls these with another order of parameters than the function of the name has: by name and variant.
ORDERS = {("where", ""): (1, 0, 2), ("einsum", ""): (1, 0), ("nn.functional.embedding", ""): (1, 0),
          ("nn.functional.embedding_bag", ""): (1, 0), ("normal", "number_mean"): (1, 0)}
# The database composes these of several functions: by name and variant, what it calls, as a function of our torch.
COMPOSED: dict[tuple[str, str], Any] = {
  ("linalg.lstsq", "grad_oriented"): lambda torch, a, b, driver: torch.linalg.lstsq(a, b, driver=driver)[:2],
  ("linalg.pinv", "singular"): lambda torch, a, b: torch.linalg.pinv(a @ b.mT),
  ("svd_lowrank", ""): lambda torch, a, b, **options: torch.svd_lowrank(a @ b.mT, **options),
  ("pca_lowrank", ""): lambda torch, a, b, **options: torch.pca_lowrank(a @ b.mT, **options),
  ("normal", "in_place"): lambda torch, x, *args, **options: x.normal_(*args, **options),
  ("max_pool2d_with_indices_backward", ""): lambda torch, x, **options: pooling_gradient(torch, x, **options),
}
# Errors that are not asked for: of memory that overlaps, which a converted sample does not, and of devices.
NOT_ASKED = ("unsupported operation", "written-to tensor refer", "on the same device", "up to 64 dims")
# Of equal elements these may return any index: values at the indices are compared. The place of dim in the arguments.
CHOSEN = {"kthvalue": 1, "topk": 1, "mode": 0, "median": 0, "nanmedian": 0, "sort": 0}
# How much farther from float64 than PyTorch's a result may be, in the mean square and in its largest difference.
MOST_FARTHER = (2.0, 2.5)
# How far from float64 a result may be, by the movement of float64 results that a unit in the inputs' last place makes.
MOST_MOVED = 4.0
# Functions of one number that mpmath has, too: its name, and the order.
BY_MPMATH = {f"special.bessel_{kind}{order}": (f"bessel{kind}", order) for kind in "jy" for order in (0, 1)}
LEFT_OUT = {"jiterator_": "operators that compile CUDA source"}

class Verdict(NamedTuple):
  """How many samples of an operator agree, agree loosely, are wrong, fail; and the reasons with counts."""
  agree: int
  loose: int
  wrong: int
  failed: int
  absent: bool
  reasons: dict[str, int]

  @property
  def kind(self) -> str:
    if self.absent: return "absent"
    if not self.wrong and not self.failed: return "close" if self.loose else "whole"
    return "part" if self.agree or self.loose else "none"

def is_missing() -> bool:
  """Say which of the packages is not installed that PyTorch's databases need."""
  return are_missing("torch", "scipy", "expecttest", "mpmath")

def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("names", nargs="*", help="beginnings of names; all if there are none")
  parser.add_argument("-v", action="store_true", help="reasons")
  parser.add_argument("--errors", action="store_true", help="samples of bad input instead")
  parser.add_argument("--gradients", action="store_true", help="gradients of all float inputs, against autograd")
  parser.add_argument("--second", action="store_true", help="gradients of a weighted sum of the gradients")
  parser.add_argument("--record", action="store_true", help=f"write the counts to {RECORD.name}")
  parser.add_argument("--dtype", default="float32")
  parser.add_argument("--most", type=int, default=0, help="samples of one operator, spread over all; 0: all of them")
  options = parser.parse_args()
  if is_missing(): return 0
  kind = ("errors" if options.errors else "second gradients" if options.second else
          "gradients" if options.gradients else "values")
  verdicts = judge(options.names, options.dtype, options.most, kind, options.v)
  found = counts(verdicts, "by differences" if "gradients" in kind else "by accuracy")
  print(json.dumps(found))
  if options.record: record(f"{kind}, {options.dtype}", found, options.most)
  return int(not options.errors and found["operators with a wrong sample"] > 0)

def record(title: str, found: dict[str, Any], most: int) -> None:
  """Write counts below a title: what was judged, and of which type. Of a share, say how many samples at most."""
  known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
  known[title] = {**found, **({"samples of an operator, at most": most} if most else {})}
  RECORD.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")

def judge(names: list[str], dtype: str = "float32", most: int = 0, what: str = "values",
          verbose: bool = False) -> dict[str, Verdict]:
  """Judge the operators whose names begin with one of `names`, or all, by their values, errors or gradients."""
  sys.path.insert(0, str(ROOT))
  warnings.simplefilter("ignore")
  database = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
  torch = importlib.import_module("torch")
  kind = getattr(torch, dtype)
  entries: dict[str, list[Any]] = collections.defaultdict(list)
  for op in database:
    if kind not in op.supported_dtypes("cpu") or op.name.startswith(tuple(LEFT_OUT)): continue
    if not names or op.name.startswith(tuple(names)): entries[op.name].append(op)
  verdicts = {}
  for name, ops in entries.items():
    began = time.time()
    verdicts[name] = found = Operator(torch, name).verdict(ops, kind, most, what)
    if verbose:
      print(f"{found.kind:6} {name} {found.agree} agree, {found.loose} loosely, {found.wrong} wrong, "
            f"{found.failed} failed, "
            f"{time.time() - began:.1f} s", flush=True)
      for reason, count in sorted(found.reasons.items(), key=lambda item: -item[1])[:6]:
        print(f"         {count} x {reason}", flush=True)
  return verdicts

def counts(verdicts: dict[str, Verdict], otherwise: str = "by accuracy") -> dict[str, Any]:
  torch = importlib.import_module("torch")
  kinds = collections.Counter(v.kind for v in verdicts.values())
  return {"torch": torch.__version__, "date": time.strftime("%Y-%m-%d"), "operators": len(verdicts),
          **{kind: kinds[kind] for kind in ("whole", "close", "part", "none", "absent")},
          "operators with a wrong sample": sum(bool(v.wrong) for v in verdicts.values()),
          "samples": sum(v.agree + v.loose + v.wrong + v.failed for v in verdicts.values()),
          "agree": sum(v.agree for v in verdicts.values()),
          f"agree {otherwise}": sum(v.loose for v in verdicts.values()),
          "wrong": sum(v.wrong for v in verdicts.values())}

class Operator:
  """An operator of the database and its namesake in `tinyhw.compat.torch`."""
  def __init__(self, torch: Any, name: str) -> None:
    self.torch, self.name = torch, name
    self.ours = importlib.import_module("tinyhw.compat.torch")
    self.errors = importlib.import_module("tinyhw.errors")
    self.function = self.find()

  def find(self) -> Any:
    """The function of this name, or the method; a property is a function, too. None if there is neither."""
    holder: Any = self.ours
    try:
      for part in self.name.removeprefix("torch.").split("."): holder = getattr(holder, part)
      if callable(holder): return holder
    except (AttributeError, ImportError): pass
    writes = self.name.endswith("_") and not self.name.startswith("_")
    if writes and hasattr(self.ours.tensor(1.0), self.name):
      return lambda x, *args, **keywords: getattr(x.clone(), self.name)(*args, **keywords)
    member = getattr(self.ours.Tensor, self.name, None)
    if isinstance(member, property): return member.fget
    return member if callable(member) else None

  def verdict(self, ops: list[Any], kind: Any, most: int, what: str) -> Verdict:
    judges = {"values": self.judge, "errors": self.refuses, "gradients": self.differentiates,
              "second gradients": self.differentiates}
    errors = what == "errors"
    tally: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for op in ops:
      self.torch.manual_seed(0)
      try: samples = list(op.error_inputs("cpu") if errors else op.sample_inputs("cpu", kind)) if (
        not errors or op.error_inputs_func is not None) else []
      except Exception as error:   # noqa: BLE001  # the database's own fault
        reasons[f"the database: {error!r}"[:150]] += 1
        continue
      if most and len(samples) > most: samples = samples[::-(-len(samples) // most)]
      self.original, self.variant = op.op, op.variant_test_name
      if "gradients" in what and (not op.supports_autograd or self.name in DRAWN): continue
      self.order = 2 if what == "second gradients" else 1
      if self.order == 2 and not op.supports_gradgrad: continue
      for sample in samples:
        if errors and any(word in sample.error_regex for word in NOT_ASKED): continue
        outcome, reason = ("failed", "absent") if self.function is None else judges[what](sample)
        tally[outcome] += 1
        if reason: reasons[f"{outcome}: {reason}"] += 1
    return Verdict(tally["agree"], tally["accurate"] + tally["by differences"], tally["wrong"], tally["failed"],
                   self.function is None, dict(reasons))

  # ***** one sample *****

  def judge(self, sample: Any) -> tuple[str, str]:
    try: found = self.theirs(self.call(sample))
    except Exception as error:   # noqa: BLE001  # whatever it is, it is the reason
      return "failed", f"{type(error).__name__}: {error}".split("\n")[0][:170]
    self.torch.manual_seed(0)
    expected = self.original(sample.input, *sample.args, **sample.kwargs)
    try: self.compare(sample, found, expected)
    except Exception as error:   # noqa: BLE001
      reason = " ".join(f"{sample.summary() if hasattr(sample, 'summary') else ''} {error}".split())[:330]
      near = self.is_as_accurate(sample, found, expected) or self.is_exact(sample, found)
      return "accurate" if near else "wrong", reason
    return "agree", ""

  original: Any = None
  variant = ""

  def call(self, sample: Any) -> Any:
    self.ours.manual_seed(0)
    args, keywords = self.mine((sample.input, *sample.args)), self.mine(dict(sample.kwargs))
    if (order := ORDERS.get((self.name, self.variant))) is not None: args = [*[args[i] for i in order],
                                                                             *args[len(order):]]
    if (composed := COMPOSED.get((self.name, self.variant))) is not None: return composed(self.ours, *args, **keywords)
    return self.function(*args, **keywords)

  def differentiates(self, sample: Any) -> tuple[str, str]:
    """Are the gradients of a weighted sum of all float results those of autograd?"""
    torch, ours = self.torch, self.ours
    inputs: list[Any] = []
    def wanting(x: Any) -> Any:
      if not isinstance(x, torch.Tensor) or not x.is_floating_point(): return x
      inputs.append(x.detach().clone().requires_grad_())
      return inputs[-1]
    asked = sample.transform(wanting)
    self.leaves = {id(x): self.mine(x).requires_grad_() for x in inputs}
    mine = list(self.leaves.values())
    try:
      total = self.weighted(ours, sample.output_process_fn_grad(self.call(asked)))
      found = [self.theirs(g) for g in self.slopes(ours, total, mine)] if mine else []
    except self.errors.GradientError: found = [torch.zeros_like(x) for x in inputs]
    except Exception as error:   # noqa: BLE001
      if not self.answers(asked): return "agree", ""
      return "failed", f"{type(error).__name__}: {error}".split("\n")[0][:170]
    finally: self.leaves = {}
    try:
      total = self.weighted(torch, sample.output_process_fn_grad(self.original(asked.input, *asked.args,
                                                                               **asked.kwargs)))
      if total is None or not total.requires_grad: return "agree", ""
      expected = self.slopes(torch, total, inputs)
    except Exception: return "agree", ""   # noqa: BLE001  # autograd has none
    for a, b in zip(found, expected):
      try: torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
      except Exception as error:   # noqa: BLE001
        if self.is_the_slope(asked, sample, inputs, found, expected): return "by differences", ""
        return "wrong", " ".join(f"{sample.summary()} {error}".split())[:330]
    return "agree", ""

  order = 1

  def answers(self, asked: Any) -> bool:
    """Does PyTorch take this sample, whose leaves have storage of their own?"""
    try: self.original(asked.input, *asked.args, **asked.kwargs)
    except Exception: return False   # noqa: BLE001  # any error is PyTorch's answer
    return True

  def slopes(self, torch: Any, total: Any, leaves: list[Any]) -> list[Any]:
    """The gradients of a sum, or those of a weighted sum of these: zeros where there are none."""
    if total is None: return [torch.zeros_like(x) for x in leaves]
    for last in range(self.order, 0, -1):
      if total is None or torch is self.torch and not total.requires_grad: return [torch.zeros_like(x) for x in leaves]
      found = torch.autograd.grad(total, leaves, create_graph=last > 1, allow_unused=True)
      if last > 1: total = self.weighted(torch, [g for g in found if g is not None])
    return [torch.zeros_like(x) if g is None else g.to_dense() if torch is self.torch and g.is_sparse else g
            for x, g in zip(leaves, found)]

  def is_the_slope(self, asked: Any, sample: Any, inputs: list[Any], found: list[Any], expected: list[Any]) -> bool:
    """Are our gradients those of difference quotients in float64 along three directions, and autograd's not?

    Those of second order are of quotients of autograd's gradients, which some functions give without a graph.
    """
    torch, step = self.torch, 1e-6
    places = {id(x): k for k, x in enumerate(inputs)}
    def at(moves: list[Any]) -> Any:
      leaves = [(x.detach().double() + move).requires_grad_(self.order == 2) for x, move in zip(inputs, moves)]
      moved = asked.transform(lambda x: leaves[places[id(x)]] if id(x) in places else x)
      total = self.weighted(torch, sample.output_process_fn_grad(self.original(moved.input, *moved.args,
                                                                               **moved.kwargs)))
      if self.order == 1: return total
      slopes = torch.autograd.grad(total, leaves, allow_unused=True)
      return self.weighted(torch, [g for g in slopes if g is not None])
    ours = theirs = True
    for k in range(3):
      ways = [torch.linspace(-1, 1, max(x.numel(), 1), dtype=torch.float64)[:x.numel()].add(0.3 * k).mul(k + 1).sin()
              .reshape(x.shape) for x in inputs]
      try: slope = (at([w * step for w in ways]) - at([-w * step for w in ways])) / (2 * step)
      except Exception: return False   # noqa: BLE001  # no float64
      sums = [sum(float((g.double() * w).sum()) for g, w in zip(many, ways)) for many in (found, expected)]
      near = [abs(s - float(slope)) <= 1e-3 * (1 + abs(float(slope))) for s in sums]
      ours, theirs = ours and near[0], theirs and near[1]
    return ours and not theirs

  leaves: dict[int, Any] = {}

  def weighted(self, torch: Any, results: Any) -> Any:
    """The sum of the float results, times fixed weights; None if there are none."""
    total = None
    for y in self.flat(results):
      if not isinstance(y, torch.Tensor) or y.dtype not in (torch.float32, torch.float64): continue
      n = int(y.numel())
      if not n: continue
      weights = torch.tensor([((7 * k) % 11 - 4) / 8 for k in range(n)], dtype=y.dtype).reshape(tuple(y.shape))
      total = (y * weights).sum() if total is None else total + (y * weights).sum()
    return total

  def refuses(self, sample: Any) -> tuple[str, str]:
    """Does an error of ours answer a sample of bad input? One that PyTorch answers itself is not asked for."""
    given = sample.sample_input
    try: self.original(given.input, *given.args, **given.kwargs)
    except Exception: pass   # noqa: BLE001  # any error is PyTorch's answer
    else: return "answered", ""
    try: found = self.call(sample.sample_input)
    except self.errors.InternalError as error: return "failed", f"internal: {error}"[:150]
    except self.errors.TinyError: return "agree", ""
    except Exception as error:   # noqa: BLE001
      return "failed", f"{type(error).__name__}: {error}"[:150]
    try: self.theirs(found)
    except self.errors.InternalError as error: return "failed", f"internal: {error}"[:150]
    except self.errors.TinyError: return "agree", ""
    except Exception as error:   # noqa: BLE001
      return "failed", f"{type(error).__name__}: {error}"[:150]
    return "wrong", f"silent, where PyTorch says {sample.error_regex}"[:150]

  def compare(self, sample: Any, found: Any, expected: Any) -> None:
    torch = self.torch
    if self.is_drawn(sample):
      for a, b in zip(self.flat(found), self.flat(expected), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, f"{a.shape} {a.dtype}, not {b.shape} {b.dtype}"
      return
    if self.name == "argsort" and sample.input.ndim and not sample.kwargs.get("stable"):     # of equal ones, any order
      dim = next((a for a in (*sample.args, sample.kwargs.get("dim", -1)) if type(a) is int), -1)
      found, expected = (sample.input.gather(dim, x) for x in (found, expected))
    if self.name in CHOSEN and len(self.flat(found)) == 2:
      values, places = self.flat(found)
      dim = next((a for a in (*sample.args[CHOSEN[self.name]:], sample.kwargs.get("dim", -1)) if type(a) is int), -1)
      x, shape = sample.input, expected[0].shape
      at = places if places.ndim == x.ndim else places.unsqueeze(dim)
      assert torch.equal(x.gather(dim, at).reshape(shape), values) if x.ndim else places == 0, "not at its index"
      found, expected = values, expected[0]
    process = sample.output_process_fn_grad
    found, expected = process(found), process(expected)
    many = self.flat(found), self.flat(expected)
    assert len(many[0]) == len(many[1]), f"{len(many[0])} results, not {len(many[1])}"
    for a, b in zip(*many):
      if isinstance(b, torch.Tensor) or isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b.detach().resolve_conj().resolve_neg(), equal_nan=True)
      else: assert a == b, f"{a!r}, not {b!r}"

  def is_as_accurate(self, sample: Any, found: Any, expected: Any) -> bool:
    """Are the float32 results about as far from PyTorch's float64 results as PyTorch's own are?

    Both results have rounding errors, and where terms cancel, these exceed assert_close's bounds.
    """
    torch = self.torch
    def wide(x: Any) -> Any:
      if isinstance(x, torch.dtype): return torch.float64 if x.is_floating_point else x
      if not isinstance(x, torch.Tensor): return x
      return x.double() if x.is_floating_point() else x.cdouble() if x.is_complex() else x
    exact = sample.transform(wide)
    try: results = self.original(exact.input, *exact.args, **exact.kwargs)
    except Exception: return False   # noqa: BLE001  # no float64
    process = sample.output_process_fn_grad
    many = [self.flat(process(x)) for x in (found, expected, results)]
    if len({len(m) for m in many}) != 1: return False
    if all(isinstance(a, torch.Tensor) and isinstance(c, torch.Tensor) and self.is_close(a, b, c)
           for a, b, c in zip(*many)): return True
    for a, b, c in zip(*many):
      if not isinstance(b, torch.Tensor): return False
      if a.shape != b.shape or a.dtype != b.dtype: return False
      if not b.numel(): continue
      if b.is_complex(): a, b, c = (torch.view_as_real(x.resolve_conj()) for x in (a, b, c))
      if not b.is_floating_point():
        if not torch.equal(a, b): return False
        continue
      if not torch.allclose(b.double(), c.double(), rtol=1e-2, atol=1e-2, equal_nan=True): return False
      if not torch.equal(a.isfinite(), b.isfinite()): return False
      ours, theirs = ((x.double() - c.double()).abs().nan_to_num(0.0, 0.0, 0.0) for x in (a, b))
      means, most = [x.square().mean().sqrt() for x in (ours, theirs)], [x.max() for x in (ours, theirs)]
      if any(x > factor * y for factor, (x, y) in zip(MOST_FARTHER, (means, most))):
        return self.is_stable(exact, *many[::2])
    return True

  def is_stable(self, exact: Any, found: list[Any], results: list[Any]) -> bool:
    """Are results as near to the float64 ones as a unit in the last place of the float32 inputs lets one expect?"""
    torch, process = self.torch, exact.output_process_fn_grad
    if any(not isinstance(x, torch.Tensor) or x.is_complex() for x in results): return False
    draw = torch.Generator().manual_seed(0)
    def moved(x: Any) -> Any:
      if not isinstance(x, torch.Tensor) or not x.is_floating_point(): return x
      return x * (1 + (2 * torch.rand(x.shape, dtype=x.dtype, generator=draw) - 1) * 2.0**-23)
    reach = [0.0] * len(results)
    for _ in range(4):
      near = exact.transform(moved)
      others = self.flat(process(self.original(near.input, *near.args, **near.kwargs)))
      reach = [max(most, float((a - b).abs().nan_to_num(0.0).max())) for most, a, b in zip(reach, others, results)]
    return all(float((a.double() - b).abs().nan_to_num(0.0).max()) <= MOST_MOVED * most
               for a, b, most in zip(found, results, reach))

  def is_exact(self, sample: Any, found: Any) -> bool:
    """Are the elements those of mpmath?"""
    if self.name not in BY_MPMATH: return False
    (name, order), mpmath = BY_MPMATH[self.name], importlib.import_module("mpmath")
    values = [float(mpmath.re(getattr(mpmath, name)(order, x))) if x > 0 or name == "besselj" else float("nan")
              for x in sample.input.double().flatten().tolist()]
    return self.is_close(found, found, self.torch.tensor(values, dtype=self.torch.float64).reshape(found.shape))

  def is_close(self, found: Any, expected: Any, exact: Any) -> bool:
    """Is a result of the expected type and shape, and within assert_close's bounds of the float64 result?"""
    if found.dtype != expected.dtype or found.shape != expected.shape: return False
    try: self.torch.testing.assert_close(found, exact.to(found.dtype), equal_nan=True)
    except AssertionError: return False
    return True

  def is_drawn(self, sample: Any) -> bool:
    if self.name not in DRAWN: return False
    option = EXACT_WITHOUT_CHANCE.get(self.name)
    if option is None: return True
    name, place = option
    return bool(sample.kwargs.get(name, sample.args[place] if len(sample.args) > place else 0.0))

  def flat(self, x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)): return [y for item in x for y in self.flat(item)]
    return [x]

  # ***** conversion *****

  def mine(self, x: Any) -> Any:
    """Arguments of PyTorch as ours."""
    torch = self.torch
    if isinstance(x, torch.Tensor):
      if id(x) in self.leaves: return self.leaves[id(x)]
      if x.layout is not torch.strided: return x
      x = x.detach().resolve_conj().resolve_neg()
      count = x.untyped_storage().nbytes() // x.element_size()
      if x.numel() and x.numel() < count and x.is_contiguous():   # a part of storage
        whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), 0, (count,), (1,))
        flat = self.mine(whole)
        return flat[x.storage_offset():x.storage_offset() + x.numel()].reshape(tuple(x.shape))
      return self.ours.tensor((x.float() if x.dtype is torch.bfloat16 else x).numpy(), dtype=self.mine(x.dtype))
    if isinstance(x, (torch.dtype, torch.memory_format, torch.layout)):
      return getattr(self.ours, str(x).removeprefix("torch."), x)
    if isinstance(x, torch.device): return str(x)
    if isinstance(x, torch.nn.PairwiseDistance):
      return lambda a, b: self.ours.pairwise_distance(a, b, x.norm, x.eps, x.keepdim)
    if isinstance(x, torch.Size): return tuple(x)
    if isinstance(x, (tuple, list)): return type(x)([self.mine(y) for y in x])
    if isinstance(x, dict): return {key: self.mine(y) for key, y in x.items()}
    return x

  def theirs(self, x: Any) -> Any:
    """Results of ours as PyTorch's."""
    torch = self.torch
    if isinstance(x, self.ours.Tensor):
      kind = getattr(torch, str(x.dtype).removeprefix("dtypes."))
      return torch.tensor((x.float() if kind is torch.bfloat16 else x).numpy(), dtype=kind)
    if isinstance(x, (tuple, list)): return tuple([self.theirs(y) for y in x])
    return x

def pooling_gradient(torch: Any, x: Any, kernel_size: Any = (), stride: Any = (), padding: Any = (0,),
                     dilation: Any = (1,), ceil_mode: bool = False, **_: Any) -> Any:
  """The gradient of ones through max_pool2d."""
  best, places = torch.nn.functional.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, True)
  return torch.max_pool2d_with_indices_backward(torch.ones_like(best), x, kernel_size, stride, padding, dilation,
                                                ceil_mode, places)

if __name__ == "__main__": sys.exit(main())
