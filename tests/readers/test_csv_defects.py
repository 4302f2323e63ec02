"""Each defect that a table of text is known to have, in a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabdiag.errors import InputError
from tests.readers.tables import column, read_text_as, said

CLEAN = "step,loss\n0,2.5\n1,2.25\n2,2.0\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("comma.csv", "step,loss\n0,2.5\n1,2.25\n2,2.0\n"),
        ("semicolon.csv", "step;loss\n0;2.5\n1;2.25\n2;2.0\n"),
        ("decimal-comma.csv", "step;loss\n0;2,5\n1;2,25\n2;2,0\n"),
        ("tab.csv", "step\tloss\n0\t2.5\n1\t2.25\n2\t2.0\n"),
        ("decimal-comma-tab.tsv", "step\tloss\n0\t2,5\n1\t2,25\n2\t2,0\n"),
        ("bar.csv", "step|loss\n0|2.5\n1|2.25\n2|2.0\n"),
        ("blanks.txt", "step loss\n0   2.5\n 1 2.25\n2 2.0  \n"),
        ("crlf.csv", "step,loss\r\n0,2.5\r\n1,2.25\r\n2,2.0\r\n"),
        ("cr.csv", "step,loss\r0,2.5\r1,2.25\r2,2.0\r"),
        ("bom.csv", "\ufeffstep,loss\n0,2.5\n1,2.25\n2,2.0\n"),
        ("quoted.csv", '"step","loss"\n"0","2.5"\n"1","2.25"\n"2","2.0"\n'),
        ("quoted-no-end.csv", '"step","loss"\n"0","2.5"\n"1","2.25"\n"2","2.0"'),
        ("padded.csv", "       step,     loss\n   0,  2.5\n   1, 2.25\n   2, 2.0 \n"),
        ("blank-lines.csv", "\nstep,loss\n\n0,2.5\n1,2.25\n\n\n2,2.0\n\n"),
        ("lines-of-blanks.csv", "step,loss\n0,2.5\n  \n1,2.25\n2,2.0\n   \n"),
        ("comments.csv", "# seed 1\nstep,loss\n0,2.5\n# resumed\n1,2.25\n2,2.0\n"),
        ("delimiter-at-end.csv", "step,loss,\n0,2.5,\n1,2.25,\n2,2.0,\n"),
        ("delimiter-at-end-of-rows.csv", "step,loss\n0,2.5,\n1,2.25,\n2,2.0,\n"),
        ("title-first.csv", "my run\nstep,loss\n0,2.5\n1,2.25\n2,2.0\n"),
        ("tensors.csv", "step,loss\n0,\"tensor(2.5, device='cuda:0')\"\n1,tensor(2.25)\n2,2.0\n"),
        ("no-suffix", "step,loss\n0,2.5\n1,2.25\n2,2.0\n"),
        ("wrong-suffix.json", "step,loss\n0,2.5\n1,2.25\n2,2.0\n"),
    ],
)
def test_same_numbers_however_they_are_written(tmp_path: Path, name: str, text: str) -> None:
    table = read_text_as(tmp_path, name, text)
    assert table.names == ("step", "loss")
    assert column(table, "step") == [0.0, 1.0, 2.0]
    assert column(table, "loss") == [2.5, 2.25, 2.0]


def test_clean_table_has_no_notes_and_says_how_it_was_known(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "clean.csv", CLEAN)
    assert table.notes == ()
    assert table.format == "csv"
    assert table.line.tolist() == [2, 3, 4]
    assert table.detection == "csv: a header of 2 names over rows divided by ','"


@pytest.mark.parametrize("word", ["nan", "NaN", "NAN", "-nan", "+nan", "1.#QNAN", "-1.#IND"])
def test_written_nan_is_logged(tmp_path: Path, word: str) -> None:
    table = read_text_as(tmp_path, "a.csv", f"step,loss\n0,1.5\n1,{word}\n2,\n")
    assert column(table, "loss") == [1.5, "<NaN>", None]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("inf", float("inf")),
        ("Inf", float("inf")),
        ("Infinity", float("inf")),
        ("+inf", float("inf")),
        ("1e999", float("inf")),
        ("1.#INF", float("inf")),
        ("-inf", float("-inf")),
        ("-Infinity", float("-inf")),
        ("-1.#INF", float("-inf")),
        ("-1e999", float("-inf")),
    ],
)
def test_infinities_are_logged(tmp_path: Path, word: str, value: float) -> None:
    table = read_text_as(tmp_path, "a.csv", f"step,loss\n0,1.5\n1,{word}\n2,1\n")
    assert column(table, "loss") == [1.5, value, 1.0]


@pytest.mark.parametrize("word", ["", "NA", "N/A", "#na#", "None", "null", "  ", '""'])
def test_words_for_missing(tmp_path: Path, word: str) -> None:
    table = read_text_as(tmp_path, "a.csv", f"step,loss,lr\n0,1.5,1\n1,{word},1\n2,nan,1\n")
    assert column(table, "loss") == [1.5, None, "<NaN>"]
    assert table.notes == ()


def test_stray_word_is_one_cell_and_not_the_end_of_the_column(tmp_path: Path) -> None:
    rows = [f"{i},{i / 2}" for i in range(50)]
    rows[17] = "17,banana"
    table = read_text_as(tmp_path, "a.csv", "step,loss\n" + "\n".join(rows) + "\n")
    assert table.kinds["loss"] == "number"
    assert column(table, "loss")[16:19] == [8.0, None, 9.0]
    assert said(table) == (
        "dropped: column 'loss': 'banana' is no number and counts as not logged x1 at [19]"
    )


def test_column_of_words_stays_text(tmp_path: Path) -> None:
    text = "step,phase,time,loss\n0,warmup,00:00:12,1\n1,warmup,00:00:24,2\n2,7,None,3\n"
    table = read_text_as(tmp_path, "a.csv", text)
    assert table.kinds == {"step": "number", "phase": "text", "time": "text", "loss": "number"}
    assert column(table, "phase") == ["warmup", "warmup", "7"]
    assert column(table, "time") == ["00:00:12", "00:00:24", None]


def test_dates_stay_as_written(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "when,loss\n2024-01-02T03:04:05,1\n2024-01-03,2\n")
    assert column(table, "when") == ["2024-01-02T03:04:05", "2024-01-03"]


def test_sample_ids_in_one_cell_are_a_list(tmp_path: Path) -> None:
    text = 'step,ids,more\n0,12 55 7,"[1, 2]"\n1,3 9 1,"[3]"\n2,,[]\n'
    table = read_text_as(tmp_path, "a.csv", text)
    assert table.kinds["ids"] == table.kinds["more"] == "list"
    assert column(table, "ids") == [(12.0, 55.0, 7.0), (3.0, 9.0, 1.0), None]
    assert column(table, "more") == [(1.0, 2.0), (3.0,), ()]


def test_thousands_separators(tmp_path: Path) -> None:
    text = 'step,tps,loss\n"1,000","10,050",2.5\n"2,000","1,234,567.5",2.25\n'
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "step") == [1000.0, 2000.0]
    assert column(table, "tps") == [10050.0, 1234567.5]


def test_thousands_separators_of_a_decimal_comma_country(tmp_path: Path) -> None:
    text = "step;tps;loss\n1;10.050,5;2,5\n2;1.234.567,0;2,25\n"
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "tps") == [10050.5, 1234567.0]
    assert column(table, "loss") == [2.5, 2.25]


def test_newlines_in_quoted_cells(tmp_path: Path) -> None:
    text = 'step,note,loss\n0,"two\nlines",1.5\n1,"a ""quote""",nan\n2,,2\n'
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "note") == ["two\nlines", 'a "quote"', None]
    assert column(table, "loss") == [1.5, "<NaN>", 2.0]
    assert table.line.tolist() == [2, 4, 5]


