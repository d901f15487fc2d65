"""Render a Program as C source, for the CLANG device: C99 with the vector types and builtins that gcc and clang share.

The function has the CPU's kernel ABI (docs/design/devices.md). Values with lanes are vector types, rounded up to a
power of two lanes. Operations without a vector operator in C are written lane by lane, and compilers join them again.
bool has lanes of 0 and 1 in unsigned char. Float types narrower than float32 are held as their bits; arithmetic on them
goes through float.

Compile with -ffp-contract=off -fno-math-errno -fno-strict-aliasing. No function of libm is called where the processor
has instructions for fma, sqrt and trunc. One file may contain the sources of several Programs, if their functions have
different names there. Types and helpers that two of them have are defined once.
"""
from __future__ import annotations
import math
import struct
from collections.abc import Callable

from tinyhw.arithmetic import CODED, round_to
from tinyhw.codegen.render.prelude import HELPERS
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

_TYPES: dict[DType, str] = {
  dtypes.bool: "uint8_t", dtypes.int8: "int8_t", dtypes.uint8: "uint8_t", dtypes.int16: "int16_t",
  dtypes.uint16: "uint16_t",
  dtypes.int32: "int32_t", dtypes.uint32: "uint32_t", dtypes.int64: "int64_t", dtypes.uint64: "uint64_t",
  dtypes.weakint: "int64_t",
  dtypes.float32: "float", dtypes.float64: "double", dtypes.float16: "uint16_t", dtypes.bfloat16: "uint16_t",
  **{d: "uint8_t" for d in dtypes.fp8s},
}
_NARROW = frozenset(dtypes.narrow_floats)
_INFIX: dict[Ops, str] = {
  Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.CMPLT: "<",
  Ops.CMPNE: "!=", Ops.CMPEQ: "==",
}
_ON_BOOLS: dict[Ops, str] = {Ops.ADD: "|", Ops.MUL: "&", Ops.SUB: "^",
                             **{op: _INFIX[op] for op in (Ops.AND, Ops.OR, Ops.XOR)}}
_VECTOR_INFIX = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.AND, Ops.OR, Ops.XOR})

def render(program: Program) -> str:
  """Return the source of a function named as the program.

  Raises CompileError for operations that C on a CPU does not have: BARRIER, MMA, transcendental functions.
  """
  return _C(program).source()

def scalar_type(dtype: DType) -> str:
  """Return the C type of one lane."""
  if dtype.scalar() not in _TYPES: raise CompileError(f"C has no values of {dtype}")
  return _TYPES[dtype.scalar()]

def padded_lanes(dtype: DType) -> int:
  """Return the lanes of the C vector type that holds dtype: the next power of two."""
  return 1 << (dtype.count - 1).bit_length()

def type_name(dtype: DType) -> str:
  return scalar_type(dtype) if dtype.count == 1 else f"{scalar_type(dtype)}{padded_lanes(dtype)}"

