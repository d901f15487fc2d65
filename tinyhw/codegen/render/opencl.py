"""OpenCL C 1.2, for the OPENCL device: lanes of workgroups, barriers, shared memory.

A work item of the grid is a workgroup of `Program.lanes` work items of OpenCL. Each buffer is two arguments: memory,
and the offset of the first byte, since a buffer may begin anywhere in memory. Shared memory is one array, in which each
DEFINE_LOCAL has its offset: OpenCL C allows such arrays only at the top of a function.

Compile without contraction of products and sums (the pragma is in the source), and with correctly rounded division and
square root of float32. The sources of several Programs may be joined, if their functions have different names there.
"""
from __future__ import annotations

from tinyhw.codegen.render import opencl_vectors
from tinyhw.codegen.render.c_like import CLike
from tinyhw.codegen.render.dialect import Dialect, VectorSyntax
from tinyhw.codegen.render.prelude import IntegerWords, to_integer
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

INTEGERS = IntegerWords("inline", "int", "long", "ulong", "INT_MIN", "LONG_MIN", "f")
WORDS = CLike(
  language="OpenCL C",
  types={dtypes.bool: "uchar", dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short",
         dtypes.uint16: "ushort", dtypes.int32: "int", dtypes.uint32: "uint", dtypes.int64: "long",
         dtypes.uint64: "ulong", dtypes.weakint: "long", dtypes.float32: "float", dtypes.float64: "double",
         dtypes.float16: "ushort", dtypes.bfloat16: "ushort", **{d: "uchar" for d in dtypes.fp8s}},
  functions={Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.MULACC: "fma"},
  bitcasts="as_{target}({x})", vector_bitcasts="as_{type}({x})", infinity="INFINITY", nan="NAN", wide=("l", "ul"),
  smallest={32: "INT_MIN", 64: "LONG_MIN"},
  helpers={**to_integer("float32", "float", INTEGERS), **to_integer("float64", "double", INTEGERS)})
CONTRACTION = "#pragma OPENCL FP_CONTRACT OFF"
DOUBLES = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"   # only compilers before OpenCL 1.2 need it
SHARED = "shared_bytes"
WIDTHS = (2, 3, 4, 8, 16)   # lanes of vector types
PREFIX = "k_"   # of the function's name, which may else be that of a function of OpenCL C

def type_name(source: SourceText, dtype: DType) -> str:
  """Return the type of values of dtype."""
  element = WORDS.type_of_lane(dtype)
  if dtype.count not in (1, *WIDTHS):
    raise CompileError(f"{source.program.name}: OpenCL C has no vectors of {dtype.count} lanes; use {WIDTHS}")
  if dtype.scalar() is dtypes.float64: source.needed["fp64"] = DOUBLES
  return element if dtype.count == 1 else f"{element}{dtype.count}"

def compute(source: SourceText, u: UOp) -> None:
  """Define an elementwise operation: on whole vectors where there is a form for it."""
  text = opencl_vectors.whole(WORDS, source, u) if u.dtype.count > 1 else None
  if text is None: WORDS.compute(source, u)
  else: source.define(u, [text])

def head(source: SourceText) -> list[str]:
  """Return the lines before the body: pragmas, helpers, the function's own line, shared memory."""
  program, params = source.program, len(source.program.params)
  arguments = [part for k in range(params) for part in (f"__global uchar *memory{k}", f"long offset{k}")]
  arguments += [f"long number{params + k}" for k in range(len(program.variables))]
  lines = [CONTRACTION, *source.needed.values(), *WORDS.needed_helpers(source),
           f"__kernel __attribute__((reqd_work_group_size({program.lanes}, 1, 1)))",
           f"void {PREFIX}{program.name}({', '.join(arguments)}) {{"]
  if program.local_bytes:
    lines.append(f"  __local uchar {SHARED}[{program.local_bytes}] __attribute__((aligned(64)));")
  return lines

def address(source: SourceText, place: UOp) -> str:
  memory, at = source.places[place]
  return f"{memory} + {source.value(at)}"

VECTORS = VectorSyntax(
  lane=lambda dtype, value, k: f"{value}.s{k:x}",
  join=lambda source, dtype, lanes: f"({type_name(source, dtype)})({', '.join(lanes)})",
  is_whole=lambda dtype, indices, gates: indices == 1 == gates and dtype.scalar() is not dtypes.bool,
  load=lambda source, place, dtype: f"vload{dtype.count}(0, {address(source, place)})",
  store=lambda source, place, value: f"vstore{value.dtype.count}({source.value(value)}, 0, {address(source, place)});",
  choice="{gate} ? {value} : {other}")

OPENCL = Dialect(
  name="OpenCL C", head=head, type=type_name, literal=WORDS.literal, compute=compute, vectors=VECTORS,
  declaration="{type} {name} = {value};", assignment="{place} = {value};",
  choice="{gate} ? {value} : {other}", guard="if ({gate}) {statement}", condition="if ({gate}) {{",
  loop="for ({type} {name} = 0; {name} < {end}; {name}++) {{",
  loops={AxisType.GLOBAL: "{{ const {type} {name} = get_group_id(0);",
         AxisType.LOCAL: "{{ const {type} {name} = get_local_id(0);"},
  param_name="data{slot}", param="__global {type} *{name} = (__global {type} *)(memory{position} + offset{position});",
  variable_name="n{number}", variable="{type} {name} = ({type})number{position};",
  local_name="local{id}", local=f"__local {{type}} *{{name}} = (__local {{type}} *)({SHARED} + {{offset}});",
  loaded=lambda dtype, text: f"{text} != 0" if dtype is dtypes.bool else text, tail=("}", ""),
  barrier="barrier(CLK_LOCAL_MEM_FENCE);")
render = OPENCL.render
