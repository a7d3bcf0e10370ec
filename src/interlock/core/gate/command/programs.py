"""Programs that only read, and with which words they do, as tables.

A program is listed without a demand only if no words make it write or run something, in any of its
implementations.

A table has lines `names: demand; demand`, which go on where the next is indented; each demand is a
field of `ProgramRule` and its value. With ` / ` between several rules, one is enough. Options are
written as `-k=` where a value follows, and a verb of two words with `+` between them.
"""

import re

import msgspec

from interlock.core.gate.command.ast import names
from interlock.core.gate.command.network_programs import DAEMON_CLIENTS


class ProgramRule(msgspec.Struct, frozen=True, kw_only=True):
    """With which words a program reads. Without any demand it reads whatever it is given."""

    only: str | None = None
    """The options with which it reads."""
    needs: str = ""
    """It reads only with one of these."""
    without: str = ""
    """With these nobody can say; for programs that have too many others to list."""
    devices: str = ""
    """Options that name what is written, which must be `-` or a device such as `/dev/null`."""
    operands_max: int | None = None
    lifts: str = ""
    """With one of these, it takes any number of operands and still reads."""
    starts: str = ""
    """Each operand begins with this."""
    starts_not: str = ""
    values_not: str = ""
    """No value of an option contains any of these."""
    schemes: str = ""
    """The schemes that an address may have; and no word of it may hold a line break."""
    is_unclustered: bool = False
    """Letters cannot be put together after one dash."""
    is_early: bool = False
    """Somewhere it takes what follows its first operand for operands, whatever it looks like."""
    is_loose: bool = False
    """Words that are not literal are taken for operands."""


Table = dict[str, tuple[ProgramRule, ...]]


def _parse_table(text: str) -> Table:
    table: Table = {}
    for line in re.split(r"\n(?! )", text.strip()):
        heads, _, rules = line.rpartition(":")
        parsed = tuple(_parse_rule(rule) for rule in rules.split(" / "))
        table |= {head.replace("+", " "): parsed for head in heads.split()}
    return table


def _parse_rule(text: str) -> ProgramRule:
    demands = [demand.split() for demand in text.split(";") if demand.strip()]
    fields = {name: name.startswith("is_") or " ".join(values) for name, *values in demands}
    return msgspec.convert(fields, ProgramRule, strict=False)


_DIGITS = " ".join(f"-{digit}" for digit in range(10))
_SQUEEZE = f"-c -k -q -v -f -n {_DIGITS} --stdout --to-stdout --keep --quiet --verbose"
_DPKG = "-l -L -s -S -p -W --list --listfiles --status --search --print-avail --show"

