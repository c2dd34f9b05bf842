"""Execute the chapters, build the HTML with warnings as errors, and say where it is.

python scripts/build_book.py [quick|paper] [chapters]     # chapters as 06 or 06,07; all otherwise
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import check_pages
import nbformat
import pages
import yaml
from chapters import BUILD, ROOT, Home, chapters, execute_all, home, publish, table, write_results
from nbformat import v4

STAGE = BUILD / "book"


def main(profile: str = "quick", names: str = ""):
    if profile not in ("quick", "paper"):
        sys.exit(f"no profile is called {profile!r}; it is quick or paper")
    at, paths = home(profile), chapters(names)
    print(f"Executing the chapters ({profile} profile)")
    outcomes = []
    for outcome in execute_all(at, profile, paths):
        outcomes.append(outcome)
        print(f"  {outcome}; {len(paths) - len(outcomes)} left", flush=True)
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in failed:
        print(f"\n{outcome.error}", file=sys.stderr)
    publish(at)
    built = not failed and build_html(at)
    print(f"\n{table(outcomes)}")
    if failed:
        sys.exit(f"\n{len(failed)} of {len(outcomes)} chapters failed; no book was built")
    if not built:
        sys.exit("\nThe chapters ran, but the pages have the problems named above")
    page = f"notebooks/{paths[0].stem}.html" if names else "index.html"
    print(f"\nThe book: {BUILD / 'html' / page}")


def build_html(at: Home) -> bool:
    """Render the executed copies: Jupyter Book's own cache misses changes in the package.

    A chapter that has not been executed is an empty page, so that the others keep their numbers;
    references into it lead nowhere, and warnings are no errors.
    """
    missing = [path for path in chapters() if not at.copy(path).exists()]
    shutil.rmtree(STAGE, ignore_errors=True)
    for folder in ("book", "_static"):
        shutil.copytree(ROOT / folder, STAGE / folder)
    (STAGE / "notebooks").mkdir()
    for path in chapters():
        said = v4.new_markdown_cell(f"# {path.stem}\n\nThis chapter has not been executed yet.")
        empty = v4.new_notebook(cells=[said])
        shown = empty if path in missing else pages.finished(path, at.copy(path))
        nbformat.write(shown, STAGE / "notebooks" / path.name)
    page = STAGE / "book" / "tables_and_figures.md"
    page.write_text(pages.with_verdicts(page.read_text(), at, chapters()))
    page = STAGE / "book" / "coverage.md"
    page.write_text(pages.with_coverage(page.read_text()))
    page, numbers = STAGE / "book" / "open_questions.md", json.loads(pages.MEASURED.read_text())
    page.write_text(pages.with_numbers(page.read_text(), numbers))
    write_results("coverage", pages.covered())
    shutil.copy(ROOT / "_toc.yml", STAGE)
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["execute"]["execute_notebooks"] = "off"
    (STAGE / "_config.yml").write_text(yaml.safe_dump(config))
    strict = ["--warningiserror", "--nitpick", "--keep-going"]
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [jupyter_book, "build", STAGE, "--all", "--quiet", "--path-output", BUILD.parent]
    if missing:
        names = ", ".join(path.stem for path in missing)
        print(f"\nEmpty in these pages, as they have not been executed yet: {names}")
    built = subprocess.run([*command, *([] if missing else strict)], cwd=ROOT).returncode == 0
    pages.mend(BUILD / "html")
    return built and (bool(missing) or not check_pages.told(BUILD / "html"))


if __name__ == "__main__":
    main(*sys.argv[1:])
