"""WGSL, the shading language of WebGPU, for the WEBGPU device: lanes of workgroups, barriers, shared memory.

A work item of the grid is a workgroup. A kernel has two groups of bindings: its buffers, and one uniform array of
32-bit numbers: 0 (wgsl_prelude.py), the grid, its columns, for each buffer the offset of its first byte, then two words
for each variable. A grid is two-dimensional, since WebGPU limits each dimension to 65535.

A buffer is an array of its elements. Elements of 8 and 16 bits are parts of 32-bit words, those of 64 bits pairs of
words. A lane that stores a part of a word changes it by atomic operations, since other lanes may store to the rest of
it. Values have no vector types: a vector is one value for each lane. Source: WebGPU Shading Language, W3C.
"""
from __future__ import annotations

from tinyhw.codegen.render.dialect import Dialect
from tinyhw.codegen.render.source import SourceText
from tinyhw.codegen.render.wgsl_numbers import NARROW, WIDE, ZERO, compute, first_values, literal, type_of
from tinyhw.codegen.render.wgsl_prelude import needed
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

PREFIX = "k_"     # of the function's name
GRID, COLUMNS, OFFSETS = 1, 2, 3   # places in the numbers
PARTS = frozenset({dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16}) | NARROW   # below 32 bits

def number(place: int) -> str: return f"numbers[{place // 4}].{'xyzw'[place % 4]}"

def words(program: Program) -> int:
  """Return the count of numbers of a kernel."""
  return OFFSETS + len(program.params) + 2 * len(program.variables)

def element(dtype: DType, is_written: bool) -> str:
  """Return the type of elements of an array in memory."""
  if dtype.scalar() in PARTS: return "atomic<u32>" if is_written else "u32"
  return type_of(dtype)

def head(source: SourceText) -> list[str]:
  """Return the lines before the body: bindings, shared memory, functions, the kernel's own line."""
  program = source.program
  arrays = [f"@group(0) @binding({k}) var<storage, read_write> data{p.arg[0]}: "
            f"array<{element(p.dtype, p.arg[0] in program.written)}>;" for k, p in enumerate(program.params)]
  return [*arrays, f"@group(1) @binding(0) var<uniform> numbers: array<vec4<u32>, {-(-words(program) // 4)}>;",
          f"var<private> {ZERO}: u32;", *source.needed.values(), *needed(set(source.helpers)),
          f"@compute @workgroup_size({max(program.lanes, 1)})",
          f"fn {PREFIX}{program.name}(@builtin(workgroup_id) place: vec3<u32>, "
          "@builtin(local_invocation_index) lane: u32) {",
          f"  {ZERO} = numbers[{number(0)}].x;", f"  let group = place.y * {number(COLUMNS)} + place.x;",
          f"  if (group >= {number(GRID)}) {{ return; }}"]

def define(source: SourceText, u: UOp, texts: list[str]) -> None:
  """Give lanes names that no other value has."""
  source.count += 1
  names = [f"v{source.count}"] if len(texts) == 1 else [f"v{source.count}_{k}" for k in range(len(texts))]
  for name, text in zip(names, texts): source.line(f"let {name}: {type_of(u.dtype)} = {text};")
  source.values[u] = names

def changing(source: SourceText, u: UOp, texts: list[str]) -> None:
  """Give lanes variables that may change."""
  define(source, u, texts)
  for k in range(len(texts)): source.lines[-1 - k] = source.lines[-1 - k].replace("let ", "var ", 1)

def param(source: SourceText, u: UOp) -> None:
  """Name a buffer. Its offset is a number."""
  name = f"data{u.arg[0]}"
  place = number(OFFSETS + source.program.params.index(u))
  source.line(f"let start{u.arg[0]} = {place} >> {u.dtype.scalar().itemsize.bit_length() - 1}u;")
  source.values[u] = [name]

def variable(source: SourceText, u: UOp) -> None:
  """Define a variable from its two words."""
  place = OFFSETS + len(source.program.params) + 2 * source.program.variables.index(u)
  low, high = number(place), number(place + 1)
  text = {"i32": f"bitcast<i32>({low})", "u32": low}.get(type_of(u.dtype), f"vec2<u32>({low}, {high})")
  source.define(u, [text])

