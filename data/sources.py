"""Archives of the package index, and the files that the scripts beside this one make of them."""

import gzip
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path


def download(requirement: str, *options: str) -> bytes:
    """The archive of one release, without its dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        subprocess.run([*pip, *options, requirement], check=True)
        (archive,) = Path(folder).iterdir()
        return archive.read_bytes()


def checked(content: bytes, checksum: str, what: str) -> bytes:
    """The content of a file, if it is the one that was read before."""
    if hashlib.sha256(content).hexdigest() != checksum:
        sys.exit(f"{what} is not the file that was read before")
    return content


def unpacked(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files by name, and packed ones without .gz: packed bytes depend on the version of zlib."""
    packed = {name: gzip.decompress(own) for name, own in files.items() if name.endswith(".gz")}
    return {name.removesuffix(".gz"): packed.get(name, own) for name, own in files.items()}


def keep(folder: Path, files: dict[str, bytes]) -> None:
    """Write files and the checksums of what is in them; with --check only compare."""
    contents = unpacked(files).items()
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents]
    files = files | {"SHA256SUMS": "".join(sums).encode()}
    if "--check" in sys.argv[1:]:
        if unpacked(files) != unpacked({name: (folder / name).read_bytes() for name in files}):
            made = f"python data/make_{folder.name}.py"
            sys.exit(f"data/{folder.name} differs from its source; run {made}")
        return
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
