"""Machine code that the driver of a CPU needs, as text, with its bytes stored in a file: so a process that finds its
kernels in the cache need not load the assembler. A text that differs from the stored one is assembled again.
"""
from __future__ import annotations
import textwrap
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

HEADER = '''"""The machine code of tinyhw/isa/{isa}/runtime.py for Linux, by function.

Each entry has the CRC-32 of its text, and its bytes. Source: that text, through this repository's assembler.
Made by: python3 -m tinyhw.isa.{isa}.build_runtime. Not to be edited.
"""
CODE: dict[str, tuple[int, str]] = {{
'''

class StoredCode:
  """Functions of an ISA's runtime.py.

  names: of the functions. text: a name to assembly text. assemble: a name to its bytes, by the assembler. kept: the
  stored entries, a CRC-32 of the text and the bytes as hexadecimal digits.
  """
  def __init__(self, isa: str, names: Sequence[str], text: Callable[[str], str], assemble: Callable[[str], bytes],
               kept: Mapping[str, tuple[int, str]]):
    self.isa, self.names, self.text, self.assemble, self.kept = isa, names, text, assemble, kept

  def code(self, name: str) -> bytes:
    """The bytes of a function: the stored ones, if they came from this text."""
    crc, kept = self.kept.get(name, (0, ""))
    return bytes.fromhex(kept) if crc == zlib.crc32(self.text(name).encode()) else self.assemble(name)

  def build(self) -> str:
    """The file of stored bytes."""
    lines = [HEADER.format(isa=self.isa)]
    for name in self.names:
      rows = "\n".join(f'    "{row}"' for row in textwrap.wrap(self.assemble(name).hex(), 112))
      lines.append(f'  "{name}": ({zlib.crc32(self.text(name).encode())}, (\n{rows})),\n')
    return "".join(lines) + "}\n"

  def write(self, module: Any, arguments: Sequence[str]) -> int:
    """Write the file of a module, or with --check compare it: 1 if it differs."""
    path, wanted = module.__file__, self.build()
    with open(path, encoding="utf-8") as file: found = file.read()
    if list(arguments) == ["--check"]: return int(found != wanted)
    if found != wanted:
      with open(path, "w", encoding="utf-8") as file: file.write(wanted)
    return 0
