"""Programs: which of them only read, which write and which run others, as tables.

The first table is the one to be careful with: a program belongs there only if no words whatever
make it write or run something, in any of its implementations. Options are written as `-k=` where a
value follows.
"""

from typing import Literal

import msgspec

from interlock.core.gate.command.inline import Effect


class ProgramRule(msgspec.Struct, frozen=True, kw_only=True):
    """With which words a program reads. Without any demand it reads whatever it is given."""

    only: str | None = None
    """The options with which it reads."""
    needs: str = ""
    """It reads only with one of these."""
    writes: str = ""
    """With these it writes what they name."""
    runs: str = ""
    """With these nobody can say; for programs that have too many others to list."""
    operands_max: int | None = None
    lifts: str = ""
    """With one of these, it takes any number of operands and still reads."""
    starts: str = ""
    """Each operand begins with this."""
    starts_not: str = ""
    values_not: tuple[str, ...] = ()
    """No value of an option contains any of these."""
    otherwise: Effect = "unknown"
    is_clustered: bool = True
    is_early: bool = False
    """Somewhere it takes what follows its first operand for operands, whatever it looks like."""
    is_loose: bool = False
    """Words that are not literal are taken for operands."""


ANY = ProgramRule()
_DIGITS = " ".join(f"-{digit}" for digit in range(10))
_SHOWS = ProgramRule(writes="--output=", runs="--ext-diff")
_NONE = ProgramRule(only="", operands_max=0)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _each(names: str, rule: ProgramRule) -> dict[str, ProgramRule]:
    return dict.fromkeys(_names(names), rule)


_SQUEEZE = ProgramRule(
    only=f"-c -d -k -q -v -f -t -l -n {_DIGITS} --stdout --to-stdout --decompress --list --test"
    " --keep --quiet --verbose",
    needs="-c -t -l --stdout --to-stdout --list --test",
    otherwise="writes",
    is_early=True,
)
_PAGE = ProgramRule(only="-N -S -R -F -X -i -I -E -e -n -r -s -M -m", starts_not="+")

