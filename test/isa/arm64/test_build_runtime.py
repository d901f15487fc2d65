"""The stored bytes of the runtime are those of the assembler."""
from tinyhw.autogen import arm64_runtime
from tinyhw.isa.arm64 import build_runtime, runtime

def test_the_file_is_up_to_date() -> None:
  assert build_runtime.main(["--check"]) == 0, "run: python3 -m tinyhw.isa.arm64.build_runtime"
  assert set(arm64_runtime.CODE) == set(runtime.NAMES)
