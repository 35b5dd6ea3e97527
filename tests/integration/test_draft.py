"""Drafts for speculative decoding: acceptance held against plain sums, and smaller vocabularies."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file

import small_models
import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.evaluation.scoring import draft
from vocabshift.evaluation.scoring.draft import score_draft
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.workflows.draft_vocab import special_ids

LINES = {
    "en": ["the cat and the other cat", "a day, another letter", "heater day " * 3],
    "hi": ["बिल्ली थी", "एक और दिन"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts; a target, a draft of its tokenizer with padding rows, and one of another tokenizer."""
    place = tmp_path_factory.mktemp("draft")
    for label, lines in LINES.items():
        (place / f"{label}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    old = small_models.old_tokenizer()
    other = small_models.train(small_models.HINDI, 340, small_models.SPECIALS)
    torch.manual_seed(0)
    small_models.save(_loud(small_models.build("llama-tied", old)), old, place / "target")
    padded = _loud(small_models.build("llama", old))
    padded.resize_token_embeddings(old.row_count + 7)
    small_models.save(padded, old, place / "same")
    small_models.save(small_models.build("llama", other), other, place / "other")
    return place


def _loud(model: Any) -> Any:
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def _specs(place: Path) -> list[str]:
    return [f"{label}={place / label}.txt" for label in LINES]


def _expected(place: Path, lines: list[str]) -> tuple[float, float]:
    """Greedy and sampled acceptance by one pass of each model over each line."""
    from transformers import AutoModelForCausalLM

    tokenizer = load_tokenizer(place / "target")
    models = [AutoModelForCausalLM.from_pretrained(place / name) for name in ("target", "same")]
    bos = models[0].config.bos_token_id
    greedy, sampled = [], []
    for line in lines:
        ids = [bos, *_ids(tokenizer, line)]
        with torch.inference_mode():
            p, q = (
                model(torch.tensor([ids])).logits[0, :-1, : tokenizer.row_count].softmax(-1)
                for model in models
            )
        greedy += (p.argmax(-1) == q.argmax(-1)).tolist()
        sampled += (1 - (p - q).abs().sum(-1) / 2).tolist()
    return sum(greedy) / len(greedy), sum(sampled) / len(sampled)


def test_acceptance_is_one_minus_total_variation(place: Path) -> None:
    rows = score_draft(place / "target", place / "same", LINES)
    (sources,) = {(r.tokenizer_sha256, r.text_sha256) for r in rows.where(language="hi")}
    (same,) = vs.evaluate(place / "target", {"hi": LINES["hi"]}, "fertility")
    assert (same.tokenizer_sha256, same.text_sha256) == sources
    values = {(row.language, row.metric): row.value for row in rows}
    for label, lines in LINES.items():
        greedy, sampled = _expected(place, lines)
        assert greedy == pytest.approx(values[label, "acceptance_greedy"])
        assert sampled == pytest.approx(values[label, "acceptance_sampled"], rel=1e-4)
        assert 0 < sampled < 1
    assert {"en", "hi", "all"} == {row.language for row in rows}
    small = score_draft(place / "target", place / "same", LINES, context=16, batch_tokens=40)
    assert [row.n for row in rows] == [row.n for row in small]


def test_long_documents_count_whole(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More positions than are in memory together, and more windows than one."""
    monkeypatch.setattr(draft, "_POSITIONS", 8)
    line = "the cat and the other cat, a letter " * 4
    models = place / "target", place / "same"
    _, sampled = (row.value for row in score_draft(*models, {"en": [line]}))
    assert _expected(place, [line])[1] == pytest.approx(sampled, rel=1e-4)
    _, in_parts = (row.value for row in score_draft(*models, {"en": [line]}, context=40))
    assert in_parts == pytest.approx(sampled, abs=0.1)


def test_a_model_accepts_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", str(place / "target"), "--draft", str(place / "target"), "--text"]
    assert 0 == main([*words, *_specs(place), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert str(place / "target") == found["draft"]
    assert [1.0] * 6 == [row["value"] for row in found["results"]]
    assert 0 == main([*words, *_specs(place)])
    assert "acceptance_sampled" in capsys.readouterr().out


def test_a_draft_with_more_tokens_has_another_tokenizer(place: Path, tmp_path: Path) -> None:
    """It could propose what the target does not know."""
    longer = vs.extend(load_tokenizer(place / "target"), special_tokens=["<more>"])
    small_models.save(small_models.build("llama", longer), longer, tmp_path / "longer")
    with pytest.raises(ValueError, match=r"have different tokenizers: token .* is None in the one"):
        score_draft(place / "target", tmp_path / "longer", LINES)


def test_other_tokenizers_and_several_targets_are_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(place / "target")
    drafted = ["--draft", str(place / "other"), "--text", *_specs(place)]
    assert 2 == main(["score", target, *drafted])
    said = capsys.readouterr().err
    assert "have different tokenizers: token " in said
    assert "move the draft first" in said
    assert 2 == main(["score", target, target, *drafted])
    assert "--draft goes with one model" in capsys.readouterr().err


def test_a_draft_vocabulary_is_read_as_its_consumers_do(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SGLang: a list of ids. EAGLE-3: target id = draft id + d2t, and a mask over all rows."""
    out = tmp_path / "vocab"
    words = ["draft-vocab", str(place / "same"), "--corpus", *_specs(place), "--n-tokens", "40"]
    held_out = ["--held-out", *_specs(place)]
    assert 0 == main([*words, *held_out, "-o", str(out), "--json"])
    found = json.loads(capsys.readouterr().out)
    ids = torch.load(out / "hot_token_ids.pt", weights_only=True)
    tokenizer = load_tokenizer(place / "same")
    assert sorted(set(ids)) == ids
    assert 40 == len(ids)
    assert tokenizer.row_count + 7 == found["rows"]
    mapping = torch.load(out / "vocab_mapping.pt", weights_only=True)
    tensors = load_file(out / "vocab_mapping.safetensors")
    assert {"d2t", "t2d"} == tensors.keys() == mapping.keys()
    assert 1 == len({(out / name).stat().st_mode for name in found["files"]})
    for each in (mapping, tensors):
        assert (torch.int64, torch.bool) == (each["d2t"].dtype, each["t2d"].dtype)
        assert ids == (torch.arange(40) + each["d2t"]).tolist()
        assert ids == each["t2d"].nonzero().squeeze(1).tolist()
        assert found["rows"] == len(each["t2d"])
    for label, lines in LINES.items():
        tokens = [i for line in lines for i in _ids(tokenizer, line)]

        share = sum(i in ids for i in tokens) / len(tokens)
        assert share == pytest.approx(found["coverage"][label], abs=1e-4)
    by_size = list(found["coverage_by_size"].values())
    assert all(a["en"] <= b["en"] for a, b in pairwise(by_size))
    assert found["coverage"] == found["coverage_by_size"]["40"]
    roles = {token.id for token in tokenizer.added_tokens if token.content in _roles(tokenizer)}
    assert roles <= set(ids)
    assert 0 < len(roles) <= found["n_special"]


def test_the_most_frequent_are_taken_and_tried_on_other_text(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the special tokens, none of which is in the text."""
    english, hindi = _specs(place)
    words = ["draft-vocab", str(place / "target"), "--corpus", english, "--n-tokens", "12"]
    assert 0 == main([*words, "--held-out", hindi, "-o", str(tmp_path / "out"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {"hi"} == found["coverage"].keys()
    tokenizer = load_tokenizer(place / "target")
    used = Counter(i for line in LINES["en"] for i in _ids(tokenizer, line))
    ids = torch.load(tmp_path / "out" / "hot_token_ids.pt", weights_only=True)
    most = used.most_common(12 - found["n_special"])
    assert sum(n for _, n in most) == sum(used[i] for i in ids) < used.total()


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.backend.encode(text, add_special_tokens=False).ids
    return ids


def _roles(tokenizer: Any) -> set[str]:
    return {value for key, value in tokenizer.config.items() if key.endswith("_token")}


def test_impossible_draft_vocabularies_are_refused(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["draft-vocab", str(place / "target"), "--corpus", *_specs(place)]
    out = ["-o", str(tmp_path / "out")]
    assert 2 == main([*words, "--n-tokens", "1000000", *out])
    assert "give a number between" in capsys.readouterr().err
    assert 2 == main([*words, "--n-tokens", "40", "--rows", "41", *out])
    assert "give at least" in capsys.readouterr().err
    assert 2 == main([*words, "--n-tokens", "40", "--rows", f"{2**24 + 1}", *out])
    assert "more than there can be ids" in capsys.readouterr().err
    target = tmp_path / "target"
    shutil.copytree(place / "target", target)
    (target / "generation_config.json").write_text("[")
    assert 2 == main(["draft-vocab", str(target), *words[2:], "--n-tokens", "40", *out])
    assert "generation_config.json is no JSON object" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert 0 == main([*words, "--n-tokens", "40", *out])
    assert "share of held-out tokens" in capsys.readouterr().out
    assert 2 == main([*words, "--n-tokens", "40", *out])
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["", "text_config"])
def test_ends_of_generation_in_the_config(place: Path, tmp_path: Path, part: str) -> None:
    """Of a folder without a generation_config.json, as older models on the Hub are."""
    model = shutil.copytree(place / "target", tmp_path / "model")
    (model / "generation_config.json").unlink()
    config = json.loads((model / "config.json").read_text())
    config.pop("eos_token_id", None)
    (config.setdefault(part, {}) if part else config)["eos_token_id"] = [7, 11, None]
    (model / "config.json").write_text(json.dumps(config))
    found = special_ids(model, load_tokenizer(model)).tolist()
    assert {7, 11} <= set(found)
