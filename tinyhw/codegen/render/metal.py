"""The Metal Shading Language (3.0 and newer), with lanes, exchanges and matrices of SIMD-groups.

A work item of the grid is a threadgroup. Buffers are arguments with the address of their first element; all variables
are one more argument, an array of constants. Where these are more arguments than Metal has, the last buffers are
pointers in a structure, which is the last argument. Shared memory is one argument, whose length the launch gives; each
DEFINE_LOCAL has its offset.

Compile without fast math. Source: Metal Shading Language Specification. Of a matrix in a SIMD-group each lane has two
neighbours of a row; `MATRICES` has the layout, which the specification does not define.
"""
from __future__ import annotations

from tinyhw.codegen.render.c_like import CLike
from tinyhw.codegen.render.dialect import Dialect, VectorSyntax
from tinyhw.codegen.render.prelude import IntegerWords, to_integer
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import Layout, Matrix
from tinyhw.uop.ops import UOp

WIDTHS = (2, 4)          # lanes of vector types; those of 3 have the size of 4
PREFIX = "k_"            # of the function's name
SHARED = "shared_bytes"
MOST_ARGUMENTS = 31      # buffers, and one for variables
DIRECT = 29              # buffers that are arguments, where there are more of them
MOST_POINTERS = 512      # of the structure: 4096 bytes
SLOTS = "slots"
LOWEST = "(-2147483647 - 1)", "(-9223372036854775807l - 1)"
INTEGERS = IntegerWords("inline", "int", "long", "ulong", *LOWEST, "f")
WORDS = CLike(
  language="Metal",
  types={dtypes.bool: "uchar", dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short",
         dtypes.uint16: "ushort", dtypes.int32: "int", dtypes.uint32: "uint", dtypes.int64: "long",
         dtypes.uint64: "ulong", dtypes.weakint: "long", dtypes.float32: "float", dtypes.float16: "ushort",
         dtypes.bfloat16: "ushort", **{d: "uchar" for d in dtypes.fp8s}},
  functions={Ops.SQRT: "precise::sqrt", Ops.TRUNC: "trunc", Ops.MULACC: "fma"},
  bitcasts="as_type<{target}>({x})", vector_bitcasts="as_type<{type}>({x})", infinity="INFINITY", nan="NAN",
  wide=("l", "ul"), smallest=dict(zip((32, 64), LOWEST)),
  helpers={**to_integer("float32", "float", INTEGERS),
           "decode_float16": "inline float decode_float16(ushort c) { return float(as_type<half>(c)); }",
           "encode_float16": "inline ushort encode_float16(float x) { return as_type<ushort>(half(x)); }"})

def share(rows: str, columns: str) -> Layout:
  """Return how 32 lanes hold a matrix of 8 x 8."""
  return Layout(((columns, 2, 2), (rows, 4, 1), (columns, 2, 4), (rows, 2, 4)), ((columns, 2, 1),))

MATRICES = tuple(Matrix(8, 8, 8, operand, dtypes.float32, 32, share("row", "step"), share("step", "column"),
                        share("row", "column")) for operand in (dtypes.float16, dtypes.float32))

def type_name(source: SourceText, dtype: DType) -> str:
  """Return the type of values of dtype."""
  element = WORDS.type_of_lane(dtype)
  if dtype.count not in (1, *WIDTHS):
    raise CompileError(f"{source.program.name}: Metal has no vectors of {dtype.count} lanes; use {WIDTHS}")
  return element if dtype.count == 1 else f"{element}{dtype.count}"

def head(source: SourceText) -> list[str]:
  """Return the lines before the body: helpers, and the function's own line with its arguments."""
  program = source.program
  pointers = [f"device {WORDS.type_of_lane(p.dtype)} *data{p.arg[0]}" for p in program.params]
  direct = len(pointers) if len(pointers) + bool(program.variables) <= MOST_ARGUMENTS else DIRECT
  if len(pointers) - direct > MOST_POINTERS:
    raise CompileError(f"{program.name}: Metal has {DIRECT + MOST_POINTERS} arguments, not {len(pointers)}; realize "
                       f"parts of the expression first")
  arguments = [f"{pointer} [[buffer({k})]]" for k, pointer in enumerate(pointers[:direct])]
  if program.variables: arguments.append(f"constant long *numbers [[buffer({direct})]]")
  structure, loads = [], []
  if pointers[direct:]:
    name = f"{PREFIX}{program.name}_{SLOTS}"
    structure = [f"struct {name} {{ {'; '.join(pointers[direct:])}; }};"]
    arguments.append(f"constant {name} &{SLOTS} [[buffer({MOST_ARGUMENTS - 1})]]")
    loads = [f"  {pointer} = {SLOTS}.data{p.arg[0]};" for pointer, p in zip(pointers[direct:], program.params[direct:])]
  if program.local_bytes: arguments.append(f"threadgroup uchar *{SHARED} [[threadgroup(0)]]")
  arguments += ["uint group [[threadgroup_position_in_grid]]", "uint lane [[thread_index_in_threadgroup]]"]
  return ["#include <metal_stdlib>", "using namespace metal;", "#pragma METAL fp contract(off)",
          *WORDS.needed_helpers(source), *structure, f"kernel void {PREFIX}{program.name}({', '.join(arguments)}) {{",
          *loads]

