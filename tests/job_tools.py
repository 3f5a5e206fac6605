"""What the tests of jobs share."""

from treepiece.jobs.job import Job
from treepiece.jobs.runner import run_job


class Killed(BaseException):
    """Stands for the end of the process."""


class Watch:
    """A progress whose reports go to functions: `rows` gets how many rows are done, of how many."""

    def __init__(self, rows=lambda done, total: None, message=lambda text: None):
        self.rows, self.message = rows, message

    def update(self, stage, done, total=None, detail=""):
        assert stage == "parsing"
        self.rows(done, total)


def die_after(rows):
    """Return what kills a job when so many rows are done."""

    def check(done, total):
        if done >= rows:
            raise Killed

    return Watch(rows=check)


def run(parser, source, output, **options):
    """Run a job; options that are not the job's are those of `run_job`."""
    given = {name: options.pop(name) for name in ("resume", "overwrite", "progress") if name in options}
    return run_job(Job(source, output, **{"part_rows": 4, **options}), parser, **given)
