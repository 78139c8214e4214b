"""Tables of numbers in files of any program, read in one way: text in its dialects, Parquet, MATLAB, NumPy, MCAP."""

from cosim.core.tables.files import open_table
from cosim.core.tables.table import FileTable, TableRows

__all__ = ["FileTable", "TableRows", "open_table"]