class _C:
  """The lines written so far, the names of values, and the types and helpers that they need."""
  def __init__(self, program: Program):
    self.program = program
    self.lines: list[str] = []
    self.depth = 1
    self.names: dict[UOp, str] = {}
    self.places: dict[UOp, tuple[str, UOp]] = {}  # INDEX -> buffer, index
    self.offsets = program.local_offsets
    self.vectors: dict[str, str] = {}
    self.helpers: dict[str, None] = {}
    self.count = 0

  def source(self) -> str:
    for u in self.program.uops:
      rule = _RULES.get(u.op)
      if rule is not None: rule(self, u)
      elif u.op in GroupOp.Elementwise: self.elementwise(u)
      else:
        raise CompileError(f"{self.program.name}: C has no {u.op.name}; compile without workgroups and matrix units")
    needed = self._needed_helpers()
    helpers = [f"#ifndef HAS_{name}\n#define HAS_{name}\n{HELPERS[name]}\n#endif" for name in HELPERS if name in needed]
    head = ["#include <stdint.h>", *self.vectors.values(), *helpers]
    head.append(f"void {self.program.name}(const uint64_t *arguments, int64_t first, int64_t last, uint8_t *scratch) "
                f"{{")
    return "\n".join(head + self.lines + ["}", ""])

  def _needed_helpers(self) -> set[str]:
    needed = set(self.helpers)
    while True:
      more = {name for name in HELPERS for user in needed if f"{name}(" in HELPERS[user]} | needed
      if more == needed: return needed
      needed = more

  def line(self, text: str) -> None: self.lines.append("  " * self.depth + text)

  def helper(self, name: str) -> str:
    assert name in HELPERS, f"no helper {name}"
    self.helpers[name] = None
    return name

  def type(self, dtype: DType) -> str:
    """Return the C type of values of dtype, and declare it if it is a vector.

    `<name>_u` is the same in memory that is aligned for elements only.
    """
    name = type_name(dtype)
    if dtype.count > 1 and name not in self.vectors:
      element, size = scalar_type(dtype), dtype.scalar().itemsize
      attributes = f"vector_size({padded_lanes(dtype) * size})"
      self.vectors[name] = (f"typedef {element} {name} __attribute__(({attributes}));\n"
                            f"typedef {element} {name}_u __attribute__(({attributes}, aligned({size}), may_alias));")
    return name

  def define(self, u: UOp, text: str, prefix: str = "v") -> None:
    self.count += 1
    self.names[u] = f"{prefix}{self.count}"
    self.line(f"{self.type(u.dtype)} {self.names[u]} = {text};")

  def lane(self, u: UOp, k: int) -> str: return self.names[u] if u.dtype.count == 1 else f"{self.names[u]}[{k}]"

  def gather_lanes(self, u: UOp, texts: list[str]) -> str:
    """Return a value from its lanes' texts."""
    return texts[0] if len(texts) == 1 else f"({self.type(u.dtype)}){{{', '.join(texts)}}}"

  # ***** arithmetic *****

  def elementwise(self, u: UOp) -> None:
    n, scalar = u.dtype.count, u.dtype.scalar()
    if u.op is Ops.BITCAST and n != u.src[0].dtype.count:
      raise CompileError(f"{self.program.name}: no BITCAST between numbers of lanes")
    # a cast of vectors keeps their bits; lane by lane, GCC 12 takes the wrong ones on AVX-512: test_c.py
    if n > 1 and u.op is Ops.BITCAST:
      return self.define(u, f"({self.type(u.dtype)}){self.names[u.src[0]]}")
    plain = scalar not in _NARROW and (dtypes.is_float(scalar) or u.op in (Ops.AND, Ops.OR, Ops.XOR)
                                       or dtypes.is_unsigned(scalar))
    if n > 1 and u.op in _VECTOR_INFIX and plain and all(s.dtype is u.dtype for s in u.src):
      return self.define(u, f"{self.names[u.src[0]]} {_INFIX[u.op]} {self.names[u.src[1]]}")
    # lane by lane, GCC 12 takes the wrong lanes on AVX-512: test_c.py
    if n > 1 and u.op is Ops.WHERE and u.src[0].op is Ops.BROADCAST:
      return self.define(u, f"{self.names[u.src[0].src[0]]} ? {self.names[u.src[1]]} : {self.names[u.src[2]]}")
    self.define(u, self.gather_lanes(u, [self.expression(u, [self.lane(s, k) for s in u.src]) for k in range(n)]))

  def expression(self, u: UOp, x: list[str]) -> str:
    """Return one lane of an elementwise operation on the lanes x of its sources."""
    op, scalar, source = u.op, u.dtype.scalar(), u.src[-1].dtype.scalar()
    if op is Ops.CAST: return self.cast(x[0], source, scalar)
    if op is Ops.BITCAST: return self.bitcast(x[0], source, scalar)
    if op is Ops.WHERE: return f"{x[0]} ? {x[1]} : {x[2]}"
    if source in _NARROW:  # computed in float
      wide = [self.cast(y, source, dtypes.float32) for y in x]
      if op in GroupOp.Comparison: return f"{wide[0]} {_INFIX[op]} {wide[1]}"
      return self.cast(self.operation(u, wide, dtypes.float32), dtypes.float32, scalar)
    if op in GroupOp.Comparison: return f"{x[0]} {_INFIX[op]} {x[1]}"
    return self.operation(u, x, scalar)

  def operation(self, u: UOp, x: list[str], scalar: DType) -> str:
    if dtypes.is_float(scalar): return self.float_operation(u, x, scalar)
    if u.op is Ops.MAX: return f"{x[0]} < {x[1]} ? {x[1]} : {x[0]}"
    if scalar is dtypes.bool:
      if u.op is Ops.NEG: return f"!{x[0]}"
      if u.op in _ON_BOOLS: return f"{x[0]} {_ON_BOOLS[u.op]} {x[1]}"
    return self.int_operation(u, x, scalar)

  def float_operation(self, u: UOp, x: list[str], scalar: DType) -> str:
    suffix = "" if scalar is dtypes.float64 else "f"
    if u.op in _INFIX: return f"{x[0]} {_INFIX[u.op]} {x[1]}"
    if u.op is Ops.MAX: return f"({x[0]}) < ({x[1]}) || ({x[1]}) != ({x[1]}) ? ({x[1]}) : ({x[0]})"
    if u.op is Ops.NEG: return f"-{x[0]}"
    if u.op is Ops.RECIPROCAL: return f"1.0{suffix} / {x[0]}"
    builtin = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.MULACC: "fma"}.get(u.op)
    if builtin is None:
      raise CompileError(f"{self.program.name}: C has no {u.op.name} of {scalar} without a library; decompose it first")
    return f"__builtin_{builtin}{suffix}({', '.join(x)})"

  def int_operation(self, u: UOp, x: list[str], scalar: DType) -> str:
    """Return signed arithmetic as unsigned arithmetic, where overflow wraps."""
    kind, wide = scalar_type(scalar), "uint64_t" if scalar.bitsize == 64 or scalar is dtypes.weakint else "uint32_t"
    name = ALIASES_BY_TYPE[scalar] if scalar is not dtypes.weakint else "int64"
    if u.op in (Ops.ADD, Ops.SUB, Ops.MUL): return f"({kind})(({wide}){x[0]} {_INFIX[u.op]} ({wide}){x[1]})"
    if u.op in (Ops.AND, Ops.OR, Ops.XOR): return f"{x[0]} {_INFIX[u.op]} {x[1]}"
    if u.op is Ops.MULACC: return f"({kind})(({wide}){x[0]} * ({wide}){x[1]} + ({wide}){x[2]})"
    if u.op is Ops.NEG: return f"({kind})(0 - ({wide}){x[0]})"
    if u.op is Ops.TRUNC: return x[0]
    if u.op in (Ops.IDIV, Ops.MOD):
      if u.src[0].vmin >= 0 and u.src[1].vmin > 0: return f"({kind})({x[0]} {'/' if u.op is Ops.IDIV else '%'} {x[1]})"
      return f"{self.helper(f'{u.op.name.lower()}_{name}')}({x[0]}, {x[1]})"
    if u.op in (Ops.SHL, Ops.SHR):
      bits = 64 if scalar is dtypes.weakint else scalar.bitsize
      inside = f"(uint64_t){x[1]} < {bits}"
      if u.op is Ops.SHL: return f"{inside} ? ({kind})(({wide}){x[0]} << {x[1]}) : 0"
      return (f"{inside} ? ({kind})({x[0]} >> {x[1]}) : "
              f"{f'({kind})0' if dtypes.is_unsigned(scalar) else f'({kind})({x[0]} >> {bits - 1})'}")
    if u.op is Ops.THREEFRY: return f"{self.helper('threefry')}({x[0]}, {x[1]})"
    raise CompileError(f"{self.program.name}: C has no {u.op.name} of {scalar}")

  def cast(self, x: str, source: DType, target: DType) -> str:
    """Return a conversion, as arithmetic.cast defines it."""
    if source is target: return x
    if source in _NARROW:
      return self.cast(f"{self.helper(f'decode_{ALIASES_BY_TYPE[source]}')}({x})", dtypes.float32, target)
    if target in _NARROW and source is dtypes.float64:
      return self.cast(f"{self.helper('round_to_odd')}({x})", dtypes.float32, target)
    if target in _NARROW:
      return f"{self.helper(f'encode_{ALIASES_BY_TYPE[target]}')}({self.cast(x, source, dtypes.float32)})"
    if target is dtypes.bool: return f"({x}) != 0"
    kind = scalar_type(target)
    if not dtypes.is_float(source) or dtypes.is_float(target): return f"({kind})({x})"
    integer = {dtypes.uint64: "uint64", dtypes.int64: "int64", dtypes.weakint: "int64",
               dtypes.uint32: "int64"}.get(target, "int32")
    return f"({kind}){self.helper(f'{ALIASES_BY_TYPE[source]}_to_{integer}')}({x})"

  def bitcast(self, x: str, source: DType, target: DType) -> str:
    a, b = scalar_type(source), scalar_type(target)
    if target is dtypes.bool: return f"({x}) != 0"
    if a == b: return x
    if not {a, b} & {"float", "double"}: return f"({b})({x})"
    return f"((union {{{a} from; {b} to;}}){{{x}}}).to"

  # ***** everything else *****

  def constant(self, u: UOp) -> None:
    text = literal(u)
    self.names[u] = text
    if u.dtype.count > 1: self.define(u, self.gather_lanes(u, [text] * u.dtype.count))

  def param(self, u: UOp) -> None:
    self.names[u] = f"data{u.arg[0]}"
    position = self.program.params.index(u)
    kind = scalar_type(u.dtype)
    self.line(f"{kind} *{self.names[u]} = ({kind} *)arguments[{position}];")

  def variable(self, u: UOp) -> None:
    position = len(self.program.params) + self.program.variables.index(u)
    self.define(u, f"({scalar_type(u.dtype)})arguments[{position}]", "n")

  def local(self, u: UOp) -> None:
    self.names[u] = f"local{u.arg[0]}"
    kind = scalar_type(u.dtype)
    self.line(f"{kind} *{self.names[u]} = ({kind} *)(scratch + {self.offsets[u]});")

  def range(self, u: UOp) -> None:
    self.count += 1
    name, kind = f"i{u.arg[0]}_{self.count}", scalar_type(u.dtype)
    begin, end = ("first", "last") if u.arg[1] is AxisType.GLOBAL else ("0", self.names[u.src[0]])
    self.line(f"for ({kind} {name} = {begin}; {name} < {end}; {name}++) {{")
    self.names[u] = name
    self.depth += 1

  def condition(self, u: UOp) -> None:
    self.line(f"if ({self.names[u.src[0]]}) {{")
    self.depth += 1

  def end(self, u: UOp) -> None:
    self.depth -= 1
    self.line("}")

  def index(self, u: UOp) -> None: self.places[u] = self.names[u.src[0]], u.src[1]

  def element(self, place: UOp, k: int) -> str:
    buffer, at = self.places[place]
    if at.dtype.count > 1: return f"{buffer}[{self.lane(at, k)}]"
    return f"{buffer}[{self.names[at]} + {k}]" if k else f"{buffer}[{self.names[at]}]"

  def whole(self, place: UOp, dtype: DType) -> str | None:
    """Return the text of a vector in memory; None where it is not contiguous."""
    buffer, at = self.places[place]
    if at.dtype.count > 1 or padded_lanes(dtype) != dtype.count: return None
    name = self.type(dtype)
    return f"*({name}_u *)({buffer} + {self.names[at]})"

  def load(self, u: UOp) -> None:
    n = u.dtype.count
    whole = self.whole(u.src[0], u.dtype) if n > 1 else None
    if whole is not None and (len(u.src) == 1 or u.src[1].dtype.count == 1):
      return self.define(u, whole if len(u.src) == 1 else f"{self.names[u.src[1]]} ? ({self.type(u.dtype)}){whole} : "
                         f"{self.names[u.src[2]]}")
    texts = [self.element(u.src[0], k) for k in range(n)]
    if u.dtype.scalar() is dtypes.bool: texts = [f"{x} != 0" for x in texts]
    if len(u.src) > 1:
      texts = [f"{self.lane(u.src[1], k)} ? {x} : {self.lane(u.src[2], k)}" for k, x in enumerate(texts)]
    self.define(u, self.gather_lanes(u, texts))

  def store(self, u: UOp) -> None:
    value = u.src[1]
    whole = self.whole(u.src[0], value.dtype) if value.dtype.count > 1 else None
    gate = u.src[2] if len(u.src) > 2 else None
    if whole is not None and (gate is None or gate.dtype.count == 1):
      return self.line((f"if ({self.names[gate]}) " if gate is not None else "") + f"{whole} = {self.names[value]};")
    for k in range(value.dtype.count):
      guard = f"if ({self.lane(gate, k)}) " if gate is not None else ""
      self.line(f"{guard}{self.element(u.src[0], k)} = {self.lane(value, k)};")

  def accumulator(self, u: UOp) -> None: self.define(u, self.names[u.src[0]], "a")

  def assign(self, u: UOp) -> None:
    self.line(f"{self.names[u.src[0]]} = {self.names[u.src[1]]};")
    self.names[u] = self.names[u.src[0]]

  def broadcast(self, u: UOp) -> None: self.define(u, self.gather_lanes(u, [self.names[u.src[0]]] * u.dtype.count))
  def vectorize(self, u: UOp) -> None: self.define(u, self.gather_lanes(u, [self.names[s] for s in u.src]))
  def get_lanes(self, u: UOp) -> None:
    self.define(u, self.gather_lanes(u, [self.lane(u.src[0], u.arg + k) for k in range(u.dtype.count)]))
  def shuffle(self, u: UOp) -> None:
    n = u.src[0].dtype.count
    self.define(u, self.gather_lanes(u, [self.lane(u.src[k // n], k % n) for k in u.arg]))
  def nothing(self, u: UOp) -> None: pass

_RULES: dict[Ops, Callable[[_C, UOp], None]] = {
  Ops.CONST: _C.constant, Ops.PARAM: _C.param, Ops.DEFINE_VAR: _C.variable, Ops.DEFINE_LOCAL: _C.local,
  Ops.RANGE: _C.range, Ops.END: _C.end,
  Ops.IF: _C.condition, Ops.ENDIF: _C.end, Ops.INDEX: _C.index, Ops.LOAD: _C.load, Ops.STORE: _C.store,
  Ops.ACC: _C.accumulator,
  Ops.ASSIGN_ACC: _C.assign, Ops.BROADCAST: _C.broadcast, Ops.VECTORIZE: _C.vectorize, Ops.GEP: _C.get_lanes,
  Ops.SHUFFLE: _C.shuffle,
  Ops.SINK: _C.nothing,
  Ops.NOOP: _C.nothing, Ops.GROUP: _C.nothing,
}

def literal(u: UOp) -> str:
  """Return a CONST as C text, rounded or wrapped to its type. Floats are hexadecimal, hence exact."""
  scalar = u.dtype.scalar()
  value = round_to(scalar)(u.arg)
  if scalar is dtypes.bool: return str(int(value))
  if scalar in CODED: return str(CODED[scalar][1](value))
  if dtypes.is_float(scalar):
    suffix = "" if scalar is dtypes.float64 else "f"
    if math.isfinite(value): return f"({value.hex()}{suffix})"
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    if value == value: return f"({'-' if bits >> 63 else ''}__builtin_inf{suffix}())"
    return f"__builtin_nan{suffix}(\"\")"
  if value == -(1 << 63): return "INT64_MIN"
  if scalar is dtypes.uint64: return f"{value}ull"
  if scalar is dtypes.uint32: return f"{value}u"
  if scalar.bitsize >= 64: return f"({value}ll)"
  return "INT32_MIN" if value == -(1 << 31) else f"({value})"
