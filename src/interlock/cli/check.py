"""`interlock check`: check files of the project by rules."""

from pathlib import Path

import click

from interlock.app.context import open_app
from interlock.app.data_home import data_home
from interlock.app.gate import integrity
from interlock.app.protocol.checks import RULES, check_logbooks
from interlock.cli.terminal import EXIT_REFUSED, Stop, print_json, print_lines
from interlock.core.views.counting import pluralise


@click.command()
@click.argument("words", nargs=-1, metavar="[RULE] [PATH]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def check(words: tuple[str, ...], *, as_json: bool) -> None:
    """Check files of the project by rules; exit code 1 if there are problems

    The only rule yet is session-log: the logbooks in `.agents/sessions` are whole, as the log has
    them, and say what was done. Without a path, all of them are checked.
    """
    paths = [Path(word).absolute() for word in words[1 if words and words[0] in RULES else 0 :]]
    for path in paths:
        if not path.is_file():
            raise click.UsageError(
                f"{path.name} is neither a rule ({', '.join(RULES)}) nor a file."
            )
    root = integrity.governed_root(data_home(), Path.cwd()) or Path.cwd()
    report = check_logbooks(open_app(data_home()), root, tuple(paths))
    if as_json:
        print_json(report)
    for one in () if as_json else report.findings:
        where = f"{one.path}:{one.line}" if one.line else one.path
        print_lines(f"{where}: {one.rule}: {one.problem}. {one.fix}")
    if not as_json:
        files = pluralise(len(report.checked), "file")
        print_lines(f"{files} checked, {pluralise(len(report.findings), 'problem')}.")
    if report.findings:
        raise Stop(EXIT_REFUSED)
