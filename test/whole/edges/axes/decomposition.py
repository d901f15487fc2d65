"""Edge cases of qr, svd and keccak: no elements, one column, zeros, ranks below the size, scales, messages of about one
block."""
from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError

ABOUT = 1e-6

EDGES: dict[str, list[Case]] = {
  "qr": [
    ("Tensor([[3.0, 1.0], [4.0, 2.0]]).qr()",
     (like([[-0.6, -0.8], [-0.8, 0.6]], tolerance=ABOUT), like([[-5.0, -2.2], [0.0, 0.4]], tolerance=ABOUT))),
    ("Tensor([[-2.0, 1.0], [0.0, -3.0]]).qr()",
     (like([[1.0, 0.0], [0.0, 1.0]], tolerance=ABOUT), like([[-2.0, 1.0], [0.0, -3.0]], tolerance=ABOUT))),
    ("Tensor([[3.0], [4.0]]).qr()",
     (like([[-0.6, -0.8], [-0.8, 0.6]], tolerance=ABOUT), like([[-5.0], [0.0]], tolerance=ABOUT))),
    ("Tensor([[3.0, 4.0]]).qr()", ([[1.0]], [[3.0, 4.0]])),
    ("Tensor([[0.0, 0.0], [0.0, 0.0]]).qr()", ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])),
    ("Tensor([[3e30], [4e30]]).qr()[1][0]", [-5e30]), ("Tensor([[3e-30], [4e-30]]).qr()[1][0]", [-5e-30]),
    ("Tensor([[3], [4]]).qr()[1][0]", like([-5.0], dtype=dtypes.float32)),
    ("Tensor([[3.0], [4.0]]).half().qr()[1][0]", like([-5.0], dtype=dtypes.float16)),
    ("Tensor.zeros(0, 2).qr()", (like([], shape=(0, 0)), like([], shape=(0, 2)))),
    ("Tensor.zeros(2, 0).qr()", ([[1.0, 0.0], [0.0, 1.0]], like([[], []]))),
    ("Tensor([[[3.0], [4.0]], [[0.0], [2.0]]]).qr()[1][:, 0]", [[-5.0], [-2.0]]),
    ("Tensor([3.0, 4.0]).qr()", raises(ShapeError, "wants matrices")),
  ],
  "svd": [
    ("Tensor([[3.0, 0.0], [4.0, 5.0]]).svd()[1]", [6.7082039, 2.2360680]),
    ("u, s, v = Tensor([[-2.0]]).svd(); (s, u * v)", ([2.0], [[-1.0]])),
    ("u, s, v = Tensor([[3.0, 4.0]]).svd(); (s, u * s @ v[:1])", ([5.0], [[3.0, 4.0]])),
    ("[t.shape for t in Tensor([[3.0, 4.0]]).svd()]", [(1, 1), (1,), (2, 2)]),
    ("[t.shape for t in Tensor([[3.0, 4.0]]).svd(full_matrices=False)]", [(1, 1), (1,), (1, 2)]),
    ("Tensor([[1.0, 1.0], [1.0, 1.0]]).svd()[1]", like([2.0, 0.0], tolerance=ABOUT)),
    ("[t.shape for t in Tensor.zeros(3, 0).svd()]", [(3, 3), (0,), (0, 0)]),
    ("[t.shape for t in Tensor.zeros(0, 2, 2).svd()]", [(0, 2, 2), (0, 2), (0, 2, 2)]),
    ("Tensor([[0.0, 0.0], [0.0, 0.0]]).svd()[1]", [0.0, 0.0]),
    ("u, s, v = Tensor([[0.0, 0.0], [0.0, 0.0]]).svd(); u @ u.T", like([[1.0, 0.0], [0.0, 1.0]], tolerance=ABOUT)),
    ("u, s, v = Tensor([[0.0, 2.0], [3.0, 0.0]]).svd(); (s, u * s @ v)",
     ([3.0, 2.0], like([[0.0, 2.0], [3.0, 0.0]], tolerance=ABOUT))),
    ("Tensor([[3, 0], [0, -4]]).svd()[1]", like([4.0, 3.0], dtype=dtypes.float32)),
    ("Tensor([[1e30, 0.0], [0.0, 1e25]]).svd()[1]", [1e30, 1e25]),
    ("Tensor([1.0]).svd()", raises(ShapeError, "wants matrices")),
  ],
  "keccak": [
    ("Tensor(b'').keccak().data().hex()", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"),
    ("Tensor(b'abc').keccak('sha3_224').data().hex()", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"),
    ("Tensor(b'a' * 135).keccak().data().hex()", "8094bb53c44cfb1e67b7c30447f9a1c33696d2463ecc1d9c92538913392843c9"),
    ("Tensor(b'a' * 136).keccak().data().hex()", "3fc5559f14db8e453a0a3091edbd2bc25e11528d81c66fa570a4efdcc2695ee1"),
    ("Tensor(b'').keccak('shake_128').data().hex()", "7f9c2ba4e88f827d616045507605853e"),
    ("Tensor([[97, 98, 99], [97, 98, 99]], dtype=dtypes.uint8).keccak()[1, :4]", [58, 152, 93, 167]),
    ("Tensor(b'').keccak((136, 6))[:4]", [167, 255, 198, 248]),
    ("Tensor.zeros(0, 3, dtype=dtypes.uint8).keccak()", like([], dtypes.uint8, (0, 32))),
    ("Tensor([1.0]).keccak()", raises(DTypeError, "bitcast")),
    ("Tensor(b'abc').keccak('md5')", raises(ArgumentError, "sha3_256")),
    ("Tensor(b'abc').keccak((135, 6))", raises(ArgumentError, "multiple of 8")),
    ("Tensor(5, dtype=dtypes.uint8).keccak()", raises(ShapeError, "reshape it to (1,)")),
  ],
}
