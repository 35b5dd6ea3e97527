"""Transfer: a model and its old tokenizer in, the model under a new tokenizer out.

Owns the order of the work: everything is planned and checked first, and only then is the model
changed. What is done to rows, ids and texts the other files of this package know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vocabshift.bpe import token_bytes
from vocabshift.bpe.id_map import IdMap
from vocabshift.bpe.id_map import find as find_id_map
from vocabshift.bpe.id_map import load as load_id_map
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import VocabMismatchError
from vocabshift.surgery import config_ids, init_context, resize, token_map
from vocabshift.surgery.candidates import Score, candidates, prices
from vocabshift.surgery.init_context import AUTO, InitSources
from vocabshift.surgery.special_ids import match_specials, roles_of_config


@dataclass(frozen=True)
class TransferReport:
    """What a transfer did. Counts are of tokens; rows are those of the embedding matrix."""

    n_copied: int  # new tokens that took over the row of an old one
    n_initialized: int  # new tokens whose row was made by `init`
    n_removed: int  # old tokens that the new tokenizer does not have
    tied: bool  # whether head and input embeddings are one tensor
    vocab_size: int  # tokens of the new tokenizer, special tokens included
    rows: int  # padding included
    old_rows: int
    init: str
    special_ids: dict[str, list[Any]]  # {"eos": [old, new], "generation_config.eos": …}
    tried: dict[str, float] = field(default_factory=dict)  # init -> price, of "auto"; lowest first


def transfer(
    model: Any,
    *,
    old: Any,
    new: Any,
    init: str = "fvt",
    seed: int = 0,
    pad_to_multiple_of: int | None = None,
    id_map: IdMap | str | Path | None = None,
    donor: Any = None,
    corpus: Any = None,
    score: Score | None = None,
) -> tuple[Any, Tokenizer]:
    """Move `model` from tokenizer `old` to `new`; `model` is changed in place (no copy is made).

    Tokens of the old vocabulary keep their rows bit for bit, in input embeddings and head; any
    other gets the row that `init` makes, for the head's bias as for the head:
    - "fvt" (also "retok"): the mean of its old pieces; "fvt-weighted": weighted by their bytes;
    - "first-last": head the first piece, input the last (a tied matrix: the mean of both);
    - "omp": the combination of kept tokens that makes its row in `donor`, a model (folder, or
      `surgery.donor.Donor`) that has the new tokens; "focus": a sparse mixture of the kept tokens
      that are like it in `corpus` (a Corpus or texts); tokens that these lack get "fvt";
    - "mean" of all rows, "normal" (their mean and covariance), "random" (mean and deviation of
      each dimension), "zeros"; what is random comes from `seed`;
    - "auto": each of them that can be had is tried, and the one that `score(model, tokenizer)`
      prices lowest is kept (`vocabshift.transfer` takes `text=` and prices in bits per byte).
    The ids in `model.config` and `model.generation_config` follow.

    `old`, `new`: a Tokenizer, a transformers or `tokenizers` one, or a path. Rows are padded to a
    multiple of `pad_to_multiple_of`; None pads as the model was padded before. `id_map`: which old
    id is which new one, as `prune` and `extend` write it; None takes the `token_map.json` that
    lies beside `new`, if there is one. What it does not name is matched by bytes, and it must be
    of these two tokenizers.

    Returns the model and the tokenizer to use with it: `new`, with its own ids, and with the
    special tokens of `old` that it lacked behind them. ValueError (often VocabMismatchError)
    before anything is changed.
    """
    tokenizer, _ = transfer_with_report(
        model,
        old=old,
        new=new,
        init=init,
        seed=seed,
        pad_to_multiple_of=pad_to_multiple_of,
        id_map=id_map,
        donor=donor,
        corpus=corpus,
        score=score,
    )
    return model, tokenizer


def transfer_with_report(
    model: Any,
    *,
    old: Any,
    new: Any,
    init: str = "fvt",
    seed: int = 0,
    pad_to_multiple_of: int | None = None,
    id_map: IdMap | str | Path | None = None,
    donor: Any = None,
    corpus: Any = None,
    score: Score | None = None,
) -> tuple[Tokenizer, TransferReport]:
    """Change `model` in place, as `transfer` does; the enlarged tokenizer and what was done."""
    from vocabshift.bpe.load import as_tokenizer

    sources = _sources(init, donor, corpus, score)
    if pad_to_multiple_of is not None and pad_to_multiple_of < 1:
        raise ValueError(f"pad_to_multiple_of is {pad_to_multiple_of}; it must be 1 or more")
    id_map = _open_map(id_map, new)
    old, new = as_tokenizer(old), as_tokenizer(new)
    check_usable(old, new)
    if id_map is not None:
        id_map.check(old, new)
    matrices = resize.find_matrices(model)
    specials = match_specials(old, new, roles_of_config(model.config))
    tokenizer = specials.tokenizer
    kept = None if id_map is None else id_map.new_to_old()
    mapping = token_map.match(old, tokenizer, specials.new_to_old, kept)
    resize.check_rows(matrices, mapping, old.row_count)
    changes = config_ids.plan(model, specials, mapping)
    old_rows = matrices.rows
    n_rows = resize.padded_rows(matrices, old.row_count, tokenizer.row_count, pad_to_multiple_of)

    def context(name: str) -> init_context.InitContext:
        return init_context.prepare(
            name,
            mapping,
            old=old,
            new=tokenizer,
            tied=matrices.tied,
            sources=sources,
            seed=seed,
        )

    tried: dict[str, float] = {}
    if init == AUTO:
        assert score is not None
        contexts = map(context, candidates(sources))
        with config_ids.applied_for_now(model, changes, n_rows):
            tried = prices(
                model, matrices, contexts, tokenizer=tokenizer, n_rows=n_rows, score=score
            )
        init = next(iter(tried))
    made = context(init)
    resize.move_rows(matrices, made.input, init, n_rows, seed=seed, head_map=made.head)
    config_ids.apply(model, changes, n_rows)
    if model.config.tie_word_embeddings != matrices.tied:
        model.config.tie_word_embeddings = matrices.tied  # the tensors are right
    _follow_padding(matrices.embeddings, model.config)
    report = TransferReport(
        n_copied=mapping.n_copied,
        n_initialized=mapping.n_made,
        n_removed=mapping.n_removed,
        tied=matrices.tied,
        vocab_size=mapping.n_copied + mapping.n_made,
        rows=n_rows,
        old_rows=old_rows,
        init=init,
        special_ids=config_ids.moved_ids(changes),
        tried=tried,
    )
    return tokenizer, report


def _sources(init: str, donor: Any, corpus: Any, score: Score | None) -> InitSources:
    """What the method may use; ValueError where it is unknown or lacks something."""
    InitSources(donor, corpus).check(init)  # before a donor is loaded
    if init == AUTO and score is None:
        raise ValueError(
            "init 'auto' needs text to try the initializers on (vocabshift.transfer: text=, "
            "command line: --text SPEC), or score=: a function of model and tokenizer"
        )
    return InitSources.of(donor, corpus)


def transfer_folder(
    model_source: str | Path,
    tokenizer_source: Any,
    out: str | Path,
    *,
    init: str = "fvt",
    force: bool = False,
    dtype: Any = None,
    seed: int = 0,
    pad_to_multiple_of: int | None = None,
    id_map: IdMap | str | Path | None = None,
    donor: Any = None,
    corpus: Any = None,
    score: Score | None = None,
) -> TransferReport:
    """Transfer a saved model with its own tokenizer; write model and tokenizer as one folder.

    `init`, `id_map`, `donor`, `corpus` and `score`: as in `transfer`.

    `model_source`: a folder (or Hub name) with model and tokenizer, left as it is. `dtype`: a
    torch dtype to load in; None keeps the checkpoint's. `out` appears whole or not at all, after
    AutoTokenizer gave the same ids in it. FileExistsError without `force` where `out` exists.
    """
    from vocabshift.bpe.load import as_tokenizer
    from vocabshift.surgery import model_folder

    sources = _sources(init, donor, corpus, score)
    model_folder.check_paths(model_source, tokenizer_source, out, force=force)
    id_map = _open_map(id_map, tokenizer_source)
    old = model_folder.load_own_tokenizer(model_source)
    new = as_tokenizer(tokenizer_source)
    check_usable(old, new)
    if id_map is not None:
        id_map.check(old, new)
    model = model_folder.load_model(model_source, dtype=dtype)
    tokenizer, report = transfer_with_report(
        model,
        old=old,
        new=new,
        init=init,
        seed=seed,
        pad_to_multiple_of=pad_to_multiple_of,
        id_map=id_map,
        donor=sources.donor,
        corpus=sources.corpus,
        score=score,
    )
    config = {
        "model": str(model_source),
        "tokenizer": new.name,
        "init": init,
        "donor": str(donor) if isinstance(donor, str | Path) else None,
        "seed": seed,
        "pad_to_multiple_of": pad_to_multiple_of,
        "token_map": id_map is not None,
    }
    model_folder.save(model, tokenizer, out, force=force, config=config, figures=report)
    return report


def _open_map(given: IdMap | str | Path | None, new: Any) -> IdMap | None:
    """The map given, or the one beside the new tokenizer."""
    if given is None:
        return find_id_map(new)
    return given if isinstance(given, IdMap) else load_id_map(given)


def check_usable(old: Tokenizer, new: Tokenizer) -> None:
    """VocabMismatchError where a tokenizer is of a kind whose tokens cannot be compared."""
    for which, tokenizer in (("old", old), ("new", new)):
        model = tokenizer.model
        if model.continuing_subword_prefix or model.end_of_word_suffix:
            raise VocabMismatchError(
                f"the {which} tokenizer marks the parts of words "
                f"({model.continuing_subword_prefix or model.end_of_word_suffix!r}); "
                "only byte-level and SentencePiece spellings can be transferred"
            )
    if not token_bytes.is_complete(new):
        raise VocabMismatchError(
            "the new tokenizer lacks some of the 256 bytes and has no unknown token: it would "
            "lose text; train it with the whole byte alphabet"
        )


def _follow_padding(embeddings: Any, config: Any) -> None:
    """Let the row that gets no gradient be the pad token's, if there was such a row at all."""
    if getattr(embeddings, "padding_idx", None) is not None:
        pad = config.get_text_config().pad_token_id
        embeddings.padding_idx = pad if isinstance(pad, int) and pad >= 0 else None
