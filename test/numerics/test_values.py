"""Special values of methods: zeros of both signs, infinities, NaN, limits of types, nothing at all. As PyTorch and
NumPy have them, by hand.

Where the two differ, the comment says whom we follow. How exact functions are elsewhere is test_page.py's.
"""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

from ulps import flushes
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import ShapeError
from tinyhw.tensor import Tensor

inf, nan = math.inf, math.nan
V = [nan, inf, -inf, -0.0, 0.0]
T = Tensor

def agree(got: Any, want: Any) -> bool:
  """Equal, NaN to NaN and zeros by sign; lists item by item. A number in a tuple is meant up to six digits."""
  if isinstance(want, list): return isinstance(got, list) and len(got) == len(want) and all(map(agree, got, want))
  if isinstance(want, tuple): return math.isclose(got, want[0], rel_tol=1e-6)
  if isinstance(want, float) and isinstance(got, float) and want == 0 == got:
    return math.copysign(1, got) == math.copysign(1, want)
  return type(got) is type(want) and (got == want or (got != got and want != want))

Row = tuple[str, Callable[[], Any], Any]

def check(rows: list[Row]) -> None:
  wrong = []
  for name, make, want in rows:
    got = make()
    got = [t.tolist() for t in got] if isinstance(got, tuple) else got.tolist()
    if not agree(got, want): wrong.append(f"{name}: {got}, not {want}")
  assert not wrong, "\n".join(wrong)

def test_rounding_and_signs(engine: str) -> None:
  halves = [0.5, 1.5, 2.5, -0.5, -1.5, 8388609.0]
  check([
    ("round", lambda: T(halves + V).round(), [0.0, 2.0, 2.0, -0.0, -2.0, 8388609.0] + V),
    ("floor", lambda: T([1.5, -1.5, -0.2] + V).floor(), [1.0, -2.0, -1.0] + V),
    ("ceil", lambda: T([1.5, -1.5, -0.2] + V).ceil(), [2.0, -1.0, -0.0] + V),
    ("trunc", lambda: T([1.5, -1.5, -0.2] + V).trunc(), [1.0, -1.0, -0.0] + V),
    ("abs", lambda: T([-2.0] + V).abs(), [2.0, nan, inf, inf, 0.0, 0.0]),
    ("sign", lambda: T([-2.0] + V).sign(), [-1.0, nan, 1.0, -1.0, 0.0, 0.0]),  # NaN as NumPy; PyTorch says 0
    ("neg", lambda: T(V).neg(), [nan, -inf, inf, 0.0, -0.0]),
    ("copysign", lambda: T([1.0, -1.0, 0.0, inf, nan]).copysign(T([-0.0, 0.0, -1.0, -inf, 1.0])),
     [-1.0, 1.0, -0.0, -inf, nan]),
    ("square", lambda: T(V).square(), [nan, inf, inf, 0.0, 0.0]),
    ("isclose", lambda: T([inf, inf, nan, 1.0, inf]).isclose(T([inf, -inf, nan, inf, 1.0])),
     [True, False, False, False, False]),
    ("isclose nan", lambda: T([nan, 1.0]).isclose(T([nan, nan]), equal_nan=True), [True, False]),
  ])
  assert (T([inf, 1.0]).allclose(T([inf, 1.0])) is True and T([nan]).allclose(T([nan])) is False
          and T([]).allclose(T([])) is True)

