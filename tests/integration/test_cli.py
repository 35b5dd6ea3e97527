"""The command line from end to end, on small text of our own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cli.main import main

ENGLISH = [
    "The river runs past the old mill, and the mill turns all day.",
    "A small boat came down the river in the morning. Who was in the boat?",
    "In the morning the baker opens the door and the street smells of bread.",
    "The old mill and the baker share one wall; the river has seen 1234 winters.",
]
HINDI = [
    "नदी पुराने घर के पास से बहती है। सुबह नाव नदी में आती है।",
    "सुबह बच्चे नदी के पास खेलते हैं और शाम को घर आते हैं।",
    "पुराने घर के पास एक पेड़ है। पेड़ के नीचे बच्चे खेलते हैं।",
]

RunJson = Callable[..., dict[str, Any]]


@pytest.fixture
def run_json(capsys) -> RunJson:
    """Runs a verb with --json; gives the object, which must be alone on stdout."""

    def run(*words: object, status: int = 0) -> dict[str, Any]:
        code = main([*map(str, words), "--json"])
        streams = capsys.readouterr()
        assert status == code, streams.err
        assert 1 == streams.out.count("\n")
        return json.loads(streams.out)

    return run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """A folder with hi.txt and en.txt."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "en.txt").write_text("\n".join(ENGLISH * 5) + "\n", encoding="utf-8")
    (folder / "hi.txt").write_text("\n".join(HINDI * 5) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory) -> dict[str, Path]:
    """A small tokenizer of each recipe."""
    folder = tmp_path_factory.mktemp("trained")
    specs = ["--corpus", f"hi={corpus / 'hi.txt'}", f"en={corpus / 'en.txt'}"]
    for recipe in ("bpe", "superbpe", "ist"):
        size = ["--vocab-size", "400", "-o", str(folder / recipe)]
        assert 0 == main(["train", "--recipe", recipe, *specs, *size, "--json"])
    return {recipe: folder / recipe for recipe in ("bpe", "superbpe", "ist")}


def _specs(corpus: Path) -> tuple[str, str]:
    return f"hi={corpus / 'hi.txt'}", f"en={corpus / 'en.txt'}"


def test_train_tells_what_it_made(corpus: Path, tmp_path: Path, run_json: RunJson) -> None:
    """The contract's keys, and token counts that `tokenizers` confirms for the saved file."""
    import tokenizers

    out = tmp_path / "ist"
    words = ("train", "--recipe", "ist", "--corpus", *_specs(corpus), "--vocab-size", 400)
    summary = run_json(*words, "-o", out, "-j", 1)
    counts = {"vocab_size", "merges", "stage1_merges", "stage2_merges"}
    counts |= {"training_tokens", "unreachable", "superwords"}
    assert {*counts, "out", "recipe", "phases", "config_hash"} <= set(summary)
    assert all(type(summary[key]) is int for key in counts)
    assert (400, 0, "ist") == (summary["vocab_size"], summary["unreachable"], summary["recipe"])
    assert summary["merges"] == summary["stage1_merges"] + summary["stage2_merges"]
    assert {"name", "seconds", "peak_rss_bytes"} <= set(summary["phases"][0])
    saved = tokenizers.Tokenizer.from_file(str(out / "tokenizer.json"))
    lines = HINDI * 5 + ENGLISH * 5
    encoded = saved.encode_batch(lines, add_special_tokens=False)
    assert summary["training_tokens"] == sum(len(encoding.ids) for encoding in encoded)
    again = tmp_path / "again"
    run_json(*words, "-o", again, "-j", 2)
    assert (out / "tokenizer.json").read_bytes() == (again / "tokenizer.json").read_bytes()


