"""Programs as source text: C for CLANG, Python for PYTHON, and pseudo-code for people."""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.codegen.render import c, pseudo, python
from tinyhw.errors import CompileError
from tinyhw.machine.ir.code import Code
from tinyhw.uop.program import Program

RENDERERS: dict[str, Callable[[Program], str]] = {"c": c.render, "python": python.render, "pseudo": pseudo.render}

def render(program: Program, language: str) -> str:
  """Return program as source text in "c", "python" or "pseudo"."""
  if language not in RENDERERS: raise CompileError(f"no renderer for {language}; there are {', '.join(RENDERERS)}")
  return RENDERERS[language](program)

def compile_source(program: Program, language: str) -> Code:
  """Return program as Code whose text is source, for a device whose arch is the language ("c", "python")."""
  arguments = ("buffer",) * len(program.params) + ("int64",) * len(program.variables)
  return Code(program.name, language, render(program, language).encode(), arguments, local_bytes=program.local_bytes)
