"""Write autogen/x86_runtime.py: the functions of runtime.py as bytes, for each system.

  python3 -m tinyhw.isa.x86.build_runtime           write it
  python3 -m tinyhw.isa.x86.build_runtime --check   exit status 1 if the file differs from what would be written
"""
from __future__ import annotations
import sys
import textwrap
import zlib
from collections.abc import Sequence

from tinyhw.autogen import x86_runtime
from tinyhw.isa.x86 import abi, runtime
from tinyhw.isa.x86.asm.syntax import assemble_function

NAMES = ("ring", "submit", "cpuid")
HEADER = '''"""The machine code of tinyhw/isa/x86/runtime.py, by function and system.

Each entry has the CRC-32 of its text, and its bytes. Source: that text, through this repository's assembler.
Made by: python3 -m tinyhw.isa.x86.build_runtime. Not to be edited.
"""
CODE: dict[tuple[str, str], tuple[int, str]] = {
'''

def build() -> str:
  """The file's content."""
  lines = [HEADER]
  for platform in abi.SYSTEMS:
    for name in NAMES:
      text = runtime.text(name, platform)
      rows = textwrap.wrap(assemble_function(text).hex(), 112)
      joined = "\n".join(f'    "{row}"' for row in rows)
      lines.append(f'  ("{name}", "{platform}"): ({zlib.crc32(text.encode())}, (\n{joined})),\n')
  return "".join(lines) + "}\n"

def main(arguments: Sequence[str]) -> int:
  """Write the file, or with --check compare it."""
  path, wanted = x86_runtime.__file__, build()
  with open(path, encoding="utf-8") as file: found = file.read()
  if list(arguments) == ["--check"]: return int(found != wanted)
  if found != wanted:
    with open(path, "w", encoding="utf-8") as file: file.write(wanted)
  return 0

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