def test_functions(engine: str) -> None:
  quarter, half = (math.pi / 4,), (math.pi / 2,)
  check([
    ("exp", lambda: T(V).exp(), [nan, inf, 0.0, 1.0, 1.0]),
    ("exp2", lambda: T(V).exp2(), [nan, inf, 0.0, 1.0, 1.0]),
    ("log", lambda: T(V + [-1.0, 1.0]).log(), [nan, inf, nan, -inf, -inf, nan, 0.0]),
    ("log2", lambda: T(V + [-1.0, 1.0]).log2(), [nan, inf, nan, -inf, -inf, nan, 0.0]),
    ("log10", lambda: T(V + [-1.0, 1.0]).log10(), [nan, inf, nan, -inf, -inf, nan, 0.0]),
    ("sqrt", lambda: T(V + [-1.0]).sqrt(), [nan, inf, nan, -0.0, 0.0, nan]),
    ("rsqrt", lambda: T(V + [-1.0]).rsqrt(), [nan, 0.0, nan, -inf, inf, nan]),
    ("reciprocal", lambda: T(V).reciprocal(), [nan, 0.0, -0.0, -inf, inf]),
    ("sin", lambda: T(V).sin(), [nan, nan, nan, -0.0, 0.0]),
    ("cos", lambda: T(V).cos(), [nan, nan, nan, 1.0, 1.0]),
    ("tan", lambda: T(V).tan(), [nan, nan, nan, -0.0, 0.0]),
    ("asin", lambda: T(V + [2.0, 1.0]).asin(), [nan, nan, nan, -0.0, 0.0, nan, half]),
    ("acos", lambda: T(V + [2.0, 1.0, -1.0]).acos(), [nan, nan, nan, half, half, nan, 0.0, (math.pi,)]),
    ("atan", lambda: T(V + [1.0]).atan(), [nan, half, (-math.pi / 2,), -0.0, 0.0, quarter]),
    ("sinh", lambda: T(V).sinh(), V),
    ("cosh", lambda: T(V).cosh(), [nan, inf, inf, 1.0, 1.0]),
    ("tanh", lambda: T(V).tanh(), [nan, 1.0, -1.0, -0.0, 0.0]),
    ("asinh", lambda: T(V).asinh(), V),
    ("acosh", lambda: T(V + [1.0, 0.5]).acosh(), [nan, inf, nan, nan, nan, 0.0, nan]),
    ("atanh", lambda: T(V + [1.0, -1.0, 2.0]).atanh(), [nan, nan, nan, -0.0, 0.0, inf, -inf, nan]),
    ("erf", lambda: T(V).erf(), [nan, 1.0, -1.0, -0.0, 0.0]),
    ("subnormal", lambda: T([1e-40]).atan().div(T([1e-40])), [nan if flushes(engine) else 1.0]),
  ])

def test_activations(engine: str) -> None:
  x = [*V, 1e4, -1e4]
  check([
    ("relu", lambda: T(x).relu(), [nan, inf, 0.0, -0.0, 0.0, 1e4, 0.0]),
    ("relu of float16", lambda: T(x[:5]).half().relu(), [nan, inf, 0.0, -0.0, 0.0]),
    ("relu of integers", lambda: T([-3, 0, 3]).relu(), [0, 0, 3]),
    ("leaky_relu", lambda: T(x).leaky_relu(0.5), [nan, inf, -inf, -0.0, 0.0, 1e4, -5e3]),
    ("relu6", lambda: T(x).relu6(), [nan, 6.0, 0.0, 0.0, 0.0, 6.0, 0.0]),
    ("hardtanh", lambda: T(x).hardtanh(), [nan, 1.0, -1.0, -0.0, 0.0, 1.0, -1.0]),
    ("hardsigmoid", lambda: T(x).hardsigmoid(), [nan, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0]),
    ("hardswish", lambda: T([nan, inf, -1e4]).hardswish(), [nan, inf, -0.0]),
    ("sigmoid", lambda: T(x).sigmoid(), [nan, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0]),
    ("logsigmoid", lambda: T([nan, -inf, -1e4]).logsigmoid(), [nan, -inf, -1e4]),
    ("softplus", lambda: T([nan, inf, -inf, 1e4, -1e4]).softplus(), [nan, inf, 0.0, 1e4, 0.0]),
    ("silu", lambda: T([nan, inf, 1e4, -1e4]).silu(), [nan, inf, 1e4, -0.0]),
    ("gelu", lambda: T([nan, inf, 1e4, -1e4]).gelu(), [nan, inf, 1e4, -0.0]),
    ("gelu by erf", lambda: T([nan, inf, 1e4, -1e4]).gelu("none"), [nan, inf, 1e4, -0.0]),
    ("mish", lambda: T([nan, inf, 1e4, -1e4]).mish(), [nan, inf, 1e4, -0.0]),
    ("elu", lambda: T([nan, inf, -inf, 1e4]).elu(), [nan, inf, -1.0, 1e4]),
    ("softsign", lambda: T([nan, 0.0, 1.0]).softsign(), [nan, 0.0, 0.5]),
    ("logaddexp", lambda: T([inf, -inf, inf, nan, -inf]).logaddexp(T([inf, -inf, -inf, 0.0, 0.0])),
     [inf, -inf, inf, nan, 0.0]),
  ])

