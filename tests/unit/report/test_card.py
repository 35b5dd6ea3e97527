"""Cards from hand-made results and records, to the letter."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.report.card import render_card
from vocabshift.report.card_facts import Source, TokenizerFacts, read_facts, read_sources
from vocabshift.results import Result, Results

pytest.importorskip("huggingface_hub")

FACTS = TokenizerFacts(
    name="mill",
    version="0.1.0",
    operation="train",
    config={"recipe": "ist", "vocab_size": 400},
    config_hash="0123456789abcdef",
    corpus_fingerprint="fedcba9876543210",
    figures={"vocab_size": 400, "superwords": 12, "training_documents": 35},
    sha256="ab" * 32,
    n_bytes=12_345,
)
RESULTS = Results(
    [
        Result("mill", "hi", "fertility", 1.25, 9, 1.2, 1.3),
        Result("bpe", "hi", "fertility", 2.0, 9),
        Result("mill", "en", "fertility", 1.75, 7, 1.7, 1.8),
        Result("bpe", "en", "fertility", 1.5, 7),
        Result("mill", "all", "vocab_size", 400.0, 400),
    ]
)
SOURCES = [
    Source("hi", "tales", "CC BY 4.0", "open", 1_500_000),
    Source("hi", "hymns", "CC BY-NC 4.0", "nc", 500_000),
    Source("ta", "tales", "CC BY 4.0", "open", 500_000),
]

CARD = """---
language:
- hi
- ta
library_name: transformers
license: other
tags:
- tokenizer
- vocabshift
- ist
model-index:
- name: mill
  results:
  - task:
      type: text-generation
    dataset:
      name: Mill talk
      type: text
      config: hi
    metrics:
    - type: fertility
      value: 1.25
      name: fertility
  - task:
      type: text-generation
    dataset:
      name: Mill talk
      type: text
      config: en
    metrics:
    - type: fertility
      value: 1.75
      name: fertility
---

# mill

A tokenizer for `transformers` and `tokenizers`, written by `vocabshift train`, recipe ist. \
400 tokens in its vocabulary. 12 of them reach across words. Learned from 35 documents.

## Use

```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("…")  # this folder, or its name on the Hub
```

## Training text

| class of licence | sources | MB | share |
| --- | ---: | ---: | ---: |
| open | 1 | 2.0 | 80.0% |
| nc | 1 | 0.5 | 20.0% |

| source | licence | class | languages | MB |
| --- | --- | --- | ---: | ---: |
| tales | CC BY 4.0 | open | 2 | 2.0 |
| hymns | CC BY-NC 4.0 | nc | 1 | 0.5 |

| language | open, MB | nc, MB |
| --- | ---: | ---: |
| hi | 1.5 | 0.5 |
| ta | 0.5 | 0.0 |

## Figures

Measured on: Mill talk. A value by language rests on 7 to 9 lines; ± is half of its \
95 % bootstrap interval over lines, where one was computed.

- fertility (tokens per word) ↓

### By language

| language | fertility |
| --- | ---: |
| en | 1.75 ±0.05 |
| hi | 1.25 ±0.05 |
| mean | 1.50 |

### As a whole

| metric | value |
| --- | ---: |
| vocabulary size (tokens of the model) | 400 |

### Beside others, means

| tokenizer | fertility |
| --- | ---: |
| mill | **1.50** |
| bpe | 1.75 |

- Over 2 languages: en, hi.

## Limits

- Tested on nothing else.
- The intervals say how much a figure would vary with other lines of the same text; they say \
nothing of text of another kind.
- Fertility counts words between blanks: it compares tokenizers on one language, not languages \
with each other.
- 20% of the training text may not be passed on freely (nc): look at the licences before you \
publish the tokenizer.
- Little training text (under 1 MB): ta.
- Measured without training text: en.
- Trained and not measured: ta.

## Rebuild

This command writes the same `tokenizer.json`, to the byte, from the same text:

```sh
make mill
```

|  |  |
| --- | --- |
| sha256 of tokenizer.json | abababababababababababababababababababababababababababababababab |
| its size, bytes | 12,345 |
| vocabshift | 0.1.0 |
| config hash | 0123456789abcdef |
| fingerprint of the text | fedcba9876543210 |

```json
{
  "recipe": "ist",
  "vocab_size": 400
}
```
"""


def test_a_card() -> None:
    card = render_card(
        RESULTS,
        FACTS,
        sources=SOURCES,
        languages=["hi", "ta"],
        license="other",
        evaluated_on="Mill talk",
        rebuild="make mill",
        limits=["Tested on nothing else."],
    )
    assert CARD == card


def test_the_hub_reads_the_metadata_back() -> None:
    """huggingface_hub's own reader finds every evaluation result."""
    from huggingface_hub import ModelCard

    data = ModelCard(render_card(RESULTS, FACTS)).data
    found = [(e.dataset_config, e.metric_type, e.metric_value) for e in data.eval_results]
    assert [("hi", "fertility", 1.25), ("en", "fertility", 1.75)] == found
    assert "mill" == data.model_name


