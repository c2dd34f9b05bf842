"""Execute every chapter, build the HTML with warnings as errors, and say where it is.

python scripts/build_book.py [quick|paper]
"""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from chapters import ROOT, execute_all, table

BUILD = ROOT / "_build"
STAGE = BUILD / "book"


def main(profile: str = "quick"):
    if profile not in ("quick", "paper"):
        sys.exit(f"no profile is called {profile!r}; it is quick or paper")
    print(f"Executing the chapters ({profile} profile)")
    outcomes = []
    for outcome in execute_all(BUILD / "executed", BUILD / "results", profile):
        print(f"  {outcome.chapter} {outcome.result} in {outcome.seconds:.1f} s", flush=True)
        outcomes.append(outcome)
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in failed:
        print(f"\n{outcome.error}", file=sys.stderr)
    built = not failed and build_html()
    print(f"\n{table(outcomes)}")
    if failed:
        sys.exit(f"\n{len(failed)} of {len(outcomes)} chapters failed; no book was built")
    if not built:
        sys.exit("\nThe chapters ran, but the pages have the problems named above")
    print(f"\nThe book: {BUILD / 'html' / 'index.html'}")


def build_html() -> bool:
    """Render the executed copies: Jupyter Book's own cache misses changes in the package."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "book", STAGE / "book")
    shutil.copytree(BUILD / "executed", STAGE / "notebooks")
    shutil.copy(ROOT / "_toc.yml", STAGE / "_toc.yml")
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["execute"]["execute_notebooks"] = "off"
    (STAGE / "_config.yml").write_text(yaml.safe_dump(config))
    strict = ["--warningiserror", "--nitpick", "--keep-going"]
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", STAGE, "--all", "--quiet", "--path-output", ROOT, *strict]
    return subprocess.run(command, cwd=ROOT).returncode == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
