"""Transfer: a model and its old tokenizer in, the model under a new tokenizer out.

Owns the order of the work: everything is planned and checked first, and only then is the model
changed. What is done to rows, ids and texts the other files of this package know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.bpe import token_bytes
from vocabshift.bpe.id_map import IdMap
from vocabshift.bpe.id_map import find as find_id_map
from vocabshift.bpe.id_map import load as load_id_map
from vocabshift.bpe.plain_tokenizer import PlainTokenizer, open_prunable
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import VocabMismatchError
from vocabshift.output_folder import atomic_folder
from vocabshift.provenance import write_provenance
from vocabshift.surgery import (
    config_ids,
    init_context,
    plain_plan,
    resize,
    token_map,
    transfer_map,
)
from vocabshift.surgery.candidates import Score, candidates, prices
from vocabshift.surgery.init_context import AUTO, InitContext, InitSources
from vocabshift.surgery.overrides import Overrides
from vocabshift.surgery.overrides import read as read_overrides
from vocabshift.surgery.overrides import resolve as resolve_overrides
from vocabshift.surgery.serving_notes import serving_notes
from vocabshift.surgery.special_ids import SpecialTokens, match_specials, roles_of_config
from vocabshift.surgery.transfer_report import TransferReport

if TYPE_CHECKING:
    from vocabshift.surgery.stream import SavedModel


@dataclass(frozen=True, eq=False)
class _Method:
    """How new rows are made, as the caller says it."""

    init: str
    seed: int
    sources: InitSources
    score: Score | None
    overrides: Mapping[str, Any]  # as the user wrote them


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that is decided before anything is changed."""

    tokenizer: Tokenizer
    specials: SpecialTokens
    mapping: token_map.TokenMap
    changes: list[config_ids.Change]
    method: InitContext  # of what the new rows are made
    id_map: IdMap  # what `transfer_map.json` says
    report: TransferReport

    def move(self, old_id: int) -> int | None:
        """The new id of an old one; None for a token that is gone."""
        return self.specials.old_to_new.get(old_id, self.mapping.old_to_new.get(old_id))


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
    overrides: str | Path | Mapping[str, Any] | None = None,
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
    of these two tokenizers. `overrides`: what goes before all of that, {new token: old token, or
    list of pieces}, or a JSON or TOML file of it (`surgery.overrides`).

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
        overrides=overrides,
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
    overrides: str | Path | Mapping[str, Any] | None = None,
) -> tuple[Tokenizer, TransferReport]:
    """Change `model` in place, as `transfer` does; the enlarged tokenizer and what was done."""
    method = _method(init, seed, donor=donor, corpus=corpus, score=score, overrides=overrides)
    _check_padding(pad_to_multiple_of)
    id_map = _open_map(id_map, new)
    old, new = open_prunable(old), open_prunable(new)
    _check_tokenizers(old, new, id_map)
    matrices = resize.find_matrices(model)
    plan = _plan(
        model,
        matrices,
        old,
        new,
        method=method,
        pad_to_multiple_of=pad_to_multiple_of,
        id_map=id_map,
    )
    _move(model, matrices, plan)
    return plan.tokenizer, plan.report


