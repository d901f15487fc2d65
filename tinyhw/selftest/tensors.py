"""Steps with tensors, for every device: do operations of programs give the right numbers?

Expected values are computed in Python, or with the same Tensors by the device PYTHON, whose arithmetic is Python's own.
Results that IEEE 754 or integer arithmetic determines must have the same bits. Functions may be off by the bound of
docs/numerics.md.
"""
from __future__ import annotations
import math
import struct
from collections.abc import Callable, Sequence

from tinyhw.capture.jit import TinyJit
from tinyhw.dtype import DType, dtypes
from tinyhw.selftest.frame import Session, Probe, Wrong, ulps
from tinyhw.tensor import Tensor

REFERENCE = "PYTHON"
MOST_ULPS = 2.0   # bound for any float32 function: docs/numerics.md allows less
# name, the method, its value in Python, and the range of inputs: from, to
FUNCTIONS: tuple[tuple[str, Callable[[Tensor], Tensor], Callable[[float], float], float, float], ...] = (
  ("exp", Tensor.exp, math.exp, -80.0, 80.0), ("log", Tensor.log, math.log, 1e-3, 1e6),
  ("sin", Tensor.sin, math.sin, -300.0, 300.0),
  ("tanh", Tensor.tanh, math.tanh, -4.0, 4.0), ("sqrt", Tensor.sqrt, math.sqrt, 0.0, 1e6),
  ("reciprocal", Tensor.reciprocal, lambda x: 1 / x, 0.1, 1e4),
)

def numbers(count: int, device: str, dtype: DType = dtypes.float32) -> Tensor:
  """Return whole numbers from -50 to 50, in memory. A wrong address would change their order visibly."""
  values = [float(i * 37 % 101 - 50) for i in range(count)]
  return Tensor(values, device=device).cast(dtype).contiguous().realize()

def compare(found: Sequence[float], wanted: Sequence[float], what: str) -> None:
  """Raise Wrong with the number of differences and the first one."""
  if len(found) != len(wanted): raise Wrong(f"{what}: {len(found)} elements came back instead of {len(wanted)}")
  wrong = [i for i, (f, w) in enumerate(zip(found, wanted)) if struct.pack("<d", f) != struct.pack("<d", w)]
  if wrong: raise Wrong(f"{what}: {len(wrong)} of {len(wanted)} elements differ; the first is number {wrong[0]}, "
                        f"{found[wrong[0]]!r} instead of {wanted[wrong[0]]!r}")

def flat(x: Tensor) -> list[float]: return [float(value) for value in x.reshape(-1).tolist()]

def elementwise(session: Session) -> str:
  """Test exact arithmetic: the same bits as on the CPU."""
  def compute(device: str) -> list[float]:
    x, y = numbers(1000, device), numbers(1000, device).flip(0)
    return flat((x * 0.3 + y).relu() - (x < y).where(x / 7, y.sqrt().abs().isnan().where(3, y)))
  compare(compute(session.name), compute(REFERENCE), "relu(x * 0.3 + y) - where(x < y, x / 7, ...)")
  return "1000 elements, the bits of the CPU"

