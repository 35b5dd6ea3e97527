"""`extend`: new tokens that are learned from text or given by name; and the folder of the verb.

Owns the contents of the folder: the tokenizer's files, `token_map.json`, `vocabshift.json`. What is
learned comes first, then superwords, then words and special tokens by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from vocabshift.errors import CorpusError
from vocabshift.extension.by_name import add_by_name
from vocabshift.extension.continued import holes
from vocabshift.extension.extend import extend_with_report, prepared
from vocabshift.extension.named_tokens import (
    NOTHING,
    AnyKind,
    NamedTokens,
    described,
    read_words,
)
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import Progress
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.regexes import WORTHWHILE_LIFT
from vocabshift.tokenizer.formats.load import (
    TokenizerLike,
    as_tokenizer,
    load_tokenizer,
    open_tokenizer,
)
from vocabshift.tokenizer.id_map import TokenIdMap, chained
from vocabshift.tokenizer.missing_bytes import LostCharacters
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer
from vocabshift.workflows.extend_with_superwords import extend_with_superwords

__all__ = [
    "WORTHWHILE_LIFT",
    "ExtensionOptions",
    "NamedTokens",
    "described",
    "extend",
    "extend_to_folder",
    "read_words",
]

_WITHOUT_TEXT = ("n_tokens", "pre_tokenizer", "complete_bytes", "fill_holes")


def extend(
    tokenizer: TokenizerLike,
    corpus: Corpus | CountFolder | None = None,
    *,
    n_tokens: int = ExtensionOptions.n_tokens,
    method: str = ExtensionOptions.method,
    tie_break: str = ExtensionOptions.tie_break,
    pre_tokenizer: str = ExtensionOptions.pre_tokenizer,
    min_frequency: int = ExtensionOptions.min_frequency,
    max_token_bytes: int | None = ExtensionOptions.max_token_bytes,
    character_coverage: float | None = ExtensionOptions.character_coverage,
    complete_bytes: bool = ExtensionOptions.complete_bytes,
    fill_holes: bool = ExtensionOptions.fill_holes,
    normalizer: str | None = ExtensionOptions.normalizer,
    sampling_alpha: float | None = ExtensionOptions.sampling_alpha,
    words: Iterable[str] | str | Path = (),
    word_forms: str = NamedTokens.word_forms,
    words_as: str = NamedTokens.words_as,
    special_tokens: Mapping[str, str] | Iterable[str] = (),
    roles: Mapping[str, str] | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Tokenizer | UnigramOrWordPieceTokenizer:
    """Return `tokenizer` with new tokens, learned from `corpus` or given by name.

    It is not changed itself. Existing ids, merges and special tokens keep their places; new ids
    come after all others: those that are learned, then words, then special tokens.

    Args:
        tokenizer: ours, a Hugging Face fast tokenizer, or a path. Only BPE learns from text.
        corpus: the text to learn from, or a folder of counts. None: nothing is learned.
        n_tokens: tokens to learn at most, those for missing characters and bytes not counted.
        method: "continued" trains on from the tokenizer's own merges; the baselines are "regen",
            "append", "prepend" and "add-tokens".
        tie_break: what decides between equal counts, "id" or "lexicographic" (as the paper's
            toolkit does).
        pre_tokenizer: one of `PRE_TOKENIZERS`; all but "kept" are for byte-level tokenizers.
        min_frequency: how often a pair must occur to become a token.
        max_token_bytes: length of the longest new token (byte-level only).
        character_coverage: share of the text's characters that the vocabulary is to hold; missing
            ones are added first. None adds none. Byte-level vocabularies lack none.
        complete_bytes: first add tokens for missing bytes that UTF-8 can hold.
        fill_holes: take ids that no token has before new ones.
        normalizer: Unicode form of the training text; the tokenizer keeps its own normalizer.
        sampling_alpha: languages count as bytes ** alpha, in (0, 1]; None: as they are.
        words: words that become one token each, or a file with one a line; see
            `docs/extend.md`.
        word_forms: "both": one token after a space, and one without a space before it; "spaced" or
            "bare": one of these alone.
        words_as: "tokens" of the vocabulary, or "added-tokens".
        special_tokens: {special token: what it stands for, or ""}, or the tokens alone. `transfer`
            makes a token's row from what it stands for.
        roles: {role: special token}, such as {"pad": "<|pad|>"}.
        threads: the result does not depend on them.
        progress: is called with the phase, the units done and the units in all.

    Raises:
        ValueError: for options that do not exist or do not fit the tokenizer.
        CorpusError: where the text cannot be read, or nothing can be learned from it.

    """
    options = ExtensionOptions(
        n_tokens=n_tokens,
        method=method,
        tie_break=tie_break,
        pre_tokenizer=pre_tokenizer,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        character_coverage=character_coverage,
        complete_bytes=complete_bytes,
        fill_holes=fill_holes,
        normalizer=normalizer,
        sampling_alpha=sampling_alpha,
    )
    named = NamedTokens(
        words=read_words(words) if words else (),
        word_forms=word_forms,
        words_as=words_as,
        special_tokens=described(special_tokens),
        roles=roles or {},
    )
    check_request(options, named, corpus)
    if not options.n_tokens:
        result, _ = prepared(tokenizer, corpus, options, threads=threads)
    else:
        assert corpus is not None
        extension = extend_with_report(
            tokenizer, corpus, options, threads=threads, progress=progress
        )
        result = extension.tokenizer
    if not named:
        return result
    free_ids = _free_ids(result, options)
    return add_by_name(result, named, free_ids=free_ids, threads=threads).tokenizer


def extend_to_folder(
    tokenizer: TokenizerLike,
    source: Corpus | CountFolder | None,
    options: ExtensionOptions,
    out: str | Path,
    *,
    named: NamedTokens = NOTHING,
    held_out: Corpus | None = None,
    n_superwords: int | None = None,
    sentencepiece_model: str | Path | None = None,
    inputs: Iterable[str | Path] = (),
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Extend, write the folder, reopen it with `tokenizers` and compare.

    tokenizer, source, options: as for `extend`; `options.n_tokens` 0 learns nothing from the text.
    named: words and special tokens to add. held_out: text on which their cost is measured; None:
        the first of `source`, if it is a Corpus.
    n_superwords: also learn this many superwords inside sentences, from the text itself (a Corpus).
    sentencepiece_model: file whose rules new pieces obey; None: the one next to the tokenizer.
    out: the folder, which appears whole or not at all. inputs: further paths, besides the
        tokenizer and the source, that it may not replace.
    threads: the result does not depend on it. progress: called with the phase, the work done and
        the total work.

    Returns the keys of `vocabshift extend --json`. FileExistsError if `out` exists, without
    `force`; ValueError or CorpusError if nothing can be learned, or a name cannot be added.
    """
    check_request(options, named, source, n_superwords)
    with outcome(
        "extend", out, inputs=[tokenizer, source, held_out, *inputs], force=force
    ) as output:
        if sentencepiece_model is not None:
            tokenizer = _with_rules(tokenizer, sentencepiece_model)
        config = json.loads(json.dumps(asdict(options)))
        fingerprint = None
        if not options.n_tokens:
            result, choice = prepared(tokenizer, source, options, threads=threads)
            id_map, figures = _map_of(tokenizer, result), _figures(tokenizer, result, options)
            figures |= {} if choice is None else {"deployable": choice.to_dict()}
        elif n_superwords is None:
            assert source is not None
            words = extend_with_report(
                tokenizer, source, options, threads=threads, progress=progress
            )
            result, id_map, figures = words.tokenizer, words.id_map, words.report.to_dict()
            fingerprint = words.report.corpus_fingerprint
        else:
            if not isinstance(source, Corpus):
                raise CorpusError("--superwords needs the text itself; give --corpus")
            longer = extend_with_superwords(
                tokenizer,
                source,
                options,
                n_superwords=n_superwords,
                threads=threads,
                progress=progress,
            )
            result, id_map, figures = longer.tokenizer, longer.id_map, longer.to_dict()
            fingerprint = longer.words.report.corpus_fingerprint
            config["n_superwords"] = n_superwords
        if named:
            text = held_out or (source if isinstance(source, Corpus) else None)
            free_ids = _free_ids(result, options)
            added = add_by_name(result, named, text=text, free_ids=free_ids, threads=threads)
            result, id_map = added.tokenizer, _map_of(tokenizer, added.tokenizer)
            figures = added.figures(figures)
            config |= named.to_dict()
        write_files(result, output.folder)
        return output.record(
            {"old": id_map.old, **config},
            figures,
            corpus_fingerprint=fingerprint,
            id_map=id_map,
        )


