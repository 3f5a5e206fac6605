"""treepiece inside other libraries."""
