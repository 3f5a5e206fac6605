"""What pytest leaves out where an extra is not installed; tests/integrations says so when it is skipped."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("spacy") else ["src/treepiece/integrations/spacy.py"]