# Where grep is ugrep, which knows more options, only the literal ones are seen. Of `-d`, `-t` and
# `-l` some take the last, so `-d` is let pass with `-c` only. And `json.tool`, a module that Python
# runs, writes a second file.
READERS = _parse_table(f"""
cat head tail tac nl wc cut paste join comm fold fmt expand unexpand pr rev column tr cksum sum
  md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum md5 basename dirname realpath
  readlink pwd ls dir vdir eza lsd stat echo true false : expr seq factor numfmt whoami id groups
  users who w uptime uname nproc tty logname printenv du df ps pgrep pidof free lsblk lscpu lsmod
  getconf locale strings readelf which whereis type jq diff cmp zcat bzcat xzcat zipinfo cal sleep
  cd pushd popd dirs times help getent clear hexdump hd od tsort look mdls sw_vers base32
  shellcheck:
grep egrep fgrep: without --pager --filter --view --save-config --query; is_loose
rg: without --pre --hostname-bin
ag: without --pager
fd fdfind: without -x -X --exec --exec-batch
lsof: without -D
sort: only -b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k= -t= -S= --key= --reverse
  --field-separator= --unique --numeric-sort --human-numeric-sort --version-sort --stable --debug
  --general-numeric-sort --ignore-case --check --zero-terminated --parallel=
uniq: only -c -d -u -i -z -D -f= -s= -w= --count --repeated --unique --ignore-case
  --zero-terminated --skip-fields= --skip-chars= --check-chars=; operands_max 1; is_early
shuf: only -e -i= -n= -r -z --echo --input-range= --head-count= --repeat --zero-terminated
date: only -u -R -j -d= -r= -v= -I -Idate -Ihours -Iminutes -Iseconds -Ins --date= --utc
  --universal --rfc-3339= --rfc-email --iso-8601 --iso-8601= --reference=; starts +
base64: only -d -D -w= -i --decode --ignore-garbage --wrap=
iconv: only -f= -t= -c -s -l --from-code= --to-code= --list
tree: only -a -d -f -i -l -L= -P= -I= -s -h -u -g -p -D -t -r -v -c -U -n -C -Q -N -J -X -F -A -S
  -q -x --dirsfirst --filesfirst --gitignore --prune --noreport --du --si --inodes --matchdirs
  --ignore-case --filelimit= --charset= --sort=
xxd: only -p -ps -plain -u -b -e -E -i -r -a -c= -l= -s= -g= -cols= -len= -seek=; operands_max 1;
  is_unclustered; is_early
hostname: only -f -s -i -I -d; operands_max 0
arch alias history: only; operands_max 0
file: only -b -i -I -L -h -k -z -s -r -0 -p --mime --mime-type --mime-encoding --brief --dereference
bat batcat: only -n -p -pp -A -l= -r= --plain --number --show-all --language= --line-range= --color=
  --paging= --style= --theme= --decorations= --wrap= --tabs=
man: only -k -f -w -a --where --apropos --whatis
yq: only -r -e -o= -p= -P -j -c -M -C -N -n --output-format= --input-format= --prettyPrint
  --raw-output --exit-status --no-doc
ss netstat: only -t -u -l -n -p -a -e -o -4 -6 -s -m -i -r; operands_max 0
wget: only -q -S -nv --quiet --server-response --no-verbose --timeout= --tries= --header=;
  devices -O= --output-document= -o= --output-file=; needs -O --output-document;
  values_not override; schemes http https
gzip gunzip bzip2 bunzip2 xz unxz: only {_SQUEEZE} -d -t -l --decompress --list --test;
  needs -c --stdout --to-stdout; is_early
  / only {_SQUEEZE} -t -l --list --test; needs -t -l --list --test; is_early
unzip: only -l -v -t -Z -p -c -q -1 -2; needs -l -v -t -Z -p -c; is_early
tar: only -t -f= -v -z -j -J -a --list --file= --verbose --gzip --bzip2 --xz --zstd;
  needs -t --list; is_early
curl: only -s -S -f -L -i -I -v -k -g -N -# -4 -6 --silent --show-error --fail --location --include
  --head --verbose --insecure --compressed --globoff --no-buffer --progress-bar --fail-with-body
  -H= --header= -A= --user-agent= -e= --referer= -u= --user= -m= --max-time= --connect-timeout=
  --retry= --retry-delay= -b= --cookie= -r= --range= -w= --write-out=;
  devices -o= --output= -D= --dump-header= --stderr=; values_not @ %output override;
  schemes http https
journalctl: only -u= -n -n= -f -e -x -b -k -r -p= -o= -S= -U= -t= -g= -q -a -l --unit= --lines=
  --follow --since= --until= --no-pager --user --system --priority= --output= --boot --dmesg --utc
  --reverse --grep= --list-boots --disk-usage --identifier= --no-hostname
dpkg dpkg-query: only {_DPKG} -f= --showformat= --no-pager; needs {_DPKG}; is_early
json.tool: only --sort-keys --no-ensure-ascii --json-lines --indent= --tab --no-indent --compact;
  operands_max 1; is_early
""")

