"""The recipes run from one command to their tables, here on our own sample texts.

Left to the night are those that compare variants: the recipe that they vary is always run. So are
studies that train models, which the demo and the tests of the verbs do too.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.evaluation.metrics.distribution import gini
from vocabshift.results import Results
from warm_python import WarmPython

pytestmark = pytest.mark.no_tsan

ROOT = Path(__file__).resolve().parents[2]


Run = Callable[[str, Path], str]
METRICS = ("fertility", "tokens_per_line")


@pytest.fixture
def run(warm_python: WarmPython) -> Run:
    return lambda recipe, out: run_with(warm_python.executable, recipe, out)


def run_with(python: str | Path, recipe: str, out: Path) -> str:
    """What the recipe prints on standard output."""
    source = str(Path(vs.__file__).parents[1])
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHON": str(python), "PYTHONPATH": path, "OUT": str(out)}
    for name in (
        *("DATA_SIZES", "SPEED_MB"),
        "DATA",
        "VENDORS",
        "WEIGHTS",
        "VOCAB",
        "MB",
        "SEED",
        "ALPHA",
        "SIZES",
        "ONE",
        *("KB", "TASK_SENTENCES", "CLUSTERS"),
        "SEEDS",
        "HIDDEN",
        "LAYERS",
        "PARTS",
        *("SEEDS", "PRETRAIN_BYTES", "ADAPT_BYTES", "ADDED", "HIDDEN", "LAYERS", "RECORD"),
    ):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", ROOT / "recipes" / recipe, "--smoke"],
        env=environment,
        cwd=out.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def cells(markdown: str) -> dict[str, list[str]]:
    """Cells of a table, not bold, by the first of their row; of rows of one name the first."""
    rows: dict[str, list[str]] = {}
    for line in markdown.splitlines():
        if line.startswith("|"):
            name, *values = line.strip("| ").split(" | ")
            rows.setdefault(name.strip(), [value.strip("*") for value in values])
    return rows


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def rows_by_table(file: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Values of a file of rows, by table and row."""
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows_of(file):
        tables.setdefault(row["table"], {})[row["row"]] = row.get("values", row)
    return tables


