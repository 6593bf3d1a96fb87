import io

from rich.console import Console

from opwright.auditing import Row, Scorecard
from opwright.report.audit_table import audit_table

SCORECARD = Scorecard(
    "cell",
    (
        Row("vmap", "nested", "pass"),
        Row("vmap", "integers too", "skipped", "there are none"),
        Row("hooks", "anomaly mode", "raises", "RuntimeError: no [really]"),
        Row("torch.func", "jvp", "silently wrong", "tangent 0: got 0, expected 1"),
        Row("torch.export", "export", "torch itself raises", "ValueError: data"),
    ),
)


def lines(scorecard):
    stream = io.StringIO()
    Console(file=stream, width=100).print(audit_table(scorecard.to_json()))
    return [" ".join(line.split()) for line in stream.getvalue().splitlines()]


def test_every_row_has_its_state_and_what_is_not_right_its_words():
    shown = lines(SCORECARD)
    assert shown[0] == "cell: FAILED (1 pass, 1 raises, 1 silently wrong, 1 torch itself raises, 1 skipped)"
    assert {"vmap nested pass", "integers too skipped", "torch.func jvp silently wrong"} <= set(shown)
    assert shown[-4:] == [
        "silently wrong torch.func, jvp: tangent 0: got 0, expected 1",
        "raises hooks, anomaly mode: RuntimeError: no [really]",
        "torch itself raises torch.export, export: ValueError: data",
        "skipped vmap, integers too: there are none",
    ]


def test_a_scorecard_without_red_rows_passed():
    assert lines(Scorecard("cell", SCORECARD.rows[:2]))[0] == "cell: PASSED (1 pass, 1 skipped)"