def in_memory(source: SourceText, place: UOp, dtype: DType) -> str:
  """Return a vector in memory, as an expression that can be assigned to."""
  memory, at = source.places[place]
  space = "device" if place.src[0].op is Ops.PARAM else "threadgroup"
  return f"*({space} {type_name(source, dtype)} *)({memory} + {source.value(at)})"

def exchange(source: SourceText, u: UOp) -> None:
  """Write an EXCHANGE: of 64 bits in halves, of fewer than 32 bits in 32."""
  x, kind, by = source.value(u.src[0]), type_name(source, u.dtype), u.arg
  if u.dtype.itemsize == 8:
    halves = ", ".join(f"simd_shuffle_xor(as_type<uint2>({x}).{k}, {by})" for k in "xy")
    return source.define(u, [f"as_type<{kind}>(uint2({halves}))"])
  wide = f"{kind}(simd_shuffle_xor(int({x}), {by}))" if u.dtype.itemsize < 4 else f"simd_shuffle_xor({x}, {by})"
  source.define(u, [wide])

def multiply(source: SourceText, u: UOp) -> None:
  """Write an MMA: the lanes' shares go into matrices of the SIMD-group, and the sum comes back."""
  number, names = source.number(), []
  for letter, x in zip("abc", u.src):
    element = {dtypes.float16: "half", dtypes.float32: "float"}[x.dtype.scalar()]
    names.append(f"{letter}{number}")
    source.line(f"simdgroup_{element}8x8 {names[-1]};")
    for k in range(x.dtype.count):
      value = source.lane(x, k) if element == "float" else f"as_type<half>({source.lane(x, k)})"
      source.line(f"{names[-1]}.thread_elements()[{k}] = {value};")
  a, b, c = names
  source.line(f"simdgroup_multiply_accumulate({c}, {a}, {b}, {c});")
  source.define(u, [f"float2({c}.thread_elements()[0], {c}.thread_elements()[1])"])

VECTORS = VectorSyntax(
  lane=lambda dtype, value, k: f"{value}[{k}]",
  join=lambda source, dtype, lanes: f"{type_name(source, dtype)}({', '.join(lanes)})",
  is_whole=lambda dtype, indices, gates: indices == 1 == gates and dtype.scalar() is not dtypes.bool,
  load=in_memory,
  store=lambda source, place, value: f"{in_memory(source, place, value.dtype)} = {source.value(value)};",
  choice="{gate} ? {value} : {other}")

METAL = Dialect(
  name="Metal", head=head, type=type_name, literal=WORDS.literal, compute=WORDS.compute, vectors=VECTORS,
  declaration="{type} {name} = {value};", assignment="{place} = {value};",
  choice="{gate} ? {value} : {other}", guard="if ({gate}) {statement}", condition="if ({gate}) {{",
  loop="for ({type} {name} = 0; {name} < {end}; {name}++) {{",
  loops={AxisType.GLOBAL: "{{ const {type} {name} = group;", AxisType.LOCAL: "{{ const {type} {name} = lane;"},
  param_name="data{slot}", param="", variable_name="n{number}", variable="{type} {name} = ({type})numbers[{index}];",
  local_name="local{id}", local=f"threadgroup {{type}} *{{name}} = (threadgroup {{type}} *)({SHARED} + {{offset}});",
  loaded=lambda dtype, text: f"{text} != 0" if dtype is dtypes.bool else text, tail=("}", ""),
  barrier="threadgroup_barrier(mem_flags::mem_threadgroup);", rules={Ops.EXCHANGE: exchange, Ops.MMA: multiply})
render = METAL.render
