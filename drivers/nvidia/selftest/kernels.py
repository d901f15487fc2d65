"""The kernels of drivers/gpu/selftest/kernels.py in NVIDIA assembly, and hints for steps that fail with them.

`patient` adds a control word to each line. It waits for everything, so that no kernel fails because of its schedule.
The distribution of matrices over lanes is from the PTX ISA, "Matrix Fragments for mma.m16n8k16".
"""
from __future__ import annotations
import math
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.drivers.gpu.selftest.kernels import LANES, Approximation, MatrixProduct, Texts, steps
from tinyhw.drivers.nvidia.chips import Chip
from tinyhw.machine.ir.code import Code

# The longest stall. Scoreboard 0 signals a result, scoreboard 1 the reading of sources
FIXED, RESULT, SOURCES = "[B01----:R-:W-:-:S15] ", "[B01----:R-:W0:-:S15] ", "[B01----:R1:W-:-:S15] "
CONTROL = {**dict.fromkeys(("S2R", "LDC", "LDG", "LDS", "LDL", "MUFU", "FENCE", "PHASECHK", "LDGDEPBAR"), RESULT),
           **dict.fromkeys(("STG", "STS", "STL", "LDGSTS", "SYNCS", "UTMACCTL", "UTMALDG"), SOURCES)}
REGISTERS = 24

def patient(text: str) -> str:
  """Put a control word before each line that waits for all earlier lines."""
  return "\n".join(control_of(next(word for word in line.split() if word[0] != "@").split(".")) + line
                   for line in text.splitlines())

def control_of(name: list[str]) -> str:
  """Return the control word of an instruction by the words of its name. PHASECHK is the only SYNCS with a result."""
  return CONTROL.get("PHASECHK" if "PHASECHK" in name else name[0], FIXED)

# R0: the number of the work-item; R4: the first argument
INDEX = """S2R R0, SR_TID.X
S2R R1, SR_CTAID.X
IMAD R0, R1, 0x40, R0
LDC.64 R4, c[0x0][{argument0}]
IMAD.WIDE R4, R0, 0x4, R4
"""
EMPTY = "EXIT"
STORE = INDEX + "STG.E [R4], R0\nEXIT"
# the constant is 32 of the 64 bits of the fourth argument
ADD = INDEX + """LDC.64 R6, c[0x0][{argument1}]
LDC.64 R8, c[0x0][{argument2}]
LDC R10, c[0x0][{argument3}]
IMAD.WIDE R6, R0, 0x4, R6
IMAD.WIDE R8, R0, 0x4, R8
LDG.E R11, [R6]
LDG.E R12, [R8]
FADD R11, R11, R12
FADD R11, R10, R11
STG.E [R4], R11
EXIT"""
SPILL = INDEX + """IADD3 R6, R0, 0x7, RZ
LDC R9, c[0x0][{stack}]
STL [R9+-0x4], R0
STL [R9+-0x40], R6
LDL R7, [R9+-0x4]
LDL R8, [R9+-0x40]
IADD3 R7, R7, R8, RZ
STG.E [R4], R7
EXIT"""
CONSTANT = INDEX + """MOV R6, {number}
STG.E [R4], R6
EXIT"""
# One exchange of a sum over 256 lanes: each lane adds the value of the lane whose number differs in one bit
EXCHANGE = """STS [R6+{shared}], R7
BAR.SYNC.DEFER_BLOCKING 0x0
LOP3.LUT R8, R6, {distance}, RZ, 0x3c, !PT
LDS R9, [R8+{shared}]
BAR.SYNC.DEFER_BLOCKING 0x0
IADD3 R7, R7, R9, RZ
"""
REDUCE = """S2R R0, SR_TID.X
S2R R1, SR_CTAID.X
IMAD R6, R0, 0x4, RZ
IADD3 R7, R0, 0x1, RZ
IMAD R0, R1, 0x100, R0
LDC.64 R4, c[0x0][{argument0}]
IMAD.WIDE R4, R0, 0x4, R4
""" + "".join(EXCHANGE.replace("{distance}", hex(4 << bit)) for bit in range(8)) + "STG.E [R4], R7\nEXIT"
FLOAT = INDEX + """LDC.64 R6, c[0x0][{argument1}]
IMAD.WIDE R6, R0, 0x4, R6
LDG.E R8, [R6]
MUFU.{op} R8, R8
STG.E [R4], R8
EXIT"""
# the units read the upper word of the operand, and write the upper word of the result
DOUBLE = """S2R R0, SR_TID.X
S2R R1, SR_CTAID.X
IMAD R0, R1, 0x40, R0
LDC.64 R4, c[0x0][{argument0}]
LDC.64 R6, c[0x0][{argument1}]
IMAD.WIDE R4, R0, 0x8, R4
IMAD.WIDE R6, R0, 0x8, R6
LDG.E.64 R8, [R6]
MUFU.{op} R9, R9
MOV R8, RZ
STG.E.64 [R4], R8
EXIT"""
HANG = "BRA 0x0\nEXIT"
MATRIX = """S2R R0, SR_TID.X
LDC.64 R4, c[0x0][{argument0}]
LDC.64 R6, c[0x0][{argument1}]
LDC.64 R2, c[0x0][{argument2}]
IMAD.WIDE R4, R0, 0x10, R4
IMAD.WIDE R6, R0, 0x10, R6
IMAD.WIDE R2, R0, 0x8, R2
LDG.E.128 R8, [R6]
LDG.E.64 R12, [R2]
HMMA.16816.F32 R16, R8, R12, RZ
NOP
NOP
NOP
STG.E.128 [R4], R16
EXIT"""

