"""Facts from headers of NVIDIA's kernel modules: small headers in their style, differences, and the output of `generate
--check`."""
from pathlib import Path

import pytest

from tinyhw.autogen import generate
from tinyhw.autogen.nvidia import headers, rm

TEXTS = {
  "nvUnixVersion": '#if defined(NV_LINUX) || defined(NV_BSD)\n#define NV_VERSION_STRING               '
  '"@"\n#else\n#error "UNIX only"\n#endif\n',
  "nvstatuscodes": 'NV_STATUS_CODE(NV_OK,             0x00000000, "Success")\nNV_STATUS_CODE(NV_ERR_INVALID_COMMAND,  '
  '0x00000024, "a, b")  // note\n',
  "nvos": """
    typedef struct { NvHandle hRoot; NvHandle hObjectParent; NvHandle hObjectOld; NvV32 status; } NVOS00_PARAMETERS;
    typedef struct { NvHandle hRoot; NvHandle hObjectParent; NvHandle hObjectNew; NvV32 hClass; NvV32 flags;
                     NvP64 pMemory NV_ALIGN_BYTES(8); NvU64 limit NV_ALIGN_BYTES(8); NvV32 status; } NVOS02_PARAMETERS;
    #define NV01_ROOT_CLIENT (0x41)
    #define NVOS32_ATTR_LOCATION                 26:25
    #define NVOS32_ATTR_LOCATION_PCI             0x00000001
    #define NVOS02_FLAGS_MAPPING                 (31:30)
    #define NVOS02_FLAGS_MAPPING_NO_MAP          (0x00000001)
    #define NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING BIT(6)
  """,
  "nv_escape": "#define NV_ESC_RM_FREE 0x29\n#define NV_ESC_RM_ALLOC_MEMORY 0x27\n",
  "nv-unix-nvos-params-wrappers": "typedef struct { NVOS02_PARAMETERS params; int fd; } "
  "nv_ioctl_nvos02_parameters_with_fd;\n",
  "ctrlxxxx": "typedef struct NVXXXX_CTRL_XXX_INFO { NvU32 index; NvU32 data; } NVXXXX_CTRL_XXX_INFO;\n",
  "ctrl0080gr": "typedef NVXXXX_CTRL_XXX_INFO NV0080_CTRL_GR_INFO;\n",
  "ctrl2080gr": """
    typedef NV0080_CTRL_GR_INFO NV2080_CTRL_GR_INFO;
    typedef struct NV2080_CTRL_GR_ROUTE_INFO { NvU32 flags; NV_DECLARE_ALIGNED(NvU64 route, 8); }
      NV2080_CTRL_GR_ROUTE_INFO;
    #define NV2080_CTRL_CMD_GR_GET_GPC_MASK (0x2080122aU)
    typedef struct NV2080_CTRL_GR_GET_GPC_MASK_PARAMS {
      NV_DECLARE_ALIGNED(NV2080_CTRL_GR_ROUTE_INFO grRouteInfo, 8); NvU32 gpcMask; }
      NV2080_CTRL_GR_GET_GPC_MASK_PARAMS;
  """,
  "ctrl2080gpu": """
    #define NV2080_CTRL_CMD_GPU_GET_NAME_STRING (0x20800110U)
    typedef struct NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS { NvU32 gpuNameStringFlags;
      union { NvU8 ascii[64]; NvU16 unicode[64]; } gpuNameString; } NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS;
  """,
  "nvCpuUuid": "typedef struct nv_uuid { NvU8 uuid[16]; } NvUuid;\ntypedef NvUuid NvProcessorUuid;\n",
  "nv_uvm_user_types": "typedef enum { UvmGpuMappingTypeDefault = 0, UvmGpuMappingTypeReadWriteAtomic = 1 } "
  "UvmGpuMappingType;\n",
  "uvm_ioctl": """
    #define UVM_IOCTL_BASE(i) i
    #define UVM_UNREGISTER_CHANNEL UVM_IOCTL_BASE(28)
    typedef struct { NvProcessorUuid gpuUuid; NvHandle hClient; NvHandle hChannel; NV_STATUS rmStatus; }
      UVM_UNREGISTER_CHANNEL_PARAMS;
  """,
}
TOLD = {"OK", "INVALID_COMMAND", "RmFree", "RmAllocMemory", "GrInfo", "GrRoute", "GrGetGpcMask", "GetNameString",
        "UvmUnregisterChannel", "ROOT",
        "NVOS32_ATTR_LOCATION_PCI", "NVOS02_FLAGS_MAPPING_NO_MAP", "NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING",
        "UvmGpuMappingTypeReadWriteAtomic"}

def tree(folder: Path, version: str, old: str = "", new: str = "") -> Path:
  """Make a folder with all headers. Only those above have content. old, new: a replacement in them."""
  assert not old or any(old in text for text in TEXTS.values()), old
  for name, *_ in headers.HEADERS:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXTS.get(path.stem, "").replace("@", version).replace(old or "\0", new) + "/* */\n")
  return folder

