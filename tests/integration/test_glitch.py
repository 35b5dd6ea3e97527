"""`vocabshift glitch` from end to end: planted tokens, files, verification, dummies, complaints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import small_models
from vocabshift.checks.vocabulary import our_unused, with_unused
from vocabshift.cli.main import main
from vocabshift.evaluation.glitch.verification import verify
from vocabshift.tokenizer import pretrained_folder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer

HOSTILE = '"><script>alert(1)</script>'
N_DUMMIES = 12


def glitch(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The JSON object of a run that went well."""
    assert 0 == main(["glitch", *map(str, words), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def complaint(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line of a run with bad input."""
    capsys.readouterr()  # progress bars of what was saved before
    assert 2 == main(["glitch", *map(str, words)])
    (line,) = capsys.readouterr().err.splitlines()
    return line


def planted_ids(tokenizer: Tokenizer) -> list[int]:
    return [tokenizer.model.vocab[token] for token in ("another", "Ġcat")]


@pytest.fixture(scope="module", params=["tied", "untied"])
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A constructed model with dummies, in which two ordinary tokens are as dummies are."""
    is_tied = request.param == "tied"
    kind = "llama-tied" if is_tied else "llama"
    tokenizer = with_unused(small_models.old_tokenizer(), N_DUMMIES)
    model = small_models.build(kind, tokenizer)
    random = torch.Generator().manual_seed(3)
    unused = [*our_unused(tokenizer), *planted_ids(tokenizer)]
    with torch.no_grad():
        for table in (model.get_input_embeddings(), model.get_output_embeddings()):
            rows = torch.randn(table.weight.shape, generator=random)
            noise = torch.randn((len(unused), rows.shape[1]), generator=random)
            rows[unused] = 0.1 * torch.ones(rows.shape[1]) + 0.01 * noise
            table.weight.copy_(rows)
    return small_models.save(model, tokenizer, tmp_path_factory.mktemp("planted") / "model")


def test_planted_tokens_are_found(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They, and no other token that text yields; the dummies are named as the reference."""
    found = glitch(capsys, planted)
    tokenizer = load_tokenizer(planted)
    rows = {row["id"]: row for row in found["tokens"]}
    assert tokenizer.row_count == len(rows)
    suspect = {i for i, row in rows.items() if row["is_suspect"] and row["class"] == "ordinary"}
    assert set(planted_ids(tokenizer)) == suspect
    assert found["summary"]["n_suspect"] == len(suspect)
    assert ("dummies", N_DUMMIES) == tuple(found["summary"]["reference"][k] for k in ("name", "n"))
    assert "re-initialize" == rows[planted_ids(tokenizer)[0]]["action"]
    values = [row["indicator"] for row in found["tokens"]]
    assert sorted(values) == values
    tied = found["summary"]["tied"]
    assert ("cosine" if tied else "norm") == found["summary"]["indicator"]
    matrix = load_file(planted / "model.safetensors")["model.embed_tokens.weight"]
    for i in (0, *planted_ids(tokenizer)):
        assert np.linalg.norm(matrix[i]) == pytest.approx(rows[i]["input_norm"], rel=1e-4)
    judged = [row for row in rows.values() if row["class"] in ("ordinary", "superword", "atomic")]
    z = [row["z"] for row in judged]
    assert 0 == pytest.approx(np.mean(z), abs=1e-3)
    assert 1 == pytest.approx(np.std(z), abs=1e-3)


def test_the_corpus_decides_what_to_do(
    planted: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token that the corpus has is to be learned, one that it never has can go; --prune-list
    says so to `prune`, and that takes these tokens and no others."""
    (tmp_path / "en.txt").write_text("the cat\nthe cat and the cat\n")
    keep = tmp_path / "keep.txt"
    page = tmp_path / "page.html"
    files = ("--prune-list", keep, "--html", page)
    monkeypatch.setattr("vocabshift.report.html.glitch._MOST_OTHERS", 5)
    found = glitch(capsys, planted, "--corpus", f"en={tmp_path / 'en.txt'}", *files)
    shown = page.read_text()
    assert "By how often the corpus has it" in shown
    assert "the most suspect, and every nth other." in shown
    assert ", count 3<" in shown
    rows = {row["token"]: row for row in found["tokens"]}
    assert (3, "re-initialize") == (rows["Ġcat"]["count"], rows["Ġcat"]["action"])
    assert 0 == rows["another"]["count"]
    assert "prune" == rows["another"]["action"]
    text = sha256(b"the cat\nthe cat and the cat\n").hexdigest()
    saved = sha256((planted / "tokenizer.json").read_bytes()).hexdigest()
    assert ({"en": text}, saved) == tuple(
        found["summary"][name] for name in ("text_sha256", "tokenizer_sha256")
    )
    words = found["summary"]["prune_with"].split()[1:-2]
    assert 0 == main([*words, "-o", str(tmp_path / "pruned"), "--json"])
    before, after = load_tokenizer(planted), load_tokenizer(tmp_path / "pruned")
    assert {"another"} == before.model.vocab.keys() - after.model.vocab.keys()


def test_every_file_is_written(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("all.jsonl", "report.md", "report.html")]
    flags = [
        part
        for pair in zip(("--output", "--markdown", "--html"), files, strict=True)
        for part in pair
    ]
    found = glitch(capsys, planted, *flags, "--top", 5)
    lines = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert 5 == len(found["tokens"])
    assert lines[:5] == found["tokens"]
    assert load_tokenizer(planted).row_count == len(lines)
    markdown = files[1].read_text()
    assert "| re-initialize | ordinary | 2 |" in markdown
    page = files[2].read_text()
    assert "<circle" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    again = complaint(capsys, planted, *flags)
    assert "exists already" in again
    assert 0 == main(["glitch", str(planted), *map(str, flags), "--force"])
    shown = capsys.readouterr().out
    assert "suspect by" in shown
    assert "' cat'" in shown


def test_pages_escape_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A token may be markup: the page and the Markdown show it and do not obey it."""
    tokenizer = small_models.train([HOSTILE] * 50, 300, (*small_models.SPECIALS, HOSTILE + "|x"))
    assert any("script" in token for token in tokenizer.model.vocab)
    model = small_models.build("llama", tokenizer)
    folder = small_models.save(model, tokenizer, tmp_path / "model")
    files = [tmp_path / "a.html", tmp_path / "a.md"]
    glitch(capsys, folder, "--html", files[0], "--markdown", files[1])
    page = files[0].read_text()
    assert "script&gt;" in page
    assert 1 == page.count("<script>")  # the page's own
    assert "alert(1)<" not in page
    assert "<script" not in files[1].read_text()


def initial_model(model: Path, folder: Path, step: Callable[[Any], Any]) -> Path:
    """A copy of the model whose tables differ by `step(table)`."""
    shutil.copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    for name in {"model.embed_tokens.weight", "lm_head.weight"} & tensors.keys():
        tensors[name] = tensors[name] + step(tensors[name])
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_drift_finds_rows_that_never_moved(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --initial every other row has moved; unused ones only by what all share."""
    tokenizer = load_tokenizer(planted)
    still = [*our_unused(tokenizer), *planted_ids(tokenizer)]
    random = np.random.default_rng(0)

    def step(table: Any) -> Any:
        moved = random.normal(size=table.shape).astype(np.float32)
        moved[still] *= 0.01
        moved[planted_ids(tokenizer)] *= 0.5
        return moved

    initial = initial_model(planted, tmp_path / "initial", step)
    page, markdown = tmp_path / "drift.html", tmp_path / "drift.md"
    files = ("--html", page, "--markdown", markdown)
    found = glitch(capsys, planted, "--initial", initial, "--indicator", "drift", *files)
    assert found["summary"]["drift"]["how"] in markdown.read_text()
    assert "Rows were matched: " in page.read_text()
    assert "distance from the initial row" in page.read_text()
    suspect = {r["id"] for r in found["tokens"] if r["is_suspect"] and r["class"] == "ordinary"}
    assert set(planted_ids(tokenizer)) == suspect
    row = next(row for row in found["tokens"] if row["id"] == 300 or row["class"] == "ordinary")
    assert row["drift"] is not None
    assert row["norm_change"] is not None
    assert "by id" in found["summary"]["drift"]["how"]
    assert ("head_drift" in row) != found["summary"]["tied"]


def test_rows_that_were_held_are_not_suspect(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a run of new rows alone, old ones are neither suspect nor to be pruned."""

    def step(table: Any) -> Any:
        return (np.arange(len(table)) >= 300).astype(np.float32)[:, None]

    initial = initial_model(planted, tmp_path / "initial", step)
    found = glitch(capsys, planted, "--initial", initial, "--indicator", "drift")
    assert 300 == found["summary"]["drift"]["n_held"]
    assert "training held them" in found["summary"]["notes"][0]
    assert not any(row["is_suspect"] for row in found["tokens"] if row["id"] < 300)


def test_verification_gives_the_probability_of_the_token(tmp_path: Path) -> None:
    """Held against a plain greedy run, prompt by prompt, for a model with room for all of them."""
    tokenizer = small_models.old_tokenizer()
    model = small_models.build("llama", tokenizer, max_position_embeddings=2048)
    ids = planted_ids(tokenizer)
    found = verify(model, tokenizer, ids)
    assert {"copy": 20, "explain": 0, "repeat": 50} == found.shots
    assert ids == [row.token_id for row in found.tokens]

    from vocabshift.evaluation.glitch.verification import _PROMPTS
    from vocabshift.tokenizer.formats.encoder import Encoder
    from vocabshift.tokenizer.token_bytes import texts_of_tokens

    text = texts_of_tokens(tokenizer)[found.placeholder]
    assert text.strip().isalpha()
    ends = {model.config.eos_token_id}
    for row in found.tokens:
        best = 0.0
        for prompt in _PROMPTS:
            built = Encoder(tokenizer).encode(
                prompt.text(prompt.shots, text), add_special_tokens=True
            )
            line = [row.token_id if i == found.placeholder else i for i in built.tolist()]
            for _ in range(3):
                with torch.no_grad():
                    logits = model(input_ids=torch.tensor([line])).logits[0, -1].double()
                best = max(best, float(logits.softmax(-1)[row.token_id]))
                line.append(int(logits.argmax()))
                if line[-1] in ends:
                    break
        assert best == pytest.approx(row.max_probability, rel=1e-4)


def test_a_model_that_repeats_is_believed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model whose head says the last token again rejects the suspicion; so does the action."""
    tokenizer = with_unused(small_models.old_tokenizer(), 4)
    model = small_models.build("llama-tied", tokenizer, hidden_size=64, max_position_embeddings=512)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                parameter.zero_()  # the residual stream is the token's own row
            elif "norm" in name:
                parameter.fill_(20)
            elif "embed_tokens" in name:
                parameter.copy_(torch.nn.functional.normalize(torch.randn(parameter.shape), dim=1))
    folder = small_models.save(model, tokenizer, tmp_path / "model")
    found = glitch(capsys, folder, "--verify", 6)
    tried = [row for row in found["tokens"] if row["verdict"] is not None]
    assert 6 == len(tried)
    # The "repeat" prompt ends in the token itself.
    assert {"strong_rejected"} == {row["verdict"] for row in tried}
    assert {"ignore", None} >= {row["action"] for row in tried}
    assert {"strong_rejected": 6} == found["summary"]["verification"]["verdicts"]


def test_too_few_positions_for_any_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = small_models.old_tokenizer()
    model = small_models.build("llama", tokenizer)
    folder = small_models.save(model, tokenizer, tmp_path / "model")
    assert 2 == main(["glitch", str(folder), "--verify", "2"])
    assert "fits the model's 64 positions" in capsys.readouterr().err.splitlines()[-1]


def test_dummies_are_reserved_by_transfer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Special tokens behind the new vocabulary, with rows of their own; glitch finds them, and
    plain transformers loads the folder."""
    old = small_models.old_tokenizer()
    folder = small_models.save(small_models.build("llama", old), old, tmp_path / "old")
    new = small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    words = [folder, new, "-o", tmp_path / "out", "--reserve-dummies", 7, "--json"]
    assert 0 == main(["transfer", *map(str, words)])
    report = json.loads(capsys.readouterr().out)
    moved = load_tokenizer(tmp_path / "out")
    dummies = our_unused(moved)
    assert 7 == len(dummies)
    assert min(dummies) >= small_models.new_tokenizer().row_count
    assert not set(moved.model.vocab.values()) & set(dummies)
    assert report["rows"] >= moved.row_count
    import transformers

    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert dummies == auto.convert_tokens_to_ids([f"<|vocabshift_unused_{i}|>" for i in range(7)])
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    rows = model.get_input_embeddings().weight[dummies]
    assert bool((rows.abs().sum(1) > 0).all())
    provenance = json.loads((tmp_path / "out" / "vocabshift.json").read_text())
    assert 7 == provenance["config"]["reserve_dummies"]
    found = glitch(capsys, tmp_path / "out", "--initial", tmp_path / "out")
    assert ("dummies", 7) == tuple(found["summary"]["reference"][k] for k in ("name", "n"))
    with_map = glitch(capsys, tmp_path / "out", "--initial", folder, "--top", 1)
    assert "transfer_map.json" in with_map["summary"]["drift"]["how"]


def test_dummies_are_reserved_by_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "en.txt").write_text("\n".join(small_models.ENGLISH))
    words = ["--corpus", f"en={tmp_path / 'en.txt'}", "--vocab-size", 280, "--reserve-dummies", 5]
    out = ["-o", tmp_path / "bpe", "--json"]
    assert 0 == main(["train", "--recipe", "bpe", *map(str, [*words, *out])])
    assert 280 == json.loads(capsys.readouterr().out)["vocab_size"]
    assert [280, 281, 282, 283, 284] == our_unused(load_tokenizer(tmp_path / "bpe"))
    assert 2 == main(["train", "--recipe", "unigram", *map(str, [*words, "-o", tmp_path / "u"])])
    assert "reserve_dummies is for BPE" in capsys.readouterr().err
    many = [*words[:-1], 10_001, "-o", tmp_path / "many"]
    assert 2 == main(["train", "--recipe", "bpe", *map(str, many)])
    assert "give 0 to 10,000" in capsys.readouterr().err
    assert not list(tmp_path.glob("many*"))  # told before any work


def test_complaints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, before anything is written."""
    tokenizer = small_models.old_tokenizer()
    folder = small_models.save(small_models.build("llama", tokenizer), tokenizer, tmp_path / "m")
    assert "no model folder" in complaint(capsys, tmp_path)
    assert "--initial" in complaint(capsys, folder, "--indicator", "drift")
    assert "has no bias" in complaint(capsys, folder, "--indicator", "bias")
    assert "--reference 'nobody'" in complaint(capsys, folder, "--reference", "nobody")
    same = complaint(capsys, folder, "--html", tmp_path / "x", "--markdown", tmp_path / "x")
    assert "two of the outputs" in same
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    assert "no safetensors file" in complaint(capsys, folder)
    larger = small_models.train(small_models.HINDI, 400, small_models.SPECIALS)
    other = small_models.save(small_models.build("llama", tokenizer), tokenizer, tmp_path / "n")
    for file in larger.save_pretrained(tmp_path / "t").iterdir():
        shutil.copy(file, other)
    assert "not each other's" in complaint(capsys, other)


def test_without_a_reference_a_tied_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An untied one is judged by its norms, and only candidates come of it; norms of a tied one
    are given where they are asked for, with a word of warning."""
    tokenizer = small_models.old_tokenizer()
    impossible = set("ÀÁõö÷øùúûüýþÿ")
    vocab = {token: i for token, i in tokenizer.model.vocab.items() if token not in impossible}
    # The rows stay; that nothing is known to be unused is what the tokenizer says.
    lacking = replace(tokenizer, model=replace(tokenizer.model, vocab=vocab))
    folders = {}
    for kind in ("llama", "llama-tied"):
        folder = tmp_path / kind
        folder.mkdir()
        pretrained_folder.write_files(lacking, folder)
        small_models.build(kind, tokenizer).save_pretrained(folder)
        folders[kind] = folder
    line = complaint(capsys, folders["llama-tied"])
    assert "no row is known to be unused" in line
    assert "--reference" in line
    assert "--indicator drift" in line
    found = glitch(capsys, folders["llama"])
    assert found["summary"]["reference"] is None
    assert not found["summary"]["threshold"]["is_by_reference"]
    assert "head_cosine" not in found["tokens"][0]
    asked = glitch(capsys, folders["llama-tied"], "--indicator", "norm")
    assert "Norms say nothing" in asked["summary"]["notes"][0]
