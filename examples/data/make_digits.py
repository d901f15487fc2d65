"""Make digits.gz from the CSV file that scikit-learn carries (sklearn/datasets/data/digits.csv.gz, a copy of UCI's optdigits.tes).

  python3 examples/data/make_digits.py digits.csv.gz

Each of the 1,797 records is 65 bytes: 64 pixels (0..16) row by row from the top left, then the label. The order is UCI's.
"""
import gzip
import hashlib
import sys
from pathlib import Path

rows = [[int(float(x)) for x in line.split(",")] for line in gzip.open(sys.argv[1], "rt")]
assert len(rows) == 1797 and all(len(row) == 65 and max(row[:64]) <= 16 and row[64] <= 9 for row in rows), "not the digits"
data = b"".join(bytes(row) for row in rows)
packed = gzip.compress(data, 9, mtime=0)
Path(__file__).with_name("digits.gz").write_bytes(packed)
print(f"{len(packed)} bytes; sha256 of the records {hashlib.sha256(data).hexdigest()}, of the file {hashlib.sha256(packed).hexdigest()}")
