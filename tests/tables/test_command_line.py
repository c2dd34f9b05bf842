"""The command line: each command calls the package, and what is refused leaves no trace."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from functools import partial

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.random import default_rng

import dpcgd
from dpcgd.tables.command_line import main

pytest.importorskip("opendp", reason="a release has secure noise")

N = 400
SCHEMA = {"smoke": ["no", "yes"], "cough": ["no", "yes"], "age": {"edges": [15, 35, 80]}}
ROW = "yes,no,20,a"
WRITTEN = {
    "schema.json": SCHEMA,
    "one.json": {"smoke": ["no", "yes"]},
    "list.json": ["smoke"],
    "no_levels.json": {**SCHEMA, "cough": []},
    "no_range.json": {"smoke": ["no", "yes"], "age": {"range": [80, 15]}},
    "other.json": {**SCHEMA, "cough": ["no", "yes", "often"]},
    "unknown.json": {"tiers": [["smoke"], ["lung"]]},
    "no_key.json": {"tier": [["smoke"]]},
    "apart.json": {"without_causes": [*SCHEMA]},
    "cycle.json": {"required": [["smoke", "cough"], ["cough", "smoke"]]},
}
TEXTS = {
    "empty.csv": "",
    "ragged.csv": f"smoke,cough,age,id\n{ROW}\nyes,no\n",
    "gap.csv": f"smoke,cough,age,id\n{ROW}\nyes,,20,b\n",
    "marks.csv": f"smoke;cough;age;id\n{ROW.replace(',', ';')}\n",
    "tabs.csv": f"smoke\tcough\tage\tid\n{ROW.replace(',', chr(9))}\n",
    "texts.csv": "flag,code,land\ntrue,01,NA\nfalse,02,DE\n",
    "fake.parquet": "PAR1 and no more",
    "syntax.json": '{"smoke": ["no", "yes"]',
    "named_twice.json": '{"smoke": ["no", "yes"], "smoke": ["no", "yes"]}',
    "no_account.json": '{"format": "dpcgd account 2"}',
    "known.html": '{"tiers": [["smoke"]]}',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files to go wrong with, and one release."""
    home, rng = tmp_path_factory.mktemp("study"), default_rng(0)
    smoke, age = rng.random(N) < 0.5, rng.integers(15, 80, N)
    cough = rng.random(N) < np.where(smoke, 0.8, 0.2)
    frame = pd.DataFrame({"smoke": smoke, "cough": cough}).replace({True: "yes", False: "no"})
    frame.assign(age=age, id=np.arange(N) // 2).to_csv(home / "people.csv", index=False)
    frame.assign(age=age).to_parquet(home / "people.parquet")
    written = {name: json.dumps(content) for name, content in WRITTEN.items()}
    for name, text in (TEXTS | written).items():
        (home / name).write_text(text)
    (home / "latin.csv").write_bytes("smoke,cough,age,id\nyes,ja\u00df,20,a\n".encode("latin-1"))
    (home / "folder").mkdir()
    data = dpcgd.read_table(home / "people.csv", SCHEMA, ignore=["id"])
    files = {"account": home / "spent.json", "out": home / "done.json"}
    dpcgd.release_once(data, SCHEMA, epsilon=1.0, rng=rng, **files)
    dpcgd.open_account(home / "two_rows.json", epsilon=1.0, delta=1e-6, rows_per_person=2)
    dpcgd.open_account(home / "whole.json", epsilon=2.0, delta=1e-6)
    text = (home / "spent.json").read_text()
    (home / "edited.json").write_text(text.replace('"epsilon": 1.0', '"epsilon": 9.0'))
    data = data.__class__(data.codes[:, :2], {name: SCHEMA[name] for name in ("smoke", "cough")})
    dpcgd.priv_pc(data, epsilon=1.0, rng=rng).save(home / "search.json")
    return home


def run(home, line):
    """One command in that folder."""
    with contextlib.chdir(home):
        return CliRunner().invoke(main, shlex.split(line))


def state(home):
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


PAYS = "--account new.json --out new_release.json"
GOOD = f"release people.csv schema.json --ignore id --epsilon 1 {PAYS}"
WHOLE = f"release people.csv schema.json --epsilon 1 {PAYS}"
TABLES = [name for name in TEXTS if "csv" in name]
OF_TABLES = [
    *(f"release {name} schema.json --epsilon 1 --ignore id {PAYS}" for name in TABLES),
    WHOLE,
    f"release latin.csv schema.json --ignore id --epsilon 1 {PAYS}",
    f"release folder schema.json --epsilon 1 {PAYS}",
    f"release /dev/zero schema.json --epsilon 1 {PAYS}",
    f"release fake.parquet schema.json --epsilon 1 {PAYS}",
    f"release people.parquet schema.json --epsilon 1 --separator ';' {PAYS}",
    f"{GOOD} --separator ';;'",
    f"{GOOD} --encoding morse",
    f"{GOOD} --decimal ;",
    f"release people.csv schema.json --ids id --epsilon 1 {PAYS}",
    f"release people.csv schema.json --ids person --epsilon 1 {PAYS}",
]
OF_SCHEMAS = [
    f"release people.csv {name} --ignore id --epsilon 1 {PAYS}"
    for name in [*WRITTEN, *TEXTS, "nowhere.json", "folder", "people.csv", "/dev/zero"]
    if name not in ("schema.json", "other.json") and not name.endswith(("csv", "parquet"))
]
OF_OPTIONS = {
    f"{GOOD} --epsilon": ("0", "-1", "nan", "inf", "much", "''"),
    f"{GOOD} --delta": ("0", "-1", "1", "nan", "0.01", "few"),
    f"{GOOD} --rows-per-person": ("0", "-2", "1.5", "401"),
    f"{GOOD} --budget": ("0.5", "-1", "nan", "inf"),
    f"{GOOD} --knowledge": ("unknown.json", "no_key.json", "cycle.json", "list.json"),
    f"{GOOD} --precision": ("0", "1.5", "nan", "most"),
    f"{GOOD} --out": ("folder", "nowhere/r", "''", "people.csv", "/dev/full", "x" * 300),
    f"{GOOD} --account": ("folder", "nowhere/a", "people.csv", "/dev/full", "no_account.json"),
    f"{GOOD} --account whole.json": ("--budget 1", "--epsilon 3"),
    f"{GOOD} --report": ("r.pdf", "folder", "nowhere/r.html", "folder/", "known.html"),
    GOOD: (
        *("people.csv", "--knowledge nowhere.json", "--aim both", "--system best"),
        *("--system priv_pc --precision 0.9", "--out r.html --report r.html"),
        *("--out new.json", "--out spent.json", "--out done.json --epsilon 0.5"),
        *("--account edited.json", "--account spent.json", "--account two_rows.json"),
    ),
    "release people.csv schema.json": (f"--ignore id {PAYS}", "--epsilon 1 --out new_release.json"),
    "release people.csv other.json": ("--epsilon 1 --account spent.json --out done.json",),
    "schema": ("no_levels.json", "nowhere.csv --not-private", "no.parquet --not-private"),
    "schema schema.json --out": ("schema.json", "spent.json"),
    "effects done.json --out": ("done.json", "spent.json", "people.csv"),
    "plan schema.json": ("many --epsilon 1", "0 --epsilon 1", "400", "400 --points 500"),
    "plan schema.json 400 --epsilon 1": ("--points 5", "--out nowhere/plan.txt"),
    "read": ("nowhere.json", "spent.json", "search.json --precision 0.9"),
    "read done.json": ("--precision 2", "--out graph.pdf", "--knowledge unknown.json"),
    "effects": ("nowhere.json", "search.json"),
    "check": ("", "done.json schema.json", "edited.json"),
    "rehearse schema.json": ("400 --epsilon 1 --runs 0", "10000000000000 --epsilon 1"),
}
BAD = [f"{start} {end}" for start, ends in OF_OPTIONS.items() for end in ends]
BAD += [*OF_TABLES, *OF_SCHEMAS, "", "relaese people.csv schema.json"]


@pytest.mark.parametrize("line", BAD)
def test_what_is_refused_is_one_line_and_leaves_no_trace(folder, line):
    before = state(folder)
    done = run(folder, line)
    assert done.exit_code == 2, (done.output, done.exception)
    assert done.stdout == ""
    assert done.stderr.startswith("dpcgd: ")
    assert done.stderr.count("\n") == 1
    assert state(folder) == before, "nothing was written"


CURES = [
    (WHOLE, "--columns 'schema', or pass --ignore 'id'"),
    (f"release marks.csv schema.json --epsilon 1 {PAYS}", "pass --separator ';'"),
    (f"release tabs.csv schema.json --epsilon 1 {PAYS} --separator '\\t'", "pass --ignore 'id'"),
    (f"{GOOD} --knowledge no_key.json", '"cough"]]}; see dpcgd release --help'),
    (f"{GOOD} --delta 0.01", "set --allow-delta"),
    ("plan schema.json", "see dpcgd plan --help"),
]


@pytest.mark.parametrize(("line", "cure"), CURES)
def test_a_cure_is_named_as_it_is_typed(folder, line, cure):
    assert run(folder, line).stderr.rstrip().endswith(cure)


def test_one_command_releases_and_a_second_one_reads(folder, tmp_path):
    line = "release people.csv schema.json --ids id --rows-per-person 2 --epsilon 1"
    line += f" --account {tmp_path}/a --out {tmp_path}/r --report {tmp_path}/report.html"
    done = run(folder, line)
    assert done.exit_code == 0, done.output
    kept = state(tmp_path)
    release = dpcgd.read_release(tmp_path / "r")
    (paid,) = dpcgd.open_account(tmp_path / "a").runs
    assert release.terms.account_entry == paid.entry
    assert (release.terms.kind, paid.label, paid.system) == ("release", "r", "dag_posterior")
    assert str(release.graph) in done.stdout
    (tmp_path / "report.html").unlink()
    second = run(folder, line.replace("people.csv", "gone.csv"))
    assert second.exit_code == 0, second.output
    assert second.stdout == done.stdout
    assert "nothing was spent" in second.stderr
    assert state(tmp_path) == kept, "the report is written once more, and nothing else"
    agree = run(folder, f"check {tmp_path}/r {tmp_path}/a")
    assert agree.exit_code == 0
    assert f"its receipt is {tmp_path}/r" in agree.stdout


def test_a_parquet_file_and_options_reach_the_run(folder, tmp_path):
    (tmp_path / "known.json").write_text('{"tiers": [["age"], ["smoke"], ["cough"]]}')
    line = f"release people.parquet schema.json --epsilon 0.5 --delta 1e-7 --knowledge {tmp_path}/"
    line += f"known.json --precision 0.5 --aim edges --account {tmp_path}/a --out {tmp_path}/r"
    assert run(folder, f"{line} --budget 2").exit_code == 0
    release, account = dpcgd.read_release(tmp_path / "r"), dpcgd.open_account(tmp_path / "a")
    promised, settings = release.ledger.budget, release.terms.settings
    assert (promised.epsilon, promised.delta, settings["precision"]) == (0.5, 1e-7, 0.5)
    assert settings["knowledge"].tiers == (("age",), ("smoke",), ("cough",))
    assert (account.budget.epsilon, account.remaining.epsilon) == (2.0, pytest.approx(1.5))


def test_commands_without_data_print_what_the_package_gives(folder, tmp_path):
    planned = run(folder, "plan schema.json 400 --epsilon 1")
    assert planned.stdout == f"{dpcgd.plan(SCHEMA, 400, epsilon=1.0)}\n"
    asked = run(folder, "plan schema.json 40000 --points 5")
    assert float(asked.stdout) == dpcgd.epsilon_for(SCHEMA, 40_000, points=5)
    line = f"rehearse schema.json 400 --epsilon 1 --runs 2 --out {tmp_path}/back.txt"
    assert run(folder, line).exit_code == 0
    assert "n = 400, epsilon = 1" in (tmp_path / "back.txt").read_text()


def test_a_schema_is_spelled_out_or_drafted_off_the_data(folder):
    assert json.loads(run(folder, "schema schema.json").stdout) == dpcgd.Schema.of(SCHEMA).to_dict()
    for name in ("people.csv --ignore id", "people.parquet"):
        off = json.loads(run(folder, f"schema {name} --not-private").stdout)
        assert (off["smoke"]["levels"], off["age"]["range"]) == (["no", "yes"], [15, 79])
    assert {"true", "01", "NA"} <= {
        *run(folder, "schema texts.csv --not-private").stdout.split('"')
    }


@pytest.mark.parametrize("ending", ["csv", "dagitty", "dot", "gml", "svg"])
def test_a_release_is_read_and_its_graph_written(folder, tmp_path, ending):
    done = run(folder, f"read done.json --precision 0.99 --out {tmp_path}/graph.{ending}")
    assert done.exit_code == 0
    shown = dpcgd.reread(dpcgd.read_release(folder / "done.json"), precision=0.99)
    assert done.stdout == f"{shown}\n{shown.graph}\n"
    assert "smoke" in (tmp_path / f"graph.{ending}").read_text()


def test_a_search_is_shown_as_it_was_released(folder):
    assert "smoke -- cough" in run(folder, "read search.json").stdout


def test_columns_of_the_schema_alone_and_ids_go_together(folder):
    read = partial(dpcgd.read_table, folder / "people.csv", SCHEMA)
    some = read(columns="schema", ids="id", rows_per_person=9)
    assert (some.codes == read(ignore=["id"]).codes).all()


def test_effects_are_those_of_the_package(folder, tmp_path):
    frame = dpcgd.effects(dpcgd.read_release(folder / "done.json")).frame()
    assert len(frame) > 0
    printed = run(folder, "effects done.json").stdout
    arrows = {pair: "drawn" for pair in dpcgd.read_release(folder / "done.json").graph.arrows}
    drawn = [arrows.get(pair, "open") for pair in zip(frame.cause, frame.effect, strict=True)]
    assert [line.split()[2] for line in printed.splitlines()[1:]] == sorted(drawn)
    assert all(estimand in printed for estimand in frame.estimand)
    asked = run(folder, "effects done.json --between smoke cough").stdout.splitlines()[1:]
    assert [line.split()[:2] for line in asked] == [["smoke", "cough"]]
    assert (
        run(folder, "effects done.json --knowledge apart.json").stdout == "no edge, so no effect\n"
    )
    assert "written as .csv" in run(folder, f"effects done.json --out {tmp_path}/e.json").stderr
    assert run(folder, f"effects done.json --out {tmp_path}/effects.csv").exit_code == 0
    written = pd.read_csv(tmp_path / "effects.csv")
    assert sorted(written.cause) == sorted(frame.cause)
    assert sorted(written.estimate) == pytest.approx(sorted(frame.estimate), nan_ok=True)


def test_without_an_edge_there_is_no_effect(folder, tmp_path):
    paths = f"--account {tmp_path}/a --out {tmp_path}/r"
    run(folder, f"release people.parquet schema.json --epsilon 1 --knowledge apart.json {paths}")
    assert run(folder, f"effects {tmp_path}/r").stdout == "no edge, so no effect\n"
    run(folder, f"effects {tmp_path}/r --out {tmp_path}/effects.csv")
    assert pd.read_csv(tmp_path / "effects.csv").columns[0] == "cause"


@pytest.mark.parametrize("name", ["", *main.commands])
def test_help_says_what_a_command_does_and_every_option_has_one(name):
    assert CliRunner().invoke(main, [*name.split(), "--help"]).exit_code == 0
    command = main.commands.get(name, main)
    assert [own for own in command.params if isinstance(own, click.Option) and not own.help] == []


COMMAND = [sys.executable, "-m", "dpcgd.tables.command_line"]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_completion_knows_the_commands():
    asked = {"_DPCGD_COMPLETE": "bash_complete", "COMP_WORDS": "dpcgd re", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=ENVIRONMENT | asked)
    words = {line.partition(",")[2] for line in done.stdout.split()}
    assert words == {"read", "rehearse", "release"}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
@pytest.mark.parametrize(("sink", "code"), [("> /dev/full", 1), ("| true", None)])
def test_a_release_outlives_the_place_where_it_is_printed(folder, tmp_path, sink, code):
    """A full disk behind stdout, or a pipe that nobody reads."""
    line = ["release", folder / "people.parquet", folder / "schema.json", "--epsilon", "1"]
    line += ["--account", "a.json", "--report", "r.html", "--out", "full.json"]
    command = f"set -o pipefail; {shlex.join(map(str, [*COMMAND, *line]))} {sink}"
    how = {"cwd": tmp_path, "capture_output": True, "text": True, "env": ENVIRONMENT}
    done = subprocess.run(["bash", "-c", command], **how)
    assert code is None or done.returncode == code
    assert "Traceback" not in done.stderr
    release = dpcgd.read_release(tmp_path / "full.json")
    (paid,) = dpcgd.open_account(tmp_path / "a.json").runs
    assert release.terms.account_entry == paid.entry
    assert (tmp_path / "r.html").exists()
