"""`python3 -m tinyhw emulate`: run a kernel from assembly text or bytes on a workgroup, with a trace, stops, and
registers lane by lane.

The kernel gets the addresses of its buffers as arguments, 8 bytes each, in the order of the options. On AMD GPUs s[0:1]
points to them. On NVIDIA GPUs they are in constant bank 0, from 0x160 on (sm_90: 0x210). Text has one instruction a
line, `name:` for labels, which branches may name, and comments after // ; or #. Nothing here is interactive: options
choose the output before the run.

This file has the common part of all vendors. A `Machine` (amd/command.py, nvidia/command.py) has the rest.
"""
from __future__ import annotations
import contextlib
import importlib
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from tinyhw.data_class import dataclass, field
from tinyhw.emulator import FAMILIES
from tinyhw.emulator.errors import PageFault
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.errors import ArgumentError, EncodeError, ParseError
from tinyhw.files.regular import open_input

DATA, BUFFER_STEP, MOST_BUFFERS = 0x1000000, 1 << 24, 63   # addresses of buffers
MOST_EXECUTED = 1 << 21  # instructions of all waves; a kernel that executes more is taken for endless: half a minute
TYPES = {"f32": ("f", 4, float), "u32": ("I", 4, int), "i32": ("i", 4, int), "f16": ("e", 2, float),
         "u8": ("B", 1, int), "f64": ("d", 8, float)}
NAME = re.compile(r"[A-Za-z_.$][\w.$]*")
COMMON = {"seed": (0, 0, None), "most": (MOST_EXECUTED, 1, None)}
USAGE = """FILE --arch ARCH [--threads N] [--buffer TYPE:COUNT | TYPE:iota:COUNT | TYPE=1,2,3]... [--seed N] \
[--most INSTRUCTIONS]
[--trace] [--stop LABEL|OFFSET]... [--show REGISTER[:TYPE]]...
AMD: [--wave 32|64] [--threads N,N,N] [--lds BYTES] [--vgprs N] [--scratch BYTES]
NVIDIA: [--registers N] [--shared BYTES] [--local BYTES]"""

Option = tuple[int, int, "int | None"]   # of a number: its default, the least and the most that it may be

@dataclass
class RunOptions:
  """The parsed command line. numbers: the options with a number, by name."""
  file: str = ""
  arch: str = ""
  threads: tuple[int, ...] = ()
  buffers: list[str] = field(default_factory=list)
  numbers: dict[str, int] = field(default_factory=dict)
  trace: bool = False
  stops: list[str] = field(default_factory=list)
  shown: list[str] = field(default_factory=list)

class ThreadGroup(Protocol):
  """A workgroup, or block."""
  executed: int
  alive: Any
  def step(self, budget: int) -> Any:
    """Execute up to about `budget` instructions."""

class Machine(ABC):
  """A workgroup of a vendor's GPU for one request, with its registers as people see them. code: address of the first
  instruction; wave: the vendor's word for lanes that execute together. Raises ArgumentError for features that the GPU
  lacks."""
  code: ClassVar[int]
  wave: ClassVar[str]

  @classmethod
  @abstractmethod
  def options(cls, arch: str) -> Mapping[str, Option]:
    """Return the options that have a number. Raises ArgumentError if there is no such GPU."""

  @abstractmethod
  def __init__(self, asked: RunOptions): ...
  @abstractmethod
  def size(self, line: str) -> int:
    """Return the size of an instruction in bytes. Its labels need not be known. Raises ParseError."""
  @abstractmethod
  def assembled(self, line: str, offset: int, labels: Mapping[str, int]) -> bytes:
    """Assemble an instruction at an offset. Raises ParseError."""
  @abstractmethod
  def start(self, code: bytes, memory: FlatMemory, buffers: Sequence[int],
            watch: Callable[[Any, Any], None]) -> tuple[ThreadGroup, Sequence[Any]]:
    """Return the workgroup and its waves. buffers: addresses. watch: called before each instruction with the wave and
    the decoded instruction."""
  @abstractmethod
  def show(self, wave: Any) -> list[str]:
    """Return the lines of all registers that are to be shown."""
  @abstractmethod
  def changes(self, wave: Any, step: Any) -> str:
    """Return one line: the registers that an instruction has just written."""

