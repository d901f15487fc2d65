"""generate.py: rows and facts from small headers in a tree like Linux's, and the differences of --check."""
import subprocess
import sys
from pathlib import Path

import pytest

from tinyhw.autogen import generate
from tinyhw.autogen.amd import gc, kfd_ioctl, sdma
from tinyhw.autogen.c_reader import HeaderError, read

ROOT = Path(__file__).resolve().parents[2]
KFD, OFFSETS, MASKS = ("include/uapi/linux/kfd_ioctl.h", f"{generate.ASIC}/gc/gc_{{}}_offset.h",
                       f"{generate.ASIC}/gc/gc_{{}}_sh_mask.h")
SDMA, NVD = f"{generate.AMDGPU}/sdma_v6_0_0_pkt_open.h", f"{generate.AMDGPU}/nvd.h"

def tree(folder: Path, **headers: str) -> Path:
  """Make a folder with headers, by the names above."""
  for name, text in headers.items():
    base, _, version = name.partition("__")
    path = folder / {"kfd": KFD, "offsets": OFFSETS, "masks": MASKS, "sdma": SDMA, "nvd": NVD}[base].format(version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  return folder

def said(folder: Path, *tables: str) -> tuple[int, list[str]]:
  lines: list[str] = []
  return generate.check(folder, tables, lines.append), [line for line in lines if "is not compared" not in line]

# **** kfd ****

DESTROY = """
#define KFD_IOCTL_MAJOR_VERSION 1
#define KFD_IOCTL_MINOR_VERSION 17
struct kfd_ioctl_destroy_queue_args { __u32 queue_id; /* to KFD */ __u32 pad; };
struct kfd_hsa_signal_event_data { __u64 last_event_age; };
#define KFD_IOC_QUEUE_TYPE_SDMA 0x1
#define AMDKFD_IOWR(nr, type) _IOWR('K', nr, type)
#define AMDKFD_IOC_DESTROY_QUEUE AMDKFD_IOWR(0x03, struct kfd_ioctl_destroy_queue_args)
"""

def differing(lines: list[str]) -> list[str]: return [line for line in lines if "not in the headers" not in line]

def test_calls_structures_and_constants_that_agree(tmp_path: Path) -> None:
  number, lines = said(tree(tmp_path, kfd=DESTROY), "kfd")
  assert differing(lines) == [f"kfd: 3 of {len(generate.kfd_tree())} names compared, 0 differ"]
  assert number == 0, "kfd_sysfs.h is not there, so names that are not told may be in it"

@pytest.mark.parametrize("old, new, words", [
  ("__u32 pad;", "__u64 pad;", "DestroyQueue: headers have number 0xc0104b03, u64 pad@8; here number 0xc0084b03, u32 "
   "pad@4"),
  ("(0x03", "(0x04", "DestroyQueue: headers have number 0xc0084b04; here number 0xc0084b03"),
  ("queue_id", "queue", "DestroyQueue: headers have u32 queue@0; here u32 queue_id@0"),
  ("SDMA 0x1", "SDMA 0x2", "KFD_IOC_QUEUE_TYPE_SDMA: headers have 0x2; here 0x1"),
  ("__u64 last_event_age", "__u32 last_event_age", "kfd_hsa_signal_event_data: headers have 4 bytes, u32 "
   "last_event_age@0; here 8 bytes, u64"),
  ("VERSION 17", "VERSION 99", "the headers are of interface 1.99, the table is of 1.17; what came between differs")])
def test_what_differs_in_kfd(tmp_path: Path, old: str, new: str, words: str) -> None:
  assert old in DESTROY
  number, lines = said(tree(tmp_path, kfd=DESTROY.replace(old, new)), "kfd")
  assert [line for line in lines if words in line] and (number == 1 or "VERSION" in old)

def test_all_of_our_structures_have_a_name_in_c() -> None:
  assert {"kfd_process_device_apertures", "kfd_event_data",
          "kfd_context_save_area_header"} <= set(generate.structures())
  assert all(name.startswith("kfd_") for name in generate.structures())

def test_rows_of_kfd_make_the_structures_that_are_there(tmp_path: Path) -> None:
  row, = generate.rows(tree(tmp_path, kfd=DESTROY), "kfd", ["DestroyQueue"])
  assert row == 'DestroyQueue = _call("DestroyQueue", _READ | _WRITE, 0x03, "u32 queue_id u32 pad")'
  made = dict(vars(kfd_ioctl))
  exec(row, made)
  assert made["DestroyQueue"].REQUEST == kfd_ioctl.DestroyQueue.REQUEST  # type: ignore[attr-defined]

# **** gc ****

REGISTER = "#define regCOMPUTE_PGM_RSRC3 {}\n#define regCOMPUTE_PGM_RSRC3_BASE_IDX 0\n"
FIELD = "#define COMPUTE_PGM_RSRC3__{0}__SHIFT {1}\n#define COMPUTE_PGM_RSRC3__{0}_MASK {2}\n"
NINE = FIELD.format("ACCUM_OFFSET", "0x0", "0x0000003FL") + FIELD.format("TRAP_ON_START", "0xa",
                                                                         "0x400L") + FIELD.format(
  "TRAP_ON_END", "0xb", "0x800L") + FIELD.format("TG_SPLIT", "0x10", "0x00010000L")
ELEVEN = FIELD.format("INST_PREF_SIZE", "0x4", "0x3F0L")

def registers(folder: Path, fields: str = NINE, offset: str = "0x0e2d") -> Path:
  return tree(folder, offsets__9_4_3=REGISTER.format(offset), masks__9_4_3=fields)

def test_a_register_that_agrees(tmp_path: Path) -> None:
  _, lines = said(registers(tmp_path), "gc")
  assert lines == [f"gc 9: 1 of {len(gc.registers(9).rows)} names compared, 0 differ"]

@pytest.mark.parametrize("fields, offset, words", [
  (NINE, "0x0e2e", "gc 9: COMPUTE_PGM_RSRC3: headers have 0x2e2e; here 0x2e2d"),
  (NINE.replace("0x0000003FL", "0x0000007FL"), "0x0e2d", "gc 9: COMPUTE_PGM_RSRC3: headers have accum_offset:0-6; "
   "here accum_offset:0-5"),
  (NINE.replace("TG_SPLIT", "NEW"), "0x0e2d", "gc 9: COMPUTE_PGM_RSRC3: headers have new:16; here tg_split:16")])
def test_what_differs_in_registers(tmp_path: Path, fields: str, offset: str, words: str) -> None:
  number, lines = said(registers(tmp_path, fields, offset), "gc")
  assert words in lines and number == 1

def test_addresses_are_compared_without_the_file_of_fields(tmp_path: Path) -> None:
  tree(tmp_path, offsets__9_4_3=REGISTER.format("0x0e2d"))
  assert said(tmp_path, "gc")[1] == [f"gc 9: 1 of {len(gc.registers(9).rows)} names compared, 0 differ"]

def test_rows_merge_generations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
  registers(tmp_path)
  tree(tmp_path, offsets__11_0_0=REGISTER.format("0x1bc8"),
       masks__11_0_0=ELEVEN + FIELD.format("TRAP_ON_START", "0xa", "0x400L"))
  row, = generate.rows(tmp_path, "gc", ["COMPUTE_PGM_RSRC3"])
  assert row == ("COMPUTE_PGM_RSRC3 0x2e2d@9 accum_offset:0-5@9 trap_on_start:10 trap_on_end:11@9 tg_split:16@9 "
                 "0x2e28@11 inst_pref_size:4-9@11")
  assert "gc_12_0_0_offset.h, which" in capsys.readouterr().err
  with pytest.raises(HeaderError, match="no header of gc has COMPUTE_NONE"):
    generate.rows(tmp_path, "gc", ["COMPUTE_NONE"])

# **** sdma and pm4 ****

def packet(name: str, *fields: tuple[str, int, int, int]) -> str:
  """Return the macros of a packet: name of the word and the field, word, mask, shift."""
  return "".join(f"#define SDMA_PKT_{name}_{f}_offset {w}\n#define SDMA_PKT_{name}_{f}_mask {m}\n#define "
                 f"SDMA_PKT_{name}_{f}_shift {s}\n"
                 for f, w, m, s in fields)

OP = ("HEADER_op", 0, 0xFF, 0), ("HEADER_sub_op", 0, 0xFF, 8)
TRAP = "#define SDMA_OP_TRAP 6\n" + packet("TRAP", *OP, ("INT_CONTEXT_int_context", 1, 0x0FFFFFFF, 0))
STAMP = packet("TIMESTAMP_SET", *OP, ("INIT_DATA_LO_init_data_31_0", 1, 0xFFFFFFFF, 0),
               ("INIT_DATA_HI_init_data_63_32", 2, 0xFFFFFFFF, 0)) + "#define SDMA_SUBOP_TIMESTAMP_SET 0\n"

def test_packets_that_agree(tmp_path: Path) -> None:
  _, lines = said(tree(tmp_path, sdma=TRAP + STAMP), "sdma")
  assert lines[-1].startswith(f"sdma 6: 2 of {len(sdma.V6.rows)} names compared") and not differing(lines[:-1])

def test_what_differs_in_packets(tmp_path: Path) -> None:
  number, lines = said(tree(tmp_path,
                            sdma=TRAP.replace("0, 0xFF, 8", "").replace("268435455",
                                                                        "1023").replace("OP_TRAP 6", "OP_TRAP 7")),
                       "sdma")
  assert "sdma 6: TRAP: headers have 1.0-9, op 7; here 1.0-27, op 6" in lines and number > 1

def test_a_packet_whose_name_begins_another(tmp_path: Path) -> None:
  text = packet("COPY", ("HEADER_op", 0, 0xFF, 0)) + packet("COPY_LINEAR", ("HEADER_op", 0, 0xFF, 0),
                                                            ("COUNT_count", 1, 0xFF, 0))
  places = generate.sdma_places(read(text))
  assert places == {"COPY": [(0, 0, 7, "op")], "COPY_LINEAR": [(0, 0, 7, "op"), (1, 0, 7, "count")]}

def test_rows_of_sdma(tmp_path: Path) -> None:
  assert generate.rows(tree(tmp_path, sdma=TRAP), "sdma", ["TRAP"]) == ["TRAP op:0-7 sub_op:8-15 | int_context:0-27"]

NAVI = ("#define PACKET3_RELEASE_MEM 0x49\n#define PACKET3_RELEASE_MEM_GCR_GLM_WB (1 << 12)\n#define "
        "PACKET3_RELEASE_MEM_DATA_SEL(x) ((x) << 29)\n")

def test_pm4(tmp_path: Path) -> None:
  assert not differing([line for line in said(tree(tmp_path, nvd=NAVI), "pm4")[1] if "names compared" not in line])
  changed = NAVI.replace("0x49", "0x4a").replace("12", "13").replace("29", "28")
  lines = said(tree(tmp_path, nvd=changed), "pm4")[1]
  assert ("pm4 10: RELEASE_MEM: headers have data_sel@28, glm_wb@13, opcode 0x4a; here data_sel@29, glm_wb@12, opcode "
          "0x49" in lines)
  with pytest.raises(HeaderError, match="rows of pm4 are made by hand"): generate.rows(tmp_path, "pm4", ["RELEASE_MEM"])

# **** the command ****

def command(*arguments: str) -> subprocess.CompletedProcess[str]:
  return subprocess.run([sys.executable, "-m", "tinyhw.autogen.generate", *arguments], capture_output=True, text=True,
                        cwd=ROOT)

def test_the_command(tmp_path: Path) -> None:
  tree(tmp_path, sdma=TRAP)
  done = command("--rows", str(tmp_path), "sdma", "TRAP")
  assert ((done.returncode, done.stdout) == (0, "TRAP op:0-7 sub_op:8-15 | int_context:0-27\n")
          and "vega10_sdma_pkt_open.h, which" in done.stderr)
  assert command("--rows", str(tmp_path), "sdma", "NONE").returncode == 1
  assert command("--check", str(tmp_path), "sdma").returncode == 1, "other packets are not in the headers"
  for words in ((), ("--check",), ("--check", "/x", "glc"), ("--rows", "/x", "gc")):
    assert command(*words).returncode == 2
  assert "tables are gc, kfd, pm4, rm, sdma" in command().stderr

def test_a_folder_without_headers_is_no_success(tmp_path: Path) -> None:
  number, lines = said(tmp_path)
  assert number == 1 and not lines

def test_names_of_calls() -> None:
  assert [generate.macro_of(name) for name in ("AllocMemoryOfGpu", "GetAvailableMemory", "SetXnackMode")] == [
    "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU", "AMDKFD_IOC_AVAILABLE_MEMORY", "AMDKFD_IOC_SET_XNACK_MODE"]
