"""Cards of models from hand-made results and records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.report.model_card import ModelFacts, Step, read_model_facts, render_model_card
from vocabshift.results import Result, Results
from vocabshift.storage.outcome import write_provenance

huggingface_hub = pytest.importorskip("huggingface_hub")

MOVED = Step(
    "transfer",
    "0.1.0",
    {"model": "me/mill-1b", "tokenizer": "ist", "init": "fvt"},
    {"n_copied": 12_416, "n_initialized": 19_601, "init": "fvt"},
)
TRAINED = Step(
    "cpt",
    "0.1.0",
    {
        "objective": "likelihood-matching",
        "teacher": "mill-1b",
        "phases": [{"trained": "all", "n_bytes": 90_000, "learning_rate": 3e-4}],
    },
    {"phases": [{"trained": "all", "n_bytes": 99_533, "n_tokens": 37_818, "n_steps": 44}]},
)
FACTS = ModelFacts(
    name="mill-hi",
    base="me/mill-1b",
    is_base_on_hub=True,
    steps=(MOVED, TRAINED),
    architecture="LlamaForCausalLM",
    parameters=1_234,
    weights_bytes=4_936,
    sha256="ab" * 32,
    n_bytes=12_345,
)
RESULTS = Results(
    [
        Result("mill-hi", "hi", "bits_per_byte", 1.25, 9, 1.2, 1.3),
        Result("mill-1b", "hi", "bits_per_byte", 2.0, 9),
        Result("mill-hi", "en", "bits_per_byte", 1.5, 9),
        Result("mill-1b", "en", "bits_per_byte", 1.25, 9),
        Result("mill-hi", "all", "bits_per_byte", 1.3, 18),
        Result("mill-hi", "hi", "sib200/acc", 0.75, 40),
    ]
)


def metadata(card: str) -> dict[str, object]:
    found: dict[str, object] = huggingface_hub.ModelCard(card).data.to_dict()
    return found


def test_steps_in_words() -> None:
    card = render_model_card(RESULTS, FACTS)
    assert (
        "| transfer | onto the tokenizer ist; 12,416 rows kept; 19,601 made by fvt |\n"
        "| cpt | all trained on 99,533 bytes (37,818 tokens, 44 steps, learning rate 0.0003); "
        "objective likelihood-matching; teacher mill-1b |\n"
    ) in card
    assert "`me/mill-1b` with another vocabulary" in card
    assert "1,234 parameters, 4,936 bytes of weights, LlamaForCausalLM" in card
    assert "from transformers import AutoModelForCausalLM, AutoTokenizer\n" in card


def test_metadata_are_those_of_the_hub() -> None:
    found = metadata(render_model_card(RESULTS, FACTS, languages=["hi"], license="apache-2.0"))
    assert ("me/mill-1b", "finetune") == (found["base_model"], found["base_model_relation"])
    assert ("text-generation", "transformers") == (found["pipeline_tag"], found["library_name"])
    assert (["hi"], "apache-2.0") == (found["language"], found["license"])
    (model,) = found["model-index"]
    rows = {
        (row["dataset"]["name"], row["dataset"]["config"], metric["type"], metric["value"])
        for row in model["results"]
        for metric in row["metrics"]
    }
    assert {
        ("text of the evaluation", "hi", "bits_per_byte", 1.25),
        ("text of the evaluation", "en", "bits_per_byte", 1.5),
        ("sib200", "hi", "acc", 0.75),
    } == rows


def test_where_it_became_worse_is_a_limit() -> None:
    card = render_model_card(RESULTS, FACTS)
    assert "- It pays more bits per byte than mill-1b for en (+0.250).\n" in card
    assert "| model | bits per byte |" in card
    better = Results(row for row in RESULTS if row.language == "hi")
    assert "pays more" not in render_model_card(better, FACTS)


def test_a_base_that_is_only_a_folder_is_no_name_on_the_hub() -> None:
    facts = replace(FACTS, base="mill-1b", is_base_on_hub=False)
    card = render_model_card(RESULTS, facts)
    assert "base_model" not in metadata(card)
    assert "`mill-1b` with another vocabulary" in card
    assert "me/mill" == metadata(render_model_card(RESULTS, facts, base="me/mill"))["base_model"]


def test_a_model_whose_vocabulary_stayed() -> None:
    """A control run of `cpt`, say."""
    card = render_model_card(RESULTS, replace(FACTS, steps=(TRAINED,)))
    assert "Made of `me/mill-1b` by `vocabshift`." in card
    assert "another vocabulary" not in card


@pytest.mark.parametrize(
    ("architecture", "task", "name"),
    [
        ("BertForMaskedLM", "fill-mask", "AutoModelForMaskedLM"),
        ("BertModel", None, "AutoModel"),
    ],
)
def test_other_architectures(architecture: str, task: str | None, name: str) -> None:
    card = render_model_card(RESULTS, replace(FACTS, architecture=architecture))
    assert task == metadata(card).get("pipeline_tag")
    assert f"import {name}, AutoTokenizer\n" in card


def test_a_subject_that_was_not_measured() -> None:
    with pytest.raises(ValueError, match="nothing of 'other'; they hold mill-hi, mill-1b"):
        render_model_card(RESULTS, FACTS, subject="other")


def model(place: Path, operation: str, config: dict[str, object]) -> Path:
    """A folder with the records of a model, and no weights."""
    place.mkdir(parents=True)
    (place / "tokenizer.json").write_text("{}", encoding="utf-8")
    (place / "config.json").write_text('{"architectures": ["GPT2LMHeadModel"]}', encoding="utf-8")
    write_provenance(place, operation, config, {})
    return place


def test_the_steps_before_are_followed_without_their_folders(tmp_path: Path) -> None:
    base = tmp_path / "mine" / "base"
    first = model(tmp_path / "first", "transfer", {"model": str(base), "tokenizer": "me/ist"})
    data = {"data": [f"hi={tmp_path}/secret/hi.txt", "en=me/books"], "seed": 0}
    folder = model(tmp_path / "second", "cpt", {"model": str(first), **data})
    facts = read_model_facts(folder)
    assert ("second", "base", False) == (facts.name, facts.base, facts.is_base_on_hub)
    assert ["transfer", "cpt"] == [step.operation for step in facts.steps]
    assert {"model": "base", "tokenizer": "me/ist"} == facts.steps[0].config
    assert {"model": "first", "data": ["hi=hi.txt", "en=me/books"], "seed": 0} == (
        facts.steps[1].config
    )
    assert str(tmp_path) not in json.dumps(facts.to_dict())
    assert "GPT2LMHeadModel" == facts.architecture


def test_of_a_path_the_last_part_is_shown(tmp_path: Path) -> None:
    """Also where a folder has = in its name; sets on the Hub keep their owner."""
    run = tmp_path / "lr=1e-4" / "run"
    specs = [f"{tmp_path}/language=hi/a.txt", "ta=hf:me/books:ta", "hf:me/books"]
    folder = model(tmp_path / "first", "cpt", {"model": str(run), "data": specs})
    (step,) = read_model_facts(folder).steps
    assert {"model": "run", "data": ["a.txt", "ta=hf:me/books:ta", "hf:me/books"]} == step.config


def test_a_base_on_the_hub_is_named_whole(tmp_path: Path) -> None:
    facts = read_model_facts(model(tmp_path / "first", "transfer", {"model": "me/mill-1b"}))
    assert ("me/mill-1b", True) == (facts.base, facts.is_base_on_hub)


def test_a_folder_that_is_gone_is_no_name_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its relative path looks like one: the record says what it was. Old records do not."""
    monkeypatch.chdir(tmp_path)
    Path("runs/base").mkdir(parents=True)
    folder = model(tmp_path / "first", "transfer", {"model": "runs/base", "seed": 0})
    Path("runs/base").rmdir()
    facts = read_model_facts(folder)
    assert ("base", False) == (facts.base, facts.is_base_on_hub)
    assert {"model": "base", "seed": 0} == facts.steps[0].config
    record = folder / "vocabshift.json"
    document = json.loads(record.read_text(encoding="utf-8"))
    assert "folder" == document.pop("model_before")
    record.write_text(json.dumps(document), encoding="utf-8")
    facts = read_model_facts(folder)
    assert ("base", False) == (facts.base, facts.is_base_on_hub)


