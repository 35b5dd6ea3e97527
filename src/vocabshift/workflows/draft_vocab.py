"""A smaller vocabulary for a draft model: what `vocabshift draft-vocab` does.

Joins pruning (counts of tokens) and models (the files). Owns which tokens are taken: the special
ones that a conversation needs, then the most frequent of a corpus. Its coverage is measured on
held-out text: a token that the draft cannot propose is never accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.models.draft_vocab import MAPPING, MAPPING_PICKLE, TOKEN_MAP, write_draft_vocab
from vocabshift.models.facts import model_facts
from vocabshift.progress import Progress
from vocabshift.pruning.counts import TokenCounts, count_tokens
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import EVERY, hold_out
from vocabshift.text.languages import UNLABELLED
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import TokenizerLike, open_tokenizer
from vocabshift.tokenizer.model import MAX_ID

FILES = (TOKEN_MAP, MAPPING_PICKLE, MAPPING)
"""What is written, besides `vocabshift.json`."""


def draft_vocab_to_folder(
    tokenizer: TokenizerLike,
    corpus: Corpus,
    out: str | Path,
    *,
    n_tokens: int,
    held_out: Corpus | None = None,
    rows: int | None = None,
    inputs: Iterable[str | Path] = (),
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Choose `n_tokens` tokens of the target for its draft, and write the folder `out`.

    tokenizer: of the target model; a model's folder also says how many rows it has.
    corpus: the text whose most frequent tokens are taken, by its weights.
    held_out: the text on which coverage is measured; None holds every 20th document of the corpus
        out.
    rows: of the target's embedding, the length of `t2d`; None: as in its config.json, or the
        highest id of the tokenizer plus one.
    out: the folder, which appears whole or not at all. inputs: further paths that it may not
        replace.

    Returns the keys of `vocabshift draft-vocab --json`. ValueError for an impossible number of
    tokens or rows; CorpusError without text; FileExistsError if `out` exists, without `force`.
    """
    sources = [tokenizer, corpus, *inputs, *([] if held_out is None else [held_out])]
    with outcome("draft-vocab", out, inputs=sources, force=force) as output:
        target = open_tokenizer(tokenizer)
        n_rows = _rows(tokenizer, target, rows)
        special = special_ids(tokenizer, target)
        known = len(target.vocab.keys() | {token.content for token in target.added_tokens})
        if not len(special) < n_tokens <= known:
            raise ValueError(
                f"n_tokens is {n_tokens}; {target.name} has {known:,} tokens, of which "
                f"{len(special)} special ones are always taken: give a number between"
            )
        learned, evaluated = hold_out(corpus) if held_out is None else (corpus, held_out)
        run: dict[str, Any] = {"threads": threads, "progress": progress}
        counts = count_tokens(target, learned, **run)
        order = _order(counts.weighted, special, target)
        ids = np.sort(order[:n_tokens])
        unseen = int(np.count_nonzero(counts.weighted[ids] == 0))
        held = count_tokens(target, evaluated, phase="count held-out", **run)
        sizes = sorted({max(n_tokens // 4, 1), max(n_tokens // 2, 1), n_tokens})
        sizes += [2 * n_tokens] if 2 * n_tokens <= known else []
        write_draft_vocab(output.folder, ids, n_rows)
        return output.record(
            {"tokenizer": target.fingerprint, "n_tokens": n_tokens, "rows": rows},
            {
                "n_tokens": n_tokens,
                "n_special": len(special),
                "n_unseen": unseen,
                "rows": n_rows,
                "vocab_size": known,
                "files": list(FILES),
                "held_out": "text of its own"
                if held_out is not None
                else f"every {EVERY}th document of the corpus",
                "coverage": _coverage(held, ids),
                "coverage_by_size": {str(n): _coverage(held, order[:n]) for n in sizes},
            },
            corpus_fingerprint=counts.fingerprint,
        )


def special_ids(source: TokenizerLike, tokenizer: AnyTokenizer) -> NDArray[np.int64]:
    """Ids, ascending, of the tokens that a conversation needs: added tokens with a role or in the
    chat template, and the ends of generation in a model's folder. `generation_config.json` says
    them, or else `config.json`."""
    config = getattr(tokenizer, "config", None) or {}
    named = [value for key, value in config.items() if key.endswith("_token")]
    roles = {value.get("content") if isinstance(value, dict) else value for value in named}
    template = getattr(tokenizer, "chat_template", None) or ""
    found = {
        token.id
        for token in tokenizer.added_tokens
        if token.content in roles or token.content in template
    }
    if isinstance(source, str | Path):
        ends = _ends_in(Path(source) / "generation_config.json")
        if ends is None:
            ends = _ends_in(Path(source) / "config.json")
        ends = ends if isinstance(ends, list) else [ends]
        found |= {i for i in ends if isinstance(i, int) and 0 <= i < tokenizer.row_count}
    return np.array(sorted(found), dtype=np.int64)


def _ends_in(file: Path) -> Any:
    """The `eos_token_id` of a config, or of its part about text; None where there is none."""
    if not file.is_file():
        return None
    try:
        config = dict(json.loads(file.read_bytes()))
        own = config.get("eos_token_id")
        return dict(config.get("text_config") or {}).get("eos_token_id") if own is None else own
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON object: {error}") from None


def _rows(source: TokenizerLike, tokenizer: AnyTokenizer, rows: int | None) -> int:
    least = tokenizer.row_count
    if rows is None:
        is_model = isinstance(source, str | Path) and (Path(source) / "config.json").is_file()
        rows = model_facts(source).rows if is_model else least  # type: ignore[arg-type]
    if rows > MAX_ID + 1:
        raise ValueError(f"{rows:,} rows are more than there can be ids, {MAX_ID + 1:,}")
    if rows < least:
        raise ValueError(
            f"rows is {rows} and {tokenizer.name} has ids up to {least - 1}; give at least {least}"
        )
    return rows


def _order(
    counts: NDArray[np.int64], special: NDArray[np.int64], tokenizer: AnyTokenizer
) -> NDArray[np.int64]:
    """Ids of all tokens: the special ones, then by falling count, equal ones by id."""
    known = {*tokenizer.vocab.values(), *(token.id for token in tokenizer.added_tokens)}
    rest = np.array(sorted(known.difference(special.tolist())), dtype=np.int64)
    return np.concatenate([special, rest[np.argsort(-counts[rest], kind="stable")]])


def _coverage(counts: TokenCounts, ids: NDArray[np.int64]) -> dict[str, float]:
    """Share of the tokens of held-out text that are among `ids`, by language, in [0, 1]."""
    shares = {}
    for label in counts.languages:
        own = counts.of_languages({label})
        shares[label or UNLABELLED] = round(float(own[ids].sum() / max(own.sum(), 1)), 6)
    return shares
