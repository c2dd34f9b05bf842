"""What a digest of files hangs on."""

from dpcgd_book.results.digests import digest_of_files


def test_a_digest_of_files_hangs_on_names_contents_and_facts_alone(tmp_path):
    for root in ("one", "two"):
        (tmp_path / root / "__pycache__").mkdir(parents=True)
        (tmp_path / root / "a.py").write_text("1")
        (tmp_path / root / "__pycache__" / root).write_text(root)
    first, second = (digest_of_files(["."], "fact", root=tmp_path / n) for n in ("one", "two"))
    assert first == second
    (tmp_path / "two" / "a.py").rename(tmp_path / "two" / "b.py")
    (tmp_path / "one" / "a.py").write_text("2")
    others = [digest_of_files(["."], "fact", root=tmp_path / name) for name in ("one", "two")]
    assert len({first, *others, digest_of_files(["."], root=tmp_path / "one")}) == 4
