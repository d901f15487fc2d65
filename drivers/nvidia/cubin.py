"""The file format of NVIDIA's driver library: an ELF file ("cubin") with one kernel.

Format: that of CUDA 12's assembler, which later libraries read too. Sections and attributes are as `ptxas` writes them,
without debug information. A block's shared memory is dynamic, like "extern __shared__". The section has only the part
that the system reserves, and each launch gives the size. test/drivers/nvidia/test_cubin.py compares the file with that
of `ptxas`, and reads it with `nvdisasm`, if they are installed.
"""
from __future__ import annotations
import struct

from tinyhw.drivers.nvidia.chips import CHIPS, registers_given
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from tinyhw.named_tuple import NamedTuple

EXECUTABLE, CUDA_MACHINE, OS_ABI, ABI_VERSION, TOOLKIT = 2, 190, 0x33, 7, 120
STRTAB, SYMTAB, PROGBITS, NOBITS, CUDA_INFO, CUDA_CALLGRAPH = 3, 2, 1, 8, 0x70000000, 0x70000001
WRITE, ALLOC, EXECUTE, INFO_LINK = 1, 2, 4, 0x40
LOCAL_SECTION, GLOBAL_FUNCTION, KERNEL_ENTRY = 3, 0x12, 0x10
HEADER, SECTION, SEGMENT, SYMBOL = (struct.Struct(f) for f in ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IIQQQQQQ",
                                                               "<IBBHQQ"))
LOAD, PHDR, READ = 1, 6, 4
# attributes of .nv.info, and the lengths of their values
REGISTERS, FRAME, LEAST_STACK, VERSION, PARAMETER, PARAMETER_BYTES, PARAMETER_BANK = (0x2F, 0x11, 0x12, 0x37, 0x17,
                                                                                      0x19, 0x0A)
MOST_REGISTERS, BARRIERS, EXITS, WORKAROUNDS, NO_ALIASES = 0x1B, 0x4C, 0x1C, 0x36, 0x50
BYTE, SHORT, SIZED = 2, 3, 4
ANY_BANK = 0x1F << 12
CALLGRAPH = struct.pack("<8i", 0, -1, 0, -2, 0, -3, 0, -4)
EXIT_OPCODE, OPCODE_MASK, INSTRUCTION = 0x94D, 0xFFF, 16

class Section(NamedTuple):
  """A section of the file.

  size: of a section without bytes. link, info: other sections, or values that the kind requires.
  """
  name: str
  kind: int
  data: bytes
  flags: int = 0
  link: int = 0
  info: int = 0
  alignment: int = 1
  entry: int = 0
  size: int = 0

def attribute(number: int, value: int | bytes, form: int = SIZED) -> bytes:
  """Return an entry of .nv.info: a byte, a short, or bytes with their count."""
  if form != SIZED: return struct.pack("<BBH", form, number, value)
  assert isinstance(value, bytes)
  return struct.pack("<BBH", form, number, len(value)) + value

def exits(text: bytes) -> list[int]:
  """Return the offsets where code ends kernels."""
  return [at for at in range(0, len(text), INSTRUCTION) if int.from_bytes(text[at:at + 2], "little") & OPCODE_MASK
          == EXIT_OPCODE]

