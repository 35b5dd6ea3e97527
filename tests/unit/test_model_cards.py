"""What stands in `model_cards/` and in the recipes' READMEs is what the program writes today."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.report.card import render_card
from vocabshift.report.card_facts import Source, TokenizerFacts
from vocabshift.results import read_results

pytest.importorskip("huggingface_hub")

ROOT = Path(__file__).resolve().parents[2]
CARDS = {
    "ist": ("ist-22",),
    "matra": ("matra-2",),
    "vocabshift": ("ist-22",),
}


def _split(card: str) -> tuple[object, str]:
    """Metadata as values, for libraries may write the same YAML in another way, and the rest."""
    from huggingface_hub import ModelCard

    return ModelCard(card).data.to_dict(), card.split("\n---\n", 1)[1]


@pytest.mark.parametrize("recipe", CARDS)
def test_a_card_is_rendered_again(recipe: str) -> None:
    folder = ROOT / "model_cards" / f"{recipe}-200k"
    told = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    del told["out"]
    facts = TokenizerFacts.from_dict(told.pop("facts"))
    sources = [Source(**source) for source in told.pop("sources")]
    results = read_results([folder / "results.jsonl"])
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert _split(card) == _split(render_card(results, facts, sources=sources, **told))


@pytest.mark.parametrize("recipe", CARDS)
def test_the_command_on_a_card_is_that_of_its_recipe(recipe: str) -> None:
    """Its configuration is the recipe's TOML, and the languages and weights are those of run.sh."""
    folder = ROOT / "model_cards" / f"{recipe}-200k"
    told = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    script = (ROOT / "recipes" / recipe / "run.sh").read_text(encoding="utf-8")
    command = told["rebuild"].splitlines()[-1].split()
    config = command[command.index("--config") + 1]
    written = tomllib.loads((ROOT / config).read_text(encoding="utf-8"))
    assert written.items() <= told["facts"]["config"].items()
    specs = [word for word in command if "=" in word]
    weighted = {spec.partition("=")[0]: spec.partition("@")[2] for spec in specs if "@" in spec}
    given = re.findall(r"WEIGHTS-(en)=(\d+)\}", script)  # none where the recipe finds them
    assert dict(given) == weighted
    assert {s["language"] for s in told["sources"]} == {s.partition("=")[0] for s in specs}
    assert f"recipes/{recipe}/{recipe}.toml" == config
    total = sum(source["n_bytes"] for source in told["sources"])
    assert total == pytest.approx(told["facts"]["figures"]["training_bytes"], rel=0.01)


@pytest.mark.parametrize(
    ("recipe", "shape"), [(r, s) for r, shapes in CARDS.items() for s in shapes]
)
def test_the_tables_of_a_readme_are_those_of_its_results(recipe: str, shape: str, capsys) -> None:
    results = ROOT / "model_cards" / f"{recipe}-200k" / "results.jsonl"
    assert 0 == main(["tables", str(results), "--shape", shape])
    lowered = re.sub("^### ", "#### ", capsys.readouterr().out.strip())
    readme = (ROOT / "recipes" / recipe / "README.md").read_text(encoding="utf-8")
    assert f"<!-- {shape} -->\n\n{lowered}\n\n<!-- /{shape} -->\n" in readme