@pytest.mark.parametrize(
    ("recipe", "ours", "others"),
    [
        ("ist", "ist", ["superbpe", "bpe"]),
        pytest.param(
            *("matra", "matra", [*(f"matra-{v}" for v in "ABCD"), "matra-smoothed", "ist"]),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_recipe_writes_its_tokenizers_and_tables(
    recipe: str, ours: str, others: list[str], run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    printed = run(f"{recipe}/run.sh", out)
    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    assert [ours, *others] == results.distinct("subject")
    assert "code" in results.distinct("language")
    tables = (out / "tables.md").read_text(encoding="utf-8")
    assert tables in printed
    value = results.value(ours, "hin", "fertility")
    table = cells(tables)
    assert f"{value:.2f}" == table[ours][table["tokenizer"].index("hin")]
    for name in (ours, *others):
        assert vs.load_tokenizer(out / name).vocab_size == 3000
        assert f"| {name} | count |" in tables

    vocabulary = cells((out / "vocabulary.md").read_text(encoding="utf-8"))
    assert int(vocabulary["Devanagari"][0]) > 0
    assert int(vocabulary["hin"][1].replace(",", "")) > 0
    counted = cells((out / "invariants.md").read_text(encoding="utf-8"))
    assert int(counted["tokens of stage 2"][0]) > 0
    for name in (
        *("tokens of stage 2 that span a sentence end", "tokens of more than three digits"),
        *("unreachable by merges (STT)", "unreachable by the pipeline"),
        *("documents that do not come back", "documents with other ids than by tokenizers"),
        "tokens more or fewer than at the end of training",
    ):
        assert ["0"] == counted[name]

    written = (out / ours / "tokenizer.json").stat().st_mtime_ns
    run(f"{recipe}/run.sh", out)
    assert written == (out / ours / "tokenizer.json").stat().st_mtime_ns


def test_recipe_vocabshift_writes_its_card(run: Run, tmp_path: Path) -> None:
    """The card has the weights that training found, and the spread over languages."""
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import ModelCard

    out = tmp_path / "out"
    printed = run("vocabshift/run.sh", out)
    assert (out / "ist-22.md").read_text(encoding="utf-8") in printed
    trained = json.loads((out / "vocabshift.json").read_text(encoding="utf-8"))
    weights = trained["language_weights"]
    assert weights["sat"] > weights["hin"] > weights["eng"] > 0
    card = (out / "vocabshift.card.md").read_text(encoding="utf-8")
    assert f"| hin | {weights['hin']:.3f} |" in card
    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    assert ["vocabshift", "ist"] == results.distinct("subject")
    (spread,) = results.where(subject="vocabshift", metric="gini")
    assert f"| Gini coefficient (of tokens over languages) ↓ | {spread.value:.4g} |" in card
    data = ModelCard(card).data
    assert "vocabshift" in data.tags and "hi" in data.language
    assert {"fertility", "bytes_per_token"} == {each.metric_type for each in data.eval_results}


@pytest.mark.nightly
def test_parity_is_compared_with_recipe_vocabshift(run: Run, tmp_path: Path) -> None:
    """On one half of the sentences; the other half is the parallel text of parity."""
    out = tmp_path / "out"
    run("vocabshift/parity.sh", out)
    tables = rows_by_table(out / "results.jsonl")
    texts = [f"{metric}, {text}, 1500" for text in ("flores", "udhr") for metric in METRICS]
    assert {"made", *texts} == set(tables)
    assert all(list(tables[text]) == list(tables[texts[0]]) for text in texts)
    tokens = tables["tokens_per_line, flores, 1500"]
    for name in ("parity, parallel text", "parity, parallel text, superwords"):
        assert gini(list(tokens[name].values())) < gini(list(tokens["vocabshift"].values()))
    assert tokens["parity, superwords"] != tokens["parity"] != tokens["parity, parallel text"]
    halves = [
        (out / half / "hin.txt").read_text("utf-8").splitlines() for half in ("dev", "flores")
    ]
    assert [2, 2] == [len(half) for half in halves] and not set(halves[0]) & set(halves[1])
    results = Results.from_jsonl((out / "udhr-1500.jsonl").read_text(encoding="utf-8"))
    (whole,) = results.where(subject="ist-1500", language="hin", metric="tokens_per_line")
    assert whole.n == 1
    assert tables["tokens_per_line, udhr, 1500"]["ist"]["hin"] == whole.value


def test_normalization_and_vendors_become_rows(run: Run, tmp_path: Path) -> None:
    """All rules on all languages; both tokenizers in every spelling, and trained once."""
    out = tmp_path / "normalization"
    run("normalization/run.sh", out)
    rows = rows_of(out / "results.jsonl")
    fertility = {(row["rule"], row["language"]): row for row in rows if row["what"] == "fertility"}
    assert 8 == len({rule for rule, _ in fertility})
    assert fertility["none", "hin"]["words"] == fertility["all", "hin"]["words"] > 0
    changed = {row["language"] for row in rows if row.get("words_changed", 0) > 0}
    assert {"hin", "urd"} <= changed

    out = tmp_path / "vendors"
    run("vendors/run.sh", out)
    rows = rows_of(out / "results.jsonl")
    forms = {row["form"] for row in rows if row.get("language") == "hin"}
    assert {"native", "ISO 15919", "informal", "informal, doubled"} == forms
    assert {"bpe-1k", "picky-1k"} == {row["tokenizer"] for row in rows if row["what"] == "residue"}
    written = (out / "bpe-1k" / "tokenizer.json").stat().st_mtime_ns
    run("vendors/run.sh", out)
    assert written == (out / "bpe-1k" / "tokenizer.json").stat().st_mtime_ns
    assert rows == rows_of(out / "results.jsonl")


@pytest.mark.nightly
def test_the_papers_ablations_become_rows(run: Run, tmp_path: Path) -> None:
    """A row for each tokenizer, with the values that `evaluate` measured."""
    out = tmp_path / "out"
    run("ist/ablate.sh", out)
    tables = rows_by_table(out / "results.jsonl")
    of_paper = {f"ist-{n}" for n in (1, 2, 9, 10, 12, 13, 14, 15, 16)}
    assert {"made", "ingredients", *of_paper} == set(tables)
    results = Results.from_jsonl((out / "measured.jsonl").read_text(encoding="utf-8"))
    for table, row, name in (
        *(("ist-14", "60", "transition-60"), ("ist-14", "90", "paper"), ("ist-12", "IST", "paper")),
        *(("ist-16", "none", "as-it-is"), ("ingredients", "grapheme-safe", "grapheme-safe")),
    ):
        measured = {r.language: r.value for r in results.where(subject=name)}
        assert tables[table][row] == pytest.approx(measured, rel=1e-5)
    alone = tables["ist-9"]["Individual"]
    assert {"eng", "hin", "tam"} == set(alone)
    value = results.value("alone-Tamil", "tam", "fertility")
    assert alone["tam"] == pytest.approx(value, rel=1e-5)
    assert len(tables["ist-13"]) == 2  # a sample and all of the text
    made = [how for name, how in tables["made"].items() if name not in {"ist-2", "ist-10"}]
    assert 1 == len({row["texts_sha256"] for row in made})  # all of them on all languages
    assert len(made) == len({row["tokenizers_sha256"] for row in made})


@pytest.mark.nightly
def test_what_matra_left_open_becomes_rows(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("matra/open.sh", out)
    tables = rows_by_table(out / "results.jsonl")
    assert ["A", "B", "C", "D", "E"] == list(tables["matra-4"])
    assert ["2000", "1500", "2500"] == list(tables["matra-section-5.5"])
    blended = tables["matra-section-6.3"]
    assert blended["not blended"] != blended["blended"]
    spanning = tables["matra-section-6.1"]
    assert 2000 == spanning["E"]["tokens"]
    holding = "hold a terminal beside a letter or digit"
    assert spanning["C"][holding] > spanning["E"][holding]
    assert {"E", "A"} == set(tables["matra-section-6.2"])
    switched = tables["code-switching"]
    own = [f"{language}-english{end}" for language in ("hindi", "tamil") for end in ("", "-latin")]
    assert sorted(own) == sorted(switched["blended"])
    assert switched["no weights"] != switched["blended"] != switched["not blended"]
    assert tables["matra-section-5.6"]["E"]["tokenizers"] > 0


def test_continued_bpe_writes_its_tables_and_makes_nothing_twice(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("continued_bpe/run.sh", out)
    assert (out / "tables.md").read_text(encoding="utf-8") in printed
    tables = rows_by_table(out / "tables.jsonl")
    of_paper = (1, 3, 4, 6, 7, 8, 9, 13, 15, 17, *(f"figure-{n}" for n in (4, 6, 7, 9, 12, 13)))
    own = {
        "repaired",
        "lifted",
        "lifted-by-language",
        "ceilings",
        "unchanged",
        "orders",
        "together",
    }
    assert {"made", *(f"continued_bpe-{n}" for n in of_paper), *own} - set(tables) == {
        "continued_bpe-7"  # no base of ours skips merges
    }

    curve = json.loads((out / "curves" / "llama3.repaired.hin.json").read_text(encoding="utf-8"))
    assert [50, 100, 200] == [row["n_tokens"] for row in curve["rows"]]
    assert {0} == {row["ours"]["unreachable"] for row in curve["rows"]}
    kept = json.loads((out / "curves" / "llama3.kept.hin.json").read_text(encoding="utf-8"))
    assert curve["ceiling_bytes_per_token"] > 1.5 * kept["ceiling_bytes_per_token"]
    best = curve["rows"][-1]["ours"]["bytes_per_token"]
    assert best > kept["rows"][-1]["ours"]["bytes_per_token"] > kept["bytes_per_token"]
    of_hindi = {row: values.get("hin +100") for row, values in tables["continued_bpe-17"].items()}
    assert of_hindi["llama3"] == pytest.approx(kept["rows"][1]["ours"]["bytes_per_token"], 1e-5)

    lines = tables["unchanged"]["changed without such a letter"]
    assert {"eng", "deu", "est", "rus", "code"} == {line.split()[1] for line in lines}
    assert {0} == set(lines.values())

    pruned = json.loads((out / "prune" / "prune.leaf-frequency.500.json").read_text("utf-8"))
    assert (500, 1500, 0) == tuple(pruned[key] for key in ("n_tokens", "rows", "lossy"))
    for way, n in (("prune-extend", 200), ("extend-prune", 100)):
        same = json.loads((out / "prune" / f"{way}.leaf-frequency.{n}.json").read_text("utf-8"))
        assert (2000, n, 0, 0) == tuple(
            same[key] for key in ("rows", "n_added", "newly_unreachable", "lossy")
        )

    broken = json.loads((out / "prune" / "prune.least-frequent.500.json").read_text("utf-8"))
    assert (500, 0) == tuple(broken[key] for key in ("n_tokens", "lossy"))
    assert broken["newly_unreachable"] > 0

    together = json.loads((out / "multilingual.json").read_text(encoding="utf-8"))
    used = {row["language"]: row["new_tokens_used"] for row in together["languages"]}
    assert used["hin"] == tables["together"]["new tokens used"]["hin"]
    assert vs.load_tokenizer(out / "superwords").vocab_size == 2900

    written = {file: file.stat().st_mtime_ns for file in out.glob("*/*.json")}
    run("continued_bpe/run.sh", out)
    again = {file: file.stat().st_mtime_ns for file in written if "texts" not in file.parts}
    assert again == {file: written[file] for file in again}


def test_the_indic_study_writes_its_tables(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("indic_study/run.sh", out)
    tables = rows_by_table(out / "tables.jsonl")
    # 7 needs words with their morphemes.
    numbers = [1, 2, 3, 4, 5, 8, 13, 15, 16, 17, 18, "figure-1", 19]
    assert {"made", *(f"indic_study-{n}" for n in numbers)} == set(tables)
    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    languages = results.where(metric="fertility").distinct("language")
    fertility = {label: results.value("bpe-2400-n", label, "fertility") for label in languages}
    mean = sum(fertility.values()) / len(fertility)
    for number, row, line in ((1, "2k N", "BPE"), (17, "F", "BPE 2k"), (2, "N", "BPE 2k")):
        assert tables[f"indic_study-{number}"][row][line] == pytest.approx(mean, rel=1e-5)
    of_16 = tables["indic_study-16"]["bpe-2400-n"]
    assert of_16 == pytest.approx(fertility, rel=1e-5)
    assert f"| {languages[0]} | " in printed and f"| {of_16[languages[0]]:.3f} |" in printed
    (gini,) = results.where(subject="unigram-3000-n", metric="gini")
    assert gini.value == pytest.approx(tables["indic_study-4"]["Gini"]["Unigram 3k"], rel=1e-5)
    family = tables["indic_study-13"]["languages"]["cluster-family"].split(" · ")
    assert "kan, mal, tam, tel" in family
    for name in ("unigram-3000-n", "picky-3000-n", "cluster-2", "cluster-family"):
        report = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        assert 2700 < report["vocab_size"] <= 3000  # the samples hold no more Unigram pieces
    spec = json.loads((out / "bpe-2400-n" / "tokenizer.json").read_text("utf-8"))["normalizer"]
    assert "Sequence" == spec["type"]


@pytest.mark.nightly
def test_syllables_kept_whole_are_measured(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("ist/syllables.sh", out)
    found = rows_by_table(out / "rows.jsonl")["syllables"]
    for size in (1200, 2000):
        free, safe = (found[f"{name}-{size}, bits per byte"] for name in ("free", "safe"))
        assert {"hin", "tam"} == set(free)
        change = found[f"safe-{size}, difference"]
        both = sum(safe.values()) / 2 - sum(free.values()) / 2
        assert change[""] == pytest.approx(both, abs=1e-9)
        assert change["seeds, low"] <= change[""] <= change["seeds, high"]
        assert found[f"free-{size}, fertility"] != found[f"safe-{size}, fertility"]
    own = rows_by_table(out / "rows.jsonl")["syllables, recipe vocabshift"]
    cut = (sum(own[f"own-{name}, grapheme_cut_rate"].values()) for name in ("safe", "free"))
    assert next(cut) < next(cut)
    assert "| `vocabshift`, 2,000 tokens | fertility | Gini |" in printed
    assert "| 1,200 | free |" in printed
    assert f"{change['']:+.4f} (seeds " in printed


@pytest.mark.nightly
def test_the_extrinsic_test_trains_and_evaluates_small_models(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("indic_study/extrinsic.sh", out)
    found = {}
    for file in (out / "runs").glob("*-[01].json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        found[record["vocabulary"], record["kind"], record["seed"]] = record
    assert 4 * 2 * 2 == len(found)
    for seed in (0, 1):
        for kind in ("decoder", "encoder"):
            read = {r["bytes"] for key, r in found.items() if key[1:] == (kind, seed)}
            assert 1 == len(read)  # the same text, whatever the vocabulary
    encoder, decoder = (found["joint-unigram", kind, 0] for kind in ("encoder", "decoder"))
    assert encoder["bytes"] == 2 * decoder["bytes"]  # the study's duplication
    assert encoder["tokens"] < 0.2 * 2 * decoder["tokens"]  # those that were masked
    rows = rows_by_table(out / "runs" / "rows.jsonl")
    right = [row[4] for s in (0, 1) for row in found["joint-unigram", "encoder", s]["sentences"]]
    accuracy = rows["extrinsic"]["encoder, topics right, %: joint, Unigram"]
    assert sum(accuracy.values()) / 4 == pytest.approx(100 * sum(right) / len(right), rel=1e-4)
    assert all(row[3] > 0 for row in found["cluster", "decoder", 0]["sentences"])
    hits = [found["cluster-unigram", "encoder", s]["retrieved"] for s in (0, 1)]
    assert {"mar", "tam", "tel"} == set(hits[0])
    share = 100 * sum(sum(of["tam"]) for of in hits) / 8
    assert share == rows["indic_study-21"]["cluster, Unigram"]["tam"]
    assert "| encoder, sentences found, %: joint, Unigram → cluster, Unigram | 3 | 2 |" in printed


def test_clusters_in_their_own_scripts_and_in_latin_letters(run: Run, tmp_path: Path) -> None:
    """Transliterated, languages share pieces that they spell apart in scripts of their own."""
    out = tmp_path / "out"
    run("indic_study/iso.sh", out)
    found = rows_by_table(out / "clusters.jsonl")["indic_study-14"]
    for row in ("own scripts", "ISO 15919"):
        groups = [group.split(", ") for group in found[row]["cluster-3"].split(" · ")]
        assert 3 == len(groups)
        assert 13 == len({language for group in groups for language in group})
    assert found["ISO 15919"]["pieces together"] < found["own scripts"]["pieces together"]


@pytest.mark.nightly
def test_the_front_compares_recipe_vocabshift_with_ist_and_matra(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = cells(run("indic_study/front.sh", out))
    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    values = {row.language: row.value for row in results.where(subject="ist", metric="fertility")}
    assert f"{sum(values.values()) / len(values):.4f}" == rows["ist"][0]
    assert f"{values['deu']:.2f}" == rows["ist"][6]
    totals = [row.value for row in results.where(subject="vocabshift", metric="tokens_per_line")]
    assert rows["vocabshift"][1] == f"{gini(totals):.4f}"
    assert {"ist-english-4", "matra", "vocabshift-nfc", "nfc-balance-0"} <= set(rows)


@pytest.mark.nightly
def test_the_adaptation_study_compares_every_arm(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    out = tmp_path / "out"
    printed = run("adaptation_study/run.sh", out)
    names = ("tokenizers", "bits-per-byte", "differences", "sib200", "glitch", "latency", "ist-5")
    tables = {name: (out / f"{name}.md").read_text(encoding="utf-8") for name in names}
    assert all(table in printed for table in tables.values())
    assert "<svg" in (out / "curves.svg").read_text(encoding="utf-8")

    arms = {
        file.stem.removeprefix("0-"): json.loads(file.read_text(encoding="utf-8"))
        for file in (out / "arms").glob("*.json")
    }
    assert 12 == len(arms)
    pretrained = arms.pop("pretrained")
    assert pretrained["curve"][-1]["bits_per_byte"]["eng"] < 8  # fewer bits than a byte has
    # The same text for every arm, in about as many steps, and what is scored is the same too.
    assert 1 == len({arm["n_bytes"] for arm in arms.values()})
    steps = [arm["n_steps"] for arm in arms.values()]
    assert max(steps) < 1.5 * min(steps)
    sizes = {
        tuple(size for language in arm["documents"].values() for size, _ in language)
        for arm in arms.values()
    }
    assert 1 == len(sizes)
    assert arms["ist-fvt"]["n_tokens"] < arms["continued-fvt"]["n_tokens"]
    assert arms["continued-fvt"]["n_tokens"] < arms["nothing"]["n_tokens"] / 2

    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    assert set(arms) == set(results.distinct("subject"))
    documents = arms["matra-fvt"]["documents"]["hin"]
    bits = sum(nats for _, nats in documents) / math.log(2)
    price = results.value("matra-fvt", "hin", "bits_per_byte")
    assert bits / sum(size for size, _ in documents) == pytest.approx(price)
    assert any(
        cell.startswith(f"{price:.3f} ") for cell in cells(tables["bits-per-byte"])["matra, fvt"]
    )
    nothing = results.value("nothing", "hin", "bits_per_byte")
    difference = cells(tables["differences"])["matra, fvt − nothing"][0]
    assert difference.startswith(f"{price - nothing:+.3f} [")
    latency = json.loads((out / "latency.json").read_text(encoding="utf-8"))["results"]
    assert {"nothing", "ist-fvt", "matra-fvt"} < {row["subject"] for row in latency}
    assert {"eng", "hin", "tam"} == {row["language"] for row in latency}


@pytest.mark.nightly
def test_the_study_of_ways_to_keep_a_model_resumes(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sacrebleu")
    out = tmp_path / "out"
    printed = run("keep_the_model/run.sh", out)
    assert "<svg" in (out / "gains.svg").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
    arms = {file.stem.split(".")[0] for file in (out / "arms").glob("*.json")}
    assert {"base", "base-all", "swap-fvt-none", "swap-tokenadapt-none", "swap-fvt-all"} <= arms
    languages = {row["language"] for row in rows if row["what"] == "bits"}
    assert {"hin", "eng", "code", "deu"} == languages
    bits = {
        (row["arm"], row["language"]): row["value"]
        for row in rows
        if row["what"] == "bits" and row["on"] == "some"
    }
    [change] = [
        row
        for row in rows
        if (row["what"], row["arm"], row.get("against"), row.get("language"), row["on"])
        == ("difference", "swap-fvt-all", "base", "hin", "some")
    ]
    expected = bits["swap-fvt-all", "hin"] - bits["base", "hin"]
    assert change["value"] == pytest.approx(expected, abs=2e-5)
    lines = [line for line in printed.splitlines() if line.startswith("| swap, fvt, all on 3 kB")]
    assert f" {change['value']:+.3f} ±" in lines[0].replace("*", "")
    costs = [row for row in rows if row["what"] == "cost" and row["arm"] == "swap-fvt-all"]
    assert all("vocabshift cpt" in " ".join(row["commands"]) for row in costs)

    files = [*(out / "arms").iterdir(), *(out / "finals").iterdir(), *(out / "start").iterdir()]
    written = {file: file.stat().st_mtime_ns for file in files}
    (out / "arms" / "swap-fvt-all.3000.0.json").unlink()
    run("keep_the_model/run.sh", out)
    again = {file: file.stat().st_mtime_ns for file in written}
    changed = [file.name for file in files if again[file] != written[file]]
    assert changed == ["swap-fvt-all.3000.0.json"]


@pytest.mark.shared
def test_vendors_have_the_fertility_that_is_known_of_them(
    shared_data: Path, tmp_path: Path
) -> None:
    """Two decimals that were measured with the vendors' own libraries."""
    known = {
        "llama4": {"hi": 1.75, "ta": 5.99, "en": 1.23, "mni_Mtei": 17.58, "mean": 4.42},
        "deepseek": {"hi": 2.97, "ta": 4.91, "en": 1.23, "mni_Mtei": 12.68, "mean": 4.65},
    }
    folder = shared_data / "eval" / "sib200-flores"
    texts = vs.Corpus.from_files({path.stem: path for path in sorted(folder.glob("*.txt"))})
    sources = [shared_data / "tokenizers-hf/llama4", shared_data / "tokenizers/deepseek"]
    vs.evaluate(sources, texts, "fertility").save(tmp_path / "results.jsonl")
    program = [sys.executable, "-m", "vocabshift", "tables", tmp_path / "results.jsonl"]
    shape = ["--shape", "subjects"]
    table = cells(
        subprocess.run(program + shape, check=True, capture_output=True, text=True).stdout
    )
    for name, values in known.items():
        for column, value in values.items():
            assert f"{value:.2f}" == table[name][table["tokenizer"].index(column)], (name, column)
