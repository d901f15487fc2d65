"""Measures how exact results are, and writes docs/numerics.md: `python3 test/numerics/measure.py` (a minute; needs
NumPy and x86-64's 80-bit floats).

test/numerics/test_page.py makes the document again and compares, so it is never older than the code.
"""
from __future__ import annotations
from collections.abc import Callable
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import accuracy
from amd import recipes as amd_recipes
import numpy as np
from nvidia import counts as sass_counts
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes, least_upper_dtype
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
import ulps

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/numerics.md"
NARROW = (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)
# All 2**32 numbers, tried once by hand
SWEPT = {Ops.EXP: 1.652, Ops.EXP2: 0.879, Ops.LOG: 1.197, Ops.LOG2: 0.971, Ops.SIN: 1.536, Ops.COS: 1.540,
         Ops.TANH: 2.566, Ops.ERF: 1.841}

HEAD = """# Numerics

The page has errors of operations and methods, special values, integers, casts, sums, and types of results.

It is made by `python3 test/numerics/measure.py`, which measures. `test/numerics/test_page.py` measures again and
compares.

Errors are in units of the last place (ULP) of the correct result: 0 is exact, 0.5 is correctly rounded. Each number is
the largest error over samples: {single} of float32, {double} of float64, all numbers of narrower types. Samples cover all
exponents and signs, more of them around 1, and special values: zeros, subnormal numbers, infinities, NaN, the largest
numbers, neighbours of 1. A wrong infinity, NaN or zero counts as an infinite error.

## 1. Errors of floating point operations

`CPU` (AVX-512 and AVX2) and `CLANG` give the same bits: transcendental functions are expressions of correctly rounded
operations (`tinyhw/codegen/math/transcendental.py`), not a library's. `PYTHON` calls Python's `math` and rounds that
({python} samples). Arguments may be of any size: sines of the largest numbers are as exact as those of small ones.
Subnormal numbers come in and go out with their right values. Infinities, NaN and zeros follow IEEE 754 and C17, annex
F. float16, bfloat16 and fp8 are computed in float32 and rounded once.

Bars of the errors in float32 and float64:

- operations of IEEE 754, `x % y`: 0.5. Roundings to integers and fmod are exact.
- exp2, log2, x ** y: 1 in float32, 2 in float64.
- exp, log, sin, cos: 2.
- tanh, erf: 4 in float32, 2 in float64.

"""
TABLE = """| | float32 | float64 | float16 | bfloat16 | fp8e4m3 | fp8e5m2 | PYTHON float32 | PYTHON float64 |
|---|---|---|---|---|---|---|---|---|
"""
FUNCTIONS = """
The cost of each function, in vector instructions of an AVX2 target without constants. *Unfused* is the error on a
target without fused multiply-add, where MULACC is rounded twice. WEBGPU is one, except for LOG2 and POW
(hardware/webgpu.md). CLANG calls `fma` where the processor has no such instruction.

| | instructions, float32 | float64 | unfused ULP, float32 | float64 | always exact |
|---|---|---|---|---|---|
"""
EXACT = {
  Ops.EXP: "exp(0)", Ops.EXP2: "powers with whole exponents", Ops.LOG: "log(1)", Ops.LOG2: "powers of two",
  Ops.SIN: "sin(±0)",
  Ops.COS: "cos(0)", Ops.TANH: "tanh(±0); never beyond ±1", Ops.ERF: "erf(±0); never beyond ±1",
  Ops.POW: "x**0, 1**y; C's special cases",
}
GPUS = """
Kernels for AMD GPUs compute EXP2, EXP, LOG2, LOG, SQRT, RECIPROCAL and FDIV of float32 by the hardware's approximate
units, with corrections (`tinyhw/isa/amd/select/recipes.py`). They keep the same bars. The last bit may differ from
other devices, and from one generation to the next. The table has the largest error if a unit is less than 1 ULP off, as
the ISA guides say. SQRT, RECIPROCAL and FDIV are correctly rounded for every result of the unit. All other operations
are the expressions above. Methods of section 2 are within 4 ULP there too; `test/emulator/test_accuracy.py` tests that
with the largest errors of the units. Vector instructions of each, without constants:

| | gfx1100 | gfx942 | float32 ULP |
|---|---|---|---|
"""
NVIDIA = """
Kernels for NVIDIA GPUs compute SQRT, RECIPROCAL and FDIV of float32 by MUFU.RSQ and MUFU.RCP, with corrections
(`tinyhw/isa/sass/select/recipes.py`). They are correctly rounded for all operands. The special function unit's EX2,
LG2, SIN and COS are off by more than the bars here allow. So all other operations are the expressions above, with their
errors. Instructions of each, without constants. A quotient out of the common range costs 17 more, a quotient by a
constant is 9, of an integer by a constant 3:

| | sm_80 to sm_90 |
|---|---|
"""
EXACTLY = (Ops.SQRT, Ops.RECIPROCAL, Ops.FDIV)
METHODS = """
Once, by hand, with all 2**32 float32 numbers:
{swept}.
`test/support/ulps.py` has the bounds that tests check.

## 2. Methods made of these

They compute in float32 at least, and round to narrower types once. A star means another unit:

- gelu, logaddexp: ULP of the larger operand, since a small result is a difference;
- silu, mish: where sigmoid(x) is subnormal, x times the smallest normal number.

"""
REST = """
`x % y` and `fmod` are exact while x / y is below 2**71 (float64: 2**158), and exact or NaN beyond. They take three
divisions an element; exact results for all operands would take about 12 (float64: 40). `x // y` is the exact quotient
rounded down.

## 3. Special values

relu, clamp, maximum, minimum, max, min, max_pool2d, cummax and all other operations that compute give NaN if an operand
is NaN. The exceptions:

| operation | result with NaN |
|---|---|
| argmax, argmin | the place of the first NaN |
| sort, topk | NaN is the largest |
| `x ** 0`, `1 ** x` | 1 |
| `==`, `<`, `<=`, `>`, `>=` | False |
| `!=` | True |

Zeros keep their signs as in C:

| operation | result with zeros |
|---|---|
| maximum, minimum of 0.0 and -0.0, which are equal | the first operand |
| sum of several numbers, all -0.0 | 0.0, since it starts at 0.0 |
| sum of one number | that number |
| sign(0.0), sign(-0.0) | 0.0 |

Reductions of no elements:

| operation | result |
|---|---|
| max, min, argmax, argmin | ShapeError |
| sum | 0 |
| prod | 1 |
| mean, var | NaN |
| logsumexp | -inf |
| all | True |
| any | False |

- Ties: round gives the even number. argmax takes the first of equal elements, cummax the last.
- logsumexp, softmax, logsigmoid, softplus, logaddexp and cross_entropy do not overflow. They take -inf: softmax([-inf,
  0]) is [0, 1]. softmax is NaN if all elements are -inf, or if one is inf.
- var divides by the count less `correction`, or by 0 if that is negative. So var of one element is NaN.

## 4. Integers

| operation | result |
|---|---|
| sums, products, powers, shifts to the left, neg | wrap |
| abs and neg of the smallest number | that number |
| `//`, `%` | round down and have the sign of the divisor, as in Python |
| `div(rounding_mode="trunc")`, `fmod` | as in C |
| `//`, `%`, `div` by 0 | 0 |
| fmod by 0 | the dividend |
| shift by the width or more, or by a negative number | 0; -1 for `>>` of a negative number |
| `/` | the default float type |
| power with a negative exponent | 0, unless the base is 1 or -1. A negative Python int as exponent is refused |

bool: `+` is or, `*` is and, `-` is refused. Sums count.

## 5. Casts

- Float to integer rounds to zero. It goes by way of int32 for types of up to 32 bits except uint32, and of int64 for
  uint32 and int64, then wraps. NaN, and numbers outside of that type, become the smallest number of that type. So -1.0
  is 255 as uint8, 3e9 is -2**31 as int32, and 1e10 is 0 as int8.
- Integer to float, and float to a narrower float, round to nearest, ties to even. Overflow gives infinity, or NaN in a
  type without it (fp8e4m3, fnuz types). No type saturates. float64 is rounded once to any type.
- To bool: False for 0, else True, also for NaN.

| | largest | smallest | infinity | -0.0 |
|---|---|---|---|---|
"""
REDUCTIONS = """
## 6. Sums

Reductions of one tensor by sums or products widen integers to 32 bits. A product of tensors has the type that its
operands promote to. Integers wrap, and a product of bools is True if any of its terms is True. The same holds for
`einsum`, also of one tensor. For wider results there is `dtype=`, or a cast of an operand.

| of | accumulates in | sum, prod, cumsum, cumprod | matmul, dot, linear, einsum, conv2d | mean, var, std, softmax, layernorm |
|---|---|---|---|---|
"""
ORDER = """
max and min keep the type; `dtype=` names both the accumulator and the result. float16, bfloat16 and fp8 are rounded
once, at the end. var, std and layernorm take the mean first, then squares of differences (two passes). Products of a
matmul or convolution are added with one rounding (MULACC); on WEBGPU they are rounded first.

A processor with AVX512-BF16 sums products of two bfloat16 at once (DOT2), if both operands are in memory and adjacent
along the sum, as in `x @ w.T`. Each product is added with one rounding. Subnormal numbers among the operands and the
sums count as zero. AArch64 with BF16 (bfdot) does so, too, but adds the two products first. It rounds to odd: each sum
is off by less than a unit in the last place.
A product of tiles (AMX) has 32 terms. It adds the products of even and of odd terms apart, each from 0, and then both
to the sum.

With these variables, less exact matrix units are used:

- `ALLOW_TF32=1`: products of float32 on NVIDIA's GPUs. Operands are rounded to 10 bits of mantissa, to nearest. So a
  sum of products is off by 2**-10 of the sum of their absolute values at most, plus the rounding of float32. Sums are
  those of float32. A NaN whose first 10 bits of mantissa are zeros may become an infinity; no operation makes one.
- `ALLOW_FP8_SUMS=1`: products of fp8, both operands of the same kind, on sm_89 and sm_90. Partial sums keep 13 bits of
  mantissa instead of 23, so each 32 steps may lose some 2**-13 of the largest of them. NVIDIA states no bound. DeepSeek
  measured 2 % for sums of 4096 products (arXiv 2412.19437, section 3.5.2). Without the variable operands are converted
  to float16, and nothing is lost before float32 rounds.

The order in which a reduction adds is not defined, and differs between vector widths. It is a fixed function of shapes,
types and the target:

- the same bits in each run, with any number of threads, in a TinyJit's replay as in a plain call;
- the same bits in each lane of a GPU that shares a sum: there the order is a tree of halves of the lanes
  (docs/design/codegen.md);
- the same bits on CPU at the AVX2 level and CLANG. BEAM, NOOPT and other targets may choose other orders.

An attention and its gradients may leave out what a causal mask hides. There a weight is 0, also where it would be
multiplied by inf or NaN, and in rows that are NaN since one of their scores is. Other weights of 0 are multiplied.

On GPUs with a matrix unit, an attention of float16 or bfloat16 is one kernel. It rounds the powers of scores to the
type of the values, before they are divided by their sum. The powers have a relative error of at most 2**-17.

A long sum of floats is done in blocks (`codegen/transform/blocks.py`), by several accumulators and in parts
(`engine/schedule/split.py`). So its error hardly grows with its length. The table has relative errors of sums of
(k % 1000 + 1) / 10, or of 0.1 over and over. The latter is the worst case, since all roundings go one way:

| sum | relative error |
|---|---|
"""
PROMOTION = """
## 7. Types of results

The table has the promotion of two types (`tinyhw.dtype.least_upper_dtype`). Python numbers are weak: a bool or int
takes the tensor's type, a float takes the tensor's if that is a float type, else the default float.

"""

