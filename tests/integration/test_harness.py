"""`vocabshift harness` on checkpoints made here, held against lm-eval called by hand."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")

import torch
import transformers

import small_models
import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.evaluation.harness import run as harness
from vocabshift.evaluation.harness.known_tasks import FAMILIES, requests_of
from vocabshift.evaluation.harness.rows import questions_sha256

# Reading the names of all its tasks takes nine seconds, once in a worker.
pytestmark = pytest.mark.xdist_group("lm-eval")

TOPICS = (
    *("science/technology", "travel", "politics", "sports", "health", "entertainment"),
    "geography",
)
SENTENCES = (
    *("the cat sat by the heater", "a letter went by train", "they cast another vote"),
    *("she ran the other race", "he ate a day old pear", "we heard an old song", "a river bends"),
)


def write_jsonl(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    file.write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models whose answers differ, one that lacks its weights, and small files for tasks."""
    place = tmp_path_factory.mktemp("harness")
    tokenizer = small_models.old_tokenizer()
    for name, kind, seed in (("one", "llama", 3), ("two", "llama-tied", 4)):
        model = small_models.build(kind, tokenizer, max_position_embeddings=1024)
        torch.manual_seed(seed)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        small_models.save(model, tokenizer, place / name)
    small_models.save(small_models.build("llama", tokenizer), tokenizer, place / "broken")
    (place / "broken" / "model.safetensors").write_bytes(b"no weights")
    joining = small_models.joining_tokenizer((":", "Ġ"), (":Ġ", "t"), ("t", "h"), ("th", "e"))
    model = small_models.build("llama", joining, max_position_embeddings=1024)
    small_models.save(model, joining, place / "joining")
    data = place / "data"
    for language in ("en", "et"):
        for split, times in (("train", 2), ("dev", 1), ("test", 3)):
            rows = [
                f"{number}\t{TOPICS[(number + len(language)) % 7]}\t{text} {number}\n"
                for number, text in enumerate(SENTENCES * times)
            ]
            file = data / "sib200" / language / f"{split}.tsv"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("index_id\tcategory\ttext\n" + "".join(rows), encoding="utf-8")
    for split in ("val", "test"):
        rows = [
            {
                "premise": f"{text.capitalize()} {number}.",
                "choice1": f"The {text} again.",
                "choice2": "Another day came.",
                "question": ("cause", "effect")[number % 2],
                "label": number % 2,
            }
            for number, text in enumerate(SENTENCES * 2)
        ]
        write_jsonl(data / "xcopa" / "et" / f"{split}.et.jsonl", rows)
    for split in ("train", "test"):
        rows = [
            {
                "question": f"A cat has {n} letters and gets one. How many?",
                "answer": f"#### {n + 1}",
            }
            for n in range(8)
        ]
        write_jsonl(data / "gsm8k" / f"{split}.jsonl", rows)
    return place


BY_HAND = """\
include: {base}
task: by_hand_{name}
dataset_path: {builder}
dataset_name: null
dataset_kwargs:
  data_files: {files}
{more}
"""


def by_hand(place: Path, model: str, limit: int | None) -> dict[str, Any]:
    """lm-eval's own results of three tasks, as a user would set them up for these files."""
    import lm_eval
    from lm_eval import evaluator
    from lm_eval.tasks import TaskManager

    evaluator.add_env_info = lambda _: None  # seconds of `pip list` that change no figure
    own = Path(lm_eval.__file__).parent / "tasks"
    data = place / "data"
    folder = place / "by-hand"
    folder.mkdir(exist_ok=True)
    tsv = '  sep: "\\t"\n  quoting: 3'
    shots = "num_fewshot: 5"
    tasks = {
        "sib": (harness.TASKS / "sib200" / "_base_yaml", "csv", tsv, "sib200/en/{}.tsv", "dev"),
        "copa": (own / "xcopa" / "default_et.yaml", "json", shots, "xcopa/et/{}.et.jsonl", "val"),
        "gsm": (own / "gsm8k" / "gsm8k.yaml", "json", "", "gsm8k/{}.jsonl", ""),
    }
    for name, (base, builder, more, pattern, validation) in tasks.items():
        splits = {"test": "test", **({"validation": validation} if validation else {})}
        if name != "copa":
            splits["train"] = "train"
        files = {split: str(data / pattern.format(part)) for split, part in splits.items()}
        text = BY_HAND.format(base=base, name=name, builder=builder, files=files, more=more)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    with harness._accelerate_as_it_was():
        found = lm_eval.simple_evaluate(
            model="hf",
            model_args={"pretrained": str(place / model), "dtype": "float32"},
            device="cpu",
            batch_size=4,
            limit=limit,
            tasks=[f"by_hand_{name}" for name in tasks],
            task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        )
    assert found is not None
    return dict(found["results"])