def check_request(
    options: ExtensionOptions,
    named: NamedTokens,
    source: Corpus | CountFolder | None,
    n_superwords: int | None = None,
) -> None:
    """ValueError for options that learn without text, or nothing to do."""
    if options.n_tokens:
        if source is None:
            raise ValueError("n_tokens are learned from text; give a corpus")
        return
    if not named:
        raise ValueError(
            "n_tokens is 0: there is nothing to add; give n_tokens, words or special tokens"
        )
    if n_superwords is not None:
        raise ValueError("superwords come after learned words; give n_tokens too")
    usual = ExtensionOptions()
    for field in fields(ExtensionOptions):
        value = getattr(options, field.name)
        if field.name not in _WITHOUT_TEXT and value != getattr(usual, field.name):
            raise ValueError(
                f"{field.name} is {value!r}, which says how tokens are learned from text; give "
                "n_tokens too, or leave it out"
            )


def _free_ids(tokenizer: AnyKind, options: ExtensionOptions) -> list[int]:
    return holes(tokenizer) if options.fill_holes else []


def _map_of(tokenizer: TokenizerLike, result: AnyKind) -> TokenIdMap:
    base = open_tokenizer(tokenizer)
    return chained(tokenizer, TokenIdMap.between(base, result), result.vocab)


def _figures(
    tokenizer: TokenizerLike, result: AnyKind, options: ExtensionOptions
) -> dict[str, Any]:
    """The keys of a report without text."""
    base = open_tokenizer(tokenizer)
    n_bytes = result.vocab_size - base.vocab_size
    return {
        "n_added": n_bytes,
        "n_bytes_added": n_bytes,
        "n_repaired": 0,
        "pre_tokenizer": options.pre_tokenizer,
        "unreachable_before": len(base.unreachable()),
        "lost_characters": asdict(LostCharacters.between(base, result)),
    }


def _with_rules(tokenizer: TokenizerLike, file: str | Path) -> Tokenizer:
    """The tokenizer with the rules of a SentencePiece model."""
    model = load_tokenizer(file)
    if model.piece_rules is None:
        raise ValueError(f"{file} is no SentencePiece model; give the tokenizer.model of the base")
    return replace(as_tokenizer(tokenizer), piece_rules=model.piece_rules)
