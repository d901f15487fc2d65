"""Lines of RISC-V with named registers: `sh2add x%d, x%i, x%p` (machine/select/lines.py). Names become registers from 8
on: zero, sp and the mask v0 stand for themselves."""
from __future__ import annotations

from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.machine.select.lines import LineReader
from tinyhw.threads import once

line = once(LineReader(parse, "xfv", 8, "m"))