def number(text: str) -> int:
  """Parse a decimal or 0x number. Raises ArgumentError."""
  try: return int(text, 0)
  except ValueError: raise ArgumentError(f"a number is expected, got {text}") from None

def machine_of(arch: str) -> type[Machine]:
  """Return the vendor's machine for an architecture. Raises ArgumentError."""
  for prefix, family in FAMILIES.items():
    if arch.startswith(prefix):
      # only the family of this architecture loads
      found: type[Machine] = importlib.import_module(f"{family}.command").MACHINE
      return found
  raise ArgumentError(f"--arch {arch}: there is no such virtual GPU; their names begin with {' or '.join(FAMILIES)}: "
                      f"gfx1100, sm_90")

def request(arguments: Sequence[str]) -> RunOptions:
  """Parse the command line. Raises ArgumentError."""
  asked, given = RunOptions(), dict[str, str]()
  lists = {"--buffer": asked.buffers, "--stop": asked.stops, "--show": asked.shown}
  words = list(arguments)
  while words:
    name, equals, value = words.pop(0).partition("=") if words[0].startswith("--") else (words.pop(0), "", "")
    if name == "--trace": asked.trace = True
    elif name.startswith("--"):
      if not equals:
        if not words: raise ArgumentError(f"{name} wants a value")
        value = words.pop(0)
      if name in lists: lists[name].append(value)
      elif name == "--arch": asked.arch = value
      elif name == "--threads": asked.threads = tuple(map(number, value.split(",")))
      else: given[name] = value
    elif asked.file: raise ArgumentError(f"one file is expected, got {asked.file} and {name}")
    else: asked.file = name
  if not asked.file or not asked.arch: raise ArgumentError(f"a file and --arch are expected: emulate {USAGE}")
  asked.numbers = numbers(given, {**machine_of(asked.arch).options(asked.arch), **COMMON})
  if len(asked.buffers) > MOST_BUFFERS:
    raise ArgumentError(f"{len(asked.buffers)} buffers are too many; there is room for {MOST_BUFFERS}")
  return asked

def numbers(given: Mapping[str, str], options: Mapping[str, Option]) -> dict[str, int]:
  """Return the options with a number, including the defaults of options that are not given. Raises ArgumentError."""
  found = {name: usual for name, (usual, _, _) in options.items()}
  for option, text in given.items():
    name = option[2:]
    if name not in options: raise ArgumentError(f"there is no option {option}; the command takes {USAGE}")
    value, (_, low, high) = number(text), options[name]
    if value < low or high is not None and value > high:
      raise ArgumentError(f"{option} {value}: a number of {low} or more is expected"
                          + (f", up to {high}" if high is not None else ""))
    found[name] = value
  return found

# ***** the kernel *****

def load(path: str, machine: Machine) -> tuple[bytes, dict[str, int]]:
  """Return (code, labels) of a file: assembly text, or bytes if it is no text."""
  with open_input(path, "a kernel, as assembly text or as bytes") as file: content = file.read()
  try: text = content.decode("ascii")
  except UnicodeDecodeError: return content, {}
  return assemble_all(text, machine)

def assemble_all(text: str, machine: Machine) -> tuple[bytes, dict[str, int]]:
  """Return (code, labels) of assembly text. Raises ParseError naming the line."""
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
      with located(i): offset += machine.size(line)
  code = b""
  for i, at, line in pieces:
    with located(i): code += machine.assembled(line, at, labels)
  return code, labels

@contextlib.contextmanager
def located(line: int) -> Iterator[None]:
  """Add the line number to errors of an assembler."""
  try: yield
  except (ParseError, EncodeError) as e: raise ParseError(f"line {line}: {e.message}") from e

def label_of(name: str, labels: Mapping[str, int]) -> int | None:
  """Return the offset of a label; None if the name is a number. Raises ParseError if there is no such label."""
  if name in labels: return labels[name]
  if NAME.fullmatch(name): raise ParseError(f"there is no label {name}; {known(labels)}")
  return None