def test_quote_without_end_costs_no_row(tmp_path: Path) -> None:
    rows = [f"{i},word,{i / 2}" for i in range(100)]
    rows[7] = '7,"word,3.5'
    rows[50] = '50,5" of it,25'
    rows[51] = '51,"a ""b""",25.5'
    table = read_text_as(tmp_path, "a.csv", "step,note,loss\n" + "\n".join(rows) + "\n")
    assert column(table, "loss") == [i / 2 for i in range(100)]
    assert column(table, "note")[7] == "word"
    assert column(table, "note")[51] == 'a "b"'
    assert said(table) == "repaired: a quote without an end x2 at [9, 52]"


def test_many_quotes_without_end(tmp_path: Path) -> None:
    rows = [f'{i},"word,{i / 2}' for i in range(100)]
    table = read_text_as(tmp_path, "a.csv", "step,note,loss\n" + "\n".join(rows) + "\n")
    assert column(table, "loss") == [i / 2 for i in range(100)]


def test_header_longer_than_the_first_look(tmp_path: Path) -> None:
    names = [f"grad_norm/model.layers.{i}.self_attn.q_proj.lora_A.weight" for i in range(9000)]
    text = ",".join(["step", *names]) + "\n0" + ",0.5" * 9000 + "\n1" + ",nan" * 9000 + "\n"
    table = read_text_as(tmp_path, "a.csv", text)
    assert len(table.names) == 9001
    assert column(table, names[-1]) == [0.5, "<NaN>"]


