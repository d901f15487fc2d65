"""The machine code of benchmark kernels does not change by a byte, in moves and renames.

A change of codegen may change it: `python3 test/house/generated_code.py` writes the digests anew, and the commit says
why.
"""
import pytest

from test.house.generated_code import GOLDEN, HEAD, TARGETS, WORKLOADS, digest, golden

@pytest.mark.parametrize("target", TARGETS)
def test_code_is_what_it_was(target: str) -> None:
  wanted = golden()
  changed = [f"{now} (was {wanted.get((workload, target))})" for workload in WORKLOADS
             if (now := digest(workload, target)) != wanted.get((workload, target))]
  assert not changed, ("machine code has changed; if it was meant to, run python3 test/house/generated_code.py:\n"
                       + "\n".join(changed))

def test_the_file_has_these_lines_and_no_others() -> None:
  assert list(golden()) == [(workload, target) for target in TARGETS for workload in WORKLOADS]
  assert GOLDEN.read_text("utf-8").startswith(HEAD)
