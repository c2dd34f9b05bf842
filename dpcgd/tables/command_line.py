"""The command line: each command calls the package once, and prints the result."""

import json
import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import dpcgd

__all__ = ["main"]

SYSTEMS = ["private_graph", "dag_posterior", "graph_from_moments", "table_pc"]
SYSTEMS += ["priv_pc", "svt_pc", "em_pc", "curate_pc", "laplace_pc"]

RULE = 'give a JSON file such as {"tiers": [["age"], ["smoke", "cough"]]}'


def share(text: str) -> float | str:
    """A precision, from its text."""
    return text if text == "f1" else float(text)


def json_file(path: str) -> Any:
    """Background knowledge, from its file."""
    said = import_module("dpcgd.datasets.schema").read_mapping(path, RULE)
    if wrong := [key for key in said if key not in vars(dpcgd.Knowledge())]:
        raise click.BadParameter(f"{path} has the key {wrong[0]!r}; {RULE}")
    return dpcgd.Knowledge(**said)


def mark(text: str) -> str:
    """A separator; a tab may be typed as a backslash and a t."""
    return text.replace(r"\t", "\t")


OPTIONS: dict[str, tuple[Any, str]] = {
    "account": (click.Path(), "File of the account that pays; it is made if it is not there."),
    "aim": (click.Choice(["edges", "effects"]), "What the release is for."),
    "allow_delta": (bool, "Let delta be 1/n or more."),
    "between": ((str, str), "Two variables.  [any two; effects: each edge]"),
    "budget": (float, "Epsilon of the whole account; an existing one has to agree.  [epsilon]"),
    "columns": (click.Choice(["schema"]), "Leave out every column that the schema does not name."),
    "correlation": (float, "Say which epsilon finds a correlation of this size."),
    "decimal": (str, "Decimal mark of numbers in a CSV file.  [.]"),
    "delta": (float, "Delta.  [1e-6 or 1/(10 n), if less; of a larger account, in proportion]"),
    "encoding": (str, "Encoding of a CSV file.  [utf-8]"),
    "epsilon": (float, "Epsilon of the release."),
    "ids": (str, "Column with the person of each row; checks the bound on rows of a person."),
    "ignore": (str, "A column to leave out; may be given several times."),
    "knowledge": (json_file, f"Background knowledge: {RULE}."),
    "not_private": (bool, "Read the schema off the data. No release may rest on it."),
    "out": (click.Path(), "File to write to."),
    "points": (float, "Say which epsilon finds a difference of so many percentage points."),
    "precision": (share, "Share of the edges that are expected to be right, or f1."),
    "report": (click.Path(), "Report for a reviewer, .html or .md, to write."),
    "rows_per_person": (int, "Rows that one person may have, a public bound.  [1]"),
    "runs": (int, "Random networks.  [5]"),
    "separator": (mark, "Mark between the columns of a CSV file.  [,]"),
    "system": (click.Choice(SYSTEMS), f"Which system runs.  [{SYSTEMS[0]}]"),
    "thousands": (str, "Mark between thousands in a CSV file."),
}
"""Type and help of each option; an option is a flag if its type is bool."""

ARGUMENT = re.compile(rf"\b({'|'.join(OPTIONS)})=[\[(]?('[^']*'(?:, '[^']*')?|\w+)[\])]?")
"""A pattern for an argument of the package in a message."""


def as_typed(argument: re.Match) -> str:
    """The argument as an option of the command line."""
    value = "" if argument[2] == "True" else " " + argument[2].replace("', '", "' '")
    return f"--{argument[1].replace('_', '-')}{value}"


def given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options that were given, among these names or among all."""
    chosen = {name: options[name] for name in names or options}
    return {name: own for name, own in chosen.items() if own is not None and own is not False}


class Commands(click.Group):
    """Commands whose refusals are one line on stderr, with exit code 2."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and end the program."""
        extra |= {"standalone_mode": False, "prog_name": extra.get("prog_name") or "dpcgd"}
        with warnings.catch_warnings(record=True) as said:
            code, line = self._outcome(*args, **extra)
        for text in [line] if line else dict.fromkeys(str(warning.message) for warning in said):
            click.echo(f"dpcgd: {ARGUMENT.sub(as_typed, ' '.join(text.split()))}", err=True)
        sys.exit(code)

    def _outcome(self, *args: Any, **extra: Any) -> tuple[int, str]:
        """The exit code, and the line to print."""
        try:
            return super().main(*args, **extra) or 0, ""
        except click.Abort:
            return 130, "interrupted"
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "dpcgd"
            return 2, error.format_message().rstrip(".") + f"; see {path} --help"
        except (dpcgd.BudgetSpent, ValueError, ImportError, OverflowError, MemoryError) as error:
            return 2, str(error) or "more memory is needed than there is"
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            return 2, f"{error}; leave it out"
        except OSError as error:  # without a number it is content, without a file name stdout
            place = error.filename or ("standard output" if error.errno else str(error))
            why = error.strerror or "correct the path, or write the file anew"
            return 1 if place == "standard output" else 2, f"{place} cannot be used: {why}"


