"""Code crosses processes. It is plain data that compares by value."""
import dataclasses
import pickle

import pytest

from tinyhw.machine.ir.code import Code

CODE = Code("f", "x86_64:avx2", b"\xc3", ("buffer", "int64"), local_bytes=64, registers=(("vec", 3),))

def test_what_is_stored_is_read_back() -> None:
  assert (pickle.loads(pickle.dumps(CODE)) == CODE and hash(CODE) == hash(dataclasses.replace(CODE))
          and CODE != dataclasses.replace(CODE, entry=16))

def test_nobody_changes_it() -> None:
  with pytest.raises(dataclasses.FrozenInstanceError): setattr(CODE, "text", b"")

def test_a_plain_kernel_needs_no_more_than_its_bytes() -> None:
  plain = Code("f", "c", b"void f() {}", ())
  assert (plain.entry, plain.local_bytes, plain.registers, plain.lanes) == (0, 0, (), 1)
