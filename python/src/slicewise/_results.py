"""What a study writes, read."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_COLOURS = {"holds": "#1a7f37", "broken": "#cf222e"}


@dataclass(frozen=True)
class Verdict:
    """A verdict on an attribute of a policy.

    ``attribute``: ``isolation``, ``reallocation`` or ``scalability``. ``verdict``: ``holds``, ``broken``, ``partial``, ``inconclusive`` or
    ``not tested``. ``reason``: the sentence of the report. ``case``: of a file with cases or a sweep.
    """

    case: str | None
    policy: str
    attribute: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Figure:
    """A figure of a report; notebooks draw it."""

    path: Path

    def _repr_svg_(self) -> str:
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Results:
    """A folder of results. Tables and their columns are described in docs/results.md."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if not any((self.path / marker).is_file() for marker in ("study.json", "series.json")):
            raise FileNotFoundError(f"{self.path} holds no results: neither study.json nor series.json is in it")

    @cached_property
    def cases(self) -> Mapping[str, Results]:
        """Results of each case or point, by name; empty for a study without."""
        file = self.path / "series.json"
        if not file.is_file():
            return {}
        series = json.loads(file.read_text(encoding="utf-8"))
        start = len(f"{series['name']}-")
        found = {folder[start:]: self.path / folder for folder in series["cases"]}
        return {name: Results(folder) for name, folder in found.items() if (folder / "study.json").is_file()}

    @property
    def report(self) -> Path:
        """Path of the HTML report."""
        return self.path / "report.html"

    def verdicts(self) -> list[Verdict]:
        """Verdicts on all policies, with the sentence of the report."""
        with open(self._data("verdicts", "csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [Verdict(row.get("case"), row["policy"], row["attribute"], row["verdict"], row["reason"].lstrip("'")) for row in rows]

    def table(self, name: str) -> pyarrow.Table:
        """A table of ``data/``, or ``transactions``, as Arrow; of cases with a column ``case`` and one for each axis of a sweep, also where only the cases have it."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        if self._has(name) or not self.cases:
            # By default, a folder of a policy whose name begins with `_` would be left out.
            return parquet.read_table(self._data(name, "parquet"), ignore_prefixes=["."])
        cells = parquet.read_table(self._data("cells", "parquet"))
        first = [column for column in cells.column_names if column == "case" or column.startswith("axis_")]
        places = {row["case"]: row for row in cells.select(first).group_by(first).aggregate([]).to_pylist()}
        tables = []
        for case, results in self.cases.items():
            if results._has(name):
                table = results.table(name)
                place = {**places.get(case, {}), "case": case}
                for index, column in enumerate(first):
                    values = pa.array([place.get(column)] * table.num_rows, cells.schema.field(column).type)
                    table = table.add_column(index, column, values)
                tables.append(table)
        if not tables:
            raise FileNotFoundError(
                f"no case of {self.path} has a table `{name}`; points of a sweep get their own by `slicewise report {self.path}/POINT`"
            )
        return pa.concat_tables(tables, promote_options="default").replace_schema_metadata(None)

    def pandas(self, name: str) -> pandas.DataFrame:
        """A table as a data frame of pandas."""
        frame: pandas.DataFrame = self.table(name).to_pandas()
        return frame

    def polars(self, name: str) -> polars.DataFrame:
        """A table as a data frame of Polars."""
        import polars

        frame = polars.from_arrow(self.table(name))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def figures(self) -> list[str]:
        """Names of the figures."""
        files = (self.path / "figures").glob("*.svg")
        return sorted(file.stem for file in files if not file.stem.endswith("@85mm"))

    def figure(self, name: str) -> Figure:
        """A figure by its name."""
        path = self.path / "figures" / f"{name}.svg"
        if not path.is_file():
            raise FileNotFoundError(f"no figure `{name}` in {self.path}: it has {', '.join(self.figures()) or 'none'}")
        return Figure(path)

    def _place(self, name: str, kind: str) -> Path:
        return self.path / name if name == "transactions" else self.path / "data" / f"{name}.{kind}"

    def _has(self, name: str) -> bool:
        return self._place(name, "parquet").exists()

    def _data(self, name: str, kind: str) -> Path:
        path = self._place(name, kind)
        if not path.exists():
            tables = sorted(file.stem for file in (self.path / "data").glob(f"*.{kind}"))
            raise FileNotFoundError(f"no table `{name}` in {self.path}: it has {', '.join(tables) or 'none'}")
        return path

    def _repr_html_(self) -> str:
        verdicts = self.verdicts()
        attributes = list(dict.fromkeys(verdict.attribute for verdict in verdicts))
        rows: dict[tuple[str | None, str], dict[str, Verdict]] = {}
        for verdict in verdicts:
            rows.setdefault((verdict.case, verdict.policy), {})[verdict.attribute] = verdict
        head = "".join(f"<th>{escape(name)}</th>" for name in ["policy", *attributes])
        body = "".join(
            f"<tr><td>{escape(' · '.join(filter(None, names)))}</td>{''.join(_cell(of.get(name)) for name in attributes)}</tr>"
            for names, of in rows.items()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<td></td>"
    colour = _COLOURS.get(verdict.verdict, "inherit")
    return f'<td style="color:{colour}" title="{escape(verdict.reason)}">{escape(verdict.verdict)}</td>'
