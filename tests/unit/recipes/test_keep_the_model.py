"""The study's own arithmetic: names of arms, halves of lines, equal seconds, TokenAdapt's rule."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

Program = Callable[[str], ModuleType]


@pytest.fixture(autouse=True)
def initializers() -> Iterator[None]:
    """One of the programs registers an initializer."""
    from vocabshift.surgery.methods import INITIALIZERS

    had = dict(INITIALIZERS)
    yield
    INITIALIZERS.clear()
    INITIALIZERS.update(had)


def test_the_list_of_arms_keeps_to_its_limits(program: Program) -> None:
    names = program("keep_the_model/names.py")
    plan = names.plan()
    assert len(plan["screened"]) <= 17
    assert len(plan["finalists"]) <= 4
    for stage in ("before", "screened", "finalists"):
        arms = [names.arm_of(name) for name in plan[stage]]
        assert plan[stage] == [arm.name for arm in arms]
        assert len(set(arms)) == len(arms)
        assert all((arm.trained == "none") == (stage == "before") for arm in arms)
        rates = plan["learning_rates"]
        assert all(arm.trained in rates for arm in arms if arm.trained != "none")


@pytest.mark.parametrize(
    "name", ["swap", "swap-fvt", "jump-fvt-all", "swap-guess-all", "swap-fvt-some", "base-fvt"]
)
def test_names_that_mean_nothing(name: str, program: Program) -> None:
    with pytest.raises(ValueError, match=name):
        program("keep_the_model/names.py").arm_of(name)


def test_a_line_is_cut_after_the_word_in_its_middle(program: Program) -> None:
    measure = program("keep_the_model/measure.py")
    assert measure.halves("one two three four") == ("one two three", " four")
    assert measure.halves("indivisible") == ("indivisible", "")
    assert measure.repetition("a b c a b c a b c") == pytest.approx(4 / 7)
    assert measure.repetition("a b") == 0
    assert measure.spread("abcdefgh", 4) == ["a", "c", "e", "g"]


def test_chrf_is_that_of_sacrebleu(program: Program) -> None:
    pytest.importorskip("sacrebleu")
    chrf = program("keep_the_model/measure.py").chrf
    assert chrf(" the same text", " the same text") == 1
    assert 0 < chrf(" the other text", " the same text") < 1
    assert chrf("xyz", "abc") == 0


def test_finalists_get_the_seconds_of_the_cheapest(
    program: Program, tmp_path: Path, capsys: Any
) -> None:
    """Rows count too; what a finalist would save by less than 5 % of the time is not run again.

    Nor is an arm run on less text than arms are screened on: no document may fit into it.
    """
    study, names = program("keep_the_model/study.py"), program("keep_the_model/names.py")
    args = Namespace(out=tmp_path, final_bytes=1_000_000, screen_bytes=100_000, seeds=3)
    own = study.Study(args)
    costs = {"swap-fvt-all": (0, 100), "swap-distill-all": (50, 100), "extension-fvt-all": (4, 100)}
    costs |= {"extension-distill-all": (150, 100), "superwords-distill-all": (91, 100)}
    for name, (made, trained) in costs.items():
        file = own.result(names.arm_of(name), 1_000_000, 0, "final")
        facts: dict[str, Any] = {"making": {"cpu_seconds": made}}
        facts["training"] = {"cpu_seconds": trained - 10, "teaching": {"cpu_seconds": 10}}
        study.write(file, facts)
        facts["training"]["cpu_seconds"] *= 9 if name == "swap-fvt-all" else 1  # a busy machine
        for seed in (1, 2):
            study.write(own.result(names.arm_of(name), 1_000_000, seed, "final"), facts)
            facts["training"]["cpu_seconds"] = trained - 10
    arms = [study.arm_of(name) for name in costs]
    sizes = {arm.name: size for arm, size in own.sizes_at_equal_seconds(arms).items()}
    assert sizes == {"swap-distill-all": 500_000}
    noted = capsys.readouterr().err
    for name in ("extension-distill-all", "superwords-distill-all"):
        assert f"{name}: not possible at equal seconds" in noted
    assert own.sizes_at_equal_seconds(arms[:1]) == {}


def test_documents_begin_with_another_token(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids change in a copy, and nothing else; a token that is not there is an error."""
    model, out = tmp_path / "model", tmp_path / "out"
    model.mkdir()
    token = {"id": 7, "content": "<end>", "special": True}
    written: dict[str, dict[str, Any]] = {
        "tokenizer.json": {"added_tokens": [token]},
        "config.json": {"bos_token_id": 1, "eos_token_id": 2, "hidden_size": 8},
        "generation_config.json": {"bos_token_id": 1},
        "tokenizer_config.json": {"bos_token": "<chat>", "eos_token": "<over>"},
    }
    for name, values in written.items():
        (model / name).write_text(json.dumps(values), encoding="utf-8")
    (tmp_path / "out.partial").mkdir()
    main = program("keep_the_model/document_start.py").main
    monkeypatch.setattr("sys.argv", ["", str(model), str(out), "--token", "<end>"])
    main()
    read = {file.name: json.loads(file.read_text("utf-8")) for file in out.iterdir()}
    assert read["config.json"] == {"bos_token_id": 7, "eos_token_id": 7, "hidden_size": 8}
    assert read["generation_config.json"] == {"bos_token_id": 7, "eos_token_id": 7}
    assert read["tokenizer_config.json"] == {"bos_token": "<end>", "eos_token": "<end>"}
    assert json.loads((model / "config.json").read_text("utf-8")) == written["config.json"]
    monkeypatch.setattr("sys.argv", ["", str(model), str(out)])
    with pytest.raises(SystemExit, match="no special token"):
        main()


