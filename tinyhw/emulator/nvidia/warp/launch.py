"""The parameters of a launch that its blocks can notice: those of a QMD."""
from __future__ import annotations

from tinyhw.data_class import dataclass

@dataclass(frozen=True)
class LaunchParameters:
  """A grid in one dimension. code: the address of its first instruction. registers: that a lane may use, R0 and up.
  constants: constant bank 0.

  shared_bytes: of a block. local_bytes: of a lane. barriers: that a block may use.
  """
  name: str
  arch: str
  code: int
  registers: int
  constants: bytes
  threads: int
  blocks: int
  shared_bytes: int = 0
  local_bytes: int = 0
  barriers: int = 0
