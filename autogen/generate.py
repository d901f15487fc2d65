"""Make rows of autogen/amd/ from headers of Linux, and compare existing rows, and nvidia/rm.py, with headers.

  python3 -m tinyhw.autogen.generate --check FOLDER                 all tables; exit status 1 if something differs
  python3 -m tinyhw.autogen.generate --check FOLDER sdma gc         some of them
  python3 -m tinyhw.autogen.generate --rows FOLDER gc COMPUTE_NEW   rows in the notation of the table, to be put there

FOLDER is a tree of Linux (or of its headers: /usr/include has kfd_ioctl.h), or of a version of NVIDIA's open kernel
modules. The tables are a selection: names that only the headers have are no difference. `FILES` lists the files for
each table. Files that FOLDER lacks are reported, and their content is not compared.

Each table becomes facts, once from the headers and once from the tree. Facts are a set of short texts for each name.
Both sets must be equal.
"""
from __future__ import annotations
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import Array, Structure, Union, sizeof
from pathlib import Path
from typing import Any, NamedTuple

from tinyhw.autogen import c_reader
from tinyhw.autogen.amd import gc, kfd_ioctl, pm4, sdma
from tinyhw.autogen.c_reader import Header, HeaderError
from tinyhw.autogen.nvidia import headers as nvidia

AMDGPU, ASIC = "drivers/gpu/drm/amd/amdgpu", "drivers/gpu/drm/amd/include/asic_reg"
Facts = dict[str, frozenset[str]]

class Files(NamedTuple):
  """The headers of a table's generation. Each is the first existing one of several paths."""
  table: str
  generation: int
  headers: tuple[tuple[str, ...], ...]
  prelude: str = ""                      # declarations that the headers include from other files
  prepare: Callable[[str], str] = str    # converts a header's text for c_reader.py

# generation, versions of GC and NBIO
CHIPS = ((9, "9_4_3", ("7_9_0",)), (11, "11_0_0", ("4_3_0",)), (12, "12_0_0", ()))
FILES = (
  Files("kfd", 0, (("include/uapi/linux/kfd_ioctl.h", "linux/kfd_ioctl.h"),
                   ("include/uapi/linux/kfd_sysfs.h", "linux/kfd_sysfs.h"))),
  *(Files("gc", generation, ((f"{ASIC}/gc/gc_{version}_offset.h",), (f"{ASIC}/gc/gc_{version}_sh_mask.h",),
                             *((f"{ASIC}/nbio/nbio_{bridge}_offset.h",) for bridge in bridges)))
    for generation, version, bridges in CHIPS),
  Files("sdma", 4, ((f"{AMDGPU}/vega10_sdma_pkt_open.h",),)),
  Files("sdma", 6, ((f"{AMDGPU}/sdma_v6_0_0_pkt_open.h",),)),
  Files("pm4", 9, ((f"{AMDGPU}/soc15d.h",),)), Files("pm4", 10, ((f"{AMDGPU}/nvd.h",),)),
  Files("rm", 0, nvidia.HEADERS, nvidia.PRELUDE, nvidia.plain),
)

# **** kfd: calls, structures, constants ****

# Names of our structures that differ from those of the calls
CALL_NAMES = {"GetAvailableMemory": "AVAILABLE_MEMORY", "ResetEvent": "RESET_EVENT"}
INTEGERS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}

def snake(name: str) -> str:
  """Convert AllocMemoryOfGpu to ALLOC_MEMORY_OF_GPU."""
  return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()

def macro_of(call: str) -> str: return "AMDKFD_IOC_" + CALL_NAMES.get(call, snake(call))