# of a float64 of which only the upper words of operand and result are used: 20 bits of the mantissa
UPPER = 2.0 ** -19
APPROXIMATIONS = (
  Approximation("RCP", lambda x: 1 / x, 1.0, 2.0, needed=True),
  Approximation("RSQ", lambda x: 1 / math.sqrt(x), 1.0, 4.0, 2.0, needed=True),
  Approximation("SQRT", math.sqrt, 1.0, 4.0, 2.0), Approximation("EX2", lambda x: 2.0 ** x, -8.0, 8.0, 2.0),
  Approximation("LG2", math.log2, 2.0, 64.0, 2.0),
  Approximation("RCP64H", lambda x: 1 / x, 1.0, 2.0, UPPER, needed=True, kind="d"),
  Approximation("RSQ64H", lambda x: 1 / math.sqrt(x), 1.0, 4.0, UPPER, needed=True, kind="d"),
)

# Elements of a lane are pairs in registers: number e is half e % 2 of register e // 2
def _a(lane: int, e: int) -> tuple[int, int]: return lane // 4 + 8 * (e // 2 % 2), 2 * (lane % 4) + e % 2 + 8 * (e // 4)
def _b(lane: int, e: int) -> tuple[int, int]: return 2 * (lane % 4) + e % 2 + 8 * (e // 2), lane // 4
def _c(lane: int, e: int) -> tuple[int, int]: return lane // 4 + 8 * (e // 2), 2 * (lane % 4) + e % 2

TEXTS = Texts(EMPTY, STORE, ADD, SPILL, CONSTANT, REDUCE, HANG, {"f": FLOAT, "d": DOUBLE}, APPROXIMATIONS,
              MatrixProduct(MATRIX, 32, 16, 8, 16, (8, 4, 4), _a, _b, _c))

def kernel(assemble: Callable[[str, str], bytes], chip: Chip, text: str, name: str,
           arguments: Sequence[str] = ("buffer",), lanes: int = LANES,
           words: dict[str, str] | None = None, **fields: Any) -> Code:
  """Assemble a kernel of the texts above. words: replacements for other names in braces."""
  places = {f"argument{i}": hex(chip.arguments + 8 * i) for i in range(4)}
  filled = text.format(**places, shared=hex(chip.reserved), stack=hex(chip.stack), **(words or {}))
  registers = ("r", REGISTERS), ("barrier", int("local_bytes" in fields))
  return Code(name, chip.arch, assemble(patient(filled), chip.arch), tuple(arguments), lanes=lanes, registers=registers,
              **fields)

STEPS, LAST, VERY_LAST = steps({
  "empty kernel": "the fields of the QMD (launch.py; docs/hardware/nvidia.md shows one): its version for this class, "
                  "the code's address, what must be set; dmesg for Xid 13 or 69",
  "store": "constant bank 0: where its arguments are (autogen/nvidia/bank.py); the grid of the QMD",
  "arithmetic": "waits for loads (control words) if values are old; the constant bank's later arguments",
  "shared memory": "SHARED_MEMORY_SIZE and the splits of the cache (launch.py), bytes that the system keeps (reserved "
  "in chips.py); BARRIER_COUNT",
  "scratch": "SET_SHADER_LOCAL_MEMORY and the sizes of reserve_local (device.py), SHADER_LOCAL_MEMORY_LOW_SIZE",
  "caches": "INVALIDATE_SHADER_CACHES_NO_WFI before kernels (commands.py), INVALIDATE of the QMD; the message says "
  "what was old",
  "order": "what waits for what: gpu/order.py; the barrier of a launch (launch.py); SEM_EXECUTE on the timeline",
  "matrix unit": "the layouts of isa/sass/table/matrix.py: send the line, which tells how many elements differ",
  "approximations": "isa/sass/select/recipes.py and macros/floats.py make good an error of so much; send the line "
  "with the operand",
  "peer copy": "NVLink or PCIe peer access (nvidia-smi topo -p2p r), UvmEnablePeerAccess",
  "hang": "dmesg: Xid 109 or a reset; the deadline is HCQDEV_WAIT_TIMEOUT_MS",
  "bad address": "the error notifier of the channel (channel.py), faults.py; dmesg has Xid 31",
})
