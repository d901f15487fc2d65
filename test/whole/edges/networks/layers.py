"""Edge cases of layers: no inputs, no bias, types, normalization of constants, statistics of a batch, arguments that do
not fit."""
from math import tanh

from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, ShapeError


EDGES: dict[str, list[Case]] = {
  "nn.Linear": [
    ("l = nn.Linear(2, 1); l.weight = Tensor([[1.0, 10.0]]); l.bias = Tensor([5.0]); l(Tensor([[1.0, 2.0], [0.0, "
     "0.0]]))", [[26.0], [5.0]]),
    ("l = nn.Linear(2, 1); l.weight = Tensor([[1.0, 10.0]]); l.bias = Tensor([5.0]); l(Tensor([1.0, 2.0]))", [26.0]),
    ("nn.Linear(2, 1, bias=False).bias", None),
    ("l = nn.Linear(0, 2, bias=False); l(Tensor.zeros(1, 0))", [[0.0, 0.0]]),
    ("nn.Linear(3, 2)(Tensor.zeros(0, 3))", like([], shape=(0, 2))),
    ("nn.Linear(2, 1)(Tensor([1.0]))", raises(ShapeError, "cannot matmul (1,) and (2, 1)")),
    ("nn.Linear(2, 1)([1.0, 2.0])", raises(ArgumentError, "Linear is called with a Tensor")),
    ("nn.Linear(2.5, 1)", raises(ArgumentError, "in_features is a whole number")),
    ("nn.Linear(2, -1)", raises(ArgumentError, "out_features is -1")),
  ],
  "nn.Conv1d": [
    ("l = nn.Conv1d(1, 1, 2, padding='same', bias=False); l.weight = Tensor([[[1.0, 10.0]]]); l(Tensor([[[1.0, "
     "2.0]]]))", [[[21.0, 2.0]]]),
    ("l = nn.Conv1d(1, 1, 2, padding='valid', bias=False); l.weight = Tensor([[[1.0, 10.0]]]); l(Tensor([[[1.0, "
     "2.0]]]))", [[[21.0]]]),
    ("l = nn.Conv1d(2, 2, 1, groups=2); l.weight, l.bias = Tensor([[[2.0]], [[3.0]]]), Tensor([0.5, 0.0]); "
     "l(Tensor([[[1.0], [1.0]]]))",
     [[[2.5], [3.0]]]),
    ("nn.Conv1d(1, 1, 3, padding='best')", raises(ArgumentError, "'same' or 'valid', not 'best'")),
    ("nn.Conv1d(1, 1, 3, stride=2, padding='same')", raises(ArgumentError, "needs stride 1")),
    ("nn.Conv1d(3, 2, 1, groups=2)", raises(ArgumentError, "multiples of groups=2")),
  ],
  "nn.Conv2d": [
    ("l = nn.Conv2d(1, 1, (1, 2), bias=False); l.weight = Tensor([[[[1.0, 10.0]]]]); l(Tensor([[[[1.0, 2.0], [3.0, "
     "4.0]]]]))", [[[[21.0], [43.0]]]]),
    ("l = nn.Conv2d(1, 1, 1, stride=2, bias=False); l.weight = Tensor([[[[1.0]]]]); l(Tensor([[[[1.0, 2.0], [3.0, "
     "4.0]]]]))", [[[[1.0]]]]),
    ("nn.Conv2d(1, 3, 2)(Tensor.zeros(0, 1, 4, 4))", like([], shape=(0, 3, 3, 3))),
    ("nn.Conv2d(1, 1, (1, 2, 3))", raises(ArgumentError, "each of 2 axes")),
    ("nn.Conv2d(1, 1, 0)", raises(ArgumentError, "kernel_size is 0")),
    ("nn.Conv2d(2, 1, 1)(Tensor.zeros(1, 3, 1, 1))", raises(ShapeError, "the input has 3 channels")),
  ],
  "nn.ConvTranspose1d": [
    ("l = nn.ConvTranspose1d(1, 1, 2, stride=2, bias=False); l.weight = Tensor([[[1.0, 10.0]]]); l(Tensor([[[1.0, "
     "2.0]]]))",
     [[[1.0, 10.0, 2.0, 20.0]]]),
    ("l = nn.ConvTranspose1d(1, 1, 2, padding=1, bias=False); l.weight = Tensor([[[1.0, 10.0]]]); l(Tensor([[[1.0, "
     "2.0]]]))", [[[12.0]]]),
    ("nn.ConvTranspose1d(2, 4, 3, groups=2).weight.shape", (2, 2, 3)),
    ("nn.ConvTranspose1d(1, 3, 2, groups=2)", raises(ArgumentError, "multiples of groups=2")),
  ],
  "nn.ConvTranspose2d": [
    ("nn.ConvTranspose2d(1, 2, 3, stride=2, output_padding=1)(Tensor.zeros(1, 1, 2, 2)).shape", (1, 2, 6, 6)),
    ("nn.ConvTranspose2d(1, 2, 3, bias=False).bias", None),
    ("l = nn.ConvTranspose2d(1, 1, (1, 2)); l.weight, l.bias = Tensor([[[[1.0, 2.0]]]]), Tensor([1.0]); "
     "l(Tensor([[[[3.0]]]]))", [[[[4.0, 7.0]]]]),
    ("nn.ConvTranspose2d(1, 1, (2,))", raises(ArgumentError, "each of 2 axes")),
  ],
  "nn.BatchNorm": [
    ("nn.BatchNorm(1, eps=0.0)(Tensor([[3.0], [5.0]]))", [[3.0], [5.0]]),
    ("Tensor.train()(lambda: nn.BatchNorm(1, eps=0.0)(Tensor([[3.0], [5.0]])))()", [[-1.0], [1.0]]),
    ("l = nn.BatchNorm(1); Tensor.train()(l)(Tensor([[3.0], [5.0]])); (l.running_mean, l.running_var, "
     "l.num_batches_tracked)", ([0.4], [1.1], 1)),
    ("l = nn.BatchNorm(1, momentum=1.0); Tensor.train()(l)(Tensor([[3.0]])); (l.running_mean, l.running_var)",
     ([3.0], [0.0])),
    ("nn.BatchNorm(1, eps=0.0, track_running_stats=False)(Tensor([[3.0], [5.0]]))", [[-1.0], [1.0]]),
    ("nn.BatchNorm(1, affine=False).weight", None),
    ("Tensor.train()(lambda: nn.BatchNorm(1)(Tensor([[2.0], [2.0]])))()", [[0.0], [0.0]]),
    ("nn.BatchNorm(2)(Tensor([[1.0]]))", raises(ArgumentError, "must have 2 channels")),
    ("nn.BatchNorm(1)(Tensor([1.0]))", raises(ArgumentError, "does not fit a tensor of shape (1,)")),
  ],
  "nn.BatchNorm2d": [
    ("Tensor.train()(lambda: nn.BatchNorm2d(2, eps=0.0)(Tensor([[[[1.0, 3.0]], [[5.0, 9.0]]]])))()",
     [[[[-1.0, 1.0]], [[-1.0, 1.0]]]]),
    ("nn.BatchNorm2d(1, eps=3.0)(Tensor([[[[4.0]]]]))", [[[[2.0]]]]),
    ("nn.BatchNorm2d(1)(Tensor.zeros(0, 1, 2, 2))", like([], shape=(0, 1, 2, 2))),
    ("nn.BatchNorm2d(3)(Tensor.zeros(1, 2, 1, 1))", raises(ArgumentError, "must have 3 channels")),
  ],
  "nn.BatchNorm3d": [
    ("Tensor.train()(lambda: nn.BatchNorm3d(1, eps=0.0)(Tensor([[[[[1.0, 3.0]]]]])))()", [[[[[-1.0, 1.0]]]]]),
    ("nn.BatchNorm3d(1, eps=0.0)(Tensor([[[[[7.0]]]]]))", [[[[[7.0]]]]]),
    ("nn.BatchNorm3d(2).running_var", [1.0, 1.0]),
    ("nn.BatchNorm3d(1.5)", raises(ArgumentError, "sz is a whole number")),
  ],
  "nn.LayerNorm": [
    ("nn.LayerNorm(2, eps=0.0)(Tensor([[1.0, 3.0], [-5.0, 5.0]]))", [[-1.0, 1.0], [-1.0, 1.0]]),
    ("nn.LayerNorm((2, 1), eps=0.0)(Tensor([[[1.0], [3.0]]]))", [[[-1.0], [1.0]]]),
    ("nn.LayerNorm(2)(Tensor([7.0, 7.0]))", [0.0, 0.0]),
    ("l = nn.LayerNorm(2, eps=0.0); l.weight, l.bias = Tensor([2.0, 3.0]), Tensor([1.0, 1.0]); l(Tensor([1, 3]))",
     [-1.0, 4.0]),
    ("nn.LayerNorm(2, elementwise_affine=False).bias", None),
    ("nn.LayerNorm(2)(Tensor([1.0]))", raises(ArgumentError, "its last sizes must be those")),
  ],
  "nn.LayerNorm2d": [
    ("nn.LayerNorm2d(2, eps=0.0)(Tensor([[[[1.0, 5.0]], [[3.0, 9.0]]]]))", [[[[-1.0, -1.0]], [[1.0, 1.0]]]]),
    ("nn.LayerNorm2d(1)(Tensor([[[[5.0]]]]))", [[[[0.0]]]]),
    ("nn.LayerNorm2d(2)(Tensor.zeros(0, 2, 1, 1))", like([], shape=(0, 2, 1, 1))),
    ("nn.LayerNorm2d(2)(Tensor([1.0, 2.0]))", raises(ArgumentError, "wants images")),
  ],
  "nn.GroupNorm": [
    ("nn.GroupNorm(2, 2, eps=0.0)(Tensor([[[1.0, 3.0], [5.0, 9.0]]]))", [[[-1.0, 1.0], [-1.0, 1.0]]]),
    ("nn.GroupNorm(1, 2, eps=0.0)(Tensor([[1.0, 3.0]]))", [[-1.0, 1.0]]),
    ("l = nn.GroupNorm(1, 2, eps=0.0); l.bias = Tensor([10.0, 20.0]); l(Tensor([[[1.0], [3.0]]]))", [[[9.0], [21.0]]]),
    ("nn.GroupNorm(2, 3)", raises(ArgumentError, "do not make 2 groups")),
    ("nn.GroupNorm(1, 2)(Tensor([[1.0]]))", raises(ArgumentError, "they are axis 1")),
  ],
  "nn.InstanceNorm": [
    ("nn.InstanceNorm(2, eps=0.0)(Tensor([[[1.0, 3.0], [5.0, 9.0]]]))", [[[-1.0, 1.0], [-1.0, 1.0]]]),
    ("nn.InstanceNorm(1)(Tensor([[[4.0]]]))", [[[0.0]]]),
    ("nn.InstanceNorm(2, affine=False).weight", None),
    ("nn.InstanceNorm(2)(Tensor([1.0, 2.0]))", raises(ArgumentError, "InstanceNorm for 2 channels")),
  ],
  "nn.RMSNorm": [
    ("nn.RMSNorm(2, eps=0.0)(Tensor([[1.0, -7.0], [0.0, 2.0]]))", [[0.2, -1.4], [0.0, 1.4142135]]),
    ("nn.RMSNorm(2)(Tensor([0.0, 0.0]))", [0.0, 0.0]),
    ("nn.RMSNorm(2, eps=0.0)(Tensor([1, -7]))", like([0.2, -1.4], dtypes.float32)),
    ("nn.RMSNorm(2, eps=0.0, elementwise_affine=False)(Tensor([300.0, 300.0]).half())",
     like([1.0, 1.0], dtypes.float16)),
    ("nn.RMSNorm(2, eps=0.0, elementwise_affine=False)(Tensor([1.0, -7.0]).double())",
     like([0.2, -1.4], dtypes.float64)),
    ("nn.RMSNorm(1, eps=0.0)(Tensor([[-3.0]]))", [[-1.0]]),
    ("nn.RMSNorm(2)(Tensor([1.0, 2.0, 3.0]))", raises(ShapeError, "axis -1 is 3 and 2")),
    ("nn.RMSNorm('2')", raises(ArgumentError, "dim is a whole number")),
  ],
  "nn.Embedding": [
    ("l = nn.Embedding(2, 2); l.weight = Tensor([[1.0, 2.0], [3.0, 4.0]]); l(Tensor([[1, 0]]))",
     [[[3.0, 4.0], [1.0, 2.0]]]),
    ("l = nn.Embedding(2, 1); l.weight = Tensor([[5.0], [6.0]]); l(Tensor(1))", [6.0]),
    ("nn.Embedding(3, 2)(Tensor([], dtype=dtypes.int32))", like([], shape=(0, 2))),
    ("l = nn.Embedding(2, 1); l.weight = Tensor([[5.0], [6.0]]); l(Tensor([1], dtype=dtypes.uint8))", [[6.0]]),
    ("l = nn.Embedding(2, 1); l.weight = Tensor([[5.0], [6.0]]); l(Tensor([1, 1, 0])).sum().gradient(l.weight)",
     [[[1.0], [2.0]]]),
    ("nn.Embedding(2, 2)(Tensor([0.0]))", raises(ArgumentError, "indexed by integers")),
    ("nn.Embedding(2, 2)([1])", raises(ArgumentError, "called with a Tensor")),
  ],
  "nn.LSTMCell": [
    ("l = nn.LSTMCell(1, 1, bias=False); l.weight_ih = l.weight_hh = Tensor.zeros(4, 1); l(Tensor([[9.0]]), "
     "(Tensor([[0.0]]), Tensor([[2.0]])))",
     ([[tanh(1) / 2]], [[1.0]])),
    ("l = nn.LSTMCell(1, 1, bias=False); l.weight_ih, l.weight_hh = Tensor([[0.0], [0.0], [1.0], [0.0]]), "
     "Tensor.zeros(4, 1); l(Tensor([[1.0]]))",
     ([[tanh(tanh(1) / 2) / 2]], [[tanh(1) / 2]])),
    ("l = nn.LSTMCell(1, 1, bias=False); l.weight_ih, l.weight_hh = Tensor([[1e3], [0.0], [1e3], [1e3]]), "
     "Tensor.zeros(4, 1); l(Tensor([[1.0]]))",
     ([[tanh(1)]], [[1.0]])),
    ("[t.shape for t in nn.LSTMCell(3, 5)(Tensor.zeros(2, 3))]", [(2, 5), (2, 5)]),
    ("nn.LSTMCell(1, 1)(Tensor([0.0]))", raises(ArgumentError, "(batch, inputs)")),
    ("nn.LSTMCell(1, 1)(Tensor([[0.0]]), Tensor([[0.0]]))", raises(ArgumentError, "two Tensors")),
  ],
}