@click.group("dpcgd", cls=Commands, no_args_is_help=False)
@click.version_option(package_name="dpcgd")
def main() -> None:
    """Release a causal graph of a table of people, under a guarantee, and keep the receipt.

    \b
    dpcgd schema codebook.json --out schema.json     what is public about the table
    dpcgd plan schema.json 20000 --epsilon 1         what a run could find: takes no data
    dpcgd rehearse schema.json 20000 --epsilon 1     the same on random networks
    \b
    dpcgd release people.csv schema.json --epsilon 1 --account study.json \\
        --out release.json --report report.html
    \b
    dpcgd read release.json --out graph.svg          the graph again, costs nothing
    dpcgd effects release.json                       how strong, costs nothing
    dpcgd check release.json study.json              receipt and account agree

    Refused data or a wrong option gives one line on stderr and exit code 2. Then nothing is spent
    and nothing is written. If a run fails, the code is 2 too, but it may be spent: see dpcgd
    check. Messages about data name records: they are for the holder of the table.

    Completion of commands and options: eval "$(_DPCGD_COMPLETE=bash_source dpcgd)", or zsh_source;
    for fish, _DPCGD_COMPLETE=fish_source dpcgd | source.
    """  # noqa: D301


def parameter(name: str) -> click.Parameter:
    """An argument if the name is in capitals, else an option; an exclamation mark requires it."""
    if name.isupper():
        kind, many = int if name == "N" else click.Path(), -1 if name == "FILES" else 1
        return click.Argument([name.lower()], type=kind, nargs=many, required=True)
    kind, text = OPTIONS[name.rstrip("!")]
    extra = {"is_flag": kind is bool, "multiple": name == "ignore", "required": name.endswith("!")}
    return click.Option(["--" + name.rstrip("!").replace("_", "-")], type=kind, help=text, **extra)


def command(*names: str) -> Callable:
    """Make a command with these parameters."""
    return main.command(params=[*map(parameter, names)])


def show(text: Any, out: str | None, *read: str) -> None:
    """Write a text to a file that is none of those that were read, or print it."""
    if out is None:
        click.echo(str(text))
    else:
        import_module("dpcgd.graphs.receipt").check_replaceable(out, str(text), read)
        import_module("dpcgd.privacy.sealed_file").write_whole(out, f"{str(text).rstrip()}\n")


@command("CODEBOOK", "not_private", "ignore", "separator", "encoding", "out")
def schema(codebook: str, not_private: bool, out: str | None, ignore, **form: Any) -> None:
    """Write a schema: the values that each variable may take.

    CODEBOOK is a JSON file that gives each variable its levels or its range, such as
    {"smoke": ["no", "yes"], "age": {"range": [0, 80], "missing": "unknown"}}. It must come from
    metadata, such as a questionnaire. With --not-private it is a table, CSV or Parquet, and the
    result is a draft.
    """
    if not_private:
        frame = import_module("dpcgd.tables.door").read_frame(codebook, **given(form))
        draft = dpcgd.draft_schema_from_data_not_private(frame, ignore=ignore)
        click.echo("dpcgd: a draft, read off the data: no release may rest on it", err=True)
    else:
        read = dpcgd.Schema.of(codebook).to_dict()
        draft = {name: own for name, own in read.items() if name not in ignore}
    show(json.dumps(draft, indent=1), out, codebook)


PROMISE = ("delta", "allow_delta", "rows_per_person")


@command("SCHEMA", "N", "epsilon", "points", "correlation", "between", *PROMISE, "out")
def plan(schema: str, n: int, out: str | None, **asked: Any) -> None:
    """Say what a run on N records could find; takes no data, costs nothing.

    With --points or --correlation in place of --epsilon, say which epsilon finds that.
    """
    planner = dpcgd.epsilon_for if asked["epsilon"] is None else dpcgd.plan
    show(planner(schema, n, **given(asked)), out, schema)


