"""Edge cases of gradients: tensors that are not reached, detached tensors, seeds, types, sums over repeated elements,
gradients of gradients."""
from math import nan

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, GradientError, ShapeError

NONE = 1e-6   # zeros of either sign

EDGES: dict[str, list[Case]] = {
  "gradient": [
    ("x = Tensor(3.0); x.gradient(x)", [1.0]), ("x = Tensor(3.0); y = (x ** 3).gradient(x)[0]; y.gradient(x)", [18.0]),
    ("x = Tensor([1.0, 2.0]); (x * 3).gradient(x, gradient=Tensor([1.0, 10.0]))", [[3.0, 30.0]]),
    ("x = Tensor([[2.0]]); (x * x).gradient(x)", [[[4.0]]]),
    ("x = Tensor([]); x.sum().gradient(x)", [like([], dtypes.float32)]),
    ("x = Tensor([1.0, 2.0]).half(); x.sum().gradient(x)", [like([1.0, 1.0], dtypes.float16)]),
    ("x = Tensor([1.0, 2.0]); y = Tensor([[1.0], [2.0], [3.0]]); (x * y).sum().gradient(x, y)",
     [[6.0, 6.0], [[3.0], [3.0], [3.0]]]),
    ("x = Tensor([1.0, 2.0]); x[Tensor([0, 0, 1])].sum().gradient(x)", [[2.0, 1.0]]),
    ("x = Tensor([1.0]); x.expand(3).sum().gradient(x)", [[3.0]]),
    ("x = Tensor([1.5]); x.round().sum().gradient(x)", [like([0.0], tolerance=NONE)]),
    ("x = Tensor([1.0, 4.0]); (x > 2).where(x, 0).sum().gradient(x)", [[0.0, 1.0]]),
    ("x = Tensor([0.0, 4.0]); x.ne(0).where(x.sqrt(), 0).sum().gradient(x)", [[nan, 0.25]]),
    ("x = Tensor([2.0]); (x * x.detach()).sum().gradient(x)", [[2.0]]),
    ("x = Tensor([2.0]); y = x * 3; (y * y).sum().gradient(y, x)", [[12.0], [36.0]]),
    ("x = Tensor([-2.0, 0.0]); (x * x).sqrt().sum().gradient(x)", [[-1.0, nan]]),
    ("x = Tensor([1.0, 2.0]); (x * 2).gradient(x)", raises(GradientError, "shape is (2,)")),
    ("x = Tensor([1, 2]); x.sum().float().gradient(x)", raises(GradientError, "only float types do")),
    ("x = Tensor([1.0]); x.int().sum().gradient(x)", raises(GradientError, "cannot be differentiated")),
    ("x = Tensor([1.0]); Tensor([2.0]).sum().gradient(x)", raises(GradientError, "was not computed from the target")),
    ("x = Tensor([1.0]); (x * 2).gradient(x, gradient=Tensor([1.0, 2.0]))", raises(ShapeError, "(2,)")),
    ("x = Tensor([1.0]); x.sum().gradient([1.0])", raises(ArgumentError, "wants Tensors")),
  ],
  "backward": [
    ("x = Tensor([1.0]); y = (x * 2).sum().backward(); z = (x * 3).sum().backward(); x.grad", [5.0]),
    ("x = Tensor([1.0], requires_grad=False); y = Tensor([2.0], requires_grad=True); z = (x * y).sum().backward(); "
     "(x.grad, y.grad)", (None, [1.0])),
    ("x = Tensor([1.0]); y = Tensor([2.0], requires_grad=True); z = (x * y).sum().backward(); (x.grad, y.grad)",
     (None, [1.0])),
    ("x = Tensor([1.0, 2.0]); y = (x * x).backward(Tensor([1.0, 10.0])); x.grad", [2.0, 40.0]),
    ("x = Tensor([[5.0]]); y = x.square().backward(); x.grad", [[10.0]]),
    ("x = Tensor([1.0, inf]); y = (x * 0).sum().backward(); x.grad", [0.0, 0.0]),
    ("x = Tensor([1.0, 2.0]); x.backward()", raises(GradientError, "shape is (2,)")),
    ("Tensor([1]).sum().backward()", raises(GradientError, "cannot be differentiated")),
    ("x = Tensor([1.0], requires_grad=False); x.sum().backward()",
     raises(GradientError, "no tensor that wants a gradient")),
    ("x = Tensor([1.0, 2.0]); (x * 2).backward(Tensor([1.0, 2.0, 3.0]))", raises(ShapeError, "(3,)")),
  ],
  "grad": [
    ("Tensor([1.0]).grad", None), ("x = Tensor([1.0]); y = x.sum().backward(); x.grad.shape", (1,)),
    ("x = Tensor([1.0]).half(); x.requires_grad = True; y = x.sum().backward(); x.grad", like([1.0], dtypes.float16)),
    ("x = Tensor([2.0]); y = (x * x).sum().backward(); x.grad = None; z = x.sum().backward(); x.grad", [1.0]),
  ],
  "dropout": [
    ("Tensor([1.0, nan]).dropout()", [1.0, nan]), ("Tensor.train()(lambda: Tensor([1.0, nan]).dropout(0))()",
                                                   [1.0, nan]),
    ("Tensor.train()(lambda: Tensor([1.0, 5.0]).dropout(1))()", [0.0, 0.0]),
    ("Tensor.train()(lambda: Tensor.ones(64).dropout(0.75).max())()", 4.0),
    ("Tensor.train()(lambda: Tensor.ones(64).dropout(0.75).min())()", 0.0),
    ("Tensor.train()(lambda: Tensor([]).dropout())()", like([], dtypes.float32)),
    ("Tensor.train()(lambda: Tensor.ones(4).half().dropout(0.5).dtype)()", dtypes.float16),
    ("Tensor([1.0]).dropout(1.5)", raises(ArgumentError, "probability")),
    ("x = Tensor.ones(64); y = Tensor.train()(lambda: x.dropout(0.5))(); (y.sum().gradient(x)[0] == y).all()", True),
  ],
}