READERS = {
    **_each(
        "cat head tail tac nl wc cut paste join comm fold fmt expand unexpand pr rev column tr"
        " cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum md5"
        " basename dirname realpath readlink pwd ls dir vdir eza lsd stat echo true false : expr"
        " seq factor numfmt whoami id groups users who w uptime uname nproc tty logname printenv"
        " du df ps pgrep pidof free lsblk lscpu lsmod getconf locale strings readelf which whereis"
        " type jq diff cmp zcat bzcat xzcat zipinfo cal sleep cd pushd popd dirs times help getent"
        " clear hexdump hd od tsort look mdls sw_vers dig host base32",
        ANY,
    ),
    # Some systems have ugrep under this name, which knows more; only what is literal is seen then.
    **_each(
        "grep egrep fgrep",
        ProgramRule(runs="--pager --filter --view --save-config --query", is_loose=True),
    ),
    "rg": ProgramRule(runs="--pre --hostname-bin"),
    "ag": ProgramRule(runs="--pager"),
    **_each("fd fdfind", ProgramRule(runs="-x -X --exec --exec-batch")),
    "sort": ProgramRule(
        only="-b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k= -t= -S= --key= --reverse"
        " --field-separator= --unique --numeric-sort --human-numeric-sort --version-sort --stable"
        " --general-numeric-sort --ignore-case --check --zero-terminated --parallel= --debug",
        writes="-o= --output=",
    ),
    "uniq": ProgramRule(
        only="-c -d -u -i -z -D -f= -s= -w= --count --repeated --unique --ignore-case"
        " --zero-terminated --skip-fields= --skip-chars= --check-chars=",
        operands_max=1,
        otherwise="writes",
        is_early=True,
    ),
    "shuf": ProgramRule(
        only="-e -i= -n= -r -z --echo --input-range= --head-count= --repeat --zero-terminated",
        writes="-o= --output=",
    ),
    "date": ProgramRule(
        only="-u -R -j -d= -r= -v= -I -Idate -Ihours -Iminutes -Iseconds -Ins --date= --utc"
        " --universal --rfc-3339= --rfc-email --iso-8601 --iso-8601= --reference=",
        starts="+",
    ),
    "base64": ProgramRule(
        only="-d -D -w= -i --decode --ignore-garbage --wrap=", writes="-o= --output="
    ),
    "iconv": ProgramRule(
        only="-f= -t= -c -s -l --from-code= --to-code= --list", writes="-o= --output="
    ),
    "tree": ProgramRule(
        only="-a -d -f -i -l -L= -P= -I= -s -h -u -g -p -D -t -r -v -c -U -n -C -Q -N -J -X -F -A"
        " -S -q -x --dirsfirst --filesfirst --gitignore --prune --noreport --du --si --inodes"
        " --matchdirs --ignore-case --filelimit= --charset= --sort=",
        writes="-o=",
    ),
    "xxd": ProgramRule(
        only="-p -ps -plain -u -b -e -E -i -r -a -c= -l= -s= -g= -cols= -len= -seek=",
        operands_max=1,
        otherwise="writes",
        is_clustered=False,
        is_early=True,
    ),
    "hostname": ProgramRule(only="-f -s -i -I -d", operands_max=0),
    "arch": _NONE,
    "alias": _NONE,
    "history": _NONE,
    "file": ProgramRule(
        only="-b -i -I -L -h -k -z -s -r -0 -p --mime --mime-type --mime-encoding --brief"
        " --dereference"
    ),
    **_each(
        "bat batcat",
        ProgramRule(
            only="-n -p -pp -A -l= -r= --plain --number --show-all --language= --line-range="
            " --color= --paging= --style= --theme= --decorations= --wrap= --tabs="
        ),
    ),
    **_each("less more", _PAGE),
    "man": ProgramRule(only="-k -f -w -a --where --apropos --whatis"),
    "yq": ProgramRule(
        only="-r -e -o= -p= -P -j -c -M -C -N -n --output-format= --input-format= --prettyPrint"
        " --raw-output --exit-status --no-doc",
        writes="-i --inplace --in-place",
    ),
    "ss": ProgramRule(only="-t -u -l -n -p -a -e -o -4 -6 -s -m -i"),
    **_each("gzip gunzip bzip2 bunzip2 xz unxz", _SQUEEZE),
    "unzip": ProgramRule(
        only="-l -v -t -Z -p -c -q -1 -2",
        needs="-l -v -t -Z -p -c",
        otherwise="writes",
        is_early=True,
    ),
    "tar": ProgramRule(
        only="-t -f= -v -z -j -J -a --list --file= --verbose --gzip --bzip2 --xz --zstd",
        needs="-t --list",
        otherwise="writes",
        is_early=True,
    ),
    "curl": ProgramRule(
        only="-s -S -f -L -i -I -v -k -g -N -# -4 -6 --silent --show-error --fail --location"
        " --include --head --verbose --insecure --compressed --globoff --no-buffer --progress-bar"
        " --fail-with-body -H= --header= -A= --user-agent= -e= --referer= -u= --user= -m="
        " --max-time= --connect-timeout= --retry= --retry-delay= -b= --cookie= --url= -r= --range="
        " -w= --write-out=",
        writes="-o= --output= -O --remote-name -D= --dump-header= -c= --cookie-jar= --output-dir="
        " --trace= --trace-ascii= --stderr= --etag-save= --libcurl= --remote-name-all",
        values_not=("@", "%output"),
    ),
}

_LISTS = "--contains= --no-contains= --merged --no-merged --points-at="
_FORMS = "--sort= --format= --column --no-column --color --no-color --color= --ignore-case"
_NPM = ProgramRule(
    only="--json --long -l --all -a --depth= --prod --production --omit= --parseable -p -g"
    " --global --silent -s"
)
_PIP = ProgramRule(
    only="--format= --outdated -o --uptodate --user --local -l --not-required --exclude= -v -q"
    " --verbose --quiet --files -f --all --disable-pip-version-check"
)
_WEB = ProgramRule(runs="-w --web")

