"""Annotations of optional modules name the classes that are left after a merge."""

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.merge_fields import share

BLOCK = "self.proj: nn.ModuleTuple[{0}, nn.ReLU] | None = ({1} if proj else None)"


def test_an_optional_list_has_the_merged_class() -> None:
    first, second = (
        "self.weight = nn.parameter(8, 4)",
        "self.weight = nn.parameter(4, 2)",
    )
    value = "nn.ModuleTuple({0}(), nn.ReLU())"
    blocks = [
        ClassText(f"Block{n}", "", [BLOCK.format(name, value.format(name))], body=["x"])
        for n, name in enumerate(("Proj", "Proj2"))
    ]
    for number, block in enumerate(blocks):
        block.plain = [str(number)]
    texts = [ClassText("Proj", "", [first]), ClassText("Proj2", "", [second]), *blocks]
    merged = share(texts, holders_only=True).texts
    assert set(merged) == {"Proj", "Block0", "Block1"}
    assert "Proj2" not in merged["Block1"].fields[0]
    assert "nn.ModuleTuple[Proj, nn.ReLU] | None" in merged["Block1"].fields[0]


def test_a_list_of_two_classes_becomes_one_of_the_merged_class() -> None:
    fields = [
        ["self.weight = nn.parameter(8, 4)"],
        ["self.weight = nn.parameter(4, 2)"],
    ]
    line = (
        "self.heads: nn.ModuleTuple[Head, Head2] | nn.Identity = "
        "(nn.ModuleTuple(Head(), Head2()) if heads else nn.Identity())"
    )
    texts = [
        ClassText(n, "", f) for n, f in zip(("Head", "Head2"), fields, strict=True)
    ]
    texts.append(ClassText("Net", "", [line], body=["x"]))
    (written,) = share(texts, holders_only=True).texts["Net"].fields
    assert written.startswith("self.heads: nn.ModuleList[Head] | nn.Identity = ")
    assert "nn.ModuleList([Head(8), Head(4)])" in written
