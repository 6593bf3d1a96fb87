"""The page of the three ways."""

from opwright.auditing import Row, Scorecard
from tests.auditing.transforms_page import page


def test_a_page():
    ours = Scorecard("ours", (Row("vmap", "nested", "pass"), Row("torch.func", "jvp", "pass")))
    others = Scorecard(
        "cell",
        (
            Row("vmap", "nested", "raises", "RuntimeError: no | never"),
            Row("torch.func", "jvp", "silently wrong", "got 0"),
        ),
    )
    text = page({"opwright": ours.to_json(), "custom_op": others.to_json()}, "torch 2.13")
    for line in (
        "| opwright | 2 | 0 | 0 | 0 | 0 |",
        "| custom_op | 0 | 1 | 1 | 0 | 0 |",
        "| vmap | nested | pass | **raises** |",
        "| torch.func | jvp | pass | **WRONG** |",
        "- *raises*: vmap: nested: RuntimeError: no \\| never",
        "- *silently wrong*: torch.func: jvp: got 0",
        "Versions: torch 2.13.",
    ):
        assert line in text.splitlines()