def _plan(
    model: Any,
    matrices: resize.Matrices,
    old: Tokenizer | PlainTokenizer,
    new: Tokenizer | PlainTokenizer,
    *,
    method: _Method,
    pad_to_multiple_of: int | None,
    id_map: IdMap | None,
) -> _Plan:
    """What becomes of every row and id; `model`: whatever has the configs of one.

    For "auto" it must be a model in memory, which is as before afterwards.
    """
    if isinstance(old, PlainTokenizer) and isinstance(new, PlainTokenizer):
        assert id_map is not None
        if method.overrides:
            raise ValueError(f"overrides are not taken for a {old.kind} tokenizer")
        overrides = Overrides()
        specials, mapping = plain_plan.match_by_map(old, new, id_map)
        map_back = id_map
    else:
        assert isinstance(old, Tokenizer) and isinstance(new, Tokenizer)
        overrides = resolve_overrides(method.overrides, old, new)
        specials = match_specials(old, new, roles_of_config(model.config), overrides.same)
        kept = None if id_map is None else id_map.new_to_old()
        mapping = token_map.match(old, specials.tokenizer, specials.new_to_old, kept, overrides)
        map_back = transfer_map.map_of(old, specials.tokenizer, mapping)
    tokenizer = specials.tokenizer
    resize.check_rows(matrices, mapping, old.row_count)
    changes = config_ids.plan(model, specials, mapping)
    if matrices.pad_is_fixed:
        _check_pad(changes)
    n_rows = resize.padded_rows(matrices, old.row_count, tokenizer.row_count, pad_to_multiple_of)

    def context(name: str) -> InitContext:
        if not isinstance(old, Tokenizer):
            return InitContext(name, method.seed, mapping, mapping)
        return init_context.prepare(
            name,
            mapping,
            old=old,
            new=tokenizer,
            tied=matrices.tied,
            sources=method.sources,
            seed=method.seed,
        )

    init = method.init
    tried: dict[str, float] = {}
    if init == AUTO and not mapping.n_made:
        init = candidates(method.sources)[0]  # nothing to make: all are alike
    if init == AUTO:
        assert method.score is not None
        contexts = map(context, candidates(method.sources))
        with config_ids.applied_for_now(model, changes, n_rows):
            tried = prices(
                model, matrices, contexts, tokenizer=tokenizer, n_rows=n_rows, score=method.score
            )
        init = next(iter(tried))
    report = TransferReport(
        n_copied=mapping.n_copied,
        n_initialized=mapping.n_made,
        n_removed=mapping.n_removed,
        tied=matrices.tied,
        vocab_size=mapping.n_copied + mapping.n_made,
        rows=n_rows,
        old_rows=matrices.rows,
        init=init,
        special_ids=config_ids.moved_ids(changes),
        tried=tried,
        n_overridden=len(overrides),
        ambiguous={new_id: list(old_ids) for new_id, old_ids in mapping.ambiguous},
        n_moved=int((mapping.copied_from != mapping.copied_to).sum()),
    )
    return _Plan(tokenizer, specials, mapping, changes, context(init), map_back, report)


def _move(model: Any, matrices: resize.Matrices, plan: _Plan) -> None:
    """Give a model in memory its new rows and ids."""
    made = plan.method
    resize.move_rows(
        model,
        matrices,
        made.input,
        made.init,
        plan.report.rows,
        seed=made.seed,
        head_map=made.head,
    )
    _follow(model, matrices, plan)


def _method(
    init: str,
    seed: int,
    *,
    donor: Any,
    corpus: Any,
    score: Score | None,
    overrides: str | Path | Mapping[str, Any] | None,
) -> _Method:
    """What the method may use; ValueError where it is unknown or lacks something."""
    InitSources(donor, corpus).check(init)  # before a donor is loaded
    if init == AUTO and score is None:
        raise ValueError(
            "init 'auto' needs text to try the initializers on (vocabshift.transfer: text=, "
            "command line: --text SPEC), or score=: a function of model and tokenizer"
        )
    table = {} if overrides is None else read_overrides(overrides)
    return _Method(init, seed, InitSources.of(donor, corpus), score, table)


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
    overrides: str | Path | Mapping[str, Any] | None = None,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
) -> TransferReport:
    """Transfer a saved model with its own tokenizer; write model and tokenizer as one folder.

    Safetensors shards are worked through on the disk and never loaded: tables get new rows, other
    tensors are copied byte for byte. With `hard_links` a shard without a table is linked instead,
    where the file system can (whoever then changes one file in place changes both). `dtype`: a
    torch dtype to convert to; the model is then loaded whole, as one in another format is.

    `init` (with `donor`, `corpus`, `score`) and `id_map`: as in `transfer`; "auto" loads the model
    for its tries. `dry_run`: check and plan everything, write nothing. `resume`: go on from the
    shards that a killed run of the same transfer finished.

    `model_source`: a folder (or Hub name) with model and tokenizer, left as it is. `out` appears
    whole or not at all, after AutoTokenizer gave the same ids in it. FileExistsError without
    `force` where `out` exists; OSError where the disk has no room.
    """
    from vocabshift.surgery import model_folder, stream

    method = _method(init, seed, donor=donor, corpus=corpus, score=score, overrides=overrides)
    _check_padding(pad_to_multiple_of)
    model_folder.check_paths(model_source, tokenizer_source, out, force=force)
    id_map = _open_map(id_map, tokenizer_source)
    old = model_folder.load_own_tokenizer(model_source)
    new = open_prunable(tokenizer_source)
    _check_tokenizers(old, new, id_map)
    config = {
        "model": str(model_source),
        "tokenizer": new.name,
        "init": init,
        "donor": str(donor) if isinstance(donor, str | Path) else None,
        "seed": seed,
        "pad_to_multiple_of": pad_to_multiple_of,
        "token_map": id_map is not None,
        "overrides": dict(method.overrides),
    }
    saved = stream.open_saved(model_source) if dtype is None else None

    def plan_for(model: Any, matrices: resize.Matrices, method: _Method) -> _Plan:
        return _plan(
            model,
            matrices,
            old,
            new,
            method=method,
            pad_to_multiple_of=pad_to_multiple_of,
            id_map=id_map,
        )

    model: Any = None
    if saved is None or init == AUTO:
        model = model_folder.load_model(model_source, dtype=dtype)
        matrices = resize.find_matrices(model)
        plan = plan_for(model, matrices, method)
    if saved is not None:
        tried = {} if model is None else plan.report.tried
        chosen = method if model is None else replace(method, init=plan.report.init)
        del model
        plan = plan_for(saved, saved.matrices, chosen)
        plan = replace(plan, report=replace(plan.report, tried=tried))
        return _stream(
            saved,
            plan,
            Path(out),
            config,
            force=force,
            hard_links=hard_links,
            resume=resume,
            dry_run=dry_run,
        )
    if dry_run:
        return plan.report
    _move(model, matrices, plan)
    model_folder.save(
        model,
        plan.tokenizer,
        out,
        force=force,
        config=config,
        figures=plan.report,
        id_map=plan.id_map,
    )
    return plan.report


