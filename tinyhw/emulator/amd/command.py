"""`python3 -m tinyhw emulate`: run a kernel from assembly text or bytes on a workgroup, with a trace, stops, and registers lane by lane.

The kernel gets the addresses of its buffers as arguments: s[0:1] points to them, 8 bytes each, in the order of the options. Text has an instruction a
line, `name:` for labels, which branches may name, and comments after // ; or #. Nothing here is interactive: what is to be seen is said before.
"""
from __future__ import annotations
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.view import Place, changes, place, show
from tinyhw.emulator.amd.wave import Workgroup
from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory import FlatMemory
from tinyhw.errors import ArgumentError, EncodeError, MissingFileError, ParseError
from tinyhw.isa.amd.syntax import assemble

if TYPE_CHECKING:
  from tinyhw.emulator.amd.decoded import Step
  from tinyhw.emulator.amd.state import Wave

CODE, DATA, ARGUMENTS, SCRATCH = 0x10000, 0x1000000, 0x20000, 0x40000000
BUFFER_STEP = 1 << 24
TYPES = {"f32": ("f", 4, float), "u32": ("I", 4, int), "i32": ("i", 4, int), "f16": ("e", 2, float), "u8": ("B", 1, int), "f64": ("d", 8, float)}
USAGE = """FILE --arch ARCH [--wave 32|64] [--threads N[,N[,N]]] [--buffer TYPE:COUNT | TYPE:iota:COUNT | TYPE=1,2,3]... [--lds BYTES] [--vgprs N]
[--scratch BYTES] [--seed N] [--trace] [--stop LABEL|OFFSET]... [--show REGISTER[:TYPE]]..."""

@dataclass
class Request:
  """What the command line asks for."""
  file: str = ""
  arch: str = ""
  wave: int = 0
  threads: tuple[int, ...] = ()
  buffers: list[str] = field(default_factory=list)
  lds: int = 0
  vgprs: int = 256
  scratch: int = 0
  seed: int = 0
  trace: bool = False
  stops: list[str] = field(default_factory=list)
  shown: list[Place] = field(default_factory=list)

def number(text: str) -> int:
  """A decimal or 0x number. Raises ArgumentError."""
  try: return int(text, 0)
  except ValueError: raise ArgumentError(f"a number is expected, got {text}") from None

def request(arguments: Sequence[str]) -> Request:
  """The command line as a Request. Raises ArgumentError."""
  asked = Request()
  numbers = {"--wave": "wave", "--lds": "lds", "--vgprs": "vgprs", "--scratch": "scratch", "--seed": "seed"}
  lists: dict[str, Callable[[str], None]] = {"--buffer": asked.buffers.append, "--stop": asked.stops.append,
                                             "--show": lambda text: asked.shown.append(place(text))}
  words = list(arguments)
  while words:
    name, equals, value = words.pop(0).partition("=") if words[0].startswith("--") else (words.pop(0), "", "")
    if name == "--trace": asked.trace = True
    elif name.startswith("--"):
      if not equals:
        if not words: raise ArgumentError(f"{name} wants a value")
        value = words.pop(0)
      if name in numbers: setattr(asked, numbers[name], number(value))
      elif name in lists: lists[name](value)
      elif name == "--arch": asked.arch = value
      elif name == "--threads": asked.threads = tuple(map(number, value.split(",")))
      else: raise ArgumentError(f"there is no option {name}; the command takes {USAGE}")
    elif asked.file: raise ArgumentError(f"one file is expected, got {asked.file} and {name}")
    else: asked.file = name
  if not asked.file or not asked.arch: raise ArgumentError(f"a file and --arch are expected: emulate {USAGE}")
  return asked

# ***** the kernel *****

def load(path: str, arch: str) -> tuple[bytes, dict[str, int]]:
  """(code, labels) of a file: assembly text, or bytes if it is no text."""
  try: content = Path(path).read_bytes()
  except OSError as e: raise MissingFileError(f"{path} cannot be read: {e.strerror}") from e
  try: text = content.decode("ascii")
  except UnicodeDecodeError: return content, {}
  return assemble_all(text, arch)

def assemble_all(text: str, arch: str) -> tuple[bytes, dict[str, int]]:
  """(code, labels) of assembly text. Raises ParseError naming the line."""
  lines = [(i, re.split(r"//|;|#", line)[0].strip()) for i, line in enumerate(text.splitlines(), 1)]
  labels: dict[str, int] = {}
  offset = 0
  pieces: list[tuple[int, int, str]] = []
  for i, line in lines:
    if line.endswith(":"): labels[line[:-1].strip()] = offset
    elif line:
      pieces.append((i, offset, line))
      offset += 4 if is_branch(line) else len(assembled(line, arch, i))
  return b"".join(assembled(resolved(line, at, labels), arch, i) for i, at, line in pieces), labels

def is_branch(line: str) -> bool: return line.startswith(("s_branch", "s_cbranch"))

def resolved(line: str, offset: int, labels: dict[str, int]) -> str:
  """A branch with the distance of its label."""
  if not is_branch(line): return line
  name, _, target = line.partition(" ")
  return f"{name} {(labels[target.strip()] - offset - 4) // 4}" if target.strip() in labels else line

