"""Wrappers: programs that run the command in their words, and how that command is found."""

import msgspec

_DIGITS = " ".join(f"-{digit}" for digit in range(10))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    options: str = ""
    """All that it may be given; with another, nobody can say what it runs."""
    operands: int = 0
    """How many words stand before the command."""
    sets: bool = False
    """Whether `NAME=value` may stand before the command."""
    why: str = ""
    """Why nobody can say what comes of it, even if what it runs only reads."""


WRAPPERS = {
    "command": Wrapper(options="-p"),
    "builtin": Wrapper(),
    "exec": Wrapper(options="-c -l -a="),
    "nohup": Wrapper(why="`nohup` may write nohup.out"),
    "noglob": Wrapper(),
    "nocorrect": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "nice": Wrapper(options=f"-n= --adjustment= {_DIGITS}"),
    "ionice": Wrapper(options="-c= -n= -t --class= --classdata= --ignore"),
    "time": Wrapper(options="-p -v -l -h -f= --portability --verbose --format="),
    "timeout": Wrapper(
        options="-k= -s= -v -f -p --kill-after= --signal= --verbose --foreground --preserve-status",
        operands=1,
    ),
    "gtimeout": Wrapper(options="-k= -s= --kill-after= --signal= --foreground", operands=1),
    "stdbuf": Wrapper(options="-i= -o= -e= --input= --output= --error="),
    "setsid": Wrapper(options="-c -f -w --ctty --fork --wait"),
    "caffeinate": Wrapper(options="-d -i -m -s -u -t= -w="),
    "env": Wrapper(
        options="-i -0 -v -u= -C= --ignore-environment --null --unset= --chdir= --debug",
        sets=True,
    ),
    "sudo": Wrapper(
        options="-n -E -H -S -k -b -P -i -s -u= -g= -p= -D= -h= -C= -T= -r= -t= --user= --group="
        " --non-interactive --preserve-env --set-home",
        sets=True,
    ),
    "doas": Wrapper(options="-n -u="),
    "xargs": Wrapper(
        options="-0 -r -t -x -n= -L= -P= -s= -d= -E= -a= -I= --null --no-run-if-empty --verbose"
        " --max-args= --max-procs= --max-chars= --delimiter= --arg-file= --exit"
    ),
    "uvx": Wrapper(why="`uvx` fetches what it runs"),
    "npx": Wrapper(options="-y --yes", why="`npx` fetches what it runs"),
}
# `uv run X` and the like: the project says what X is.
RUNNERS = _names("uv poetry pipx hatch pdm rye pipenv")
SHELLS = frozenset(("bash", "zsh", "sh", "dash", "ash", "ksh", "mksh", "rbash", "yash"))
SHELL_FLAGS = frozenset("ceuxvilfo")
SHELL_OPTIONS = frozenset(("--norc", "--noprofile", "--login", "--posix", "--restricted"))

FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
FIND_WRITES = frozenset(("-fprint", "-fprint0", "-fprintf", "-fls"))
FIND_VALUED = _names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype"
    " -maxdepth -mindepth -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -size"
    " -perm -user -group -uid -gid -links -inum -samefile -fstype -printf -regextype -used"
    " -newermt -newerat -newerct"
)
VERSIONS = {
    **dict.fromkeys(("python", "python2", "python3"), ("--version", "-V")),
    **dict.fromkeys(("node", "npm", "php"), ("--version", "-v")),
    **dict.fromkeys(
        ("bash", "zsh", "gcc", "g++", "clang", "make", "cmake", "ruby"), ("--version",)
    ),
    **dict.fromkeys(("docker", "pip", "pip3", "uv", "ruff", "gh", "jq"), ("--version",)),
    "perl": ("--version", "-v"),
    "java": ("-version", "--version"),
}
