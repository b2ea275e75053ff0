#!/usr/bin/env python3
"""Draw the data of a figure again: python3 plot.py NAME.csv [OUT.pdf]. Needs matplotlib."""
import csv, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

MARKERS = "os^DXv*P"
source = sys.argv[1]
rows = list(csv.DictReader(open(source, encoding="utf-8", newline="")))
number = lambda text: float(text) if text else float("nan")
tail = (lambda y: -np.log10(np.clip(1 - np.asarray(y) / 100, 1e-5, 1)), lambda v: 100 * (1 - 10.0 ** -np.asarray(v)))
panels = sorted({int(row["panel"]) for row in rows})
plt.rcParams.update({"font.size": 8, "font.family": "sans-serif", "font.sans-serif": ["Liberation Sans", "Arial", "DejaVu Sans"], "lines.linewidth": 0.75, "pdf.fonttype": 42})
figure, axes = plt.subplots(len(panels), 1, sharex=True, squeeze=False, figsize=(175 / 25.4, 2 + 1.2 * len(panels)))
for panel, ax in zip(panels, axes[:, 0]):
    own = [row for row in rows if int(row["panel"]) == panel]
    by_row = own[0]["y_scale"] == "categories"
    names = list(dict.fromkeys(row["y"] for row in own if row["kind"] in ("signs", "margin"))) if by_row else []
    members = list(dict.fromkeys(row["series"] for row in own if row["kind"] in ("signs", "signed_line")))
    beside = lambda row: (members.index(row["series"]) - (len(members) - 1) / 2) / (len(members) + 1) if row["series"] in members else 0
    y_of = lambda row: names.index(row["y"]) + beside(row) if by_row else number(row["y"])
    for key in dict.fromkeys((row["kind"], row["series"], row["colour"]) for row in own):
        kind, series, colour = key
        group = [row for row in own if (row["kind"], row["series"], row["colour"]) == key]
        x = [number(row["x"]) for row in group]
        y = [] if kind in ("limit", "shaded") else [y_of(row) for row in group]
        low, high = ([number(row[end]) for row in group] for end in ("low", "high"))
        if kind == "limit":
            for row in group:
                ends = [number(row["low"]), number(row["high"])]
                if by_row and row["low"] in names:
                    ends = [names.index(row["low"]) - 0.5, names.index(row["high"]) + 0.5]
                    ax.plot([number(row["x"])] * 2, ends, "--", c=colour)
                elif row["low"] == "" or by_row:
                    ax.axvline(number(row["x"]), ls="--", c=colour) if row["x"] else ax.axhline(number(row["y"]), ls="--", c=colour)
                else:
                    ax.plot(*([[number(row["x"])] * 2, ends] if row["x"] else [ends, [number(row["y"])] * 2]), "--", c=colour)
            ax.plot([], [], "--", c=colour, label=series) if series else None
        elif kind == "shaded":
            for ends in zip(low, high):
                ax.axvspan(*ends, color=colour, zorder=0)
        elif kind in ("cell", "no_value"):
            fill = {"fc": colour, "lw": 0} if kind == "cell" else {"fc": "none", "ec": "0.6", "lw": 0, "hatch": "////"}
            for row in group:
                left, right, bottom, top = (number(row[end]) for end in ("x_low", "x_high", "low", "high"))
                ax.fill([left, right, right, left], [bottom, bottom, top, top], **fill)
            ax.set_title(series, fontsize=8, loc="left")
        elif kind == "mark":
            ax.plot(x, y, "X" if "broken" in series else "o", c="black", mec="white", ls="", ms=5, label=series)
        elif kind == "margin":
            ax.plot(x, y, "|" if by_row else "_", c=colour, ms=9)
        else:
            signed = kind.startswith("sign")
            marker = MARKERS[members.index(series) % 8] if signed else "."
            line = "" if kind == "signs" else "-"
            steps = "steps-post" if kind == "steps" else "default"
            ax.plot(x, y, marker=marker, ls=line, c=colour, ms=4 if signed else 1, label=series, drawstyle=steps, lw=0.4 if kind == "thin_line" else 0.75)
            if signed:
                ax.hlines(y, low, high, colour) if by_row else ax.vlines(x, low, high, colour)
                ax.hlines(y, *([number(row[end]) for row in group] for end in ("x_low", "x_high")), colour)
    ax.set_xlabel(own[0]["x_axis"] if panel == panels[-1] else "")
    ax.set_ylabel(own[0]["y_axis"])
    ax.set_xscale("log" if own[0]["x_scale"] == "log" else "linear")
    if own[0]["y_scale"] == "tail":
        ax.set_yscale("function", functions=tail)
        ax.set_yticks([0, 90, 99, 99.9, 99.99, 99.999], ["0", "90", "99", "99.9", "99.99", "99.999"])
    elif by_row:
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
    else:
        ax.set_yscale("log" if own[0]["y_scale"] == "log" else "linear")
handles = {label: handle for ax in axes[:, 0] for handle, label in zip(*ax.get_legend_handles_labels())}
figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=3, fontsize=7) if handles else None
figure.set_layout_engine("constrained")
figure.savefig(sys.argv[2] if len(sys.argv) > 2 else source.removesuffix(".csv") + "-plot.pdf")
