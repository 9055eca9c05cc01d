"""Models of one list: the body reads the list as the model itself."""

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.sequential_model import promote_list


def promoted_body(*body: str) -> list[str]:
    """Return the body of a model with the only member ``stages``."""
    root = ClassText("Net", "", ["self.stages = nn.Sequential(Conv(), Conv())"])
    root.body = [f"{' ' * 8}{line}" for line in body]
    texts, weights = promote_list([root], [], "stages")
    assert texts[0].base == "nn.Sequential"
    assert texts[0].steps == "Conv(), Conv()"
    assert weights == []
    return [line.removeprefix(" " * 8) for line in texts[0].body]


def test_a_call_of_the_whole_list_is_that_of_the_base_class() -> None:
    body = promoted_body("return self.stages(x)")
    assert body == ["return super().__call__(x)"]


def test_a_result_of_a_member_has_a_type() -> None:
    body = promoted_body(
        "x = self.stages[0](x)  # [batch, 8]", "return self.stages[1](x)"
    )
    assert body == [
        "x = self[0](x)  # [batch, 8]",
        "result: Tensor = self[1](x)",
        "return result",
    ]


def test_loops_strings_and_longer_names_stay() -> None:
    body = promoted_body(
        "for stage in self.stages:",
        "    x = stage(x, 'self.stages(x)') + self.stages_scale",
        "return x",
    )
    assert body[:2] == [
        "for stage in self:",
        "    x = stage(x, 'self.stages(x)') + self.stages_scale",
    ]