def test_force_replaces_an_output(corpus: Path, tmp_path: Path, run_json: RunJson) -> None:
    """--force writes over what stands there."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old", encoding="utf-8")
    words = ("train", "--recipe", "bpe", "--corpus", *_specs(corpus), "--vocab-size", 300)
    run_json(*words, "-o", tmp_path / "out", "--force")
    assert not (tmp_path / "out" / "old").exists()
    assert (tmp_path / "out" / "tokenizer.json").exists()
    assert ["out"] == [path.name for path in tmp_path.iterdir()]


def test_a_config_trains_the_same(corpus: Path, tmp_path: Path, run_json: RunJson) -> None:
    """The options from a TOML give the tokenizer that the flags give."""
    specs = _specs(corpus)
    toml = tmp_path / "f.toml"
    toml.write_text(
        f'recipe = "superbpe"\ncorpus = {json.dumps(specs)}\nvocab_size = 380\ntransition = 0.8\n',
        encoding="utf-8",
    )
    from_file = run_json("train", "--config", toml, "-o", tmp_path / "a")
    flags = ("--recipe", "superbpe", "--vocab-size", 380, "--transition", 0.8)
    from_flags = run_json("train", "--corpus", *specs, *flags, "-o", tmp_path / "b")
    assert from_flags["config_hash"] == from_file["config_hash"]
    assert (tmp_path / "a/tokenizer.json").read_bytes() == (
        tmp_path / "b/tokenizer.json"
    ).read_bytes()


def test_superwords_on_top(
    trained: dict[str, Path], corpus: Path, tmp_path: Path, run_json: RunJson, capsys
) -> None:
    """The base's ids stay; people see what the new boundaries changed."""
    words = ["train", "--recipe", "on-top", "--base", trained["bpe"], "--corpus", *_specs(corpus)]
    by_count = run_json(*words, "--n-tokens", 30, "-o", tmp_path / "a")
    by_size = run_json(*words, "--vocab-size", 430, "-o", tmp_path / "b")
    assert (430, 30) == (by_count["vocab_size"], by_count["new_tokens"])
    assert {"hi", "en"} == {*by_count["changed_lines"]} == {*by_count["changed_tokens"]}
    assert by_size["training_tokens"] == by_count["training_tokens"]
    first, second = (tmp_path / name / "tokenizer.json" for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    old = json.loads((trained["bpe"] / "tokenizer.json").read_bytes())["model"]["vocab"]
    assert old.items() <= json.loads(first.read_bytes())["model"]["vocab"].items()
    assert 0 == main([*map(str, words), "--n-tokens", "30", "-o", str(tmp_path / "c")])
    shown = capsys.readouterr().out
    for fact in ("30 new tokens", "own", "ist-stage2 ", "tokens of the base lost"):
        assert fact in shown


def test_check_finds_nothing_amiss(trained, corpus: Path, run_json: RunJson) -> None:
    """Every token of ours can be produced, and text comes back."""
    entries = run_json("check", *trained.values(), "--text", *_specs(corpus))["tokenizers"]
    for entry in entries:
        assert (400, 0, 0) == (
            entry["vocab_size"],
            entry["unreachable"],
            entry["round_trip_failures"],
        )
        assert entry["ok"] is True
    assert 0 == entries[0]["superwords"]
    assert entries[1]["superwords"] > 0


def test_check_strict_finds_an_unreachable_token(trained, tmp_path: Path, run_json) -> None:
    """A token that no merge produces is counted, listed with --details, and fails --strict."""
    shutil.copytree(trained["bpe"], tmp_path / "odd")
    path = tmp_path / "odd" / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["zzqzz"] = 400
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    result = run_json("check", tmp_path / "odd", "--strict", "--details", status=2)
    (entry,) = result["tokenizers"]
    assert (1, False) == (entry["unreachable"], entry["ok"])
    assert ["zzqzz"] == entry["details"]["unreachable"]


def test_evaluate_rows(trained, corpus: Path, tmp_path: Path, run_json: RunJson) -> None:
    """Rows for each subject, language and metric; superwords shorten the text."""
    words = ("evaluate", trained["bpe"], trained["ist"], "--base", trained["bpe"])
    output = tmp_path / "r.jsonl"
    result = run_json(*words, "--text", *_specs(corpus), "--output", output)
    rows = {(row["subject"], row["language"], row["metric"]): row for row in result["results"]}
    assert 2 * 2 * 3 == len(rows)
    assert 15 == rows["bpe", "hi", "fertility"]["n"]
    assert 20 == rows["ist", "en", "bytes_per_token"]["n"]
    assert 1.0 == rows["bpe", "hi", "normalized_sequence_length"]["value"]
    row = rows["ist", "en", "fertility"]
    assert row["ci_low"] <= row["value"] <= row["ci_high"]
    lines = output.read_text(encoding="utf-8").splitlines()
    assert result["results"] == [json.loads(line) for line in lines]


def test_evaluate_every_metric(trained, corpus: Path, run_json: RunJson, capsys) -> None:
    """With "all", every metric that the texts allow has rows; losses and notes are told apart."""
    words = ("evaluate", trained["bpe"], trained["ist"], "--base", trained["bpe"])
    result = run_json(*words, "--text", *_specs(corpus), "--metrics", "all")
    metrics = {row["metric"] for row in result["results"]}
    assert {"renyi_efficiency", "word_fragmentation_rate", "script_share"} <= metrics
    assert {"levenshtein_distance", "fertility_bin_1_10", "vocabulary_overlap"} <= metrics
    assert not {"gini", "premium"} & metrics  # 15 and 20 lines: not parallel
    assert [] == result["comparisons"]  # two languages prove nothing


def test_evaluate_other_kinds(corpus: Path, bad, trained, run_json: RunJson, capsys) -> None:
    """A Unigram tokenizer is measured; that it loses most of the text is told, and marked."""
    result = run_json("evaluate", "unigram", trained["bpe"], "--text", "en=en.txt")
    rows = {(row["subject"], row["metric"]): row["value"] for row in result["results"]}
    assert 0 < rows["unigram", "fertility"]
    assert 1.0 == rows["unigram", "loss_rate"]
    assert ("bpe", "loss_rate") not in rows
    assert 0 == main(["evaluate", "unigram", "--text", "en=en.txt"])
    assert "† not valid" in capsys.readouterr().out


def test_evaluate_linguistic(trained, corpus: Path, tmp_path: Path, run_json: RunJson) -> None:
    """Words alone, named by their file or a label; code-switched text beside the others."""
    words, pairs = tmp_path / "gujarati.csv", tmp_path / "pairs.csv"
    words.write_text("full_word,pt1,rest\nprices,price,s\nsuns,sun,s\n", encoding="utf-8")
    pairs.write_text("word,segments\nunlocks,un lock s\n", encoding="utf-8")
    result = run_json("evaluate", trained["ist"], "--morphemes", words, f"en={pairs}")
    assert {"gujarati", "en"} == {row["language"] for row in result["results"]}
    lines = (corpus / "en.txt").read_text(encoding="utf-8").splitlines()[:15]
    (tmp_path / "en.txt").write_text("\n".join(lines), encoding="utf-8")
    texts = ("--text", f"hi={corpus / 'hi.txt'}", f"en={tmp_path / 'en.txt'}")
    command = ("evaluate", trained["ist"], *texts, "--code-switch", "hi+en", "--metrics")
    result = run_json(*command, "fertility", "syllable_cut_rate", "digit_consistency")
    rows = {(row["language"], row["metric"]): row for row in result["results"]}
    assert {"hi", "en", "hi+en"} <= {language for language, _ in rows}
    assert 15 == rows["hi+en", "fertility"]["n"] == rows["hi", "syllable_cut_rate"]["n"]
    assert rows["hi+en", "code_switch_premium"]["value"] > 0.5
    assert ("Devanagari", "digit_consistency") in rows


def test_comparisons_over_languages(
    trained, corpus: Path, tmp_path: Path, run_json, capsys
) -> None:
    """Five languages and two tokenizers are compared in --json, and as a table if asked for."""
    lines = (corpus / "en.txt").read_text(encoding="utf-8").splitlines()
    specs = []
    for number in range(5):
        file = tmp_path / f"{number}.txt"
        file.write_text("\n".join(lines[number::5]) + "\n", encoding="utf-8")
        specs.append(f"l{number}={file}")
    words = ("evaluate", trained["bpe"], trained["ist"], "--text", *specs)
    pairs = run_json(*words)["comparisons"]
    assert [("fertility", "bpe", "ist", 5)] == [
        (pair["metric"], pair["a"], pair["b"], pair["n"]) for pair in pairs[:1]
    ]
    assert 0 == main([str(word) for word in (*words, "--compare-subjects")])
    assert "pairs of tokenizers over languages" in capsys.readouterr().out


def test_what_people_see(trained, corpus: Path, capsys) -> None:
    """Without --json the verbs print tables."""
    assert 0 == main(["evaluate", str(trained["ist"]), "--text", *_specs(corpus)])
    assert "fertility" in capsys.readouterr().out
    assert 0 == main(["check", str(trained["ist"])])
    assert "unreachable" in capsys.readouterr().out


@pytest.fixture
def bad(corpus: Path, trained, tmp_path: Path, monkeypatch) -> None:
    """The current folder holds one of each kind of bad input."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(corpus / "en.txt", "en.txt")
    Path("empty.txt").write_bytes(b"")
    Path("blank.txt").write_bytes(b"\n \n")
    Path("short.txt").write_text("one line\n", encoding="utf-8")
    Path("bytes.txt").write_bytes(b"good line\nbad \xff line\n")
    Path("there").mkdir()
    Path("there/precious").write_text("keep", encoding="utf-8")
    good = (trained["bpe"] / "tokenizer.json").read_text(encoding="utf-8")
    Path("damaged").mkdir()
    Path("damaged/tokenizer.json").write_text(good[: len(good) // 2], encoding="utf-8")
    unigram = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]},
    }
    Path("unigram").mkdir()
    Path("unigram/tokenizer.json").write_text(json.dumps(unigram), encoding="utf-8")
    Path("model").mkdir()


TRAIN = "train --recipe ist --vocab-size 300 -o out --corpus"
ON_TOP = "train --recipe on-top -o out --corpus en.txt"

BAD_INPUT = [
    (f"{TRAIN} none.txt", "none.txt"),
    (f"{TRAIN} empty.txt", "empty"),
    (f"{TRAIN} bytes.txt", "bytes.txt"),
    (f"{TRAIN} bytes.txt", "14"),  # the offset of the bad byte in the file
    (f"{TRAIN} en.txt --vocab-size 100", "256"),
    (f"{TRAIN} en.txt --transition 0", "transition"),
    (f"{TRAIN} en.txt --transition 1.5", "transition"),
    (f"{TRAIN} en=en.txt --languages tam", "tam"),
    (f"{TRAIN} en.txt --recipe magic", "magic"),
    (f"{TRAIN} en.txt -o there", "there"),
    (f"{TRAIN} en.txt --special-tokens-from none", "none"),
    (f"{TRAIN} en.txt --pre-tokenizer (", "("),
    (f"{TRAIN} en.txt --base {{bpe}}", "--base"),
    (f"{ON_TOP} --n-tokens 3", "--base is required"),
    (f"{ON_TOP} --base {{bpe}}", "--n-tokens is required"),
    (f"{ON_TOP} --base {{bpe}} --n-tokens 3 --vocab-size 500", "one of them"),
    (f"{ON_TOP} --base {{bpe}} --n-tokens 0", "0"),
    (f"{ON_TOP} --base {{bpe}} --vocab-size 400", "400"),
    (f"{ON_TOP} --base none --n-tokens 3", "none"),
    (f"{ON_TOP} --base unigram --n-tokens 3", "Unigram"),
    ("check none", "none"),
    ("check damaged", "damaged"),
    ("encode unigram en.txt -o out", "Unigram"),
    ("check model", "model"),
    ("evaluate damaged --text en.txt", "damaged"),
    ("evaluate tiktoken:none --text en.txt", "tiktoken"),
    ("evaluate {bpe} --text a=en.txt b=bytes.txt", "bytes.txt"),
    ("evaluate {bpe} --text a=en.txt b=short.txt --metrics gini", "short.txt) has 1 lines"),
    ("evaluate {bpe} --text a=en.txt b=short.txt --parallel", "short.txt) has 1 lines"),
    ("evaluate {bpe} --text a=en.txt b=en.txt --metrics premium", "--reference"),
    ("evaluate {bpe} --text en.txt --metrics gini", "at least two"),
    ("evaluate {bpe} --text en.txt --output en.txt --force", "en.txt is also an input"),
    ("evaluate {bpe} --text en.txt --html en.txt --force", "en.txt is also an input"),
    ("evaluate {bpe} --text en.txt --output no/x.jsonl", "folder of no/x.jsonl"),
    ("evaluate {bpe} --text en.txt --output x --html x", "one file"),
    ("compare {bpe} {bpe} --text en.txt --html en.txt --force", "en.txt is also an input"),
    ("evaluate {bpe} --text a=en.txt --frequencies b=en.txt --metrics fertility_bin_1_10", "of a"),
    ("evaluate {bpe} --text en.txt --renyi-alpha 0", "above 0"),
    ("evaluate {bpe}", "give --text, or --morphemes"),
    ("evaluate {bpe} --text en.txt --leading-space", "--morphemes"),
    ("evaluate {bpe} --morphemes en.txt", "en.txt: has the columns"),
    ("evaluate {bpe} --morphemes gu=none.csv", "none.csv"),
    ("evaluate {bpe} --morphemes hf:none", "FILE.csv"),
    ("evaluate {bpe} --text en.txt --metrics morph_score", "--morphemes"),
    ("evaluate {bpe} --text en=en.txt --code-switch hi+en", "needs text of hi"),
    ("evaluate {bpe} --text en=en.txt --code-switch en", "no pair"),
    ("evaluate {bpe} --text a=en.txt b=short.txt --code-switch a+b", "short.txt) has 1 lines"),
    ("evaluate none --text en.txt", "none"),
    ("evaluate {bpe} --text none.txt", "none.txt"),
    ("evaluate {bpe} --text empty.txt", "empty"),
    ("evaluate {bpe} --text blank.txt", "blank.txt"),
    ("evaluate {bpe} --text bytes.txt", "bytes.txt"),
    ("evaluate {bpe} --text en.txt --metrics speed", "known are: fertility"),
    ("evaluate {bpe} --text en.txt --metrics normalized_sequence_length", "base"),
    ("transfer none {bpe} -o out", "none"),
    ("transfer model {bpe} -o there", "there"),
    ("transfer model damaged -o out", "damaged"),
]


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize(("command", "named"), BAD_INPUT)
def test_bad_input(command: str, named: str, trained, monkeypatch, capsys) -> None:
    """Each is exit 2 with one line that names the culprit, and leaves nothing behind."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = sorted(Path().rglob("*"))
    assert 2 == main([*command.format(bpe=trained["bpe"]).split(), "--json"])
    streams = capsys.readouterr()
    assert "" == streams.out
    assert named in streams.err
    assert streams.err.startswith("vocabshift: error: ")
    assert 1 == streams.err.count("\n"), streams.err
    assert before == sorted(Path().rglob("*"))
    assert "keep" == Path("there/precious").read_text(encoding="utf-8")


def _save_llama(folder: Path, rows: int, tokenizer: Path) -> None:
    """A Llama of a few thousand weights together with a tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=rows,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer / name, folder / name)


def test_transfer(trained, tmp_path: Path, run_json: RunJson, capsys) -> None:
    """A small Llama moves onto another tokenizer and loads again."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    _save_llama(tmp_path / "model", 400, trained["bpe"])
    out = tmp_path / "moved"
    summary = run_json("transfer", tmp_path / "model", trained["ist"], "-o", out)
    expected = {"out", "n_copied", "n_initialized", "n_removed", "tied", "vocab_size", "rows"}
    assert expected <= set(summary)
    assert summary["vocab_size"] == summary["n_copied"] + summary["n_initialized"]
    model = transformers.AutoModelForCausalLM.from_pretrained(out)
    assert summary["rows"] == model.get_input_embeddings().weight.shape[0]
    assert 2 == main(["transfer", str(tmp_path / "model"), str(trained["ist"]), "-o", str(out)])
    assert "exists already" in capsys.readouterr().err


def test_transfer_refuses_rows_that_do_not_fit(trained, tmp_path: Path, capsys) -> None:
    """A model with fewer rows than its tokenizer has ids is not guessed at."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    _save_llama(tmp_path / "model", 300, trained["bpe"])
    capsys.readouterr()
    words = ["transfer", tmp_path / "model", trained["ist"], "-o", tmp_path / "out"]
    assert 2 == main([*map(str, words), "--json"])
    streams = capsys.readouterr()
    assert "" == streams.out
    assert "300" in streams.err
    assert not (tmp_path / "out").exists()


def test_a_pattern_of_llama_cpp_from_training_to_extension(
    corpus: Path, tmp_path: Path, run_json: RunJson, capsys: pytest.CaptureFixture[str]
) -> None:
    """Chosen, shown with every ceiling, and recorded; English keeps its ids until tokens come."""
    import tokenizers

    base, longer = tmp_path / "base", tmp_path / "longer"
    words = ("train", "--recipe", "bpe", "--corpus", *_specs(corpus), "--vocab-size", "300")
    run_json(*words, "--pre-tokenizer", "qwen2", "-o", base)
    trained = run_json(*words, "--pre-tokenizer", "deployable", "-o", tmp_path / "new")
    hindi = ("--corpus", _specs(corpus)[0], "--n-tokens", "20", "--pre-tokenizer")
    made = run_json("extend", base, *hindi, "deployable", "-o", longer)
    candidates = {row["name"]: row for row in trained["deployable"]["candidates"]}
    assert candidates.keys() == {row["name"] for row in made["deployable"]["candidates"]}
    assert "" == candidates[trained["deployable"]["llama_cpp_pre"]]["refused"]
    record = json.loads((longer / "vocabshift.json").read_text(encoding="utf-8"))
    assert "qwen35" == made["deployable"]["llama_cpp_pre"]
    assert made["deployable"] == record["figures"]["deployable"]
    old, new = (tokenizers.Tokenizer.from_file(str(f / "tokenizer.json")) for f in (base, longer))
    assert [old.encode(text).ids for text in ENGLISH] == [new.encode(text).ids for text in ENGLISH]
    assert [old.encode(text).ids for text in HINDI] != [new.encode(text).ids for text in HINDI]
    command = ["extend", str(base), *hindi, "youtu", "-o", str(tmp_path / "named")]
    assert 0 == main(command)
    shown = capsys.readouterr().out
    assert "granite-embed-multi-97m" in shown
    assert "pattern of llama.cpp" in shown