_LISTS = "--contains= --no-contains= --merged --no-merged --points-at="
_FORMS = "--sort= --format= --column --no-column --color --no-color --color= --ignore-case"
_NPM = (
    "only --json --long -l --all -a --depth= --prod --production --omit= --parseable -p -g"
    " --global --silent -s"
)
_PIP = """
index+versions: only --pre --json -v -q; operands_max 1
list show freeze check: only --format= --outdated -o --uptodate --user --local -l --not-required
  --exclude= -v -q --verbose --quiet --files -f --all --disable-pip-version-check
"""
VERBS = {
    "git": _parse_table(f"""
log show diff whatchanged shortlog blame annotate range-diff diff-tree diff-index diff-files
  rev-list stash+list stash+show reflog+show: without --output --ext-diff
status rev-parse ls-files ls-tree describe name-rev merge-base show-ref for-each-ref count-objects
  check-ignore check-attr cherry show-branch var version worktree+list submodule+status notes+list
  notes+show bisect+log remote+get-url config+get config+list config+--get
  config+--get-all config+--get-regexp config+--list:
cat-file: without --textconv --filters
grep: without -O --open-files-in-pager
branch: only -a -r -v -vv -q --list --all --remotes --verbose --show-current {_LISTS} {_FORMS};
  operands_max 0; lifts --list {_LISTS}
tag: only -l --list -n -n= {_LISTS} {_FORMS}; operands_max 0; lifts -l --list {_LISTS}
remote: only -v --verbose; operands_max 0
reflog: only --oneline --all -n= {_DIGITS}; operands_max 0
symbolic-ref: only --short -q --quiet; operands_max 1
config+edit: only; needs --never
config: only -l --list --get --get-all --get-regexp --get-urlmatch --show-origin --show-scope
  --global --local --system --worktree --name-only --null -z --type= --bool --int --path --includes
  --no-includes --default= --file= -f= --blob=; operands_max 1
ls-remote: only -h -t -q --heads --branches --tags --refs --quiet --exit-code --get-url --symref
  --sort=
help: only -a -g -c -m --all --guides --config --man
"""),
    "gh": _parse_table("""
pr+list pr+view pr+diff pr+checks pr+status issue+list issue+view issue+status repo+view repo+list
  run+list run+view release+list release+view label+list workflow+list workflow+view
  search+issues search+prs search+code search+repos search+commits gist+list gist+view auth+status
  cache+list variable+list variable+get ruleset+list ruleset+view: without -w --web
status version:
api: only -H= --header= --jq= -q= --paginate --template= -t= --hostname= -i --include --silent
  --slurp; operands_max 1; starts_not graphql
"""),
    "npm": _parse_table(f"""
ls list ll la view info show search root prefix explain why config+get config+list pkg+get: {_NPM}
ping whoami: {_NPM}; operands_max 0
"""),
    "pip": _parse_table(_PIP),
    "pip3": _parse_table(_PIP),
    # Without one of these it may write Cargo.lock.
    "cargo": _parse_table("""
search: only --limit= -q --quiet
metadata: only --format-version= --no-deps --locked --frozen --offline --manifest-path= -q --quiet
  --all-features --no-default-features --filter-platform=; needs --no-deps --locked --frozen
"""),
    "go": _parse_table("""
version: only; operands_max 0
env: only -json -changed; is_unclustered
"""),
}
"""The programs of which the first words say what they do."""
BEFORE_VERB = {
    "git": "-p -P --paginate --no-pager --no-optional-locks --no-replace-objects --bare"
    " --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-lazy-fetch"
    " --no-advice -C= -c= --git-dir= --work-tree= --namespace=",
}
"""The options that are allowed before the verb."""
GIT_SETTINGS = ("color.", "advice.", "column.", "core.quotepath=", "core.abbrev=", "core.pager=cat")
_TELLS_VERSION = DAEMON_CLIENTS | names(
    "bash zsh gcc g++ clang make cmake ninja ruby python node php perl java uv ruff rustc rustup"
    " mypy black pyright tsc sqlite3 rsync wget ssh patch zip find xargs env timeout poetry"
    " sed awk pytest"
)
ALONE = {
    **dict.fromkeys(("--version", "--help"), _TELLS_VERSION | READERS.keys() | VERBS.keys()),
    "-V": {"python", "ssh", "rustc"},
    "-v": {"node", "npm", "php", "perl", "git", "ruby"},
    "-version": {"java"},
    "--exec-path": {"git"},
    "--html-path": {"git"},
}
"""Words with which, if they are alone, these programs only tell about themselves."""