# ***** accuracy *****

def shown(error: float) -> str:
  """An error as the document has it."""
  if error <= 0.5005: return "0" if error == 0 else "0.5"
  return f"{error:.2f}"

def accuracy_row(name: str, method: accuracy.Method) -> str:
  cells = [accuracy.worst(method, dtype, "CPU")[0] for dtype in (dtypes.float32, dtypes.float64, *NARROW)]
  cells += [accuracy.worst(method, dtype, "PYTHON", accuracy.PYTHON_SAMPLES)[0]
            for dtype in (dtypes.float32, dtypes.float64)]
  return f"| {name}{'*' if method.beside else ''} | " + " | ".join(map(shown, cells)) + " |\n"

def unfused(op: Ops, dtype: DType) -> float:
  """The error of an expression where products are rounded."""
  method = accuracy.OPERATIONS["x ** y" if op is Ops.POW else op.name.lower()]
  operands = accuracy.inputs(method, dtype)
  return accuracy.worst_of(method, dtype, operands, ulps.compute(ulps.expression(op, dtype, False), *operands))[0]

def function_row(op: Ops) -> str:
  both = (dtypes.float32, dtypes.float64)
  counts, plain = [str(ulps.operation_count(op, d)) for d in both], [shown(unfused(op, d)) for d in both]
  return f"| {op.name} | " + " | ".join([*counts, *plain, EXACT[op]]) + " |\n"

