"""Programs as source text: C for CLANG, OpenCL C for OPENCL, Metal's for METAL, WGSL for WEBGPU, Python for
PYTHON, and pseudo-code for people."""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.codegen.render import c, metal, opencl, pseudo, python, wgsl
from tinyhw.errors import CompileError
from tinyhw.machine.ir.code import Code
from tinyhw.uop.program import Program

RENDERERS: dict[str, Callable[[Program], str]] = {
  "c": c.render, "metal": metal.render, "opencl": opencl.render, "python": python.render, "pseudo": pseudo.render,
  "wgsl": wgsl.render}

def render(program: Program, language: str) -> str:
  """Return program as source text in a language of RENDERERS."""
  if language not in RENDERERS: raise CompileError(f"no renderer for {language}; there are {', '.join(RENDERERS)}")
  return RENDERERS[language](program)

def compile_source(program: Program, arch: str) -> Code:
  """Return program as Code whose text is source, for a device whose arch begins with the language ("c", "python")."""
  arguments, language = ("buffer",) * len(program.params) + ("int64",) * len(program.variables), arch.partition(":")[0]
  return Code(program.name, arch, render(program, language).encode(), arguments, local_bytes=program.local_bytes,
              lanes=program.lanes)