def test_extremes(engine: str) -> None:
  check([
    ("maximum", lambda: T([1.0, nan, 1.0, nan, inf, -0.0]).maximum(T([nan, 1.0, 2.0, nan, nan, 0.0])),
     [nan, nan, 2.0, nan, nan, -0.0]),
    ("minimum", lambda: T([1.0, nan, 1.0, nan, inf, -0.0]).minimum(T([nan, 1.0, 2.0, nan, nan, 0.0])),
     [nan, nan, 1.0, nan, nan, -0.0]),
    ("with numbers", lambda: (T([nan, 1.0, 3.0]).maximum(2), T([nan, 1.0, 3.0]).minimum(2)),
     [[nan, 2.0, 3.0], [nan, 1.0, 2.0]]),
    ("with NaN", lambda: (T([0.0, inf]).maximum(nan), T([0.0, inf]).minimum(nan)), [[nan, nan], [nan, nan]]),
    ("of integers", lambda: (T([3, -128], dtype=dtypes.int8).maximum(1), T([3, -128], dtype=dtypes.int8).minimum(1)),
     [[3, 1], [1, -128]]),
    ("clamp", lambda: T([nan, -3.0, 3.0]).clamp(-1, 1), [nan, -1.0, 1.0]),
    ("clamp by tensors", lambda: T([0.0, 0.0, 5.0]).clamp(T([nan, 1.0, 1.0]), T([1.0, nan, 2.0])), [nan, nan, 2.0]),
    ("clamp, limits reversed", lambda: T([0.0, 5.0]).clamp(2, 1), [1.0, 1.0]),
    ("max", lambda: T([[1.0, nan], [inf, 2.0], [-inf, -inf], [nan, inf]]).max(1), [nan, inf, -inf, nan]),
    ("min", lambda: T([[1.0, nan], [inf, 2.0], [-inf, -inf], [nan, inf]]).min(1), [nan, 2.0, -inf, nan]),
    ("max of many", lambda: T([0.0] * 300 + [nan] + [1.0] * 40).max(), nan),
    ("max of many float16", lambda: T([0.0] * 300 + [nan] + [1.0] * 40).half().max(), nan),
    ("argmax", lambda: T([[1.0, nan, nan], [2.0, 2.0, 1.0], [-inf] * 3]).argmax(1), [1, 0, 0]),
    ("argmin", lambda: T([[1.0, nan, nan], [2.0, 1.0, 1.0], [inf] * 3]).argmin(1), [1, 1, 0]),
    ("cummax", lambda: T([1.0, nan, 3.0, nan]).cummax(), [[1.0, nan, nan, nan], [0, 1, 1, 3]]),
    ("cummin", lambda: T([1.0, -inf, nan]).cummin(), [[1.0, -inf, nan], [0, 1, 2]]),
    ("sort", lambda: T([1.0, nan, -inf, inf]).sort(), [[-inf, 1.0, inf, nan], [2, 0, 3, 1]]),
    ("sort, descending", lambda: T([1.0, nan, -inf, inf]).sort(descending=True), [[nan, inf, 1.0, -inf], [1, 3, 0, 2]]),
    ("topk", lambda: T([1.0, nan, -inf, inf]).topk(2), [[nan, inf], [1, 3]]),
    ("max_pool2d", lambda: T([[[[nan, 1.0], [2.0, 3.0]]]]).max_pool2d(2), [[[[nan]]]]),
    ("max_pool2d, padded", lambda: T([[[[-inf, -inf], [-inf, -inf]]]]).max_pool2d(2, padding=1),
     [[[[-inf, -inf], [-inf, -inf]]]]),
    ("scatter_reduce", lambda: T([1.0, 2.0]).scatter_reduce(0, T([0, 0]), T([nan, 3.0]), "amax"), [nan, 2.0]),
  ])