def test_finalists_of_another_day_are_paired(program: Program, tmp_path: Path) -> None:
    """Runs that are kept come back with every line's bits, and with no text."""
    results, file = program("keep_the_model/results.py"), tmp_path / "finals.jsonl"

    def run(arm: str, seed: int, nats: float) -> dict[str, Any]:
        said = {"hi": {"chrf": [0.5], "examples": [{"prompt": "a line"}]}}
        own = {"documents": {"hi": [(10, nats), (30, 3 * nats)]}, "continuations": said}
        return {"new": ["hi"], "arm": arm, "n_bytes": 1000, "seed": seed, **own}

    results.keep(file, [run("swap-fvt-all", 0, 7.04)])
    results.keep(file, [run("swap-fvt-all", 0, 7.0)])  # run again: takes its place
    found = results.by_arm(results.keep(file, [run("extension-fvt-all", 1, 8.0)]))
    assert found["swap-fvt-all", 1000][0]["documents"] == {"hi": [(10, 7.0), (30, 21.0)]}
    assert [own["seed"] for own in found["extension-fvt-all", 1000]] == [1]
    assert "a line" not in file.read_text(encoding="utf-8")


def test_an_arm_that_was_not_measured_keeps_its_curve(program: Program, tmp_path: Path) -> None:
    """Of the first seed alone, and where no result has it already."""
    results = program("keep_the_model/results.py")
    (tmp_path / "costs").mkdir()
    (tmp_path / "finals").mkdir()
    points = [{"n_bytes": 500, "bits_per_byte": {"hi": 1.5}}]
    for key in ("base-all.1000.0", "base-all.1000.1", "swap-fvt-all.1000.0"):
        file = tmp_path / "costs" / f"{key}.facts.json"
        file.write_text(json.dumps({"curve": points}), encoding="utf-8")
    (tmp_path / "finals" / "swap-fvt-all.1000.0.json").write_text("{}", encoding="utf-8")
    (row,) = results.only_trained(tmp_path, "hi")
    assert (row["arm"], row["n_bytes"], row["at_bytes"]) == ("base-all", 1000, 500)
    assert (row["language"], row["value"]) == ("hi", 1.5)


def test_differences_are_paired_by_seed_and_line(program: Program) -> None:
    """What was not trained has one run for all seeds; what was is paired with its own seed."""
    results = program("keep_the_model/results.py")

    def run(seed: int, bits: float, seconds: float = 100) -> dict[str, Any]:
        nats = [(10 * (n + 1), bits * (n + 1) * 10 * np.log(2)) for n in range(5)]
        costs = {"making": {"cpu_seconds": 5}, "training": {"cpu_seconds": seconds}}
        return {"seed": seed, "documents": {"hi": nats}, **costs}

    runs = {
        ("base", 0): [run(0, 2.0)],
        ("swap-fvt-all", 1000): [run(0, 1.5), run(1, 1.7)],
        ("swap-fvt-all", 400): [run(0, 1.6)],
        ("extension-fvt-all", 1000): [run(0, 1.6), run(1, 1.6)],
    }
    own = runs["swap-fvt-all", 1000]
    found = results.difference(runs, own, ("base", 0), "hi")
    assert (found["seeds"], found["is_clear"]) == (2, True)
    assert found["value"] == pytest.approx(-0.4)
    other = results.difference(runs, own, ("extension-fvt-all", 1000), "hi")
    assert (other["seeds"], other["is_clear"]) == (2, False)  # the seeds disagree
    less = results.difference(runs, own, ("swap-fvt-all", 400), "hi")
    assert less["seeds"] == 1
    assert less["value"] == pytest.approx(-0.1)
    runs["extension-fvt-all", 400] = [run(1, 1.6), run(2, 1.9)]
    early = results.difference(runs, own, ("extension-fvt-all", 400), "hi")
    assert early["seeds"] == 1  # both read the second
    assert early["value"] == pytest.approx(0.1)
    assert not results.difference(runs, runs["swap-fvt-all", 400], ("extension-fvt-all", 400), "hi")
    equal = list(results.in_equal_seconds(runs, "extension-fvt-all", 1000))
    assert equal == [("swap-fvt-all", 400)]
    runs["swap-fvt-all", 400] = [run(0, 1.6, seconds=120)]
    assert not list(results.in_equal_seconds(runs, "extension-fvt-all", 1000))
    assert not list(results.in_equal_seconds(runs, "swap-fvt-all", 1000))


