"""A release that is struck at a moment: killed, interrupted, or out of room on the disk.

python moments_of_release.py FOLDER    # a folder for each kind of blow and each moment
"""

import errno
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from dpcgd.privacy import account_file
from dpcgd.privacy.account_file import AccountFile
from dpcgd.tables import command_line, door

MOMENTS = [(door, name, "before") for name in ("check_run", "check_room", "open_account")]
MOMENTS += [(AccountFile, name, "before") for name in ("reserve", "redeem")]
MOMENTS += [(account_file, "write_whole", "before"), (AccountFile, "redeem", "after")]
MOMENTS += [(door, "_keep", "before"), (door, "_keep", "after"), (door, "release_once", "after")]
"""From the first check to the moment before anything is printed."""

LINE = ["release", "people.csv", "schema.json", "--epsilon", "1", "--account", "study.json"]
LINE += ["--out", "release.json", "--report", "report.html"]


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def strike(blow):
    if blow == "disk":
        os.fsync = full
    else:
        os.kill(os.getpid(), {"kill": signal.SIGKILL, "interrupt": signal.SIGINT}[blow])


def hook(blow, owner, name, when):
    right = getattr(owner, name)
    owner = owner if name != "release_once" else command_line.dpcgd

    def struck(*arguments, **settings):
        is_last = name != "write_whole" or json.loads(arguments[1])["runs"]  # spends
        if when == "before" and is_last:
            strike(blow)
        result = right(*arguments, **settings)
        if when == "after":
            strike(blow)
        return result

    setattr(owner, name, struck)


def in_a_child(folder, *moment):
    """The exit code of the command, negative for a signal; what it prints is in files."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    account_file.LONGEST_WAIT = 0.1
    if moment:
        hook(*moment)
    code = 1
    try:
        command_line.main(LINE)
    except SystemExit as end:
        code = end.code
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code or 0)


def main(home):
    table, outcomes = Path(home) / "table", {}
    in_a_child(shutil.copytree(table, Path(home) / "warm"))
    for blow in ("kill", "interrupt", "disk"):
        for number, moment in enumerate(MOMENTS):
            folder = Path(home) / f"{blow}-{number}"
            shutil.copytree(table, folder)
            outcomes[folder.name] = in_a_child(folder, blow, *moment)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