def integers(members: Iterable[c_reader.Member]) -> list[str]:
  """Return "u64 size@8" for each member. Members of inner structures have the last part of their name."""
  found = []
  for member in members:
    count = 1
    for n in member.counts: count *= n
    kind = INTEGERS.get(member.size // count, member.kind) + (f"[{count}]" if member.counts else "")
    found.append(f"{kind} {member.name.split('.')[-1]}@{member.offset}")
  return found

def ctypes_members(kind: Any, start: int = 0) -> Iterator[str]:
  """Yield the same for a ctypes structure."""
  for name, inner in kind._fields_:
    offset = start + getattr(kind, name).offset
    if issubclass(inner, (Structure, Union)): yield from ctypes_members(inner, offset)
    elif issubclass(inner, Array): yield f"{INTEGERS[sizeof(inner._type_)]}[{inner._length_}] {name}@{offset}"
    else: yield f"{INTEGERS[sizeof(inner)]} {name}@{offset}"

def kfd_headers(header: Header) -> Facts:
  """Return the facts of the table's calls, structures and constants."""
  found: Facts = {}
  for call in kfd_ioctl.CALLS.values():
    if macro_of(call.__name__) not in header.macros: continue
    number, struct = header.ioctl(macro_of(call.__name__))
    if struct is not None: found[call.__name__] = frozenset([f"number {number:#x}", *integers(struct.flat())])
  for name, kind in structures().items():
    if name in header.structs:
      found[name] = frozenset([f"{header.structs[name].size} bytes", *integers(header.structs[name].flat())])
  for name in kfd_constants():
    try: found[name] = frozenset([f"{header.value(name) & 0xFFFF_FFFF:#x}"])
    except HeaderError: continue
  return found

def structures() -> dict[str, type[Any]]:
  """Return the structures that calls point to, by their name in C, which is the first word of their docstring."""
  kinds = [kind for kind in vars(kfd_ioctl).values() if isinstance(kind, type) and issubclass(kind, Structure)
           and kind is not Structure]
  return {re.split(r"[.:,]", kind.__doc__ or "")[0]: kind for kind in kinds if not hasattr(kind, "REQUEST")}

def kfd_constants() -> dict[str, int]:
  return {name: value for name, value in vars(kfd_ioctl).items() if name.startswith("KFD_")}

def kfd_tree() -> Facts:
  calls = {call.__name__: frozenset([f"number {vars(call)['REQUEST']:#x}", *ctypes_members(call)])
           for call in kfd_ioctl.CALLS.values()}
  others = {name: frozenset([f"{sizeof(kind)} bytes", *ctypes_members(kind)]) for name, kind in structures().items()}
  return {**calls, **others, **{name: frozenset([f"{value:#x}"]) for name, value in kfd_constants().items()}}

def kfd_row(header: Header, name: str) -> str:
  """Return a call as a row of kfd_ioctl.py."""
  number, struct = header.ioctl(macro_of(name))
  if struct is None: raise HeaderError(f"{macro_of(name)} takes no structure")
  direction = {1: "_WRITE", 2: "_READ", 3: "_READ | _WRITE"}[number >> 30]
  return (f"{name} = _call(\"{name}\", {direction}, {number & 0xFF:#04x}, "
          f"\"{' '.join(text.split('@')[0] for text in integers(struct.flat()))}\")")

# **** gc: registers ****

# of the segments of GC, as in amdgpu's *_ip_offset.h
BASES = {9: (0x2000, 0xA000), 11: (0x1260, 0xA000), 12: (0x1260, 0xA000)}
NBIO_BASES = (0, 0x14, 0xD20)
RENAMED = {"interleave_bits_x": "interleave_bits", "interleave_bits_y": "interleave_bits"}

def place(low: int, high: int) -> str:
  """Return bits in the notation of rows: "" for a whole word."""
  return "" if (low, high) == (0, 31) else f":{low}" if low == high else f":{low}-{high}"

def gc_headers(header: Header, generation: int) -> Facts:
  """Return the facts of all registers of compute, and of the two that flush the bridge's cache."""
  masks: dict[str, list[str]] = {}
  for name in header.macros:
    if not name.endswith("__SHIFT"): continue
    register, field = name.split("__")[:2]
    shift, mask = header.value(name), header.value(f"{register}__{field}_MASK")
    low, high = shift, mask.bit_length() - 1
    masks.setdefault(register, []).append(RENAMED.get(field.lower(), field.lower()) + place(low, high))
  found: Facts = {}
  for name in header.macros:
    index = header.macros.get(f"{name}_BASE_IDX")
    if not name.startswith("reg") or index is None: continue
    bases = NBIO_BASES if name.startswith("regBIF") else BASES[generation]
    segment = header.value(f"{name}_BASE_IDX")
    if segment >= len(bases): continue
    address = f"{bases[segment] + header.value(name):#06x}"
    found[name[3:]] = frozenset([address, *masks.get(name[3:], ())])
  return found

def gc_tree(generation: int) -> Facts:
  registers = gc.registers(generation).rows.values()
  return {r.name: frozenset([f"{r.address:#06x}", *(f.name + place(f.low, f.high) for f in r.fields.values())])
          for r in registers}

# **** sdma: packets ****

OPCODES = {"COPY_LINEAR": "COPY", "WRITE_UNTILED": "WRITE", "CONSTANT_FILL": "CONST_FILL", "TIMESTAMP_SET": "TIMESTAMP",
           "TIMESTAMP_GET": "TIMESTAMP",
           "TIMESTAMP_GET_GLOBAL": "TIMESTAMP"}
SUFFIX = re.compile(r"_(\d+)_(\d+)$")   # src_addr_31_0: these bits of the value

def sdma_places(header: Header) -> dict[str, list[tuple[int, int, int, str]]]:
  """Return word, bits and name of the fields of each packet, in order."""
  names = {name[len("SDMA_PKT_"):-len("_HEADER_op_offset")] for name in header.macros
           if name.endswith("_HEADER_op_offset")}
  found: dict[str, list[tuple[int, int, int, str]]] = {name: [] for name in names}
  for macro in header.macros:
    match = re.fullmatch(r"SDMA_PKT_(\w*?)_([a-z][A-Za-z0-9_]*)_offset", macro)
    if match is None: continue
    start = macro[:-len("_offset")]
    packet = max((name for name in names if match[1].startswith(name + "_")), key=len, default=None)
    if packet is None: continue
    word, shift, mask = (header.value(f"{start}_{what}") for what in ("offset", "shift", "mask"))
    found[packet].append((word, shift, shift + mask.bit_length() - 1, match[2]))
  return {name: sorted(fields) for name, fields in found.items()}

def _aligned(word: int, low: int, high: int, name: str) -> str:
  """Return a field as a fact.

  Names are not compared. An address that is given from bit 3 on has zeros as lower bits.
  """
  match = SUFFIX.search(name)
  return f"{word}.{0 if match and int(match[2]) == low else low}-{high}"

def sdma_headers(header: Header) -> Facts:
  found: Facts = {}
  for name, fields in sdma_places(header).items():
    facts = {_aligned(*field) for field in fields if not re.fullmatch(r"data0?", field[3])
             or name not in ("NOP", "WRITE_UNTILED")}
    opcode = f"SDMA_OP_{OPCODES.get(name, name)}"
    if opcode in header.macros: facts.add(f"op {header.value(opcode)}")
    if f"SDMA_SUBOP_{name}" in header.macros: facts.add(f"sub_op {header.value(f'SDMA_SUBOP_{name}')}")
    found[name] = frozenset(facts)
  return found

def sdma_tree(generation: int, told: Facts) -> Facts:
  """Return the facts of the tree. told: the facts of the headers, which do not contain all codes."""
  found: Facts = {}
  for packet in {4: sdma.V4, 6: sdma.V6}[generation].rows.values():
    facts = set()
    for field in packet.fields.values():
      facts.add(_aligned(field.word, field.low, min(field.high, 31), field.name))
      if field.high > 31: facts.add(f"{field.word + 1}.0-{field.high - 32}")
    codes = {f"op {packet.opcode[0]}", f"sub_op {packet.opcode[1]}"}
    wanted = {text.split()[0] for text in told.get(packet.name, ()) if " " in text}
    found[packet.name] = frozenset(facts | {code for code in codes if code.split()[0] in wanted})
  return found

# **** pm4: opcodes, and the fields in headers ****

PREFIXES = ("GCR_CNTL_", "GCR_", "CP_COHER_CNTL_", "EOP_")

def pm4_headers(header: Header, generation: int) -> Facts:
  """Return opcodes, and for the table's packets the first bits of fields with the same name."""
  found: Facts = {}
  table = {9: pm4.GFX9, 10: pm4.GFX10}[generation]
  for packet in table.rows.values():
    if f"PACKET3_{packet.name}" not in header.macros: continue
    facts = {f"opcode {header.value(f'PACKET3_{packet.name}'):#x}"}
    for name, macro in header.macros.items():
      field = _field(name, packet.name)
      if field not in packet.fields or "<<" not in macro.tokens: continue
      words = [{"x": "1"}.get(token, token) for token in macro.tokens] if macro.parameters else list(macro.tokens)
      value = c_reader.Expression(header, tuple(words)).whole()
      facts.add(f"{field}@{(value & -value).bit_length() - 1}")
    found[packet.name] = frozenset(facts)
  return found

def _field(name: str, packet: str) -> str:
  """Return glm_wb for PACKET3_RELEASE_MEM_GCR_GLM_WB of RELEASE_MEM."""
  if not name.startswith(f"PACKET3_{packet}_"): return ""
  rest = name[len(f"PACKET3_{packet}_"):]
  for prefix in PREFIXES: rest = rest.removeprefix(prefix)
  return rest.lower()

def pm4_tree(generation: int, told: Facts) -> Facts:
  found: Facts = {}
  for packet in {9: pm4.GFX9, 10: pm4.GFX10}[generation].rows.values():
    names = {text.split("@")[0] for text in told.get(packet.name, ())}
    fields = {f"{field.name}@{field.low}" for field in packet.fields.values() if field.name in names}
    found[packet.name] = frozenset({f"opcode {packet.opcode:#x}"} | fields)
  return found

# **** all of them ****

def facts(files: Files, header: Header) -> tuple[Facts, Facts]:
  """Return the facts of the headers, and those of the tree."""
  table, generation = files.table, files.generation
  if table == "rm":
    told = nvidia.told(header)
    return told, nvidia.tree(header, told)
  if table == "kfd": return kfd_headers(header), kfd_tree()
  if table == "gc":
    told, tree = gc_headers(header, generation), gc_tree(generation)
    # without the file of fields, only addresses are known
    if not any(name.endswith("__SHIFT") for name in header.macros):
      tree = {name: frozenset(text for text in texts if text.startswith("0x")) for name, texts in tree.items()}
    return told, {name: frozenset(t for t in texts if t.startswith("0x")) if name.startswith("BIF") else texts
                  for name, texts in tree.items()}
  told = sdma_headers(header) if table == "sdma" else pm4_headers(header, generation)
  return told, sdma_tree(generation, told) if table == "sdma" else pm4_tree(generation, told)

def load(folder: Path, files: Files) -> tuple[Header | None, list[str]]:
  """Read the headers of a table's generation one after the other. Return them and the missing ones."""
  header, missing = c_reader.read(files.prelude), list[str]()
  for places in files.headers:
    path = next((folder / place for place in places if (folder / place).is_file() and (folder / place).stat().st_size),
                None)
    if path is None: missing.append(places[0])
    else: c_reader.read(files.prepare(path.read_text(encoding="utf-8", errors="replace")), header)
  return (None if len(missing) == len(files.headers) else header), missing

def differences(told: Facts, tree: Facts) -> Iterator[str]:
  """Yield a line for each name of the tree that differs from the headers or is missing there."""
  for name, here in tree.items():
    there = told.get(name)
    if there is None: yield f"{name}: not in the headers"
    elif there != here:
      yield (f"{name}: headers have {', '.join(sorted(there - here)) or 'no more'}; here "
             f"{', '.join(sorted(here - there)) or 'no more'}")

def check(folder: Path, tables: Sequence[str], say: Callable[[str], None]) -> int:
  """Compare tables with headers. Return the count of different names, at least 1 if nothing could be compared."""
  total = compared = 0
  for files in FILES:
    if tables and files.table not in tables: continue
    label = files.table + (f" {files.generation}" if files.generation else "")
    header, missing = load(folder, files)
    for path in missing: say(f"{label}: {folder} has no {path}, so what it tells is not compared")
    if header is None: continue
    if files.table == "kfd": _say_version(header, say)
    if files.table == "rm": say(nvidia.about(header))
    told, tree = facts(files, header)
    lines = [line for line in differences(told, tree) if not (missing and line.endswith("not in the headers"))]
    for line in lines: say(f"{label}: {line}")
    compared += sum(name in told for name in tree)
    total += len(lines)
    say(f"{label}: {sum(name in told for name in tree)} of {len(tree)} names compared, {len(lines)} differ")
  return total if compared else max(total, 1)

def _say_version(header: Header, say: Callable[[str], None]) -> None:
  """Report a different version of the kernel driver's interface. Older ones lack parts of the table."""
  try: found = tuple(header.value(f"KFD_IOCTL_{part}_VERSION") for part in ("MAJOR", "MINOR"))
  except HeaderError: return
  if found == kfd_ioctl.VERSION: return
  names = (".".join(map(str, version)) for version in (found, kfd_ioctl.VERSION))
  say("kfd: the headers are of interface {}, the table is of {}; what came between differs".format(*names))

def merged(values: dict[int, list[str]]) -> list[str]:
  """Return the items of all generations, with "@9,11" after those that only some generations have."""
  found = []
  for item in dict.fromkeys(item for items in values.values() for item in items):
    having = [str(generation) for generation, items in values.items() if item in items]
    found.append(item if len(having) == len(values) else f"{item}@{','.join(having)}")
  return found

def rows(folder: Path, table: str, names: Sequence[str]) -> list[str]:
  """Return rows in the notation of a table. Raises HeaderError for names that no header has."""
  headers: dict[int, Header] = {}
  for files in FILES:
    header, missing = load(folder, files) if files.table == table else (None, [])
    if header is not None: headers[files.generation] = header
    for path in missing: sys.stderr.write(f"generate: without {path}, which {folder} has not\n")
  found = []
  for name in names:
    if table == "kfd": found.append(kfd_row(headers[0], name) if 0 in headers else "")
    elif table == "gc":
      told = {g: gc_headers(header, g)[name] for g, header in headers.items() if name in gc_headers(header, g)}
      items = {g: sorted(texts, key=lambda text: (not text.startswith("0x"), _low(text))) for g, texts in told.items()}
      found.append(" ".join([name, *merged(items)]) if items else "")
    elif table == "sdma":
      places = {g: p for g, header in headers.items() if (p := sdma_places(header).get(name))}
      words = sorted({field[0] for fields in places.values() for field in fields})
      parts = [merged({g: [f[3] + place(f[1], f[2]) for f in fields if f[0] == word] for g, fields in places.items()})
               for word in words]
      found.append(f"{name} " + " | ".join(" ".join(part) for part in parts) if places else "")
    else:
      raise HeaderError(f"rows of {table} are made by hand, since headers do not tell all of them; --check compares "
                        f"what they tell")
    if not found[-1]: raise HeaderError(f"no header of {table} has {name}")
  return found

def _low(text: str) -> int: return int(text.partition(":")[2].split("-")[0] or 0)

def main(arguments: Sequence[str]) -> int:
  """Run the command. Return 0 if all is equal, 1 if something differs, 2 for unknown arguments."""
  known = sorted({files.table for files in FILES})
  words = list(arguments)
  def say(line: str) -> None: sys.stdout.write(line + "\n")
  if words[:1] == ["--check"] and len(words) > 1 and set(words[2:]) <= set(known):
    return int(check(Path(words[1]), words[2:], say) > 0)
  if words[:1] == ["--rows"] and len(words) > 3 and words[2] in known:
    try: say("\n".join(rows(Path(words[1]), words[2], words[3:])))
    except HeaderError as error:
      sys.stderr.write(f"generate: {error}\n")
      return 1
    return 0
  sys.stderr.write(f"--check FOLDER [TABLE ...] or --rows FOLDER TABLE NAME ... is expected; tables are "
                   f"{', '.join(known)}\n")
  return 2

if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