def test_header_again_in_the_middle(tmp_path: Path) -> None:
    text = "epoch,loss\n0,2\n1,1\nepoch,loss\n2,0.5\nepoch,loss\n3,0.25\n"
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "epoch") == [0.0, 1.0, 2.0, 3.0]
    assert table.line.tolist() == [2, 3, 5, 7]
    assert said(table) == "dropped: the header line again in the middle x2 at [4, 6]"


def test_other_header_in_the_middle(tmp_path: Path) -> None:
    text = "epoch,loss\n0,2\n1,1\nepoch,val_loss,loss\n2,9,0.5\n3,8,0.25\n"
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "loss") == [2.0, 1.0, 0.5, 0.25]
    assert column(table, "val_loss") == [None, None, 9.0, 8.0]
    assert said(table) == "repaired: a header with other columns in the middle x1 at [4]"


def test_short_rows_end_in_missing_cells(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "step,loss,act\n0,2.5\n1,2.25,7\n2,2.0,8\n")
    assert column(table, "act") == [None, 7.0, 8.0]
    assert said(table) == (
        "repaired: a row with fewer cells than the header: the last are missing x1 at [2]"
    )


def test_single_long_row_is_dropped(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "step,loss\n0,2.5\n1,2.25,1,2.0\n2,2\n3,1\n")
    assert column(table, "step") == [0.0, 2.0, 3.0]
    assert said(table) == "dropped: a row with more cells than the header x1 at [3]"


def test_columns_added_at_the_right_without_a_new_header(tmp_path: Path) -> None:
    text = "step,loss\n0,2.5\n1,2.25\n2,2.0,7\n3,1.5,8\n4,1.25,9\n"
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "loss") == [2.5, 2.25, 2.0, 1.5, 1.25]
    assert said(table) == "dropped: cells at the right of the last named column x3 at [4, 5, 6]"


def test_index_columns_without_a_name(tmp_path: Path) -> None:
    pandas = read_text_as(tmp_path, "pandas.csv", ",step,loss\n0,5,2.5\n1,6,2\n2,7,1\n")
    assert column(pandas, "step") == [5.0, 6.0, 7.0]
    assert column(pandas, "Unnamed: 0") == [0.0, 1.0, 2.0]
    r = read_text_as(tmp_path, "r.csv", '"step","loss"\n"1",5,2.5\n"2",6,2\n"3",7,1\n')
    assert column(r, "step") == [5.0, 6.0, 7.0]
    assert column(r, "loss") == [2.5, 2.0, 1.0]


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "step,loss,loss\n0,1,9\n1,2,8\n")
    assert column(table, "loss") == [1.0, 2.0]
    assert column(table, "loss (2)") == [9.0, 8.0]
    assert (
        said(table) == "guessed: two columns are called 'loss': a later one is 'loss (2)' x1 at [1]"
    )


