"""Transfer: a model and its old tokenizer in, the model under a new tokenizer out.

Owns the order of the work: everything is planned and checked first, and only then is the model
changed. What is done to rows, ids and texts the other files of this package know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vocabshift.models import folder as model_folder
from vocabshift.models.folder import TransferReport
from vocabshift.models.saved import open_saved
from vocabshift.models.tables import Matrices, find_matrices
from vocabshift.surgery import config_ids
from vocabshift.surgery import rows as resize
from vocabshift.surgery.checks import check_padding, check_tokenizers, open_map, with_dummies
from vocabshift.surgery.methods import AUTO, Score
from vocabshift.surgery.plan import Method, Plan, make_plan, method_of
from vocabshift.surgery.stream import write_streamed
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer

# A model in memory, changed as a plan says: rows, ids in its configs, modules that count tokens.
#
# Owns the only place that changes a model for good.


def move(model: Any, matrices: Matrices, plan: Plan) -> None:
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


def _follow(model: Any, matrices: Matrices, plan: Plan) -> None:
    """Let configs and modules of a model in memory follow its new rows."""
    config_ids.apply(model, plan.changes, plan.report.rows)
    has_head = model.get_output_embeddings() is not None
    # Where a wrapper's config has no such key (Mllama), transformers ties nothing.
    if has_head and getattr(model.config, "tie_word_embeddings", False) != matrices.tied:
        model.config.tie_word_embeddings = matrices.tied  # the tensors are right
    _follow_padding(model.get_input_embeddings(), model.config)


def _follow_padding(embeddings: Any, config: Any) -> None:
    """Let the row that gets no gradient be the pad token's, if there was such a row at all."""
    if getattr(embeddings, "padding_idx", None) is not None:
        pad = config.get_text_config().pad_token_id
        embeddings.padding_idx = pad if isinstance(pad, int) and pad >= 0 else None


# ---


def transfer(
    model: Any,
    *,
    old: Any,
    new: Any,
    init: str = "fvt",
    seed: int = 0,
    pad_to_multiple_of: int | None = None,
    id_map: TokenIdMap | str | Path | None = None,
    donor: Any = None,
    corpus: Any = None,
    score: Score | None = None,
    overrides: str | Path | Mapping[str, Any] | None = None,
    reserve_dummies: int = 0,
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
    list of pieces}, or a JSON or TOML file of it (`surgery.overrides`). `reserve_dummies`: so many
    special tokens are added to `new` that no text has, with rows by `init` as other new ones: the
    reference by which `vocabshift glitch` tells tokens that training never reached.

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
        reserve_dummies=reserve_dummies,
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
    id_map: TokenIdMap | str | Path | None = None,
    donor: Any = None,
    corpus: Any = None,
    score: Score | None = None,
    overrides: str | Path | Mapping[str, Any] | None = None,
    reserve_dummies: int = 0,
) -> tuple[Tokenizer, TransferReport]:
    """Change `model` in place, as `transfer` does; the enlarged tokenizer and what was done."""
    method = method_of(init, seed, donor=donor, corpus=corpus, score=score, overrides=overrides)
    check_padding(pad_to_multiple_of)
    id_map = open_map(id_map, new)
    old, new = open_tokenizer(old), open_tokenizer(new)
    check_tokenizers(old, new, id_map)
    new = with_dummies(new, reserve_dummies)
    matrices = find_matrices(model)
    plan = make_plan(
        model,
        matrices,
        old,
        new,
        method=method,
        pad_to_multiple_of=pad_to_multiple_of,
        id_map=id_map,
    )
    move(model, matrices, plan)
    return plan.tokenizer, plan.report


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
    id_map: TokenIdMap | str | Path | None = None,
    donor: Any = None,
    corpus: Any = None,
    score: Score | None = None,
    overrides: str | Path | Mapping[str, Any] | None = None,
    reserve_dummies: int = 0,
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
    for its tries. `reserve_dummies`: as there. `dry_run`: check and plan everything, write
    nothing. `resume`: go on from the shards that a killed run of the same transfer finished.

    `model_source`: a folder (or Hub name) with model and tokenizer, left as it is. `out` appears
    whole or not at all, after AutoTokenizer gave the same ids in it. FileExistsError without
    `force` where `out` exists; OSError where the disk has no room.
    """
    method = method_of(init, seed, donor=donor, corpus=corpus, score=score, overrides=overrides)
    check_padding(pad_to_multiple_of)
    inputs = (tokenizer_source, donor, corpus, overrides, id_map)
    model_folder.check_paths(model_source, *inputs, out=out, force=force)
    id_map = open_map(id_map, tokenizer_source)
    old = model_folder.load_own_tokenizer(model_source)
    new = open_tokenizer(tokenizer_source)
    check_tokenizers(old, new, id_map)
    new = with_dummies(new, reserve_dummies)
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
    if reserve_dummies:
        config["reserve_dummies"] = reserve_dummies
    saved = open_saved(model_source) if dtype is None else None

    def plan_for(model: Any, matrices: Matrices, method: Method) -> Plan:
        return make_plan(
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
        matrices = find_matrices(model)
        plan = plan_for(model, matrices, method)
    if saved is not None:
        tried = {} if model is None else plan.report.tried
        chosen = method if model is None else replace(method, init=plan.report.init)
        del model
        plan = plan_for(saved, saved.matrices, chosen)
        plan = replace(plan, report=replace(plan.report, tried=tried))
        return write_streamed(
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
    move(model, matrices, plan)
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
