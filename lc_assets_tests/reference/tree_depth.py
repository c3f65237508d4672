"""How deep a page's tree is, by building it and walking through it."""

from selectolax.lexbor import LexborHTMLParser


def tree_depth(html: str) -> int:
    """Elements within elements, ``html`` and ``body`` included."""
    return max(tree_depths(html), default=0)


def tree_depths(html: str) -> list[int]:
    """Of each element, how many elements it is within, itself included."""
    node, depth, depths = LexborHTMLParser(html).root, 1, []
    while node is not None:
        if node.is_element_node:
            depths.append(depth)
        if node.first_child is not None:
            node, depth = node.first_child, depth + 1
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = node.next if node is not None else None
    return depths
