"""vs.hf_tokenizer where a transformers tokenizer is asked for: datasets, TRL, lm-eval, loaders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402

ROOT = Path(__file__).parents[2]
TEXT = [f"the cat {n} and the other cat sat by the heater, another day {n}" for n in range(40)]
CHAT = "{% for m in messages %}<|turn|>{{ m['role'] }}\n{{ m['content'] }}</s>{% endfor %}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hf")
    tokenizer = small_models.old_tokenizer()
    model = small_models.build("llama-tied", tokenizer, max_position_embeddings=512)
    small_models.save(model, tokenizer, folder / "llama-hindi")
    (folder / "corpus.txt").write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def hf(place: Path) -> Any:
    hf = vs.hf_tokenizer(place / "llama-hindi")
    hf.chat_template = CHAT
    return hf


@pytest.fixture
def plain(place: Path) -> Any:
    plain = transformers.AutoTokenizer.from_pretrained(place / "llama-hindi")
    plain.chat_template = CHAT
    return plain


@pytest.mark.no_tsan
def test_the_example_of_the_docs(place: Path, tmp_path: Path, plain: Any) -> None:
    """Two processes; a second program finds the rows that the first one has cached."""
    page = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    found = re.search(r"^## In place of.*?^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    shown = "print(json.dumps([encoded[:], [file['filename'] for file in encoded.cache_files]]))"
    (tmp_path / "page.py").write_text(f"import json\n{found[1]}\n{shown}\n")
    outputs = [
        subprocess.run(
            [sys.executable, tmp_path / "page.py"],
            cwd=place,
            env=os.environ | {"HF_DATASETS_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    rows, files = json.loads(outputs[0])
    assert plain(TEXT, truncation=True, max_length=256).data == rows
    assert files
    assert outputs[0] == outputs[1]


@pytest.mark.filterwarnings("ignore:.*pin_memory")
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated")  # TRL's
def test_trl_trains_with_it(place: Path, tmp_path: Path, hf: Any, plain: Any) -> None:
    """On text and on chats: the rows that TRL makes are those of transformers' tokenizer."""
    trl = pytest.importorskip("trl")
    chats = [[{"role": "user", "content": t}, {"role": "assistant", "content": t}] for t in TEXT]
    for data in ({"text": TEXT}, {"messages": chats}):
        rows = []
        for tokenizer in (hf, plain):
            trainer = trl.SFTTrainer(
                model=str(place / "llama-hindi"),
                args=trl.SFTConfig(
                    str(tmp_path), max_steps=1, max_length=64, report_to=[], bf16=False
                ),
                train_dataset=datasets.Dataset.from_dict(data),
                processing_class=tokenizer,
            )
            rows.append(trainer.train_dataset[:])
        assert rows[0] == rows[1]
        assert 40 == len(rows[0]["input_ids"])


@pytest.mark.filterwarnings("ignore")  # lm-eval's
def test_lm_eval_scores_with_it(place: Path, hf: Any, plain: Any) -> None:
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = transformers.AutoModelForCausalLM.from_pretrained(place / "llama-hindi")
    requests = [
        Instance("loglikelihood", {}, ("the cat and", f" the other {text}"), i)
        for i, text in enumerate(TEXT[:6])
    ]
    scores = []
    for tokenizer in (hf, plain):
        lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=2)
        assert type(tokenizer) is type(lm.tokenizer)
        scores.append(lm.loglikelihood(requests, disable_tqdm=True))
    assert scores[0] == scores[1]


@pytest.mark.no_tsan
def test_collators_and_loaders_in_processes(hf: Any, plain: Any) -> None:
    """A worker gets the tokenizer, and sends back batches with their encodings."""
    batches = [
        list(
            torch.utils.data.DataLoader(
                TEXT,
                batch_size=8,
                num_workers=1,
                multiprocessing_context="fork",
                collate_fn=lambda texts, hf=hf: hf(texts, padding=True, return_tensors="pt"),
            )
        )
        for hf in (hf, plain)
    ]
    for ours, expected in zip(*batches, strict=True):
        assert expected["input_ids"].tolist() == ours["input_ids"].tolist()
        assert expected.word_ids(3) == ours.word_ids(3)
    collate = transformers.DataCollatorForLanguageModeling(hf, mlm=False)
    made = collate([hf(text) for text in TEXT[:3]])
    assert (3, len(made["input_ids"][0])) == tuple(made["labels"].shape)


def test_transformers_4(tmp_path: Path) -> None:
    """The property tests in the other version."""
    python = os.environ.get("VOCABSHIFT_TRANSFORMERS4")
    if not python:
        pytest.skip("needs VOCABSHIFT_TRANSFORMERS4: a python with transformers 4 (CONTRIBUTING)")
    tests = "tests/property/test_hf_tokenizer.py"
    command = [python, "-m", "pytest", "-q", "-n", "0", "-m", "not shared", tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout[-2000:]
