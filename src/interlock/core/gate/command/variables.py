"""Variables: which of them change what a shell, or a program that only reads, does.

A name that stands before a command reaches that command, so only names known to be harmless pass.
A name that is set for the shell alone changes something only if it is special.
"""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_HARMLESS = _names("LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI LS_COLORS")
# A shell takes from these what it runs, where it looks for programs or how it splits words; or has
# them as numbers and evaluates what it is given for them, where `a[$(…)]` runs something.
_SPECIAL = _names(
    "IFS ENV HOME PWD OLDPWD SHELL SHELLOPTS VISUAL FCEDIT BROWSER RANDOM SRANDOM SECONDS LINENO"
    " OPTIND OPTARG OPTERR UID EUID GID EGID PPID SHLVL FUNCNEST EPOCHSECONDS EPOCHREALTIME GROUPS"
    " DIRSTACK COLUMNS LINES USERNAME PIPESTATUS FUNCNAME MORE CDPATH TIME path fpath cdpath"
    " manpath mailpath module_path fignore prompt psvar watch histchars argv status options"
    " functions aliases galiases saliases commands builtins modules nameddirs userdirs parameters"
    " history historywords jobtexts jobdirs jobstates usergroups reswords patchars pipestatus"
    " signals errnos sysparams mapfile terminfo termcap keymaps widgets zle_bracketed_paste"
)
_SPECIAL_PREFIXES = _names(
    "BASH LD_ DYLD_ GIT_ LESS PYTHON PERL RUBY NODE_ NPM_ npm_ INTERLOCK SSH_ GREP_ RIPGREP_ ZDOT"
    " FIGNORE PS PROMPT RPROMPT RPS HIST COMP XDG_ GH_ PIP_ CARGO_ RUST JAVA _JAVA UV_ GCONV GLIBC"
    " LOC NLS MALLOC TAR_ GZIP XZ_ ZSTD UNZIP ZIP CURL WGET RSYNC AWK GAWK POSIX MAN MAGIC TERM"
    " DOCKER KUBE SAVE ERR KEYBOARD KEYTIME LIST MAIL READNULL NULLCMD REPORT TTY dis_ zsh_ WATCH"
    " BAUD EXECIGNORE GLOBIGNORE TMOUT TMP BZIP RES_ HOSTALIASES YARN PNPM DELTA BAT_ FD_ EZA"
    " EXA"
)
_SPECIAL_PARTS = ("PAGER", "EDITOR", "PATH", "OPTIONS", "_OPTS", "_FLAGS", "_HOME", "PRELOAD")


def is_special(name: str) -> bool:
    """Whether setting it in a shell may change what later commands are or do."""
    return (
        name in _SPECIAL
        or name.startswith(_SPECIAL_PREFIXES)
        or any(part in name for part in _SPECIAL_PARTS)
    )


def is_harmless(name: str) -> bool:
    """Whether a program may be given it, and still does what it always does."""
    if name in _HARMLESS or name.startswith("LC_"):
        return True
    is_own = name.islower() or len(name) == 1  # programs ask for names in capitals
    return is_own and "proxy" not in name and not is_special(name)