def run_json(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    status = main(["harness", *map(str, words), "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return status, dict(json.loads(out))


def test_gives_the_numbers_of_lm_eval_called_by_hand(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three tasks, two models: value, error and number of questions, to the last digit."""
    tasks = ["sib200:en", "xcopa:et", "gsm8k"]
    options = ["--data", place / "data", "--batch-size", 4, "--limit", 6, "--device", "cpu"]
    models = [place / "one", place / "two"]
    status, found = run_json(capsys, *models, "--tasks", *tasks, *options)
    assert (status, found["failures"]) == (0, [])
    rows = {(row["subject"], row["metric"]): row for row in found["results"]}
    assert {row["language"] for row in found["results"]} == {"en", "et"}
    asked = (place / "data" / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines()[:6]
    text = questions_sha256(map(json.loads, asked))
    saved = (place / "one" / "tokenizer.json").read_bytes()
    assert {(text, sha256(saved).hexdigest())} == {
        (row["text_sha256"], row["tokenizer_sha256"])
        for (subject, metric), row in rows.items()
        if subject == "one" and metric.startswith("gsm8k/")
    }
    seen = set()
    for subject in ("one", "two"):
        theirs = by_hand(place, subject, limit=6)
        for metric, task, key in (
            ("sib200/acc", "sib", "acc,none"),
            ("xcopa/acc", "copa", "acc,none"),
            ("gsm8k/exact_match:strict-match", "gsm", "exact_match,strict-match"),
            ("gsm8k/exact_match:flexible-extract", "gsm", "exact_match,flexible-extract"),
        ):
            row, expected = rows[subject, metric], theirs[f"by_hand_{task}"]
            error = expected[key.replace(",", "_stderr,")]
            assert row["value"] == expected[key]
            assert row["n"] == 6
            assert row["ci_low"] == pytest.approx(row["value"] - 1.96 * error)
            assert row["ci_high"] == pytest.approx(row["value"] + 1.96 * error)
            seen.add(row["value"])
    assert len(seen - {0.0, 1.0}) > 1  # the answers are not all the same
    published = {row["source"] for row in found["published"]}
    assert any("Table 5" in source for source in published)
    assert any("Table 8" in source for source in published)


def test_equals_log_likelihoods_summed_without_lm_eval(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIB-200 without examples: the topic whose tokens are likeliest, by transformers alone."""
    model = transformers.AutoModelForCausalLM.from_pretrained(place / "one", dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / "one")
    lines = (place / "data" / "sib200" / "en" / "test.tsv").read_text().split("\n")[1:-1]
    n_right = 0
    for line in lines:
        _, topic, text = line.split("\t")
        head = f'Topic Classification: {", ".join(TOPICS)}. \n\nThe topic of "[{text}]" is:'
        prices = []
        for choice in TOPICS:
            ids = tokenizer(f"{head} {choice}", return_tensors="pt")["input_ids"]
            n_before = len(tokenizer(head)["input_ids"])
            with torch.no_grad():
                known = model(ids).logits[0, :-1].double().log_softmax(-1)
            own = known.gather(-1, ids[0, 1:, None])[n_before - 1 :]
            prices.append(float(own.sum()))
        n_right += TOPICS[prices.index(max(prices))] == topic
    assert 0 < n_right < len(lines)
    options = ["--data", place / "data", "--shots", 0]
    status, found = run_json(capsys, place / "one", "--tasks", "sib200:en", *options)
    (row,) = found["results"]
    assert (status, row["n"]) == (0, len(lines))
    assert row["value"] == pytest.approx(n_right / len(lines))


def test_answers_that_share_a_token_with_their_context_are_counted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each topic after "is:" begins in a token ": ": a row, a count and a note for that model."""
    options = ["--data", place / "data", "--limit", 3, "--shots", 0, "--batch-size", 2]
    words = [place / "joining", place / "one", "--tasks", "sib200:en", *options]
    plain: set[float] = set()
    for border in ("heal", "split", "lm-eval"):
        status, found = run_json(capsys, *words, "--border", border)
        assert (status, border) == (0, found["border"])
        rows = {(row["subject"], row["metric"]): row for row in found["results"]}
        touched = rows.pop(("joining", "sib200/touched"))
        assert (1.0, 21, "en") == (touched["value"], touched["n"], touched["language"])
        assert {("joining", "sib200/acc"), ("one", "sib200/acc")} == set(rows)
        plain.add(rows["one", "sib200/acc"]["value"])
        count = {"subject": "joining", "task": "sib200", "language": "en"}
        assert [count | {"requests": 21, "touched": 21}] == found["touched"]
        (note,) = found["notes"]
        assert "21 of 21 requests" in note
        assert ("lm-eval loses the first words" in note) == (border == "lm-eval")
    assert len(plain) == 1
    assert main(["harness", *map(str, words)]) == 0
    said = capsys.readouterr()
    assert "sib200/touched" in said.out
    assert "21 of 21 requests" in said.out + said.err


def test_what_fails_is_told_and_the_rest_goes_on(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model without weights, a task without data: figures of the others, kept for the next
    run of the same command, which does only what is missing."""
    out = place / "rows.jsonl"
    words = [place / "broken", place / "one", "--tasks", "sib200", "belebele:et"]
    words += ["--data", place / "data", "--limit", 2, "--output", out]
    status, found = run_json(capsys, *words)
    assert status == 2
    assert [(r["subject"], r["language"]) for r in found["results"]] == [
        ("one", "en"),
        ("one", "et"),
    ]
    reasons = {(f["subject"], f["task"]): f["reason"] for f in found["failures"]}
    assert set(reasons) == {
        *(("broken", task) for task in ("sib200:en", "sib200:et", "belebele:et")),
        ("one", "belebele:et"),
    }
    assert "cannot be loaded" in reasons["broken", "sib200:en"]
    assert "--data" in reasons["one", "belebele:et"]
    assert not out.exists()
    assert out.with_name("rows.jsonl.progress").exists()

    words.remove(place / "broken")
    words.remove("belebele:et")
    assert main(["harness", *map(str, words)]) == 2  # other models: not dropped unasked
    assert "--force" in capsys.readouterr().err
    assert run_json(capsys, *words, "--force")[0] == 0
    first = out.read_text(encoding="utf-8")
    assert not out.with_name("rows.jsonl.progress").exists()

    ran: list[str] = []
    plain = harness._evaluate

    def evaluate(lm: Any, loaded: Any, subject: str, request: Any, limit: Any) -> Any:
        ran.append(request.label)
        if ran == ["sib200:en", "sib200:et"]:
            raise KeyboardInterrupt
        return plain(lm, loaded, subject, request, limit)

    monkeypatch.setattr(harness, "_evaluate", evaluate)
    words.append("--force")
    assert main(["harness", *map(str, words)]) == 130
    assert "rows.jsonl.progress" in capsys.readouterr().err
    assert main(["harness", *map(str, words)]) == 0
    assert ran == ["sib200:en", "sib200:et", "sib200:et"]
    assert out.read_text(encoding="utf-8") == first
    assert "sib200/acc" in capsys.readouterr().out


def test_prompts_that_do_not_fit_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """lm-eval cuts them on the left and says so in its log alone."""
    short = place / "short"
    small_models.save(
        small_models.build("llama", small_models.old_tokenizer(), max_position_embeddings=64),
        small_models.old_tokenizer(),
        short,
    )
    options = ["--data", place / "data", "--limit", 2]
    status, found = run_json(capsys, short, "--tasks", "sib200:en", *options)
    assert status == 0
    assert "64 positions and were cut" in found["notes"][0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{one} --tasks sib2000", "did you mean sib200"),
        ("{one} --tasks sib200:xx", "has no language 'xx'"),
        ("{one} --tasks sib200:en --data {nothing}", "is no folder"),
        ("{one} --tasks sib200:en --output {one}", "also an input"),
        ("{one} --tasks sib200:en --batch-size many", "'many'"),
        ("{one} --tasks sib200:en --border none", "'none'"),
        ("{one}", "--tasks"),
        ("--tasks sib200", "MODEL"),
    ],
)
def test_bad_input(
    words: str, message: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit 2, nothing on stdout."""
    names = {"one": place / "one", "nothing": place / "nothing"}
    assert main(["harness", *words.format(**names).split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.rstrip("\n").split("\n")[-1]


def test_a_model_without_an_eos_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """lm-eval pads and ends texts with it."""
    tokenizer = small_models.train(small_models.ENGLISH, 283, small_models.SPECIALS)
    model = small_models.build("llama", tokenizer, eos_token_id=None)
    model.generation_config.eos_token_id = None
    small_models.save(model, tokenizer, place / "endless")
    words = [place / "endless", "--tasks", "sib200:en", "--data", place / "data", "--limit", 1]
    status, found = run_json(capsys, *words)
    assert status == 2
    assert "EOS token" in found["failures"][0]["reason"]


def test_every_task_is_there_and_none_hides_one_of_lm_eval() -> None:
    """Names of families exist in our folder or in lm-eval's; ours are not taken by it."""
    theirs = harness._task_manager(is_own=False).task_index
    ours = harness._task_manager(is_own=True).task_index
    named = {task for family in FAMILIES.values() for task in family.tasks.values()}
    assert [] == sorted(named - set(theirs))
    written = {file.stem for file in harness.TASKS.glob("*/*.yaml")}
    assert written == set(ours)
    assert written <= named | {
        f"{family.name}_{language}"
        for family in FAMILIES.values()
        if family.local is not None
        for language in family.local.languages
    }
    for name in ours:
        assert theirs[name].yaml_path.is_relative_to(harness.TASKS)
    import lm_eval

    own = Path(lm_eval.__file__).parent / "tasks"
    assert set() == set(ours) & {file.stem for file in own.rglob("*.yaml")}


def test_a_metric_that_is_a_program_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """lm-eval would fetch it from the Hub and run it."""
    words = [place / "one", "--tasks", "sib_hau_prompt_1", "--limit", 1]
    status, found = run_json(capsys, *words)
    assert status == 2
    assert "program from the Hub" in found["failures"][0]["reason"]


@pytest.mark.shared
def test_five_tasks_run_from_their_release_files(
    place: Path, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIB-200, XCOPA, Indic MMLU, GSM8K and MGSM, offline."""
    tasks = ["sib200:hi,sat", "xcopa:et,ta", "mmlu_indic:hi,brx", "gsm8k", "mgsm:bn,te"]
    options = ["--data", shared_data / "tasks", "--limit", 1, "--shots", 1, "--batch-size", 8]
    status, found = run_json(capsys, place / "one", "--tasks", *tasks, *options)
    assert (status, found["failures"]) == (0, [])
    assert {(row["metric"].split("/")[0], row["language"]) for row in found["results"]} == {
        (request.name, request.language) for request in requests_of(tasks)
    }


def test_every_model_sees_the_same_prompts(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are built once; their examples are drawn anew from the same seed for each model."""
    from lm_eval.models.huggingface import HFLM

    seen: list[list[Any]] = []

    def loglikelihood(_: Any, requests: list[Any]) -> list[tuple[float, bool]]:
        seen.append([request.args for request in requests])
        return [(0.0, False)] * len(requests)

    monkeypatch.setattr(HFLM, "loglikelihood", loglikelihood)
    options = ["--data", place / "data", "--limit", 3]
    status, _ = run_json(capsys, place / "one", place / "two", "--tasks", "sib200:en", *options)
    assert status == 0
    first, second = seen
    assert first == second
    assert len({context for context, _ in first}) == 3


def test_tasks_are_named_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the command line, or as requests made before; each name is expanded."""
    asked: list[str] = []
    monkeypatch.setattr(
        harness, "_check_names", lambda requests, _: asked.extend(r.label for r in requests)
    )
    report = vs.run_harness([], ["sib200:hi,ta", *requests_of(["xcopa:ta"])])
    assert vs.Results() == report.results
    assert [r.label for r in requests_of(["sib200:hi,ta", "xcopa:ta"])] == asked
    with pytest.raises(ValueError, match="sib200"):
        vs.run_harness([], ["sib200:xx"])
    with pytest.raises(ValueError, match="heal, split, lm-eval"):
        vs.run_harness([], ["sib200:hi"], border="none")


def test_the_list_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Tasks with what they ask, and the suites of the papers."""
    assert main(["harness", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("sib200", "what is asked", "ist-8: "))