@command("SCHEMA", "N", "epsilon!", *PROMISE, "runs", "system", "out")
def rehearse(schema: str, n: int, system: str | None, out: str | None, **asked: Any) -> None:
    """Run a system on N records of random networks like SCHEMA; takes no data, costs nothing."""
    rng = import_module("numpy").random.default_rng()
    asked |= {"rng": rng, "system": getattr(dpcgd, system or SYSTEMS[0])}
    show(dpcgd.rehearse(schema, n, **given(asked)), out, schema)


FORMAT: tuple[str, ...] = ("separator", "encoding", "decimal", "thousands", "ignore", "columns")
FORMAT += ("ids", "rows_per_person")
TERMS = ("report", "delta", "budget", "knowledge", "precision", "aim", "allow_delta")


@command("TABLE", "SCHEMA", "epsilon!", "account!", "out!", *TERMS, "system", *FORMAT)
def release(table: str, schema: str, system: str | None, **asked: Any) -> int:
    """Release a graph of TABLE, a CSV file or Parquet, and write its receipt to --out.

    Every refusal comes before anything is spent. Then the account is written, noise is drawn, and
    the receipt and the report are written. The receipt holds all that was released. If --out is a
    receipt already, it is read, and nothing is spent: the same command can be repeated until all
    files exist. An interrupt waits until the receipt is written.

    \b
    dpcgd release people.csv schema.json --epsilon 1 --account study.json \\
        --out release.json --report report.html
    """  # noqa: D301
    data = partial(dpcgd.read_table, table, schema, **given(asked, *FORMAT))
    terms = given(asked, "epsilon", "account", "out", "rows_per_person", *TERMS)
    kept = dpcgd.release_once(data, schema, system=getattr(dpcgd, system or SYSTEMS[0]), **terms)
    for line in kept.lines:
        click.echo(f"dpcgd: {line}", err=True)
    click.echo(f"{kept.release}\n{kept.release.graph}" if kept.path else kept.receipt)
    return int(bool(kept.problems))


@command("RECEIPT", "precision", "knowledge", "out")
def read(receipt: str, out: str | None, **asked: Any) -> None:
    """Show what RECEIPT holds, or read another graph from it, at no cost.

    --out writes the graph with its probabilities, as .csv, .dagitty, .dot, .gml or .svg.
    """
    released = dpcgd.read_release(receipt)
    shown = dpcgd.reread(released, **given(asked)) if given(asked) else released
    graph = shown.graph
    if out is not None:
        forms = {
            ".csv": lambda: graph.to_frame().to_csv(index=False),
            ".svg": lambda: import_module("dpcgd.graphs.drawing").to_svg(graph),
            **{".dagitty": graph.to_dagitty, ".dot": graph.to_dot, ".gml": graph.to_gml},
        }
        if (ending := Path(out).suffix) not in forms:
            raise ValueError(f"a graph ends in {', '.join(forms)}, not in {ending!r}")
        show(forms[ending](), out, receipt)
    click.echo(f"{shown}\n{graph}")


SHOWN = ["cause", "effect", "direction", "estimate", "low", "high", "probability", "marked"]
SHOWN += ["estimand"]


@command("RECEIPT", "between", "knowledge", "out")
def effects(receipt: str, between: tuple[str, str] | None, knowledge: Any, out: str | None) -> None:
    """Say how strong the effects are, with intervals, from RECEIPT alone; costs nothing more.

    --between CAUSE EFFECT asks for one pair, which need not be joined. The probability is that of a
    path from cause to effect; where the graph has no arrow ("open"), it only counts graphs. --out
    writes them as CSV, with ratios, medians and how strong a hidden cause would have to be.
    """
    if out is not None and Path(out).suffix != ".csv":
        raise ValueError(f"effects are written as .csv, not as {Path(out).suffix!r}")
    released = dpcgd.read_release(receipt)
    released = dpcgd.reread(released, knowledge=knowledge) if knowledge else released
    frame = dpcgd.effects(released, [between] if between else None).frame()
    pairs, arrows = zip(frame.cause, frame.effect, strict=True), released.graph.arrows
    frame.insert(2, "direction", ["drawn" if pair in arrows else "open" for pair in pairs])
    frame = frame.sort_values("direction", kind="stable")
    shown = frame[SHOWN].round(3).to_string(index=False, na_rep="not identified")
    shown = shown if len(frame) else "no edge, so no effect"
    show(frame.to_csv(index=False) if out else shown, out, receipt)


@command("FILES")
def check(files: tuple[str, ...]) -> None:
    """Check the parts of receipts, and report the state of each run of an account."""
    click.echo("\n".join(dpcgd.check_files(files)))


if __name__ == "__main__":
    main()
