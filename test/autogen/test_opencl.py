"""Numbers of OpenCL against a copy of some lines of its header, and against the header of the system where it is there.
"""
import re
from pathlib import Path

import pytest

from tinyhw.autogen import opencl

HEADER = Path("/usr/include/CL/cl.h")
# From CL/cl.h of the Khronos headers, v2023.02.06
LINES = """
#define CL_SUCCESS                                  0
#define CL_BUILD_PROGRAM_FAILURE                    -11
#define CL_INVALID_WORK_GROUP_SIZE                  -54
#define CL_INVALID_GLOBAL_WORK_SIZE                 -63
#define CL_DEVICE_TYPE_GPU                          (1 << 2)
#define CL_DEVICE_MAX_WORK_GROUP_SIZE                    0x1004
#define CL_DEVICE_LOCAL_MEM_SIZE                         0x1023
#define CL_DEVICE_EXTENSIONS                             0x1030
#define CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT         (1 << 7)
#define CL_MEM_READ_WRITE                           (1 << 0)
#define CL_PROGRAM_BUILD_LOG                        0x1183
#define CL_EVENT_COMMAND_EXECUTION_STATUS           0x11D3
#define CL_PROFILING_COMMAND_START                  0x1282
"""

def defined(text: str) -> dict[str, int]:
  """Numbers by name without CL_."""
  return {name: eval(value, {}) for name, value in re.findall(
    r"^#define CL_(\w+) +(\(1 << \d+\)|-?\d+|0x[0-9A-Fa-f]+)$", text, re.MULTILINE)}

def ours() -> dict[str, int]:
  numbers = {name: value for name, value in vars(opencl).items() if name.isupper() and isinstance(value, int)}
  return numbers | {name: status for status, name in opencl.STATUS.items()}

def test_numbers_of_the_copied_lines() -> None:
  assert len(defined(LINES)) == 13 and defined(LINES).items() <= ours().items()

def test_all_numbers_of_the_header() -> None:
  if not HEADER.exists(): pytest.skip("the OpenCL headers are not installed (Debian: opencl-c-headers)")
  text = "".join(path.read_text("utf-8") for path in sorted(HEADER.parent.glob("cl*.h")))
  known = defined(text)
  missing = {name for name in ours() if name not in known}
  assert missing <= {"PLATFORM_NOT_FOUND_KHR"} and {name: known[name] for name in ours().keys() - missing} == {
    name: value for name, value in ours().items() if name not in missing}