def unit_row(op: Ops) -> str:
  """How many instructions an operation is on GPUs, and how wrong where that is not what the tables above have."""
  counts = [str(amd_recipes.instruction_count(op, arch)) for arch in ("gfx1100", "gfx942")]
  known = op in amd_recipes.FUNCTIONS
  error = (shown(max(amd_recipes.worst(op, side)[0] for side in amd_recipes.SIDES)) if known else "0.5" if op in EXACTLY
           else "as above")
  return f"| {op.name} | " + " | ".join([*counts, error]) + " |\n"

def nvidia_row(op: Ops) -> str:
  (count,) = {sass_counts.instruction_count(op, arch) for arch in ("sm_80", "sm_89", "sm_90")}
  return f"| {op.name} | {count} |\n"

# ***** types *****

def name_of(dtype: DType) -> str: return ALIASES_BY_TYPE[dtype]

def range_row(dtype: DType) -> str:
  """Largest and smallest number, what is beyond, what becomes of -0.0."""
  beyond, zero = (Tensor([x], device="CPU").cast(dtype).double().tolist()[0] for x in (1e300, -0.0))
  smallest = accuracy.smallest_of(dtype)
  infinity = "yes" if beyond == float("inf") else "no: NaN"
  return (f"| {name_of(dtype)} | {accuracy.largest_of(dtype):.6g} | {smallest:.6g} | {infinity} | "
          f"{'kept' if np.signbit(zero) else 'becomes 0.0'} |\n")