def known(labels: Mapping[str, int]) -> str: return f"there are {', '.join(labels)}" if labels else "there are none"

def offset_of(stop: str, labels: Mapping[str, int], size: int) -> int:
  """Return the offset of a stop. size: of the code. Raises ArgumentError."""
  if stop in labels: return labels[stop]
  if NAME.fullmatch(stop): raise ArgumentError(f"--stop {stop}: there is no such label; {known(labels)}")
  offset = number(stop)
  if not 0 <= offset < size: raise ArgumentError(f"--stop {stop}: the code has {size:#x} bytes")
  return offset

# ***** buffers *****

class BufferArgument:
  """Memory for the kernel. `text` describes its content: f32:64 (zeros), f32:iota:64, f32=1,2.5."""
  def __init__(self, text: str):
    kind = re.split("[:=]", text)[0]
    if kind not in TYPES:
      raise ArgumentError(f"{text} is no buffer; f32:64, u32:iota:64 and f32=1,2.5 are, with the types "
                          f"{', '.join(TYPES)}")
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
    """Return the first elements, after the run, as text."""
    values = struct.unpack(f"<{len(self.values)}{self.code}", self.data)
    return " ".join(f"{v:.6g}" if isinstance(v, float) else str(v)
                    for v in values[:32]) + (" ..." if len(values) > 32 else "")

# ***** the run *****

class Observer:
  """Called before each instruction. Writes the trace, and the registers at stops."""
  def __init__(self, machine: Machine, trace: bool, stops: set[int], write: Callable[[str], None]):
    self.machine, self.trace, self.stops, self.write = machine, trace, stops, write
    self.previous: dict[int, tuple[int, Any]] = {}

  def __call__(self, wave: Any, step: Any) -> None:
    machine, offset = self.machine, wave.pc - self.machine.code
    if self.trace:
      self.flush(wave)
      self.previous[wave.number] = offset, step
    if offset in self.stops:
      self.write(f"stop: {machine.wave} {wave.number} at +{offset:#x}: {step.text}")
      for line in machine.show(wave): self.write(f"  {line}")

  def flush(self, wave: Any) -> None:
    """Write the line of the instruction that this wave has executed last."""
    if wave.number not in self.previous: return
    offset, step = self.previous.pop(wave.number)
    self.write(f"{self.machine.wave} {wave.number}  +{offset:#06x}  {step.text:<48} "
               f"{self.machine.changes(wave, step)}".rstrip())

def run(arguments: Sequence[str], write: Callable[[str], None] = print) -> int:
  """Run the command. Raises errors of the emulator, ArgumentError, ParseError."""
  asked = request(arguments)
  machine = machine_of(asked.arch)(asked)
  code, labels = load(asked.file, machine)
  stops = {offset_of(name, labels, len(code)) for name in asked.stops}
  buffers = [BufferArgument(text) for text in asked.buffers]
  places, memory, most = [DATA + i * BUFFER_STEP for i in range(len(buffers))], FlatMemory(), asked.numbers["most"]
  for place, buffer in zip(places, buffers): memory.add(place, buffer.data)
  observer = Observer(machine, asked.trace, stops, write)
  group, waves = machine.start(code, memory, places, observer)
  try:
    while group.alive and group.executed < most: group.step(most - group.executed)
  except PageFault as fault:
    ranges = ", ".join(f"{place:#x} to {place + len(b.data):#x}" for place, b in zip(places, buffers))
    there = f"the buffers are at {ranges}" if ranges else "there are no buffers, see --buffer"
    raise ArgumentError(f"{fault.summary}; {there}{fault.where}") from fault
  finally:
    for wave in waves: observer.flush(wave)
  endless = f"; the kernel has not ended, see --most {most}" if group.alive else ""
  write(f"{group.executed} instructions by {len(waves)} {machine.wave}s{endless}")
  if not stops:
    for wave in waves:
      for line in machine.show(wave): write(f"{machine.wave} {wave.number}: {line}")
  for i, buffer in enumerate(buffers): write(f"buffer {i} ({buffer.text}): {buffer.show()}")
  return 1 if group.alive else 0
