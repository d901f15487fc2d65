"""`python3 -m tinyhw emulate`: run a kernel from assembly text or bytes on a workgroup, with a trace, stops, and registers lane by lane.

The kernel gets the addresses of its buffers as arguments: s[0:1] points to them, 8 bytes each, in the order of the options. Text has an instruction a
line, `name:` for labels, which branches may name, and comments after // ; or #. Nothing here is interactive: what is to be seen is said before.
"""
from __future__ import annotations
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyhw.emulator.amd.chips import CHIPS
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.view import Place, changes, place, show
from tinyhw.emulator.amd.wave import Status, Workgroup
from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory import FlatMemory
from tinyhw.errors import ArgumentError, EncodeError, MissingFileError, ParseError
from tinyhw.isa.amd.syntax import assemble

if TYPE_CHECKING:
  from tinyhw.emulator.amd.decoded import Step
  from tinyhw.emulator.amd.state import Wave

CODE, DATA, ARGUMENTS, SCRATCH = 0x10000, 0x1000000, 0x20000, 0x40000000
BUFFER_STEP = 1 << 24
MOST_BUFFERS = (SCRATCH - DATA) // BUFFER_STEP
MOST_SCRATCH = 1 << 16   # bytes of a lane
MOST_THREADS = 1024
MOST_EXECUTED = 1 << 21  # instructions of all waves, before a kernel is thought to be endless: half a minute
TYPES = {"f32": ("f", 4, float), "u32": ("I", 4, int), "i32": ("i", 4, int), "f16": ("e", 2, float), "u8": ("B", 1, int), "f64": ("d", 8, float)}
SGPRS = {False: 106, True: 102}  # of a wave: of RDNA, of CDNA
NAME = re.compile(r"[A-Za-z_.$][\w.$]*")
USAGE = """FILE --arch ARCH [--wave 32|64] [--threads N[,N[,N]]] [--buffer TYPE:COUNT | TYPE:iota:COUNT | TYPE=1,2,3]... [--lds BYTES] [--vgprs N]
[--scratch BYTES] [--seed N] [--most INSTRUCTIONS] [--trace] [--stop LABEL|OFFSET]... [--show REGISTER[:TYPE]]..."""

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
  most: int = MOST_EXECUTED
  trace: bool = False
  stops: list[str] = field(default_factory=list)
  shown: list[Place] = field(default_factory=list)

  @property
  def cdna(self) -> bool: return self.arch.startswith("gfx9")

  @property
  def accumulator(self) -> int | None:
    """The first accumulation register, among those of a lane."""
    return self.vgprs // 2 if self.cdna else None

def number(text: str) -> int:
  """A decimal or 0x number. Raises ArgumentError."""
  try: return int(text, 0)
  except ValueError: raise ArgumentError(f"a number is expected, got {text}") from None

def request(arguments: Sequence[str]) -> Request:
  """The command line as a Request. Raises ArgumentError."""
  asked = Request()
  numbers = {"--wave": "wave", "--lds": "lds", "--vgprs": "vgprs", "--scratch": "scratch", "--seed": "seed", "--most": "most"}
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
  check(asked)
  return asked

def check(asked: Request) -> None:
  """Raises ArgumentError for what the chip has not."""
  chip, waves = CHIPS.get(asked.arch), (64,) if asked.cdna else (32, 64)
  if chip is None: raise ArgumentError(f"--arch {asked.arch}: there is no such virtual GPU; there are {', '.join(CHIPS)}")
  if asked.wave not in (0, *waves): raise ArgumentError(f"--wave {asked.wave}: a wave of {asked.arch} has {' or '.join(map(str, waves))} lanes")
  least, most = (8, 512) if asked.cdna else (1, 256)
  for name, value, low, high in (("--lds", asked.lds, 0, chip.lds_kib << 10), ("--vgprs", asked.vgprs, least, most), ("--seed", asked.seed, 0, None),
                                 ("--scratch", asked.scratch, 0, MOST_SCRATCH), ("--most", asked.most, 1, None)):
    if value < low or high is not None and value > high:
      raise ArgumentError(f"{name} {value}: a number of {low} or more is expected" + (f", up to {high}" if high is not None else ""))
  if len(asked.threads) > 3 or any(n < 1 for n in asked.threads) or math.prod(asked.threads) > MOST_THREADS:
    raise ArgumentError(f"--threads {','.join(map(str, asked.threads))}: one to three numbers from 1 on are expected, of {MOST_THREADS} together")
  if len(asked.buffers) > MOST_BUFFERS: raise ArgumentError(f"{len(asked.buffers)} buffers are too many; there is room for {MOST_BUFFERS}")
  has = {"s": SGPRS[asked.cdna], "v": asked.accumulator or asked.vgprs, "a": asked.vgprs - (asked.accumulator or asked.vgprs)}
  for shown in asked.shown:
    if shown.file in has and not 0 < shown.units <= has[shown.file] - shown.first:
      name = f"{shown.file}{shown.first}" if shown.units == 1 else f"{shown.file}[{shown.first}:{shown.first + shown.units - 1}]"
      raise ArgumentError(f"--show {name}: the kernel has {has[shown.file]} registers of the kind {shown.file}" +
                          (f"; with --vgprs {asked.vgprs}" if shown.file != "s" else ""))

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
    if line.endswith(":"):
      name = line[:-1].strip()
      if name in labels: raise ParseError(f"line {i}: there is a label {name} before; give one of them another name")
      labels[name] = offset
    elif line:
      pieces.append((i, offset, line))
      offset += 4 if is_branch(line) else len(assembled(line, arch, i))
  return b"".join(assembled(resolved(line, at, labels, i), arch, i) for i, at, line in pieces), labels

