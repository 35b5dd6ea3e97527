"""Our tasks as a model sees them: context and choices, letter by letter, of rows as on the Hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")

from vocabshift.evaluation.harness import run as harness
from vocabshift.evaluation.harness.known_tasks import requests_of

LETTERED = "Question: Who sat?\nA. the cat\nB. the day\nC. the sea\nD. the sun\nAnswer:"
CHOICES = ["the cat", "the day", "the sea", "the sun"]

# task -> splits of rows, and the (context, continuation) pairs of the first question
PROMPTS: dict[str, tuple[dict[str, list[dict[str, Any]]], list[tuple[str, str]]]] = {
    "winogrande:et": (
        {
            "test": [
                {
                    "sentence": "Kass ja hiir: _ magab.",
                    "option1": "kass",
                    "option2": "hiir",
                    "answer": "1",
                }
            ]
        },
        [("Kass ja hiir: kass", " magab."), ("Kass ja hiir: hiir", " magab.")],
    ),
    "indic_copa:hi": (
        {
            "test": [
                {
                    "premise": "दीपक जला।",
                    "choice1": "अँधेरा गया।",
                    "choice2": "दिन गया।",
                    "question": "effect",
                    "label": 0,
                }
            ]
        },
        [("दीपक जला इसलिए", " अँधेरा गया।"), ("दीपक जला इसलिए", " दिन गया।")],
    ),
    "indic_sentiment:ta": (
        {
            "test": [
                {"INDIC REVIEW": "எதுவும் இல்லை", "LABEL": None},
                {"INDIC REVIEW": "மிக நல்லது", "LABEL": "Positive"},
            ]
        },
        [("Review: மிக நல்லது\nSentiment:", f" {word}") for word in ("Positive", "Negative")],
    ),
    "indic_xnli:bn": (
        {"test": [{"premise": "বৃষ্টি হল", "hypothesis": "পথ ভেজা", "label": 1}]},
        [("", f" বৃষ্টি হল, সঠিক? {word}, পথ ভেজা") for word in ("হ্যাঁ", "তাই", "না")],
    ),
    "indic_paraphrase:te": (
        {"test": [{"sentence1": "వాన వచ్చింది", "sentence2": "వర్షం పడింది", "label": 1}]},
        [("", f" వాన వచ్చింది, నిజం? {word}, వర్షం పడింది") for word in ("కాదు", "అవును")],
    ),
    "milu:gu": (
        {
            "test": [
                {
                    "question": " Who sat?",
                    **{f"option{n}": text for n, text in enumerate(CHOICES, 1)},
                    "target": "option3",
                }
            ],
        },
        [(LETTERED, f" {letter}") for letter in "ABCD"],
    ),
    "arc_challenge_indic:kn": (
        {
            split: [
                {
                    "question": "Who sat?",
                    "choices": {"text": CHOICES, "label": ["A", "B", "C", "D"]},
                    "answerKey": "B",
                }
            ]
            for split in ("validation", "test")
        },
        [("Question: Who sat?\nAnswer:", f" {choice}") for choice in CHOICES],
    ),
    "triviaqa_indic:ml": (
        {"validation": [{"question": "Who sat?", "choices": CHOICES, "answer": "C"}]},
        [(LETTERED, f" {letter}") for letter in "ABCD"],
    ),
    "mmlu_indic:mr": (
        {
            split: [{"question": "Who sat?", "choices": CHOICES, "answer": 2}]
            for split in ("validation", "test")
        },
        [(LETTERED, f" {letter}") for letter in "ABCD"],
    ),
}
TARGETS = {
    "winogrande:et": 0,
    "indic_copa:hi": 0,
    "indic_sentiment:ta": "Positive",
    "indic_xnli:bn": 1,
    "indic_paraphrase:te": 1,
    "milu:gu": 2,
    "arc_challenge_indic:kn": 1,
    "triviaqa_indic:ml": 2,
    "mmlu_indic:mr": 2,
}


def build(spec: str, data: Path, cache: Path, shots: int) -> Any:
    """The task as lm-eval builds it, its requests made."""
    (request,) = requests_of([spec], shots)
    loaded = harness.BuiltTasks(harness._task_manager(is_own=True), data, str(cache)).get(request)
    (task,) = loaded["tasks"].values()
    task.build_all_requests(limit=1, rank=0, world_size=1)
    return task


@pytest.mark.parametrize("spec", PROMPTS)
def test_prompts(spec: str, tmp_path: Path) -> None:
    """Context, continuations and answer of the first question."""
    splits, expected = PROMPTS[spec]
    (request,) = requests_of([spec])
    folder = tmp_path / "data" / request.task
    folder.mkdir(parents=True)
    for split, rows in splits.items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    task = build(spec, tmp_path / "data", tmp_path / "cache", shots=0)
    assert [instance.args for instance in task.instances] == expected
    doc = next(iter(task.eval_docs))
    if spec == "winogrande:et":
        assert task.doc_to_text(doc) == TARGETS[spec]
    else:
        assert task.doc_to_target(doc) == TARGETS[spec]


def test_sib200_and_its_examples(tmp_path: Path) -> None:
    """The prompt of continued BPE, Figure 10: the instruction once, then examples."""
    folder = tmp_path / "sib200" / "et"
    folder.mkdir(parents=True)
    for split, text in (("train", 'üks "kaks"'), ("dev", "neli"), ("test", '"viis')):
        (folder / f"{split}.tsv").write_text(f"index_id\tcategory\ttext\n1\ttravel\t{text}\n")
    task = build("sib200:et", tmp_path, tmp_path / "cache", shots=1)
    first, *_ = [instance.args for instance in task.instances]
    assert first == (
        "Topic Classification: science/technology, travel, politics, sports, health, "
        "entertainment, geography. \n\n"
        'The topic of "[üks "kaks"]" is: travel\n\nThe topic of "["viis]" is:',
        " science/technology",
    )


def test_mgsm_and_its_examples(tmp_path: Path) -> None:
    """Question and number; an example is never the question itself."""
    (tmp_path / "mgsm").mkdir()
    (tmp_path / "mgsm" / "mgsm_de.tsv").write_text("Wie viele?\t3\nUnd dann?\t4\n")
    task = build("mgsm:de", tmp_path, tmp_path / "cache", shots=1)
    context, settings = task.instances[0].args
    assert context == "Frage: Und dann?\nAntwort: 4\n\nFrage: Wie viele?\nAntwort:"
    assert settings["until"] == ["\n"]
    assert task.doc_to_target(next(iter(task.eval_docs))) == "3"


def test_flores_from_the_files_of_its_archive(tmp_path: Path) -> None:
    """Line n of two languages, examples from dev."""
    for split in ("dev", "devtest"):
        folder = tmp_path / "flores200_dataset" / split
        folder.mkdir(parents=True)
        for code, texts in (("eng_Latn", ("One", "Two")), ("est_Latn", ("Üks", "Kaks"))):
            text = "".join(f"{word} {split}\n" for word in texts)
            (folder / f"{code}.{split}").write_text(text, encoding="utf-8")
    task = build("flores:en-et", tmp_path, tmp_path / "cache", shots=1)
    context = task.instances[0].args[0]
    start = "Translate the text from English to Estonian. \n\nEnglish: "
    assert context in {
        f"{start}{source} dev\nEstonian: {target} dev\n\nEnglish: One devtest\nEstonian:"
        for source, target in (("One", "Üks"), ("Two", "Kaks"))
    }
    assert task.doc_to_target(next(iter(task.eval_docs))) == "Üks devtest"
