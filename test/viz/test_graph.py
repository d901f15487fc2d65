"""Rows of graphs."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.viz import graph
from tinyhw.viz.graph import NodeTable, shape_text

def test_a_node_has_one_row_sources_first() -> None:
  x, table = UOp.variable("x", 0, 9), NodeTable()
  number = table.add((x + 1) * (x + 1))
  assert [row[:4] for row in table.rows] == [("DEFINE_VAR", "weakint", [], "('x', 0, 9)"),
                                             ("CONST", "weakint", [], "1"),
                                             ("ADD", "weakint", [0, 1], ""), ("MUL", "weakint", [2, 2], "")]
  assert number == 3 and table.add(x) == 0 and len(table.rows) == 4
  assert table.add_all([x, x * 3]) == [0, 5]

def test_shapes_and_lines() -> None:
  table = NodeTable(shapes=True)
  u = (Tensor.ones(3, 4).contiguous() + 1).uop
  row = table.rows[table.add(u)]
  assert row[5] == "(3, 4)" and table.json()["lines"][row[4]][2] == "test_shapes_and_lines"
  assert shape_text(UOp(Ops.SINK)) == "()"

def test_symbolic_shapes() -> None:
  n = UOp.variable("n", 1, 8).bind(3)
  assert shape_text(Tensor.ones(8, 2).shrink(((0, n), None)).uop).startswith("(n")

def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(graph, "MOST_ROWS", 3)
  table = NodeTable()
  assert (table.add(UOp.variable("x", 0, 9) + 1) == 2 and table.add(UOp.variable("y", 0, 9)) == -1
          and table.add_all([UOp.variable("z", 0, 9)]) == [])
  assert table.json()["full"]
  long = UOp(Ops.NOOP, dtypes.void, (), "x" * 1000, tag="t")
  assert len(NodeTable()._row(long)[3]) == graph.MOST_CHARACTERS + 1

def test_inner_nodes_have_no_shape() -> None:
  """Rules also replace nodes of indices while a schedule is made, where a GATHER has one source."""
  table = NodeTable(shapes=True)
  number = table.add(UOp(Ops.GATHER, dtypes.weakint, (UOp.range(4, 0, AxisType.LOOP),), 0), inner=True)
  assert table.rows[number][0] == "GATHER" and table.rows[number][5] == ""