VERBS = {
    "git": {
        **_each(
            "log show diff whatchanged shortlog blame annotate range-diff diff-tree diff-index"
            " diff-files rev-list",
            _SHOWS,
        ),
        **dict.fromkeys(("stash list", "stash show", "reflog show"), _SHOWS),
        **_each(
            "status rev-parse ls-files ls-tree describe name-rev merge-base show-ref for-each-ref"
            " count-objects check-ignore check-attr cherry show-branch var version",
            ANY,
        ),
        **dict.fromkeys(
            ("worktree list", "submodule status", "notes list", "notes show", "bisect log"), ANY
        ),
        **dict.fromkeys(("remote get-url", "remote show", "config get", "config list"), ANY),
        **dict.fromkeys(
            ("config --get", "config --get-all", "config --get-regexp", "config --list"), ANY
        ),
        "cat-file": ProgramRule(runs="--textconv --filters"),
        "grep": ProgramRule(runs="-O --open-files-in-pager"),
        "branch": ProgramRule(
            only=f"-a -r -v -vv -q --list --all --remotes --verbose --show-current {_LISTS}"
            f" {_FORMS}",
            operands_max=0,
            lifts=f"--list {_LISTS}",
            otherwise="writes",
        ),
        "tag": ProgramRule(
            only=f"-l --list -n -n= {_LISTS} {_FORMS}",
            operands_max=0,
            lifts=f"-l --list {_LISTS}",
            otherwise="writes",
        ),
        "remote": ProgramRule(only="-v --verbose", operands_max=0, otherwise="writes"),
        "reflog": ProgramRule(
            only=f"--oneline --all -n= {_DIGITS}",
            operands_max=0,
            otherwise="writes",
        ),
        "symbolic-ref": ProgramRule(only="--short -q --quiet", operands_max=1, otherwise="writes"),
        "config edit": ProgramRule(only="", needs="--never"),
        "config": ProgramRule(
            only="-l --list --get --get-all --get-regexp --get-urlmatch --show-origin --show-scope"
            " --global --local --system --worktree --name-only --null -z --type= --bool --int"
            " --path --includes --no-includes --default= --file= -f= --blob=",
            operands_max=1,
            otherwise="writes",
        ),
    },
    "gh": {
        **dict.fromkeys(
            [
                *("pr list", "pr view", "pr diff", "pr checks", "pr status"),
                *("issue list", "issue view", "issue status", "repo view", "repo list"),
                *("run list", "run view", "release list", "release view", "label list"),
                *("workflow list", "workflow view", "search issues", "search prs", "search code"),
                *("search repos", "search commits", "gist list", "gist view", "auth status"),
                *("cache list", "variable list", "variable get", "ruleset list", "ruleset view"),
            ],
            _WEB,
        ),
        "status": ANY,
        "version": ANY,
        "api": ProgramRule(
            only="-H= --header= --jq= -q= --paginate --template= -t= --hostname= -i --include"
            " --silent --slurp",
            operands_max=1,
            starts_not="graphql",
        ),
    },
    "npm": {
        **_each("ls list ll la view info show outdated search root prefix explain why", _NPM),
        **dict.fromkeys(("config get", "config list", "pkg get"), _NPM),
        **_each("ping whoami audit", ProgramRule(only=_NPM.only, operands_max=0)),
    },
    **dict.fromkeys(("pip", "pip3"), _each("list show freeze check", _PIP)),
    # Without one of these it may write Cargo.lock.
    "cargo": {
        "metadata": ProgramRule(
            only="--format-version= --no-deps --locked --frozen --offline --manifest-path= -q"
            " --quiet --all-features --no-default-features --filter-platform=",
            needs="--no-deps --locked --frozen",
        )
    },
}

GIT_WRITES = _names(
    "add commit checkout switch restore reset merge rebase cherry-pick revert apply am stash clean"
    " rm mv push pull fetch clone init worktree notes update-ref update-index write-tree"
    " commit-tree read-tree gc prune repack pack-refs replace filter-branch format-patch submodule"
    " sparse-checkout bisect fast-import maintenance checkout-index"
)
GIT_OPTIONS = (
    "-p -P --paginate --no-pager --no-optional-locks --no-replace-objects --bare"
    " --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-lazy-fetch"
    " --no-advice -C= -c= --git-dir= --work-tree= --namespace="
)
GIT_SETTINGS = ("color.", "advice.", "column.", "core.quotepath=", "core.abbrev=", "core.pager=cat")


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """Which words of a program that writes name what it writes."""

    which: Literal["all", "last", "rest", "none"] = "none"
    """Of those that are no options."""
    valued: str = ""
    targets: str = ""
    """Options that name what is written, instead of these words."""


_PLACES = "-t= --target-directory="
WRITERS = {
    **dict.fromkeys(_names("rm rmdir unlink mv sponge dos2unix unix2dos"), Writer(which="all")),
    "touch": Writer(which="all", valued="-d= -t= -r= --date= --reference="),
    **dict.fromkeys(("mkdir", "mkfifo"), Writer(which="all", valued="-m= --mode=")),
    "truncate": Writer(which="all", valued="-s= -r= --size= --reference="),
    "shred": Writer(which="all", valued="-n= -s="),
    **dict.fromkeys(("cp", "ln"), Writer(which="last", valued="-S=", targets=_PLACES)),
    "install": Writer(which="last", valued="-m= -o= -g= -S=", targets=_PLACES),
    **dict.fromkeys(("rsync", "ditto"), Writer(which="last", valued="-e= --exclude= --include=")),
    **dict.fromkeys(_names("chmod chown chgrp setfacl chattr chflags"), Writer(which="rest")),
    "wget": Writer(targets="-O= --output-document= -P= --directory-prefix= -o= -a="),
    **dict.fromkeys(_names("patch zip mktemp mknod split csplit"), Writer()),
}
