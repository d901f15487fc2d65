"""Names of the special registers of S2R, S2UR and CS2R, by number. A register without a name is written SR and the
number.

A line has `number:name` in hexadecimal, without SR_. The sign "=" is before a name without SR_. The sign "%" is before
the generations that have the name.
Source: NVIDIA's disassembler, version 13.1.
"""
from __future__ import annotations

from tinyhw.errors import ParseError
from tinyhw.isa.sass.table.form import Generation
from tinyhw.threads import once

TEXT = """
00:LANEID 01:CLOCK 02:VIRTCFG 03:VIRTID 0f:ORDERING_TICKET 10:PRIM_TYPE 11:INVOCATION_ID 12:Y_DIRECTION 13:THREAD_KILL 14:=SM_SHADER_TYPE
15:DIRECTCBEWRITEADDRESSLOW 16:DIRECTCBEWRITEADDRESSHIGH 17:DIRECTCBEWRITEENABLED 18:SW_SCRATCH 19:MACHINE_ID_1 1a:MACHINE_ID_2
1b:MACHINE_ID_3 1c:AFFINITY 1d:INVOCATION_INFO 1e:WSCALEFACTOR_XY 1f:WSCALEFACTOR_Z 20:TID 21:TID.X 22:TID.Y 23:TID.Z 25:CTAID.X 26:CTAID.Y
27:CTAID.Z 28:NTID 29:CirQueueIncrMinusOne 2a:NLATC 2c:SM_SPA_VERSION 2d:MULTIPASSSHADERINFO 2e:LWINHI 2f:SWINHI 30:SWINLO 31:SWINSZ
32:SMEMSZ 33:SMEMBANKS 34:LWINLO 35:LWINSZ 36:LMEMLOSZ 37:LMEMHIOFF 38:EQMASK 39:LTMASK 3a:LEMASK 3b:GTMASK 3c:GEMASK 3d:REGALLOC
3e:BARRIERALLOC 40:GLOBALERRORSTATUS 42:WARPERRORSTATUS 43:VIRTUALSMID 44:VIRTUALENGINEID 50:CLOCKLO 51:CLOCKHI 52:GLOBALTIMERLO
53:GLOBALTIMERHI 54:ESR_PC 55:ESR_PC_HI 60:HWTASKID 61:CIRCULARQUEUEENTRYINDEX 62:CIRCULARQUEUEENTRYADDRESSLOW
63:CIRCULARQUEUEENTRYADDRESSHIGH 64:PM0 65:PM_HI0 66:PM1 67:PM_HI1 68:PM2 69:PM_HI2 6a:PM3 6b:PM_HI3 6c:PM4 6d:PM_HI4 6e:PM5 6f:PM_HI5
70:PM6 71:PM_HI6 72:PM7 73:PM_HI7 74:SNAP_PM0 75:SNAP_PM_HI0 76:SNAP_PM1 77:SNAP_PM_HI1 78:SNAP_PM2 79:SNAP_PM_HI2 7a:SNAP_PM3
7b:SNAP_PM_HI3 7c:SNAP_PM4 7d:SNAP_PM_HI4 7e:SNAP_PM5 7f:SNAP_PM_HI5 80:SNAP_PM6 81:SNAP_PM_HI6 82:SNAP_PM7 83:SNAP_PM_HI7 84:VARIABLE_RATE
85:=__HIR0X000 41:CGAERRORSTATUS%9+ 86:WARPGROUP_INFO%90 87:WARPGROUPID%90 88:CgaCtaId%9+ 89:GpcLocalCgaId%9+ 8a:CgaSize%10+
8b:CTARegPoolSz%9+ 8d:TMemSz%10+ 8e:CONTEXT_SAVE_ADDR_LO%120 8f:CONTEXT_SAVE_ADDR_HI%120 ff:=SRZ
"""

@once
def names(generation: Generation) -> dict[int, str]:
  """Return the names that a generation has."""
  found = {}
  for word in TEXT.split():
    number, _, name = word.partition(":")
    name, _, group = name.partition("%")
    if generation.has(group): found[int(number, 16)] = name[1:] if name[0] == "=" else f"SR_{name}"
  return found

def show_special(number: int, generation: Generation) -> str:
  """Return SR_TID.X, or SR200 for a register without a name."""
  return names(generation).get(number, f"SR{number}")

def parse_special(text: str, generation: Generation) -> int:
  """Return the number of a special register."""
  for number, name in names(generation).items():
    if name == text: return number
  if text[:2] == "SR" and text[2:].isdecimal() and int(text[2:]) < 256: return int(text[2:])
  raise ParseError(f"{generation.arch} has no special register {text}; there are SR_LANEID, SR_TID.X, SR_CTAID.X ..., "
                   f"or SR and a number")