def test_gradients_where_two_are_equal_or_something_is_cut(engine: str) -> None:
  def gradient(f: Callable[[Tensor], Tensor], values: list[float]) -> list[float]:
    x = T(values)
    return f(x).sum().gradient(x)[0].tolist()  # type: ignore[return-value]  # a list
  assert gradient(lambda x: x.relu(), [-1.0, 0.0, -0.0, 1.0]) == [0.0, 0.0, 0.0, 1.0]
  assert gradient(lambda x: x.maximum(0),
                  [-1.0, 0.0, 1.0]) == [0.0, 0.5, 1.0] == gradient(lambda x: x.maximum(T([0.0] * 3)), [-1.0, 0.0, 1.0])
  assert gradient(lambda x: x.minimum(0),
                  [-1.0, 0.0, 1.0]) == [1.0, 0.5, 0.0] == gradient(lambda x: x.minimum(T([0.0] * 3)), [-1.0, 0.0, 1.0])
  assert gradient(lambda x: x.clamp(0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0]) == [0.0, 1.0, 1.0, 1.0, 0.0]
  assert gradient(lambda x: x.lerp(T([2.0, 2.0]), 0.75), [0.0, 1.0]) == [0.25, 0.25]

def test_powers(engine: str) -> None:
  check([
    ("x ** y", lambda: T([-8.0, 0.0, -0.0, nan, 1.0, -1.0, 2.0, -2.0, inf, 0.0]) ** T([1 / 3, -1.0, -3.0, 0.0, nan, inf,
                                                                                       -inf, 3.0, 0.0, 0.0]),
     [nan, inf, -inf, 1.0, 1.0, 1.0, 0.0, -8.0, 1.0, 1.0]),
    ("x ** 0", lambda: T(V) ** 0, [1.0] * 5),
    ("x ** 0.5", lambda: T([*V, 4.0]) ** 0.5, [nan, inf, nan, -0.0, 0.0, 2.0]),  # as sqrt; C's pow says inf and 0.0
    ("x ** -1", lambda: T(V) ** -1, [nan, 0.0, -0.0, -inf, inf]),
    ("x ** 3", lambda: T(V) ** 3, V),
    ("1 ** x", lambda: 1.0 ** T(V), [1.0] * 5),
    ("0 ** x", lambda: 0.0 ** T(V), [nan, 0.0, inf, 1.0, 1.0]),
    ("integers", lambda: T([2, -2, 0, 0, 3]) ** T([10, 3, 0, 5, 1]), [1024, -8, 1, 0, 3]),
  ])

