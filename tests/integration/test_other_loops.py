"""The examples of docs/other-loops.md, run as they are on a small model; matching in a Trainer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("datasets")

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.cpt.likelihood_matching import boundary_mask, matching_loss  # noqa: E402
from vocabshift.cpt.packing import RowChunks  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs" / "other-loops.md"
NEW_IDS = [270, 280, 281]
TEXT = [f"the cat {n} and the other बिल्ली और दूसरी sat by the heater {n}" for n in range(400)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, a model of it with another tokenizer, packed text, and a teacher's reading of it."""
    folder = tmp_path_factory.mktemp("loops")
    old = small_models.old_tokenizer()
    model = small_models.build("llama-tied", old, max_position_embeddings=512)
    small_models.save(model, old, folder / "llama")
    transfer_folder(folder / "llama", small_models.new_tokenizer(), folder / "llama-hindi")
    (folder / "text.txt").write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    corpus = vs.Corpus.from_files({"hi": str(folder / "text.txt")})
    tokenizer = vs.load_tokenizer(folder / "llama-hindi")
    vs.pack_corpus(tokenizer, corpus, folder / "packed", vs.PackOptions(eos="</s>"))
    spec = f"hi={folder / 'text.txt'}"
    assert 0 == main(
        ["teach", str(folder / "llama"), spec, "-o", str(folder / "teacher"), "--json"]
    )
    return folder


def example(heading: str) -> str:
    """The code below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}$.*?^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def run(code: str, **names: Any) -> dict[str, Any]:
    exec(compile(code, PAGE.name, "exec"), names)  # our own page
    return names


def table(model: Any) -> Any:
    return model.get_input_embeddings().weight.detach()


@pytest.mark.filterwarnings("ignore:.*pin_memory")  # the examples are for a GPU
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated")  # TRL's
@pytest.mark.parametrize("heading", ["Plain PyTorch", "`transformers.Trainer`", "TRL"])
def test_the_examples(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heading: str
) -> None:
    """They run, the new rows learn, and everything else stays: what they train fits in a pack."""
    if heading == "TRL":
        pytest.importorskip("trl", reason="TRL is not installed: pip install trl")
    for name in ("llama", "llama-hindi", "packed"):
        (tmp_path / name).symlink_to(place / name)
    monkeypatch.chdir(tmp_path)
    model = run(example(heading), new_ids=NEW_IDS)["model"]
    before = transformers.AutoModelForCausalLM.from_pretrained("llama-hindi")
    changed = (table(model) != table(before)).any(dim=1).nonzero()[:, 0].tolist()
    assert NEW_IDS == changed
    model.save_pretrained("saved")
    made = vs.make_language_pack("saved", "llama", "pack")
    assert 1 == len(made["tables"])


@pytest.fixture
def matching(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page's last example leaves behind."""
    monkeypatch.chdir(place)
    arguments = transformers.TrainingArguments(
        str(tmp_path), max_steps=3, report_to=[], logging_steps=1, save_strategy="no", use_cpu=True
    )
    return run(
        example("Likelihood matching in a Trainer"),
        vs=vs,
        Trainer=transformers.Trainer,
        model=transformers.AutoModelForCausalLM.from_pretrained("llama-hindi"),
        arguments=arguments,
    )


def test_matching_is_the_objective_of_cpt(matching: dict[str, Any]) -> None:
    """The loss of a batch is that of `matching_loss`, for each target; plain rows have the nats."""
    data, model = matching["data"], matching["model"].eval()
    trainer = matching["MatchingTrainer"](
        model=model, args=matching["arguments"], train_dataset=data
    )
    batch = transformers.default_data_collator(data.__getitems__([0, 3]))
    assert (batch["chunk_numbers"] >= 0).any()
    chunks = RowChunks(batch["chunk_numbers"], batch["chunk_logprobs"])
    expected = matching_loss(
        model,
        batch["input_ids"],
        chunks,
        data.config,
        data.special,
        boundary=boundary_mask(model, data.special),
    )
    with torch.no_grad():
        loss = trainer.compute_loss(model, dict(batch))
    assert float(loss) == pytest.approx(
        float(expected.loss.detach()) / int(expected.n_targets), rel=1e-5
    )
    assert int(expected.n_targets) == int(trainer._get_num_items_in_batch([batch], "cpu"))
    rows = vs.packed_dataset("packed", 16).with_format("torch")[:2]
    plain = {name: rows[name] for name in ("input_ids", "labels")}
    with torch.no_grad():
        nats = float(model(**plain).loss)
        assert nats == pytest.approx(float(trainer.compute_loss(model, dict(plain))), rel=1e-4)


@pytest.mark.filterwarnings("ignore:.*pin_memory")
@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.* is deprecated")
def test_matching_in_trl(matching: dict[str, Any], tmp_path: Path) -> None:
    """Steps are those of a Trainer, though TRL takes no such data and its collator drops chunks."""
    trl = pytest.importorskip("trl", reason="TRL is not installed: pip install trl")
    kinds = {transformers.Trainer: transformers.TrainingArguments, trl.SFTTrainer: trl.SFTConfig}
    losses = []
    for base, config in kinds.items():
        kind = type("Matching", (vs.LikelihoodMatching, base), {})
        arguments = config(
            output_dir=str(tmp_path),
            max_steps=2,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            learning_rate=1e-3,
        )
        trainer = kind(
            model=transformers.AutoModelForCausalLM.from_pretrained("llama-hindi"),
            args=arguments,
            train_dataset=matching["data"],
            eval_dataset=vs.packed_dataset("packed", 16).select(range(3)),
            processing_class=transformers.AutoTokenizer.from_pretrained("llama-hindi"),
        )
        trainer.train()
        losses.append([line["loss"] for line in trainer.state.log_history if "loss" in line])
        losses[-1].append(trainer.evaluate()["eval_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_matching_needs_its_data(matching: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give what matched_dataset makes"):
        matching["MatchingTrainer"](
            model=matching["model"], args=matching["arguments"], train_dataset=[]
        )
    with pytest.raises(ValueError, match="'causal'; it must be 'likelihood-matching'"):
        vs.matched_dataset(
            matching["model"], "llama-hindi", "packed", matching["teacher"], vs.LoopConfig()
        )
