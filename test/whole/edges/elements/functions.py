"""Edge cases of functions of one element: rounding, signs, exponentials, logarithms, trigonometry, integers that become
floats."""
from math import inf, nan, pi

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ShapeError

HALF_PI = pi / 2

EDGES: dict[str, list[Case]] = {
  "abs": [
    ("Tensor([-0.0, -inf, nan, -1.5]).abs()", [0.0, inf, nan, 1.5]),
    ("Tensor([-128, 127, -1], dtype=dtypes.int8).abs()", [-128, 127, 1]),
    ("Tensor([0, 255], dtype=dtypes.uint8).abs()", like([0, 255], dtype=dtypes.uint8)),
    ("Tensor([True, False]).abs()", [True, False]),
    ("abs(Tensor(-3))", 3), ("x = Tensor([-2.0, 0.0, 3.0]); x.abs().sum().gradient(x)", [[-1.0, 0.0, 1.0]]),
  ],
  "sign": [
    ("Tensor([-inf, -0.0, 0.0, 1e-45, nan]).sign()", [-1.0, 0.0, 0.0, 1.0, nan]),
    ("Tensor([-2147483648, 0, 7]).sign()", [-1, 0, 1]),
    ("Tensor([0, 200], dtype=dtypes.uint8).sign()", like([0, 1], dtype=dtypes.uint8)),
    ("Tensor([True, False]).sign()", [True, False]),
    ("x = Tensor([-2.0, 0.0]); x.sign().sum().gradient(x)", [like([0.0, 0.0], tolerance=1e-6)]),
  ],
  "copysign": [
    ("Tensor([1.0, -1.0, 0.0, inf, nan]).copysign(Tensor([-0.0, 0.0, -1.0, -inf, -1.0]))",
     [-1.0, 1.0, -0.0, -inf, nan]),
    ("Tensor([1, -2]).copysign(-3)", like([-1.0, -2.0], dtype=dtypes.float32)),
    ("Tensor([2.0]).copysign(Tensor([[-1.0], [1.0]]))", [[-2.0], [2.0]]),
    ("Tensor([2.0, -2.0]).half().copysign(-0.0)", like([-2.0, -2.0], dtype=dtypes.float16)),
    ("Tensor([]).copysign(-1)", like([], shape=(0,))),
  ],
  "trunc": [
    ("Tensor([-1.9, 1.9, -0.5, 0.5, -0.0]).trunc()", [-1.0, 1.0, -0.0, 0.0, -0.0]),
    ("Tensor([inf, -inf, nan, 1e30]).trunc()", [inf, -inf, nan, 1e30]),
    ("Tensor([-7, 7]).trunc()", [-7, 7]), ("Tensor([2.7]).half().trunc()", like([2.0], dtype=dtypes.float16)),
    ("Tensor([4503599627370497.5], dtype=dtypes.float64).trunc()", [4503599627370497.0]),
  ],
  "floor": [
    ("Tensor([-1.5, 1.5, -0.2, 0.9, -0.0]).floor()", [-2.0, 1.0, -1.0, 0.0, -0.0]),
    ("Tensor([inf, -inf, nan, -1e30]).floor()", [inf, -inf, nan, -1e30]),
    ("Tensor([-7]).floor()", [-7]), ("Tensor([-1e-45]).floor()", [-1.0]), ("Tensor([8388609.0]).floor()", [8388609.0]),
    ("x = Tensor([1.5]); x.floor().sum().gradient(x)", [like([0.0], tolerance=1e-6)]),
  ],
  "ceil": [
    ("Tensor([-1.5, 1.5, -0.2, 0.2, 0.0]).ceil()", [-1.0, 2.0, -0.0, 1.0, 0.0]),
    ("Tensor([inf, -inf, nan, 1e30]).ceil()", [inf, -inf, nan, 1e30]),
    ("Tensor([7], dtype=dtypes.uint8).ceil()", like([7], dtype=dtypes.uint8)), ("Tensor([1e-45]).ceil()", [1.0]),
    ("Tensor(-0.5).ceil()", -0.0),
  ],
  "round": [
    ("Tensor([0.5, 1.5, 2.5, -0.5, -1.5]).round()", [0.0, 2.0, 2.0, -0.0, -2.0]),
    ("Tensor([0.49999997, -0.49999997, 8388609.0, 4194303.5]).round()", [0.0, -0.0, 8388609.0, 4194304.0]),
    ("Tensor([inf, -inf, nan, -0.0]).round()", [inf, -inf, nan, -0.0]), ("Tensor([-7, 8]).round()", [-7, 8]),
    ("Tensor([True]).round()", [True]),
    ("Tensor([2.5, 3.5]).half().round()", like([2.0, 4.0], dtype=dtypes.float16)),
  ],
  "sqrt": [
    ("Tensor([4.0, 0.0, -0.0, inf, -1.0, nan]).sqrt()", [2.0, 0.0, -0.0, inf, nan, nan]),
    ("Tensor([9, 2]).sqrt()", [3.0, 1.4142135]),
    ("Tensor([2.0 ** -140]).sqrt()", [2.0 ** -70]),
    ("Tensor([65504.0]).half().sqrt()", like([255.875], dtype=dtypes.float16)),
    ("Tensor([True, False]).sqrt()", [1.0, 0.0]),
    ("x = Tensor([0.0, 4.0]); x.sqrt().sum().gradient(x)", [[inf, 0.25]]),
  ],
  "rsqrt": [
    ("Tensor([4.0, 0.0, -0.0, inf, -1.0, nan]).rsqrt()", [0.5, inf, -inf, 0.0, nan, nan]),
    ("Tensor([16]).rsqrt()", [0.25]),
    ("Tensor([2.0 ** -140]).rsqrt()", [2.0 ** 70]), ("Tensor([]).rsqrt()", like([], dtype=dtypes.float32)),
  ],
  "reciprocal": [
    ("Tensor([2.0, 0.0, -0.0, inf, -inf, nan]).reciprocal()", [0.5, inf, -inf, 0.0, -0.0, nan]),
    ("Tensor([4, 0]).reciprocal()", [0.25, inf]),
    ("Tensor([1e-39]).reciprocal()", [inf]),
    ("Tensor([4.0]).double().reciprocal()", like([0.25], dtype=dtypes.float64)),
    ("Tensor([[2.0]]).expand(2, 2).reciprocal()", [[0.5, 0.5], [0.5, 0.5]]),
  ],
  "square": [
    ("Tensor([-0.0, -inf, nan, -3.0]).square()", [0.0, inf, nan, 9.0]),
    ("Tensor([65536, -46341]).square()", [0, -2147479015]),
    ("Tensor([16], dtype=dtypes.uint8).square()", like([0], dtype=dtypes.uint8)),
    ("Tensor([256.0]).half().square()", [inf]),
    ("Tensor([True, False]).square()", [True, False]),
  ],
  "exp": [
    ("Tensor([0.0, -inf, inf, nan, 89.0, -104.0]).exp()", [1.0, 0.0, inf, nan, inf, 0.0]),
    ("Tensor([1, 0]).exp()", [2.7182818, 1.0]),
    ("Tensor([11.0, 12.0]).half().exp()", like([59874.14, inf], dtype=dtypes.float16)),
    ("Tensor([-100.0]).exp()", like([3.783506e-44], tolerance=2e-45)),
    ("Tensor(False).exp()", 1.0),
  ],
  "exp2": [
    ("Tensor([0.0, -inf, inf, nan, 128.0, -149.0]).exp2()", [1.0, 0.0, inf, nan, inf, 2.0 ** -149]),
    ("Tensor([10, -1]).exp2()", [1024.0, 0.5]),
    ("Tensor([0.5]).exp2()", [1.4142135]),
    ("Tensor([15.0, 16.0]).half().exp2()", like([32768.0, inf], dtype=dtypes.float16)),
  ],
  "log": [
    ("Tensor([1.0, 0.0, -0.0, -1.0, inf, nan]).log()", [0.0, -inf, -inf, nan, inf, nan]),
    ("Tensor([1, 10]).log()", [0.0, 2.3025851]),
    ("Tensor([2.0 ** -149]).log()", [-103.27893]), ("Tensor([0, 1], dtype=dtypes.uint8).log()", [-inf, 0.0]),
    ("x = Tensor([0.0, 2.0]); x.log().sum().gradient(x)", [[inf, 0.5]]),
  ],
  "log2": [
    ("Tensor([1.0, 0.0, -0.0, -1.0, inf, nan]).log2()", [0.0, -inf, -inf, nan, inf, nan]),
    ("Tensor([8, 1]).log2()", [3.0, 0.0]),
    ("Tensor([2.0 ** -149, 2.0 ** 127]).log2()", [-149.0, 127.0]),
    ("Tensor([2.0 ** -24]).half().log2()", like([-24.0], dtype=dtypes.float16)),
  ],
  "log10": [
    ("Tensor([1.0, 0.0, -0.0, -1.0, inf, nan]).log10()", [0.0, -inf, -inf, nan, inf, nan]),
    ("Tensor([1000, 1]).log10()", [3.0, 0.0]),
    ("Tensor([0.01]).double().log10()", like([-2.0], dtype=dtypes.float64, tolerance=1e-8)),
    ("Tensor([1e38]).log10()", [38.0]),
  ],
  "sin": [
    ("Tensor([0.0, -0.0, inf, nan]).sin()", [0.0, -0.0, nan, nan]), ("Tensor([1, 0]).sin()", [0.84147098, 0.0]),
    ("Tensor([1e22], dtype=dtypes.float64).sin()", [-0.8522008497671888]),
    ("Tensor([3.1415927]).sin()", like([-8.742278e-08], tolerance=1e-13)),
    ("Tensor([1e-40]).sin()", like([1e-40], tolerance=2e-45)),
  ],
  "cos": [
    ("Tensor([0.0, -0.0, inf, nan]).cos()", [1.0, 1.0, nan, nan]), ("Tensor([1, 0]).cos()", [0.54030231, 1.0]),
    ("Tensor([1e22], dtype=dtypes.float64).cos()", [0.5232147853951389]),
    ("Tensor([1.5707964]).cos()", like([-4.371139e-08], tolerance=1e-13)),
    ("x = Tensor([0.0]); x.cos().sum().gradient(x)", [like([0.0], tolerance=1e-6)]),
  ],
  "tan": [
    ("Tensor([0.0, -0.0, inf, nan]).tan()", [0.0, -0.0, nan, nan]), ("Tensor([1]).tan()", [1.5574077]),
    ("Tensor([1.5707964]).tan()", like([-22877332.0], tolerance=1e-6)),
    ("Tensor([1.0]).half().tan()", like([1.5574], dtype=dtypes.float16)),
  ],
  "asin": [
    ("Tensor([1.0, -1.0, 0.0, -0.0, 1.0001, nan]).asin()", [HALF_PI, -HALF_PI, 0.0, -0.0, nan, nan]),
    ("Tensor([1, 0]).asin()", [HALF_PI, 0.0]),
    ("Tensor([1e-20]).asin()", [1e-20]), ("Tensor([inf, -inf]).asin()", [nan, nan]), ("Tensor([0.5]).asin()", [pi / 6]),
    ("x = Tensor([1.0, -1.0, 0.0, 0.6, 1.5]); x.asin().sum().gradient(x)", [[inf, inf, 1.0, 1.25, nan]]),
  ],
  "acos": [
    ("Tensor([1.0, -1.0, 0.0, -0.0, -1.0001, nan]).acos()", [0.0, pi, HALF_PI, HALF_PI, nan, nan]),
    ("Tensor([-1]).acos()", [pi]),
    ("Tensor([0.99999994]).acos()", [3.4526698e-4]),
    ("Tensor([0.5]).double().acos()", like([pi / 3], dtype=dtypes.float64)),
    ("x = Tensor([1.0, -1.0, 0.0, 0.6, -1.5]); x.acos().sum().gradient(x)", [[-inf, -inf, -1.0, -1.25, nan]]),
  ],
  "atan": [
    ("Tensor([0.0, -0.0, inf, -inf, nan, 1.0]).atan()", [0.0, -0.0, HALF_PI, -HALF_PI, nan, pi / 4]),
    ("Tensor([-1]).atan()", [-pi / 4]),
    ("Tensor([1e-40, 1e38]).atan()", like([1e-40, HALF_PI], tolerance=2e-7)),
    ("x = Tensor([0.0, 1.0]); x.atan().sum().gradient(x)", [[1.0, 0.5]]),
  ],
  "sinh": [
    ("Tensor([0.0, -0.0, inf, -inf, nan]).sinh()", [0.0, -0.0, inf, -inf, nan]),
    ("Tensor([89.0, 90.0]).sinh()", [2.2448061e38, inf]),
    ("Tensor([1e-20]).sinh()", [1e-20]), ("Tensor([1]).sinh()", [1.1752012]),
    ("x = Tensor([0.0]); x.sinh().sum().gradient(x)", [[1.0]]),
  ],
  "cosh": [
    ("Tensor([0.0, -0.0, inf, -inf, nan]).cosh()", [1.0, 1.0, inf, inf, nan]),
    ("Tensor([-89.0, 90.0]).cosh()", [2.2448061e38, inf]),
    ("Tensor([1]).cosh()", [1.5430806]),
    ("x = Tensor([0.0]); x.cosh().sum().gradient(x)", [like([0.0], tolerance=1e-6)]),
  ],
  "tanh": [
    ("Tensor([0.0, -0.0, inf, -inf, nan, 1e-20]).tanh()", [0.0, -0.0, 1.0, -1.0, nan, 1e-20]),
    ("Tensor([1, -20]).tanh()", [0.76159416, -1.0]),
    ("Tensor([0.5]).bfloat16().tanh()", like([0.462], dtype=dtypes.bfloat16)),
    ("x = Tensor([0.0, 100.0]); x.tanh().sum().gradient(x)", [[1.0, 0.0]]),
  ],
  "asinh": [
    ("Tensor([0.0, -0.0, inf, -inf, nan]).asinh()", [0.0, -0.0, inf, -inf, nan]),
    ("Tensor([1e-20, -1e-20]).asinh()", [1e-20, -1e-20]),
    ("x = Tensor([1e-7, -1e-5, 0.0]); x.asinh().sum().gradient(x)", [[1.0, 1.0, 1.0]]),
    ("Tensor([3e38, -3e38]).asinh()", [89.289994, -89.289994]),
    ("Tensor([1]).asinh()", [0.88137359]),
  ],
  "acosh": [
    ("Tensor([1.0, 0.99, inf, -inf, nan]).acosh()", [0.0, nan, inf, nan, nan]), ("Tensor([3e38]).acosh()", [89.289994]),
    ("Tensor([2, 1]).acosh()", [1.3169579, 0.0]), ("Tensor([1.0000001]).acosh()", [4.8828122e-4]),
  ],
  "atanh": [
    ("Tensor([0.0, -0.0, 1.0, -1.0, 1.1, nan]).atanh()", [0.0, -0.0, inf, -inf, nan, nan]),
    ("Tensor([1e-20]).atanh()", [1e-20]),
    ("Tensor([0.5]).atanh()", [0.54930614]), ("Tensor([0.99999994]).atanh()", [8.664339]),
    ("x = Tensor([1e-7, -1e-5, 0.0]); x.atanh().sum().gradient(x)", [[1.0, 1.0, 1.0]]),
  ],
  "erf": [
    ("Tensor([0.0, -0.0, inf, -inf, nan]).erf()", [0.0, -0.0, 1.0, -1.0, nan]),
    ("Tensor([1, -10]).erf()", [0.84270079, -1.0]),
    ("Tensor([1e-20]).erf()", [1.1283792e-20]), ("x = Tensor([0.0]); x.erf().sum().gradient(x)", [[1.1283792]]),
  ],
  "lerp": [
    ("Tensor([-60000.0]).half().lerp(Tensor([60000.0]).half(), 0.75)", like([30000.0], dtype=dtypes.float16)),
    ("Tensor([-60000.0]).half().lerp(Tensor([60000.0]).half(), Tensor([0.75]))", like([30000.0], dtype=dtypes.float32)),
    ("Tensor([1e8, -inf]).lerp(Tensor([0.1, 1.0]), 1)", [0.1, nan]), ("Tensor([1.0]).lerp(Tensor([3.0]), 0)", [1.0]),
    ("Tensor([0.0]).lerp(Tensor([10.0]), Tensor([[0.25], [0.75], [-1.0], [2.0]]))", [[2.5], [7.5], [-10.0], [20.0]]),
    ("Tensor([1.0]).lerp(Tensor([nan]), 0.0)", [nan]), ("Tensor([1.0, 2.0]).lerp(Tensor([1.0, 2.0, 3.0]), 0.5)",
                                                        raises(ShapeError, "(3,)")),
    ("Tensor([4.0]).half().lerp(Tensor([8.0]).half(), 0.5)", like([6.0], dtype=dtypes.float16)),
  ],
  "logaddexp": [
    ("Tensor([inf, -inf, inf, nan, -inf]).logaddexp(Tensor([inf, -inf, -inf, 0.0, 2.0]))", [inf, -inf, inf, nan, 2.0]),
    ("Tensor([1000.0, -1000.0]).logaddexp(Tensor([1000.0, -1000.0]))", [1000.6931, -999.30685]),
    ("Tensor([0]).logaddexp(0)", [0.69314718]),
    ("Tensor([[0.0], [100.0]]).logaddexp(Tensor([0.0]))", [[0.69314718], [100.0]]),
    ("x = Tensor([0.0, -15.0]); x.logaddexp(0.0).sum().gradient(x)", [[0.5, 3.0590223e-7]]),
    ("x = Tensor([0.0]); y = Tensor([0.0]); x.logaddexp(y).sum().gradient(x, y)", [[0.5], [0.5]]),
  ],
}
