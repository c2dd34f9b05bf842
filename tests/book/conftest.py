"""A folder of systems to which one file belongs, and tables without rows."""

import pytest


@pytest.fixture
def folder_of_entry(tmp_path, monkeypatch):
    """Writes a file as benchmarks/PATH and tells the table of all systems to look there."""
    from benchmarks import entries, kept

    def written(path, text):
        file = tmp_path / "benchmarks" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
        monkeypatch.setenv(entries.FOLDER, str(tmp_path / "benchmarks" / "systems"))
        monkeypatch.setenv("DPCGD_RESULTS", str(tmp_path / "results"))
        monkeypatch.setattr(kept, "stored_folder", lambda: tmp_path / "stored")
        return file.parent

    return written