def local(source: SourceText, u: UOp) -> None:
  """Declare an array in shared memory."""
  name, dtype = f"local{u.arg[0]}", u.dtype.scalar()
  size = -(-u.arg[1] * dtype.itemsize // 4) if dtype in PARTS else u.arg[1]
  source.needed[name] = f"var<workgroup> {name}: array<{element(dtype, True)}, {size}>;"
  source.values[u] = [name]

def position(source: SourceText, place: UOp, k: int) -> str:
  """Return the index of element k at an INDEX, as u32."""
  memory, at = source.places[place]
  text = source.lane(at, k) if at.dtype.count > 1 else source.value(at)
  text = f"{text}.x" if at.dtype.scalar() in WIDE else f"u32({text})"
  if k and at.dtype.count == 1: text += f" + {k}u"
  return f"start{place.src[0].arg[0]} + {text}" if place.src[0].op is Ops.PARAM else text

def part(dtype: DType, at: str) -> tuple[str, str]:
  """Return the word of a part, and its first bit there."""
  return (f"({at}) >> 2u", f"(({at}) & 3u) * 8u") if dtype.itemsize == 1 else (f"({at}) >> 1u", f"(({at}) & 1u) * 16u")

def loaded(source: SourceText, place: UOp, dtype: DType, k: int) -> str:
  """Return element k at an INDEX as a value."""
  memory, at = source.places[place][0], position(source, place, k)
  if dtype not in PARTS: return f"{memory}[{at}]"
  word, bit = part(dtype, at)
  is_atomic = place.src[0].op is not Ops.PARAM or place.src[0].arg[0] in source.program.written
  text = f"atomicLoad(&{memory}[{word}])" if is_atomic else f"{memory}[{word}]"
  if type_of(dtype) == "i32": text = f"bitcast<i32>({text})"
  text = f"extractBits({text}, {bit}, {8 * dtype.itemsize}u)"
  return f"{text} != 0u" if dtype is dtypes.bool else text

def load(source: SourceText, u: UOp) -> None:
  """Write a LOAD. One with a gate is a variable, which a condition sets."""
  if u.arg is not None: raise source.missing(u.op)
  gate, dtype, n = u.src[1] if len(u.src) > 1 else None, u.dtype.scalar(), u.dtype.count
  texts = [loaded(source, u.src[0], dtype, k) for k in range(n)]
  if gate is None: return source.define(u, texts)
  changing(source, u, [source.lane(u.src[2], k) for k in range(n)])
  for k, text in enumerate(texts): source.line(f"if ({source.lane(gate, k)}) {{ {source.lane(u, k)} = {text}; }}")

def store(source: SourceText, u: UOp) -> None:
  """Write a STORE, lane by lane."""
  value, gate = u.src[1], u.src[2] if len(u.src) > 2 else None
  memory, dtype = source.places[u.src[0]][0], value.dtype.scalar()
  for k in range(value.dtype.count):
    at, text = position(source, u.src[0], k), source.lane(value, k)
    if dtype not in PARTS:
      source.statement(f"{memory}[{at}] = {text};", gate, k)
      continue
    word, bit = part(dtype, at)
    mask = f"{(1 << 8 * dtype.itemsize) - 1:#x}u"
    bits = {"bool": f"select(0u, 1u, {text})", "i32": f"bitcast<u32>({text})"}.get(type_of(dtype), text)
    source.statement(f"{{ atomicAnd(&{memory}[{word}], ~({mask} << ({bit}))); "
                     f"atomicOr(&{memory}[{word}], ({bits} & {mask}) << ({bit})); }}", gate, k)

def check_range(source: SourceText, u: UOp) -> None:
  """Open a loop. Its end is below 2**31."""
  if u.dtype.scalar() in WIDE:
    raise CompileError(f"{source.program.name}: WGSL counts loops with 32 bits; use smaller sizes")
  source.range(u)

WGSL = Dialect(
  name="WGSL", head=head, type=lambda source, dtype: type_of(dtype), literal=literal, compute=compute,
  declaration="", define=define, assignment="{place} = {value};",
  choice="select({other}, {value}, {gate})",
  guard="if ({gate}) {{ {statement} }}", condition="if ({gate}) {{",
  loop="for (var {name}: {type} = 0; {name} < {end}; {name}++) {{",
  loops={AxisType.GLOBAL: "{{ let {name}: {type} = {type}(group);",
         AxisType.LOCAL: "{{ let {name}: {type} = {type}(lane);"},
  param_name="", param="", variable_name="", variable="", local_name="", local="", barrier="workgroupBarrier();",
  tail=("}", ""), rules={Ops.PARAM: param, Ops.DEFINE_VAR: variable, Ops.DEFINE_LOCAL: local, Ops.LOAD: load,
                         Ops.STORE: store, Ops.RANGE: check_range,
                         Ops.ACC: lambda source, u: changing(source, u, first_values(source, u))})
render = WGSL.render
