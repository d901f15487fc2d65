"""Texts of tensors: layout of nested rows, numbers, omitted elements.

The states in repr are tested in test_interchange.py.
"""
import pytest

from tinyhw import Tensor
from tinyhw.methods.data import printing

@pytest.mark.parametrize("data, text", [
  ([1, 20], "[1, 20]"), ([[1, 20], [300, 4]], "\n [[  1,  20],\n  [300,   4]]"), ([[[1], [2]]], "\n [[[1],\n   [2]]]"),
  ([[[1]], [[2]]], "\n [[[1]],\n\n  [[2]]]"), ([0.1, 1.0, -2.5e-7, 1e10], "[0.1, 1.0, -2.5e-07, 1e+10]"),
  ([False, True], "[False, True]"), (3, "3")])
def test_values(data, text):
  shown = repr(Tensor(data).contiguous().realize())
  assert shown.endswith(("realized:" if text.startswith("\n") else "realized: ") + text + ">")

@pytest.mark.slow
def test_long_axes_are_cut_only_in_large_tensors():
  assert "…" not in repr(Tensor.arange(printing.MOST_VALUES).contiguous().realize())
  text = repr(Tensor.arange(printing.MOST_VALUES + 2).reshape(2, -1).contiguous().realize())
  assert text.count("…") == 2 and text.count("\n") == 2
  deep = repr(Tensor.zeros(20, 20, 20).contiguous().realize())
  assert deep.count("0.0") == 6 ** 3
