import json

from jaxface.runtime import log


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_jsonl_resumes_at_a_step_and_drops_a_half_written_line(tmp_path):
    file = tmp_path / "metrics.jsonl"
    writer = log.JsonlWriter(file)
    for step in (0, 10, 20):
        writer.scalars(step, {"loss": 1.0 / (step + 1), "bad": float("nan")})
    writer.close()
    with file.open("a") as handle:
        handle.write('{"step": 30, "lo')
    writer = log.JsonlWriter(file, resume_step=20)
    writer.scalars(20, {"loss": 0.0})
    writer.close()
    assert [line["step"] for line in lines(file)] == [0, 10, 20]
    assert lines(file)[0] == {"step": 0, "loss": 1.0, "bad": None}
    assert lines(file)[-1] == {"step": 20, "loss": 0.0}


def test_progress_passes_everything_through_and_logs_away_from_a_terminal(caplog):
    with caplog.at_level("INFO", logger="absl"):
        assert list(log.progress(range(3), "fitting", every_seconds=0.0)) == [0, 1, 2]
    assert "fitting: 1 of 3" in caplog.text


def test_progress_tells_the_pace_and_the_time_left(caplog, monkeypatch):
    """Of a pass that goes on at its third batch of a thousand faces, each of which takes five seconds."""
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr(log.time, "monotonic", lambda: next(clock))
    with caplog.at_level("INFO", logger="absl"):
        passed = list(log.progress("abc", "a pass", start=2, total=5, each=1000, unit="faces", every_seconds=1.0))
    assert passed == ["a", "b", "c"]
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "a pass: 2,000 of 5,000 faces"
    assert lines[1] == "a pass: 3,000 of 5,000 faces, 50 a second, 40 s left"
    assert log._duration(99) == "99 s"
    assert log._duration(1790) == "30 min"
    assert log._duration(3700) == "1 h 2 min"


def test_damaged_lines_are_named_and_left_out(tmp_path, caplog):
    file = tmp_path / "metrics.jsonl"
    damaged = ['{"step": 1, "lo', "[1]", '{"loss": 2}', '{"step": "x"}', "7", "[" * 100_000, "\udce9"]
    content = "\n".join(['{"step": 0}', *damaged, '{"step": 2}', '{"step": 3, "l'])
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with caplog.at_level("WARNING", logger="absl"):
        log.JsonlWriter(file, resume_step=5).close()
    assert [line["step"] for line in lines(file)] == [0, 2]
    named = [record.getMessage() for record in caplog.records]
    assert named == [f"line {number} of {file} is damaged and left out" for number in range(2, 9)]