def test_a_merged_adapter_is_a_step_of_its_base(tmp_path: Path) -> None:
    """Its record calls the model before it the base of the adapter."""
    first = model(tmp_path / "first", "transfer", {"model": "me/mill-1b"})
    merged = model(tmp_path / "merged", "merge", {"adapter": "me/lora", "base": str(first)})
    facts = read_model_facts(merged)
    assert ["transfer", "merge"] == [step.operation for step in facts.steps]
    assert "me/mill-1b" == facts.base


def test_records_in_a_circle_end(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    assert 1 == len(read_model_facts(model(folder, "merge", {"model": str(folder)})).steps)


def test_folders_without_records(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenizerError, match=r"needs tokenizer.json and vocabshift.json"):
        read_model_facts(tmp_path)
    folder = model(tmp_path / "first", "merge", {})
    (folder / "vocabshift.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidTokenizerError, match=r"records in .*first cannot be read"):
        read_model_facts(folder)
    (folder / "vocabshift.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidTokenizerError, match=r"records in .*first cannot be read"):
        read_model_facts(folder)
    write_provenance(folder, "transfer", {}, {"n_copied": 7})  # and no initializer
    with pytest.raises(InvalidTokenizerError, match=r"records in .*first cannot be read"):
        read_model_facts(folder)