def test_what_an_attempt_cost_is_added_to_earlier_ones(program: Program, tmp_path: Path) -> None:
    study, file = program("keep_the_model/study.py"), tmp_path / "cost.json"
    study.write(file, [{"cpu_seconds": 5.0, "wall_seconds": 9.0}])
    with pytest.raises(KeyboardInterrupt), study.metered(file):
        raise KeyboardInterrupt
    assert len(json.loads(file.read_text())) == 2
    assert study.spent(file)["cpu_seconds"] >= 5.0
    assert study.spent(tmp_path / "none.json") == {"cpu_seconds": 0, "wall_seconds": 0}


def test_token_adapt_mixes_old_tokens_with_the_most_similar_kept_ones(program: Program) -> None:
    """Held against the rule, token by token."""
    import torch

    import small_models
    from vocabshift.surgery.focus import auxiliary_vectors
    from vocabshift.surgery.matching import match
    from vocabshift.surgery.methods import InitRequest
    from vocabshift.surgery.options import TransferOptions
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.token_bytes import token_bytes

    rule = program("keep_the_model/token_adapt.py")
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    corpus = Corpus.from_texts(small_models.HINDI + small_models.ENGLISH)
    sources = match(old, new, {})
    options = TransferOptions(init="tokenadapt", corpus=corpus)
    request = InitRequest("tokenadapt", sources, old, new, True, options)
    made = rule.token_adapt(request).input
    vectors = auxiliary_vectors(new, corpus)
    sizes = {token: len(data) for token, data in token_bytes(old).items()}
    kept = dict(zip(sources.copied_to.tolist(), sources.copied_from.tolist(), strict=True))
    n_checked = 0
    for place, token in enumerate(sources.made.tolist()):
        own = sources.pieces[sources.offsets[place] : sources.offsets[place + 1]].tolist()
        span = slice(made.offsets[place], made.offsets[place + 1])
        found: dict[int, float] = {}
        for old_id, weight in zip(made.pieces[span].tolist(), made.weights[span], strict=True):
            found[old_id] = found.get(old_id, 0.0) + float(weight)
        assert sum(found.values()) == pytest.approx(1)
        if not own or not vectors[token].any():
            continue

        def cosine(other: int | None, token: int = token) -> float:
            if other is None:
                return 0.0
            return float(torch.cosine_similarity(vectors[other], vectors[token], dim=0))

        back = {old_id: new_id for new_id, old_id in kept.items()}
        total = sum(sizes[old_id] for old_id in own)
        scores = [(cosine(back.get(o)) + sizes[o] / total) / 2 for o in own]
        local = np.exp(np.array(scores) / 0.3)
        near = sorted(((cosine(n), o) for n, o in kept.items() if vectors[n].any()), reverse=True)[
            :5
        ]
        whole = np.exp(np.array([score for score, _ in near]) / 0.3)
        expected: dict[int, float] = {}
        for old_id, share in zip(own, local / local.sum(), strict=True):
            expected[old_id] = expected.get(old_id, 0.0) + 0.7 * float(share)
        for (_, old_id), share in zip(near, whole / whole.sum(), strict=True):
            expected[old_id] = expected.get(old_id, 0.0) + 0.3 * float(share)
        assert sorted(found.values()) == pytest.approx(sorted(expected.values()), abs=1e-5)
        n_checked += 1
    assert n_checked > 5


def test_tasks_of_a_replaced_tokenizer_stand_beside_the_papers(program: Program) -> None:
    """Swaps alone, and not what failed; nothing where no swap was asked."""
    tables = program("keep_the_model/tables.py")
    facts = {"what": "task", "on": "all", "new": "hi", "task": "t", "low": 0.1, "high": 0.5}
    rows = [
        facts | {"arm": "base", "n_bytes": 0, "value": 0.25},
        facts | {"arm": "extension-fvt-all", "n_bytes": 1000, "value": 0.4},
    ]
    assert tables._replaced(rows) == ""
    rows.append(facts | {"arm": "swap-fvt-all", "n_bytes": 1000, "value": 0.2})
    rows.append(facts | {"arm": "swap-fvt-all", "n_bytes": 2000, "failure": "an error"})
    text = tables._replaced(rows)
    assert "| MMLU | paper | 0.32 | 0.29 | -0.03 |" in text
    [line] = [line for line in text.splitlines() if "ours: " in line]
    assert line == (
        "| `t` | ours: swap, fvt, all on 1 kB "
        "| 0.250 [0.100, 0.500] | 0.200 [0.100, 0.500] | -0.050 |"
    )