def sum_row(dtype: DType) -> str:
  x = Tensor.ones(1, 1, 2, 2, dtype=dtype, device="CPU")
  sums = (x.sum(), x.prod(), x.cumsum(), x.cumprod())
  products = (x @ x, x.dot(x[0, 0, 0]), x.linear(x), x.conv2d(x), x.conv_transpose2d(x),
              Tensor.einsum("abij,abjk->abik", x, x),
              Tensor.einsum("abij->a", x))
  means = (x.mean(), x.var(), x.std(), x.softmax(), x.layernorm())
  columns = [{y.dtype for y in column} for column in (sums, products, means)]
  assert all(len(column) == 1 for column in columns) and x.max().dtype is dtype, columns
  return f"| {name_of(dtype)} | {name_of(graph.accumulator(dtype))} | " + " | ".join(name_of(column.pop())
                                                                                     for column in columns) + " |\n"

def promotion_table() -> str:
  types = (dtypes.bool, *sorted(dtypes.ints + dtypes.floats, key=lambda d: d.priority))
  short = {d: name_of(d).replace("float", "f").replace("uint", "u").replace("int", "i") for d in types}
  head = "| | " + " | ".join(short.values()) + " |\n|" + "---|" * (len(types) + 1) + "\n"
  return head + "".join(f"| **{short[a]}** | " + " | ".join(short[least_upper_dtype(a, b)] for b in types) + " |\n"
                        for a in types)

# ***** sums *****

def various(count: int) -> float:
  """The sum of (k % 1000 + 1) / 10, which no memory holds."""
  got = ((Tensor.arange(count, device="CPU") % 1000 + 1).cast(dtypes.float32) * 0.1).sum().item()
  terms = (np.arange(1, 1001, dtype=np.float32) * np.float32(0.1)).astype(np.float64)
  whole, rest = divmod(count, 1000)
  return relative(got, float(terms.sum() * whole + terms[:rest].sum()))

def alike(shape: tuple[int, ...], axis: int | None) -> float:
  """The sum of 0.1 over and over, from memory."""
  x = np.full(shape, 0.1, np.float32)
  return relative(Tensor(x, device="CPU").sum(axis).max().item(),
                  float(x[0].flat[0]) * (x.size if axis is None else shape[axis]))

def relative(got: object, want: float) -> float: return abs(float(str(got)) - want) / want

SUMS: dict[str, Callable[[], float]] = {
  "2**16 various": lambda: various(1 << 16), "2**20 various": lambda: various(1 << 20),
  "2**26 various": lambda: various(1 << 26),
  "2**22 alike": lambda: alike((1 << 22, 1), None),
  "each of 16 columns of 2**18 alike": lambda: alike((1 << 18, 16), 0),
  "each of 16 rows of 2**18 alike": lambda: alike((16, 1 << 18), 1),
}

def document() -> str:
  """The whole text."""
  swept = ", ".join(f"{op.name} {error}" for op, error in SWEPT.items())
  head = HEAD.format(single=accuracy.SAMPLES[dtypes.float32], double=accuracy.SAMPLES[dtypes.float64],
                     python=accuracy.PYTHON_SAMPLES)
  operations = "".join(accuracy_row(*item) for item in accuracy.OPERATIONS.items())
  methods = "".join(accuracy_row(*item) for item in accuracy.METHODS.items())
  sums = "".join(f"| {what} | {error():.1e} |\n" for what, error in SUMS.items())
  return (head + TABLE + operations + FUNCTIONS + "".join(map(function_row, ulps.FUNCTIONS))
          + GPUS + "".join(map(unit_row, (*EXACTLY, *ulps.FUNCTIONS)))
          + NVIDIA + "".join(map(nvidia_row, (*EXACTLY, *ulps.FUNCTIONS))) + METHODS.format(swept=swept) + TABLE
          + methods + REST
          + "".join(map(range_row, dtypes.floats)) + REDUCTIONS
          + "".join(map(sum_row, (dtypes.bool, *dtypes.ints, *dtypes.floats)))
          + ORDER + sums + PROMOTION + promotion_table())

if __name__ == "__main__":
  if not accuracy.EXACT: sys.exit("NumPy's longdouble is no wider than a float64 here; run this on x86-64 Linux")
  DOCUMENT.write_text(document(), encoding="utf-8")
