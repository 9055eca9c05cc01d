"""Readable source of a syntax tree."""

import ast


def unparse_expression(tree: ast.AST) -> str:
    """Return the source of ``tree``, with single parentheses around generators."""
    return ast.unparse(_SingleParentheses().visit(tree))


class _SingleParentheses(ast.NodeTransformer):
    """Write ``f(x for x in y)``, where ``ast.unparse`` writes ``f((x for x in y))``."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        alone = len(node.args) == 1 and not node.keywords
        if not alone or not isinstance(node.args[0], ast.GeneratorExp):
            return node
        return ast.Name(ast.unparse(node.func) + ast.unparse(node.args[0]))
