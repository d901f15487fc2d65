"""Edge cases of bit operations: signs, widths, bools, shifts by more than the number of bits, floats, which are
refused."""
from generators.edge_cases import Case, like, raises

from tinyhw import dtypes
from tinyhw.errors import DTypeError, ShapeError

EDGES: dict[str, list[Case]] = {
  "bitwise_and": [
    ("Tensor([-1, -2147483648, 6]).bitwise_and(Tensor([2147483647, -1, 3]))", [2147483647, -2147483648, 2]),
    ("Tensor([True, True, False]).bitwise_and(Tensor([True, False, False]))", [True, False, False]),
    ("Tensor([255], dtype=dtypes.uint8).bitwise_and(Tensor([-1], dtype=dtypes.int8))", like([255], dtype=dtypes.int16)),
    ("Tensor([2**63 - 1, -2**63], dtype=dtypes.int64).bitwise_and(-2)", like([2**63 - 2, -2**63], dtype=dtypes.int64)),
    ("Tensor([[1], [2]]).bitwise_and(Tensor([3, 2]))", [[1, 0], [2, 2]]),
    ("Tensor([1.0]).bitwise_and(1)", raises(DTypeError, "integer type or bool")),
    ("Tensor([1]).bitwise_and(1.0)", raises(DTypeError, "integer type or bool")),
  ],
  "bitwise_or": [
    ("Tensor([0, -2, 4]).bitwise_or(Tensor([0, 1, 3]))", [0, -1, 7]),
    ("Tensor([True, False]).bitwise_or(Tensor([False, False]))", [True, False]),
    ("Tensor([128], dtype=dtypes.uint8).bitwise_or(127)", like([255], dtype=dtypes.uint8)),
    ("Tensor([8]).bitwise_or(True)", [9]),
    ("Tensor([1, 2]).bitwise_or(4, reverse=True)", [5, 6]),
    ("Tensor([1.0]).bitwise_or(Tensor([1]))", raises(DTypeError, "integer type or bool")),
  ],
  "bitwise_xor": [
    ("Tensor([-1, 5, 0]).bitwise_xor(Tensor([-1, -1, 7]))", [0, -6, 7]),
    ("Tensor([True, True]).bitwise_xor(Tensor([True, False]))", [False, True]),
    ("Tensor([170], dtype=dtypes.uint8).bitwise_xor(255)", like([85], dtype=dtypes.uint8)),
    ("Tensor([2**64 - 1], dtype=dtypes.uint64).bitwise_xor(1)", like([2**64 - 2], dtype=dtypes.uint64)),
    ("Tensor([1]).bitwise_xor(Tensor([1.0]))", raises(DTypeError, "integer type or bool")),
  ],
  "bitwise_not": [
    ("Tensor([0, -1, 2147483647]).bitwise_not()", [-1, 0, -2147483648]),
    ("Tensor([0, 255], dtype=dtypes.uint8).bitwise_not()", [255, 0]),
    ("Tensor([True, False]).bitwise_not()", [False, True]), ("Tensor(5).bitwise_not()", -6),
    ("Tensor([-128], dtype=dtypes.int8).bitwise_not()", like([127], dtype=dtypes.int8)),
    ("Tensor([1.0]).bitwise_not()", raises(DTypeError, "cannot invert the bits")),
  ],
  "lshift": [
    ("Tensor([1, 1, 1, 1, -1]).lshift(Tensor([0, 31, 32, -1, 1]))", [1, -2147483648, 0, 0, -2]),
    ("Tensor([255, 1], dtype=dtypes.uint8).lshift(Tensor([4, 8], dtype=dtypes.uint8))",
     like([240, 0], dtype=dtypes.uint8)),
    ("Tensor([1, 1], dtype=dtypes.int64).lshift(Tensor([63, 64]))", like([-2**63, 0], dtype=dtypes.int64)),
    ("Tensor([0, 31, 32]).lshift(1, reverse=True)", [1, -2147483648, 0]),
    ("Tensor([3, 5]) << 1", [6, 10]), ("Tensor([1]) << 40", [0]),
    ("Tensor([]).int() << 1", like([], dtype=dtypes.int32)),
    ("Tensor([1.0]).lshift(1)", raises(DTypeError, "cast both to an integer type")),
  ],
  "rshift": [
    ("Tensor([-8, -1, 8, 2147483647]).rshift(Tensor([1, 31, 4, 30]))", [-4, -1, 0, 1]),
    ("Tensor([-5, 5, -5, 5]).rshift(Tensor([32, 32, -1, -1]))", [-1, 0, -1, 0]),
    ("Tensor([255, 255], dtype=dtypes.uint8).rshift(Tensor([7, 8], dtype=dtypes.uint8))",
     like([1, 0], dtype=dtypes.uint8)),
    ("Tensor([2**64 - 1], dtype=dtypes.uint64) >> 63", like([1], dtype=dtypes.uint64)),
    ("Tensor([[-128], [64]], dtype=dtypes.int8) >> Tensor([1, 7], dtype=dtypes.int8)",
     like([[-64, -1], [32, 0]], dtype=dtypes.int8)),
    ("Tensor([0, 3]).rshift(16, reverse=True)", [16, 2]),
    ("Tensor([1]).rshift(1.0)", raises(DTypeError, "cast both to an integer type")),
  ],
  "and": [
    ("Tensor([6, 5]) & 3", [2, 1]), ("12 & Tensor([10, 4])", [8, 4]), ("Tensor([True, False]) & True", [True, False]),
    ("Tensor([[1], [0]]) & Tensor([True, False])", [[1, 0], [0, 0]]),
    ("Tensor([1, 2]) & Tensor([1, 2, 3])", raises(ShapeError, "cannot and")),
  ],
  "or": [
    ("Tensor([4, 0]) | 3", [7, 3]), ("False | Tensor([True, False])", [True, False]), ("Tensor([-2]) | 1", [-1]),
    ("Tensor([0.5]) | 1", raises(DTypeError, "integer type or bool")),
  ],
  "xor": [
    ("Tensor([6, 5]) ^ -1", [-7, -6]), ("True ^ Tensor([True, False])", [False, True]),
    ("Tensor(3) ^ Tensor([1, 3])", [2, 0]),
    ("Tensor([0.5]) ^ 1", raises(DTypeError, "integer type or bool")),
  ],
  "ror": [
    ("1 | Tensor([0, 2])", [1, 3]), ("True | Tensor([False, True])", [True, True]), ("-1 | Tensor([5])", [-1]),
    ("1.0 | Tensor([1])", raises(DTypeError, "integer type or bool")),
  ],
  "rxor": [
    ("1 ^ Tensor([0, 3])", [1, 2]), ("False ^ Tensor([False, True])", [False, True]), ("-1 ^ Tensor([0, 5])", [-1, -6]),
    ("255 ^ Tensor([170], dtype=dtypes.uint8)", like([85], dtype=dtypes.uint8)),
  ],
  "rlshift": [
    ("1 << Tensor([0, 4, 32])", [1, 16, 0]), ("-1 << Tensor([31, -1])", [-2147483648, 0]),
    ("3 << Tensor([7], dtype=dtypes.uint8)", like([128], dtype=dtypes.uint8)),
    ("1.0 << Tensor([1])", raises(DTypeError, "integer type")),
  ],
  "rrshift": [
    ("256 >> Tensor([4, 9, 32])", [16, 0, 0]), ("-256 >> Tensor([4, 9, 40])", [-16, -1, -1]),
    ("200 >> Tensor([3], dtype=dtypes.uint8)", like([25], dtype=dtypes.uint8)),
    ("1.0 >> Tensor([1])", raises(DTypeError, "integer type")),
  ],
  "invert": [
    ("~Tensor([0, -1])", [-1, 0]), ("~Tensor([True, False])", [False, True]),
    ("~Tensor([1], dtype=dtypes.uint16)", like([65534], dtype=dtypes.uint16)),
    ("~Tensor([1.0])", raises(DTypeError, "bitcast")), ("~Tensor([[1, 2], [3, 4]]).T", [[-2, -4], [-3, -5]]),
  ],
  "iand": [
    ("x = Tensor([6, 5]); x &= 3; x", [2, 1]), ("x = Tensor([True, True]); x &= Tensor([True, False]); x",
                                                [True, False]),
    ("x = Tensor([7, 7, 7]); x[1:] &= Tensor([1, 2]); x", [7, 1, 2]),
    ("x = Tensor([1.0]); x &= 1; x", raises(DTypeError, "integer type or bool")),
  ],
  "ior": [
    ("x = Tensor([4, -2]); x |= 1; x", [5, -1]), ("x = Tensor([False, True]); x |= False; x", [False, True]),
    ("x = Tensor([True]); x |= 2; x", raises(DTypeError, "cannot assign")),
    ("x = Tensor([[1, 2]]); x |= Tensor([[4]]); x", [[5, 6]]),
  ],
  "ixor": [
    ("x = Tensor([5, 0]); x ^= -1; x", [-6, -1]), ("x = Tensor([7, 7]); x ^= x; x", [0, 0]),
    ("x = Tensor([True, False]); x ^= True; x", [False, True]),
    ("x = Tensor([1, 2]); x ^= Tensor([[1], [2]]); x", raises(ShapeError, "assign")),
  ],
  "ilshift": [
    ("x = Tensor([1, 3]); x <<= 2; x", [4, 12]),
    ("x = Tensor([128], dtype=dtypes.uint8); x <<= 1; x", like([0], dtype=dtypes.uint8)),
    ("x = Tensor([1, 1]); x <<= Tensor([31, 32]); x", [-2147483648, 0]),
    ("x = Tensor([1.0]); x <<= 1; x", raises(DTypeError, "integer type")),
  ],
  "irshift": [
    ("x = Tensor([9, -9]); x >>= 1; x", [4, -5]), ("x = Tensor([-1, 1]); x >>= 32; x", [-1, 0]),
    ("x = Tensor([255], dtype=dtypes.uint8); x >>= 7; x", like([1], dtype=dtypes.uint8)),
    ("x = Tensor([1.0]); x >>= 1; x", raises(DTypeError, "integer type")),
  ],
}
