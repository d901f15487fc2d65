"""Queue meta data (QMD): the description of a launch that NVIDIA's compute engines read, by generation.

A row is a field's name and its bits in version 3.0 (generation 8: Ampere, Ada), 4.0 (9: Hopper) and 5.0 (10:
Blackwell); "-" if it is missing. `1024-1072+64` is the first of several fields at distances of 64 bits. `1024-1076>>4`
holds the value without its lowest 4 bits, which are 0. If the headers split an address into two adjacent fields, it is
one field here.

Source: NVIDIA/open-gpu-doc, classes/compute/clc7c0qmd.h, clcbc0qmd.h, clcdc0qmd.h, without fields that this repository
does not use. test/autogen/nvidia/test_qmd.py compares them with test/golden/nvidia_qmd.txt.
"""
from __future__ import annotations
import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

from tinyhw.autogen.fields import lines

ROWS = """
# name                            3.0           4.0           5.0
qmd_minor_version                 576-579       576-579       464-467
qmd_major_version                 580-583       580-583       468-471
qmd_group_id                      128-133       16-21         144-149
qmd_type                          -             23-25         151-153
is_queue                          136           -             -
require_scheduling_pcas           140           30            158
sm_global_caching_enable          134           -             -
api_visible_call_limit            378           568           456
sampler_index                     382           569           457
cwd_membar_type                   368-369       1136-1137     624-625
sequentially_run_ctas             370           1138          -
sass_version                      1656-1663     536-543       448-455
invalidate_texture_header_cache   186           602           472
invalidate_texture_sampler_cache  187           603           473
invalidate_texture_data_cache     188           604           474
invalidate_shader_data_cache      189           605           475
invalidate_instruction_cache      190           606           476
invalidate_shader_constant_cache  191           607           477
grid_width                        384-415       1024-1055     1248-1279
grid_height                       416-431       1056-1071     1280-1295
grid_depth                        448-463       1088-1103     1312-1327
cta_thread_dimension0             592-607       1152-1167     1088-1103
cta_thread_dimension1             608-623       1168-1183     1104-1119
cta_thread_dimension2             624-639       1184-1199     1120-1127
register_count                    648-656       1200-1208     1128-1136
barrier_count                     763-767       1211-1215     1137-1141
shared_memory_size                544-561       584-601       1152-1162>>7
min_sm_config_shared_mem_size     562-567       608-613       1163-1168
max_sm_config_shared_mem_size     569-574       614-619       1169-1174
target_sm_config_shared_mem_size  657-662       620-625       1175-1180
shader_local_memory_low_size      736-759       512-535       1184-1199>>4
shader_local_memory_high_size     1600-1623     544-567       1200-1215>>4
program_address                   1536-1584     1216-1272     1024-1076>>4
program_prefetch_addr             -             1344-1392>>8  1888-1936>>8
program_prefetch_addr_lower       256-287>>8    -             -
program_prefetch_addr_upper       1632-1640     -             -
program_prefetch_size             1641-1649     1393-1401     1077-1085
program_prefetch_type             1650-1651     1402-1403     1086-1087
constant_buffer_valid             640+1         416+4         1856+4
constant_buffer_invalidate        1074+64       419+4         1859+4
constant_buffer_addr              1024-1072+64  1536-1586+64>>6 1344-1394+64>>6
constant_buffer_size              1075-1087+64>>4 1587-1599+64>>4 1395-1407+64>>4
release_enable                    823+128       320+16        288+16
release_structure_size            830-831+128   321-322+16    289-290+16
release_membar_type               819+128       323+16        291+16
release_payload64b                829+128       332+16        300+16
release0_addr                     768-807       640-696       480-536
release0_payload                  832-895       704-767       544-607
release1_addr                     896-935       768-824       768-824
release1_payload                  960-1023      832-895       832-895
dependent_qmd0_enable             512           368           336
dependent_qmd0_action             513-515       369-371       337-339
dependent_qmd0_prefetch           516           372           340
dependent_qmd0_pointer            480-511>>8    448-479>>8    384-415>>8
"""