def test_quotients_of_floats(engine: str) -> None:
  a, b = [1.0, -1.0, 5.0, -5.0, 5.0, 0.0, inf, 1.0, 0.0, nan, -1e-30], [0.1, 0.1, inf, inf, -inf, 3.0, 1.0, 0.0, 0.0,
                                                                        1.0, 1e30]
  tenth = T([0.1]).item()
  check([
    ("//", lambda: T(a) // T(b), [9.0, -10.0, 0.0, -1.0, -1.0, 0.0, nan, inf, nan, nan, -1.0]),
    ("%", lambda: T(a)[2:] % T(b)[2:], [5.0, inf, -inf, 0.0, nan, nan, nan, nan, 1.0000000150474662e30]),
    ("fmod", lambda: T(a)[2:].fmod(T(b)[2:]), [5.0, -5.0, 5.0, 0.0, nan, nan, nan, nan, -1.0000000031710769e-30]),
    ("fmod is exact", lambda: T([1.0, 1e15, -1e15, 5.5]).double().fmod(T([tenth, 7.0, 7.0, 0.25]).double()),
     [math.fmod(1.0, tenth), math.fmod(T([1e15]).item(), 7.0), -math.fmod(T([1e15]).item(), 7.0), 0.0]),
    ("fmod of float32", lambda: T([1e15, 1.0]).fmod(T([7.0, 0.1])),
     [math.fmod(T([1e15]).item(), 7.0), math.fmod(1.0, tenth)]),
    ("fmod of float16", lambda: T([60000.0, 1.0, -1.0]).half().fmod(T([7.0, 0.25, 0.25]).half()),
     [math.fmod(60000.0, 7.0), 0.0, -0.0]),
    ("beyond", lambda: T([3e38]).fmod(T([1e-38])), [nan]),
    ("trunc", lambda: T([7.0, -7.0, -0.5]).div(T([2.0, 2.0, 1.0]), rounding_mode="trunc"), [3.0, -3.0, -0.0]),
    ("lerp", lambda: (T([1e8, 0.0]).lerp(T([1.0, 4.0]), 1.0), T([1e8, 0.0]).lerp(T([1.0, 4.0]), T([1.0, 0.25]))),
     [[1.0, 4.0], [1.0, 1.0]]),
  ])

def test_sums_start_at_zero(engine: str) -> None:
  """However a sum is taken apart: by lanes, copies or loops. It can be seen where all that is added is -0.0."""
  for n in (2, 8, 9, 16, 33, 64, 300):
    zeros = T([[-0.0] * n] * 3).realize()
    for total in (zeros.sum(1), (zeros * zeros.full_like(1.0)).sum(1)):
      assert str(total.tolist()) == "[0.0, 0.0, 0.0]", n

def test_reductions(engine: str) -> None:
  check([
    ("sum", lambda: T([[inf, 1.0], [inf, -inf], [nan, 1.0], [-0.0, -0.0]]).sum(1), [inf, nan, nan, 0.0]),
    ("prod", lambda: T([[inf, 2.0], [inf, 0.0], [nan, 0.0], [-inf, -1.0]]).prod(1), [inf, nan, nan, inf]),
    ("mean", lambda: T([[inf, 1.0], [inf, -inf]]).mean(1), [inf, nan]),
    ("var", lambda: (T([2.0]).var(), T([2.0]).var(correction=0), T([1.0, 3.0]).var(correction=2),
                     T([1.0, 3.0]).std(correction=3)),
     [nan, 0.0, inf, inf]),
    ("std of one", lambda: T([[1.0], [2.0]]).std(1), [nan, nan]),
    ("of nothing", lambda: (T([]).sum(), T([]).prod(), T([]).mean(), T([]).var(), T([]).logsumexp()),
     [0.0, 1.0, nan, nan, -inf]),
    ("truths of nothing", lambda: (T([]).all(), T([]).any()), [True, False]),
    ("cumsum", lambda: T([inf, 1.0, -inf, 1.0]).cumsum(), [inf, inf, nan, nan]),
    ("cumprod", lambda: T([nan, 0.0]).cumprod(), [nan, nan]),
    ("logcumsumexp", lambda: T([-inf, -inf, 0.0, inf, nan]).logcumsumexp(), [-inf, -inf, 0.0, inf, nan]),
    ("logsumexp", lambda: T([[-inf, -inf], [inf, 1.0], [inf, inf], [1e4, -1e4], [nan, 0.0]]).logsumexp(1),
     [-inf, inf, inf, 1e4, nan]),
    ("softmax", lambda: T([[-inf, 1.0], [1e4, -1e4], [-inf, -inf], [inf, 0.0], [nan, 0.0]]).softmax(1),
     [[0.0, 1.0], [1.0, 0.0], [nan, nan], [nan, nan], [nan, nan]]),
    ("log_softmax", lambda: T([[-inf, 1.0], [1e4, -1e4]]).log_softmax(1), [[-inf, 0.0], [0.0, -2e4]]),
    ("normalize", lambda: T([[0.0, 0.0], [3.0, 4.0]]).normalize(), [[0.0, 0.0], [(0.6,), (0.8,)]]),
    ("layernorm of equals", lambda: T([[7.0, 7.0]]).layernorm(), [[0.0, 0.0]]),
    ("cross_entropy", lambda: T([[-inf, 1.0, 1.0]] * 2).cross_entropy(T([1, 0]), reduction="none"),
     [(math.log(2),), inf]),
    ("sparse cross-entropy",
     lambda: T([[-inf, 1.0, 1.0]] * 2).sparse_categorical_crossentropy(T([1, 0]), reduction="none"),
     [(math.log(2),), inf]),
    ("logits", lambda: T([1e4, -1e4, inf, -inf]).binary_crossentropy_logits(T([1.0, 0.0, 1.0, 0.0]), "none"),
     [0.0, 0.0, nan, nan]),
  ])

@pytest.mark.parametrize("make", [
  lambda: T([]).max(), lambda: T([]).min(), lambda: T.zeros(0, 3).max(0), lambda: T.zeros(3, 0).min(1),
  lambda: T.zeros(3, 0).argmax(1),
  lambda: T([]).argmin()], ids=range(6))
def test_extremes_of_nothing_are_refused(make: Callable[[], Tensor]) -> None:
  with pytest.raises(ShapeError, match="no element"): make()

def test_extremes_of_no_rows_are_none() -> None: assert T.zeros(3, 0).max(0).shape == T.zeros(3, 0).min(0).shape == (0,)
