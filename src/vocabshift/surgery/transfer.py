"""Transfer: a model and its old tokenizer in, the model under a new tokenizer out.

Owns the order of the work: everything is planned and checked first, and only then is the model
changed. The other files of this package handle rows, ids and texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from vocabshift.models.folder import check_paths, load_own_tokenizer, local_folder
from vocabshift.models.load import load_configs
from vocabshift.models.saved import check_whole, open_saved
from vocabshift.models.tables import Matrices, Table, find_matrices
from vocabshift.progress import Progress
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.surgery import config_ids
from vocabshift.surgery.checks import check_options, open_tokenizers, opened
from vocabshift.surgery.distill import Exchange, learn_rows, learn_rows_of_saved, load_to_run
from vocabshift.surgery.matching import match_tokenizers
from vocabshift.surgery.options import AUTO, DISTILL, TransferOptions
from vocabshift.surgery.output import Learn, SmallFiles, TableFill, write_folder, write_loaded
from vocabshift.surgery.plan import Plan, make_plan
from vocabshift.surgery.report import TransferReport
from vocabshift.surgery.row_sources import RowSources
from vocabshift.surgery.rows import Learned, move_rows, new_table
from vocabshift.surgery.stream import transfer_key
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, tokens_by_id
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer

_DEFAULTS = TransferOptions()


def transfer_model(
    model: Any,
    *,
    old: Any,
    new: Any,
    options: TransferOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> tuple[Tokenizer, TransferReport]:
    """Move `model` from tokenizer `old` to `new`; it is changed in place (no copy is made).

    Tokens of the old vocabulary keep their rows bit for bit, in input embeddings and head; any
    other gets the row that `options.init` makes, for the head's bias as for the head. The ids in
    `model.config` and `model.generation_config` follow. `old`, `new`: a Tokenizer, a transformers
    or `tokenizers` one, or a path.

    Returns the tokenizer to use with the model (`new`, with its own ids, and with the special
    tokens of `old` that it lacked after them) and what was done. `progress`: of "distill".
    ValueError (often VocabMismatchError) before anything is changed.
    """
    check_options(options)
    options = opened(options, new)
    old, new = open_tokenizers(old, new, options)
    matrices = find_matrices(model)
    plan = make_plan(model, matrices, old, new, options)
    if options.init == DISTILL and plan.match.sources.n_made:
        exchange = _exchange(plan, old)
        plan = _with_learned(
            plan, *learn_rows(model, matrices, exchange, options, progress=progress)
        )
    _move(model, matrices, plan)
    return plan.match.tokenizer, plan.report


def transfer_folder(
    model_source: str | Path,
    tokenizer_source: Any,
    out: str | Path,
    options: TransferOptions = _DEFAULTS,
    *,
    force: bool = False,
    dtype: Any = None,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> TransferReport:
    """Transfer a saved model with its own tokenizer; write model and tokenizer as one folder.

    Safetensors shards are streamed on disk and never loaded: tables get new rows, other tensors are
    copied byte for byte, whatever they hold: a model of which all but the tables is quantized is
    moved like any other. With `hard_links` a shard without a table is linked instead, if the file
    system supports it (changing one file in place then changes both). `dtype`: a torch dtype to
    convert to; the model is then loaded whole, like one in another format. The initializer "auto"
    loads it to compare initializers, and "distill" to learn rows, in float32 on a CPU; both write
    by streaming. `dry_run`: check and plan everything, measure what "distill" will cost, write
    nothing. `resume`: keep what a killed run of the same transfer learned, and the shards that it
    finished. `progress`: of "distill".

    `model_source`: a folder (or Hub name) with model and tokenizer, which is not changed. `out`
    appears only when it is complete and AutoTokenizer gives the same ids in it. ValueError as for
    `transfer_model`; FileExistsError without `force` if `out` exists; OSError if the disk has no
    space.
    """
    check_options(options)
    inputs = (tokenizer_source, options.donor, options.corpus, options.overrides, options.id_map)
    check_paths(model_source, *inputs, out=out, force=force)
    given, options = options, opened(options, tokenizer_source)
    old, new = open_tokenizers(load_own_tokenizer(model_source), tokenizer_source, options)
    config = _about(model_source, new, given, options)
    saved = open_saved(model_source) if dtype is None else None
    tried: dict[str, float] = {}
    run: dict[str, Any] = {"progress": progress, "dry_run": dry_run}
    if saved is None or options.init == AUTO:
        if saved is None:
            check_whole(model_source, dtype)
        model = load_to_run(model_source, dtype, options.init)
        matrices = find_matrices(model)
        plan = make_plan(model, matrices, old, new, options)
        if saved is None:
            source = local_folder(model_source)
            if options.init == DISTILL and plan.match.sources.n_made:
                learned = learn_rows_of_saved(source, _exchange(plan, old), options, **run)
                plan = _with_learned(plan, *learned)
            if not dry_run:
                _move(model, matrices, plan)
            small = _small_files(plan, config)
            return write_loaded(
                model, source, small, out, plan.report, force=force, dry_run=dry_run
            )
        tried, options = plan.report.tried, replace(options, init=plan.report.init)
        del model, matrices, plan
    plan = make_plan(saved, saved.matrices, old, new, options)
    learn: Learn | None = None
    if options.init == DISTILL and plan.match.sources.n_made:
        key = transfer_key(saved.checkpoint, *_fill_of(plan).decisions, options.distill)

        def learn(folder: Path | None) -> tuple[TableFill, dict[str, Any]]:
            kept = None if folder is None else Checkpoints(folder / DISTILL, key)
            learned, figures = learn_rows_of_saved(
                saved.folder, _exchange(plan, old), options, checkpoints=kept, **run
            )
            return _fill_of(_with_learned(plan, learned, figures)), figures

        if dry_run:
            plan = replace(plan, report=replace(plan.report, distilled=learn(None)[1]))
    return write_folder(
        saved,
        _fill_of(plan),
        _small_files(plan, config),
        Path(out),
        replace(plan.report, tried=tried),
        force=force,
        hard_links=hard_links,
        resume=resume,
        dry_run=dry_run,
        learn=learn,
    )


def _about(
    model_source: str | Path, new: Any, given: TransferOptions, options: TransferOptions
) -> dict[str, Any]:
    """The options as recorded in `vocabshift.json`; `options`: those given, opened."""
    assert isinstance(options.overrides, Mapping)
    config = {
        "model": str(model_source),
        "tokenizer": new.name,
        "init": given.init,
        "donor": str(given.donor) if isinstance(given.donor, str | Path) else None,
        "seed": given.seed,
        "pad_to_multiple_of": given.pad_to_multiple_of,
        "token_map": options.id_map is not None,
        "overrides": dict(options.overrides),
    }
    if given.reserve_dummies:
        config["reserve_dummies"] = given.reserve_dummies
    if given.complete_bytes:
        config["complete_bytes"] = True
    if given.init == DISTILL:
        config["distill"] = asdict(given.distill)
    return config


def _exchange(plan: Plan, old: AnyTokenizer) -> Exchange:
    """What "distill" needs to know of a plan."""
    match, rows = plan.match, plan.report.rows

    def give_ids(model: Any) -> None:
        config_ids.apply(model, config_ids.aimed_at(model, plan.changes), rows)

    return Exchange(old, match.tokenizer, plan.made, rows, match.move, give_ids)


def _with_learned(plan: Plan, learned: Learned, figures: dict[str, Any]) -> Plan:
    """The plan with learned rows."""
    made = replace(plan.made, learned=learned)
    return replace(plan, made=made, report=replace(plan.report, distilled=figures))


def _small_files(plan: Plan, config: Mapping[str, Any]) -> SmallFiles:
    return SmallFiles(
        plan.match.tokenizer, plan.changes, plan.match.move, plan.match.id_map, config
    )


def _fill_of(plan: Plan) -> TableFill:
    """The planned rows, written table by table."""
    made, rows = plan.made, plan.report.rows

    def fill(table: Table, out: Any) -> Any:
        return new_table(table, made, rows, out=out)

    arrays = [
        array
        for each in (made.input, made.head)
        for array in (each.copied_from, each.copied_to, each.made, *each.mixture)
    ]
    if made.learned is not None:
        arrays += [made.learned.ids, *(rows.numpy() for rows in made.learned.rows.values())]
    return TableFill(fill, (*arrays, made.init, made.seed))


def _move(model: Any, matrices: Matrices, plan: Plan) -> None:
    """Give a model in memory its new rows and ids: the only place that changes one for good."""
    move_rows(model, matrices, plan.made, plan.report.rows)
    config_ids.apply(model, plan.changes, plan.report.rows)
    has_head = model.get_output_embeddings() is not None
    # Where a wrapper's config has no such key (Mllama), transformers ties nothing.
    if has_head and getattr(model.config, "tie_word_embeddings", False) != matrices.tied:
        model.config.tie_word_embeddings = matrices.tied  # the tensors are right
    for name in (name for table in matrices.tables for name in table.names):
        _follow_padding(model.get_submodule(name.rpartition(".")[0]), model.config)


def _follow_padding(module: Any, config: Any) -> None:
    """Let the row that gets no gradient be the pad token's, if there was such a row at all."""
    if getattr(module, "padding_idx", None) is not None:
        pad = config.get_text_config().pad_token_id
        module.padding_idx = pad if isinstance(pad, int) and pad >= 0 else None


