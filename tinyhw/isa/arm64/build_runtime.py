"""Write autogen/arm64_runtime.py: the functions of runtime.py as bytes.

  python3 -m tinyhw.isa.arm64.build_runtime           write it
  python3 -m tinyhw.isa.arm64.build_runtime --check   exit status 1 if the file differs from what would be written
"""
from __future__ import annotations
import sys
import textwrap
import zlib
from collections.abc import Sequence

from tinyhw.autogen import arm64_runtime
from tinyhw.isa.arm64 import runtime

HEADER = '''"""The machine code of tinyhw/isa/arm64/runtime.py for Linux, by function.

Each entry has the CRC-32 of its text, and its bytes. Source: that text, through this repository's assembler.
Made by: python3 -m tinyhw.isa.arm64.build_runtime. Not to be edited.
"""
CODE: dict[str, tuple[int, str]] = {
'''

def build() -> str:
  """The file's content."""
  lines = [HEADER]
  for name in runtime.NAMES:
    rows = "\n".join(f'    "{row}"' for row in textwrap.wrap(runtime.assembled(name).hex(), 112))
    lines.append(f'  "{name}": ({zlib.crc32(runtime.text(name).encode())}, (\n{rows})),\n')
  return "".join(lines) + "}\n"

def main(arguments: Sequence[str]) -> int:
  """Write the file, or with --check compare it."""
  path, wanted = arm64_runtime.__file__, build()
  with open(path, encoding="utf-8") as file: found = file.read()
  if list(arguments) == ["--check"]: return int(found != wanted)
  if found != wanted:
    with open(path, "w", encoding="utf-8") as file: file.write(wanted)
  return 0

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