VERSIONS = {8: (3, 0), 9: (4, 0), 10: (5, 0)}
BYTES = {8: 256, 9: 384, 10: 384}
ALIGNMENT = 256
CONSTANT_BUFFERS = 8

# Values of fields
GRID_CTA = 2                                          # qmd_type: workgroups without clusters
NO_CHECK, VIA_HEADER_INDEX = 1, 1                     # api_visible_call_limit, sampler_index
L1_SYSMEMBAR = 1                                      # cwd_membar_type
FOUR_WORDS, ONE_WORD, TWO_WORDS = 0, 1, 2             # release_structure_size: with the time, 32 bits, 64 bits
SYSMEMBAR = 1                                         # release_membar_type
SCHEDULE, INVALIDATE_COPY_SCHEDULE = 1, 3             # dependent_qmd0_action

_BITS = re.compile(r"(?P<low>\d+)(-(?P<high>\d+))?(\+(?P<stride>\d+))?(>>(?P<shift>\d+))?$")

class Field(NamedTuple):
  """Bits low..high of a value without its lowest `shift` bits. stride: the distance of several such fields, 0 for
  one."""
  name: str
  low: int
  high: int
  stride: int
  shift: int

  @property
  def mask(self) -> int: return (1 << self.high - self.low + 1) - 1

class Layout:
  """The fields of a generation. Values are keyed by name, or by `name[i]` for one of several fields."""
  def __init__(self, generation: int):
    self.generation, self.bytes = generation, BYTES[generation]
    self.fields: dict[str, Field] = {}
    for name, text in lines(ROWS):
      found = _BITS.match(text.split()[generation - 8])
      if found is None: continue
      numbers = {key: int(value or 0) for key, value in found.groupdict().items()}
      self.fields[name] = Field(name, numbers["low"], numbers["high"] or numbers["low"], numbers["stride"],
                                numbers["shift"])

  def place(self, name: str) -> tuple[Field, int]:
    """Return a field by its name, and its first bit. Raises ValueError for an unknown one."""
    plain, _, index = name.partition("[")
    field = self.fields.get(plain)
    if field is None or bool(index) != bool(field.stride):
      raise ValueError(f"a QMD of generation {self.generation} has no field {name}")
    return field, field.low + field.stride * int(index.rstrip("]") or 0)

  def number(self, values: Mapping[str, int]) -> int:
    """Return all bits of a QMD as one number. Missing fields are 0.

    Raises ValueError for an unknown field, or a value that does not fit.
    """
    whole = 0
    for name, value in values.items():
      field, low = self.place(name)
      if value & (1 << field.shift) - 1: raise ValueError(f"{name}={value:#x} is not a multiple of {1 << field.shift}")
      if value >> field.shift & ~field.mask:
        raise ValueError(f"{name}={value:#x} does not fit into {field.high - field.low + 1} bits")
      whole |= value >> field.shift << low
    return whole

  def encode(self, values: Mapping[str, int]) -> bytes:
    """Return the bytes of a QMD."""
    return self.number(values).to_bytes(self.bytes, "little")

  def get(self, data: bytes, name: str) -> int:
    """Return a field of a QMD."""
    field, low = self.place(name)
    return (int.from_bytes(data[:self.bytes], "little") >> low & field.mask) << field.shift

  def show(self, data: bytes) -> dict[str, int]:
    """Return all fields of a QMD that are not 0."""
    names = [f"{f.name}[{i}]" for f in self.fields.values() if f.stride
             for i in range(CONSTANT_BUFFERS if "buffer" in f.name else 2)]
    names += [f.name for f in self.fields.values() if not f.stride]
    return {name: value for name in sorted(names, key=lambda n: self.place(n)[1]) if (value := self.get(data, name))}

@functools.cache
def layout(generation: int) -> Layout:
  """Return the fields of generation 8, 9 or 10. Raises ValueError for others."""
  if generation not in VERSIONS:
    raise ValueError(f"there is no QMD of generation {generation}; there are {tuple(VERSIONS)}")
  return Layout(generation)
