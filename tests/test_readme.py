"""The README's code runs, and the paths it names exist."""

import importlib
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RUNS = (ROOT / "tools" / "results.py").read_text()


def test_the_five_lines_give_an_error_rate():
    from jaxface.data import orl

    try:
        orl.find()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(block, names)
    assert 0.0 < float(names["error"]) < 0.1
    assert int(names["info"].status) == 0


def rows_of(head):
    """The rows of a table below its head."""
    return README.partition(head)[2].partition("\n\n")[0].splitlines()[2:]


def test_rooms_studies_pages_and_pictures_exist():
    for room in re.findall(r"`(jaxface/\w+|benchmarks|tests|experiments|configs)`", README):
        assert (ROOT / room).is_dir(), room
    papers = [row.split("|")[2:5] for row in rows_of("| paper |")]
    assert len(papers) == 5
    for rooms, studies, pages in papers:
        for room in re.findall(r"`(.+?)`", rooms):
            assert (ROOT / "jaxface" / room).exists(), room
        for study in re.findall(r"`(.+?)`", studies):
            assert (ROOT / "experiments" / study / "study.py").is_file(), study
        for page in re.findall(r"`(.+?)`", pages):
            assert (ROOT / page).is_file(), page
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / picture).is_file(), picture


def test_every_claim_names_a_study_that_exists():
    claims = [row.strip("| ").split(" | ") for row in rows_of("| claim |")]
    assert len(claims) >= 15
    for claim, _, _, verdict, studies in claims:
        assert verdict, claim
        names = re.findall(r"`(.+?)`", studies)
        for name in names:
            run, _, label = name.partition("+")
            assert not label or f'"{label}"' in RUNS, name
            study, _, variant = run.partition(":")
            study = study or names[0].partition(":")[0]
            importlib.import_module(f"configs.{study}").get_config(variant or None)
