"""Fertility and Gini beside recipe vocabshift, as differences with intervals over languages."""

from __future__ import annotations

import pytest

ROWS = {
    "fertility, flores, 900": {"vocabshift": {"hi": 2.0, "ta": 4.0}, "parity": {"hi": 3, "ta": 6}},
    "tokens_per_line, flores, 900": {
        "vocabshift": {"hi": 10.0, "ta": 30.0},
        "parity": {"hi": 20.0, "ta": 20.0},
    },
}


@pytest.fixture
def table(program) -> list[str]:
    tables = program("vocabshift/tables.py").tables
    rows = [
        {"table": name.replace("flores", text), "row": row, "values": values}
        for name, of in ROWS.items()
        for text in ("flores", "udhr")
        for row, values in of.items()
    ]
    made = {"table": "made", "row": "a", "size": "1 MB", "command": "a.sh", "machine": "a desk"}
    return tables([*rows, made])["parity"].splitlines()


def test_a_line_for_each_recipe_and_size(table: list[str]) -> None:
    own, base = table[3], table[2]
    assert base.startswith("| 900 | vocabshift | 3.000 | – | 0.250 | – | 3.000 | – |")
    assert own.startswith("| 900 | parity | 4.500 | +50.00% (+50.00% to +50.00%) | 0.000 | -0.250 ")
    assert "*2 languages of FLORES, 2 languages of UDHR. 1 MB, `a.sh` on a desk.*" == table[-1]


def test_both_sides_have_the_same_languages_in_every_draw(program) -> None:
    difference = program("vocabshift/tables.py").gini_difference
    base = {"hi": 10.0, "ta": 30.0, "en": 12.0}
    twice = {label: 2 * value for label, value in base.items()}
    assert "+0.000 (+0.000 to +0.000)" == difference(twice, base)
    even = dict.fromkeys(base, 10.0)
    # Of the 27 draws of three, three are 10, 10, 30 (0.267, the largest) and three all alike (0).
    assert "-0.256 (-0.267 to +0.000)" == difference(even, base)