def integers(session: Session) -> str:
  def compute(device: str) -> list[float]:
    x = numbers(300, device, dtypes.int32)
    y = x.flip(0)
    wide = x.cast(dtypes.int64) * 1000000007 // (y.abs() + 1).cast(dtypes.int64)
    return flat(x // (y.abs() + 3) + x % 7 + ((x & 15) << 3) - (y | 1)) + flat(wide % 1000003)
  compare(compute(session.name), compute(REFERENCE), "integers")
  return "divisions, remainders, shifts, 32 and 64 bits"

def sums(session: Session) -> str:
  """Test sums of whole numbers, which are exact in any order."""
  rows, columns = 24, 500
  values = [i * 37 % 101 - 50 for i in range(rows * columns)]
  x = numbers(rows * columns, session.name).reshape(rows, columns)
  compare(flat(x.sum(1)), [float(sum(values[r * columns:(r + 1) * columns])) for r in range(rows)], "sums of rows")
  compare(flat(x.max(0)), [float(max(values[c::columns])) for c in range(columns)], "maxima of columns")
  compare(flat(x.sum()), [float(sum(values))], "sum of all")
  return f"{rows * columns} elements: of rows, of columns, of all"

def product(session: Session, dtype: DType) -> str:
  """Test a product of matrices of small whole numbers, which is exact."""
  rows, inner, columns = 33, 48, 32
  a, b = ([i * 37 % 11 - 5 for i in range(n)] for n in (rows * inner, inner * columns))
  left, right = (Tensor(list(map(float, values)), device=session.name).cast(dtype).realize() for values in (a, b))
  found = flat((left.reshape(rows, inner) @ right.reshape(inner, columns)).float())
  wanted = [float(sum(a[r * inner + k] * b[k * columns + c] for k in range(inner))) for r in range(rows)
            for c in range(columns)]
  compare(found, wanted, f"{rows}x{inner} @ {inner}x{columns} of {dtype}")
  return f"{rows}x{inner} @ {inner}x{columns}"

def products(session: Session) -> str: return product(session, dtypes.float32)
def products_of_halves(session: Session) -> str: return product(session, dtypes.float16)

def functions(session: Session) -> str:
  """Test transcendental functions against Python's, which are right to 53 bits."""
  report = []
  for name, method, exact, low, high in FUNCTIONS:
    points = [struct.unpack("<f", struct.pack("<f", low + (high - low) * i / 199))[0] for i in range(200)]
    worst, x = max((ulps(found, exact(x)), x) for found, x in zip(flat(method(Tensor(points, device=session.name))),
                                                                  points))
    if worst > MOST_ULPS:
      raise Wrong(f"{name}({x!r}) is {worst:.3g} units in the last place off; {MOST_ULPS:g} are allowed")
    report.append(f"{name} {worst:.2f}")
  return "units in the last place: " + ", ".join(report)

def replay(session: Session) -> str:
  """Test a captured function with other inputs in each call."""
  weight = (Tensor.arange(64, device=session.name).reshape(8, 8) * 0.5).realize()
  step = TinyJit(lambda x: ((x @ weight).relu().sum(axis=1) + x.sum()).realize())
  for i in range(4):
    x = [[float(i + 8 * row + column) for column in range(8)] for row in range(2)]
    wanted = [sum(max(sum(x[row][k] * (8 * k + j) * 0.5 for k in range(8)), 0.0) for j in range(8)) + sum(map(sum, x))
              for row in range(2)]
    compare(flat(step(Tensor(x, device=session.name).realize())), wanted, f"call {i + 1}")
  return "a step, captured in its second call, replayed twice"

COMPILED = ("the device's own steps passed, so suspect the code of this kernel: DEBUG=4 shows it, CHECK=1 verifies "
            "its registers; ")
STEPS = (
  Probe("elementwise", "does arithmetic of tensors give the CPU's bits", COMPILED + "compare with NOOPT=1",
        elementwise),
  Probe("integers", "do integers wrap, divide and shift as they should", COMPILED + "compare with NOOPT=1", integers),
  Probe("sums", "are sums over lanes, workgroups and loops right", COMPILED + "where only many elements are wrong, "
        "suspect shared memory", sums),
  Probe("product", "is a product of float32 matrices right", COMPILED + "compare with NOOPT=1, which has no tiles",
        products),
  Probe("product of halves", "is a product of float16 matrices right, on the matrix unit where there is one",
        "where \"product\" passed, suspect the matrix unit: how lanes share a matrix is in isa/amd/table/matrix.py; "
        "compare with NOOPT=1, which "
        "uses none",
        products_of_halves),
  Probe("functions", "are transcendental functions as exact as docs/numerics.md says",
        COMPILED + "reciprocals and roots begin with the "
        "hardware's own approximations", functions),
  Probe("replay", "does a captured function give right results with other inputs",
        "a patch of a recording comes too late, or at the wrong place: "
        "compare with JIT=0 and JIT=2", replay),
)
