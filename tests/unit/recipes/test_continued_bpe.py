"""Continued BPE: pruning that breaks merges, means of tables, and rows that depend on no text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Program = Callable[[str], ModuleType]
RECIPE = Path(__file__).resolve().parents[3] / "recipes/continued_bpe"


@pytest.fixture
def prune_extend(program: Program, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(RECIPE)
    return program("continued_bpe/prune_extend.py")


@pytest.fixture
def rows(program: Program) -> ModuleType:
    return program("continued_bpe/curve_rows.py")


@pytest.fixture
def tables(program: Program) -> ModuleType:
    return program("continued_bpe/tables.py")


def pruned(prune_extend: ModuleType, base: Any, folder: Path, order: str, n: int) -> Any:
    """By a text that has "abcd" and "x", and "xy" never."""
    text = folder / "text.txt"
    text.write_text("abcd\nx\n")
    mix = (f"a={text}",)
    job = prune_extend.Job("base", "prune", order, n, 0, mix, (), mix, folder)
    return prune_extend.pruned(base, job)


def test_the_least_frequent_tokens_take_the_way_to_frequent_ones(
    prune_extend, make_byte_level, tmp_path: Path
) -> None:
    """Of xy, abc and ab the text has none in the end, but abcd is made of two of them."""
    base = make_byte_level("abcd", "xy")
    smaller, n_ties = pruned(prune_extend, base, tmp_path, "least-frequent", 2)
    assert base.model.vocab.keys() - smaller.model.vocab.keys() == {"xy", "abc"}
    assert n_ties == 2  # ab could have gone too
    assert smaller.unreachable() == ("abcd",)
    whole, _ = pruned(prune_extend, base, tmp_path, "leaf-frequency", 2)
    assert whole.unreachable() == ()


def test_the_last_ids_go_but_bytes_and_special_tokens(
    prune_extend, make_byte_level, tmp_path: Path
) -> None:
    base = make_byte_level("abcd", "xy", specials=("<s>",))
    smaller, n_ties = pruned(prune_extend, base, tmp_path, "last-n", 2)
    assert base.model.vocab.keys() - smaller.model.vocab.keys() == {"xy", "abcd"}
    assert (n_ties, smaller.token_id("<s>")) == (0, len(smaller.model.vocab))
    bare, _ = pruned(prune_extend, base, tmp_path, "last-n", 100)
    assert bare.row_count == 256 + 1


def of_method(bytes_per_token: float, n_added: int, **more: float) -> dict[str, float]:
    own = {"bytes_per_token": bytes_per_token, "n_added": n_added, "unreachable_all": 0}
    own |= dict.fromkeys(("unreachable", "unused_held_out", "unused_train"), 0)
    own |= {"renyi": 0.5, "renyi_of_used": 0.5, "english_distance": 0.0, "english_same": 1.0}
    return own | more


def curve(label: str, *rows: tuple[dict[str, float], dict[str, float]]) -> dict[str, Any]:
    sizes = [
        {"n_tokens": 100 * (i + 1), "ours": ours, "regen": regen}
        for i, (ours, regen) in enumerate(rows)
    ]
    whole = {"bytes_per_token": 1.0, "ceiling_bytes_per_token": 9.0}
    return {"tokenizer": "t", "pre_tokenizer": "kept", "language": label, "rows": sizes} | whole


def measured(rows: ModuleType, *curves: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def put(table: str, column: str, line: str, value: Any) -> None:
        found.setdefault((table, column), {})[line] = value

    rows.of_curves(put, list(curves))
    return found


def test_languages_that_run_out_and_english_itself_are_in_no_mean_of_theirs(rows) -> None:
    """The second size of hi has too few tokens; en is no language whose effect on en counts."""
    hindi = curve(
        "hi",
        (of_method(2.2, 100, english_distance=0.5), of_method(2.0, 100)),
        (of_method(9.0, 150), of_method(3.0, 200)),
    )
    english = curve(
        "en",
        (of_method(4.0, 100, english_distance=7.0), of_method(4.0, 100)),
        (of_method(4.4, 200), of_method(4.0, 200)),
    )
    found = measured(rows, hindi, english)
    gains = found["continued_bpe-1", "gain, %"]
    assert gains == {"t +100": pytest.approx(5), "t +200": pytest.approx(10)}
    assert {"t +100": 2, "t +200": 1} == found["continued_bpe-1", "languages"]
    assert {"t +100": 50.0, "t +200": 100.0} == found["continued_bpe-1", "won, %"]
    assert {"t +100": 0.5} == found["continued_bpe-6", "distance: continued"]
    assert "hi +200" not in found["continued_bpe-17", "t"]


def test_renyi_efficiency_at_the_same_compression(rows) -> None:
    """Ours is at 2.5 bytes a token: half-way between the naive extension's two sizes."""
    both = curve(
        "hi",
        (of_method(2.5, 100, renyi=0.6), of_method(2.0, 100, renyi=0.5)),
        (of_method(3.5, 200, renyi=0.9), of_method(3.0, 200, renyi=0.8)),
    )
    found = measured(rows, both)
    table = "continued_bpe-figure-4"
    line = {"t +100": pytest.approx(0.65)}
    assert found[table, "naive, as many bytes per token (vocabulary)"] == line
    assert {"t +100": 1} == found[table, "languages"]  # at the larger size ours is beyond


def test_means_by_size_are_over_the_languages_of_both(tables) -> None:
    entry = {"down": "language, tokens", "decimals": 1, "figures": {"t": {"hi +9": 4, "hi +10": 5}}}
    ours = {"t": {"hi +9": 1.0, "ta +9": 3.0, "hi +10": 2.0}, "u": {"hi +9": 1.0, "ta +9": 3.0}}
    lines = tables.by_language(entry, ours).splitlines()
    assert "| tokens | t: ours | paper | languages | u: ours |" == lines[0]
    assert ["| +9 | 1.0 | 4.0 | 1 | 2.0 |", "| +10 | 2.0 | 5.0 | 1 | – |"] == lines[2:4]
    assert "| ta +9 | 3.0 | – | 3.0 |" in lines


def test_table_2_groups_languages_by_script(tables) -> None:
    gains = {"t": {"et +1": 4.0, "en +1": 8.0, "hi +1": 1.0, "ur +1": 2.0}}
    theirs, printed = (
        {"t": {"et +1": 5.0, "hi +1": 3.0}},
        {"t": {"Latn": 7.0, "Arab": 0.1, "Other": 0.5}},
    )
    lines = tables.by_script(gains, theirs, printed).splitlines()[2:]
    assert "| Latn: t | 6.0 | 4.0 | 5.0 | 7.0 | en et | et |" == lines[0]
    assert "| Arab: t | 2.0 | – | – | 0.1 | ur |  |" == lines[1]
    assert "| Other: t | 1.0 | 1.0 | 3.0 | 0.5 | hi | hi |" == lines[2]


def test_lines_stand_by_the_numbers_in_them(tables) -> None:
    shown = tables.plain({"a": {"x +20": 1, "x +3": 2.0, "x before": 7}, "b": {"x +3": 4}}, 1)
    assert ["| x +3 | 2.0 | 4 |", "| x +20 | 1 | – |"] == shown.splitlines()[2:4]
    assert "| x before | 7 | – |" == shown.splitlines()[4]
