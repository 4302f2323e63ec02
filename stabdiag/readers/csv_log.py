"""Tables of text: CSV and its relatives. Clean blocks of lines go fast, odd ones row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stabdiag.errors import InputError
from stabdiag.model import LogTable
from stabdiag.readers.assembled import Assembled, assemble
from stabdiag.readers.csv_careful import MOST_LINES_OF_A_CELL, careful_pieces
from stabdiag.readers.csv_dialect import Dialect, dialect_of
from stabdiag.readers.csv_end import without_cut_row
from stabdiag.readers.csv_fast import fast_piece
from stabdiag.readers.csv_table import CsvTable, column_names
from stabdiag.readers.gathered import Gathered
from stabdiag.readers.pieces import Piece
from stabdiag.readers.series_name import is_scalar_export, series_name
from stabdiag.readers.source import Block, Source, blocks, head_text
from stabdiag.readers.tally import Tally
from stabdiag.threads import ahead

# A block that is not clean is tried again in parts of this size, so that one odd line costs little.
_PART_BYTES = 1 << 20
_LONGEST_OPEN_BYTES = 32 << 20


def read_csv(source: Source) -> LogTable:
    """Read a table of text, keeping missing, NaN and infinities apart.

    Raises:
        InputError: the header is lost, this is no table, or it has no row.
    """
    table = begun(source)
    return table_of(source, table, pieces_of(ahead(blocks(source)), table))


def begun(source: Source) -> CsvTable:
    """Find how the table is written, from its beginning.

    Raises:
        InputError: the header is lost, or this is no table.
    """
    dialect = _dialect(source)
    tally = Tally()
    columns = column_names(dialect.names, tally, max(1, dialect.first_data_line - 1))
    if not dialect.headed:
        tally.add("guessed", "no header: the columns are named by their position", [1])
    return CsvTable(source.name, dialect, columns, tally)


def gathering(table: CsvTable) -> Gathered:
    """Return what the pieces of this table can be added to, to be `begun` with."""
    return Gathered(decimal=table.dialect.decimal)


def table_of(
    source: Source, table: CsvTable, pieces: Iterable[Piece], begun: Gathered | None = None
) -> LogTable:
    """Make a log of its pieces, and of those that are in `begun` already.

    Raises:
        InputError: they hold no row.
    """
    cells = assemble(pieces, table.dialect.decimal, rows=source.rows, begun=begun)
    if cells.rows == 0:
        raise InputError(f"{source.name}: a header and no row", "name a log with at least one row")
    names = tuple(name for name in cells.names if not _is_empty_unnamed(name, cells))
    log = LogTable(
        files=(source.name,),
        format="tsv" if table.dialect.delimiter == "\t" else "csv",
        names=names,
        kinds={name: cells.kinds[name] for name in names},
        rows=cells.rows,
        load=cells.load,
        line=cells.line,
        place=cells.place,
        notes=(*source.notes.values(), *table.tally.notes(), *cells.notes),
    )
    return _named_by_file(log, source) if is_scalar_export(names) else log


def _dialect(source: Source) -> Dialect:
    dialect = dialect_of(head_text(source))
    header_end = _offset_of_line(source.head, dialect.first_data_line if dialect else 2)
    first_nul = source.head.find(b"\0", 0, header_end)
    if first_nul >= 0:
        rest = source.head[first_nul:]
        last_nul = first_nul + len(rest) - len(rest.lstrip(b"\0")) - 1
        raise InputError(
            f"{source.name}, line 1: bytes {first_nul} to {last_nul} are NUL, the header is lost",
            "the file was cut while its writer had it open: name another copy, or put the header"
            " back as first line",
        )
    if dialect:
        return dialect
    lines = [line.strip() for line in head_text(source).split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) == 1:
        raise InputError(f"{source.name}: a header and no row", "name a log with at least one row")
    raise InputError(
        f"{source.name}, line 1: no table: no header over rows of numbers",
        "name a log with a header line such as step,loss and one row a step",
    )


def _offset_of_line(head: bytes, line: int) -> int:
    offset = 0
    for _ in range(line - 1):
        offset = head.find(b"\n", offset) + 1
        if offset == 0:
            return len(head)
    return offset


def _is_empty_unnamed(name: str, cells: Assembled) -> bool:
    """Say whether this column comes from a delimiter at the end of each line."""
    return name.startswith("Unnamed: ") and not cells.load([name])[name].logged.any()


def _named_by_file(log: LogTable, source: Source) -> LogTable:
    """Give the value column of a TensorBoard export the name that its file has."""
    tag = series_name(source)
    stored = {tag: "Value"}
    names = tuple(tag if name == "Value" else name for name in log.names)
    return replace(
        log,
        format="tensorboard",
        names=names,
        kinds={name: log.kinds[stored.get(name, name)] for name in names},
        load=lambda wanted: {
            name: log.load([stored.get(name, name)])[stored.get(name, name)] for name in wanted
        },
    )


def pieces_of(lines: Iterable[Block], table: CsvTable) -> Iterator[Piece]:
    """Yield the rows of blocks up to the end of the log, where a row may be cut."""
    waiting: Block | None = None
    for block in _whole_rows(_after_header(lines, table.dialect.first_data_line)):
        if waiting is not None:
            yield from _block_pieces(waiting, table)
        waiting = block
    if waiting is not None:
        yield from _block_pieces(without_cut_row(waiting, table), table)
    table.drop_held()


def settled_pieces(block: Block, table: CsvTable) -> tuple[list[Piece], Block]:
    """Return the rows of whole lines that more will follow, and what belongs to the row behind."""
    start = _start_of_open_cell(block.data)
    whole = Block(block.first_line, block.data[:start])
    rows = list(_after_header([whole], table.dialect.first_data_line))
    pieces = [piece for one in rows for piece in _block_pieces(one, table)]
    return pieces, Block(block.first_line + whole.newlines, block.data[start:])


def _after_header(lines: Iterable[Block], first_data_line: int) -> Iterator[Block]:
    for block in lines:
        skip = first_data_line - block.first_line
        if skip <= 0:
            yield block
        elif data := block.data[_offset_of_line(block.data, skip + 1) :]:
            yield Block(first_data_line, data)


def _whole_rows(lines: Iterator[Block]) -> Iterator[Block]:
    """Move the start of a quoted cell that goes on in the next block over to that block."""
    carried: Block | None = None
    for block in lines:
        if carried is not None:
            block = Block(carried.first_line, carried.data + block.data)
        start = _start_of_open_cell(block.data)
        carried = None
        if start < len(block.data) and len(block.data) - start <= _LONGEST_OPEN_BYTES:
            whole = Block(block.first_line, block.data[:start])
            carried = Block(block.first_line + whole.newlines, block.data[start:])
            block = whole
        if block.data:
            yield block
    if carried is not None:
        yield carried


def _start_of_open_cell(data: bytes) -> int:
    """Return where the line begins that opens a quote which stays open; the data's end if none."""
    if b'"' not in data or data.count(b'"') % 2 == 0:
        return len(data)
    end = len(data)
    for _ in range(MOST_LINES_OF_A_CELL):
        start = data.rfind(b"\n", 0, max(0, end - 1)) + 1
        if data.count(b'"', start, end) % 2:
            return start
        end = start
        if end == 0:
            break
    return len(data)


def _block_pieces(block: Block, table: CsvTable) -> Iterator[Piece]:
    if not block.data:
        return
    piece = fast_piece(block, table)
    if piece is not None:
        table.drop_held()
        table.last_size = len(table.columns)
        yield piece
    elif len(block.data) <= 2 * _PART_BYTES or block.newlines <= MOST_LINES_OF_A_CELL:
        yield from careful_pieces(block, table)
    else:
        for part in _whole_rows(block.parts(_PART_BYTES)):
            yield from _block_pieces(part, table)
