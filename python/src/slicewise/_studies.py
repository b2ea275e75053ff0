"""Studies, run and judged."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Executor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

from ._program import SlicewiseError, command, options
from ._results import Results

Study = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def run(study: Study, *, out: str | os.PathLike[str] | None = None, progress: bool | None = None, **settings: object) -> Results:
    """Carry out a study and return its results. Runs that the folder has are kept.

    ``study``: path of a study file, or its contents as a mapping (files that it names have absolute paths then). ``out``: the results
    folder, by default ``results/`` and the name of the file, or that in the mapping. ``settings``: options of ``slicewise run`` with
    underscores, as ``repetitions=8, quick=True, policy=["priority", "shaping"], on="gateway"``. ``progress``: as of :func:`command`.

    Raises :class:`SlicewiseError`: with code 2 for a mistake in the study, with its place; with code 3 for a verdict that ``fail_on``
    names.
    """
    folder = _folder(study, out)
    with _file(study) as file:
        command("run", file, "--out", folder, "--json", *options(**settings), progress=progress)
    return Results(folder)


def sweep(study: Mapping[str, Any], axes: Mapping[str, Any], **settings: Any) -> Results:
    """Carry out a study at every point of a grid. ``axes``: by name, as under ``sweep: axes:`` of a study file. Else as :func:`run`.

    >>> sweep(study, {"load": {"path": "sources.bulk.rate", "from": "10 Mbit/s", "to": "90 Mbit/s", "count": 9}})  # doctest: +SKIP
    """
    if not isinstance(study, Mapping):
        raise TypeError("a sweep over a study file is part of the file: write `sweep:` there, and call run()")
    return run({**study, "sweep": {"axes": axes}}, **settings)


def distribute(study: Study, executor: Executor, shards: int, *, out: str | os.PathLike[str] | None = None, **settings: object) -> Results:
    """Carry out a study in shards by an executor, such as that of Dask, Ray or submitit, collect them, and return the results.

    ``executor``: anything with ``submit`` whose futures are those of ``concurrent.futures``. Its workers have ``slicewise``, and the
    folders of the study and of ``out`` under the same path. ``settings``: as of :func:`run`. A shard that was carried out is not
    computed again, so the same call goes on after a failure.

    Raises what the first shard that failed raised, once those that had begun have ended; others are cancelled.
    """
    judging = {name: settings.pop(name, None) for name in ("fail_on", "explain")}
    folder = _folder(study, out).absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    parts = [folder.with_name(f"{folder.name}-shard-{part}-of-{shards}") for part in range(1, shards + 1)]
    with _file(study, beside=folder) as file:
        file = file.absolute()
        futures = [executor.submit(_shard, str(file), f"{number}/{shards}", str(part), settings) for number, part in enumerate(parts, 1)]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            wait([future for future in futures if not future.cancel()])
            raise
        command("collect", folder, *parts, "--json", *options(**judging), progress=False)
    return Results(folder)


def _shard(file: str, part: str, out: str, settings: Mapping[str, object]) -> None:
    command("run", file, "--shard", part, "--out", out, *options(**settings), progress=False)


def analyse(
    study: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    progress: bool | None = None,
    **settings: object,
) -> Results:
    """Measure from captures and return the results, as ``slicewise analyse`` does.

    ``study``: a measured study; or ``settings`` name captures: ``sent="tx.pcap", received="rx.pcap"``, or ``runs="folder",
    slices="study.yaml"``.
    """
    named = [] if study is None else [study]
    command("analyse", *named, "--out", out, "--json", *options(**settings), progress=progress)
    return Results(Path(out))


def compare(baseline: Results, other: Results) -> dict[str, Any]:
    """Return what got worse, or better, from one results folder to another, as ``slicewise compare --json`` prints it."""
    compared: dict[str, Any] = json.loads(command("compare", baseline.path, other.path, "--json", progress=False))
    return compared


def _folder(study: Study, out: str | os.PathLike[str] | None) -> Path:
    if out is not None:
        return Path(out)
    if isinstance(study, Mapping):
        name = study.get("name")
        if not isinstance(name, str):
            raise SlicewiseError('the study has no name: add "name", or say where results go (out=)', 2)
        return Path("results") / name
    return Path("results") / Path(study).stem


@contextmanager
def _file(study: Study, beside: Path | None = None) -> Iterator[Path]:
    """The file of a study: a temporary one for a mapping, beside the results where other machines read it."""
    if not isinstance(study, Mapping):
        yield Path(study)
        return
    folder = None if beside is None else beside.parent
    with tempfile.TemporaryDirectory(prefix="slicewise-study-", dir=folder) as temporary:
        # JSON is YAML.
        file = Path(temporary) / "study.yaml"
        file.write_text(json.dumps(study, indent=1), encoding="utf-8")
        yield file
