"""Edge cases of losses: certain predictions, ignored classes, reductions, weights, smoothing."""
from math import inf, log, nan

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, ShapeError

LN2 = log(2)

EDGES: dict[str, list[Case]] = {
  "binary_crossentropy": [
    ("Tensor([0.0, 1.0, 0.0, 1.0]).binary_crossentropy(Tensor([0.0, 1.0, 1.0, 0.0]), 'none')",
     [0.0, 0.0, 100.0, 100.0]),
    ("Tensor([0.5, 0.5]).binary_crossentropy(Tensor([1.0, 0.0]))", LN2),
    ("Tensor([0.5, 0.5]).binary_crossentropy(Tensor([1.0, 0.0]), 'sum')", 2 * LN2),
    ("Tensor([0.25]).binary_crossentropy(Tensor([0.5]))", (4 * LN2 - log(3)) / 2),
    ("Tensor([nan]).binary_crossentropy(Tensor([1.0]), reduction='none')", [nan]),
    ("Tensor([0.5]).binary_crossentropy(Tensor([1]))", LN2), ("Tensor([]).binary_crossentropy(Tensor([]))", nan),
    ("Tensor([]).binary_crossentropy(Tensor([]), 'sum')", 0.0),
    ("Tensor([0.5]).binary_crossentropy(Tensor([1.0]), 'max')", raises(ArgumentError, "reduction is one of")),
    ("Tensor([0.5]).binary_crossentropy(1.0)", raises(ArgumentError, "wants a Tensor")),
    ("x = Tensor([0.0, 0.5]); x.binary_crossentropy(Tensor([1.0, 1.0]), 'sum').gradient(x)", [[-1e12, -2.0]]),
  ],
  "binary_crossentropy_logits": [
    ("Tensor([1000.0, -1000.0, 1000.0, -1000.0]).binary_crossentropy_logits(Tensor([0.0, 1.0, 1.0, 0.0]), 'none')",
     [1000.0, 1000.0, 0.0, 0.0]),
    ("Tensor([0.0, 0.0]).binary_crossentropy_logits(Tensor([1.0, 0.0]))", LN2),
    ("Tensor([0.0, 0.0]).binary_crossentropy_logits(Tensor([1.0, 0.0]), 'sum', pos_weight=Tensor([3.0, 3.0]))",
     4 * LN2),
    ("Tensor([0.0]).half().binary_crossentropy_logits(Tensor([1.0]).half())", like(LN2, dtype=dtypes.float16)),
    ("Tensor([0.0]).binary_crossentropy_logits(Tensor([1.0]), 'average')",
     raises(ArgumentError, "reduction is one of")),
    ("x = Tensor([1000.0, 0.0]); x.binary_crossentropy_logits(Tensor([0.0, 1.0]), 'sum').gradient(x)", [[1.0, -0.5]]),
  ],
  "sparse_categorical_crossentropy": [
    ("Tensor([[0.0, 0.0], [0.0, 100.0]]).sparse_categorical_crossentropy(Tensor([0, -1]))", LN2),
    ("Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([-1]))", nan),
    ("Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([1]).half())",
     raises(ArgumentError, "classes are integers, not dtypes.float16")),
    ("Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([-1]), reduction='sum')", like(0.0, tolerance=1e-6)),
    ("Tensor([[0.0, 1000.0], [0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([0, 1]), ignore_index=1, "
     "reduction='none')",
     like([1000.0, 0.0], tolerance=1e-6)),
    ("Tensor([[0.0, -inf]]).sparse_categorical_crossentropy(Tensor([0]))", like(0.0, tolerance=1e-6)),
    ("Tensor([[math.log(3), 0.0]]).sparse_categorical_crossentropy(Tensor([0]), label_smoothing=1.0)",
     (4 * LN2 - log(3)) / 2),
    ("Tensor([0.0, 0.0]).sparse_categorical_crossentropy(Tensor(1))", LN2),
    ("Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([[0]]))", raises(ShapeError, "drop the last axis")),
    ("Tensor([[0.0, 0.0]]).sparse_categorical_crossentropy(Tensor([0]), label_smoothing=1.5)",
     raises(ArgumentError, "fraction of 1")),
  ],
  "cross_entropy": [
    ("Tensor([[1000.0, 0.0]]).cross_entropy(Tensor([1]))", 1000.0),
    ("Tensor([[1000.0, 0.0]]).cross_entropy(Tensor([0]))", like(0.0, tolerance=1e-6)),
    ("Tensor([0.0, 0.0]).cross_entropy(Tensor(1))", LN2), ("Tensor([[0.0, 0.0]]).cross_entropy(Tensor([[0.5, 0.5]]))",
                                                           LN2),
    ("Tensor([[math.log(3), 0.0]]).cross_entropy(Tensor([0]), label_smoothing=1)", (4 * LN2 - log(3)) / 2),
    ("Tensor([[math.log(3), 0.0]]).cross_entropy(Tensor([[1.0, 0.0]]), label_smoothing=1)", (4 * LN2 - log(3)) / 2),
    ("Tensor([[[0.0, 0.0], [0.0, 1000.0]]]).cross_entropy(Tensor([[0, 0]]), 'none')", [[LN2, 1000.0]]),
    ("Tensor([[0.0, 0.0], [0.0, 0.0]]).cross_entropy(Tensor([0, 1]), 'sum')", 2 * LN2),
    ("Tensor([[0.0, 0.0]]).cross_entropy(Tensor([7]))", like(0.0, tolerance=1e-6)),
    ("Tensor.zeros(0, 2).cross_entropy(Tensor([]).int())", nan),
    ("Tensor([[-inf, -inf]]).cross_entropy(Tensor([0]))", nan),
    ("Tensor([[0.0, 0.0]]).cross_entropy(Tensor([0.0]))", raises(ArgumentError, "classes are integers")),
    ("Tensor([[0.0, 0.0]]).cross_entropy(Tensor([0, 1]))", raises(ShapeError, "drop axis 1")),
    ("Tensor(0.0).cross_entropy(Tensor(0))", raises(ShapeError, "has no axes")),
    ("Tensor([[0.0]]).cross_entropy(Tensor([0]), 'max')", raises(ArgumentError, "reduction is one of")),
    ("x = Tensor([[0.0, 0.0]]); x.cross_entropy(Tensor([0])).gradient(x)", [[[-0.5, 0.5]]]),
  ],
  "nll_loss": [
    ("Tensor([[-1.0, -2.0]]).nll_loss(Tensor([[1, 0]]))", raises(ShapeError, "drop axis 1")),
    ("Tensor([[-1.0, -2.0]]).nll_loss(Tensor([1]), Tensor([1.0]))", raises(ShapeError, "do not fit 2 classes")),
    ("Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([0, 1]))", 2.5),
    ("Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([0, 1]), Tensor([1.0, 3.0]))", 3.25),
    ("Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([0, 1]), ignore_index=1)", 1.0),
    ("Tensor([-1.0, -2.0]).nll_loss(Tensor(1))", 2.0),
    ("Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([0, -100]), Tensor([2.0, 3.0]), ignore_index=-100, "
     "reduction='none')",
     like([2.0, 0.0], tolerance=1e-6)),
    ("Tensor([[-1.0, -2.0]]).nll_loss(Tensor([0]), ignore_index=0)", nan),
    ("Tensor([[[-1.0], [-2.0]]]).nll_loss(Tensor([[1]]), reduction='none')", [[2.0]]),
    ("Tensor([[-1.0, -inf]]).nll_loss(Tensor([1]), reduction='sum')", inf),
    ("Tensor([[-1.0]]).nll_loss(Tensor([0]), reduction='no')", raises(ArgumentError, "reduction is one of")),
    ("Tensor([[-1.0]]).nll_loss([0])", raises(ArgumentError, "wants a Tensor")),
    ("Tensor([[-1.0]]).nll_loss(Tensor([0.0]))",
     raises(ArgumentError, "classes are integers, not dtypes.float32; cast them")),
  ],
}