def cubin(code: Code) -> bytes:
  """Return the file of a kernel. Raises DeviceError for an unknown architecture."""
  chip = next((chip for chip in CHIPS if chip.arch == code.arch.partition(":")[0]), None)
  if chip is None:
    raise DeviceError(f"kernel {code.name} is for {code.arch}, which is no NVIDIA GPU that is known here")
  registers, number, name = registers_given(code), int(chip.arch[3:]), code.name
  kernel, bank = 3, 2                                                # symbols: sections first, the kernel last
  arguments = len(code.arguments) + bool(code.descriptors)
  slots = 8 * arguments
  globals_ = b"".join(attribute(a, struct.pack("<II", kernel, v)) for a, v in (
    (REGISTERS, registers), (FRAME, code.private_bytes), (LEAST_STACK, code.private_bytes)))
  parameters = [attribute(PARAMETER, struct.pack("<IHHI", 0, i, 8 * i, 8 << 18 | ANY_BANK))
                for i in reversed(range(arguments))]
  own = b"".join((
    attribute(VERSION, struct.pack("<I", 0x80)), *parameters,
    *([attribute(NO_ALIASES, 0, SHORT)] if chip.generation > 8 else []),
    attribute(MOST_REGISTERS, 0xFF, SHORT),
    *([attribute(BARRIERS, dict(code.registers).get("barrier", 1), BYTE)] if code.local_bytes else []),
    attribute(EXITS, b"".join(struct.pack("<I", at) for at in exits(code.text))),
    attribute(PARAMETER_BYTES, slots, SHORT),
    attribute(PARAMETER_BANK, struct.pack("<IHH", bank, chip.arguments, slots)),
    *([attribute(WORKAROUNDS, struct.pack("<I", 8))] if chip.generation == 9 else [])))
  strings = b"\0" + name.encode() + b"\0"
  sections = [
    Section("", 0, b"", alignment=0), Section(".shstrtab", STRTAB, b""), Section(".strtab", STRTAB, strings),
    Section(".symtab", SYMTAB, b"", link=2, info=kernel, alignment=8, entry=SYMBOL.size),
    Section(".nv.info", CUDA_INFO, globals_, link=3, alignment=4),
    Section(f".nv.info.{name}", CUDA_INFO, own, INFO_LINK, 3, 7, 4),
    Section(".nv.callgraph", CUDA_CALLGRAPH, CALLGRAPH, 0, 3, 0, 4, 8),
    Section(f".text.{name}", PROGBITS, code.text, ALLOC | EXECUTE, 3,
            kernel | (registers << 24 if chip.generation == 8 else 0), 128),
    Section(f".nv.constant0.{name}", PROGBITS, bytes(chip.arguments + slots), ALLOC | INFO_LINK, 0, 7, 4)]
  if code.local_bytes:
    sections.append(Section(f".nv.shared.{name}", NOBITS, b"", WRITE | ALLOC | INFO_LINK, 0, 7, 1024,
                            size=chip.reserved))
  symbols = [(0, 0, 0, 0, 0, 0), (0, LOCAL_SECTION, 0, 7, 0, 0), (0, LOCAL_SECTION, 0, 8, 0, 0),
             (1, GLOBAL_FUNCTION, KERNEL_ENTRY, 7, 0, len(code.text))]
  sections[3] = sections[3]._replace(data=b"".join(SYMBOL.pack(*symbol) for symbol in symbols))
  return _elf(sections, number | 5 << 8 | number << 16)

def _elf(sections: list[Section], flags: int) -> bytes:
  """Return sections one after the other, then their headers, then the segments of code and constants."""
  names = bytearray()
  places = list[int]()
  for section in sections:
    places.append(len(names))
    names += section.name.encode() + b"\0"
  sections = [section._replace(data=bytes(names)) if section.name == ".shstrtab" else section for section in sections]
  out, offsets = bytearray(HEADER.size), list[int]()
  for section in sections:
    out += bytes(-len(out) % max(section.alignment, 1))
    offsets.append(len(out) if section.kind else 0)
    out += section.data
  out += bytes(-len(out) % 8)
  headers = len(out)
  for section, place, offset in zip(sections, places, offsets):
    out += SECTION.pack(place, section.kind, section.flags, 0, offset, section.size or len(section.data), section.link,
                        section.info,
                        section.alignment, section.entry)
  segments, loaded = len(out), [(s, at) for s, at in zip(sections, offsets) if s.flags & ALLOC]
  count = 2 + len(loaded)
  for kind in (PHDR, LOAD):
    out += SEGMENT.pack(kind, READ, segments, 0, 0, count * SEGMENT.size, count * SEGMENT.size, 8)
  for section, offset in loaded:
    rights = READ | (1 if section.flags & EXECUTE else 0) | (2 if section.flags & WRITE else 0)
    out += SEGMENT.pack(LOAD, rights, offset, 0, 0, len(section.data), section.size or len(section.data), 8)
  ident = b"\x7fELF" + bytes((2, 1, 1, OS_ABI, ABI_VERSION)) + bytes(7)
  out[:HEADER.size] = HEADER.pack(ident, EXECUTABLE, CUDA_MACHINE, TOOLKIT, 0, segments, headers, flags, HEADER.size,
                                  SEGMENT.size, count,
                                  SECTION.size, len(sections), 1)
  return bytes(out)