def said(folder: Path) -> list[str]:
  """Return the output of --check about names in the headers."""
  lines: list[str] = []
  generate.check(folder, ["rm"], lines.append)
  return [line for line in lines if not line.endswith(": not in the headers")]

def test_headers_that_agree(tmp_path: Path) -> None:
  for version in ("535.288.01", "580.142"):
    lines = said(tree(tmp_path, version))
    assert lines[0] == f"rm: the headers are of version {version}"
    assert len(lines) == 2 and lines[1].startswith(f"rm: {len(TOLD)} of "), lines
  header, missing = generate.load(tmp_path, next(files for files in generate.FILES if files.table == "rm"))
  assert header is not None and not missing
  assert set(headers.told(header)) == TOLD

@pytest.mark.parametrize("version, old, new, words", [
  ("580.142", "NvHandle hObjectOld; ", "NvHandle hObjectOld; NvU32 more; ",
   "RmFree: headers have 20 bytes, more@12:4, status@16:4; here 16 bytes, status@12:4"),
  ("580.142", "NV_ESC_RM_FREE 0x29", "NV_ESC_RM_FREE 0x2a", "RmFree: headers have number 0x2a; here number 0x29"),
  ("580.142", "0x00000024", "0x00000025", "INVALID_COMMAND: headers have 0x25; here 0x24"),
  ("580.142", "26:25", "25:24", "NVOS32_ATTR_LOCATION_PCI: headers have 0x1000000; here 0x2000000"),
  ("580.142", "(31:30)", "(31:31)", "NVOS02_FLAGS_MAPPING_NO_MAP: headers have 0x80000000; here 0x40000000"),
  ("580.142", "BIT(6)", "BIT(5)", "NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING: headers have 0x20; here 0x40"),
  ("580.142", "Atomic = 1", "Atomic = 4", "UvmGpuMappingTypeReadWriteAtomic: headers have 0x4; here 0x1"),
  ("580.142", "(0x41)", "(0x42)", "ROOT: headers have 0x42; here 0x41"),
  ("580.142", "NvU64 route, 8", "NvU32 route, 8",
   "GrGetGpcMask: headers have 12 bytes, gpcMask@8:4, route@4:4; here 24 bytes, gpcMask@16:4, route@8:8"),
  ("580.142", "ascii[64]; NvU16 unicode[64]", "ascii[64]", "GetNameString: headers have 68 bytes; here 132 bytes"),
  ("595.45.04", "ascii[64]; NvU16 unicode[64]", "ascii[64]",
   "UvmUnregisterChannel: headers have 28 bytes, gpuUuid@0:16, hChannel@20:4, hClient@16:4, rmStatus@24:4; here 12 "
   "bytes, hChannel@4:4, hClient@0:4"),
  ("590.48.01", "NvProcessorUuid gpuUuid; ", "", "")])
def test_what_differs(tmp_path: Path, version: str, old: str, new: str, words: str) -> None:
  differing = said(tree(tmp_path, version, old, new))[1:-1]
  if words: assert any(words in line for line in differing), differing
  else: assert not differing

def test_a_version_that_the_table_has_not(tmp_path: Path) -> None:
  assert (said(tree(tmp_path, "610.12"))[0] == "rm: the headers are of version 610.12, which the table has not; its "
          "branch 595 is compared")
  assert said(tree(tmp_path, "525.60.11"))[0].endswith("its branch 535 is compared")
  (tmp_path / headers.HEADERS[0][0]).write_text("/* */")
  assert said(tmp_path)[0] == "rm: the headers do not tell their version; the table's first is compared"

def test_a_structure_that_a_version_lacks(tmp_path: Path) -> None:
  """WaitOpenComplete came with 550. If headers of an older version have it, that is reported."""
  before = "#define NV_ESC_RM_FREE 0x29\n"
  text = ("typedef struct { int rc; NvU32 adapterStatus; } nv_ioctl_wait_open_complete_t;\n#define "
          "NV_ESC_WAIT_OPEN_COMPLETE 218\n")
  def lines(version: str) -> list[str]: return said(tree(tmp_path, version, before, before + text))[1:-1]
  assert lines("550.163.01") == []
  assert lines("545.29.06") == ["rm: WaitOpenComplete: headers have 8 bytes, adapterStatus@4:4, rc@0:4; here 0 bytes"]

def test_each_structure_has_a_name_in_c() -> None:
  names = [name for name, _, _ in headers.rows()]
  assert (set(rm.structures((580,)).rows) - set(names) == {"AcquireComputeModeReservation"}), (
    "it has no structure, and no macro in a header")
  assert len(names) == len(set(names)) == len(rm.structures((580,)).rows) - 1
  macros = {name: macro for name, _, macro in headers.rows()}
  assert (macros["GetNameString"] == "NV2080_CTRL_CMD_GPU_GET_NAME_STRING"
          and macros["UvmMapExternal"] == "UVM_MAP_EXTERNAL_ALLOCATION")
  assert macros["GetWorkSubmitToken"] == "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN" and not macros["GrInfo"]