def _stream(
    saved: SavedModel,
    plan: _Plan,
    out: Path,
    config: Mapping[str, Any],
    *,
    force: bool,
    hard_links: bool,
    resume: bool,
    dry_run: bool,
) -> TransferReport:
    """Write the output of a saved model without loading it."""
    from vocabshift.surgery import folder_config, model_folder, stream

    made, rows = plan.method, plan.report.rows

    def fill(table: resize.Table, rows_out: Any) -> Any:
        return resize.new_table(
            table, made.input, made.init, rows, seed=made.seed, head_map=made.head, out=rows_out
        )

    shards = stream.plan_shards(saved, rows, fill)
    report = replace(
        plan.report,
        bytes_before=sum(shard.n_bytes for shard in saved.checkpoint.shards),
        bytes_after=sum(shard.n_bytes for shard in shards),
        files={
            shard.name: "rewrite" if shard.changed else "link" if hard_links else "copy"
            for shard in shards
        },
    )
    stream.check_space(out, shards, hard_links=hard_links)
    if dry_run:
        return report
    arrays = [
        array
        for each in (made.input, made.head)
        for array in (each.copied_from, each.copied_to, each.made, *each.mixture)
    ]
    key = stream.transfer_key(saved, *arrays, made.init, made.seed, rows)
    with atomic_folder(out, force=force, keep_checkpoints=True, resume=resume) as partial:
        # The small files first: what AutoTokenizer refuses is known before gigabytes are written.
        tied = saved.matrices.tied if saved.has_head else None
        folder_config.write_configs(
            saved.folder, partial, saved.config, plan.changes, n_rows=rows, tied=tied
        )
        model_folder.write_old_rope_keys(partial / "config.json")
        written = folder_config.write_processors(saved.folder, partial, plan.move)
        model_folder.write_tokenizer(plan.tokenizer, partial, saved.config.model_type)
        plan.id_map.save(partial, transfer_map.FILE)
        done = stream.write_shards(saved, shards, partial, key, hard_links=hard_links)
        report = replace(report, files=done | dict.fromkeys(written, "written"))
        figures = asdict(report) | {"notes": serving_notes(plan.tokenizer)}
        write_provenance(partial, "transfer", config, figures)
    return report


def _follow(model: Any, matrices: resize.Matrices, plan: _Plan) -> None:
    """Let configs and modules of a model in memory follow its new rows."""
    config_ids.apply(model, plan.changes, plan.report.rows)
    has_head = model.get_output_embeddings() is not None
    if has_head and model.config.tie_word_embeddings != matrices.tied:
        model.config.tie_word_embeddings = matrices.tied  # the tensors are right
    _follow_padding(model.get_input_embeddings(), model.config)


def _check_tokenizers(old: Any, new: Any, id_map: IdMap | None) -> None:
    if plain_plan.check_kinds(old, new, id_map):
        return
    check_usable(old, new)
    if id_map is not None:
        id_map.check(old, new)


def _check_pad(changes: list[config_ids.Change]) -> None:
    moved = [change for change in changes if change.role == "pad" and change.old != change.new]
    if moved:
        raise VocabMismatchError(
            f"this model counts positions from the id of its pad token, {moved[0].old}, which "
            f"would become {moved[0].new}; give the new tokenizer its pad token under the same id"
        )


def _check_padding(multiple: int | None) -> None:
    if multiple is not None and multiple < 1:
        raise ValueError(f"pad_to_multiple_of is {multiple}; it must be 1 or more")


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
