"""Files for the vendor's library, against those of its assembler for the same kernel, and read by its disassembler, if
they are installed."""
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from nvidia.fake_cuda import static_bytes
from nvidia.box import KINDS, code
from nvidia.oracle import INSTALLED

from tinyhw.drivers.nvidia.cubin import cubin, exits
from tinyhw.errors import DeviceError
from tinyhw.isa.sass.asm.decode import decode_all
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Reg

PTXAS = shutil.which("ptxas") if INSTALLED is None else str(Path(INSTALLED).parent / "ptxas")
PTX = """.version 8.0
.target {arch}
.address_size 64
.visible .entry example(.param .u64 a, .param .u64 n)
{{
  .reg .u64 %rd<4>; .reg .u32 %r<3>;
  ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r1; ret;
}}
"""

def sections(file: bytes) -> dict[str, tuple[bytes, tuple[int, ...]]]:
  """Return the bytes of each section by name, and (kind, flags, alignment, entry)."""
  start, count, names = struct.unpack_from("<Q", file, 40)[0], struct.unpack_from("<H", file,
                                                                                  60)[0], struct.unpack_from(
    "<H", file, 62)[0]
  headers = [struct.unpack_from("<IIQQQQIIQQ", file, start + 64 * i) for i in range(count)]
  texts = file[headers[names][4]:headers[names][4] + headers[names][5]]
  def name(at: int) -> str: return texts[at:texts.index(b"\0", at)].decode()
  return {name(h[0]): (b"" if h[1] == 8 else file[h[4]:h[4] + h[5]], (h[1], h[2], h[8], h[9])) for h in headers}

def attributes(data: bytes) -> list[tuple[int, int, bytes]]:
  """Return (number, form, value) of .nv.info."""
  found, at = [], 0
  while at < len(data):
    form, number, value = struct.unpack_from("<BBH", data, at)
    at += 4
    found.append((number, form, data[at:at + value] if form == 4 else value.to_bytes(2, "little")))
    at += value if form == 4 else 0
  return found

SHARED = """.version 8.0
.target {arch}
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry example(.param .u64 a) {{
  .reg .u64 %rd<3>; .reg .u32 %r<5>;
  ld.param.u64 %rd1, [a]; mov.u32 %r1, memory; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r3, %r3, %r1;
  st.shared.u32 [%r3], %r2;
  bar.sync 0; ld.shared.u32 %r4, [%r3+64]; st.global.u32 [%rd1], %r4; ret;
}}
"""

@pytest.mark.parametrize("arch", KINDS)
@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed; pip install triton")
def test_shared_memory_is_that_of_a_kernel_whose_launch_says_how_much(tmp_path: Path, arch: str) -> None:
  (tmp_path / "k.ptx").write_text(SHARED.format(arch=arch))
  subprocess.run([str(PTXAS), f"-arch={arch}", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")], check=True)
  theirs, ours = (tmp_path / "k.cubin").read_bytes(), cubin(code(arch, local_bytes=200000))
  sizes = [static_bytes(file, (int(arch[3]), int(arch[4]))) for file in (ours, theirs)]
  assert sizes == [0, 0] and sections(ours)[".nv.shared.example"] == sections(theirs)[".nv.shared.example"]

def highest(text: bytes, arch: str) -> int:
  """Return the highest vector register of code."""
  used = [r for _, inst, _ in decode_all(text, arch) for r in inst.operands if isinstance(r, Reg)
          and r.cls.bank is regs.VECTOR]
  return max(r.index + r.cls.units - 1 for r in used if r.index is not None and r.index != regs.ZERO)

@pytest.mark.parametrize("arch", KINDS)
@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed; pip install triton")
def test_sections_are_those_of_the_assembler(tmp_path: Path, arch: str) -> None:
  (tmp_path / "k.ptx").write_text(PTX.format(arch=arch))
  subprocess.run([str(PTXAS), f"-arch={arch}", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")], check=True)
  theirs = sections((tmp_path / "k.cubin").read_bytes())
  ours = sections(cubin(code(arch, text=theirs[".text.example"][0],
                             registers=(("r", highest(theirs[".text.example"][0], arch) + 1),))))
  for name in (".text.example", ".nv.constant0.example", ".nv.callgraph"): assert ours[name] == theirs[name], name
  def comparable(data: bytes) -> list[tuple[int, int, bytes]]:
    """Remove the numbers of symbols, which are first, and the version of the assembler."""
    return sorted((n, f, v if n not in (0x2F, 0x11, 0x12, 0x0A) else v[4:]) for n, f, v in attributes(data)
                  if n not in (0x37, 0x5F))
  assert comparable(ours[".nv.info"][0]) == comparable(theirs[".nv.info"][0])
  mine, yours = comparable(ours[".nv.info.example"][0]), comparable(theirs[".nv.info.example"][0])
  assert ([item for item in mine if item not in yours] == []
          and {item[0] for item in yours} - {item[0] for item in mine} <= {0x35, 0x36, 0x50, 0x4A})

@pytest.mark.parametrize("arch", KINDS)
@pytest.mark.skipif(INSTALLED is None, reason="nvdisasm is not installed; pip install triton")
def test_the_disassembler_reads_it(tmp_path: Path, arch: str) -> None:
  end, nothing = (0x000FEA0003800000000000000000794D).to_bytes(16,
                                                               "little"), (0x000FC000000000000000000000007918).to_bytes(
    16, "little")
  text = end + 7 * nothing
  (tmp_path / "k.cubin").write_bytes(cubin(code(arch, text=text, local_bytes=5000, private_bytes=64)))
  done = subprocess.run([str(INSTALLED), str(tmp_path / "k.cubin")], capture_output=True, text=True, check=True)
  assert "EXIT" in done.stdout and ".nv.shared.example" in done.stdout

def test_where_kernels_end() -> None:
  end = (0x94D).to_bytes(2, "little") + bytes(14)
  assert exits(bytes(16) + end + bytes(32) + end) == [16, 64]

def test_code_of_others_is_refused() -> None:
  with pytest.raises(DeviceError, match="is for gfx1100, which is no NVIDIA GPU"): cubin(code("gfx1100"))
