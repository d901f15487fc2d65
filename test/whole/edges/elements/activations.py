"""Edge cases of activations: far tails, infinities, zeros of both signs, integers, gradients at kinks."""
from math import inf, nan

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError

EDGES: dict[str, list[Case]] = {
  "relu": [
    ("Tensor([-inf, -1.0, -0.0, 0.0, inf, nan]).relu()", [0.0, 0.0, -0.0, 0.0, inf, nan]),
    ("Tensor([-2147483648, 5]).relu()", [0, 5]),
    ("Tensor([0, 255], dtype=dtypes.uint8).relu()", like([0, 255], dtype=dtypes.uint8)),
    ("Tensor([True, False]).relu()", [True, False]),
    ("x = Tensor([-1.0, 0.0, 2.0, nan]); x.relu().sum().gradient(x)", [[0.0, 0.0, 1.0, 0.0]]),
    ("Tensor.zeros(0, 2).relu()", like([], shape=(0, 2))),
  ],
  "sigmoid": [
    ("Tensor([-inf, -200.0, 0.0, 200.0, inf, nan]).sigmoid()", [0.0, 0.0, 0.5, 1.0, 1.0, nan]),
    ("Tensor([0, 2]).sigmoid()", [0.5, 0.88079708]),
    ("Tensor([-20.0]).sigmoid()", [2.0611537e-9]),
    ("Tensor([-10.0]).half().sigmoid()", like([4.5399e-5], dtype=dtypes.float16)),
    ("x = Tensor([-200.0, 0.0, 200.0]); x.sigmoid().sum().gradient(x)", [[0.0, 0.25, 0.0]]),
  ],
  "logsigmoid": [
    ("Tensor([-inf, -1000.0, 0.0, 1000.0, inf, nan]).logsigmoid()", [-inf, -1000.0, -0.69314718, -0.0, -0.0, nan]),
    ("Tensor([10.0]).logsigmoid()", [-4.5398899e-5]), ("Tensor([0]).logsigmoid()", [-0.69314718]),
    ("x = Tensor([-1000.0, 0.0, 1000.0]); x.logsigmoid().sum().gradient(x)", [like([1.0, 0.5, 0.0], tolerance=1e-6)]),
  ],
  "hardsigmoid": [
    ("Tensor([-3.0, 3.0]).half().hardsigmoid()", like([0.0, 1.0], dtype=dtypes.float16)),
    ("Tensor([-inf, -3.0, 0.0, 3.0, inf, nan]).hardsigmoid()", [0.0, 0.0, 0.5, 1.0, 1.0, nan]),
    ("Tensor([1.0]).hardsigmoid(alpha=1, beta=-1)", [0.0]),
    ("Tensor([0, 6]).hardsigmoid()", [0.5, 1.0]), ("x = Tensor([-4.0, 0.0, 4.0]); x.hardsigmoid().sum().gradient(x)",
                                                   [[0.0, 1 / 6, 0.0]]),
  ],
  "hardswish": [
    ("Tensor([60000.0, -60000.0]).half().hardswish()", like([60000.0, -0.0], dtype=dtypes.float16)),
    ("Tensor([-4.0, -3.0, 0.0, 3.0, inf, nan]).hardswish()", [-0.0, -0.0, 0.0, 3.0, inf, nan]),
    ("Tensor([-1.5]).hardswish()", [-0.375]),
    ("Tensor([3, 6]).hardswish()", [3.0, 6.0]), ("x = Tensor([-4.0, 0.0, 4.0]); x.hardswish().sum().gradient(x)",
                                                 [[0.0, 0.5, 1.0]]),
  ],
  "hardtanh": [
    ("Tensor([-inf, -1.0, -0.0, 1.0, inf, nan]).hardtanh()", [-1.0, -1.0, -0.0, 1.0, 1.0, nan]),
    ("Tensor([-5.0, 5.0]).hardtanh(-2, 3)", [-2.0, 3.0]),
    ("Tensor([-5, 0, 5]).hardtanh()", [-1, 0, 1]), ("x = Tensor([-1.0, 0.5, 1.0]); x.hardtanh().sum().gradient(x)",
                                                    [[0.0, 1.0, 0.0]]),
  ],
  "relu6": [
    ("Tensor([-inf, -1.0, 3.0, 6.0, inf, nan]).relu6()", [0.0, 0.0, 3.0, 6.0, 6.0, nan]),
    ("Tensor([-1, 7, 6]).relu6()", [0, 6, 6]),
    ("Tensor([7.0]).half().relu6()", like([6.0], dtype=dtypes.float16)),
    ("x = Tensor([0.0, 3.0, 6.0]); x.relu6().sum().gradient(x)", [[0.0, 1.0, 0.0]]),
  ],
  "silu": [
    ("Tensor([-1000.0, -0.0, 0.0, 1000.0, inf, nan]).silu()", [-0.0, -0.0, 0.0, 1000.0, inf, nan]),
    ("Tensor([1]).silu()", [0.73105858]),
    ("Tensor([-20.0]).silu()", [-4.1223072e-8]), ("x = Tensor([0.0]); x.silu().sum().gradient(x)", [[0.5]]),
  ],
  "swish": [
    ("Tensor([-1000.0, 0.0, 1000.0]).swish()", [-0.0, 0.0, 1000.0]), ("Tensor(1).swish()", 0.73105858),
    ("Tensor([1.0]).half().swish()", like([0.731], dtype=dtypes.float16)),
    ("Tensor([]).swish()", like([], dtype=dtypes.float32)),
  ],
  "quick_gelu": [
    ("Tensor([-1000.0, -0.0, 0.0, 1000.0, inf, nan]).quick_gelu()", [-0.0, -0.0, 0.0, 1000.0, inf, nan]),
    ("Tensor([1]).quick_gelu()", [0.84579577]),
    ("Tensor([1.0]).bfloat16().quick_gelu()", like([0.846], dtype=dtypes.bfloat16)),
    ("x = Tensor([0.0]); x.quick_gelu().sum().gradient(x)", [[0.5]]),
  ],
  "mish": [
    ("Tensor([-1000.0, -0.0, 0.0, 1000.0, inf, nan]).mish()", [-0.0, -0.0, 0.0, 1000.0, inf, nan]),
    ("Tensor([1]).mish()", [0.86509839]),
    ("Tensor([-20.0]).mish()", [-4.1223072e-8]), ("x = Tensor([0.0]); x.mish().sum().gradient(x)", [[0.6]]),
  ],
  "softsign": [
    ("Tensor([-0.0, 1.0, -3.0, nan]).softsign()", [-0.0, 0.5, -0.75, nan]), ("Tensor([1, -1]).softsign()", [0.5, -0.5]),
    ("Tensor([3e38, -3e38]).softsign()", [1.0, -1.0]), ("x = Tensor([0.0, 1.0]); x.softsign().sum().gradient(x)",
                                                        [[1.0, 0.25]]),
  ],
  "leaky_relu": [
    ("Tensor([-inf, -100.0, -0.0, 0.0, inf, nan]).leaky_relu()", [-inf, -1.0, -0.0, 0.0, inf, nan]),
    ("Tensor([-2.0, 2.0]).leaky_relu(neg_slope=-1)", [2.0, 2.0]), ("Tensor([-4, 4]).leaky_relu(0.5)", [-2.0, 4.0]),
    ("x = Tensor([-1.0, 0.0, 1.0]); x.leaky_relu().sum().gradient(x)", [[0.01, 0.01, 1.0]]),
  ],
  "elu": [
    ("Tensor([-inf, -1000.0, -0.0, 0.0, inf, nan]).elu()", [-1.0, -1.0, -0.0, 0.0, inf, nan]),
    ("Tensor([-1e-20]).elu()", [-1e-20]),
    ("Tensor([-1.0, 2.0]).elu(alpha=2)", [-1.2642411, 2.0]), ("Tensor([-1, 2]).elu()", [-0.63212056, 2.0]),
    ("x = Tensor([-1000.0, 0.0, 1000.0]); x.elu().sum().gradient(x)", [[0.0, 1.0, 1.0]]),
    ("x = Tensor([-20.0, -1.0, -0.5]); x.elu().sum().gradient(x)", [[2.0611536e-9, 0.36787944, 0.60653066]]),
  ],
  "celu": [
    ("Tensor([-inf, -1000.0, 0.0, inf, nan]).celu()", [-1.0, -1.0, 0.0, inf, nan]),
    ("Tensor([-2.0, 2.0]).celu(2)", [-1.2642411, 2.0]),
    ("Tensor([-1]).celu()", [-0.63212056]), ("Tensor([-20.0]).celu(-1)", [-485165194.0]),
    ("Tensor([1.0]).celu(0)", raises(ArgumentError, "divides by alpha")),
  ],
  "selu": [
    ("Tensor([-inf, 0.0, 1.0, inf, nan]).selu()", [-1.7580993, 0.0, 1.0507010, inf, nan]),
    ("Tensor([-1, 2]).selu()", [-1.1113307, 2.1014020]),
    ("Tensor([-1.0, 1.0]).selu(1, 1)", [-0.63212056, 1.0]),
    ("x = Tensor([1.0]); x.selu().sum().gradient(x)", [[1.0507010]]),
  ],
  "softplus": [
    ("Tensor([-inf, -1000.0, 0.0, 1000.0, inf, nan]).softplus()", [0.0, 0.0, 0.69314718, 1000.0, inf, nan]),
    ("Tensor([-20.0]).softplus()", [2.0611537e-9]),
    ("Tensor([0.0, 1000.0]).softplus(beta=2)", [0.34657359, 1000.0]), ("Tensor([0]).softplus()", [0.69314718]),
    ("Tensor([1.0]).softplus(0)", raises(ArgumentError, "divides by beta")),
    ("x = Tensor([-1000.0, 0.0, 1000.0]); x.softplus().sum().gradient(x)", [[0.0, 0.5, 1.0]]),
    ("x = Tensor([-15.0, 15.0]); x.softplus().sum().gradient(x)", [[3.0590223e-7, 0.9999997]]),
  ],
  "gelu": [
    ("Tensor([-1000.0, -0.0, 0.0, 1000.0, inf, nan]).gelu()", [-0.0, -0.0, 0.0, 1000.0, inf, nan]),
    ("Tensor([-1000.0, 0.0, 1.0, inf, nan]).gelu('none')", [-0.0, 0.0, 0.84134475, inf, nan]),
    ("Tensor([1]).gelu()", [0.84119199]),
    ("Tensor([1.0]).gelu('sigmoid')", raises(ArgumentError, "'tanh' or 'none'")),
    ("x = Tensor([0.0]); x.gelu().sum().gradient(x)", [[0.5]]),
    ("x = Tensor([1e20, -1e20, 3e38, -3e38]); x.gelu().sum().gradient(x)", [[1.0, 0.0, 1.0, 0.0]]),
    ("x = Tensor([1e200, -1e200]).double(); x.gelu().sum().gradient(x)", [like([1.0, 0.0], dtype=dtypes.float64)]),
  ],
}
