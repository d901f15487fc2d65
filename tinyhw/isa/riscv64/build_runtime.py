"""Write autogen/riscv64_runtime.py: the functions of runtime.py as bytes.

  python3 -m tinyhw.isa.riscv64.build_runtime           write it
  python3 -m tinyhw.isa.riscv64.build_runtime --check   exit status 1 if the file differs from what would be written
"""
from __future__ import annotations
import sys
from collections.abc import Sequence

from tinyhw.autogen import riscv64_runtime
from tinyhw.isa.riscv64.runtime import STORED

def main(arguments: Sequence[str]) -> int:
  """Write the file, or with --check compare it."""
  return STORED.write(riscv64_runtime, arguments)

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