# What `--details` lists: complete, and spelled as in the vocabularies, so that entries can be
# copied into overrides.


@dataclass(frozen=True)
class TokenLists:
    """Every token of both tokenizers, as plain JSON rows."""

    kept: list[dict[str, Any]]  # {token, id, old_id}; by id
    added: list[dict[str, Any]]  # {token, id, pieces}: old tokens that it is made of; by id
    removed: list[dict[str, Any]]  # {token, old_id}; by old id
    ambiguous: list[dict[str, Any]]  # {token, id, old_id, old_ids}: of the kept ones; by id

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def token_lists(
    model_source: str | Path,
    tokenizer_source: Any,
    options: TransferOptions,
) -> TokenLists:
    """The lists for the transfer of a saved model; of the options only map and overrides matter.

    Nothing is written and no weights are read. VocabMismatchError as for the transfer.
    """
    named = TransferOptions(
        id_map=options.id_map,
        overrides=options.overrides,
        complete_bytes=options.complete_bytes,
    )
    options = opened(named, tokenizer_source)  # a donor need not be loaded
    old, new = open_tokenizers(load_own_tokenizer(model_source), tokenizer_source, options)
    assert options.id_map is None or isinstance(options.id_map, TokenIdMap)
    assert isinstance(options.overrides, Mapping)
    config, _ = load_configs(model_source)
    match = match_tokenizers(
        old, new, config=config, id_map=options.id_map, overrides=options.overrides
    )
    return _lists(match.sources, tokens_by_id(old), tokens_by_id(match.tokenizer))


def _lists(sources: RowSources, old: Mapping[int, str], new: Mapping[int, str]) -> TokenLists:
    pairs = list(zip(sources.copied_to.tolist(), sources.copied_from.tolist(), strict=True))
    taken = dict(pairs)
    pieces, made = sources.pieces.tolist(), sources.made.tolist()
    gone = sorted(set(sources.old_ids.tolist()) - set(taken.values()))
    return TokenLists(
        kept=[{"token": new[i], "id": i, "old_id": old_id} for i, old_id in sorted(pairs)],
        added=[
            {"token": new[i], "id": i, "pieces": [old[piece] for piece in pieces[start:stop]]}
            for i, (start, stop) in zip(made, pairwise(sources.offsets.tolist()), strict=True)
        ],
        removed=[{"token": old[old_id], "old_id": old_id} for old_id in gone],
        ambiguous=[
            {"token": new[i], "id": i, "old_id": taken[i], "old_ids": list(old_ids)}
            for i, old_ids in sources.ambiguous
        ],
    )