def test_a_card_without_sources_or_command_says_less() -> None:
    card = render_card(RESULTS.where(subject="mill"), FACTS)
    assert "Where its training text comes from is not recorded." in card
    for absent in ("Training text\n", "Beside others", "This command", "Measured on"):
        assert absent not in card


def test_hostile_names_stay_names() -> None:
    """Nothing from a file becomes markup, leaves its block of code or ends the metadata."""
    from huggingface_hub import ModelCard

    name = "<img src=x>\n---\n|"
    facts = replace(FACTS, name=name, config={"recipe": "```\n# x", "vocab_size": 4})
    own = Results(replace(row, subject="a") for row in RESULTS.where(subject="mill"))
    sources = [Source("hi", "<b>|", "[x](y)", "`open`", 10)]
    card = render_card(own, facts, subject="a", sources=sources, rebuild="a\n```\n# b")
    body = card.split("\n---\n", 1)[1]
    assert "<img" not in body
    assert "\n# x" not in card
    assert "````sh\na\n```\n# b\n````" in body
    assert "| &lt;b&gt;\\| | \\[x\\](y) | \\`open\\` | 1 | 0.0 |" in body
    assert name == ModelCard(card).data.model_name


def test_the_vocabulary_by_script() -> None:
    row = {"name": "Tamil", "tokens": 1234, "share": 0.5, "superwords": 3, "training_share": None}
    card = render_card(RESULTS, replace(FACTS, figures={"vocabulary": [row]}))
    assert "| Tamil | 1,234 | 50.00% | 3 | – |" in card
    with pytest.raises(ValueError, match="figures of the vocabulary"):
        render_card(RESULTS, replace(FACTS, figures={"vocabulary": [{"name": 3}]}))


def test_the_weights_that_a_recipe_found() -> None:
    """Those of recipe vocabshift, the heaviest first; other recipes find none."""
    figures = {"language_weights": {"en": 0.5, "ta": 1.25, "hi": 1.25}}
    card = render_card(RESULTS, replace(FACTS, figures=figures))
    rows = "| hi | 1.250 |\n| ta | 1.250 |\n| en | 0.500 |\n"
    assert "## Weights of languages\n\n" in card
    assert f"| language | a byte counted |\n| --- | ---: |\n{rows}" in card
    assert "Weights of languages" not in render_card(RESULTS, FACTS)
    with pytest.raises(ValueError, match="weights of languages"):
        render_card(RESULTS, replace(FACTS, figures={"language_weights": {"en": "much"}}))


def test_results_of_another_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing of 'x'; they hold mill, bpe"):
        render_card(RESULTS, FACTS, subject="x")


def test_facts_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mill"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes(b"{}")
    keep = ("version", "operation", "config", "config_hash", "corpus_fingerprint", "figures")
    record = {key: FACTS.to_dict()[key] for key in keep}
    (folder / "vocabshift.json").write_text(json.dumps(record), encoding="utf-8")
    facts = read_facts(folder)
    assert replace(FACTS, sha256=hashlib.sha256(b"{}").hexdigest(), n_bytes=2) == facts
    assert facts == TokenizerFacts.from_dict(json.loads(json.dumps(facts.to_dict())))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"config": 3}', "[" * 100_000, None])
def test_a_folder_without_a_record_is_refused(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    if text is not None:
        (tmp_path / "vocabshift.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidTokenizerError, match=r"vocabshift\.json"):
        read_facts(tmp_path)


def test_sources(tmp_path: Path) -> None:
    """The file names the language, unless a column does; a quote is a letter like any other."""
    file = tmp_path / "hi.sources.tsv"
    file.write_text('source\tbytes\tclass\tlicence\n"tales\t12\topen\tCC0\nx\t3\t\t\n', "utf-8")
    assert [
        Source("hi", '"tales', "CC0", "open", 12),
        Source("hi", "x", "", "unknown", 3),
    ] == read_sources(file)
    file.write_text("language\tsource\tbytes\tclass\tlicence\nta\tx\t3\tnc\ty\n", "utf-8")
    assert [Source("ta", "x", "y", "nc", 3)] == read_sources(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"source\tclass\tlicence\n", "no column 'bytes'"),
        (b"", "no column 'source'"),
        (b"source\tbytes\tclass\tlicence\nx\t-3\topen\ty\n", "line 2: bytes is '-3'"),
        (b"source\tbytes\tclass\tlicence\nx\n", "line 2: bytes is ''"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_bad_sources_are_refused(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "x.tsv").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        read_sources(tmp_path / "x.tsv")


def test_tokens_are_not_counted_as_lines() -> None:
    """A share of the vocabulary rests on as many tokens."""
    results = Results([*RESULTS, Result("mill", "hi", "own_language_share", 0.5, 400)])
    assert "rests on 7 to 9 lines" in render_card(results, FACTS)
