"""Tests of the module with the command: `SLICEWISE` names it."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import slicewise

REPOSITORY = Path(__file__).parents[2]

# Two slices behind a port: small enough to be simulated at once.
STUDY = {
    "name": "small",
    "link": {"rate": "1 Gbit/s"},
    "dut": {"model": "port", "port_rate": "100 Mbit/s"},
    "slices": {
        "voice": {"match": {"dscp": "ef"}, "share": "10 %", "guaranteed": True, "headers": {"dscp": "ef"}},
        "bulk": {"match": {"dscp": 0}, "share": "80 %", "headers": {"dscp": 0}},
    },
    "sources": {
        "voice": {"slice": "voice", "pattern": "poisson", "payload": "200 B", "rate": "5 Mbit/s"},
        "bulk": {"slice": "bulk", "pattern": "poisson", "payload": "1400 B", "rate": "50 Mbit/s"},
    },
    "scenarios": {"calm": {"reference": True}, "storm": {"sources": {"bulk": {"rate": "120 Mbit/s"}}}},
    "policies": {
        "fifo": {"classes": [{"name": "class-default"}]},
        "priority": {"classes": [{"name": "voice", "slice": "voice", "priority": {"level": 1}}, {"name": "class-default"}]},
    },
    "repetitions": 3,
    "duration": "500 ms",
}
AXES = {"load": {"path": "scenarios.storm.sources.bulk.rate", "values": ["40 Mbit/s", "120 Mbit/s"]}}


def lines(results):
    """Return the records of a results folder, each with its file."""
    files = sorted(Path(results, "runs").rglob("*.jsonl"))
    return [(file, line) for file in files for line in file.read_text().splitlines()]


def needs(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)


class Runs(InFolder):
    def test_a_study_is_run_and_its_verdicts_read(self):
        results = slicewise.run(STUDY, progress=False)
        self.assertEqual(results.path, Path("results/small"))
        self.assertTrue(results.report.is_file())
        found = {(of.policy, of.attribute): of for of in results.verdicts()}
        isolation = found["fifo", "isolation"]
        self.assertEqual((isolation.case, isolation.verdict), (None, "broken"))
        self.assertTrue(isolation.reason.startswith("broken: "), isolation.reason)
        self.assertIn("throughput-voice", results.figures())
        self.assertIn("<svg", results.figure("throughput-voice")._repr_svg_())
        self.assertIn("broken</td>", results._repr_html_())

    def test_runs_that_are_there_are_kept(self):
        first = slicewise.run(STUDY, progress=False)
        records = first.path / "runs/fifo/calm.jsonl"
        before = records.read_text()
        slicewise.run({**STUDY, "repetitions": 4}, progress=False)
        self.assertTrue(records.read_text().startswith(before))
        self.assertEqual(len(lines(first.path)), 4 * 4)

    def test_settings_are_options_of_the_command(self):
        results = slicewise.run(STUDY, out="one", policy=["fifo"], repetitions=2, progress=False)
        self.assertEqual(len(lines("one")), 2 * 2)
        self.assertEqual(results.path, Path("one"))

    def test_a_sweep_has_its_points_as_cases(self):
        results = slicewise.sweep(STUDY, AXES, out="swept", progress=False)
        self.assertEqual(list(results.cases), ["load-40Mbit-s", "load-120Mbit-s"])
        broken = {of.case for of in results.verdicts() if (of.policy, of.attribute, of.verdict) == ("fifo", "isolation", "broken")}
        self.assertEqual(broken, {"load-120Mbit-s"})
        with self.assertRaisesRegex(TypeError, "write `sweep:` there"):
            slicewise.sweep("study.yaml", AXES)

    def test_a_file_and_the_same_mapping_give_the_same_records(self):
        Path("study.yaml").write_text(json.dumps(STUDY))
        slicewise.run("study.yaml", out="file", progress=False)
        slicewise.run(STUDY, out="mapping", progress=False)
        for record in Path("file/runs").rglob("*.jsonl"):
            other = Path("mapping") / record.relative_to("file")
            self.assertEqual(record.read_bytes(), other.read_bytes())

    def test_folders_are_compared(self):
        one = slicewise.run(STUDY, out="one", progress=False)
        other = slicewise.run({**STUDY, "seed": 7}, out="other", progress=False)
        self.assertIn("figures", slicewise.compare(one, other))


class Mistakes(InFolder):
    def test_a_mistake_in_a_study_says_where(self):
        with self.assertRaises(slicewise.SlicewiseError) as caught:
            slicewise.run({**STUDY, "seed": "x"}, progress=False)
        self.assertEqual(caught.exception.code, 2)
        self.assertRegex(str(caught.exception), r"`x` is not a whole number[^\n]*\n *--> .*study\.yaml:\d+:\d+")

    def test_a_verdict_that_is_not_wanted_has_a_code_of_its_own(self):
        with self.assertRaises(slicewise.SlicewiseError) as caught:
            slicewise.run(STUDY, fail_on="broken", progress=False)
        self.assertEqual(caught.exception.code, 3)

    def test_a_study_without_a_name_and_a_folder_is_refused(self):
        with self.assertRaisesRegex(slicewise.SlicewiseError, "out="):
            slicewise.run({"link": {}})

    def test_a_folder_without_results_is_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "holds no results"):
            slicewise.Results(".")

    def test_names_that_are_not_there_are_answered_with_those_that_are(self):
        results = slicewise.run(STUDY, progress=False)
        with self.assertRaisesRegex(FileNotFoundError, "no figure `x` in .*throughput-voice"):
            results.figure("x")

    def test_a_command_that_is_not_there_is_named(self):
        named = os.environ.pop("SLICEWISE", None)
        path = os.environ["PATH"]
        os.environ["PATH"] = ""
        try:
            with self.assertRaisesRegex(FileNotFoundError, "not installed"):
                slicewise.find_program()
        finally:
            os.environ["PATH"] = path
            if named is not None:
                os.environ["SLICEWISE"] = named

    def test_an_interrupt_ends_the_command_and_keeps_what_is_finished(self):
        script = (
            "import json, slicewise\n"
            f"study = {STUDY!r}\n"
            "slicewise.run({**study, 'repetitions': 2000, 'duration': '5 s'}, out='long', progress=False)\n"
        )
        # A group of its own: as in a notebook, only Python gets the signal.
        process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True, stderr=subprocess.PIPE, text=True)
        first = Path("long/runs/fifo/calm.jsonl")
        while process.poll() is None and not first.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", messages)
        count = len(lines("long"))
        time.sleep(1)
        self.assertEqual(len(lines("long")), count, "the command goes on")
        self.assertFalse(list(Path("long").rglob("*.partial")))


class Distributed(InFolder):
    def check(self, executor):
        whole = slicewise.run(STUDY, out="whole", progress=False)
        parts = slicewise.distribute(STUDY, executor, 3, out="parts")
        for record in Path("whole/runs").rglob("*.jsonl"):
            other = Path("parts") / record.relative_to("whole")
            self.assertEqual(record.read_bytes(), other.read_bytes())
        self.assertEqual(whole.verdicts(), parts.verdicts())

    def test_shards_of_processes_give_the_bytes_of_one_run(self):
        with ProcessPoolExecutor(2) as executor:
            self.check(executor)

    def test_a_shard_that_fails_says_why(self):
        with ProcessPoolExecutor(2) as executor:
            with self.assertRaisesRegex(slicewise.SlicewiseError, "not a whole number"):
                slicewise.distribute({**STUDY, "seed": "x"}, executor, 2)

    @needs("dask", "distributed")
    def test_shards_of_a_dask_cluster_give_the_bytes_of_one_run(self):
        from dask.distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            self.check(client.get_executor())


class Tables(InFolder):
    @needs("pyarrow", "pandas", "polars")
    def test_tables_are_those_of_the_folder(self):
        results = slicewise.run(STUDY, progress=False)
        runs = results.table("runs")
        self.assertEqual(runs.num_rows, len(results.pandas("runs")))
        self.assertEqual(runs.num_rows, results.polars("runs").height)
        cells = results.pandas("cells")
        voice = cells.query("slice == 'voice' and scenario == 'storm' and span == 'steady' and quantity == 'throughput_bits_per_second'")
        self.assertEqual(set(voice.policy), {"fifo", "priority"})

    @needs("pyarrow")
    def test_a_table_of_a_sweep_has_its_axes_as_numbers(self):
        results = slicewise.sweep(STUDY, AXES, out="swept", progress=False)
        cells = results.table("cells")
        self.assertEqual(set(cells["axis_load"].to_pylist()), {40.0, 120.0})
        point = next(iter(results.cases.values()))
        subprocess.run([os.environ["SLICEWISE"], "report", point.path], check=True, capture_output=True)
        self.assertEqual(results.table("runs").column_names[:2], ["case", "axis_load"])

    @needs("pyarrow")
    def test_a_table_that_only_cases_have_is_put_together(self):
        cases = {"cases": {"one": {}, "two": {"seed": 2}}}
        results = slicewise.run({**STUDY, **cases}, progress=False)
        runs = results.table("runs")
        self.assertEqual(set(runs["case"].to_pylist()), {"one", "two"})
        with self.assertRaisesRegex(FileNotFoundError, "nothing"):
            results.table("nothing")

    @needs("duckdb", "pandas")
    def test_the_query_of_the_documentation_runs(self):
        import duckdb

        slicewise.run(STUDY, out="results", progress=False)
        text = (REPOSITORY / "docs/results.md").read_text(encoding="utf-8")
        query = text.split("```sql\n")[1].split("```")[0].replace("'6'", "'storm'").replace("best effort", "bulk")
        self.assertEqual(len(duckdb.sql(query).fetchall()), 2)

    @needs("duckdb", "pyarrow")
    def test_transactions_are_a_table_and_the_query_of_the_documentation_finds_them(self):
        import duckdb

        web = {"slice": "voice", "application": {"kind": "requests", "rate": "20 /s", "response": "2 kB"}}
        scenarios = {"calm": {"reference": True}, "busy": {"sources": {"bulk": {"rate": "90 Mbit/s"}}}}
        study = {**STUDY, "name": "web", "sources": {"web": web, "bulk": STUDY["sources"]["bulk"]}, "scenarios": scenarios}
        results = slicewise.run(study, out="results", transactions=True, progress=False)
        rows = results.table("transactions")
        self.assertEqual(set(rows["kind"].to_pylist()), {"request"})
        text = (REPOSITORY / "docs/results.md").read_text(encoding="utf-8").split("### transactions\n")[1]
        found = duckdb.sql(text.split("```sql\n")[1].split("```")[0]).fetchall()
        self.assertEqual(sum(row[2] for row in found) * 2, rows.num_rows)


class Documentation(InFolder):
    @needs("dask", "distributed", "pandas", "polars", "pyarrow")
    def test_the_examples_of_the_page_run(self):
        page = (REPOSITORY / "docs/python.md").read_text(encoding="utf-8")
        examples = [block.split("```")[0] for block in page.split("```python\n")[1:]]
        self.assertEqual(len(examples), 4)
        Path("study.yaml").write_text(json.dumps(STUDY))
        # A file, whose name processes of a cluster import.
        Path("examples.py").write_text("if True:\n" + textwrap.indent("\n".join(examples), "    "))
        environment = {**os.environ, "PYTHONPATH": str(Path(slicewise.__file__).parents[1])}
        script = "import runpy; runpy.run_path('examples.py', run_name='examples')"
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        for printed in ["fifo isolation broken", "'load-40Mbit-s': ", "│ priority"]:
            self.assertIn(printed, done.stdout)


if __name__ == "__main__":
    unittest.main()
