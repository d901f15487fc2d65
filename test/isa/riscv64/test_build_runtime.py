"""The stored bytes of the runtime are those of the assembler."""
from tinyhw.autogen import riscv64_runtime
from tinyhw.isa.riscv64 import build_runtime, runtime

def test_the_file_is_up_to_date() -> None:
  assert build_runtime.main(["--check"]) == 0, "run: python3 -m tinyhw.isa.riscv64.build_runtime"
  assert set(riscv64_runtime.CODE) == set(runtime.NAMES)
