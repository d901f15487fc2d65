"""Lines of assembly with named registers for AArch64: `fmla v%d:c.4s, v%a.4s, v%b.s[1]` (machine/select/lines.py)."""
from __future__ import annotations

from tinyhw.isa.arm64.asm.syntax import parse
from tinyhw.machine.select.lines import LineReader
from tinyhw.threads import once

line = once(LineReader(parse, "bhsdqvwx"))
