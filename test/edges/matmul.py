"""Edge cases of products of matrices: no elements, vectors, broadcast batches, types, formulas, masks."""
from math import inf, nan

from edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, ShapeError

EDGES: dict[str, list[Case]] = {
  "dot": [
    ("Tensor([1, 2, 3]).dot(Tensor([4, 5, 6]))", 32), ("Tensor([[1, 2], [3, 4]]).dot(Tensor([1, 10]))", [21, 43]),
    ("Tensor([1, 10]).dot(Tensor([[1, 2], [3, 4]]))", [31, 42]), ("Tensor.zeros(2, 0).dot(Tensor.zeros(0, 3))", [[0.0] * 3] * 2),
    ("Tensor.zeros(0, 2).dot(Tensor.zeros(2, 3))", like([], shape=(0, 3))), ("Tensor([]).dot(Tensor([]))", 0.0),
    ("Tensor([100, 100], dtype=dtypes.int8).dot(Tensor([2, 2], dtype=dtypes.int8))", like(400, dtype=dtypes.int32)),
    ("Tensor([True, True]).dot(Tensor([True, True]))", like(2, dtype=dtypes.int32)), ("Tensor([inf, 1.0]).dot(Tensor([0.0, 1.0]))", nan),
    ("Tensor([300.0, -300.0]).half().dot(Tensor([300.0, 300.0]).half())", like(0.0, dtype=dtypes.float16)),
    ("Tensor([1, 2]).dot(Tensor([0.5, 0.25]))", 1.0), ("Tensor([1.0]).dot(Tensor([2.0]), dtype=dtypes.float64)", like(2.0, dtype=dtypes.float64)),
    ("Tensor(2).dot(Tensor([1]))", raises(ShapeError, "use * for numbers")),
    ("Tensor([1, 2]).dot(Tensor([1, 2, 3]))", raises(ShapeError, "cannot matmul")),
  ],
  "matmul": [
    ("Tensor([[1, 2], [3, 4]]) @ Tensor([[0, 1], [1, 0]])", [[2, 1], [4, 3]]),
    ("Tensor([[1, 2]]).matmul(Tensor([[3], [4]]), reverse=True)", [[3, 6], [4, 8]]),
    ("Tensor([[[1, 2]], [[3, 4]]]) @ Tensor([[1], [1]])", [[[3]], [[7]]]), ("Tensor([[1, 1]]) @ Tensor([[[1], [2]], [[3], [4]]])", [[[3]], [[7]]]),
    ("Tensor([[1, 2], [3, 4]]).T @ Tensor([[1, 0], [0, 1]]).flip(0)", [[3, 1], [4, 2]]),
    ("Tensor([[2]]).expand(1, 3) @ Tensor([[1], [2], [3]])", [[12]]),
    ("[[1, 2]] @ Tensor([[3], [4]])", [[11]]), ("Tensor([[60000.0, 60000.0]]).half() @ Tensor([[1.0], [1.0]]).half()", [[inf]]),
    ("Tensor([[2**31 - 1]]) @ Tensor([[2]])", [[-2]]), ("Tensor([[1.0, 2.0]]) @ Tensor([[1.0, 2.0]])", raises(ShapeError, "transpose one of them")),
    ("Tensor.zeros(2, 1, 1, 2) @ Tensor.zeros(3, 2, 1)", like([[[[0.0]]] * 3] * 2)),
    ("Tensor.zeros(2, 1, 2) @ Tensor.zeros(3, 2, 1)", raises(ShapeError, "matmul")),
    ("x = Tensor([[1.0, 2.0]]); y = Tensor([[3.0], [4.0]]); (x @ y).sum().gradient(x, y)", [[[3.0, 4.0]], [[1.0], [2.0]]]),
  ],
  "rmatmul": [
    ("[1, 2] @ Tensor([3, 4])", 11), ("[[1, 0]] @ Tensor([[5], [6]])", [[5]]), ("[0.5, 0.5] @ Tensor([2, 4])", 3.0),
    ("[[1], [2]] @ Tensor([[3, 4]])", [[3, 4], [6, 8]]),
    ("[1, 2, 3] @ Tensor([3, 4])", raises(ShapeError, "cannot matmul")),
  ],
  "imatmul": [
    ("x = Tensor([[1, 2], [3, 4]]); x @= Tensor([[0, 1], [1, 0]]); x", [[2, 1], [4, 3]]), ("x = Tensor([[2.0]]); x @= x; x", [[4.0]]),
    ("x = Tensor([1, 2]); x @= Tensor([[1, 1], [1, 1]]); x", [3, 3]),
    ("x = Tensor([[1, 2]]); x @= Tensor([[1, 2, 3], [4, 5, 6]]); x", raises(ShapeError, "assign")),
  ],
  "linear": [
    ("Tensor([1.0, 2.0]).linear(Tensor([[1.0], [10.0]]))", [21.0]),
    ("Tensor([[1.0, 2.0]]).linear(Tensor([3.0, 4.0]), Tensor([1.0, 1.0]))", [[4.0, 9.0]]),
    ("Tensor.zeros(0, 2).linear(Tensor.ones(2, 3), Tensor.ones(3))", like([], shape=(0, 3))),
    ("Tensor.zeros(2, 0).linear(Tensor.ones(0, 1), Tensor([5.0]))", [[5.0], [5.0]]),
    ("Tensor([1, 2]).linear(Tensor([[0.5], [0.5]]), Tensor([1]), dtype=dtypes.float64)", like([2.5], dtype=dtypes.float64)),
    ("Tensor([1.0]).linear([[1.0]])", raises(ArgumentError, "wants a Tensor")),
    ("Tensor([1.0]).linear(Tensor([[1.0], [2.0]]))", raises(ShapeError, "cannot matmul")),
  ],
  "sequential": [
    ("Tensor([-1.0, 2.0]).sequential([])", [-1.0, 2.0]), ("Tensor([-1.0, 2.0]).sequential([Tensor.relu, lambda x: x + 1])", [1.0, 3.0]),
    ("Tensor([1, 2]).sequential((Tensor.neg, Tensor.sum))", -3), ("Tensor([1]).sequential([Tensor.neg, 5])", raises(ArgumentError, "function")),
    ("Tensor([1]).sequential(Tensor.neg)", raises(ArgumentError, "list of functions")),
  ],
  "einsum": [
    ("Tensor.einsum('ij,jk->ik', Tensor([[1, 2]]), Tensor([[3], [4]]))", [[11]]), ("Tensor.einsum('ii', Tensor([[1, 2], [3, 4]]))", 5),
    ("Tensor.einsum('ii->i', Tensor([[1, 2], [3, 4]]))", [1, 4]), ("Tensor.einsum('ba', Tensor([[1, 2], [3, 4]]))", [[1, 3], [2, 4]]),
    ("Tensor.einsum(' i , i ', Tensor([1, 2]), Tensor([3, 4]))", 11),
    ("Tensor.einsum('i,j->ij', [Tensor([1, 2]), Tensor([3, 4])])", [[3, 4], [6, 8]]),
    ("Tensor.einsum('...ij->...ji', Tensor([[[1, 2]]]))", [[[1], [2]]]),
    ("Tensor.einsum('...,...', Tensor([[1], [2]]), Tensor([10, 20]))", [[10, 20], [20, 40]]),
    ("Tensor.einsum('ij->', Tensor.zeros(0, 3))", 0.0), ("Tensor.einsum(',i->i', Tensor(2), Tensor([3, 4]))", [6, 8]),
    ("Tensor.einsum('ij,ij->i', Tensor([[1, 2]]), Tensor([[3, 4]]))", [11]),
    ("Tensor.einsum('i->i', Tensor([1], dtype=dtypes.int8), dtype=dtypes.float64)", like([1.0], dtype=dtypes.float64)),
    ("Tensor.einsum('ij,jk->ik', Tensor([[1, 2]]))", raises(ArgumentError, "2 operands")),
    ("Tensor.einsum('ij->i', Tensor([1, 2]))", raises(ShapeError, "does not fit")),
    ("Tensor.einsum('i->ii', Tensor([1]))", raises(ArgumentError, "named once")),
    ("Tensor.einsum('i->k', Tensor([1]))", raises(ArgumentError, "in an operand")),
    ("Tensor.einsum('ii', Tensor([[1, 2]]))", raises(ShapeError, "sizes 1 and 2")),
    ("Tensor.einsum('i,i', Tensor([1, 2]), Tensor([1, 2, 3]))", raises(ShapeError, "axis -1 is 2 and 3")),
  ],
  "scaled_dot_product_attention": [
    ("t = Tensor.zeros(2, 0); t.scaled_dot_product_attention(t, Tensor([[1.0], [3.0]]))", [[2.0], [2.0]]),
    ("t = Tensor.zeros(0, 1); Tensor.zeros(2, 1).scaled_dot_product_attention(t, t)", [[0.0], [0.0]]),
    ("t = Tensor.zeros(2, 1); t.scaled_dot_product_attention(t, t, enable_gqa=True)", raises(ShapeError, "enable_gqa wants (..., heads, T, d)")),
    ("t = Tensor.zeros(2, 1, 1); Tensor.zeros(3, 1, 1).scaled_dot_product_attention(t, t, enable_gqa=True)", raises(ShapeError, "a multiple of it")),
    ("Tensor.zeros(1, 4).scaled_dot_product_attention(Tensor.zeros(2, 4), Tensor([[1.0], [3.0]]))", [[2.0]]),
    ("Tensor.zeros(2, 1).scaled_dot_product_attention(Tensor.zeros(2, 1), Tensor([[1.0], [3.0]]), is_causal=True)", [[1.0], [2.0]]),
    ("Tensor.zeros(3, 1).scaled_dot_product_attention(Tensor.zeros(2, 1), Tensor([[1.0], [3.0]]), is_causal=True)", [[1.0], [2.0], [2.0]]),
    ("t = Tensor.zeros(2, 1); t.scaled_dot_product_attention(t, Tensor([[1.0], [3.0]]), Tensor([[False, True], [False, False]]))", [[3.0], [0.0]]),
    ("Tensor.zeros(1, 1).scaled_dot_product_attention(Tensor.zeros(2, 1), Tensor([[1.0], [3.0]]), Tensor([[-inf, 0.0]]))", [[3.0]]),
    ("Tensor([[1000.0]]).scaled_dot_product_attention(Tensor([[1.0], [-1.0]]), Tensor([[1.0], [3.0]]))", [[1.0]]),
    ("k = Tensor([[0.0, math.log(2), 0.0, 0.0], [0.0] * 4]); Tensor([[2.0] * 4]).scaled_dot_product_attention(k, Tensor([[0.0], [3.0]]))", [[1.0]]),
    ("Tensor.zeros(2, 1, 1).scaled_dot_product_attention(Tensor.zeros(1, 2, 1), Tensor([[[1.0], [3.0]]]), enable_gqa=True)", [[[2.0]], [[2.0]]]),
    ("t = Tensor.zeros(2, 1).half(); t.scaled_dot_product_attention(t, Tensor([[1.0], [3.0]]).half())[0]", like([2.0], dtype=dtypes.float16)),
    ("Tensor.zeros(1).scaled_dot_product_attention(Tensor.zeros(2, 1), Tensor.zeros(2, 1))", raises(ShapeError, "attention wants")),
    ("t = Tensor.zeros(1, 1); t.scaled_dot_product_attention(t, t, Tensor([[True]]), is_causal=True)", raises(ArgumentError, "not both")),
  ],
  "newton_schulz": [
    ("Tensor([[3000.0, 4000.0]]).half().newton_schulz(0, (1.0,))", like([[0.6, 0.8]], dtype=dtypes.float16)),
    ("Tensor([[3.0, 0.0], [0.0, 2.0]]).newton_schulz(10, (1.5, -0.5))", like([[1.0, 0.0], [0.0, 1.0]], tolerance=1e-5)),
    ("Tensor([[3.0, 4.0]]).newton_schulz(0, (1.5, -0.5))", [[0.6, 0.8]]), ("Tensor([[3.0], [4.0]]).newton_schulz(1, (2.0,))", [[1.2], [1.6]]),
    ("Tensor([[0.0]]).newton_schulz(2, (1.5, -0.5))", [[0.0]]), ("Tensor([1.0]).newton_schulz(1, (1.0,))", raises(ShapeError, "wants matrices")),
    ("Tensor([[1.0]]).newton_schulz(-1, (1.0,))", raises(ArgumentError, "at least 0")),
    ("Tensor([[1.0]]).newton_schulz(1, ())", raises(ArgumentError, "coefficient")),
  ],
}