def test_no_header(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "0,2.5,nan\n1,2.25,inf\n2,2.0,\n")
    assert table.names == ("column 1", "column 2", "column 3")
    assert column(table, "column 2") == [2.5, 2.25, 2.0]
    assert "no header" in said(table)


def test_one_column(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "loss\n2.5\nnan\n2.0\n")
    assert column(table, "loss") == [2.5, "<NaN>", 2.0]


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ("3,1.", "it ends in '1.'"),
        ("3,1.2", "'1.2' has fewer decimals than the rows above"),
        ("3,-", "it ends in '-'"),
        ("3,na", "it ends in 'na'"),
        ("3,", "its last cell is empty"),
        ("3", "1 of 2 cells"),
        ('3,"1.25', "a quoted cell has no end"),
    ],
)
def test_last_row_cut_by_the_end_of_the_run(tmp_path: Path, last: str, why: str) -> None:
    text = f"step,loss\n0,2.500\n1,2.250\n2,2.000\n{last}"
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "step") == [0.0, 1.0, 2.0]
    assert said(table) == f"dropped: the last line, cut short: {why} x1 at [5]"


@pytest.mark.parametrize("last", ["3,1.125", "3,nan", "3,inf"])
def test_last_row_without_newline_that_may_be_whole(tmp_path: Path, last: str) -> None:
    text = f"step,loss\n0,2.500\n1,2.250\n2,2.000\n{last}"
    table = read_text_as(tmp_path, "a.csv", text)
    assert column(table, "step") == [0.0, 1.0, 2.0, 3.0]
    assert said(table) == "guessed: the last line has no newline; kept as a whole row x1 at [5]"


def test_last_row_of_a_sparse_table_may_end_in_a_missing_cell(tmp_path: Path) -> None:
    table = read_text_as(tmp_path, "a.csv", "step,loss,val\n0,2,\n1,,3\n2,1,")
    assert column(table, "loss") == [2.0, None, 1.0]


def test_lost_header_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_text_as(tmp_path, "a.csv", b"\0" * 300 + b"5,1.25,7\n6,1.0,8\n7,1.0,9\n")
    assert "line 1: bytes 0 to 299 are NUL, the header is lost" in caught.value.what
    assert caught.value.todo


def test_nul_bytes_in_the_middle_cost_one_line(tmp_path: Path) -> None:
    data = b"step,loss\n0,2.5\n1,2.25\n" + b"\0" * 50 + b"3,1.5\n4,1.25\n"
    table = read_text_as(tmp_path, "a.csv", data)
    assert column(table, "step") == [0.0, 1.0, 4.0]
    assert said(table) == "dropped: a line with NUL bytes x1 at [4]"


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    data = b"step,note,loss\n0,caf\xe9,1\n1,\xff\xfe,nan\n2,ok,3\n"
    table = read_text_as(tmp_path, "a.csv", data)
    assert column(table, "loss") == [1.0, "<NaN>", 3.0]
    assert column(table, "note")[0] == "caf\ufffd"
    assert said(table) == "repaired: bytes that are not UTF-8 text were replaced x3 at [2]"


@pytest.mark.parametrize(
    "text", ["step,loss\n", "step,loss", "step,loss\n\n\n", "step,loss\n# nothing\n"]
)
def test_header_and_no_row(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no row"):
        read_text_as(tmp_path, "a.csv", text)


def test_words_only_are_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no table"):
        read_text_as(tmp_path, "a.csv", "name,colour\nanna,red\nbert,blue\n")


def test_scalar_export_is_named_by_its_file(tmp_path: Path) -> None:
    text = "Wall time,Step,Value\r\n17.5,0,2.5\r\n18.5,10,NaN\r\n"
    table = read_text_as(tmp_path, "run-seed_1-tag-train_loss.csv", text)
    assert table.format == "tensorboard"
    assert table.names == ("Wall time", "Step", "train_loss")
    assert column(table, "train_loss") == [2.5, "<NaN>"]
    assert read_text_as(tmp_path, "grad_norm.csv", text).names[2] == "grad_norm"
