"""Damage to files, drawn: what several kinds of tests do to a sound one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from vocabshift.cli.options import UsageError

ODD: list[Any] = [None, True, -1, 2**70, 1e308, "", "../../x", "\udcff", [], [[]], {}, {"": []}]


def sound_copy(
    write: Callable[[Path], Path], read: Callable[[Path], object], factory: pytest.TempPathFactory
) -> Path:
    """A file or folder in a folder of its own, which `read` has read once."""
    place = factory.mktemp("sound") / "files"
    place.mkdir()
    sound = write(place)
    read(sound)
    return sound


def damage_json(document: Any, data: st.DataObject) -> Any:
    """The same with one value, somewhere in it, replaced by an odd one or left out."""
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    if not isinstance(document, dict | list):
        return data.draw(st.sampled_from(ODD))
    visit(document)
    if not places:
        return None
    node, key = data.draw(st.sampled_from(places))
    if data.draw(st.booleans()):
        node[key] = data.draw(st.sampled_from(ODD))
    else:
        del node[key]
    return document


def damage_bytes(content: bytes, data: st.DataObject) -> bytes:
    """Some bytes replaced, near the start where the structure is, and sometimes the end cut off."""
    out = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        most = data.draw(st.sampled_from((min(200, len(out)), len(out))))
        out[data.draw(st.integers(0, most - 1))] = data.draw(
            st.sampled_from((0, 9, 10, 34, 65, 91, 123, 127, 128, 255))
        )
    return bytes(out[: data.draw(st.integers(0, len(out)))] if data.draw(st.booleans()) else out)


def check_damage(
    sound: Path, read: Callable[[Path], object], data: st.DataObject, nameless: Collection[str]
) -> None:
    """A copy of `sound`, a file or folder, with damage in one file, is read, or refused in one
    line. The line names the place, but for the damaged files of the names in `nameless`."""
    place = sound.parent.with_name("damaged files")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(sound.parent, place)
    target = place / sound.name
    files = [path for path in sorted(target.rglob("*")) if path.is_file()] or [target]
    file = data.draw(st.sampled_from(files))
    content = file.read_bytes()
    if file.suffix in (".json", ".jsonl") and data.draw(st.booleans()):
        texts = content.splitlines() if file.suffix == ".jsonl" else [content]
        rows = [json.loads(text) for text in texts]
        at = data.draw(st.integers(0, len(rows) - 1))
        rows[at] = damage_json(rows[at], data)
        damaged = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        damaged = damage_bytes(content, data)
    file.write_bytes(damaged)
    try:
        read(target)
    except (ValueError, OSError, UsageError) as error:
        assert place.name in str(error) or file.name in nameless, error
        assert "\n" not in str(error)
        assert damaged != content, "nothing was damaged, and it is refused"
