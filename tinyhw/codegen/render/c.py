"""C99 with the vector types and builtins that gcc and clang share, for the CLANG device.

The function has the CPU's kernel ABI (docs/design/devices.md). Values with lanes are vector types, rounded up to a
power of two lanes.

Compile with -ffp-contract=off -fno-math-errno -fno-strict-aliasing. No function of libm is called where the processor
has instructions for fma, sqrt and trunc. One file may contain the sources of several Programs, if their functions have
different names there. Types and helpers that two of them have are defined once.
"""
from __future__ import annotations

from tinyhw.codegen.render.c_like import CLike
from tinyhw.codegen.render.dialect import Dialect, VectorSyntax
from tinyhw.codegen.render.prelude import HELPERS
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

WORDS = CLike(
  language="C",
  types={dtypes.bool: "uint8_t", dtypes.int8: "int8_t", dtypes.uint8: "uint8_t", dtypes.int16: "int16_t",
         dtypes.uint16: "uint16_t", dtypes.int32: "int32_t", dtypes.uint32: "uint32_t", dtypes.int64: "int64_t",
         dtypes.uint64: "uint64_t", dtypes.weakint: "int64_t", dtypes.float32: "float", dtypes.float64: "double",
         dtypes.float16: "uint16_t", dtypes.bfloat16: "uint16_t", **{d: "uint8_t" for d in dtypes.fp8s}},
  functions={Ops.SQRT: "__builtin_sqrt{suffix}", Ops.TRUNC: "__builtin_trunc{suffix}",
             Ops.MULACC: "__builtin_fma{suffix}"},
  bitcasts="((union {{{source} from; {target} to;}}){{{x}}}).to", vector_bitcasts="({type}){x}",
  infinity="__builtin_inf{suffix}()", nan='__builtin_nan{suffix}("")', wide=("ll", "ull"),
  smallest={32: "INT32_MIN", 64: "INT64_MIN"}, helpers=HELPERS)

def padded_lanes(dtype: DType) -> int:
  """Return the lanes of the vector type that holds dtype: the next power of two."""
  return 1 << (dtype.count - 1).bit_length()

def type_name(source: SourceText, dtype: DType) -> str:
  """Return the type of values of dtype, and declare it if it is a vector.

  `<name>_u` is the same in memory that is aligned for elements only.
  """
  element = WORDS.type_of_lane(dtype)
  if dtype.count == 1: return element
  name, size = f"{element}{padded_lanes(dtype)}", dtype.scalar().itemsize
  attributes = f"vector_size({padded_lanes(dtype) * size})"
  source.needed[name] = (f"typedef {element} {name} __attribute__(({attributes}));\n"
                         f"typedef {element} {name}_u __attribute__(({attributes}, aligned({size}), may_alias));")
  return name

def in_memory(source: SourceText, place: UOp, dtype: DType) -> str:
  """Return a vector in memory, as an expression that can be assigned to."""
  memory, at = source.places[place]
  return f"*({type_name(source, dtype)}_u *)({memory} + {source.value(at)})"

VECTORS = VectorSyntax(
  lane=lambda dtype, value, k: f"{value}[{k}]",
  join=lambda source, dtype, lanes: f"({type_name(source, dtype)}){{{', '.join(lanes)}}}",
  is_whole=lambda dtype, indices, gates: indices == 1 == gates and padded_lanes(dtype) == dtype.count,
  load=in_memory,
  store=lambda source, place, value: f"{in_memory(source, place, value.dtype)} = {source.value(value)};",
  choice="{gate} ? ({type}){value} : {other}")

def head(source: SourceText) -> list[str]:
  """Return the lines before the body: types, helpers and the function's own line."""
  return ["#include <stdint.h>", *source.needed.values(), *WORDS.needed_helpers(source),
          f"void {source.program.name}(const uint64_t *arguments, int64_t first, int64_t last, uint8_t *scratch) {{"]

C = Dialect(
  name="C", head=head, type=type_name, literal=WORDS.literal, compute=WORDS.compute, vectors=VECTORS,
  declaration="{type} {name} = {value};", assignment="{place} = {value};",
  choice="{gate} ? {value} : {other}", guard="if ({gate}) {statement}", condition="if ({gate}) {{",
  loop="for ({type} {name} = 0; {name} < {end}; {name}++) {{",
  loops={AxisType.GLOBAL: "for ({type} {name} = first; {name} < last; {name}++) {{"},
  param_name="data{slot}", param="{type} *{name} = ({type} *)arguments[{position}];",
  variable_name="n{number}", variable="{type} {name} = ({type})arguments[{position}];",
  local_name="local{id}", local="{type} *{name} = ({type} *)(scratch + {offset});",
  loaded=lambda dtype, text: f"{text} != 0" if dtype is dtypes.bool else text, tail=("}", ""))
render = C.render
