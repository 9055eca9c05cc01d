"""Modules around the nodes of an exported program."""

from burn_import.frontends.torch_export.schema import scopes


def test_members_that_dynamo_looks_up_by_name() -> None:
    stack = (
        "k,,m.Net;k,a.__dict__['_modules']['blocks'].0,m.Block;k,a._modules['b'],m.B"
    )
    assert list(scopes({"nn_module_stack": stack})) == [
        ("", "Net"),
        ("a.blocks.0", "Block"),
        ("a.b", "B"),
    ]