def is_branch(line: str) -> bool: return line.startswith(("s_branch", "s_cbranch"))

def resolved(line: str, offset: int, labels: dict[str, int], number: int) -> str:
  """A branch with the distance of its label; one that has a number is left alone. Raises ParseError."""
  if not is_branch(line): return line
  name, _, target = map(str.strip, line.partition(" "))
  if target in labels: return f"{name} {(labels[target] - offset - 4) // 4}"
  if NAME.fullmatch(target): raise ParseError(f"line {number}: there is no label {target}; {known(labels)}")
  return line

def known(labels: dict[str, int]) -> str: return f"there are {', '.join(labels)}" if labels else "there are none"

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
      if "=" not in text and not 0 <= number(words[-1]) * self.size <= BUFFER_STEP:
        raise ValueError(f"it has from 0 to {BUFFER_STEP // self.size} elements")
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
  cdna = asked.cdna
  lanes = asked.wave or (64 if cdna else 32)
  code, labels = load(asked.file, asked.arch if cdna or lanes == 32 else f"{asked.arch}:wave64")
  stops = {offset_of(name, labels, len(code)) for name in asked.stops}
  buffers = [Buffer(text) for text in asked.buffers]
  memory, program = FlatMemory(), FlatMemory()
  program.add(CODE, bytearray(code))
  memory.add(ARGUMENTS, bytearray(struct.pack(f"<{len(buffers)}Q", *(DATA + i * BUFFER_STEP for i in range(len(buffers)))) + bytes(64)))
  for i, buffer in enumerate(buffers): memory.add(DATA + i * BUFFER_STEP, buffer.data)
  x, y, z = (*(asked.threads or (lanes,)), 1, 1)[:3]
  size = (x, y, z)
  waves = -(-size[0] * size[1] * size[2] // lanes)
  memory.add(SCRATCH, bytearray(asked.scratch * lanes * waves))
  registers = DispatchRegisters(asked.arch, CODE, lanes, asked.vgprs, SGPRS[cdna], size, (1, 1, 1), (ARGUMENTS, 0), work_item_ids=3,
                                lds_bytes=asked.lds, accumulator=asked.accumulator, scratch_base=SCRATCH, float_denorm=15,
                                scratch_wave_bytes=asked.scratch * lanes, scratch_enabled=bool(asked.scratch))
  observer = Observer(asked, stops, write)
  group = Workgroup(asked.arch, program.load, registers, (0, 0, 0), memory, asked.lds, asked.seed, observer)
  try:
    while group.executed < asked.most and group.step(asked.most - group.executed) is not Status.DONE: pass
  except PageFault as fault:
    places = ", ".join(f"{DATA + i * BUFFER_STEP:#x} to {DATA + i * BUFFER_STEP + len(b.data):#x}" for i, b in enumerate(buffers))
    there = f"the buffers are at {places}" if places else "there are no buffers, see --buffer"
    raise ArgumentError(f"{fault.summary}; {there}{fault.where}") from fault
  finally:
    for wave in group.waves: observer.flush(wave)
  endless = f"; the kernel has not ended, see --most {asked.most}" if group.alive else ""
  write(f"{group.executed} instructions by {len(group.waves)} waves{endless}")
  if not stops:
    for wave in group.waves:
      for shown in asked.shown:
        for line in show(wave, shown): write(f"wave {wave.number}: {line}")
  for i, buffer in enumerate(buffers): write(f"buffer {i} ({buffer.text}): {buffer.show()}")
  return 1 if group.alive else 0

def offset_of(stop: str, labels: dict[str, int], size: int) -> int:
  """Where a stop is in code of a size. Raises ArgumentError."""
  if stop in labels: return labels[stop]
  if NAME.fullmatch(stop): raise ArgumentError(f"--stop {stop}: there is no such label; {known(labels)}")
  offset = number(stop)
  if not 0 <= offset < size: raise ArgumentError(f"--stop {stop}: the code has {size:#x} bytes")
  return offset