def assembled(line: str, arch: str, number: int) -> bytes:
  try: return assemble(line, arch)
  except (ParseError, EncodeError) as e: raise ParseError(f"line {number}: {e.message}") from e

# ***** buffers *****

class Buffer:
  """Memory for the kernel: `text` says what is in it, f32:64 (zeros), f32:iota:64, f32=1,2.5."""
  def __init__(self, text: str):
    kind = re.split("[:=]", text)[0]
    if kind not in TYPES: raise ArgumentError(f"{text} is no buffer; f32:64, u32:iota:64 and f32=1,2.5 are, with the types {', '.join(TYPES)}")
    self.text, (self.code, self.size, make) = text, TYPES[kind]
    words = text.replace("=", ":").split(":")[1:]
    try:
      if "=" in text: self.values: list[Any] = [make(word) for word in words[0].split(",")]
      elif words[0] == "iota": self.values = [make(i) for i in range(number(words[1]))]
      else: self.values = [make(0)] * number(words[0])
      self.data = bytearray(struct.pack(f"<{len(self.values)}{self.code}", *self.values))
    except (ValueError, IndexError, struct.error) as e: raise ArgumentError(f"{text} is no buffer: {e}") from e

  def show(self) -> str:
    """What has become of it: the first elements."""
    values = struct.unpack(f"<{len(self.values)}{self.code}", self.data)
    return " ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values[:32]) + (" ..." if len(values) > 32 else "")

# ***** the run *****

class Observer:
  """Called before each instruction: writes the trace, and what is to be seen at stops."""
  def __init__(self, asked: Request, stops: set[int], write: Callable[[str], None]):
    self.asked, self.stops, self.write = asked, stops, write
    self.previous: dict[int, tuple[int, Step]] = {}

  def __call__(self, wave: Wave, step: Step) -> None:
    if self.asked.trace:
      self.flush(wave)
      self.previous[wave.number] = wave.pc, step
    if wave.pc - CODE in self.stops:
      self.write(f"stop: wave {wave.number} at +{wave.pc - CODE:#x}: {step.text}")
      for shown in self.asked.shown:
        for line in show(wave, shown): self.write(f"  {line}")

  def flush(self, wave: Wave) -> None:
    """The line of the instruction that this wave has executed last."""
    if wave.number not in self.previous: return
    pc, step = self.previous.pop(wave.number)
    self.write(f"wave {wave.number}  +{pc - CODE:#06x}  {step.text:<48} {changes(wave, step)}".rstrip())

def run(arguments: Sequence[str], write: Callable[[str], None] = print) -> int:
  """The command. Raises errors of the emulator, ArgumentError, ParseError."""
  asked = request(arguments)
  cdna = asked.arch.startswith("gfx9")
  lanes = asked.wave or (64 if cdna else 32)
  code, labels = load(asked.file, asked.arch if cdna or lanes == 32 else f"{asked.arch}:wave64")
  stops = {labels[name] if name in labels else number(name) for name in asked.stops}
  buffers = [Buffer(text) for text in asked.buffers]
  memory, program = FlatMemory(), FlatMemory()
  program.add(CODE, bytearray(code))
  memory.add(ARGUMENTS, bytearray(struct.pack(f"<{len(buffers)}Q", *(DATA + i * BUFFER_STEP for i in range(len(buffers)))) + bytes(64)))
  for i, buffer in enumerate(buffers): memory.add(DATA + i * BUFFER_STEP, buffer.data)
  x, y, z = (*(asked.threads or (lanes,)), 1, 1)[:3]
  size = (x, y, z)
  waves = -(-size[0] * size[1] * size[2] // lanes)
  memory.add(SCRATCH, bytearray(asked.scratch * lanes * waves))
  registers = DispatchRegisters(asked.arch, CODE, lanes, asked.vgprs, 102 if cdna else 106, size, (1, 1, 1), (ARGUMENTS, 0), work_item_ids=3,
                                lds_bytes=asked.lds, accumulator=asked.vgprs // 2 if cdna else None, scratch_base=SCRATCH, float_denorm=15,
                                scratch_wave_bytes=asked.scratch * lanes, scratch_enabled=bool(asked.scratch))
  observer = Observer(asked, stops, write)
  group = Workgroup(asked.arch, program.load, registers, (0, 0, 0), memory, asked.lds, asked.seed, observer)
  try: executed = group.run()
  except PageFault as fault:
    places = ", ".join(f"{DATA + i * BUFFER_STEP:#x} to {DATA + i * BUFFER_STEP + len(b.data):#x}" for i, b in enumerate(buffers))
    raise ArgumentError(f"{fault}; the buffers are at {places}") from fault
  finally:
    for wave in group.waves: observer.flush(wave)
  write(f"{executed} instructions by {len(group.waves)} waves")
  if not stops:
    for wave in group.waves:
      for shown in asked.shown:
        for line in show(wave, shown): write(f"wave {wave.number}: {line}")
  for i, buffer in enumerate(buffers): write(f"buffer {i} ({buffer.text}): {buffer.show()}")
  return 0
